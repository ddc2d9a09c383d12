"""Scalar types under their public names: ``np.float64``, ``np.floating``, ``np.longlong``, ...

In: NumPy's scalar types.  Out: one class for each, which stands for it.  Promise: compared, hashed, subclass-checked and passed as a dtype
it is NumPy's, so that ``x.dtype.type in {np.float32, np.float64}`` and ``table[type(x[0])]`` hold; lazy scalars are instances; called, it
makes NumPy's scalars, and of lazy values lazy ones.
"""

from __future__ import annotations

import numbers
from types import GenericAlias, new_class
from typing import Any, Final

import numpy as np

from lazynp.namespace import proxies
from lazynp.ndarray import asarray, ndarray
from lazynp.protocols import from_host, to_host
from lazynp.runtime.floating import at_once
from lazynp.scalars import ABSTRACT, CLASSES, OF_TYPE, ScalarType


class ScalarName(type):
    """Metaclass: what the classes answer is NumPy's."""

    _numpy: Any
    _dtype: np.dtype[Any] | None

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls._dtype is None:
            raise TypeError(f"cannot create '{cls.__name__}' instances")
        if len(args) == 1 and not kwargs:
            value = args[0]
            if type(value) is ndarray or type(value) in CLASSES:
                found = asarray(value).astype(cls._dtype)
                return found if found.shape else found[()]
        found = at_once(cls._numpy, *to_host(args, cls.__name__), **kwargs)
        return asarray(found) if type(found) is np.ndarray else found

    def __new__(mcls, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any) -> Any:
        if "_numpy" in members:
            return super().__new__(mcls, name, bases, members)
        # A subclass of the user's is NumPy's.
        return new_class(name, tuple(map(_numpys, bases)), options, lambda namespace: namespace.update(members))

    def __subclasses__(cls) -> list[Any]:
        # NumPy's, in its order; the types that stand for themselves (longdouble, ...) among them.
        return [TYPES.get(theirs, theirs) for theirs in cls._numpy.__subclasses__()]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._numpy)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(_numpys(subclass), cls._numpy)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls._numpy is other or (type(other) is ScalarType and other._numpy is cls._numpy) or NotImplemented

    def __hash__(cls) -> int:
        return hash(cls._numpy)

    def __repr__(cls) -> str:
        return repr(cls._numpy)

    @property
    def dtype(cls) -> np.dtype[Any]:
        """What NumPy takes a class that is none of its own for."""
        return np.dtype(cls._numpy) if cls._dtype is None else cls._dtype

    def __getattr__(cls, name: str) -> Any:
        # Class methods (fromhex, from_bytes) and methods taken from the class (np.float64.is_integer).
        if name.startswith("_") or name == "dtype":
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        found = getattr(cls._numpy, name)
        if not callable(found):
            return found

        def method(*args: Any, **kwargs: Any) -> Any:
            return from_host(found(*to_host(args, name), **to_host(kwargs, name)))

        method.__name__ = name
        method.__doc__ = found.__doc__
        return method


def _numpys(cls: Any) -> Any:
    return cls._numpy if type(cls) in (ScalarName, ScalarType) else cls


def _named(theirs: type, base: type) -> ScalarName:
    dtype = np.dtype(theirs) if theirs in OF_TYPE else None
    members = {"__module__": "lazynp", "__doc__": theirs.__doc__, "_numpy": theirs, "_dtype": dtype}
    made = ScalarName(theirs.__name__, (base,), members | {"__slots__": (), "__class_getitem__": classmethod(GenericAlias)})
    proxies.register(made, theirs)
    return made


# NumPy's type -> the class that stands for it.
TYPES: Final[dict[type, ScalarName]] = {}
for _theirs in (*[getattr(np, name) for name in ABSTRACT], *OF_TYPE):
    TYPES[_theirs] = _named(_theirs, next((TYPES[base] for base in _theirs.__mro__[1:] if base in TYPES), object))
for _ours in {*ABSTRACT.values(), *CLASSES}:
    proxies.register(_ours, _ours._numpy)  # type(s) goes to NumPy as well

for _abstract, _kind in ((np.integer, numbers.Integral), (np.floating, numbers.Real), (np.complexfloating, numbers.Complex)):
    _kind.register(TYPES[_abstract])  # type: ignore[arg-type]

# Every name of a scalar type in NumPy's namespace (byte, short, intc, longlong, half, double, ...).
NAMES: Final[dict[str, Any]] = {name: TYPES[value] for name, value in vars(np).items() if isinstance(value, type) and value in TYPES}
