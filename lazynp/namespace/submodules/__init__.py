"""NumPy's submodules: what lazynp answers itself of each."""
