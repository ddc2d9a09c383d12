"""Subclasses of the array that users write, and the array's own methods called with them.

In: ``class Length(np.ndarray)``, and calls like ``np.ndarray.sum(length)``.  Out: a subclass of NumPy's array, for what such a class does
(``__array_finalize__``, ``__array_wrap__``, fields of its own) is a protocol of NumPy's memory; its arrays are computed by NumPy.  Promise:
what its methods are asked with (``__array_ufunc__``, ``__array_function__``), what they call by ``super()`` and what they read from the
class of arrays are the objects that the program finds in lazynp.
"""

from __future__ import annotations

import copyreg
import functools
import sys
import weakref
from abc import ABCMeta
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.array.core import Cell
from lazynp.graph.node import caller
from lazynp.scalars import generic, is_scalar
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import conversion, protocols
    from lazynp.graph import report
else:
    conversion, report, protocols = late("conversion", "graph.report", "protocols")

_ARRAYS: Final = (Cell, np.ndarray)
_NUMPYS_OWN: Final = np.ndarray.__array_ufunc__


def _package() -> Any:
    return sys.modules["lazynp"]


def counterpart(value: Any) -> Any:
    """Return what lazynp has under the name of NumPy's object; the object itself where it is no name of NumPy's."""
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", "")
    if isinstance(value, np.ufunc):
        module = "numpy"
    if module.partition(".")[0] != "numpy":
        return value
    theirs: Any = np
    found: Any = _package()
    for part in [*module.split(".")[1:], name]:
        theirs, found = getattr(theirs, part, None), getattr(found, part, None)
    return found if theirs is value and found is not None else value


def original(function: Any) -> Any:
    """Return NumPy's function that lazynp has under the same name; the function itself where it has none."""
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    found: Any = np
    for part in [*module.split(".")[1:], name] if module.partition(".")[0] == "lazynp" else [""]:
        found = getattr(found, part, None)
    return function if found is None else found


def asked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``__array_function__`` or ``__array_ufunc__`` of a user's class, given lazynp's functions where NumPy asks with its own.

    The class compares what it is asked for with what its module calls ``np.concatenate`` and ``np.add``.  Subclasses of other libraries'
    arrays, whose methods hand this on to those, hear NumPy's.
    """
    if hasattr(method, "__asked__"):
        return method

    @functools.wraps(method)
    def answer(self: Any, function: Any, what: Any, *arguments: Any, **keywords: Any) -> Any:
        if not isinstance(self, np.ndarray) or isinstance(type(self), SubclassType):
            function = counterpart(function)
            if not isinstance(what, str):  # the types of the arguments
                what = tuple([counterpart(kind) for kind in what])
        return method(self, function, what, *arguments, **keywords)

    answer.__asked__ = True  # type: ignore[attr-defined]
    return answer


# What a method of NumPy's is given, and what it gives ----------------------------------------------------------------------------


def _given(value: Any) -> Any:
    """The argument as NumPy's: memory of arrays is shared."""
    if isinstance(value, Cell):
        return protocols.exported(value, "argument")
    if type(value) is tuple:
        return tuple([_given(item) for item in value])
    if type(value) is list:
        return [_given(item) for item in value]
    if type(value) is ArrayType:
        return np.ndarray
    return value.concrete("argument") if is_scalar(value) else value


