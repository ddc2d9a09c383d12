"""Library functions: NumPy on what device memory holds when the work runs.

In: device arrays, and arguments as the real functions take them (``signatures``).  Out: device arrays.  Promise: dtype and shape are
known at the call, values are made in stream order; functions whose result's shape depends on values wait for their stream, as the real
ones do.  Where CuPy differs from NumPy it is CuPy that is followed: no host arrays, 0-d arrays in place of scalars, indices that wrap, no
errors of linear algebra unless asked for.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_emulator.fakecupy import blocks, signatures
from gpu_emulator.fakecupy.machine import machine
from gpu_emulator.fakecupy.signatures import words
from gpu_emulator.fakecupy.stream import get_current_stream

# the shape of the result depends on values, or the real function reads a value on the host
SYNCHRONOUS = frozenset(words("""unique nonzero flatnonzero argwhere extract compress bincount trim_zeros intersect1d union1d setdiff1d
    delete repeat histogram array_equal allclose matrix_rank isin digitize unwrap lstsq"""))
VIEWS = frozenset(words("transpose swapaxes moveaxis expand_dims squeeze broadcast_to diagonal flip fliplr flipud rot90 split array_split"))
DROPPED = {"argmin": ("dtype",), "argmax": ("dtype",), "nanargmin": ("dtype",), "nanargmax": ("dtype",)}


def _where(condition: Any, *, x: Any = None, y: Any = None) -> Any:
    return np.where(condition) if x is None and y is None else np.where(condition, x, y)


def _bincount(x: Any, *, weights: Any = None, minlength: Any = None) -> Any:
    """It takes all integers, and cuts a length to one."""
    if x.dtype.kind == "u":
        x = x.astype(np.int64)
    return np.bincount(x, weights, int(minlength or 0))


def _lstsq(a: Any, b: Any, *, rcond: Any = None) -> Any:
    """The singular values are of the matrix's dtype, and so is the limit, where it is not between 0 and 1."""
    values = np.linalg.svd(a, compute_uv=False)
    eps = np.finfo(values.dtype).eps
    limit = eps * max(a.shape) if rcond is None else rcond if 0 < rcond < 1 else eps
    x, residuals, rank, _ = np.linalg.lstsq(a, b, rcond=limit)
    return x, residuals, np.int32(rank), values


def _det(a: Any) -> Any:
    sign, logarithm = np.linalg.slogdet(a)
    return sign * np.exp(logarithm)


def _matrix_rank(a: Any, *, tol: Any = None) -> Any:
    return np.asarray(np.linalg.matrix_rank(a, tol))


def _turned(name: str) -> Callable[..., Any]:
    """Vectors that a decomposition may give either sign: not the one that NumPy's has."""
    function = getattr(np.linalg, name)

    def decomposition(a: Any, **options: Any) -> Any:
        found = function(a, **options)
        if name == "eigh":
            values, vectors = found
            return values, -vectors
        if name == "svd" and options.get("compute_uv", True):
            left, values, right = found
            k = values.shape[-1]
            return np.concatenate([-left[..., :k], left[..., k:]], -1), values, np.concatenate([-right[..., :k, :], right[..., k:, :]], -2)
        return found

    return decomposition


def _eig(a: Any) -> Any:
    """Complex, whatever comes out; in an order of its own."""
    values, vectors = np.linalg.eig(a)
    kind = np.result_type(values, np.complex64)
    return values[..., ::-1].astype(kind), -vectors[..., ::-1].astype(kind)


def _eigvals(a: Any) -> Any:
    return _eig(a)[0]


def _einsum(subscripts: Any, *operands: Any, **options: Any) -> Any:
    """Half precision is added up in single precision, where NumPy's rounds each sum."""
    if not all(x.dtype.char == "e" for x in operands if isinstance(x, np.ndarray)):
        return np.einsum(subscripts, *operands, **options)
    return np.einsum(subscripts, *[x.astype("f") for x in operands], **options).astype("e")


ADAPTED = {
    "einsum": _einsum,
    "eig": _eig, "eigvals": _eigvals,
    "take": functools.partial(np.take, mode="wrap"), "where": _where, "bincount": _bincount, "lstsq": _lstsq, "det": _det,
    "matrix_rank": _matrix_rank, "eigh": _turned("eigh"), "svd": _turned("svd"),
}

errors = threading.local() # `linalg`: what cupyx.errstate says


