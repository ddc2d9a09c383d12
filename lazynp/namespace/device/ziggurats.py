"""Normal and exponential numbers on a GPU, by the ziggurats of NumPy's.

In: the words that a generator gives next, and how many numbers to make of them.  Out: the numbers that NumPy makes of these words, and how
many words they took.  Promise: NumPy's bits and NumPy's count of words.

A word says a layer of the ziggurat and a place in it.  Of 100 places about 99 lie under the curve as a whole, and are a number; of the
others the next word decides, and the last layer has a tail.  Which words begin a number depends on what was decided of those before: the
few that need more words are looked at on the host, all numbers are made on the device, from the positions of their words.  The layers are
read from NumPy, which is given words to make numbers of.

About one word in 45 needs others.  Whether such a word is accepted is a comparison with an exponential.  That of lazynp and NumPy's may
differ in the last bit, which would be seen in about one of 10^15 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from lazynp.arrays import node_of, wrap
from lazynp.conversion import from_numpy
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, gather
from lazynp.graph.dtypes import BOOL, FLOAT64, INT64, UINT64
from lazynp.graph.node import Node
from lazynp.namespace.device.words import Words
from lazynp.namespace.routines.selecting import nonzero, searchsorted
from lazynp.storage import host

Array = np.ndarray[Any, Any]

LAYERS: Final = 256
TRIES: Final = 8
"""Pairs of words that a number of the tail may take here; of a million numbers of the tail not one takes more."""

SURPLUS: Final = 1.001
"""More words than are expected for many numbers."""


class Ziggurat(NamedTuple):
    """Describe how a word is read, and what the curve is."""

    name: str
    layer: int  # the lowest bit of the layer
    place: int  # the lowest bit of the place in it
    bits: int  # of the place
    signed: bool  # whether the bit below the place is a sign
    curve: Callable[[Any], Any]
    tail: Callable[[float, int, Any], tuple[float, int]]  # of where it begins, a place, uniform numbers -> (number, how many it took)
    words: float  # that a number takes

    @property
    def size(self) -> int:
        """The number of places in a layer."""
        return 1 << self.bits


def _normal_tail(start: float, place: int, uniform: Any) -> tuple[float, int]:
    for k in range(0, 2 * TRIES, 2):
        x, y = -(1 / start) * math.log1p(-uniform[k]), -math.log1p(-uniform[k + 1])
        if y + y > x * x:
            return (-(start + x) if place >> 8 & 1 else start + x), k + 2
    return 0.0, 0


def _exponential_tail(start: float, place: int, uniform: Any) -> tuple[float, int]:
    return start - math.log1p(-uniform[0]), 1


NORMAL: Final = Ziggurat("standard_normal", 0, 9, 52, True, lambda x: np.exp(-0.5 * x * x), _normal_tail, 1.0224)
EXPONENTIAL: Final = Ziggurat("standard_exponential", 3, 11, 53, False, lambda x: np.exp(-x), _exponential_tail, 1.0335)


@cache
def _layers(of: Ziggurat) -> tuple[Array, Array, Array, float]:
    """The width of a place in each layer, the places that are under the curve, the heights, and where the tail begins."""
    bits = np.random.Philox(0)
    draw = getattr(np.random.Generator(bits), of.name)
    state: Any = bits.state

    def drawn(layer: int, place: int, *others: int) -> tuple[float, bool]:
        """The number of a word, and whether it is one by itself; the next word says 0, the one after it a half."""
        state["buffer"], state["buffer_pos"] = np.array([layer << of.layer | place << of.place, 0, 1 << 63, 0], UINT64), 0
        bits.state = state
        found = draw()
        return found, bits.state["buffer_pos"] == 1

    one = 1 << (of.bits - 2)
    widths = np.array([drawn(layer, one)[0] / one for layer in range(LAYERS)])
    start = abs(drawn(0, of.size - 1)[0])
    heights = of.curve(widths * of.size)
    heights[0] = 1.0
    limits = np.zeros(LAYERS, UINT64)
    for layer, width in enumerate(widths.tolist()):
        inner = start if layer == 0 else 0.0 if layer == 1 else widths[layer - 1] * of.size
        middle = int(inner / width)
        low, high = max(middle - LAYERS, 0), middle + LAYERS
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if drawn(layer, middle)[1] else (low, middle)
        limits[layer] = low
    return widths, limits, heights, start


def _read(of: Ziggurat, word: Any) -> tuple[Any, Any]:
    """Layers and places of words that are known."""
    word = np.asarray(word)
    return (word >> np.uint64(of.layer) & np.uint64(LAYERS - 1)).astype(INT64), word >> np.uint64(of.place) & np.uint64(of.size - 1)


def _uniform(word: Array) -> Array:
    return (word >> np.uint64(11)) * 2.0**-53


def _part(word: Node, lowest: int, size: int) -> Node:
    shifted = elementwise(o.RIGHT_SHIFT, UINT64, word, const(lowest, UINT64))
    return elementwise(o.BITWISE_AND, UINT64, shifted, const(size - 1, UINT64))


class _Decided:
    """Hold what the words that need others make of themselves and those."""

    def __init__(self, of: Ziggurat, words: Words, places: Array) -> None:
        widths, _, heights, tail = _layers(of)

        end = int(places.max(initial=0)) + 2 * TRIES + 1

        def read(at: Array, count: int) -> Array:
            return host(wrap(words.at(at[:, None] + np.arange(count), end)), "random")

        near = read(places, 2)
        layer, place = _read(of, near[:, 0])
        x = place * widths[layer]
        self.places = places
        self.accepted = (heights[layer - 1] - heights[layer]) * _uniform(near[:, 1]) + heights[layer] < of.curve(x)
        self.more = np.ones(len(places), INT64)  # words that it takes besides
        self.values: dict[int, float] = {}  # numbers of the tail by position
        (tails,) = np.nonzero(layer == 0)
        for k, row in zip(tails.tolist(), _uniform(read(places[tails] + 1, 2 * TRIES)).tolist(), strict=True):
            self.values[k], self.more[k] = of.tail(tail, int(place[k]), row)
        self.accepted[tails] = self.more[tails] > 0
        self.first = self._first()

    def _first(self) -> Array:
        """Tell which of these words begin a number: those that no earlier one takes."""
        ends = self.places + self.more
        first = np.ones(len(ends), bool)
        for k in np.flatnonzero(self.places[1:] <= ends[:-1]).tolist():
            j = k + 1
            while first[k] and j < len(ends) and self.places[j] <= ends[k]:
                first[j] = False
                j += 1
        return first

    def left_out(self) -> Array:
        """Positions of words that are no number."""
        more = self.more[self.first]
        last = np.cumsum(more)
        taken = np.repeat(self.places[self.first] + 1 - (last - more), more) + np.arange(last[-1] if len(last) else 0)
        return np.sort(np.concatenate([self.places[self.first & ~self.accepted], taken]))


def numbers(of: Ziggurat, words: Words, size: int) -> Node | None:
    """So many numbers of the words that come next; the generator is left behind them."""
    widths, limits = [node_of(from_numpy(part)) for part in _layers(of)[:2]]
    count = int(of.words * SURPLUS * size + 8 * size**0.5)
    while True:
        word = words.long(count)
        layer = cast(_part(word, of.layer, LAYERS), INT64)
        beyond = elementwise(o.GREATER_EQUAL, BOOL, _part(word, of.place, of.size), gather(limits, layer))
        decided = _Decided(of, words, host(nonzero(wrap(beyond))[0], "random"))
        if not decided.more.all():
            return None
        left = decided.left_out()
        left = left[left < count]
        if count - len(left) >= size:
            break
        count += size - (count - len(left)) + int(8 * size**0.5)
    before = left - np.arange(len(left))  # numbers before each
    last = size - 1 + int(np.searchsorted(before, size - 1, "right"))
    k = int(np.searchsorted(decided.places, last))
    slow = k < len(decided.places) and decided.places[k] == last
    words.advance(last + 1 + (int(decided.more[k]) if slow else 0))

    number = build.iota(size, 0, 1, INT64)
    skipped = searchsorted(from_numpy(before), wrap(build.contiguous(number)), "right")
    word = words.at(elementwise(o.ADD, INT64, number, node_of(skipped)), last + 1)
    width = gather(widths, cast(_part(word, of.layer, LAYERS), INT64))
    found = elementwise(o.MULTIPLY, FLOAT64, cast(_part(word, of.place, of.size), FLOAT64), width)
    if of.signed:
        sign = elementwise(o.NOT_EQUAL, BOOL, _part(word, of.place - 1, 2), const(0, UINT64))
        found = elementwise(o.WHERE, FLOAT64, sign, elementwise(o.NEGATIVE, FLOAT64, found), found)
    tails = [k for k in decided.values if decided.first[k] and decided.places[k] <= last]
    if not tails:
        return found
    result = wrap(found)
    places = decided.places[tails]
    result[from_numpy(places - np.searchsorted(left, places))] = from_numpy(np.array([decided.values[k] for k in tails]))
    return node_of(result)
