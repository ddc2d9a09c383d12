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
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lazynp.backends.common import disk_cache
from lazynp.backends.llvm import background, loader, mathlib, threads
from lazynp.backends.llvm.host import binding, host
from lazynp.values import config, forking
from lazynp.values.loading import load

PIPELINE: Final = "levels+dce/1"  # names the pass pipelines below in cache keys: change it whenever they change


BEGUN: Final = 32  # modules that a thread has compiled, or will, from which on one looks whether somebody still wants them
HASTE: Final = -1  # the level of all modules without optimisation

# What generated text ends with: the attributes and metadata that its functions and loops refer to.
#
# Vectors that are spilled straddle cache lines, and a loop takes twice as long, unless the function aligns its stack; LLVM decides on that
# before it knows what is spilled.
TAIL: Final = """
attributes #0 = { nounwind noinline "prefer-vector-width"="512" "stackrealign" }
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.followup_vectorized", !3}
!3 = !{!"llvm.loop.unroll.full"}
"""


class CompileError(RuntimeError):
    """LLVM refused a module, or a function it needs does not exist here."""


class CompilingError(CompileError):
    """It is not there yet: a thread compiles it.  ``works`` says when that is over."""

    def __init__(self, works: tuple[Any, ...]) -> None:
        super().__init__("it is being compiled")
        self.works = works


WAIT, LOOK, BEGIN = "wait", "look", "begin"  # how something is compiled: by whoever asks; not at all, it was kept or not; by a thread


class Statistics:
    """Counters for reports and tests; times in seconds."""

    __slots__ = ("compiled", "emitting", "linking", "loaded", "optimising", "parsing")

    def __init__(self) -> None:
        self.compiled = 0  # modules that went through the optimiser
        self.loaded = 0  # modules whose machine code came from the disk cache
        self.parsing = self.optimising = self.emitting = self.linking = 0.0


STATISTICS: Final = Statistics()
_lock = forking.compiler
_begun: Final[dict[str, Any]] = {}  # by key: what a thread compiles, until somebody asks for it
_defined: Final[dict[str, int]] = {}  # addresses of compiled functions that later modules call by name


class _Toolchain:
    """llvmlite, the target machine and the pass pipelines; made by the first compilation."""

    def __init__(self) -> None:
        self.llvm: Any = binding()
        llvm = self.llvm
        self.host = host()
        self.target: Any = llvm.Target.from_triple(self.host.triple)
        self.machine: Any = self.target_machine()
        atexit.register(_finished)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # LLVM's objects are never disposed of: at the end of the process that fails

    def target_machine(self, effort: int = 2) -> Any:
        return self.target.create_target_machine(cpu=self.host.cpu, features=self.host.features, opt=effort)

    @functools.cached_property
    def hasty(self) -> Any:
        """The target machine whose code is made quickly."""
        return self.target_machine(0)

    def pass_builder(self, machine: Any, level: int) -> Any:
        """Make what makes the pass pipeline of a level, which ``compile_module`` describes; for one module, for it remembers its runs.

        Loops of kernels are written as they are to run: what O2 and O3 do before vectorisation finds nothing in most of them and takes a
        fifth of the time.
        """
        tuning = self.llvm.create_pipeline_tuning_options(speed_level=max(level, 0))
        tuning.loop_vectorization = True
        tuning.slp_vectorization = True
        tuning.loop_interleaving = True
        # Only loops that ask for it in their metadata are unrolled: the vectoriser interleaves what profits, and unrolling the
        # rest doubles the time of optimisation for nothing.
        tuning.loop_unrolling = False
        return self.llvm.create_pass_builder(machine, tuning)

    def tidy(self) -> Any:
        """Make the passes that come behind a pipeline."""
        passes = self.llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_global_dead_code_eliminate_pass()
        return passes


def _finished() -> None:
    """Wait for what is compiled in other threads: LLVM does not survive the end of the process.  What they made is kept."""
    background.stop()
    with _lock:
        _keep_what_is_done()


@functools.cache
def _toolchain() -> _Toolchain:
    """The toolchain of the process; called with the lock held."""
    return _Toolchain()


@functools.cache
def _identity() -> str:
    """Describe what machine code depends on besides the text it comes from; which math library it calls, and how, the text says."""
    return "\0".join((*host(), PIPELINE))


def define(functions: Mapping[str, int]) -> None:
    """Let the modules that come later call functions by name."""
    _defined.update(functions)


def begin(ir_text: str, names: Sequence[str], level: int = 1) -> Any:
    """Have a thread compile a module; what does so, until that is over.  None where ``compile_module`` will find it, or has to do it."""
    if not config.optimize:
        return None
    with _lock:
        key = _key(ir_text, names, level)
        work = _begun.get(key)
        if len(_begun) >= BEGUN and config.cache:
            _keep_what_is_done()
        if work is None and disk_cache.shared().get(key) is None:
            work = background.begin(_toolchain(), ir_text, names, level)
            if work is not None:
                _begun[key] = work
        return None if work is None or work.over else work


