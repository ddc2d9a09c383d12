/* Operators: `a + b`, `-a`, `a < b`, `a += b`, and what waits of them.

   In: operands.  Out: a step of a tape, NumPy's answer at once, or that of the method in Python.  Promise: nothing but exact types is looked at, and what NumPy computes with is held while
   it runs; `a += b` is a step only where nothing else sees the memory of `a`. */

#ifndef LAZYNP_OPERATORS_H
#define LAZYNP_OPERATORS_H

#include "memory_read.h"

/* The loops of an array to the power of a number or of another array, as a step; NULL where there are none. */
static Loops* power_steps(PyObject* a, PyObject* b) {
    npy_intp size, other;
    int type;
    if (Py_TYPE(a) != array_type) return NULL;
    if (is_two(b)) return &square_loops;
    if ((type = small_type(a, &size)) < 0) return NULL;
    if (Py_TYPE(b) == array_type) {
        if ((type != NPY_DOUBLE && type != NPY_FLOAT) || small_type(b, &other) != type) return NULL;
        return size > costly_above() || other > costly_above() ? power_kernels : &power_loops;
    }
    if (PyTypeNum_ISINTEGER(type)) return is_natural(b) && size <= costly_above() ? &power_loops : NULL; /* which cannot fail */
    if (type != NPY_DOUBLE && type != NPY_FLOAT) return NULL;
    if (PyFloat_CheckExact(b) && PyFloat_AS_DOUBLE(b) == 0.5) return &root_loops;
    if (is_whole(b, -1)) return &reciprocal_loops;
    if (!is_power_number(b)) return NULL;
    return size > costly_above() ? power_kernels : &power_loops;
}

static PyObject* binary(int op, PyObject* a, PyObject* b) {
    PyArrayObject *x, *y;
    Loops* powers;
    if (waiting_count == 0 && at_the_call()) return binary_answer(op, a, b);
    powers = op == POW ? power_steps(a, b) : NULL;
    if (powers || (op < POW && binary_loops[op].ufunc)) {
        PyObject* found = powers ? step_next(powers, a, powers->nin == 1 ? NULL : b) : step_next(&binary_loops[op], a, b);
        if (found) return found;
    }
    x = operand_seen(a), y = operand_seen(b);
    if (op != MATMUL && (may_chain(a, b, x, y) || (x == NULL && large_real(a, b)) || (y == NULL && large_real(b, a)))) {
        PyObject* found = NULL;
        if (op < POW && binary_loops[op].ufunc) found = chain_step(&binary_loops[op], a, b);
        else if (powers) found = chain_step(powers, a, powers->nin == 1 ? NULL : b);
        if (found == NULL && !PyErr_Occurred()) found = operator_recorded(op, a, b);
        if (found) return found;
        if (PyErr_Occurred() || settle_operand(a) < 0 || settle_operand(b) < 0) return NULL;
    }
    if (op == MATMUL) {
        PyObject* found = product_recorded(a, b);
        if (found == NULL && !PyErr_Occurred()) found = product_number(a, b);
        if (found || PyErr_Occurred()) return found;
    }
    return binary_answer(op, a, b);
}

/* The memory of an array's cell as macros read it, which need not be one of NumPy's arrays (borrowed); NULL where there is none. */
static inline PyArrayObject* raw_memory(PyObject* x) {
    PyObject* base = Py_TYPE(x) == array_type ? ((Cell*)x)->base : NULL;
    return base && (IS_RAW(base) || Py_TYPE(base) == &PyArray_Type) ? (PyArrayObject*)base : NULL;
}

/* The product of two vectors, a number; NULL, perhaps without an exception, where it is to be looked at closer. */
static PyObject* product_number(PyObject* a, PyObject* b) {
    PyArrayObject *x, *y;
    PyObject* found = NULL;
    if (Py_TYPE(a) != array_type || Py_TYPE(b) != array_type || settle_operand(a) < 0 || settle_operand(b) < 0) return NULL;
    if ((x = raw_memory(a)) == NULL || (y = raw_memory(b)) == NULL || PyArray_NDIM(x) != 1 || PyArray_NDIM(y) != 1) return NULL;
    Py_INCREF(x), Py_INCREF(y);
    found = direct_product(x, y);
    Py_DECREF(x), Py_DECREF(y);
    return wrapped(found);
}

