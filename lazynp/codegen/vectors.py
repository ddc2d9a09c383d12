"""Accesses to consecutive elements, taken together.

In: the statements of a block.  Out: the same, with groups of loads and of stores of neighbouring elements as one statement each, of up to
16 bytes.  Promise: nothing is moved past an access that may touch the same memory, nor past a barrier; whether the address of a group
is a multiple of its size is for the renderer to test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from lazynp.codegen import ir
from lazynp.codegen.ir import Memory, Operand

BYTES: Final = 16
SPACES: Final = ("buffer", "workspace")

Symbols = frozenset[tuple[Operand, int]]
Form = tuple[Symbols, int]  # the sum of operand * factor, and a constant
Place = tuple[Memory, Symbols, int]  # the accesses that may stand together: the last is the stretch of the block


def vectorise(statements: Sequence[ir.Statement], forms: dict[Operand, Form] | None = None) -> list[ir.Statement]:
    """The statements of a block and of those inside it; ``forms`` are those of integers known outside."""
    forms = dict(forms or {})
    loads: dict[Place, dict[int, int]] = {}  # the position in the block by the constant
    stores: dict[Place, dict[int, int]] = {}
    since_store: dict[Memory, int] = {}
    since_access: dict[Memory, int] = {}
    last_store: dict[Memory, Symbols] = {}
    done: list[ir.Statement | None] = []
    for position, s in enumerate(statements):
        match s:
            case ir.Integer(dst, kind, a, b):
                forms[dst] = _combined(kind, _form(a, forms), _form(b, forms))
            case ir.Load(_, dtype, memory, index, guard):
                since_access[memory] = position
                if guard is None and memory.space in SPACES and dtype.itemsize < BYTES:
                    symbols, constant = _form(index, forms)
                    loads.setdefault((memory, symbols, since_store.get(memory, 0)), {}).setdefault(constant, position)
            case ir.Store(dtype, memory, index, _):
                since_store[memory] = position
                symbols, constant = _form(index, forms)
                own = stores.get((memory, symbols, since_access.get(memory, 0)), {})
                if last_store.get(memory) != symbols or constant in own:
                    since_access[memory] = position
                last_store[memory] = symbols
                if memory.space in SPACES and dtype.itemsize < BYTES:
                    stores.setdefault((memory, symbols, since_access.get(memory, 0)), {})[constant] = position
            case ir.Loop() | ir.If():
                for memory in _touched(s.body):
                    since_store[memory] = since_access[memory] = position
                done.append(_with_body(s, vectorise(s.body, forms)))
                continue
            case ir.Barrier() | ir.Last():
                for memory in {m for m, _, _ in [*loads, *stores]}:
                    since_store[memory] = since_access[memory] = position
        done.append(s)
    for (memory, _, _), places in loads.items():
        for group in _groups(places, _itemsize(statements, places)):
            if group[0] == min(group):  # there its index is known
                _replace_loads(done, group, memory)
    for (memory, _, _), places in stores.items():
        for group in _groups(places, _itemsize(statements, places)):
            _replace_stores(done, group, memory)
    return [s for s in done if s is not None]


def _replace_loads(done: list[ir.Statement | None], group: list[int], memory: Memory) -> None:
    members = [done[k] for k in group]
    first = members[0]
    assert isinstance(first, ir.Load)
    names = tuple([s.dst for s in members if isinstance(s, ir.Load)])
    for k in group:
        done[k] = None
    done[group[0]] = ir.LoadVector(names, first.dtype, memory, first.index)


def _replace_stores(done: list[ir.Statement | None], group: list[int], memory: Memory) -> None:
    members = [done[k] for k in group]
    first = members[0]
    assert isinstance(first, ir.Store)
    values = tuple([s.value for s in members if isinstance(s, ir.Store)])
    for k in group:
        done[k] = None
    done[max(group)] = ir.StoreVector(first.dtype, memory, first.index, values)


def _groups(places: dict[int, int], itemsize: int) -> Iterable[list[int]]:
    """Positions of neighbouring elements, in their order; a group begins at a multiple of its size."""
    left = dict(places)
    size = BYTES // itemsize
    while size > 1:
        for start in sorted(left):
            if start % size == 0 and all(start + k in left for k in range(size)):
                yield [left.pop(start + k) for k in range(size)]
        size //= 2


def _itemsize(statements: Sequence[ir.Statement], places: dict[int, int]) -> int:
    s = statements[next(iter(places.values()))]
    assert isinstance(s, ir.Load | ir.Store)
    return s.dtype.itemsize


def _form(operand: Operand, forms: dict[Operand, Form]) -> Form:
    if operand.lstrip("-").isdigit():
        return frozenset(), int(operand)
    return forms.get(operand) or (frozenset([(operand, 1)]), 0)


def _combined(kind: str, a: Form, b: Form) -> Form:
    """The form of a sum, a difference or a multiple; anything else is a symbol by itself, the same for the same operands."""
    if kind not in ("add", "sub", "mul") or (kind == "mul" and a[0] and b[0]):
        return frozenset([(f"{kind} {sorted(a[0])} {a[1]} {sorted(b[0])} {b[1]}", 1)]), 0
    if kind == "mul":
        (symbols, constant), factor = (b, a[1]) if b[0] else (a, b[1])
        return frozenset([(name, k * factor) for name, k in symbols if factor]), constant * factor
    sign = 1 if kind == "add" else -1
    total = dict(a[0])
    for name, k in b[0]:
        total[name] = total.get(name, 0) + sign * k
    return frozenset([(name, k) for name, k in total.items() if k]), a[1] + sign * b[1]


def _with_body(s: ir.Loop | ir.If, body: list[ir.Statement]) -> ir.Statement:
    if isinstance(s, ir.If):
        return ir.If(s.condition, body)
    return ir.Loop(s.var, s.lo, s.hi, body, s.lanes, s.step)


def _touched(statements: Iterable[ir.Statement]) -> set[Memory]:
    found: set[Memory] = set()
    for s in statements:
        if isinstance(s, ir.Loop | ir.If):
            found |= _touched(s.body)
        elif not isinstance(s, ir.Compute | ir.Constant | ir.Integer | ir.Fold | ir.Barrier | ir.Last | ir.Raise):
            found.add(s.memory)
    return found
