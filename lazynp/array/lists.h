/* Arrays that are made of lists.

   In: lists and tuples of numbers, of arrays, and of such lists.  Out: the array that NumPy makes of them.  Promise: no code of a program's runs while a list is read; what holds
   anything else is left to NumPy. */

#ifndef LAZYNP_LISTS_H
#define LAZYNP_LISTS_H

#include "at_call.h"

static PyObject *axis_name, *dtype_name, *keepdims_name, *ddof_name, *out_name, *where_name;

/* Whether a list holds nothing but numbers, and such lists; `left` elements at most. */
static int of_numbers(PyObject* x, int depth, Py_ssize_t* left) {
    PyObject** items = PySequence_Fast_ITEMS(x);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
    if (n == 0 || (*left -= n) < 0) return 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject* item = items[k];
        if (is_number(item)) continue;
        if (!PyList_CheckExact(item) && !PyTuple_CheckExact(item)) return 0;
        if (depth == 4 || !of_numbers(item, depth + 1, left)) return 0;
    }
    return 1;
}

#define IS_ROW(X) (PyList_CheckExact(X) || PyTuple_CheckExact(X))

/* The items of lists or tuples in one another, of real, whole or logical numbers, from `*to` on; whether that is what they all are.  No code of a program's runs. */
static int items_into(PyObject* list, int type, const npy_intp* shape, int depth, char** to) {
    PyObject** items;
    if (!IS_ROW(list) || PySequence_Fast_GET_SIZE(list) != *shape) return 0;
    items = PySequence_Fast_ITEMS(list);
    for (npy_intp k = 0; k < *shape; k++) {
        if (depth > 1) {
            if (!items_into(items[k], type, shape + 1, depth - 1, to)) return 0;
        } else if (type == NPY_BOOL) {
            if (!PyBool_Check(items[k])) return 0;
            *(*to)++ = items[k] == Py_True;
        } else {
            if (!(type == NPY_DOUBLE ? real_of(items[k], (double*)*to) : whole_of(items[k], (npy_int64*)*to))) return 0;
            *to += 8;
        }
    }
    return 1;
}

/* A list or tuple of numbers, or of such of one length, as an array: NumPy asks each for the protocols that it might have.  NULL, without an exception, of all
   else: other numbers, arrays, and what is to have another dtype. */
static PyObject* of_items(PyObject* list, PyObject* dtype) {
    npy_intp shape[RAW_AXES], size = 1;
    PyObject* first = list;
    int ndim = 0, type;
    for (; IS_ROW(first); first = PySequence_Fast_ITEMS(first)[0]) {
        if (ndim == RAW_AXES || (shape[ndim] = PySequence_Fast_GET_SIZE(first)) == 0 || (size *= shape[ndim++]) > limit_now()) return NULL;
    }
    type = PyFloat_CheckExact(first) || IS_A(first, NPY_DOUBLE) ? NPY_DOUBLE : PyBool_Check(first) ? NPY_BOOL : PyLong_CheckExact(first) || IS_A(first, WHOLE) ? WHOLE : -1;
    if (type < 0) return NULL;
    if (dtype == (PyObject*)&PyFloat_Type || dtype == (PyObject*)NUMPYS(NPY_DOUBLE) || dtype == (PyObject*)raw_dtypes[NPY_DOUBLE]) {
        if (type == NPY_BOOL) return NULL;
        type = NPY_DOUBLE;
    } else if (dtype && !(dtype == (PyObject*)&PyLong_Type && type == WHOLE)) {
        return NULL;
    }
    for (int tries = 0; tries < 2; tries++, type = NPY_DOUBLE) { /* a real number may come after whole ones */
        PyArrayObject* made = raw_new(ndim, shape, type, size);
        char* to;
        if (made == NULL) return PyErr_Clear(), NULL;
        to = PyArray_BYTES(made);
        if (items_into(list, type, shape, ndim, &to)) return (PyObject*)made;
        Py_DECREF(made);
        if (type != WHOLE || dtype) return NULL;
    }
    return NULL;
}

/* The arrays of a list or tuple along a new first axis, where they have one dtype and one shape and lie in C's order; vectors also one after the other, or as
   columns.  NULL, without an exception, of all else.  No code of a program's runs. */
