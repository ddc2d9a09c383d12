"""Which programs are compiled, and when.

In: a ``Program``.  Out: a ``Plan``.  Promise: the choice depends on sizes and counts only, never on a clock: work that is very large is
compiled when first seen, work that is small runs through the NumPy tier until it has come often enough to pay for its compilation, and
work that is tiny stays there.  Much earlier one looks whether an earlier process has left machine code on disk, or has looked for it, too;
and where others compile while the program goes on, that begins earlier, and its end is the one thing that a clock decides: who computes
from then on.  Programs that differ in their shapes only share their machine code, and pay for it together.

Small programs run through the NumPy tier; a program is compiled when one run is large (``engine/tiers.py`` has the numbers; the turns of
an unrolled loop share their code, and count once), when it, together with programs that differ in their shapes only, came often enough to
have cost as much, or when there is a compiled plan of its family already. At an eighth of that cost one looks whether an earlier process
left the machine code on disk; who does not find it notes there that it was wanted (``DiskCache.wanted``), and the next process that looks
has it compiled. So a script that never runs long enough to pay for its kernels has them from its third start on. Sizes and counts decide,
never a clock.
"""

from __future__ import annotations

from contextlib import suppress
from math import prod
from typing import Any

from lazynp.backends.base import Backend, CompileError, Compiler, Plan
from lazynp.backends.common.ownership import Claim
from lazynp.backends.numpy import together
from lazynp.graph.op import SPECIAL, STORE, Kind
from lazynp.schedule.canonicalise import Program
from lazynp.schedule.claims import Claims, is_copied
from lazynp.schedule.families import prepared, shares, values_at
from lazynp.values.buffer import Buffer
from lazynp.values.records import Row

COMPILE_WORK = 6_000_000  # cost units (element operations) that pay for compiling one operation: some milliseconds each
PLAN_WORK = 200_000  # and for finding its place in a schedule, which operations of one pattern need each
PATIENCE = 3  # what comes in small pieces is compiled when it has cost so many times its compilation: it may be over before that pays
TINY_WORK = 16_384  # below this a run is all overhead, and NumPy's is the smaller one
SHARED_WORK = 100_000  # from which a plan pays that is there for other sizes: putting these in takes longer than NumPy's tier does
# A special function is some hundred calls of NumPy in its tier, however few the elements, and takes longer there than its cost says.
SPECIAL_WORK = 100_000
SPECIAL_FACTOR = 3
AHEAD = 2  # what is compiled while the program goes on costs so much less: its text, and a core that had nothing to do
WORTH_WAITING = 8  # compilations that a run costs which waits for its own, where others go on meanwhile by passes and NumPy's loops
WAITING_BYTES = 64 << 20  # of a value, from which on what NumPy's loops hold between the steps matters
ATTEMPTS = 3  # times that part of what was to be compiled was taken elsewhere
KEPT_WORK = 8  # code that an earlier process left on disk costs so much less than compiling: by then one looks whether there is some
SMALL_PIECES = 12  # runs that pay for a compilation, from which on they are small
ACCOUNTS = 4096  # structures that are remembered
# Why a program begins in the tier it does.
LARGE = "one run costs more than compiling it"
SHARED = "there is code for it, of other sizes"
OFTEN = "programs of its kind came often enough to pay for compiling it"
TINY = "it is so small that a run of kernels is all overhead"
COUNTED = "it has not come often enough to pay for compiling it"
COMPILED = frozenset({LARGE, SHARED, OFTEN})
PATTERN = 3  # operations whose sources look alike so many levels up share their machine code, most likely


class Price(Row):
    """The price of a program in vectorised element operations: of a run, a place in a schedule, machine code; whose code that is.

    And the bytes of its largest value.
    """

    run: int
    schedule: int
    code: int
    structure: int
    largest: int


