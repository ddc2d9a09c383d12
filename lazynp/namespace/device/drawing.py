"""Random numbers on a GPU: the methods of NumPy's ``Generator``.

In: a method of a ``Generator`` whose words follow from their numbers (``words.py``), its arguments.  Out: recorded operations that give the
numbers NumPy would draw, to the bit, and a generator in the state where NumPy's would be.  Promise: what is drawn on a GPU and on the host
are one stream, whichever of them draws which part; None for what is few, or not known here: that is the host's, and counted.

Draws fuse with what follows: ``(rng.random((2, n)) ** 2).sum(axis=0) < 1`` is one kernel, which stores no random number.  ``integers``
whose range is no power of two reads at the call whether a word was rejected, which NumPy leaves out.  Draws on the host, ``advance``,
``jumped``, ``spawn`` and pickles may be mixed with these.
"""

from __future__ import annotations

from inspect import signature
from math import prod
from operator import index
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.engine import devices
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise
from lazynp.graph.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from lazynp.graph.node import Node
from lazynp.namespace.device import ziggurats
from lazynp.namespace.device.words import KINDS, WORD, Words, do, number
from lazynp.namespace.routines.selecting import nonzero
from lazynp.scalars import force
from lazynp.storage import host

FEW: Final = 1 << 15
"""Numbers that the host draws while a program that draws them on a GPU would be recorded."""

# Methods ----------------------------------------------------------------------------------------------------------------------


def random(words: Words, size: int, dtype: Any = FLOAT64, out: Any = None) -> Node | None:
    """Draw numbers from 0 to 1: the upper 53 bits of a word, or 24 of a half."""
    dtype = np.dtype(dtype)
    if out is not None or dtype not in (FLOAT64, FLOAT32):
        return None
    length, kept = (64, 53) if dtype == FLOAT64 else (32, 24)
    found = words.long(size) if length == 64 else words.short(size, 32)
    words.advance(size, length)
    return elementwise(o.MULTIPLY, dtype, cast(do(o.RIGHT_SHIFT, found, length - kept), dtype), const(2.0**-kept, dtype))


def uniform(words: Words, low: Any = 0.0, high: Any = 1.0, size: int = 0) -> Node | None:
    """Draw numbers between two."""
    return _scaled(random(words, size), low, float(high) - float(low)) if _are_numbers(low, high) else None


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
    tried = size
    while True:
        word = words.long(tried) if bits == 64 else words.short(tried, bits)
        product = word if whole else do(o.MULTIPLY, word, count)
        upper = word
        if not whole:
            upper = do(o.MULTIPLY_HIGH, word, count) if bits == 64 else do(o.RIGHT_SHIFT, product, bits)
        found = do(o.ADD, upper, int(low) % WORD)
        found = elementwise(o.NOT_EQUAL, BOOL, found, number(0)) if dtype == BOOL else cast(found, dtype)
        if not limit:
            words.advance(tried, bits)
            return found
        rest = product if bits == 64 else do(o.BITWISE_AND, product, (1 << bits) - 1)
        accepted = elementwise(o.GREATER_EQUAL, BOOL, rest, number(limit))
        rejected = build.reduce(o.ADD, cast(elementwise(o.INVERT, BOOL, accepted), INT64), (0,))
        force([found, accepted, rejected], "integers")
        lost = int(host(wrap(rejected), "integers"))
        if tried - lost >= size:
            kept = nonzero(wrap(accepted))[0][:size] if lost else None
            words.advance(tried if kept is None else int(kept[-1]) + 1, bits)
            return found if kept is None else node_of(wrap(found)[kept])
        tried = int(max(tried, size / (1 - limit / (1 << bits))) + 8 * size**0.5)


def choice(
    words: Words, a: Any, size: int = 0, replace: Any = True, p: Any = None, axis: Any = 0, shuffle: Any = True
) -> Node | None:  # fmt: skip
    """Draw elements, which may come several times, or numbers below one."""
    if not replace or p is not None or axis != 0 or not isinstance(a, (int, np.integer, ndarray)):
        return None
    places = integers(words, 0, a.shape[0] if isinstance(a, ndarray) else a, size)
    return node_of(a[wrap(places)]) if isinstance(a, ndarray) and places is not None else places


