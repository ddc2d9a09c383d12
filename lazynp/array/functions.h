/* NumPy's functions and methods of arrays, and ufuncs, called with values at hand.

   In: a call, its arguments as the interpreter passes them.  Out: NumPy's answer, its arrays as cells.  Promise: where one argument is not at
   hand, or not plain, the function in Python gets the very same call. */

#ifndef LAZYNP_FUNCTIONS_H
#define LAZYNP_FUNCTIONS_H

#include "attributes.h"
#include "extremes.h"
#include "made.h"
#include "searching.h"
#include "signatures.h"
#include "spread.h"

#if PY_VERSION_HEX < 0x030E0000
#define CALLERS 2 /* references to an array whose method is called: the variable's, and the call's own */
#else
#define CALLERS 1
#endif
#define MOST 10 /* arguments of a call that is looked at */


/* How a function is answered. */
enum { ANY, ZEROS, ONES, FULL, SQUARE, RANGE, GROWING, WIDENING, LINSPACE, SPACED, REDUCTION, MEAN, FOREIGN, LISTED, AS_IT_IS, DRAW, OF_UFUNC, AT, OUTER, NUMBERS, ORDERED, RESHAPE, ASTYPE, PRODUCT, MATRICES, DOT, SIZED, LIBRARY, VIEW, WHERE, JOINED, SEARCHED, VARIANCE, DEVIATION, CLOSE, ALL_CLOSE, COUNTED, RESIZED, REALIZED, STACKED, ROWS_STACKED, JOINED_FLAT, COLUMNS_STACKED, POSITION, UFUNC, OPERATOR };

/* Functions that are recorded without a kind of their own, and reductions by the dtype of their results. */
enum { NOT_RECORDED, CASTS_TO, COPIES, SCANS, SORTS, SORTS_POSITIONS, CLIPS, DIFFERS, ROUNDS, ARG_EXTREMES, PRODUCTS, CONJUGATES, EXPANDS, SWAPS_AXES, FLIPS, ROLLS, SELECTS, SCANS_PRODUCTS };
enum { NO_REDUCTION, SUMS, EXTREMES, TRUTHS_OF };

typedef PyObject* (*Direct)(PyArrayObject*);

typedef struct Function {
    PyObject_HEAD
    vectorcallfunc vector;
    PyObject *theirs, *slow; /* the second one is asked for by `slow_of` */
    PyObject* method; /* of arrays, which is all that `theirs` calls; may be NULL */
    Reduction* reduction;
    Matrices* matrices; /* one, or two of which the first is for vectors */
    Direct direct; /* what it does with one array and nothing else; may be NULL */
    int kind;
    int op;       /* of an operator: which one */
    int recorded, reduces;
    int views;    /* it gives a view of its first argument */
    int arrays;   /* the result follows from the signature of a call with at most so many arrays, SEQUENCE: of a list of them; 0: it does not */
    int least;    /* arrays that have to be among the arguments: 0 or 1 */
    int all;      /* of `isclose` and `allclose`: the latter */
    int positional; /* arguments without a name of such a call, at most: by a further one it may be asked to write into its operand */
    int asked;    /* elements of which NumPy is asked for the layout, at most */
    int misses, skipped; /* calls whose signature was not known, since the last that was; and those of them that were made at once */
    int silent;   /* NumPy tells of no floating-point errors of it */
    int listens;  /* NumPy runs Python code, at whose lines it would warn */
    int kernels;  /* of large arrays kernels find another answer than NumPy, or find it sooner */
    int unloaded; /* `slow` gives the function in Python when it is called, once: its module is not loaded for what NumPy answers */
    int later;    /* of a draw for which there may be something that draws sooner: calls until that is asked for, or DRAWS_SOONER */
    int plain;    /* NumPy's asks no argument whether it overrides it, and wraps nothing, which programs look for */
    PyObject* own; /* a set of the keywords that are not NumPy's; may be NULL */
    PyObject* stands_for; /* NumPy's function of that name, which it is equal to; may be NULL */
    PyObject* weakrefs;
    struct Function* next; /* of all that were made */
} Function;
static Function* functions_made;

/* The function in Python (borrowed); NULL with an exception where its module does not load. */
static inline PyObject* slow_of(Function* self) {
    PyObject* found;
    if (!self->unloaded) return self->slow;
    if ((found = PyObject_CallNoArgs(self->slow)) == NULL) return NULL;
    if (!self->unloaded) return Py_DECREF(found), self->slow; /* another thread was sooner */
    self->unloaded = 0;
    Py_SETREF(self->slow, found);
    return self->slow;
}

static PyObject* slow_answer(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject *slow = slow_of(self), *found = slow ? PyObject_Vectorcall(Py_NewRef(slow), args, (size_t)n, names) : NULL;
    Py_XDECREF(slow);
    return found;
}

/* What NumPy's C code does with one array, without the way through its functions. */
static PyObject* direct_ravel(PyArrayObject* x) {
    npy_intp size = size_of(x);
    PyObject* found;
    if (!PyArray_IS_C_CONTIGUOUS(x)) return PyArray_Ravel(x, NPY_CORDER);
    Py_INCREF(PyArray_DESCR(x));
    found = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(x), 1, &size, NULL, PyArray_BYTES(x), PyArray_FLAGS(x), NULL);
    if (found && PyArray_SetBaseObject((PyArrayObject*)found, Py_NewRef((PyObject*)x)) < 0) Py_CLEAR(found);
    return found;
}
static PyObject* direct_flatten(PyArrayObject* x) {
    PyObject *before = pool_begin(PyArray_NBYTES(x)), *found = PyArray_Flatten(x, NPY_CORDER);
    pool_end(before);
    return found;
}
static PyObject* direct_transpose(PyArrayObject* x) { return PyArray_Transpose(x, NULL); }
static PyObject* direct_squeeze(PyArrayObject* x) { return PyArray_Squeeze(x); }
static PyObject* direct_copy(PyArrayObject* x) { return copy_of(x, NPY_CORDER); }
static PyObject* direct_copy_as_it_lies(PyArrayObject* x) { return copy_of(x, NPY_KEEPORDER); }
static PyObject* direct_list(PyArrayObject* x) { return PyArray_ToList(x); }
static PyObject* direct_ndim(PyArrayObject* x) { return PyLong_FromLong(PyArray_NDIM(x)); }
static PyObject* direct_size(PyArrayObject* x) { return PyLong_FromSsize_t(PyArray_SIZE(x)); }
static PyObject* direct_shape(PyArrayObject* x) { return PyArray_IntTupleFromIntp(PyArray_NDIM(x), PyArray_DIMS(x)); }
static PyObject* direct_argmax(PyArrayObject* x) { return position_of(x, 1); }
static PyObject* direct_argmin(PyArrayObject* x) { return position_of(x, 0); }
static PyObject* direct_nonzero(PyArrayObject* x) { /* positions are many where the array is large */
    PyObject *before, *found;
    if (PyArray_NDIM(x) == 0) return NULL;
    before = pool_begin(size_of(x) * (npy_intp)sizeof(npy_intp));
    found = PyArray_Nonzero(x);
    pool_end(before);
    return found;
}
static PyObject* direct_flatnonzero(PyArrayObject* x) {
    PyObject *flat = PyArray_Ravel(x, NPY_CORDER), *found = flat ? direct_nonzero((PyArrayObject*)flat) : NULL, *first = NULL;
    if (found) first = Py_NewRef(PyTuple_GET_ITEM(found, 0));
    Py_XDECREF(flat), Py_XDECREF(found);
    return first;
}
#define ORDER_FROM 1024 /* elements, up to which NumPy's stable order is as fast */
#define ORDER_FEW 16

/* Positions of equal elements, the first ones first; -1 with an exception. */
static int run_order(npy_intp* order, npy_intp n) {
    PyObject* run;
    int failed;
    if (n > ORDER_FEW) {
        if ((run = PyArray_SimpleNewFromData(1, &n, NPY_INTP, order)) == NULL) return -1;
        failed = PyArray_Sort((PyArrayObject*)run, 0, NPY_QUICKSORT);
        Py_DECREF(run);
        return failed;
    }
    for (npy_intp k = 1; k < n; k++) {
        npy_intp at = k, position = order[k];
        for (; at > 0 && order[at - 1] > position; at--) order[at] = order[at - 1];
        order[at] = position;
    }
    return 0;
}

/* All runs of equal elements in an order. */
#define RUNS_ORDER(NAME, TYPE, IS_NAN) \
    static int NAME(const TYPE* x, npy_intp* order, npy_intp n) { \
        for (npy_intp k = 0, end; k < n; k = end) { \
            for (end = k + 1; end < n && (x[order[end]] == x[order[k]] || IS_NAN(x[order[k]])); end++) {} /* NaN is last, and as good as any other */ \
            if (end - k > 1 && run_order(order + k, end - k) < 0) return -1; \
        } \
        return 0; \
    }
#define IS_NO_NAN(X) 0
#define IS_A_NAN(X) ((X) != (X))
RUNS_ORDER(runs_order_double, double, IS_A_NAN)
RUNS_ORDER(runs_order_float, float, IS_A_NAN)
RUNS_ORDER(runs_order_int64, npy_int64, IS_NO_NAN)
RUNS_ORDER(runs_order_int32, npy_int32, IS_NO_NAN)

static int runs_order(const PyArrayObject* x, npy_intp at, npy_intp* order, npy_intp n) {
    const char* row = PyArray_BYTES(x) + at * n * PyArray_ITEMSIZE(x);
    switch (PyArray_TYPE(x)) {
    case NPY_DOUBLE: return runs_order_double((const double*)row, order, n);
    case NPY_FLOAT: return runs_order_float((const float*)row, order, n);
    default: return PyArray_ITEMSIZE(x) == 8 ? runs_order_int64((const npy_int64*)row, order, n) : runs_order_int32((const npy_int32*)row, order, n);
    }
}

/* The stable order of an axis: of many elements NumPy's fastest one, in which runs of equal elements are then put in order. */
static PyObject* stable_order(PyArrayObject* x, int axis) {
    int type = PyArray_TYPE(x), last = PyArray_NDIM(x) - 1, failed = 0;
    npy_intp n, *order;
    PyObject *made, *turned;
    if (size_of(x) < ORDER_FROM || !(type == NPY_DOUBLE || type == NPY_FLOAT || type == NPY_LONG || type == NPY_INT || type == NPY_ULONG || type == NPY_UINT) || !PyArray_ISNOTSWAPPED(x)) return PyArray_ArgSort(x, axis, NPY_STABLESORT);
    if (axis != last || !PyArray_ISCARRAY_RO(x)) {
        turned = PyArray_SwapAxes(x, axis, last);
        if (turned) Py_SETREF(turned, PyArray_NewCopy((PyArrayObject*)turned, NPY_CORDER));
        made = turned ? stable_order((PyArrayObject*)turned, last) : NULL;
        Py_XDECREF(turned);
        if (made == NULL || axis == last) return made;
        turned = PyArray_SwapAxes((PyArrayObject*)made, axis, last);
        Py_DECREF(made);
        if (turned) Py_SETREF(turned, PyArray_NewCopy((PyArrayObject*)turned, NPY_CORDER));
        return turned;
    }
    if ((made = PyArray_ArgSort(x, last, NPY_QUICKSORT)) == NULL) return NULL;
    order = PyArray_DATA((PyArrayObject*)made), n = PyArray_DIM(x, last);
    for (npy_intp k = size_of(x) / n; k-- && !failed;) failed = runs_order(x, k, order + k * n, n);
    if (failed) Py_CLEAR(made);
    flags_clear(1); /* comparisons with NaN */
    return made;
}
static PyObject* direct_stable_order(PyArrayObject* x) { return PyArray_NDIM(x) ? stable_order(x, PyArray_NDIM(x) - 1) : NULL; }

/* The same of an axis that may be counted from the end, and is one of an array's. */
static PyObject* stable_order_of(PyObject* x, int axis) {
    int ndim = PyArray_CheckExact(x) ? PyArray_NDIM((PyArrayObject*)x) : 0;
    if (axis < -ndim || axis >= ndim) return PyErr_Format(PyExc_ValueError, "axis %d of an array of %d axes", axis, ndim);
    return stable_order((PyArrayObject*)x, axis < 0 ? axis + ndim : axis);
}
static PyObject* direct_norm(PyArrayObject* x) { /* of floats, whatever the number of axes */
    PyObject *flat = PyArray_TYPE(x) == NPY_DOUBLE ? PyArray_Ravel(x, NPY_KEEPORDER) : NULL;
    PyObject* found = flat ? direct_product((PyArrayObject*)flat, (PyArrayObject*)flat) : NULL;
    if (flat && found == NULL && !PyErr_Occurred()) found = PyArray_MatrixProduct(flat, flat);
    Py_XDECREF(flat);
    if (found && IS_A(found, NPY_DOUBLE)) PyArrayScalar_ASSIGN(found, Double, sqrt(PyArrayScalar_VAL(found, Double)));
    return found;
}
static PyObject* direct_sorted(PyArrayObject* x) { /* a copy of it */
    PyObject* made = PyArray_NDIM(x) ? copy_of(x, NPY_KEEPORDER) : NULL;
    if (made && PyArray_Sort((PyArrayObject*)made, -1, NPY_QUICKSORT) < 0) Py_CLEAR(made);
    flags_clear(1); /* comparisons with NaN */
    return made;
}
static PyObject* direct_zeros_like(PyArrayObject* x) {
    PyArrayObject* made = room_like(x, NULL);
    if (made) memset(PyArray_DATA(made), 0, (size_t)PyArray_NBYTES(made));
    return (PyObject*)made;
}
static PyObject* direct_ones_like(PyArrayObject* x) {
    PyObject* one = PyLong_FromLong(1);
    PyArrayObject* made = one ? room_like(x, NULL) : NULL;
    if (made && PyArray_FillWithScalar(made, one) < 0) Py_CLEAR(made);
    Py_XDECREF(one);
    return (PyObject*)made;
}

static const struct {
    const char* name;
    Direct function;
} directs[] = {
    {"ravel", direct_ravel}, {"flatten", direct_flatten}, {"transpose", direct_transpose}, {"squeeze", direct_squeeze}, {"copy", direct_copy},
    {"copy as it lies", direct_copy_as_it_lies}, {"list", direct_list}, {"ndim", direct_ndim}, {"size", direct_size},
    {"shape", direct_shape}, {"nonzero", direct_nonzero}, {"flatnonzero", direct_flatnonzero}, {"zeros like", direct_zeros_like}, {"stable order", direct_stable_order}, {"norm", direct_norm},
    {"argmax", direct_argmax}, {"argmin", direct_argmin}, {"ones like", direct_ones_like}, {"sorted", direct_sorted}};

static Direct direct_named(const char* name) {
    for (size_t k = 0; k < sizeof(directs) / sizeof(directs[0]); k++)
        if (strcmp(directs[k].name, name) == 0) return directs[k].function;
    return NULL;
}

/* The cells among the arguments of a call, held: a list that one was found in may be another one when the call is over. */
typedef struct {
    PyObject **cells, *few[MOST];
    Py_ssize_t count, room;
    int foreign; /* whether there are NumPy's arrays, too */
} Given;

static void given_begin(Given* given) {
    given->cells = given->few;
    given->count = 0, given->room = MOST;
    given->foreign = 0;
}

static void given_end(Given* given) {
    while (given->count) Py_DECREF(given->cells[--given->count]);
    if (given->cells != given->few) PyMem_Free(given->cells);
}

static int given_add(Given* given, PyObject* cell) {
    if (given->count == given->room) {
        PyObject** more = PyMem_Malloc((size_t)(given->room *= 4) * sizeof(PyObject*));
        if (more == NULL) return 0;
        memcpy(more, given->cells, (size_t)given->count * sizeof(PyObject*));
        if (given->cells != given->few) PyMem_Free(given->cells);
        given->cells = more;
    }
    given->cells[given->count++] = Py_NewRef(cell);
    return 1;
}

/* A tuple or list as NumPy takes it (a new reference); NULL as for `argument`. */
static PyObject* argument(PyObject* x, Given* given, int depth);
static PyObject* arguments(PyObject* x, Given* given, int depth) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
    PyObject* made;
    int same = 1;
    Py_ssize_t numbers = 0;
    if (n > limit_now() || depth > 3) return NULL;
    while (numbers < n && is_number(PySequence_Fast_GET_ITEM(x, numbers)) && !is_number_class(Py_TYPE(PySequence_Fast_GET_ITEM(x, numbers)))) numbers++;
    if (numbers == n) return Py_NewRef(x);
    made = PyTuple_CheckExact(x) ? PyTuple_New(n) : PyList_New(n);
    if (made == NULL) return NULL;
    for (Py_ssize_t k = 0; k < n; k++) { /* making lists and tuples may run code, which may write to this list */
        PyObject *of = k < PySequence_Fast_GET_SIZE(x) ? Py_NewRef(PySequence_Fast_GET_ITEM(x, k)) : NULL, *item = of ? argument(of, given, depth + 1) : NULL;
        same &= item == of;
        Py_XDECREF(of);
        if (item == NULL) {
            Py_DECREF(made);
            return NULL;
        }
        if (PyTuple_CheckExact(x)) PyTuple_SET_ITEM(made, k, item);
        else PyList_SET_ITEM(made, k, item);
    }
    if (!same) return made;
    Py_DECREF(made);
    return Py_NewRef(x);
}

/* An argument as NumPy takes it (a new reference), a cell being added to `given`; NULL where the function in Python must look at it. */
static PyObject* argument(PyObject* x, Given* given, int depth) {
    PyTypeObject* type = Py_TYPE(x);
    if (type == array_type) {
        PyArrayObject* memory = memory_of(x);
        return memory && given_add(given, x) ? Py_NewRef((PyObject*)memory) : NULL;
    }
    if (is_number_class(type)) return numpys_number(x);
    if (x == Py_None || is_number(x) || type == &PyUnicode_Type || type == &PySlice_Type || x == Py_Ellipsis || PyType_Check(x)) return Py_NewRef(x);
    if (type == &PyTuple_Type || type == &PyList_Type) return arguments(x, given, depth);
    if (type == &PyArray_Type && foreign_of(x)) return given->foreign = 1, Py_NewRef(x);
    return PyObject_TypeCheck(x, &PyArrayDescr_Type) ? Py_NewRef(x) : NULL;
}

/* NumPy's answer (taken over) as ours. */
static PyObject* answer(PyObject* found, PyObject** cells, Py_ssize_t count) {
    PyArrayObject* x = (PyArrayObject*)found;
    PyObject *given, *made;
    if (found == NULL) return NULL;
    if (PyArray_CheckExact(found)) {
        for (Py_ssize_t k = 0; k < count && Py_REFCNT(found) > 1; k++)
            if (x == memory_of(cells[k])) return Py_DECREF(found), Py_NewRef(cells[k]);
        for (Py_ssize_t k = 0; k < count && (PyArray_BASE(x) || Py_REFCNT(found) > 1); k++) {
            PyArrayObject* memory = memory_of(cells[k]);
            if (PyArray_BASE(x) && memory && native_dtype(x) && (PyArray_BASE(x) == (PyObject*)memory || PyArray_BASE(x) == PyArray_BASE(memory)))
                if (PyArray_SIZE(x) <= limit_now()) return cell_of(found, owner_of(cells[k]));
        }
        if (native_dtype(x) && PyArray_SIZE(x) <= limit_now()) return cell_of_result(found);
    } else if (is_number(found) || found == Py_None || PyUnicode_CheckExact(found) || PyBytes_CheckExact(found)) {
        return number_of(found);
    } else if (PyTuple_Check(found) && (PyTuple_CheckExact(found) || PyObject_HasAttrString(found, "_make"))) {
        Py_ssize_t n = PyTuple_GET_SIZE(found);
        made = PyTuple_New(n);
        for (Py_ssize_t k = 0; made && k < n; k++) {
            PyObject* item = answer(item_of(found, &PyTuple_GET_ITEM(found, k)), cells, count);
            if (item) PyTuple_SET_ITEM(made, k, item);
            else Py_CLEAR(made);
        }
        if (made && !PyTuple_CheckExact(found)) { /* a named tuple */
            given = PyTuple_Pack(1, made);
            Py_SETREF(made, given ? PyTuple_Type.tp_new(Py_TYPE(found), given, NULL) : NULL);
            Py_XDECREF(given);
        }
        Py_DECREF(found);
        return made;
    } else if (PyList_CheckExact(found)) {
        Py_ssize_t n = PyList_GET_SIZE(found);
        made = PyList_New(n);
        for (Py_ssize_t k = 0; made && k < n; k++) { /* it may be somebody's, who may write to it */
            PyObject* item = k < PyList_GET_SIZE(found) ? answer(item_of(found, &PyList_GET_ITEM(found, k)), cells, count) : NULL;
            if (item == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "list changed size while it was read");
            if (item) PyList_SET_ITEM(made, k, item);
            else Py_CLEAR(made);
        }
        Py_DECREF(found);
        return made;
    }
    if (PyArray_CheckExact(found) && PyArray_BASE(x) == NULL && Py_REFCNT(found) == 1) count = 0; /* it is none of theirs */
    given = PyTuple_New(count);
    if (given == NULL) {
        Py_DECREF(found);
        return NULL;
    }
    for (Py_ssize_t k = 0; k < count; k++) PyTuple_SET_ITEM(given, k, Py_NewRef(cells[k]));
    made = PyObject_CallFunctionObjArgs(result_method, found, given, NULL);
    Py_DECREF(found), Py_DECREF(given);
    return made;
}

