"""Which statements random programs have, and how often.

In: a seed and the name of a grammar.  Out: a ``Program``.  The exact grammar's values are defined to the last bit; the inexact
grammar has math functions and sums as well, and its values carry bounds.
"""

from __future__ import annotations

from typing import Final

from lazynp.values import config
from tests.differential.exports import export, seen_outside, taken_in, written_outside
from tests.differential.expressions import (
    astype,
    binary,
    element,
    gathered,
    methods,
    moved,
    power,
    product,
    reduction,
    scan,
    unary,
    view,
    where,
)
from tests.differential.operands import make
from tests.differential.writer import Program, Rule, Writer
from tests.differential.writes import assign, assign_advanced, augment, forget, into, into_out, loop, overlap, read, through_attribute

STRUCTURE: Final[dict[Rule, float]] = {
    make: 1,
    view: 7,
    gathered: 2.5,
    moved: 2,
    element: 1,
    assign: 5,
    assign_advanced: 2.5,
    overlap: 2,
    augment: 3,
    into_out: 2,
    into: 2.5,
    through_attribute: 1.2,
    loop: 0.8,
    forget: 0.6,
    read: 3,
    where: 1,
    product: 0.5,
    reduction: 2,
    scan: 0.5,
    methods: 0.8,
    astype: 1,
}

OUTSIDE: Final[dict[Rule, float]] = {export: 1.6, written_outside: 2.5, taken_in: 0.8, seen_outside: 0.8}
if config.device != "cpu":
    OUTSIDE.clear()  # what is exported of a device is a copy, which is not to be written
GRAMMARS: Final[dict[str, dict[Rule, float]]] = {
    "exact": {**STRUCTURE, unary: 2, binary: 5, power: 0.4, **OUTSIDE},
    "inexact": {**STRUCTURE, unary: 4, binary: 7, power: 0.7},
}


def write(seed: int, grammar: str, length: int = 25) -> Program:
    """The program of a seed."""
    rules = GRAMMARS[grammar]
    return Writer(seed, grammar).write(list(rules), list(rules.values()), [make], length)
