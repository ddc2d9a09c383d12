"""Values at hand: small arrays are computed at the call, by NumPy's own loops.

In: a call whose arrays all exist in host memory and have at most ``config.at_hand`` elements.  Out: NumPy's answer, its arrays as cells of
ours.  Promise: sizes, and whether the values exist, decide, so every run of a program takes the same way; the bits, errors and warnings
are NumPy's; whoever holds memory at hand, here or outside, sees every write, for what a recorded expression captures is copied.

A cell is at hand when its ``_base`` is a NumPy array: the memory itself, of which views of the cell are NumPy's views.  Its ``_view`` is
then whose memory that is (what ``base`` shows), its ``_node`` is nothing.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from math import ceil, prod
from operator import setitem
from types import FunctionType
from typing import Any, Final

import numpy as np

from lazynp import arrays, protocols
from lazynp.array import core
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.dtypes import FLOAT64, NATIVE
from lazynp.graph.errstate import variable
from lazynp.graph.floating import heard, listen_to_all, listening, stop, tell_here
from lazynp.graph.node import Node
from lazynp.scalars import CLASSES, OF_TYPE, scalar_of_value
from lazynp.values import config, forking

Memory = np.ndarray[Any, Any]

if variable is not None:
    core.listen(variable, listening, heard, tell_here)
_new = core.Cell.__new__
_MEMORY: Final = np.ndarray
_WRITING: Final = frozenset(
    [
        np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis, np.ndarray.sort, np.ndarray.partition,
        np.ndarray.fill, np.ndarray.put,
    ]
)  # fmt: skip
NUMBERS: Final = frozenset({bool, int, float, complex, *OF_TYPE})
"""Operands that NumPy takes as they are."""
_AS_THEY_ARE: Final = frozenset({*NUMBERS, str, type(None), slice, type(Ellipsis), type, type(np._NoValue)})
_INTEGERS: Final = frozenset({int, np.int64})
_PLAIN_PARTS: Final = frozenset({int, slice, type(None), type(Ellipsis)})
COPIED: Final = 1 << 20
"""Bytes up to which a large value that others hold too is copied for a small write."""
_CHARS: Final = frozenset(dtype.char for dtype in NATIVE) | frozenset("lLqQ")


# Functions that warn of very few elements.
_FEW: Final = dict.fromkeys(("mean", "std", "var"), 3)
# Python functions of NumPy's that never warn of anything but floating-point errors, if they are given real numbers, and not very few.
_QUIET: Final = frozenset(
    {
        "all", "any", "amax", "amin", "append", "argmax", "argmin", "argsort", "around", "array_equal", "clip", "concatenate",
        "concat", "copy", "count_nonzero", "cross", "cumprod", "cumsum", "diff", "dot", "einsum", "expand_dims", "flatnonzero", "flip",
        "hstack", "inner", "matmul", "max", "mean", "min", "moveaxis", "nonzero", "outer", "prod", "ravel", "repeat", "reshape",
        "roll", "round", "searchsorted", "sort", "split", "squeeze", "stack", "std", "sum", "swapaxes", "take", "tensordot", "tile",
        "trace", "transpose", "tril", "triu", "var", "vdot", "vstack", "where", "solve", "inv", "det", "norm", "cholesky", "qr", "eigh",
        "zeros", "ones", "empty", "full", "arange", "eye", "identity", "zeros_like", "ones_like", "empty_like",
    }
)  # fmt: skip


class _Elsewhere(Exception):  # noqa: N818 - a turn of the road, not a mistake
    """An argument is not at hand."""


# Cells ------------------------------------------------------------------------------------------------------------------------


def cell(memory: Memory, owner: Any = None) -> arrays.ndarray:
    """The cell of memory that nobody else knows, or that NumPy's views of ``owner`` share."""
    x: arrays.ndarray = _new(arrays.ndarray)
    x._base = memory
    x._view = owner
    x._node = None
    x._readonly = False if owner is None else not memory.flags.writeable
    return x


