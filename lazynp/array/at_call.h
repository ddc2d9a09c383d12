/* What functions give that are computed at their call: reshapes, conversions, outer products, joins, reductions of all elements.

   In: arrays in memory, and numbers.  Out: NumPy's results.  Promise: NULL, mostly without an exception, where NumPy, or the function in Python, has to see to it. */

#ifndef LAZYNP_AT_CALL_H
#define LAZYNP_AT_CALL_H

#include "function_table.h"

/* `x` with a shape of plain integers; NULL, perhaps without an exception, where NumPy has to see to it. */
static PyObject* reshaped(PyArrayObject* x, PyObject* const* lengths, Py_ssize_t n) {
    npy_intp dims[8];
    PyArray_Dims shape = {dims, 0};
    PyObject* found;
    if (n == 1 && PyTuple_CheckExact(lengths[0])) n = PyTuple_GET_SIZE(lengths[0]), lengths = PySequence_Fast_ITEMS(lengths[0]);
    if (n > 8) return NULL;
    for (; shape.len < n; shape.len++) {
        if (!PyLong_CheckExact(lengths[shape.len])) return NULL;
        dims[shape.len] = PyLong_AsSsize_t(lengths[shape.len]);
        if (dims[shape.len] == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
    }
    Py_INCREF(x);
    found = PyArray_Newshape(x, &shape, NPY_CORDER);
    Py_DECREF(x);
    return found;
}

/* The same of large arrays. */
typedef struct {
    PyObject* const* lengths;
    Py_ssize_t n;
} Lengths;
static PyObject* view_reshaped(PyArrayObject* x, const void* with) { return reshaped(x, ((const Lengths*)with)->lengths, ((const Lengths*)with)->n); }
#define CALLED_MOST 6 /* arguments */
/* A function of NumPy's, and its arguments, of which the first is the array. */
typedef struct {
    PyObject* function;
    PyObject* const* args;
    Py_ssize_t n;
} Called;
static PyObject* view_called(PyArrayObject* x, const void* with) {
    const Called* call = with;
    PyObject *args[CALLED_MOST] = {(PyObject*)x}, *found;
    memcpy(args + 1, call->args + 1, (size_t)(call->n - 1) * sizeof(PyObject*));
    if ((found = PyObject_Vectorcall(call->function, args, (size_t)call->n, NULL)) == NULL && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); /* Python words it */
    if (found && PyArray_CheckExact(found) && PyArray_SIZE((PyArrayObject*)found) == 0) Py_CLEAR(found); /* which lies nowhere */
    return found;
}
static PyObject* view_direct(PyArrayObject* x, const void* with) { return (*(const Direct*)with)(x); }

/* The values of `x` as a dtype of ours; NULL as for `reshaped`. */
static PyObject* converted(PyArrayObject* x, PyObject* dtype) {
    PyArray_Descr* descr = NULL;
    PyObject* made;
    if (!(PyType_Check(dtype) || PyObject_TypeCheck(dtype, &PyArrayDescr_Type))) return NULL;
    Py_INCREF(x); /* a class may have a dtype that it computes */
    made = PyArray_DescrConverter(dtype, &descr) ? (PyObject*)room_like(x, descr) : (PyErr_Clear(), NULL);
    if (made && !native_dtype((PyArrayObject*)made)) Py_CLEAR(made);
    if (made && PyArray_CopyInto((PyArrayObject*)made, x) < 0) Py_CLEAR(made);
    Py_DECREF(x);
    return made;
}

/* `numpy.outer` of two arrays; NULL as for `reshaped`. */
static PyObject* outer_of(PyArrayObject* x, PyArrayObject* y) {
    npy_intp column[2] = {-1, 1}, row[2] = {1, -1};
    PyArray_Dims left = {column, 2}, right = {row, 2};
    PyObject *found = NULL, *p, *q;
    if (PyArray_SIZE(x) == 0 || PyArray_SIZE(y) == 0) return NULL;
    Py_INCREF(x), Py_INCREF(y);
    p = PyArray_Newshape(x, &left, NPY_CORDER);
    q = p ? PyArray_Newshape(y, &right, NPY_CORDER) : NULL;
    if (q) found = direct2(&binary_loops[MUL], p, q, 3);
    if (q && found == NULL && !PyErr_Occurred()) found = numpys[MUL](p, q);
    Py_XDECREF(p), Py_XDECREF(q), Py_DECREF(x), Py_DECREF(y);
    return found;
}

/* What `x`, an item of a list, has to be like to be one of those that are joined: a small array in memory of one axis, its elements side by side. */
static inline PyArrayObject* joint(PyObject* x, int type) {
    PyArrayObject* memory = memory_of(x);
    int fine = memory && PyArray_NDIM(memory) == 1 && PyArray_TYPE(memory) == type && PyArray_ISCARRAY_RO(memory);
    return fine ? memory : NULL;
}

/* `concatenate` of a list of many, or few, arrays of one axis and one dtype; NULL as for `reshaped`. */
static PyObject* joined(PyObject* list) {
    Py_ssize_t n = PyList_CheckExact(list) || PyTuple_CheckExact(list) ? PySequence_Fast_GET_SIZE(list) : 0;
    PyArrayObject *first = n ? memory_of(PySequence_Fast_GET_ITEM(list, 0)) : NULL, *made, *x;
    npy_intp size = 0, at = 0, length;
    int type;
    if (first == NULL) return NULL;
    type = PyArray_TYPE(first);
    for (Py_ssize_t k = 0; k < n; k++) {
        if ((x = joint(PySequence_Fast_GET_ITEM(list, k), type)) == NULL) return NULL;
        size += PyArray_DIM(x, 0);
    }
    if ((made = result_of(1, &size, type, size)) == NULL) return NULL;
    for (Py_ssize_t k = 0; k < n && k < PySequence_Fast_GET_SIZE(list); k++) { /* to allocate memory may run code, which may change them */
        if ((x = joint(PySequence_Fast_GET_ITEM(list, k), type)) == NULL || at + (length = PyArray_DIM(x, 0)) > size) break;
        memcpy(PyArray_BYTES(made) + at * PyArray_ITEMSIZE(made), PyArray_BYTES(x), (size_t)PyArray_NBYTES(x));
        at += length;
    }
    if (at < size) Py_CLEAR(made);
    return (PyObject*)made;
}

/* Whether a range between Python's numbers is a small array. */
static int small_range(PyObject* const* args, Py_ssize_t n) {
    double limits[3] = {0, 0, 1}, length;
    if (n > 3) return 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        double* to = &limits[n == 1 ? 1 : k];
        if (PyFloat_Check(args[k])) *to = PyFloat_AS_DOUBLE(args[k]); /* or NumPy's */
        else if (PyArray_IsScalar(args[k], Integer) && length_of(args[k]) >= 0) *to = (double)length_of(args[k]);
        else if (!PyLong_CheckExact(args[k])) return 0;
        else if ((*to = PyLong_AsDouble(args[k])) == -1 && PyErr_Occurred()) return PyErr_Clear(), 0;
        if (!(fabs(*to) < 1 << 30)) return 0;
    }
    if (limits[2] == 0) return 0;
    length = ceil((limits[1] - limits[0]) / limits[2]);
    return length <= limit_now();
}

