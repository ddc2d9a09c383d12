"""Machine code kept between processes.

In: a key (a hash of everything the code depends on) and bytes.  Out: the same bytes, later, perhaps in another process; or None.
Promises: the directory belongs to the user and no other user can write to it or put another in its place, or it is not used.  What is read
is a file of the user's own, no link and no device, and was checked against its
checksum.  A file is there whole or not at all; the size stays bounded; it may be deleted at any moment.  Nothing that goes
wrong with files ever reaches the caller, code is then compiled again.

``LAZYNP_CACHE=0`` turns it off, ``LAZYNP_CACHE_DIR`` names another directory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Final

from lazynp.values import config

# Every process that computes comes here: what it imports is kept small, and the standard library's pathlib, tempfile and
# hashlib (with OpenSSL behind it) are not.
try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

MAGIC: Final = b"lazynp2\n"
DIGEST_BYTES: Final = 32
SUFFIX: Final = ".obj"
LIMIT: Final = 256 << 20  # bytes kept; the oldest files go first
TRIM_EVERY: Final = 32  # writes between two looks at the size of the directory
OTHERS: Final = 0o022
# Windows keeps a profile's directories private itself, and has neither owner numbers nor modes to look at, nor names below a descriptor.
BY_DESCRIPTOR: Final = os.open in os.supports_dir_fd
DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# No FIFO is waited for, and no link is followed.
READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
STALE_SECONDS: Final = 3600.0  # a temporary file older than this belongs to a process that died


class UntrustedError(PermissionError):
    """A directory that is not the user's alone; the message says why."""


class DiskCache:
    """A directory of files named by key; a cache without a directory remembers nothing.

    The directory is opened once, and its files are opened below what was opened: who exchanges the name later exchanges nothing.

    Parameters
    ----------
    directory : str, path or None
        Made, with mode 0700, when it does not exist.
    limit : int
        Bytes kept.
    """

    __slots__ = ("__weakref__", "_descriptor", "_directory", "_identity", "_limit", "_writes", "hits", "misses", "refused")

    def __init__(self, directory: str | os.PathLike[str] | None, limit: int = LIMIT) -> None:
        self._limit = limit
        self._writes = 0
        self.hits = self.misses = 0
        self.refused = ""  # why there is no directory, for reports
        self._directory: str | None = None
        self._descriptor: int | None = None
        self._identity = (0, 0)
        if directory is None:
            self.refused = "turned off"
        else:
            self._open(os.fspath(directory))

    @classmethod
    def default(cls) -> DiskCache:
        """Return the cache that the settings ask for."""
        return cls(default_directory() if config.cache else None)

    @property
    def directory(self) -> str | None:
        """The directory in use, None when there is none."""
        return self._directory

    def path(self, name: str) -> str | None:
        """Return a short path of a file of another kind in the directory, None where there is no directory."""
        if not self._ready() or self._descriptor is None:
            return None
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def get(self, key: str) -> bytes | None:
        """Return what was kept under a key; a file that is not what was written is removed."""
        if not self._ready():
            return None
        try:
            content = self._read(key + SUFFIX)
        except OSError:
            self.misses += 1
            return None
        head = len(MAGIC) + DIGEST_BYTES
        data = content[head:]
        if content[:head] != MAGIC + digest(key.encode() + data):
            self.remove(key)
            self.misses += 1
            return None
        self.hits += 1
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep bytes under a key."""
        if not self._ready():
            return
        content = MAGIC + digest(key.encode() + data) + data
        temporary, where = os.urandom(8).hex() + ".tmp", self._descriptor
        try:
            with open(temporary, "xb", opener=self._private) as file:
                file.write(content)
            os.replace(self._name(temporary), self._name(key + SUFFIX), src_dir_fd=where, dst_dir_fd=where)
        except OSError:  # full, read-only or just deleted: the code is compiled again next time
            self._unlink(temporary)
            return
        if self._writes % TRIM_EVERY == 0:
            self.trim()
        self._writes += 1

    def wanted(self, key: str) -> bool:
        """Note that something is wanted which is not kept; tells whether that was noted before, by an earlier process most likely.

        What several processes wanted, each too seldom to pay for making it, the next one will want, too.
        """
        key = digest(b"wanted " + key.encode()).hex()
        if self.get(key) is not None:
            return True
        self.put(key, b"")
        return False

    def remove(self, key: str) -> None:
        """Forget a key."""
        if self._ready():
            self._unlink(key + SUFFIX)

    def trim(self) -> None:
        """Remove the files unused for longest until the rest is within the limit, and what dead processes left behind."""
        if not self._ready():
            return
        files = []
        newest = 0.0
        try:
            for name in self._names():
                with contextlib.suppress(OSError):  # another process may remove it meanwhile
                    status = os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)
                    files.append((status.st_mtime, status.st_size, name))
                    newest = max(newest, status.st_mtime)
        except OSError:
            return
        total = 0
        for modified, size, name in sorted(files, reverse=True):
            if name.endswith(".tmp"):
                expired = modified < newest - STALE_SECONDS
            elif name.endswith(SUFFIX):
                total += size
                expired = total > self._limit
            else:  # not ours
                expired = False
            if expired:
                self._unlink(name)

    # The directory, by its descriptor where the system has such, else by its name

    def _open(self, path: str) -> None:
        """Make and open the directory, or note why it is not used."""
        self._directory = self._descriptor = None
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            if BY_DESCRIPTOR:
                self._descriptor = _trusted(path)
                status = os.fstat(self._descriptor)
                self._identity = (status.st_dev, status.st_ino)
                weakref.finalize(self, _close, self._descriptor, self._identity).atexit = False
        except OSError as error:
            self.refused = str(error)
        else:
            self.refused = "" if os.path.isdir(path) else f"{path} is not a directory"
            self._directory = None if self.refused else path

    def _ready(self) -> bool:
        """Tell whether there is a directory; a program that closed all descriptors has closed that one, and perhaps uses its number."""
        if self._directory is not None and self._descriptor is not None and not _is(self._descriptor, self._identity):
            self._open(self._directory)
        return self._directory is not None

    def _name(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self._directory or "", name)

    def _names(self) -> list[str]:
        if self._descriptor is None:
            return os.listdir(self._directory)
        own = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._descriptor)  # a child made by fork shares the place in the other
        try:
            return os.listdir(own)
        finally:
            os.close(own)

    def _private(self, name: str, flags: int) -> int:
        return os.open(self._name(name), flags, 0o600, dir_fd=self._descriptor)

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name(name), dir_fd=self._descriptor)

    def _read(self, name: str) -> bytes:
        """Return a file's content, nothing of what is no file of the user's own that only the user may write."""
        descriptor = os.open(self._name(name), READ, dir_fd=self._descriptor)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._limit:
                return b""
            if BY_DESCRIPTOR and (status.st_uid != os.geteuid() or status.st_mode & OTHERS):
                return b""
            content = os.read(descriptor, status.st_size)
            # A look-up makes a file young again, so that eviction takes what is not used.
            with contextlib.suppress(OSError):
                os.utime(descriptor if os.utime in os.supports_fd else self._name(name))
            return content
        finally:
            os.close(descriptor)


@functools.cache
def shared() -> DiskCache:
    """Return the cache of the process."""
    return DiskCache.default()


def default_directory() -> str | None:
    """Return where the platform wants a user's caches, None where the user has no home."""
    if config.cache_dir:
        return os.path.abspath(config.cache_dir)
    if sys.platform == "win32":
        path = os.path.join(os.environ.get("LOCALAPPDATA") or "~/AppData/Local", "lazynp", "Cache")
    elif sys.platform == "darwin":
        path = "~/Library/Caches/lazynp"
    else:
        shared = os.environ.get("XDG_CACHE_HOME", "")
        # A relative path must be ignored, says the XDG base directory specification.
        path = os.path.join(shared if os.path.isabs(shared) else "~/.cache", "lazynp")
    path = os.path.expanduser(path)
    return path if os.path.isabs(path) else None