static PyObject* of_arrays(PyObject* list, int kind) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    PyObject** items = PySequence_Fast_ITEMS(list);
    PyArrayObject *first = count ? seen_of(items[0]) : NULL, *made;
    npy_intp dims[RAW_AXES], lengths[RAW_AXES - 1] = {0}, size = 0, rows = 0, bytes;
    int ndim = first ? PyArray_NDIM(first) : 0, type = first ? PyArray_TYPE(first) : -1, own;
    char* to;
    if (kind == ROWS_STACKED) kind = ndim > 1 ? JOINED_FLAT : STACKED;
    own = kind == JOINED_FLAT; /* axes of which each has its own length */
    if (ndim < 1 || ndim >= RAW_AXES || (kind == COLUMNS_STACKED && ndim > 1) || !IS_NUMERIC(type) || raw_dtypes[type] != PyArray_DESCR(first)) return NULL;
    memcpy(lengths, PyArray_DIMS(first), (size_t)ndim * sizeof(npy_intp));
    for (Py_ssize_t k = 0; k < count; k++) {
        PyArrayObject* x = seen_of(items[k]);
        if (x == NULL || PyArray_NDIM(x) != ndim || PyArray_TYPE(x) != type || !PyArray_ISCARRAY_RO(x)) return NULL;
        if (memcmp(PyArray_DIMS(x) + own, lengths + own, (size_t)(ndim - own) * sizeof(npy_intp))) return NULL;
        rows += PyArray_DIM(x, 0);
        if ((size += size_of(x)) > limit_now()) return NULL;
    }
    if (kind == JOINED_FLAT) memcpy(dims, lengths, sizeof(lengths)), dims[0] = rows;
    else if (kind == COLUMNS_STACKED) dims[0] = lengths[0], dims[1] = count;
    else dims[0] = count, memcpy(dims + 1, lengths, (size_t)ndim * sizeof(npy_intp));
    if ((made = raw_new(kind == JOINED_FLAT ? ndim : ndim + 1, dims, type, size)) == NULL) return PyErr_Clear(), NULL;
    bytes = PyArray_ITEMSIZE(made), to = PyArray_BYTES(made);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyArrayObject* x = seen_of(items[k]);
        if (kind == COLUMNS_STACKED) {
            column_put(to + k * bytes, PyArray_BYTES(x), lengths[0], count, bytes);
        } else {
            memcpy(to, PyArray_BYTES(x), (size_t)(size_of(x) * bytes));
            to += size_of(x) * bytes;
        }
    }
    return (PyObject*)made;
}

/* The array of a list of numbers, or of arrays and numbers; NULL, without an exception, where the function in Python must see to it. */
static PyObject* listed(PyObject* function, PyObject* x, PyObject* dtype) {
    Py_ssize_t left = limit_now();
    PyObject *found, *plain;
    Given given;
    if (PyArray_CheckExact(x) && dtype == NULL && foreign_of(x)) return foreign_cell((PyArrayObject*)x);
    if (!IS_LIST(x) || left == 0) return NULL;
    if (PyRange_Check(x)) {
        Py_ssize_t n = PyObject_Size(x);
        if (n < 0 || n > left || (plain = PySequence_List(x)) == NULL) return PyErr_Clear(), NULL;
        found = listed(function, plain, dtype);
        Py_DECREF(plain);
        return found;
    }
    if ((found = of_items(x, dtype)) || (dtype == NULL && (found = of_arrays(x, STACKED)))) return cell_of(found, NULL);
    given_begin(&given);
    plain = of_numbers(x, 0, &left) ? Py_NewRef(x) : arguments(x, &given, 0);
    given_end(&given);
    if (plain == NULL) return PyErr_Clear(), NULL;
    if (dtype) {
        PyObject* args[2] = {plain, dtype};
        found = PyObject_Vectorcall(function, args, 2, NULL);
    } else {
        found = PyArray_FromAny(plain, NULL, 0, 0, 0, NULL);
    }
    Py_DECREF(plain);
    if (found == NULL) PyErr_Clear(); /* it will be found again */
    else if (PyArray_CheckExact(found) && native_dtype((PyArrayObject*)found) && PyArray_SIZE((PyArrayObject*)found) <= limit_now())
        return cell_of(found, NULL);
    Py_XDECREF(found);
    return NULL;
}

#endif