def standard_normal(words: Words, size: int = 0, dtype: Any = FLOAT64, out: Any = None) -> Node | None:
    """Draw normal numbers."""
    return None if out is not None or np.dtype(dtype) != FLOAT64 else ziggurats.numbers(ziggurats.NORMAL, words, size)


def normal(words: Words, loc: Any = 0.0, scale: Any = 1.0, size: int = 0) -> Node | None:
    """Draw normal numbers around one."""
    return _scaled(standard_normal(words, size), loc, scale) if _are_numbers(loc, scale) else None


def standard_exponential(words: Words, size: int = 0, dtype: Any = FLOAT64, method: Any = "zig", out: Any = None) -> Node | None:
    """Draw times between events."""
    plain = method == "zig" and out is None and np.dtype(dtype) == FLOAT64
    return ziggurats.numbers(ziggurats.EXPONENTIAL, words, size) if plain else None


def exponential(words: Words, scale: Any = 1.0, size: int = 0) -> Node | None:
    """Draw times between events, of a mean."""
    return _scaled(standard_exponential(words, size), None, scale) if _are_numbers(scale) else None


def rayleigh(words: Words, scale: Any = 1.0, size: int = 0) -> Node | None:
    """Draw distances from the origin, whose squares are exponential."""
    squares = exponential(words, 2.0, size) if _are_numbers(scale) else None
    return None if squares is None else _scaled(elementwise(o.SQRT, FLOAT64, squares), None, scale)


def standard_cauchy(words: Words, size: int = 0) -> Node | None:
    """Draw quotients of two normal numbers, the first of them above."""
    pairs = standard_normal(words, 2 * size)
    return None if pairs is None else elementwise(o.DIVIDE, FLOAT64, *[node_of(wrap(pairs)[k::2]) for k in (0, 1)])


def triangular(words: Words, left: Any, mode: Any, right: Any, size: int = 0) -> Node | None:
    """Draw numbers that are likelier the nearer they are to one: by the inverse of their distribution, on each side of it."""
    share = random(words, size) if _are_numbers(left, mode, right) else None
    if share is None:
        return None
    low, middle, high = float(left), float(mode), float(right)
    rest = elementwise(o.SUBTRACT, FLOAT64, const(1.0, FLOAT64), share)
    sides = []
    for part, width, start, step in (share, middle - low, low, o.ADD), (rest, high - middle, high, o.SUBTRACT):
        root = elementwise(o.SQRT, FLOAT64, elementwise(o.MULTIPLY, FLOAT64, part, const(width * (high - low), FLOAT64)))
        sides.append(elementwise(step, FLOAT64, const(start, FLOAT64), root))
    below = elementwise(o.LESS_EQUAL, BOOL, share, const((middle - low) / (high - low), FLOAT64))
    return elementwise(o.WHERE, FLOAT64, below, *sides)


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(x, (int, float, np.number)) for x in values)


def _scaled(found: Node | None, start: Any, scale: Any) -> Node | None:
    if found is None:
        return None
    found = elementwise(o.MULTIPLY, FLOAT64, found, const(float(scale), FLOAT64))
    return found if start is None else elementwise(o.ADD, FLOAT64, const(float(start), FLOAT64), found)


METHODS: Final = {
    function.__name__: (function, signature(function))
    for function in (
        *(random, uniform, integers, choice, standard_normal, normal, standard_exponential, exponential),
        *(rayleigh, standard_cauchy, triangular),
    )
}


def drawn(function: Any, args: Any, kwargs: Any) -> ndarray | None:
    """Draw many numbers by a method of a generator for the GPU that is the default device; None where the host draws them."""
    generator, home = getattr(function, "__self__", None), devices.default()
    if home == devices.CPU or type(generator) is not np.random.Generator or type(generator.bit_generator) not in KINDS:
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
        words = KINDS[type(bits)](bits)
        found = method(words, size=count, **given) if words.known(4 * count) else None
        return None if found is None else wrap(devices.pinned(build.reshape(found, shape + found.shape[1:]), None))
