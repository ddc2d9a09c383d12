"""Numbers of NumPy's generators, drawn faster than by NumPy."""