/* Whether an answer holds no memory but its own. */
static int keeps_nothing(PyObject* found) {
    if (found == NULL) return 0;
    return PyArray_CheckExact(found) ? PyArray_BASE((PyArrayObject*)found) == NULL : is_number(found) || found == Py_None || PyUnicode_CheckExact(found) || PyBytes_CheckExact(found);
}

/* Which array of ours an answer is, that was given to be written (borrowed); NULL where it is none. */
static PyObject* argument_of(PyObject* found, PyObject* const* plain, PyObject* const* args, Py_ssize_t total) {
    for (Py_ssize_t k = 0; k < total; k++) {
        if (plain[k] == found && Py_TYPE(args[k]) == array_type) return args[k];
        if (PyTuple_CheckExact(plain[k]) && PyTuple_CheckExact(args[k]) && PyTuple_GET_SIZE(args[k]) == PyTuple_GET_SIZE(plain[k])) {
            PyObject* inner = argument_of(found, PySequence_Fast_ITEMS(plain[k]), PySequence_Fast_ITEMS(args[k]), PyTuple_GET_SIZE(args[k]));
            if (inner) return inner;
        }
    }
    return NULL;
}

/* Whether an answer might show a part of a large array. */
static int shows_part(PyObject* found, const Given* given) {
    if (keeps_nothing(found)) return 0;
    if (PyTuple_CheckExact(found) || PyList_CheckExact(found)) {
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(found); k++)
            if (shows_part(PySequence_Fast_GET_ITEM(found, k), given)) return 1;
        return 0;
    }
    if (!PyArray_Check(found)) return 1;
    for (Py_ssize_t c = 0; c < given->count; c++) {
        PyArrayObject* memory = is_part(given->cells[c]) ? memory_of(given->cells[c]) : NULL;
        if (is_part(given->cells[c]) && (memory == NULL || may_overlap((PyArrayObject*)found, memory))) return 1;
    }
    return 0;
}

/* Call NumPy so that it says nothing of floating-point errors itself; they are told at the caller's line, as those of operators are. */
static PyObject* listening(PyObject* function, PyObject* const* args, size_t n, PyObject* names) {
    PyObject *found, *told, *token, *type, *value, *trace;
    if (item_thread && item_thread == PyThreadState_Get()) return PyObject_Vectorcall(function, args, n, names); /* the item listens, and tells of them at its own line */
    if ((token = PyContextVar_Set(error_variable, error_listening)) == NULL) return NULL;
    found = PyObject_Vectorcall(function, args, n, names);
    PyErr_Fetch(&type, &value, &trace);
    PyContextVar_Reset(error_variable, token);
    Py_DECREF(token);
    if (PyDict_GET_SIZE(errors_heard)) {
        told = PyObject_CallNoArgs(errors_tell);
        if (told == NULL) {
            Py_CLEAR(found);
            Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
            return NULL;
        }
        Py_DECREF(told);
    }
    PyErr_Restore(type, value, trace);
    return found;
}

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

/* What `x`, an item of a list, has to be like to be one of those that are joined: an array at hand of one axis, its elements side by side. */
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

/* Whether a range between Python's numbers is at hand. */
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

/* Whether a space between two numbers, or arrays of them, is at hand. */
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

/* Whether numbers say that a result of as many elements as the square of their product, at most, is at hand. */
static int sized_little(PyObject* const* args, Py_ssize_t n) {
    double extent = 1;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *x = args[k], **items = PyTuple_CheckExact(x) ? PySequence_Fast_ITEMS(x) : NULL;
        if (!items && length_of(x) < 0 && !PyLong_CheckExact(x) && !PyFloat_CheckExact(x) && x != Py_None && !PyUnicode_Check(x) && !PyType_Check(x)) return 0;
        for (Py_ssize_t j = 0; items && j < PyTuple_GET_SIZE(x); j++)
            if (length_of(items[j]) < 0 && !PyLong_CheckExact(items[j])) return 0;
        extent *= extent_of(x, 0);
    }
    return extent * extent <= (double)limit_now();
}

/* What functions that read bytes, text or files get as it is. */
static int is_source(PyObject* x) {
    return PyBytes_CheckExact(x) || PyByteArray_CheckExact(x) || PyMemoryView_Check(x) || PyRange_Check(x) || (PyIter_Check(x) && !PyGen_Check(x));
}

/* Whether there is nothing of lazynp's in an argument: numbers, text, dates, NumPy's arrays, and lists of them. */
static int is_nobodys(PyObject* x, int depth) {
    PyObject** items;
    if (is_number(x) || x == Py_None || PyUnicode_CheckExact(x) || PyBytes_CheckExact(x) || PyArray_CheckExact(x) || PyArray_IsScalar(x, Generic)) return 1;
    if (depth || !(PyTuple_CheckExact(x) || PyList_CheckExact(x))) return 0;
    items = PySequence_Fast_ITEMS(x);
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(x); k++)
        if (!is_nobodys(items[k], 1)) return 0;
    return 1;
}

static PyObject* noted_method; /* told of a call that is counted; answers whether the core may go on */

/* A function of NumPy's alone, whose calls are counted; NULL, perhaps without an exception, where the one in Python must see to it. */
static PyObject* counted_answer(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject* noted;
    if (limit_now() == 0 || noted_method == NULL) return NULL;
    for (Py_ssize_t k = 0, total = n + (names ? PyTuple_GET_SIZE(names) : 0); k < total; k++)
        if (!is_nobodys(args[k], 0)) return NULL;
    noted = PyObject_CallOneArg(noted_method, self->slow);
    Py_XDECREF(noted);
    return noted == Py_True ? answer(listening(self->theirs, args, (size_t)n, names), NULL, 0) : NULL;
}

/* Whether windows are a view of what a cell shows: NumPy has an object of its own stand between them and their memory. */
static int is_of_memory(PyObject* found, PyObject* cell) {
    PyArrayObject *x = (PyArrayObject*)found, *memory = memory_of(cell);
    if (found == NULL || memory == NULL || !PyArray_CheckExact(found) || PyArray_BASE(x) == NULL || PyArray_Check(PyArray_BASE(x))) return 0;
    return PyArray_TYPE(x) == PyArray_TYPE(memory) && may_overlap(x, memory) && !is_part(cell);
}

/* NumPy's answer to a call, where all arguments are at hand; NULL without an exception where the function in Python must be asked.
   `least`: arrays there have to be; `kind`: of the function; `first`: what stands for the first argument, if that is not NULL. */
static PyObject* asked(PyObject* theirs, PyObject* const* args, Py_ssize_t n, PyObject* names, int least, int listens, int kind, PyObject* first) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0), k;
    PyObject *plain[MOST], *found = NULL;
    PyObject* given_out;
    int borrowed = 0;
    Given given;
    given_begin(&given);
    for (k = 0; k < total; k++) {
        plain[k] = k == 0 && first ? Py_NewRef(first) : argument(args[k], &given, 0);
        if (plain[k] == NULL && kind == LIBRARY && is_source(args[k])) plain[k] = Py_NewRef(args[k]);
        if (plain[k] == NULL) break;
    }
    if (k == total && (given.count >= least || given.foreign)) {
        npy_intp largest = 0;
        PyObject* before;
        for (Py_ssize_t c = 0; c < given.count; c++) {
            PyArrayObject* memory = memory_of(given.cells[c]);
            borrowed |= is_part(given.cells[c]);
            if (memory && PyArray_NBYTES(memory) > largest) largest = PyArray_NBYTES(memory);
        }
        before = pool_begin(largest);
        found = listens ? listening(theirs, plain, (size_t)n, names) : PyObject_Vectorcall(theirs, plain, (size_t)n, names);
        pool_end(before);
        for (k = 0; k < total && !(given.foreign && found == args[k]); k++) {}
        if (k < total) { /* NumPy's own array, given for the result */
            k = total;
        } else if (borrowed && found && (given_out = argument_of(found, plain, args, total))) { /* it was written, and is not to be written again */
            Py_DECREF(found);
            found = Py_NewRef(given_out);
        } else if (borrowed && (found ? shows_part(found, &given) : !PyErr_ExceptionMatches(PyExc_ArithmeticError) && !PyErr_ExceptionMatches(PyExc_Warning))) { /* a view of memory that moves, or it cannot be written */
            Py_CLEAR(found);
            PyErr_Clear();
        } else if (kind == WIDENING && found && PyArray_Check(found) && PyArray_SIZE((PyArrayObject*)found) > limit_now()) {
            Py_CLEAR(found);
        } else if (kind == WIDENING && given.count == 1 && is_of_memory(found, given.cells[0])) {
            found = cell_of(found, owner_of(given.cells[0]));
        } else {
            found = answer(found, given.cells, given.count);
        }
    }
    while (k) Py_DECREF(plain[--k]);
    given_end(&given);
    return found;
}

/* Whether a keyword is among the names of a call. */
static int is_named(PyObject* names, const char* keyword) {
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), keyword) == 0) return 1;
    return 0;
}

/* Whether all keywords of a call are one of these two. */
static int are_named(PyObject* names, const char* one, const char* other) {
    return names == NULL || PyTuple_GET_SIZE(names) == is_named(names, one) + is_named(names, other);
}

/* Whether it is an array of text, dates or objects. */
static int holds_no_numbers(PyObject* x) {
    int type = PyArray_CheckExact(x) ? PyArray_TYPE((PyArrayObject*)x) : NPY_BOOL;
    return type != NPY_BOOL && !PyTypeNum_ISNUMBER(type);
}

/* What `array` and its kin make of their arguments; NULL, without an exception, where the function in Python must see to it. */
static PyObject* as_array(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0), k;
    PyObject *plain[MOST], *found = NULL;
    Given given;
    given_begin(&given);
    for (k = 0; k < total; k++)
        if (PyArray_CheckExact(args[k]) || (plain[k] = argument(args[k], &given, 0)) == NULL) break;
    if (k == total) found = PyObject_Vectorcall(self->theirs, plain, (size_t)n, names);
    if (found && found == plain[0] && Py_TYPE(args[0]) == array_type) Py_SETREF(found, Py_NewRef(args[0]));
    else if (found && given.count == 0 && !is_named(names, "device") && holds_no_numbers(found)) { /* NumPy's, as it is */
    } else if (found && (!PyArray_CheckExact(found) || !native_dtype((PyArrayObject*)found) || PyArray_SIZE((PyArrayObject*)found) > limit_now())) Py_CLEAR(found);
    else if (found && PyArray_BASE((PyArrayObject*)found)) {
        int borrowed = 0;
        for (Py_ssize_t c = 0; c < given.count; c++) borrowed |= is_part(given.cells[c]);
        if (borrowed) Py_CLEAR(found);
        else found = answer(found, given.cells, given.count);
    } else if (found) found = cell_of(found, NULL);
    if (found == NULL) PyErr_Clear(); /* it will be found again */
    while (k) Py_DECREF(plain[--k]);
    given_end(&given);
    return found;
}

/* A function of one or two matrices at hand. */
static PyObject* of_matrices(Function* self, PyObject* const* args, Py_ssize_t n) {
    PyArrayObject *x = memory_of(args[0]), *y = n == 2 ? memory_of(args[1]) : NULL, *r;
    Matrices* of = self->matrices + (y && PyArray_NDIM(y) == 2);
    Loop* loop = &of->loops.of[NPY_DOUBLE];
    PyObject* found;
    Py_INCREF(x), Py_XINCREF(y);
    r = matrices_run(of, x, y);
    Py_DECREF(x), Py_XDECREF(y);
    if (r && loop->state == USABLE) {
        if (PyArray_NDIM(r)) return cell_of((PyObject*)r, NULL);
        found = number_read(PyArray_DATA(r), PyArray_DESCR(r), NULL);
        Py_DECREF(r);
        return found;
    }
    if (r == NULL && PyErr_Occurred()) return NULL;
    found = asked(self->theirs, args, n, NULL, 1, self->listens, ANY, NULL);
    if (r && found) { /* the first ones are compared */
        PyArrayObject* memory = memory_of(found);
        PyObject* theirs = PyArray_FromAny(memory ? (PyObject*)memory : found, NULL, 0, 0, 0, NULL);
        if (theirs == NULL) PyErr_Clear();
        else if (!same_bits(r, (PyArrayObject*)theirs)) loop->state = UNUSABLE;
        else if (loop->state != UNUSABLE && ++of->compared == COMPARED) loop->state = USABLE;
        Py_XDECREF(theirs);
    }
    Py_XDECREF(r);
    return found || PyErr_Occurred() ? found : slow_answer(self, args, n, NULL);
}

/* What an operand shows, of any size, if it exists, or the number or slice that it is (borrowed); NULL for all others. */
static PyObject* existing(PyObject* x) {
    PyArrayObject* memory = Py_TYPE(x) != array_type ? NULL : is_large(x) ? read_memory(x) : memory_of(x);
    return memory ? (PyObject*)memory : is_number(x) || PySlice_Check(x) || x == Py_Ellipsis || (PyArray_CheckExact(x) && native_dtype((PyArrayObject*)x)) ? x : NULL;
}

/* `ufunc.at(x, key, values)` where all exist, and nobody else sees what is written; NULL, perhaps without an exception, where Python has to see to it. */
static PyObject* at_positions(PyObject* ufunc, PyObject* const* args, Py_ssize_t n) {
    PyObject *a = args[0], *key = args[1], *values = n == 3 ? args[2] : NULL, *plain[4] = {ufunc, NULL, NULL, NULL}, *found = NULL, *name;
    PyArrayObject *x, *memory;
    Cell *root, *written;
    int own = 1;
    if (n > 3 || Py_TYPE(a) != array_type || ((Cell*)a)->readonly != Py_False || limit_now() == 0) return NULL;
    x = is_large(a) ? large_memory(a, &root, &memory, &own) : own_memory_of(a);
    if (x == NULL || !own) return NULL;
    if (is_large(a)) PyArray_ENABLEFLAGS(x, NPY_ARRAY_WRITEABLE);
    else if (!is_writable(x)) return NULL;
    if (values && (values = existing(values)) == NULL) return NULL;
    if (PyTuple_CheckExact(key)) {
        if ((plain[2] = PyTuple_New(PyTuple_GET_SIZE(key))) == NULL) return NULL;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key); k++) {
            PyObject* part = PyTuple_GET_ITEM(key, k) == Py_None ? Py_None : existing(PyTuple_GET_ITEM(key, k));
            if (part == NULL) return Py_DECREF(plain[2]), NULL;
            PyTuple_SET_ITEM(plain[2], k, Py_NewRef(part));
        }
    } else {
        if ((key = existing(key)) == NULL) return NULL;
        plain[2] = Py_NewRef(key);
    }
    plain[1] = Py_NewRef((PyObject*)x), plain[3] = Py_XNewRef(values);
    written = writing_begin(a);
    if ((name = PyUnicode_FromString("at"))) found = PyObject_VectorcallMethod(name, plain, (size_t)n + 1, NULL);
    writing_end(written);
    for (int k = 1; k < 4; k++) Py_XDECREF(plain[k]);
    Py_XDECREF(name);
    return found;
}

static int is_ufunc(PyObject* x);
static PyObject* numpys_ufunc(PyObject* x);

/* Whether a call has a keyword that is not NumPy's. */
static int has_own(PyObject* own, PyObject* names) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++)
        if (PySet_Contains(own, PyTuple_GET_ITEM(names, k))) return 1;
    return 0;
}

static PyObject* shape_name;
static PyObject* refusal_method; /* `refusals.refusal`: what NumPy says of a call that is refused */
static PyObject* function_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names);

/* The same call with its first keyword as an argument without a name. */
static PyObject* by_position(PyObject* callable, PyObject* const* args, PyObject* names) {
    PyObject *rest = PyTuple_GetSlice(names, 1, PyTuple_GET_SIZE(names)), *found;
    if (rest == NULL) return NULL;
    found = function_call(callable, args, 1, PyTuple_GET_SIZE(rest) ? rest : NULL);
    Py_DECREF(rest);
    return found;
}

/* Whether there are arrays of NumPy's among the arguments, and all of ours are at hand. */
static int any_foreign(PyObject* const* args, Py_ssize_t total) {
    int found = 0;
    for (Py_ssize_t k = 0; k < total; k++) found |= PyArray_CheckExact(args[k]);
    for (Py_ssize_t k = 0; found && k < total; k++)
        if (PyArray_CheckExact(args[k]) ? foreign_of(args[k]) == NULL : Py_TYPE(args[k]) == array_type && memory_of(args[k]) == NULL) return 0;
    return found;
}

/* The same call with cells of what is NumPy's. */
static PyObject* call_with_cells(vectorcallfunc call, PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0), k;
    PyObject *plain[MOST], *found = NULL;
    for (k = 0; k < total; k++)
        if ((plain[k] = foreign_of(args[k]) ? foreign_cell((PyArrayObject*)args[k]) : Py_NewRef(args[k])) == NULL) break;
    if (k == total) found = call(callable, plain, (size_t)n, names);
    while (k--) {
        if (found == plain[k] && found != args[k]) Py_SETREF(found, Py_NewRef(args[k])); /* which was given for the result, or is it as it is */
        Py_DECREF(plain[k]);
    }
    return found;
}

/* Whether arrays of NumPy's are to a function what ours are: not where it makes ours of them, or is NumPy's alone. */
static int takes_cells(int kind) {
    switch (kind) {
        case LISTED: case AS_IT_IS: case ORDERED: case COUNTED: case DRAW: case LIBRARY:
        case ZEROS: case ONES: case FULL: case SQUARE: case RANGE: case LINSPACE: case SPACED: case SIZED: return 0; /* a cell has a dtype, for which NumPy might take it */
        default: return 1;
    }
}

/* A call of `array` or `asarray` with an array of NumPy's; NULL, perhaps without an exception, where the function in Python must see to it. */
static PyObject* of_foreign(int kind, PyArrayObject* x, PyObject* dtype) {
    PyArray_Descr* descr = NULL;
    int same = dtype == NULL;
    if (dtype && !(PyType_Check(dtype) || PyObject_TypeCheck(dtype, &PyArrayDescr_Type))) return NULL;
    if (dtype && !PyArray_DescrConverter(dtype, &descr)) return PyErr_Clear(), NULL;
    if (descr) same = PyArray_EquivTypes(descr, PyArray_DESCR(x));
    Py_XDECREF(descr);
    if (!same) return cell_of(converted(x, dtype), NULL);
    return kind == AS_IT_IS ? foreign_cell(x) : cell_of(copy_of(x, NPY_KEEPORDER), NULL);
}

static PyObject* function_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names);

/* What an array that exists holds, for a number that all its elements make (borrowed); NULL for all others: of more, and of what is read from files, kernels go piece by piece. */
static inline PyArrayObject* existing_memory(PyObject* x) {
    PyArrayObject *found = memory_of(x), *memory;
    Cell* root;
    int own;
    if (found || Py_TYPE(x) != array_type) return found;
    found = large_memory(x, &root, &memory, &own);
    return found && size_of(found) <= first_limit() && !is_mapped(root) ? found : NULL;
}

