"""What results have beside NumPy's numbers, which their classes derive from.

In: NumPy's methods and attributes of numbers.  Out: the same, whose answers are results and arrays of ours.  Promise: what tells a number's
class and its module, copies and pickles it, says NumPy's.
"""

from __future__ import annotations

import copyreg
import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import protocols
    from lazynp.array import hand
else:
    hand, protocols = late("array.hand", "protocols")

_METHODS: Final = (
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "conjugate", "copy", "cumprod", "cumsum", "flatten", "max",
    "mean", "min", "prod", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes", "take", "transpose", "var", "view",
    "__round__",
)  # fmt: skip
_ATTRIBUTES: Final = ("T", "imag", "real")


def _method(name: str) -> Callable[..., Any]:
    @functools.wraps(getattr(np.generic, name, float.__round__))
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return hand.result(getattr(core.numpys_number(self), name)(*args, **kwargs))

    return method


def _attribute(name: str) -> property:
    return property(lambda self: hand.result(getattr(core.numpys_number(self), name)), doc=getattr(np.generic, name).__doc__)


def _pickled(kind: type) -> tuple[Any, ...]:
    return operator.getitem, ((kind.__mro__[1],), 0)  # NumPy's


def install() -> None:
    """Complete the classes of results."""
    copyreg.pickle(type(core.number_classes_of[np.float64]), _pickled)
    core.number_members(
        {
            **{name: _method(name) for name in _METHODS},
            **{name: _attribute(name) for name in _ATTRIBUTES},
            "__array_namespace__": protocols.SHARED["__array_namespace__"],
            "__class__": property(lambda self: type(self).__mro__[1]),
            "__copy__": lambda self: self,
            "__deepcopy__": lambda self, memo: self,
        }
    )
