"""Views: how an array that owns no memory reads and writes the array that does.

In: the plain array's shape and dtype, and movement steps (slices, axis maps, reshapes, broadcasts, reinterpretations).  Out: a ``View``,
which answers two questions.  As a *path* of lenses it turns the base's current node into the view's node (``read``) and a new value of
the view into a new value of the base (``write``).  As *nominal geometry* (byte offset and byte strides over the base's C layout) it
answers ``.strides``, ``.flags``, ``shares_memory`` and whether a reshape is a view.  Promise: a write through a view is the same write
NumPy would make in memory, and a path stays as short as its meaning allows however many views were stacked.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lazynp.graph import _native
from lazynp.graph import op as o
from lazynp.graph.dtypes import INT64, INT64_END
from lazynp.graph.node import Node, Shape
from lazynp.graph.op import Op
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp.arrays import ndarray
    from lazynp.graph import build
    from lazynp.values import buffer as buffers
else:
    build, buffers = late("graph.build", "values.buffer")

Strides = tuple[int, ...]
Geometry = tuple[int, Strides]
Region = tuple[tuple[int, int], ...]
Dtype = np.dtype[Any]

# One lens: (operation, argument, shape of its result).  A plain tuple, because recording a view is a hot path.
Step = tuple[Op, Any, Shape]
Path = tuple[Step, ...]

AXES = o.PERMUTE
"""Step that permutes, drops (length one) and adds axes; its argument names the source axis of each axis, or ``NEW``."""

REINTERPRET = o.CALL
"""Step that reads the same bytes as another item size; its argument is (dtype, source dtype)."""

WINDOWS = o.PAD
"""Step that adds, as the last axis, a window sliding along an axis; its argument is (axis, length of the window)."""

STRIDED = o.GATHER
"""First step that reads the base's memory with any strides; its argument is (byte offset, byte strides, dtype)."""

NEW = -1


