"""What the array API standard asks beyond NumPy, where that is not a function's own business.

In: nothing.  Out: the versions of the standard, ``__array_namespace_info__``, and the tables of signatures that differ from NumPy's.
Promise: whatever NumPy accepts stays valid and means the same; the tests compare every signature with NumPy's and these tables.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from inspect import Parameter, Signature, signature
from types import ModuleType
from typing import Any, Final

import numpy as np

from lazynp.engine.devices import available, checked, default
from lazynp.scalars import OF_TYPE, scalar_of_value

VERSION: Final = "2025.12"
VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)

# Function -> keyword-only parameters, with their defaults, that the standard has and NumPy (as of 2.4) has not.
KEYWORDS: Final[dict[str, dict[str, Any]]] = {
    "sort": {"descending": False},
    "argsort": {"descending": False},
    "fft.fftfreq": {"dtype": None},
    "fft.rfftfreq": {"dtype": None},
}

# Function -> pairs of parameters that show under each other's name: both names work, and positions mean the same.
EXCHANGED: Final[dict[str, dict[str, str]]] = {
    "clip": {"a_min": "min", "a_max": "max"},
}

_KINDS: Final = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_GROUPS: Final = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


def exchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which shows the signature that its row of ``EXCHANGED`` asks for."""
    row = EXCHANGED[function.__name__]
    names = {**row, **{shown: name for name, shown in row.items()}}
    parameters = [p.replace(name=names.get(p.name, p.name), annotation=Parameter.empty) for p in signature(function).parameters.values()]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function


def numpys_names() -> None:
    """Let the functions of ``EXCHANGED`` show NumPy's signatures: the process is a program that was written for NumPy."""
    for name in EXCHANGED:
        function: Any = getattr(sys.modules["lazynp"], name)
        function.__signature__ = signature(getattr(np, name))


def checked_device(device: Any) -> str | None:
    """The name of a device that is there, None for None; refuses all others."""
    return None if device is None else checked(device)


class Devices(tuple[str, ...]):
    """A tuple, as the standard has it from 2025.12 on; what adds a list to it, as to the earlier versions' list, gets a list."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else tuple.__add__(self, other)


class __array_namespace_info__:
    """Tell what the namespace can do; see :class:`numpy.__array_namespace_info__`.

    Attributes
    ----------
    capabilities, default_device, default_dtypes, devices, dtypes
        What the array API standard asks: which optional parts are there, which devices, which dtypes.
    """

    __module__ = "lazynp"

    def capabilities(self) -> dict[str, Any]:
        """Tell which optional parts of the standard are there: all of them."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of new arrays."""
        return default()

    def devices(self) -> Devices:
        """All devices."""
        return Devices(available())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of arrays that are made of Python numbers."""
        checked_device(device)
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.intp),
            "indexing": np.dtype(np.intp),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """The standard's dtypes by name, all or those of one kind or several."""
        checked_device(device)
        wanted = [*_KINDS] if kind is None else [part for one in (kind if isinstance(kind, tuple) else (kind,)) for part in _parts(one)]
        return {name: np.dtype(name) for part in _KINDS if part in wanted for name in _KINDS[part]}


def _parts(kind: Any) -> tuple[str, ...]:
    """The kinds that a kind stands for."""
    if kind in _KINDS:
        return (kind,)
    if kind not in _GROUPS:
        raise ValueError(f"unsupported kind: {kind!r}")
    return _GROUPS[kind]


class Namespace(ModuleType):
    """A namespace as the array API standard has it: results without axes are arrays of ours, where NumPy gives scalars of its own.

    It has the names of a module of lazynp, and that module's name.  What asks an array for its namespace gets this one; a program that
    imports lazynp gets NumPy's scalars, as from NumPy.
    """

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            value = Namespace(value)
        elif callable(value) and not isinstance(value, type):
            value = _with_arrays(value)
        vars(self)[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(self._module)


def _with_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function give its results without axes as ours."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _arrays(function(*args, **kwargs))

    return call


def _arrays(value: Any) -> Any:
    """Turn NumPy's scalars, in tuples too, into ours."""
    kind = type(value)
    if kind in OF_TYPE:
        return scalar_of_value(value)
    if isinstance(value, tuple):
        return kind._make(map(_arrays, value)) if hasattr(kind, "_make") else tuple(map(_arrays, value))
    return [*map(_arrays, value)] if kind is list else value


_namespaces: Final[dict[str, Namespace]] = {}


def namespace_of(module: ModuleType) -> Namespace:
    """The one namespace of a module."""
    found = _namespaces.get(module.__name__)
    if found is None:
        found = _namespaces[module.__name__] = Namespace(module)
    return found


FUNCTIONS: Final[dict[str, Any]] = {"__array_api_version__": VERSION, "__array_namespace_info__": __array_namespace_info__}
