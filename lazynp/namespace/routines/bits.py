"""Bits as bytes and back, and the order of a contraction.

In: arrays.  Out: library items whose shape is known at the call; a path.  Promise: nothing is computed, and what NumPy refuses it refuses
at the call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray, wrap
from lazynp.graph import build
from lazynp.namespace.bridge import fallback
from lazynp.namespace.routines.selecting import library as item
from lazynp.namespace.ufunc import axes as ax
from lazynp.namespace.ufunc.promotion import Foreign, array_node

_UINT8 = np.dtype(np.uint8)


def _bits(name: str, a: Any, axis: Any, **options: Any) -> Any:
    function = getattr(np, name)
    try:
        x = array_node(a)
    except Foreign:
        return fallback.call(function, name, (a,), {"axis": axis, **options})
    if axis is None or not x.shape:
        x = build.reshape(x, (build.size(x),))
    along = 0 if axis is None else ax.one(axis, len(x.shape), beyond=ValueError)
    # An array of the same length without elements tells the length of the result, and what is wrong with the arguments.
    length = function(np.empty((x.shape[along], 0), x.dtype), axis=0, **options).shape[0]
    shape = tuple([length if k == along else n for k, n in enumerate(x.shape)])
    return wrap(item(name, (x,), _UINT8, shape, axis=along, **options))


@fallback.library
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Any:
    """Pack truth values into the bits of bytes; see :func:`numpy.packbits`."""
    return _bits("packbits", a, axis, bitorder=bitorder)


@fallback.library
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    """Unpack the bits of bytes; see :func:`numpy.unpackbits`."""
    return _bits("unpackbits", a, axis, count=count, bitorder=bitorder)


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """Choose the order of a contraction, which depends on shapes only; see :func:`numpy.einsum_path`."""
    shapes = [np.broadcast_to(np.empty((), x.dtype), x.shape) if type(x) is ndarray else x for x in operands]
    path: Any = np.einsum_path
    return path(*shapes, optimize=optimize, einsum_call=einsum_call)


FUNCTIONS: Final = {function.__name__: function for function in (packbits, unpackbits, einsum_path)}
