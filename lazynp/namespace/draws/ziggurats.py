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

NEAR: Final = 8
"""How many places, at most, lie between NumPy's limit of a layer and what follows from rounded widths."""

AROUND: Final = tuple(sorted(range(-16, 17), key=abs))
"""Numbers around the curve at the edge of a layer, one of which is NumPy's height."""


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

    def drawn(layer: int, place: int, uniform: int = 0) -> tuple[float, int]:
        """The number of a place, and how many words it took: if it is not under the curve as a whole, the second one decides."""
        found: tuple[float, int] = words.told(draw, layer << of.layer | place << of.place, uniform << 11, HALF)
        return found

    widths = [drawn(layer, of.size >> 2)[0] / (of.size >> 2) for layer in range(LAYERS)]
    start = abs(drawn(0, of.size - 1)[0])
    limits, heights = [], [1.0]
    for layer, width in enumerate(widths):
        # What is below the edge of the layer above; of the lowest layer, what is no tail.
        inner = start if layer == 0 else 0.0 if layer == 1 else widths[layer - 1] * of.size
        place = int(inner / width)
        limits.append(_first(max(place - NEAR, 0), place + NEAR, lambda place, layer=layer: drawn(layer, place)[1] > 1))  # type: ignore[misc]
        if layer:
            heights.append(_height(of, drawn, layer, (limits[layer] + 3 * of.size) // 4, width, heights[-1]))
    return np.array(widths), np.array(limits, np.uint64), np.array(heights), start


def _height(of: Ziggurat, drawn: Callable[[int, int, int], tuple[float, int]], layer: int, place: int, width: float, above: float) -> float:
    """The height of a layer: the curve at its edge, or one of the numbers around it, which is what NumPy's decision tells."""
    edge, curve = of.curve(width * of.size), of.curve(place * width)
    for off in AROUND:
        height = edge + off * (unit := math.ulp(edge))
        part = (above - height) * 2**-53
        guess, near = int((curve - height) / part), 4 * int(unit / part) + 4
        change = _first(guess - near, guess + near, lambda k: not (above - height) * (k * 2**-53) + height < curve)  # noqa: B023
        if drawn(layer, place, change - 1)[1] == 2 < drawn(layer, place, change)[1]:
            return height
    raise ValueError(f"the height of layer {layer} of {of.name} is not known")
