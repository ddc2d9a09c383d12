"""What waits on tapes, as graphs: for `schedule` and `explain`, which mean one thing at all sizes.

In: arrays, some of which wait.  Out: arrays that would be computed from the same operands by the same operations, recorded as graphs, as
large ones are.  Promise: nothing is computed, and what waits goes on waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.namespace.routines import creation, selecting
from lazynp.namespace.ufunc import ufuncs
from lazynp.values import config

ARRAY, NUMBER, STEP = 0, 1, 2  # kinds of operands, as `array/chain.h` has them
JOINED: Final = -2  # in the place of an operand's number: all of them


def as_graphs(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays as if all that waits had been recorded as graphs, as what is large is; nothing is computed."""
    if not any(core.tape(x) for x in arrays):
        return list(arrays)
    values: dict[tuple[int, int], Any] = {}
    core.pause(True)
    try:
        with config.override(tape_limit=0):
            return [_as_graph(x, values) for x in arrays]
    finally:
        core.pause(False)


_array: Final[Any] = creation.FUNCTIONS["array"]
_CHOICES: Final[dict[str, Any]] = {name: selecting.FUNCTIONS[name] for name in ("where", "clip")}  # steps of three operands


def _as_graph(x: Any, values: dict[tuple[int, int], Any]) -> Any:
    told = core.tape(x)
    if told is None:
        return x
    serial, number, steps, item, operands, sites = told
    if (serial, number) not in values:
        arrays = [_array(of) if isinstance(of, np.ndarray) else _as_graph(of, values) for of in operands]
        if item is not None:
            found = _call(item, arrays)
            for k, part in enumerate(found if isinstance(found, tuple) else (found,)):
                values[serial, k] = part
        for k, (function, *of) in enumerate(steps):
            given = [arrays[n] if kind == ARRAY else values[serial, n] if kind == STEP else n for kind, n in filter(None, of)]
            values[serial, k] = _step(function, given)
        for k, site in enumerate(sites):
            if values[serial, k]._base is None:  # no view
                values[serial, k]._node.site = site  # not the line that asks
    return values[serial, number]


def _step(function: Any, operands: Sequence[Any]) -> Any:
    if function.__name__ in _CHOICES:
        return _CHOICES[function.__name__](*operands)
    if not isinstance(function, np.ufunc):
        return operands[0].astype(function(np.empty(0)).dtype)
    return ufuncs.UFUNCS[ufuncs.NAMES[function.__name__]](*operands)


def _call(item: tuple[Any, Sequence[tuple[int, Any]], int, tuple[str, ...] | None], arrays: list[Any]) -> Any:
    function, args, count, names = item
    given = [of if k == -1 else tuple(arrays) if k == JOINED else arrays[k] for k, of in args]
    return function(*given[:count], **dict(zip(names or (), given[count:], strict=True)))
