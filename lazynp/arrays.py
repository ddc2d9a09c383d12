"""The array object.

In: nodes of the graph, or anything NumPy takes for an array.  Out: an ``ndarray``, a *cell* that names the current value of an array.  A
plain array holds its node; a view holds its base and how it lies in it (``lazynp.views``); a write replaces the base's node, so every view
sees it and every expression recorded before keeps the old value.  Promise: nothing here computes until a value is needed, and what was
captured or exported is never changed afterwards.

An array that a Python loop fills element by element holds a *draft* meanwhile: memory that no other code has seen, where a write of known
values goes straight in.  The first whole-array use turns the draft into a node, and it is never written again.
"""

# A write is one step to other threads, without a lock: a thread that waited for one while running the program's code could wait for ever. A
# value is recorded by exchanging the state of the array that owns the memory, (base, node), for another one if it is still what the new
# value was made of (`core.exchange`); who finds it changed makes the new value of what is there now (`arrays.change`, `update`: parts,
# masks, positions). Who writes into a draft's memory, in Python or in C, says so meanwhile (`core.writing`): the array counts as lent, so
# that the memory stays its memory, what is recorded of it is a copy, and other writes go there, too. Nothing is copied or waited for
# where one thread writes, and threads write parts of one array at the same time, as NumPy's do.

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from math import prod
from types import GenericAlias
from typing import TYPE_CHECKING, Any

import numpy as np

from lazynp import protocols
from lazynp.array import core
from lazynp.array.core import Cell, native, rows
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.dtypes import FLOAT64, NATIVE
from lazynp.graph.floating import at_users_line
from lazynp.graph.node import DEPTH_CUT, Node, Shape
from lazynp.scalars import CLASSES, force, generic, node_of_scalar, number, scalar_of
from lazynp.subclasses import ArrayType, based
from lazynp.values import config
from lazynp.values.loading import late, load

if TYPE_CHECKING:
    from lazynp import attributes, bounds, conversion, layout, storage, viewing, views
    from lazynp.array import hand
    from lazynp.graph import build
    from lazynp.namespace import assignment, indexing
else:
    attributes, bounds, build, conversion, hand, layout, assignment, indexing, storage, viewing, views = late(
        "attributes", "bounds", "graph.build", "conversion", "array.hand", "layout", "namespace.assignment", "namespace.indexing",
        "storage", "viewing", "views",
    )  # fmt: skip

_new = Cell.__new__
_shows_keys = not native  # the native core shows parts of large arrays itself
_numpys_new: Any = np.ndarray.__new__
_MEMORY = np.ndarray  # the type of ``_base`` of an array in memory


def _told_of(name: str) -> None:
    """Let NumPy say, where it does, that setting this attribute is deprecated, at the user's line."""
    nobodys = np.empty(0)
    at_users_line(setattr, (nobodys, name, getattr(nobodys, name)), {})