/* Whether there is a large array among the arguments of a call, or in a list of them (`deep`). */
static int any_large(PyObject* const* args, Py_ssize_t n, int deep) {
    for (Py_ssize_t k = 0; k < n; k++) {
        PyArrayObject* x = Py_TYPE(args[k]) == array_type ? seen_of(args[k]) : NULL;
        if (x && size_of(x) > limit_now()) return 1;
        if (deep && IS_ROW(args[k]) && PySequence_Fast_GET_SIZE(args[k]) <= MOST && any_large(PySequence_Fast_ITEMS(args[k]), PySequence_Fast_GET_SIZE(args[k]), 0)) return 1;
    }
    return 0;
}

static PyObject* soon_name;
#define DRAWS 16        /* calls that are counted at a time */
#define DRAWS_MANY 4096 /* numbers that may count as more */
enum { DRAWS_SOONER = -1 };

static inline int draws_many(PyObject* x) {
    int overflow;
    long long count = 1;
    if (PyLong_CheckExact(x)) return PyLong_AsLongLongAndOverflow(x, &overflow) >= DRAWS_MANY || overflow > 0;
    if (!PyTuple_CheckExact(x)) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(x) && count < DRAWS_MANY; k++) {
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(x, k))) return 0;
        if (draws_many(PyTuple_GET_ITEM(x, k))) count = DRAWS_MANY;
        else count *= PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(x, k), &overflow);
    }
    return count >= DRAWS_MANY;
}

/* Whether a draw is to be told of: the last of some, or one of many numbers. */
static inline int draw_counts(Function* self, PyObject* const* args, Py_ssize_t total) {
    if (--self->later == 0) return 1;
    for (Py_ssize_t k = 0; k < total; k++)
        if (draws_many(args[k])) return 1;
    return 0;
}

/* Whether what draws sooner is called from now on is for Python to say, which several threads may ask at once; -1 with an exception. */
static int draw_now(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject *asked = PyObject_GetAttr(self->slow, soon_name), *found = asked ? PyObject_Vectorcall(asked, args, (size_t)n, names) : NULL;
    int passing = found == NULL && (PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_MemoryError)); /* of asking: NumPy's method may need less */
    if (passing) PyErr_Clear();
    Py_XDECREF(asked);
    if (found && found != Py_None && self->later != DRAWS_SOONER) {
        self->later = DRAWS_SOONER;
        Py_SETREF(self->theirs, found); /* once: another thread may be in NumPy's, which `slow` holds, and in this one, which stays */
        return 0;
    }
    if (self->later != DRAWS_SOONER) self->later = DRAWS;
    if (found == NULL && !passing) return -1;
    Py_XDECREF(found);
    return 0;
}

/* What a function gives whose arguments lie in memory. */
static PyObject* ufunc_answer(PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names);
static PyObject* function_answer(PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Function* self = (Function*)callable;
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0), given = n;
    PyObject *found = NULL, *first = NULL;
    PyArrayObject* x;
    int least = limit_now() ? self->least : 1, keeps;
    if (self->kind == UFUNC) return ufunc_answer(self->slow, args, n, names);
    if (self->kind == OPERATOR && n == 2) return binary_answer(self->op, args[0], args[1]);
    if (total > MOST || (names && self->own && has_own(self->own, names))) goto slow;
    if (names && n == 0 && (self->kind == ZEROS || self->kind == ONES || self->kind == FULL) && PyTuple_GET_ITEM(names, 0) == shape_name) return by_position(callable, args, names);
    if (takes_cells(self->kind) && any_foreign(args, total)) return call_with_cells(function_call, callable, args, n, names);
    if (self->direct && total == 1 && n == 1 && !(self->kernels && any_large(args, 1, 0))) {
        x = self->kind == POSITION ? existing_memory(args[0]) : memory_of(args[0]);
        if (x && (self->kind == POSITION || !is_part(args[0]))) {
            Py_INCREF(x);
            found = self->direct(x);
            Py_DECREF(x);
            if (found || PyErr_Occurred()) return self->kind == NUMBERS ? found : answer(found, (PyObject**)args, 1);
        } else if (self->direct == direct_ravel || self->direct == direct_transpose || self->direct == direct_squeeze) {
            found = self->direct == direct_ravel ? large_view(args[0], NULL, NULL, 1) : large_view(args[0], view_direct, &self->direct, 0);
            if (found || PyErr_Occurred()) return found;
        }
    }
    switch (self->kind) {
        case ANY:
        case NUMBERS:
            break;
        case LISTED:
        case AS_IT_IS:
            x = total == 1 && n == 1 ? memory_of(args[0]) : NULL;
            if (x && self->kind == AS_IT_IS) return Py_NewRef(args[0]);
            if (x) return cell_of(copy_of(x, NPY_KEEPORDER), NULL);
            if (n && total < 3 && (total == 1 || n == 2 || PyTuple_GET_ITEM(names, 0) == dtype_name)) {
                if (foreign_of(args[0])) found = of_foreign(self->kind, (PyArrayObject*)args[0], total == 2 ? args[1] : NULL);
                else found = listed(self->theirs, args[0], total == 2 ? args[1] : NULL);
            }
            if (found || PyErr_Occurred()) return found;
            /* fall through */
        case ORDERED:
            if (limit_now() && total && (found = as_array(self, args, n, names))) return found;
            goto slow;
        case ZEROS:
        case ONES:
        case FULL:
            least = 0;
            if (n == 0 || !small_shape(args[0])) goto slow;
            if (self->kind != ZEROS) {
                Py_ssize_t given = self->kind == ONES ? 1 : 2; /* without a dtype */
                if ((total == given && names == NULL) || (total == given + 1 && (names == NULL || (n == given && PyTuple_GET_ITEM(names, 0) == dtype_name))))
                    found = full_of(args[0], given == 2 ? args[1] : NULL, total > given ? args[given] : NULL);
            }
            if (self->kind == ZEROS && (total == 1 || (total == 2 && (n == 2 || PyTuple_GET_ITEM(names, 0) == dtype_name))))
                found = zeros_of(args[0], total == 2 ? args[1] : NULL);
            if (found && native_dtype((PyArrayObject*)found)) return cell_of(found, NULL);
            if (found) return answer(found, NULL, 0);
            if (PyErr_Occurred()) return NULL;
            break;
        case SQUARE: {
            Py_ssize_t side = total && n ? length_of(args[0]) : -1;
            if (side < 0 || side > 1 << 15 || side * side > limit_now() || !are_named(names, "dtype", "k")) goto slow;
            if (n > 1 && args[1] != Py_None && (length_of(args[1]) < 0 || length_of(args[1]) > 1 << 15 || side * length_of(args[1]) > limit_now())) goto slow;
            if ((x = eye_of(args, n, names))) return cell_of((PyObject*)x, NULL);
            least = 0;
            break;
        }
        case GROWING:
            if (!grows_little(args, total)) goto slow;
            break;
        case SIZED:
            if (!sized_little(args, total)) goto slow;
            least = 0;
            break;
        case LIBRARY:
            break;
        case RESIZED: /* `theirs` where more than the caller has the array */
            return n && Py_REFCNT(args[0]) > CALLERS ? PyObject_Vectorcall(self->theirs, args, (size_t)n, names) : slow_answer(self, args, n, names);
        case COUNTED:
            if ((found = counted_answer(self, args, n, names)) || PyErr_Occurred()) return found;
            goto slow;
        case VIEW:
            if (names || n < 1 || n > 2 || (x = memory_of(args[0])) == NULL || is_part(args[0])) goto slow;
            if (n == 1) return cell_of(PyArray_View(x, NULL, NULL), owner_of(args[0]));
            if (!PyUnicode_CheckExact(args[1]) && !PyObject_TypeCheck(args[1], &PyArrayDescr_Type)) goto slow;
            break;
        case DOT: /* of vectors, which is `@`, too, but for one number, which is a product, and errors that are not told of */
            if (names == NULL && n == 2 && (x = seen_of(args[0])) && PyArray_NDIM(x) == 1 && PyArray_TYPE(x) == NPY_DOUBLE) {
                PyArrayObject* y = seen_of(args[1]);
                if (y && PyArray_NDIM(y) == 1 && PyArray_DIM(x, 0) != 1) found = direct_product(x, y);
            }
            if (names == NULL && n == 2 && x == NULL) found = product_in_passing(args[0], args[1]);
            if (found || PyErr_Occurred()) return found;
            break;
        case MATRICES:
            if (names || n < 1 || n > 2 || n != self->matrices->loops.nin || (x = memory_of(args[0])) == NULL || (n == 2 && memory_of(args[1]) == NULL)) break;
            return of_matrices(self, args, n);
        case WHERE:
            if (names || n != 3 || (x = memory_of(args[0])) == NULL || !(memory_of(args[1]) || memory_of(args[2]))) break;
            found = where_of(x, memory_of(args[1]), memory_of(args[2]), memory_of(args[1]) ? args[2] : args[1]);
            if (found || PyErr_Occurred()) return cell_of(found, NULL);
            break;
        case SEARCHED: { /* `(a, v, side)` */
            PyArrayObject *sorted = n > 1 ? memory_of(args[0]) : NULL, *keys = sorted ? memory_of(args[1]) : NULL;
            int right = total == 3 && PyUnicode_CheckExact(args[2]) && PyUnicode_CompareWithASCIIString(args[2], "right") == 0;
            npy_int64 place = sorted && keys == NULL && n == total && (total == 2 || right) ? searched_one(sorted, args[1], right) : -1;
            if (place >= 0) return number_of(number_read((char*)&place, raw_dtypes[NPY_INTP], NULL));
            if (keys == NULL || !(total == 2 || (right && n == 3) || (right && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "side") == 0))) break;
            Py_INCREF(sorted), Py_INCREF(keys);
            found = searched(sorted, keys, right);
            Py_DECREF(sorted), Py_DECREF(keys);
            if (found || PyErr_Occurred()) return cell_of(found, NULL);
            break;
        }
        case VARIANCE:
        case DEVIATION: { /* `(a, axis, ddof=, keepdims=)` */
            PyObject* axis = n == 2 ? args[1] : Py_None;
            long ddof = 0;
            int keeps = 0;
            for (Py_ssize_t k = given; k < total && n; k++) {
                PyObject* name = PyTuple_GET_ITEM(names, k - given);
                if (name == axis_name && n == 1) axis = args[k];
                else if (name == ddof_name && PyLong_CheckExact(args[k]) && (ddof = PyLong_AsLong(args[k])) >= 0 && ddof < 1 << 20) continue;
                else if (name == keepdims_name && PyBool_Check(args[k])) keeps = args[k] == Py_True;
                else n = 0; /* another keyword, or value */
            }
            if (PyErr_Occurred()) PyErr_Clear();
            x = n < 1 ? NULL : axis == Py_None ? existing_memory(args[0]) : memory_of(args[0]);
            if (n < 1 || n > 2 || !(axis == Py_None || PyLong_CheckExact(axis)) || x == NULL) {
                n = given;
                break;
            }
            Py_INCREF(x);
            found = spread_of(self->reduction, x, axis, keeps, (double)ddof, self->kind == DEVIATION);
            Py_DECREF(x);
            if (found && PyArray_CheckExact(found)) return cell_of(found, NULL);
            if (found || PyErr_Occurred()) return found;
            break;
        }
        case CLOSE: { /* `(a, b, rtol, atol)` */
            double within[2] = {1e-5, 1e-8};
            int fine = n >= 2 && n <= 4 && limit_now();
            for (Py_ssize_t k = 2; fine && k < total; k++) {
                PyObject* name = k < n ? NULL : PyTuple_GET_ITEM(names, k - n);
                int which = k < n ? (int)k - 2 : PyUnicode_CompareWithASCIIString(name, "rtol") == 0 ? 0 : PyUnicode_CompareWithASCIIString(name, "atol") == 0 ? 1 : -1;
                if (which < 0 || !PyFloat_CheckExact(args[k])) fine = 0;
                else within[which] = PyFloat_AS_DOUBLE(args[k]);
            }
            fine = fine && within[0] >= 0 && within[0] <= DBL_MAX && within[1] >= 0 && within[1] <= DBL_MAX; /* else NumPy warns */
            if (fine) found = close_of(args[0], args[1], within[0], within[1], self->all);
            if (found || PyErr_Occurred()) return found;
            break;
        }
        case JOINED:
            if (total == 1 && n == 1) found = joined(args[0]);
            if (found || PyErr_Occurred()) return answer(found, NULL, 0);
            break;
        case PRODUCT:
            if (!grows_little(args, total)) goto slow;
            if (names == NULL && n == 2 && (x = memory_of(args[0])) && memory_of(args[1])) found = outer_of(x, memory_of(args[1]));
            if (found || PyErr_Occurred()) return cell_of(found, NULL);
            break;
        case DRAW:
            if (limit_now() == 0) goto slow;
            if (self->later > 0 && draw_counts(self, args, total) && draw_now(self, args, n, names) < 0) return NULL;
            least = 0;
            break;
        case RANGE:
            if (n == 0 || !are_named(names, "dtype", "") || !small_range(args, n)) goto slow;
            if (names == NULL && (x = range_of(args, n))) return cell_of((PyObject*)x, NULL);
            least = 0;
            break;
        case STACKED: case ROWS_STACKED: case JOINED_FLAT: case COLUMNS_STACKED: /* `(arrays)` */
            if (self->kind == JOINED_FLAT && names == NULL && n == 1 && IS_ROW(args[0]) && PySequence_Fast_GET_SIZE(args[0]) && axes_of(PySequence_Fast_ITEMS(args[0])[0]) > 1) break;
            if (names == NULL && n == 1 && IS_ROW(args[0]) && limit_now() && (found = of_arrays(args[0], self->kind))) return cell_of(found, NULL);
            break;
        case POSITION: /* `(a, axis)` */
            if (total == 2 && n && (n == 2 || PyTuple_GET_ITEM(names, 0) == axis_name) && PyLong_CheckExact(args[1]) && (x = memory_of(args[0])) && PyArray_NDIM(x) > 1) {
                int overflow;
                long axis = PyLong_AsLongAndOverflow(args[1], &overflow);
                if (overflow || axis < -AXES || axis >= AXES) break; /* NumPy refuses */
                Py_INCREF(x);
                found = cell_of((PyObject*)positions_along(x, (int)axis, self->direct == direct_argmax), NULL);
                if (found == NULL && !PyErr_Occurred()) found = answer((self->direct == direct_argmax ? PyArray_ArgMax : PyArray_ArgMin)(x, (int)axis, NULL), (PyObject**)args, 1);
                Py_DECREF(x);
                return found;
            }
            break;
        case RESHAPE:
            if (names || !(n == 2 || (n > 2 && Py_IS_TYPE(self->theirs, &PyMethodDescr_Type)))) break;
            if ((x = memory_of(args[0])) && !is_part(args[0])) {
                found = reshaped(x, args + 1, n - 1);
                if (found || PyErr_Occurred()) return answer(found, (PyObject**)args, 1);
            } else {
                Lengths lengths = {args + 1, n - 1};
                found = large_view(args[0], view_reshaped, &lengths, 1);
                if (found || PyErr_Occurred()) return found;
            }
            break;
        case ASTYPE:
            if (names == NULL && n == 2 && (x = memory_of(args[0]))) found = converted(x, args[1]);
            if (found || PyErr_Occurred()) return cell_of(found, NULL);
            break;
        case LINSPACE: case SPACED:
            if (self->kind == LINSPACE && limit_now() && ((found = linspace_of(args, n, names)) || PyErr_Occurred())) return found;
            if (n < 2 || !spaced_little(args, n, names)) goto slow;
            least = 0;
            break;
        case OUTER:
        case AT:
        case OF_UFUNC:
            if (n < 2 || !is_ufunc(args[0])) goto slow;
            first = numpys_ufunc(args[0]);
            if (!PyObject_TypeCheck(first, &PyUFunc_Type)) goto slow;
            if (self->kind == OUTER && !grows_little(args + 1, total - 1)) goto slow;
            if (self->kind != AT) break;
            if (names == NULL && n > 2 && ((found = at_positions(first, args + 1, n - 1)) || PyErr_Occurred())) return found;
            x = memory_of(args[1]);
            if (x == NULL || is_part(args[1]) || !is_writable(x)) goto slow; /* NumPy writes to read-only memory */
            break;
        case REDUCTION:
        case MEAN:
            if (total == 0 || total > 3) break;
            x = memory_of(args[0]);
            if (total == 1 && n == 1) {
                PyArrayObject *numbers = existing_memory(args[0]), *values = numbers ? numbers : read_memory(args[0]);
                if (values && (PyArray_ISBOOL(values) || (numbers && x == NULL && (self->kind != MEAN || HAS_MEAN(PyArray_TYPE(values)))))) {
                    Py_INCREF(values);
                    found = PyArray_ISBOOL(values) ? of_truth(self, args[0], values) : reduced_whole(self, values);
                    Py_DECREF(values);
                    if (found || PyErr_Occurred()) return found;
                }
            }
            if (x == NULL && least == 0 && (is_number(args[0]) || IS_LIST(args[0]))) break;
            if (x == NULL) goto slow;
            keeps = total == n + 1 && total > 1 && PyTuple_GET_ITEM(names, 0) == keepdims_name; /* `(a, axis, keepdims=True)` */
            keeps |= total == n + 2 && PyTuple_GET_ITEM(names, 0) == axis_name && PyTuple_GET_ITEM(names, 1) == keepdims_name;
            if (keeps && (total < 3 || args[2] != Py_True)) break;
            if (total == 3 && !keeps) break;
            if (total == 1 || ((n == 2 || (n == 1 && PyTuple_GET_ITEM(names, 0) == axis_name)) && (args[1] == Py_None || PyLong_CheckExact(args[1])))) {
                Py_INCREF(x);
                found = reduced(self, args[0], x, total == 1 ? Py_None : args[1], keeps);
                Py_DECREF(x);
                if (found || PyErr_Occurred()) return found;
            }
    }
    if ((total == 0 && self->kind != DRAW) || (self->kernels && any_large(args, total, 1))) goto slow;
    if (self->method && names == NULL && Py_TYPE(args[0]) == array_type) found = asked(self->method, args, n, names, least, 0, ANY, first);
    else found = asked(self->theirs, args, n, names, least, self->listens, self->kind, first);
    if (found || PyErr_Occurred()) return found;
slow:
    return slow_answer(self, args, n, names);
}

/* Calls that are recorded ---------------------------------------------------------------------------------------------------------------- */

/* `(a, axis)`, `(a, axis=axis)`, and either with `keepdims=True`, and (`off`) a number as `ddof=`: which axis; -1 of all other calls. */
static int call_axis(PyObject* const* args, Py_ssize_t n, PyObject* names, int ndim, int* keeps, int* off) {
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0, next = 0;
    int axis = -1;
    *keeps = 0;
    if (n == 2) axis = axis_of(args[1], ndim);
    else if (n == 1 && named && PyTuple_GET_ITEM(names, 0) == axis_name) axis = axis_of(args[1], ndim), next = 1;
    if (axis < 0) return -1;
    for (; next < named; next++) {
        PyObject *name = PyTuple_GET_ITEM(names, next), *given = args[n + next];
        int overflow;
        long number = off && name == ddof_name && PyLong_CheckExact(given) ? PyLong_AsLongAndOverflow(given, &overflow) : -1;
        if (name == keepdims_name && PyBool_Check(given)) *keeps = given == Py_True;
        else if (number >= 0 && number < 1 << 20) *off = (int)number;
        else return -1;
    }
    return axis;
}

