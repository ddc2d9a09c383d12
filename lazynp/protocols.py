"""Protocols between arrays or scalars and the rest of Python.

In: the class of arrays, the class of scalars.  Out: the same classes with NumPy's protocols, Python's conversions, copying, pickling and
printing.  Promise: an export of an array is its memory itself (``storage.lend``), that of a scalar a copy; what the library gives to a
function of NumPy's for the length of a call is a read-only snapshot, unless the memory is shared anyway; a NumPy function called on one of
ours stays lazy where lazynp has it.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

import numpy as np

from lazynp.array import core
from lazynp.engine import devices
from lazynp.graph.floating import at_users_line
from lazynp.graph.node import caller
from lazynp.scalars import CLASSES, generic
from lazynp.subclasses import array_function, array_ufunc
from lazynp.values.loading import late
from lazynp.values.nesting import MOST_AXES, too_deep

if TYPE_CHECKING:
    from lazynp import arrays, conversion, layout, storage
    from lazynp.array import calls, hand
    from lazynp.graph import build, report
    from lazynp.namespace import standard
else:
    calls, hand, arrays, conversion, build, report, layout, standard, storage = late(
        "array.calls", "array.hand", "arrays", "conversion", "graph.build", "graph.report", "layout", "namespace.standard", "storage"
    )


def _host(x: Any, reason: str) -> np.ndarray[Any, Any]:
    """The value as ``storage.host`` gives it; an array in memory needs no other module for that."""
    base = x._base if type(x) is arrays.ndarray else None
    return base if type(base) is np.ndarray else storage.host(x, reason)


def snapshot(x: Any, reason: str) -> np.ndarray[Any, Any]:
    """A read-only NumPy array of the value, which keeps the memory alive and is never written; of shared memory a view."""
    if type(x) is arrays.ndarray:
        memory = hand.own_memory(x)
        if memory is not None:
            core.lend(x)
            return memory[...]

    array = storage.host(x, reason).view()
    if type(x) is arrays.ndarray:
        root = x._base if type(x._base) is arrays.ndarray else x
        if storage.is_lent(root) or hand.own_memory(root) is not None:
            if x._readonly is not False:
                array.flags.writeable = False
            return array
    owner = array.base
    while type(owner) is np.ndarray:
        # Not through the view, its base or any other way: code that gets this array cannot make it writeable again.
        owner.flags.writeable = False
        owner = owner.base
    array.flags.writeable = False
    return array


def exported(x: Any, reason: str) -> np.ndarray[Any, Any]:
    """The memory of an array, shared with it; a snapshot of what is on a device, and of a scalar, which has no memory of its own."""
    memory = None if type(x) in CLASSES else storage.lend(x)
    return snapshot(x, reason) if memory is None else memory


def memory_of(buffer: Any) -> Any:
    """A buffer argument as NumPy takes it."""
    return exported(buffer, "buffer") if type(buffer) is arrays.ndarray else buffer


def _given(x: Any, reason: str) -> np.ndarray[Any, Any]:
    """``exported``, to be called by what NumPy's constructors call; pandas, which copies NumPy's arrays and keeps others', gets a copy."""
    if sys._getframe(2).f_globals.get("__name__", "").startswith("pandas.core"):
        return snapshot(x, reason).copy(order="K")
    return exported(x, reason)


# NumPy drops what the buffer protocol raises, be it an interrupt, and goes on to the next protocol, which raises it again.
_dropped: list[tuple[Any, int, BaseException]] = []


def _raise_dropped(x: Any) -> None:
    if _dropped:
        of, thread, error = _dropped.pop()
        if of is x and thread == get_ident():
            raise error


def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """The value as a NumPy array: the memory itself, or a copy; a scalar has no memory of its own, so it is always copied."""
    _raise_dropped(self)
    if type(self) in CLASSES:
        if copy is False:
            raise ValueError(conversion.NO_COPY)
        copy = True
    if dtype is not None and np.dtype(dtype) != self.dtype:
        if copy is False:
            raise ValueError(conversion.NO_COPY)
        return snapshot(self, "__array__").astype(dtype)
    return snapshot(self, "__array__").copy(order="K") if copy else _given(self, "__array__")


def _to_numpy(self: Any, dtype: Any = None, copy: bool = False) -> np.ndarray[Any, Any]:
    """Return the array's memory as a NumPy array, or a copy where that or another dtype is asked for.

    Parameters
    ----------
    dtype : dtype, optional
        What the elements are converted to.
    copy : bool
        True asks for memory of its own.

    Returns
    -------
    numpy.ndarray
        An array of the same shape.

    Notes
    -----
    Libraries that treat arrays otherwise than sequences (matplotlib's columns of a matrix) look for this method.

    Examples
    --------
    >>> import lazynp as np
    >>> type(np.arange(3).to_numpy()).__module__
    'numpy'
    """
    return _array(self, dtype, copy or None)