class ndarray(Cell, metaclass=ArrayType):  # noqa: N801, NumPy's name
    """A homogeneous array whose value is computed when it is needed; see :class:`numpy.ndarray`.

    Recorded: computed when a value is needed, together with the operations around it; of small arrays at the call.

    Parameters
    ----------
    shape : int or tuple of ints
        Shape of the new array; its content is undefined (zeros).
    dtype : dtype
        Element type.
    buffer, offset, strides
        As NumPy's: the array shows the memory of the buffer.
    order : {'C', 'F'}
        Memory order.

    Examples
    --------
    >>> import lazynp as np
    >>> x = np.arange(6.0).reshape(2, 3)
    >>> y = np.sqrt(x).sum(axis=1)  # recorded: shape and dtype are known, no element is computed
    >>> y.shape, y.dtype
    ((2,), dtype('float64'))
    >>> y  # a value is needed
    array([2.41421356, 5.96811879])
    """

    __slots__ = ()
    __module__ = "numpy"  # which messages, annotations and other libraries call it by
    __array_priority__ = 1_000_000.0
    __hash__ = None  # type: ignore[assignment]

    # Node: the value of a plain array; of a view, the node last derived from the base's.
    _node: Any
    # ndarray, Draft, numpy.ndarray or None: None for a plain array; the array that owns the memory of a view; the draft of a plain array
    # that is being filled; the memory itself of an array in memory (``lazynp.array.hand``).
    _base: Any
    # View: how a view lies in its base (or the draft, for its shape and dtype); of an array in memory what ``base`` shows.
    _view: Any
    # Node, Buffer or None: what the cached ``_node`` of a view was derived from.
    _stamp: Any
    # Whether writes are refused.
    _readonly: bool

    def __new__(
        cls,
        shape: Any,
        dtype: Any = None,
        buffer: Any = None,
        offset: int = 0,
        strides: Any = None,
        order: str | None = None,
    ) -> Any:
        memory = protocols.memory_of(buffer)
        if cls is not ndarray:
            made = _numpys_new(cls, shape, dtype, memory, offset, strides, order)
            return made if memory is buffer else based(made, buffer, memory)
        if type(buffer) is ndarray and strides is None:
            return viewing.buffer_view(buffer, shape, conversion.as_dtype(dtype), offset, order)
        if buffer is None:
            return conversion.asarray(np.zeros(shape, dtype, order or "C"))  # type: ignore[call-overload]
        array = np.ndarray(shape, dtype, memory, offset, strides, order)  # type: ignore[arg-type]
        if memory is buffer:
            return storage.adopted(array)
        if hand.own_memory(buffer) is not None:
            return hand.cell(array, hand.owner_of(buffer))
        lies = layout.geometry(buffer)[0] + offset, array.strides
        return viewing.derived(buffer, buffer.shape, (views.STRIDED, (*lies, array.dtype), array.shape), geometry=lies)

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        return GenericAlias(cls, item)

    # What it is --------------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> Shape:
        """Tuple of dimensions."""
        node, base = self._node, self._base
        if base is None and node is None:
            return self.shape  # another thread exchanged them
        found: Shape = node.shape if base is None else self._view.shape if type(base) is ndarray else base.shape
        return found

    @shape.setter
    def shape(self, shape: Any) -> None:
        memory = hand.own_memory(self)
        if memory is not None:
            memory = memory[...]  # other holders of this view keep its shape
            at_users_line(setattr, (memory, "shape", shape), {})
            self._base = memory
            return
        if shape is None:
            raise TypeError("Use () not None as shape arguments")
        _told_of("shape")
        view = viewing.view_reshape(self, shape)
        if type(view._base) is not ndarray:
            raise AttributeError("Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape.")
        self._become(view)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        node, base = self._node, self._base
        if base is None and node is None:
            return self.dtype  # another thread exchanged them
        found: np.dtype[Any] = node.dtype if base is None else self._view.dtype if type(base) is ndarray else base.dtype
        return found

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        _told_of("dtype")
        try:
            wanted = np.dtype(dtype)
        except TypeError:
            raise TypeError("invalid data-type for array") from None
        memory = hand.own_memory(self)
        if memory is not None and wanted in NATIVE:
            self._base = memory.view(wanted)
            return
        view = viewing.view_dtype(self, wanted)
        if type(view) is not ndarray:
            raise TypeError(f"an array cannot become one of {wanted!r}, which are NumPy's own; x.view(dtype) is one over the same memory")
        self._become(view)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        base = self._base
        return base.ndim if type(base) is _MEMORY else len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        base = self._base
        return base.size if type(base) is _MEMORY else prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Byte steps in each dimension, as NumPy would have laid the array out."""
        base = self._base
        return base.strides if type(base) is _MEMORY else layout.geometry(self)[1]

    @strides.setter
    def strides(self, strides: Any) -> None:
        memory = hand.own_memory(self)
        if memory is not None:
            memory = memory[...]  # other holders of this view keep its strides
            at_users_line(setattr, (memory, "strides", strides), {})
            self._base = memory
            return
        offset, before = layout.geometry(self)
        root = self._base if type(self._base) is ndarray else self
        places = np.ndarray(self.shape, self.dtype, np.empty(root.nbytes, np.uint8), offset, before)  # addresses only, never touched
        at_users_line(setattr, (places, "strides", strides), {})
        if places.strides == before:
            return
        if root is self:
            self._base = storage.left_behind(self)
            self._view = views.View(self._base.shape, self._base.dtype, (), self._base.shape, self._base.dtype, None)
            self._node = self._stamp = None
        self._become(viewing.derived(self, places.shape, (views.STRIDED, (offset, places.strides, self.dtype), places.shape)))

    @property
    def base(self) -> Any:
        """The array whose memory this one shows; None for an array of its own."""
        base = self._base
        if type(base) is _MEMORY:
            return self._view
        if type(base) is ndarray:
            owner = self._view.owner
            return base._base.base if owner is None and type(base._base) is storage.Draft else owner
        return None if base is None else base.base

    @property
    def flags(self) -> attributes.flagsobj:
        """Memory layout; see ``numpy.ndarray.flags``."""
        return attributes.flagsobj(self)

    @property
    def device(self) -> str:
        """The device on which the values live: "cpu", or "cuda:N"."""
        if devices.gpus is None:
            return devices.CPU
        root = self._base if type(self._base) is ndarray else self
        node, held = root._node, root._base
        if type(held) is _MEMORY or (held is None and node is None):  # of which another thread made a draft
            return devices.CPU
        return devices.of(node) if held is None else held.buffer.device or devices.default()

    @device.setter
    def device(self, device: Any) -> None:
        raise AttributeError("attribute 'device' of 'numpy.ndarray' objects is not writable")

    # Views -------------------------------------------------------------------------------------------------------------
    @property
    def T(self) -> ndarray:
        """The axes reversed."""
        base = self._base
        if type(base) is _MEMORY:
            owner = self._view
            made: ndarray = _new(ndarray)
            made._base = base.T
            made._view = self if owner is None or not (type(owner) is ndarray or type(owner) is _MEMORY) else owner
            made._node = None
            made._readonly = self._readonly
            return made
        return viewing.view_permute(self, tuple(range(self.ndim - 1, -1, -1)))

    @property
    def mT(self) -> ndarray:
        """The last two axes exchanged."""
        if type(self._base) is _MEMORY:
            return hand.cell(self._base.mT, hand.owner_of(self))
        ndim = self.ndim
        if ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return viewing.view_permute(self, (*range(ndim - 2), ndim - 1, ndim - 2))

    @property
    def real(self) -> ndarray:
        """The real part, a view."""
        base = self._base
        if type(base) is _MEMORY:
            return hand.cell(base.real, hand.owner_of(self)) if base.dtype.kind == "c" else self
        return viewing.view_part(self, o.REAL)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = conversion.asarray(value)  # cast, as an array is

    @property
    def imag(self) -> ndarray:
        """The imaginary part, a view; read-only zeros of real arrays."""
        base = self._base
        if type(base) is _MEMORY and base.dtype.kind == "c":
            return hand.cell(base.imag, hand.owner_of(self))
        return viewing.view_part(self, o.IMAG)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = conversion.asarray(value)

    @property
    def flat(self) -> attributes.flatiter:
        """Elements in C order."""
        return attributes.flatiter(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        assignment.write_flat(self, slice(None), value, whole=True)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """Show the same memory, optionally read as another dtype; see :meth:`numpy.ndarray.view`."""
        if dtype is ndarray or (isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray)):
            dtype, type = None, dtype
        made = self
        if dtype is not None:
            made = viewing.view_dtype(self, np.dtype(conversion.no_array(dtype)))
        elif builtins.type(self._base) is _MEMORY:  # as writable as this array, whatever happened to its owner since
            made = hand.cell(self._base.view(), hand.owner_of(self))
        elif type is None or type is ndarray or type is np.ndarray:
            shape = self.shape
            made = viewing.derived(self, shape, (views.AXES, tuple(range(len(shape))), shape))
        if type is None or type is ndarray or type is np.ndarray:
            return made
        memory = protocols.exported(made, "view")
        return based(memory.view(type), self, memory)

    def setflags(self, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
        """Allow or refuse writes."""
        if write is not None:
            if write and not viewing.may_be_written(self):
                raise ValueError("cannot set WRITEABLE flag to True of this array")
            self._readonly = not write
            if builtins.type(self._base) is _MEMORY:
                self._base.flags.writeable = write

    # Reading and writing -----------------------------------------------------------------------------------------------
    def __getitem__(self, key: Any) -> Any:
        # Elements of an array whose value exists: no parsing, no node.
        base = self._base
        if type(base) is _MEMORY:
            if hand.is_plain(key):
                found = base[key]
                if type(found) is not _MEMORY:
                    return number(found)
                owner = self._view
                made = _new(ndarray)
                made._base = found
                made._view = self if owner is None or not (type(owner) is ndarray or type(owner) is _MEMORY) else owner
                made._node = None
                made._readonly = self._readonly
                return made
            return hand.read(self, base, key)
        return _read(self, base, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        base = self._base
        if type(base) is _MEMORY and hand.is_plain(key):
            if hand.EXACT.get(type(value)) is base.dtype or (type(value) is int and base.dtype is FLOAT64):  # there is nothing to tell of
                base[key] = value
                return
            if type(value) is ndarray and type(value._base) is _MEMORY and value._base.dtype is base.dtype:
                base[key] = value._base
                return
        _assign(self, base, key, value)

    def _write(self, node: Node) -> None:
        """Replace the whole content; ``node`` has this array's shape (or broadcasts to it) and any dtype."""
        if self._readonly:
            raise ValueError("assignment destination is read-only")
        if node.dtype != self.dtype:
            node = build.cast(node, self.dtype)
        shape = self.shape
        if node.shape != shape:
            if not assignment.fits(shape, node.shape):
                raise viewing.reshaped_meanwhile(node.shape, shape)
            node = build.expand(node, shape)
        base = self._base
        if type(base) is _MEMORY:
            base[...] = storage.host(wrap(node), "an operand in memory")
            return
        if devices.gpus is not None:
            root = base if type(base) is ndarray else self
            node = devices.gpus.kept(node, root_node(root), self.size == root.size)
        if type(base) is not ndarray:
            replace(self, node)
            return
        view = self._view
        if view.shape != node.shape:
            raise viewing.reshaped_meanwhile(node.shape, view.shape)
        self._node = self._stamp = None  # made from the old value, which need not live on
        while not change(base, lambda old: view.write(old, node)):
            if storage.written(self, node):
                return

    def _become(self, view: ndarray) -> None:
        """Show what ``view`` (of this same memory) shows, as an in-place change of shape, strides or dtype does."""
        if type(view._base) is _MEMORY:
            self._base = view._base
        elif type(self._base) is ndarray:
            self._view = views.View(
                view._view.root, view._view.root_dtype, view._view.path, view.shape, view.dtype, self._view.owner, view._view.geometry()
            )
        elif type(self._base) is storage.Draft:
            self._base.become(view.dtype, view.shape)
        else:
            # A plain array stays the owner; views taken before know the shape they were taken from.
            node = node_of(view)
            self._base = None
            self._node = node

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + (0 if self.base is not None else self.nbytes)

    def __len__(self) -> int:
        base = self._base
        if type(base) is _MEMORY:
            return len(base)
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        shape = self.shape
        if not shape:
            raise TypeError("iteration over a 0-d array")
        if len(shape) == 1 and hand.memory_of(self) is None:
            # The loop wants every element: compute them together, once.
            storage.host(self, "iteration")
        elif shape[0]:
            storage.partial_read(self, prod(shape[1:]), shape[0])
        return rows(self)

    # Forcing -----------------------------------------------------------------------------------------------------------
    def realize(self) -> ndarray:
        """Compute the value now.

        Returns
        -------
        ndarray
            This array.

        Examples
        --------
        >>> import lazynp as np
        >>> x = (np.arange(3) + 1).realize()
        """
        base = self._base
        root = base if type(base) is ndarray else self
        held, node = root._base, root._node
        if held is None:
            force([node], "realize")
        return self

    def kernelize(self) -> ndarray:
        """Fix now which kernels will compute the value; they run when it is needed.

        Returns
        -------
        ndarray
            This array; what is computed from it loads its elements.

        Examples
        --------
        >>> import lazynp as np
        >>> x = (np.arange(3) * 2).kernelize()
        >>> x + 1
        array([1, 3, 5])
        """
        if core.tape(self) is not None:
            core.seal(self)
            return self
        if hand.own_memory(self) is not None:
            return self
        root = self._base if type(self._base) is ndarray else self
        if change(root, build.contiguous):
            load("lazynp.engine.realize").prepare([root._node])
        return self

    def contiguous(self) -> ndarray:
        """Record a fence: the value is stored, and what is computed from the result loads its elements.

        Returns
        -------
        ndarray
            The same values, in C order.

        Examples
        --------
        >>> import lazynp as np
        >>> x = np.arange(4.0)
        >>> y = np.exp(x).contiguous()
        >>> len(np.schedule((y + y[::-1]).sum()).items)
        2
        """
        memory = hand.own_memory(self)
        return wrap(build.contiguous(node_of(self))) if memory is None else hand.cell(memory.copy("K"))