/* Whether an array, or what it is a view of, waits in a graph. */
static inline int waits_in_graph(PyObject* x) {
    if (Py_TYPE(x) == array_type && ((Cell*)x)->base && Py_TYPE(((Cell*)x)->base) == array_type) x = ((Cell*)x)->base;
    return Py_TYPE(x) == array_type && ((Cell*)x)->base == Py_None && member_of(&member_buffer, ((Cell*)x)->node) == Py_None;
}

/* Have small operands that wait in graphs computed, for a function that rounds (`calls.at_hand_first`); whether there were any, -1 with an exception. */
static PyObject* first_method;
static int operands_first(PyObject* const* args, Py_ssize_t n, int costly) {
    PyObject *given, *done;
    Py_ssize_t k = 0;
    while (k < n && !waits_in_graph(args[k])) k++;
    if (k == n || first_method == NULL) return 0;
    if ((given = PyTuple_New(n)) == NULL) return -1;
    for (k = 0; k < n; k++) PyTuple_SET_ITEM(given, k, Py_NewRef(args[k]));
    done = PyObject_CallFunctionObjArgs(first_method, given, costly ? Py_True : Py_False, NULL);
    Py_DECREF(given);
    Py_XDECREF(done);
    return done ? done == Py_True : -1;
}

/* What an operator gives where it is computed now. */
static PyObject* binary_answer(int op, PyObject* a, PyObject* b) {
    PyArrayObject *x = memory_of(a), *y = memory_of(b);
    if ((op == MATMUL || op >= POW) && waiting_count) { /* no step, or not with these operands */
        if (settle_operand(a) < 0 || settle_operand(b) < 0) return NULL;
        x = memory_of(a), y = memory_of(b);
    }
    if (op == MATMUL) { /* a library's, which nothing is fused with: where the result is small it is computed at once */
        if (x == NULL) x = read_memory(a);
        if (y == NULL) y = read_memory(b);
        if (x == NULL && y) {
            PyObject* found = product_in_passing(a, b);
            if (found || PyErr_Occurred()) return found;
            y = memory_of(b) ? memory_of(b) : read_memory(b); /* it has run code */
        }
        if (x && y == NULL && PyArray_CheckExact(b) && native_dtype((PyArrayObject*)b)) y = (PyArrayObject*)b; /* as it lies: the sums follow from that */
        if (y && x == NULL && PyArray_CheckExact(a) && native_dtype((PyArrayObject*)a)) x = (PyArrayObject*)a;
    }
    PyObject *p = x ? (PyObject*)x : a, *q = y ? (PyObject*)y : b, *found = NULL;
    int arrays = (x != NULL) | (y != NULL) << 1;
    if (op == POW && arrays && !(arrays == 1 && is_two(b)) && PyArray_SIZE(x ? x : y) > costly_above()) arrays = 0; /* the kernels' bits */
    if (arrays == 3 ? op == MATMUL ? fits_product(x, y) : fits(x, y) : op != MATMUL && arrays && is_number(arrays == 1 ? b : a)) {
        Py_INCREF(p), Py_INCREF(q);
        if (op == MATMUL) found = direct_product(x, y);
        else if (op < BINARIES && binary_loops[op].ufunc) found = direct2(&binary_loops[op], p, q, arrays);
        else if (op == POW && arrays == 1 && PyArray_ISFLOAT(x) && is_two(b)) found = direct1(&square_loops, x);
        else if (op == POW && is_power(x, q, arrays)) found = direct2(&power_loops, p, q, arrays);
        if (found == NULL && !PyErr_Occurred()) {
            PyObject* before = pool_begin(((x ? PyArray_SIZE(x) : 0) + (y ? PyArray_SIZE(y) : 0)) * 8);
            p = numpys_taken(p), q = numpys_taken(q);
            found = p && q ? numpys[op](p, q) : NULL;
            pool_end(before);
        }
        Py_XDECREF(p), Py_XDECREF(q);
        return wrapped(found);
    }
    if (x ? IS_LIKE(b) : y && IS_LIKE(a)) {
        PyObject* made = listed(NULL, x ? b : a, NULL);
        if (made) {
            found = x ? binary(op, a, made) : binary(op, made, b);
            Py_DECREF(made);
            return found;
        }
    }
    if (op == POW && (Py_TYPE(b) == array_type || is_power_number(b))) {
        PyObject* both[2] = {a, b};
        int first = operands_first(both, 2, 1);
        if (first) return first < 0 ? NULL : binary(op, a, b);
    }
    return Py_TYPE(a) == array_type ? slow2(slow_methods[op], a, b) : slow2(slow_reflected[op], b, a);
}

