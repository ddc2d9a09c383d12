"""Calls with values in memory, answered by NumPy's own loops.

In: a function of NumPy's and the arguments of a call.  Out: NumPy's answer, its arrays as cells of ours, where all arguments are in
memory; else ``NotImplemented``.  Promise: the bits, errors and warnings are NumPy's, at the user's line.
"""

# What goes with the operation that reads it need not lie in memory. `(alpha * A) @ x`, whose left side only the interpreter's stack
# holds, is computed by rows, a megabyte of them at a time, if it is arithmetic on arrays that exist (`calls.product_in_passing`).
# `einsum` of arrays that exist reads windows and broadcasts where they lie (`contraction.py`), for a schedule would write them out.
# Operators of large complex arrays wait for one another as those of small arrays do (`large_complex` in `chains.h`), because NumPy writes
# over its own intermediate results.

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp import arrays
from lazynp.array.hand import AS_THEY_ARE
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph.errstate import current
from lazynp.graph.floating import at_once, at_users_line, heard, hearing, listen_to_all, stop, tell_here
from lazynp.graph.node import Node
from lazynp.scalars import CLASSES, OF_TYPE, number
from lazynp.values import config
from lazynp.values.loading import late, load
from lazynp.values.nesting import MOST_AXES

if TYPE_CHECKING:
    from lazynp import conversion, storage
    from lazynp.array import hand
    from lazynp.array.hand import Memory
else:
    hand, conversion, storage = late("array.hand", "conversion", "storage")

_MEMORY: Final = np.ndarray
_ARRAY: Final = arrays.ndarray
_WRITING: Final = frozenset(
    [
        np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis, np.ndarray.sort, np.ndarray.partition,
        np.ndarray.fill, np.ndarray.put,
    ]
)  # fmt: skip
_all_as_they_are: Final = AS_THEY_ARE.issuperset
ALWAYS: Final = 1 << 62
"""Of any size: see ``answer``."""


class _Elsewhere(Exception):  # noqa: N818 - a turn of the road, not a mistake
    """An argument is not in memory."""