def _read(x: ndarray, base: Any, key: Any) -> Any:
    """``x[key]`` of an array that is not known to be in memory."""
    kind = type(key)
    if type(base) is ndarray and type(base._base) is _MEMORY and (memory := hand.own_memory(x)) is not None:
        return hand.read(x, memory, key)
    if kind is int or kind is tuple or kind is slice:
        at: Any = base
        if base is None and (at := x._node) is None:  # another thread made it a draft
            at = base = x._base
        if base is None:
            buffer = at.buffer
            memory = None if buffer is None else buffer.at_hand
        elif type(base) is storage.Draft:
            memory = base.array
        else:
            memory = None if kind is slice else storage.elements(x)
        if memory is not None:
            if _shows_keys and type(base) is not ndarray and (kind is not tuple or (key and hand.is_plain(key))):
                found = memory[key]
                if type(found) is not _MEMORY:
                    return number(found)
                if found.size <= config.at_hand:
                    return viewing.view_keyed(x, memory, key, found.shape)
            elif kind is int:
                if memory.ndim == 1:
                    return number(memory[key])
            elif kind is tuple and len(key) == memory.ndim and key:
                for part in key:
                    if type(part) is not int:
                        break
                else:
                    return number(memory[key])
    return indexing.read(x, key)


def _assign(x: ndarray, base: Any, key: Any, value: Any) -> None:
    """``x[key] = value`` where it is more than putting elements as they are into the array's memory."""
    if type(base) is ndarray and type(base._base) is _MEMORY and not x._readonly:
        base = hand.own_memory(x) if x.size <= config.at_hand else storage.shown(x, base._base)
    if type(base) is _MEMORY:
        hand.write(base, key, value)
        return
    if base is not None and not x._readonly:
        held = base._base if type(base) is ndarray else base
        shows = _shows_keys and held is base and type(value) is ndarray
        if type(held) is storage.Draft and (shows or assignment.is_concrete(key, value)):
            with core.writing(x):
                if (x if held is base else base)._base is held:  # as it was
                    memory: Any = storage.elements(x)
                    if not shows:
                        memory[key] = value._value if type(value) in CLASSES else value
                        return
                    if _put(memory, key, value):
                        return
    assignment.write(x, key, value)