class View:
    """A view says how an array lies in its base.

    Attributes
    ----------
    root, root_dtype
        Shape and dtype of the base when the view was taken.
    path : tuple of Step
        From the base's node to the view's node.
    shape, dtype
        Of the view.
    owner : ndarray or None
        What ``.base`` answers; None for an array whose memory order is not C and whose plain base is an implementation detail.
    mark : object or None
        What memory keeps something of this view under: not the view itself, which holds its owner, and so the memory.
    """

    __slots__ = ("_geometry", "_in_c_order", "dtype", "mark", "owner", "path", "root", "root_dtype", "shape")

    def __init__(
        self,
        root: Shape,
        root_dtype: Dtype,
        path: Path,
        shape: Shape,
        dtype: Dtype,
        owner: ndarray | None,
        geometry: Geometry | None = None,
    ) -> None:
        self.root = root
        self.root_dtype = root_dtype
        self.path = path
        self.shape = shape
        self.dtype = dtype
        self.owner = owner
        self._geometry = geometry
        self._in_c_order: bool | None = None
        self.mark: object = None

    def geometry(self) -> Geometry:
        """(byte offset, byte strides) over the base's memory in C order."""
        found = self._geometry
        if found is None:
            # Only paths of simple steps are left without a geometry, see ``extended``; folding them is exact.
            shape, dtype = self.root, self.root_dtype
            found = 0, owned_strides(shape, dtype.itemsize)
            for step in self.path:
                found = moved(found, shape, dtype, step)
                shape, dtype = step[2], step_dtype(step, dtype)
            self._geometry = found
        return found

    def in_c_order(self) -> bool:
        """Tell whether axes come slowest first, as far as they have a length and a stride; asked by every elementwise operation."""
        found = self._in_c_order
        if found is None:
            found = True
            for op, arg, _ in self.path:
                if op in _OVERLAPPING:
                    found = self._strides_fall()
                    break
                # Slices, reshapes and broadcasts of C-ordered memory keep its order; only an axis map can change it.
                if op is AXES:
                    last = NEW
                    for axis in arg:
                        if axis >= 0:
                            if axis < last:
                                found = False
                            last = axis
            self._in_c_order = found
        return found

    def _strides_fall(self) -> bool:
        steps = [abs(stride) for n, stride in zip(self.shape, self.geometry()[1], strict=True) if n > 1 and stride]
        return steps == sorted(steps, reverse=True)

    def extended(self, step: Step, owner: ndarray | None, geometry: Geometry | None = None) -> View:
        """The view one step further; ``geometry`` is given where the step's own cannot be derived."""
        path = self.path
        if geometry is None and (step[0] not in _SIMPLE or self._geometry is not None):
            geometry = moved(self.geometry(), self.shape, self.dtype, step)
        return View(self.root, self.root_dtype, joined(path, step, self.root), step[2], step_dtype(step, self.dtype), owner, geometry)

    def read(self, node: Node) -> Node:
        """The view's node, given the base's."""
        if node.shape != self.root or node.dtype != self.root_dtype:
            node = as_root(node, self.root, self.root_dtype)
        for step in self.path:
            node = get(node, step)
        return node

    def write(self, node: Node, value: Node) -> Node:
        """The base's new node, given its old one and the view's new value."""
        for step in self.path:
            if step[0] in _OVERLAPPING or step[0] is o.EXPAND:
                # Elements that are one in memory: NumPy's order of writing decides, so NumPy writes.
                offset, strides = self.geometry()
                return build.call("write_at", (offset, strides), (node, value), node.dtype, node.shape)
        if node.shape == self.root and node.dtype == self.root_dtype:
            return written(node, self.path, value)
        new = written(as_root(node, self.root, self.root_dtype), self.path, value)
        return as_root(new, node.shape, node.dtype)

    def of(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The view over the base's C-contiguous memory, in whatever shape the base has that now."""
        if array.shape != self.root or array.dtype != self.root_dtype:
            array = array.reshape(-1).view(self.root_dtype).reshape(self.root)
        return self.memory(array)

    def memory(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The view over the base's C-contiguous memory, in the shape that the view knows, as NumPy's own strided array."""
        offset, strides = self.geometry()
        if 0 in self.shape:
            return np.ndarray(self.shape, self.dtype, array if array.nbytes else None, 0, strides if array.nbytes else None)
        return np.ndarray(self.shape, self.dtype, array, offset, strides)


class Keyed(View):
    """A small view that a key names; it is taken apart when its path is asked for, which most that are read in loops never see."""

    __slots__ = ("_apart", "key")

    def __init__(self, memory: np.ndarray[Any, Any], key: Any, shape: Shape, owner: ndarray, apart: Callable[[Any, Shape], Path]) -> None:
        self.root = memory.shape
        self.dtype = self.root_dtype = memory.dtype
        self.shape = shape
        self.owner = owner
        self.key = key
        self._apart = apart
        self._geometry = self._in_c_order = self.mark = None

    def __getattr__(self, name: str) -> Any:
        if name != "path":
            raise AttributeError(name)
        path = self.path = self._apart(self.key, self.root)
        return path

    def memory(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = array[self.key]
        return found


def part(root: ndarray, origin: Any, offset: int, shape: Shape, strides: Strides, dtype: Dtype) -> View:
    """Name a part of an array by its place in the memory.

    ``origin`` is the plain array ``root``; or (owner, path, shape): whose memory it is, and the reshape of the root's that was cut (None:
    the one to that shape).
    """
    at = root._node if root._base is None else root._base
    owner, path, inner = (root, (), at.shape) if origin is root else origin
    if path is None:
        path = ((o.RESHAPE, None, inner),) if inner != at.shape else ()
    same = dtype == at.dtype
    found = basic_path(inner, at.dtype.itemsize, offset, shape, strides) if same else None
    if found is not None:
        path = (*path, *found)
    elif same and is_c_contiguous(shape, strides, dtype.itemsize) and offset % dtype.itemsize == 0:
        run = prod(shape)
        path = ((o.RESHAPE, None, (prod(at.shape),)), (o.SLICE, ((offset // dtype.itemsize, 1),), (run,)), (o.RESHAPE, None, shape))
    else:
        path = ((STRIDED, (offset, strides, dtype), shape),)
    return View(at.shape, at.dtype, path, shape, dtype, owner, (offset, strides))


def origin_of(view: View) -> Any:
    """Return what ``part`` needs to name parts of a view: (owner or None for the view itself, path, shape); None where it cannot."""
    path = view.path
    if view.dtype != view.root_dtype:
        return None
    if path and path[0][0] is o.RESHAPE:
        first, inner = path[:1], path[0][2]
        rest = path[1:]
    else:
        first, inner, rest = (), view.root, path
    return (view.owner, first, inner) if all(step[0] in _SIMPLE for step in rest) else None


def basic_path(root: Shape, itemsize: int, offset: int, shape: Shape, strides: Strides) -> Path | None:
    """The slice and the axis map that give a part its place in memory in C order; None where there are none."""
    steps = c_strides(root, itemsize)
    left = offset + sum([(n - 1) * stride for n, stride in zip(shape, strides, strict=True) if stride < 0])
    region = []
    for stride, n in zip(steps, root, strict=True):
        start, left = divmod(left, stride) if n > 1 else (0, left)
        if not 0 <= start < n:
            return None
        region.append((start, 1))
    lengths = [1] * len(root)
    kept = [NEW] * len(shape)
    for k in sorted(range(len(shape)), key=lambda k: shape[k] == 1):  # axes of length one may lie anywhere: last
        n, stride = shape[k], strides[k]
        size = abs(stride)
        if n == 1:
            if not stride:
                continue  # a new one
            fits = [axis for axis, unit in enumerate(steps) if axis not in kept and unit <= size and size % unit == 0]
        else:
            fits = [axis for axis, unit in enumerate(steps) if unit <= size < unit * root[axis]]
        if not fits:
            if n == 1:
                continue
            return None
        axis = fits[0]
        step, rest = divmod(size, steps[axis])
        start = region[axis][0]
        if rest or axis in kept or start + (n - 1) * step >= root[axis]:
            return None
        region[axis] = (start, step) if stride > 0 else (start + (n - 1) * step, -step)
        lengths[axis] = n
        kept[k] = axis
    if left:
        return None
    path: Path = ()
    cut = tuple(lengths)
    if cut != root or any(start or step != 1 for start, step in region):
        path = ((o.SLICE, tuple(region), cut),)
    return path if tuple(kept) == tuple(range(len(root))) else (*path, (AXES, tuple(kept), shape))


# Geometry ---------------------------------------------------------------------------------------------------------------


def owned_strides(shape: Shape, itemsize: int) -> Strides:
    """Strides of a new C-ordered array; NumPy gives an empty one no strides at all."""
    if 0 in shape:
        return (0,) * len(shape)
    return c_strides(shape, itemsize)


def c_strides(shape: Shape, itemsize: int) -> Strides:
    """Strides that C-contiguous memory has in ``shape``, as a NumPy reshape gives them (also for empty arrays)."""
    strides = []
    stride = itemsize
    for n in reversed(shape):
        strides.append(stride)
        if n:
            stride *= n
    strides.reverse()
    return tuple(strides)


def is_c_contiguous(shape: Shape, strides: Strides, itemsize: int) -> bool:
    """NumPy's rule: axes of length one do not count, and nothing is contiguous in every order."""
    expected = itemsize
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 0:
            return True
        if n != 1:
            if stride != expected:
                return 0 in shape
            expected *= n
    return True


def is_f_contiguous(shape: Shape, strides: Strides, itemsize: int) -> bool:
    return is_c_contiguous(shape[::-1], strides[::-1], itemsize)


def _stride(stride: int, step: int) -> int:
    """The stride of every ``step``-th element; a step far beyond the end is cut, and its stride wraps around, as NumPy's do."""
    found = stride * step
    if -INT64_END <= found < INT64_END:
        return found
    step = max(1 - INT64_END, min(step, INT64_END - 1))
    return (stride * step + INT64_END) % (2 * INT64_END) - INT64_END


def moved(geometry: Geometry, shape: Shape, dtype: Dtype, step: Step) -> Geometry:
    """The geometry after one step from an array of ``geometry``, ``shape`` and ``dtype``."""
    offset, strides = geometry
    op, arg, result = step
    if op is o.SLICE:
        if 0 not in result:  # NumPy leaves the offset alone where there is nothing to point at
            for (start, _), stride in zip(arg, strides, strict=True):
                offset += start * stride
        return offset, tuple([_stride(stride, d) for (_, d), stride in zip(arg, strides, strict=True)])
    if op is AXES:
        return offset, tuple([0 if axis < 0 else strides[axis] for axis in arg])
    if op is o.RESHAPE:
        found = reshaped_strides(shape, strides, result, dtype.itemsize)
        assert found is not None, "a reshape that copies is not a step"
        return offset, found
    if op is o.EXPAND:
        added = len(result) - len(shape)
        kept = [0 if n == 1 else stride for n, stride in zip(shape, strides, strict=True)]
        return offset, (0,) * added + tuple(kept)
    if op is o.IMAG:
        return offset + dtype.itemsize // 2, strides
    if op is WINDOWS:
        return offset, (*strides, strides[arg[0]])
    if op is STRIDED:
        return arg[0], arg[1]
    if op is REINTERPRET and strides:
        # Only the last axis is cut finer or coarser, and it is contiguous.
        return offset, (*strides[:-1], arg[0].itemsize)
    return geometry


def reshaped_strides(shape: Shape, strides: Strides, result: Shape, itemsize: int) -> Strides | None:
    """NumPy's decision whether a C-order reshape is a view: its strides, or None where it copies."""
    if prod(shape) == 0 or is_c_contiguous(shape, strides, itemsize):
        return c_strides(result, itemsize)
    old = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n != 1]
    found = [0] * len(result)
    oi, ni = 0, 0
    while ni < len(result) and oi < len(old):
        oj, nj = oi + 1, ni + 1
        old_size, new_size = old[oi][0], result[ni]
        while old_size != new_size:
            if new_size < old_size:
                new_size *= result[nj]
                nj += 1
            else:
                old_size *= old[oj][0]
                oj += 1
        for k in range(oi, oj - 1):
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        stride = old[oj - 1][1]
        for k in range(nj - 1, ni - 1, -1):
            found[k] = stride
            stride *= result[k]
        oi, ni = oj, nj
    last = found[ni - 1] if ni else itemsize
    for k in range(ni, len(result)):
        found[k] = last
    return tuple(found)