/* Sums and means of truth values along an axis, which are counts. */
static PyArrayObject* truths_along(Chain* self, int is_mean) {
    PyArrayObject *x = self->array[0], *made;
    npy_intp outer = 1, inner = 1, length = PyArray_DIM(x, self->item.axis);
    npy_int64* to;
    for (int k = 0; k < self->item.axis; k++) outer *= PyArray_DIM(x, k);
    for (int k = self->item.axis + 1; k < PyArray_NDIM(x); k++) inner *= PyArray_DIM(x, k);
    if (sizeof(npy_int64) != sizeof(double) || (made = raw_new(self->ndim, self->dims, is_mean ? NPY_DOUBLE : NPY_LONG, self->size)) == NULL) return NULL;
    truths_counted(PyArray_BYTES(x), outer, length, inner, to = (npy_int64*)PyArray_BYTES(made));
    for (npy_intp k = 0; is_mean && k < outer * inner; k++) {
        double mean = (double)to[k] / (double)length;
        memcpy(to + k, &mean, sizeof(mean));
    }
    return made;
}

static void divided_double(double* to, npy_intp n, double by) {
    for (npy_intp k = 0; k < n; k++) to[k] /= by;
}
static void divided_float(float* to, npy_intp n, float by) {
    for (npy_intp k = 0; k < n; k++) to[k] /= by;
}

/* Sums of `count` elements each become means; NULL where an error is raised. */
static PyArrayObject* means_of(PyArrayObject* sums, npy_intp count) {
    flags_clear(1);
    if (PyArray_TYPE(sums) == NPY_DOUBLE) divided_double((double*)PyArray_DATA(sums), PyArray_SIZE(sums), (double)count);
    else divided_float((float*)PyArray_DATA(sums), PyArray_SIZE(sums), (float)count);
    if (flags_raised(1)) Py_CLEAR(sums);
    return sums;
}

/* What a reduction has instead of sums. */
static inline int spread_as(const Function* of) { return of->kind == VARIANCE ? VARIANCES : of->kind == DEVIATION ? DEVIATIONS : SUMS_ALONE; }

static PyArrayObject* reduction_by_steps(Chain* self) {
    const Function* of = (Function*)self->item.call;
    npy_intp length = self->source[0] && WAITS(self->source[0]) && CHAIN_OF(self->source[0]) ? CHAIN_OF(self->source[0])->dims[self->item.axis] : 0;
    PyArrayObject* made = length ? rows_waiting(self, of->reduction, spread_as(of)) : NULL;
    return made && of->kind == MEAN ? means_of(made, length) : made;
}

/* The answers of calls along an axis that need nothing but loops; NULL, perhaps without an exception, as for `ByLoops`. */
static PyArrayObject* reduction_by_loops(Chain* self) {
    const Function* of = (Function*)self->item.call;
    PyArrayObject *x = self->array[0], *made;
    if (PyArray_ISBOOL(x) && sizeof(npy_long) == sizeof(npy_int64) && (of->kind == MEAN || of->reduces == SUMS) && of->reduction->from_zero) return truths_along(self, of->kind == MEAN);
    made = axis_spread(of->reduction, x, self->item.axis, self->item.keeps, 1, spread_as(of), self->item.off);
    return made && of->kind == MEAN ? means_of(made, PyArray_SIZE(x) / PyArray_SIZE(made)) : made;
}

static PyArrayObject* positions_by_loops(Chain* self) {
    return positions_along(self->array[0], self->item.axis, ((Function*)self->item.call)->direct == direct_argmax);
}

#define ROWS_FROM 8 /* elements of a row, from which on a call of the loop for each is worth its price */

static Loops* loops_of_ufunc(PyObject* ufunc);

/* `cumsum`, `cumprod` and `ufunc.accumulate`, of all elements (axis -1) or along an axis, as NumPy accumulates. */
static PyArrayObject* scan_by_loops(Chain* self) {
    const Function* of = (Function*)self->item.call;
    PyArrayObject *x = self->array[0], *made;
    Loops* loops = of->kind == OF_UFUNC ? loops_of_ufunc(self->item.args[0]) : &binary_loops[of->recorded == SCANS ? ADD : MUL];
    Loop* loop = loops && loops->nin == 2 && !loops->kernels ? loop_of(loops, PyArray_TYPE(x)) : NULL;
    npy_intp size = PyArray_ITEMSIZE(x), length = PyArray_SIZE(x), outer = 1, inner = size, row;
    int axis = self->item.axis, errors = 0;
    if (loop == NULL || loop->out != PyArray_TYPE(x) || self->at[0].step.out != loop->out || !PyArray_ISCARRAY_RO(x)) return NULL;
    if (axis >= 0) {
        length = PyArray_DIM(x, axis);
        for (int k = 0; k < PyArray_NDIM(x); k++) *(k < axis ? &outer : &inner) *= k == axis ? 1 : PyArray_DIM(x, k);
    }
    if ((made = step_room(self, 0)) == NULL) return NULL;
    row = length * inner;
    for (npy_intp o = 0; o < outer && errors >= 0; o++) {
        char *from = PyArray_BYTES(x) + o * row, *to = PyArray_BYTES(made) + o * row;
        memcpy(to, from, (size_t)inner);
        if (inner < ROWS_FROM * size) /* each column at a time */
            for (npy_intp at = 0; at < inner; at += size) errors |= run2(loop, to + at, from + at + inner, to + at + inner, length - 1, inner, inner, inner);
        else
            for (npy_intp k = 1; k < length; k++) errors |= run2(loop, to + (k - 1) * inner, from + k * inner, to + k * inner, inner / size, size, size, size);
    }
    if (errors < 0 || errors & self->minded) Py_CLEAR(made); /* made again, and told of */
    return made;
}

/* A reduction along an axis. */
static int reduction_call(Call* call, Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const Read* x = &call->read[0];
    npy_intp dims[AXES];
    int ndim = 0, axis, keeps, type, off = 0, is_spread = self->kind == VARIANCE || self->kind == DEVIATION;
    if (!call_takes(call, args[0]) || (axis = call_axis(args, n, names, x->ndim, &keeps, is_spread ? &off : NULL)) < 0 || read_size(x) == 0) return 0;
    type = x->type;
    if (is_spread) {
        if (off >= x->dims[axis]) return 0; /* NumPy warns */
        if (type != NPY_DOUBLE && type != NPY_FLOAT) return 0;
    } else if (self->kind == MEAN) {
        if (type == NPY_BOOL || PyTypeNum_ISINTEGER(type)) type = NPY_DOUBLE;
    } else {
        switch (self->reduces) {
        case SUMS: type = sum_type(type); break;
        case EXTREMES: break;
        case TRUTHS_OF: type = NPY_BOOL; break;
        default: return 0;
        }
    }
    for (int k = 0; k < x->ndim; k++)
        if (k != axis || keeps) dims[ndim++] = k == axis ? 1 : x->dims[k];
    call_gives(call, type, ndim, dims);
    if (self->kind != MEAN || x->type == NPY_DOUBLE || x->type == NPY_FLOAT || x->type == NPY_BOOL) call->by_loops = reduction_by_loops, call->axis = axis, call->keeps = keeps, call->off = off;
    if (call->by_loops && (x->type == NPY_DOUBLE || x->type == NPY_FLOAT)) call->by_steps = reduction_by_steps;
    return 1;
}

/* A number beside arrays of `type`, as it changes the type of the result; -1 where NumPy has to say. */
static int beside_number(int type, PyObject* number) {
    Value value;
    if (PyFloat_CheckExact(number) && (type == NPY_BOOL || PyTypeNum_ISINTEGER(type))) return NPY_DOUBLE;
    if (PyLong_CheckExact(number) && type == NPY_BOOL) return value_of(number, NPY_LONG, &value) ? NPY_LONG : -1;
    return (PyFloat_CheckExact(number) || PyLong_CheckExact(number) || PyBool_Check(number)) && value_of(number, type, &value) ? type : -1;
}

/* The items of a list one behind the other; they have one dtype, else NumPy joins them. */
static PyArrayObject* joined_by_loops(Chain* self) {
    npy_intp rows = 1, bytes, across, inner;
    PyArrayObject* made;
    char* to;
    for (int k = 0; k < self->arrays; k++)
        if (PyArray_TYPE(self->array[k]) != self->at[0].step.out) return NULL;
    if ((made = raw_new(self->ndim, self->dims, self->at[0].step.out, self->size)) == NULL) return NULL;
    for (int k = 0; k < self->item.axis; k++) rows *= self->dims[k];
    to = PyArray_BYTES(made), across = self->size * PyArray_ITEMSIZE(made) / rows, inner = across / self->dims[self->item.axis];
    for (int k = 0; k < self->arrays; k++, to += bytes)
        if ((bytes = PyArray_DIM(self->array[k], self->item.axis) * inner)) rows_copied(to, across, PyArray_BYTES(self->array[k]), bytes, rows, bytes);
    return made;
}

/* `concatenate([...])` and `concatenate([...], axis)`; the list becomes a tuple, which nobody changes. */
static int joined_call(Call* call, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    npy_intp dims[AXES], length = 0;
    PyObject** items = PySequence_Fast_ITEMS(args[0]);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(args[0]), total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    int axis = 0, type = -1, ndim;
    if (count == 0 || count > CHAIN_ARRAYS) return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (!call_takes(call, items[k])) return 0;
        type = k ? common_type(type, call->read[k].type) : call->read[k].type;
        if (type < 0) return 0;
    }
    ndim = call->read[0].ndim;
    if (total == 2 && (n == 2 || PyTuple_GET_ITEM(names, 0) == axis_name)) axis = axis_of(args[1], ndim);
    else if (total > 1) return 0;
    if (axis < 0) return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        const Read* x = &call->read[k];
        if (x->ndim != ndim) return 0;
        for (int d = 0; d < ndim; d++)
            if (d != axis && x->dims[d] != call->read[0].dims[d]) return 0;
        length += x->dims[axis];
    }
    memcpy(dims, call->read[0].dims, (size_t)ndim * sizeof(npy_intp));
    dims[axis] = length;
    call_gives(call, type, ndim, dims);
    if (call->size) call->by_loops = joined_by_loops, call->axis = axis;
    return 1;
}

/* The number of a dtype that is named by an object; -1 where no code shall run to find it. */
static int dtype_number(PyObject* dtype) {
    PyArray_Descr* descr = NULL;
    int number = -1;
    if (dtype == (PyObject*)&PyFloat_Type) return NPY_DOUBLE;
    if (dtype == (PyObject*)&PyLong_Type) return NPY_LONG;
    if (dtype == (PyObject*)&PyBool_Type) return NPY_BOOL;
    if (PyUnicode_CheckExact(dtype)) {
        if (PyUnicode_GET_LENGTH(dtype) == 0 || PyUnicode_READ_CHAR(dtype, 0) > 127 || strchr("?bBhHiIlLqQfdeucFD", (int)PyUnicode_READ_CHAR(dtype, 0)) == NULL) return -1;
    } else if (!PyObject_TypeCheck(dtype, &PyArrayDescr_Type) && !(PyType_Check(dtype) && PyType_IsSubtype((PyTypeObject*)dtype, &PyGenericArrType_Type))) return -1;
    if (!PyArray_DescrConverter(dtype, &descr)) return PyErr_Clear(), -1;
    if (IS_NUMERIC(descr->type_num) && PyArray_ISNBO(descr->byteorder)) number = descr->type_num;
    Py_DECREF(descr);
    return number;
}

/* Whether an operand is one of steps that wait, or are computed at the call, and what it is. */
static inline int operand_shown(PyObject* x, Read* to) { return operand_read(x, to, NULL) || is_read_now(to); }

/* A cast or a copy as a step of a tape; NULL, perhaps without an exception, where it is none. */
static PyObject* cast_recorded(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Read read;
    int to;
    if (names || n != (self->kind == ASTYPE ? 2 : 1) || !operand_shown(args[0], &read) || read.type < 0) return NULL;
    to = self->kind == ASTYPE ? dtype_number(args[1]) : read.type;
    if (!IS_NUMERIC(to) || cast_loops[to].of[read.type].function == NULL) return NULL;
    return chain_step(&cast_loops[to], args[0], NULL);
}

static Loops clip_loops, low_loops, high_loops;

/* The ufuncs by which NumPy's `clip` clips on both sides, from below and from above. */
static void clip_fill(PyObject* both, PyObject* low, PyObject* high) {
    if (!PyObject_TypeCheck(both, &PyUFunc_Type) || ((PyUFuncObject*)both)->nin != 3) return;
    loops_fill(&clip_loops, both, 1), loops_fill(&low_loops, low, 1), loops_fill(&high_loops, high, 1);
}

/* `clip(a, low, high)` as a step, of which one bound may be None; NULL, perhaps without an exception, where it is none. */
static PyObject* clip_recorded(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject* bound;
    Loops* loops;
    Read read;
    if (names || n != 3 || clip_loops.ufunc == NULL || !operand_shown(args[0], &read) || read.type < 0) return NULL;
    for (int k = 1; k < 3; k++)
        if (args[k] != Py_None && Py_TYPE(args[k]) != array_type && (!is_number(args[k]) || beside_number(read.type, args[k]) != read.type)) return NULL;
    if (args[1] != Py_None && args[2] != Py_None) return clip_loops.of[read.type].function ? step_recorded(&clip_loops, args) : NULL;
    bound = args[1] == Py_None ? args[2] : args[1];
    if (Py_TYPE(bound) == array_type || bound == Py_None) return NULL;
    loops = bound == args[1] ? &low_loops : &high_loops;
    return loops->of[read.type].function ? chain_step(loops, args[0], bound) : NULL;
}

/* `round(a, decimals)` of floats as steps, NumPy's: between a product and a quotient, or the other way round, where there are decimals.  NULL, perhaps
   without an exception, where it is none. */