/* What is left of an operand where the first elements of its first axis are done (a new reference). */
static PyObject* rest_of(PyObject* x, npy_intp done) {
    return PyArray_CheckExact(x) ? PySequence_GetSlice(x, done, PyArray_DIM((PyArrayObject*)x, 0)) : Py_NewRef(x);
}

/* `to op= b` of large rows and a number or an array of as many; 1 when done, 0 where it is NumPy's to do, -1. */
static int rows_in_place(int op, PyObject* x, PyObject* b) {
    PyArrayObject* to = (PyArrayObject*)x;
    PyObject *rest, *other, *found = NULL;
    npy_intp done = binary_loops[op].ufunc && PyArray_CheckExact(x) ? direct_rows_into(&binary_loops[op], to, b) : 0;
    if (done == 0) return PyErr_Occurred() ? -1 : 0;
    if (done == PyArray_DIM(to, 0)) return 1;
    rest = rest_of(x, done), other = rest ? rest_of(b, done) : NULL; /* an error of NumPy's, or a piece that is too short */
    if (other) found = numpys_in_place[op](rest, other);
    done = found ? 1 : -1;
    Py_XDECREF(rest), Py_XDECREF(other), Py_XDECREF(found);
    return (int)done;
}

/* The same of a large part of an array that nothing else sees, and of an operand that exists: there is nothing that a kernel would do with it. */
static int large_in_place(int op, PyObject* a, PyObject* b) {
    PyArrayObject *to, *memory, *y = NULL;
    Cell *root, *written;
    int own, done;
    if (!is_part(a) || ((Cell*)a)->readonly != Py_False || op == POW) return 0;
    if (!is_number(b) && (y = memory_of(b)) == NULL && (y = read_memory(b)) == NULL) return 0;
    if ((to = large_memory(a, &root, &memory, &own)) == NULL || !own) return 0;
    if (y) b = (PyObject*)y;
    PyArray_ENABLEFLAGS(to, NPY_ARRAY_WRITEABLE);
    Py_INCREF(to), Py_INCREF(b);
    written = writing_begin(a);
    done = rows_in_place(op, (PyObject*)to, b);
    writing_end(written);
    Py_DECREF(to), Py_DECREF(b);
    return done;
}

/* How many references tapes have to an array. */
static Py_ssize_t tapes_hold(PyArrayObject* x) {
    Py_ssize_t count = 0;
    for (const Chain* self = waiting.after; self != &waiting; self = self->after) {
        for (int k = 0; k < self->arrays; k++) count += self->array[k] == x;
        count += (self->place == x) + (self->to == x);
    }
    return count;
}

/* Whether nothing but the cell, and tapes, sees the memory of an array: there are no views, exports or lenders of it.  So a write is not seen either. */
static int is_alone(PyObject* a) {
    Cell* self = (Cell*)a;
    PyArrayObject* memory = (PyArrayObject*)self->base;
    if (Py_TYPE(a) != array_type || memory == NULL || self->readonly != Py_False || self->view != Py_None) return 0;
    if (WAITS(a)) return CHAIN_OF(a) != NULL && CHAIN_OF(a)->closed != PUT && self->waiting_views == 0;
    if (IS_RAW(memory)) return ((Raw*)memory)->fields.base == NULL && ((Raw*)memory)->views == 0;
    return PyArray_CheckExact(memory) && is_writable(memory) && (Py_REFCNT(memory) == 1 || Py_REFCNT(memory) <= 1 + tapes_hold(memory)) && is_own(self);
}

