"""Functions of dtypes, and questions about arrays that need no values.

In: dtypes, scalar types, arrays.  Out: NumPy's answers.  Promise: nothing here computes a value.  The scalar types under their public
names (``np.float64``, ``np.floating``) are NumPy's own classes; lazy scalars are instances of them to ``isinstance``, see ``scalars``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.arrays import ndarray, node_of
from lazynp.namespace.bridge import fallback, proxies
from lazynp.namespace.ufunc import axes as ax
from lazynp.scalars import is_scalar
from lazynp.values.loading import late, load

if TYPE_CHECKING:
    from lazynp import conversion, layout, storage, viewing
    from lazynp.namespace import assignment, standard
    from lazynp.namespace.bridge import proxies
    from lazynp.namespace.routines import creation
    from lazynp.namespace.ufunc import promotion
else:
    conversion, layout, assignment, proxies, creation, standard, promotion, storage, viewing = late(
        "conversion",
        "layout",
        "namespace.assignment",
        "namespace.bridge.proxies",
        "namespace.routines.creation",
        "namespace.standard",
        "namespace.ufunc.promotion",
        "storage",
        "viewing",
    )


def _dtype_like(x: Any) -> Any:
    """An argument of a promotion function: arrays by dtype, Python numbers as they are."""
    return x.dtype if type(x) is ndarray or is_scalar(x) else x


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Find the dtype that combining arrays and dtypes gives; see :func:`numpy.result_type`."""
    return np.result_type(*[_dtype_like(x) for x in arrays_and_dtypes])


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Tell whether a cast is allowed; see :func:`numpy.can_cast`."""
    return np.can_cast(_dtype_like(from_), conversion.no_array(to), casting)  # type: ignore[arg-type]


def min_scalar_type(a: Any, /) -> Any:
    """Find the smallest dtype for a value; see :func:`numpy.min_scalar_type`."""
    if type(a) is ndarray and a.ndim:
        return a.dtype
    return np.min_scalar_type(a.item() if type(a) is ndarray or is_scalar(a) else a)


def common_type(*arrays: Any) -> Any:
    """Find the inexact type common to arrays; see :func:`numpy.common_type`."""
    return np.common_type(*[np.empty(0, x.dtype) if hasattr(x, "dtype") else x for x in arrays])


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert the values to another dtype; see :func:`numpy.astype`."""
    if not isinstance(x, np.ndarray) and type(x) is not ndarray and not is_scalar(x) and not np.isscalar(x):
        raise TypeError(f"Input should be a NumPy array or scalar. It is a {type(x)} instead.")
    place = standard.checked_device(device)
    return creation.placed((x if type(x) is not np.ndarray else conversion.asarray(x)).astype(dtype, copy=copy), place)


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape; see :func:`numpy.shape`."""
    found = getattr(a, "shape", None)
    return np.shape(a) if found is None else found


def ndim(a: Any) -> int:
    """Return the number of dimensions; see :func:`numpy.ndim`."""
    return len(shape(a))


def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements; see :func:`numpy.size`."""
    extents = shape(a)
    if axis is not None:
        extents = tuple([extents[k] for k in ax.several(axis, len(extents))])
    total = 1
    for n in extents:
        total *= n
    return total


def isscalar(element: Any) -> bool:
    """Tell whether something is a scalar; see :func:`numpy.isscalar`."""
    return is_scalar(element) or np.isscalar(element)


def isfortran(a: Any) -> bool:
    """Tell whether an array is laid out in Fortran order only; see :func:`numpy.isfortran`."""
    return bool(a.flags.fnc)


def iterable(y: Any) -> bool:
    """Tell whether something can be iterated over; see :func:`numpy.iterable`."""
    return type(y) is ndarray and y.ndim > 0 if type(y) is ndarray or is_scalar(y) else np.iterable(y)


def may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> bool:
    """Tell whether arrays may overlap; see :func:`numpy.may_share_memory`."""
    if type(a) is not ndarray and type(b) is not ndarray:
        return np.may_share_memory(a, b)
    _refuse_ragged(a, b)
    return viewing.shares_memory(a, b, exact=False)


def shares_memory_(a: Any, b: Any, /, max_work: Any = -1) -> bool:
    """Tell whether arrays overlap; see :func:`numpy.shares_memory`."""
    if type(a) is not ndarray and type(b) is not ndarray:
        return np.shares_memory(a, b)
    _refuse_ragged(a, b)
    return viewing.shares_memory(a, b)


