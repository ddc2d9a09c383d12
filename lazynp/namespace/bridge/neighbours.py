"""Libraries that tell arrays and numbers by NumPy's own types.

In: their modules, when they are loaded.  Out: what a program calls of them gets NumPy's arrays (CuPy's SciPy: CuPy's), over our arrays'
memory, and NumPy's numbers.  Promise: everybody else calls what they call without lazynp, and gets what they get; results are the
libraries' own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from operator import methodcaller
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.engine import devices
from lazynp.namespace.bridge.meeting import CUPYX
from lazynp.ndarray import ndarray
from lazynp.protocols import SHARED
from lazynp.scalars import CLASSES

_OPERATORS: Final = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod", "and", "or", "xor", "lshift", "rshift", "matmul")
_METHODS: Final = {f"__{kind}{name}__" for kind in ("", "r", "i") for name in _OPERATORS} | {
    f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "getitem", "setitem", "contains", "call", "init", "new")
}

Shown = Callable[[Any], Any]  # an array of ours -> another library's
_NUMPYS: Final[Shown] = methodcaller("to_numpy")
_LOOKED_INTO: Final[frozenset[type]] = frozenset({ndarray, *CLASSES, list, tuple, dict, slice})
_RESULTS: Final = frozenset(core.number_classes_of.values())
_NUMPYS_NUMBERS: Final = frozenset({np.bool, *core.number_classes_of})
_OURS: Final = frozenset({ndarray, *CLASSES}) | _RESULTS
any_of = core.any_of

_LOOKING: Final = {"eval", "query"}  # they read the names of whoever calls them


def numpys(value: Any, shown: Shown = _NUMPYS) -> Any:
    """Return an array or number of ours as NumPy's, also in lists, tuples, dictionaries and slices; anything else as it is."""
    kind = type(value)
    if kind is ndarray:
        return shown(value)
    if kind in CLASSES:
        return value.concrete("argument")
    if kind is list or kind is tuple:
        if _LOOKED_INTO.isdisjoint(map(type, value)):
            return value  # millions of numbers, perhaps
        found = [numpys(item, shown) for item in value]
        return value if all(a is b for a, b in zip(found, value, strict=True)) else kind(found)
    if kind is dict:
        return {numpys(key, shown): numpys(item, shown) for key, item in value.items()}
    return slice(*[numpys(part, shown) for part in (value.start, value.stop, value.step)]) if kind is slice else value


def _cupys(x: Any) -> Any:
    """An array as CuPy's where it lives on a GPU; another one as NumPy's, which CuPy refuses."""
    return x.to_numpy() if devices.gpus is None or x.device == devices.CPU else devices.gpus.exported(x)


def given(function: Callable[..., Any], shown: Shown = _NUMPYS) -> Callable[..., Any]:
    """Return a function that gets NumPy's arrays and numbers in the place of ours, or arrays as ``shown``."""

    def answer(*arguments: Any, **keywords: Any) -> Any:
        if any_of(_LOOKED_INTO, arguments, keywords):
            arguments = tuple([numpys(value, shown) for value in arguments])
            keywords = {name: numpys(value, shown) for name, value in keywords.items()}
        return function(*arguments, **keywords)

    functools.update_wrapper(answer, function)
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        # It stands where the function does: warnings pass over the library's own files on their way to the user's line.
        own = answer.__code__
        call = max(line or 0 for *_, line in own.co_lines()) - own.co_firstlineno
        answer.__code__ = own.replace(co_filename=code.co_filename, co_firstlineno=max(code.co_firstlineno - call, 1))
    answer.__given__ = True  # type: ignore[attr-defined]
    return answer


def _functions(module: Any, names: Iterable[str], shown: Shown = _NUMPYS) -> None:
    for name in names:
        function = getattr(module, name, None)
        if isinstance(function, FunctionType | BuiltinFunctionType) and name not in _LOOKING and not hasattr(function, "__given__"):
            setattr(module, name, given(function, shown))


def _class(kind: type, package: str, shown: Shown = _NUMPYS) -> None:
    """Let the public methods of a class, and of what it inherits from or hands on to in its package, be given NumPy's."""
    subclasses: list[type] = type.__subclasses__(kind)
    for subclass in subclasses:
        _class(subclass, package, shown)
    for owner in kind.__mro__:
        if not f"{owner.__module__}.".startswith(package):
            continue
        for name, member in list(vars(owner).items()):
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            code = getattr(function, "__code__", None)  # Cython's functions have one, too
            wanted = not name.startswith("_") or name in _METHODS
            if code is None or hasattr(function, "__given__") or name in _LOOKING or not wanted:
                continue
            if code.co_argcount > 1 or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
                told = given(function, shown)
                setattr(owner, name, told if member is function else type(member)(told))


def _pandas(module: Any) -> None:
    _functions(module, list(vars(module)))
    frame = module.DataFrame()
    for kind in (module.DataFrame, module.Series, module.Index, *map(type, (frame.loc, frame.iloc, frame.at, frame.iat))):
        _class(kind, "pandas.")


def _cv2(module: Any) -> None:
    _functions(module, list(vars(module)))


def _torch(module: Any) -> None:
    """PyTorch takes our memory for that of its default dtype, and ends the process over strides below zero."""
    names = ("from_numpy", "as_tensor", "asarray", "tensor")
    _functions(module, names)
    for name in names:  # TorchScript knows functions by their identity
        module.jit._builtins._register_builtin(getattr(module, name), f"aten::{name}")