/* What a large array holds that is a value, which is exchanged and never written (borrowed): its views look for the new one.  The new one may lie where it does; NULL of all others. */
static PyArrayObject* large_value(PyObject* a, int now) {
    Cell* self = (Cell*)a;
    PyArrayObject* x;
    if (Py_TYPE(a) != array_type || self->base != Py_None || self->readonly != Py_False || self->lent == LENT_ADDRESS || (self->view && self->view != Py_None) || self->readers || self->waiting_views) return NULL;
    x = large_shown(a, now);
    return x && PyArray_CHKFLAGS(x, NPY_ARRAY_OWNDATA) && PyArray_BASE(x) == NULL && FIELDS(x)->weakreflist == NULL && is_writable(x) ? x : NULL;
}

/* Let a cell have the value of a step that `made` has until now; what reads its old value keeps it, in `old`. */
static void cell_rebind(Cell* cell, Cell* made, Cell* old) {
    Chain *next = CHAIN_OF(made), *before = WAITS(cell) ? CHAIN_OF(cell) : NULL, *free = NULL;
    PyObject* node = cell->base == Py_None ? cell->node : NULL; /* of a large array */
    PyArrayObject* memory = before || node ? NULL : (PyArrayObject*)cell->base;
    int step = STEP_OF(made), at = STEP_OF(cell), kept = 0;
    if (before) {
        kept = readers_follow(cell, old);
        before->at[at].cell = kept ? old : NULL;
        if (kept) old->before = (Cell*)before, old->offset = at;
        else if (--before->cells == 0 && before->users == 0) free = before;
    } else if (node) {
        Py_SETREF(cell->base, Py_NewRef((PyObject*)&waiting_value)); /* from None, of which no code is run */
        cell->node = Py_NewRef(Py_None), cell->lent = 0;
        if (cell->view == NULL) cell->view = Py_NewRef(Py_None);
    } else {
        readers_take(cell, memory);
        if (Py_REFCNT(memory) > 2) orphaned_bytes += PyArray_NBYTES(memory); /* another tape reads the old value */
        cell->base = Py_NewRef((PyObject*)&waiting_value);
    }
    next->at[step].cell = cell, cell->before = (Cell*)next, cell->offset = step;
    made->before = NULL, made->offset = 0;
    if (free) chain_free(free); /* from here on anything may run */
    Py_XDECREF(memory), Py_XDECREF(node);
}