static PyObject* round_recorded(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    static const double tens[] = {1, 10, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
    PyObject *power, *scaled, *whole, *found = NULL;
    long decimals;
    Read read;
    if (n + (names ? PyTuple_GET_SIZE(names) : 0) > 2 || n < 1 || (names && PyTuple_GET_SIZE(names) && !is_named(names, "decimals"))) return NULL;
    if (!operand_shown(args[0], &read) || (read.type != NPY_DOUBLE && read.type != NPY_FLOAT) || read_size(&read) == 0) return NULL;
    if (n == 1 && (names == NULL || PyTuple_GET_SIZE(names) == 0)) return chain_step(&round_loops, args[0], NULL);
    if (!PyLong_CheckExact(args[1])) return NULL;
    decimals = PyLong_AsLong(args[1]);
    if (decimals == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
    if (decimals == 0) return chain_step(&round_loops, args[0], NULL);
    if (read.array && !PyArray_IS_C_CONTIGUOUS(read.array)) return NULL; /* the result lies in C's order, or in Fortran's */
    if (decimals < -8 || decimals > 8 || (power = PyFloat_FromDouble(tens[labs(decimals)])) == NULL) return NULL;
    scaled = chain_step(&binary_loops[decimals > 0 ? MUL : DIV], args[0], power);
    whole = scaled ? chain_step(&round_loops, scaled, NULL) : NULL;
    if (whole) found = chain_step(&binary_loops[decimals > 0 ? DIV : MUL], whole, power);
    Py_XDECREF(scaled), Py_XDECREF(whole), Py_DECREF(power);
    return found;
}

/* How `roll(a, shift, axis)` moves an array in C's order: blocks of `length` times `inner` bytes, by `shift`. */
typedef struct {
    npy_intp length, inner, shift;
} Roll;

/* 0 where NumPy has to see to it. */
static int roll_of(Roll* of, int ndim, const npy_intp* dims, npy_intp inner, PyObject* const* args, Py_ssize_t total, PyObject* names) {
    PyObject* axis = total == 3 ? args[2] : Py_None;
    int at = axis == Py_None ? 0 : axis_of(axis, ndim), overflow;
    long long shift;
    if (total < 2 || total > 3 || !PyLong_CheckExact(args[1]) || at < 0) return 0;
    if (names && PyTuple_GET_SIZE(names) && (total < 3 || PyTuple_GET_SIZE(names) != 1 || !is_named(names, "axis"))) return 0;
    shift = PyLong_AsLongLongAndOverflow(args[1], &overflow);
    if (overflow) return 0;
    of->length = 1, of->inner = inner;
    for (int k = at; k < ndim; k++) *(k == at || axis == Py_None ? &of->length : &of->inner) *= dims[k];
    if (of->length == 0) return 0;
    of->shift = (npy_intp)(shift % of->length);
    of->shift += of->shift < 0 ? of->length : 0;
    return 1;
}

static PyArrayObject* roll_by_loops(Chain* self) {
    PyArrayObject *x = self->array[0], *made;
    npy_intp block, kept, rows, size = PyArray_ITEMSIZE(x);
    Roll of;
    if (!roll_of(&of, self->ndim, self->dims, size, self->item.args, self->item.total, self->item.names)) return NULL;
    if ((made = raw_new(self->ndim, self->dims, self->at[0].step.out, self->size)) == NULL) return NULL;
    block = of.length * of.inner, kept = block - of.shift * of.inner;
    rows = self->size * size / block;
    char *from = PyArray_BYTES(x), *to = PyArray_BYTES(made);
    rows_copied(to + block - kept, block, from, block, rows, kept);
    if (kept < block) rows_copied(to, block, from + kept, block, rows, block - kept);
    return made;
}

/* `roll` of an array; where no axis is given NumPy returns a view of the result.  NULL, perhaps without an exception, where it is not recorded so. */
static PyObject* roll_recorded(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject* made = NULL;
    Call call;
    Begun begun;
    Roll of;
    call_begins(&call), call.silent = 1;
    if (!recording_begin(&begun)) return NULL;
    if (call_takes(&call, args[0]) && (call.read[0].ndim == 1 || (total == 3 && args[2] != Py_None)) && read_size(&call.read[0]) && roll_of(&of, call.read[0].ndim, call.read[0].dims, 1, args, total, names)) {
        call_gives(&call, call.read[0].type, call.read[0].ndim, call.read[0].dims);
        call.by_loops = roll_by_loops;
        if (call_fits(&call)) made = call_waits(&call, &begun, function_answer, (PyObject*)self, args, n, names, 0);
    }
    made = call_made(&call, recording_end(&begun, made));
    if (made && (total < 3 || args[2] == Py_None)) Py_SETREF(made, PyObject_GetItem(made, Py_Ellipsis));
    return made;
}

/* Calls whose answer is like their operand, but for its dtype: casts, scans, sorts. */
static int like_call(Call* call, Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    const Read* x = &call->read[0];
    int type, axis, keeps = 0;
    npy_intp size;
    if (!call_takes(call, args[0]) || (size = read_size(x)) == 0) return 0;
    type = x->type;
    switch (self->kind == ASTYPE ? CASTS_TO : self->recorded) {
    case CASTS_TO:
        if (names || n != 2 || (PyTypeNum_ISCOMPLEX(type) && !PyTypeNum_ISCOMPLEX(dtype_number(args[1]))) || (type = dtype_number(args[1])) < 0 || type == NPY_LONGDOUBLE || type == NPY_CLONGDOUBLE) return 0;
        break;
    case COPIES:
        if (names || n != 1) return 0;
        break;
    case SCANS:
    case SCANS_PRODUCTS:
        type = sum_type(type), axis = -1;
        if ((n != 1 || names) && ((axis = call_axis(args, n, names, x->ndim, &keeps, NULL)) < 0 || keeps)) return 0;
        call_gives(call, type, axis < 0 ? 1 : x->ndim, axis < 0 ? &size : x->dims);
        call->by_loops = scan_by_loops, call->axis = axis;
        return 1;
    case SORTS:
    case SORTS_POSITIONS:
        if (n != 1 || names) {
            if (call_axis(args, n, names, x->ndim, &keeps, NULL) < 0 || keeps) return 0;
        }
        if (self->recorded == SORTS_POSITIONS) type = NPY_INTP;
        break;
    case ROUNDS:
        if (names || n > 2 || (n == 2 && axis_of(args[1], 16) < 0) || !PyTypeNum_ISFLOAT(type)) return 0;
        break;
    case ARG_EXTREMES: {
        npy_intp dims[AXES];
        int ndim = 0;
        if (PyTypeNum_ISCOMPLEX(type) || (axis = call_axis(args, n, names, x->ndim, &keeps, NULL)) < 0 || keeps) return 0;
        for (int k = 0; k < x->ndim; k++)
            if (k != axis) dims[ndim++] = x->dims[k];
        call_gives(call, NPY_INTP, ndim, dims);
        call->by_loops = positions_by_loops, call->axis = axis;
        return 1;
    }
    default:
        return 0;
    }
    call_gives(call, type, x->ndim, x->dims);
    return 1;
}

/* The product of all pairs. */
static int outer_call(Call* call, PyObject* const* args) {
    npy_intp dims[2];
    if (!call_takes_any(call, args[0]) || !call_takes_any(call, args[1]) || call->read[0].ndim != 1 || call->read[1].ndim != 1) return 0;
    if (call->count < 2 || call->read[0].type != call->read[1].type || call->read[0].type == NPY_BOOL) return 0;
    dims[0] = call->read[0].dims[0], dims[1] = call->read[1].dims[0];
    call_gives(call, call->read[0].type, 2, dims);
    return 1;
}

/* Whether a call is one of those that are recorded, at first sight. */
static inline int may_be_recorded(const Function* self, PyObject* const* args, Py_ssize_t n, Py_ssize_t total) {
    if (n == 0 || total > ITEM_ARGS || limit_now() == 0) return 0;
    switch (self->kind) {
    case REDUCTION: case MEAN: case VARIANCE: case DEVIATION: return total > 1 && Py_TYPE(args[0]) == array_type;
    case WHERE: return n == 3 && total == 3;
    case JOINED: return IS_LIST(args[0]) && !PyRange_Check(args[0]);
    case ASTYPE: return n == 2 && Py_TYPE(args[0]) == array_type;
    case PRODUCT: return n == 2 && total == 2;
    case DOT: return n == 2 && total == 2 && axes_of(args[0]) + axes_of(args[1]) > 2;
    default: return self->recorded && (Py_TYPE(args[0]) == array_type || self->recorded == SELECTS);
    }
}

/* The method: real numbers are their own conjugates. */
static PyObject* conjugate_recorded(PyObject* a) {
    Read read;
    if (!operand_shown(a, &read)) return NULL;
    return PyTypeNum_ISCOMPLEX(read.type) ? chain_step(&conjugate_loops, a, NULL) : Py_NewRef(a);
}

/* `a[..., from:to]` of an axis. */
static PyObject* part_along(PyObject* a, int axis, PyObject* from, PyObject* to) {
    PyObject *key = PyTuple_New(axis + 1), *slice, *part = NULL;
    for (int k = 0; key && k <= axis; k++) {
        if ((slice = k < axis ? PySlice_New(NULL, NULL, NULL) : PySlice_New(from, to, NULL))) PyTuple_SET_ITEM(key, k, slice);
        else Py_CLEAR(key);
    }
    if (key) part = PyObject_GetItem(a, key);
    Py_XDECREF(key);
    return part;
}

/* `diff` of one axis, once: a difference of two parts; NULL, perhaps without an exception, where it is not recorded so. */
static PyObject* diff_recorded(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject *one = PyLong_FromLong(1), *other = PyLong_FromLong(-1), *later = NULL, *before = NULL, *made = NULL;
    Read x;
    int fits = one && other && operand_shown(args[0], &x) && x.type > NPY_BOOL && x.ndim > 0, axis = fits ? x.ndim - 1 : -1, overflow;
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    for (Py_ssize_t k = 1; fits && k < total; k++) {
        PyObject* name = k < n ? NULL : PyTuple_GET_ITEM(names, k - n);
        if (name == axis_name ? n < 3 : name == NULL && k == 2) fits = (axis = axis_of(args[k], x.ndim)) >= 0;
        else fits = (name ? n < 2 && PyUnicode_CompareWithASCIIString(name, "n") == 0 : k == 1) && PyLong_CheckExact(args[k]) && PyLong_AsLongAndOverflow(args[k], &overflow) == 1;
    }
    if (fits && x.dims[axis] > 1) later = part_along(args[0], axis, one, NULL);
    if (later) before = part_along(args[0], axis, NULL, other);
    if (before) made = PyNumber_Subtract(later, before);
    Py_XDECREF(one), Py_XDECREF(other), Py_XDECREF(later), Py_XDECREF(before);
    return made;
}

/* Whether NumPy tells of no floating-point errors of a function, whatever it is given. */
static int is_silent(const Function* self) {
    switch (self->kind) {
    case WHERE: case JOINED: case DOT: return 1;
    case REDUCTION: return self->reduces == EXTREMES || self->reduces == TRUTHS_OF;
    case MEAN: case VARIANCE: case DEVIATION: case PRODUCT: case ASTYPE: return 0;
    default: return self->recorded == COPIES || self->recorded == SORTS || self->recorded == SORTS_POSITIONS || self->recorded == ARG_EXTREMES;
    }
}

/* The lengths that `reshape` is given, of which one may be left to it: how many; 0 where NumPy has to see to it. */
static int lengths_given(PyObject* const* lengths, Py_ssize_t n, npy_intp size, npy_intp* dims) {
    npy_intp known = 1;
    int open = -1;
    if (n == 1 && PyTuple_CheckExact(lengths[0])) n = PyTuple_GET_SIZE(lengths[0]), lengths = &PyTuple_GET_ITEM(lengths[0], 0);
    if (n == 0 || n > RAW_AXES) return 0;
    for (int k = 0; k < n; k++) {
        if (!integer_of(lengths[k], &dims[k]) || dims[k] < -1 || dims[k] == 0 || dims[k] > size || (dims[k] == -1 && open >= 0)) return 0;
        if (dims[k] == -1) open = k;
        else known *= dims[k];
        if (known > size) return 0;
    }
    if (open >= 0) {
        if (size % known) return 0;
        dims[open] = size / known;
    }
    return (int)n;
}

/* A view of what waits, which waits, too; NULL, perhaps without an exception, where it is none, or made now. */
static PyObject* function_view(Function* self, PyObject* const* args, Py_ssize_t n) {
    PyObject *a = args[0], *callable = (PyObject*)self;
    npy_intp dims[RAW_AXES + 1], all;
    Raw shadow;
    Place at;
    int ndim, one = -1, two;
    if (!shadow_of(a, &shadow)) return NULL;
    ndim = shadow.fields.nd, all = CHAIN_OF(a)->size;
    if (self->kind == RESHAPE)
        return (n == 2 || (n > 2 && Py_IS_TYPE(self->theirs, &PyMethodDescr_Type))) && (one = lengths_given(args + 1, n - 1, all, dims)) ? reshape_waits(a, one, dims, callable, args, n) : NULL;
    if (n == 1 && self->direct == direct_ravel) return reshape_waits(a, 1, &all, callable, args, n);
    if (n == 1 && self->direct == direct_transpose) return ndim > 1 ? transpose_waits(a, callable) : NULL;
    at.ndim = 0, at.data = shadow.fields.data;
    for (int k = 0; k < ndim; k++) at.dims[k] = shadow.lengths[k], at.strides[k] = shadow.lengths[RAW_AXES + k];
    if (n == 1 && self->direct == direct_squeeze) {
        for (int k = 0; k < ndim; k++)
            if (at.dims[k] != 1) at.dims[at.ndim] = at.dims[k], at.strides[at.ndim++] = at.strides[k];
        return at.ndim == ndim ? Py_NewRef(a) : view_waits(&at, callable, args, n); /* without axes it is computed */
    }
    switch (self->recorded) {
    case EXPANDS:
        if (n != 2 || ndim >= RAW_AXES || (one = axis_of(args[1], ndim + 1)) < 0) return NULL;
        for (int k = 0; k <= ndim; k++) dims[k] = k == one ? 1 : shadow.lengths[k < one ? k : k - 1];
        return reshape_waits(a, ndim + 1, dims, callable, args, n);
    case SWAPS_AXES:
        if (n != 3 || (one = axis_of(args[1], ndim)) < 0 || (two = axis_of(args[2], ndim)) < 0) return NULL;
        at.dims[one] = shadow.lengths[two], at.dims[two] = shadow.lengths[one];
        at.strides[one] = shadow.lengths[RAW_AXES + two], at.strides[two] = shadow.lengths[RAW_AXES + one], at.ndim = ndim;
        break;
    case FLIPS:
        if (n > 2 || (n == 2 && (one = axis_of(args[1], ndim)) < 0)) return NULL;
        for (int k = 0; k < ndim; k++)
            if (n == 1 || k == one) at.data += at.strides[k] * (at.dims[k] - 1), at.strides[k] = -at.strides[k];
        at.ndim = ndim;
        break;
    default: return NULL;
    }
    return view_waits(&at, callable, args, n);
}

#define SEQUENCE 100
static int is_numpys_ufunc(PyObject* x);

/* Ufuncs and operators: shapes follow from shapes, and of an operand that is a number only its type matters, and in which types it fits. */
static inline int is_elementwise(const Function* self) { return self->kind == UFUNC || self->kind == OPERATOR; }

/* A number of Python's beside arrays, by what a layout may depend on. */
static int operand_number_add(Words* to, PyObject* x) {
    static const long long bounds[] = {127, 255, 32767, 65535, 2147483647, 4294967295};
    long long value;
    int overflow, fits = 0;
    if (PyFloat_CheckExact(x)) return word_add(to, CONSTANT_FLOAT);
    if (PyComplex_CheckExact(x)) return word_add(to, CONSTANT_COMPLEX);
    if (!PyLong_CheckExact(x)) return is_number(x) && !PyBool_Check(x) ? word_add(to, CONSTANT_OBJECT) && word_add(to, (uint64_t)(uintptr_t)Py_TYPE(x)) : constant_add(to, x, 0);
    value = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (overflow) return 0;
    while (fits < 6 && (value < 0 ? -1 - value : value) > bounds[fits]) fits++;
    return word_add(to, CONSTANT_INT + ((uint64_t)(1 + fits + 8 * (value < 0)) << 8));
}

/* Read a call, and its signature: how many arrays there are; 0 where it has none that is known.  No code of a program's runs. */
static int signature_read(const Function* self, Call* call, Words* words, PyObject* const* args, Py_ssize_t n, PyObject* names, int* flat) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0), first = 0;
    int elementwise, powers;
    *flat = 1;
    words->count = 0, call_begins(call);
    word_add(words, (uint64_t)(uintptr_t)self), word_add(words, (uint64_t)n);
    if (self->arrays == SEQUENCE) {
        PyObject** items = PySequence_Fast_ITEMS(args[0]);
        if (PySequence_Fast_GET_SIZE(args[0]) > CHAIN_ARRAYS) return 0;
        word_add(words, (uint64_t)PySequence_Fast_GET_SIZE(args[0])), first = 1;
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[0]); k++)
            if (!call_takes_any(call, items[k]) || read_size(&call->read[call->count - 1]) == 0 || !array_add(words, &call->read[call->count - 1])) return 0;
    } else if (self->kind == OF_UFUNC || self->kind == OUTER) {
        if (!is_numpys_ufunc(args[0])) return 0;
        word_add(words, (uint64_t)(uintptr_t)numpys_ufunc(args[0])), first = 1; /* which never goes */
    }
    elementwise = is_elementwise(self), powers = self->op == POW || self->theirs == power_loops.ufunc; /* of these also the value matters */
    for (Py_ssize_t k = first; k < total; k++) {
        if (k >= n && !constant_add(words, PyTuple_GET_ITEM(names, k - n), 0)) return 0;
        if (Py_TYPE(args[k]) != array_type) {
            if (!(elementwise && k < n && !powers ? operand_number_add(words, args[k]) : constant_add(words, args[k], 0))) return 0;
        } else {
            if (k >= n || self->arrays == SEQUENCE || call->count == self->arrays || !call_takes_any(call, args[k]) || read_size(&call->read[call->count - 1]) == 0) return 0;
            if (!(elementwise ? word_add(words, AN_ARRAY + ((uint64_t)call->read[call->count - 1].type << 8)) : array_add(words, &call->read[call->count - 1]))) return 0;
        }
    }
    if (elementwise && call->count) { /* of arrays in C's order only the types matter */
        call->size = dims_join(call->read, call->count, &call->ndim, call->dims);
        if (call->size <= 0) return 0;
        for (int k = 0; k < call->count && *flat; k++) *flat = call->read[k].array == NULL || PyArray_IS_C_CONTIGUOUS(call->read[k].array);
        for (int k = 0; k < call->count && !*flat; k++)
            if (!array_add(words, &call->read[k])) return 0;
    }
    return call->count;
}

/* The arguments of a call with arrays of ones in the place of its own, each of one element where only the types matter (`flat`, of a ufunc); NULL with an exception. */
static PyObject* signature_given(const Function* self, const Call* call, PyObject* const* args, Py_ssize_t total, int flat) {
    PyObject *given = PyTuple_New(total), *items, *one;
    int next = 0, few = flat && is_elementwise(self);
    for (Py_ssize_t k = 0; given && k < total; k++) {
        if (k == 0 && self->arrays == SEQUENCE) {
            items = PyTuple_New(call->count);
            for (int o = 0; items && o < call->count; o++) {
                if ((one = ones_like_read(&call->read[o], 0))) PyTuple_SET_ITEM(items, o, one);
                else Py_CLEAR(items);
            }
            one = items;
        } else if (Py_TYPE(args[k]) == array_type) {
            one = ones_like_read(&call->read[next++], few);
        } else {
            one = Py_NewRef(k == 0 && is_ufunc(args[k]) ? numpys_ufunc(args[k]) : args[k]);
        }
        if (one) PyTuple_SET_ITEM(given, k, one);
        else Py_CLEAR(given);
    }
    return given;
}

/* Whether an argument is a number that may say how often something comes. */
static int is_many(PyObject* x) {
    int overflow;
    for (Py_ssize_t k = 0; PyTuple_CheckExact(x) && k < PyTuple_GET_SIZE(x); k++)
        if (is_many(PyTuple_GET_ITEM(x, k))) return 1;
    return PyLong_CheckExact(x) && (PyLong_AsLongAndOverflow(x, &overflow) > ASKED_TIMES || overflow);
}

/* Whether NumPy may be asked what a call gives: that costs little. */
static int is_asked_cheaply(const Function* self, const Call* call, PyObject* const* args, Py_ssize_t total, int flat) {
    npy_intp elements = 0, product = 1;
    if (flat && is_elementwise(self)) return 1;
    for (int k = 0; k < call->count; k++) {
        npy_intp size = read_size(&call->read[k]);
        elements += size;
        if (size > ASKED_MOST || (product *= size) > ASKED_MOST) product = ASKED_MOST + 1;
    }
    for (Py_ssize_t k = 0; k < total; k++)
        if (is_many(args[k])) return 0;
    return elements <= self->asked && (self->arrays == 1 || self->arrays == SEQUENCE || is_elementwise(self) || product <= ASKED_MOST);
}

/* A call of a signature that is not known, made at once, and its layout noted. */
static PyObject* signature_first(Function* self, const Words* words, const Call* call, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject *constants = PyTuple_New(total), *found, *items[CHAIN_ARRAYS];
    int count = call->count;
    if (constants == NULL) return NULL;
    for (Py_ssize_t k = 0; k < total; k++) /* not the arrays */
        PyTuple_SET_ITEM(constants, k, Py_NewRef(Py_TYPE(args[k]) == array_type || (k == 0 && self->arrays == SEQUENCE) ? Py_None : args[k]));
    for (int k = 0; k < count; k++) items[k] = Py_NewRef(call->operands[k]); /* those of a list may go meanwhile */
    found = settle_all() < 0 ? NULL : function_answer((PyObject*)self, args, n, names);
    if (found) signature_watch(words, call, constants, found);
    for (int k = 0; k < count; k++) Py_DECREF(items[k]);
    Py_DECREF(constants);
    return found;
}

/* Whether it is a method of `power`, which raises for some integers. */
static int is_of_powers(const Function* self, PyObject* const* args, Py_ssize_t n) {
    if (self->kind == OPERATOR ? self->op == POW : self->kind == UFUNC && self->theirs == power_loops.ufunc) return n != 2 || !is_natural(args[1]);
    return (self->kind == OF_UFUNC || self->kind == OUTER) && is_ufunc(args[0]) && numpys_ufunc(args[0]) == power_loops.ufunc;
}

#define OF_ARGUMENT(SELF) ((SELF)->kind == OF_UFUNC || (SELF)->kind == OUTER) /* where the array stands: behind a ufunc, of whose methods this is one */

/* Whether an operand of a call is large. */
static int reads_large(const Call* call) {
    for (int k = 0; k < call->count; k++)
        if (read_size(&call->read[k]) > limit_now()) return 1;
    return 0;
}

/* Ufuncs with two results: their loops for operands of one type. */
#define TWO_LOOPS 4
#define PAIR_MOST 65536 /* elements; with more NumPy lets other threads run */
typedef struct {
    PyUFuncObject* ufunc; /* held */
    Loop of[TYPES];
    char second[TYPES]; /* type numbers of the second result */
} TwoLoops;
static TwoLoops two_loops[TWO_LOOPS];
static int two_loops_count;

static void two_loops_add(PyUFuncObject* ufunc) {
    TwoLoops* self = &two_loops[two_loops_count];
    for (int k = 0; k < two_loops_count; k++)
        if (two_loops[k].ufunc == ufunc) return;
    if (two_loops_count == TWO_LOOPS || ufunc->nin > 2) return;
    two_loops_count++, self->ufunc = (PyUFuncObject*)Py_NewRef((PyObject*)ufunc);
    for (int k = 0; k < ufunc->ntypes; k++) {
        const char* types = ufunc->types + k * (ufunc->nin + 2);
        int type = types[0], out = types[ufunc->nin], second = types[ufunc->nin + 1];
        if (!IS_NUMERIC(type) || type == NPY_HALF || PyTypeNum_ISCOMPLEX(type) || type == NPY_LONGDOUBLE || !IS_NUMERIC(out) || !IS_NUMERIC(second)) continue;
        if ((ufunc->nin == 2 && types[1] != type) || self->of[type].function) continue;
        self->of[type] = (Loop){.function = ufunc->functions[k], .data = ufunc->data ? (void*)ufunc->data[k] : NULL, .out = (char)out}, self->second[type] = (char)second;
    }
}

/* Of a ufunc; of the operator, which is none, `divmod`'s. */
static TwoLoops* two_loops_of(const Function* of) {
    for (int k = 0; k < two_loops_count; k++)
        if (of->kind == OPERATOR ? of->op == DIVMOD && strcmp(two_loops[k].ufunc->name, "divmod") == 0 : (PyObject*)two_loops[k].ufunc == of->theirs) return &two_loops[k];
    return NULL;
}

static int two_loops_run(Loop* loop, char** args, npy_intp n, npy_intp* steps) {
    flags_clear(loop->basic);
    loop->function(args, &n, steps, loop->data);
    return loop_errors(loop);
}

/* Compare a loop with what NumPy's ufunc gives, to the bit, before it is used. */
static void two_loops_check(TwoLoops* self, int type) {
    Loop* loop = &self->of[type];
    int fine = 1, nin = self->ufunc->nin;
    loop->state = UNUSABLE;
    for (int special = 0; special < 2 && fine; special++) {
        PyArrayObject *of[4] = {sample(type, 0, special), nin == 2 ? sample(type, 1, special) : NULL, NULL, NULL};
        PyObject* theirs = NULL;
        npy_intp n = SAMPLE, steps[4];
        char* args[4];
        fine = 0;
        of[nin] = (PyArrayObject*)PyArray_SimpleNew(1, &n, loop->out), of[nin + 1] = (PyArrayObject*)PyArray_SimpleNew(1, &n, self->second[type]);
        if (of[0] && of[1] && of[nin] && of[nin + 1]) theirs = quietly((PyObject*)self->ufunc, (PyObject*[]){(PyObject*)of[0], (PyObject*)of[1]}, (size_t)nin);
        if (theirs && PyTuple_CheckExact(theirs) && PyTuple_GET_SIZE(theirs) == 2 && PyArray_CheckExact(PyTuple_GET_ITEM(theirs, 0)) && PyArray_CheckExact(PyTuple_GET_ITEM(theirs, 1))) {
            for (int k = 0; k < nin + 2; k++) args[k] = PyArray_BYTES(of[k]), steps[k] = PyArray_ITEMSIZE(of[k]);
            (void)two_loops_run(loop, args, n, steps);
            fine = same_bits(of[nin], (PyArrayObject*)PyTuple_GET_ITEM(theirs, 0)) && same_bits(of[nin + 1], (PyArrayObject*)PyTuple_GET_ITEM(theirs, 1));
        }
        for (int k = 0; k < 4; k++) Py_XDECREF(of[k]);
        Py_XDECREF(theirs);
    }
    loop_compared(loop, &loop->state, fine);
    flags_clear(0);
}

