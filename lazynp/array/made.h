/* Arrays that are made of no array: zeros, one number, ranges, ones on a diagonal.

   In: lengths and numbers, as a program gives them.  Out: memory with NumPy's values, dtype and shape.  Promise: only what is plain is made here; everything
   else, and what is wrong, is NumPy's. */

#ifndef LAZYNP_MADE_H
#define LAZYNP_MADE_H

#include "items.h"

/* What says how many: a whole number of Python's or NumPy's; -1 of all others, and of what is negative.  No code of a program's runs. */
static npy_intp length_of(PyObject* x) {
    int whole = PyArray_IsScalar(x, Integer) && !PyType_HasFeature(Py_TYPE(x), Py_TPFLAGS_HEAPTYPE); /* none of a class derived from it */
    npy_intp length = PyLong_CheckExact(x) ? PyLong_AsSsize_t(x) : whole ? PyNumber_AsSsize_t(x, NULL) : -1;
    if (length == -1 && PyErr_Occurred()) PyErr_Clear();
    return length < 0 ? -1 : length;
}

static int is_shape(PyObject* x) { return PyTuple_CheckExact(x) || PyList_CheckExact(x); }

/* Whether a shape argument is plain and its array small. */
static int small_shape(PyObject* shape) {
    npy_intp size = 1, limit = limit_now();
    if (limit == 0) return 0;
    if (!is_shape(shape)) size = length_of(shape);
    for (Py_ssize_t k = 0; is_shape(shape) && k < PySequence_Fast_GET_SIZE(shape); k++) {
        npy_intp n = length_of(PySequence_Fast_GET_ITEM(shape, k));
        if (n < 0 || n > 1 << 20) return 0;
        if ((size *= n) > 1 << 20) return 0;
    }
    return size >= 0 && size <= limit;
}

/* Zeros of a shape, of a dtype or floats, to be read by macros alone; NULL, perhaps without an exception, where NumPy has to see to it. */
static PyObject* made_of(PyObject* shape, PyObject* dtype, int clear) {
    npy_intp dims[NPY_MAXDIMS];
    int ndim = is_shape(shape) ? (int)PySequence_Fast_GET_SIZE(shape) : 1;
    npy_intp bytes = 8;
    PyArray_Descr* descr = NULL;
    PyObject *before, *made;
    if (ndim > 8) return NULL;
    for (int k = 0; k < ndim; k++) bytes *= dims[k] = length_of(is_shape(shape) ? PySequence_Fast_GET_ITEM(shape, k) : shape);
    if (dtype == NULL) descr = PyArray_DescrFromType(NPY_DOUBLE);
    else if (!PyArray_DescrConverter(dtype, &descr)) return PyErr_Clear(), NULL;
    if (!PyTypeNum_ISNUMBER(descr->type_num) && !PyTypeNum_ISBOOL(descr->type_num)) {
        Py_DECREF(descr);
        return NULL;
    }
    bytes = bytes / 8 * PyDataType_ELSIZE(descr);
    if (ndim && ndim <= RAW_AXES && IS_NUMERIC(descr->type_num) && descr->type_num != NPY_LONGDOUBLE && descr->type_num != NPY_CLONGDOUBLE && raw_dtypes[descr->type_num] == descr && (!clear || bytes < POOL_CLEARED)) {
        PyArrayObject* plain = raw_new(ndim, dims, descr->type_num, bytes / PyDataType_ELSIZE(descr));
        Py_DECREF(descr);
        if (plain && clear) memset(PyArray_DATA(plain), 0, (size_t)bytes);
        return (PyObject*)plain;
    }
    before = pool_begin(bytes);
    made = PyArray_Zeros(ndim, dims, descr, 0);
    pool_end(before);
    return made;
}

static PyObject* zeros_of(PyObject* shape, PyObject* dtype) { return made_of(shape, dtype, 1); }

#define REPEATED 512 /* elements that are written one by one: the C library copies them by longer vectors than every processor has */

/* `n` times the same eight bytes. */
static void repeated(char* to, const void* from, npy_intp n) {
    npy_intp first = n < REPEATED ? n : REPEATED;
    for (npy_intp k = 0; k < first; k++) memcpy(to + k * 8, from, 8);
    for (npy_intp k = first; k < n; k += REPEATED) memcpy(to + k * 8, to, (size_t)(n - k < REPEATED ? n - k : REPEATED) * 8);
}

/* An array full of one number, or of ones, of the dtype that is wanted, if one is; NULL as for `zeros_of`. */
static PyObject* full_of(PyObject* shape, PyObject* value, PyObject* wanted) {
    int type = value == NULL || Py_TYPE(value) == &PyFloat_Type || IS_A(value, NPY_DOUBLE) ? NPY_DOUBLE : NPY_LONG;
    PyArray_Descr* descr = NULL;
    PyObject* dtype;
    PyArrayObject* made;
    Value number;
    if (wanted && !PyArray_DescrConverter2(wanted, &descr)) return PyErr_Clear(), NULL;
    if (descr) {
        type = PyArray_ISNBO(descr->byteorder) && (descr->type_num == NPY_DOUBLE || descr->type_num == NPY_LONG) ? descr->type_num : -1;
        Py_DECREF(descr);
        if (type < 0) return NULL;
    }
    if (value == NULL) type == NPY_DOUBLE ? (void)(number.d = 1) : (void)(number.l = 1);
    else if (!value_of(value, type, &number)) return NULL;
    dtype = (PyObject*)PyArray_DescrFromType(type);
    made = dtype ? (PyArrayObject*)made_of(shape, dtype, 0) : NULL;
    Py_XDECREF(dtype);
    if (made == NULL) return NULL;
    repeated(PyArray_DATA(made), type == NPY_DOUBLE ? (void*)&number.d : (void*)&number.l, PyArray_SIZE(made));
    return (PyObject*)made;
}

