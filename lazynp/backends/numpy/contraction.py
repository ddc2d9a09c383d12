"""How ``numpy.einsum`` and ``numpy.correlate`` walk their operands, for C that sums many products side by side.

In: subscripts, and one or two arrays of floats.  Out: a plan for ``contraction.h``, or None where NumPy has to say, be it what is wrong.
Promise: by a plan the bits are NumPy's.  NumPy's iterator says in which order it walks the axes; that C rounds as NumPy's loops do (with or
without fused products, by as many lanes) is tried once for each type and kind of loop.  ``correlate`` and ``convolve`` sum in order, as
NumPy does where the shorter operand has at most eleven elements; of more it asks BLAS, and here many results have the bits of sums in order
(``config.costly_above``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.values import config

_SUMMED: Final = (np.dtype(np.float64), np.dtype(np.float32))
_IN_ORDER: Final = 11  # elements of the shorter operand, which NumPy sums in order
_MOST: Final = 512  # and those that are summed so here: many more are better summed by BLAS, in lanes
# Results at either end, which sum fewer products than the shorter operand has elements.
_EDGES: Final = {"full": lambda m: (m - 1, m - 1), "same": lambda m: (m // 2, (m - 1) // 2), "valid": lambda m: (0, 0)}


# A stand-in for the result, which has its layout; what is in the place of an operand that there is not; lengths, from the outermost axis
# on, and the strides of both operands and the result.
Plan = tuple[np.ndarray, np.ndarray | None, tuple[int, ...], tuple[tuple[int, ...], ...]]


def plan(subscripts: str, x: np.ndarray, y: np.ndarray | None = None) -> Plan | None:
    """Ask NumPy's iterator."""
    if x.dtype not in _SUMMED or (y is not None and y.dtype != x.dtype):
        return None
    walk = _walk(subscripts, x, y)
    return walk if walk is not None and _rounds_alike(x.dtype, walk[3][2][-1] == 0) else None


@cache
def _rounds_alike(dtype: np.dtype, summed: bool) -> bool:
    """Tell whether C's sums have NumPy's bits, where the innermost axis is ``summed`` or where it is not."""
    x, y = _numbers(335, dtype).reshape(5, 67), _numbers(95, dtype).reshape(5, 19)
    subscripts, first, second = "ki,k->i", x, y[:, 0].copy()
    if summed:  # by four vectors, and by the rest
        subscripts, first, second = "ikl,kl->i", np.lib.stride_tricks.sliding_window_view(x, y.shape)[0], y
    theirs, walk = np.einsum(subscripts, first, second), _walk(subscripts, first, second)
    result = np.empty_like(theirs)
    return walk is not None and core.contract(first, second, result, walk[2], *walk[3]) and result.tobytes() == theirs.tobytes()


def _numbers(n: int, dtype: np.dtype) -> np.ndarray:
    """Numbers between -0.5 and 0.5 whose products are rounded, without loading what draws some."""
    return (np.modf(np.arange(1, n + 1) * 0.6180339887498949)[0] - 0.5).astype(dtype)


def _walk(subscripts: str, x: np.ndarray, y: np.ndarray | None) -> Plan | None:
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    labels = inputs.replace(",", "", y is not None)
    if not arrow:
        output = "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
    if not labels.isalpha() or not labels.isascii() or len(set(output)) != len(output) or not set(output) <= set(labels):
        return None
    one = np.ones((), x.dtype) if y is None else None
    arrays: list[Any] = [x, one if y is None else y]
    terms = [*inputs.split(","), ""][:2]
    if any(len(term) != a.ndim or len(set(term)) != len(term) for term, a in zip(terms, arrays, strict=True)):
        return None
    extents = [*zip("".join(terms), x.shape + arrays[1].shape, strict=True)]
    if any(n == 0 or n != dict(extents)[label] for label, n in extents):
        return None
    axes = output + "".join(label for label in dict.fromkeys(labels) if label not in output)
    places = [[term.index(label) if label in term else -1 for label in axes] for term in (*terms, output)]
    flags: Any = [["readonly"], ["readonly"], ["readwrite", "allocate"]]
    walked: Any = np.nditer
    with walked((*arrays, None), ["external_loop", "reduce_ok"], flags, op_axes=places) as walk:
        made, views = walk.operands[2], walk.itviews
    strides = tuple([view.strides for view in views])
    if not strides[0] or min(map(min, strides)) < 0:
        return None
    like = np.lib.stride_tricks.as_strided(np.empty(1, x.dtype), made.shape, made.strides)
    return like, one, views[0].shape, strides


def correlation(function: Callable[..., Any], a: np.ndarray, v: np.ndarray, mode: Any) -> np.ndarray | None:
    """Sums of products of ``v`` (backwards for ``convolve``) and as many elements of ``a``, from each on; None where NumPy has to say."""
    n, m, dtype = a.size, v.size, a.dtype
    if a.ndim != 1 or v.ndim != 1 or n < m or dtype not in _SUMMED or v.dtype != dtype or type(mode) is not str or mode not in _EDGES:
        return None
    if not _sums_in_order(dtype) if m <= _IN_ORDER else m > _MOST or n - m + 1 <= config.costly_above:
        return None
    before, after = _EDGES[mode](m)
    result = np.empty(n - m + 1 + before + after, dtype)
    if not _valid(a, v if function is np.correlate else v[::-1], result[before : before + n - m + 1]):
        return None
    if before:
        result[:before] = function(a[: 2 * m], v, mode)[:before]
    if after:
        result[-after:] = function(a[-2 * m :], v, mode)[-after:]
    return result


def _valid(a: np.ndarray, v: np.ndarray, to: np.ndarray) -> bool:
    a, v, step = np.ascontiguousarray(a), np.ascontiguousarray(v), a.itemsize
    return core.contract(a, v, to, (v.size, to.size), (step, step), (step, 0), (0, step))


@cache
def _sums_in_order(dtype: np.dtype) -> bool:
    x = _numbers(99, dtype)
    result = np.empty(89, dtype)
    return _valid(x, x[:11], result) and result.tobytes() == np.correlate(x, x[:11]).tobytes()
