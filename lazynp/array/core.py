"""The native core, or why there is none.

In: what was built, and ``LAZYNP_PURE``.  Out: the names of the core; ``native`` tells whether there is one, ``reason`` why not, ``broken``
whether something is wrong.  Promise: a native core that does not load (never built, built for another Python or another NumPy) is no
error: NumPy computes then (``lazynp/at_call.py``).
"""

# ruff: noqa: F405 (the names are those of the list)
from __future__ import annotations

from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from os.path import dirname, isfile, join
from typing import TYPE_CHECKING, Final

from lazynp.values import config

if TYPE_CHECKING:
    from lazynp.array._core import *  # noqa: F403

__all__ = [
    "Cell", "Elements", "Ufunc", "any_of", "assign_rows", "at_call", "attribute", "belongs", "bind", "chain", "chain_counts", "chain_sizes",
    "class_reads", "clips", "compiled", "compresses", "contract", "contraction_vectors", "convolve", "copy_into", "correlate", "count",
    "draws_later", "einsum", "exchange", "first", "first_work", "forget", "function", "kind", "lags", "layouts", "lend", "listen",
    "name_methods", "number", "number_classes_of", "number_members", "numpys_number", "of_types", "over", "owns", "parts_of", "pass_over",
    "pause", "pauses", "poisons", "positions", "read_chosen", "reduce_in_order", "register", "register_buffers", "register_drafts",
    "register_elements", "register_kinds", "register_parts", "register_ufunc", "release", "remember", "rows", "seal", "set_together",
    "settle", "share", "show", "spare", "stable_order", "stand_for", "tape", "together", "values", "vectors", "words", "workers",
    "write_chosen", "writing",
]  # fmt: skip
MODULES: Final = ("lazynp.array._core", "lazynp.graph._native")
LATER: Final = "lazynp.backends.common._launch"  # loaded with the first program of graphs


def _lies_there(name: str) -> bool:
    """Tell whether an extension of this package can be loaded, without what `importlib.util` takes to load."""
    package, _, module = name.removeprefix("lazynp.").rpartition(".")
    folder = join(dirname(dirname(__file__)), *package.split("."))
    return any(isfile(join(folder, module + suffix)) for suffix in EXTENSION_SUFFIXES)


native = broken = False
reason = "turned off by LAZYNP_PURE"
if not config.pure:
    try:
        _core, *_ = [import_module(name) for name in MODULES]
        if not _lies_there(LATER):
            raise ModuleNotFoundError(name=LATER)
        globals().update({name: getattr(_core, name) for name in __all__})
        native, reason = True, ""
    except ModuleNotFoundError as error:
        reason = f"not built when lazynp was installed (no C compiler, or one that failed): {error.name}"
    except Exception as error:  # Cython raises what it likes where NumPy's structures differ from those it was built with
        broken, reason = True, f"does not load: {type(error).__name__}: {error}"
