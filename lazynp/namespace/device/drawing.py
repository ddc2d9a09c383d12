"""Random numbers on a GPU: the words of NumPy's ``Philox``, each computed from its number.

In: a method of a ``Generator`` whose bits are Philox's, its arguments.  Out: recorded operations that give the numbers NumPy would draw, to
the bit, and a generator in the state where NumPy's would be.  Promise: what is drawn on a GPU and on the host are one stream, whoever draws
which part of it; None for what is few, or drawn with numbers whose count depends on their values: that is the host's, and counted.
"""

from __future__ import annotations

from inspect import signature
from math import prod
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.engine import devices
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise
from lazynp.graph.dtypes import BOOL, FLOAT32, FLOAT64, INT64, UINT64
from lazynp.graph.node import Node
from lazynp.namespace.routines.selecting import nonzero
from lazynp.ndarray import force, host, ndarray, node_of, wrap

FEW: Final = 1 << 15
"""Numbers that the host draws while a program that draws them on a GPU would be recorded."""

# Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011): multipliers, and what is added to the keys.
FACTORS: Final = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
STEPS: Final = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
ROUNDS: Final = 10
LANES: Final = 4  # words of a block

_WORD: Final = 1 << 64
_LIMITS: Final = (1 << 256) - 1


def _number(value: int) -> Node:
    return const(np.uint64(value), UINT64)


def _do(op: o.Op, a: Node, b: Node | int) -> Node:
    return elementwise(op, UINT64, a, _number(b) if isinstance(b, int) else b)


