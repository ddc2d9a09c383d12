"""What came of an operation, and why: recorded on a tape, recorded as a graph, computed at the call.

In: a result and its operands, or an array of which ``explain`` is asked.  Out: words.  Promise: nothing is computed or changed; sizes and
what exists have decided already, and are only read again.
"""

# `np.explain(x)` says of each value which regime it belongs to and why (its size and the limit, an operand that is pending or large and
# its line, a GPU, the switch), and of a pending one how it would run: by a new plan or one from the cache, in the NumPy tier or compiled,
# because one run is large, programs of its kind came often, there is code for it, it is too small; and after how many more runs it will
# be compiled. `python -m lazynp --report` counts the same by line: how many operations were recorded on a tape, or as a graph, and
# how many were computed at the call, and how its runs went. No other program pays for it: to count, the slots of the array class and the
# pointers of functions are exchanged for others (`counting.h`), which takes some microseconds an operation; a run asks one attribute. Of
# functions that call others only the outermost is counted, and views of pending values are no operations.

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from lazynp import arrays
from lazynp.array import core
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.graph import report
from lazynp.graph.node import Node, caller, site_of, where
from lazynp.graph.op import Kind
from lazynp.scalars import CLASSES
from lazynp.values import config

_MEMORY: Final = np.ndarray


def limit() -> str:
    """Return the limit as a user sets it."""
    return f"LAZYNP_TAPE_LIMIT={config.tape_limit}"


def _small() -> str:
    """Say of what size an array is, for which NumPy's loops compute."""
    return "LAZYNP_NUMERICS=numpy" if config.at_hand > config.tape_limit else f"at most {limit()} elements"


def watch() -> None:
    """Count from now on what comes of each operation, by line; it takes some microseconds an operation."""
    report.operations.watched = True
    core.count(_count)


def _count(one_pass: bool, found: Any, first: Any, second: Any) -> None:
    name = f"recorded on a tape: {_small()}" if one_pass else _outcome(found, first, second)
    if name:
        report.count_operation(name, caller())


def _outcome(found: Any, first: Any, second: Any) -> str:
    """Name what came of an operation; nothing where no array of ours has to do with it."""
    if type(found) is tuple or type(found) is list:
        found = next((x for x in found if is_ours(x)), None)
    if is_ours(found):
        if type(found) is arrays.ndarray and type(found._base) is arrays.ndarray:
            return ""  # a view, for which nothing is done
        node = pending(found)
        if node is not None:
            return f"recorded: {reason(node)}"
        if not _at_hand(found):
            return "at the call: the values exist"
    elif not (_at_hand(first) or _at_hand(second)):
        return ""
    return f"at the call: {_small()}"


def is_ours(x: Any) -> bool:
    """Tell whether ``x`` is an array, or a scalar that may be pending."""
    return type(x) is arrays.ndarray or type(x) in CLASSES


def _at_hand(x: Any) -> bool:
    return type(x) is arrays.ndarray and type(x._base) is _MEMORY


def pending(x: Any) -> Node | None:
    """Return the node of a value of ours that does not exist yet; of a view its base's."""
    base = None if type(x) in CLASSES else x._base
    root = base if type(base) is arrays.ndarray else x
    node: Node | None = root._node if root is not base or base._base is None else None
    return None if (base is not None and root is x) or node is None or node.buffer is not None else node


def reason(node: Node, told: bool = False) -> str:
    """Tell why a pending value was recorded, and not computed at its call; ``told``: with numbers and lines."""
    if not config.at_hand:
        return _always()
    size = prod(node.shape)
    if size > config.at_hand:
        return f"it has {size:,} elements, more than {limit()}" if told else f"more than {limit()} elements"
    for source in _operands(node):
        buffer = source.buffer
        if buffer is None:
            return f"an operand is pending ({where(site_of(source))})" if told else "an operand is pending"
        of = prod(source.shape)
        if buffer.device not in (None, devices.CPU):
            return "an operand is on a GPU"
        if of > config.at_hand:
            return f"an operand has {of:,} elements, more than {limit()}" if told else f"an operand has more than {limit()} elements"
    if size > config.costly_above:
        return f"{node.op.name} of more than {config.costly_above:,} elements is faster in a kernel"
    return f"{node.op.name} is not computed at the call"


def _operands(node: Node) -> list[Node]:
    """List what an operation computes with, behind what only moves or converts elements: computed values, and leaves that exist."""
    found, todo, seen = [], list(node.src), set()
    while todo:
        source = todo.pop()
        if id(source) in seen or source.op is o.CONST:
            continue
        seen.add(id(source))
        if source.buffer is None and (source.op.kind is Kind.MOVEMENT or source.op is o.CAST):
            todo += source.src
        else:
            found.append(source)
    return found


def told(x: Any) -> str:
    """Tell of an array, or a scalar, which regime it belongs to, and why."""
    if not is_ours(x):
        return "a number: computed at the call"
    node = pending(x) if not _at_hand(x) else None
    if node is not None:
        return f"recorded, because {reason(node, told=True)}"
    exists, size = "nothing to do: the value exists; ", _elements(x.size)
    if config.eager:
        return f"{exists}operations on it are computed at the call, because LAZYNP_EAGER=1"
    if not config.at_hand:
        return f"{exists}operations on it are recorded, because {_always()}"
    if x.size > config.at_hand:
        return f"{exists}it has {size}, more than {limit()}, so operations on it are recorded as a graph, or on a tape at first"
    if x.size > config.tape_limit:
        return f"{exists}operations on it are recorded on a tape, because LAZYNP_NUMERICS=numpy"
    return f"{exists}it has {size}, at most {limit()}, so operations on it are recorded on a tape"


def _always() -> str:
    """Say why everything is recorded."""
    return "values may live on a GPU" if config.tape_limit or config.numerics == "numpy" else f"{limit()} records everything"


def _elements(n: int) -> str:
    return f"{n:,} element{'' if n == 1 else 's'}"
