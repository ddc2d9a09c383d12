"""What libraries compute, looked through for floating-point errors: they tell of none.

In: a result of CuPy's in device memory.  Out: a word of the run's that is not 0 where a number of the result is not finite.  Promise: one
kernel, put into the stream like the others; the host does not wait.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.backends.cuda import compiler
from lazynp.graph.errors import ALL, UNDER

if TYPE_CHECKING:
    from lazynp.backends.cuda.memory import DeviceBuffer, Place
    from lazynp.backends.cuda.runs import Run

THREADS: Final = 256
BLOCKS: Final = 2048  # at most: each of them goes over its part
NAMES: Final = {"e": "lzw_f2", "f": "lzw_f4", "d": "lzw_f8"}  # complex numbers are twice as many
_FUNCTION: Final = """extern "C" __global__ void __launch_bounds__(%(threads)d) %(name)s(const lzw_args a)
{
    const %(type)s* x = (const %(type)s*)a.slot[0];
    const long long n = (long long)a.slot[1];
    bool found = false;
    for (long long i = (long long)blockIdx.x * %(threads)d + threadIdx.x; i < n; i += (long long)gridDim.x * %(threads)d)
        found |= !(%(finite)s);
    if (__syncthreads_or(found) != 0 && threadIdx.x == 0)
        atomicOr((unsigned long long*)a.slot[2], %(errors)dull);
}
"""
_TYPES: Final = {
    "e": {"type": "unsigned short", "finite": "(x[i] & 0x7fffu) < 0x7c00u"},
    "f": {"type": "float", "finite": "fabsf(x[i]) < __int_as_float(0x7f800000)"},
    "d": {"type": "double", "finite": "fabs(x[i]) < __longlong_as_double(0x7ff0000000000000LL)"},
}
ERRORS: Final = ALL & ~UNDER  # a result does not show an underflow
SOURCE: Final = "struct lzw_args { unsigned long long slot[3]; };\n" + "\n".join(
    [_FUNCTION % {"name": NAMES[char], "threads": THREADS, "errors": ERRORS, **row} for char, row in _TYPES.items()]
)


class Watch:
    """The kernels of one device."""

    def __init__(self, place: Place) -> None:
        self.pointer = place.cupy.cuda.function.CPointer
        with place.running():
            found = compiler.functions(place.cupy, SOURCE, list(NAMES.values()), place.capability)
        self.functions: dict[str, Any] = {char: found[name] for char, name in NAMES.items()}

    def look(self, buffer: DeviceBuffer, word: int, run: Run) -> None:
        """Have ``word`` say which errors may have come of a value that is not finite."""
        char = buffer.dtype.char.lower()
        count = buffer.nbytes // np.dtype(char).itemsize
        block = array("Q", [buffer.address, count, word])
        blocks = min(BLOCKS, -(-count // (4 * THREADS)))
        self.functions[char]((blocks, 1, 1), (THREADS, 1, 1), (self.pointer(block.buffer_info()[0]),), 0, run.stream)
