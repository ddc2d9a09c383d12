"""What programs are asked for after they ran: learned where the same programs come again, as in a loop.

In: runs, and values that were computed on the way in one of them and are wanted now.  Out: the entries that the next run of the same
program keeps as well.  Promise: a value that a turn of a loop computes on the way to one result and needs for the next one is computed once
a turn from the second turn on; what nobody holds after a run was kept for nothing, and is not kept for long; programs of small work
are left alone.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import ref

from lazynp.backends.base import Plan
from lazynp.graph.node import Node
from lazynp.schedule.canonicalise import Canonical

MOST: Final = 16  # entries that are kept for one program
PROGRAMS: Final = 512  # programs that are remembered
IDLE: Final = 2  # runs in a row after which what nobody holds is not kept any more


class Run:
    """A run whose nodes may be asked for later: its plan, and the recording numbers of its entries' nodes."""

    __slots__ = ("numbers", "plan")

    def __init__(self, plan: Plan, canonical: Canonical) -> None:
        self.plan = plan
        self.numbers = [node.number for node in canonical.nodes]


class Habit:
    """The entries that are kept of one program, and for how many runs in a row each was kept for nothing.

    An entry that was given up stays so.
    """

    __slots__ = ("entries", "idle", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan  # kept, so that no other one gets its number
        self.entries: tuple[int, ...] = ()
        self.idle: dict[int, int] = {}

    def settle(self, held: list[tuple[int, ref[Node]]]) -> None:
        """Learn from a run: ``held`` are the entries that were kept, after everything but the user let go of them."""
        for e, node in held:
            self.idle[e] = 0 if node() is not None else self.idle[e] + 1
        self.entries = tuple([e for e in self.entries if self.idle[e] < IDLE])


habits: dict[int, Habit] = {}


def learn(wanted: list[Node]) -> None:
    """Nodes that are wanted now: those that an earlier run computed it keeps from now on."""
    for node in wanted:
        run: Any = node.computed
        if run.__class__ is not Run or node.number not in run.numbers:
            continue
        habit = habits.get(id(run.plan))
        if habit is None:
            if len(habits) >= PROGRAMS:
                habits.clear()
            habit = habits[id(run.plan)] = Habit(run.plan)
        e = run.numbers.index(node.number)
        if e not in habit.idle and len(habit.idle) < MOST:
            habit.idle[e] = 0
            habit.entries = (*habit.entries, e)


def expected(habit: Habit, canonical: Canonical) -> list[tuple[int, ref[Node]]]:
    """Have a program give what will be asked for later as well; returns what that is."""
    more = [e for e in habit.entries if e not in canonical.key[1]]
    canonical.wanted += [canonical.nodes[e] for e in more]
    canonical.key = canonical.key[0], (*canonical.key[1], *more)
    return [(e, ref(canonical.nodes[e])) for e in more]