/* Let `a` have the value of a step of its dtype and shape: that it lies elsewhere is not seen.  NULL, perhaps without an exception, where it is to be written now. */
static PyObject* into_recorded(Loops* loops, PyObject* const* operands, PyObject* a) {
    Cell *old = NULL, *made;
    Chain* next;
    PyArrayObject *x, *large;
    PyObject* found;
    int type, ndim, same, now;
    npy_intp dims[AXES];
    if (Py_TYPE(a) != array_type) return NULL;
    now = (WAITS(a) ? CHAIN_OF(a) && CHAIN_OF(a)->large : is_large(a)) && any_large_lent(operands, loops->nin); /* of few elements nothing large is added to */
    if (now && ((IS_CHAIN(a) && settle_cell(a) < 0) || (drafted(a) == a && draft_ready(a) < 0))) return NULL;
    large = large_value(a, now);
    if (!(large || is_alone(a))) return NULL;
    x = WAITS(a) ? NULL : large ? large : (PyArrayObject*)((Cell*)a)->base;
    if (x ? PyArray_NDIM(x) > AXES || !PyArray_IS_C_CONTIGUOUS(x) : lies_otherwise(CHAIN_OF(a))) return NULL; /* the result has the order of C */
    type = x ? PyArray_TYPE(x) : step_type(CHAIN_OF(a), STEP_OF(a)), ndim = x ? PyArray_NDIM(x) : CHAIN_OF(a)->ndim;
    if (ndim == 0) return NULL;
    if (loops->nin < 3 && a == operands[0] && large == NULL && (found = step_into(loops, a, operands[1], (Cell*)a))) return found;
    memcpy(dims, x ? PyArray_DIMS(x) : CHAIN_OF(a)->dims, (size_t)ndim * sizeof(npy_intp));
    if (x == NULL && (old = chain_cell()) == NULL) return NULL;
    made = loops->nin < 3 ? (Cell*)step_next(loops, operands[0], operands[1]) : NULL;
    if (made == NULL) made = (Cell*)step_made(loops, operands, &now);
    next = made ? CHAIN_OF(made) : NULL;
    same = next && !next->strided && next->at[STEP_OF(made)].step.out == type && next->ndim == ndim && !memcmp(next->dims, dims, (size_t)ndim * sizeof(npy_intp));
    if (same && now && settle_cell((PyObject*)made) < 0) same = 0; /* what fails leaves the old value */
    if (same && now) {
        if (!WAITS(made) && made->base == Py_None && large && large_value(a, now) == large) {
            Py_SETREF(((Cell*)a)->node, Py_NewRef(made->node));
            ((Cell*)a)->lent = 0;
            Py_INCREF(a);
        } else {
            a = NULL;
        }
    } else if (same && (large ? large_value(a, now) == large : is_alone(a) && (x ? (PyObject*)x == ((Cell*)a)->base : WAITS(a)))) { /* as before: recording may have had code run */
        cell_rebind((Cell*)a, made, old);
        Py_INCREF(a);
    } else {
        a = NULL;
    }
    Py_XDECREF(made), Py_XDECREF(old);
    return a;
}

/* `a op= b` as a step, likewise. */
static PyObject* in_place_recorded(int op, PyObject* a, PyObject* b) {
    if (op >= POW || binary_loops[op].ufunc == NULL || Py_TYPE(a) != array_type) return NULL;
    if (drafted(a) == a && draft_ready(a) < 0) return NULL;
    if (Py_REFCNT(a) == 1 && !WAITS(a) && !IS_CHAIN(b)) return NULL; /* no name has it: of `x[positions] += b`, which writes it next */
    return into_recorded(&binary_loops[op], (PyObject*[]){a, b, NULL}, a);
}

/* `a[mask] = number` of what waits is a choice between them, with what else waits: whether it was recorded. */
static int masked_into(PyObject* a, PyObject* key, PyObject* value) {
    const Chain* chain = IS_CHAIN(a) ? CHAIN_OF(a) : NULL;
    PyArrayObject* mask = NULL;
    PyObject* made;
    int ndim;
    const npy_intp* dims;
    if (chain == NULL || Py_TYPE(key) != array_type || !is_number(value)) return 0;
    if (IS_CHAIN(key) ? CHAIN_OF(key) == NULL || step_type(CHAIN_OF(key), STEP_OF(key)) != NPY_BOOL : (mask = plain_of(key)) == NULL || PyArray_TYPE(mask) != NPY_BOOL) return 0;
    ndim = mask ? PyArray_NDIM(mask) : CHAIN_OF(key)->ndim, dims = mask ? PyArray_DIMS(mask) : CHAIN_OF(key)->dims;
    if (ndim != chain->ndim || !same_lengths(dims, chain->dims, ndim)) return 0;
    made = into_recorded(&where_loops, (PyObject*[]){key, value, a}, a);
    Py_XDECREF(made);
    return made != NULL;
}

/* Of a step and its copy on the same tape exchange the cells: the copy is computed only if `b`, whose value was copied, is kept. */
static void values_exchanged(Cell* a, Cell* b) {
    Chain* self = IS_CHAIN((PyObject*)a) ? CHAIN_OF(a) : NULL;
    int copy = STEP_OF(a), step = STEP_OF(b);
    if (self == NULL || !IS_CHAIN((PyObject*)b) || CHAIN_OF(b) != self || self->closed == ITEM || a->readers || b->readers || a->waiting_views || b->waiting_views) return;
    if (self->at[copy].step.loops != &cast_loops[self->at[copy].step.type] || self->at[copy].step.of[0].kind != OF_STEP || self->at[copy].step.of[0].number != step) return; /* code of a program's may have run */
    self->at[copy].cell = b, self->at[step].cell = a, a->offset = step, b->offset = copy;
}

