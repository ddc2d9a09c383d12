"""Scalars: what NumPy's rule makes of a 0-d result.

In: a 0-d node, or a NumPy scalar that is already known.  Out: an object of a small table-made family, with the array protocol's attributes
and a scalar's behaviour.  Promise: an instance holds either a node (lazy) or a value (concrete), never both; concrete values record
nothing; ``isinstance`` works between this family and NumPy's in both directions; nothing but ``s[...] = value`` and
``s[condition] = value`` changes one.

The public names of the types (``np.float64``) are NumPy's own classes, of which lazy scalars are instances to ``isinstance`` and equals
to ``==``.  What cannot be: the class of a lazy scalar is not NumPy's, nor below it, nor the same key (``type(s) is np.float64``,
``issubclass(type(s), np.floating)`` and ``table[type(s)]`` do not work; ``isinstance`` and ``table[s.dtype.type]`` do), and a lazy scalar
is no Python float to those who read the number from memory, where it is not yet (``json.dumps(s)``, ``Decimal(s)``; ``float(s)`` works).
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from lazynp.array import core
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.dtypes import NATIVE
from lazynp.graph.floating import at_once
from lazynp.graph.node import Node, Shape
from lazynp.graph.op import IOTA, Kind, Op
from lazynp.values import config, forking
from lazynp.values.loading import handed, late, load

if TYPE_CHECKING:
    from lazynp import arrays, conversion
    from lazynp.graph import build
    from lazynp.values import buffer, pressure
else:
    arrays, conversion, build, buffer, pressure = late("arrays", "conversion", "graph.build", "values.buffer", "values.pressure")

_new = object.__new__
_realize: Callable[[Sequence[Node], str], None] | None = None


def _load() -> Callable[[Sequence[Node], str], None]:
    """Import what computes values, with the backend that the processor's will want."""
    engine: Any = load("lazynp.engine.realize")
    if devices.gpus is None:
        engine.choose()
    return engine.realize


def force(nodes: Sequence[Node], reason: str) -> None:
    """Compute ``nodes`` now; ``reason`` is what the report shows."""
    global _realize
    if nodes and nodes[0].op is IOTA and config.tier == "auto" and devices.gpus is None:
        for node in nodes:
            _count_up(node)
    if _realize is None:
        if not [node for node in nodes if node.buffer is None]:
            return  # what computes is not loaded for what has its value
        _realize = _load()
    _realize(nodes, reason)


def computed(node: Node, reason: str) -> buffer.Buffer:
    """The buffer of a node's value, computed where there is none.

    To be read in place of ``node.buffer`` after ``force``: a run of another thread that may write into the memory takes the buffer off
    the node, and puts the value back when it is over (``backends/common/ownership.py``).
    """
    while (found := node.buffer) is None:
        force([node], reason)
    return found


def _count_up(node: Node) -> None:
    """Compute a range, which needs no program: scripts that begin with one would wait for what computes to be loaded."""
    shape, dtype, arg = node.shape, node.dtype, node.arg  # before the operation is looked at: another thread may publish it in between
    if node.op is not IOTA or node.err.eager:
        return
    iota = load("lazynp.backends.numpy.operations").iota  # few programs want one as it is
    with np.errstate(all="ignore"):
        value = buffer.Buffer(iota(shape[0], arg[0], arg[1], dtype))
    with forking.graph:
        if node.buffer is None:
            node.publish(value)
            if value.nbytes >= pressure.COUNTED_FROM:
                pressure.count(value)


class ScalarType(type):
    """Metaclass: the family accepts NumPy's scalars, and its members work where a dtype is expected."""

    _numpy: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return issubclass(type(instance), cls)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, subclass) or issubclass(subclass, cls._numpy)

    def __eq__(cls, other: object) -> bool:
        # Also a public name or a dtype may be equal; they know that themselves.
        return cls is other or cls._numpy is other or NotImplemented

    # Not NumPy's hash: dictionaries keyed by classes, here and inside NumPy, tell our scalars from NumPy's, whose memory they read.
    __hash__ = type.__hash__

    @property
    def dtype(cls) -> np.dtype[Any]:
        if cls._dtype is None:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute 'dtype'")
        return cls._dtype

    _dtype: np.dtype[Any] | None = None


