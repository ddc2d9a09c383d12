"""The process that compiles beside a program.

In: texts of modules, from one program that starts it and from others that find it in the directory of the disk cache.  Out: machine code,
on disk and to who asked.  Promise: LLVM is loaded here and not by the program; neither NumPy nor the rest of lazynp is.  When a
program ends it finishes what that has asked for, as far as some seconds go, and keeps it for the next one; it ends when no program is left,
or ten seconds after its last work.

``client.py`` starts it, with a package named lazynp in which nothing is but where it lies, so that NumPy is not imported.

What came often is compiled by a process beside the program (``backends/llvm/client.py``, ``server.py``), and the program runs as before
until the code is there: it never stands still for a compiler (half a second for a program of 700 operations), and never loads LLVM (115
MiB). What tapes want is asked for in words (the steps, the dtypes, how arrays lie: ``expressions.py``), under whose digest the code lies
on disk, with what else it follows from (``compiler._writers``); the text is written by the process, which needs no NumPy for that
(``expression_ir.py``). So asking takes 2 to 3 ms in a program's first time, of which most is loading six modules, and 0.1 ms later. The
scheduler's passes and the text of kernels are made by the program itself. The process is an interpreter without ``site``, in which
nothing is imported but LLVM's binding, the pass pipelines (``toolchain.py``), the disk cache and what writes texts of tapes; it takes 0.1
s to be ready, for which no program waits. It is started in C (``child.h``) as an orphan, no child of the program: ``os.wait``, handlers of
``SIGCHLD`` and signals to the program's group do not find it, and it inherits one descriptor, the connection. Machine code goes to the
disk cache and to who asked. Programs of one user that share a disk cache share the process: it listens in that directory, under a name
that stands for its code and interpreter. It is nicer than the program by 5, and so is its group (Linux shares a processor evenly among
sessions): on one processor it takes a sixth. Where the program's threads would fill all processors, one is left free as long as a module
that was asked for is not there (``workers_spare`` in ``array/workers.h``). When the program ends, it finishes what it was asked for, within
five seconds; ten seconds after its last work it goes, and comes back when it is wanted. If it ends with work undone, that is asked for once
more; a module during which two of them ended is refused, and NumPy's loops go on. Where none begins to work (another system than Linux, a
program that embeds
Python, processes forbidden) ``doctor`` says why, and ``LAZYNP_COMPILER=thread`` is what happens: a thread of C compiles
(``background.py``, ``background.h``). It knows nothing of Python: it holds none of its locks, no finalizer runs in it and it takes no
signal. ``fork`` waits until it is between two modules; at the end of the process one waits for the step that it is in (LLVM does not
survive its own end). No thread imports anything that works for one that waits: a module that is wanted late is imported by who asks
(``values/loading.py``), with handlers of signals put off until it is over. One thing is a clock's then: from which run on kernels
compute. Values do not depend on it, as the next paragraph says. A run that costs eight compilations still waits for its own, and so does
one with a value of 64 MiB, beside which NumPy's loops would hold others. ``LAZYNP_COMPILER=wait`` has every run wait, as tests do that
count compilations.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import select
import socket
import struct
import threading
import time
from typing import Any, Final

from lazynp.backends.common.disk_cache import DiskCache
from lazynp.backends.llvm.messages import COMPILE, DESCRIBED, DONE, FIRST, LIMIT, READY, REFUSED, REPLY, REQUEST
from lazynp.backends.llvm.toolchain import Toolchain
from lazynp.values.loading import load

IDLE_SECONDS: Final = 10.0
REST_SECONDS: Final = 5.0  # for what was asked for, when no program is left to take it
PIECE: Final = 1 << 16
GROUP_NICE: Final = "7"


class Job:
    """A module that is wanted, and the clients that want it."""

    def __init__(self, kind: int, key: str, level: int, names: list[str], text: str, client: Client) -> None:
        self.kind, self.key, self.level, self.names, self.text = kind, key, level, names, text
        self.clients = [client]


class Client:
    """A program, and the bytes that came from it and go to it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.came, self.going = bytearray(), bytearray()
        self.greeted = False

    def fileno(self) -> int:
        return self.connection.fileno()


