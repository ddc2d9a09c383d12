/* `x[key] = value` of integers and slices, without the way through all kinds of keys and values.

   In: memory that may be written, a key, a number or an array.  Out: whether it was written.  Promise: an array of the same dtype and shape,
   or a number that the dtype holds, is copied as it is; everything else is NumPy's to do. */

#ifndef LAZYNP_WRITES_H
#define LAZYNP_WRITES_H

#include "chains.h"

#define FEW 1024  /* elements: of more, NumPy looks for the best order of the axes */

/* Copy elements of `size` bytes to a place; `strides` are those of what they come from, all zero of a number. */
static void place_copy(const Place* place, const char* from, const npy_intp* strides, npy_intp size) {
    npy_intp at[2 * PLACE_AXES], rows = 1;
    char* to = place->data;
    int last = place->ndim - 1;
    for (int k = 0; k < last; k++) rows *= place->dims[k], at[k] = 0;
    while (elements_copy(to, place->strides[last], from, strides[last], place->dims[last], size), --rows) {
        for (int k = last - 1; k >= 0; k--) {
            if (++at[k] < place->dims[k]) {
                to += place->strides[k], from += strides[k];
                break;
            }
            at[k] = 0; /* back to the first; a stride of one element may lead anywhere */
            to -= place->strides[k] * (place->dims[k] - 1), from -= strides[k] * (place->dims[k] - 1);
        }
    }
}

/* The same by several threads, each of which takes some of the first axis. */
typedef struct {
    Pieces pieces;
    const Place* to;
    const char* from;
    const npy_intp* strides;
    npy_intp size;
} CopyRun;

static int copy_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const CopyRun* self = (const CopyRun*)pieces;
    Place some = *self->to;
    (void)thread;
    some.dims[0] = count, some.data += first * some.strides[0];
    place_copy(&some, self->from + first * self->strides[0], self->strides, self->size);
    return 0;
}

#define COPY_NS 0.06          /* nanoseconds that a byte takes one of them */
#define COPY_PIECE (1 << 15)  /* elements that one takes at a time */
static void place_copied(const Place* to, const char* from, const npy_intp* strides, npy_intp elements, npy_intp size) {
    CopyRun run = {.to = to, .from = from, .strides = strides, .size = size};
    double ns = COPY_NS * (double)(elements * size);
    pieces_of(&run.pieces, copy_piece, to->dims[0], elements / to->dims[0], COPY_PIECE, 1, 0);
    (void)pieces_do(&run.pieces, pieces_threads(ns, 2 * elements * size), ns);
}

/* Copy `rows` of so many bytes, each of which begins so many behind the one before, to rows that lie likewise; as `place_copied`. */
static void rows_copied(char* to, npy_intp to_across, const char* from, npy_intp from_across, npy_intp rows, npy_intp bytes) {
    Place place = {.ndim = 2, .dims = {rows, bytes}, .strides = {to_across, 1}, .data = to};
    npy_intp strides[2] = {from_across, 1};
    if (rows == 1) place.ndim = 1, place.dims[0] = bytes, place.strides[0] = strides[0] = 1;
    if (rows * bytes >= COPY_SHARED) place_copied(&place, from, strides, rows * bytes, 1);
    else place_copy(&place, from, strides, 1);
}

/* Write an array `y` or a number to a place in `x`: whether that was done.  `shares`: who calls holds all that is read and written, so that several threads may take part, and others run meanwhile. */
static int place_written(PyArrayObject* x, const Place* to, PyObject* value, PyArrayObject* y, int shares) {
    static const npy_intp none[2 * PLACE_AXES];
    npy_intp size = PyArray_ITEMSIZE(x), rows = 1, n, step, from_step = 0;
    const npy_intp* strides = y ? PyArray_STRIDES(y) : none;
    const char* from;
    Value number;
    int last = to->ndim - 1;
    n = to->dims[last], step = to->strides[last];
    if (y) {
        if (PyArray_TYPE(y) != PyArray_TYPE(x) || PyArray_NDIM(y) != to->ndim || !PyArray_ISBEHAVED_RO(y) || !same_lengths(PyArray_DIMS(y), to->dims, to->ndim)) return 0;
        if (PyArray_BYTES(y) == to->data && same_lengths(strides, to->strides, to->ndim)) return 1; /* itself */
        from = PyArray_BYTES(y), from_step = strides[last];
    } else {
        if (!value_of(value, PyArray_TYPE(x), &number)) return 0;
        from = (char*)&number;
    }
    for (int k = 0; k < last; k++) rows *= to->dims[k];
    if (rows * n == 0) return 1;
    if (rows * n > FEW && (n < SHORT || step != size || (y && from_step != size))) return 0;
    if (y) {
        Reach ours = reach_of(to->data, to->ndim, to->dims, to->strides, size), theirs = reach_of(from, to->ndim, to->dims, strides, size);
        if (ours.low < theirs.high && theirs.low < ours.high) {
            char beside[2048];
            if (last > 0 || n * size > (npy_intp)sizeof(beside)) return 0;
            elements_copy(beside, size, from, from_step, n, size);
            return elements_copy(to->data, step, beside, size, n, size), 1;
        }
    }
    if (shares && rows * n * size >= COPY_SHARED) place_copied(to, from, strides, rows * n, size);
    else place_copy(to, from, strides, size);
    return 1;
}

