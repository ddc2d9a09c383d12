"""What type checkers and editors see of lazynp: ``python -m bench.stubs`` writes the stubs into the package.

In: the package as it is at run time.  Out: ``lazynp/__init__.pyi``, with every public name and every member of ``ndarray``, and stubs of
``linalg``, ``fft`` and ``random``, which are no files.  Promise: names, parameters and defaults are read from the objects; what a call
returns is in the tables below, and a test compares them with what calls do return.
"""

from __future__ import annotations

import inspect
import pathlib
import re
from inspect import Parameter
from typing import Any, Final

import numpy

import lazynp
from lazynp.namespace import names
from lazynp.namespace.coverage import public_names

PACKAGE: Final = pathlib.Path(lazynp.__file__).parent
MODULES: Final = ("linalg", "fft", "random")

# Other modules, whose names are not listed.
_UNTYPED: Final = (
    "char", "core", "ctypeslib", "dtypes", "emath", "exceptions", "f2py", "lib", "ma", "polynomial", "rec", "strings", "testing",
)  # fmt: skip

# What is returned -> by which functions and methods.  All others return an array.
_RETURNS: Final = {
    "_bool": "allclose array_equal array_equiv can_cast iscomplexobj isrealobj isdtype isfortran isscalar issubdtype iterable "
    "may_share_memory shares_memory ndarray.__bool__ ndarray.__contains__",
    "int": "ndim size ndarray.__int__ ndarray.__index__ ndarray.__len__ ndarray.__sizeof__",
    "float": "ndarray.__float__",
    "complex": "ndarray.__complex__",
    "bytes": "ndarray.tobytes ndarray.dumps ndarray.__bytes__",
    "str": "array2string array_repr array_str format_float_positional format_float_scientific explain report ndarray.__repr__ "
    "ndarray.__str__ ndarray.__format__",
    "tuple[int, ...]": "shape",
    "dict[str, Any]": "memory",
    "None": "copyto fill_diagonal place put put_along_axis putmask save savetxt savez savez_compressed set_fallback ndarray.fill "
    "ndarray.setfield ndarray.partition ndarray.put ndarray.resize ndarray.setflags ndarray.sort ndarray.tofile ndarray.dump "
    "ndarray.__setitem__ ndarray.__delitem__",
    "tuple[ndarray, ...]": "nonzero broadcast_arrays meshgrid unravel_index ix_ diag_indices diag_indices_from tril_indices triu_indices "
    "tril_indices_from triu_indices_from mask_indices unstack histogram histogram2d polydiv linalg.eig linalg.eigh ndarray.nonzero",
    "tuple[ndarray, list[ndarray]]": "histogramdd",
    "tuple[ndarray, ndarray]": "ndarray.__divmod__ ndarray.__rdivmod__",
    "list[ndarray]": "array_split split hsplit vsplit dsplit",
    "numpy.ndarray[Any, Any]": "ndarray.to_numpy ndarray.__array__",
    "Iterator[Any]": "ndarray.__iter__",
    # Another thing for other arguments.
    "Any": "realize schedule kernelize coverage einsum_path finfo iinfo common_type result_type min_scalar_type frompyfunc fromregex "
    "load loadtxt genfromtxt nested_iters apply_along_axis atleast_1d atleast_2d atleast_3d unique unique_all unique_counts "
    "unique_inverse gradient dot inner vdot tensordot einsum trace trapezoid interp searchsorted digitize polyfit "
    "ravel_multi_index choose take asmatrix bmat busday_count busday_offset datetime_as_string is_busday where percentile "
    "quantile nanpercentile nanquantile linalg.cond linalg.det linalg.matrix_norm linalg.matrix_rank linalg.norm linalg.slogdet "
    "linalg.svd linalg.qr linalg.lstsq linalg.trace linalg.vecdot linalg.vector_norm linalg.multi_dot linalg.tensordot "
    "linalg.matmul ndarray.item ndarray.tolist ndarray.view ndarray.take ndarray.trace ndarray.dot ndarray.choose "
    "ndarray.searchsorted ndarray.__getitem__ ndarray.__matmul__ ndarray.__rmatmul__ ndarray.__imatmul__ ndarray.__reduce__ "
    "ndarray.__array_ufunc__ ndarray.__array_function__ ndarray.__array_namespace__ ndarray.__array_wrap__ ndarray.__dlpack__ "
    "ndarray.__dlpack_device__ ndarray.__buffer__ ndarray.__getstate__ ndarray.__reduce_ex__",
}
# A number without ``axis``, an array with one.
_REDUCTIONS: Final = (
    "all any sum prod max min amax amin mean var std ptp argmax argmin count_nonzero average median nansum nanprod nanmax nanmin nanargmax "
    "nanargmin nanmean nanmedian nanstd nanvar"
)
# An array for an array, a number for a number.
_FOLLOWING: Final = (
    "clip round around fix nan_to_num real imag real_if_close angle sinc iscomplex isreal isneginf isposinf isclose i0 polyval emath"
)
_PROPERTIES: Final = {
    "tuple[int, ...]": "shape strides",
    "int": "ndim size itemsize nbytes",
    "str": "device",
    "ndarray": "T mT real imag",
    "numpy.dtype[Any]": "dtype",
    "memoryview": "data",
}
_WRITABLE: Final = ("dtype", "flat", "imag", "real", "shape", "strides")
_TYPE_OF: Final = {name: kind for kind, words in _PROPERTIES.items() for name in words.split()}
_RETURN_OF: Final = {name: kind for kind, words in _RETURNS.items() for name in words.split()}
_REDUCING: Final = frozenset(_REDUCTIONS.split())
_FOLLOWS: Final = frozenset(_FOLLOWING.split())
_DRAWING: Final = ("Generator", "RandomState")
_IGNORED: Final = {"__eq__": "override", "__ne__": "override", "__ipow__": "misc"}  # as NumPy has them
# Methods that every class has; `object` has types for them.
_OF_OBJECT: Final = vars(object).keys() - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__", "__str__", "__format__"}