def work(program: Program) -> Price:
    """Compute what a program costs."""
    total = operations = largest = 0
    for entry in program.entries:
        kind = entry.op.kind
        if kind is Kind.LEAF or kind is Kind.MOVEMENT:
            if is_copied(program, entry):
                total += prod(entry.shape) * together.PARTS
                largest = max(largest, prod(entry.shape) * entry.dtype.itemsize)
            continue
        operations += 1
        largest = max(largest, prod(entry.shape) * entry.dtype.itemsize)
        # A write costs what it writes: the rest stays or is copied fast.
        size = prod(program.entries[entry.src[1]].shape if entry.op is STORE else entry.shape)
        if entry.op in SPECIAL:
            total += max(SPECIAL_FACTOR * size * entry.op.cost, SPECIAL_WORK) * together.PARTS
        else:
            if kind is Kind.ELEMENTWISE and entry.src:
                total += size * together.price(program.entries, entry)
            else:
                total += size * max(entry.op.cost, 1) * together.PARTS
        if kind is Kind.REDUCTION:
            total += prod(program.entries[entry.src[0]].shape) * together.PARTS
    patterns = _patterns(program)
    return Price(total // together.PARTS, operations * PLAN_WORK, len(patterns) * COMPILE_WORK, hash((operations, patterns)), largest)


def _patterns(program: Program) -> frozenset[int]:
    """The different operations there are to compile: the turns of a loop that was recorded unrolled count once."""
    kinds = [hash((entry.op, entry.dtype, len(entry.shape))) for entry in program.entries]
    seen = kinds
    for _ in range(PATTERN):
        seen = [hash((kinds[e], *[seen[s] for s in entry.src])) for e, entry in enumerate(program.entries)]
    return frozenset([seen[e] for e, entry in enumerate(program.entries) if entry.op.kind not in (Kind.LEAF, Kind.MOVEMENT)])


class Account:
    """An account of what programs of one structure still have to cost in the NumPy tier before they are compiled.

    ``look`` is what is left when one looks whether their code was kept; -1 once that is done.  ``begin`` is what is left when it is
    compiled while they run.
    """

    __slots__ = ("begin", "left", "look")

    def __init__(self, price: Price) -> None:
        self.left = _total(price)
        self.look = self.left - max(self.left // KEPT_WORK, price.run)
        self.begin = self.left - (price.code + price.schedule) // AHEAD


class TieredPlan:
    """A plan of the NumPy tier that counts what it does, and is compiled once that has cost enough."""

    __slots__ = ("account", "attempts", "compiler", "cost", "left", "plan", "program", "works")

    def __init__(self, program: Program, plan: Plan, compiler: Compiler, price: Price, account: Account) -> None:
        self.program: Program | None = program
        self.plan = plan
        self.compiler = compiler
        self.cost = price.run
        self.left = price.schedule
        self.account = account
        self.works: tuple[Any, ...] = ()  # what compiles it meanwhile
        self.attempts = 0

    @property
    def tier(self) -> str:
        """Tell what runs it, in words."""
        return f"{self.plan.tier}, {'because it came often' if self.program is None else 'until that has cost as much as compiling it'}"

    @property
    def next_tier(self) -> str:
        """Tell in words what runs it next, and until when."""
        if self.program is None:
            return self.tier
        if self.works:
            return f"{self.plan.tier}, until it is compiled, which goes on meanwhile"
        left = max(self.left, self.account.left - self.threshold) // self.cost
        if left < 1:
            return "compiled at its next run, because it came often"
        return f"{self.plan.tier}, and compiled after {left:,} more run{'' if left == 1 else 's'} of its kind"

    @property
    def threshold(self) -> int:
        """Return what is left on the account when this is compiled."""
        return self.account.begin if self.compiler.ahead else 0

    @property
    def claims(self) -> Claims:
        """Return what the next run would write in place; who asks is about to run it, and holds no lock, which compiling does not allow."""
        program = self.program
        if program is not None:
            account = self.account
            self.left -= self.cost
            account.left -= self.cost
            if self.left >= 0:
                pass
            elif self.works:
                if all(work.over for work in self.works):
                    self._compile(program)
            elif 0 <= account.left < account.look:
                account.look = -1
                found = self.compiler.kept(program)
                if found is not None:
                    self.plan = found
                    self.program = None
                    account.left = -1
                elif account.left < account.begin and self.compiler.ahead:
                    self._compile(program)
            elif account.left < account.begin and (account.left < 0 or self.compiler.ahead):
                self._compile(program)
        return self.plan.claims

    def _compile(self, program: Program) -> None:
        """Compile a program, or have it compiled; where that does not go, the NumPy tier keeps serving it."""
        self.works = ()
        with suppress(CompileError):
            self.attempts += 1
            ahead = self.compiler.ahead and self.attempts <= ATTEMPTS
            found = self.compiler.begin(program) if ahead else self.compiler.prepare(program)
            if isinstance(found, tuple):
                self.works = found
                return
            self.plan = found
        self.program = None

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any], claim: Claim | None = None) -> list[Buffer]:
        return self.plan.run(buffers, integers, scalars, claim)


class TieredBackend:
    """Chooses between the NumPy tier and a compiling backend."""

    name = "auto"

    def __init__(self, numpy: Backend, compiler: Compiler) -> None:
        self.numpy = numpy
        self.compiler = compiler
        self.accounts: dict[int, Account] = {}  # by structure

    def prepare(self, program: Program) -> Plan:
        price: Price = prepared("price", program, work, values_at)
        why = self._why(program, price)
        if why in COMPILED:
            return self.compiler.prepare(program)
        if why is TINY:
            return self.numpy.prepare(program)
        if len(self.accounts) >= ACCOUNTS:
            self.accounts.clear()
        account = self.accounts.setdefault(price.structure, Account(price))
        return TieredPlan(program, self.numpy.prepare(program), self.compiler, price, account)

    def _why(self, program: Program, price: Price) -> str:
        """The reason for the tier that a program begins in."""
        once = price.code + price.schedule
        if price.run >= once and (price.run >= WORTH_WAITING * once or price.largest >= WAITING_BYTES or not self.compiler.ahead):
            return LARGE
        if price.run < TINY_WORK:
            return TINY
        if price.run >= SHARED_WORK and shares(self.compiler.name, program):
            return SHARED
        account = self.accounts.get(price.structure)
        left = _total(price) if account is None else account.left
        return OFTEN if left < 0 and price.run >= price.schedule else COUNTED

    def forecast(self, program: Program) -> str:
        """Tell in words where a program would begin, and why there."""
        why = self._why(program, work(program))
        return f"{'compiled' if why in COMPILED else 'in the NumPy tier'}, because {why}"


def _total(price: Price) -> int:
    """Compute what programs of one structure have to cost before they are compiled."""
    total = price.code + price.schedule
    return total if price.run * SMALL_PIECES >= total else PATIENCE * total
