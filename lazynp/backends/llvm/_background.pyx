# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=True
"""The thread that compiles modules; ``background.py`` says what for.

In: addresses of LLVM's functions and objects, texts.  Out: machine code.  Promise: nothing here waits but ``Work.wait``, ``pause`` and
``stop``, which let other threads run meanwhile.
"""

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

cdef extern from "background.h":
    ctypedef struct Native "Work":
        void *passes
        void *tidy
        void *builder
        void *machine
        char* code
        size_t size
    int LLVM_FUNCTIONS
    int DONE_ "DONE"
    int WAITING_ "WAITING"
    void llvm_is(int, void*)
    Native* work_new(const char*, Py_ssize_t, const char*, Py_ssize_t, const char*, Py_ssize_t, const char*, Py_ssize_t)
    int work_begin(Native*)
    int state_of(Native*) nogil
    void work_await(Native*) nogil
    void work_stop() nogil
    void work_take_back(Native*)
    void work_pause() nogil
    void work_go_on()
    void work_free(Native*)

cdef extern from "child.h":
    int child_start(char**)
    void child_forked()
    int child_connect(const char*)
    Py_ssize_t child_send(int, const char*, Py_ssize_t)
    Py_ssize_t child_receive(int, char*, Py_ssize_t)
    void child_await(int, int) nogil
    unsigned long long child_inode(int)
    void child_close(int)


def bind(list addresses):
    """Take LLVM's functions, in the order of the header."""
    if len(addresses) != LLVM_FUNCTIONS:
        raise ValueError(f"{LLVM_FUNCTIONS} functions are wanted, not {len(addresses)}")
    for k, address in enumerate(addresses):
        llvm_is(k, <void*><uintptr_t>address)


def pause():
    """Wait until no module is being compiled; none is until ``go_on``."""
    with nogil:
        work_pause()


def go_on():
    """Go on after a ``pause``."""
    work_go_on()


def stop():
    """Wait for the module that is being compiled; no other is from now on."""
    with nogil:
        work_stop()


@cython.no_gc_clear
cdef class Work:
    """A module that is being compiled."""

    cdef Native* native
    cdef object objects

    def __cinit__(self, bytes text, bytes triple, bytes layout, bytes hidden, tuple addresses, objects):
        cdef uintptr_t passes = addresses[0], tidy = addresses[1], builder = addresses[2], machine = addresses[3]
        self.objects = objects  # that have these addresses
        self.native = work_new(text, len(text), triple, len(triple), layout, len(layout), hidden, len(hidden))
        if self.native is NULL:
            raise MemoryError
        self.native.passes, self.native.tidy, self.native.builder, self.native.machine = <void*>passes, <void*>tidy, <void*>builder, <void*>machine

    def begin(self):
        """Hand it over; tells whether a thread does it."""
        Py_INCREF(self.objects)  # as long as it is not over
        return bool(work_begin(self.native))

    def hurry(self):
        """Take it back where it has not begun, and refuse it then: who waits compiles it."""
        work_take_back(self.native)

    @property
    def over(self):
        """Whether it is done, or refused."""
        return state_of(self.native) != WAITING_

    @property
    def kept(self):
        """Whether the code is on disk already."""
        return False

    @property
    def lost(self):
        """Whether what is refused is to be compiled by who waits, who says why it is refused."""
        return True

    def wait(self):
        """Wait until it is over."""
        with nogil:
            work_await(self.native)

    def code(self):
        """Return the machine code; None where LLVM refused, or it was not done."""
        return self.native.code[:self.native.size] if state_of(self.native) == DONE_ else None

    def __dealloc__(self):
        # What is not over is still the thread's: a program that ends may leave it.
        if self.native is NULL or state_of(self.native) == WAITING_:
            return
        work_free(self.native)
        Py_DECREF(self.objects)


# A process beside the program ------------------------------------------------------------------------------------------------------

cdef enum:
    PIECE = 65536


def start(list command):
    """Start a process that is no child of the program; return the descriptor of the connection to it, or the error's number, negative."""
    cdef char** words = <char**>malloc((len(command) + 1) * sizeof(char*))
    if words is NULL:
        raise MemoryError
    for k, word in enumerate(command):
        words[k] = word
    words[len(command)] = NULL
    try:
        return child_start(words)
    finally:
        free(words)


def forked():
    """Close, in a copy of the program, what a thread of the program itself closes."""
    child_forked()


def connect(bytes path):
    """Connect to who listens at a path; return a descriptor, or the error's number, negative."""
    return child_connect(path)


def send(int connection, bytes what):
    """Return how many bytes were sent; -1 where the other side takes no more."""
    return child_send(connection, what, len(what))


def receive(int connection):
    """Return what came, which may be nothing yet; None where nothing will."""
    cdef char piece[PIECE]
    cdef Py_ssize_t came = child_receive(connection, piece, PIECE)
    return None if came < 0 else piece[:came]


def wait_for(int connection, int milliseconds):
    """Wait until something comes, or time is over."""
    with nogil:
        child_await(connection, milliseconds)


def inode(int connection):
    """Return what tells a connection from another one with its number; 0 where it is none."""
    return child_inode(connection)


def close(int connection):
    """Close a connection."""
    child_close(connection)