/* `a[:] = b` and `a[...] = b` of what waits: a copy is a step, too.  0, perhaps with an exception, where it is to be written now. */
static int copied_into(PyObject* a, PyObject* key, PyObject* b) {
    PyObject* made;
    int type;
    if (!IS_CHAIN(b) || CHAIN_OF(b) == NULL || lies_otherwise(CHAIN_OF(b)) || a == b) return 0;
    if (key != Py_Ellipsis && !(PySlice_Check(key) && ((PySliceObject*)key)->start == Py_None && ((PySliceObject*)key)->stop == Py_None && ((PySliceObject*)key)->step == Py_None)) return 0;
    type = step_type(CHAIN_OF(b), STEP_OF(b));
    if (cast_loops[type].of[type].function == NULL) return 0;
    made = into_recorded(&cast_loops[type], (PyObject*[]){b, NULL, NULL}, a);
    if (made && is_passing(b)) values_exchanged((Cell*)a, (Cell*)b);
    Py_XDECREF(made);
    return made != NULL;
}

static PyObject* put_in_place(Loops* loops, PyObject* v, PyObject* b);
static int put_into(PyObject* a, PyObject* key, PyObject* value);
static PyObject* large_put_in_place(Loops* loops, PyObject* v, PyObject* b);
static int large_put_into(PyObject* a, PyObject* key, PyObject* value);
static PyObject* in_place(int op, PyObject* a, PyObject* b) {
    PyArrayObject *x, *y;
    PyObject *q, *found;
    Cell* written;
    int done;
    if ((waiting_count || !at_the_call()) && ((found = in_place_recorded(op, a, b)) || PyErr_Occurred())) return found;
    if (waiting_count && op < POW && binary_loops[op].ufunc && ((found = put_in_place(&binary_loops[op], a, b)) || PyErr_Occurred())) return found;
    if (first_left > 0 && op < POW && binary_loops[op].ufunc && is_large(a) && ((found = large_put_in_place(&binary_loops[op], a, b)) || PyErr_Occurred())) return found;
    if (!SETTLED) return NULL;
    x = plain_of(a), y = plain_of(b);
    if (x && (y || is_number(b)) && op < BINARIES && binary_loops[op].ufunc && direct_into_few(&binary_loops[op], x, y, b)) return Py_NewRef(a);
    y = memory_of(b), x = own_memory_of(a);
    q = y ? (PyObject*)y : b;
    if (x == NULL && is_large(a) && (done = large_in_place(op, a, b))) return done < 0 ? NULL : Py_NewRef(a);
    if (x == NULL && is_part(a) && op != MATMUL && (is_number(b) || y || read_memory(b)) && large_owned(a, size_of(((Cell*)a)->shown), 0)) return in_place(op, a, b);
    if (PyErr_Occurred()) return NULL;
    if (x == NULL || !(y || is_number(b)) || op == MATMUL) {
        if (x == NULL || !IS_LIKE(b) || (q = listed(NULL, b, NULL)) == NULL) return slow2(slow_in_place[op], a, b);
        found = in_place(op, a, q);
        Py_DECREF(q);
        return found;
    }
    Py_INCREF(x), Py_INCREF(q);
    written = writing_begin(a);
    done = binary_loops[op].ufunc && direct_into(&binary_loops[op], x, q);
    if (!done && !PyErr_Occurred() && (q = numpys_taken(q))) {
        found = numpys_in_place[op]((PyObject*)x, q);
        done = found != NULL;
        Py_XDECREF(found);
    }
    writing_end(written);
    Py_DECREF(x), Py_XDECREF(q);
    return done ? Py_NewRef(a) : NULL;
}