/* The two results of a ufunc by such a loop; NULL, perhaps without an exception, where the call has to be made. */
static PyArrayObject* pair_by_loops(Chain* self) {
    TwoLoops* pair = two_loops_of((const Function*)self->item.call);
    PyArrayObject *x, *made[2];
    Loop* loop;
    Value value[2];
    char* args[4] = {NULL};
    npy_intp steps[4] = {0};
    int type = -1, nin = pair ? pair->ufunc->nin : 0, errors;
    if (self->item.n != nin || self->item.total != nin || self->size > PAIR_MOST) return NULL;
    for (int o = 0; o < nin; o++) {
        if (self->item.args[o]) continue;
        x = self->array[self->item.of[o]];
        if ((type >= 0 && PyArray_TYPE(x) != type) || size_of(x) != self->size || !PyArray_ISCARRAY_RO(x)) return NULL;
        type = PyArray_TYPE(x), args[o] = PyArray_BYTES(x), steps[o] = PyArray_ITEMSIZE(x);
    }
    if (!IS_NUMERIC(type) || (loop = &pair->of[type])->function == NULL || loop->out != self->at[0].step.out || pair->second[type] != self->at[1].step.out) return NULL;
    for (int o = 0; o < nin; o++) {
        if (args[o]) continue;
        if (!value_of(self->item.args[o], type, &value[o])) return NULL;
        args[o] = (char*)&value[o];
    }
    if (loop->state == UNKNOWN) return two_loops_check(pair, type), NULL; /* as `loop_of` */
    if (loop->state != USABLE) return NULL;
    if ((made[0] = step_room(self, 0)) == NULL || (made[1] = step_room(self, 1)) == NULL) return Py_XDECREF(made[0]), NULL;
    for (int k = 0; k < 2; k++) args[nin + k] = PyArray_BYTES(made[k]), steps[nin + k] = PyArray_ITEMSIZE(made[k]);
    errors = two_loops_run(loop, args, self->size, steps);
    if (errors < 0 || errors & self->minded) return Py_DECREF(made[0]), Py_DECREF(made[1]), NULL; /* made again, and told of */
    if (self->at[1].cell == NULL) Py_DECREF(made[1]);
    else if (cell_settled(self, 1, made[1]) < 0) return Py_DECREF(made[0]), NULL;
    return made[0];
}

/* A call whose result follows from its signature, as a cell that waits; NULL, perhaps without an exception, where it is made now. */
static PyObject* signature_recorded(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject *made = NULL, *given;
    Signature* known;
    Words words;
    Call call;
    Begun begun;
    PyObject *own[ITEM_ARGS], *copies[ITEM_ARGS] = {NULL}, *pair = NULL;
    Cell* second = NULL;
    int arrays = 0, flat;
    if (waiting_count == 0 && at_the_call()) return NULL;
    if (total == 0 || total > ITEM_ARGS || limit_now() == 0 || layout_method == NULL || n > self->positional) return NULL;
    if (self->kind == SEARCHED && (n < 2 || Py_TYPE(args[1]) != array_type)) return NULL; /* it gives a number */
    if (is_named(names, "out") || is_named(names, "overwrite_input") || is_named(names, "copy")) return NULL; /* it may write */
    if ((self->kind == VARIANCE || self->kind == DEVIATION) && (total == 1 || is_named(names, "ddof") || is_named(names, "correction") || is_named(names, "mean"))) return NULL; /* it may warn of few elements; or it gives a number */
    if (self->arrays == 2 && is_named(names, "kind")) return NULL; /* `isin` by a table, which may be too large for memory */
    if (self->arrays == 1 && (n <= OF_ARGUMENT(self) || Py_TYPE(args[OF_ARGUMENT(self)]) != array_type)) return NULL; /* of a list, whose shape may follow from what an array says */
    if (self->direct == direct_norm && (n > 1 || is_named(names, "ord"))) return NULL; /* singular values, which may not be found */
    if (self->arrays == SEQUENCE) {
        if (!(PyList_CheckExact(args[0]) || PyTuple_CheckExact(args[0])) || PySequence_Fast_GET_SIZE(args[0]) == 0) return NULL;
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[0]); k++)
            if (operand_ready(PySequence_Fast_GET_ITEM(args[0], k)) < 0) return NULL;
    } else {
        for (Py_ssize_t k = 0; k < total; k++) {
            if (operand_ready(args[k]) < 0) return NULL;
            arrays |= Py_TYPE(args[k]) == array_type;
        }
        if (!arrays) return NULL;
    }
    for (Py_ssize_t k = self->arrays == SEQUENCE; k < total; k++) /* lists of numbers become tuples, which nobody changes */
        if (PyList_CheckExact(args[k]) && is_list_of_numbers(args[k])) {
            if (args != own) memcpy(own, args, (size_t)total * sizeof(PyObject*)), args = own;
            if ((own[k] = copies[k] = PyList_AsTuple(args[k])) == NULL) goto done;
        }
    if (is_elementwise(self) && two_loops_of(self) && ((second = chain_cell()) == NULL || (pair = PyTuple_New(2)) == NULL)) goto done; /* before: later no code of a program's may run */
    for (int again = 0; again < 2; again++) {
        if (!recording_begin(&begun)) goto done;
        if (!signature_read(self, &call, &words, args, n, names, &flat)) break;
        if ((known = signature_of(&words))) {
            if (!again) self->misses = 0;
            if (!known->known || (known->known == 2 && pair == NULL) || (PyTypeNum_ISINTEGER(known->type) && is_of_powers(self, args, n))) break;
            if (is_elementwise(self) && flat) call_gives(&call, known->type, call.ndim, call.dims);
            else call_gives(&call, known->type, known->ndim, known->dims);
            call.silent = self->silent;
            if (known->known == 2 && is_elementwise(self) && flat) call.by_loops = pair_by_loops;
            else if (self->kind == OF_UFUNC && self->recorded == SCANS && total == 2 && names == NULL) call.by_loops = scan_by_loops, call.axis = 0;
            if ((is_elementwise(self) || self->kind == OUTER) && call.size > limit_now() && !reads_large(&call)) break; /* of large results functions have the kernels' bits */
            if (call_fits(&call)) made = call_waits(&call, &begun, function_answer, (PyObject*)self, args, n, names, self->arrays == SEQUENCE);
            if (made) CHAIN_OF(made)->strided = known->strided;
            if (made && known->known == 2) call_second((Cell*)made, second, known->second);
            else Py_CLEAR(second);
            break;
        }
        if (!(is_elementwise(self) && flat) && self->misses > MISSES_MOST && ++self->skipped & 31) break;
        self->misses++;
        recording_end(&begun, NULL);
        if (!is_asked_cheaply(self, &call, args, total, flat)) {
            made = signature_first(self, &words, &call, args, n, names);
            goto done;
        }
        given = signature_given(self, &call, args, total, flat);
        if (given == NULL || signature_learn(&words, self->theirs, given, names) < 0) goto done;
    }
    made = call_made(&call, recording_end(&begun, made));
    if (made && second) PyTuple_SET_ITEM(pair, 0, made), PyTuple_SET_ITEM(pair, 1, (PyObject*)second), made = Py_NewRef(pair), second = NULL;
done:
    Py_XDECREF(pair), Py_XDECREF(second);
    for (int k = 0; k < ITEM_ARGS; k++) Py_XDECREF(copies[k]);
    return made;
}

/* Whether a function gives a number where it is given one array and nothing else. */
static inline int gives_number(const Function* self) { return self->kind == REDUCTION || self->kind == MEAN || self->kind == POSITION; }

/* Whether an operand of `select` is an array in C's order of this shape (and of which type), or a number. */
static int selectable(PyObject* x, const Read* like, int* type) {
    Read read;
    *type = -1;
    if (PyFloat_CheckExact(x) || PyLong_CheckExact(x)) return 1;
    if (Py_TYPE(x) != array_type || !operand_read(x, &read, NULL) || read.type < 0 || (read.array && !PyArray_IS_C_CONTIGUOUS(read.array))) return 0;
    *type = read.type;
    return like == NULL || (read.ndim == like->ndim && same_lengths(read.dims, like->dims, like->ndim));
}

/* `select([conditions], [choices], default)` as choices one after the other, from the last condition on; NULL, perhaps without an exception, where it is made now. */
static PyObject* select_recorded(PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0), count;
    PyObject *found = NULL, *conditions = args[0], *choices = n > 1 ? args[1] : NULL;
    Read like;
    int type = -1, other;
    if (n < 2 || total > 3 || (n == 2 && total == 3 && !is_named(names, "default")) || !PyList_CheckExact(conditions) || !PyList_CheckExact(choices)) return NULL;
    count = PyList_GET_SIZE(conditions);
    if (count == 0 || count != PyList_GET_SIZE(choices) || Py_TYPE(PyList_GET_ITEM(conditions, 0)) != array_type) return NULL;
    for (Py_ssize_t k = 0; k < count; k++)
        if (operand_ready(PyList_GET_ITEM(conditions, k)) < 0 || operand_ready(PyList_GET_ITEM(choices, k)) < 0 || PyList_GET_SIZE(conditions) != count || PyList_GET_SIZE(choices) != count) return NULL;
    if (!operand_read(PyList_GET_ITEM(conditions, 0), &like, NULL) || like.type != NPY_BOOL || like.ndim == 0) return NULL;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (!selectable(PyList_GET_ITEM(conditions, k), &like, &other) || other != NPY_BOOL || !selectable(PyList_GET_ITEM(choices, k), &like, &other)) return NULL;
        if (other >= 0 && type >= 0 && other != type) return NULL;
        if (other >= 0) type = other;
    }
    if (type < 0 || type == NPY_BOOL || PyTypeNum_ISUNSIGNED(type) || where_loops.of[type].function == NULL || (total == 3 && (!selectable(args[2], &like, &other) || (other >= 0 && other != type)))) return NULL;
    for (Py_ssize_t k = 0; k <= count; k++) { /* numbers give way to arrays, but where NumPy refuses them beside unsigned ones */
        PyObject* x = k < count ? PyList_GET_ITEM(choices, k) : total == 3 ? args[2] : NULL;
        if (x && Py_TYPE(x) != array_type && beside_number(type, x) != type) return NULL;
    }
    found = total == 3 ? Py_NewRef(args[2]) : PyLong_FromLong(0);
    for (Py_ssize_t k = count; found && k--;) {
        PyObject* of[3] = {Py_NewRef(PyList_GET_ITEM(conditions, k)), Py_NewRef(PyList_GET_ITEM(choices, k)), found};
        if (type == NPY_DOUBLE && PyLong_CheckExact(of[1])) Py_SETREF(of[1], PyNumber_Float(of[1]));
        if (type == NPY_DOUBLE && PyLong_CheckExact(of[2])) Py_SETREF(of[2], PyNumber_Float(of[2]));
        found = of[1] && of[2] && (type == NPY_DOUBLE || type == NPY_LONG || Py_TYPE(of[1]) == array_type || Py_TYPE(of[2]) == array_type) ? step_recorded(&where_loops, of) : NULL;
        for (int o = 0; o < 3; o++) Py_XDECREF(of[o]);
        if (k >= PyList_GET_SIZE(conditions) || k >= PyList_GET_SIZE(choices)) Py_CLEAR(found); /* recording may have had code run */
    }
    return found;
}

/* A call as a cell that waits; NULL, perhaps without an exception, where it is made now. */
static PyObject* function_recorded(Function* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject* made = NULL;
    Call call;
    Begun begun;
    int fits = 0;
    call_begins(&call);
    if (waiting_count == 0 && at_the_call()) return NULL;
    if (self->views && n && names == NULL && IS_CHAIN(args[0]) && ((made = function_view(self, args, n)) || PyErr_Occurred())) return made;
    if (!may_be_recorded(self, args, n, total)) return self->arrays && !(total == 1 && gives_number(self)) ? signature_recorded(self, args, n, names) : NULL;
    for (Py_ssize_t k = 0; k < total; k++)
        if (operand_ready(args[k]) < 0) return NULL;
    if ((self->kind == ASTYPE || self->recorded == COPIES) && ((made = cast_recorded(self, args, n, names)) || PyErr_Occurred())) return made;
    if (self->kind == WHERE) return names ? NULL : (made = step_recorded(&where_loops, args)) || PyErr_Occurred() ? made : signature_recorded(self, args, n, NULL);
    if (self->recorded == SELECTS) return select_recorded(args, n, names);
    if (self->recorded == CLIPS) return clip_recorded(args, n, names);
    if (self->recorded == ROLLS && ((made = roll_recorded(self, args, n, names)) || PyErr_Occurred())) return made;
    if (self->recorded == DIFFERS && ((made = diff_recorded(args, n, names)) || PyErr_Occurred())) return made;
    if (self->recorded == ROUNDS && ((made = round_recorded(args, n, names)) || PyErr_Occurred())) return made;
    if (self->recorded == CONJUGATES) return total == 1 && n == 1 ? conjugate_recorded(args[0]) : NULL;
    if (!recording_begin(&begun)) return NULL;
    switch (self->kind) {
    case REDUCTION: case MEAN: case VARIANCE: case DEVIATION: fits = reduction_call(&call, self, args, n, names); break;
    case JOINED: fits = joined_call(&call, args, n, names); break;
    case PRODUCT: fits = names == NULL && outer_call(&call, args); break;
    case DOT: fits = names == NULL && self->recorded && product_call(&call, args[0], args[1]); break;
    default: fits = like_call(&call, self, args, n, names);
    }
    call.silent = is_silent(self);
    if (fits && call_fits(&call))
        made = call_waits(&call, &begun, function_answer, (PyObject*)self, args, n, names, self->kind == JOINED);
    made = call_made(&call, recording_end(&begun, made));
    return made == NULL && !fits && !PyErr_Occurred() && self->arrays ? signature_recorded(self, args, n, names) : made;
}

/* Whether a function writes into none of its arguments, and shows nobody their memory, whatever they are. */
static int only_reads(const Function* self, PyObject* names) {
    switch (self->kind) {
    case REDUCTION: case MEAN: case VARIANCE: case DEVIATION: return names == NULL || !is_named(names, "out");
    case WHERE: case JOINED: case ASTYPE: case DOT: case PRODUCT: case MATRICES: case SEARCHED: case NUMBERS: return names == NULL;
    case ZEROS: case ONES: case FULL: case SQUARE: case RANGE: case LINSPACE: case SPACED: case OPERATOR: return 1;
    default: return self->recorded == CONJUGATES && names == NULL;
    }
}

/* Have the arguments of a function computed, or where it might write all that waits. */
static int arguments_settle(const Function* self, PyObject* const* args, Py_ssize_t total, PyObject* names) {
    if ((waiting_count | faded_count) == 0) return 0;
    if (faded_count || !only_reads(self, names)) return settle_all();
    for (Py_ssize_t k = 0; k < total; k++) {
        if (IS_CHAIN(args[k]) && chain_settle(args[k]) < 0) return -1;
        if (IS_LIST(args[k])) return settle_all();
    }
    return 0;
}

static PyObject* function_called(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
    Function* self = (Function*)callable;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    PyObject* found;
    if ((self->kind == REDUCTION || self->kind == MEAN) && n == 1 && names == NULL && faded_count == 0 && Py_TYPE(args[0]) == array_type && ((Cell*)args[0])->base && IS_RAW(((Cell*)args[0])->base)) {
        PyArrayObject* x = (PyArrayObject*)Py_NewRef(((Cell*)args[0])->base); /* most that a number is asked of */
        found = PyArray_ISBOOL(x) ? NULL : reduced_whole(self, x);
        Py_DECREF(x);
        if (found || PyErr_Occurred()) return found;
    }
    if (self->kind == REALIZED) { /* `(*arrays)` */
        Py_ssize_t k = 0;
        for (int done = 1; names == NULL && k < n && (done = is_number_class(Py_TYPE(args[k])) ? 1 : array_settled(args[k])); k++)
            if (done < 0) return NULL;
        if (k < n || n == 0 || names) return slow_answer(self, args, n, names);
        if (n == 1) return Py_NewRef(args[0]);
        found = PyTuple_New(n);
        for (k = 0; found && k < n; k++) PyTuple_SET_ITEM(found, k, Py_NewRef(args[k]));
        return found;
    }
    if ((found = function_recorded(self, args, n, names)) || PyErr_Occurred()) return found;
    if ((self->kind == REDUCTION || self->kind == MEAN) && n == 1 && total == 1 && IS_CHAIN(args[0]) && CHAIN_OF(args[0]) && CHAIN_OF(args[0])->size > LONGEST && is_passing(args[0]) &&
        ((found = reduced_waiting(self, args[0])) || PyErr_Occurred()))
        return found;
    if (arguments_settle(self, args, total, names) < 0) return NULL;
    return function_answer(callable, args, n, names);
}

/* Let the exception of a call be the one that NumPy raises for it, where it would raise one; always NULL. */
static PyObject* refused(PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject *type, *error, *trace, *given, *named, *said = NULL;
    if (refusal_method == NULL) return NULL;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace) PyException_SetTraceback(error, trace);
    given = PyTuple_New(n), named = PyDict_New();
    if (given && named) {
        int fine = 1;
        for (Py_ssize_t k = 0; k < n; k++) PyTuple_SET_ITEM(given, k, Py_NewRef(args[k]));
        for (Py_ssize_t k = 0; fine && names && k < PyTuple_GET_SIZE(names); k++) fine = PyDict_SetItem(named, PyTuple_GET_ITEM(names, k), args[n + k]) == 0;
        PyObject* slow = fine ? slow_of((Function*)callable) : NULL;
        if (slow) said = PyObject_CallFunctionObjArgs(refusal_method, slow, given, named, error, NULL);
    }
    Py_XDECREF(given), Py_XDECREF(named);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) pieces_put_off(); /* what a handler of signals has raised meanwhile */
    PyErr_Clear(); /* of who was asked: what is known is said */
    if (said && PyExceptionInstance_Check(said)) {
        Py_SETREF(type, Py_NewRef((PyObject*)Py_TYPE(said)));
        Py_SETREF(error, Py_NewRef(said));
    }
    Py_XDECREF(said);
    PyErr_Restore(type, error, trace);
    return NULL;
}

static PyObject* function_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
    PyObject* found = function_called(callable, args, nargsf, names);
    return found ? found : refused(callable, args, PyVectorcall_NARGS(nargsf), names);
}

/* What a ufunc of anybody's gave: objects are no numbers of ours. */
static PyObject* foreign_result(PyObject* found) {
    int ours = found && (PyArray_CheckExact(found) ? native_dtype((PyArrayObject*)found) : is_number(found));
    return ours ? wrapped(found) : found;
}

/* A ufunc of one operand that was asked for by who knows it, NumPy or SciPy; NULL as for `reshaped`. */
static PyObject* numpys_or_own(PyObject* ufunc, PyObject* x);
static int is_costly_of(PyObject* ufunc, PyObject* const* args, Py_ssize_t n);
static PyObject* foreign_unary(PyUFuncObject* ufunc, PyObject* a) {
    PyArrayObject* x = memory_of(a);
    PyObject *before, *found, *plain = (PyObject*)x;
    if (x == NULL || ufunc->nin != 1 || ufunc->nout != 1 || ufunc->core_enabled || PyArray_SIZE(x) > costly_above()) return NULL;
    Py_INCREF(plain);
    before = pool_begin(PyArray_SIZE(x) * 8);
    found = PyObject_Vectorcall(numpys_or_own((PyObject*)ufunc, a), &plain, 1, NULL);
    pool_end(before);
    Py_DECREF(plain);
    return foreign_result(found);
}

/* `__array_ufunc__`: a ufunc of one or two operands that NumPy was asked for, because one of them is NumPy's (`np.float64(2) * x`), or the ufunc is
   SciPy's. */
