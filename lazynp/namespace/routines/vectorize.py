"""Array functions made from Python functions.

In: a function of Python scalars (or of rows).  Out: ``frompyfunc`` and ``vectorize`` objects that take arrays of ours.  Promise: NumPy's
own objects do the calling, with NumPy's values, at the call; results of native dtypes are arrays of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lazynp.array import hand
from lazynp.arrays import ndarray
from lazynp.namespace.bridge.fallback import ours
from lazynp.namespace.ufunc.ufuncs import ufunc
from lazynp.protocols import to_host


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, **kwargs: Any) -> ufunc:
    """Make a ufunc of a Python function, over objects; see :func:`numpy.frompyfunc`."""
    return ufunc(np.frompyfunc(func, nin, nout, **kwargs), None)


class vectorize(np.vectorize):
    """Make a function of scalars take arrays; see :class:`numpy.vectorize`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function of every element, with broadcasting."""
        values = []
        for x in () if kwargs else args:
            value = hand.own_memory(x) if type(x) is ndarray else x if type(x) in hand.NUMBERS else None
            if value is None:
                break
            values.append(value)
        if values and len(values) == len(args):
            found = super().__call__(*values)
            return hand.result(found) if type(found) is np.ndarray else ours(found)
        return ours(super().__call__(*to_host(args, "vectorize"), **to_host(kwargs, "vectorize")))


FUNCTIONS: Final = {"frompyfunc": frompyfunc, "vectorize": vectorize}
