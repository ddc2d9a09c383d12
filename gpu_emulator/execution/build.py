"""g++: the runtime once, modules of kernels as they are wanted, all kept on disk.

In: sources.  Out: paths of shared libraries.  Promise: a file in the cache is there whole or not at all and belongs to exactly this text,
these headers, options and compiler, so any number of processes share it; deleting it costs only time.

``LAZYNP_EMULATOR_CACHE`` names the directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import source as text

HERE = Path(__file__).parent
BATCH = 25  # sources per call of g++
LIMIT = 20_000  # files kept
MISSING = "the CUDA emulator needs g++ 12 or newer: apt-get install g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora)"


def _words(text: str) -> list[str]:
    return text.split()


# Arithmetic as NVRTC does it with --fmad=false; no run-time library of g++ is linked: the runtime answers what the checks call.
_FLAGS = _words(
    "-std=c++17 -O1 -g1 -fPIC -pipe -w -shared -nostdlib -nodefaultlibs -fvisibility=hidden -ffp-contract=off -fno-strict-aliasing "
    "-fno-exceptions -fno-rtti -fno-asynchronous-unwind-tables -fno-stack-protector -U_FORTIFY_SOURCE "
    "-ftrivial-auto-var-init=pattern -fstack-clash-protection "
    "-fsanitize=bounds,alignment,shift-exponent,signed-integer-overflow,float-cast-overflow"
)
_INSTRUMENTED = _words(
    "-fsanitize=thread --param tsan-distinguish-volatile=1 --param tsan-instrument-func-entry-exit=0 -fno-tree-sra -fno-tree-loop-im"
)
_RUNTIME = _words("-std=c++17 -O2 -g1 -Wall -Wextra -shared -fPIC -U_FORTIFY_SOURCE")


class CompilationError(Exception):
    """g++ refused a source; the text is what it said."""


def directory() -> Path:
    named = os.environ.get("LAZYNP_EMULATOR_CACHE")
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lazynp-emulator"
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    return base


@functools.cache
def compiler() -> str:
    found = shutil.which(os.environ.get("CXX") or "g++")
    if found is None:
        raise CompilationError(MISSING)
    said = subprocess.run([found, "-dumpversion"], capture_output=True, text=True).stdout
    if not said.strip() or int(said.split(".")[0]) < 12:
        raise CompilationError(f"{MISSING}; {found} is {said.strip()}")
    return found


def _digest(*parts: str | bytes) -> str:
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


@functools.cache
def _version(folder: str) -> str:
    """Of all that a module (``device``) or the scheduler (``runtime``) is made with, apart from sources of kernels."""
    files = [path.read_bytes() for path in sorted((HERE / folder).iterdir())]
    said = subprocess.run([compiler(), "-dumpfullversion", "-dumpmachine"], capture_output=True, check=True).stdout
    return _digest(said, " ".join([*_FLAGS, *_INSTRUMENTED, *_RUNTIME]), (HERE / "source.py").read_bytes(), *files)


def _gxx(arguments: list[str], target: Path, given: str | None = None) -> None:
    """Runs g++, unless another process does just that; its output gets its name when it is whole."""
    lock = target.with_suffix(".lock")
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            if target.exists():
                return
            new = target.with_suffix(f".{os.getpid()}")
            done = subprocess.run([compiler(), *arguments, "-o", str(new)], input=given, capture_output=True, text=True)
            if done.returncode:
                raise CompilationError(done.stderr)
            os.replace(new, target)
        finally:
            lock.unlink(missing_ok=True)


@functools.cache
def runtime(ucontext: bool = False) -> Path:
    """The scheduler, as a library."""
    path = directory() / f"runtime-{_digest(_version('runtime'), str(ucontext))}.so"
    if not path.exists():
        sources = [str(each) for each in sorted((HERE / "runtime").glob("*.cpp"))]
        _gxx([*_RUNTIME, *(["-DEMULATOR_UCONTEXT"] if ucontext else []), *sources], path)
    return path


_compiled = 0  # by this process


def _trim() -> None:
    """Now and then: the oldest files go where there are too many."""
    global _compiled
    _compiled += 1
    if _compiled % 50:
        return
    files = []
    for path in directory().iterdir():
        with contextlib.suppress(FileNotFoundError):
            files.append((path.stat().st_mtime, path))
    files.sort()
    now = time.time()
    for age, path in files[: max(len(files) - LIMIT, 0)]:
        if now - age > 3600:
            path.unlink(missing_ok=True)


def _entry(source: str, instrumented: bool) -> Path:
    """A link by the hash of one source: its text is the library that has it and the unit there."""
    return directory() / f"{_digest(_version('device'), source, str(instrumented))}.unit"


def _look_up(source: str, instrumented: bool) -> tuple[Path, str] | None:
    try:
        library, unit = _entry(source, instrumented).read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    path = directory() / library
    return (path, unit) if path.exists() else None


def _compile(sources: list[str], instrumented: bool) -> None:
    combined = text.combine(sources)
    name = f"{_digest(_version('device'), combined, str(instrumented))}.so"
    flags = [*_FLAGS, *(_INSTRUMENTED if instrumented else ())]
    _trim()
    _gxx([*flags, "-I", str(HERE / "device"), "-include", "cuda.h", "-x", "c++", "-"], directory() / name, combined)
    for number, source in enumerate(sources):
        entry = _entry(source, instrumented)
        new = entry.with_suffix(f".{os.getpid()}-{number}")
        new.write_text(f"{name} {text.unit_name(number)}")
        os.replace(new, entry)


def _batches(sources: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(sources), BATCH):
        yield sources[start : start + BATCH]


def precompile(sources: Iterable[str], instrumented: bool = False) -> None:
    """Compiles those that are not in the cache, many in one call of g++, two calls at a time."""
    wanted = [source for source in dict.fromkeys(sources) if _look_up(source, instrumented) is None]
    if not wanted:
        return
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for done in [pool.submit(_compile_all, batch, instrumented) for batch in _batches(wanted)]:
            done.result()


def _compile_all(batch: list[str], instrumented: bool) -> None:
    """Together; where one is refused, one by one, so that the message is about that one."""
    try:
        _compile(batch, instrumented)
    except (CompilationError, text.UnsupportedSource):
        for source in batch:
            _compile([source], instrumented)


def find(source: str, instrumented: bool = False) -> tuple[Path, str]:
    """(library, unit) of a source, compiled if need be."""
    found = _look_up(source, instrumented)
    if found is None:
        _compile([source], instrumented)
        found = _look_up(source, instrumented)
        assert found is not None
    return found


def line_of(library: Path, address: int) -> int:
    """The line of a kernel's source that an address in a library belongs to, 0 if nobody knows: the innermost place that is no header."""
    tool = shutil.which("addr2line")
    if tool is None:
        return 0
    said = subprocess.run([tool, "-i", "-e", str(library), hex(address)], capture_output=True, text=True).stdout
    for place in said.splitlines():
        file, _, line = place.partition(" ")[0].rpartition(":")
        if not file.endswith((".h", ".table", "?")) and line.isdigit():
            return int(line)
    return 0