def memory_of(x: arrays.ndarray) -> Memory | None:
    """Return what an array holds, if that is at hand; not to be written, for it may be a part of a large array."""
    base = x._base
    return base if type(base) is _MEMORY else _found(x)


def own_memory(x: arrays.ndarray) -> Memory | None:
    """The memory of a cell at hand, to be written; None for all others."""
    base = x._base
    if type(base) is not _MEMORY:
        _found(x)
        base = x._base
        if type(base) is not _MEMORY:
            return None
    return base


def _found(x: arrays.ndarray) -> Memory | None:
    """``memory_of`` an array that is not known to be at hand; if it is small and exists it is from now on."""
    base = x._base
    limit = config.at_hand
    if base is None:
        node = x._node
        buffer = node.buffer
        if buffer is None:
            sources = node.src  # before it is looked at: another thread may publish it
            if not _is_fill(node) or not limit or prod(node.shape) > limit:
                return None  # pending, as most operands here are
            return _taken(x, base, np.full(node.shape, sources[0].arg, node.dtype), None)
        if not limit or prod(node.shape) > limit:
            return None
        found = buffer.at_hand
        return None if found is None or buffer.device is not None else _taken(x, base, found.copy(), None)
    if not limit:
        return None
    if type(base) is not arrays.ndarray:
        return None if prod(base.shape) > limit or base.buffer.device is not None else _taken(x, base, base.array, None)
    view = x._view
    if prod(view.shape) > limit:
        return None
    if type(base._base) is not _MEMORY and (prod(base.shape) > limit or _found(base) is None):
        found = arrays.elements(x)
        return _part_of_fill(x, base._node) if found is None else found
    return _taken(x, base, arrays.shown(x, base._base)[...], view.owner)


def _part_of_fill(x: arrays.ndarray, node: Node) -> Memory | None:
    """Return what a view shows of a large array that is one number everywhere, and has no memory yet; None for all others."""
    sources = node.src
    if not _is_fill(node):
        return None
    view = x._view
    if not view.root_dtype == view.dtype == node.dtype:
        return None
    strides = x.strides
    order = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
    memory = np.full([view.shape[axis] for axis in order], sources[0].arg, node.dtype)
    return memory.transpose([order.index(axis) for axis in range(len(order))])


def _is_fill(node: Node) -> bool:
    sources = node.src  # before the operation is looked at: see ``build.is_filled``
    return node.op is o.EXPAND and sources[0].op is o.CONST


def _taken(x: arrays.ndarray, base: Any, memory: Memory, owner: Any) -> Memory:
    """Put ``x`` at hand; what its node and view were stays there for threads that are on the way to them."""
    if x._readonly:
        memory.flags.writeable = False
    with forking.graph:
        if x._base is not base:  # another thread was here first
            found: Memory = x._base
            return found
        if base is None:
            x._view = owner
            x._base = memory
        else:
            x._base = memory
            x._view = owner
    return memory


def captured(x: arrays.ndarray) -> Node:
    """A leaf with what the memory holds now, for an expression that is recorded."""
    memory: Memory = x._base
    if not memory.shape:
        return Node(o.CONST, (), memory[()], memory.dtype, ())
    if is_much(memory) and let_go(x, 1):
        found: Node = x._node
        return found
    return build.buffer(np.array(memory, order="C", copy=True))


def is_much(memory: Memory) -> bool:
    """Tell whether so much memory is at hand that copying it, or computing something costly of it by NumPy, is felt."""
    return memory.size > config.at_hand >> 2


def rooted(x: arrays.ndarray) -> tuple[arrays.ndarray, int]:
    """A cell at hand over C-contiguous memory that ``x`` shows a part of, and where in it ``x`` begins, in bytes."""
    return (x, 0) if x._base.flags.c_contiguous else whole(x)


