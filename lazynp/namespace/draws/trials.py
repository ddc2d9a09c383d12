"""What is drawn in C beside what NumPy draws.

In: a kind of generator and a method of it.  Out: whether calls of all its forms give NumPy's numbers, and leave NumPy's state.  Promise:
loaded when such a method is to take NumPy's place, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

import numpy as np

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
CALLS: Final[dict[type, dict[str, list[tuple[Any, ...]]]]] = {np.random.Generator: GENERATOR, np.random.RandomState: LEGACY}


def agrees(kind: Any, bits: Any, name: str, made: Callable[[Any, Any], Any]) -> bool:
    """Tell whether what ``made(method, bits)`` gives draws what NumPy's method does, and leaves the state that it leaves."""
    theirs, ours = kind(bits(SEED)), kind(bits(SEED))
    draw = made(getattr(ours, name), ours._bit_generator)
    for args in CALLS[kind][name]:
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
