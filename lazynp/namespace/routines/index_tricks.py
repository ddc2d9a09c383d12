"""Arrays by indexing: ``r_[...]``, ``c_[...]``, ``mgrid[...]``, ``ogrid[...]``.

In: slices, arrays and numbers between brackets.  Out: joined arrays, or grids of ranges.  Promise: NumPy's reading of the brackets, with
its weak numbers and directives; nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, prod
from sys import _getframe
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.arrays import wrap
from lazynp.graph.dtypes import INT64, NATIVE
from lazynp.scalars import is_scalar
from lazynp.values import config
from lazynp.values.loading import late, load

if TYPE_CHECKING:
    from lazynp.array import calls
    from lazynp.graph import build
    from lazynp.namespace.routines import creation
    from lazynp.namespace.ufunc import promotion
else:
    calls, build, creation, promotion = late("array.calls", "graph.build", "namespace.routines.creation", "namespace.ufunc.promotion")

# Modules of which small grids, which NumPy makes, need nothing.
_JOINING, _RANGES, _SHAPING = [f"lazynp.namespace.routines.{name}" for name in ("joining", "ranges", "shaping")]


def _part(key: slice) -> tuple[Any, Any, Any, bool]:
    """Start, stop, step (or number of points) of a slice, and whether it is a number of points."""
    start, stop, step = [x.concrete("slice") if is_scalar(x) else x for x in (key.start, key.stop, key.step)]
    return 0 if start is None else start, stop, 1 if step is None else step, isinstance(step, (complex, np.complexfloating))


_PLAIN: Final = frozenset({int, float, complex, type(None)})


def _lengths(key: Any) -> list[float]:
    """Points of the slices in a key of plain numbers; infinitely many where it is not known."""
    found = []
    for part in key if type(key) is tuple else (key,):
        if type(part) is slice:
            start, stop, step = part.start, part.stop, part.step
            if not _PLAIN.issuperset((type(start), type(stop), type(step))) or complex in (type(start), type(stop)) or step == 0:
                return [inf]
            found.append(abs(step) if type(step) is complex else ((stop or 0) - (start or 0)) / (1 if step is None else step))
    return found


def _short(numpys: Any, slow: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``numpys[key]`` by NumPy where everything is in memory, else ``slow(key)``."""

    def theirs(key: Any) -> Any:
        return numpys[key]

    def call(key: Any) -> Any:
        found = calls.answer(theirs, (key,), {})
        return slow(key) if found is NotImplemented else found

    made: Callable[[Any], Any] = core.function(call, theirs, "[]", frozenset(), 0)
    return made


