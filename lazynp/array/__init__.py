"""The array object's lowest layer: the cell, native where a compiler built it."""