/* `x[key] = value`, likewise. */
static int assigned(PyArrayObject* x, PyObject* key, PyObject* value, PyArrayObject* y, int shares) {
    Place to;
    return is_written_plainly(x) && place_of(x, key, &to) && place_written(x, &to, value, y, shares);
}

/* `x[...] = y`, of arrays; -1 with an exception. */
static int copied_over(PyObject* x, PyObject* y) {
    PyArrayObject *to = (PyArrayObject*)x, *from = (PyArrayObject*)y;
    Place all;
    if (!PyArray_Check(x)) return PyErr_SetString(PyExc_TypeError, "what is written is no array"), -1;
    if (PyArray_CheckExact(x) && PyArray_CheckExact(y) && is_written_plainly(to) && place_whole(to, &all) && place_written(to, &all, y, from, 1)) return 0;
    return PyArray_CopyObject(to, y);
}

/* Whether tapes compute what is large, and elements of `y` can be copied to those of `x`: there is nothing to be told. */
static int large_copies(PyArrayObject* x, PyArrayObject* y, int lent) {
    return (lent || first_left > 0) && size_of(x) <= first_limit() && size_of(x) == size_of(y) && PyArray_CanCastSafely(PyArray_TYPE(y), PyArray_TYPE(x));
}

static PyObject *own_method, *one_object; /* `hand.owned_first`, and the number 1 */

/* Whether a key names all of an array, which has another value afterwards. */
static int is_all_of(PyObject* key) {
    if (PyTuple_CheckExact(key)) {
        for (Py_ssize_t k = PyTuple_GET_SIZE(key); k--;)
            if (!is_all_of(PyTuple_GET_ITEM(key, k))) return 0;
        return 1;
    }
    if (!PySlice_Check(key)) return key == Py_Ellipsis;
    return ((PySliceObject*)key)->start == Py_None && ((PySliceObject*)key)->stop == Py_None && (((PySliceObject*)key)->step == Py_None || ((PySliceObject*)key)->step == one_object);
}

/* Have the memory of the large array that `a` is, or is a part of, be its own, where so many elements of it are about to be written and tapes compute what is large: whether it is now; code
   of a program's may have run.  0, perhaps with an exception. */
static NOT_INLINED int large_owned(PyObject* a, npy_intp size, int lent) {
    PyObject *root = is_part(a) ? ((Cell*)a)->base : a, *found;
    int owned;
    if ((first_left <= 0 && !lent) || own_method == NULL || size <= limit_now() || size > first_limit() || ((Cell*)a)->readonly != Py_False || ((Cell*)root)->base != Py_None) return 0;
    found = PyObject_CallOneArg(own_method, root);
    owned = found == Py_True;
    Py_XDECREF(found);
    return owned;
}

/* `a[key] = value` in a large array that nothing else sees, of a number or of elements that exist (`y`; `lent`: in memory that may change, which is
   read now): 1 when done, 0 for Python to do, -1. */
static int large_setitem(PyObject* a, PyObject* key, PyObject* value, PyArrayObject* y, int lent) {
    PyArrayObject *to, *memory;
    PyObject* found;
    Cell *root, *written;
    int own, done = 0;
    if (((Cell*)a)->readonly != Py_False || !is_basic(key) || (to = large_memory(a, &root, &memory, &own)) == NULL || !own) return 0;
    PyArray_ENABLEFLAGS(to, NPY_ARRAY_WRITEABLE);
    Py_INCREF(to), Py_INCREF(value);
    written = writing_begin(a);
    if (assigned(to, key, value, y, 1)) {
        done = 1;
    } else if (y == NULL) {
        done = PyArray_Type.tp_as_mapping->mp_ass_subscript((PyObject*)to, key, value) < 0 ? -1 : 1;
    } else if ((found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject*)to, key)) == NULL) {
        done = -1;
    } else {
        if (PyArray_CheckExact(found) && (PyArray_SIZE((PyArrayObject*)found) <= limit_now() || large_copies((PyArrayObject*)found, y, lent)))
            done = same_place((PyArrayObject*)found, y) || PyArray_CopyObject((PyArrayObject*)found, value) == 0 ? 1 : -1;
        Py_DECREF(found);
    }
    writing_end(written);
    Py_DECREF(to), Py_DECREF(value);
    return done;
}

#endif
