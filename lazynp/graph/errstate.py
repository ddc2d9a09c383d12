"""NumPy's floating-point error state, as nodes carry it.

In: the state that ``numpy.errstate`` and ``numpy.seterr`` set for the running context.  Out: one ``State`` object for each.  Promise:
reading the state costs one look at a context variable and one comparison; states are compared by identity.

NumPy keeps the state in a context variable of a private name, as an opaque object that is replaced when the state changes.  Where that
name is missing, every node asks ``numpy.geterr``, which is slower and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any, Final

import numpy as np
from numpy._core import umath

from lazynp.graph import filters
from lazynp.graph.errors import ALL, BITS


class State:
    """A state says what happens at each kind of error.

    Attributes
    ----------
    modes : dict
        Kind of error (as in ``numpy.geterr``) -> mode.
    handler : object
        What ``numpy.seterrcall`` was given, where a mode asks for it.
    kinds : int
        Bits of the errors that are not ignored.
    eager : bool
        Some mode wants to be told at the call, not when the value is needed; or Python's filters do.
    name : str
        The operation's name in messages where that is not the one of the graph operation.
    """

    __slots__ = ("_derived", "at_call", "eager", "handler", "kinds", "modes", "name")

    def __init__(self, modes: dict[str, str], handler: Any = None, name: str = "", at_call: bool = False) -> None:
        self.modes = modes
        self.at_call = at_call
        self.handler = handler
        self.kinds = sum([BITS[kind] for kind, mode in modes.items() if mode != "ignore"])
        if "call" in modes.values():
            self.kinds = ALL  # a callback is also told of the ignored ones
        self.eager = any(mode not in ("ignore", "warn") or (at_call and mode == "warn") for mode in modes.values())
        self.name = name
        self._derived: dict[str, State] = {}

    def named(self, name: str) -> State:
        """The same for an operation that is called ``name``."""
        found = self._derived.get(name)
        if found is None:
            found = self._derived[name] = State(self.modes, self.handler, name, self.at_call)
        return found

    def without(self, *kinds: str) -> State:
        """The same, where some kinds of errors are ignored."""
        key = f"-{kinds}"  # no operation is called so
        found = self._derived.get(key)
        if found is None:
            modes = {**self.modes, **dict.fromkeys(kinds, "ignore")}
            found = self._derived[key] = State(modes, self.handler, self.name, self.at_call)
        return found

    def minded(self, said: int) -> State:
        """The same, with what Python's filters say of warnings (``filters.said``)."""
        warns = [kind for kind, mode in self.modes.items() if mode == "warn"]
        if not warns or said == filters.LATER:
            return self
        if said == filters.NEVER:
            return self.without(*warns)
        found = self._derived.get("=")  # as little a name as the other
        if found is None:
            found = self._derived["="] = State(self.modes, self.handler, self.name, at_call=True)
        return found


_KEPT: Final = 256
_of_token: dict[Any, State] = {}
_of_modes: dict[tuple[str, ...], State] = {}


def _read() -> State:
    modes = {kind: str(mode) for kind, mode in np.geterr().items()}
    if "call" in modes.values() or "log" in modes.values():
        return State(modes, np.geterrcall())
    return _of_modes.setdefault(tuple(modes.values()), State(modes))


def _no_token() -> Any:
    return None


variable: Any = getattr(umath, "_extobj_contextvar", None)
token: Callable[[], Any] = _no_token if variable is None else variable.get

DEFAULT: Final[State] = Context().run(_read)
DEFAULT_TOKEN: Final[Any] = object() if variable is None else Context().run(token)
QUIET: Final = State(dict.fromkeys(BITS, "ignore"))


def state_of(seen: Any) -> State:
    """The state that NumPy's object ``seen`` stands for."""
    if seen is DEFAULT_TOKEN:
        return DEFAULT
    if seen is None:
        return _read()
    state = _of_token.get(seen)
    if state is None:
        if len(_of_token) >= _KEPT:
            _of_token.clear()
        state = _of_token[seen] = _read()
    return state


def current() -> State:
    """The state of the running context, for what is recorded now."""
    return state_of(token()).minded(filters.said())
