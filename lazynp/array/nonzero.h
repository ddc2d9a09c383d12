/* Where an array is not zero: `nonzero`, `flatnonzero`, `argwhere`, `where` of a condition alone.

   In: an array whose elements lie in C's order.  Out: for each axis the positions, as NumPy returns them; NULL, without an exception, where it
   is NumPy's to do.  Promise: the time does not depend on how often truth values change.

   The truth values are counted, 64 at a time.  Then positions along the last axis are computed block by block, eight at a time where the processor
   can compress a vector, and those that they have in common along the other axes are written beside them.  NumPy calls a function for each element
   of all but truth values along one axis. */

#ifndef LAZYNP_NONZERO_H
#define LAZYNP_NONZERO_H

#include "memory_read.h"

#define COLUMNS 512 /* of a block, whose positions lie in the cache */
#define POSITIONS_FROM 48 /* elements, of fewer NumPy is as fast */
#define SHORT_ROW 32 /* elements, fewer are looked at one by one */

#if defined(__GNUC__)
/* The truth values of elements in C's order (a new reference); NULL, perhaps with an exception, where NumPy has to say. */
static PyArrayObject* truths_of(PyArrayObject* x) {
    int type = PyArray_TYPE(x);
    Loop* loop;
    PyArrayObject* made;
    Value zero;
    if (type == NPY_BOOL) return (PyArrayObject*)Py_NewRef((PyObject*)x);
    loop = loop_of(&compare_loops[NE - LT], type);
    if (loop == NULL || loop->out != NPY_BOOL || (made = result_of(PyArray_NDIM(x), PyArray_DIMS(x), NPY_BOOL, PyArray_SIZE(x))) == NULL) return NULL;
    memset(&zero, 0, sizeof(zero));
    char* args[3] = {PyArray_BYTES(x), (char*)&zero, PyArray_BYTES(made)};
    npy_intp dims[1] = {PyArray_SIZE(x)}, steps[3] = {PyArray_ITEMSIZE(x), 0, 1};
    loop->function(args, dims, steps, loop->data);
    flags_clear(1); /* nothing is said of what is no number */
    return made;
}

/* One array for each axis: columns of one array of positions as NumPy's are, or each of its own (`apart`). */
static PyObject* positions_room(int ndim, npy_intp count, int apart, npy_intp** to, npy_intp* next) {
    npy_intp dims[2] = {count, ndim};
    PyArrayObject* all = apart ? NULL : result_of(2, dims, NPY_INTP, count * ndim);
    PyObject* found = all || apart ? PyTuple_New(ndim) : NULL;
    *next = all ? ndim : 1;
    for (int axis = 0; found && axis < ndim; axis++) {
        npy_intp size = sizeof(npy_intp), stride = *next * size;
        PyArrayObject* one;
        if (all) one = (PyArrayObject*)PyArray_New(&PyArray_Type, 1, &count, NPY_INTP, &stride, PyArray_BYTES(all) + axis * size, 0, NPY_ARRAY_BEHAVED, NULL);
        else one = result_of(1, &count, NPY_INTP, count);
        if (one && all && PyArray_SetBaseObject(one, Py_NewRef((PyObject*)all)) < 0) Py_CLEAR(one);
        if (one == NULL) Py_CLEAR(found);
        else PyTuple_SET_ITEM(found, axis, (PyObject*)one), to[axis] = (npy_intp*)PyArray_DATA(one);
    }
    Py_XDECREF(all);
    return found;
}

/* The positions of what is true in a block, from `first` on, to `to`, where there is room for a vector more; how many they are. */
static inline __attribute__((always_inline)) npy_intp block_positions_by(const char* mask, npy_intp n, npy_intp first, npy_intp* to) {
    npy_intp count = 0;
    for (npy_intp k = 0; k < n; k++) to[count] = first + k, count += mask[k] != 0;
    return count;
}
#ifdef HAS_COMPRESS
IN_COMPRESS static npy_intp block_positions_vectors(const char* mask, npy_intp n, npy_intp first, npy_intp* to) {
    const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), next = _mm512_set1_epi64(8);
    npy_intp* past = to;
    for (npy_intp done = 0; done < n; done += TRUTHS) {
        uint64_t left = truths(mask + done, n - done < TRUTHS ? n - done : TRUTHS);
        __m512i numbers = _mm512_add_epi64(_mm512_set1_epi64(first + done), lanes);
        for (; left; left >>= 8, numbers = _mm512_add_epi64(numbers, next)) {
            _mm512_storeu_si512(past, _mm512_maskz_compress_epi64((__mmask8)(left & 255), numbers));
            past += __builtin_popcountll(left & 255);
        }
    }
    return past - to;
}
#endif
static npy_intp block_positions(const char* mask, npy_intp n, npy_intp first, npy_intp* to) {
#ifdef HAS_COMPRESS
    if (n >= TRUTHS && compress_used(sizeof(npy_intp))) return block_positions_vectors(mask, n, first, to);
#endif
    return block_positions_by(mask, n, first, to);
}

