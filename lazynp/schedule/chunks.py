"""In which pieces reductions go whose order shows, which ``codegen/reduce.py`` describes: numbers that kernels and NumPy's tier share."""

from __future__ import annotations

from typing import Final

LANES: Final = 32  # partial results of a chunk
CHUNK: Final = 512  # elements along a row
ROWS: Final = 256  # rows of a block, where columns are reduced
