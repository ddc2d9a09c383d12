"""Which of our objects stands for which object of NumPy.

In: the array class, the classes of numbers that wait, and registrations by modules that make other stand-ins.  Out: NumPy's original, for
arguments that go to NumPy.  Promise: one small table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lazynp.arrays import ndarray
from lazynp.scalars import ABSTRACT, CLASSES

_originals: dict[int, tuple[Any, Any]] = {}
_stand_ins: dict[int, Any] = {}


def register(ours: Any, theirs: Any) -> None:
    """Pass ``ours`` to NumPy as ``theirs`` from now on."""
    _originals[id(ours)] = (ours, theirs)
    _stand_ins.setdefault(id(theirs), ours)


def stand_in(theirs: Any) -> Any:
    """Return what lazynp has in place of NumPy's object, or None."""
    return _stand_ins.get(id(theirs))


def stands_for(value: Any) -> Any:
    """NumPy's object, or None where ``value`` stands for nothing."""
    found = _originals.get(id(value))
    if found is None:
        # Stand-ins that come and go carry their original themselves.
        return getattr(type(value), "_stands_for", lambda value: None)(value)
    return found[1]


register(ndarray, np.ndarray)
for _ours in (*ABSTRACT.values(), *CLASSES):
    register(_ours, _ours._numpy)  # type(s) of a lazy s goes to NumPy as well