def signature(function: Any) -> inspect.Signature:
    """Return the signature that users see; any arguments where there is none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature([Parameter("args", Parameter.VAR_POSITIONAL), Parameter("kwargs", Parameter.VAR_KEYWORD)])


def parameters(function: Any, **types: str) -> str:
    """Return the parameters as a stub has them; ``types`` are other types than Any, and make a parameter required."""
    words: list[str] = []
    last = None
    for p in signature(function).parameters.values():
        if last is Parameter.POSITIONAL_ONLY and p.kind is not Parameter.POSITIONAL_ONLY:
            words.append("/")
        if p.kind is Parameter.KEYWORD_ONLY and last not in (Parameter.KEYWORD_ONLY, Parameter.VAR_POSITIONAL):
            words.append("*")
        stars = "*" if p.kind is Parameter.VAR_POSITIONAL else "**" if p.kind is Parameter.VAR_KEYWORD else ""
        typed = p.name if p.name == "self" else f"{stars}{p.name}: {types.get(p.name, 'Any')}"
        words.append(typed if p.default is Parameter.empty or p.name in types else f"{typed} = ...")
        last = p.kind
    return ", ".join([*words, "/"] if last is Parameter.POSITIONAL_ONLY else words)


def function(path: str, value: Any, indent: str = "") -> list[str]:
    """Return the lines of a function or method."""
    name = path.rpartition(".")[2]
    names_ = [p for p in signature(value).parameters if p != "self"]
    method = path.startswith("ndarray.")
    if name in _REDUCING and "axis" in names_ and (method or "." not in path):
        before = [p for p in names_[: names_.index("axis")] if signature(value).parameters[p].default is not Parameter.empty]
        if not before:
            return [
                f"{indent}@overload",
                f"{indent}def {name}({parameters(value, axis='int | tuple[int, ...]')}) -> ndarray: ...",
                f"{indent}@overload",
                f"{indent}def {name}({parameters(value)}) -> Any: ...",
            ]
    if path in _FOLLOWS:
        return [
            f"{indent}@overload",
            f"{indent}def {name}({parameters(value, **{names_[0]: '_Number'})}) -> Any: ...",
            f"{indent}@overload",
            f"{indent}def {name}({parameters(value)}) -> ndarray: ...",
        ]
    usual = "Any" if path.startswith("random.") else "ndarray"
    ignored = f"  # type: ignore[{_IGNORED[name]}]" if name in _IGNORED else ""
    return [f"{indent}def {name}({parameters(value)}) -> {_RETURN_OF.get(path, usual)}: ...{ignored}"]


def members() -> list[str]:
    """Return the lines of the class ``ndarray``."""
    lines = ["class ndarray(Generic[_ShapeT, _DTypeT]):", "    __hash__: ClassVar[None]  # type: ignore[assignment]"]
    lines.append("    __array_priority__: ClassVar[float]")
    lines.append(f"    def __new__(cls, {parameters(numpy_like_new)}) -> ndarray: ...")
    lines.append("    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...")
    for name in sorted({*dir(lazynp.ndarray), "__buffer__"}):
        member = inspect.getattr_static(lazynp.ndarray, name, numpy_like_buffer)  # of the class itself, or of the cell, which the core has
        if name in _OF_OBJECT or (name[0] == "_" and name[:2] != "__") or name == "__class_getitem__":
            continue
        if inspect.isdatadescriptor(member):
            kind = _TYPE_OF.get(name, "Any")
            lines += ["    @property", f"    def {name}(self) -> {kind}: ..."]
            if name in _WRITABLE:
                lines += [f"    @{name}.setter", f"    def {name}(self, value: Any, /) -> None: ..."]
        elif callable(member):
            lines += function(f"ndarray.{name}", member, "    ")
    return lines


def drawing(name: str, value: Any) -> list[str]:
    """Return the lines of a generator of random numbers: NumPy's, whose draws are arrays of ours."""
    theirs = value._numpy
    lines = [f"class {name}(numpy.random.{name}):"]
    for method in sorted(vars(theirs)):
        if method[0] != "_" and callable(vars(theirs)[method]):
            lines.append(f"    def {method}({parameters(vars(theirs)[method])}) -> Any: ...")
    return lines


