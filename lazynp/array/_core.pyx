# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=True
"""The native core: cells, and what is done with small values at the call.

In: operands that are at hand.  Out: NumPy's results, as cells.  Promise: whatever is not plain is left to the class's own method in Python.
"""

from cpython.object cimport PyTypeObject

cdef extern from "cell.h":
    PyTypeObject cell_type
    PyTypeObject* array_type

cdef extern from "Python.h":
    int PyType_Ready(PyTypeObject*) except -1

PyType_Ready(&cell_type)
Cell = <object>&cell_type


def register(cls):
    """Make ``cls`` the class of arrays: what the core does faster than one of its methods, it does, and leaves the rest to the method."""
    global array_type
    array_type = <PyTypeObject*>cls
