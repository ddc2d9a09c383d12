"""LLVM IR text in, addresses of native functions out.

In: the text of one module and the names of the functions wanted from it.  Out: their addresses, valid until the process ends.
Promises: LLVM is loaded by the first compilation and not before; the same text is optimised once per machine, after that its machine
code comes from the disk cache, and where ``loader`` knows the system without LLVM; code that was handed out is never freed (threads may
still be in it while the interpreter shuts down); a fault in the text, or a function that cannot be found, is a ``CompileError`` and
never the end of the process.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lazynp.array import core
from lazynp.backends.common import disk_cache
from lazynp.backends.llvm import client, threads
from lazynp.backends.llvm.host import host
from lazynp.backends.llvm.messages import HASTE, Described
from lazynp.values import config, forking
from lazynp.values.loading import load

if TYPE_CHECKING:
    from lazynp.backends.llvm.toolchain import Toolchain

BEGUN: Final = 32  # modules that were compiled meanwhile, or will be, from which on one looks whether they are still wanted
SPARED_NS: Final = 300_000_000  # that one core is left to a compiler for each of them, unless it is done before


class CompileError(RuntimeError):
    """LLVM refused a module, or a function it needs does not exist here."""


class CompilingError(CompileError):
    """It is not there yet: a thread compiles it.  ``works`` says when that is over."""

    def __init__(self, works: tuple[Any, ...]) -> None:
        super().__init__("it is being compiled")
        self.works = works


WAIT, LOOK, BEGIN = "wait", "look", "begin"  # how something is compiled: as the caller waits; not at all, it was kept or not; by a thread


class Statistics:
    """Counters for reports and tests."""

    __slots__ = ("compiled", "loaded")

    def __init__(self) -> None:
        self.compiled = 0  # modules that went through the optimiser
        self.loaded = 0  # modules whose machine code came from the disk cache


STATISTICS: Final = Statistics()
_lock = forking.compiler
_begun: Final[dict[str, Any]] = {}  # by key: what a thread compiles, until it is asked for
_defined: Final[dict[str, int]] = {}  # addresses of compiled functions that later modules call by name


def _finished() -> None:
    """Wait for what is compiled in other threads: LLVM does not survive the end of the process.  What they made is kept."""
    _module("background").stop()
    with _lock:
        _keep_what_is_done()


@functools.cache
def _toolchain() -> Toolchain:
    """The toolchain of this process, for what no process beside it compiles; called with the lock held."""
    load("llvmlite.binding")
    tools: Toolchain = _module("toolchain").Toolchain()
    atexit.register(_finished)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tools))  # LLVM's objects are never disposed of: at the end of the process that fails
    return tools


@functools.cache
def _identity() -> str:
    """Describe what machine code depends on besides the text it comes from; which math library it calls, and how, the text says."""
    return "\0".join((*host(), _module("toolchain").PIPELINE))


WRITERS: Final = (
    "expression_ir", "host", "mathlib", "messages", "polynomials/special", "roots", "scalars", "supported", "toolchain",
    "../../graph/errors", "../../graph/op", "../../schedule/cost", *(f"../../values/{name}" for name in ("config", "loading", "records")),
    *(f"polynomials/{name}" for name in ("code", "exponential", "functions", "logarithm", "power", "remainder", "trigonometric")),
    *(f"../special/{name}" for name in ("__init__", "arithmetic", "bessel", "coefficients", "error", "gamma", "logistic")),
)  # fmt: skip


@functools.cache
def _writers() -> str:
    """Describe what machine code of described modules depends on: who writes the text, for which machine and with which functions."""
    stamps = disk_cache.stamps(os.path.dirname(os.path.abspath(__file__)), WRITERS)
    version = sys.modules["lazynp"].lazynp_version
    return repr((version, tuple(host()), stamps, config.libmvec, config.polynomials, _c_library()))


def _c_library() -> tuple[str | None, bool]:
    """Return the version of the C library, None where it tells none, and whether its functions of vectors are there."""
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        version = None
    try:
        return version, bool(ctypes.CDLL("libmvec.so.1"))
    except OSError:
        return version, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begun.clear)  # no thread compiles it there


def define(functions: Mapping[str, int]) -> None:
    """Let the modules that come later call functions by name."""
    _defined.update(functions)


def _module(name: str) -> Any:
    """Return a module that only those need who write or compile a text, or load machine code."""
    return load(f"lazynp.backends.llvm.{name}")


def prepare() -> None:
    """Load what compiles and loads code, before a thread does that in which nothing is imported."""
    for name in ("loader", "toolchain", "expression_ir", "polynomials.functions", "background"):
        _module(name)


def _text(module: str | Described) -> str:
    """Return a module's text."""
    if isinstance(module, str):
        return module
    text: str = _module("expression_ir").text_of(module.words)
    if not text:
        raise CompileError("there is no text for it")
    return text


