"""Floating-point errors: hearing of them, and telling the user as NumPy would.

In: what NumPy's loops report while the NumPy tier, or NumPy itself on our behalf, computes.  Out: warnings, exceptions and calls, as the
error state of each operation asks.  Promise: a message is NumPy's, and a warning belongs to the user's line that recorded the operation, in
that module's registry, so that Python's filters (once per location, errors, ...) work as usual.  A run without errors pays for
one change of a context variable.

NumPy's loops are run in mode "log", whose messages name the operation.  The listener looks which line of the NumPy tier's generated
code was running; that line says which operation it was.
"""

# `errstate`, `seterr`, `seterrcall` are NumPy's own. A node carries the state it was recorded under (`Node.err`), and the run tells of
# its errors as that state asks: `ignore` and `warn` stay lazy, a warning names the line that recorded the operation and goes through that
# module's registry. Under `raise`, `call`, `print` and `log` an operation is run at its call. Python's filters in force at the call have
# a say in that state (`graph/filters.py`; recording compares the list with the one it saw last, 2 ns): what they drop altogether is
# `ignore`, and silent for ever; under the process's own list a warning is told with the value; under filters that make an exception of
# it, and within a block with a list of its own (`catch_warnings`, `pytest.warns`, the block that pytest puts around every test),
# operations that would warn are run at their call, so that what is to be heard of them stays in the block. Equal operations recorded
# under one state are one operation and warn once, at the first line.
#
# What is computed of arrays in memory is heard in NumPy's error state "log", which is set around the call (`items.h`). The NumPy tier hears
# NumPy's own messages and knows by the line of generated code which operation it was. Kernels clear the processor's flags and collect them
# at the end, in every worker. Where a flag is raised that an error state reports, the program is evaluated once more in the NumPy tier,
# from the inputs as they were, and that decides what is said. So flags may be raised in vain (comparing NaN does it) but not on ordinary
# data, which a table tests for every ufunc in every flavour of the math library. An evaluation that reported nothing lets the next
# 1, 3, 7, ... 255 hits of this plan and these lines go by. Kernels with float16, whose conversions raise flags at random, look at their
# results instead.
#
# Differences: elements that were not asked for are not computed and do not warn; warnings inside NumPy's Python functions (`np.mean`) name
# the user's line, not NumPy's; sums and products in another order can meet NaN before the error that NumPy meets; integer overflow of
# scalars is reported for known values, not for pending ones.

from __future__ import annotations

import atexit
import os
import sys
import warnings
from _thread import get_ident
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import Context
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from lazynp.graph import filters
from lazynp.graph.errors import ALL, BITS
from lazynp.graph.errstate import State, current, variable
from lazynp.graph.node import Site, caller, line_of
from lazynp.values.loading import load
from lazynp.values.records import Row

TIER_FILENAME: Final = "<lazynp numpy tier>"  # of the generated code

_MESSAGE: Final = slice(len("Warning: "), -1)
_ROOT: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep
_plain: Final[Any] = lambda function, args, kwargs: function(*args, **kwargs)  # noqa: E731, one line, whose number is the user's
_BETWEEN: Final = " encountered in "
KINDS: Final = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}

Note = tuple[int | None, str]
"""(entry of the program, or line of the generated code; message)."""


class Heard:
    """A record of what one thread's run reported: notes of the NumPy tier, and the plan whose kernels found a flag raised.

    ``later``: what will tell whether they did, where the device is not done yet.
    """

    __slots__ = ("flagged", "later", "notes")

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.flagged: Any = None
        self.later: Any = None


# By thread.  Empty nearly always: each run looks whether there is anything here.
heard: dict[int, Heard] = {}


def take() -> Heard | None:
    """Return what this thread's run reported, and forget it."""
    return heard.pop(get_ident(), None)


def own() -> Heard:
    """The same, to be added to."""
    return heard.setdefault(get_ident(), Heard())


class _Listener:
    """A listener takes the messages that NumPy writes."""

    def write(self, text: str) -> None:
        frame = sys._getframe(1)
        line = None
        while frame is not None:
            if frame.f_code.co_filename == TIER_FILENAME:
                line = frame.f_lineno
                break
            frame = frame.f_back  # type: ignore[assignment]
        own().notes.append((line, text[_MESSAGE]))


_listener: Final = _Listener()


def _modes(kinds: int) -> dict[str, Any]:
    return {kind: "log" if kinds & bit else "ignore" for kind, bit in BITS.items()}


class _Objects(dict[int, Any]):
    """NumPy's object for a state in which the listener hears of some kinds of errors."""

    def __missing__(self, kinds: int) -> Any:
        with np.errstate(**_modes(kinds), call=_listener):
            made = self[kinds] = variable.get()
        return made


