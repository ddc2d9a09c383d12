"""Arrays that are files: ``numpy.memmap``, whose operations are recorded.

In: maps of files.  Out: lazy arrays that kernels compute from the file, and results written to maps piece by piece.  Promise: nothing
here has the file in memory; what was recorded of a map keeps the values from before a write through lazynp.  What others write to the
file is seen by whatever is computed afterwards.

``namespace/routines/maps.py`` is NumPy's class of maps with its operations recorded: ``conversion.of_map`` makes a leaf over the file's
pages (a part that is not contiguous is a lens over the whole), which is not counted as memory held. ``np.asarray(map)`` is the map's
memory, from outside like any other (``maps.shown``): what was recorded of the file is computed before, for writes to it are not reported
any more. What cannot be written through is still read from the file where it is computed with. A write to a map computes what is pending on
its leaves first, and a large result goes there piece by piece, of whose rows only each piece's are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.conversion import asarray, maps, shared
from lazynp.graph.node import Node
from lazynp.protocols import SHARED, to_host
from lazynp.scalars import CLASSES, force
from lazynp.storage import host, pending
from lazynp.viewing import view_slice

PIECE_BYTES: Final = 16 << 20  # of a result that goes to a map

_COMPUTING: Final = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "compress", "conj", "conjugate", "cumprod",
    "cumsum", "dot", "max", "mean", "min", "nonzero", "prod", "repeat", "round", "searchsorted", "std", "sum", "take", "trace", "var",
)  # fmt: skip
_WRITING: Final = ("byteswap", "fill", "partition", "put", "resize", "setfield", "sort")

# NumPy's functions whose result is, or tells of, the memory of what they are given.
_SHOWING: Final = frozenset((
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "diagonal", "dsplit", "expand_dims",
    "flip", "fliplr", "flipud", "hsplit", "imag", "matrix_transpose", "may_share_memory", "moveaxis", "ndim", "permute_dims", "ravel",
    "real", "reshape", "rollaxis", "rot90", "shape", "shares_memory", "size", "split", "squeeze", "swapaxes", "transpose", "vsplit",
))  # fmt: skip
_WRITERS: Final = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))


class memmap(np.memmap):
    """Make an array of a file; operations on it are recorded, and computed from the file.

    Parts and views are maps, too; ``out=``, slice writes and ``+=`` go to the file, large results piece by piece, and ``flush`` works.
    Whatever else is computed of a map is an ordinary array.  See :class:`numpy.memmap` for the parameters.
    """

    @property
    def tells_of_writes(self) -> bool:
        """Tell whether lazynp knows of writes; classes of users that inherit from this one behave as NumPy's."""
        return type(self) is memmap

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        if type(self) is not memmap:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        out = kwargs.get("out", ())
        if method == "at" or any(isinstance(x, memmap) for x in out):
            return _written(ufunc, method, inputs, kwargs)
        return SHARED["__array_ufunc__"](self, ufunc, method, *_recorded(inputs), **_recorded(kwargs))

    def __array_function__(self, func: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any) -> Any:
        if type(self) is not memmap:
            return super().__array_function__(func, types, args, kwargs)
        if func.__name__ in _SHOWING and all(issubclass(kind, np.ndarray) for kind in types):
            return super().__array_function__(func, types, args, kwargs)
        if func.__name__ in _WRITERS or isinstance(kwargs.get("out"), memmap):
            target = kwargs.get("out", args[0] if args else None)
            if isinstance(target, memmap):
                _before_write(target)
            return func(*to_host(_plain(args), func.__name__), **to_host(_plain(kwargs), func.__name__))
        kinds = [kind for kind in types if not issubclass(kind, np.memmap)]
        return SHARED["__array_function__"](self, func, kinds, _recorded(args), _recorded(kwargs))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if type(self) is not memmap:
            return found
        return asarray(found.view(np.ndarray)) if isinstance(found, memmap) and _file(found) is None else found

    def astype(  # type: ignore[override]
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """Convert the elements; see :meth:`numpy.ndarray.astype`."""
        if type(self) is not memmap or (not copy and np.dtype(dtype) == self.dtype):
            return super().astype(dtype, order, casting, subok, copy)
        return asarray(self).astype(dtype, order, casting, subok, copy)

    def __setitem__(self, key: Any, value: Any) -> None:
        _before_write(self)
        target = np.ndarray.__getitem__(self, key) if type(value) is ndarray else None
        if isinstance(target, np.ndarray) and np.may_share_memory(target, self):
            _store(target.view(np.ndarray), value)
        else:
            self.view(np.ndarray)[key] = host(value) if type(value) is ndarray or type(value) in CLASSES else _plain(value)


def _method(name: str) -> Callable[..., Any]:
    def compute(self: memmap, *args: Any, **kwargs: Any) -> Any:
        return getattr(asarray(self) if type(self) is memmap else super(memmap, self), name)(*args, **kwargs)

    return compute


def _writing(name: str) -> Callable[..., Any]:
    def write(self: memmap, *args: Any, **kwargs: Any) -> Any:
        _before_write(self)
        return getattr(np.memmap, name)(self, *to_host(args, name), **to_host(kwargs, name))

    return write


for _names, _make in ((_COMPUTING, _method), (_WRITING, _writing)):
    for _name in _names:
        _function = _make(_name)
        _function.__name__, _function.__doc__ = _name, getattr(np.ndarray, _name).__doc__
        setattr(memmap, _name, _function)


def _recorded(given: Any) -> Any:
    """The arguments of a call, with lazy arrays in place of maps."""
    return _replaced(given, asarray)


def _plain(given: Any) -> Any:
    """The arguments of a call, with NumPy's arrays in place of maps."""
    return _replaced(given, lambda x: x.view(np.ndarray))


def _replaced(given: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(given, np.memmap):
        return change(given)
    if type(given) in (tuple, list):
        return type(given)([_replaced(x, change) for x in given])
    if type(given) is dict:
        return {key: _replaced(x, change) for key, x in given.items()}
    return given


def shown(x: Any, dtype: Any = None, order: str | None = None, copy: bool | None = None) -> Any:
    """Return a map as NumPy's array, for a caller who is to see its memory, if nothing has to be converted: else the map."""
    if copy or x.dtype != np.dtype(x.dtype if dtype is None else dtype):
        return x
    if not (order is None or order in "AK" or (x.flags.f_contiguous if order == "F" else x.flags.c_contiguous)):
        return x
    if type(x) is memmap and x.flags.writeable and _file(x) is not None:
        _before_write(x)  # writes will not be reported any more
        shared.add(_file(x))
    return x.view(np.ndarray)


# Writing -----------------------------------------------------------------------------------------------------------------


def _file(x: Any) -> Any:
    """Return the mapped file; None for an array that was computed of a map, by NumPy's own methods."""
    return x._mmap


def _before_write(x: memmap) -> None:
    """Compute what was recorded of a file; what is its elements themselves gets memory of its own."""
    file = _file(x)
    leaves = None if file is None else maps.get(file)
    if not leaves:
        return
    force([node for node in pending() if _reads(node, leaves)], "a write to a map")
    for node in list(leaves):
        if node.buffer is not None:
            node.buffer.moved(node.buffer.array.copy())
    leaves.clear()


def _reads(node: Node, leaves: Any) -> bool:
    """Tell whether a pending node needs one of some leaves."""
    seen = {node}
    waiting = [node]
    while waiting:
        for source in waiting.pop().src:
            if source in leaves:
                return True
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return False


def _written(ufunc: np.ufunc, method: str, inputs: Any, kwargs: Any) -> Any:
    """A ufunc whose result goes to a map."""
    out = kwargs.get("out", ()) if method != "at" else inputs[:1]
    for x in out:
        if isinstance(x, memmap):
            _before_write(x)
    if (
        method != "__call__"
        or len(out) != 1
        or kwargs.get("where", True) is not True
        or np.broadcast_shapes(*[np.shape(x) for x in inputs]) != out[0].shape
    ):
        found = getattr(ufunc, method)(*to_host(_plain(inputs), ufunc.__name__), **to_host(_plain(kwargs), ufunc.__name__))
        return found if not out or method == "at" else out[0] if len(out) == 1 else out
    target = out[0].view(np.ndarray)
    if not target.flags.writeable:
        raise ValueError("output array is read-only")
    options = {key: value for key, value in kwargs.items() if key != "out"}
    casting = options.get("casting", "same_kind")
    given = _plain(inputs)
    crossed = any(isinstance(x, np.ndarray) and np.may_share_memory(x, target) and not _is_same(x, target) for x in given)
    for piece in [...] if crossed else _pieces(target):
        parts = [_part(x, target, piece) for x in inputs]
        value = ufunc(*parts, **options)
        to = target[piece]
        if not np.can_cast(value.dtype, target.dtype, casting):
            return ufunc(*to_host(given, ufunc.__name__), out=target, **options)  # NumPy's error
        np.copyto(to, host(value) if type(value) is ndarray else np.asarray(value), casting=casting)
        _not_kept(inputs)
    return out[0]


def _store(target: np.ndarray[Any, Any], value: ndarray) -> None:
    """Write an array to a map, piece by piece."""
    for piece in _pieces(target):
        target[piece] = host(wrap(node_of(_part(value, target, piece))))  # of the piece alone: what is read of a view computes its base
        _not_kept([value])


def _not_kept(values: Iterable[Any]) -> None:
    """Let the next piece compute its own part of what is large, which is not kept because a second program needs it."""
    waiting = [node_of(x) for x in values if type(x) is ndarray]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if prod(node.shape) * node.dtype.itemsize > PIECE_BYTES:
            node.computed = False
        for source in node.src:
            if source not in seen:
                seen.add(source)
                waiting.append(source)


def _is_same(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    a, b = x.__array_interface__, y.__array_interface__
    return a["data"][0] == b["data"][0] and x.shape == y.shape and x.strides == y.strides and x.dtype == y.dtype


def _pieces(target: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Yield keys of parts of some megabytes, in order."""
    if target.ndim == 0 or target.nbytes <= PIECE_BYTES:
        yield ...
        return
    step = max(1, PIECE_BYTES * target.shape[0] // target.nbytes)
    for start in range(0, target.shape[0], step):
        yield slice(start, start + step)


def _part(x: Any, target: np.ndarray[Any, Any], piece: Any) -> Any:
    """Return what a piece of the result needs of an operand, which may be broadcast."""
    if piece is not ... and getattr(x, "ndim", 0) == target.ndim and x.shape[0] == target.shape[0]:
        if type(x) is not ndarray:
            return x[piece]
        start, stop, _ = piece.indices(x.shape[0])  # where parts are asked for one by one all is computed, but by this way
        shape = x.shape
        return view_slice(x, shape, ((start, 1), *[(0, 1)] * (len(shape) - 1)), (stop - start, *shape[1:]))
    return x


FUNCTIONS: Final = {"memmap": memmap}
