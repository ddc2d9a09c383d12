"""NumPy's routines, a module for each of its topics; most are loaded when a name is asked for (``names.py``)."""