def _put(memory: np.ndarray[Any, Any], key: Any, value: ndarray) -> bool:
    """Put what exists into a small part of a large array's own memory; tells whether it did."""
    if hand.is_plain(key):
        part = memory[key]
        if type(part) is _MEMORY and part.size <= config.at_hand and hand.memory_of(value) is not None:
            hand.write(part, ..., value)
            return True
    return False


# Making arrays ------------------------------------------------------------------------------------------------------------


def wrap(node: Node) -> ndarray:
    """A new plain array of ``node``."""
    depth = node.depth
    if depth > DEPTH_CUT:
        bounds.cut(node)
    if (node.err.eager or config.eager) and node.buffer is None:
        force([node], "eager")
    x: ndarray = _new(ndarray)
    x._node = node
    x._base = None
    x._readonly = False
    if depth > DEPTH_CUT // 2:
        bounds.remember(x)
    return x


def wrap_ordered(node: Node, axes: tuple[int, ...] | None) -> ndarray:
    """A new array of ``node``, laid out in memory with the result axes listed in ``axes`` from slowest to fastest (None: C order)."""
    if axes is None or axes == tuple(range(len(axes))):
        return wrap(node)
    hidden = wrap(build.permute(node, axes))
    inverse = [0] * len(axes)
    for k, axis in enumerate(axes):
        inverse[axis] = k
    root = hidden._node
    x: ndarray = _new(ndarray)
    x._base = hidden
    x._view = views.View(root.shape, root.dtype, ((views.AXES, tuple(inverse), node.shape),), node.shape, node.dtype, None)
    x._node = node
    x._stamp = root
    x._readonly = False
    return x


