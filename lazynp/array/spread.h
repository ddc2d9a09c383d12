/* Variances and standard deviations of float64, and whether numbers are close: NumPy's steps, without the way through its functions.

   In: arrays, and an axis or none.  Out: what `numpy.var` and `numpy.std` compute of one, to the bit: the sum, the mean, the squares of what is apart
   from it, their sum; what `numpy.allclose` says of two.  Promise: where a floating-point error is raised that is not ignored, or where it is not plain,
   there is no result. */

#ifndef LAZYNP_SPREAD_H
#define LAZYNP_SPREAD_H

#include <float.h>
#include "slots.h"
#include "sums.h"

/* The squares of what `x` is apart from `mean`, a number; NULL, perhaps without an exception, where NumPy has to see to it. */
static PyArrayObject* squares_apart(PyArrayObject* x, PyObject* mean) {
    Loop* loop = loop_of(&binary_loops[MUL], NPY_DOUBLE);
    PyArrayObject* made = loop ? (PyArrayObject*)direct_minded(&binary_loops[SUB], (PyObject*)x, mean, 1, NULL, ENDS) : NULL;
    char* to = made ? PyArray_BYTES(made) : NULL;
    if (made && PyArray_TYPE(made) == NPY_DOUBLE && !minds(long2(loop, NPY_DOUBLE, to, to, to, PyArray_SIZE(made), 8, 8, 8))) return made;
    Py_XDECREF(made);
    return NULL;
}

/* Divide each by a number, and take the root; 0 where an error is raised. */
static int divide_all(double* to, npy_intp n, double by, int root) {
    flags_clear(1);
    for (npy_intp k = 0; k < n; k++) to[k] /= by;
    for (npy_intp k = 0; root && k < n; k++) to[k] = sqrt(to[k]);
    return !minds(flags_raised(1));
}

/* The variance of `x`, or (`root`) its root, over an axis (None: all) of which `ddof` are taken off; NULL as above. */
static PyObject* spread_of(Reduction* sums, PyArrayObject* x, PyObject* axis, int keeps, double ddof, int root) {
    double count = (double)PyArray_SIZE(x);
    PyArrayObject *apart, *found = NULL;
    PyObject* number;
    Value sum;
    if (axis != Py_None) {
        npy_intp number = PyLong_AsSsize_t(axis);
        if (number == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
        return (PyObject*)axis_spread(sums, x, number, keeps, 0, root ? DEVIATIONS : VARIANCES, ddof);
    }
    if (PyArray_TYPE(x) == NPY_DOUBLE && PyArray_NDIM(x) && count && !keeps) {
        if (count <= ddof || (!direct_reduce(sums, x, &sum) && (PyErr_Occurred() || !sum_whole(sums, x, NULL, &sum))) || !divide_all(&sum.d, 1, count, 0)) return NULL;
        if (sum_whole(sums, x, &sum.d, &sum)) return divide_all(&sum.d, 1, count - ddof, root) ? real_new(sum.d) : NULL;
        if (PyErr_Occurred() || PyArray_SIZE(x) > LONGEST || (number = PyFloat_FromDouble(sum.d)) == NULL) return NULL;
        apart = squares_apart(x, number);
        Py_DECREF(number);
        if (apart && direct_reduce(sums, apart, &sum) && divide_all(&sum.d, 1, count - ddof, root)) found = (PyArrayObject*)real_new(sum.d);
        Py_XDECREF(apart);
    }
    return (PyObject*)found;
}

/* Which of `n` numbers are close to others. */
static void close_each(const double* x, npy_intp sx, const double* y, npy_intp sy, npy_intp n, double rtol, double atol, npy_bool* to) {
    for (npy_intp k = 0; k < n; k++, x += sx, y += sy) {
        double apart = fabs(*x - *y), share = rtol * fabs(*y), most = atol + share;
        to[k] = (apart <= most && fabs(*y) <= DBL_MAX) || *x == *y;
    }
}

#define CLOSE_PIECE 1024
/* What `numpy.isclose` (`all`: `allclose`) says of arrays in memory, of an array and a number, or of two numbers; NULL, perhaps without an exception, where NumPy
   has to see to it. */
static PyObject* close_of(PyObject* a, PyObject* b, double rtol, double atol, int all) {
    PyArrayObject *x = memory_of(a), *y = memory_of(b), *like = x ? x : y, *made = NULL;
    npy_bool piece[CLOSE_PIECE], *to;
    const double *p, *q;
    double left = 0, right = 0;
    npy_intp n = like ? PyArray_SIZE(like) : 1;
    int close = 1;
    if ((x && (PyArray_TYPE(x) != NPY_DOUBLE || !plain_memory(x) || PyArray_NDIM(x) == 0)) || (y && (PyArray_TYPE(y) != NPY_DOUBLE || !plain_memory(y) || PyArray_NDIM(y) == 0))) return NULL;
    if ((x && y && !PyArray_SAMESHAPE(x, y)) || (!x && !real_of(a, &left)) || (!y && !real_of(b, &right))) return NULL;
    if (!all && like && (made = result_like(like, NPY_BOOL)) == NULL) return NULL;
    p = x ? (const double*)PyArray_DATA(x) : &left, q = y ? (const double*)PyArray_DATA(y) : &right;
    flags_clear(1);
    for (npy_intp at = 0; at < n && close; at += CLOSE_PIECE) {
        npy_intp count = n - at < CLOSE_PIECE ? n - at : CLOSE_PIECE;
        to = made ? (npy_bool*)PyArray_DATA(made) + at : piece;
        close_each(x ? p + at : p, x != NULL, y ? q + at : q, y != NULL, count, rtol, atol, to);
        if (!made) close = memchr(to, 0, (size_t)count) == NULL;
    }
    if (minds(flags_raised(1) & ~ERROR_INVALID)) { /* NumPy ignores what is invalid here */
        Py_XDECREF(made);
        return NULL;
    }
    if (made) return cell_of((PyObject*)made, NULL);
    return all ? PyBool_FromLong(close) : Py_NewRef(close ? PyArrayScalar_True : PyArrayScalar_False);
}

#endif