_objects: Final = _Objects()


def _set_by_variable(kinds: int) -> Any:
    return variable.set(_objects[kinds])


def _set_by_name(kinds: int) -> Any:
    context = np.errstate(**_modes(kinds), call=_listener)
    context.__enter__()
    return context


def _leave(context: Any) -> None:
    context.__exit__(None, None, None)


# ``stop(listen(kinds))`` around NumPy's loops.
listen: Final[Callable[[int], Any]] = _set_by_name if variable is None else _set_by_variable
stop: Final[Callable[[Any], None]] = _leave if variable is None else variable.reset
# ``listen(ALL)``, for arithmetic of numbers, where every call counts.
listening: Final[Any] = None if variable is None else _objects[ALL]
listen_to_all: Final[Callable[[], Any]] = partial(listen, ALL) if variable is None else partial(variable.set, listening)


def _hearing() -> Callable[..., Any]:
    """Return what calls one of NumPy's loops while the listener hears of all errors, a quarter of the price of ``stop(listen_to_all())``.

    It goes into a context that is always in that state.  One call at a time can be in there: a second one, of another thread, is a
    ``RuntimeError`` before it began, and goes the other way.
    """
    if variable is None:
        return _heard_by_name
    context = Context()
    context.run(variable.set, listening)
    return context.run


def _heard_by_name(function: Callable[..., Any], *args: Any) -> Any:
    before = listen_to_all()
    try:
        return function(*args)
    finally:
        stop(before)


hearing: Final[Callable[..., Any]] = _hearing()


