"""Which of our objects stands for which object of NumPy.

In: registrations by the modules that make stand-ins (ufuncs, types, the array class).  Out: NumPy's original, for arguments that
go to NumPy.  Promise: one small table; nothing here imports the modules that register.
"""

from __future__ import annotations

from typing import Any

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