def _refuse_ragged(*values: Any) -> None:
    for value in values:
        if type(value) is not ndarray and not isinstance(value, np.ndarray):
            np.may_share_memory(value, np.empty(0))  # what is no array NumPy refuses


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Tell whether a dtype is below another in the tree; see :func:`numpy.issubdtype`."""
    return np.issubdtype(conversion.no_array(_numpys(arg1)), conversion.no_array(_numpys(arg2)))


def _numpys(x: Any) -> Any:
    original = proxies.stands_for(x)
    return x if original is None else original


def isdtype(dtype: Any, kind: Any) -> bool:
    """Tell whether a dtype is of a kind; see :func:`numpy.isdtype`."""
    kinds = tuple([_numpys(k) for k in kind]) if isinstance(kind, tuple) else _numpys(kind)
    if type(dtype) is ndarray:
        raise TypeError(f"dtype argument must be a NumPy dtype, but it is a {ndarray}.")
    return np.isdtype(_numpys(dtype), kinds)


_CLASSES: Final = frozenset({float, int, *(np.dtype(letter).type for letter in "bhilqBHILQefd")})


def finfo(dtype: Any) -> Any:
    """Tell the limits of a floating dtype, or of an array's; see :class:`numpy.finfo`."""
    return np.finfo(dtype if type(dtype) is type and dtype in _CLASSES else _info_dtype(dtype))


def iinfo(int_type: Any) -> Any:
    """Tell the limits of an integer dtype, or of an array's; see :class:`numpy.iinfo`."""
    return np.iinfo(int_type if type(int_type) is type and int_type in _CLASSES else _info_dtype(int_type))


def _info_dtype(x: Any) -> Any:
    # The standard takes arrays; NumPy takes scalars.
    return x.dtype if isinstance(x, np.ndarray) or type(x) is ndarray or is_scalar(x) else _numpys(x)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write values into an array; see :func:`numpy.copyto`."""
    if type(dst) is not ndarray:
        fallback.call(np.copyto, "copyto", (dst, src), {"casting": casting, "where": where})
        return
    if type(src) in (int, float, complex):
        # A number takes the array's dtype where its kind allows, and must fit.
        src = np.asarray(src, np.result_type(dst.dtype, src))
    if isinstance(where, (ndarray, np.ndarray)) and where.dtype != np.bool_:
        raise TypeError(f"Cannot cast array data from {where.dtype!r} to dtype('bool') according to the rule 'safe'")
    if _same_memory(dst, src):
        return
    if dst._readonly:
        raise ValueError("assignment destination is read-only")
    if type(src) is np.ndarray and not src.shape and np.can_cast(src.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        src = src.astype(dst.dtype)
    value = conversion.asarray(src)
    if promotion.overrides(value) or not np.can_cast(value.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {value.dtype!r} to {dst.dtype!r} according to the rule '{casting}'")
    if where is not True:
        value = value.astype(dst.dtype)
        mask = promotion.mask_node(where)
        if not assignment.fits(dst.shape, mask.shape):
            shapes = [str(shape).replace(" ", "") for shape in (mask.shape, dst.shape)]
            raise ValueError(f"could not broadcast where mask from shape {shapes[0]} into shape {shapes[1]}")
        if assignment.fits(dst.shape, value.shape):
            assignment.write_where(dst, mask, node_of(value))
            return
        value = load("lazynp.namespace.routines.selecting").where(where, value, dst)
    dst[...] = value


def _same_memory(a: ndarray, b: Any) -> bool:
    """Tell whether two arrays show the very same elements: NumPy copies nothing then, and does not ask whether it may."""
    if type(b) is not ndarray:
        return False
    if type(a._base) is np.ndarray or type(b._base) is np.ndarray:
        return bool(storage.host(a).__array_interface__ == storage.host(b).__array_interface__)
    one, two = [x._base if type(x._base) is ndarray else x for x in (a, b)]
    return one is two and (a.dtype, a.shape, layout.geometry(a)) == (b.dtype, b.shape, layout.geometry(b))


FUNCTIONS: Final = {
    function.__name__: function
    for function in (
        result_type, can_cast, min_scalar_type, common_type, astype, shape, ndim, size, isscalar, isfortran, iterable, may_share_memory,
        issubdtype, isdtype, finfo, iinfo, copyto,
    )
} | {"shares_memory": shares_memory_}  # fmt: skip