def any_large(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Tell whether there is a large array in memory among the arguments of a call."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind is _ARRAY:
            if _is_large(value):
                return True
        elif (kind is tuple or kind is list) and len(value) <= _LOOKED_AT:
            for item in value:
                if type(item) is _ARRAY and _is_large(item):
                    return True
    return False


_LOOKED_AT: Final = 8  # items of a list of arrays


def _is_large(x: arrays.ndarray) -> bool:
    memory = x._base
    return type(memory) is _MEMORY and memory.size > config.at_hand


def _of_large(node: Node) -> bool:
    """Tell whether a value is computed of a large array."""
    limit = config.at_hand
    todo, seen = [node], 0
    while todo and seen < _WALKED:
        step = todo.pop()
        sources = step.src  # before it is looked at: another thread may publish it
        if prod(step.shape) > limit:
            return True
        todo += sources
        seen += 1
    return seen == _WALKED


_WALKED: Final = 64  # nodes: what is made of more is worth being computed in any case
_BASE, _NODE = "_known_base", "_known_node"  # without having a tape computed


def at_hand_first(args: Sequence[Any], costly: bool = False) -> bool:
    """Compute what waits in graphs, small results of large arrays, for a small operation; tells whether there were any.

    What comes of a function that rounds, or of a sum, follows from the size of the operation: not from whether its operand was looked at.
    """
    limit = config.costly_above if costly else config.at_hand
    if not limit or config.numbers_wait or devices.gpus is not None:
        return False
    waits = []
    for value in args:
        if type(value) is not _ARRAY:
            continue
        if value.size > limit:
            return False
        root = value
        base = getattr(value, _BASE)
        if type(base) is _ARRAY:  # a view
            root = base
            base = getattr(root, _BASE) if root.size <= limit else value
        if base is None and (node := getattr(root, _NODE)) is not None and node.buffer is None and node.shape and _of_large(node):
            waits.append((root, value))
    for root, x in waits:
        root.realize()
        hand.memory_of(x)
    return bool(waits)


def by_kernels(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The answer of a function of ours to a call with large arrays in memory, which kernels read where they lie."""

    def given(value: Any, deep: bool = True) -> Any:
        kind = type(value)
        if kind is _ARRAY:
            return conversion.buffered(value._base) if _is_large(value) else value
        return kind([given(item, False) for item in value]) if deep and (kind is tuple or kind is list) else value

    out = kwargs.get("out")
    found = function(*[given(value) for value in args], **{name: value if value is out else given(value) for name, value in kwargs.items()})
    for part in found if type(found) is tuple else (found,):
        if type(part) is _ARRAY:
            part.realize()
    return found


def _given(value: Any, cells: list[arrays.ndarray], depth: int = 0) -> Any:
    """An argument as NumPy takes it; arrays of ours are remembered in ``cells``."""
    kind = type(value)
    if kind is arrays.ndarray:
        memory = hand.memory_of(value)
        if memory is None:
            raise _Elsewhere
        cells.append(value)
        return memory
    if kind in AS_THEY_ARE:
        return value
    if kind is tuple or kind is list:
        if len(value) > config.at_hand or depth > MOST_AXES:
            raise _Elsewhere
        if hand.NUMBERS.issuperset(map(type, value)):
            return value
        return kind([_given(item, cells, depth + 1) for item in value])
    if kind is _MEMORY:
        if value.size > config.at_hand or value.dtype.char not in hand.CHARS or not value.dtype.isnative:
            raise _Elsewhere
        return value
    if kind in CLASSES:
        known = value._value
        if known is None:
            raise _Elsewhere
        return known
    if kind is range and len(value) <= config.at_hand:
        return value
    if isinstance(value, (np.dtype, type)):
        return value
    raise _Elsewhere


def answer(theirs: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], least: int = 0, warns_below: int = 0) -> Any:
    """NumPy's answer where all arguments are in memory (and ``least`` arrays among them), else ``NotImplemented``.

    ``warns_below``: of arrays with fewer elements it may give warnings that are not about floating-point errors, as all functions may of
    complex numbers.
    """
    if not config.at_hand:
        return NotImplemented
    cells: list[arrays.ndarray] = []
    values = _plain(args, cells, warns_below)
    if values is not None and len(cells) >= least and (not kwargs or _all_as_they_are(map(type, kwargs.values()))):
        try:
            value = hearing(theirs, *values, **kwargs) if kwargs else hearing(theirs, *values)
            return number(value) if type(value) in OF_TYPE else hand.result(value, cells)
        except RuntimeError:  # another thread computes
            pass
        finally:
            if heard:
                tell_here()
    values = None
    return _answer(theirs, args, kwargs, least, warns_below)


def _plain(given: Sequence[Any], cells: list[arrays.ndarray], warns_below: int, depth: int = 0) -> list[Any] | None:
    """The commonest arguments as NumPy takes them: arrays of real numbers in memory, numbers, names of what is wanted, lists of those.

    None where there are others; arrays of ours are remembered in ``cells``.
    """
    values: list[Any] = []
    for value in given:
        kind = type(value)
        if kind is _ARRAY:
            memory = value._base
            if type(memory) is not _MEMORY or memory.size < warns_below or memory.dtype not in hand.REAL:
                return None
            cells.append(value)
            values.append(memory)
        elif kind in AS_THEY_ARE:
            values.append(value)
        elif kind is list or kind is tuple:
            if len(value) > config.at_hand or depth > MOST_AXES:
                return None
            inner = value if hand.NUMBERS.issuperset(map(type, value)) else _plain(value, cells, warns_below, depth + 1)
            if inner is None:
                return None
            values.append(inner if kind is list else tuple(inner))
        else:
            return None
    return values


def _answer(theirs: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], least: int, warns_below: int) -> Any:
    """``answer`` of any arguments."""
    cells: list[arrays.ndarray] = []
    values: list[Any] = []
    named = kwargs
    warns = warns_below == ALWAYS
    borrowed = False
    try:
        for value in args:
            kind = type(value)
            if kind is arrays.ndarray:
                memory = value._base
                if type(memory) is not _MEMORY:
                    memory = hand.memory_of(value)
                    if memory is None:
                        return NotImplemented
                    borrowed = borrowed or type(value._base) is not _MEMORY
                if memory.size < warns_below or memory.dtype.kind == "c":
                    warns = True
                cells.append(value)
                values.append(memory)
            elif kind in AS_THEY_ARE:
                values.append(value)
            else:
                values.append(_given(value, cells))
        if kwargs:
            named = {name: _given(value, cells) for name, value in kwargs.items()}
        if kwargs or len(values) != len(cells) or not all(type(value) is arrays.ndarray for value in args):  # in sequences, or by keyword
            borrowed = borrowed or any(type(x._base) is not _MEMORY for x in cells)
            warns = warns or any(x.dtype.kind == "c" for x in cells) or complex in map(type, values)
    except _Elsewhere:
        return NotImplemented
    if len(cells) < least or (borrowed and (kwargs.get("out") is not None or theirs in _WRITING)):
        return NotImplemented
    if borrowed:  # others may hold the large array's value: whatever writes is refused, and done by lazynp
        given = zip(args, values, strict=True)
        values = [_unwritable(value) if type(x) is arrays.ndarray and type(x._base) is not _MEMORY else value for x, value in given]
    before = listen_to_all()
    try:
        value = at_users_line(theirs, values, named) if warns else theirs(*values, **named)
    except ValueError as error:
        if borrowed and "read-only" in str(error):
            return NotImplemented
        raise
    finally:
        stop(before)
        if heard:
            tell_here()
    kind = type(value)
    if kind is _MEMORY:
        if borrowed and value.base is not None:
            return NotImplemented
        if (kwargs and value is kwargs.get("out")) or any(value is x for x in args):
            return value  # NumPy's own array, given for the result
    elif kind in OF_TYPE or (borrowed and _shows(value)):
        return number(value) if kind in OF_TYPE else NotImplemented
    return hand.result(value, cells)


def _unwritable(memory: Memory) -> Memory:
    """Return the same memory, read-only."""
    found = memory[...]
    found.flags.writeable = False
    return found


def _shows(value: Any) -> bool:
    """Tell whether a result of NumPy's may be a view of what it was computed from."""
    if isinstance(value, (tuple, list)):
        return any(map(_shows, value))
    return type(value) is _MEMORY and value.base is not None


def fits(a: Memory, b: Memory) -> bool:
    """Tell whether the broadcast result of two arrays in memory is small, too."""
    size = a.size * b.size
    limit = config.at_hand
    if size <= limit or a.shape == b.shape or not a.ndim or not b.ndim:
        return True
    try:
        return np.broadcast(a, b).size <= limit
    except ValueError:
        return True  # an error, which NumPy words


def fit(args: Sequence[Any]) -> bool:
    """Tell the same of any arguments, if all of them are in memory."""
    given: list[Any] = [
        hand.memory_of(x) if type(x) is arrays.ndarray else x for x in args if type(x) is arrays.ndarray or type(x) is _MEMORY
    ]
    return len(given) != 2 or given[0] is None or given[1] is None or fits(*given)


def of_two(function: Callable[[Any, Any], Any], a: arrays.ndarray, x: Memory, b: Any) -> Any:
    """A function of an array in memory and another operand, where that is in memory as well; else ``NotImplemented``."""
    kind = type(b)
    if kind is arrays.ndarray:
        y: Any = hand.memory_of(b)
        if y is None or not fits(x, y):
            return NotImplemented
    elif kind in hand.NUMBERS:
        y = b
    elif kind is _MEMORY:
        y = b
        if b.dtype.char not in hand.CHARS or b.size > config.at_hand or not fits(x, b):
            return NotImplemented
    elif kind in CLASSES and b._value is not None:
        y = b._value
    else:
        return NotImplemented
    before = listen_to_all()
    try:
        value = function(x, y)
    finally:
        stop(before)
        if heard:
            tell_here()
    return hand.cell(value) if type(value) is _MEMORY else number(value)  # all operands were arrays without axes


def plain(x: Any) -> Any:
    """The same array without the class that a program or library has derived from NumPy's; any other object as it is."""
    kind = type(x)
    if kind is _ARRAY or kind is _MEMORY or not isinstance(x, _MEMORY):
        return x
    return conversion.asarray(x)


def product(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """A small product of vectors and matrices that exist, however large; else ``NotImplemented``.

    It is a library's, which nothing is fused with.
    """
    if not config.at_hand or type(a) is not arrays.ndarray or type(b) is not arrays.ndarray:
        return NotImplemented
    x, y = storage.elements(a), storage.elements(b)
    if x is None or y is None or not (0 < x.ndim < 3 and 0 < y.ndim < 3):
        return NotImplemented
    if (x.shape[0] if x.ndim == 2 else 1) * (y.shape[1] if y.ndim == 2 else 1) > config.at_hand:
        return NotImplemented
    value = at_once(function, x, y)
    return hand.cell(value) if type(value) is _MEMORY else number(value)


def product_in_passing(a: arrays.ndarray, b: Any) -> Any:
    """``(alpha * A) @ x``: the product of an expression without other references and of what exists; else ``NotImplemented``.

    The expression is arithmetic on elements of arrays that exist: its rows are computed some at a time, and never lie in memory together.
    """
    if not config.at_hand or devices.gpus is not None or a._base is not None or type(b) is not arrays.ndarray:
        return NotImplemented
    node, y = a._node, storage.elements(b)
    if y is None or len(node.shape) != 2 or y.ndim not in (1, 2) or y.dtype != node.dtype or y.shape[0] != node.shape[1]:
        return NotImplemented
    columns = y.shape[1] if y.ndim == 2 else 1
    if columns > _COLUMNS or node.shape[0] * columns > config.at_hand:
        return NotImplemented
    steps = _arithmetic(node)
    if steps is None:
        return NotImplemented
    try:
        with np.errstate(**{kind: "ignore" if mode == "ignore" else "raise" for kind, mode in current().modes.items()}):  # type: ignore[arg-type]
            return hand.result(_product_by_rows(steps, node, y))
    except FloatingPointError:  # rows would tell of it one by one
        return NotImplemented


_COLUMNS: Final = 16  # of the second operand of such a product: with more it costs more than what is saved
_STEPS: Final = 8  # operations of such an expression
_PASSING: Final = 1 << 20  # bytes of its rows that are computed at a time


_Steps = list[tuple[Node, np.ufunc, tuple[Node, ...]]]


def _arithmetic(node: Node) -> _Steps | None:
    """The operations of an expression, operands first, if it is IEEE arithmetic on numbers and existing arrays like itself."""
    ufuncs = load("lazynp.backends.numpy.operations").UFUNCS  # few programs have such products

    state = current()
    steps: dict[Node, tuple[np.ufunc, tuple[Node, ...]]] = {}
    todo = [node]
    while todo:
        step = todo.pop()
        sources, op = step.src, step.op  # in this order: another thread may publish it in between
        if step.buffer is not None or op is o.CONST:
            if step.dtype != node.dtype or (step.buffer is not None and (step.shape != node.shape or step.buffer.at_hand is None)):
                return None
            continue
        known = op in ufuncs and "f" not in op.rounds and step.err is state and not state.eager and step.error is None
        if not known or step.shape != node.shape or step.dtype != node.dtype or step.dtype.kind != "f" or len(steps) == _STEPS:
            return None
        steps.pop(step, None)  # it comes before all that read it, in the end
        steps[step] = ufuncs[op], sources
        todo += sources
    return [(step, *steps[step]) for step in reversed(steps)]


def _product_by_rows(steps: _Steps, node: Node, y: Memory) -> Memory:
    rows = min(max(_PASSING // (len(steps) * node.shape[1] * node.dtype.itemsize), 1), node.shape[0])
    room = {step: np.empty((rows, node.shape[1]), node.dtype) for step, _, _ in steps}
    made: Memory = np.empty((node.shape[0], *y.shape[1:]), node.dtype)
    for first in range(0, node.shape[0], rows):
        count = min(rows, node.shape[0] - first)
        values = {step: memory[:count] for step, memory in room.items()}
        for step, function, sources in steps:
            operands = [values[x] if x in values else x.arg if x.buffer is None else x.buffer.array[first : first + count] for x in sources]
            function(*operands, out=values[step])
        np.matmul(values[node], y, out=made[first : first + count])
    return made


def of_complex(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """A function of complex numbers, in arrays that exist, however large: no kernel computes with them; else ``NotImplemented``."""
    if not config.at_hand:
        return NotImplemented
    values = []
    found = False
    for x in args:
        kind = type(x)
        if kind is arrays.ndarray:
            found = found or x.dtype.kind == "c"
            x = storage.elements(x)
        elif kind in CLASSES:
            x = x._value
        elif kind not in hand.NUMBERS:
            return NotImplemented
        if x is None:
            return NotImplemented
        found = found or kind is complex or isinstance(x, np.complexfloating)
        values.append(x)
    return hand.result(at_once(function, *values)) if found else NotImplemented


def of_number(function: Callable[[Any, Any], Any], other: Any, x: Any) -> Any:
    """Apply a function to a number of NumPy's and an array, where that is in memory; else ``NotImplemented``."""
    if type(other) not in hand.NUMBERS or type(x) is not arrays.ndarray:
        return NotImplemented
    memory = hand.memory_of(x)
    return NotImplemented if memory is None else of_one(functools.partial(function, other), memory)


def of_one(function: Callable[[Any], Any], memory: Memory) -> Any:
    """A function of one array in memory."""
    before = listen_to_all()
    try:
        value = function(memory)
    finally:
        stop(before)
        if heard:
            tell_here()
    return hand.cell(value) if type(value) is _MEMORY else number(value)


def into(function: Callable[[Any, Any], Any], memory: Memory, b: Any) -> Any:
    """A function that writes into an array in memory; what the other operand still needs is computed now."""
    kind = type(b)
    if kind is arrays.ndarray:
        b = storage.host(b, "an operand in memory")
    elif kind in CLASSES:
        b = b.concrete("an operand in memory")
    elif kind not in hand.NUMBERS and kind is not _MEMORY:
        return NotImplemented
    before = listen_to_all()
    try:
        return function(memory, b)
    finally:
        stop(before)
        if heard:
            tell_here()


def bound(values: Sequence[Any], depth: int = 0) -> int:
    """A bound of what a growing function makes of these."""
    extent = 1 if depth <= MOST_AXES else ALWAYS
    for value in values:
        if extent >= ALWAYS:
            break
        if type(value) is int:
            extent *= max(abs(value), 1)
        elif type(value) in (tuple, list):
            extent *= bound(value, depth + 1)
        elif type(value) is arrays.ndarray or type(value) is _MEMORY:
            extent *= max(value.size, 1)
    return extent


def growing(theirs: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], least: int = 0, warns_below: int = 0) -> Any:
    """``answer`` for a function whose result may be larger than its arguments."""
    if bound(args) * bound([*kwargs.values()]) > config.at_hand:
        return NotImplemented
    return answer(theirs, args, kwargs, least, warns_below)
