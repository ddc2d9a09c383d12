"""The NumPy tier: the oracle of the tests, and what runs programs too small to compile.

In: a ``Program``.  Out: a plan whose ``run`` is one generated Python function.  Promise: values are those of NumPy's own calls
in the recorded order; byte code is made once per pattern of operations, whatever the shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final

from lazynp.backends.base import ExecutionError
from lazynp.backends.common.ownership import Claim
from lazynp.backends.numpy.source import NAMESPACE, Ours, Source, changes, translate
from lazynp.graph import floating
from lazynp.graph import op as o
from lazynp.graph.size import Size, recipe
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.claims import Claims, claims, view_base
from lazynp.schedule.families import Sized, prepared
from lazynp.values import config
from lazynp.values.buffer import Buffer
from lazynp.values.outside import from_outside

CODES: Final = 1024  # texts whose byte code is kept

_codes: dict[str, CodeType] = {}


def _code(text: str) -> CodeType:
    code = _codes.get(text)
    if code is None:
        module = compile(text, floating.TIER_FILENAME, "exec", dont_inherit=True)
        code = next(const for const in module.co_consts if isinstance(const, CodeType))
        if len(_codes) >= CODES:
            _codes.pop(next(iter(_codes)), None)
        _codes[text] = code
    return code


class NumpyPlan:
    """One generated function and the map from its lines to entries; one more for each set of inputs that it may write in place."""

    __slots__ = ("_debug", "_function", "_functions", "_ours", "_program", "changes", "claims", "source")
    tier = "in the NumPy tier"

    def __init__(self, program: Program, debug: bool = False, ours: Ours | None = None) -> None:
        self._program = program
        self._debug = debug
        self._ours = ours
        self.source = translate(program, debug, ours=ours)
        self._function = _function(self.source)
        self._functions: dict[tuple[frozenset[int], frozenset[int]], tuple[Source, Callable[..., list[Buffer]]]] = {}
        self.claims = Claims([program.entries[e].arg for e in claims(program)])
        read = [program.entries[view_base(program, entry.src[0])] for entry in program.entries if changes(entry)]
        self.changes = [entry.arg for entry in dict.fromkeys(read) if entry.op is o.BUFFER]  # what it would change, were it its own

    def described(self) -> Any:
        """All that runs, to be compared with another plan's."""
        return self.source, self.claims.described()

    def sized(self, results: list[Size]) -> Callable[..., NumpyPlan]:
        """Return what makes the plan of the same program with other sizes; the numbers that it needs are added to ``results``."""
        constants = recipe(self.source.constants, results)
        needs = recipe(self.source.needs, results)
        entries = recipe(self._program.entries, results)

        def at(numbers: tuple[Any, ...], program: Program | None = None) -> NumpyPlan:
            plan = NumpyPlan.__new__(NumpyPlan)
            plan._program = program or Sized(self._program, entries, numbers)
            plan._debug, plan._ours, plan.source = self._debug, self._ours, self.source
            if constants is not None or needs is not None:
                given = self.source.constants if constants is None else constants(numbers)
                plan.source = Source(self.source.text, given, self.source.lines, self.source.needs if needs is None else needs(numbers))
            plan._function = _function(plan.source)
            plan._functions = {}
            plan.changes = self.changes
            plan.claims = self.claims  # who contests them contests those of other sizes, too
            return plan

        return at

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any], claim: Claim | None = None) -> list[Buffer]:
        """See ``Plan.run``."""
        source, function, save = self.source, self._function, None
        if claim is not None:
            granted = frozenset([slot for slot in self.claims if buffers[slot].block in claim.blocks])
            own = frozenset([slot for slot in self.changes if buffers[slot].block in claim.own])
            if granted or own:
                save = claim.save
                source, function = self._functions.get((granted, own)) or self._owning(granted, own)
        before = floating.listen(self._program.errors)
        try:
            return function(buffers, integers, scalars, save)
        except Exception as error:
            if from_outside(error):
                raise
            raise ExecutionError(_failed(source, function, error), error) from error
        finally:
            floating.stop(before)
            if floating.heard:
                _locate(source)

    def _owning(self, granted: frozenset[int], own: frozenset[int]) -> tuple[Source, Callable[..., list[Buffer]]]:
        """The function that may overwrite the inputs ``granted``, and change those that are its ``own``."""
        source = translate(self._program, self._debug, granted, self._ours, own)
        made = self._functions[granted, own] = source, _function(source)
        return made


def _function(source: Source) -> Callable[..., list[Buffer]]:
    return FunctionType(_code(source.text), NAMESPACE, "run", source.constants or None)


def _locate(source: Source) -> None:
    """Turn what this thread heard into findings of entries, not of lines."""
    heard = floating.take()
    if heard is not None:
        floating.own().notes = [(source.lines[line - 1] if line is not None else None, text) for line, text in heard.notes]


def _failed(source: Source, function: Any, error: BaseException) -> int | None:
    """The entry whose line raised."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is function.__code__:
            return source.lines[traceback.tb_lineno - 1]
        traceback = traceback.tb_next
    return None


class NumpyBackend:
    """See ``Backend``."""

    name = "numpy"

    def prepare(self, program: Program) -> NumpyPlan:
        """See ``Backend.prepare``."""
        made: NumpyPlan = prepared(self.name, program, lambda program: NumpyPlan(program, config.debug))
        return made
