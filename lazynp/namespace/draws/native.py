"""Which draws are done in C.

In: a bound method of a generator of NumPy's.  Out: what draws as it does, and faster where it can.  Promise: NumPy's numbers, to the bit,
and the state NumPy leaves; what was not built, and what did not draw as NumPy does when it was first wanted, is NumPy's method itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

_native: Any = None
if not TYPE_CHECKING:
    with suppress(ImportError):  # it wants integers of 128 bits, which not every compiler has
        from lazynp.namespace.draws import _native

SEED: Final = 30
MANY: Final = 5000
"""Numbers of a ziggurat: with this seed some are of the tail, on both sides of the normal one."""

GENERATOR: Final[dict[str, list[tuple[Any, ...]]]] = {
    "random": [(), (3,), ((2, 301),)],
    "standard_normal": [(), (3,), (MANY,)],
    "standard_exponential": [(), (3,), (MANY,)],
    "uniform": [(), (-1, 2.5), (0.1, 0.7, (2, 301))],
    "normal": [(), (0, 0.8, 3), (-1.7, 2.3, MANY)],
    "exponential": [(), (0.3, 3), (2.9, MANY)],
    "integers": [
        *[(10,), (0, 10, 1), (-3, 10, 602), (-5, 3 << 30, 601), (0, 1 << 32, 7)],
        *[(1 << 40,), (0, 1 << 40, 3), (-1 << 62, 1 << 61, (2, 301)), (-1 << 63, (1 << 63) - 1, 2)],
    ],
    "choice": [(10,), (10, 3), (10, (2, 301)), (np.arange(7.0), (5, 3))],
    "permutation": [(2,), (3,), (1027,)],
    "shuffle": [(np.arange(n, dtype=dtype),) for n, dtype in [(2, np.int64), (1027, np.float64)]],
}
LEGACY: Final[dict[str, list[tuple[Any, ...]]]] = {
    "random": [(), (3,), ((2, 301),)],
    "random_sample": [(), (3,), ((2, 301),)],
    "rand": [(), (3,), (2, 301)],
    "uniform": [(), (-1, 2.5), (0.1, 0.7, (2, 301))],
    "standard_normal": [(), (4,), (), ((2, 301),)],
    "randn": [(), (4,), (), (2, 301)],
    "normal": [(), (0, 0.8, 3), (), (-1.7, 2.3, (2, 301))],
    "randint": [(10,), (0, 10, 1), (-3, 10, 602), (-5, 3 << 30, 601), (0, 1 << 32, 7)],
    **{name: GENERATOR[name] for name in ("choice", "permutation", "shuffle")},
}
KINDS: Final[dict[type, tuple[type, dict[str, list[tuple[Any, ...]]]]]] = {
    np.random.Generator: (np.random.PCG64, GENERATOR),
    np.random.RandomState: (np.random.MT19937, LEGACY),
}
"""The bit generator of each kind of generator, and calls that are compared with NumPy's."""


def drawn(method: Any) -> Any:
    """Return what draws as ``method``: that, or what is called in its place."""
    generator = getattr(method, "__self__", None)
    kind: Any = type(generator)
    if _native is None or kind not in KINDS or method.__name__ not in KINDS[kind][1]:
        return method
    bits = getattr(generator, "_bit_generator", None)
    if type(bits) is not KINDS[kind][0] or not usable(kind, method.__name__):
        return method
    return _made(method, bits) or method


def _made(method: Any, bits: Any) -> Any:
    return _native.drawn(method, bits, type(method.__self__) is np.random.RandomState)


@cache
def usable(kind: type, name: str) -> bool:
    """Tell whether a method draws what NumPy's does."""
    try:
        if kind is np.random.Generator and name.endswith(("normal", "exponential")):
            _layers(name.endswith("normal"))
        return _agrees(kind, name)
    except Exception:  # whatever another NumPy says to it
        return False


@cache
def _layers(normal: bool) -> None:
    from lazynp.namespace.draws import ziggurats

    of = ziggurats.NORMAL if normal else ziggurats.EXPONENTIAL
    _native.set_layers(normal, *ziggurats.layers(of, _native.Script))


def _agrees(kind: Any, name: str) -> bool:
    bits, calls = KINDS[kind]
    theirs, ours = kind(bits(SEED)), kind(bits(SEED))
    draw: Callable[..., Any] = _made(getattr(ours, name), ours._bit_generator)
    for args in calls[name]:
        given, others = deepcopy(args), deepcopy(args)  # they may be written
        found, expected = draw(*given), getattr(theirs, name)(*others)
        if type(found) is not type(expected) or state(ours) != state(theirs):
            return False
        for x, y in zip(map(np.asarray, (found, *given)), map(np.asarray, (expected, *others)), strict=True):
            if x.dtype != y.dtype or x.shape != y.shape or x.tobytes() != y.tobytes():
                return False
    return True


def state(generator: Any) -> Any:
    """The state of a generator, as what can be compared."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    name, key, *others = generator.get_state()
    return name, key.tobytes(), others