class Server:
    """Talks with programs in one thread, and compiles in another."""

    def __init__(self, first: socket.socket, cache: Any, listener: socket.socket | None) -> None:
        self.cache, self.listener = cache, listener
        self.clients = [Client(first)]
        self.waiting: collections.OrderedDict[str, Job] = collections.OrderedDict()
        self.job: Job | None = None  # that is being compiled
        self.over: collections.deque[tuple[Job, int, bytes]] = collections.deque()
        self.change = threading.Condition()
        self.bell, self.wake = os.pipe()
        self.last = time.monotonic()
        self.ready = False  # LLVM is there

    def serve(self) -> None:
        """Talk until no client is there, or none has wanted anything for a while."""
        threading.Thread(target=self.compile_all, daemon=True).start()
        present = time.monotonic()
        while self.clients or self.busy():
            now = time.monotonic()
            present = now if self.clients else present
            left = self.last + IDLE_SECONDS - now
            if (left <= 0 and not self.busy()) or now > present + REST_SECONDS:
                return
            readers: list[Any] = [self.bell, *self.clients, *([self.listener] if self.listener else [])]
            ready, writable, _ = select.select(readers, [c for c in self.clients if c.going], [], max(left, 0.1))
            if self.bell in ready:
                os.read(self.bell, PIECE)
            if self.ready:
                for client in [client for client in self.clients if not client.greeted]:
                    client.greeted = True
                    self.say(client, REPLY.pack(b"", READY, 0))
            while self.over:
                self.answer(*self.over.popleft())
            if self.listener in ready:
                self.admit()
            for client in list(self.clients):
                if client in ready or client in writable:
                    self.exchange(client)

    def busy(self) -> bool:
        """Tell whether something is to be compiled, or to be told."""
        with self.change:
            return bool(self.waiting or self.job or self.over)

    def admit(self) -> None:
        assert self.listener is not None
        with contextlib.suppress(OSError):
            connection, _ = self.listener.accept()
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            if struct.unpack("3i", credentials)[1] == os.geteuid():
                self.clients.append(Client(connection))
            else:
                connection.close()

    def exchange(self, client: Client) -> None:
        """Send what there is room for, and read what there is."""
        try:
            if client.going:
                del client.going[: client.connection.send(client.going)]
            came = client.connection.recv(PIECE)
            if not came:
                self.leave(client)
                return
            client.came += came
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.leave(client)
            return
        while len(client.came) >= REQUEST.size:
            kind, key, level, names, text = REQUEST.unpack_from(client.came)
            if kind not in (COMPILE, FIRST, DESCRIBED) or names + text > LIMIT:
                self.leave(client)
                return
            end = REQUEST.size + names + text
            if len(client.came) < end:
                return
            content = bytes(client.came[REQUEST.size : end])
            del client.came[:end]
            try:
                self.ask(client, kind, key.decode(), level, content[:names].decode(), content[names:].decode())
            except UnicodeDecodeError:
                self.leave(client)
                return

    def leave(self, client: Client) -> None:
        self.clients.remove(client)
        client.connection.close()

    def ask(self, client: Client, kind: int, key: str, level: int, names: str, text: str) -> None:
        with self.change:
            if kind == FIRST:
                if key in self.waiting:
                    self.waiting.move_to_end(key, last=False)
            elif key in self.waiting:
                self.waiting[key].clients.append(client)
            else:
                self.waiting[key] = Job(kind, key, level, names.split(","), text, client)
                self.change.notify()

    def answer(self, job: Job, how: int, content: bytes) -> None:
        self.last = time.monotonic()
        for client in job.clients:
            if client in self.clients:
                self.say(client, REPLY.pack(job.key.encode(), how, len(content)) + content)

    def say(self, client: Client, message: bytes) -> None:
        client.going += message
        self.exchange(client)

    def compile_all(self) -> None:
        """Compile what is wanted, one after the other."""
        tools: Toolchain | None = None
        while True:
            try:
                tools = tools or Toolchain()
                self.ready = True
                os.write(self.wake, b"!")
            except Exception as error:  # LLVM is not there, or not all of it
                why = str(error)
            with self.change:
                while not self.waiting:
                    self.change.wait()
                _, job = self.waiting.popitem(last=False)
                self.job = job
            try:
                code = self.cache.get(job.key)  # another program may have wanted it
                if code is None:
                    if tools is None:
                        raise RuntimeError(why)
                    code = tools.compiled(text_of(job), job.names, job.level)
                    self.cache.put(job.key, code)
                self.over.append((job, DONE, code))
            except Exception as error:  # a program that is told goes on without
                self.over.append((job, REFUSED, str(error).encode()))
            self.job = None
            os.write(self.wake, b"!")


def text_of(job: Job) -> str:
    """Return the text of a module; it is written here if the program has only described it."""
    if job.kind != DESCRIBED:
        return job.text
    text: str = load("lazynp.backends.llvm.expression_ir").text_of(job.text)  # kernels' texts come written
    return text


def listen(cache: Any, name: str) -> socket.socket | None:
    """Be the process found under a name; None where another one is already, or none can be."""
    if not name or cache.directory is None:
        return None
    path = os.path.join(cache.directory, name)
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)  # held until the process ends
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        directory = os.open(cache.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            listener.bind(f"/proc/self/fd/{directory}/{name}.sock")  # an address has a hundred characters at most
        finally:
            os.close(directory)
        listener.listen(64)
        listener.setblocking(False)
    except OSError:
        return None
    return listener


def give_way() -> None:
    """Let the program go first: where both have one processor, a sixth of it is left for what is compiled.

    A session is a group to Linux, and groups share a processor evenly whatever the priorities within them: the group's own is lowered.
    Where there are no such groups, the process itself takes what is left.
    """
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as file:
        file.write(GROUP_NICE)
    if len(os.sched_getaffinity(0)) == 1:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main(directory: str, name: str) -> None:
    """Serve the program at the other end of standard input.

    Parameters
    ----------
    directory : str
        That of the disk cache; empty where there is none.
    name : str
        Under which other programs find the process, in that directory; empty where none is to.
    """
    give_way()
    cache = DiskCache(directory or None)
    listener = listen(cache, name)
    try:
        server = Server(socket.socket(fileno=0), cache, listener)
        server.serve()
    finally:
        if listener is not None:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(directory, f"{name}.sock"))
            listener.close()
    for client in server.clients:  # who sees that knows that nothing was lost
        client.connection.close()
    os._exit(0)  # LLVM's thread may still be at work, for no client