def of_numpys(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a method of NumPy's array with what may be ours; what it gives is ours where it is of no subclass."""
    given = [_given(value) for value in arguments]
    named = {name: _given(value) for name, value in keywords.items()}
    found = function(*given, **named)
    for value, theirs in zip((*arguments, *keywords.values()), (*given, *named.values()), strict=True):
        if found is theirs:
            return value
    return conversion.asarray(found) if type(found) is np.ndarray else found


def unasking(theirs: Any) -> Callable[..., Any]:
    """Return a function of NumPy's that asks none of its arguments: ``np.sum._implementation``, which ``__array_function__`` calls."""
    inner = getattr(theirs, "_implementation", theirs)

    def implementation(*arguments: Any, **keywords: Any) -> Any:
        report.count_fallback(inner.__name__, 0, caller())
        return of_numpys(inner, *arguments, **keywords)

    return functools.update_wrapper(implementation, inner)


def minds(value: Any) -> bool:
    """Tell whether an operand of a ufunc has a mind of its own, as NumPy sees it."""
    own = getattr(type(value), "__array_ufunc__", _NUMPYS_OWN)
    return own is not _NUMPYS_OWN and not isinstance(value, (Cell, np.generic)) and not is_scalar(value)


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
    """NumPy's own ``ndarray.__array_ufunc__``: the ufunc's method, where no operand has a mind of its own."""
    out = keywords.get("out", ())
    if any(map(minds, (*inputs, *(out if type(out) is tuple else (out,)), keywords.get("where")))):
        return NotImplemented
    return getattr(counterpart(ufunc), method)(*inputs, **keywords)


def array_function(self: Any, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
    """NumPy's own ``ndarray.__array_function__``: the function without asking any operand, where all are arrays."""
    if not all(issubclass(kind, (*_ARRAYS, generic)) for kind in types):
        return NotImplemented
    return unasking(original(function))(*arguments, **keywords)


class _OfUfuncs(np.ndarray):
    """The meaning of ``super().__array_ufunc__`` in the last class that defines it."""

    __array_ufunc__ = array_ufunc


class _OfFunctions(np.ndarray):
    """The meaning of ``super().__array_function__`` in the last class that defines it."""

    __array_function__ = array_function  # type: ignore[assignment]


_PROTOCOLS: Final[dict[str, type]] = {"__array_ufunc__": _OfUfuncs, "__array_function__": _OfFunctions}
HIDDEN: Final = frozenset(_PROTOCOLS.values())
"""Classes that no program wrote."""


def _key_for(kind: Any, name: str, method: Any) -> Any:
    """The subscript of a subclass, given NumPy's arrays as keys: an empty mask that is none of those NumPy takes for positions."""

    def subscript(self: Any, key: Any, *value: Any) -> Any:
        if isinstance(key, Cell):
            key = np.asarray(key)
        elif type(key) is tuple and any(isinstance(part, Cell) for part in key):
            key = tuple([np.asarray(part) if isinstance(part, Cell) else part for part in key])
        return getattr(super(kind, self), name)(key, *value) if method is None else method(self, key, *value)

    return functools.update_wrapper(subscript, method or getattr(np.ndarray, name))


def _view_for(kind: Any) -> Any:
    """The method ``view`` of a subclass, which may be told the class of arrays."""

    @functools.wraps(np.ndarray.view)
    def view(self: Any, *arguments: Any, **keywords: Any) -> Any:
        of = super(kind, self).view
        if any(type(value) is ArrayType for value in (*arguments, *keywords.values())):
            return of_numpys(of, *arguments, **keywords)
        return of(*arguments, **keywords)

    return view


class SubclassType(ABCMeta):
    """Metaclass of users' subclasses of the array; abstract base classes may be among the others that they derive from."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    def __new__(mcls, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any) -> Any:
        first = any(type(base) is ArrayType for base in bases)
        theirs = [np.ndarray if type(base) is ArrayType else base for base in bases]
        for protocol, last in _PROTOCOLS.items():
            method = members.get(protocol)
            if isinstance(method, FunctionType):
                members = {**members, protocol: asked(method)}
            elif method is None and not isinstance(_found(theirs, protocol), FunctionType):
                continue
            if not any(issubclass(base, last) for base in theirs):
                theirs.insert(theirs.index(np.ndarray) if np.ndarray in theirs else len(theirs), last)
        if any(base is not np.ndarray and issubclass(base, np.ndarray) for base in theirs):
            theirs = [base for base in theirs if base is not np.ndarray]
        made = super().__new__(mcls, name, tuple(theirs), members, **options)
        for protocol in _PROTOCOLS:
            found = _found(made.__mro__, protocol)
            if isinstance(found, FunctionType) and not hasattr(found, "__asked__") and found not in (array_ufunc, array_function):
                type.__setattr__(made, protocol, asked(found))
        for method in ("__getitem__", "__setitem__"):
            own = members.get(method)
            if isinstance(own, FunctionType) or (first and own is None):
                type.__setattr__(made, method, _key_for(made, method, own))
        if first and "view" not in members:
            type.__setattr__(made, "view", _view_for(made))
        return made


def _found(kinds: Any, name: str) -> Any:
    """The member of that name of the first class that has one."""
    for kind in kinds:
        for each in kind.__mro__:
            if name in vars(each):
                return vars(each)[name]
    return None


# Views ------------------------------------------------------------------------------------------------------------------------

_kept: Final[dict[int, Any]] = {}  # the memory of arrays of ours that subclasses show, by the views' identities


def owner_of(array: Any) -> Any:
    """The base of an array of NumPy's over a subclass's memory, by NumPy's rule: that one's own base, where it is an array of ours."""
    base = array.base
    if type(base) is np.ndarray or not isinstance(base, np.ndarray):
        return base
    if not isinstance(base.base, Cell):
        return base
    return base.base.base if isinstance(base.base.base, Cell) else base.base


def based(view: Any, owner: Any, memory: Any) -> Any:
    """Let a view of an array's ``memory``, of a subclass, have the array for its base; by NumPy's rule the array's own, if of its class."""
    key, base = id(view), owner.base
    _kept[key] = weakref.ref(view, lambda gone: _kept.pop(key, None)), memory
    core.belongs(view, base if type(base) is type(view) else owner)
    return view


# The methods of the array class, unbound -------------------------------------------------------------------------------------------


class ArrayType(SubclassType):
    """Metaclass of the array class: NumPy's arrays pass for ours in ``isinstance``, and for ``self`` in its methods."""

    def __new__(mcls, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any) -> Any:
        if any(type(base) is ArrayType for base in bases):
            return SubclassType.__new__(SubclassType, name, bases, members, **options)
        return type.__new__(mcls, name, bases, members)

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is cls or isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, np.ndarray)


# What of NumPy's class is a method, or an attribute, of its arrays.  The rest belongs to the class; the protocols, which NumPy looks for on
# the class with every call, and what counts references to its array answer for subclasses themselves.
_OF_THE_CLASS: Final = {"__new__", "__doc__", "__hash__", "__class_getitem__", "__module__"}
_NOT_OF_ARRAYS: Final = _OF_THE_CLASS | {"__array_ufunc__", "__array_function__", "resize"}
_unbound: Final[dict[str, Any]] = dict.fromkeys(vars(np.ndarray).keys() - _NOT_OF_ARRAYS)


def _made_unbound(cls: Any, name: str) -> Any:
    own = next((vars(each)[name] for each in cls.__mro__ if name in vars(each)), None)
    theirs = vars(np.ndarray)[name]
    _unbound[name] = found = _method(name, own or theirs, theirs) if callable(theirs) else _Attribute(name, own or theirs, theirs)
    return found


core.class_reads(ArrayType, _unbound, _made_unbound)


def _method(name: str, own: Any, theirs: Any) -> Any:
    def method(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Cell):
            return own(*args, **kwargs)
        return of_numpys(theirs, *args, **kwargs)

    functools.update_wrapper(method, own)
    method.__name__ = name
    return method


class _Attribute:
    """An attribute of arrays, as the class shows it."""

    def __init__(self, name: str, own: Any, theirs: Any) -> None:
        self._own, self._theirs = own, theirs
        self.__name__ = self.__qualname__ = name
        self.__doc__ = getattr(own, "__doc__", None)

    @property
    def __objclass__(self) -> Any:
        return _package().ndarray

    def __get__(self, x: Any, kind: Any = None) -> Any:
        if x is None:
            return self
        return self._own.__get__(x, kind) if isinstance(x, Cell) else self._theirs.__get__(x, kind)

    def __set__(self, x: Any, value: Any) -> None:
        (self._own if isinstance(x, Cell) else self._theirs).__set__(x, _given(value) if not isinstance(x, Cell) else value)

    def __repr__(self) -> str:
        return repr(self._theirs)


def reduced(cls: Any) -> Any:
    return (_array_class, ()) if type(cls) is ArrayType else cls.__qualname__


def _array_class() -> Any:
    return _package().ndarray


# Classes are pickled by their names; that of the array class is NumPy's.
copyreg.pickle(ArrayType, reduced)
copyreg.pickle(SubclassType, reduced)
