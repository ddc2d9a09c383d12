"""NumPy's routines, a module for each of its topics; most are loaded when somebody asks for a name (``names.py``)."""