def begin(module: str | Described, names: Sequence[str], level: int = 1) -> Any:
    """Have a module compiled meanwhile; what does so, until that is over.  None where ``compile_module`` will find it, or has to do it."""
    if not config.optimize or not client.ahead():
        return None
    with _lock:
        key = _key(module, names, level)
        if len(_begun) >= BEGUN and config.cache:
            _keep_what_is_done()
        work = _begun.get(key)
        if work is None and disk_cache.shared().get(key) is None:
            work = client.begin(key, module, names, level)
            if work is None and _module("background").wanted():
                work = _module("background").begin(_toolchain(), _text(module), names, level)
            if work is not None:
                _begun[key] = work
                core.spare(threads.usable(), SPARED_NS)
        return None if work is None or work.over else work


def _key(module: str | Described, names: Sequence[str], level: int) -> str:
    depends, words = (_identity(), module) if isinstance(module, str) else (_writers(), module.words)
    return disk_cache.digest(f"{depends}\0{level}\0{','.join(names)}\0{words}".encode()).hex()


def _made(key: str, module: str | Described, names: Sequence[str], level: int) -> bytes:
    """Return the machine code of a module that the caller waits for, and keep it on disk."""
    work = _begun.pop(key, None) or client.begin(key, module, names, level)
    if work is not None:
        work.hurry()
        work.wait()
        code: bytes | None = work.code()
        if code is None and not work.lost:
            raise CompileError(f"{work.error}{_keep_text(module)}")
        if code is not None:
            _keep(key, work, code)
            return code
    code = _compile(_toolchain(), _text(module), names, level)
    disk_cache.shared().put(key, code)
    return code


def _keep(key: str, work: Any, code: bytes) -> None:
    if not work.kept:
        disk_cache.shared().put(key, code)


def _keep_what_is_done() -> None:
    """Put what was not asked for yet where it will be found; what it was for may be gone."""
    for key, work in list(_begun.items()):
        if work.over:
            code = work.code()
            if code is not None:
                _keep(key, work, code)
            del _begun[key]


def compile_module(module: str | Described, names: Sequence[str], level: int = 1, how: str = WAIT) -> dict[str, int]:
    """Compile a module and return the addresses of its functions.

    Parameters
    ----------
    module : str or Described
        LLVM IR, which should name neither triple nor data layout; or what it is to be written from.
    names : sequence of str
        The functions wanted. Every other function whose name starts with ``lz_`` becomes private to the module.
    level : {1, 0, 3}
        0: the text is compiled as it is written; 1: its loops are vectorised; 3: what they test at every element though it does not change
        in them is also taken out.  With ``LAZYNP_OPTIMIZE=0`` all are compiled as they are written, and registers are given out in haste.
    how : {"wait", "look", "begin"}
        ``look``: LLVM is not asked, the disk cache has it or not; ``begin``: a thread compiles it, if it can.

    Returns
    -------
    dict
        Name to address.

    Raises
    ------
    CompileError
        The text does not parse or verify, a function it needs does not exist in this process, or nothing was kept of it.
    CompilingError
        A thread compiles it.
    """
    cache = disk_cache.shared()
    if not config.optimize:
        level = HASTE
    with _lock:
        key = _key(module, names, level)
        work = begin(module, names, level) if how == BEGIN else None
        if work is not None:
            raise CompilingError((work,))
        data = None if key in _begun else cache.get(key)
        if data is not None:
            try:
                addresses = load_object(data, names)
            except CompileError:
                cache.remove(key)
            else:
                STATISTICS.loaded += 1
                return addresses
        if how == LOOK:
            raise CompileError("it was not compiled before, or is not kept")
        addresses = load_object(_made(key, module, names, level), names)
        STATISTICS.compiled += 1
        return addresses


