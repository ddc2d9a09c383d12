"""What runs in place of what the user's module calls.

In: calls of a mapped module that may bring NumPy when they run, or read memory (``syntax.CALLS``), and NumPy's protocols of
the user's own classes.  Out: what Python's own function gives, with what it imports or compiles mapped, and with numbers that are computed.
Promise: any other function is called as it is.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import datetime
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import time
from collections.abc import Callable, Iterable
from types import CodeType, ModuleType
from typing import Any, Final

from lazynp import scalars
from lazynp.array import core
from lazynp.conversion import asarray
from lazynp.mapping.modules import is_zip, mapped_spec, owned
from lazynp.mapping.syntax import OURS, THEIRS, compile_mapped, concerns, is_numpy, renamed
from lazynp.namespace.bridge.neighbours import numpys as shown
from lazynp.subclasses import HIDDEN

_COMMON: Final = (type, ModuleType)  # what classes and modules of NumPy's are
_FUTURE: Final = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


def _import_module(name: str, package: str | None = None) -> ModuleType:
    return importlib.import_module(renamed(name) if is_numpy(name) else name, package)


def _import(name: str, *arguments: Any, **keywords: Any) -> ModuleType:
    return builtins.__import__(renamed(name) if is_numpy(name) else name, *arguments, **keywords)


def _compile(
    source: Any, filename: Any, mode: str, flags: int = 0, dont_inherit: bool = False, optimize: int = -1, **keywords: Any
) -> CodeType:
    if not dont_inherit:
        flags |= sys._getframe(1).f_code.co_flags & _FUTURE
    if flags & ast.PyCF_ONLY_AST or not isinstance(source, str | bytes):
        return compile(source, filename, mode, flags, True, optimize, **keywords)
    return compile_mapped(source, filename, mode, flags, optimize)


def _spec_from_file_location(*arguments: Any, **keywords: Any) -> importlib.machinery.ModuleSpec | None:
    spec = importlib.util.spec_from_file_location(*arguments, **keywords)
    return None if spec is None else (mapped_spec(spec) or spec)


def _run_path(path_name: str, init_globals: dict[str, Any] | None = None, run_name: str | None = None) -> dict[str, Any]:
    name = "<run_path>" if run_name is None else run_name
    if not os.path.isfile(path_name) or is_zip(path_name) or not owned(path_name):
        return runpy.run_path(path_name, init_globals, name)
    with open(path_name, "rb") as file:
        code = compile_mapped(file.read(), os.fspath(path_name))
    return runpy._run_module_code(code, init_globals, name, pkg_name=name.rpartition(".")[0], script_name=path_name)  # type: ignore[attr-defined]


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function in C that reads memory, where a result that is not computed yet has none, and our arrays are none of NumPy's."""

    def answer(*arguments: Any, **keywords: Any) -> Any:
        return function(*map(shown, arguments), **{name: shown(value) for name, value in keywords.items()})

    return answer


_TWINS: Final[dict[Any, Any]] = {
    builtins.__import__: _import,
    builtins.compile: _compile,
    datetime.timedelta: _reading(datetime.timedelta),
    time.sleep: _reading(time.sleep),
    importlib.import_module: _import_module,
    importlib.util.spec_from_file_location: _spec_from_file_location,
    runpy.run_path: _run_path,
}


def twin(function: Any) -> Any:
    """Return what a function is called as in the user's modules, if it is one of Python's that has a twin; else the function itself."""
    if isinstance(function, type) and function.__module__ == "decimal":  # which few programs load
        return _reading(function)
    if getattr(function, "__module__", None) == "_pytest.outcomes" and function.__name__ == "importorskip":
        return lambda name, *arguments, **keywords: function(renamed(name) if is_numpy(name) else name, *arguments, **keywords)
    if getattr(function, "__name__", None) == "shuffle" and type(getattr(function, "__self__", None)).__module__.startswith("numpy.random"):
        return _reading(function)  # of what is no array of NumPy's it exchanges rows, which are views: one is lost each time
    try:
        return _TWINS.get(function, function)
    except TypeError:  # not hashable
        return function