def result(node: Node) -> Any:
    """A ufunc's or a reduction's result: a scalar where it is 0-d, else an array."""
    if node.shape:
        return wrap(node)
    if (node.err.eager or config.eager) and node.buffer is None and node.op is not o.CONST:
        force([node], "eager")
    elif node.depth > DEPTH_CUT:
        bounds.cut(node)
    return scalar_of(node)


# Values ---------------------------------------------------------------------------------------------------------------------


def node_of(x: Any) -> Node:
    """The node of an array, a scalar, or anything ``asarray`` takes, in logical order."""
    if type(x) is ndarray:
        base, node = x._base, x._node  # with nothing in between
        if base is None:
            found: Node = node
            return found
        del node
        if type(base) is _MEMORY:
            del base
            return hand.captured(x)
        if type(base) is storage.Draft:
            return storage.published(x)
        inner, root = base._base, base._node
        if inner is not None:
            now = storage.shown_now(x)
            if now is not None:
                return now
            root = storage.published(base)
        # The cached node is derived again once the base has its value: it may bypass the base (two movements that cancel) and would then
        # compute what the base already has.
        stamp = root if root.buffer is None else root.buffer
        known, cached = x._stamp, x._node
        if known is stamp and cached is not None:
            return cached
        view = x._view
        node = view.read(root)
        core.remember(x, view, node, stamp)
        return node
    kind = type(x)
    if kind in CLASSES:
        return node_of_scalar(x)
    array = conversion.asarray(x)
    if type(array) is not ndarray:
        raise TypeError(f"lazynp does not compute with dtype {array.dtype}")
    return node_of(array)