/* Whether a space between two numbers, or arrays of them, is a small array. */
static int spaced_little(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject* steps = n > 2 ? args[2] : NULL;
    Py_ssize_t number = 50;
    double extent = 1; /* of the limits, of which there may be many */
    for (int k = 0; k < 2; k++) {
        PyArrayObject* x = memory_of(args[k]);
        if (!x && !is_number(args[k])) return 0;
        if (x) extent *= (double)PyArray_SIZE(x);
    }
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), "num") == 0) steps = args[n + k];
    if (steps) number = length_of(steps);
    return number >= 0 && (double)number * extent <= (double)limit_now();
}

/* A bound of the elements of what a growing function makes of an argument: the product of all there is.  What lies deeper than NumPy's arrays have
   axes, a list that holds itself, has none. */
static double extent_of(PyObject* x, int depth) {
    double extent = 1;
    PyArrayObject* memory;
    if (PyLong_CheckExact(x)) {
        extent = fabs(PyLong_AsDouble(x));
        if (PyErr_Occurred()) PyErr_Clear(), extent = HUGE_VAL;
    } else if (PyArray_IsScalar(x, Integer)) {
        extent = length_of(x) < 0 ? HUGE_VAL : (double)length_of(x);
    } else if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        if (depth > NPY_MAXDIMS) return HUGE_VAL;
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(x) && extent < 1e18; k++) extent *= extent_of(PySequence_Fast_GET_ITEM(x, k), depth + 1);
    } else if ((memory = memory_of(x)) || (PyArray_CheckExact(x) && (memory = (PyArrayObject*)x))) {
        extent = (double)PyArray_SIZE(memory);
    } else if (Py_TYPE(x) == array_type) {
        extent = HUGE_VAL;
    }
    return extent < 1 ? 1 : extent;
}

static int grows_little(PyObject* const* args, Py_ssize_t n) {
    double extent = 1;
    for (Py_ssize_t k = 0; k < n; k++) extent *= extent_of(args[k], 0);
    return extent <= (double)limit_now();
}

/* The number that is the answer of a reduction of `size` elements; NULL, perhaps without an exception, where it is NumPy's to find. */
#define HAS_MEAN(TYPE) ((TYPE) == NPY_DOUBLE || (TYPE) == NPY_FLOAT) /* of which the sum in its own type, divided, is the mean */
static PyObject* number_reduced(const Function* self, Value* value, int type, npy_intp size) {
    PyArray_Descr* dtype;
    PyObject* found;
    if (self->kind == MEAN) {
        if (!HAS_MEAN(type)) return NULL;
        flags_clear(1);
        if (type == NPY_DOUBLE) value->d /= (double)size;
        else value->f = (float)((double)value->f / (double)size); /* as NumPy divides by a whole number */
        if (flags_raised(1)) return NULL;
    }
    dtype = PyArray_DescrFromType(type);
    found = number_read(value, dtype, NULL);
    Py_DECREF(dtype);
    return found;
}

