/* NumPy's functions: how each is answered, and their arguments as NumPy takes them.

   In: a call, its arguments as the interpreter passes them.  Out: the arguments with NumPy's arrays in place of cells; NumPy's answer, its arrays as cells.  Promise: where
   one argument does not lie in memory, or is not plain, the function in Python gets the very same call. */

#ifndef LAZYNP_FUNCTION_TABLE_H
#define LAZYNP_FUNCTION_TABLE_H

#include "attributes.h"
#include "extremes.h"
#include "made.h"
#include "contraction.h"
#include "nonzero.h"
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
enum { ANY, ZEROS, ONES, FULL, SQUARE, RANGE, GROWING, WIDENING, LINSPACE, SPACED, REDUCTION, MEAN, FOREIGN, LISTED, AS_IT_IS, DRAW, OF_UFUNC, AT, OUTER, NUMBERS, ORDERED, RESHAPE, ASTYPE, PRODUCT, MATRICES, DOT, SIZED, LIBRARY, VIEW, WHERE, JOINED, SEARCHED, VARIANCE, DEVIATION, CLOSE, ALL_CLOSE, COUNTED, RESIZED, REALIZED, STACKED, ROWS_STACKED, JOINED_FLAT, COLUMNS_STACKED, POSITION, UFUNC, OPERATOR, NAMED };

/* Functions that are recorded without a kind of their own, and reductions by the dtype of their results. */
enum { NOT_RECORDED, CASTS_TO, COPIES, SCANS, SORTS, SORTS_POSITIONS, CLIPS, DIFFERS, ROUNDS, ARG_EXTREMES, PRODUCTS, CONJUGATES, EXPANDS, SWAPS_AXES, FLIPS, ROLLS, SELECTS, SCANS_PRODUCTS, SHOWS, DIAGONALS }; /* SHOWS: any other view of NumPy's, DIAGONALS: one that is read-only */
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
    int op;       /* of an operator, or of a method with its name: which one */
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
    if ((found = positions_of(x, 0)) || PyErr_Occurred()) return found;
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
        for (Py_ssize_t k = 0; made && k < n; k++) { /* user code may hold it, and write to it */
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

#endif