/* Ones on a diagonal: `(rows)`, `(rows, columns)`, either with `k=`; NULL, without an exception, where NumPy has to see to it. */
static PyArrayObject* eye_of(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    npy_intp dims[2], k = 0;
    PyArrayObject* made;
    if (n < 1 || n > 2 || named > 1 || (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "k"))) return NULL;
    dims[0] = length_of(args[0]), dims[1] = n == 2 && args[1] != Py_None ? length_of(args[1]) : dims[0];
    if (named && !PyLong_CheckExact(args[n])) return NULL;
    if (named && (k = PyLong_AsSsize_t(args[n])) == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
    if (k > 1 << 20 || k < -(1 << 20)) return NULL;
    if (dims[0] < 0 || dims[1] < 0 || dims[0] > 1 << 10 || dims[1] > 1 << 10) return NULL;
    if ((made = raw_new(2, dims, NPY_DOUBLE, dims[0] * dims[1])) == NULL) return PyErr_Clear(), NULL;
    memset(PyArray_DATA(made), 0, (size_t)(dims[0] * dims[1]) * sizeof(double));
    for (npy_intp row = k < 0 ? -k : 0; row < dims[0] && row + k < dims[1]; row++) ((double*)PyArray_DATA(made))[row * dims[1] + row + k] = 1;
    return made;
}

#define RANGE_MOST 65536 /* of more elements the call costs nothing */

/* A range of integers, or of floats as NumPy fills it: a start, and what the second element is further.  `args` were found to be small; NULL, without an
   exception, where NumPy has to see to it. */
static PyArrayObject* range_of(PyObject* const* args, Py_ssize_t n) {
    double limits[3] = {0, 0, 1}, length, delta;
    npy_intp size;
    PyArrayObject* made;
    int floats = 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        double* to = &limits[n == 1 ? 1 : k];
        if (PyFloat_CheckExact(args[k])) *to = PyFloat_AS_DOUBLE(args[k]), floats = 1;
        else if (PyLong_CheckExact(args[k])) *to = PyLong_AsDouble(args[k]);
        else return NULL;
    }
    delta = limits[1] - limits[0], length = delta / limits[2];
    if (length == 0 && delta != 0) return NULL;
    size = length > 0 ? (npy_intp)ceil(length) : 0;
    if (size > RANGE_MOST) return NULL;
    if ((made = raw_new(1, &size, floats ? NPY_DOUBLE : NPY_LONG, size)) == NULL) return PyErr_Clear(), NULL;
    if (floats) {
        double* to = PyArray_DATA(made);
        delta = (limits[0] + limits[2]) - limits[0];
        for (npy_intp k = 0; k < size; k++) to[k] = limits[0] + (double)k * delta;
        if (size > 1) to[1] = limits[0] + limits[2];
    } else {
        npy_long *to = PyArray_DATA(made), start = (npy_long)limits[0], step = (npy_long)limits[2];
        for (npy_intp k = 0; k < size; k++) to[k] = start + (npy_long)k * step;
    }
    return made;
}

/* `(start, stop, num)` of `linspace`, the last as `num=` or 50, as NumPy fills it: the view of an array, as NumPy's is; NULL as for `range_of`. */
static PyObject* linspace_of(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    double ends[2], step;
    npy_intp count = 50, stride = sizeof(double);
    PyObject *owner, *found;
    PyArrayObject* made;
    if (n < 2 || n + named > 3 || (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "num"))) return NULL;
    for (int k = 0; k < 2; k++) {
        if (PyFloat_CheckExact(args[k])) ends[k] = PyFloat_AS_DOUBLE(args[k]);
        else if (!PyLong_CheckExact(args[k])) return NULL;
        else if ((ends[k] = PyLong_AsDouble(args[k])) == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
        if (!(fabs(ends[k]) < (double)((int64_t)1 << 53))) return NULL; /* whole numbers below are floats */
    }
    if (n + named == 3) count = length_of(args[2]);
    if (count < 2 || count > RANGE_MOST) return NULL;
    step = (ends[1] - ends[0]) / (double)(count - 1);
    if (fabs(step) < DBL_MIN) return NULL; /* a step that underflows, or none */
    if ((made = raw_new(1, &count, NPY_DOUBLE, count)) == NULL) return PyErr_Clear(), NULL;
    for (npy_intp k = 0; k < count; k++) ((double*)PyArray_DATA(made))[k] = (double)k * step + ends[0];
    ((double*)PyArray_DATA(made))[count - 1] = ends[1];
    if ((owner = cell_of((PyObject*)made, NULL)) == NULL) return NULL;
    found = viewed(owner, made, 1, &count, &stride, PyArray_DATA(made));
    Py_DECREF(owner);
    return found;
}

#endif
