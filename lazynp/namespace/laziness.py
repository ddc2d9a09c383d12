"""What lazynp has and NumPy has not: when things are computed, and what was done.

In: arrays.  Out: their values computed, or the plan that would compute them, as data or as text.  Promise: these functions only
pass on; nothing is imported before one is called.
"""

from __future__ import annotations

from typing import Any

from lazynp.graph.node import Node
from lazynp.namespace.bridge.fallback import set_fallback
from lazynp.ndarray import ndarray, node_of, root_node
from lazynp.scalars import is_scalar


def _nodes(arrays: tuple[Any, ...]) -> list[Node]:
    nodes = []
    for x in arrays:
        if isinstance(x, (list, tuple)):
            nodes += _nodes(tuple(x))
        elif type(x) is ndarray:
            # A view has its value when its base has.
            nodes.append(root_node(x._base) if type(x._base) is ndarray else node_of(x))
        elif is_scalar(x):
            if x._node is not None:
                nodes.append(x._node)
        else:
            raise TypeError(f"expected lazynp arrays, got {type(x).__name__}")
    return nodes


def realize(*arrays: Any) -> Any:
    """Compute arrays now, all in one program.

    Parameters
    ----------
    *arrays : ndarray or sequence of ndarray
        What is wanted.

    Returns
    -------
    ndarray or tuple of ndarray
        The arrays.
    """
    from lazynp.engine.realize import realize as run

    run(_nodes(arrays), "realize")
    return arrays[0] if len(arrays) == 1 else arrays


def schedule(*arrays: Any) -> Any:
    """The plan that would compute arrays; nothing is run."""
    from lazynp.engine import explain as runtime

    return runtime.schedule(_nodes(arrays))


def explain(*arrays: Any) -> str:
    """The plan that would compute arrays, as text: kernels, what each reads, writes and computes, and why it is cut where it is."""
    from lazynp.engine import explain as runtime

    return runtime.explain(_nodes(arrays))


def kernelize(*arrays: Any) -> Any:
    """Fix now which kernels compute arrays; run them later."""
    _nodes(arrays)  # refuses what is no array
    for x in arrays:
        x.kernelize()
    return arrays[0] if len(arrays) == 1 else arrays


def memory() -> Any:
    """What the allocator holds."""
    from lazynp.values import allocator

    return allocator.memory()


def report() -> str:
    """What was forced, what fell back and what was found in the cache, by line of the user's program."""
    from lazynp.graph import report as counts

    return counts.report()


FUNCTIONS = {
    function.__name__: function for function in (realize, schedule, explain, kernelize, memory, report, set_fallback)
}