class Words:
    """The words that a ``Philox`` gives from its present state on.

    Attributes
    ----------
    place : int
        The number of the next word in the block of the counter.
    start : int
        Its number among all words of the key, as far as that is known from the lowest word of the counter.
    half : int
        1 where the upper half of a word that was drawn is still to be given.
    """

    def __init__(self, bits: np.random.Philox) -> None:
        self.bits = bits
        self.state: Any = bits.state
        self.counter = sum([int(word) << 64 * k for k, word in enumerate(self.state["state"]["counter"])])
        self.key = [int(word) for word in self.state["state"]["key"]]
        self.place = self.state["buffer_pos"]
        self.start = LANES * (self.counter % _WORD) + self.place
        self.half = self.state["has_uint32"]

    def known(self, count: int) -> bool:
        """Tell whether all follows from the counter: the rest of a block that somebody has set does not."""
        if 64 * (self.start + count) >= _WORD or not self.start:
            return False
        if self.place == LANES:
            return True
        same = self._at(0, 0)
        same.random_raw(1)
        return bool((same.state["buffer"] == self.state["buffer"]).all())

    def _at(self, block: int, drawn: int, into: Any = None) -> Any:
        """A generator, this one or another, with ``drawn`` words of a block behind it."""
        into = np.random.Philox(0) if into is None else into
        counter = (self.counter + block - 1) & _LIMITS  # that of the block before, which is at its end
        state = {"counter": np.array([counter >> 64 * k & (_WORD - 1) for k in range(LANES)], UINT64), "key": self.state["state"]["key"]}
        into.state = {**self.state, "state": state, "buffer_pos": LANES}
        if drawn:
            into.random_raw(drawn)
        return into

    def long(self, count: int) -> Node:
        """The next words of 64 bits."""
        return self._words(build.iota(count, self.start, 1, UINT64))

    def short(self, count: int, bits: int) -> Node:
        """The next words of at most 32 bits: halves, and parts of halves, the lowest first."""
        parts = 32 // bits
        first = 2 * self.start - self.half
        number = build.iota(count, parts * first, 1, UINT64)
        place = number if parts == 1 else _do(o.RIGHT_SHIFT, number, parts.bit_length() - 1)
        word = self._words(_do(o.RIGHT_SHIFT, place, 1))
        word = _do(o.RIGHT_SHIFT, word, _do(o.LEFT_SHIFT, _do(o.BITWISE_AND, place, 1), 5))
        if self.half:
            kept = elementwise(o.EQUAL, BOOL, place, _number(first))
            word = elementwise(o.WHERE, UINT64, kept, _number(self.state["uinteger"]), word)
        if parts > 1:
            word = _do(o.RIGHT_SHIFT, word, _do(o.MULTIPLY, _do(o.BITWISE_AND, number, parts - 1), bits))
        return _do(o.BITWISE_AND, word, (1 << bits) - 1)

    def _words(self, place: Node) -> Node:
        """The words of the key by number."""
        upper = [self.counter >> 64 * k & (_WORD - 1) for k in range(1, LANES)]
        a: Node = _do(o.RIGHT_SHIFT, place, 2)
        b, c, d = [_number(word) for word in upper]
        for k in range(ROUNDS):
            x, y = _number(FACTORS[0]), _number(FACTORS[1])
            first, second = [_number((key + k * step) % _WORD) for key, step in zip(self.key, STEPS, strict=True)]
            high, low_ = _do(o.MULTIPLY_HIGH, a, x), _do(o.MULTIPLY, a, x)
            other, other_low = _do(o.MULTIPLY_HIGH, c, y), _do(o.MULTIPLY, c, y)
            a, b = _do(o.BITWISE_XOR, _do(o.BITWISE_XOR, other, b), first), other_low
            c, d = _do(o.BITWISE_XOR, _do(o.BITWISE_XOR, high, d), second), low_
        lane = _do(o.BITWISE_AND, place, LANES - 1)
        found = d
        for k, word in enumerate((a, b, c)):
            found = elementwise(o.WHERE, UINT64, elementwise(o.EQUAL, BOOL, lane, _number(k)), word, found)
        return found

    def advance(self, count: int, bits: int = 64) -> None:
        """Leave the generator where it is after so many draws of a length."""
        if bits < 64:
            halves = -(-count * bits // 32) - self.half
            count = -(-halves // 2)
            left = halves % 2
        else:
            left = self.half
        last = self.place + count - 1
        if count:
            self._at(last // LANES, last % LANES + 1, self.bits)
        state: Any = self.bits.state
        if bits < 64:
            upper = int(state["buffer"][state["buffer_pos"] - 1]) >> 32 if count else state["uinteger"]
            state["has_uint32"], state["uinteger"] = left, upper
            self.bits.state = state


# Methods ----------------------------------------------------------------------------------------------------------------------


def random(words: Words, size: int, dtype: Any = FLOAT64, out: Any = None) -> Node | None:
    """Draw numbers from 0 to 1: the upper 53 bits of a word, or 24 of a half."""
    dtype = np.dtype(dtype)
    if out is not None or dtype not in (FLOAT64, FLOAT32):
        return None
    length, kept = (64, 53) if dtype == FLOAT64 else (32, 24)
    found = words.long(size) if length == 64 else words.short(size, 32)
    words.advance(size, length)
    return elementwise(o.MULTIPLY, dtype, cast(_do(o.RIGHT_SHIFT, found, length - kept), dtype), const(2.0**-kept, dtype))


def uniform(words: Words, low: Any = 0.0, high: Any = 1.0, size: int = 0) -> Node | None:
    """Draw numbers between two."""
    if not all(isinstance(x, (int, float, np.number)) for x in (low, high)):
        return None
    low = float(low)
    found = random(words, size)
    assert found is not None
    scaled = elementwise(o.MULTIPLY, FLOAT64, found, const(float(high) - low, FLOAT64))
    return elementwise(o.ADD, FLOAT64, const(low, FLOAT64), scaled)


def integers(words: Words, low: Any, high: Any = None, size: int = 0, dtype: Any = np.int64, endpoint: Any = False) -> Node | None:
    """Draw whole numbers, none more likely than the others: products of words, some of which are rejected.

    D. Lemire: Fast random integer generation in an interval (2019).
    """
    dtype = np.dtype(dtype)
    low, high = (0, low) if high is None else (low, high)
    if not all(isinstance(x, (int, np.integer)) for x in (low, high)) or not dtype.isnative:
        return None
    most = int(high) - int(low) - (not endpoint)
    bits = 1 if dtype == BOOL else 8 * dtype.itemsize
    bits = 32 if bits == 64 and most < 1 << 32 else bits
    if not most:
        return None
    count = most + 1
    whole = count == 1 << bits
    limit = 0 if whole else ((1 << bits) - count) % count
    number = size
    while True:
        word = words.long(number) if bits == 64 else words.short(number, bits)
        product = word if whole else _do(o.MULTIPLY, word, count)
        upper = word
        if not whole:
            upper = _do(o.MULTIPLY_HIGH, word, count) if bits == 64 else _do(o.RIGHT_SHIFT, product, bits)
        found = _do(o.ADD, upper, int(low) % _WORD)
        found = elementwise(o.NOT_EQUAL, BOOL, found, _number(0)) if dtype == BOOL else cast(found, dtype)
        if not limit:
            words.advance(number, bits)
            return found
        rest = product if bits == 64 else _do(o.BITWISE_AND, product, (1 << bits) - 1)
        accepted = elementwise(o.GREATER_EQUAL, BOOL, rest, _number(limit))
        rejected = build.reduce(o.ADD, cast(elementwise(o.INVERT, BOOL, accepted), INT64), (0,))
        force([found, accepted, rejected], "integers")
        lost = int(host(wrap(rejected), "integers"))
        if number - lost >= size:
            kept = nonzero(wrap(accepted))[0][:size] if lost else None
            words.advance(number if kept is None else int(kept[-1]) + 1, bits)
            return found if kept is None else node_of(wrap(found)[kept])
        number = int(max(number, size / (1 - limit / (1 << bits))) + 8 * size**0.5)


def choice(
    words: Words, a: Any, size: int = 0, replace: Any = True, p: Any = None, axis: Any = 0, shuffle: Any = True
) -> Node | None:  # fmt: skip
    """Draw elements, which may come several times, or numbers below one."""
    if not replace or p is not None or axis != 0 or not isinstance(a, (int, np.integer, ndarray)):
        return None
    places = integers(words, 0, a.shape[0] if isinstance(a, ndarray) else a, size)
    return node_of(a[wrap(places)]) if isinstance(a, ndarray) and places is not None else places


METHODS: Final = {function.__name__: (function, signature(function)) for function in (random, uniform, integers, choice)}


def drawn(function: Any, args: Any, kwargs: Any) -> ndarray | None:
    """Draw many numbers by a method of a generator for the GPU that is the default device; None where the host draws them."""
    generator, home = getattr(function, "__self__", None), devices.default()
    if home == devices.CPU or type(generator) is not np.random.Generator or type(generator.bit_generator) is not np.random.Philox:
        return None
    method, parameters = METHODS.get(function.__name__, (None, None))
    if method is None or parameters is None:
        return None
    bits = generator.bit_generator
    try:
        given = parameters.bind(None, *args, **kwargs).arguments
        size = given.pop("size")
        shape = tuple([index(n) for n in size]) if isinstance(size, (tuple, list)) else (index(size),)
        del given["words"]
        if not given.keys() & {"a"}:
            getattr(np.random.default_rng(0), function.__name__)(**given, size=1)  # says what is wrong with the others
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    count = prod(shape)
    if count < FEW or min(shape) < 0:
        return None
    with bits.lock, devices.making(home), np.errstate(all="ignore"):
        words = Words(bits)
        found = method(words, size=count, **given) if words.known(2 * count) else None
        return None if found is None else wrap(devices.pinned(build.reshape(found, shape + found.shape[1:]), None))