static inline PyObject* unary(int op, PyObject* a, unaryfunc numpys_own) {
    PyArrayObject* x;
    PyObject* found = unary_loops[op].ufunc ? step_next(&unary_loops[op], a, NULL) : NULL;
    if (found) return found;
    x = operand_seen(a);
    if (may_chain(a, NULL, x, NULL)) {
        if (unary_loops[op].ufunc) found = chain_step(&unary_loops[op], a, NULL);
        if (found || PyErr_Occurred()) return found;
        if (settle_operand(a) < 0) return NULL;
    }
    x = memory_of(a);
    if (x == NULL) return slow1(slow_methods[op], a);
    Py_INCREF(x);
    if (unary_loops[op].ufunc) found = direct1(&unary_loops[op], x);
    if (found == NULL && !PyErr_Occurred()) {
        PyObject* before = pool_begin(PyArray_SIZE(x) * 8);
        found = numpys_own((PyObject*)x);
        pool_end(before);
    }
    Py_DECREF(x);
    return wrapped(found);
}

static PyObject* compare(PyObject* a, PyObject* b, int op) {
    PyArrayObject *x, *y;
    PyObject *q, *found = step_next(&compare_loops[op], a, b);
    if (found) return found;
    x = operand_seen(a), y = operand_seen(b);
    if (may_chain(a, b, x, y)) {
        if ((found = chain_step(&compare_loops[op], a, b))) return found;
        if (PyErr_Occurred() || settle_operand(a) < 0 || settle_operand(b) < 0) return NULL;
    }
    x = memory_of(a), y = memory_of(b);
    q = y ? (PyObject*)y : b;
    if (x == NULL || !(y ? fits(x, y) : is_number(b))) {
        if (x == NULL || !IS_LIKE(b) || (q = listed(NULL, b, NULL)) == NULL) return slow2(slow_methods[LT + op], a, b);
        found = compare(a, q, op);
        Py_DECREF(q);
        return found;
    }
    Py_INCREF(x), Py_INCREF(q);
    found = direct2(&compare_loops[op], (PyObject*)x, q, y ? 3 : 1);
    if (found == NULL && !PyErr_Occurred() && (q = numpys_taken(q))) found = PyArray_Type.tp_richcompare((PyObject*)x, q, op);
    Py_DECREF(x), Py_XDECREF(q);
    return wrapped(found);
}

