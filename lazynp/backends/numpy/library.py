"""Library functions behind CALL, done by NumPy.

In: the ``(name, params)`` of a CALL node.  Out: a function of (arrays, params) that gives an array or a tuple of arrays.
Promise: a name that is not here is refused when the program is prepared, with the names that are.

==============  ====================================  ==================================================================
name            params                                value
==============  ====================================  ==================================================================
matmul          ()                                    ``numpy.matmul(a, b)``
dot             ()                                    ``numpy.dot(a, b)``
tensordot       (axes,)                               ``numpy.tensordot(a, b, axes)``; axes an int or two tuples of ints
einsum          (subscripts,), or with "optimize"     ``core.einsum(subscripts, *arrays)``
read_at         (offset, strides, shape, dtype)       that view of the first array's memory
write_at        (offset, strides)                     the first array after the second was written to that view of its memory
reinterpret     (dtype,)                              the same bytes as another item size, along the last axis
stable_argsort  (axis,)                               ``numpy.argsort(a, axis, stable=True)``
numpy           (dotted name, ((key, value), ...))    that function of the arrays in order, with static keyword arguments
write           (name, ((key, value), ...))           the first array after that function of NumPy has written into it
apply           (dotted name, args, ((key, value),…)  that function; ``...`` at any depth of tuples stands for the next array
warn            (text, file name, line)               the first array; a RuntimeWarning for that line if the second is anywhere true
refuse          (exception class, text)               the first array; the exception if the second is anywhere true
ufunc:<name>    () or (((key, value), ...),)          that ufunc; several outputs as OUTPUT nodes
ufunc:<name>.m  (keywords, ((key, value), ...))       its method m of the arrays; the last arrays are the named keywords; ``out`` is
                                                      the (dtype, shape) of an array to compute into
scipy:<name>    as ufunc:                             that special function of SciPy's, if it is installed
ufunc:<name>.at (key,)                                a copy of the first array, updated where the key says; see ``_key``
==============  ====================================  ==================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.backends.numpy.operations import ROOM_FROM, room
from lazynp.values.loading import load

Arrays = tuple[Any, ...]
Function = Callable[[Arrays, tuple[Any, ...]], Any]


def _matmul(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    a, b = arrays
    matrices = a.ndim == b.ndim == 2 and a.dtype == b.dtype and a.shape[1] == b.shape[0]
    shape = (a.shape[0], b.shape[1]) if matrices else ()
    return np.matmul(a, b, out=room(a.dtype, shape)) if matrices and prod(shape) * a.dtype.itemsize >= ROOM_FROM else np.matmul(a, b)


def _tensordot(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    a, b = arrays
    return np.tensordot(a, b, axes=params[0])


def _einsum(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    # Three and more operands: a pairwise order, as any user of einsum on large arrays asks for.  Two that are to be optimized may be a
    # matrix product, whose zeros have other signs than those of einsum's own sums.
    return core.einsum(params[0], *arrays, optimize=len(arrays) > 2 or params[-1] == "optimize")


@lru_cache(maxsize=256)
def resolve(name: str) -> Callable[..., Any]:
    """The NumPy function of a dotted name such as ``linalg.solve``."""
    if name in ("convolve", "correlate"):
        instead: Callable[..., Any] = getattr(core, name)
        return instead
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"numpy.{name} is not a function")
    return found


def _numpy(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    return resolve(params[0])(*arrays, **dict(params[1] if len(params) > 1 else ()))


def _read_at(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    offset, strides, shape, dtype = params
    return np.ndarray(shape, dtype, np.ascontiguousarray(arrays[0]), offset, strides).copy()


def _write_at(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    written = np.array(arrays[0], order="C")
    np.ndarray(arrays[1].shape, arrays[1].dtype, written, *params)[...] = arrays[1]
    return written


def _write(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    written = np.array(arrays[0], order="C")
    resolve(params[0])(written, *arrays[1:], **dict(params[1]))
    return written


SHORT: Final = 2048  # elements up to which NumPy's stable sort is as fast


def _stable_argsort(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    """NumPy's fastest order, in which runs of equal elements are then put in order: far faster than its stable sort."""
    (x,), (axis,) = arrays, params
    n = x.shape[axis]
    if x.size <= SHORT or x.dtype.kind not in "iuf" or x.dtype.itemsize < 4:
        return np.argsort(x, axis, stable=True)
    rows = np.moveaxis(x, axis, -1)
    order = np.argsort(rows, -1)
    ordered = np.take_along_axis(rows, order, -1)
    differs = ordered[..., 1:] != ordered[..., :-1]
    if x.dtype.kind == "f":
        differs &= ordered[..., :-1] == ordered[..., :-1]  # NaN is last, and as good as any other
    if not differs.all():
        runs = np.zeros(order.shape, np.int64)
        np.cumsum(differs, -1, out=runs[..., 1:])
        runs *= n
        order += runs
        order.sort(-1)
        order -= runs
    return np.moveaxis(order, -1, axis)


