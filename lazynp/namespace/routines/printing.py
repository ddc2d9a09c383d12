"""Arrays as text.

In: arrays and scalars.  Out: strings.  Promise: NumPy's own printing, with its print options.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from lazynp.namespace.bridge.fallback import Library

FUNCTIONS: Final = {
    name: Library(getattr(np, name))
    for name in ("array2string", "array_repr", "array_str", "format_float_positional", "format_float_scientific")
}