def contiguous(shape: tuple[int, ...], itemsize: int, order: str = "C") -> tuple[int, ...]:
    """Strides without gaps."""
    strides, step = [0] * len(shape), itemsize
    for axis in range(len(shape)) if order == "F" else reversed(range(len(shape))):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def _ndarray() -> Any:
    from gpu_emulator.fakecupy.array import ndarray

    return ndarray


def _empty(shape: tuple[int, ...], dtype: Any, order: str = "C") -> Any:
    return _ndarray()(shape, dtype, order=order)


class _Place:
    """Where an array's values are: all that queued work knows of it."""

    __slots__ = ("address", "dtype", "shape", "strides")

    def __init__(self, array: Any) -> None:
        self.address, self.shape, self.strides, self.dtype = array.data.ptr, array.shape, array.strides, array.dtype

    def view(self, what: str) -> np.ndarray[Any, Any]:
        return blocks.checked_view(self.address, self.shape, self.strides, self.dtype, what)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with its device arrays changed, in lists and tuples too."""
    if isinstance(value, (_ndarray(), _Place)):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _arrays(value: Any) -> list[Any]:
    found: list[Any] = []
    _mapped(value, lambda array: found.append(array))
    return found


def _sample(kind: str) -> Callable[[Any], np.ndarray[Any, Any]]:
    """An array like a device array, of values that the function takes."""

    def make(array: Any) -> np.ndarray[Any, Any]:
        if kind == "linalg" and array.ndim >= 2:
            sample = np.zeros(array.shape, array.dtype)
            sample[...] = np.eye(*array.shape[-2:])
            return sample
        return (np.ones if kind == "linalg" else np.zeros)(array.shape, array.dtype)

    return make


def _run(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)


def enqueue(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, kind: str = "",
            out: Any = None, casting: Any = None) -> Any:
    """Queue ``out = function(*args, **kwargs)``; the device arrays that it makes."""
    shapes = _run(name, function, _mapped(args, _sample(kind)), {key: _mapped(value, _sample(kind)) for key, value in kwargs.items()})
    several = isinstance(shapes, (list, tuple))
    results = list(shapes) if several else [shapes]
    if out is not None:
        outs = list(out) if isinstance(out, tuple) else [out]
        for result, each in zip(results, outs, strict=True):
            if casting is not None and not np.can_cast(np.asarray(result).dtype, each.dtype, casting):
                raise TypeError(f"output (typecode {np.asarray(result).dtype.char!r}) could not be coerced to provided output parameter"
                                f" (typecode {each.dtype.char!r}) according to the casting rule {casting!r}")
            np.broadcast_to(np.broadcast_to(np.empty(()), np.shape(result)), each.shape) # the error of an output of a wrong shape
    else:
        outs = [_empty(np.shape(result), np.asarray(result).dtype) for result in results]
    for array in _arrays((args, tuple(kwargs.values()), tuple(outs))):
        if array.data.ptr % array.dtype.itemsize and array.size: # a kernel reads or writes an element at once
            raise RuntimeError(f"cudaErrorMisalignedAddress: {name} of {array.dtype} at {array.data.ptr:#x}")
    places = [_Place(array) for array in outs]
    inputs, named = _mapped(args, _Place), {key: _mapped(value, _Place) for key, value in kwargs.items()}
    what = f"{name} in stream {get_current_stream().ptr:#x}"

    def work() -> None:
        def read(place: _Place) -> np.ndarray[Any, Any]:
            return place.view(what)

        try:
            values = _run(name, function, _mapped(inputs, read), {key: _mapped(value, read) for key, value in named.items()})
        except np.linalg.LinAlgError:
            for place in places: # what the solver leaves behind, half done
                place.view(what)[...] = 1
            return
        for place, value in zip(places, values if several else [values], strict=True):
            np.copyto(place.view(what), value, casting="unsafe")

    machine().enqueue(get_current_stream()._state, work, what)
    return tuple(outs) if several else outs[0]


def now(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same, waited for: the function sees values, and its result has the shape that it has."""
    machine().synchronize_stream(get_current_stream()._state)

    def read(array: Any) -> np.ndarray[Any, Any]:
        return _Place(array).view(name).copy()

    result = _run(name, function, _mapped(args, read), {key: _mapped(value, read) for key, value in kwargs.items()})
    return tuple(map(asarray, result)) if isinstance(result, (list, tuple)) else asarray(result)


