/* The calls of NumPy's functions as the interpreter makes them, and of ufuncs that NumPy or SciPy are asked for.

   In: a function, and its arguments.  Out: a cell that waits, NumPy's answer, or that of the function in Python.  Promise: what a function might write, or show, is computed before. */

#ifndef LAZYNP_FUNCTION_CALLS_H
#define LAZYNP_FUNCTION_CALLS_H

#include "signature_calls.h"

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

/* Whether a function writes into none of its arguments, and shares none of their memory, whatever they are. */
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

/* What a ufunc of any library's gave: objects are no numbers of ours. */
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

#endif
