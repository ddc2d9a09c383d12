"""Who answers each public name of NumPy.

In: NumPy's modules and ours.  Out: a table, as an object and as text.  Promise: nothing is listed by hand: every row is what the object of
that name says of itself.  A function of ours that records operations is *native*; one whose work a routine of NumPy does, as an item of
the schedule or at the call, is marked *library* where it is defined; what has no function of ours is a ``Fallback``, counted whenever it is
called; and some names are the very objects of NumPy: constants, types, functions that take no arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

import lazynp
from lazynp.backends.cuda.library import BUILT_ON, RECORDED, answers

ANSWERS: Final = ("native", "library", "fallback", "numpy's own")
ON_GPU: Final = ("kernel", "CuPy", "host")

MODULES: Final = (
    "", "linalg", "fft", "random", "polynomial", "lib.stride_tricks", "lib.scimath", "ma", "char", "strings", "rec", "testing",
    "exceptions", "dtypes", "typing", "ctypeslib",
)  # fmt: skip


class Name(NamedTuple):
    """One public name: where it is, what it is, who answers it."""

    module: str
    name: str
    kind: str
    answer: str

    @property
    def path(self) -> str:
        """The path as a program writes it, without the package."""
        return f"{self.module}.{self.name}" if self.module else self.name

    @property
    def cuda(self) -> str | None:
        """The one who computes it on a GPU: our kernels, CuPy's libraries, or NumPy on host copies; None for what computes nothing."""
        if self.kind not in ("function", "ufunc") or self.answer == "numpy's own":
            return None
        if self.path in BUILT_ON or (self.answer == "library" and answers(self.path)):
            return "CuPy"
        return "kernel" if self.answer == "native" or self.path in RECORDED else "host"


def public_names(module: ModuleType) -> list[str]:
    """The names that a module of NumPy shows to the world."""
    listed = getattr(module, "__all__", None)
    return sorted({name for name in listed or dir(module) if not name.startswith("_") or (listed and name != "__version__")})


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "module"
    if isinstance(value, np.ufunc):
        return "ufunc"
    if isinstance(value, type):
        return "type"
    return "function" if callable(value) else "object"


def _answer(ours: Any, theirs: Any) -> str:
    if ours is theirs:
        return "numpy's own"
    found: str | None = getattr(ours, "answered", None)
    if found is None and hasattr(ours, "_lower"):
        # A ufunc is what its loop is; without one NumPy computes it.
        found = "fallback" if ours._lower is None else getattr(ours._lower, "answered", None)
    return found or "native"