def _filled(template: Any, arrays: Iterator[Any]) -> Any:
    if template is ...:
        return next(arrays)
    return tuple([_filled(item, arrays) for item in template]) if type(template) is tuple else template


def _flat(value: Any) -> Any:
    return tuple([part for item in value for part in _flat(item)]) if isinstance(value, (tuple, list)) else (value,)


def _apply(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    name, args, options = params
    rest = iter(arrays)
    return _flat(resolve(name)(*_filled(args, rest), **{key: _filled(value, rest) for key, value in options}))


# What was warned of, by file, so that Python's filters can tell the first time from the next.
_registries: Final[dict[str, dict[Any, Any]]] = {}


def _warn(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    value, bad = arrays
    text, filename, line = params
    if bad.any():
        warnings.warn_explicit(text, RuntimeWarning, filename, line, registry=_registries.setdefault(filename, {}))
    return value


def _refuse(arrays: Arrays, params: tuple[Any, ...]) -> Any:
    value, bad = arrays
    kind, text = params
    if bad.any():
        raise kind(text)
    return value


def _key(described: Any, arrays: list[Any]) -> Any:
    """An index from its hashable description; arrays are taken from ``arrays`` in order."""
    if type(described) is tuple and described[:1] != ("slice",):
        return tuple([_key(part, arrays) for part in described])
    if described == "array":
        return arrays.pop(0)
    return slice(*described[1:]) if type(described) is tuple else described


def _at(of: np.ufunc) -> Function:
    def function(arrays: Arrays, params: tuple[Any, ...]) -> Any:
        updated = arrays[0].copy()
        rest = list(arrays[1:])
        key = _key(params[0], rest)
        of.at(updated, key, *rest)
        return updated

    return function


def _method(of: np.ufunc, name: str) -> Function:
    method = getattr(of, name)

    def function(arrays: Arrays, params: tuple[Any, ...]) -> Any:
        extra, static = params
        split = len(arrays) - len(extra)
        options = dict(static) | dict(zip(extra, arrays[split:], strict=True))
        if "out" in options:
            dtype, shape = options["out"]
            options["out"] = np.empty(shape, dtype)
        return method(*arrays[:split], **options)

    return function


def _scipys(name: str) -> Any:
    found = getattr(load("scipy.special"), name)
    return getattr(found, "__wrapped__", found)  # without its dispatch to other array libraries


FUNCTIONS: Final[dict[str, Function]] = {
    "matmul": _matmul,
    "dot": lambda arrays, params: np.dot(*arrays),
    "tensordot": _tensordot,
    "einsum": _einsum,
    "reinterpret": lambda arrays, params: np.ascontiguousarray(arrays[0]).view(params[0]),
    "stable_argsort": _stable_argsort,
    "numpy": _numpy,
    "write": _write,
    "read_at": _read_at,
    "write_at": _write_at,
    "apply": _apply,
    "warn": _warn,
    "refuse": _refuse,
}


def register(name: str, function: Function) -> None:
    """Make ``function`` the meaning of ``CALL name``."""
    FUNCTIONS[name] = function


def lookup(name: str) -> Function:
    """The function behind ``CALL name``."""
    function = FUNCTIONS.get(name)
    if function is None:
        prefix, _, ufunc = name.partition(":")
        ufunc, _, method = ufunc.partition(".")
        of: Any = _scipys(ufunc) if prefix == "scipy" else getattr(np, ufunc, None)
        if prefix != "scipy" and (prefix != "ufunc" or not isinstance(of, np.ufunc)):
            raise KeyError(f"CALL {name!r}: there are {', '.join(sorted(FUNCTIONS))}, ufunc:<name> and scipy:<name>")

        def plain(arrays: Arrays, params: tuple[Any, ...]) -> Any:
            return of(*arrays, **dict(params[0] if params else ()))

        function = FUNCTIONS[name] = plain if not method else _at(of) if method == "at" else _method(of, method)
    return function
