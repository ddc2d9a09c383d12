"""The methods of arrays and scalars.

In: the functions of the namespace.  Out: ``install(cls)``, which attaches them under their method names.  Promise: a method is
the function with the array as first argument, except the few here that write or that have another signature.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final
from weakref import getweakrefcount

import numpy as np

from lazynp.array import core, dispatch, tapes
from lazynp.arrays import ndarray, node_of, result, update, wrap_ordered
from lazynp.graph import filters
from lazynp.graph.dtypes import NATIVE
from lazynp.graph.errstate import state_of, token, variable
from lazynp.graph.floating import at_once, heard, listening, tell_here
from lazynp.graph.node import caller
from lazynp.namespace.bridge import fallback
from lazynp.namespace.docstrings import Text
from lazynp.namespace.ufunc.ufuncs import UFUNCS
from lazynp.scalars import is_scalar, scalar_of_value
from lazynp.values import config
from lazynp.values.loading import late, later, load, under_way
from lazynp.values.outside import from_outside

if TYPE_CHECKING:
    from lazynp import conversion, layout, storage, viewing
    from lazynp.array import hand
    from lazynp.graph import build
    from lazynp.namespace import assignment
    from lazynp.values import buffer
else:
    hand, conversion, build, layout, assignment, storage, buffer, viewing = late(
        "array.hand", "conversion", "graph.build", "layout", "namespace.assignment", "storage", "values.buffer", "viewing"
    )


def _routines(topic: str) -> Any:
    """Import a module of functions, which a program that NumPy's loops answer does not need."""
    return load(f"lazynp.namespace.routines.{topic}")