def together(reason: str, *wanted: ndarray) -> None:
    """Compute arrays in one program: what they have in common once."""
    roots = [x._base if type(x._base) is ndarray else x for x in wanted]
    nodes = [root._node for root in roots if root._base is None]
    pending = [node for node in nodes if node.op.kind is not o.Kind.LEAF and not build.is_filled(node)]
    if len(pending) > 1:
        force(pending, reason)


def root_node(root: ndarray) -> Node:
    """The current node of a plain array."""
    held, found = root._base, root._node  # with nothing in between
    node: Node = found if held is None else storage.published(root)
    return node


def replace(root: ndarray, node: Node) -> None:
    """Give a plain array a new value, which does not depend on what other threads write meanwhile."""
    while True:
        held, old = root._base, root._node
        if held is not None and storage.written(root, node):
            return
        if _exchanged(root, held, old, node):
            break
    del held, old
    _settle(root, node)


def change(root: ndarray, made: Callable[[Node], Node]) -> bool:
    """Give a plain array the value that ``made`` makes of its present one, in one step: what other threads write meanwhile is in it.

    Returns False where others see the memory, which is to be written then.
    """
    while True:
        held = root._base
        if held is not None and (type(held) is _MEMORY or held.file is not None or storage.is_lent(root)):
            return False
        old = root_node(root)
        node = made(old)
        if node.shape != old.shape:
            raise viewing.reshaped_meanwhile(node.shape, old.shape)
        if _exchanged(root, None, old, node):
            break
    del held, old
    _settle(root, node)
    return True


def update(x: ndarray, made: Callable[[Node], Node]) -> bool:
    """Do as ``change``, of a plain array or a view, which may be written."""
    if devices.gpus is not None:
        x._write(made(node_of(x)))
        return True
    base = x._base
    if type(base) is not ndarray:
        return change(x, made)
    view = x._view
    x._node = x._stamp = None  # made from the old value, which need not live on

    def part_changed(old: Node) -> Node:
        node = made(view.read(old))
        if node.shape != view.shape:
            raise viewing.reshaped_meanwhile(node.shape, view.shape)
        return view.write(old, node)

    return change(base, part_changed)


def _exchanged(root: ndarray, held: Any, old: Any, node: Node) -> bool:
    """Let a plain array have a new value, if it still has the old one."""
    if node.depth > DEPTH_CUT:
        bounds.cut(node)
    if (node.err.eager or config.eager) and node.buffer is None:
        try:
            force([node], "eager")
        finally:
            # a floating-point error is raised after the write
            done = node.buffer is not None and core.exchange(root, held, old, None, None, node)
        return done
    return core.exchange(root, held, old, None, None, node)


def _settle(root: ndarray, node: Node) -> None:
    """Compute what a write leaves to be computed now."""
    if node.depth > DEPTH_CUT // 2:
        bounds.remember(root)
    if node.op is not o.STORE:
        bounds.changes(root, node)
    elif bounds.goes_to_what_exists(node):
        force([node], "part of an array")
    elif bounds.ends_turn(node):
        force([node], "graph limit")


protocols.install(ndarray, protocols.SHARED | protocols.ARRAYS)
protocols.install(generic, protocols.SHARED)
