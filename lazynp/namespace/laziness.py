"""What lazynp has and NumPy has not: when things are computed, and what was done.

In: arrays.  Out: their values computed, or the plan that would compute them, as data or as text.  Promise: these functions only
pass on; nothing is imported before one is called.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.arrays import ndarray, node_of, root_node
from lazynp.graph.node import Node
from lazynp.namespace.bridge.fallback import set_fallback
from lazynp.scalars import force, is_scalar
from lazynp.values import config
from lazynp.values.loading import load

WAITS: Final = (
    "recorded on a tape: it is computed block by block by NumPy's loops, or by machine code once it has come often; as kernels it were"
)
_MEMORY: Final = np.ndarray  # the type of ``_base`` of an array in memory


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
        elif not isinstance(x, np.generic):  # a known number has its value
            raise TypeError(f"expected lazynp arrays, got {type(x).__name__}")
    return nodes


def realize(*arrays: Any) -> Any:
    """Compute arrays now, all in one program.

    Parameters
    ----------
    *arrays : ndarray, scalar or sequence of them
        What is wanted, of any shapes and dtypes.

    Returns
    -------
    ndarray, scalar or tuple
        The arguments themselves: one as it is, several as a tuple.

    Raises
    ------
    TypeError
        Where an argument is no array of lazynp's.

    Notes
    -----
    No program has to call this: a value is computed when it is printed, compared in an ``if``, exported to another library, or needs too
    much memory while it is pending.  It is of use before a clock is stopped, and for several results that share their work.

    Examples
    --------
    >>> import lazynp as np
    >>> x = np.arange(4.0)
    >>> total, squares = np.realize((x * x).sum(), x * x)
    >>> squares
    array([0., 1., 4., 9.])
    """
    nodes = _nodes(tuple([x for x in arrays if type(x) is not ndarray or type(x._base) is not _MEMORY]))  # others lie in memory
    if nodes:
        force(nodes, "realize")
    return arrays[0] if len(arrays) == 1 else arrays


def schedule(*arrays: Any) -> Any:
    """Return the plan that would compute arrays, as data.

    Parameters
    ----------
    *arrays : ndarray, scalar or sequence of them
        What would be wanted, of any shapes and dtypes.

    Returns
    -------
    Schedule
        ``items`` are the kernels and library calls in their order, each with the values it ``reads`` and ``writes``; ``peak_bytes`` is the
        memory of all results at the worst moment.

    Raises
    ------
    TypeError
        Where an argument is no array of lazynp's.

    Examples
    --------
    >>> import lazynp as np
    >>> x = np.arange(1000.0)
    >>> len(np.schedule(np.sqrt(x * x + 1).sum()).items)
    1
    """
    runtime, waiting = load("lazynp.engine.explain"), load("lazynp.namespace.waiting")
    return runtime.schedule(_nodes(tuple(waiting.as_graphs(_flat(arrays)))))


def explain(*arrays: Any) -> str:
    """Return how arrays are, or would be, computed, as text: at the call or recorded, by which plan, in which kernels, and why.

    Parameters
    ----------
    *arrays : ndarray, scalar or sequence of them
        What would be wanted, of any shapes and dtypes.

    Returns
    -------
    str
        For each array a line: computed at the call, existing, or recorded, and why (its size and the limit, an operand that is
        pending or large, a GPU).  For what is pending, before that, how many kernels there are, after it, whether the plan is there
        already and what runs it, and a paragraph a kernel or library call: its loops, its operations, the line of the program that asked
        for each result.

    Raises
    ------
    TypeError
        Where an argument is no array of lazynp's.

    Examples
    --------
    >>> import lazynp as np
    >>> y = np.sqrt(np.arange(1e6) + 1)
    >>> print(np.explain(y).splitlines()[0])
    1 kernel(s), 0 library call(s), at most 8,000,000 bytes of results alive
    """
    regimes, runtime, waiting = load("lazynp.array.regimes"), load("lazynp.engine.explain"), load("lazynp.namespace.waiting")
    given = _flat(arrays)
    waits = [core.tape(x) is not None for x in given]
    values = waiting.as_graphs(given)
    _nodes(tuple(values))  # refuses what is no array
    nodes = {id(node): node for node in map(regimes.pending, filter(regimes.is_ours, values)) if node is not None}
    lines = [WAITS if waits[k] else regimes.told(x) for k, x in enumerate(values)]
    return runtime.explain(list(nodes.values()), lines if len(lines) == 1 else [f"{k}: {line}" for k, line in enumerate(lines)])


def _flat(arrays: tuple[Any, ...] | list[Any]) -> list[Any]:
    return [y for x in arrays for y in (_flat(x) if isinstance(x, (list, tuple)) else [x])]


def kernelize(*arrays: Any) -> Any:
    """Fix now which kernels compute arrays; they run when a value is needed.

    Parameters
    ----------
    *arrays : ndarray or scalar
        What will be wanted.  Each gets kernels of its own: what is computed from it later loads its elements.

    Returns
    -------
    ndarray, scalar or tuple
        The arguments themselves: one as it is, several as a tuple.

    Raises
    ------
    TypeError
        Where an argument is no array of lazynp's.

    Examples
    --------
    >>> import lazynp as np
    >>> y = np.kernelize(np.arange(3) * 2)
    >>> y + 1
    array([1, 3, 5])
    """
    for x in arrays:
        if core.tape(x) is not None:
            core.seal(x)
        else:
            _nodes((x,))  # refuses what is no array
            x.kernelize()
    return arrays[0] if len(arrays) == 1 else arrays


def memory() -> Any:
    """Return how much memory the arrays hold.

    Returns
    -------
    dict
        Bytes of blocks for values and scratch: ``in_use``, ``pooled`` (free, kept for the next arrays; large ones go back to the system
        after some seconds) and at ``peak``; how many ``allocations`` there were, and how many of them were ``reuses`` of pooled memory.
        Bytes of large values in memory of NumPy's (``numpy``), of all at their peak (``held_peak``), and of those that exist for
        ``pending`` results only; ``scratch``: the most that one kernel has besides its arrays. ``lines``: which lines made the values
        that exist, a dictionary of ``line``, ``bytes`` and ``values`` each, the largest first; ``peak_lines``: the same of the moment
        when most was held, to within an eighth, where ``python -m lazynp --report`` watches. All of these are of the machine's own memory;
        ``devices``: by the name of each GPU in use the bytes that values hold there (``held``), those of ``large`` ones and their peak
        (``large_peak``), and ``lines``. `lazynp.cuda.memory` says what else is there.

    Examples
    --------
    >>> import lazynp as np
    >>> sorted(np.memory())
    ['allocations', 'devices', 'held_peak', 'in_use', 'lines', 'numpy', 'peak', 'peak_lines', 'pending', 'pooled', 'reuses', 'scratch']
    """
    return {**load("lazynp.graph.usage").memory(), "scratch": load("lazynp.graph.report").work.scratch}


class _Progress:
    """A context manager that ``progress`` gives: leaving it puts the switch back."""

    __slots__ = ("before",)

    def __init__(self, before: bool) -> None:
        self.before = before

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        config.update(progress=self.before)


def progress(show: bool = True) -> Any:
    """Show on standard error how far long runs are, from now on or for the length of a ``with`` block.

    Parameters
    ----------
    show : bool, optional
        False: do not show it any more.

    Returns
    -------
    context manager
        Leaving it puts things as they were before.

    Notes
    -----
    Nothing is shown of a run before it has taken two seconds. Then one line says which of the kernels or library calls is at work, the
    line of the program that recorded it, how many bytes were moved and how fast. On a terminal it is drawn anew and goes when the run is
    over (with rich, where that is installed); elsewhere it is a line of text every five seconds. ``LAZYNP_PROGRESS=1`` is the same for a
    whole process.

    Examples
    --------
    >>> import lazynp as np
    >>> with np.progress():
    ...     total = float(np.arange(10).sum())
    """
    before = config.progress
    config.update(progress=bool(show))
    return _Progress(before)


def report() -> str:
    """Tell what was forced, what fell back to NumPy and what was found in the cache, by line of the user's program.

    Returns
    -------
    str
        Some counts, then a table: where values had to be computed and why, and which calls NumPy itself answered.

    Examples
    --------
    >>> import lazynp as np
    >>> "values forced" in np.report()
    True
    """
    told: str = load("lazynp.graph.report").report()
    return told


FUNCTIONS = {function.__name__: function for function in (realize, schedule, explain, kernelize, memory, progress, report, set_fallback)}
