"""LLVM: the text of a module in, its machine code out.

In: LLVM IR and the names of the functions wanted from it.  Out: an object file for this processor.  Promise: nothing is imported here but
LLVM's binding, so that the process that compiles beside a program needs neither NumPy nor the rest of lazynp; the same text gives the
same bytes, whichever process compiles it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from lazynp.backends.llvm.messages import HASTE

PIPELINE: Final = "levels+dce/1"  # names the pass pipelines below in cache keys: change it whenever they change


class RefusedError(RuntimeError):
    """LLVM refused a module."""


@functools.cache
def binding() -> Any:
    """Return llvmlite.binding with the native target ready."""
    llvm: Any = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


class Toolchain:
    """llvmlite, the target machine and the pass pipelines; made by the first compilation."""

    def __init__(self) -> None:
        llvm = self.llvm = binding()
        self.triple: str = llvm.get_process_triple()
        self.cpu: str = llvm.get_host_cpu_name()
        self.features: str = llvm.get_host_cpu_features().flatten()
        self.target: Any = llvm.Target.from_triple(self.triple)
        self.machine: Any = self.target_machine()
        self.modules = 0  # that went through the optimiser, for tests

    def target_machine(self, effort: int = 2) -> Any:
        return self.target.create_target_machine(cpu=self.cpu, features=self.features, opt=effort)

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

    def optimised(self, text: str, names: Iterable[str], level: int = 1) -> Any:
        """Return a module after its passes.

        Raises
        ------
        RefusedError
            The text does not parse or verify, or defines no function of a name that is wanted.
        """
        llvm, builder = self.llvm, self.pass_builder(self.machine, level)
        try:
            module = llvm.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise RefusedError(f"LLVM refused a generated module: {error}") from error
        module.triple = self.triple
        module.data_layout = str(self.machine.target_data)
        wanted = set(names)
        missing = wanted - {f.name for f in module.functions if not f.is_declaration}
        if missing:
            raise RefusedError(f"the module defines no function {sorted(missing)}")
        self.modules += 1
        builder.getModulePassManager().run(module, builder)
        # The vector variants of math functions are public until the loops that may want them are vectorised; now the unused ones go.
        for function in module.functions:
            if function.name.startswith("lz_") and function.name not in wanted and not function.is_declaration:
                function.linkage = "internal"
        self.tidy().run(module, builder)
        return module

    def emitted(self, module: Any, level: int = 1) -> bytes:
        """Return the machine code of a module."""
        return bytes((self.hasty if level == HASTE else self.machine).emit_object(module))

    def compiled(self, text: str, names: Iterable[str], level: int) -> bytes:
        """Return the machine code of a text; raises ``RefusedError``."""
        return self.emitted(self.optimised(text, names, level), level)
