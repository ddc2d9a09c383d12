"""NumPy's functions as items of the schedule, and what depends on values: shapes, warnings, errors.

In: nodes among the arguments of a NumPy function.  Out: CALL nodes, or NumPy's answer at once where its shape depends on the values; for
arrays on a GPU what ``device/routines.py`` makes of it.
Promise: dtypes are declared before anything runs.  A warning or an error that only the values decide comes when they are computed, with the
line that asked for them, and at the call where they are there already or the program listens.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from lazynp.engine import devices
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.dtypes import DType
from lazynp.graph.node import Node, Shape, stacklevel, user_frame
from lazynp.namespace.bridge import fallback
from lazynp.namespace.ufunc.promotion import Foreign
from lazynp.scalars import computed, force
from lazynp.values.nesting import MOST_AXES, too_deep

Function = Callable[..., Any]


def native(function: Function) -> Function:
    """The same for operands that the graph does not compute with: NumPy's function of that name takes the call, counted."""
    name = function.__name__
    theirs = getattr(np, name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Foreign:
            pass
        # Outside the handler: what NumPy raises has nothing to do with the turn that was taken.
        return fallback.call(theirs, name, args, kwargs)

    # NumPy's signatures have no annotations, and ours are to compare equal; the type checker has read them already.
    function.__annotations__.clear()
    call.__annotations__.clear()
    return call


# Items of the schedule --------------------------------------------------------------------------------------------------------


def _template(value: Any, nodes: list[Node], depth: int = 0) -> Any:
    if depth > MOST_AXES:
        raise too_deep()
    if isinstance(value, Node):
        nodes.append(value)
        return ...
    return tuple([_template(item, nodes, depth + 1) for item in value]) if isinstance(value, (tuple, list)) else value


def item(name: str, args: Sequence[Any], options: dict[str, Any], outs: Sequence[tuple[DType, Shape]], fails: bool = False) -> list[Node]:
    """NumPy's function of that name as one item of the schedule.

    Parameters
    ----------
    name : str
        Dotted name below ``numpy``.
    args, options
        Its arguments; nodes, at any depth of lists and tuples, stand for arrays, all else is hashable.
    outs : sequence of (dtype, shape)
        What it returns, nested results one after the other; results at the end that are not wanted may be left out.
    fails : bool
        Whether values decide that it raises.  It then runs now if all values are there.
    """
    nodes: list[Node] = []
    template = _template(tuple(args), nodes)
    named = tuple([(key, _template(value, nodes)) for key, value in options.items()])
    if devices.gpus is not None and nodes:
        made = devices.gpus.item(name, args, options, nodes, outs)
        if made is not None:
            return made
    first = build.call("apply", (name, template, named), nodes, *outs[0])
    found = [first, *[build.output(first, k, *out) for k, out in enumerate(outs) if k]]
    if fails and known(*nodes):
        force(found, name)
    return found


def known(*nodes: Node) -> bool:
    """Tell whether all values exist, or are a constant or a range."""
    return all(node.op.kind is o.Kind.LEAF or (build.is_filled(node) and node.src[0].op is o.CONST) for node in nodes)


def _value(value: Any, reason: str) -> Any:
    if isinstance(value, Node):
        node = unshaped(value)
        return (np.asarray(node.arg) if node.op is o.CONST else computed(node, reason).array).reshape(value.shape)
    return type(value)([_value(item, reason) for item in value]) if isinstance(value, (tuple, list)) else value


def unshaped(node: Node) -> Node:
    """Return what a node is another shape of: computed and kept, it serves all readers, in whatever shape."""
    while node.op is o.RESHAPE and node.buffer is None:
        node = node.src[0]
    return node


def values(*nodes: Node, reason: str) -> list[np.ndarray[Any, Any]]:
    """Nodes' values, computed in one program; not to be written to."""
    force([node for node in map(unshaped, nodes) if node.op is not o.CONST], reason)
    return [_value(node, reason) for node in nodes]


def at_once(name: str, *args: Any, **options: Any) -> Any:
    """NumPy's function of that name on values that are computed now, because what comes out has a shape that depends on them."""
    nodes: list[Node] = []
    _template((args, tuple(options.values())), nodes)
    if devices.gpus is not None and nodes:
        done = devices.gpus.at_once(name, args, options, nodes)
        if done is not None:
            return done
    values(*nodes, reason=name)
    function = getattr(np, name)
    found = function(*_value(args, name), **{key: _value(value, name) for key, value in options.items()})
    return fallback.at_home(found, nodes)


# Warnings and errors that values decide -----------------------------------------------------------------------------------------


def _action(text: str, frame: FrameType) -> str:
    """Return what Python's filters say now about a RuntimeWarning of the user's line."""
    for action, message, category, module, line in warnings.filters:
        if not issubclass(RuntimeWarning, category) or line not in (0, frame.f_lineno):
            continue
        name = frame.f_globals.get("__name__", "")
        if (message is None or message.match(text)) and (module is None or module.match(name)):
            return action
    return warnings.defaultaction  # type: ignore[attr-defined]


def warned(value: Node, bad: Node, text: str, each: bool = False) -> Node:
    """``value``, with NumPy's warning if ``bad`` is true anywhere; ``each``: one for every time it is.

    The filters of this moment decide: what they ignore is not looked for, what they raise or always show is shown now, and what they show
    once a line is shown when the value is computed.
    """
    frame = user_frame()
    action = _action(text, frame)
    if action == "ignore" or not build.size(bad):
        return value
    if action in ("error", "always"):
        _, found = values(value, bad, reason="warnings")
        times = int(np.count_nonzero(found))
        for _ in range(times if each else min(times, 1)):
            warnings.warn(text, RuntimeWarning, stacklevel=stacklevel())
        return value
    return build.call("warn", (text, frame.f_code.co_filename, frame.f_lineno), (value, bad), value.dtype, value.shape)


def refused(value: Node, bad: Node, error: type[Exception], text: str, of: Node) -> Node:
    """``value``, or NumPy's error if ``bad`` is true anywhere; raised now where the values of ``of``, which they come from, are there."""
    if not build.size(bad):
        return value
    node = build.call("refuse", (error, text), (value, bad), value.dtype, value.shape)
    if known(of):
        force([node], "check")
    return node
