/* Ufuncs: their loops, whose bits they have, and their calls.

   In: a ufunc, and its arguments.  Out: a step of a tape, a cell that waits, a number, or NumPy's answer.  Promise: whose bits a result has follows from the ufunc, the dtype and the size of
   the operation alone. */

#ifndef LAZYNP_UFUNC_CALLS_H
#define LAZYNP_UFUNC_CALLS_H

#include "function_calls.h"

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

/* Whether a function has lazynp's own bits of this operand: it has many elements, of a type that is computed as one of the polynomials' types.  The
   error state must ignore underflow, of which they raise no flag.  The same for all forms of a call. */
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

/* A function of much memory by a loop of the kernels'; NULL, without an exception, where there is none, or it raises an error that is not ignored. */
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

/* An operand of no class that wants to see a list that stands beside it. */
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
/* A method with the name of an operator: with an array, or a number of Python's, it is the operator. */
static PyObject* named_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
#define OF_SLOT(NAME) offsetof(PyNumberMethods, nb_##NAME)
    static const size_t slots[BINARIES] = {
        OF_SLOT(add), OF_SLOT(subtract), OF_SLOT(multiply), OF_SLOT(true_divide), OF_SLOT(floor_divide), OF_SLOT(remainder), OF_SLOT(lshift), OF_SLOT(rshift),
        OF_SLOT(and), OF_SLOT(or), OF_SLOT(xor), OF_SLOT(power), OF_SLOT(matrix_multiply), OF_SLOT(divmod)};
    Function* self = (Function*)callable;
    PyObject* slow;
    if (names == NULL && PyVectorcall_NARGS(nargsf) == 2 && Py_TYPE(args[0]) == array_type && (Py_TYPE(args[1]) == array_type || PyFloat_CheckExact(args[1]) || PyLong_CheckExact(args[1]))) {
        if (self->op >= LT) return array_type->tp_richcompare(args[0], args[1], self->op - LT);
        if (self->op == POW) return array_type->tp_as_number->nb_power(args[0], args[1], Py_None);
        return (*(binaryfunc*)((char*)array_type->tp_as_number + slots[self->op]))(args[0], args[1]);
    }
    slow = slow_of(self);
    return slow ? PyObject_Vectorcall(slow, args, nargsf, names) : NULL;
}

static void named_set(PyObject* method, int op) { ((Function*)method)->op = op; }

static void operator_set(int op, PyObject* function) { operators[op] = (Function*)Py_NewRef(function), operators[op]->op = op; }

#endif
