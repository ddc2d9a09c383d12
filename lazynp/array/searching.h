/* Where numbers belong among sorted ones.

   In: doubles, or whole numbers of 64 bits, in order, and others.  Out: NumPy's indices.  Promise: what is sought next is looked for from where the last one
   was found, if it is not smaller: numbers that are in order themselves take a few steps each; no index lies outside.  What is not in order is left to
   NumPy, which finds something there, too. */

#ifndef LAZYNP_SEARCHING_H
#define LAZYNP_SEARCHING_H

#include "numbers.h"
#include "pool.h"

/* NaNs come last, and are equal. */
#define DOUBLE_BEFORE(p, q) ((p) < (q) || ((q) != (q) && (p) == (p)))
#define WHOLE_BEFORE(p, q) ((p) < (q))
#define SORTED_SHARE 4 /* numbers for each that is sought, at most: it takes a nanosecond of each to see whether they are in order */
#define GALLOP 8 /* the first step from where the last one was found */

/* The first of `n` sorted numbers that is not before `v`, or (right) that `v` is before. */
#define SEARCH(NAME, TYPE, BEFORE) \
    static int NAME##_in_order(const TYPE* a, npy_intp n) { \
        int odd = 0; \
        for (npy_intp k = 1; k < n; k++) odd |= BEFORE(a[k], a[k - 1]); \
        return !odd; \
    } \
    static void NAME(const TYPE* a, npy_intp n, const TYPE* keys, npy_intp count, int right, npy_intp* to) { \
        npy_intp last = 0; \
        for (npy_intp k = 0; k < count; k++) { \
            TYPE v = keys[k]; \
            npy_intp low = 0, length = n, step = GALLOP; \
            if (k && !BEFORE(v, keys[k - 1])) { \
                low = last, length = n - last; \
                while (step < length && (right ? !BEFORE(v, a[low + step - 1]) : BEFORE(a[low + step - 1], v))) low += step, length -= step, step *= 2; \
                if (step < length) length = step - 1; \
            } \
            while (length > 0) { /* what is sought is at `low`, or one of `length` behind it */ \
                npy_intp half = (length + 1) / 2; \
                int on = right ? !BEFORE(v, a[low + half - 1]) : BEFORE(a[low + half - 1], v); \
                low += on ? half : 0; \
                length = on ? length - half : half - 1; \
            } \
            to[k] = last = low; \
        } \
    }
SEARCH(search_double, double, DOUBLE_BEFORE)
SEARCH(search_whole, npy_int64, WHOLE_BEFORE)
#undef SEARCH

/* Where one number belongs, by the comparisons that NumPy makes: so it is found among numbers that are not in order, too. */
#define SEARCH_ONE(NAME, TYPE, BEFORE) \
    static npy_intp NAME(const TYPE* a, npy_intp n, TYPE v, int right) { \
        npy_intp low = 0, high = n; \
        while (low < high) { \
            npy_intp middle = low + ((high - low) >> 1); \
            if (right ? !BEFORE(v, a[middle]) : BEFORE(a[middle], v)) low = middle + 1; \
            else high = middle; \
        } \
        return low; \
    }
SEARCH_ONE(search_one_double, double, DOUBLE_BEFORE)
SEARCH_ONE(search_one_whole, npy_int64, WHOLE_BEFORE)
#undef SEARCH_ONE

/* `x.searchsorted(v)` of a number of the same type; -1 where NumPy has to see to it. */
static npy_intp searched_one(PyArrayObject* x, PyObject* v, int right) {
    int overflow = 0;
    long long whole;
    if (PyArray_NDIM(x) != 1 || !PyArray_ISCARRAY_RO(x)) return -1;
    if (PyArray_TYPE(x) == NPY_DOUBLE) {
        if (!PyFloat_CheckExact(v) && !IS_A(v, NPY_DOUBLE)) return -1;
        return search_one_double((const double*)PyArray_DATA(x), PyArray_DIM(x, 0), PyFloat_AS_DOUBLE(v), right); /* NumPy's doubles begin as Python's */
    }
    if (PyArray_TYPE(x) != NPY_INT64 || !(PyLong_CheckExact(v) || IS_A(v, NPY_INT64))) return -1;
    whole = PyLong_CheckExact(v) ? PyLong_AsLongLongAndOverflow(v, &overflow) : ((PyInt64ScalarObject*)v)->obval;
    return overflow ? -1 : search_one_whole((const npy_int64*)PyArray_DATA(x), PyArray_DIM(x, 0), whole, right);
}

/* `x.searchsorted(y)` of such arrays; NULL, without an exception, where NumPy has to see to it. */
static PyObject* searched(PyArrayObject* x, PyArrayObject* y, int right) {
    int type = PyArray_TYPE(x);
    npy_intp n, count;
    const void *sorted, *keys;
    PyArrayObject* made;
    void* to;
    if ((type != NPY_DOUBLE && type != NPY_INT64) || PyArray_TYPE(y) != type || PyArray_NDIM(x) != 1 || PyArray_NDIM(y) == 0) return NULL;
    if (!PyArray_ISCARRAY_RO(x) || !PyArray_ISCARRAY_RO(y)) return NULL;
    if (PyArray_SIZE(x) / SORTED_SHARE > PyArray_SIZE(y)) return NULL;
    if (type == NPY_DOUBLE ? !search_double_in_order((const double*)PyArray_DATA(x), PyArray_SIZE(x)) : !search_whole_in_order((const npy_int64*)PyArray_DATA(x), PyArray_SIZE(x))) return NULL;
    made = (PyArrayObject*)pool_array(PyArray_NDIM(y), PyArray_DIMS(y), PyArray_DescrFromType(NPY_INTP), PyArray_SIZE(y));
    if (made == NULL) return NULL;
    n = PyArray_SIZE(x), count = PyArray_SIZE(y), sorted = PyArray_DATA(x), keys = PyArray_DATA(y), to = PyArray_DATA(made);
    Py_BEGIN_ALLOW_THREADS /* the caller holds the memory; the shapes may change meanwhile */
    if (type == NPY_DOUBLE) search_double(sorted, n, keys, count, right, to);
    else search_whole(sorted, n, keys, count, right, to);
    Py_END_ALLOW_THREADS
    return (PyObject*)made;
}

#endif