def whole(x: arrays.ndarray) -> tuple[arrays.ndarray, int]:
    """``rooted``, with all of the memory."""
    memory: Memory = x._base
    owner = memory
    while type(owner.base) is _MEMORY:
        owner = owner.base
    laid = owner.transpose(sorted(range(owner.ndim), key=lambda axis: -abs(owner.strides[axis])))
    start: int = memory.__array_interface__["data"][0] - laid.__array_interface__["data"][0]
    return (x, 0) if laid is memory else (cell(laid, x if x._view is None else x._view), start)


# Elements ---------------------------------------------------------------------------------------------------------------------


def read(x: arrays.ndarray, memory: Memory, key: Any) -> Any:
    """``x[key]`` of an array at hand."""
    kind = type(key)
    if kind is arrays.ndarray or kind in CLASSES or kind is tuple or kind is list:
        key = _key(key)
    found = memory[key]
    if type(found) is not _MEMORY:
        return found
    base = found.base
    if base is not None and (base is memory or base is memory.base):
        return cell(found, x if x._view is None else x._view)
    if found.size > config.at_hand:
        return arrays.from_numpy(found, copy=base is not None)
    return cell(found, base)  # gathered, perhaps in another order


def _key(part: Any) -> Any:
    """A key, or a part of one, as NumPy takes it."""
    kind = type(part)
    if kind is arrays.ndarray:
        return arrays.host(part, "index")
    if kind in CLASSES:
        return part.concrete("index")
    if kind is tuple or kind is list:
        if _PLAIN_PARTS.issuperset(map(type, part)):
            return part
        return kind([_key(item) for item in part])
    return part


def gathered(x: arrays.ndarray, key: Any) -> Any:
    """``x[key]`` of a large array that exists, at few places: integer arrays at hand; else ``NotImplemented``."""
    limit = config.at_hand
    memory = arrays.elements(x) if limit else None
    if memory is None:
        return NotImplemented
    places: list[Any] = []
    found = []
    axis = 0
    rest = 1
    for part in key if type(key) is tuple else (key,):
        kind = type(part)
        if kind is arrays.ndarray:
            part = memory_of(part)
            kind = type(part)
        elif kind is list and _INTEGERS.issuperset(map(type, part)):
            part = np.array(part, np.intp)
            kind = _MEMORY
        if kind is _MEMORY and part.dtype.kind in "iu":
            places.append(part)
        elif kind is slice and axis < memory.ndim:
            rest *= memory.shape[axis]
        elif kind not in _INTEGERS:
            return NotImplemented
        axis += 1
        found.append(part)
    if not places:
        return NotImplemented
    try:
        if rest * prod(memory.shape[axis:]) * np.broadcast(*places).size > limit:
            return NotImplemented
    except ValueError:
        return NotImplemented
    value = memory[tuple(found)]
    return cell(value) if type(value) is _MEMORY else value


def write(memory: Memory, key: Any, value: Any) -> None:
    """``x[key] = value`` where the memory is at hand."""
    kind = type(key)
    if kind is arrays.ndarray or kind in CLASSES or kind is tuple or kind is list:
        key = _key(key)
    kind = type(value)
    if kind is arrays.ndarray:
        value = arrays.host(value, "a value at hand")
    elif kind in CLASSES:
        value = value.concrete("a value at hand")
    elif kind is list or kind is tuple:
        value = protocols.to_host(value, "a value at hand")
    elif (kind is float or kind is np.float64) and memory.dtype is FLOAT64:
        memory[key] = value  # nothing that could be told of
        return
    before = listen_to_all()
    try:
        if memory.dtype.kind != "c" and getattr(value, "dtype", None) is not None and value.dtype.kind == "c":
            at_users_line(setitem, (memory, key, value), {})
        else:
            memory[key] = value
    finally:
        stop(before)
        if heard:
            tell_here()


_SEQUENCES: Final = frozenset({list, tuple})


def listed(values: Any, dtype: Any) -> Any:
    """Make an array of a list of numbers, or of such lists; None of anything else, and where a conversion could warn."""
    if type(values) not in _SEQUENCES or not (dtype is None or dtype is float) or len(values) > config.at_hand:
        return None
    if not NUMBERS.issuperset(map(type, values)):
        if not _SEQUENCES.issuperset(map(type, values)) or sum(map(len, values)) > config.at_hand:
            return None
        for row in values:
            if not NUMBERS.issuperset(map(type, row)):
                return None
    memory = np.array(values, dtype)
    return cell(memory) if memory.dtype.char in _CHARS else memory