def _is_ours(x: object) -> bool:
    return type(x) is arrays.ndarray or type(x) in CLASSES


def to_host(x: Any, reason: str, depth: int = 0) -> Any:
    """``x`` with every array and scalar of ours in it, also inside lists, tuples and dictionaries, as NumPy's."""
    if _is_ours(x):
        return x.concrete(reason) if type(x) in CLASSES else snapshot(x, reason)
    if depth > MOST_AXES:
        raise too_deep()
    if type(x) in (list, tuple):
        return type(x)([to_host(item, reason, depth + 1) for item in x])
    if type(x) is dict:
        return {key: to_host(item, reason, depth + 1) for key, item in x.items()}
    return x


def from_host(x: Any) -> Any:
    """``x`` with NumPy's arrays and scalars as ours."""
    from lazynp.scalars import OF_TYPE, scalar_of_value

    if type(x) is np.ndarray:
        return conversion.from_numpy(x) if x.dtype.isnative and x.dtype.type in OF_TYPE else x
    if type(x) in OF_TYPE:
        return scalar_of_value(x)
    if type(x) in (list, tuple):
        return type(x)([from_host(item) for item in x])
    return x


def through_numpy(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function that lazynp does not have on NumPy's arrays; counted as a fallback."""
    args, kwargs = to_host(args, "fallback"), to_host(kwargs, "fallback")
    report.count_fallback(name, sum(a.nbytes for a in args if isinstance(a, np.ndarray)), caller())
    value = function(*args, **kwargs)
    return value if value is kwargs.get("out") else from_host(value)


# What NumPy's numbers call where they are left of an operator.
OF_NUMBERS = frozenset(
    {
        np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power, np.less, np.less_equal, np.greater,
        np.greater_equal, np.equal, np.not_equal, np.bitwise_and, np.bitwise_or, np.bitwise_xor,
    }
)  # fmt: skip


def _array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``numpy.sin(x)`` and its kin: lazy, except where the result goes into NumPy's own memory."""
    if isinstance(self, np.ndarray):  # ``np.ndarray.__array_ufunc__`` of a subclass
        return array_ufunc(self, ufunc, method, *inputs, **kwargs)
    if ufunc in OF_NUMBERS and not kwargs and method == "__call__":  # a number of NumPy's on the left
        known = calls.of_number(ufunc, inputs[0], inputs[1])
        if known is not NotImplemented:
            return known
    import lazynp

    out = kwargs.get("out", ())
    if any(type(x) in CLASSES for x in out):
        raise TypeError("return arrays must be of ArrayType")
    if any(isinstance(x, np.ndarray) for x in out):
        if any(_is_ours(x) for x in out):
            return NotImplemented
        return getattr(ufunc, method)(*to_host(inputs, "out="), **to_host(kwargs, "out="))
    if getattr(np, ufunc.__name__, None) is ufunc:
        ours = getattr(lazynp, ufunc.__name__)
        if len(out) == 1:
            kwargs["out"] = out[0]
        return at_users_line(ours if method == "__call__" else getattr(ours, method), inputs, kwargs)
    if method == "__call__" and _is_scipys(ufunc):
        if len(out) == 1:
            kwargs["out"] = out[0]
        return getattr(lazynp.special, ufunc.__name__)(*inputs, **kwargs)
    if out:
        values = through_numpy(ufunc.__name__, getattr(ufunc, method), inputs, {k: v for k, v in kwargs.items() if k != "out"})
        for x, value in zip(out, values if isinstance(values, tuple) else (values,), strict=True):
            x[...] = value
        return out[0] if len(out) == 1 else out
    return through_numpy(ufunc.__name__, getattr(ufunc, method), inputs, kwargs)


def _is_scipys(ufunc: np.ufunc) -> bool:
    """Tell whether it is one of ``scipy.special``, which ``lazynp.special`` has too; none exists before that module is loaded."""
    module: Any = sys.modules.get("scipy.special")
    found = getattr(module, ufunc.__name__, None)
    return found is not None and getattr(found, "__wrapped__", found) is ufunc


def _array_function(self: Any, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """``numpy.concatenate([x, y])`` and its kin: lazynp's function of the same name."""
    if isinstance(self, np.ndarray):
        return array_function(self, func, types, args, kwargs)
    import lazynp

    if not all(issubclass(cls, (lazynp.ndarray, generic)) for cls in types):
        return NotImplemented  # a third library's arrays are among the arguments: it may know better
    module, name = getattr(func, "__module__", "") or "", func.__name__
    out = kwargs.get("out")
    if not isinstance(out, np.ndarray) or _is_ours(out):
        ours: Any = lazynp
        for part in [*module.split(".")[1:], name] if module.startswith("numpy") else []:
            ours = getattr(ours, part, None)
        if ours is not None and ours is not func:
            return ours(*args, **kwargs)
    return through_numpy(name, func, args, kwargs)


def _memory(x: Any) -> np.ndarray[Any, Any] | None:
    """The memory of an array that is in memory; None for all others, scalars too."""
    return None if type(x) in CLASSES else hand.own_memory(x)


def _dlpack(self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    """Export the memory, as NumPy does; a device's own where the values are on one."""
    if self.device != devices.CPU and (dl_device is None or dl_device[0] != 1):
        return devices.gpus.dlpack(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    wanted = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    array = exported(self, "__dlpack__")
    if not array.flags.writeable and getattr(self, "_readonly", False) is False and (max_version is None or max_version[0] < 1):
        array = array.copy(order="K")  # a snapshot, which the consumer cannot be told not to write to
    return array.__dlpack__(**{key: value for key, value in wanted.items() if value is not None})


def _dlpack_device(self: Any) -> tuple[int, int]:
    name = self.device
    return (1, 0) if name == devices.CPU else (2, int(name.partition(":")[2]))  # kDLCPU, kDLCUDA


def _cuda_array_interface(self: Any) -> dict[str, Any]:
    """The protocol of numba, version 3, for arrays that live on a GPU."""
    if self.device == devices.CPU:
        raise AttributeError("an array in host memory has no __cuda_array_interface__")
    return devices.gpus.interface(self)


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    import lazynp

    if api_version is not None and api_version not in standard.VERSIONS:
        raise ValueError(f'Version "{api_version}" of the Array API Standard is not supported.')
    return standard.namespace_of(lazynp)


def _to_device(self: Any, device: str, /, *, stream: Any = None) -> Any:
    """Copy the values to a device; return this array where it lives there."""
    if stream is not None:
        raise ValueError("The stream argument in to_device() is not supported")
    if not isinstance(device, str) and not type(device).__module__.startswith("cupy"):
        np.empty(0).to_device(device)  # which says so
    name = devices.name_of(device)
    devices.checked(name)
    return self if name == devices.CPU and devices.gpus is None else devices.use().moved(self, name)


FORMAT, STRIDES, C_CONTIGUOUS = 0x04, 0x18, 0x38  # what consumers of a buffer ask for


def _buffer(self: Any, flags: int) -> memoryview:
    _dropped.clear()
    try:
        array = _given(self, "buffer")
        if not flags & FORMAT and (flags & 1 or not array.flags.writeable) and array.nbytes:
            _addressed(self)  # ``frombuffer`` and ``ndarray(buffer=...)`` release the buffer, and keep the address and the array
    except BaseException as error:
        _dropped.append((self, get_ident(), error))
        raise
    if flags & 1 and not array.flags.writeable:  # PyBUF_WRITABLE
        raise ValueError("buffer source array is read-only")
    if (flags & STRIDES != STRIDES or flags & C_CONTIGUOUS == C_CONTIGUOUS) and not array.flags.c_contiguous:
        raise ValueError("ndarray is not C-contiguous")
    return array.data


SHARED: dict[str, Any] = {
    "__array__": _array,
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
    "__array_namespace__": _array_namespace,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "to_device": _to_device,
}


# Arrays only ---------------------------------------------------------------------------------------------------------------


def _addressed(self: Any) -> np.ndarray[Any, Any]:
    """The memory for those who are told its address: it is the array's as long as that lives."""
    memory = storage.lend(self, pinned=True)
    if memory is None:
        raise AttributeError("an array on a device has no address in host memory")
    return memory


def _array_struct(self: Any) -> Any:
    """NumPy's protocol for C, whose object keeps the memory."""
    _raise_dropped(self)
    return _given(self, "__array__").__array_struct__


def _array_interface(self: Any) -> dict[str, Any]:
    """NumPy's protocol of version 3."""
    described: dict[str, Any] = _addressed(self).__array_interface__
    return described


def _truth(self: Any) -> bool:
    size = self.size
    if size == 1:
        return bool(_host(self, "__bool__").reshape(()))
    if size == 0:
        raise ValueError("The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty.")
    raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")


def _conversion(name: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        if self.shape:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return convert(_host(self, name))

    return method


def _index(self: Any) -> int:
    if self.shape or self.dtype.kind not in "iu":
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    return int(_host(self, "__index__")[()])


def _array_wrap(self: Any, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """NumPy's result as what this array's own functions give."""
    made = conversion.asarray(array)
    return made[()] if return_scalar and not made.shape else made


def _delitem(self: Any, key: Any) -> None:
    raise ValueError("cannot delete array elements")


def _bytes(self: Any) -> bytes:
    # Without the buffer protocol (Python 3.11) Python would take the elements for bytes.
    return bytes(_tobytes(self))


def _contains(self: Any, item: Any) -> bool:
    return (
        item in _host(self, "__contains__")
        if not _is_ours(item)
        else to_host(item, "__contains__") in _host(self, "__contains__")
    )


def _item(self: Any, *args: Any) -> Any:
    """Return one element as a Python scalar."""
    if not args and self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return _host(self, "item").item(*args)


def _tolist(self: Any) -> Any:
    """Return the values as nested lists of Python scalars."""
    return _host(self, "tolist").tolist()


def _tobytes(self: Any, order: Any = "C") -> bytes:
    """Return the elements' bytes in the given order."""
    return _host(self, "tobytes").tobytes(order)


def _tofile(self: Any, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file."""
    _host(self, "tofile").tofile(fid, sep, format)


def _copy(self: Any, order: str = "C") -> Any:
    """Copy the array; this costs nothing until one of the two is written."""
    memory = _memory(self)
    if memory is not None:
        return hand.cell(memory.copy(order))  # type: ignore[arg-type]

    return arrays.wrap_ordered(build.copied(arrays.node_of(self)), layout.copy_order(self, order or "C"))


def _shallow_copy(self: Any) -> Any:
    return _copy(self, "K")


def _deepcopy(self: Any, memo: Any) -> Any:
    return _copy(self, "K")


def _reconstruct(subtype: Any, shape: Any, dtype: Any) -> Any:
    """Make an array whose state is set afterwards, as NumPy's function of that name."""
    return subtype.__new__(subtype, shape, dtype)


def _frombuffer(buf: Any, dtype: Any, shape: Any, order: str) -> Any:
    """Show a buffer that was pickled, as NumPy's function of that name."""
    return conversion.asarray(np.frombuffer(buf, dtype).reshape(shape, order=order))  # type: ignore[call-overload]


def _reduce(self: Any) -> tuple[Any, ...]:
    """Describe the array for pickle."""
    return _reconstruct, (arrays.ndarray, (0,), b"b"), _host(self, "pickle").__reduce__()[2]


def _reduce_ex(self: Any, protocol: int, /) -> tuple[Any, ...]:
    """Describe the array for a protocol of pickle; from the fifth on contiguous memory is a buffer, which need not be copied."""
    flags = self.flags
    if protocol < 5 or not flags.forc:
        return _reduce(self)
    memory: Any = exported(self, "pickle")
    order = "C" if flags.c_contiguous else "F"
    return _frombuffer, (PickleBuffer(memory if order == "C" else memory.T), self.dtype, self.shape, order)


def _setstate(self: Any, state: Any, /) -> None:
    """Take what ``__reduce__`` told; see :meth:`numpy.ndarray.__setstate__`."""
    array = np.empty(0)
    array.__setstate__(state)
    storage.become(self, array)


def _repr(self: Any) -> str:
    return np.array_repr(_host(self, "repr"))


def _str(self: Any) -> str:
    return np.array_str(_host(self, "repr"))


def _format(self: Any, spec: str) -> str:
    if not self.shape:
        return format(_host(self, "repr")[()], spec)
    if spec:
        raise TypeError(f"unsupported format string passed to {type(self).__module__}.{type(self).__name__}.__format__")
    return str(self)


ARRAYS: dict[str, Any] = {
    "__bool__": _truth,
    "__int__": _conversion("__int__", int),
    "__float__": _conversion("__float__", float),
    "__complex__": _conversion("__complex__", complex),
    "__index__": _index,
    "__contains__": _contains,
    "__array_wrap__": _array_wrap,
    "to_numpy": _to_numpy,
    "__delitem__": _delitem,
    "__bytes__": _bytes,
    "__copy__": _shallow_copy,
    "__deepcopy__": _deepcopy,
    "__reduce__": _reduce,
    "__reduce_ex__": _reduce_ex,
    "__setstate__": _setstate,
    "__repr__": _repr,
    "__str__": _str,
    "__format__": _format,
    "item": _item,
    "tolist": _tolist,
    "tobytes": _tobytes,
    "tofile": _tofile,
    "copy": _copy,
    "data": property(lambda self: exported(self, "buffer").data),
    "ctypes": property(lambda self: _addressed(self).ctypes),
    "__buffer__": _buffer,  # not of scalars: NumPy would take the memory of one, read-only, for an array's
    "__array_struct__": property(_array_struct),
    "__array_interface__": property(_array_interface),
    "__cuda_array_interface__": property(_cuda_array_interface),
}


def install(cls: type, names: dict[str, Any]) -> None:
    """Attach protocol methods to a class."""
    for name, member in names.items():
        setattr(cls, name, member)
