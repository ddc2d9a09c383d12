"""Modules compiled by a process beside the program (``server.py``).

In: the text of a module, whether the program waits for it or not.  Out: its machine code, when it is asked for again.  Promise: the program
never loads LLVM for it and waits for nothing but what it says it waits for.  The process is started by the first module, or found where
another program of the user's has started it, and is no child of the program.  One that ends while it has work loses nothing: what it
had is asked for once more, and refused if that fails too.  Where no process can be had, or none begins to work, ``begin`` returns None and
``reason`` says why; a thread compiles then.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from lazynp.array import core
from lazynp.backends.common import disk_cache
from lazynp.backends.llvm.messages import COMPILE, DESCRIBED, DONE, FIRST, LIMIT, READY, REFUSED, REPLY, REQUEST, Described
from lazynp.values import config, forking
from lazynp.values.loading import load

_native: Any = None
try:
    from lazynp.backends.llvm import _background as _native  # type: ignore[attr-defined, no-redef]
except ImportError:  # its thread is one of POSIX
    _native = None

STARTS: Final = 4  # processes that a program starts which end with work undone; then no more
BEGINNING: Final = (  # of the process: what imports NumPy is left out of the package
    "import sys, types; lazynp = sys.modules['lazynp'] = types.ModuleType('lazynp'); lazynp.__path__ = sys.argv[1:2]; "
    "sys.path.append(sys.argv[2]); import os; os.environ['LAZYNP_LIBMVEC'], os.environ['LAZYNP_POLYNOMIALS'] = sys.argv[3:5]; "
    "from lazynp.backends.llvm.server import main; main(*sys.argv[5:])"
)
LOSSES: Final = 2  # processes that ended while they had a module, after which it is not asked for again
PATIENCE: Final = 120.0  # seconds that one waits for a module
BEGIN_SECONDS: Final = 15.0  # and for a process to be ready
AWAIT_MS: Final = 50
_lock: Final = forking.compiler


class _State:
    """Hold what the program knows of processes that compile."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.failures = 0  # processes that ended with work undone
        self.why = ""  # why there is none, if one was wanted


_state: Final = _State()


class Work:
    """A module that is being compiled."""

    kept: Final = True  # the process puts the code on disk itself

    __slots__ = ("_code", "_state", "error", "key", "losses", "lost", "message")

    def __init__(self, key: str, message: bytes) -> None:
        self.key, self.message = key, message
        self.losses = 0  # processes that ended while they had it
        self._state = 0
        self._code = b""
        self.error = ""  # why it was refused
        self.lost = False  # by no process that had begun to work: LLVM has not seen it

    @property
    def over(self) -> bool:
        """Tell whether it is done, or refused."""
        if not self._state and _lock.acquire(blocking=False):
            try:
                _hear()
            finally:
                _lock.release()
        return bool(self._state)

    def hurry(self) -> None:
        """Have it compiled before all others: the program waits for it."""
        with _lock:
            if not self._state and _state.connection is not None:
                _state.connection.send(REQUEST.pack(FIRST, self.key.encode(), 0, 0, 0))

    def wait(self) -> None:
        """Wait until it is over."""
        begun = time.monotonic()
        while not self.over:
            connection, passed = _state.connection, time.monotonic() - begun
            if connection is None or passed > (PATIENCE if connection.ready else BEGIN_SECONDS):
                with _lock:
                    self.lost = connection is None or not connection.ready
                    self.end(0, b"the process that compiles does not answer")
                    if connection is not None and connection is _state.connection:
                        _left(connection)
            else:
                _native.wait_for(connection.descriptor, AWAIT_MS)

    def code(self) -> bytes | None:
        """Return the machine code; None where it was refused."""
        return self._code if self._state == DONE else None

    def end(self, how: int, content: bytes) -> None:
        """Note how it went."""
        if how == DONE:
            self._code = content
        else:
            self.error = content.decode(errors="replace")
        self._state, self.message = how or -1, b""


class Connection:
    """A process that compiles, and what was asked of it."""

    def __init__(self, descriptor: int, own: bool) -> None:
        self.descriptor, self.own = descriptor, own
        self.directory = disk_cache.shared().directory
        self.inode = _native.inode(descriptor)
        self.going, self.came = bytearray(), bytearray()
        self.works: dict[str, Work] = {}
        self.ready = False  # LLVM is there

    @property
    def open(self) -> bool:
        """Tell whether the descriptor is still the connection's: a program may have closed it, and opened another."""
        return bool(self.inode) and _native.inode(self.descriptor) == self.inode

    def send(self, message: bytes) -> None:
        """Send a message, as much of it as there is room for; the rest goes when it is looked at again."""
        self.going += message
        while self.going:
            sent = _native.send(self.descriptor, bytes(self.going[: 1 << 16]))
            if sent <= 0:
                return  # that it is not taken any more, ``hear`` notices
            del self.going[:sent]

    def hear(self) -> bool:
        """Read what there is; tells whether the process is still there."""
        if not self.open:
            return False
        self.send(b"")
        while True:
            came = _native.receive(self.descriptor)
            if not came:
                return came is not None
            self.came += came
            while len(self.came) >= REPLY.size:
                key, how, length = REPLY.unpack_from(self.came)
                if how not in (READY, DONE, REFUSED) or length > LIMIT:
                    return False  # it answers nonsense
                end = REPLY.size + length
                if len(self.came) < end:
                    break
                if how == READY:
                    self.ready = True
                else:
                    work = self.works.pop(key.decode(errors="replace"), None)
                    if work is None:
                        return False  # it answers nonsense
                    work.end(how, bytes(self.came[REPLY.size : end]))
                    if not self.works:
                        core.spare(0, 0)
                del self.came[:end]

    def close(self) -> None:
        if self.open:
            _native.close(self.descriptor)
        self.inode = 0


