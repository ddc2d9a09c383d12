"""Libraries that tell arrays and numbers by NumPy's own types.

In: their modules, when they are loaded.  Out: what a program calls of them gets NumPy's arrays (CuPy's SciPy: CuPy's), over our arrays'
memory, and NumPy's numbers.  Promise: everybody else calls what they call without lazynp, and gets what they get; results are the
libraries' own.
"""

from __future__ import annotations

import copyreg
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS
from operator import methodcaller
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.arrays import ndarray
from lazynp.conversion import from_numpy
from lazynp.engine import devices
from lazynp.namespace.bridge.fallback import names_in, users
from lazynp.namespace.bridge.meeting import CUPYX
from lazynp.protocols import SHARED
from lazynp.scalars import CLASSES
from lazynp.storage import host
from lazynp.values.loading import load

_OPERATORS: Final = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod", "and", "or", "xor", "lshift", "rshift", "matmul")
_METHODS: Final = {f"__{kind}{name}__" for kind in ("", "r", "i") for name in _OPERATORS} | {
    f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "getitem", "setitem", "contains", "call", "init", "new")
}

Shown = Callable[[Any], Any]  # an array of ours -> another library's
_NUMPYS: Final[Shown] = methodcaller("to_numpy")
_LOOKED_INTO: Final[frozenset[type]] = frozenset({ndarray, *CLASSES, list, tuple, dict, slice})
_OURS: Final = frozenset({ndarray, *CLASSES})
_NUMBERS: Final = frozenset({np.bool, *core.number_classes_of})
_RESULTS: Final = type(core.number_classes_of[np.float64])
any_of = core.any_of

_LOOKING: Final = {"eval", "query"}  # they read the names of their caller


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


# Methods that are given functions.
_CALLING: Final = ("agg", "aggregate", "apply", "applymap", "combine", "filter", "map", "pivot_table", "transform")
_FUNCTIONS: Final = (FunctionType, MethodType, functools.partial)


def _answering(value: Any, known: dict[int, Any]) -> Any:
    """Return a function whose answers are NumPy's arrays and numbers, also in lists, tuples and dictionaries; anything else as it is.

    A function that is given twice is one, which ``known`` tells by its identity.
    """
    if isinstance(value, FunctionType | MethodType):

        def answer(*arguments: Any, **keywords: Any) -> Any:
            return numpys(value(*arguments, **keywords))

        return known.setdefault(id(value), functools.update_wrapper(answer, value))
    if isinstance(value, functools.partial):  # whose name is its function's
        return functools.partial(_answering(value.func, known), *value.args, **value.keywords)
    if isinstance(value, list | tuple) and any(isinstance(item, (*_FUNCTIONS, list, tuple, dict)) for item in value):
        found = [_answering(item, known) for item in value]
        return type(value)(*found) if hasattr(value, "_make") else type(value)(found)
    return {key: _answering(item, known) for key, item in value.items()} if type(value) is dict else value


def _calling(kind: type) -> None:
    """Let what a class's methods call of the program's answer with NumPy's."""
    for owner in kind.__mro__:
        for name in _CALLING if owner.__module__.startswith("pandas.") else ():
            method = vars(owner).get(name)
            if isinstance(method, FunctionType) and not hasattr(method, "__calls__"):
                setattr(owner, name, _given_functions(method))


def _given_functions(method: Any) -> Any:
    @functools.wraps(method)
    def answer(*arguments: Any, **keywords: Any) -> Any:
        known: dict[int, Any] = {}
        given = [_answering(value, known) for value in arguments]
        return method(*given, **{name: _answering(value, known) for name, value in keywords.items()})

    answer.__calls__ = True  # type: ignore[attr-defined]
    return answer


def _pandas(module: Any) -> None:
    _functions(module, list(vars(module)))
    frame = module.DataFrame()
    for kind in (module.DataFrame, module.Series, module.Index, *map(type, (frame.loc, frame.iloc, frame.at, frame.iat))):
        _class(kind, "pandas.")
    typing = module.api.typing
    groups = [getattr(typing, name, object) for name in ("DataFrameGroupBy", "SeriesGroupBy", "Resampler", "Rolling", "Expanding")]
    for kind in (module.DataFrame, module.Series, module.Index, *groups):
        _calling(kind)


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
    numba = load("lazynp.namespace.bridge.numba")

    if module.__name__ == "numba":
        _functions(module, ("typeof",))
    elif module.__name__.endswith("stencil"):
        call = module.StencilFunc.__call__
        module.StencilFunc.__call__ = call if hasattr(call, "__given__") else given(call)
    else:
        {"dispatcher": numba.calls, "interpreter": numba.names}.get(module.__name__.rpartition(".")[2], numba.definitions)(module)


def _dask(module: Any) -> None:
    """Let what is looked up by an argument's type be found for ours where it is told for NumPy's."""
    dispatch = module.Dispatch.dispatch

    def numpys_too(self: Any, cls: type) -> Any:
        return dispatch(self, np.ndarray if cls is ndarray else cls._numpy if cls in CLASSES else cls)  # type: ignore[attr-defined]

    if dispatch.__module__ != __name__:
        module.Dispatch.dispatch = functools.wraps(dispatch, assigned=("__doc__", "__name__", "__qualname__"))(numpys_too)


def _dasks_arrays(module: Any) -> None:
    """An operator that is called as a method hands over to arrays of other kinds than NumPy's."""
    _class(module.Array, "dask.")


class _Result:
    """Stand-in for a number of ours where a library asks whose an argument is, by its class."""

    __array_namespace__ = SHARED["__array_namespace__"]