/* The sum of whole numbers as NumPy's `mean` has it: pieces of so many elements become doubles, and are added one after the other. */
static int sum_of_integers(PyArrayObject* x, double* total) {
    static double piece[LONGEST]; /* no other thread runs meanwhile */
    const char* p = PyArray_BYTES(x);
    *total = 0;
    for (npy_intp left = PyArray_SIZE(x), n; left; left -= n, p += n * PyArray_ITEMSIZE(x)) {
        n = left < LONGEST ? left : LONGEST;
#define PIECE(CODE, TYPE) case CODE: for (npy_intp k = 0; k < n; k++) piece[k] = (double)((const TYPE*)p)[k]; break
        switch (PyArray_TYPE(x)) {
            PIECE(NPY_BYTE, npy_byte); PIECE(NPY_UBYTE, npy_ubyte); PIECE(NPY_SHORT, npy_short); PIECE(NPY_USHORT, npy_ushort);
            PIECE(NPY_INT, npy_int); PIECE(NPY_UINT, npy_uint); PIECE(NPY_LONG, npy_long); PIECE(NPY_ULONG, npy_ulong);
            default: return 0;
        }
#undef PIECE
        *total += row_sum_double(piece, n, 0);
    }
    return 1;
}

/* A reduction of all elements, by macros alone; NULL, perhaps without an exception, where it is NumPy's to do. */
static PyObject* reduced_whole(Function* self, PyArrayObject* x) {
    Value value;
    if (self->kind == MEAN && PyTypeNum_ISINTEGER(PyArray_TYPE(x)))
        return plain_memory(x) && PyArray_SIZE(x) && PyArray_SIZE(x) <= limit_now() && sum_of_integers(x, &value.d) ? real_new(value.d / (double)PyArray_SIZE(x)) : NULL;
    if (!direct_reduce(self->reduction, x, &value) && (PyErr_Occurred() || !sum_whole(self->reduction, x, NULL, &value))) return NULL;
    return number_reduced(self, &value, PyArray_TYPE(x), PyArray_SIZE(x));
}

/* The same of what waits, and goes with its sum. */
static PyObject* reduced_waiting(Function* self, PyObject* x) {
    int type = step_type(CHAIN_OF(x), STEP_OF(x));
    npy_intp size = CHAIN_OF(x)->size;
    Value value;
    if (self->kind == MEAN && !HAS_MEAN(type)) return NULL;
    return sum_waiting(self->reduction, x, &value) ? number_reduced(self, &value, type, size) : NULL;
}

static PyObject* reduced(Function* self, PyObject* a, PyArrayObject* x, PyObject* axis, int keeps) {
    PyObject *args[2], *found, *number;
    if (axis != Py_None && (self->kind == REDUCTION || PyArray_TYPE(x) == NPY_DOUBLE)) {
        found = direct_axis(self->reduction, x, axis, keeps);
        if (found && self->kind == MEAN) {
            number = PyFloat_FromDouble((double)PyArray_SIZE(x) / (double)PyArray_SIZE((PyArrayObject*)found));
            Py_SETREF(found, number ? direct2(&binary_loops[DIV], found, number, 1) : NULL);
            Py_XDECREF(number);
        }
        if (found || PyErr_Occurred()) return cell_of(found, NULL);
    }
    if (keeps) return NULL;
    if (axis == Py_None && (found = reduced_whole(self, x))) return found;
    if (PyErr_Occurred() || self->kind == MEAN || order_of(self->reduction, PyArray_TYPE(x), PyArray_SIZE(x)) != NUMPYS_ORDER) return NULL;
    args[0] = (PyObject*)x, args[1] = axis;
    Py_INCREF(x);
    found = PyObject_Vectorcall(self->reduction->reduce, args, 2, NULL);
    Py_DECREF(x);
    return answer(found, &a, 1);
}

/* What is known of all truth values that exist, however many, without a pass that converts them: how many are true, or their share. */
static PyObject* of_truth(Function* self, PyObject* a, PyArrayObject* x) {
    npy_intp count;
    double share;
    PyObject* made;
    PyArray_Descr* dtype;
    if (!self->reduction->from_zero) return self->kind == REDUCTION && PyArray_SIZE(x) ? reduced(self, a, x, Py_None, 0) : NULL;
    if (PyArray_SIZE(x) == 0 || (count = PyArray_CountNonzero(x)) < 0) return NULL;
    share = (double)count / (double)PyArray_SIZE(x);
    dtype = PyArray_DescrFromType(self->kind == MEAN ? NPY_DOUBLE : NPY_INTP);
    made = number_read(self->kind == MEAN ? (void*)&share : (void*)&count, dtype, NULL);
    Py_DECREF(dtype);
    return made;
}

#endif
