"""Importing what is wanted late.

In: the name of a module.  Out: the module.  Promise: what a signal handler raises does not strike inside such an import, where it would
leave modules half made and Python's locks taken: handlers run when the import is over.  And a thread that works for one that waits imports
nothing, for the one that waits may hold a lock of the import system: it is told what is wanted, imports it, and the work begins anew.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # of which `signal` makes enumerations, which takes a while
import sys
from _thread import get_ident, interrupt_main
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, Final

helpers: Final[set[int]] = set()  # threads that work for one that waits


handed: Final[dict[str, Callable[..., Any]]] = {}  # what modules above give to those below them, by name


class WantedError(BaseException):
    """A thread that works for another one wants a module, which that one is to import."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _is_loading(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def load(name: str) -> Any:
    """Import a module, once; no signal handler runs meanwhile."""
    module = sys.modules.get(name)
    if module is not None and not _is_loading(module):
        return module
    if get_ident() in helpers:
        raise WantedError(name)
    with Deferred():
        return import_module(name)


class Late:
    """A module that is loaded when one of its names is first wanted; its names are the module's, also those set afterwards."""

    __slots__ = ("__dict__", "_of")

    def __init__(self, name: str) -> None:
        self._of = name

    def __getattr__(self, name: str) -> Any:
        if name == "_of" or name.startswith("__"):
            raise AttributeError(name)
        module = load(self._of)
        value = getattr(module, name)
        if not _is_loading(module):  # whose other names are wanted of the module, which waits
            self.__dict__ = module.__dict__
        return value


def late(*names: str) -> list[Any]:
    """Return what stands for modules of the package that only functions need."""
    return [Late(f"lazynp.{name}") for name in names]


def later(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module of the package that is loaded when the function is first called."""

    def call(*args: Any) -> Any:
        return getattr(load(f"lazynp.{module}"), name)(*args)

    return call


def under_way(*roots: str) -> bool:
    """Tell whether a module of these packages is being imported: code that a collection of garbage runs finds it half made."""
    return any(
        name.partition(".")[0] in roots and _is_loading(module)
        for name, module in list(sys.modules.items())
    )


class Deferred:
    """Handlers of signals that come meanwhile are called afterwards.

    Python calls them in its main thread between any two instructions; so others stand in their places, in the main thread, which note what
    comes.  Afterwards signals that came are set as Python's own are, so that each is handled though the handler of another one raises.
    """

    __slots__ = ("came", "handlers", "over")

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self.came: list[Any] = []
        self.over = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.over:
            self.handlers[number](number, frame)
        else:
            self.came.append(number)

    def __enter__(self) -> None:
        try:
            for number in range(1, _signal.NSIG):
                handler = _signal.getsignal(number)
                if callable(handler):
                    self.handlers[number] = handler
                    _signal.signal(number, self._note)
        except ValueError:  # another thread than the main one: handlers do not run in it
            pass
        except BaseException:
            self._give_back()
            raise

    def __exit__(self, *raised: object) -> None:
        self._give_back()

    def _give_back(self) -> None:
        self.over = True  # from here on those that stand in hand on what comes, also one that an exception below leaves in its place
        try:
            list(map(interrupt_main, self.came))  # all of them before Python calls the first handler
        finally:
            for number, handler in self.handlers.items():
                if _signal.getsignal(number) == self._note:  # else the import has set one
                    _signal.signal(number, handler)