def memory_order(shape: Shape, strides: Strides, itemsize: int) -> tuple[int, ...] | None:
    """Axes from slowest to fastest as a K-order copy lays them out; None where that is C order."""
    if is_c_contiguous(shape, strides, itemsize):
        return None
    if is_f_contiguous(shape, strides, itemsize):
        return tuple(range(len(shape) - 1, -1, -1))
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    if order == list(range(len(shape))):
        return None
    return tuple(order)


# Steps ------------------------------------------------------------------------------------------------------------------

# Steps whose geometry can be folded again from the base's, in any order.
_SIMPLE = frozenset({o.SLICE, AXES})

# Steps after which several elements may be one in memory.
_OVERLAPPING = frozenset({WINDOWS, STRIDED})


def step_dtype(step: Step, dtype: Dtype) -> Dtype:
    """The dtype after one step from an array of ``dtype``, for which the step was made."""
    op = step[0]
    if op is o.BITCAST or op is REINTERPRET or op is o.REAL or op is o.IMAG:
        found: Dtype
        found, source = step[1]
        if source != dtype:
            raise ValueError(f"an array of {source} was given the dtype {dtype} in the middle of an operation")
        return found
    if op is STRIDED:
        told: Dtype = step[1][2]
        return told
    return dtype


def joined(path: Path, step: Step, root: Shape) -> Path:
    """``path`` and one more step, merged where the two are one: stacked slices and axis maps stay one slice and one map."""
    op, arg, shape = step
    if not path or op is STRIDED:
        return (step,)
    last_op, last_arg, _ = path[-1]
    if op is o.SLICE:
        if last_op is o.SLICE:
            merged = tuple([(s0 + s1 * d0, d0 * d1) for (s0, d0), (s1, d1) in zip(last_arg, arg, strict=True)])
            return (*path[:-1], (o.SLICE, merged, shape))
        if last_op is AXES:
            # Slice before the map, so that slices meet; a new axis can be sliced only to nothing, which stays as it is.
            source = path[-2][2] if len(path) > 1 else root
            region = [(0, 1)] * len(source)
            inner = list(source)
            for axis, (start, stride), n in zip(last_arg, arg, shape, strict=True):
                if axis >= 0:
                    region[axis] = (start, stride)
                    inner[axis] = n
                elif n != 1:
                    return (*path, step)
            before = joined(path[:-1], (o.SLICE, tuple(region), tuple(inner)), root)
            return (*before, (AXES, last_arg, shape))
    elif op is AXES and last_op is AXES:
        merged_axes = tuple([NEW if axis < 0 else last_arg[axis] for axis in arg])
        source = path[-2][2] if len(path) > 1 else root
        if merged_axes == tuple(range(len(source))):
            return path[:-1]
        return (*path[:-1], (AXES, merged_axes, shape))
    elif op is o.RESHAPE and last_op is o.RESHAPE:
        source = path[-2][2] if len(path) > 1 else root
        if shape == source:
            return path[:-1]
        return (*path[:-1], step)
    elif op is o.EXPAND and last_op is o.EXPAND:
        return (*path[:-1], step)
    return (*path, step)