def stamps(directory: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Return when modules below a directory were written and how long they are, of whatever is there: source, bytecode, neither."""
    found = []
    for name in names:
        for suffix in (".py", ".pyc"):
            with contextlib.suppress(OSError):
                status = os.stat(os.path.join(directory, name + suffix))
                found.append((status.st_mtime_ns, status.st_size))
                break
    return found


def digest(data: bytes) -> bytes:
    """Return what stands for data: other data with the same cannot be found."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def _is(descriptor: int, identity: tuple[int, int], status_of: Callable[[int], os.stat_result] = os.fstat) -> bool:
    try:
        status = status_of(descriptor)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == identity


def _close(descriptor: int, identity: tuple[int, int], same: Callable[..., bool] = _is, close: Callable[[int], None] = os.close) -> None:
    """Close the directory's descriptor; also when the interpreter ends, and has forgotten the names of this module."""
    if same(descriptor, identity):
        close(descriptor)


def _trusted(path: str) -> int:
    """Open a directory that no other user can write to, or exchange: its parents are looked at one after the other, from the root.

    Raises
    ------
    UntrustedError
        Which directory is the reason why machine code must not be kept there.
    """
    path = os.path.abspath(path)
    if stat.S_ISLNK(os.lstat(path).st_mode):
        raise UntrustedError(f"{path} is a link")
    *parents, last = os.path.realpath(path).split(os.sep)[1:]
    here = os.open(os.sep, DIRECTORY)
    at = os.sep
    try:
        _check_parent(here, at)
        for name in parents:
            here = _below(here, name)
            at = os.path.join(at, name)
            _check_parent(here, at)
        here = _below(here, last)
        status = os.fstat(here)
        if status.st_uid != os.geteuid():
            raise UntrustedError(f"{path} belongs to another user")
        if status.st_mode & OTHERS:
            raise UntrustedError(f"others may write to {path} (mode {stat.S_IMODE(status.st_mode):04o})")
        if status.st_mode & 0o077:
            os.chmod(here, 0o700)
    except OSError:
        os.close(here)
        raise
    return here


def _below(parent: int, name: str) -> int:
    """Open a directory in another one, in exchange for that one's descriptor; a link is not followed."""
    child = os.open(name, DIRECTORY, dir_fd=parent)
    os.close(parent)
    return child


def _check_parent(descriptor: int, path: str) -> None:
    """Refuse a parent in which others may exchange names: with the sticky bit they cannot, nor if the group is the user's own."""
    status = os.fstat(descriptor)
    user = os.geteuid()
    if status.st_uid not in (0, user):
        raise UntrustedError(f"{path} belongs to another user")
    private = status.st_gid == user  # by the convention of useradd a user's own group has the user's number
    if status.st_mode & (0o002 if private else OTHERS) and not status.st_mode & stat.S_ISVTX:
        raise UntrustedError(f"others may write to {path} (mode {stat.S_IMODE(status.st_mode):04o})")