def at_once(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """NumPy's answer now, at the user's line; used where ``function`` does not come back to lazynp."""
    before = listen_to_all()
    try:
        return function(*args, **kwargs)
    finally:
        stop(before)
        if heard:
            tell_here()


def at_users_line(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function as from the user's line, so that Python's warnings name that line, in that module's registry."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_ROOT) and frame.f_back is not None:
        frame = frame.f_back
    return FunctionType(_standing_at(frame.f_code.co_filename, frame.f_lineno), frame.f_globals)(function, args, kwargs)


@lru_cache(1024)
def _standing_at(filename: str, line: int) -> CodeType:
    code: CodeType = _plain.__code__.replace(co_filename=filename, co_firstlineno=line)
    return code


def watched(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``at_once`` where ``function`` may call back: what it reports is kept apart from what lazynp hears meanwhile."""
    state, site = current(), caller()
    idle = _messages.setdefault(state.kinds, [])
    try:
        messages = idle.pop()
    except IndexError:
        messages = _Messages(state.kinds)
    try:
        with messages:
            return function(*args, **kwargs)
    finally:
        texts = messages.take()
        idle.append(messages)
        if texts:
            tell([Finding(state, site, text, None) for text in texts])


class _Messages:
    """A listener to some kinds of errors, for one call at a time."""

    def __init__(self, kinds: int) -> None:
        self._texts: list[str] = []
        self._modes = _modes(kinds)
        self._before: Any = None
        if variable is not None:
            with np.errstate(**self._modes, call=self):
                self._object = variable.get()

    def write(self, text: str) -> None:
        self._texts.append(text[_MESSAGE])

    def take(self) -> list[str]:
        """Return what was reported, and forget it."""
        found, self._texts = self._texts, []
        return found

    def __enter__(self) -> None:
        if variable is None:
            self._before = np.errstate(**self._modes, call=self)
            self._before.__enter__()
        else:
            self._before = variable.set(self._object)

    def __exit__(self, *error: object) -> None:
        stop(self._before)


_messages: Final[dict[int, list[_Messages]]] = {}  # those that are not in use, by kinds


def tell_here() -> None:
    """Tell what NumPy just reported, under the state and at the line that are current."""
    found = take()
    if found is not None:
        state, site = current(), caller()
        tell([Finding(state, site, text, None) for _, text in found.notes])


class Finding(Row):
    """One error of one operation."""

    state: State
    site: Site | None
    text: str
    operation: Any  # equal for the errors of one operation


Origin = tuple[State, Site | None]
"""The error state and the line of an operation."""


def findings(notes: Iterable[Note], of: list[Origin]) -> list[Finding]:
    """List what is to be told of a program's errors; ``of`` are the origins of its entries."""
    found = []
    for entry, text in notes:
        state, site = of[entry if entry is not None else -1]
        found.append(Finding(state, site, text, entry))
    return found


def tell(found: list[Finding]) -> bool:
    """Warn, raise, call: whatever each operation's state asks for; returns whether the program could notice.

    Raises
    ------
    FloatingPointError
        Where the state says so; the line that recorded the operation is noted.
    """
    noticed = False
    told: set[tuple[str, Any]] = set()
    tell_put_off()
    for finding in found:
        state, site, text, operation = finding
        what = text.partition(_BETWEEN)[0]
        kind = KINDS.get(what, "")
        mode = state.modes.get(kind, "ignore")
        if mode == "ignore":
            continue
        if state.name:
            # A function of several operations speaks once.
            text = f"{what}{_BETWEEN}{state.name}"
            if (text, site) in told:
                continue
            told.add((text, site))
        try:
            if mode == "warn":
                if state.at_call or filters.are_the_process():
                    noticed |= _warn(text, site)
                else:  # a block of other filters asks for the value
                    _put_off.append((text, site or caller()))
                    for forget in filters.asking_anew:
                        forget()
                continue
            noticed = True
            if mode == "raise":
                raise FloatingPointError(text)
        except (FloatingPointError, RuntimeWarning) as error:
            error.add_note(f"recorded at {_where(site)}")
            raise
        if mode == "call":
            state.handler(what, _flags(found, operation))
        elif mode == "log":
            state.handler.write(f"Warning: {text}\n")
        else:
            with suppress(OSError):
                os.write(2, f"Warning: {text}\n".encode())
    return noticed


# Warnings of what was recorded outside of a block of filters, and computed within it: they are none of its own.
_put_off: Final[list[tuple[str, Site]]] = []


def tell_put_off(last: bool = False) -> None:
    """Tell the warnings that wait until the filters outside of all blocks are in force again; ``last``: they are told now."""
    while _put_off and (last or filters.are_the_process()):
        try:
            finding = _put_off.pop(0)
        except IndexError:  # another thread tells it
            return
        _warn(*finding)


def _tell_in_passing() -> None:
    """The same, where no caller could be given an exception that is none of its own: filters say "error" by now, or a handler raises."""
    try:
        tell_put_off()
    except Exception as error:
        print("Exception ignored where a warning was told later than it was found:", file=sys.stderr)
        load("traceback").print_exception(error)


filters.returned.append(_tell_in_passing)
atexit.register(tell_put_off, last=True)


def _flags(found: list[Finding], operation: Any) -> int:
    """All errors of one operation, as the number that NumPy hands to a callback."""
    bits = 0
    for finding in found:
        if finding.operation == operation:
            bits |= BITS[KINDS[finding.text.partition(_BETWEEN)[0]]]
    return bits


# Warnings ----------------------------------------------------------------------------------------------------------------

_KEPT: Final = 1024
_places: dict[tuple[int, int], tuple[Site, int]] = {}
_modules: dict[str, str] = {}


def _line(site: Site) -> int:
    key = id(site[0]), site[1]
    known = _places.get(key)
    if known is None:
        if len(_places) >= _KEPT:
            _places.clear()
        known = _places[key] = site, line_of(site)
    return known[1]


def _where(site: Site | None) -> str:
    return "an unknown line" if site is None else f"{site[0].co_filename}:{_line(site)}"


def _globals(filename: str) -> dict[str, Any]:
    """The global names of the code in a file: of a frame that is running, of a module, or else of the main program."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == filename:
            return frame.f_globals
        frame = frame.f_back  # type: ignore[assignment]
    name = _modules.get(filename)
    if name is None or name not in sys.modules:
        name = "__main__"
        for candidate, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) == filename:
                name = candidate
                break
        if len(_modules) >= _KEPT:
            _modules.clear()
        _modules[filename] = name
    return sys.modules[name].__dict__


def _warn(text: str, site: Site | None) -> bool:
    """Warn at the user's line; returns whether Python did more than find it shown before or unwanted."""
    if site is None:
        site = caller()
    filename, line = site[0].co_filename, _line(site)
    names = _globals(filename)
    registry = names.setdefault("__warningregistry__", {})
    key = (text, RuntimeWarning, line)
    known, version = key in registry, registry.get("version")
    module = names.get("__name__") or "<unknown>"
    warnings.warn_explicit(text, RuntimeWarning, filename, line, module, registry)
    if key in registry:
        return not (known and version == registry.get("version"))
    return _action(text, line, module) != "ignore"


def _action(text: str, line: int, module: str) -> str:
    """Return what Python's filters do with a warning."""
    for action, message, category, where, number in warnings.filters:
        if (
            (message is None or message.match(text))
            and issubclass(RuntimeWarning, category)
            and (where is None or where.match(module))
            and number in (0, line)
        ):
            return action
    return "default"
