/* Calls of functions whose arguments lie in memory: what NumPy gives, matrices, arrays made of arrays, and NumPy's arrays among the arguments.

   In: a function of the table, and a call.  Out: NumPy's answer.  Promise: arrays of NumPy's are to a function what cells are; what may be large, and what is not plain, is left to the
   function in Python. */

#ifndef LAZYNP_ASKED_H
#define LAZYNP_ASKED_H

#include "lists.h"

/* Whether numbers say that a result of as many elements as the square of their product, at most, is a small array. */
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

/* NumPy's answer to a call, where all arguments are in memory; NULL without an exception where the function in Python must be asked.
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

/* A function of one or two matrices in memory. */
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

/* `ufunc.at(x, key, values)` where all exist, and nothing else sees what is written; NULL, perhaps without an exception, where Python has to see to it. */
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

/* Whether there are arrays of NumPy's among the arguments, and all of ours are in memory. */
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

#endif