def executed(function: Any, text: Any) -> Any:
    """Return what ``exec`` gets of a text, if ``exec`` is Python's: code with its imports mapped."""
    if function is not builtins.exec or not isinstance(text, str | bytes) or not concerns(text):
        return text
    try:
        return compile_mapped(text, "<string>", flags=sys._getframe(1).f_code.co_flags & _FUTURE)
    except SyntaxError:
        return text  # exec itself says so


def given(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``__array__`` of a user's class, which gives NumPy the memory of an array of ours: it takes none but its own."""

    @functools.wraps(method)
    def answer(self: Any, *arguments: Any, **keywords: Any) -> Any:
        found = method(self, *arguments, **keywords)
        return sys.modules[THEIRS].asarray(found) if type(found) is sys.modules[OURS].ndarray else found

    return answer


def _numpys_own() -> tuple[type, type]:
    return sys.modules[THEIRS].ndarray, sys.modules[THEIRS].generic


def viewed(array: Any, *arguments: Any, **keywords: Any) -> Any:
    """``array.view(np.ndarray)``, where the array is of a subclass, which is NumPy's and does not know our class."""
    kind = sys.modules[OURS].ndarray
    wanted = [*arguments, *keywords.values()]
    if not issubclass(type(array), _numpys_own()) or type(array) is kind or not any(one is kind for one in wanted):
        return array.view(*arguments, **keywords)
    theirs = sys.modules[THEIRS].ndarray
    keywords = {name: theirs if one is kind else one for name, one in keywords.items()}
    found = array.view(*[theirs if one is kind else one for one in arguments], **keywords)
    return asarray(found) if type(found) is theirs else found


def _kinds() -> dict[type, type]:
    """List the types that a program knows as others: its ``np.float64`` of a result, its ``np.ndarray`` of NumPy's."""
    ours, theirs = sys.modules[OURS], sys.modules[THEIRS]
    results = {result: kind for kind, result in core.number_classes_of.items()} | {kind: kind._numpy for kind in scalars.CLASSES}
    return {theirs.ndarray: ours.ndarray, theirs.ufunc: ours.ufunc} | results


def _kind_of_types(function: Any, value: Any) -> Any:
    """Return ``function(value)``, which is ``type`` of a class or module, or a name of the program's own."""
    found = function(value)
    if function is not type or not found.__module__.startswith(OURS + "."):
        return found
    return next((kind for kind in _COMMON if issubclass(found, kind)), found)


core.register_kinds(_kinds(), _kind_of_types)
kind = core.kind


class _Lineage:
    """Bases of a class of arrays, as the program knows the classes."""

    def __init__(self, kind: Any) -> None:
        ours, theirs = sys.modules[OURS].ndarray, sys.modules[THEIRS].ndarray

        def known(kinds: Iterable[type]) -> tuple[type, ...]:
            return tuple(dict.fromkeys([ours if each is theirs or each in HIDDEN else each for each in kinds]))

        kind = theirs if kind is ours else kind
        self.__mro__ = known(kind.__mro__)
        self.__bases__, (self.__base__,) = known(kind.__bases__), known([kind.__base__])

    def mro(self) -> list[type]:
        return list(self.__mro__)


def lineage(kind: Any) -> Any:
    """Return what has ``__mro__``, ``__bases__``, ``__base__`` and ``mro()`` of a class as the program knows them."""
    return _Lineage(kind) if isinstance(kind, type) and issubclass(kind, sys.modules[OURS].ndarray) else kind


def complete(module: Any) -> Any:
    """Return a module, with all names in it that NumPy's has."""
    if isinstance(module, ModuleType) and (module.__name__ + ".").startswith(OURS + "."):
        theirs = sys.modules.get(THEIRS + module.__name__[len(OURS) :])
        for name in vars(theirs) if theirs is not None else ():
            getattr(module, name, None)
    return module


def numpys(module: Any) -> Any:
    """Return NumPy's module in the place of ours, which the program knows by that name."""
    name = getattr(module, "__name__", "")
    return sys.modules.get(THEIRS + name[len(OURS) :], module) if (name + ".").startswith(OURS + ".") else module