# cuBLAS: a handle for each thread and device, whose mode says how single precision is multiplied

PRODUCTS = frozenset(words("matmul dot tensordot einsum inner vdot outer kron"))
TF32 = 3


def get_cublas_handle() -> int:
    handles = machine().local.__dict__.setdefault("cublas", {})
    return int(handles.setdefault(machine().device, (threading.get_ident() << 8 | machine().device) + 1))


def _modes() -> dict[int, int]:
    return machine().local.__dict__.setdefault("cublas modes", {})


def setMathMode(handle: int, mode: int) -> None:
    if handle != get_cublas_handle():
        raise RuntimeError("CUBLAS_STATUS_NOT_INITIALIZED") # of another thread or device
    _modes()[handle] = mode


def getMathMode(handle: int) -> int:
    return _modes().get(handle, 0)


def _rounded(x: Any) -> Any:
    """A factor in single precision with the 10 bits of mantissa that tensor cores take."""
    if not isinstance(x, np.ndarray) or x.dtype.char not in "fF":
        return x
    bits = np.ascontiguousarray(x).view(np.float32).view(np.uint32)
    cut = ((bits + 0xFFF + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(bits.view(np.float32)), cut, bits.view(np.float32)).view(x.dtype).reshape(x.shape)


def _in_mode(entry: _Entry) -> Callable[..., Any]:
    if entry.name not in PRODUCTS or getMathMode(get_cublas_handle()) != TF32:
        return entry.function
    return lambda *args, **named: entry.function(*map(_rounded, args), **named)


# the functions of the table


class _Entry:
    def __init__(self, line: str, home: Any, kind: str) -> None:
        self.name = line.partition("(")[0]
        made: dict[str, Any] = {}
        exec(f"def {line}: pass", {}, made) # a line of `signatures`
        self.signature = inspect.signature(made[self.name])
        self.function, self.kind = ADAPTED.get(self.name) or getattr(home, self.name), kind


def _entries(text: str, home: Any, kind: str) -> dict[str, _Entry]:
    return {entry.name: entry for entry in (_Entry(line, home, kind) for line in text.split("\n") if line)}


NUMPY = _entries(signatures.NUMPY, np, "")
LINALG = _entries(signatures.LINALG, np.linalg, "linalg")
FFT = _entries(signatures.FFT, np.fft, "")


def _call(entry: _Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = entry.signature.bind(*args, **kwargs)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        parameter = entry.signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is parameter.empty:
            positional.append(value)
        elif value is not parameter.default and name not in DROPPED.get(entry.name, ()):
            named[name] = value
    if entry.name in VIEWS or (entry.name == "einsum" and _is_view(positional)):
        return _views(entry.function, positional, named)
    out = named.pop("out", None)
    if not _arrays((tuple(positional), tuple(named.values()))):
        return _on_host(entry, tuple(positional), named)
    if entry.kind == "linalg" and getattr(errors, "linalg", None) == "raise":
        return _solved(entry, tuple(positional), named)
    if entry.name in SYNCHRONOUS or (entry.name == "where" and len(positional) + len(named) == 1):
        return now(entry.name, entry.function, tuple(positional), named)
    result = enqueue(entry.name, _in_mode(entry), tuple(positional), named, kind=entry.kind, out=out)
    if entry.name in FFT and entry is FFT[entry.name]:
        _planned(entry.name, result)
    return result


PLANS = 16 # that a thread keeps


def _plans() -> dict[Any, Any]:
    return machine().local.__dict__.setdefault("plans", {})


def _planned(name: str, result: Any) -> None:
    """A plan of cuFFT, with memory to work in, is kept."""
    from gpu_emulator.fakecupy.memory import alloc

    plans, key = _plans(), (name, result.shape, result.dtype)
    if key not in plans:
        if len(plans) >= PLANS:
            del plans[next(iter(plans))]
        plans[key] = alloc(result.nbytes)


def clear_plan_cache() -> None:
    _plans().clear()


def _solved(entry: _Entry, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Under ``errstate(linalg="raise")``: cuSOLVER tells of singular matrices, but not of numbers that are not finite."""
    sample = _run(entry.name, entry.function, _mapped(args, _sample("linalg")), named) # the errors of shapes come first
    try:
        return now(entry.name, entry.function, args, named)
    except np.linalg.LinAlgError:
        if all(np.isfinite(_Place(array).view(entry.name)).all() for array in _arrays(args)):
            raise
    parts = sample if isinstance(sample, tuple) else (sample,)
    left = tuple(asarray(np.full_like(part, np.nan if part.dtype.kind in "fc" else 0)) for part in parts)
    return left if isinstance(sample, tuple) else left[0]


def _on_host(entry: _Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Functions that make arrays of numbers."""
    if entry.name not in ("arange", "linspace", "eye", "identity", "tri", "fftfreq", "rfftfreq"):
        raise TypeError(f"cupy.{entry.name} takes cupy arrays")
    return asarray(entry.function(*args, **kwargs))


def _is_view(operands: list[Any]) -> bool:
    """Whether an einsum of one operand moves its axes only: CuPy shows the operand's own memory, as NumPy does."""
    if len(operands) != 2 or not isinstance(operands[1], _ndarray()):
        return False
    sample = np.empty(operands[1].shape, np.bool_)
    return bool(np.may_share_memory(np.einsum(operands[0], sample), sample))


def _views(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    arrays = _arrays(args)
    if len(arrays) != 1:
        raise TypeError(f"Unsupported type {type(args[0])}")
    (array,) = arrays
    result = function(*_mapped(tuple(args), lambda array: array._like()), **kwargs)
    return [array._view(each) for each in result] if isinstance(result, list) else array._view(result)


def function(entry: _Entry) -> Callable[..., Any]:
    """What the fake module offers under the entry's name."""

    def library_function(*args: Any, **kwargs: Any) -> Any:
        return _call(entry, args, kwargs)

    library_function.__name__ = entry.name
    library_function.__signature__ = entry.signature # type: ignore[attr-defined]
    return library_function


class ufunc:
    """A universal function."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name
        self._function: Callable[..., Any] = getattr(np, name)

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind", where: Any = None) -> Any:
        named = {} if dtype is None else {"dtype": dtype}
        if where is not None:
            raise NotImplementedError("where= of a universal function")
        if not _arrays(args):
            args = (asarray(args[0]), *args[1:])
        return enqueue(self.name, self._function, args, named, out=out, casting=casting)

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        """As the real one: of the functions that have an atomic form, for the types that have it."""
        if self.name not in ("add", "maximum", "minimum"):
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        if a.dtype.name not in ("int32", "float32", "float64", "uint32", "uint64"):
            raise TypeError(f"{self.name}.at only supports int32, float32, float64, uint32, uint64 as data type, not {a.dtype}")

        def put(target: Any, *rest: Any) -> Any:
            result = target.copy()
            self._function.at(result, _wrapped(target.shape, rest[:-1]), rest[-1])
            return result

        enqueue(f"{self.name}.at", put, (a, *_parts(a, indices), b), {}, out=a)


UFUNCS = {name: ufunc(name) for name in signatures.UFUNCS.split()}


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """A function by name, for the methods of arrays."""
    if name in UFUNCS:
        return UFUNCS[name](*args, **kwargs)
    if name == "astype":
        return enqueue(name, lambda array, dtype: array.astype(dtype), args, kwargs)
    if name == "zeros_like":
        return enqueue(name, np.zeros_like, args, kwargs)
    return _call(NUMPY[name], args, kwargs)


# copies and indexing


def copy_to_layout(array: Any, order: str = "C") -> Any:
    like = array._like()
    if order in "AK":
        order = "F" if like.flags.fnc else "C"
    target = _empty(array.shape, array.dtype, order)
    return enqueue("copy", lambda value: value, (array,), {}, out=target)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> Any:
    """A device array of anything; data of the host is copied to the device in stream order."""
    ndarray = _ndarray()
    if not isinstance(a, ndarray) and hasattr(a, "__cuda_array_interface__"):
        a = wrap(a)
    if isinstance(a, (list, tuple)) and _arrays(a):
        a = call("stack", [asarray(item) for item in a])
    if isinstance(a, ndarray):
        if dtype is not None and np.dtype(dtype) != a.dtype:
            return a.astype(dtype)
        if order in ("C", "F") and not getattr(a.flags, f"{order.lower()}_contiguous"):
            return copy_to_layout(a, order)
        return copy_to_layout(a) if copy else a
    host = np.array(a, dtype, order="F" if order == "F" else "C")
    result = ndarray(host.shape, host.dtype, order="F" if order == "F" else "C")
    result.data.copy_from_host_async(host.ctypes.data, host.nbytes)
    if blocking:
        get_current_stream().synchronize()
    return result


def wrap(exporter: Any) -> Any:
    """An array over the memory of an object with ``__cuda_array_interface__``, once its stream is done."""
    from gpu_emulator.fakecupy.memory import MemoryPointer, UnownedMemory

    about = exporter.__cuda_array_interface__
    shape, dtype, strides = tuple(about["shape"]), np.dtype(about["typestr"]), about.get("strides")
    address = about["data"][0]
    size = blocks.extent(address, shape, strides or contiguous(shape, dtype.itemsize), dtype.itemsize)[1]
    stream = about.get("stream")
    if about.get("version", 0) >= 3 and stream is not None:
        if stream == 0:
            raise ValueError("stream 0 is not allowed in __cuda_array_interface__")
        machine().synchronize_stream(machine().stream(stream))
    memory = UnownedMemory(address, size, exporter, -1 if address else machine().device)
    return _ndarray()(shape, dtype, MemoryPointer(memory, 0), strides)


def is_basic(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    basic = (int, slice, type(None), type(...), np.integer)
    return all(isinstance(part, basic) and not isinstance(part, (bool, np.bool_)) for part in parts)


def _parts(array: Any, index: Any) -> tuple[Any, ...]:
    """An advanced index with its arrays on the device."""
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(asarray(p) if isinstance(p, (np.ndarray, list)) else p for p in parts)


def _wrapped(shape: tuple[int, ...], parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Integer arrays modulo their axes: CuPy raises for no index of an array."""
    used = sum(0 if p is None or p is ... else p.ndim if isinstance(p, np.ndarray) and p.dtype == bool else 1 for p in parts)
    axis, found = 0, []
    for part in parts:
        if part is ...:
            axis += len(shape) - used
        elif isinstance(part, np.ndarray) and part.dtype == bool:
            axis += part.ndim
        elif part is not None:
            if isinstance(part, np.ndarray) and shape[axis]:
                part = part % shape[axis]
            axis += 1
        found.append(part)
    return tuple(found)


def get_items(array: Any, index: Any) -> Any:
    parts = _parts(array, index)

    def get(value: Any, *parts: Any) -> Any:
        return value[_wrapped(value.shape, parts)]

    how = now if any(part.dtype == bool for part in _arrays(parts)) else enqueue
    return how("getitem", get, (array, *parts), {})


def set_items(array: Any, index: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.ndim:
        target = array[index] if is_basic(index) else None
        if target is None or target.dtype != value.dtype or target.shape != value.shape:
            raise TypeError(f"Unsupported type {type(value)}")
        value = asarray(value)
    parts = _parts(array, index)
    if any(part.dtype == bool for part in _arrays(parts)) and getattr(value, "ndim", 0): # as many values as are true: it waits for them
        parts = tuple(each for part in parts for each in (call("nonzero", part) if _arrays(part) and part.dtype == bool else (part,)))

    def put(target: Any, *rest: Any) -> Any:
        result = target.copy()
        result[_wrapped(target.shape, rest[:-1])] = rest[-1]
        return result

    enqueue("setitem", put, (array, *parts, value), {}, out=array)


# the methods of arrays that are functions of the table

METHODS = words("""all any argmax argmin argpartition argsort clip cumprod cumsum dot max mean min nonzero prod ptp repeat round
    searchsorted std sum take trace var conj""")
OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
    "matmul": "matmul",
}
COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
UNARY = {"neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute"}


def complete(ndarray: Any) -> None:
    """Give the array class its methods and operators."""

    def method(name: str, changed: Callable[..., tuple[Any, ...]] = lambda *args: args, inplace: bool = False) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            if inplace:
                kwargs["out"] = self
            return call(name, *changed(self, *args), **kwargs)

        return run

    for name in METHODS:
        setattr(ndarray, name, method(name))
    for name, function in (OPERATORS | COMPARISONS | UNARY).items():
        setattr(ndarray, f"__{name}__", method(function))
    for name, function in OPERATORS.items():
        setattr(ndarray, f"__r{name}__", method(function, lambda self, other: (other, self)))
        if name != "matmul": # as in CuPy
            setattr(ndarray, f"__i{name}__", method(function, inplace=True))
