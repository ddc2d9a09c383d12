"""The layers of NumPy's ziggurats.

In: NumPy's generator, over a bit generator whose words are told.  Out: for each layer the width of a place, the places that are under the
curve, and the height, and where the tail begins.  Promise: NumPy's numbers, to the bit; an error where it does not take the decisions that
follow from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np

LAYERS: Final = 256
HALF: Final = 1 << 63
"""A word in the middle; as one that begins a number it is always a number by itself."""

NEAR: Final = 1 << 12
"""How far from where it is expected a decision may change."""

FAR: Final = 16
"""How many numbers, or places, lie between what follows from rounded numbers and what is NumPy's."""


class Ziggurat(NamedTuple):
    """Describe how a word is read, and what the curve is."""

    name: str
    layer: int  # the lowest bit of the layer
    place: int  # the lowest bit of the place in it
    size: int  # places in a layer
    curve: Callable[[float], float]


NORMAL: Final = Ziggurat("standard_normal", 0, 9, 1 << 52, lambda x: math.exp(-0.5 * x * x))
EXPONENTIAL: Final = Ziggurat("standard_exponential", 3, 11, 1 << 53, lambda x: math.exp(-x))


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number from ``low`` on for which it holds; it does for ``high``."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def layers(of: Ziggurat, script: Any) -> tuple[Any, Any, Any, float]:
    """The widths, limits and heights of all layers, and where the tail begins; ``script(lock)`` is a bit generator whose words are told."""
    words = script(Lock())
    draw = getattr(np.random.Generator(words), of.name)

    def number(layer: int, place: int, uniform: int = 0) -> float:
        """The number of a place; if it is not under the curve as a whole, the next word decides."""
        words.tell(layer << of.layer | place << of.place, uniform << 11, HALF)
        found: float = draw()
        return found

    def taken(layer: int, place: int, uniform: int = 0) -> int:
        number(layer, place, uniform)
        count: int = words.taken
        return count

    widths = [number(layer, of.size >> 2) / (of.size >> 2) for layer in range(LAYERS)]
    start = abs(number(0, of.size - 1))
    edges = [start] + [width * of.size for width in widths[1:]]
    limits, heights = [], [1.0]
    for layer in range(LAYERS):
        # The places below the edge of the next layer.
        expected = 0 if layer == 1 else int(edges[layer - 1] / widths[layer])
        limits.append(_first(max(expected - FAR, 0), expected + FAR, lambda place, layer=layer: taken(layer, place) > 1))  # type: ignore[misc]
    for layer in range(1, LAYERS):
        heights.append(_height(of, taken, layer, (limits[layer] + 3 * of.size) // 4, widths[layer], heights[-1]))
    return np.array(widths), np.array(limits, np.uint64), np.array(heights), start


def _height(of: Ziggurat, taken: Callable[[int, int, int], int], layer: int, place: int, width: float, above: float) -> float:
    """The height of a layer: the curve at its edge, or one of the numbers around it, which is what NumPy's decision tells."""
    expected, curve = of.curve(width * of.size), of.curve(place * width)
    for off in sorted(range(-FAR, FAR + 1), key=abs):
        height = expected + off * math.ulp(expected)
        guess = int((curve - height) / (above - height) * 2**53)
        change = _first(guess - NEAR, guess + NEAR, lambda k: not (above - height) * (k * 2**-53) + height < curve)  # noqa: B023
        if taken(layer, place, change - 1) == 2 and taken(layer, place, change) > 2:
            return height
    raise ValueError(f"the height of layer {layer} of {of.name} is not known")
