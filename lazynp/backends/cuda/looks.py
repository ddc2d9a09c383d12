"""Floating-point errors of long chains: they are computed once more, apart, and looked at step by step.

In: the statements of a block and which errors are to be reported.  Out: groups of operations that share values, the text of a device
function for each kind of group, and calls of these.  Promise: what ``errors.others`` would note is noted, and a thread keeps nothing for
it but what the operations begin with.  For short chains it costs more than it saves: their results stay in registers until one comparison.

The compiler must not see that the two computations are one, or it keeps all results again; nor may it put off looking, so each
look is a call, too.  Elements that one thread computes alike call one function.

Registers and instructions by NVRTC 13.0 for sm_90, without these functions and with them:

    Horner, degree 24       80 1664    32 1128
    Black-Scholes           92 3160    64 2904
    Mandelbrot, 20 steps    75 6224    64 3984

Black-Scholes spills 16 bytes; Horner spilled 8 before.  These kernels are compiled in 0.3 to 0.6 of the time.  Registers for sm_80:
Horner 40 and 32, Mandelbrot 79 and 61, Black-Scholes 64 without spills (24 bytes before).  For sm_100: Horner 80 and 32, Black-Scholes
80 and 64, but Mandelbrot 60 and 76.

Tried and worse for sm_90, in registers:

* computing once more on the spot (Horner 64, Black-Scholes 102): the compiler puts off looking, and keeps everything again,
* looks that are no calls (Black-Scholes 128, Mandelbrot 255),
* such functions for short chains (exp/sqrt/sin chain 44, layer norm 52),
* such functions where much is read (pairwise distances 56, with half as many instructions again),
* all scalars passed in registers (Horner on sm_80 64), or none (Black-Scholes 82).

What the functions are worth on hardware is unmeasured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lazynp.backends.cuda import errors, scalars
from lazynp.backends.cuda.types import type_of
from lazynp.codegen import ir
from lazynp.codegen.ir import Operand
from lazynp.graph.errors import UNDER

STRAIGHT: Final = (ir.Compute, ir.Constant, ir.Integer, ir.Load, ir.LoadVector, ir.Raise, ir.Store, ir.StoreVector)
PASSED: Final = 16  # scalars that are passed in registers; of more none is, but all are read from the argument block where they are used

Group = list[ir.Compute]


def groups(statements: Sequence[ir.Statement], wanted: int) -> list[Group]:
    """List what is computed once more, in order.

    Nothing, where no group has more operations to look at than one comparison stands for, or where they begin with more numbers than that.
    """
    looked = errors.looked(statements, wanted)
    if wanted & UNDER or len(looked) <= errors.TOGETHER:
        return []
    places = [k for k, s in enumerate(statements) if isinstance(s, ir.Compute)]
    if not all(isinstance(s, STRAIGHT) for s in statements[places[0] : places[-1]]):
        return []
    needed, again = set(looked), Group()
    for s in reversed(statements):
        if isinstance(s, ir.Compute) and s.dst in needed:
            needed.update(s.args)
            again.append(s)
    # Scalars and the literals of loops take no register.
    begin = {a for a in needed - {s.dst for s in again} if a.startswith("v")}
    found = _apart(again[::-1])
    most = max([sum(s.dst in looked for s in group) for group in found])
    return found if len(begin) <= errors.TOGETHER < most else []


def _apart(operations: Group) -> list[Group]:
    """Those that one another's results lead to, together."""
    leader = {s.dst: s.dst for s in operations}

    def find(a: Operand) -> Operand:
        while leader[a] != a:
            leader[a] = a = leader[leader[a]]
        return a

    for s in operations:
        for a in s.args:
            if a in leader:
                leader[find(a)] = find(s.dst)
    found: dict[Operand, Group] = {}
    for s in operations:
        found.setdefault(find(s.dst), []).append(s)
    return list(found.values())


class Looks:
    """The functions of one kernel."""

    def __init__(self, name: str, block: str, scalars: Mapping[Operand, str]) -> None:
        self.name = name
        self.block = block  # its type
        self.scalars = scalars  # where they lie there
        self.names: dict[str, str] = {}  # by parameters and body
        self.read = False  # whether one reads the argument block

    def call(self, group: Group, looked: set[Operand], types: Mapping[Operand, str]) -> str:
        """Return the call that computes ``group`` once more; ``types`` are those of what it begins with."""
        used = {a for s in group for a in s.args if a in self.scalars}
        many = len(used) > PASSED
        names: dict[Operand, str] = {}
        passed: list[Operand] = []
        lines: list[str] = []
        read: set[Operand] = set()  # of many
        for s in group:
            for a in s.args:
                if many and a in used:
                    if a not in read:
                        read.add(a)
                        lines.append(f"    const {types[a]} {a} = {self.scalars[a]};")
                elif a not in names and a in types:
                    names[a] = f"a{len(passed)}"
                    passed.append(a)
            args = tuple([names.get(a, a) for a in s.args])
            names[s.dst] = f"v{len(names)}"  # equal groups are equal text
            renamed = ir.Compute(names[s.dst], s.op, s.dtype, args, s.source)
            look = f" {errors.others(renamed.dst, s.dtype, [renamed], 'look')}" if s.dst in looked else ""
            lines.append(f"    const {type_of(s.dtype)} {renamed.dst} = {scalars.expression(s.op, s.dtype, args, s.source)};{look}")
        parameters = [f"const {types[a]} {names[a]}" for a in passed]
        if many:
            # Volatile, or all are read at the beginning.
            self.read = True
            parameters.append(f"const volatile {self.block}& a")
            passed.append("a")
        text = "\n".join([f"({', '.join(parameters)})", "{", "    unsigned int noted = 0;", *lines, "    return noted;", "}"])
        name = self.names.setdefault(text, f"{self.name}_look{len(self.names)}")
        return f"{name}({', '.join(passed)})"

    def definitions(self) -> list[str]:
        return [f"static __device__ __noinline__ unsigned int {name}{text}" for text, name in self.names.items()]
