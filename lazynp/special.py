"""Special functions, as in ``scipy.special``: recorded, fused and compiled like everything else.

What ``ROWS`` in ``namespace/special/table.py`` lists is computed by lazynp in every tier and needs no SciPy: most are single operations
of the graph, so that ``0.5 * x * (1 + erf(x / sqrt(2)))`` is one pass over ``x``. Everything else that ``scipy.special`` has is here,
too: its ufuncs become items of the schedule, which run when a value is needed, and need SciPy to be installed. Arguments, dtypes,
broadcasting, ``out=`` and ``where=`` are those of SciPy's functions; complex numbers are left to SciPy.

Small arrays could be given to SciPy's loops, which take a microsecond where ours take some ten in the NumPy tier. They are not: a
function would have two meanings, which differ in the tails by much more than the last places, and which of them one got would depend on
the array's size and on what else is installed.

SciPy's dispatch (``SCIPY_ARRAY_API=1``) finds this module: ``scipy.special.erf`` of a lazynp array is ``lazynp.special.erf``.

Differences from SciPy: odd functions keep the sign of zero, and an infinite argument gives the limit (``i0(inf)`` is infinite, not NaN).
"""

from __future__ import annotations

from typing import Any

from lazynp.namespace.bridge import fallback as _fallback
from lazynp.namespace.routines import mathematics as _mathematics
from lazynp.namespace.special import functions as _functions
from lazynp.namespace.special import table as _table
from lazynp.namespace.special import ufuncs as _ufuncs

__all__ = sorted({*_table.ROWS, *_table.ALIASES, *_table.SCIPYS, *_functions.FUNCTIONS})  # noqa: PLE0605

_DOCUMENTATION = """Compute {what}.

    Parameters
    ----------
    {operands} : array_like
        Numbers, which are converted to float32 or float64 as NumPy's ``exp`` converts them{left}.
    out : ndarray, optional
        Where the result is stored.
    **kwargs
        What other ufuncs take: ``where``, ``dtype``, ``casting``, ``order``.

    Returns
    -------
    ndarray or scalar
        Its error is at most {bound} units in the last place in double precision; in single precision it is rounded once.

    See Also
    --------
    scipy.special.{name} : Which has the same arguments.
    """


def _made(name: str) -> Any:
    if name in _functions.FUNCTIONS:
        return _functions.FUNCTIONS[name]
    if name in _table.ALIASES:
        return __getattr__(_table.ALIASES[name])
    row = _table.ROWS.get(name)
    if row is not None:
        left = ", or complex, which SciPy computes" if row.complex else ""
        text = _DOCUMENTATION.format(what=row.what, operands=", ".join("xyz"[: row.nin]), left=left, bound=row.bound, name=name)
        return _ufuncs.native(name, row.nin, row.complex, name not in _table.SINGLE_FIRST, row.lowering(name), text)
    return _ufuncs.of_scipy(name, name in _table.ELEMENTWISE, name in _table.SCIPYS)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'lazynp.special' has no attribute {name!r}")
    made = _made(name)
    if made is vars(_mathematics).get(name):
        import lazynp

        value = getattr(lazynp, name)  # one function with two names, of which this is the second
    else:
        value = _fallback.published(name, made, "lazynp.special")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