class Grid:
    """Coordinates of a grid by slices: ``mgrid`` and ``ogrid``; see :data:`numpy.mgrid`."""

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse
        self._short = _short(np.ogrid if sparse else np.mgrid, self._grid)

    def __getitem__(self, key: Any) -> Any:
        if type(key) is tuple:
            lengths = _lengths(key)
            if len(lengths) == len(key) and prod([max(n + 1, 1) for n in lengths]) * len(lengths) <= config.at_hand:
                return self._short(key)
        return self._grid(key)

    def _grid(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._line(key)
        if any(not isinstance(part, slice) or isinstance(part.start, complex) or isinstance(part.stop, complex) for part in key):
            return (np.ogrid if self.sparse else np.mgrid)[key]
        sizes: list[int] = []
        numbers: list[Any] = [0]
        steps: list[Any] = []
        for part in key:
            start, stop, step, counted = _part(part)
            if counted:
                count = int(abs(step))
                numbers += [start, stop, abs(step)]
                step = (stop - start) / float(count - 1) if count != 1 else count
            else:
                count = ceil((stop - start) / step)
                numbers += [start, stop, step]
            sizes.append(count)
            steps.append((start, step))
        dtype = np.result_type(*numbers)
        if dtype not in NATIVE:
            return (np.ogrid if self.sparse else np.mgrid)[key]
        if prod([max(n, 1) for n in sizes]) * max(len(sizes), 1) <= config.at_hand:
            return self._short(tuple([slice(*_part(part)[:3]) for part in key]))
        axes = []
        for k, (n, (start, step)) in enumerate(zip(sizes, steps, strict=True)):
            points = wrap(build.cast(build.iota(max(n, 0), 0, 1, INT64), dtype)) * step + start
            line = points if self.sparse else points.astype(dtype, copy=False)
            axes.append(line.reshape((1,) * k + (line.shape[0],) + (1,) * (len(sizes) - k - 1)))
        if self.sparse:
            return tuple(axes)
        if not axes:
            return wrap(build.reshape(build.cast(build.iota(0, 0, 1, INT64), dtype), (0,)))
        return load(_JOINING).stack(load(_SHAPING).broadcast_arrays(*axes))

    def _line(self, key: slice) -> Any:
        start, stop, step, counted = _part(key)
        if not counted:
            return creation.arange(start, stop, step)
        number = abs(step)
        count = int(number)
        step = (stop - start) / float(count - 1) if count != 1 else count
        return creation.arange(0, count, 1, dtype=np.result_type(start, stop, number)) * step + start


class Joiner:
    """Arrays, ranges and numbers joined by brackets: ``r_`` and ``c_``; see :data:`numpy.r_`."""

    def __init__(self, axis: int, ndmin: int = 1, trans1d: int = -1) -> None:
        self.axis, self.ndmin, self.trans1d = axis, ndmin, trans1d
        self._short = _short(np.c_ if trans1d == 0 else np.r_, self._joined)

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            frame: Any = _getframe(1)
            return np.bmat(key, frame.f_globals, frame.f_locals)
        return (self._short if sum(_lengths(key)) <= config.at_hand else self._joined)(key)

    def _joined(self, key: Any) -> Any:
        if promotion.has_subclass(*(key if isinstance(key, tuple) else (key,))):
            return (np.c_ if self.trans1d == 0 else np.r_)[key]
        axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
        matrix = column = False
        parts: list[Any] = []
        kinds: list[Any] = []
        for k, item in enumerate(key if isinstance(key, tuple) else (key,)):
            if isinstance(item, str):
                if k:
                    raise ValueError("special directives must be the first entry.")
                if item in ("r", "c"):
                    matrix, column = True, item == "c"
                else:
                    axis, ndmin, trans1d = _directive(item, ndmin, trans1d)
                continue
            if isinstance(item, slice):
                start, stop, step, counted = _part(item)
                part = load(_RANGES).linspace(start, stop, int(abs(step))) if counted else creation.arange(start, stop, step)
                if ndmin > 1:
                    part = creation.array(part, copy=None, ndmin=ndmin)
                    if trans1d != -1:
                        part = part.swapaxes(-1, trans1d)
                kinds.append(part.dtype)
            elif type(item) in np.ScalarType or is_scalar(item):
                part = item
                kinds.append(item if type(item) in np.ScalarType else item.dtype)
            else:
                part = _placed(creation.array(item, copy=None), ndmin, trans1d)
                kinds.append(part.dtype)
            parts.append(part)
        if parts:
            dtype = np.result_type(*kinds)
            parts = [creation.array(part, dtype, copy=None, ndmin=ndmin) for part in parts]
        joined = load(_JOINING).concatenate(tuple(parts), axis)
        if not matrix:
            return joined
        made = np.asmatrix(np.asarray(joined))
        return made.T if joined.ndim == 1 and column else made


def _directive(text: str, ndmin: int, trans1d: int) -> tuple[int, int, int]:
    """``"axis"``, ``"axis,ndmin"`` or ``"axis,ndmin,trans1d"``."""
    try:
        numbers = [int(x) for x in text.split(",")]
    except ValueError as error:
        raise ValueError(f"unknown special directive {text!r}" if "," in text else "unknown special directive") from error
    return numbers[0], numbers[1] if len(numbers) > 1 else ndmin, numbers[2] if len(numbers) == 3 else trans1d


def _placed(x: Any, ndmin: int, trans1d: int) -> Any:
    """An array of at least ``ndmin`` axes; its own stand where ``trans1d`` says."""
    have = x.ndim
    grown = x if have >= ndmin else x.reshape((1,) * (ndmin - have) + x.shape)
    if trans1d == -1 or have >= ndmin:
        return grown
    new = ndmin - have
    first = trans1d + new + 1 if trans1d < 0 else trans1d
    order = list(range(ndmin))
    return grown.transpose(order[:first] + order[new:] + order[first:new])


FUNCTIONS: Final = {"mgrid": Grid(False), "ogrid": Grid(True), "r_": Joiner(0), "c_": Joiner(-1, 2, 0)}
