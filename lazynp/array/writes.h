/* `x[key] = value` of integers and slices, without the way through all kinds of keys and values.

   In: memory that may be written, a key, a number or an array.  Out: whether it was written.  Promise: an array of the same dtype and shape,
   or a number that the dtype holds, is copied as it is; everything else is NumPy's to do. */

#ifndef LAZYNP_WRITES_H
#define LAZYNP_WRITES_H

#include "chains.h"

#define FEW 1024  /* elements: of more, NumPy looks for the best order of the axes */

static int assigned(PyArrayObject* x, PyObject* key, PyObject* value, PyArrayObject* y) {
    npy_intp size = PyArray_ITEMSIZE(x), at[2 * PLACE_AXES] = {0}, rows = 1, n, step, from_step = 0;
    const char* from;
    Value number;
    Place to;
    int last;
    if (!is_written_plainly(x) || !place_of(x, key, &to)) return 0;
    last = to.ndim - 1, n = to.dims[last], step = to.strides[last];
    if (y) {
        if (PyArray_TYPE(y) != PyArray_TYPE(x) || PyArray_NDIM(y) != to.ndim || !PyArray_ISBEHAVED_RO(y)) return 0;
        if (memcmp(PyArray_DIMS(y), to.dims, (size_t)to.ndim * sizeof(npy_intp))) return 0;
        if (PyArray_BYTES(y) == to.data && memcmp(PyArray_STRIDES(y), to.strides, (size_t)to.ndim * sizeof(npy_intp)) == 0) return 1; /* itself */
        from = PyArray_BYTES(y), from_step = PyArray_STRIDE(y, last);
    } else {
        if (!value_of(value, PyArray_TYPE(x), &number)) return 0;
        from = (char*)&number;
    }
    for (int k = 0; k < last; k++) rows *= to.dims[k];
    if (rows * n == 0) return 1;
    if (rows * n > FEW && (n < SHORT || step != size || (y && from_step != size))) return 0;
    if (y) {
        Reach ours = reach_of(to.data, to.ndim, to.dims, to.strides, size), theirs = reach_of(from, to.ndim, to.dims, PyArray_STRIDES(y), size);
        if (ours.low < theirs.high && theirs.low < ours.high) {
            char beside[2048];
            if (last > 0 || n * size > (npy_intp)sizeof(beside)) return 0;
            elements_copy(beside, size, from, from_step, n, size);
            return elements_copy(to.data, step, beside, size, n, size), 1;
        }
    }
    while (elements_copy(to.data, step, from, from_step, n, size), --rows) {
        for (int k = last - 1; k >= 0; k--) {
            npy_intp turn = y ? PyArray_STRIDE(y, k) : 0;
            if (++at[k] < to.dims[k]) {
                to.data += to.strides[k], from += turn;
                break;
            }
            at[k] = 0; /* back to the first; a stride of one element may lead anywhere */
            to.data -= to.strides[k] * (to.dims[k] - 1), from -= turn * (to.dims[k] - 1);
        }
    }
    return 1;
}

/* `a[key] = value` in a large array that nobody else sees, of a number or of few elements (`y`): 1 when done, 0 for Python to do, -1. */
static int large_setitem(PyObject* a, PyObject* key, PyObject* value, PyArrayObject* y) {
    PyArrayObject *to, *memory;
    PyObject* found;
    Cell *root, *written;
    int own, done = 0;
    if (((Cell*)a)->readonly != Py_False || !is_basic(key) || (to = large_memory(a, &root, &memory, &own)) == NULL || !own) return 0;
    PyArray_ENABLEFLAGS(to, NPY_ARRAY_WRITEABLE);
    Py_INCREF(to), Py_INCREF(value);
    written = writing_begin(a);
    if (assigned(to, key, value, y)) {
        done = 1;
    } else if (y == NULL) {
        done = PyArray_Type.tp_as_mapping->mp_ass_subscript((PyObject*)to, key, value) < 0 ? -1 : 1;
    } else if ((found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject*)to, key)) == NULL) {
        done = -1;
    } else {
        if (PyArray_CheckExact(found) && PyArray_SIZE((PyArrayObject*)found) <= limit_now())
            done = same_place((PyArrayObject*)found, y) || PyArray_CopyObject((PyArrayObject*)found, value) == 0 ? 1 : -1;
        Py_DECREF(found);
    }
    writing_end(written);
    Py_DECREF(to), Py_DECREF(value);
    return done;
}

#endif