def _batches(module: Any) -> None:
    _functions(module, ("default_collate", "default_convert"))


def _h5py(module: Any) -> None:
    _class(module.Dataset, "h5py.")


def _numba(module: Any) -> None:
    """Let what it compiles name our modules, and what it compiled be called with our arrays."""
    from lazynp.namespace.bridge import numba

    if module.__name__ == "numba":
        _functions(module, ("typeof",))
    elif module.__name__.endswith("stencil"):
        call = module.StencilFunc.__call__
        module.StencilFunc.__call__ = call if hasattr(call, "__given__") else given(call)
    else:
        (numba.calls if module.__name__.endswith("dispatcher") else numba.names)(module)


def _dask(module: Any) -> None:
    """Let what is looked up by an argument's type be found for ours where it is told for NumPy's."""
    dispatch = module.Dispatch.dispatch

    def numpys_too(self: Any, cls: type) -> Any:
        return dispatch(self, np.ndarray if cls is ndarray else cls._numpy if cls in CLASSES else cls)  # type: ignore[attr-defined]

    if dispatch.__module__ != __name__:
        module.Dispatch.dispatch = functools.wraps(dispatch, assigned=("__doc__", "__name__", "__qualname__"))(numpys_too)


class _Result:
    """What stands for a number of ours where a library asks whose an argument is, by its class."""

    __array_namespace__ = SHARED["__array_namespace__"]


def _namespaces(module: Any) -> None:
    """Let results, which are NumPy's numbers by their class, belong to lazynp; beside arrays of ours NumPy's own numbers do, too."""
    asked = module.array_namespace
    result = _Result()

    def array_namespace(*xs: Any, **keywords: Any) -> Any:
        kinds = set(map(type, xs))
        if not _OURS.isdisjoint(kinds):
            xs = tuple([result if type(x) in _RESULTS else x for x in xs if type(x) not in _NUMPYS_NUMBERS])
        return asked(*xs, **keywords)

    if not hasattr(asked, "__given__"):
        array_namespace.__given__ = True  # type: ignore[attr-defined]
        module.array_namespace = functools.wraps(asked)(array_namespace)
        if hasattr(module, "get_namespace"):
            module.get_namespace = module.array_namespace


def _sklearn(module: Any) -> None:
    _functions(module.MultiLabelBinarizer, ("inverse_transform",))  # calls ``compress`` of its own array


def _extra(module: Any) -> None:
    """A result that is not computed is an instance of ``float``, and no number of Python's."""
    asked = module.is_python_scalar

    def is_python_scalar(x: Any) -> bool:
        return type(x) not in CLASSES and asked(x)

    if asked.__module__ != __name__:
        module.is_python_scalar = is_python_scalar


def _sparse(module: Any) -> None:
    """Let sparse matrices broadcast copies of what is no array's memory: they set its write flag, which NumPy refuses where it has gaps."""
    broadcast: Any = getattr(module, "_broadcast_arrays", None)  # not in every version of SciPy

    def _broadcast_arrays(*arrays: Any) -> Any:
        return broadcast(*[array if isinstance(array.base, np.ndarray | None) else array.copy() for array in arrays])

    if broadcast is not None and broadcast.__module__ != __name__:
        module._broadcast_arrays = _broadcast_arrays


def _cupyx(module: Any) -> None:
    """CuPy's SciPy asks for CuPy's own arrays: sparse matrices hand every other operand back."""
    _functions(module, list(vars(module)), _cupys)
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and not issubclass(kind, BaseException):
            _class(kind, "cupyx.", _cupys)


class _Factors:
    """SuperLU's object, whose methods are given NumPy's."""

    def __init__(self, factors: Any) -> None:
        self._factors = factors

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._factors, name)
        return given(found) if callable(found) else found


def _superlu(module: Any) -> None:
    for name, made in (("splu", _Factors), ("spilu", _Factors), ("factorized", given)):
        function = getattr(module, name)
        if not hasattr(function, "__given__"):
            setattr(module, name, _making(given(function), made))


def _making(function: Callable[..., Any], made: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def answer(*arguments: Any, **keywords: Any) -> Any:
        return made(function(*arguments, **keywords))

    return answer


HOOKS: Final[dict[str, Callable[[Any], None]]] = {
    "array_api_compat.common._helpers": _namespaces,
    "scipy._lib._array_api_override": _namespaces,
    "scipy._lib.array_api_compat.common._helpers": _namespaces,
    "sklearn.externals.array_api_compat.common._helpers": _namespaces,
    "array_api_extra._lib._helpers": _extra,
    **dict.fromkeys(CUPYX, _cupyx),
    "cv2": _cv2,
    "dask.utils": _dask,
    "h5py": _h5py,
    "numba": _numba,
    "numba.core.dispatcher": _numba,
    "numba.core.interpreter": _numba,
    "numba.stencils.stencil": _numba,
    "pandas": _pandas,
    "scipy.sparse._coo": _sparse,
    "scipy.sparse._index": _sparse,
    "scipy.sparse._lil": _sparse,
    "scipy.sparse.linalg": _superlu,
    "sklearn.externals.array_api_extra._lib._helpers": _extra,
    "sklearn.preprocessing": _sklearn,
    "torch": _torch,
    "torch.utils.data._utils.collate": _batches,
}