# Calls ------------------------------------------------------------------------------------------------------------------------


def result(value: Any, given: Sequence[arrays.ndarray] = ()) -> Any:
    """NumPy's answer as the caller of lazynp expects it; ``given`` are the cells it was computed from."""
    kind = type(value)
    if kind is _MEMORY:
        for x in given:
            if value is x._base:
                return x
        dtype = value.dtype
        if dtype.char not in _CHARS or not dtype.isnative:
            return value
        base = value.base
        if base is not None:
            for x in given:
                memory = x._base
                if type(memory) is _MEMORY and (base is memory or base is memory.base):
                    return cell(value, x if x._view is None else x._view)
        if value.size > config.at_hand:
            return arrays.from_numpy(value, copy=base is not None)
        return cell(value, base)
    if kind is tuple:
        return tuple([result(item, given) for item in value])
    if kind is list:
        return [result(item, given) for item in value]
    if isinstance(value, tuple) and hasattr(kind, "_make"):
        return kind._make([result(item, given) for item in value])
    return value


_ROOT: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep
_plain: Final[Any] = lambda function, args, kwargs: function(*args, **kwargs)  # noqa: E731, one line, whose number is the user's


def at_users_line(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function as from the user's line, so that Python's warnings name that line, in that module's registry."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_ROOT) and frame.f_back is not None:
        frame = frame.f_back
    code = _plain.__code__.replace(co_filename=frame.f_code.co_filename, co_firstlineno=frame.f_lineno)
    return FunctionType(code, frame.f_globals)(function, args, kwargs)


def _given(value: Any, cells: list[arrays.ndarray]) -> Any:
    """An argument as NumPy takes it; arrays of ours are remembered in ``cells``."""
    kind = type(value)
    if kind is arrays.ndarray:
        memory = memory_of(value)
        if memory is None:
            raise _Elsewhere
        cells.append(value)
        return memory
    if kind in _AS_THEY_ARE:
        return value
    if kind is tuple or kind is list:
        if len(value) > config.at_hand:
            raise _Elsewhere
        if NUMBERS.issuperset(map(type, value)):
            return value
        return kind([_given(item, cells) for item in value])
    if kind is _MEMORY:
        if value.size > config.at_hand or value.dtype.char not in _CHARS or not value.dtype.isnative:
            raise _Elsewhere
        return value
    if kind in CLASSES:
        known = value._value
        if known is None:
            raise _Elsewhere
        return known
    if kind is range and len(value) <= config.at_hand:
        return value
    if isinstance(value, (np.dtype, type)):
        return value
    raise _Elsewhere


ALWAYS: Final = 1 << 62


def answer(theirs: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], least: int = 0, warns_below: int = 0) -> Any:
    """NumPy's answer where all arguments are at hand (and ``least`` arrays among them), else ``NotImplemented``.

    ``warns_below``: of arrays with fewer elements it may give warnings that are not about floating-point errors, as all functions may of
    complex numbers.
    """
    if not config.at_hand:
        return NotImplemented
    cells: list[arrays.ndarray] = []
    values: list[Any] = []
    named = kwargs
    warns = warns_below == ALWAYS
    borrowed = False
    try:
        for value in args:
            kind = type(value)
            if kind is arrays.ndarray:
                memory = value._base
                if type(memory) is not _MEMORY:
                    memory = _found(value)
                    if memory is None:
                        return NotImplemented
                    borrowed = borrowed or type(value._base) is not _MEMORY
                if memory.size < warns_below or memory.dtype.kind == "c":
                    warns = True
                cells.append(value)
                values.append(memory)
            elif kind in _AS_THEY_ARE:
                values.append(value)
            else:
                values.append(_given(value, cells))
        if kwargs:
            named = {name: _given(value, cells) for name, value in kwargs.items()}
        if kwargs or len(values) != len(cells) or not all(type(value) is arrays.ndarray for value in args):  # in sequences, or by keyword
            borrowed = borrowed or any(type(x._base) is not _MEMORY for x in cells)
            warns = warns or any(x.dtype.kind == "c" for x in cells) or complex in map(type, values)
    except _Elsewhere:
        return NotImplemented
    if len(cells) < least or (borrowed and (kwargs.get("out") is not None or theirs in _WRITING)):
        return NotImplemented
    if borrowed:  # others may hold the large array's value: whatever writes is refused, and done by lazynp
        given = zip(args, values, strict=True)
        values = [_unwritable(value) if type(x) is arrays.ndarray and type(x._base) is not _MEMORY else value for x, value in given]
    before = listen_to_all()
    try:
        value = at_users_line(theirs, values, named) if warns else theirs(*values, **named)
    except ValueError as error:
        if borrowed and "read-only" in str(error):
            return NotImplemented
        raise
    finally:
        stop(before)
        if heard:
            tell_here()
    kind = type(value)
    if kind is _MEMORY:
        if borrowed and value.base is not None:
            return NotImplemented
        if (kwargs and value is kwargs.get("out")) or any(value is x for x in args):
            return value  # NumPy's own array, given for the result
    elif kind in OF_TYPE or (borrowed and _shows(value)):
        return value if kind in OF_TYPE else NotImplemented
    return result(value, cells)


