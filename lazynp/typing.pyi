# Made by `python -m bench.stubs`, with NumPy 2.4.6.
from typing import TypeVar

import numpy
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import DTypeLike as DTypeLike

from lazynp import _NDArray

_ScalarT = TypeVar("_ScalarT", bound=numpy.generic)
NDArray = _NDArray[_ScalarT]
