"""Programs that differ in their sizes alone, and what is made once for all of them.

In: the canonical form of a program that was not planned yet.  Out: a ``Program``; of a family that was seen before, one that knows it.
Promise: what ``prepared`` returns for that is equal to what would have been made for it alone, and costs a look at the sizes and a copy
with other numbers in it.

The first program of a family is planned as it is.  For the second the passes run with sizes in place of extents (``graph/size.py``), and
what they make is a *case*: it serves all sizes of which the same is true that the passes asked about.

A key names the extents of arrays, but what is made for one set of them serves nearly all others: a program whose shape changes at every
turn (a shrinking mask, the rest of a matrix, ``x[:n]``) would otherwise pay for all passes at every turn. Programs whose keys differ in
their extents alone are a *family* (``schedule/families.py``; which extents are equal, and which are 0 or 1, is part of the structure).
The first is planned as it is. For the second the passes run once more, with ``Size`` objects (``graph/size.py``) in place of the extents:
these count like numbers, and a ``Trace`` notes every comparison that a pass asked for (``rows*columns >= 200000``: no), and an equality
where a plain number was made of one (the length of a row that is written out). Kernel source, formulas, memory: what comes out has sizes
in it, and is a *case*. For another member a case is good if all that was noted is true of its sizes too, which one generated function of
straight comparisons tells, and gives the numbers to put in. So no pass knows about families, and none can be wrong about one: what it
never asked cannot matter to it. A new shape of a known family costs some 10 us in the NumPy tier (0.25 ms to plan) and some 50 compiled
(2 to 5 ms). Under ``LAZYNP_DEBUG=1`` every plan of a family is compared with the plan of its program alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from lazynp.graph.size import Recipe, Size, Trace, recipe
from lazynp.schedule.canonicalise import Canonical, Entry, Program, without_sizes
from lazynp.values import config
from lazynp.values.records import Row

FAMILIES: Final = 1024  # that are remembered, the least recently seen go first
CASES: Final = 48  # of one family, beyond which its programs are planned one by one: more than there are lengths of short rows


class Case(Row):
    """One way in which the passes go: ``holds(*sizes)`` gives the numbers in what is made, or None for sizes that go another way."""

    make: Callable[[Any, Program], Any]
    holds: Callable[..., tuple[Any, ...] | None]


class Traced(Program):
    """A program whose extents are sizes."""

    traced = True


class Sized(Program):
    """``template`` with ``numbers`` in its entries, which ``put`` puts there when they are read; of ``family``, if any."""

    __slots__ = ("_made", "_put", "_template", "family", "numbers")

    def __init__(self, template: Program, put: Recipe | None, numbers: tuple[Any, ...], family: Family | None = None) -> None:
        self.outputs, self.constants = template.outputs, template.constants
        self.origins, self.errors = template.origins, template.errors
        self.numbers = numbers
        self.family = family
        self._template = template
        self._put = put
        self._made: list[Entry] | None = None

    @property  # type: ignore[misc]
    def entries(self) -> list[Entry]:  # type: ignore[override]
        if self._made is None:
            self._made = self.with_numbers(self.numbers)
        return self._made

    def with_numbers(self, numbers: tuple[Any, ...]) -> list[Entry]:
        """The entries with other numbers."""
        found: list[Entry] = self._template.entries if self._put is None else self._put(numbers)
        return found


class Family:
    """The programs of one structure: ``template``, with what puts extents into its entries, and the cases by what makes them."""

    __slots__ = ("cases", "refused", "template")

    def __init__(self) -> None:
        self.template: tuple[Program, Recipe | None] | None = None
        self.cases: dict[str, list[Case]] = {}
        self.refused: set[str] = set()

    def program(self, canonical: Canonical, extents: tuple[int, ...]) -> Program:
        """The program of ``canonical``, a member with these extents."""
        if self.template is None:
            program = Program.of(canonical)
            if not self.begin(program, extents):
                return program  # an extent that the key does not name
        return self.member(extents)

    def begin(self, program: Program, extents: tuple[int, ...]) -> bool:
        """Take ``program`` for the template, with sizes in place of ``extents``; tells whether these are all there are."""
        trace = Trace()
        sizes: dict[int, Any] = {n: trace.size(n) for n in extents}
        if any(n > 1 and n not in sizes for entry in program.entries for n in entry.shape):
            return False
        for slot, size in enumerate(trace.sizes):
            size.slot = slot
        entries = [entry._replace(shape=tuple([sizes.get(n, n) for n in entry.shape])) for entry in program.entries]
        self.template = program, recipe(entries, trace.sizes[:])
        return True

    def member(self, extents: tuple[int, ...]) -> Sized:
        """The program that has these extents."""
        assert self.template is not None
        return Sized(*self.template, extents, self)

    def traced(self, name: str, program: Sized, make: Callable[[Program], Any], at: At) -> Any:
        """Make what all programs share that go the way of ``program``, and of that what is its own."""
        trace = Trace()
        sizes = tuple([trace.size(n) for n in program.numbers])
        traced = Traced(program.with_numbers(sizes), program.outputs, errors=program.errors)
        results: list[Size] = []
        try:
            case = Case(at(make(traced), results), trace.function(results))
        except Exception:
            # Something that is a plain number for all sizes was made of one.  The program by itself knows nothing of sizes.
            self.refused.add(name)
            if config.debug:
                raise
            return make(program)
        cases = self.cases[name] = [case, *self.cases.get(name, ())]
        if len(cases) == CASES:
            self.refused.add(name)
        return _copied(case, case.holds(*program.numbers), program, make)


At = Callable[[Any, list[Size]], Callable[[Any, Program], Any]]


def _plan_at(made: Any, results: list[Size]) -> Callable[[Any, Program], Any]:
    found: Callable[[Any, Program], Any] = made.sized(results)
    return found


def values_at(made: Any, results: list[Size]) -> Callable[[Any, Program], Any]:
    """Return what ``prepared`` copies of something that is no plan: the same with numbers in place of sizes."""
    found = recipe(made, results)
    return lambda numbers, _: made if found is None else found(numbers)


def prepared(name: str, program: Program, make: Callable[[Program], Any], at: At = _plan_at) -> Any:
    """Return what ``make`` makes of ``program``, or a copy of what it made of its family; ``name`` says who asks."""
    if program.__class__ is not Sized:
        return make(program)
    assert isinstance(program, Sized)
    family = program.family
    if family is None:
        return make(program)
    cases = family.cases.get(name, ())
    for k, case in enumerate(cases):
        numbers = case.holds(*program.numbers)
        if numbers is not None:
            if k:
                family.cases[name] = [case, *cases[:k], *cases[k + 1 :]]  # the next one goes the same way, most likely
            return _copied(case, numbers, program, make)
    if name in family.refused:
        return make(program)
    return family.traced(name, program, make, at)


def _copied(case: Case, numbers: Any, program: Program, make: Callable[[Program], Any]) -> Any:
    """Return what a case makes for ``program``; for who debugs it is compared with what would have been made of the program by itself."""
    made = case.make(numbers, program)
    if config.debug:
        described, expected = [x.described() if hasattr(x, "described") else x for x in (made, make(program))]
        if described != expected:
            raise AssertionError(f"the plan of a family is\n{described}\nwhere the plan of the program is\n{expected}")
    return made


def is_of_family(program: Program) -> bool:
    """Tell whether what ``prepared`` makes of ``program`` serves programs of other sizes, too."""
    return isinstance(program, Sized) and program.family is not None


def shares(name: str, program: Program) -> bool:
    """Tell whether ``prepared`` knows a case of the family of ``program``, so that most likely nothing has to be made."""
    return isinstance(program, Sized) and program.family is not None and name in program.family.cases


class Families:
    """The families that were seen last."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: OrderedDict[Any, Family] = OrderedDict()

    def program(self, canonical: Canonical) -> Program:
        """The program of ``canonical``."""
        structure, extents = without_sizes(canonical.key)
        if not extents:
            return Program.of(canonical)
        family = self.known.get(structure)
        if family is None:
            family = self.known[structure] = Family()
            if len(self.known) > FAMILIES:
                self.known.popitem(last=False)
            if not config.debug:
                return Program.of(canonical)
        self.known.move_to_end(structure)
        return family.program(canonical, extents)
