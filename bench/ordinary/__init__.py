"""Ordinary NumPy programs, some of each family and thirteen of few elements, as their users write them.

In: a namespace (``numpy`` or ``lazynp``) and a size.  Out: a function of no arguments that computes everything once and gives back
arrays and numbers.  Promise: nothing in them depends on which library runs them, which is the ``np`` of their modules; inputs are made
before that function, which starts from them at every call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any, Final

Run = Callable[[], Any]
Written = Callable[[Any], Any]  # of a size
Make = Callable[[Any, int], Run]

FAMILIES: Final = {
    "stencils": "in-place stencils",
    "sweeps": "sweeps with a carried dependency",
    "particles": "n-body and particles",
    "dense": "dense factorisations by rows and columns",
    "sparse": "sparse rows",
    "dynamic": "dynamic programming",
    "elements": "element loops",
    "filters": "Kalman and particle filters",
    "training": "minibatch training",
    "newton": "Newton and line search with tests",
    "chance": "Markov chains and Monte Carlo",
    "masks": "masks with shrinking sets",
    "small": "few elements at a time",
    "singles": "large arrays, an element at a time",
    "passes": "large arrays in one call",
    "oceans": "an ocean model on a staggered grid",
}


@dataclass(frozen=True)
class Program:
    """One ordinary program.

    Attributes
    ----------
    name : str
        Its family and what it computes: ``stencils.heat``.
    make : callable
        ``make(np, size)`` makes the inputs, and gives the function that is timed.
    sizes : tuple of int
        Where NumPy takes about 1, 10 and 100 ms.
    tiny : int
        The size of the tests.
    tolerance : float
        How far floating-point results may be from NumPy's, in terms of the largest magnitude of each; 0: equal.
    """

    name: str
    make: Make
    sizes: tuple[int, int, int]
    tiny: int
    tolerance: float

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]


def program(*sizes: int, tiny: int, tolerance: float = 0.0, reason: str = "") -> Callable[[Written], Written]:
    """Mark a program; one whose results need a ``tolerance`` says the ``reason``."""
    assert len(sizes) == 3
    assert bool(tolerance) == bool(reason)

    def mark(written: Written) -> Written:
        family = written.__module__.rpartition(".")[2]

        def make(xp: Any, size: int) -> Run:
            run: Run = getattr(_with(xp, family), written.__name__)(size)
            return run

        name = f"{family}.{written.__name__}"
        PROGRAMS.setdefault(name, Program(name, make, sizes, tiny, tolerance))
        return written

    return mark


@functools.cache
def _with(xp: ModuleType, family: str) -> ModuleType:
    """The programs of a family, with another ``np``: a module of their own, as if the line that imports it were changed."""
    spec = import_module(f"bench.ordinary.{family}").__spec__
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["np"] = xp
    return module


PROGRAMS: Final[dict[str, Program]] = {}

for _family in FAMILIES:
    import_module(f"bench.ordinary.{_family}")