def class_of(name: str, value: type) -> list[str]:
    """Return the lines of another class of ours: how it is made, its special methods, and anything else as NumPy's has it."""
    lines = [f"class {name}:", f"    def __init__({parameters(value.__init__)}) -> None: ..."]  # type: ignore[misc]
    for member in sorted(vars(value)):
        found = vars(value)[member]
        if member.startswith("__") and callable(found) and member not in _OF_OBJECT and member not in ("__class__", "__getattr__"):
            lines.append(f"    def {member}({parameters(found)}) -> Any: ...")
    return [*lines, "    def __getattr__(self, name: str) -> Any: ..."]


def numpy_like_new(
    shape: Any, dtype: Any = None, buffer: Any = None, offset: Any = 0, strides: Any = None, order: Any = None
) -> None:
    """The parameters of ``ndarray``, whose own are a class's."""


def numpy_like_buffer(self: Any, flags: Any) -> Any:
    """The parameters of ``__buffer__``, which has none to be read before Python 3.12."""


def ufunc_class() -> list[str]:
    """Return the lines of the class ``ufunc``: an array for an array."""
    lines = ["class ufunc:", *[f"    {name}: int" for name in ("nin", "nout", "nargs", "ntypes")], "    types: list[str]"]
    lines += ["    identity: Any", "    signature: str | None", "    @property", "    def __name__(self) -> str: ..."]
    for arguments, found in (("*args: _Number, dtype: Any = ...", "Any"), ("*args: Any, **kwargs: Any", "ndarray")):
        lines += ["    @overload", f"    def __call__(self, {arguments}) -> {found}: ..."]
    for name in ("reduce", "accumulate", "reduceat", "outer", "at"):
        kind = {"reduce": "Any", "at": "None"}.get(name, "ndarray")
        lines.append(f"    def {name}({parameters(vars(lazynp.ufunc)[name])}) -> {kind}: ...")
    return [*lines, "    def resolve_dtypes(self, *args: Any, **kwargs: Any) -> Any: ..."]