class generic(metaclass=ScalarType):
    """A scalar of an array program; see ``numpy.generic``.

    Attributes
    ----------
    _node : Node or None
        What computes it, while it is lazy.
    _value : numpy.generic or None
        The value, once it is known.
    """

    __slots__ = ("__weakref__", "_node", "_value")
    __module__ = "lazynp"
    _numpy = np.generic
    _dtype: np.dtype[Any] | None = None
    __array_priority__ = 1_000_000.0

    _node: Node | None
    _value: Any

    def __new__(cls, value: Any = 0, /, *imaginary: Any) -> Any:
        if cls._dtype is None:
            raise TypeError(f"cannot create '{cls.__name__}' instances")
        if type(value) in CLASSES:
            if value._value is None and not imaginary:
                return scalar_of(build.cast(node_of_scalar(value), cls._dtype))
            value = value.concrete()
        found = at_once(cls._numpy, value, *imaginary)
        if isinstance(found, np.ndarray):
            return conversion.asarray(found)
        return scalar_of_value(found)

    # Value ------------------------------------------------------------------------------------------------------------
    def concrete(self, reason: str = "item") -> Any:
        """The NumPy scalar, computed if need be."""
        value = self._value
        if value is None:
            assert self._node is not None
            value = self._value = read_element(self._node, reason)
            self._node = None
        return value

    def item(self, *args: Any) -> Any:
        """The value as a Python scalar."""
        return self.concrete("item").item(*args)

    def tolist(self) -> Any:
        """The value as a Python scalar."""
        return self.concrete("tolist").item()

    def realize(self) -> generic:
        """Compute the value now; the scalar itself is returned."""
        self.concrete("realize")
        return self

    def contiguous(self) -> generic:
        """A fence: what comes before is stored (a scalar always is)."""
        return self if self._node is None else scalar_of(build.contiguous(self._node))

    def kernelize(self) -> generic:
        """Fix now which kernels compute the value; run them later."""
        if self._node is not None:
            self._node = build.contiguous(self._node)
            prepare = load("lazynp.engine.realize").prepare
            prepare([self._node])
        return self

    def copy(self, order: str = "C") -> generic:
        return scalar_of(self._node) if self._node is not None else scalar_of_value(self._value)

    def __copy__(self) -> generic:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> generic:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return scalar_of_value, (self.concrete("pickle"),)

    def __getattr__(self, name: str) -> Any:
        # The rest of a NumPy scalar's methods (hex, is_integer, as_integer_ratio, bit_count, ...) needs its value. A name that NumPy's type
        # lacks, or that a protocol probes for, must not force one.
        if name.startswith("__") or not hasattr(type(self)._numpy, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
        return getattr(self.concrete(name), name)

    # What every scalar is ----------------------------------------------------------------------------------------------
    shape: Shape = ()
    strides: Shape = ()
    ndim = 0
    size = 1
    base = None

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype = type(self)._dtype
        assert dtype is not None
        return dtype

    @property
    def device(self) -> str:
        """The device on which the value lives."""
        return devices.default() if self._node is None else devices.of(self._node)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize

    @property
    def T(self) -> generic:
        return self

    @property
    def real(self) -> generic:
        if self.dtype.kind != "c":
            return self
        if self._value is not None:
            return scalar_of_value(self._value.real)
        assert self._node is not None
        return scalar_of(build.elementwise(o.REAL, _real_dtype(self.dtype), self._node))

    @property
    def imag(self) -> generic:
        if self._value is not None or self.dtype.kind != "c":
            return scalar_of_value(self.dtype.type(0) if self.dtype.kind != "c" else self._value.imag)
        assert self._node is not None
        return scalar_of(build.elementwise(o.IMAG, _real_dtype(self.dtype), self._node))

    @property
    def flags(self) -> Any:
        return self.dtype.type(0).flags

    @property
    def flat(self) -> Any:
        return arrays.wrap(node_of_scalar(self)).flat

    # Python's own conversions -----------------------------------------------------------------------------------------
    __iter__ = None  # or Python would iterate by asking for element 0

    def __bool__(self) -> bool:
        return bool(self.concrete("__bool__"))

    def __int__(self) -> int:
        return int(self.concrete("__int__"))

    def __conform__(self, protocol: Any) -> Any:
        """Give ``sqlite3`` what it binds: a float, or the bytes, as of NumPy's numbers."""
        value = self.concrete("sqlite3")
        return float(value) if isinstance(value, float) else memoryview(value)

    def __float__(self) -> float:
        return float(self.concrete("__float__"))

    def __complex__(self) -> complex:
        return complex(self.concrete("__complex__"))

    def __hash__(self) -> int:
        return hash(self.concrete("__hash__"))

    def __repr__(self) -> str:
        return repr(self.concrete("repr"))

    def __str__(self) -> str:
        return str(self.concrete("repr"))

    def __format__(self, spec: str) -> str:
        return format(self.concrete("repr"), spec)

    def __round__(self, ndigits: int | None = None) -> Any:
        value = self.concrete("__round__")
        rounded = round(value) if ndigits is None else round(value, ndigits)
        return scalar_of_value(rounded) if isinstance(rounded, np.generic) else rounded

    def __getitem__(self, key: Any) -> Any:
        if type(key) is tuple and not key:
            return self

        try:
            return arrays.wrap(node_of_scalar(self))[key]  # a copy, for what indexes an array without axes: ..., None, a truth value
        except IndexError:
            raise IndexError("invalid index to scalar variable.") from None

    def __setitem__(self, key: Any, value: Any) -> None:
        """Change the value, everywhere or where a condition holds.

        NumPy's scalars refuse it; to the array API standard the result of a reduction is an array, and libraries write into it.
        """
        if self is TRUE or self is FALSE or not (key is ... or (type(key) is tuple and not key) or _is_condition(key)):
            raise TypeError(f"'{type(self)._numpy.__module__}.{type(self).__name__}' object does not support item assignment")

        array = arrays.wrap(node_of_scalar(self))
        array[key] = value
        found = arrays.result(arrays.node_of(array))
        self._node, self._value = found._node, found._value


def _is_condition(key: Any) -> bool:
    """Tell whether a key is one truth value."""
    return isinstance(key, (bool, np.bool)) or (getattr(key, "dtype", None) == np.bool and getattr(key, "shape", None) == ())


def _family(name: str, base: Any, scalar: Any, **members: Any) -> Any:
    """One class of the family: NumPy's name, NumPy's place in the tree."""
    doc = f"See ``numpy.{name}``."
    return ScalarType(name, (base,), {"__slots__": (), "__module__": "lazynp", "__doc__": doc, "_numpy": scalar, **members})


def _index(self: generic) -> int:
    return operator.index(self.concrete("__index__"))


def _trunc(self: generic) -> int:
    return int(self.concrete("__int__"))


number = _family("number", generic, np.number)
integer = _family("integer", number, np.integer, __index__=_index, __trunc__=_trunc)
signedinteger = _family("signedinteger", integer, np.signedinteger)
unsignedinteger = _family("unsignedinteger", integer, np.unsignedinteger)
inexact = _family("inexact", number, np.inexact)
floating = _family("floating", inexact, np.floating, __trunc__=_trunc)
complexfloating = _family("complexfloating", inexact, np.complexfloating)

ABSTRACT: dict[str, type[generic]] = {
    cls.__name__: cls for cls in (generic, number, integer, signedinteger, unsignedinteger, inexact, floating, complexfloating)
}

_BASES = {"b": generic, "i": signedinteger, "u": unsignedinteger, "f": floating, "c": complexfloating}

CONCRETE: dict[str, type[generic]] = {
    dtype.type.__name__: _family(
        dtype.type.__name__,
        _BASES[dtype.kind],
        dtype.type,
        _dtype=dtype,
        # What ``isinstance(x, numpy.float64)`` asks for after the type: code that tests for NumPy's scalars, in user programs and in
        # installed packages, accepts ours as well.
        __class__=property(lambda self: type(self)._numpy),
    )
    for dtype in sorted(NATIVE, key=lambda dtype: dtype.num)
}

CLASSES = frozenset(CONCRETE.values())
_OF_DTYPE = {cls._dtype: cls for cls in CONCRETE.values()}
# Two C types of one size (long, long long) are one dtype but two scalar types.
OF_TYPE: dict[type, type[generic]] = {np.dtype(char).type: _OF_DTYPE[np.dtype(char)] for char in "?bBhHiIlLqQefdFD"}
OF_TYPE |= {ours: OF_TYPE[theirs] for theirs, ours in core.number_classes_of.items()}

bool_ = CONCRETE["bool"]

numbers.Integral.register(integer)
numbers.Real.register(floating)
numbers.Complex.register(complexfloating)


def is_scalar(x: object) -> bool:
    """Tell whether ``x`` is one of ours (not NumPy's)."""
    return type(x) in CLASSES


def _complete() -> None:
    """Give the classes their operators and methods, which they have from the first number on that waits."""
    if "__rdivmod__" not in vars(generic):  # the last one
        handed["operators"]()


PENDING = 4096  # pending scalars that are remembered
_pending: list[ref[generic]] = []


def scalar_of(node: Node) -> Any:
    """The result of a 0-d node: it waits on a GPU, and is computed now on the processor."""
    if not config.numbers_wait and (devices.gpus is None or devices.of(node) == devices.CPU):
        return number(read_element(node, "a number"))
    if node.op is o.CONST:
        return scalar_of_value(node.arg)
    _complete()
    self: generic = _new(_OF_DTYPE[node.dtype])
    self._node = node
    self._value = None
    _pending.append(ref(self))
    if len(_pending) > PENDING:
        _pending[:] = [r for r in _pending if (x := r()) is not None and x._node is not None and x._node.buffer is None][-PENDING // 2 :]
    return self


def pending_scalars() -> list[Node]:
    """Nodes of the pending scalars that are held.

    They are next to nothing to store, and a run that computes their sources anyway should compute them too: a list of losses must not keep
    the whole history of a training loop pending.
    """
    nodes = [x._node for r in _pending if (x := r()) is not None and x._node is not None and x._node.buffer is None]
    _pending.clear()
    return nodes


_BOOL = np.bool


number = core.number
"""Makes a number of NumPy's a result: an instance of a class of ours below NumPy's (``array/numbers.h``)."""


def scalar_of_value(value: Any) -> Any:
    """The result that holds a NumPy scalar."""
    return _holding(value) if config.numbers_wait else number(value)


def _holding(value: Any) -> generic:
    """A scalar of the family that is known."""
    _complete()
    if type(value) is _BOOL:
        return TRUE if value else FALSE
    self: generic = _new(OF_TYPE[type(value)])
    self._node = None
    self._value = value
    return self


def _truth(value: np.bool) -> generic:
    self: generic = _new(bool_)
    self._node = None
    self._value = value
    return self


# There is one of each, for programs that ask ``x is np.True_``.
TRUE, FALSE = _truth(np.True_), _truth(np.False_)


def node_of_scalar(x: generic) -> Node:
    """The node of a scalar; a constant where its value is known."""
    node = x._node
    if node is None:
        dtype = type(x)._dtype
        assert dtype is not None
        return Node(o.CONST, (), x._value, dtype, ())
    return node


def read_element(node: Node, reason: str) -> Any:
    """The NumPy scalar of a 0-d node.

    An element of something pending computes that something, as NumPy would have, and keeps it: a loop that reads one element after the
    other must not compute the whole again each time.
    """
    if node.buffer is None:
        steps, source = _movements(node)
        if source.op is o.CONST:
            return source.arg
        if steps and source.op is not o.IOTA:
            return _moved(computed(source, reason).array, steps)
        force([node, *_read_from(node)], reason)
    return computed(node, reason).array[()]


def _movements(node: Node) -> tuple[list[tuple[Op, Any, Shape]], Node]:
    """The movements that end at a node, last first, and what they move."""
    steps = []
    sources, arg = node.src, node.arg  # before the operation: see ``build.is_filled``
    while (op := node.op).kind is Kind.MOVEMENT and op is not o.PAD:
        steps.append((op, arg, node.shape))
        node = sources[0]
        sources, arg = node.src, node.arg
    return steps, node


def _read_from(node: Node) -> list[Node]:
    """The pending arrays whose elements a scalar expression reads."""
    found: dict[Node, None] = {}
    seen = {node}
    pending = list(node.src)
    while pending:
        at = pending.pop()
        if at in seen or at.buffer is not None:
            continue
        seen.add(at)
        if at.op.kind is Kind.MOVEMENT:
            _, at = _movements(at)
            if build.size(at) > 1:
                if at.src:
                    found[at] = None
                continue
        pending += [source for source in at.src if not source.shape or build.size(source) == 1]
    return list(found)


def _moved(array: np.ndarray[Any, Any], steps: list[tuple[Op, Any, Shape]]) -> Any:
    """The one element that movements leave of an array."""
    for op, arg, shape in reversed(steps):
        if op is o.SLICE:
            spans = zip(arg, shape, strict=True)
            array = array[tuple([slice(s, s + d * n if s + d * n >= 0 else None, d) for (s, d), n in spans])]
        elif op is o.PERMUTE:
            array = array.transpose(arg)
        elif op is o.RESHAPE:
            array = array.reshape(shape)
        else:
            array = np.broadcast_to(array, shape)
    return array[()]


def _real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    found: np.dtype[Any] = dtype.type(0).real.dtype
    return found
