/* Where the largest and the smallest elements lie: `argmax`, `argmin`.

   In: arrays in memory.  Out: positions, of the first where several are alike, of NaN the first one.  Promise: NULL, without an exception, where it is NumPy's to do. */

#ifndef LAZYNP_EXTREMES_H
#define LAZYNP_EXTREMES_H

#include "chains.h"

#define FEW_LOOKED_AT 128 /* elements, more are worth NumPy's vectors */
/* The first of the largest, or smallest, of few elements; of NaN the first one. */
#define POSITION(NAME, TYPE, OF) \
    static npy_intp NAME(const TYPE* x, npy_intp n) { \
        npy_intp at = 0; \
        for (npy_intp k = 1; k < n && x[at] == x[at]; k++) \
            if (!(x[at] OF x[k])) at = k; \
        return at; \
    }
POSITION(largest_double, double, >=)
POSITION(smallest_double, double, <=)
POSITION(largest_int64, npy_int64, >=)
POSITION(smallest_int64, npy_int64, <=)
static PyObject* position_of(PyArrayObject* x, int largest) {
    npy_intp n = size_of(x);
    if (n && n <= FEW_LOOKED_AT && PyArray_ISCARRAY_RO(x) && (PyArray_TYPE(x) == NPY_DOUBLE || PyArray_TYPE(x) == WHOLE)) {
        const void* at = PyArray_DATA(x);
        n = PyArray_TYPE(x) == WHOLE ? (largest ? largest_int64 : smallest_int64)(at, n) : (largest ? largest_double : smallest_double)(at, n);
        flags_clear(1); /* comparisons with NaN */
        return whole_new(n);
    }
    return PyArray_Return((PyArrayObject*)(largest ? PyArray_ArgMax : PyArray_ArgMin)(x, NPY_RAVEL_AXIS, NULL));
}

/* The first of the largest, or smallest, of each of `n` columns. */
#define COLUMNS_AT_ONCE 512 /* whose best so far stay in the first-level cache */
#define POSITIONS(NAME, TYPE, OF) \
    ORDERED_WIDE static void NAME(const char* from, npy_intp rows, npy_intp across, npy_intp n, npy_intp* to) { \
        TYPE best[COLUMNS_AT_ONCE]; \
        memcpy(best, from, (size_t)n * sizeof(TYPE)); \
        memset(to, 0, (size_t)n * sizeof(npy_intp)); \
        for (npy_intp k = 1; k < rows; k++) { \
            const TYPE* row = (const TYPE*)(from + k * across); \
            for (npy_intp j = 0; j < n; j++) { \
                TYPE x = row[j], before = best[j]; \
                int better = (x OF before) | ((x != x) & (before == before)); \
                best[j] = better ? x : before; \
                to[j] = better ? k : to[j]; \
            } \
        } \
    }
POSITIONS(columns_largest_double, double, >)
POSITIONS(columns_smallest_double, double, <)
POSITIONS(columns_largest_float, float, >)
POSITIONS(columns_smallest_float, float, <)
POSITIONS(columns_largest_int64, npy_int64, >)
POSITIONS(columns_smallest_int64, npy_int64, <)

typedef void (*ColumnPositions)(const char* from, npy_intp rows, npy_intp across, npy_intp n, npy_intp* to);
static ColumnPositions columns_of(int type, int largest) {
    switch (type) {
        case NPY_DOUBLE: return largest ? columns_largest_double : columns_smallest_double;
        case NPY_FLOAT: return largest ? columns_largest_float : columns_smallest_float;
        case WHOLE: return largest ? columns_largest_int64 : columns_smallest_int64;
        default: return NULL;
    }
}

/* `argmax`, or `argmin`, along an axis of numbers in C's order; no array of NumPy's is made for it. */
static PyArrayObject* positions_along(PyArrayObject* x, int axis, int largest) {
    int ndim = PyArray_NDIM(x), type = PyArray_TYPE(x), kept = 0;
    npy_intp dims[AXES], size = PyArray_SIZE(x), length, matrices = 1, columns = 1, *to;
    const char* from = PyArray_BYTES(x);
    ColumnPositions by = columns_of(type, largest);
    PyArray_ArgFunc* of_row;
    PyArrayObject* made;
    NPY_BEGIN_THREADS_DEF;
    if (axis < 0) axis += ndim;
    if (ndim < 2 || ndim > AXES || axis < 0 || axis >= ndim || size == 0 || !PyTypeNum_ISNUMBER(type) || PyTypeNum_ISCOMPLEX(type) || !plain_memory(x)) return NULL;
    for (int k = 0; k < ndim; k++) {
        if (k != axis) dims[kept++] = PyArray_DIM(x, k);
        if (k < axis) matrices *= PyArray_DIM(x, k);
        if (k > axis) columns *= PyArray_DIM(x, k);
    }
    of_row = largest ? PyDataType_GetArrFuncs(PyArray_DESCR(x))->argmax : PyDataType_GetArrFuncs(PyArray_DESCR(x))->argmin;
    if (columns == 1 ? of_row == NULL : by == NULL) return NULL;
    made = raw_new(kept, dims, NPY_INTP, size / PyArray_DIM(x, axis));
    if (made == NULL) return NULL;
    to = (npy_intp*)PyArray_DATA(made), length = PyArray_DIM(x, axis);
    Py_INCREF(x);
    NPY_BEGIN_THREADS_THRESHOLDED(size);
    for (npy_intp k = 0; k < matrices; k++, from += length * columns * PyArray_ITEMSIZE(x), to += columns) {
        if (columns == 1) {
            of_row((void*)from, length, to, x);
        } else {
            for (npy_intp j = 0; j < columns; j += COLUMNS_AT_ONCE)
                by(from + j * PyArray_ITEMSIZE(x), length, columns * PyArray_ITEMSIZE(x), columns - j < COLUMNS_AT_ONCE ? columns - j : COLUMNS_AT_ONCE, to + j);
        }
    }
    NPY_END_THREADS;
    Py_DECREF(x);
    flags_clear(1); /* comparisons with NaN */
    return made;
}

#endif