def entries(path: str, listed: list[str]) -> tuple[list[str], list[str]]:
    """Return the names that are NumPy's own, and the lines of the others."""
    theirs: Any = numpy
    ours: Any = lazynp
    for part in path.split(".") if path else ():
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    own, lines = [], []
    for name in listed:
        value = getattr(ours, name)
        full = f"{path}.{name}".lstrip(".")
        if inspect.ismodule(value) or name in ("ndarray", "ufunc") or (name.startswith("__") and name != "__array_namespace_info__"):
            continue
        if getattr(theirs, name, ours) is value:
            own.append(name)
        elif isinstance(value, lazynp.ufunc):
            lines.append(f"{name}: {'ufunc' if value.nout == 1 else 'Any'}")
        elif isinstance(value, type):
            if name in _DRAWING:
                lines += drawing(name, value)
            elif hasattr(value, "_numpy"):  # it makes objects that pass for NumPy's
                own.append(name)
            else:
                lines += class_of(name, value)
        elif not callable(value):
            lines.append(f"{name}: {'str' if isinstance(value, str) else 'Any'}")
        else:
            lines += function(full, value)
    return own, lines


def package() -> str:
    """Make ``lazynp/__init__.pyi``."""
    own, lines = entries("", sorted({*numpy.__all__, *names.PUBLIC}))
    head = [
        f"# Made by `python -m bench.stubs`, with NumPy {numpy.__version__}.",
        "import builtins",
        "from collections.abc import Iterator",
        "from types import GenericAlias",
        "from typing import Any, ClassVar, Generic, overload",
        "",
        "from typing_extensions import TypeVar",
        "",
        "import numpy",
        *[f"from numpy import {name} as {name}" for name in own],
        "",
        *[f"from lazynp import {name} as {name}" for name in sorted((*MODULES, "typing", *names.OWN_MODULES))],
        "",
        "_bool = builtins.bool",
        "_Number = complex | numpy.generic",
        '_ShapeT = TypeVar("_ShapeT", bound=tuple[int, ...], default=Any, covariant=True)',
        '_DTypeT = TypeVar("_DTypeT", bound=numpy.dtype[Any], default=Any, covariant=True)',
        '_ScalarT = TypeVar("_ScalarT", bound=numpy.generic)',
        "",
        *[f"{name}: Any" for name in _UNTYPED],
        "__version__: str",
        "__lazynp_version__: str",
        "__array_api_version__: str",
        "def __dir__() -> list[str]: ...",
        "",
    ]
    alias = "_NDArray = ndarray[Any, numpy.dtype[_ScalarT]]"
    return "\n".join([*head, *members(), "", alias, "", *ufunc_class(), "", *lines]) + "\n"


def submodule(path: str) -> str:
    """Make the stub of a submodule."""
    own, lines = entries(path, public_names(getattr(numpy, path)))
    head = [
        f"# Made by `python -m bench.stubs`, with NumPy {numpy.__version__}.",
        "from typing import Any",
        "",
        *[f"from numpy.{path} import {name} as {name}" for name in own],
        "",
        "import numpy",
        "",
        "import lazynp",
        "",
    ]
    # By its full name: `lazynp.ndarray` is a module, too, which a checker may meet before the class.
    return re.sub(r"\bndarray\b", "lazynp.ndarray", "\n".join([*head, *lines]) + "\n")


def typing() -> str:
    """Make the stub of ``lazynp.typing``, whose arrays are ours."""
    lines = [
        f"# Made by `python -m bench.stubs`, with NumPy {numpy.__version__}.",
        "from typing import TypeVar",
        "",
        "import numpy",
        "from numpy.typing import ArrayLike as ArrayLike",
        "from numpy.typing import DTypeLike as DTypeLike",
        "",
        "from lazynp import _NDArray",
        "",
        '_ScalarT = TypeVar("_ScalarT", bound=numpy.generic)',
        "NDArray = _NDArray[_ScalarT]",
    ]
    return "\n".join(lines) + "\n"


def stubs() -> dict[str, str]:
    """Make all stubs: file in the package -> its text."""
    return {"__init__.pyi": package(), "typing.pyi": typing(), **{f"{path}.pyi": submodule(path) for path in MODULES}}


if __name__ == "__main__":
    for file, text in stubs().items():
        (PACKAGE / file).write_text(text, encoding="utf-8")