static PyObject* foreign_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (names == NULL && n == 5 && PyUnicode_Check(args[2]) && PyUnicode_CompareWithASCIIString(args[2], "__call__") == 0 && is_number(args[3]) && Py_TYPE(args[4]) == array_type) {
        PyObject* found = NULL; /* a number of NumPy's on the left */
        for (int k = 0; k < POW && found == NULL; k++)
            if (binary_loops[k].ufunc == args[1]) found = chain_step(&binary_loops[k], args[3], args[4]);
        if (found || PyErr_Occurred()) return found;
    }
    if (!SETTLED) return NULL;
    if (names == NULL && n == 4 && PyObject_TypeCheck(args[1], &PyUFunc_Type) && PyUnicode_Check(args[2]) && PyUnicode_CompareWithASCIIString(args[2], "__call__") == 0) {
        PyObject* found = foreign_unary((PyUFuncObject*)args[1], args[3]);
        if (found || PyErr_Occurred()) return found;
    }
    if (names == NULL && n == 5 && PyObject_TypeCheck(args[1], &PyUFunc_Type) && PyUnicode_Check(args[2]) && PyUnicode_CompareWithASCIIString(args[2], "__call__") == 0) {
        PyObject *plain[2], *found;
        PyArrayObject* memory[2];
        if (is_costly_of(args[1], args + 3, 2)) goto slow;
        for (int k = 0; k < 2; k++) {
            PyObject* x = args[3 + k];
            memory[k] = PyArray_CheckExact(x) ? (PyArrayObject*)x : memory_of(x);
            if (memory[k] ? !native_dtype(memory[k]) || PyArray_SIZE(memory[k]) > limit_now() : !is_number(x)) goto slow;
            plain[k] = memory[k] ? (PyObject*)memory[k] : x;
            if (is_number_class(Py_TYPE(x))) goto slow;
        }
        if (((PyUFuncObject*)args[1])->core_enabled && strcmp(((PyUFuncObject*)args[1])->name, "matmul") == 0 && memory[0] && memory[1] && fits_product(memory[0], memory[1])) {
            Py_INCREF(plain[0]), Py_INCREF(plain[1]); /* as they lie: the sums follow from that */
            found = PyObject_Vectorcall(args[1], plain, 2, NULL);
            Py_DECREF(plain[0]), Py_DECREF(plain[1]);
            return foreign_result(found);
        }
        if (((PyUFuncObject*)args[1])->nout != 1 || ((PyUFuncObject*)args[1])->core_enabled) goto slow;
        if (!(memory[0] && PyArray_NDIM(memory[0])) && !(memory[1] && PyArray_NDIM(memory[1]))) goto slow;
        if (memory[0] && memory[1] && !fits(memory[0], memory[1])) goto slow;
        Py_INCREF(plain[0]), Py_INCREF(plain[1]);
        found = NULL;
        for (int k = 0; k < BINARIES && found == NULL; k++)
            if (binary_loops[k].ufunc == args[1]) found = direct2(&binary_loops[k], plain[0], plain[1], (memory[0] != NULL) | (memory[1] != NULL) << 1);
        if (found == NULL && !PyErr_Occurred()) found = PyObject_Vectorcall(args[1], plain, 2, NULL);
        Py_DECREF(plain[0]), Py_DECREF(plain[1]);
        return foreign_result(found);
    }
slow:
    return slow_answer((Function*)callable, args, n, names);
}

/* Ufuncs --------------------------------------------------------------------------------------------------------------------------- */

typedef struct Ufunc {
    PyObject_HEAD
    vectorcallfunc vector;
    PyObject* numpy;
    Loops* loops;
    int nin;    /* operands; 0 where it is no ufunc of NumPy's */
    int real;   /* complex numbers are not NumPy's loop's */
    int theirs; /* NumPy answers calls of any form */
    int product, multiplies; /* of matrices and vectors; it is `matmul` */
    int rounds; /* NumPy's bits and the kernels' differ */
    int costly; /* computed by the kernels' functions of more than `costly_above` elements: they are faster, whatever stands around it */
    Loops* kernels; /* those that need no kernel; may be NULL */
    Loops* own; /* those that are polynomials of lazynp's own, for operands of more than `kernels_above` elements; may be NULL */
    PyObject* own_ufunc; /* a ufunc of NumPy's over these loops, for calls of every form */
    Function* calls; /* what calls of it are recorded as that are no steps; may be NULL */
    int powers; /* it is `power` */
    int errs_at_one; /* it has floating-point errors at one, or at one and an ordinary number */
    int deprecates; /* it warns of an array for the result that is given without a name */
    int compared; /* how many calls with numbers were compared with NumPy's, -1: one differed */
    struct Ufunc* next; /* of all that were bound */
} Ufunc;
static Ufunc* ufuncs_bound;

/* NumPy's loops of a ufunc that computes with them, whatever the size. */
static Loops* loops_of_ufunc(PyObject* ufunc) {
    PyObject* theirs = is_ufunc(ufunc) ? numpys_ufunc(ufunc) : NULL;
    for (Ufunc* of = ufuncs_bound; of && theirs; of = of->next)
        if (of->numpy == theirs) return of->costly || of->real || of->own ? NULL : of->loops;
    return NULL;
}

static inline int too_costly(PyArrayObject* x) { return x && PyArray_SIZE(x) > costly_above(); }

static int any_too_costly(PyObject* const* args, Py_ssize_t n) {
    for (Py_ssize_t k = 0; k < n; k++)
        if (IS_CHAIN(args[k]) ? CHAIN_OF(args[k]) && CHAIN_OF(args[k])->size > costly_above() : too_costly(PyArray_CheckExact(args[k]) ? (PyArrayObject*)args[k] : operand_seen(args[k]))) return 1;
    return 0;
}

/* Whether a function has lazynp's own bits of this operand: it has many elements, of a type that is computed as one of the polynomials' types, and nobody minds
   underflow, of which they raise no flag.  The same for all forms of a call. */
static int own_applies(const Ufunc* self, PyObject* x) {
    PyArrayObject* memory;
    npy_intp size;
    int type;
    if (self->own == NULL) return 0;
    if (IS_CHAIN(x)) {
        if (CHAIN_OF(x) == NULL) return 0;
        size = CHAIN_OF(x)->size, type = step_type(CHAIN_OF(x), STEP_OF(x));
    } else {
        if ((memory = PyArray_CheckExact(x) ? (PyArrayObject*)x : operand_seen(x)) == NULL) return 0;
        size = size_of(memory), type = PyArray_TYPE(memory);
    }
    return size > kernels_above() && IS_NUMERIC(type) && loops_type(self->own, type) >= 0 && !(errors_minded() & ERROR_UNDER);
}

/* The ufunc that computes a call, whose operand is `x`: NumPy's, or that over lazynp's own loops (borrowed). */
static PyObject* at_call(const Ufunc* self, PyObject* x) { return self->own_ufunc && own_applies(self, x) ? self->own_ufunc : self->numpy; }
static PyObject* at_call_of(PyObject* ufunc, PyObject* x) { return at_call((Ufunc*)ufunc, x); }
static PyObject* numpys_or_own(PyObject* ufunc, PyObject* x) {
    for (const Ufunc* of = ufuncs_bound; of; of = of->next)
        if (of->numpy == ufunc) return at_call(of, x);
    return ufunc;
}

static int any_complex(PyObject* const* args, Py_ssize_t n) {
    for (Py_ssize_t k = 0; k < n; k++) {
        if (IS_CHAIN(args[k]) ? CHAIN_OF(args[k]) && PyTypeNum_ISCOMPLEX(step_type(CHAIN_OF(args[k]), STEP_OF(args[k]))) : is_complex(args[k])) return 1;
        if (operand_seen(args[k]) && PyArray_ISCOMPLEX(operand_seen(args[k]))) return 1;
    }
    return 0;
}

/* NumPy's answer to numbers alone. */
static PyObject* numbers_call(PyObject* function, PyObject* const* args, Py_ssize_t n) {
    PyObject *plain[2] = {NULL, NULL}, *found = NULL;
    Py_ssize_t k = 0;
    while (k < n && (plain[k] = numpys_number(args[k]))) k++;
    if (k == n) found = PyObject_Vectorcall(function, plain, (size_t)n, NULL);
    while (k) Py_DECREF(plain[--k]);
    return number_of(found);
}

/* One or two numbers of 64 bits, NumPy's or Python's; NULL, perhaps without an exception, where NumPy has to see to it. */
#define NUMBERS_COMPARED 32 /* calls, the first ones of a ufunc */
static PyObject* number_call(Ufunc* self, PyObject* const* args, Py_ssize_t n) {
    double real[2], result_real;
    npy_int64 whole[2], result_whole;
    npy_bool result_truth;
    char *operands[2], *to;
    int type = NPY_INT64, errors;
    Loop* loop;
    PyObject *made, *theirs;
    if (self->compared < 0) return NULL;
    for (Py_ssize_t k = 0; k < n; k++)
        if (!whole_of(args[k], &whole[k])) type = NPY_DOUBLE;
    if (type == NPY_INT64 && self->loops->of[type].function == NULL) type = NPY_DOUBLE;
    for (Py_ssize_t k = 0; k < n; k++) {
        if (type == NPY_DOUBLE && !real_of(args[k], &real[k])) return NULL;
        operands[k] = type == NPY_DOUBLE ? (char*)&real[k] : (char*)&whole[k];
    }
    if ((loop = loop_of(self->loops, type)) == NULL) return NULL;
    switch (loop->out) {
        case NPY_DOUBLE: to = (char*)&result_real; break;
        case NPY_INT64: to = (char*)&result_whole; break;
        case NPY_BOOL: to = (char*)&result_truth; break;
        default: return NULL;
    }
    errors = n == 1 ? run1(loop, operands[0], to, 1, 0, loop->size) : run2(loop, operands[0], operands[1], to, 1, 0, 0, loop->size); /* NumPy's steps */
    if (minds(errors) && (errors < 0 || self->compared < NUMBERS_COMPARED || loop->out == NPY_BOOL || PyUFunc_GiveFloatingpointErrors(((PyUFuncObject*)self->numpy)->name, errors))) return NULL;
    made = loop->out == NPY_DOUBLE ? real_new(result_real) : loop->out == NPY_INT64 ? whole_new(result_whole) : Py_NewRef(result_truth ? PyArrayScalar_True : PyArrayScalar_False);
    if (made == NULL || self->compared >= NUMBERS_COMPARED) return made;
    theirs = numbers_call(self->numpy, args, n);
    if (theirs && (!Py_IS_TYPE(theirs, Py_TYPE(made)) || (loop->out == NPY_DOUBLE ? memcmp(&((Real*)theirs)->obval, &result_real, 8) : loop->out == NPY_INT64 ? ((Whole*)theirs)->obval != result_whole : theirs != made)))
        self->compared = -1;
    else if (self->compared >= 0) self->compared++; /* another thread may have seen a difference */
    Py_DECREF(made);
    return theirs;
}

static PyObject* call_name; /* of the method in Python */

/* A function of much memory by a loop of the kernels'; NULL, without an exception, where there is none, or it raises an error that somebody is told of. */
static PyObject* kernels_call(Loops* loops, PyObject* const* args, PyArrayObject* x, PyArrayObject* y, int nin) {
    PyObject *found, *plain[2] = {x ? (PyObject*)x : args[0], y ? (PyObject*)y : nin == 2 ? args[1] : NULL};
    PyArrayObject* arrays[2] = {x, y};
    if (errors_minded() & ERROR_UNDER) return NULL;
    for (int k = 0; k < 2; k++)
        if (arrays[k] && (!IS_NUMERIC(PyArray_TYPE(arrays[k])) || loops->of[PyArray_TYPE(arrays[k])].function == NULL)) return NULL;
    Py_INCREF(plain[0]), Py_XINCREF(plain[1]);
    found = nin == 1 ? direct1(loops, x) : direct2(loops, plain[0], plain[1], (x != NULL) | (y != NULL) << 1);
    Py_DECREF(plain[0]), Py_XDECREF(plain[1]);
    return found;
}

/* `f(x)` of many elements by lazynp's own loops; NULL, perhaps without an exception, where Python has to answer. */
static PyObject* own_call(Ufunc* self, PyObject* x, int records) {
    PyObject *found = records ? chain_step(self->own, x, NULL) : NULL, *plain;
    PyArrayObject* memory;
    if (found || PyErr_Occurred() || settle_operand(x) < 0 || (memory = memory_of(x)) == NULL) return found;
    if (self->own->of[PyArray_TYPE(memory)].function && ((found = kernels_call(self->own, &x, memory, NULL, 1)) || PyErr_Occurred())) return wrapped(found);
    plain = Py_NewRef((PyObject*)memory);
    found = PyObject_Vectorcall(self->own_ufunc, &plain, 1, NULL);
    Py_DECREF(plain);
    return wrapped(found);
}

/* Nobody who wants to see a list that stands beside it. */
#define PLAIN_OPERAND(X) (Py_TYPE(X) == array_type || IS_LIKE(X) || is_number(X))

static PyObject* ufunc_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names);

/* Whether a dtype that is asked for is that of the operands and of the result anyway; complex numbers are looked at closer. */
static int is_its_own(const Loops* loops, PyObject* const* args, Py_ssize_t n, int type) {
    Read read;
    if (!IS_NUMERIC(type) || PyTypeNum_ISCOMPLEX(type) || loops->of[type].out != type || loops->of[type].function == NULL) return 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        if (Py_TYPE(args[k]) != array_type) {
            if (!PyFloat_CheckExact(args[k]) && (!PyLong_CheckExact(args[k]) || type == NPY_BOOL)) return 0;
            if (PyFloat_CheckExact(args[k]) && !PyTypeNum_ISFLOAT(type)) return 0;
        } else if (!operand_read(args[k], &read, NULL) || read.type != type) {
            return 0;
        }
    }
    return 1;
}

/* A call that is no step, as a cell that waits; NULL, perhaps without an exception, where it is made now. */
static PyObject* ufunc_recorded(const Ufunc* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    if (self->calls == NULL || n != self->nin) return NULL;
    for (Py_ssize_t k = 0; k < n; k++)
        if (Py_TYPE(args[k]) != array_type && !is_number(args[k])) return NULL;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++)
        if (PyTuple_GET_ITEM(names, k) != dtype_name) return NULL;
    if (names && n <= 2 && self->loops && PyTuple_GET_SIZE(names) == 1 && !self->powers && is_its_own(self->loops, args, n, dtype_number(args[n]))) { /* as without */
        PyObject* found = chain_step(self->loops, args[0], n == 2 ? args[1] : NULL);
        if (found || PyErr_Occurred()) return found;
    }
    return signature_recorded(self->calls, args, n, names);
}

#define TAME 1e30 /* a number that is none too large, or too small, for whatever is done to it and to one */

/* An operand where a mask is true, and elsewhere one, of which no function here has a floating-point error; NULL, perhaps without an exception, where it is none. */
static PyObject* operand_masked(PyObject* x, PyObject* mask, int second) {
    Read read;
    PyObject *one, *made;
    double value;
    if (Py_TYPE(x) != array_type) {
        value = PyFloat_CheckExact(x) ? PyFloat_AS_DOUBLE(x) : PyLong_CheckExact(x) ? PyLong_AsDouble(x) : NPY_NAN;
        if (PyErr_Occurred()) PyErr_Clear(), value = NPY_INFINITY;
        return (value == 0 && !second) || (fabs(value) < TAME && fabs(value) > 1 / TAME) ? Py_NewRef(x) : NULL;
    }
    if (!step_reads(x, &read, NULL) || !IS_NUMERIC(read.type) || PyTypeNum_ISCOMPLEX(read.type) || read.type == NPY_HALF) return NULL;
    if ((one = PyTypeNum_ISFLOAT(read.type) ? PyFloat_FromDouble(1) : read.type == NPY_BOOL ? Py_NewRef(Py_True) : PyLong_FromLong(1)) == NULL) return NULL;
    made = step_recorded(&where_loops, (PyObject*[]){mask, x, one});
    Py_DECREF(one);
    return made;
}

/* `f(x, out=y, where=mask)`: a choice between what `f` gives and what `y` has.  Of another dtype NumPy casts what `y` has there and back, and tells of errors of that. */
static PyObject* ufunc_masked_into(const Ufunc* self, Loops* loops, PyObject* const* args, PyObject* mask, PyObject* to) {
    PyObject *masked[2] = {NULL, NULL}, *value = NULL, *made = NULL;
    Read read, old;
    if (Py_TYPE(mask) != array_type || Py_TYPE(to) != array_type || self->errs_at_one || !step_reads(mask, &read, NULL) || read.type != NPY_BOOL) return NULL;
    if ((masked[0] = operand_masked(args[0], mask, 0)) && (self->nin == 1 || (masked[1] = operand_masked(args[1], mask, 1)))) {
        value = step_next(loops, masked[0], masked[1]);
        if (value == NULL && !PyErr_Occurred()) value = step_recorded(loops, masked);
        if (value && WAITS(value) && CHAIN_OF(value) && step_reads(to, &old, NULL) && old.type == step_type(CHAIN_OF(value), STEP_OF(value))) made = into_recorded(&where_loops, (PyObject*[]){mask, value, to}, to);
    }
    Py_XDECREF(masked[0]), Py_XDECREF(masked[1]), Py_XDECREF(value);
    return made;
}

/* `f(x, out=y)`, `f(x, y, z)`, likewise; with a mask or without. */
static PyObject* ufunc_into(const Ufunc* self, PyObject* const* args, Py_ssize_t n, PyObject* names, int own) {
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    Loops* loops = own ? self->own : self->loops;
    PyObject *to = n == self->nin + 1 ? args[self->nin] : NULL, *mask = NULL;
    if (loops == NULL || self->nin > 2 || n < self->nin || n > self->nin + 1 || named > 2 || (self->real && any_complex(args, self->nin))) return NULL;
    for (Py_ssize_t k = 0; k < named; k++) {
        if (to == NULL && PyTuple_GET_ITEM(names, k) == out_name) to = args[n + k];
        else if (mask == NULL && PyTuple_GET_ITEM(names, k) == where_name) mask = args[n + k];
        else return NULL;
    }
    if (to == NULL || (n > self->nin && self->deprecates)) return NULL;
    if (n == self->nin && PyTuple_CheckExact(to) && PyTuple_GET_SIZE(to) == 1) to = PyTuple_GET_ITEM(to, 0);
    if (mask && mask != Py_True) return ufunc_masked_into(self, loops, args, mask, to);
    return into_recorded(loops, (PyObject*[]){args[0], self->nin == 2 ? args[1] : NULL, NULL}, to);
}

/* Whether it is a ufunc of NumPy's that kernels compute of as many elements as these operands have. */
static int is_costly_of(PyObject* ufunc, PyObject* const* args, Py_ssize_t n) {
    for (Ufunc* of = ufuncs_bound; of; of = of->next)
        if (of->numpy == ufunc) return of->costly && any_too_costly(args, n);
    return 0;
}

/* Whether a function whose complex numbers are not NumPy's is given real ones, and an array for the result, of whatever type. */
static int is_real_into(const Ufunc* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    if (self->calls == NULL || n < self->nin || n + (names ? PyTuple_GET_SIZE(names) : 0) != self->nin + 1 || (names && PyTuple_GET_SIZE(names) && !is_named(names, "out"))) return 0;
    return !any_complex(args, self->nin);
}