def _reshape(self: Any, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
    """Give an array another shape over the same elements; see :meth:`numpy.ndarray.reshape`."""
    wanted = shape[0] if len(shape) == 1 else shape
    if type(self) is ndarray:
        return viewing.view_reshape(self, wanted, order, copy)
    return _routines("shaping").reshape(self, wanted, order, copy=copy)


def _transpose(self: Any, *axes: Any) -> Any:
    """Permute axes; see :meth:`numpy.ndarray.transpose`."""
    if not axes or (len(axes) == 1 and axes[0] is None):
        return self.T
    return _routines("shaping").transpose(self, axes[0] if len(axes) == 1 and hasattr(axes[0], "__iter__") else axes)


def _astype(self: Any, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Any:
    """Convert the values to another dtype; see :meth:`numpy.ndarray.astype`."""
    wanted, source = conversion.as_dtype(dtype), self.dtype
    if wanted not in NATIVE:
        if type(self) is not ndarray:
            return self.concrete("astype").astype(wanted, order=order, casting=casting)
        return storage.host(self, "astype").astype(wanted, order=order, casting=casting, copy=True)  # type: ignore[call-overload]
    if casting != "unsafe" and not np.can_cast(source, wanted, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {source!r} to {wanted!r} according to the rule '{casting}'")
    array = type(self) is ndarray
    if wanted == source and not copy and (not array or order in "KA" or (order == "C" and self.flags.c_contiguous)):
        return self
    if conversion.loses_a_part(source, wanted):
        conversion.warn_complex()
    if not array:
        value = self._value
        return result(build.cast(node_of(self), wanted)) if value is None else scalar_of_value(value.astype(wanted))
    node = build.copied(build.cast(node_of(self), wanted))
    return wrap_ordered(node, layout.copy_order(self, order))


def _clip(self: Any, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    """Limit values to an interval; see :meth:`numpy.ndarray.clip`."""
    return _routines("selecting").clip(self, min, max, out, **options)


def _sort(self: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """Sort in place; see :meth:`numpy.ndarray.sort`."""
    if self._readonly:
        raise ValueError("sort array is read-only")
    axis = index(axis)
    if not update(self, lambda _: node_of(_routines("selecting").sort(self, axis, kind, order, stable=stable))):
        self._write(node_of(_routines("selecting").sort(self, axis, kind, order, stable=stable)))


def _partition(self: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> None:
    """Partition in place; see :meth:`numpy.ndarray.partition`."""
    if self._readonly:
        raise ValueError("partition array is read-only")
    axis = index(axis)
    if not update(self, lambda _: node_of(_routines("selecting").partition(self, kth, axis, kind, order))):
        self._write(node_of(_routines("selecting").partition(self, kth, axis, kind, order)))


def _fill(self: Any, value: Any) -> None:
    """Set every element; see :meth:`numpy.ndarray.fill`."""
    if self._readonly:
        raise ValueError("assignment destination is read-only")
    if is_scalar(value) or (type(value) is ndarray and not value.shape):
        node = assignment.fitted(value, (), self.dtype)
    else:
        # NumPy takes a sequence for a bool, and for no other element.
        element = np.empty((), self.dtype)
        at_once(element.fill, storage.host(value) if type(value) is ndarray else value)
        node = build.const(element[()], self.dtype)
    self._write(build.expand(node, self.shape))


def _resize(self: Any, *new_shape: Any, refcheck: bool = True) -> None:
    """Change shape and size in place; see :meth:`numpy.ndarray.resize`.

    Views taken before keep the memory that the array had.
    """
    if isinstance(self, np.ndarray):  # of a subclass, whose method this is not
        np.ndarray.resize(self, *new_shape, refcheck=refcheck)
        return
    _resized(self, new_shape, refcheck, False)


def _resize_held(self: Any, *new_shape: Any, refcheck: bool = True) -> None:
    """The same where more than the caller has the array, which the core sees: another variable, or a view of it."""
    _resized(self, new_shape, refcheck, True)


def _resized(self: Any, new_shape: tuple[Any, ...], refcheck: bool, held: bool) -> None:
    if not self.flags.forc:
        raise ValueError("resize only works on single-segment arrays")
    sizes = np.empty(self.shape, np.uint8)  # what NumPy says of the new shape
    sizes.resize(*new_shape, refcheck=False)
    if sizes.size == self.size:
        if sizes.shape != self.shape:
            self._become(self.reshape(sizes.shape, order="A"))
        return
    if self.base is not None:
        raise ValueError("cannot resize this array: it does not own its data")
    memory = hand.own_memory(self)
    if refcheck and (storage.is_exported(self) or (memory is not None and not buffer.unseen(memory)) or held or getweakrefcount(self)):
        others = sizes, sizes
        sizes.resize(len(sizes.shape) + sizes.size + len(others))  # NumPy says why not
    made = storage.host(self, "resize").copy("K")  # the views keep the old memory
    made.resize(sizes.shape, refcheck=False)
    storage.become(self, made)


def _conjugate(self: Any, out: Any = None, /) -> Any:
    """Compute the complex conjugate; see :meth:`numpy.ndarray.conjugate`."""
    if self.dtype.kind != "c" and out is None:
        return self
    return UFUNCS["conjugate"](self) if out is None else UFUNCS["conjugate"](self, out=out)


def _squeeze(self: Any, axis: Any = None) -> Any:
    """Remove axes of length one; see :meth:`numpy.ndarray.squeeze`."""
    return _routines("shaping").squeeze(self, axis) if type(self) is ndarray else self


def _flatten(self: Any, order: str = "C") -> Any:
    """Copy all elements in one dimension; see :meth:`numpy.ndarray.flatten`."""
    return _routines("shaping").flatten(self, order)


def _compress(self: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """Select the slices where a condition holds; see :meth:`numpy.ndarray.compress`."""
    return _routines("selecting").compress(self, condition, axis, out)


def _choose(self: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Choose values from several arrays, by number; see :meth:`numpy.ndarray.choose`."""
    return _routines("functional").choose(self, choices, out, mode)


def _put(self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write at flat positions; see :meth:`numpy.ndarray.put`."""
    _routines("inserting").put(self, indices, values, mode)


def _dump(self: Any, file: Any) -> None:
    """Pickle to a file; see :meth:`numpy.ndarray.dump`."""
    _routines("files").dump(self, file)


def _dumps(self: Any) -> bytes:
    """Pickle to bytes; see :meth:`numpy.ndarray.dumps`."""
    found: bytes = _routines("files").dumps(self)
    return found


def _later(name: str, module: str, own: str, answered: str | None = None) -> Callable[..., Any]:
    """Make a method of the function of that name in a module that is loaded when the method is first called."""
    function: Callable[..., Any] | None = None

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal function
        if function is None:
            function = load(f"lazynp.namespace.{module}").FUNCTIONS[name]
        return function(self, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = own
    if answered is not None:
        call.answered = answered  # type: ignore[attr-defined]
    return call


def _by_numpy(name: str, writes: tuple[int, ...] = ()) -> Callable[..., Any]:
    """A method that NumPy answers; ``writes`` is (0,) where it changes the array."""
    method, of_scalar = getattr(np.ndarray, name), getattr(np.generic, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self) is not ndarray:
            return fallback.ours(of_scalar(self.concrete(name), *args, **kwargs))
        return fallback.call(method, f"ndarray.{name}", (self, *args), kwargs, writes)

    call.__name__ = call.__qualname__ = name
    call.answered = "fallback"  # type: ignore[attr-defined]
    return call


_numpys_getfield: Final = _by_numpy("getfield")


def _getfield(self: Any, dtype: Any, offset: Any = 0) -> Any:
    """Show bytes of each element as another dtype, which is a view; see :meth:`numpy.ndarray.getfield`."""
    wanted = np.dtype(conversion.no_array(dtype))
    if type(self) is not ndarray or wanted not in NATIVE or type(offset) is not int or hand.memory_of(self) is not None:
        return _numpys_getfield(self, dtype, offset)
    if not 0 <= offset <= self.dtype.itemsize - wanted.itemsize:
        return _numpys_getfield(self, dtype, offset)  # its error
    return self[..., None].view(np.uint8)[..., offset : offset + wanted.itemsize].view(wanted)[..., 0]


def _byteswap(self: Any, inplace: bool = False) -> Any:
    """Reverse the bytes of each element; ``inplace`` changes the array itself."""
    return (_byteswap_in_place if inplace and type(self) is ndarray else _byteswapped)(self, inplace)


_byteswapped: Final = _by_numpy("byteswap")
_byteswap_in_place: Final = _by_numpy("byteswap", writes=(0,))
_byteswap.answered = "fallback"  # type: ignore[attr-defined]


# Method -> function with the array first.
SHARED: Final[dict[str, Callable[..., Any]]] = {
    **{name: _later(name, "ufunc.reductions", own) for name, own in {
        "sum": "Add up the elements over axes; see :func:`numpy.sum`.",
        "prod": "Multiply the elements over axes; see :func:`numpy.prod`.",
        "max": "Compute the largest value over axes, NaN if there is one; see :func:`numpy.max`.",
        "min": "Compute the smallest value over axes, NaN if there is one; see :func:`numpy.min`.",
        "any": "Tell whether something is true along axes; see :func:`numpy.any`.",
        "all": "Tell whether everything is true along axes; see :func:`numpy.all`.",
        "cumsum": "Compute the running sum; see :func:`numpy.cumsum`.",
        "cumprod": "Compute the running product; see :func:`numpy.cumprod`.",
        "argmax": "Find the index of the largest value; see :func:`numpy.argmax`.",
        "argmin": "Find the index of the smallest value; see :func:`numpy.argmin`.",
    }.items()},
    "mean": _later("mean", "routines.statistics", "Compute the arithmetic mean; see :func:`numpy.mean`."),
    "var": _later("var", "routines.statistics", "Compute the variance, in two passes; see :func:`numpy.var`."),
    "std": _later("std", "routines.statistics", "Compute the standard deviation; see :func:`numpy.std`."),
    "round": _later("round", "routines.mathematics", "Round values to a number of decimals, halves to even; see :func:`numpy.round`."),
    "dot": _later("dot", "submodules.linalg", "Compute the dot product; see :func:`numpy.dot`.", "library"),
    "ravel": _later("ravel", "routines.shaping", "Show all elements in one dimension; see :func:`numpy.ravel`."),
    "flatten": _flatten,
    "swapaxes": _later("swapaxes", "routines.shaping", "Exchange two axes; see :func:`numpy.swapaxes`."),
    "squeeze": _squeeze,
    "repeat": _later("repeat", "routines.joining", "Repeat every element; see :func:`numpy.repeat`."),
    "take": _later("take", "routines.selecting", "Take elements at positions along an axis; see :func:`numpy.take`."),
    "compress": _compress,
    **{name: _later(name, "routines.selecting", own, "library") for name, own in {
        "nonzero": "Find the positions of what is not zero, an array per axis; see :func:`numpy.nonzero`.",
        "argsort": "Find the positions that sort an array; see :func:`numpy.argsort`.",
        "argpartition": "Find the positions that partition an array; see :func:`numpy.argpartition`.",
        "searchsorted": "Find where values belong in a sorted array; see :func:`numpy.searchsorted`.",
    }.items()},
    "diagonal": _later("diagonal", "routines.creation", "Take a diagonal, as a read-only view; see :func:`numpy.diagonal`."),
    "trace": _later("trace", "routines.creation", "Add up a diagonal; see :func:`numpy.trace`."),
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "clip": _clip,
    "conj": _conjugate,
    "conjugate": _conjugate,
    "choose": _choose,
    "dump": _dump,
    "dumps": _dumps,
    "byteswap": _byteswap,
    "getfield": _getfield,
}  # fmt: skip

# Methods that write; scalars have none of them.
WRITING: Final[dict[str, Callable[..., Any]]] = {
    "sort": _sort,
    "partition": _partition,
    "fill": _fill,
    "resize": _resize,
    "put": _put,
    "setfield": _by_numpy("setfield", writes=(0,)),
}


# Methods of arrays that are not NumPy's even where everything is in memory: they change what the cell is, or know files.
_OWN: Final = frozenset({"resize", "dump", "dumps"})


def install(cls: type) -> None:
    """Attach the methods to ``ndarray`` or to the scalar family's root."""
    methods = SHARED | WRITING if cls is ndarray else SHARED
    for name, function in methods.items():
        setattr(cls, name, dispatch.method(name, function) if cls is ndarray and name not in _OWN else function)


def at_hand(cls: type) -> None:
    """Let the core answer where it can; to be called when the class is complete."""
    if variable is not None:
        core.listen(variable, listening, heard, tell_here, lambda: state_of(token()).kinds)
    for name in ((SHARED | WRITING).keys() | {"__array_ufunc__", "__copy__", "copy", "item", "tobytes", "tolist", "view"}) - _OWN:
        function, theirs = vars(cls)[name], dispatch.numpys_method(name)
        setattr(cls, name, core.function(function, theirs, name, frozenset(), 1, name in dispatch.BY_KERNELS))
    for name in ("shape", "dtype", "ndim", "size"):
        setattr(cls, name, core.attribute(vars(cls)[name], name))
    cls.resize = core.function(vars(cls)["resize"], _resize_held, "ndarray.resize", frozenset())  # type: ignore[attr-defined]
    core.register(cls, later("array.hand", "result"), later("array.calls", "product_in_passing"))
    core.chain(tapes.state, caller, tapes.ROOT, tapes.step, tapes.tell, tapes.raised, tapes.cast, _compiled, _pool, from_outside)
    core.layouts(tapes.layout)
    core.values(later("storage", "private"))
    core.owns(later("array.hand", "owned_first"))
    core.first(later("array.calls", "at_hand_first"))
    core.register_parts(later("views", "part"), later("storage", "elements"))
    core.words(_refusal)
    config.followers.append(core.forget)
    filters.asking_anew.append(core.forget)


def _refusal(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    return load("lazynp.namespace.bridge.refusals").refusal(function, args, kwargs, error)


def _compiled(steps: Any, dtypes: Any, lies: str, outs: Any, kept: bool | None) -> int:
    if config.backend == "numpy":
        return 0
    if under_way("lazynp", "llvmlite"):  # whose locks a thread that compiles would wait for, as this one waits for it
        return _AGAIN if kept is None else _AHEAD
    address: int = _llvm("expressions").compiled(steps, dtypes, lies, outs, kept)
    return address


_AGAIN, _AHEAD = -1, -2  # in the place of addresses, see ``backends/llvm/expressions.py``: it is asked for again


def _pool() -> int:
    count: int = _llvm("threads").count()
    return count


def _llvm(name: str) -> Any:
    """Import a module of the LLVM backend, which short programs do not need; Ctrl-C waits, as it does for all imports of backends."""
    return load(f"lazynp.backends.llvm.{name}")


def _described(name: str, function: FunctionType, theirs: Any) -> FunctionType:
    """Copy a function as the method ``name``, which shows NumPy's signature and has a help text of its own."""
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__module__, copy.__qualname__ = "lazynp", f"ndarray.{name}"
    own = function.__doc__ or theirs.__doc__
    copy.__doc__ = own if not own or name[0] == "_" else Text(own, "of_method", f"ndarray.{name}", function)
    copy.__wrapped__ = theirs  # type: ignore[attr-defined]
    return copy


def describe(cls: type, theirs: type) -> None:
    """Give all methods NumPy's signatures and help texts, for code that inspects them."""
    for name, member in list(vars(cls).items()):
        method = getattr(theirs, name, None)
        if not isinstance(member, FunctionType) or name in ("__init__", "__new__", "__getattr__"):
            continue
        if method is not None:
            setattr(cls, name, _described(name, member, method))
        elif name[0] != "_":
            member.__doc__ = Text(member.__doc__, "of_method", f"ndarray.{name}", member)
