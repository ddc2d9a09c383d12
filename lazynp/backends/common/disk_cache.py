"""Machine code kept between processes.

In: a key (a hash of everything the code depends on) and bytes.  Out: the same bytes, later, perhaps in another process; or None.
Promises: the directory belongs to the user and nobody else can write to it, or it is not used; what is read was checked against its
checksum; a file is there whole or not at all; the size stays bounded; it may be deleted at any moment; nothing that goes
wrong with files ever reaches the caller, code is then compiled again.

``LAZYNP_CACHE=0`` turns it off, ``LAZYNP_CACHE_DIR`` names another directory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
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
STALE_SECONDS: Final = 3600.0  # a temporary file older than this belongs to a process that died


class DiskCache:
    """A directory of files named by key; a cache without a directory remembers nothing.

    Parameters
    ----------
    directory : str, path or None
        Made, with mode 0700, when it does not exist.
    limit : int
        Bytes kept.
    """

    __slots__ = ("_directory", "_limit", "_writes", "hits", "misses", "refused")

    def __init__(self, directory: str | os.PathLike[str] | None, limit: int = LIMIT) -> None:
        self._limit = limit
        self._writes = 0
        self.hits = self.misses = 0
        self.refused = ""  # why there is no directory, for reports
        self._directory: str | None = None
        if directory is None:
            self.refused = "turned off"
            return
        try:
            path = os.fspath(directory)
            os.makedirs(path, mode=0o700, exist_ok=True)
            self.refused = _distrust(path)
        except OSError as error:
            self.refused = str(error)
        else:
            self._directory = None if self.refused else path

    @classmethod
    def default(cls) -> DiskCache:
        """Return the cache that the settings ask for."""
        return cls(default_directory() if config.cache else None)

    @property
    def directory(self) -> str | None:
        """The directory in use, None when there is none."""
        return self._directory

    def get(self, key: str) -> bytes | None:
        """Return what was kept under a key; a file that is not what was written is removed."""
        if self._directory is None:
            return None
        path = os.path.join(self._directory, key + SUFFIX)
        try:
            with open(path, "rb") as file:
                content = file.read()
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
        # A look-up makes a file young again, so that eviction takes what nobody uses.
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep bytes under a key."""
        if self._directory is None:
            return
        content = MAGIC + digest(key.encode() + data) + data
        temporary = os.path.join(self._directory, os.urandom(8).hex() + ".tmp")
        try:
            with open(temporary, "xb", opener=_private) as file:
                file.write(content)
            os.replace(temporary, os.path.join(self._directory, key + SUFFIX))
        except OSError:  # full, read-only or just deleted: the code is compiled again next time
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return
        if self._writes % TRIM_EVERY == 0:
            self.trim()
        self._writes += 1

    def remove(self, key: str) -> None:
        """Forget a key."""
        if self._directory is not None:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._directory, key + SUFFIX))

    def trim(self) -> None:
        """Remove the files unused for longest until the rest is within the limit, and what dead processes left behind."""
        if self._directory is None:
            return
        files = []
        newest = 0.0
        try:
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):  # another process may remove it meanwhile
                        status = entry.stat(follow_symlinks=False)
                        files.append((status.st_mtime, status.st_size, entry.path))
                        newest = max(newest, status.st_mtime)
        except OSError:
            return
        total = 0
        for modified, size, path in sorted(files, reverse=True):
            if path.endswith(".tmp"):
                expired = modified < newest - STALE_SECONDS
            elif path.endswith(SUFFIX):
                total += size
                expired = total > self._limit
            else:  # not ours
                expired = False
            if expired:
                with contextlib.suppress(OSError):
                    os.unlink(path)


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


def digest(data: bytes) -> bytes:
    """Return what stands for data: nobody finds other data with the same."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _distrust(directory: str) -> str:
    """Return why machine code in a directory must not be executed, an empty string when it may be.

    Windows keeps a profile's directories private itself, and has neither owner numbers nor modes to look at.
    """
    if sys.platform == "win32":
        return ""
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode):
        return f"{directory} is not a directory"
    if status.st_uid != os.geteuid():
        return f"{directory} belongs to another user"
    if status.st_mode & 0o022:
        return f"others may write to {directory} (mode {stat.S_IMODE(status.st_mode):04o})"
    if status.st_mode & 0o077:
        os.chmod(directory, 0o700)
    return ""