def load_object(data: bytes, names: Sequence[str]) -> dict[str, int]:
    """Link machine code and return the addresses of its functions.

    The bytes must be what a compilation made: the disk cache that kept them checks that (LLVM ends the process over a damaged object).
    """
    loader = _module("loader")
    with _lock:
        try:
            addresses: dict[str, int] = loader.load(data, names, _address)
            return addresses
        except loader.UnsupportedError:
            return _link(_toolchain(), data, names)


def optimised_ir(ir_text: str, names: Sequence[str]) -> str:
    """Return the text of a module after optimisation, for reports and tests."""
    with _lock:
        return str(_optimise(_toolchain(), ir_text, names))


def _optimise(tools: Toolchain, ir_text: str, names: Iterable[str], level: int = 1) -> Any:
    try:
        return tools.optimised(ir_text, names, level)
    except _module("toolchain").RefusedError as error:
        raise CompileError(f"{error}{_keep_text(ir_text)}") from error


def _compile(tools: Toolchain, ir_text: str, names: Sequence[str], level: int = 1) -> bytes:
    module = _optimise(tools, ir_text, names, level)
    data = tools.emitted(module, level)
    unresolved = _unresolved(tools, (f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")))
    if unresolved:
        raise CompileError(f"functions not found in this process: {', '.join(unresolved)}{_keep_text(ir_text)}")
    return data


def _link(tools: Toolchain, data: bytes, names: Sequence[str]) -> dict[str, int]:
    """Link by LLVM, for systems and objects that the loader does not know."""
    llvm, loader = tools.llvm, _module("loader")
    # LLVM ends the process when a symbol is missing, so look before.
    try:
        undefined = loader.Object(data).undefined()
    except loader.UnsupportedError:  # another format than ELF
        undefined = []
    unresolved = _unresolved(tools, [name for name in undefined if name != "_GLOBAL_OFFSET_TABLE_"])
    if unresolved:
        raise CompileError(f"functions not found in this process: {', '.join(unresolved)}")
    try:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), tools.machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
    except RuntimeError as error:
        raise CompileError(f"machine code could not be linked: {error}") from error
    addresses = {name: engine.get_function_address(name) for name in names}
    # From here on LLVM's own memory is all that keeps the code: nothing in Python can free it, not even at exit.
    engine.detach()
    missing = [name for name, address in addresses.items() if not address]
    if missing:
        raise CompileError(f"the machine code defines no function {missing}")
    return addresses


def _address(name: str) -> int | None:
    """The address of a function that generated code may call."""
    return _defined.get(name) or threads.address(name) or _module("mathlib").address(name)


def _unresolved(tools: Toolchain, names: Iterable[str]) -> list[str]:
    """Tell LLVM the functions among these that it does not know yet; return those that do not exist."""
    missing = []
    for name in names:
        if tools.llvm.address_of_symbol(name):
            continue
        found = _address(name)
        if found:
            tools.llvm.add_symbol(name, found)
        else:
            missing.append(name)
    return missing


def _keep_text(module: str | Described) -> str:
    """Write refused IR where a developer can look at it, and say where."""
    if not config.debug:
        return ""
    try:
        ir_text = _text(module)
    except CompileError:
        return ""
    descriptor, path = load("tempfile").mkstemp(prefix="lazynp-", suffix=".ll")
    with os.fdopen(descriptor, "w") as file:
        file.write(ir_text)
    return f" (kept in {path})"