def get(node: Node, step: Step) -> Node:
    """The movement node a step stands for."""
    op, arg, shape = step
    if op is o.SLICE:
        return build.slice_(node, arg, shape)
    if op is AXES:
        kept = [axis for axis in arg if axis >= 0]
        if kept != sorted(kept):
            node = build.permute(node, _full_permutation(kept, len(node.shape)))
        return build.reshape(node, shape)
    return _GET[op](node, arg, shape)


def put(old: Node | None, source: Shape, step: Step, value: Node) -> Node:
    """The value before a step that makes the value after it ``value``; ``old`` is given where the step keeps part of it."""
    op, arg, _ = step
    if op is o.SLICE:
        assert old is not None
        return build.store(old, arg, value)
    if op is AXES:
        kept = [axis for axis in arg if axis >= 0]
        if kept == sorted(kept):
            return build.reshape(value, source)
        order = _full_permutation(kept, len(source))
        value = build.reshape(value, tuple([source[axis] for axis in order]))
        return build.permute(value, _inverse(order))
    return _PUT[op](old, source, arg, value)


def written(node: Node, path: Path, value: Node) -> Node:
    """The base's new node after ``value`` was put at the end of ``path``."""
    if not path:
        return value
    root = node.shape
    last = len(path) - 1
    while last > 0 and path[last][0] not in _NEEDS_OLD:
        last -= 1
    old = [node]
    for step in path[:last]:
        old.append(get(old[-1], step))
    for k in range(len(path) - 1, -1, -1):
        value = put(old[k] if k <= last else None, path[k - 1][2] if k else root, path[k], value)
    return value


