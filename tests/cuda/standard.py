"""Every kind of launch on a device, against NumPy: ``python -m tests.cuda.standard`` (for a memory checker to run).

In: the device of ``LAZYNP_DEVICE``.  Out: a line for each program; exit code 1 where one is wrong.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy

import lazynp
from tests.codegen.test_grid import ROWS, STRUCTURE

PROGRAMS = {**ROWS, **{name: row[:2] for name, row in STRUCTURE.items()}}
DTYPES = ("f8", "f4")


def expected_and_found(name: str, dtype: str) -> tuple[Any, Any]:
    function, shape = PROGRAMS[name]
    x = numpy.random.default_rng(0).standard_normal(shape).astype(dtype)
    with lazynp.device("cuda"):
        y = function(lazynp, lazynp.asarray(x))
        assert y.device == "cuda:0", y.device
        return function(numpy, x), numpy.asarray(y)


def wrong(name: str, dtype: str) -> str:
    """What is wrong; empty if nothing is."""
    expected, found = expected_and_found(name, dtype)
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    scale = max(1.0, float(numpy.max(numpy.abs(expected), initial=0)))
    error = float(numpy.max(numpy.abs(found - expected), initial=0)) / scale
    return "" if error <= 200 * numpy.finfo(dtype).eps else f"differs by {error:.1e} of its largest value"


def unpooled(nbytes: int) -> Any:
    """In place of CuPy's pool: every allocation is the driver's, so that a memory checker sees where it ends."""
    import cupy

    return cupy.cuda.MemoryPointer(cupy.cuda.Memory(nbytes), 0)


def main() -> int:
    import cupy

    cupy.cuda.set_allocator(unpooled)
    bad = 0
    for name in PROGRAMS:
        for dtype in DTYPES:
            complaint = wrong(name, dtype)
            bad += bool(complaint)
            print(f"{name}, {dtype}: {complaint or 'equal'}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
