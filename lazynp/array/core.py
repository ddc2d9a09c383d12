"""The core in use: the native one, or its Python twin.

In: what was built, and ``LAZYNP_PURE``.  Out: the names of whichever core it is; ``native``, ``reason`` and ``broken`` say which one,
why, and whether something is wrong.  Promise: a native core that does not load (never built, built for another Python or another NumPy)
is no error.
"""

# ruff: noqa: F405 (the names are those of the list)
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lazynp.values import config

if TYPE_CHECKING:
    from lazynp.array._python import *  # noqa: F403

__all__ = [
    "Cell", "Elements", "Ufunc", "any_of", "assign_rows", "at_call", "attribute", "belongs", "bind", "chain", "chain_counts",
    "chain_sizes", "class_reads", "clips", "compiled", "compresses", "copy_into", "count", "exchange", "first", "first_work",
    "forget", "function", "kind", "layouts", "lend", "listen", "number", "number_classes_of", "number_members", "numpys_number",
    "of_types", "over", "parts_of", "pass_over", "pause", "pauses", "poisons", "read_chosen", "register", "register_elements",
    "register_kinds", "register_parts", "register_ufunc", "release", "rows", "seal", "settle", "share", "show", "stand_for", "tape",
    "together", "values", "vectors", "words", "workers", "write_chosen", "writing",
]  # fmt: skip


def _take(module: str) -> None:
    core = import_module(module)
    globals().update({name: getattr(core, name) for name in __all__})


native = broken = False
reason = "turned off by LAZYNP_PURE"
if not config.pure:
    try:
        _take("lazynp.array._core")
        native, reason = True, ""
    except ModuleNotFoundError:
        reason = "not built when lazynp was installed (no C compiler, or one that failed)"
    except Exception as error:  # Cython raises what it likes where NumPy's structures differ from those it was built with
        broken, reason = True, f"does not load: {type(error).__name__}: {error}"
if not native:
    _take("lazynp.array._python")