/* A number that is a result, compared with an array: where Python had the array compare itself, a warning would name the reverse. */
static PyObject* compared_from(PyObject* a, PyObject* b, int op) {
    static const char* const names[] = {"less", "less_equal", "equal", "not_equal", "greater", "greater_equal"};
    PyObject *found = step_next(&compare_loops[op], a, b), *module, *function, *name;
    PyArrayObject* y;
    if (found) return found;
    if (Py_TYPE(b) != array_type) Py_RETURN_NOTIMPLEMENTED; /* of a subclass, which has its own say */
    if (may_chain(b, NULL, operand_seen(b), NULL) && ((found = chain_step(&compare_loops[op], a, b)) || PyErr_Occurred())) return found;
    if (settle_operand(b) < 0) return NULL;
    if ((y = memory_of(b))) {
        Py_INCREF(y);
        found = direct2(&compare_loops[op], a, (PyObject*)y, 2);
        Py_DECREF(y);
        if (found || PyErr_Occurred()) return wrapped(found);
    }
    if ((name = PyUnicode_FromString("lazynp")) == NULL) return NULL;
    module = PyImport_GetModule(name);
    Py_DECREF(name);
    function = module ? PyObject_GetAttrString(module, names[op]) : NULL;
    found = function ? PyObject_CallFunctionObjArgs(function, a, b, NULL) : NULL;
    Py_XDECREF(module), Py_XDECREF(function);
    if (found == NULL && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
    return found;
}

/* Python takes `__add__` and `__iadd__` of a class for concatenation, too: what neither operand knows would come back as NotImplemented.  NumPy's refuses. */
static void refuse_concatenation(PyTypeObject* type) {
    type->tp_as_sequence->sq_concat = PyArray_Type.tp_as_sequence->sq_concat;
    type->tp_as_sequence->sq_inplace_concat = PyArray_Type.tp_as_sequence->sq_inplace_concat;
}

/* Give a class of ours members that its slots know nothing of; -1 with an exception. */
static int class_members(PyTypeObject* type, PyObject* members) {
    int failed = PyDict_Update(type->tp_dict, members);
    PyType_Modified(type);
    return failed;
}

#define BINARY(NAME, OP) \
    static PyObject* slot_##NAME(PyObject* a, PyObject* b) { return binary(OP, a, b); } \
    static PyObject* slot_i##NAME(PyObject* a, PyObject* b) { return in_place(OP, a, b); }
BINARY(add, ADD)
BINARY(sub, SUB)
BINARY(mul, MUL)
BINARY(truediv, DIV)
BINARY(floordiv, FLOORDIV)
BINARY(mod, MOD)
BINARY(lshift, LSHIFT)
BINARY(rshift, RSHIFT)
BINARY(and, AND)
BINARY(or, OR)
BINARY(xor, XOR)
BINARY(matmul, MATMUL)
static PyObject* slot_divmod(PyObject* a, PyObject* b) { return binary(DIVMOD, a, b); }
static PyObject* slot_pow(PyObject* a, PyObject* b, PyObject* modulo) { return modulo == Py_None ? binary(POW, a, b) : not_implemented(); }
static PyObject* slot_ipow(PyObject* a, PyObject* b, PyObject* modulo) { return modulo == Py_None ? in_place(POW, a, b) : not_implemented(); }

static PyObject* slot_neg(PyObject* a) { return unary(NEG, a, PyArray_Type.tp_as_number->nb_negative); }
static PyObject* slot_pos(PyObject* a) { return unary(POS, a, PyArray_Type.tp_as_number->nb_positive); }
static PyObject* slot_abs(PyObject* a) { return unary(ABS, a, PyArray_Type.tp_as_number->nb_absolute); }
static PyObject* slot_invert(PyObject* a) { return unary(INVERT, a, PyArray_Type.tp_as_number->nb_invert); }

static inline PyObject* number(int op, PyObject* a, unaryfunc numpys_own) {
    PyArrayObject* x = settled_memory(a);
    PyObject* found;
    if (x == NULL) return slow1(slow_methods[op], a);
    Py_INCREF(x);
    found = numpys_own((PyObject*)x);
    Py_DECREF(x);
    return found;
}
static PyObject* slot_int(PyObject* a) { return number(INT, a, PyArray_Type.tp_as_number->nb_int); }
static PyObject* slot_float(PyObject* a) { return number(FLOAT, a, PyArray_Type.tp_as_number->nb_float); }
static PyObject* slot_index(PyObject* a) { return number(INDEX, a, PyArray_Type.tp_as_number->nb_index); }

static int slot_bool(PyObject* a) {
    PyArrayObject* x = settled_memory(a);
    PyObject* found;
    int truth;
    if (x) {
        Py_INCREF(x);
        truth = PyArray_Type.tp_as_number->nb_bool((PyObject*)x);
        Py_DECREF(x);
        return truth;
    }
    found = slow1(slow_methods[BOOL], a);
    if (found == NULL) return -1;
    truth = PyObject_IsTrue(found);
    Py_DECREF(found);
    return truth;
}

static Py_ssize_t slot_len(PyObject* a) {
    PyArrayObject* x = memory_of(a);
    PyObject* found;
    Py_ssize_t length;
    if (IS_CHAIN(a) && CHAIN_OF(a)) return (Py_ssize_t)CHAIN_OF(a)->dims[0];
    if (x == NULL && is_part(a)) x = ((Cell*)a)->shown; /* its shape is known, whatever it shows now */
    if (x) return PyArray_Type.tp_as_mapping->mp_length((PyObject*)x);
    found = slow1(slow_methods[LEN], a);
    if (found == NULL) return -1;
    length = PyNumber_AsSsize_t(found, PyExc_OverflowError);
    Py_DECREF(found);
    return length;
}

#endif