class Coverage(tuple[Name, ...]):
    """The table: a tuple of names that prints well."""

    def of(self, module: str | None = None, kind: str | tuple[str, ...] | None = None, answer: str | None = None) -> Coverage:
        """The rows of a module, of one or several kinds, with an answer."""
        kinds = (kind,) if isinstance(kind, str) else kind
        return Coverage(
            row
            for row in self
            if module in (None, row.module) and (kinds is None or row.kind in kinds) and answer in (None, row.answer)
        )

    def modules(self) -> list[str]:
        """The modules in the table."""
        return list(dict.fromkeys(row.module for row in self))

    def _counts(self) -> Iterator[tuple[str, list[int]]]:
        for module in self.modules():
            yield f"numpy.{module}".rstrip("."), [len(self.of(module, answer=answer)) for answer in ANSWERS]
        functions = self.of("", ("function", "ufunc"))
        yield "functions and ufuncs of numpy", [len(functions.of(answer=answer)) for answer in ANSWERS]

    def of_cuda(self, who: str) -> Coverage:
        """The rows that a GPU's kernels (``"kernel"``), CuPy (``"CuPy"``) or the host (``"host"``) answer for arrays on a GPU."""
        return Coverage(row for row in self if row.cuda == who)

    def __str__(self) -> str:
        functions = self.of("", ("function", "ufunc"))
        gpu = ", ".join([f"{who} {len(functions.of_cuda(who))}" for who in ON_GPU])
        lines = [f"{'':<32}" + "".join([f"{answer:>13}" for answer in ANSWERS])]
        lines += [f"{title:<32}" + "".join([f"{count:>13}" for count in counts]) for title, counts in self._counts()]
        lines.append(f"of these, for arrays on a GPU: {gpu}")
        return "\n".join(lines)

    __repr__ = __str__

    def page(self) -> str:
        """The table as a page of the documentation."""
        lines = [
            "# Who answers which name",
            "",
            f"Made by `python -m lazynp --coverage docs/coverage.md` from the objects themselves, with NumPy {np.__version__}.",
            "",
            "- **native**: recorded as operations that fuse, or answered from shapes and dtypes; values count only where they decide.",
            "- **library**: a routine of NumPy does the work, as an item of the schedule or at the call. Not counted as a fallback.",
            "- **fallback**: NumPy is called on the values. Counted in `lazynp.report()`, and refused under `set_fallback(\"error\")`.",
            "- **numpy's own**: the very object of NumPy: constants, types, functions that take no arrays.",
            "",
            "Native and library functions call NumPy, counted, for dtypes that lazynp does not compute with: objects, strings, dates.",
            "",
            "| | " + " | ".join(ANSWERS) + " |",
            "|---|" + "---:|" * len(ANSWERS),
            *[f"| {title} | " + " | ".join([str(count) for count in counts]) + " |" for title, counts in self._counts()],
        ]
        lines += [
            "",
            "## On a GPU",
            "",
            "Who computes of arrays that live on a GPU ([gpu.md](gpu.md)): *kernels* are what native functions record, fused; *CuPy*'s",
            "libraries take the dtypes that `backends/cuda/library.py` lists, else the host; what runs on the *host* is NumPy on copies,",
            "counted in `lazynp.report()`. So are native functions of dtypes that kernels do not have: extremes of",
            "complex numbers.",
            "",
            "| | " + " | ".join(ON_GPU) + " |",
            "|---|" + "---:|" * len(ON_GPU),
        ]
        for module in ("", "linalg", "fft"):
            counts_ = [str(len(self.of(module).of_cuda(who))) for who in ON_GPU]
            lines.append(f"| numpy.{module}".rstrip(".") + " | " + " | ".join(counts_) + " |")
        for who in ON_GPU[1:]:
            names = [f"`{row.path}`" for module in ("", "linalg", "fft") for row in self.of(module).of_cuda(who)]
            lines += ["", f"**{who}**: {' '.join(names)}"]
        for module in self.modules():
            lines += ["", f"## numpy.{module}".rstrip(".")]
            for answer in ANSWERS:
                names = [f"`{row.name}`" for row in self.of(module, answer=answer)]
                if names:
                    lines += ["", f"**{answer}**: {' '.join(names)}"]
        return "\n".join(lines) + "\n"


def coverage() -> Coverage:
    """Tell who answers each public name of NumPy.

    Returns
    -------
    Coverage
        A tuple of rows ``(module, name, kind, answer)``; ``answer`` is ``"native"``, ``"library"``, ``"fallback"`` or ``"numpy's own"``.
        Printed, it is a table of counts.

    Examples
    --------
    >>> import lazynp as np
    >>> table = np.coverage()
    >>> {row.name: row.answer for row in table.of(module="") if row.name in ("clip", "sort", "busday_count")}
    {'busday_count': 'fallback', 'clip': 'native', 'sort': 'library'}
    """
    rows = []
    for path in MODULES:
        theirs = import_module(f"numpy.{path}".rstrip("."))
        ours: Any = lazynp
        for part in path.split(".") if path else ():
            ours = getattr(ours, part)
        for name in public_names(theirs):
            value = getattr(theirs, name)
            if not isinstance(value, ModuleType):
                rows.append(Name(path, name, _kind(value), _answer(getattr(ours, name), value)))
    return Coverage(rows)


FUNCTIONS: Final = {"coverage": coverage}
