"""Accumulating at positions, on a GPU: ``ufunc.at``, sums by number.

In: values by position, what to combine them with, flat positions.  Out: the values after every write counted.  Promise: the same bits as
one write after the other, in the order of the positions, whatever the dtype; what has a floating-point error, and a position with so
many writes that their order leaves little to do side by side, is left to NumPy.

The writes to a position are brought together by a stable sort.  Positions with about as many writes are taken together, most first: over
their k-th writes, k = 0, 1, ..., runs a reduction that combines in order, each thread for a position of its own.

A position takes up to ``ROWS * PASSES`` (4,080) writes, or more if these are at most one write in ``SHARE``; beyond that, floats go to the
host.  Whole numbers and other exact operations have no order to keep.  Functions that are no reduction (``divide.at``) go write by write:
up to ``STEPS`` of them, more for long arrays.  A few positions of the host's in a small array are written in its host copy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.conversion import asarray
from lazynp.engine import devices
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.build import cast, const, elementwise, expand, gather, reshape
from lazynp.graph.dtypes import BOOL, FLOAT16, INT64, REAL_OF, DType
from lazynp.graph.node import Node
from lazynp.namespace.device.placement import on_gpu
from lazynp.namespace.device.scattering import REFUSALS, positions, repeats, scattered
from lazynp.namespace.routines.joining import concatenate
from lazynp.namespace.routines.selecting import argsort, nonzero, searchsorted
from lazynp.namespace.ufunc.loops import truth
from lazynp.namespace.ufunc.table import ON_BOOL, REDUCTIONS
from lazynp.scalars import force
from lazynp.storage import DRAFT_BYTES, host

ROWS: Final = 255
"""Writes that one reduction takes: with the value before them as many numbers as it combines strictly in order."""

PASSES: Final = 16
"""Reductions of one position, one after the other, that are always worth it."""

STEPS: Final = 16
"""The same for functions that are no reduction: they are called for all positions' first writes, then for all second ones, and so on."""

WORTH: Final = 1 << 16
"""More calls than that are worth it where each has so many writes."""

SHARE: Final = 64
"""Beyond that, a position that takes more than one write in so many would keep one thread busy while all others wait."""

FEW: Final = 16
"""Positions on the host that are written there if the array is small."""

NEUTRAL: Final = {o.ADD: -0.0, o.MULTIPLY: 1, o.BITWISE_XOR: 0}  # for the others the last value again: of equal ones it decides
WHOLE: Final = {o.FMIN: o.MINIMUM, o.FMAX: o.MAXIMUM}  # of numbers that are never NaN
_RING: Final = frozenset({o.ADD, o.MULTIPLY, o.BITWISE_AND, o.BITWISE_OR, o.BITWISE_XOR})


def at(of: Any, a: ndarray, key: Any, values: list[Node]) -> bool:
    """``of.at(a, key, *values)`` on the GPU that ``a`` belongs to; tells whether it was done."""
    if not on_gpu(a) or _is_little(a, key, values):
        return False
    modes = _strict()
    with devices.making(a.device), np.errstate(all="ignore"):
        try:
            where = positions(a.shape, key)
            if where is None:
                return False
            sources = [_spread(node, where.shape) for node in values]
            if where.size:
                target, found = combined(of, reshape(node_of(a), (a.size,)), _flat(where), sources, repeats(key), modes)
                a._write(scattered(a, wrap(target), cast(found, a.dtype), False))
        except (*REFUSALS, FloatingPointError):
            return False
    return True


def _is_little(a: ndarray, key: Any, values: list[Node]) -> bool:
    """Tell whether a few numbers of the host go into a small array: in a loop these are quicker written on its host copy."""
    parts = key if type(key) is tuple else (key,)
    return (
        a.nbytes <= DRAFT_BYTES
        and not any(type(part) is ndarray or np.size(part) > FEW for part in parts)
        and all(node.op is o.CONST or (node.buffer is not None and node.buffer.place is None) for node in values)
    )


class TooBusyError(ValueError):
    """A position takes so many writes that NumPy is as quick."""


