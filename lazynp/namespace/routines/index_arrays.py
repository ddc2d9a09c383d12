"""Arrays of positions: of diagonals and triangles, of grids of keys, of flat and several-dimensional indices.

In: lengths, shapes and index arrays.  Out: tuples of index arrays.  Promise: NumPy's; where an array's own positions are
asked for, its shape is enough.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp.arrays import ndarray
from lazynp.conversion import asarray
from lazynp.engine import devices
from lazynp.graph.dtypes import BOOL, INT64
from lazynp.namespace.bridge.fallback import Library, users
from lazynp.namespace.routines.creation import arange, tri
from lazynp.namespace.routines.selecting import nonzero
from lazynp.viewing import view_reshape

_BY_NUMPY: Final = {name: Library(getattr(np, name)) for name in ("tril_indices", "triu_indices", "unravel_index", "ravel_multi_index")}


def ix_(*args: Any) -> Any:
    """Make a key for all combinations of positions; see :func:`numpy.ix_`."""
    keys = []
    for k, given in enumerate(args):
        positions = asarray(given)
        if type(given) is not ndarray and not isinstance(given, np.ndarray) and not positions.size:
            positions = asarray(positions, INT64)
        if positions.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if positions.dtype == BOOL:
            (positions,) = nonzero(positions)
        shape = (1,) * k + (positions.size,) + (1,) * (len(args) - k - 1)
        keys.append(view_reshape(positions, shape) if type(positions) is ndarray else positions.reshape(shape))
    return tuple(keys)


def diag_indices(n: Any, ndim: Any = 2) -> Any:
    """Make the positions of a diagonal; see :func:`numpy.diag_indices`."""
    return (arange(n),) * ndim


def diag_indices_from(arr: Any) -> Any:
    """Make the positions of an array's diagonal; see :func:`numpy.diag_indices_from`."""
    if not arr.ndim >= 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], arr.ndim)


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """Make the positions of a lower triangle; see :func:`numpy.tril_indices`."""
    if devices.gpus is not None and {type(n), type(k), type(m)} <= {int, type(None)}:
        return nonzero(tri(n, m, k, BOOL))
    return _BY_NUMPY["tril_indices"](n, k, m)


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """Make the positions of an upper triangle; see :func:`numpy.triu_indices`."""
    if devices.gpus is not None and {type(n), type(k), type(m)} <= {int, type(None)}:
        return nonzero(~tri(n, m, k - 1, BOOL))
    return _BY_NUMPY["triu_indices"](n, k, m)


def tril_indices_from(arr: Any, k: Any = 0) -> Any:
    """Make the positions of an array's lower triangle; see :func:`numpy.tril_indices_from`."""
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return tril_indices(arr.shape[-2], k=k, m=arr.shape[-1])


def triu_indices_from(arr: Any, k: Any = 0) -> Any:
    """Make the positions of an array's upper triangle; see :func:`numpy.triu_indices_from`."""
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return triu_indices(arr.shape[-2], k=k, m=arr.shape[-1])


def mask_indices(n: Any, mask_func: Any, k: Any = 0) -> Any:
    """Find the positions that a masking function keeps; see :func:`numpy.mask_indices`."""
    xp = users()
    return xp.nonzero(xp.not_equal(mask_func(xp.ones((n, n), int), k), 0))


FUNCTIONS: Final = {
    **{
        function.__name__: function
        for function in (
            ix_,
            diag_indices,
            diag_indices_from,
            tril_indices,
            tril_indices_from,
            triu_indices,
            triu_indices_from,
            mask_indices,
        )
    },
    **{name: _BY_NUMPY[name] for name in ("unravel_index", "ravel_multi_index")},
}