def as_root(node: Node, shape: Shape, dtype: Dtype) -> Node:
    """The base as it was when a view was taken: its shape or dtype was set in place since.

    Raises ``ValueError`` where it has other memory since, which a handler or another thread gave it.
    """
    if build.size(node) * node.dtype.itemsize != prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of {prod(shape)} elements of {dtype} has {build.size(node)} of {node.dtype} by now")
    if node.dtype != dtype:
        if node.dtype.itemsize == dtype.itemsize:
            node = build.bitcast(node, dtype)
        else:
            flat = build.reshape(node, (build.size(node),))
            node = _reinterpret(flat, dtype, (build.size(node) * node.dtype.itemsize // dtype.itemsize,))
    return build.reshape(node, shape)


def stored(node: Node, shape: Shape, dtype: Dtype, region: Region, value: Node) -> Node:
    """The base with a region of the shape and dtype that it had when the key was read replaced."""
    if node.shape == shape and node.dtype == dtype:
        return build.store(node, region, value)
    return as_root(build.store(as_root(node, shape, dtype), region, value), node.shape, node.dtype)


def _full_permutation(kept: list[int], ndim: int) -> tuple[int, ...]:
    """The kept axes in their new order, then the dropped ones (all of length one)."""
    return (*kept, *[axis for axis in range(ndim) if axis not in kept])


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    inverse = [0] * len(order)
    for k, axis in enumerate(order):
        inverse[axis] = k
    return tuple(inverse)


def _part(op: Op, at: int) -> Callable[[Node, Any, Shape], Node]:
    """Read one part of complex numbers; where they exist it is every other number of their memory, which a kernel reads where it lies."""

    def read(node: Node, arg: Any, shape: Shape) -> Node:
        sources = node.src  # before its operation is looked at: another thread may publish it in between
        buffer = (sources[0] if node.op is o.RESHAPE and sources else node).buffer
        if buffer is None or buffer.place is not None or buffer.device is not None:
            return build.elementwise(op, arg[0], node)
        pairs = Node(o.BUFFER, (), None, arg[0], (*shape, 2))  # memory that is counted already
        pairs.buffer = buffers.Buffer(buffer.array.reshape(-1).view(arg[0]).reshape(pairs.shape))
        return build.reshape(build.slice_(pairs, [*[(0, 1)] * len(shape), (at, 1)], (*shape, 1)), shape)

    return read


def _put_real(old: Node | None, source: Shape, arg: Any, value: Node) -> Node:
    assert old is not None
    return build.elementwise(o.COMPLEX, arg[1], value, build.elementwise(o.IMAG, arg[0], old))


def _put_imag(old: Node | None, source: Shape, arg: Any, value: Node) -> Node:
    assert old is not None
    return build.elementwise(o.COMPLEX, arg[1], build.elementwise(o.REAL, arg[0], old), value)


def _windows(node: Node, arg: Any, shape: Shape) -> Node:
    """Windows by movement alone: rows of the axis repeated, read again with a row one longer, so that each starts one further."""
    axis, width = arg
    if 0 in shape:
        return build.expand(build.const(0, node.dtype), shape)
    n, count = node.shape[axis], shape[axis]
    ndim = len(node.shape)
    rest = tuple([k for k in range(ndim) if k != axis])
    outer = tuple([node.shape[k] for k in rest])
    node = build.reshape(build.permute(node, (*rest, axis)), (*outer, 1, n))
    node = build.reshape(build.expand(node, (*outer, width + 1, n)), (*outer, (width + 1) * n))
    whole = [(0, 1)] * len(outer)
    node = build.slice_(node, [*whole, (0, 1)], (*outer, width * (n + 1)))
    node = build.slice_(build.reshape(node, (*outer, width, n + 1)), [*whole, (0, 1), (0, 1)], (*outer, width, count))
    # Axes are now the others, the window's, the positions'.
    order = [*range(ndim - 1), ndim]
    order.insert(axis, order.pop())
    return build.permute(node, (*order, ndim - 1))


def _strided(node: Node, arg: Any, shape: Shape) -> Node:
    """Elements at ``offset + sum of index * stride`` of the base's memory: a gather at positions computed from the loops."""
    offset, strides, dtype = arg
    size = dtype.itemsize
    if 0 in shape:
        return build.expand(build.const(0, dtype), shape)
    if offset % size or any(stride % size for stride in strides):
        return build.call("read_at", (offset, strides, shape, dtype), (node,), dtype, shape)
    flat = as_root(node, (build.size(node) * node.dtype.itemsize // size,), dtype)
    at: Node = build.const(offset // size, INT64)
    thin = tuple([n if stride else 1 for n, stride in zip(shape, strides, strict=True)])
    for axis, (n, stride) in enumerate(zip(thin, strides, strict=True)):
        if n > 1:
            steps = build.reshape(build.iota(n, 0, stride // size, INT64), (n,) + (1,) * (len(shape) - axis - 1))
            at = build.elementwise(o.ADD, INT64, at, steps)
    return build.expand(build.gather(flat, build.reshape(at, thin)), shape)


def _reinterpret(node: Node, dtype: Dtype, shape: Shape) -> Node:
    return build.call("reinterpret", (dtype,), [node], dtype, shape)


_GET: dict[Op, Callable[[Node, Any, Shape], Node]] = {
    o.RESHAPE: lambda node, arg, shape: build.reshape(node, shape),
    o.EXPAND: lambda node, arg, shape: build.expand(node, shape),
    o.BITCAST: lambda node, arg, shape: build.bitcast(node, arg[0]),
    o.REAL: _part(o.REAL, 0),
    o.IMAG: _part(o.IMAG, 1),
    REINTERPRET: lambda node, arg, shape: _reinterpret(node, arg[0], shape),
    WINDOWS: _windows,
    STRIDED: _strided,
}

# EXPAND is missing on purpose: where several elements are one, they are written in memory, see ``View.write``.
_PUT: dict[Op, Callable[[Node | None, Shape, Any, Node], Node]] = {
    o.RESHAPE: lambda old, source, arg, value: build.reshape(value, source),
    o.BITCAST: lambda old, source, arg, value: build.bitcast(value, arg[1]),
    o.REAL: _put_real,
    o.IMAG: _put_imag,
    REINTERPRET: lambda old, source, arg, value: _reinterpret(value, arg[1], source),
}

_NEEDS_OLD = frozenset({o.SLICE, o.REAL, o.IMAG})

_native.register_views(View)