def combined(
    of: Any, base: Node, where: ndarray, sources: list[Node], several: bool = True, modes: dict[str, Any] | None = None
) -> tuple[Node, Node]:
    """Return (unique positions, new values there): what ``of.at`` makes of the values in ``base``.

    Parameters
    ----------
    of : ufunc
    base : Node
        All values, one-dimensional.
    where : ndarray
        Flat positions; ``several`` where one may be there more than once.
    sources : list of Node
        The second operand, if there is one: a value for each position, or one for all.
    modes : dict
        What floating-point errors do, as ``numpy.errstate`` takes it; without it they are ignored.
    """
    modes = modes or {}
    if not several:
        return node_of(where), _called(of, gather(base, node_of(where)), sources, modes)
    writes = _Writes(where)
    start = gather(base, writes.target)
    reduction = _reduction(of, base.dtype, sources)
    if reduction is not None:
        op, dtype, source = reduction
        with np.errstate(**modes):
            found = _reduced(op, dtype, truth(start) if dtype == BOOL else start, source, writes)
        if op in (o.MAXIMUM, o.MINIMUM) and dtype.char in "fd" and modes.get("invalid", "ignore") != "ignore":
            _refuse_nan(found)
        return writes.target, found
    if writes.most > STEPS and writes.most * WORTH > where.size:
        raise TooBusyError
    busy = host(searchsorted(wrap(elementwise(o.NEGATIVE, INT64, writes.count)), np.arange(-writes.most, 0)[::-1]), "ufunc.at")
    done: list[Node] = []
    for k, n in enumerate(busy.tolist()):  # as many positions take more than k + 1 writes
        m = start.shape[0]
        number = elementwise(o.ADD, INT64, _part(writes.first, 0, m), const(k, INT64))
        start = _called(of, start, [_picked(node, writes.order, number) for node in sources], modes)
        force([start], "ufunc.at")
        done.append(_part(start, n, m))
        start = _part(start, 0, n)
    return writes.target, build.concat(done[::-1], 0)


def _strict() -> dict[str, Any]:
    """Floating-point errors that are not ignored are raised: NumPy, asked again, has the words for them."""
    return {kind: "ignore" if how == "ignore" else "raise" for kind, how in np.geterr().items()}


def _flat(x: ndarray) -> ndarray:
    return wrap(build.contiguous(reshape(node_of(x), (x.size,))))


def _spread(node: Node, shape: tuple[int, ...]) -> Node:
    """A value for each position; one for all stays one."""
    if np.broadcast_shapes(node.shape, shape) != shape:
        raise ValueError
    return reshape(node, ()) if build.size(node) == 1 else build.contiguous(reshape(expand(node, shape), (int(np.prod(shape)),)))


def _part(x: Node, start: int, end: int) -> Node:
    return build.slice_(x, ((start, 1),), (end - start,))


def _called(of: Any, start: Node, sources: list[Node], modes: dict[str, Any]) -> Node:
    """``of(start, *sources)``, converted to the dtype of ``start`` whatever it is, as ``of.at`` does."""
    out = wrap(build.contiguous(start))
    with np.errstate(**modes):
        of(out, *map(wrap, sources), out=out, casting="unsafe")
    return node_of(out)


class _Writes:
    """Flat positions brought together, those with most writes first.

    Attributes
    ----------
    target : Node
        The positions, each once.
    order : Node
        The numbers of the writes; those to one position are neighbours, in order.
    first, count : Node
        Where the writes to each position begin in ``order``, and how many they are; at the end is one position more, with none.
    most : int
        The largest count.
    """

    __slots__ = ("count", "first", "most", "order", "target")

    def __init__(self, where: ndarray) -> None:
        order = argsort(where, kind="stable")
        place = where[order]
        starts = nonzero(concatenate([asarray([True]), place[1:] != place[:-1]]))[0]
        total = asarray([where.size])
        count = concatenate([starts[1:], total]) - starts
        rank = argsort(-count, kind="stable")
        first = starts[rank]
        self.target = node_of(place[first])
        self.order = node_of(order)
        self.first = node_of(concatenate([first, total]))
        self.count = node_of(concatenate([count[rank], asarray([0])]))
        most = _part(self.count, 0, 1)
        force([self.target, self.order, self.first, self.count, most], "ufunc.at")
        self.most = int(host(wrap(most), "ufunc.at")[0])


def _picked(source: Node, order: Node, number: Node) -> Node:
    """The operand of writes that are numbered as ``order`` has them."""
    return gather(source, gather(order, number)) if source.shape else source


def _refuse_nan(found: Node) -> None:
    """Leave it to NumPy to warn of NaN: its loops for maxima and minima, and only they, compare as the processor does."""
    unknown = wrap(build.reduce(o.BITWISE_OR, elementwise(o.ISNAN, BOOL, found), (0,)))
    force([found, node_of(unknown)], "ufunc.at")
    if host(unknown, "ufunc.at"):
        raise FloatingPointError


# Reductions -------------------------------------------------------------------------------------------------------------------


