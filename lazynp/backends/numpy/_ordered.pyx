# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=True
"""Reductions in the order of kernels, natively; ``ordered.py`` is the twin.

In: a contiguous array of float32 or float64, extents.  Out: the results, in another array.  Promise: the same bits as the twin.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #define ORDERED_PRODUCTS
    """

cdef extern from "ordered.h" nogil:
    enum: ORDERED_NO_MEMORY
    int ordered_reduce(int, int, const char*, int64_t, int64_t, int64_t, double, char*)

OPERATIONS = ("add", "multiply")


def reduce(int op, object x, int64_t outer, int64_t n, int64_t width, double identity, object out):
    """Reduce n elements to one, ``outer`` times; with a ``width``, n rows of so many elements to one row."""
    cdef Py_buffer given, made
    cdef int size = x.itemsize, failed
    PyObject_GetBuffer(x, &given, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(out, &made, PyBUF_SIMPLE | PyBUF_WRITABLE)
        try:
            if given.len < outer * n * (width or 1) * size or made.len < outer * (width or 1) * size:
                raise ValueError("an array is smaller than its extents say")
            with nogil:
                failed = ordered_reduce(op, size, <const char*>given.buf, outer, n, width, identity, <char*>made.buf)
        finally:
            PyBuffer_Release(&made)
    finally:
        PyBuffer_Release(&given)
    if failed == ORDERED_NO_MEMORY:
        raise MemoryError
    if failed:
        raise ValueError("there is no such operation")