def _key(ir_text: str, names: Sequence[str], level: int) -> str:
    return disk_cache.digest(f"{_identity()}\0{level}\0{','.join(names)}\0{ir_text}".encode()).hex()


def _taken(key: str) -> bytes | None:
    """Take what a thread has compiled, once; None if none has, or LLVM refused it."""
    work = _begun.get(key)
    if work is None:
        return None
    work.take_back()  # else who waits would wait for all that was begun before
    work.wait()
    code: bytes | None = work.code()
    del _begun[key]
    return code


def _keep_what_is_done() -> None:
    """Put what nobody has asked for yet where it will be found; what it was for may be gone."""
    for key, work in list(_begun.items()):
        if work.over:
            code = work.code()
            if code is not None:
                disk_cache.shared().put(key, code)
            del _begun[key]


def compile_module(ir_text: str, names: Sequence[str], level: int = 1, how: str = WAIT) -> dict[str, int]:
    """Compile a module and return the addresses of its functions.

    Parameters
    ----------
    ir_text : str
        LLVM IR. It should name neither triple nor data layout.
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
        key = _key(ir_text, names, level)
        work = begin(ir_text, names, level) if how == BEGIN else None
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
        data = _taken(key) or _compile(_toolchain(), ir_text, names, level)
        addresses = load_object(data, names)
        STATISTICS.compiled += 1
        cache.put(key, data)
        return addresses


def load_object(data: bytes, names: Sequence[str]) -> dict[str, int]:
    """Link machine code and return the addresses of its functions.

    The bytes must be what a compilation made: whoever kept them checks that (LLVM ends the process over a damaged object).
    """
    start = time.perf_counter()
    with _lock:
        try:
            addresses = loader.load(data, names, _address)
        except loader.UnsupportedError:
            addresses = _link(_toolchain(), data, names)
    STATISTICS.linking += time.perf_counter() - start
    return addresses


def optimised_ir(ir_text: str, names: Sequence[str]) -> str:
    """Return the text of a module after optimisation, for reports and tests."""
    with _lock:
        return str(_optimise(_toolchain(), ir_text, names))


def _optimise(tools: _Toolchain, ir_text: str, names: Iterable[str], level: int = 1) -> Any:
    llvm, builder = tools.llvm, tools.pass_builder(tools.machine, level)
    start = time.perf_counter()
    try:
        module = llvm.parse_assembly(ir_text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused a generated module{_keep_text(ir_text)}: {error}") from error
    module.triple = tools.host.triple
    module.data_layout = str(tools.machine.target_data)
    wanted = set(names)
    missing = wanted - {f.name for f in module.functions if not f.is_declaration}
    if missing:
        raise CompileError(f"the module defines no function {sorted(missing)}{_keep_text(ir_text)}")
    parsed = time.perf_counter()
    builder.getModulePassManager().run(module, builder)
    # The vector variants of math functions are public until the loops that may want them are vectorised; now the unused ones go.
    for function in module.functions:
        if function.name.startswith("lz_") and function.name not in wanted and not function.is_declaration:
            function.linkage = "internal"
    tools.tidy().run(module, builder)
    STATISTICS.parsing += parsed - start
    STATISTICS.optimising += time.perf_counter() - parsed
    return module


def _compile(tools: _Toolchain, ir_text: str, names: Sequence[str], level: int = 1) -> bytes:
    module = _optimise(tools, ir_text, names, level)
    start = time.perf_counter()
    data = bytes((tools.hasty if level == HASTE else tools.machine).emit_object(module))
    STATISTICS.emitting += time.perf_counter() - start
    unresolved = _unresolved(tools, (f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")))
    if unresolved:
        raise CompileError(f"functions not found in this process: {', '.join(unresolved)}{_keep_text(ir_text)}")
    return data


def _link(tools: _Toolchain, data: bytes, names: Sequence[str]) -> dict[str, int]:
    """Link by LLVM, for systems and objects that the loader does not know."""
    llvm = tools.llvm
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
    return _defined.get(name) or mathlib.address(name) or threads.address(name)


def _unresolved(tools: _Toolchain, names: Iterable[str]) -> list[str]:
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


def _keep_text(ir_text: str) -> str:
    """Write refused IR where a developer can look at it, and say where."""
    if not config.debug:
        return ""
    descriptor, path = load("tempfile").mkstemp(prefix="lazynp-", suffix=".ll")
    with os.fdopen(descriptor, "w") as file:
        file.write(ir_text)
    return f" (kept in {path})"