def _unwritable(memory: Memory) -> Memory:
    """Return the same memory, read-only."""
    found = memory[...]
    found.flags.writeable = False
    return found


def _shows(value: Any) -> bool:
    """Tell whether a result of NumPy's may be a view of what it was computed from."""
    if isinstance(value, (tuple, list)):
        return any(map(_shows, value))
    return type(value) is _MEMORY and value.base is not None


def fits(a: Memory, b: Memory) -> bool:
    """Tell whether the broadcast result of two arrays at hand is small, too."""
    size = a.size * b.size
    limit = config.at_hand
    if size <= limit or a.shape == b.shape or not a.ndim or not b.ndim:
        return True
    try:
        return np.broadcast(a, b).size <= limit
    except ValueError:
        return True  # an error, which NumPy words


def of_two(function: Callable[[Any, Any], Any], a: arrays.ndarray, x: Memory, b: Any) -> Any:
    """A function of an array at hand and another operand, where that is at hand as well; else ``NotImplemented``."""
    kind = type(b)
    if kind is arrays.ndarray:
        y: Any = memory_of(b)
        if y is None or not fits(x, y):
            return NotImplemented
    elif kind in NUMBERS:
        y = b
    elif kind is _MEMORY:
        y = b
        if b.dtype.char not in _CHARS or b.size > config.at_hand or not fits(x, b):
            return NotImplemented
    elif kind in CLASSES and b._value is not None:
        y = b._value
    else:
        return NotImplemented
    before = listen_to_all()
    try:
        value = function(x, y)
    finally:
        stop(before)
        if heard:
            tell_here()
    return cell(value) if type(value) is _MEMORY else scalar_of_value(value)  # all operands were arrays without axes


def of_number(function: Callable[[Any, Any], Any], number: Any, x: Any) -> Any:
    """Apply a function to a number of NumPy's and an array, where that is at hand; else ``NotImplemented``."""
    if type(number) not in NUMBERS or type(x) is not arrays.ndarray:
        return NotImplemented
    memory = memory_of(x)
    return NotImplemented if memory is None else of_one(functools.partial(function, number), memory)


def of_one(function: Callable[[Any], Any], memory: Memory) -> Any:
    """A function of one array at hand."""
    before = listen_to_all()
    try:
        value = function(memory)
    finally:
        stop(before)
        if heard:
            tell_here()
    return cell(value) if type(value) is _MEMORY else scalar_of_value(value)


