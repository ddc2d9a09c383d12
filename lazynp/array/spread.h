/* Variances and standard deviations of float64: NumPy's steps, without the way through its functions.

   In: an array, and an axis or none.  Out: what `numpy.var` and `numpy.std` compute of it, to the bit: the sum, the mean, the squares of what is apart
   from it, their sum.  Promise: where a floating-point error is raised that somebody minds, or where it is not plain, there is no result. */

#ifndef LAZYNP_SPREAD_H
#define LAZYNP_SPREAD_H

#include "slots.h"

/* The squares of what `x` is apart from `mean`, a number or an array; NULL, perhaps without an exception, where NumPy has to see to it. */
static PyArrayObject* squares_apart(PyArrayObject* x, PyObject* mean) {
    Loop* loop = loop_of(&binary_loops[MUL], NPY_DOUBLE);
    PyArrayObject* made = loop ? (PyArrayObject*)direct_pair(&binary_loops[SUB], (PyObject*)x, mean, PyArray_CheckExact(mean) ? 3 : 1, 0) : NULL;
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
static PyObject* spread_of(Reduction* sums, PyArrayObject* x, PyObject* axis, double ddof, int root) {
    double count = (double)PyArray_SIZE(x);
    PyArrayObject *mean = NULL, *apart, *found = NULL;
    PyObject* number;
    Value sum;
    if (PyArray_TYPE(x) != NPY_DOUBLE || PyArray_NDIM(x) == 0 || count == 0) return NULL;
    if (axis == Py_None) {
        if (count <= ddof || !direct_reduce(sums, x, &sum) || !divide_all(&sum.d, 1, count, 0) || (number = PyFloat_FromDouble(sum.d)) == NULL) return NULL;
        apart = squares_apart(x, number);
        Py_DECREF(number);
        if (apart && direct_reduce(sums, apart, &sum) && divide_all(&sum.d, 1, count - ddof, root)) found = (PyArrayObject*)real_new(sum.d);
        Py_XDECREF(apart);
        return (PyObject*)found;
    }
    if ((mean = (PyArrayObject*)direct_axis(sums, x, axis, 1)) == NULL) return NULL;
    count /= (double)PyArray_SIZE(mean);
    apart = count > ddof && divide_all((double*)PyArray_DATA(mean), PyArray_SIZE(mean), count, 0) ? squares_apart(x, (PyObject*)mean) : NULL;
    if (apart) found = (PyArrayObject*)direct_axis(sums, apart, axis, 0);
    if (found && !divide_all((double*)PyArray_DATA(found), PyArray_SIZE(found), count - ddof, root)) Py_CLEAR(found);
    Py_XDECREF(apart), Py_DECREF(mean);
    return (PyObject*)found;
}

#endif
