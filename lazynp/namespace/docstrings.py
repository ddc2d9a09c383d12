"""Docstrings that are made when they are read.

In: which function of ``help_texts`` makes one, and of what.  Out: ``__doc__`` for plain functions and for classes whose instances have a
docstring each.  Promise: importing lazynp makes none of them, and calling a function costs nothing for it.

A plain function's ``__doc__`` is a slot, not a property, so it holds a string that reads as the whole text: ``inspect.getdoc``, ``help``,
``print``, IPython's ``?`` and whatever calls one of a string's methods get that.  C code that looks into the string itself sees its
beginning only, what the function does; ``str(f.__doc__)`` is a common string.
"""

from __future__ import annotations

from typing import Any

from lazynp.values.loading import load


def _made(maker: str, *args: Any) -> Any:
    return getattr(load("lazynp.namespace.help_texts"), maker)(*args)


def _reading(name: str) -> Any:
    def read(self: Text, *args: Any, **options: Any) -> Any:
        return getattr(self.whole(), name)(*[str(arg) if type(arg) is Text else arg for arg in args], **options)

    return read


class Text(str):
    """The docstring of a function, made when first read."""

    __slots__ = ("_args", "_whole")
    _args: tuple[Any, ...]
    _whole: str | None
    locals().update({name: _reading(name) for name in vars(str).keys() - {"__new__", "__getattribute__", "__doc__", "maketrans"}})

    def __new__(cls, own: str | None, maker: str, path: str, function: Any) -> Text:
        """Make the text whose beginning is ``own``."""
        self = str.__new__(cls, own or "")
        self._whole = None
        self._args = maker, path, function, own
        return self

    def whole(self) -> str:
        """Return the text as a common string."""
        if self._whole is None:
            self._whole = _made(*self._args) or ""
        return self._whole

    __str__ = whole

    def __radd__(self, other: str) -> str:
        return other + self.whole()

    def __reduce__(self) -> Any:
        return str, (self.whole(),)


class Documented:
    """The ``__doc__`` of a class whose instances have a docstring each, made when first read."""

    def __init__(self, of_class: str | None, maker: str) -> None:
        self.of_class = of_class
        self.maker = maker

    def __get__(self, instance: Any, owner: type) -> str | None:
        if instance is None:
            return self.of_class
        text = instance.__dict__["__doc__"] = _made(self.maker, instance)
        return text