/* `records`: it may wait. */
static PyObject* ufunc_called(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names, int records) {
    Ufunc* self = (Ufunc*)callable;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), total;
    PyObject *found = NULL, *room[MOST + 1], **with_self, *slow;
    int costly = self->costly && any_too_costly(args, n < self->nin ? n : self->nin);
    if (waiting_count == 0 && at_the_call()) records = 0;
    Loops* loops = costly ? self->kernels : self->loops;
    int own = n > 0 && self->own && !costly && own_applies(self, args[0]);
    if (own && names == NULL && n == 1 && Py_TYPE(args[0]) == array_type && ((found = own_call(self, args[0], records)) || PyErr_Occurred())) return found;
    if (records && names == NULL && !costly && !(own && n == 1) && loops && n == loops->nin && (found = step_next(loops, args[0], n == 2 ? args[1] : NULL))) return found;
    if (costly && loops && self->powers && n == 2 && PyFloat_CheckExact(args[1]) && PyFloat_AS_DOUBLE(args[1]) == 0.5) loops = NULL; /* a graph has a root as such */
    if (names == NULL && n == self->nin && any_foreign(args, n) && !(costly && loops == NULL)) return call_with_cells(ufunc_call, callable, args, n, NULL);
    if (names == NULL && loops && n == loops->nin) { /* nothing is written: what waits may go on waiting */
        PyArrayObject *x = operand_seen(args[0]), *y = n == 2 ? operand_seen(args[1]) : NULL;
        if (records && may_chain(args[0], n == 2 ? args[1] : NULL, x, y)) {
            if (!(self->real && any_complex(args, n))) found = chain_step(loops, args[0], n == 2 ? args[1] : NULL);
            if (found == NULL && !costly && !PyErr_Occurred()) found = ufunc_recorded(self, args, n, NULL);
            if (found) return found;
            if (PyErr_Occurred() || settle_operand(args[0]) < 0 || (n == 2 && settle_operand(args[1]) < 0)) return NULL;
        }
        x = memory_of(args[0]), y = n == 2 ? memory_of(args[1]) : NULL;
        if (costly) { /* of all else a kernel does it */
            if ((n == 1 ? x != NULL : x && y ? fits(x, y) : (x || y) && is_number(args[x ? 1 : 0])) && (found = kernels_call(loops, args, x, y, (int)n))) return wrapped(found);
            if (PyErr_Occurred()) return NULL;
            goto slow;
        }
        if (n == 1 ? x && !(self->real && PyArray_ISCOMPLEX(x)) : x && y ? fits(x, y) : (x || y) && is_number(args[x ? 1 : 0])) {
            PyObject* plain[2] = {x ? (PyObject*)x : args[0], n == 1 ? NULL : y ? (PyObject*)y : args[1]};
            Py_INCREF(plain[0]), Py_XINCREF(plain[1]);
            found = n == 1 ? direct1(self->loops, x) : direct2(self->loops, plain[0], plain[1], (x != NULL) | (y != NULL) << 1);
            if (found == NULL && !PyErr_Occurred()) {
                PyObject* before = pool_begin(PyArray_SIZE(x ? x : y) * 8);
                plain[0] = numpys_taken(plain[0]), plain[1] = plain[1] ? numpys_taken(plain[1]) : NULL;
                if (plain[0] && (n == 1 || plain[1])) found = PyObject_Vectorcall(self->numpy, plain, (size_t)n, NULL);
                pool_end(before);
            }
            Py_XDECREF(plain[0]), Py_XDECREF(plain[1]);
            return wrapped(found);
        }
        /* numbers alone: NumPy's numbers come out, and nothing is recorded */
        if (!x && !y && is_number(args[0]) && (n == 1 || is_number(args[1])) && !(self->real && (is_complex(args[0]) || (n == 2 && is_complex(args[1]))))) {
            found = number_call(self, args, n);
            return found || PyErr_Occurred() ? found : numbers_call(self->numpy, args, n);
        }
    }
    if (names == NULL && self->loops && n == self->loops->nin && ((IS_LIST(args[0]) && (n == 1 || PLAIN_OPERAND(args[1]))) || (n == 2 && IS_LIST(args[1]) && PLAIN_OPERAND(args[0])))) {
        PyObject* plain[2] = {NULL, NULL};
        for (Py_ssize_t k = 0; k < n; k++) plain[k] = IS_LIST(args[k]) ? listed(NULL, args[k], NULL) : Py_NewRef(args[k]);
        if (plain[0] && plain[n - 1]) found = ufunc_call(callable, plain, (size_t)n, NULL);
        Py_XDECREF(plain[0]), Py_XDECREF(plain[1]);
        if (found || PyErr_Occurred()) return found;
    }
slow:
    if (self->multiplies && names == NULL && n == 2 && ((found = product_recorded(args[0], args[1])) || PyErr_Occurred())) return found;
    if (records && !costly && !own && (names || self->loops == NULL) && ((found = ufunc_recorded(self, args, n, names)) || PyErr_Occurred())) return found;
    if (records && !costly && (found = ufunc_into(self, args, n, names, own)) != NULL) return found;
    if (PyErr_Occurred() || (records && !SETTLED)) return NULL;
    if (self->numpy && PyObject_TypeCheck(self->numpy, &PyUFunc_Type) && (n < ((PyUFuncObject*)self->numpy)->nin || n > ((PyUFuncObject*)self->numpy)->nargs))
        return PyObject_Vectorcall(self->numpy, args, (size_t)n, names); /* which says so, from C as NumPy's callers expect it */
    total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    if (self->product ? n == 2 && memory_of(args[0]) && memory_of(args[1]) && fits_product(memory_of(args[0]), memory_of(args[1]))
                      : !costly && (self->theirs || is_real_into(self, args, n, names)) && (names || self->loops == NULL || n != self->loops->nin) && total) if (total <= MOST) {
        found = asked(own && !is_named(names, "dtype") && !is_named(names, "signature") && !is_named(names, "sig") ? self->own_ufunc : self->numpy, args, n, names, 1, 0, ANY, NULL);
        if (found || PyErr_Occurred()) return found;
    }
    if (self->rounds) {
        int first = operands_first(args, n < self->nin ? n : self->nin, self->costly);
        if (first) return first < 0 ? NULL : ufunc_called(callable, args, nargsf, names, records);
    }
    with_self = room;
    if (total > MOST && (with_self = PyMem_Malloc((size_t)(total + 1) * sizeof(PyObject*))) == NULL) return PyErr_NoMemory();
    with_self[0] = callable;
    if (total) memcpy(with_self + 1, args, (size_t)total * sizeof(PyObject*));
    slow = PyObject_GetAttr((PyObject*)Py_TYPE(callable), call_name);
    found = slow ? PyObject_Vectorcall(slow, with_self, (size_t)n + 1, names) : NULL;
    Py_XDECREF(slow);
    if (with_self != room) PyMem_Free(with_self);
    return found;
}

static PyObject* ufunc_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) { return ufunc_called(callable, args, nargsf, names, 1); }
static PyObject* ufunc_answer(PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names) { return ufunc_called(callable, args, (size_t)n, names, 0); }

/* `a op b` that is no step, likewise. */
static Function* operators[BINARIES];
static PyObject* operator_recorded(int op, PyObject* a, PyObject* b) {
    PyObject* args[2] = {a, b};
    if (operators[op] == NULL || (op == POW && any_too_costly(args, 2))) return NULL;
    for (int k = 0; k < 2; k++)
        if (Py_TYPE(args[k]) != array_type && !is_number(args[k])) return NULL;
    return signature_recorded(operators[op], args, 2, NULL);
}
/* `function` is one of `function_new`. */
static void operator_set(int op, PyObject* function) { operators[op] = (Function*)Py_NewRef(function), operators[op]->op = op; }

/* Types ------------------------------------------------------------------------------------------------------------------------------ */

/* The signature that the one in Python shows, by what it wraps. */
static PyObject* function_signature(PyObject* slow, PyObject* name) {
    PyObject *inspect = PyImport_ImportModule("inspect"), *found = inspect ? PyObject_CallMethod(inspect, "signature", "O", slow) : NULL;
    Py_XDECREF(inspect);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_SetObject(PyExc_AttributeError, name); /* a builtin that says none */
    return found;
}

/* A function stands for the one in Python in everything but being called: name, signature, module, documentation. */
static PyObject* function_getattro(PyObject* self, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (text == NULL) return NULL;
    if (((Function*)self)->plain && strcmp(text, "__wrapped__") == 0) return PyErr_SetObject(PyExc_AttributeError, name), NULL;
    if (((Function*)self)->plain && strcmp(text, "__signature__") == 0) return slow_of((Function*)self) ? function_signature(((Function*)self)->slow, name) : NULL;
    if (strncmp(text, "__reduce", 8) == 0 || strcmp(text, "__get__") == 0 || strcmp(text, "__call__") == 0) return PyObject_GenericGetAttr(self, name);
    return slow_of((Function*)self) ? PyObject_GetAttr(((Function*)self)->slow, name) : NULL;
}

static int function_setattro(PyObject* self, PyObject* name, PyObject* value) { return slow_of((Function*)self) ? PyObject_SetAttr(((Function*)self)->slow, name, value) : -1; }

static PyObject* function_get(PyObject* self, PyObject* object, PyObject* type) {
    (void)type;
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

static PyObject* function_reduce(PyObject* self, PyObject* none) {
    (void)none;
    PyObject* slow = slow_of((Function*)self);
    if (slow == NULL) return NULL;
    if (!PyFunction_Check(slow) && !PyObject_TypeCheck(slow, &PyStaticMethod_Type)) return PyObject_CallMethod(slow, "__reduce__", NULL);
    return PyObject_GetAttrString(self, "__qualname__"); /* found by its name, as functions are */
}

static void function_dealloc(PyObject* self) {
    Function *of = (Function*)self, **before = &functions_made;
    while (*before && *before != of) before = &(*before)->next;
    if (*before) *before = of->next;
    if (of->arrays) signatures_forget(); /* which know it by its address */
    if (of->weakrefs) PyObject_ClearWeakRefs(self);
    Py_XDECREF(of->slow), Py_XDECREF(of->theirs), Py_XDECREF(of->method), Py_XDECREF(of->own), Py_XDECREF(of->stands_for);
    PyObject_Free(self);
}

static PyObject* function_repr(PyObject* self) { return slow_of((Function*)self) ? PyObject_Repr(((Function*)self)->slow) : NULL; }

static PyObject* function_doc(PyObject* self, void* closure) { return (void)closure, slow_of((Function*)self) ? PyObject_GetAttrString(((Function*)self)->slow, "__doc__") : NULL; }

/* Tables that a library keeps by NumPy's functions, and asks with NumPy's, are filled and asked by programs with ours, and the other way
   round: they are equal as keys. */
static Py_hash_t function_hash(PyObject* self) {
    PyObject* theirs = ((Function*)self)->stands_for;
    return theirs ? PyObject_Hash(theirs) : PyBaseObject_Type.tp_hash(self);
}

static PyObject* function_compare(PyObject* self, PyObject* other, int how) {
    PyObject* theirs = ((Function*)self)->stands_for;
    int same = self == other || (theirs && (other == theirs || (Py_TYPE(other)->tp_hash == function_hash && ((Function*)other)->stands_for == theirs)));
    if (!same || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong(how == Py_EQ);
}

static PyGetSetDef function_getset[] = {{"__doc__", function_doc, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef function_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

#define FUNCTION(FLAGS) \
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Function", .tp_basicsize = sizeof(Function), \
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | (FLAGS), .tp_vectorcall_offset = offsetof(Function, vector), \
    .tp_call = PyVectorcall_Call, .tp_getattro = function_getattro, .tp_setattro = function_setattro, .tp_methods = function_methods, \
    .tp_getset = function_getset, .tp_repr = function_repr, .tp_hash = function_hash, .tp_richcompare = function_compare, .tp_dealloc = function_dealloc, .tp_weaklistoffset = offsetof(Function, weakrefs)
static PyTypeObject function_type = {FUNCTION(Py_TPFLAGS_METHOD_DESCRIPTOR), .tp_descr_get = function_get};
/* Of what is a builtin in NumPy, or a method of an object: as an attribute of a class it does not become a method. */
static PyTypeObject builtin_type = {FUNCTION(0)};

/* Nothing is known of how often signatures were not. */
static void functions_forget(void) {
    for (Function* of = functions_made; of; of = of->next) of->misses = of->skipped = 0;
}

/* What is called of functions and ufuncs that are yet to be made. */
static vectorcallfunc function_vector = function_call, ufunc_vector = ufunc_call;

static PyObject* function_new(PyObject* slow, PyObject* theirs, PyObject* method, int kind, int recorded, int reduces, Reduction* reduction, Matrices* matrices, Direct direct, int least, int listens, int plain, PyObject* own, int arrays, int silent, int asked, int positional, int kernels, int unloaded) {
    int bound = kind == DRAW || PyObject_TypeCheck(slow, &PyStaticMethod_Type);
    Function* made = PyObject_New(Function, bound ? &builtin_type : &function_type);
    if (made == NULL) return NULL;
    made->vector = kind == FOREIGN ? foreign_call : function_vector;
    made->slow = Py_NewRef(slow);
    made->theirs = Py_NewRef(theirs);
    made->method = method == Py_None ? NULL : Py_NewRef(method);
    made->kind = kind == ALL_CLOSE ? CLOSE : kind;
    made->op = -1, made->recorded = recorded, made->reduces = reduces, made->arrays = arrays, made->silent = silent, made->asked = asked, made->positional = positional, made->kernels = kernels, made->misses = made->skipped = 0;
    made->views = kind == RESHAPE || direct == direct_ravel || direct == direct_transpose || direct == direct_squeeze || recorded == EXPANDS || recorded == SWAPS_AXES || recorded == FLIPS;
    made->all = kind == ALL_CLOSE;
    made->reduction = reduction;
    made->least = least;
    made->listens = listens;
    made->plain = plain, made->unloaded = unloaded, made->later = 0;
    made->own = own == Py_None ? NULL : Py_NewRef(own);
    made->direct = direct;
    made->matrices = matrices;
    made->stands_for = NULL;
    made->weakrefs = NULL;
    made->next = functions_made;
    functions_made = made;
    return (PyObject*)made;
}

/* What draws sooner than NumPy's method is asked for now and then, until it is there. */
static void draws_later(PyObject* function) {
    if (Py_TYPE(function) == &builtin_type) ((Function*)function)->later = ((Function*)function)->kind == DRAW ? DRAWS : 0;
}

/* Before anything has it as a key. */
static void function_stand_for(PyObject* function, PyObject* theirs) {
    if (Py_TYPE(function)->tp_hash == function_hash) Py_XSETREF(((Function*)function)->stands_for, Py_NewRef(theirs));
}

static void ufunc_dealloc(PyObject* self) { /* of a subclass, which lets its type go */
    Ufunc** before = &ufuncs_bound;
    while (*before && *before != (Ufunc*)self) before = &(*before)->next;
    if (*before) *before = ((Ufunc*)self)->next;
    Py_CLEAR(((Ufunc*)self)->numpy);
    if (((Ufunc*)self)->loops) Py_CLEAR(((Ufunc*)self)->loops->ufunc);
    PyMem_Free(((Ufunc*)self)->loops);
    if (((Ufunc*)self)->own) Py_CLEAR(((Ufunc*)self)->own->ufunc);
    PyMem_Free(((Ufunc*)self)->own);
    Py_CLEAR(((Ufunc*)self)->own_ufunc);
    Py_TYPE(self)->tp_free(self);
}

static PyObject* ufunc_create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    (void)args, (void)kwargs;
    return type->tp_alloc(type, 0);
}

static PyTypeObject ufunc_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Ufunc",
    .tp_doc = "The part of a ufunc that the core knows.",
    .tp_basicsize = sizeof(Ufunc),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = ufunc_create,
    .tp_dealloc = ufunc_dealloc,
};

static int is_ufunc(PyObject* x) { return PyObject_TypeCheck(x, &ufunc_type) && ((Ufunc*)x)->numpy; }
/* Whether a ufunc is one of NumPy's own, whose calls run no code of a program's. */
static int is_numpys_ufunc(PyObject* x) { return is_ufunc(x) && ((Ufunc*)x)->theirs && ((Ufunc*)x)->loops; }
static PyObject* numpys_ufunc(PyObject* x) { return ((Ufunc*)x)->numpy; }

/* lazynp's own loops of a function, and a ufunc over them, which NumPy calls as its own: for results in given memory, under a mask, of operands that are to be
   cast.  `tan` has none: where NumPy has vectors for it, it is the faster one. */
static int own_bind(Ufunc* self) {
    static struct {
        PyUFuncGenericFunction functions[2];
        void* data[2];
        char types[4];
    } kept[16]; /* NumPy's ufunc keeps the addresses */
    static int count;
    PyUFuncObject* theirs = (PyUFuncObject*)self->numpy;
    Loops* own = count < 16 ? loops_compiled(self->numpy, 1) : NULL;
    int types = 0;
    if (own == NULL) return 0;
    for (int type = NPY_FLOAT; type <= NPY_DOUBLE; type++) {
        if (own->of[type].function == NULL) continue;
        kept[count].functions[types] = own->of[type].function, kept[count].data[types] = own->of[type].data;
        kept[count].types[2 * types] = kept[count].types[2 * types + 1] = (char)type;
        types++;
    }
    self->own_ufunc = PyUFunc_FromFuncAndData(kept[count].functions, kept[count].data, kept[count].types, types, 1, 1, PyUFunc_None, theirs->name, theirs->doc, 0);
    count++;
    if (self->own_ufunc == NULL) return PyMem_Free(own), -1;
    self->own = own;
    return 0;
}

static int ufunc_bind(PyObject* object, PyObject* numpy, int basic, int real, int theirs_all, int costly, int rounds, int compiled, int numpys) {
    Ufunc* self = (Ufunc*)object;
    PyUFuncObject* theirs = (PyUFuncObject*)numpy;
    if (!PyObject_TypeCheck(object, &ufunc_type)) return PyErr_SetString(PyExc_TypeError, "not a ufunc"), -1;
    if (self->numpy == NULL) self->next = ufuncs_bound, ufuncs_bound = self;
    self->vector = ufunc_vector;
    Py_XSETREF(self->numpy, Py_NewRef(numpy));
    self->nin = PyObject_TypeCheck(numpy, &PyUFunc_Type) && theirs->nin <= MOST ? theirs->nin : 0;
    self->real = real;
    self->theirs = theirs_all;
    self->product = PyObject_TypeCheck(numpy, &PyUFunc_Type) && theirs->core_enabled && theirs->nin == 2;
    self->costly = costly, self->rounds = rounds;
    if (numpys && PyObject_TypeCheck(numpy, &PyUFunc_Type) && theirs->nout == 2 && !theirs->core_enabled) two_loops_add(theirs);
    self->multiplies = self->product && strcmp(theirs->name, "matmul") == 0;
    if (numpys && PyObject_TypeCheck(numpy, &PyUFunc_Type) && theirs->nout <= 2 && theirs->nin <= 3 && !theirs->core_enabled && self->calls == NULL)
        self->calls = (Function*)function_new(object, numpy, Py_None, UFUNC, NOT_RECORDED, NO_REDUCTION, NULL, NULL, NULL, 1, 0, 0, Py_None, theirs->nin, 0, ASKED_MOST, theirs->nin, 0, 0);
    if (PyErr_Occurred()) return -1;
    if (!PyObject_TypeCheck(numpy, &PyUFunc_Type) || theirs->nout != 1 || theirs->nin > 2 || theirs->core_enabled || self->loops) return 0;
    self->loops = PyMem_Malloc(sizeof(Loops));
    if (self->loops == NULL) return PyErr_NoMemory(), -1;
    loops_fill(self->loops, numpy, basic);
    self->loops->costly = costly;
    if (costly && compiled) self->kernels = loops_compiled(numpy, 0);
    if (costly && compiled && numpys && theirs->nin == 1 && strcmp(theirs->name, "tan") && own_bind(self) < 0) return -1;
    self->powers = strcmp(theirs->name, "power") == 0;
    self->errs_at_one = strcmp(theirs->name, "arctanh") == 0 || strncmp(theirs->name, "logaddexp", 9) == 0 || strcmp(theirs->name, "nextafter") == 0;
    self->deprecates = strcmp(theirs->name, "maximum") == 0 || strcmp(theirs->name, "minimum") == 0;
    if (self->kernels && self->powers) power_kernels = self->kernels;
    return 0;
}

/* Calls of the instances of `type`, a subclass of Ufunc, come to `ufunc_call`. */
static void ufunc_register(PyTypeObject* type) {
    type->tp_vectorcall_offset = offsetof(Ufunc, vector);
    type->tp_call = PyVectorcall_Call;
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(type);
}

static int functions_ready(void) { return PyType_Ready(&function_type) < 0 || PyType_Ready(&builtin_type) < 0 || PyType_Ready(&ufunc_type) < 0 ? -1 : 0; }

#endif
