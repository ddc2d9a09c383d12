"""Which draws are done in C.

In: a bound method of a generator of NumPy's.  Out: what draws as it does, and faster where it can.  Promise: NumPy's numbers, to the bit,
and the state NumPy leaves; what was not built, and what did not draw as NumPy does when it was first wanted, is NumPy's method itself.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import prod
from typing import Any, Final

import numpy as np

from lazynp.values.loading import load

SOON = 500
"""Calls of a method, by all generators, that NumPy does: loading what comes in its place, and comparing it, takes as long."""
ZIGGURATS: Final = 10
"""Times as long, where the layers of a ziggurat have to be found."""
NUMBERS: Final = 16
"""Numbers of one call that count as much as a call."""
COUNTED: Final = 16
"""Calls that the native core tells of at a time, its ``DRAWS``."""

GENERATOR: Final = (
    "random", "standard_normal", "standard_exponential", "uniform", "normal", "exponential", "integers", "choice", "permutation", "shuffle",
)  # fmt: skip
LEGACY: Final = (
    "random", "random_sample", "rand", "uniform", "standard_normal", "randn", "normal", "randint", "choice", "permutation", "shuffle",
)  # fmt: skip
SIZE_AT: Final = {
    **dict.fromkeys(("random", "random_sample", "standard_normal", "standard_exponential", "permutation"), 0),
    **dict.fromkeys(("exponential", "choice"), 1),
    **dict.fromkeys(("uniform", "normal", "integers", "randint"), 2),
}
"""Which argument says how many numbers are drawn."""
KINDS: Final[dict[type, tuple[type, tuple[str, ...]]]] = {
    np.random.Generator: (np.random.PCG64, GENERATOR),
    np.random.RandomState: (np.random.MT19937, LEGACY),
}
"""The bit generator of each kind of generator, and the methods that are drawn in C."""


@cache
def core() -> Any:
    """Return what draws in C, or None: it wants integers of 128 bits, which not every compiler has."""
    try:
        return load("lazynp.namespace.draws._native")
    except ImportError:
        return None


_calls: Counter[tuple[type, str]] = Counter()


def _known(method: Any) -> tuple[type, str] | None:
    """Return the kind of generator and the method's name, if that could be drawn in C."""
    generator = getattr(method, "__self__", None)
    kind: Any = type(generator)
    if kind not in KINDS or method.__name__ not in KINDS[kind][1] or type(getattr(generator, "_bit_generator", None)) is not KINDS[kind][0]:
        return None
    return kind, method.__name__


def drawn(method: Any) -> Any:
    """Return what draws as ``method``: that, or what is called in its place."""
    known = _known(method)
    if known is None or core() is None or not usable(*known):
        return method
    return _made(method, method.__self__._bit_generator) or method


def waits(method: Any) -> bool:
    """Tell whether NumPy does the next calls of a method that may be drawn in C."""
    known = _known(method)
    return known is not None and _calls[known] < _enough(*known)


def soon(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what draws as such a method from this call on, some calls after the one before; None where that is not known yet."""
    known = type(method.__self__), method.__name__
    _calls[known] += COUNTED + _numbers(known[1], args, kwargs.get("size")) // NUMBERS
    return drawn(method) if _calls[known] >= _enough(*known) else None


def _enough(kind: type, name: str) -> int:
    return SOON * ZIGGURATS if _is_of_ziggurat(kind, name) else SOON


def _is_of_ziggurat(kind: type, name: str) -> bool:
    return kind is np.random.Generator and name.endswith(("normal", "exponential"))


def _numbers(name: str, args: tuple[Any, ...], size: Any) -> int:
    """Return how many numbers a call asks for, as far as that is easily told."""
    if name in ("rand", "randn"):
        size = args
    elif size is None and len(args) > SIZE_AT.get(name, len(args)):
        size = args[SIZE_AT[name]]
    if type(size) is tuple and all(type(x) is int for x in size):
        return prod(size)
    return size if type(size) is int else 0


def _made(method: Any, bits: Any) -> Any:
    return core().drawn(method, bits, type(method.__self__) is np.random.RandomState)


@cache
def usable(kind: type, name: str) -> bool:
    """Tell whether a method draws what NumPy's does."""
    trials = load("lazynp.namespace.draws.trials")
    try:
        if _is_of_ziggurat(kind, name):
            _layers(name.endswith("normal"))
        return bool(trials.agrees(kind, KINDS[kind][0], name, _made))
    except (RecursionError, MemoryError):  # which are the caller's
        raise
    except Exception:  # whatever another NumPy says to it
        return False


@cache
def _layers(normal: bool) -> None:
    ziggurats = load("lazynp.namespace.draws.ziggurats")
    of = ziggurats.NORMAL if normal else ziggurats.EXPONENTIAL
    core().set_layers(normal, *ziggurats.layers(of, core().Script))
