"""``numpy`` meaning lazynp in the user's modules.

In: source text, and import statements that run.  Out: the same code, with every import of ``numpy`` that the user's program writes down
or computes answered by lazynp.  Promise: no other code is touched.  Installed packages keep NumPy, ``sys.modules`` keeps its entry for
NumPy, no builtin is replaced, one (``__lazynp__``) is added; tracebacks show the user's own lines.

The mapping is done on the syntax tree, before compilation: ``import numpy as np`` becomes ``import lazynp as np``.  A module is the
user's when its source file lies under a directory of the program and in no place that packages are installed to.  Where such a module
calls what takes a module's name, a file or text when it runs (``CALLS``), it calls the function's twin, which maps what it is given.
Children made by spawn are told whose modules are mapped, and pytest maps a test module before it rewrites its assertions.

``syntax`` maps a module's text, ``twins`` what it calls when it runs; ``modules`` says whose modules are mapped, ``submodules`` what
``import lazynp.typing`` means.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from typing import Any

from lazynp.mapping.kept import compile_kept
from lazynp.mapping.modules import UserModules, install, is_zip, programs
from lazynp.mapping.submodules import Submodules
from lazynp.mapping.syntax import HANDLE, compile_mapped, map_tree
from lazynp.mapping.twins import complete, executed, given, kind, lineage, numpys, twin, viewed
from lazynp.subclasses import asked

__all__ = [
    "Submodules", "UserModules", "asked", "compile_kept", "compile_mapped", "complete", "executed", "given", "install", "is_zip", "kind",
    "lineage", "map_tree", "numpys", "programs", "twin", "viewed",
]  # fmt: skip
# What mapped programs call: asked, complete, executed, given, kind, lineage, numpys, twin, viewed.
setattr(builtins, HANDLE, sys.modules[__name__])


class Cells:
    """Maps what IPython runs: one of its ``ast_transformers``."""

    def visit(self, tree: ast.AST) -> ast.AST:
        return map_tree(tree)


def load_ipython_extension(shell: Any) -> None:
    """Map the cells from now on, and modules under the working directory that they import."""
    if not any(isinstance(transformer, Cells) for transformer in shell.ast_transformers):
        shell.ast_transformers.append(Cells())
        install(os.getcwd())


def unload_ipython_extension(shell: Any) -> None:
    """Let ``numpy`` mean NumPy again in cells; modules that were imported stay as they are."""
    shell.ast_transformers[:] = [transformer for transformer in shell.ast_transformers if not isinstance(transformer, Cells)]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, UserModules | Submodules)]