def into(function: Callable[[Any, Any], Any], memory: Memory, b: Any) -> Any:
    """A function that writes into an array at hand; what the other operand still needs is computed now."""
    kind = type(b)
    if kind is arrays.ndarray:
        b = arrays.host(b, "a value at hand")
    elif kind in CLASSES:
        b = b.concrete("a value at hand")
    elif kind not in NUMBERS and kind is not _MEMORY:
        return NotImplemented
    before = listen_to_all()
    try:
        return function(memory, b)
    finally:
        stop(before)
        if heard:
            tell_here()


def let_go(x: arrays.ndarray, others: int) -> bool:
    """Take memory that nobody else sees for a recorded value, so that what changes it next is recorded, too; tells whether it did.

    ``others`` are the caller's own references to the memory; a view or an export of it would be one more.
    """
    memory = x._base
    if type(memory) is not _MEMORY or memory.base is not None or not (memory.flags.carray and memory.shape):
        return False
    if sys.getrefcount(memory) > others + 3:  # the cell's, this function's, and what is asked
        return False
    x._node = build.buffer(memory)
    x._base = None
    return True


def writable(x: arrays.ndarray, large: bool = False) -> Memory | None:
    """Memory that a write to ``x`` goes to now: its own, its part of a large array that nobody else sees, or what is lent.

    ``large``: also a large part, where the array exists: with nothing recorded to share a kernel with, NumPy's loop is the shortest way.
    """
    memory = own_memory(x)
    if memory is not None:
        return memory
    base = x._base
    if base is not None and arrays.is_lent(base if type(base) is arrays.ndarray else x):
        return None if x._readonly else arrays.elements(x)
    if type(base) is not arrays.ndarray or not config.at_hand or x._readonly:
        return None
    small = prod(x._view.shape) <= config.at_hand
    return arrays.elements(x) if (small or large) and _has_own_memory(base, small) else None


def _has_own_memory(root: arrays.ndarray, small: bool = True) -> bool:
    """Tell whether writes may go to a large array's memory; for small ones it gets some of its own where that costs no more than it cost
    NumPy."""
    if root._base is not None:
        return True
    node = root._node
    fill = _is_fill(node)
    if node.buffer is None and not (fill and small):
        return False
    copy = small and (fill or build.size(node) * node.dtype.itemsize <= COPIED)
    del node  # the memory is the array's own if nobody else holds it
    return arrays.draft(root, copy=copy) is not None


def written(x: arrays.ndarray, root: arrays.ndarray, key: Any, lengths: Sequence[int], value: Any) -> bool:
    """Do ``x[key] = value`` on a part of a large array, where the value is at hand and the memory its own; tells whether it did.

    A large part takes numbers alone: there is nothing that could be computed where they are stored.
    """
    limit = config.at_hand
    if not limit:
        return False
    small = prod(lengths) <= limit
    kind = type(value)
    if kind is arrays.ndarray:
        if not small or memory_of(value) is None or not _has_own_memory(root):
            return False
        value = memory_of(value)
    elif (kind not in NUMBERS and (kind not in CLASSES or value._value is None)) or not _has_own_memory(root, small):
        return False
    memory = arrays.elements(x)
    if memory is None or value is None:
        return False
    write(memory, key, value)
    return True


# NumPy's functions and methods ----------------------------------------------------------------------------------------------------

# What is not NumPy's to answer: what calls back, is about lazynp's own objects, must not read outside the memory, or warns of writes.
NOT_AT_HAND: Final = frozenset(
    {
        "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "from_dlpack", "fromfunction",
        "frompyfunc", "apply_along_axis", "apply_over_axes", "piecewise", "resize", "as_strided", "array2string", "array_repr", "array_str",
        "vectorize", "einsum_path", "broadcast_arrays", "require", "indices", "mask_indices",
        "load",  # of maps and archives of arrays
        "unique_values",  # ours are in order
        "isclose", "allclose",  # they ask for the error state
    }
)  # fmt: skip

# Among them those of which the native core can: arrays of numbers, and what asks for an error state that is not changed there.
_CORES_OWN: Final = frozenset({"array", "asarray", "isclose", "allclose"})


