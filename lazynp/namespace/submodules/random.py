"""Random numbers: NumPy's generators, lazynp's arrays.

In: the names of ``numpy.random``.  Out: the same functions and generator objects with results of ours.  Promise: the same bits as
NumPy for the same seed; numbers are drawn at the call, in the order of the calls, so that the generator's state is where NumPy's
would be.  Many of them are drawn in C (``draws/``).  For a GPU ``device/drawing.py`` records many numbers in place of drawing them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import new_class
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from lazynp.array import core, hand
from lazynp.engine import devices
from lazynp.namespace.bridge import fallback, proxies
from lazynp.namespace.bridge.fallback import Arguments
from lazynp.namespace.docstrings import Documented
from lazynp.namespace.draws import native
from lazynp.protocols import to_host
from lazynp.values import config

# Methods that shuffle their argument in place.
_WRITING = frozenset({"shuffle"})

# Methods that give numbers, or an array of them, or nothing.
_NUMBERS = frozenset(
    {
        "beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel", "hypergeometric",
        "integers", "laplace", "logistic", "lognormal", "logseries", "multinomial", "multivariate_normal", "negative_binomial", "normal",
        "pareto", "permutation", "permuted", "poisson", "power", "rand", "randint", "randn", "random", "random_sample", "rayleigh",
        "shuffle", "standard_cauchy", "standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform",
        "vonmises", "wald", "weibull", "zipf",
    }
)  # fmt: skip

# Arguments that are no arrays.
_is_plain = (hand.NUMBERS | {type(None), str, type}).issuperset

_SOURCES = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)


class Draw:
    """A function or bound method of NumPy's that draws; like those it stays what it is as an attribute of a class."""

    answered = "library"
    __doc__ = Documented(__doc__, "of_draw")

    def __init__(self, function: Callable[..., Any], name: str, public: bool = False) -> None:
        self._public = public
        self.__wrapped__ = function
        self.waits = native.waits(function)  # what draws as it does is not there yet
        self._function = function if self.waits else native.drawn(function)
        self.__name__ = self.__qualname__ = name
        self._writes = (0,) if name in _WRITING else ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.__wrapped__
        if devices.gpus is None:
            return self._by_numpy(args, kwargs)
        found = devices.gpus.drawn(function, args, kwargs)
        if found is None:
            found = self._by_numpy(args, kwargs)
            devices.gpus.count_on_host(f"random.{self.__name__}", found)
        return found

    def soon(self, *args: Any, **kwargs: Any) -> Any:
        """Return what draws from this call on, if it is known now; else None."""
        if not self.waits:  # another thread has asked
            return self._function
        found = native.soon(self.__wrapped__, args, kwargs)
        if found is not None:
            self._function, self.waits = found, False
        return found

    def _by_numpy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.waits:
            with suppress(RecursionError, MemoryError):  # of asking: NumPy's method may need less
                self.soon(*args, **kwargs)
        function = self._function
        if not self._writes and config.at_hand and _is_plain(map(type, args)) and (not kwargs or _is_plain(map(type, kwargs.values()))):
            value = function(*args, **kwargs)
            return value if type(value) in hand.NUMBERS else _wrapped(hand.result(value))
        if self._writes or Arguments().collect((args, kwargs)):
            return _wrapped(fallback.library_call(function, f"random.{self.__name__}", args, kwargs, self._writes))
        return _wrapped(fallback.ours(function(*args, **kwargs)))

    def __reduce__(self) -> Any:
        return (fallback.by_path, (f"random.{self.__name__}",)) if self._public else (Draw, (self.__wrapped__, self.__name__))

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


def _draw(value: Callable[..., Any], name: str, public: bool) -> Any:
    draw = Draw(value, name, public)
    if name not in _NUMBERS:
        return draw
    function = core.function(draw, draw._function, f"draw {name}", frozenset())
    if draw.waits:
        core.draws_later(function)
    return function


def _wrapped(value: Any) -> Any:
    if isinstance(value, _SOURCES):
        return Source(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


_known: WeakValueDictionary[int, Source] = WeakValueDictionary()


class Source:
    """A generator of NumPy, a bit generator or a seed sequence whose draws are arrays of ours."""

    def __new__(cls, generator: Any) -> Any:
        # One for each, so that `rng.bit_generator is bits` holds.
        found = _known.get(id(generator))
        if found is None:
            found = _known[id(generator)] = super().__new__(cls)
            found._generator = generator
        return found

    def _stands_for(self) -> Any:
        return self._generator

    def __getattr__(self, name: str) -> Any:
        if name == "_generator":
            raise AttributeError(name)
        value = getattr(self._generator, name)
        if isinstance(value, _SOURCES):
            return Source(value)
        if callable(value) and not name.startswith("_"):
            # Kept on the instance: the next draw finds it without coming here.
            value = self.__dict__[name] = _draw(value, name, False)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_generator":
            super().__setattr__(name, value)
        else:
            setattr(self._generator, name, to_host(value, "random"))

    def __reduce__(self) -> Any:
        return Source, (self._generator,)

    def __getstate__(self) -> Any:
        return self._generator.__getstate__()

    def __repr__(self) -> str:
        return repr(self._generator).replace(f"{id(self._generator):X}", f"{id(self):X}")

    def __str__(self) -> str:
        return str(self._generator)

    # isinstance(rng, np.random.Generator) holds.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.__dict__["_generator"]) if "_generator" in self.__dict__ else Source


class _Maker(type):
    """Metaclass of ``Generator``, ``RandomState`` and the bit generators: called, they make sources; as types they are NumPy's."""

    _numpy: type
    answered = "library"

    def __new__(mcls, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any) -> Any:
        if "_numpy" in members:
            return super().__new__(mcls, name, bases, members)
        # A subclass of the user's is NumPy's.
        theirs = tuple([base._numpy if isinstance(base, _Maker) else base for base in bases])
        return new_class(name, theirs, options, lambda namespace: namespace.update(members))

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        arguments = Arguments()
        if arguments.collect((args, kwargs)):
            args, kwargs = arguments.theirs(args), arguments.theirs(kwargs)
        return Source(cls._numpy(*args, **kwargs))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._numpy)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, cls._numpy)


FUNCTIONS: Final = {
    name: _Maker(name, (), {"_numpy": getattr(np.random, name), "__doc__": getattr(np.random, name).__doc__})
    for name in ("Generator", "RandomState", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence")
}

for _maker in FUNCTIONS.values():
    proxies.register(_maker, _maker._numpy)


def attribute(value: Any, name: str) -> Any:
    """Make what ``lazynp.random.<name>`` is."""
    if isinstance(value, type) or not callable(value):
        return value
    return _draw(value, name, True)
