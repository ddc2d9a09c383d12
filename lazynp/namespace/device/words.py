"""The words of NumPy's generators by number, as recorded operations.

In: a bit generator.  Out: the words that it gives next, each computed from its number and not from the word before, and the generator in
the state where it is behind so many of them.  Promise: NumPy's bits, and NumPy's state; a generator whose words do not follow from their
numbers is not known here.
"""

from __future__ import annotations

from functools import cache, cached_property, lru_cache
from typing import Any, Final

import numpy as np

from lazynp.arrays import node_of
from lazynp.conversion import from_numpy
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand, gather, reshape
from lazynp.graph.dtypes import BOOL, INT64, UINT64
from lazynp.graph.node import Node

Array = np.ndarray[Any, Any]

WORD: Final = 1 << 64
TWO_WORDS: Final = 1 << 128


def number(value: int) -> Node:
    """A constant."""
    return const(np.uint64(value), UINT64)


def do(op: o.Op, a: Node, b: Node | int) -> Node:
    """An operation on words."""
    return elementwise(op, UINT64, a, number(b) if isinstance(b, int) else b)


class Words:
    """The words that a generator gives from its present state on; 0 is the next one.

    Attributes
    ----------
    half : int
        1 where the upper half of a word that was drawn is still to be given.
    """

    def __init__(self, bits: Any) -> None:
        self.bits = bits
        self.state: Any = bits.state
        self.half = self.state["has_uint32"]

    def known(self, count: int) -> bool:
        """Tell whether the next words follow from their numbers."""
        raise NotImplementedError

    def long(self, count: int) -> Node:
        """The next words."""
        raise NotImplementedError

    def at(self, places: Any, end: int) -> Node:
        """The words at places before an end; an array of the host's, or a node."""
        raise NotImplementedError

    def _drawn(self, count: int) -> int:
        """Leave the generator behind so many words, at least one; the last of them."""
        raise NotImplementedError

    def short(self, count: int, bits: int) -> Node:
        """The next words of at most 32 bits: halves, and parts of halves, the lowest first."""
        parts, kept = 64 // bits, self.half * (32 // bits)
        words = -(-max(count - kept, 1) // parts)
        shift = expand(reshape(build.iota(parts, 0, bits, UINT64), (1, parts)), (words, parts))
        found = elementwise(o.RIGHT_SHIFT, UINT64, reshape(self.long(words), (words, 1)), shift)
        found = reshape(found, (words * parts,))
        if kept:
            before = do(o.RIGHT_SHIFT, number(self.state["uinteger"]), build.iota(kept, 0, bits, UINT64))
            found = build.concat([before, found], 0)
        return do(o.BITWISE_AND, build.slice_(found, ((0, 1),), (count,)), (1 << bits) - 1)

    def advance(self, count: int, bits: int = 64) -> None:
        """Leave the generator where it is after so many draws of a length."""
        left, upper = self.half, self.state["uinteger"]
        if bits < 64:
            halves = -(-count * bits // 32) - self.half
            count, left = -(-halves // 2), halves % 2
        if count:
            last = self._drawn(count)
            upper = last >> 32 if bits < 64 else upper
        self.bits.state = {**self.bits.state, "has_uint32": left, "uinteger": upper}


class Philox(Words):
    """Words of a counter.  Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011)."""

    FACTORS: Final = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
    STEPS: Final = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)  # of the keys
    ROUNDS: Final = 10
    LANES: Final = 4  # words of a block

    def __init__(self, bits: Any) -> None:
        super().__init__(bits)
        self.counter = sum([int(word) << 64 * k for k, word in enumerate(self.state["state"]["counter"])])
        self.place = self.state["buffer_pos"]
        self.start = self.LANES * (self.counter % WORD) + self.place  # of all words with this key and these upper counters

    def known(self, count: int) -> bool:
        """Tell whether all follows from the counter: the rest of a block that the program has set does not."""
        if self.start + count >= WORD:
            return False
        if self.place == self.LANES:
            return True
        same = self._behind(np.random.Philox(0), 0, 1)
        return bool((same.state["buffer"] == self.state["buffer"]).all())

    def _behind(self, bits: Any, block: int, count: int) -> Any:
        """A generator behind so many words of a block."""
        counter = self.counter + block - 1  # that of the block before, which is at its end
        words = np.array([counter >> 64 * k & (WORD - 1) for k in range(self.LANES)], UINT64)
        bits.state = {**self.state, "state": {**self.state["state"], "counter": words}, "buffer_pos": self.LANES}
        bits.random_raw(count)
        return bits

    def _drawn(self, count: int) -> int:
        last = self.place + count - 1
        state = self._behind(self.bits, last // self.LANES, last % self.LANES + 1).state
        return int(state["buffer"][state["buffer_pos"] - 1])

    def long(self, count: int) -> Node:
        """The next words."""
        return self._words(build.iota(count, self.start, 1, UINT64))

    def at(self, places: Any, end: int) -> Node:
        """The words at places before an end."""
        return self._words(do(o.ADD, cast(_node(places), UINT64), self.start))

    def _words(self, place: Node) -> Node:
        a: Node = do(o.RIGHT_SHIFT, place, 2)
        b, c, d = [number(self.counter >> 64 * k & (WORD - 1)) for k in range(1, self.LANES)]
        keys = [int(word) for word in self.state["state"]["key"]]
        for k in range(self.ROUNDS):
            x, y = map(number, self.FACTORS)
            first, second = [number((key + k * step) % WORD) for key, step in zip(keys, self.STEPS, strict=True)]
            high, low = do(o.MULTIPLY_HIGH, a, x), do(o.MULTIPLY, a, x)
            other, other_low = do(o.MULTIPLY_HIGH, c, y), do(o.MULTIPLY, c, y)
            a, b = do(o.BITWISE_XOR, do(o.BITWISE_XOR, other, b), first), other_low
            c, d = do(o.BITWISE_XOR, do(o.BITWISE_XOR, high, d), second), low
        lane = do(o.BITWISE_AND, place, self.LANES - 1)
        found = d
        for k, word in enumerate((a, b, c)):
            found = elementwise(o.WHERE, UINT64, elementwise(o.EQUAL, BOOL, lane, number(k)), word, found)
        return found


class Congruential(Words):
    """Words of a linear congruential generator of 128 bits: that many steps are one, whose factors are in a table.

    M. O'Neill: PCG: A family of simple fast space-efficient statistically good algorithms for random number generation (2014).  A state
    is that at the beginning of its row, and the steps that its column is from there.
    """

    FACTOR: int
    EARLY: int  # steps before the first word

    ROW: Final = 4096

    def known(self, count: int) -> bool:
        """Tell whether the next words follow from their numbers."""
        return True

    def _states(self, end: int) -> list[Node]:
        """States at the beginning of rows: lower and upper words."""
        state, add = self.state["state"]["state"], self.state["state"]["inc"]
        factors, terms = _steps(self.FACTOR, self.ROW + 1)
        factor, term = factors[-1], terms[-1] * add
        found = []
        for _ in range(-(-(end + self.EARLY) // self.ROW)):
            found.append(state)
            state = (state * factor + term) % TWO_WORDS
        return _rows(_halves(found))

    @cached_property
    def _jumps(self) -> list[Node]:
        """Return what takes a state to those that follow: lower and upper words of factors and terms."""
        return _rows(_table(self.FACTOR, self.state["state"]["inc"], self.ROW))

    def long(self, count: int) -> Node:
        """The next words: each of a row by each of a column."""
        states = self._states(count)
        rows = states[0].shape[0]
        found = self._words([reshape(node, (rows, 1)) for node in states], [reshape(node, (1, self.ROW)) for node in self._jumps])
        return build.slice_(reshape(found, (rows * self.ROW,)), ((self.EARLY, 1),), (count,))

    def at(self, places: Any, end: int) -> Node:
        """The words at places before an end."""
        place = elementwise(o.ADD, INT64, _node(places), const(self.EARLY, INT64))
        row, column = [elementwise(op, INT64, place, const(self.ROW, INT64)) for op in (o.FLOOR_DIVIDE, o.REMAINDER)]
        return self._words([gather(node, row) for node in self._states(end)], [gather(node, column) for node in self._jumps])

    def _words(self, state: list[Node], jump: list[Node]) -> Node:
        low, high = state
        factor, upper_factor, term, upper_term = jump
        product = do(o.MULTIPLY, low, factor)
        crossed = do(o.ADD, do(o.MULTIPLY, high, factor), do(o.MULTIPLY, low, upper_factor))
        upper = do(o.ADD, do(o.MULTIPLY_HIGH, low, factor), crossed)
        total = do(o.ADD, product, term)
        carry = cast(elementwise(o.LESS, BOOL, total, product), UINT64)
        return self._word(total, do(o.ADD, do(o.ADD, upper, upper_term), carry))

    def _word(self, low: Node, high: Node) -> Node:
        """Return what a state gives."""
        raise NotImplementedError

    def _drawn(self, count: int) -> int:
        state: Any = self.state["state"]
        factor, term = _jump(self.FACTOR, count - 1)
        self.bits.state = {**self.state, "state": {**state, "state": (state["state"] * factor + term * state["inc"]) % TWO_WORDS}}
        return int(self.bits.random_raw())


class PCG64(Congruential):
    """NumPy's default: the halves of a state, turned by its highest bits."""

    FACTOR = 0x2360ED051FC65DA44385DF649FCCF645
    EARLY = 1

    def _word(self, low: Node, high: Node) -> Node:
        word, turn = do(o.BITWISE_XOR, high, low), do(o.RIGHT_SHIFT, high, 58)
        back = do(o.BITWISE_AND, elementwise(o.SUBTRACT, UINT64, number(0), turn), 63)
        return do(o.BITWISE_OR, do(o.RIGHT_SHIFT, word, turn), do(o.LEFT_SHIFT, word, back))


class PCG64DXSM(Congruential):
    """The upper half of a state, multiplied and shifted."""

    FACTOR = 0xDA942042E4DD58B5
    EARLY = 0

    def _word(self, low: Node, high: Node) -> Node:
        for shift in (32, 48):
            high = do(o.BITWISE_XOR, high, do(o.RIGHT_SHIFT, high, shift))
            if shift == 32:
                high = do(o.MULTIPLY, high, self.FACTOR)
        return do(o.MULTIPLY, high, do(o.BITWISE_OR, low, 1))


KINDS: Final[dict[type, type[Words]]] = {np.random.Philox: Philox, np.random.PCG64: PCG64, np.random.PCG64DXSM: PCG64DXSM}


def _node(places: Any) -> Node:
    return places if isinstance(places, Node) else node_of(from_numpy(places))


def _rows(table: Array) -> list[Node]:
    """The rows of a table, which is copied to a device as a whole."""
    node = node_of(from_numpy(table))
    count, length = table.shape
    return [reshape(build.slice_(node, ((k, 1), (0, 1)), (1, length)), (length,)) for k in range(count)]


def _halves(numbers: list[int]) -> Array:
    """Lower and upper words."""
    return np.array([[x % WORD for x in numbers], [x >> 64 for x in numbers]], UINT64)


@lru_cache(16)
def _table(factor: int, increment: int, count: int) -> Array:
    factors, terms = _steps(factor, count)
    return np.concatenate([_halves(factors), _halves([term * increment % TWO_WORDS for term in terms])])


@cache
def _steps(factor: int, count: int) -> tuple[list[int], list[int]]:
    """Return what 0, 1, 2, ... steps multiply a state by, and how often they add the increment."""
    factors, terms = [1], [0]
    for _ in range(count - 1):
        factors.append(factors[-1] * factor % TWO_WORDS)
        terms.append((terms[-1] * factor + 1) % TWO_WORDS)
    return factors, terms


def _jump(factor: int, count: int) -> tuple[int, int]:
    """The same for any number of steps: of the geometric series only the lower 128 bits count."""
    power = pow(factor, count, (factor - 1) * TWO_WORDS)
    return power % TWO_WORDS, (power - 1) // (factor - 1) % TWO_WORDS