def wanted() -> bool:
    """Tell whether modules are compiled by a process beside the program."""
    return config.compiler == "child" and not reason()


def ahead() -> bool:
    """Tell whether modules are compiled while the program goes on, by a process or by a thread."""
    if wanted():
        return True
    by_thread: bool = load("lazynp.backends.llvm.background").wanted()
    return by_thread


def reason() -> str:
    """Return why no process can be had here, an empty text where one can."""
    if _native is None or sys.platform != "linux":
        return "processes are started on Linux only, by the native core"
    if getattr(sys, "frozen", False) or not os.path.basename(sys.executable or "").startswith(("python", "pypy")):
        return f"the interpreter that runs the program cannot be started by itself: {sys.executable!r}"
    return _state.why


def begin(key: str, module: str | Described, names: Sequence[str], level: int) -> Work | None:
    """Have a module compiled; None where no process can be had.  Called with the compiler's lock."""
    if not wanted():
        return None
    kind, text = (COMPILE, module) if isinstance(module, str) else (DESCRIBED, module.words)
    joined, content = ",".join(names).encode(), text.encode()
    work = Work(key, REQUEST.pack(kind, key.encode(), level, len(joined), len(content)) + joined + content)
    return work if _ask(work) else None


def _ask(work: Work, again: bool = False) -> bool:
    """Ask a process for a module, one of the program's own where that is done once more; tells whether there is one."""
    if _state.connection is not None:
        _hear()
    if _state.connection is not None and _state.connection.directory != disk_cache.shared().directory:
        _state.connection.close()
        _state.connection = None
    if _state.connection is None:
        _state.connection = (None if again else _found()) or _started()
    if _state.connection is None:
        return False
    _state.connection.works[work.key] = work
    _state.connection.send(work.message)
    return True


def _hear() -> None:
    """Read what came."""
    connection = _state.connection
    if connection is not None and not connection.hear():
        _left(connection)


def _left(connection: Connection) -> None:
    """Note that a process has ended, or is no use; its work is asked for once more."""
    connection.close()
    _state.connection = None
    if not connection.works:
        return  # it had nothing to do, and left
    if connection.own:
        _state.failures += 1
        if not connection.ready:
            _state.why = "a process was started and ended before it was ready"
        elif _state.failures >= STARTS:
            _state.why = f"{_state.failures} processes ended before their work was done"
    for work in [work for work in connection.works.values() if not work._state]:
        work.losses += connection.ready
        if work.losses >= LOSSES or not wanted() or not _ask(work, again=True):
            work.lost = not connection.ready
            work.end(0, b"the process that compiles has ended")


def _package() -> str:
    """Return the directory of lazynp."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@functools.cache
def _name() -> str:
    """Return the name under which programs find the process of others: of the same code and interpreter."""
    here = os.path.dirname(os.path.abspath(__file__))
    stamps = disk_cache.stamps(here, ("server", "toolchain", "messages", "expression_ir"))
    return f"compiler-{disk_cache.digest(repr((here, stamps, _settings(), sys.executable, sys.version, _site())).encode()).hex()[:16]}"


def _found() -> Connection | None:
    """Connect to a process that another program has started."""
    path = disk_cache.shared().path(f"{_name()}.sock")
    descriptor = -1 if path is None else _native.connect(path.encode())
    return None if descriptor < 0 else Connection(descriptor, own=False)


def _started() -> Connection | None:
    cache = disk_cache.shared().directory
    command = [sys.executable, "-I", "-S", *(["-B"] if sys.dont_write_bytecode else []), "-c", BEGINNING]
    command += [_package(), _site(), *_settings(), cache or "", _name() if cache else ""]
    descriptor = _native.start([os.fsencode(word) for word in command])
    if descriptor < 0:
        _state.why = f"a process could not be started: {os.strerror(-descriptor)} ({errno.errorcode.get(-descriptor, descriptor)})"
        return None
    return Connection(descriptor, own=True)


def _settings() -> tuple[str, str]:
    """Return what texts depend on besides the machine: ``LAZYNP_LIBMVEC`` and ``LAZYNP_POLYNOMIALS``."""
    return config.libmvec, str(int(config.polynomials))


def _site() -> str:
    """Return the directory that llvmlite lies in."""
    return os.path.dirname(os.path.dirname(os.path.abspath(load("llvmlite").__file__)))  # LLVM itself is not loaded by this


def _after_fork() -> None:
    """Leave the connection to the process that was copied."""
    if _native is not None:
        _native.forked()
    connection, _state.connection = _state.connection, None
    if connection is not None:
        connection.close()
        for work in connection.works.values():
            work.end(0, b"it was asked for by another process")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
