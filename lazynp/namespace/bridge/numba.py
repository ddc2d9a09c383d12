"""Functions that Numba compiles.

In: Numba's modules, when they are loaded.  Out: what a function finds under the names of its module is NumPy's where it was ours, because
Numba compiles what it knows; and compiled functions take our arrays, whose memory they get.  Promise: everything else is Numba's own, for
everybody; results are what Numba gives, NumPy arrays and Python's numbers.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray
from lazynp.namespace.bridge import proxies
from lazynp.scalars import is_scalar

_OURS: Final = "lazynp"


def compilable(value: Any) -> Any:
    """NumPy's module, function or array in the place of ours; anything else as it is."""
    kind = type(value)
    if kind is tuple or kind is list:
        found = [compilable(item) for item in value]
        return value if all(a is b for a, b in zip(found, value, strict=True)) else kind(found)
    if kind is ndarray:
        return np.asarray(value)
    if is_scalar(value):
        return value.concrete("numba")
    original = proxies.stands_for(value)
    if original is not None:
        return original
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if not isinstance(module, str) or (module + ".").partition(".")[0] != _OURS:
        return value
    path = module.split(".")[1:] if isinstance(value, ModuleType) else [*module.split(".")[1:], getattr(value, "__name__", "")]
    ours: Any = sys.modules[_OURS]
    theirs: Any = np
    for part in path:
        ours, theirs = getattr(ours, part, None), getattr(theirs, part, None)
    return theirs if ours is value and theirs is not None else value


def names(module: Any) -> None:
    """``numba.core.interpreter``: global names and closures of a function that is compiled."""
    kind = module.Interpreter
    for name in ("get_global_value", "get_closure_value"):
        find = getattr(kind, name)
        if find.__module__ != __name__:
            setattr(kind, name, _finding(find))


def _finding(find: Callable[..., Any]) -> Callable[..., Any]:
    def found(self: Any, key: Any) -> Any:
        return compilable(find(self, key))

    return found


def calls(module: Any) -> None:
    """``numba.core.dispatcher``: the arguments of functions that were compiled."""
    call = module.Dispatcher.__call__

    def called(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if any(type(one) not in _NUMBAS for one in arguments) or keywords:
            arguments = tuple([compilable(one) for one in arguments])
            keywords = {name: compilable(one) for name, one in keywords.items()}
        return call(self, *arguments, **keywords)

    if getattr(call, "__module__", None) != __name__:  # one in C has none
        module.Dispatcher.__call__ = called


def definitions(module: Any) -> None:
    """``numba.core.extending``, ``numba.core.imputils``: what a program tells Numba of a function is said of NumPy's."""
    for name in ("overload", "type_callable", "lower_builtin"):
        define = vars(module).get(name)
        if define is not None and getattr(define, "__module__", None) != __name__:
            setattr(module, name, _defining(define))


def _defining(define: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(define, assigned=("__name__", "__qualname__", "__doc__"))
    def defined(function: Any, *arguments: Any, **keywords: Any) -> Any:
        return define(compilable(function), *arguments, **keywords)

    return defined


_NUMBAS: Final = frozenset({np.ndarray, int, float, bool, complex, str, type(None), np.float64, np.int64})  # what it takes as it is