def _shape_size(shape: Any = None, *rest: Any, **options: Any) -> int:
    """Elements of a shape argument."""
    return shape if type(shape) is int else prod(shape) if type(shape) is tuple and {int}.issuperset(map(type, shape)) else _LARGE


def _matrix_size(n: Any = None, m: Any = None, *rest: Any, **options: Any) -> int:
    """Elements of a matrix of n rows and, if given, m columns."""
    n, m = options.get("N", n), options.get("M", m)
    return n * (n if m is None else m) if type(n) is int and (m is None or type(m) is int) else _LARGE


def _square_size(n: Any = None, *rest: Any, **options: Any) -> int:
    return n * n if type(n) is int else _LARGE


def _range_size(*limits: Any, **options: Any) -> int:
    """Elements of a range between Python numbers."""
    if not limits or len(limits) > 3 or not _REAL.issuperset(map(type, limits)) or options.keys() - {"dtype", "device", "like"}:
        return _LARGE
    start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    try:
        return max(ceil((stop - start) / step), 0)
    except (ArithmeticError, ValueError):
        return _LARGE


def _spaced_size(start: Any = None, stop: Any = None, num: Any = 50, *rest: Any, **options: Any) -> int:
    """Elements of a space of ``num`` steps."""
    num = options.get("num", num)
    return num * _extent([x for x in (start, stop) if type(x) is not int]) if type(num) is int else _LARGE


_LARGE: Final = 1 << 62
_REAL: Final = frozenset({int, float})
# Functions whose arguments say how large their results are.
_SIZES: Final[dict[str, Callable[..., int]]] = {
    **dict.fromkeys(("zeros", "ones", "empty", "full"), _shape_size),
    **dict.fromkeys(("eye", "tri"), _matrix_size),
    **dict.fromkeys(("identity", "tril_indices", "triu_indices", "diag_indices"), _square_size),
    **dict.fromkeys(("bartlett", "blackman", "hamming", "hanning", "kaiser", "fftfreq", "rfftfreq"), _shape_size),
    **dict.fromkeys(("linspace", "logspace", "geomspace"), _spaced_size),
    "arange": _range_size,
}
_LIKE: Final = frozenset({"zeros_like", "ones_like", "empty_like", "full_like"})
_ZEROS: Final = {"empty": np.zeros, "empty_like": np.zeros_like}  # the same on every run
# Their results are larger than their arguments: the product of all sizes and numbers bounds them.
_GROWING: Final = frozenset({"outer", "kron", "meshgrid", "tile", "repeat", "diagflat", "vander", "diag", "ix_"})
# Their results are views that may be larger than the memory.
_WIDENING: Final = frozenset({"broadcast_to", "sliding_window_view"})
_MODULES: Final = frozenset({"lazynp", "lazynp.linalg", "lazynp.fft", "lazynp.lib.stride_tricks", "lazynp.lib.scimath"})


def _extent(values: Sequence[Any]) -> int:
    """A bound of what a growing function makes of these."""
    extent = 1
    for value in values:
        if type(value) is int:
            extent *= max(abs(value), 1)
        elif type(value) in (tuple, list):
            extent *= _extent(value)
        elif type(value) is arrays.ndarray or type(value) is _MEMORY:
            extent *= max(value.size, 1)
    return extent


def growing(theirs: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], least: int = 0, warns_below: int = 0) -> Any:
    """``answer`` for a function whose result may be larger than its arguments."""
    if _extent(args) * _extent([*kwargs.values()]) > config.at_hand:
        return NotImplemented
    return answer(theirs, args, kwargs, least, warns_below)


def _widens(theirs: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], least: int = 0, warns_below: int = 0) -> Any:
    """``answer`` for a function whose result may show its argument's elements many times."""
    cells: list[arrays.ndarray] = []
    try:
        values = [_given(value, cells) for value in args]
        named = {name: _given(value, cells) for name, value in kwargs.items()}
    except _Elsewhere:
        return NotImplemented
    if any(type(x._base) is not _MEMORY for x in cells):  # what is shown is no cell's memory
        return NotImplemented
    value = theirs(*values, **named)
    parts = value if type(value) is tuple else (value,)
    return NotImplemented if any(part.size > config.at_hand for part in parts) else result(value, cells)