def _reduction(of: Any, dtype: DType, sources: list[Node]) -> tuple[o.Op, DType, Node] | None:
    """The combining operation, its dtype and its operand where ``of.at`` is a reduction; None for what is not."""
    name = "add" if of.__name__ == "subtract" else of.__name__
    if name not in REDUCTIONS:
        return None
    op, truths = REDUCTIONS[name]
    (source,) = sources
    if truths:
        return op, BOOL, truth(source)
    loop = of.resolve_dtypes((dtype, source.dtype, dtype), casting="unsafe")
    # Integers of any length are the same modulo a power of two.
    whole = op in _RING and all(each.kind in "iu" for each in (dtype, *loop))
    if not whole and (set(loop) != {dtype} or (dtype.kind == "c" and op is not o.ADD) or (dtype == FLOAT16 and op is o.ADD)):
        return None  # of float16 a reduction adds up in float32
    if dtype == BOOL:
        op = ON_BOOL.get(op, op)
    elif dtype.kind != "f":
        op = WHOLE.get(op, op)
    source = cast(source, dtype)
    return op, dtype, elementwise(o.NEGATIVE, dtype, source) if name != of.__name__ else source


def _reduced(op: o.Op, dtype: DType, start: Node, source: Node, writes: _Writes) -> Node:
    """Compute what a reduction makes of the values that positions start with and of the writes to each."""
    if dtype.kind == "c":
        real = REAL_OF[dtype]
        parts = [_reduced(op, real, elementwise(p, real, start), elementwise(p, real, source), writes) for p in (o.REAL, o.IMAG)]
        return elementwise(o.COMPLEX, dtype, *parts)
    if dtype.kind == "f" and writes.most > ROWS * PASSES and writes.most * SHARE > build.size(writes.order):
        raise TooBusyError
    sizes = [1, 4, 16, 64, ROWS]
    while sizes[-1] < writes.most:
        sizes.append(4 * sizes[-1])
    ends = host(searchsorted(wrap(elementwise(o.NEGATIVE, INT64, writes.count)), -np.asarray(sizes)), "ufunc.at").tolist()
    # One value more: a reduction of a single column would not be one along columns.
    start = build.concat([start, _part(start, 0, 1)], 0)
    done: list[Node] = []
    end = build.size(writes.target)
    for size, begin in zip(sizes, ends, strict=True):
        if begin < end:
            done.append(_part(_column(op, start, source, writes, (begin, max(end, begin + 2)), min(size, writes.most)), 0, end - begin))
        end = begin
    return build.concat(done[::-1], 0)


def _column(op: o.Op, start: Node, source: Node, writes: _Writes, bounds: tuple[int, int], size: int) -> Node:
    """The positions within bounds, each with at most ``size`` writes."""
    value, first, count = [_part(node, *bounds) for node in (start, writes.first, writes.count)]
    rows = size if value.dtype.kind != "f" else ROWS
    for done in range(0, size, rows):
        if done:
            force([value], "ufunc.at")
        value = _rows(op, value, source, writes.order, first, count, done, min(rows, size - done))
    return value


def _rows(op: o.Op, value: Node, source: Node, order: Node, first: Node, count: Node, done: int, size: int) -> Node:
    """The values after the next ``size`` writes to each position; row 0 of what is reduced are the values before."""
    dtype = value.dtype
    row = reshape(build.iota(size + 1, 0, 1, INT64), (size + 1, 1))
    number = elementwise(o.ADD, INT64, row, const(done - 1, INT64))
    last = elementwise(o.SUBTRACT, INT64, count, const(1, INT64))
    place = elementwise(o.ADD, INT64, elementwise(o.MINIMUM, INT64, number, last), first)
    written = _picked(source, order, elementwise(o.MAXIMUM, INT64, place, const(0, INT64)))
    if op in NEUTRAL:
        written = elementwise(o.WHERE, dtype, elementwise(o.LESS, BOOL, number, count), written, const(NEUTRAL[op], dtype))
    terms = elementwise(o.WHERE, dtype, elementwise(o.EQUAL, BOOL, row, const(0, INT64)), value, written)
    return summed(terms) if op is o.ADD else build.reduce(op, terms, (0,))


def summed(terms: Node) -> Node:
    """The sum over the first axis.  Ours begins with +0.0, which is seen where all terms are -0.0."""
    found = build.reduce(o.ADD, terms, (0,))
    if terms.dtype.kind != "f":
        return found
    negative = build.reduce(o.BITWISE_AND, elementwise(o.SIGNBIT, BOOL, terms), (0,))
    zero = elementwise(o.EQUAL, BOOL, found, const(0, terms.dtype))
    return elementwise(o.WHERE, terms.dtype, elementwise(o.BITWISE_AND, BOOL, negative, zero), const(-0.0, terms.dtype), found)
