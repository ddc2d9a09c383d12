/* Calls that are recorded because their signature is known (`signatures.h`), among them ufuncs with two results.

   In: a call.  Out: a cell that waits, or two; NULL where the call is made now.  Promise: no code of a program's runs while a signature is read. */

#ifndef LAZYNP_SIGNATURE_CALLS_H
#define LAZYNP_SIGNATURE_CALLS_H

#include "recorded_calls.h"

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
    for (Py_ssize_t k = self->arrays == SEQUENCE; k < total; k++) /* lists of numbers become tuples, which are immutable */
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

#endif
