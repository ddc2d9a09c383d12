"""Which draws are done in C.

In: a bound method of a generator of NumPy's.  Out: what draws as it does, and faster where it can.  Promise: NumPy's numbers, to the bit,
and the state NumPy leaves; what was not built, and what did not draw as NumPy does when it was first wanted, is NumPy's method itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.values import config

_native: Any = None
if not TYPE_CHECKING and not config.pure:
    with suppress(Exception):  # ``array/core.py`` says why, for all of the native parts
        from lazynp.namespace.draws import _native

SEED: Final = 30
MANY: Final = 5000
"""Numbers of a ziggurat: with this seed some are of the tail, on both sides of the normal one."""

TRIED: Final[dict[str, list[tuple[Any, ...]]]] = {
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
}
"""Calls that are compared with NumPy's."""


def drawn(method: Any) -> Any:
    """Return what draws as ``method``: that, or what is called in its place."""
    generator = getattr(method, "__self__", None)
    if type(generator) is not np.random.Generator or type(generator.bit_generator) is not np.random.PCG64 or not usable(method.__name__):
        return method
    return _native.drawn(method, generator.bit_generator, method.__name__)


@cache
def usable(name: str) -> bool:
    """Tell whether a method draws what NumPy's does, and is known at all."""
    if _native is None or name not in _native.NAMES:
        return False
    try:
        if name.endswith(("normal", "exponential")):
            _layers(name.endswith("normal"))
        return _agrees(name)
    except Exception:  # whatever another NumPy says to it
        return False


@cache
def _layers(normal: bool) -> None:
    from lazynp.namespace.draws import ziggurats

    of = ziggurats.NORMAL if normal else ziggurats.EXPONENTIAL
    _native.set_layers(normal, *ziggurats.layers(of, _native.Script))


def _agrees(name: str) -> bool:
    theirs = np.random.Generator(np.random.PCG64(SEED))
    bits = np.random.PCG64(SEED)
    method: Callable[..., Any] = getattr(theirs, name)
    ours = _native.drawn(getattr(np.random.Generator(bits), name), bits, name)
    for args in TRIED[name]:
        expected, found = method(*args), ours(*args)
        if type(found) is not type(expected) or bits.state != theirs.bit_generator.state:
            return False
        found, expected = np.asarray(found), np.asarray(expected)
        if found.dtype != expected.dtype or found.shape != expected.shape or found.tobytes() != expected.tobytes():
            return False
    return True