_first: Final[dict[Any, Any]] = {}


def first(name: str, function: Any, theirs: Any, module: str = "lazynp", own: frozenset[str] = frozenset()) -> Any:
    """Let NumPy answer for a public function of ours where everything is at hand; ``own`` are keywords that NumPy's has not."""
    found = _first.get(function) if isinstance(function, FunctionType) or hasattr(type(function), "at_hand") else None
    if found is None:
        found = _letting_numpy(name, function, theirs, module, own)
        if found is not function:
            _first[function] = found
            _first[found] = found
    return found


def _letting_numpy(name: str, function: Any, theirs: Any, module: str, own: frozenset[str]) -> Any:
    if name == "argsort" and module == "lazynp":
        theirs = _argsort
    elif name in _CORES_OWN and module == "lazynp":
        return core.function(function, theirs, name, own)
    if hasattr(type(function), "at_hand"):  # it does what follows itself
        return core.function(function, theirs, name, own)
    if not isinstance(function, FunctionType | staticmethod) or module not in _MODULES or name in NOT_AT_HAND or not callable(theirs):
        return function
    if isinstance(theirs, (type, np.ufunc)):
        return function
    if name in _SIZES or name in _LIKE:
        made = _maker(name, function, theirs, own)
        made = type(function)(made) if isinstance(function, staticmethod) else made
        return core.function(made, _ZEROS.get(name, theirs), name, own)
    answered: Callable[..., Any] = growing if name in _GROWING else _widens if name in _WIDENING else answer
    warns_below = _FEW.get(name, 0) if name in _QUIET else ALWAYS

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if config.at_hand and own.isdisjoint(kwargs):
            found = answered(theirs, args, kwargs, 0, warns_below)
            if found is not NotImplemented:
                return found
        return function(*args, **kwargs)

    return core.function(call, theirs, name, own)


def _maker(name: str, function: Any, theirs: Any, own: frozenset[str]) -> Any:
    """``first`` for a function that makes arrays of a size it is given."""
    size, theirs = _SIZES.get(name), _ZEROS.get(name, theirs)
    plain = name in ("zeros", "ones", "empty")

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        limit = config.at_hand
        if plain and limit and len(args) == 1 and not kwargs and _shape_size(args[0]) <= limit:
            return cell(theirs(args[0]))
        if size is None:  # like another array, of which the fifth argument may say the shape
            small = len(args) < 5 and kwargs.get("shape") is None
        else:
            small = size(*args, **kwargs) <= limit
        if limit and small and own.isdisjoint(kwargs):
            found = answer(theirs, args, kwargs, 0 if size is not None else 1, 0 if name in _QUIET else ALWAYS)
            if found is not NotImplemented:
                return found
        return function(*args, **kwargs)

    return make


def few(name: str) -> int:
    """Return how many elements a method must see not to warn of their number."""
    return _FEW.get(name, 0)


def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """NumPy's, but stable where nothing is said of that."""
    kind = "stable" if kind is None and stable is None else kind
    return (np.ndarray.argsort if type(a) is _MEMORY else np.argsort)(a, axis, kind, order, stable=stable)


def numpys_method(name: str) -> Any:
    """Return what answers for a method of an array at hand."""
    return _argsort if name == "argsort" else getattr(np.ndarray, name)


def method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of arrays that lets NumPy's answer where everything is at hand."""
    theirs = numpys_method(name)
    warns_below = few(name)

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        base = self._base
        if type(base) is _MEMORY or ((base is not None or self._node.buffer is not None) and _found(self) is not None):
            found = answer(theirs, (self, *args), kwargs, 1, warns_below)
            if found is not NotImplemented:
                return found
        return function(self, *args, **kwargs)

    return call