/* Write the positions of one row, `at[0]` to `at[ndim - 2]` being those of the row; 0 where there are more of them than were counted. */
static inline int row_positions(const char* mask, npy_intp n, int ndim, const npy_intp* at, npy_intp** to, npy_intp next, npy_intp* room) {
    npy_intp some[COLUMNS + 8], count;
    for (npy_intp first = 0; first < n; first += COLUMNS) {
        npy_intp length = n - first < COLUMNS ? n - first : COLUMNS;
        count = n < SHORT_ROW ? block_positions_by(mask, n, 0, some) : block_positions(mask + first, length, first, some);
        if (count > *room) return 0;
        if (next == 1) memcpy(to[ndim - 1], some, (size_t)count * sizeof(npy_intp));
        else for (npy_intp k = 0; k < count; k++) to[ndim - 1][k * next] = some[k];
        for (int axis = 0; axis < ndim - 1; axis++)
            for (npy_intp k = 0; k < count; k++) to[axis][k * next] = at[axis];
        for (int axis = 0; axis < ndim; axis++) to[axis] += count * next;
        *room -= count;
    }
    return 1;
}

/* The same of a matrix with short rows, as one row: which one a position lies in is mostly that of the one before, or the next. */
static int matrix_positions(const char* mask, npy_intp size, npy_intp length, npy_intp** to, npy_intp next, npy_intp* room) {
    npy_intp some[COLUMNS + 8], row = 0, past = length, *rows = to[0], *columns = to[1];
    for (npy_intp first = 0; first < size; first += COLUMNS) {
        npy_intp count = block_positions(mask + first, size - first < COLUMNS ? size - first : COLUMNS, first, some);
        if (count > *room) return 0;
        for (npy_intp k = 0; k < count; k++, rows += next, columns += next) {
            npy_intp on = some[k] >= past;
            row += on, past += on * length;
            if (some[k] >= past) row = some[k] / length, past = (row + 1) * length;
            *rows = row, *columns = some[k] - past + length;
        }
        *room -= count;
    }
    return 1;
}

static PyObject* positions_of(PyArrayObject* x, int apart) {
    int ndim = PyArray_NDIM(x);
    npy_intp at[AXES] = {0}, *to[AXES], next, room, length;
    int fit = 1; /* there were no more than were counted */
    PyArrayObject* mask;
    PyObject* found;
    Chosen of = {.rows = 1, .length = PyArray_SIZE(x)};
    if (ndim == 0 || ndim > AXES || of.length < POSITIONS_FROM || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_ISBEHAVED_RO(x) || !IS_NUMERIC(PyArray_TYPE(x))) return NULL;
    if (sizeof(npy_intp) != 8 || (mask = truths_of(x)) == NULL) return NULL;
    room = truths_count(mask, &of), length = PyArray_DIM(x, ndim - 1);
    found = positions_room(ndim, room, apart, to, &next);
    if (found && ndim == 2 && length < SHORT_ROW) fit = matrix_positions(PyArray_BYTES(mask), of.length, length, to, next, &room);
    else for (npy_intp row = 0; found && fit && row < of.length / length; row++) {
        fit = row_positions(PyArray_BYTES(mask) + row * length, length, ndim, at, to, next, &room);
        for (int axis = ndim - 2; axis >= 0 && ++at[axis] == PyArray_DIM(x, axis); axis--) at[axis] = 0;
    }
    Py_DECREF(mask);
    if (found && (room || !fit)) Py_CLEAR(found); /* another thread has changed them since they were counted, of which NumPy tells */
    return found;
}
#else
static PyObject* positions_of(PyArrayObject* x, int apart) { return (void)x, (void)apart, NULL; }
#endif

/* For Python, of an array of NumPy's: an array of its own for each axis, or None. */
static PyObject* positions_apart(PyObject* x) {
    PyObject* found = PyArray_CheckExact(x) ? positions_of((PyArrayObject*)x, 1) : NULL;
    return found || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

#endif
