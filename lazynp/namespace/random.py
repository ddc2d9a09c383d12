"""Random numbers: NumPy's generators, lazynp's arrays.

In: the names of ``numpy.random``.  Out: the same functions and generator objects with results of ours.  Promise: the same bits as
NumPy for the same seed; numbers are drawn at the call, in the order of the calls, so that the generator's state is where NumPy's
would be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lazynp.namespace import fallback
from lazynp.namespace.fallback import Arguments

# Methods that shuffle their argument in place.
_WRITING = frozenset({"shuffle"})


def _drawn(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if name in _WRITING:

        def shuffle(*args: Any, **kwargs: Any) -> Any:
            return fallback.library_call(function, f"random.{name}", args, kwargs, (0,))

        shuffle.__wrapped__ = function  # type: ignore[attr-defined]  # its signature
        return fallback.library(shuffle)

    def draw(*args: Any, **kwargs: Any) -> Any:
        arguments = Arguments()
        if arguments.collect((args, kwargs)):
            return _wrapped(fallback.library_call(function, f"random.{name}", args, kwargs))
        return _wrapped(fallback.ours(function(*args, **kwargs)))

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = function.__doc__
    draw.__wrapped__ = function  # type: ignore[attr-defined]  # its signature
    return fallback.library(draw)


def _wrapped(value: Any) -> Any:
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return Source(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


class Source:
    """A generator of NumPy whose draws are arrays of ours."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def _stands_for(self) -> Any:
        return self._generator

    def __getattr__(self, name: str) -> Any:
        if name == "_generator":
            raise AttributeError(name)
        value = getattr(self._generator, name)
        if callable(value) and not name.startswith("_"):
            # Kept on the instance: the next draw finds it without coming here.
            value = self.__dict__[name] = _drawn(value, name)
        return value

    def __reduce__(self) -> Any:
        return Source, (self._generator,)

    def __repr__(self) -> str:
        return repr(self._generator)

    # isinstance(rng, np.random.Generator) holds.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.__dict__["_generator"]) if "_generator" in self.__dict__ else Source


class _Maker(type):
    """Metaclass of ``Generator`` and ``RandomState``: called, they make sources; as types they are NumPy's."""

    _numpy: type
    answered = "library"

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return Source(cls._numpy(*args, **kwargs))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._numpy)


Generator = _Maker("Generator", (), {"_numpy": np.random.Generator, "__doc__": np.random.Generator.__doc__})
RandomState = _Maker("RandomState", (), {"_numpy": np.random.RandomState, "__doc__": np.random.RandomState.__doc__})


def attribute(value: Any, name: str) -> Any:
    """What ``lazynp.random.<name>`` is."""
    if isinstance(value, type) or not callable(value):
        return value
    return _drawn(value, name)


FUNCTIONS: Final = {"Generator": Generator, "RandomState": RandomState}