def _namespaces(module: Any) -> None:
    """Let results, which are NumPy's numbers by their class, belong to lazynp; beside arrays of ours NumPy's own numbers do, too.

    Where the library was loaded first its modules have the function already, under either name, and are given this one.
    """
    asked = module.array_namespace
    result = _Result()

    def array_namespace(*xs: Any, **keywords: Any) -> Any:
        results = [type(type(x)) is _RESULTS for x in xs]
        if any(results) or not _OURS.isdisjoint(map(type, xs)):
            told = [result if is_result else x for x, is_result in zip(xs, results, strict=True) if is_result or type(x) not in _NUMBERS]
            return asked(*told, **keywords)
        return asked(*xs, **keywords)

    if not hasattr(asked, "__given__"):
        array_namespace.__given__ = True  # type: ignore[attr-defined]
        _everywhere(asked, functools.wraps(asked)(array_namespace), ("array_namespace", "get_namespace"))


def _everywhere(function: Any, made: Any, called: tuple[str, ...]) -> None:
    """Put a function in the place of another in all modules that have that under one of these names."""
    for names in [names_in(each) for each in list(sys.modules.values()) if isinstance(each, ModuleType)]:
        names.update({name: made for name in called if names.get(name) is function})


def _sklearn(module: Any) -> None:
    _functions(module.MultiLabelBinarizer, ("inverse_transform",))  # calls ``compress`` of its own array


def _extra(module: Any) -> None:
    """A result that is not computed is an instance of ``float``, and no number of Python's."""
    asked = module.is_python_scalar

    def is_python_scalar(x: Any) -> bool:
        return type(x) not in CLASSES and asked(x)

    if asked.__module__ != __name__:
        module.is_python_scalar = is_python_scalar


def _cloudpickle(module: Any) -> None:
    """The classes of arrays and ufuncs are called by NumPy's names, and found by ours: they say how, as pickle asks them."""
    asked = module._class_reduce

    def _class_reduce(kind: type) -> Any:
        how: Any = copyreg.dispatch_table.get(type(kind))
        return asked(kind) if how is None else how(kind)

    if not hasattr(asked, "__given__"):
        _class_reduce.__given__ = True  # type: ignore[attr-defined]
        module._class_reduce = _class_reduce


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


def _operators(module: Any) -> None:
    """Let a matrix be an operator, which iterative solvers, eigenvalues and norms ask for."""
    function = module.aslinearoperator
    if not hasattr(function, "__given__"):
        _everywhere(function, given(function), ("aslinearoperator",))


def _making(function: Callable[..., Any], made: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def answer(*arguments: Any, **keywords: Any) -> Any:
        return made(function(*arguments, **keywords))

    return answer


def _of_joblib(found: Any) -> Any:
    """Make of what joblib restored the array it was: a map stays one, everything else is an array."""
    if isinstance(found, np.memmap):
        return found.view(users().memmap)
    return from_numpy(found) if isinstance(found, np.ndarray) else found


def _made_of(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    return _of_joblib(function(*arguments))


def _joblib(module: Any) -> None:
    """Send arrays to joblib's workers by NumPy's types: large arrays as the name of a file that they map."""
    make = module.get_memmapping_reducers
    if hasattr(make, "__given__"):
        return

    @functools.wraps(make)
    def reducers(*arguments: Any, **keywords: Any) -> Any:
        found = make(*arguments, **keywords)
        for table in found:
            for kind, theirs in ((ndarray, np.ndarray), (users().memmap, np.memmap)):
                if theirs in table:
                    table[kind] = functools.partial(_sent, table[theirs], theirs)
        return found

    reducers.__given__ = True  # type: ignore[attr-defined]
    module.get_memmapping_reducers = reducers


def _sent(reduce: Callable[[Any], Any], theirs: type, x: Any) -> Any:
    return _made_of, tuple(reduce(x.view(theirs) if theirs is np.memmap else host(x, "pickle")))


def _joblibs_files(module: Any) -> None:
    """Keep arrays in joblib's files so that they can be mapped."""
    kind = module.NumpyPickler
    kind.dispatch = {**kind.dispatch, ndarray: _kept, users().memmap: _kept}


def _kept(pickler: Any, x: Any) -> None:
    pickler.save_reduce(_of_joblib, (host(x, "pickle") if type(x) is ndarray else x.view(np.memmap),), obj=x)


HOOKS: Final[dict[str, Callable[[Any], None]]] = {
    **dict.fromkeys(
        (
            "array_api_compat.common._helpers",
            "scipy._lib._array_api_override",
            "scipy._lib.array_api_compat.common._helpers",
            "sklearn.externals.array_api_compat.common._helpers",
        ),
        _namespaces,
    ),
    "array_api_extra._lib._helpers": _extra,
    **dict.fromkeys(CUPYX, _cupyx),
    "cloudpickle.cloudpickle": _cloudpickle,
    "cv2": _cv2,
    "dask.array.core": _dasks_arrays,
    "dask.utils": _dask,
    "h5py": _h5py,
    "joblib.executor": _joblib,
    "joblib.externals.cloudpickle.cloudpickle": _cloudpickle,
    "joblib.numpy_pickle": _joblibs_files,
    "joblib.pool": _joblib,
    "numba": _numba,
    "numba.core.dispatcher": _numba,
    "numba.core.extending": _numba,
    "numba.core.imputils": _numba,
    "numba.core.interpreter": _numba,
    "numba.stencils.stencil": _numba,
    "pandas": _pandas,
    "scipy.sparse._coo": _sparse,
    "scipy.sparse._index": _sparse,
    "scipy.sparse._lil": _sparse,
    "scipy.sparse.linalg": _superlu,
    "scipy.sparse.linalg._interface": _operators,
    "sklearn.externals.array_api_extra._lib._helpers": _extra,
    "sklearn.preprocessing": _sklearn,
    "torch": _torch,
    "torch.utils.data._utils.collate": _batches,
}
