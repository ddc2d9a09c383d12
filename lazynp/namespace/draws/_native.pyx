# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=True
"""Draws in C; ``native.py`` says which of them may be used.

In: bound methods of NumPy's generators over PCG64, and of ``RandomState``.  Out: what is called in their place.  Promise: NumPy's numbers,
and NumPy's state.
"""

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

cnp.import_array()

cdef extern from "calls.h":
    ctypedef struct bitgen_t:
        void* state
        uint64_t (*next_uint64)(void*) noexcept nogil
        uint32_t (*next_uint32)(void*) noexcept nogil
        double (*next_double)(void*) noexcept nogil
        uint64_t (*next_raw)(void*) noexcept nogil
    ctypedef struct Ziggurat:
        double* width
        uint64_t* limit
        double* height
        double start, inverse
    Ziggurat normal_layers, exponential_layers
    int LAYERS
    void words_ready()
    int words_by_vectors(int)
    object drawn_new(object, object, object, object, int, const char*)
    int drawn_ready() except -1

words_ready()
words_by_vectors(1)
drawn_ready()


def by_vectors(bint wanted):
    """Make words by vectors from now on, where the processor can; tells whether it is so."""
    return bool(words_by_vectors(wanted))


def drawn(method, bits, bint legacy):
    """Return what draws as a bound method of NumPy's does, of a ``RandomState`` or another generator over these bits; None if it is not known."""
    return drawn_new(method, method.__self__, bits, bits.capsule, legacy, method.__name__.encode())


def set_layers(bint normal, const double[::1] width, const uint64_t[::1] limit, const double[::1] height, double start):
    """Tell what the layers of a ziggurat are."""
    cdef Ziggurat* layers = &normal_layers if normal else &exponential_layers
    if not width.shape[0] == limit.shape[0] == height.shape[0] == LAYERS:
        raise ValueError(f"a ziggurat has {LAYERS} layers")
    memcpy(layers.width, &width[0], LAYERS * sizeof(double))
    memcpy(layers.limit, &limit[0], LAYERS * sizeof(uint64_t))
    memcpy(layers.height, &height[0], LAYERS * sizeof(double))
    layers.start, layers.inverse = start, 1 / start


cdef struct Told:
    uint64_t[3] words
    int taken


cdef uint64_t next_told(void* state) noexcept nogil:
    cdef Told* told = <Told*>state
    told.taken += 1
    return told.words[told.taken - 1 if told.taken < 3 else 2]


cdef uint32_t lower_told(void* state) noexcept nogil:
    return <uint32_t>next_told(state)


cdef double uniform_told(void* state) noexcept nogil:
    return <double>(next_told(state) >> 11) * 2.0**-53


cdef class Script:
    """A bit generator whose words are told: what NumPy makes of them says what it knows."""

    cdef bitgen_t interface
    cdef Told words
    cdef readonly object capsule, lock

    def __init__(self, lock):
        self.interface.state = &self.words
        self.interface.next_uint64 = self.interface.next_raw = next_told
        self.interface.next_uint32 = lower_told
        self.interface.next_double = uniform_told
        self.capsule = PyCapsule_New(&self.interface, "BitGenerator", NULL)
        self.lock = lock

    def told(self, draw, uint64_t first, uint64_t second, uint64_t third):
        """Draw a number of these words, of which the last one comes again and again; it, and how many words it took."""
        self.words.words[0], self.words.words[1], self.words.words[2], self.words.taken = first, second, third, 0
        return draw(), self.words.taken
