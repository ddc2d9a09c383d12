/* Computing a tape: all steps in one pass, one by one, or by machine code; cells get their values.

   In: a tape whose operands lie in memory.  Out: the values of its cells.  Promise: what no cell holds lies in no memory; what raised an error is told at the line
   that recorded it, and fails no other value.

   Where a step raises a floating-point flag that the program minds, the block's work is thrown away. The tape is then computed step by step, to find out
   which one, and to tell. The only step of a tape whose result lies where a dying operand did cannot be repeated: it tells of its errors directly
   (`tapes.raised`).

   The result of a tape, from 64 KB on, lies where an operand does that only the tape has (`is_left`, `memory_left`). So `a += b; a *= c` is one
   pass over `a` and no memory, and so is `x = x * 0.5 + 1`. From then on nothing can be computed again, so errors are collected step by step and told
   when all is there; machine code computes a block beside and copies it, if it raised none; no other thread of the program runs meanwhile (an operand
   half written would be seen by who asks for the value, and by a child). */

#ifndef LAZYNP_TAPE_VALUES_H
#define LAZYNP_TAPE_VALUES_H

#include "frames.h"
#include "hot.h"

/* Computing ------------------------------------------------------------------------------------------------------------------------ */

static int tape_settle(Chain* self);

/* The array of a cell that may wait (a new reference); NULL with an exception. */
static PyArrayObject* source_array(Cell* cell) {
    PyArrayObject *found, *memory;
    Cell* root;
    int own;
    if (WAITS(cell) && CHAIN_OF(cell) && tape_settle(CHAIN_OF(cell)) < 0) return NULL;
    if (cell->base && IS_RAW(cell->base)) return (PyArrayObject*)Py_NewRef(cell->base);
    if ((found = memory_of((PyObject*)cell)) == NULL) found = large_memory((PyObject*)cell, &root, &memory, &own); /* an export would have all computed */
    return found ? (PyArrayObject*)Py_NewRef((PyObject*)found) : (PyArrayObject*)PyArray_FROM_O((PyObject*)cell);
}

/* Have an operand that waits itself computed, by an older tape. */
static int source_settle(Chain* self, int k) {
    Cell* cell;
    while ((cell = self->source[k])) { /* by another thread, or a handler of signals, it may be done meanwhile; or it is another cell that keeps the old value (`readers_follow`) */
        PyArrayObject* found;
        Py_INCREF(cell);
        found = source_array(cell);
        Py_DECREF(cell);
        if (found == NULL) return -1;
        if (self->source[k] == cell) {
            if (self->array[k] == NULL) self->array[k] = (PyArrayObject*)Py_NewRef((PyObject*)found);
            self->sources--;
            self->source[k] = NULL;
            source_drop(cell);
        }
        Py_DECREF(found);
    }
    return 0;
}

/* All of them. */
static int sources_settle(Chain* self) {
    for (int k = 0; k < self->arrays; k++)
        if (source_settle(self, k) < 0) return -1;
    return 0;
}

/* The steps that cells hold, and what those read. */
static void outs_of(const Chain* self, Outs* outs) {
    const StepAt* at = self->at;
    outs_begin(outs);
    for (int k = 0; k < self->steps; k++) {
        int had = at[k].cell != NULL;
        outs->wanted[k] = (char)had, outs->count += had, outs->to[k] = NULL, outs->put[k] = NULL, outs->given[k] = 0, outs->is_over[k] = 0;
    }
    outs_close(self, outs);
}

static int all_wanted(const Chain* self, const Outs* outs) {
    for (int k = 0; k < self->steps; k++)
        if (!outs->wanted[k]) return 0;
    return 1;
}

/* Let steps go that are not wanted: those that are left are what machine code is made of. */
static void steps_drop(Chain* self, Outs* outs) {
    PyCodeObject* gone[CHAIN_STEPS];
    int to[CHAIN_STEPS], count = 0, others = 0;
    for (int k = 0; k < self->steps; k++) {
        Step* step = &self->at[count].step;
        if (!outs->wanted[k]) {
            gone[others++] = self->at[k].site.code;
            continue;
        }
        if (count < k) self->at[count] = self->at[k];
        for (int o = 0; o < step->loops->nin; o++)
            if (step->of[o].kind == OF_STEP) step->of[o].number = (short)to[step->of[o].number];
        if (self->at[count].cell) self->at[count].cell->offset = count;
        to[k] = count++;
    }
    self->steps = count;
    for (int k = 0; k < count; k++) outs->wanted[k] = 1;
    while (others--) Py_DECREF(gone[others]); /* from here on anything may run */
}

/* One step over whole arrays; NULL, perhaps without an exception, where NumPy's ufunc is to do it. */
static PyObject* step_direct(const Chain* self, int k, PyObject* const* made) {
    const Step* step = &self->at[k].step;
    PyObject* operands[2] = {NULL, NULL};
    const Value* number = NULL;
    int arrays = 0;
    if (step->loops->nin > 2) return NULL;
    for (int o = 0; o < step->loops->nin; o++) {
        int from = step->of[o].number;
        if (step->of[o].kind == OF_NUMBER) number = &self->value[from];
        else operands[o] = step->of[o].kind == OF_STEP ? made[from] : (PyObject*)self->array[from], arrays |= 1 << o;
    }
    if (step->loops->nin == 1) return direct1_minded(step->loops, (PyArrayObject*)operands[0], self->minded);
    return direct_minded(step->loops, operands[0], operands[1], arrays, number, self->minded);
}

#define REUSED_FROM 65536 /* bytes: less stays in the nearest caches, wherever it lies */

/* Whether elements lie without gaps, in an order of axes. */
static int lies_in_order(PyArrayObject* x, const char* order) {
    npy_intp strides[AXES];
    if (PyArray_NDIM(x) > AXES) return 0;
    ordered_strides(PyArray_NDIM(x), PyArray_DIMS(x), order, PyArray_ITEMSIZE(x), strides);
    return same_lengths(PyArray_STRIDES(x), strides, PyArray_NDIM(x));
}

/* Whether only this tape, which no other run computes, has the memory of an operand: the result of an operation on its elements may lie there. */
static int is_left(const Chain* self, PyArrayObject* x, int type) {
    if (Py_REFCNT(x) != 1 || PyArray_TYPE(x) != type || !PyArray_ISBEHAVED(x) || self->users != 1 || size_of(x) * PyArray_ITEMSIZE(x) < REUSED_FROM) return 0;
    if (PyArray_NDIM(x) != self->ndim || !same_lengths(PyArray_DIMS(x), self->dims, self->ndim)) return 0;
    if (self->ordered ? !lies_in_order(x, self->order) : !PyArray_IS_C_CONTIGUOUS(x)) return 0;
    if (IS_RAW(x)) return is_bare(x);
    return PyArray_CheckExact(x) && PyArray_CHKFLAGS(x, NPY_ARRAY_OWNDATA) && PyArray_BASE(x) == NULL && FIELDS(x)->weakreflist == NULL && is_writable(x);
}

/* Tell of the errors of a step whose result is there; -1 with an exception. */
static PyObject* raised_method;
static int step_tell(const Chain* self, int k, int errors) {
    PyObject* ufunc = self->at[k].step.loops->ufunc;
    PyObject* told = PyObject_CallFunction(raised_method, "OOisi", self->state, (PyObject*)self->at[k].site.code, self->at[k].site.offset,
                                           PyObject_TypeCheck(ufunc, &PyUFunc_Type) ? ((PyUFuncObject*)ufunc)->name : "cast", errors & self->minded);
    Py_XDECREF(told);
    return told ? 0 : -1;
}

/* The order of Fortran. */
static inline const char* fortran_order(int ndim) {
    static const char order[AXES] = {3, 2, 1, 0};
    return order + AXES - ndim;
}

/* Bytes from each element of an operand to the next, where a tape's results are one row. */
static inline npy_intp row_step(PyArrayObject* x) { return PyArray_NDIM(x) == 0 || PyArray_DIM(x, 0) == 1 ? 0 : PyArray_STRIDE(x, 0); }

/* The only step of a tape over a whole array; NULL, perhaps without an exception, where it is to be done step by step.  `told`: errors that are still to be told. */
static PyArrayObject* one_run(Chain* self, int* told) {
    Step* step = &self->at[0].step;
    Loop* loop = &step->loops->of[step->type];
    int nin = step->loops->nin, errors, left = 0;
    PyArrayObject* made = NULL;
    char* from[2] = {NULL, NULL};
    npy_intp size = 0, along[2] = {0, 0};
    int row = !self->flat && !self->strided && self->ndim == 1 && loop->joins;
    if (nin > 2 || (self->ordered && !self->flat)) return NULL; /* a pass does it */
    if (!self->flat && !row) return (PyArrayObject*)step_direct(self, 0, NULL);
    if (self->size == 0) return NULL;
    for (int o = 0; o < nin && self->flat && made == NULL && long_shares(loop, step->type); o++)
        if (step->of[o].kind == OF_ARRAY && is_left(self, self->array[step->of[o].number], step->out)) made = (PyArrayObject*)Py_NewRef((PyObject*)self->array[step->of[o].number]), left = 1;
    if (made == NULL && (made = step_room(self, 0)) == NULL) return NULL;
    for (int o = 0; o < nin; o++) {
        int number = step->of[o].number;
        if (step->of[o].kind == OF_ARRAY)
            from[o] = PyArray_BYTES(self->array[number]), along[o] = size = row ? row_step(self->array[number]) : PyArray_ITEMSIZE(self->array[number]);
        else from[o] = (char*)&self->value[number];
    }
    pieces_alone = left;
    if (nin == 1) errors = long1(loop, step->type, from[0], PyArray_BYTES(made), self->size, size, loop->size);
    else errors = long2(loop, step->type, from[0], from[1], PyArray_BYTES(made), self->size, along[0], along[1], loop->size);
    pieces_alone = 0;
    if (left) *told = errors & self->minded;
    else if (errors && (errors < 0 || errors & self->minded)) Py_CLEAR(made);
    return made;
}

/* The operand in whose memory the result of a step may lie, for no step after it reads it; NULL where there is none. */
static PyArrayObject* memory_left(const Chain* self, const Outs* outs, int k) {
    if (!self->flat || self->wide || self->steps == 1 || !long_shares(&self->at[k].step.loops->of[self->at[k].step.type], self->at[k].step.type)) return NULL;
    for (int j = 0; j < self->arrays; j++) {
        int read = 0;
        if (!is_left(self, self->array[j], self->at[k].step.out)) continue;
        for (int later = k + 1; later < self->steps && !read; later++)
            for (int o = 0; outs->wanted[later] && o < self->at[later].step.loops->nin; o++) read |= self->at[later].step.of[o].kind == OF_ARRAY && self->at[later].step.of[o].number == j;
        if (!read) return self->array[j];
    }
    return NULL;
}

/* What takes so long that handlers of signals run meanwhile lies in memory of its own, where it is not seen half written; 0 where memory is short. */
static int outs_apart(const Chain* self, Outs* outs, PyArrayObject** made) {
    for (int k = 0; k < self->steps; k++) {
        if (!outs->given[k] && !outs->is_over[k]) continue;
        Py_XSETREF(made[k], step_room(self, k));
        if (made[k] == NULL) return 0;
        outs->to[k] = PyArray_BYTES(made[k]), outs->put[k] = NULL, outs->given[k] = outs->is_over[k] = 0;
    }
    return outs->over = outs->alone = outs->puts = 0, outs->lag = NULL, 1;
}

/* All in one pass; 0 where it is to be done step by step.  `hot`: what is to be compiled afterwards. */
static NOT_INLINED int chain_run(Chain* self, Outs* outs, PyArrayObject** made, Hot** hot) {
    RowsFunction function;
    Hot* known;
    Rows2 of, flat;
    int raised, minded = self->minded, lays, how[CHAIN_ARRAYS + 1];
    if (self->size == 0) { /* there is nothing to compute, and all strides are zero */
        for (int k = 0; k < self->steps; k++)
            if (self->at[k].cell && !outs->given[k] && (made[k] = step_room(self, k)) == NULL) return 0;
        return 1;
    }
    if (!rows_of(self, &of)) return 0;
    for (int k = 0; k < self->steps; k++) {
        PyArrayObject* left;
        if (self->at[k].cell == NULL || outs->given[k]) continue;
        if (outs->count <= DESK_BLOCKS && (left = memory_left(self, outs, k))) made[k] = (PyArrayObject*)Py_NewRef((PyObject*)left), outs->over = outs->is_over[k] = 1;
        else if ((made[k] = step_room(self, k)) == NULL) return 0;
        outs->to[k] = PyArray_BYTES(made[k]);
    }
    if ((lays = hot_lays(self, &of))) sides_flat(self, &of, how, &flat);
    known = self->steps > 1 && !self->whole && all_wanted(self, outs) && (lays || of.rows == 1 || of.length >= HOT_ROW) ? hot_of(self, lays ? &flat : &of, outs) : NULL;
    function = known ? known->function : NULL; /* other threads of the program may run meanwhile, and change it */
    if (known) known->busy++;
    if ((outs->over || outs->alone) && (function ? hot_ns(self) : pass_ns(self, outs, 0)) > (double)pieces_pause && !outs_apart(self, outs, made)) {
        if (known) known->busy--;
        return 0;
    }
    pieces_alone = outs->over || outs->alone;
    if (function) raised = !hot_run(function, self, &of, outs, minded, lays);
    else *hot = hot_count(known, self->size), raised = 1;
    if (raised && !PyErr_Occurred() && self->cells) {
        raised = pass_run(self, outs, &of, minded);
        if (!raised && function && !outs->over && ++known->refused > HOT_REFUSALS) known->function = NULL; /* its flags say too much */
    }
    pieces_alone = 0;
    if (known) known->busy--;
    return !raised;
}

/* An operand of a step as elements of `type` side by side, as many as `like` has (a new reference); NULL, without an exception, of a number. */
static PyArrayObject* operand_laid(const Chain* self, const Operand* of, int type, PyObject* const* made, PyArrayObject* like) {
    PyArrayObject *from, *laid;
    if (of->kind == OF_NUMBER) return NULL;
    from = of->kind == OF_STEP ? (PyArrayObject*)Py_NewRef(made[of->number]) : array_of(self->array[of->number]);
    laid = from ? (PyArrayObject*)PyArray_NewLikeArray(like, NPY_KEEPORDER, PyArray_DescrFromType(type), 0) : NULL;
    if (laid && PyArray_CopyInto(laid, from) < 0) Py_CLEAR(laid);
    Py_XDECREF(from);
    return laid;
}

/* What NumPy has told of the errors of, with the kernels' bits; -1 with an exception. */
static int kernels_again(const Chain* self, int k, PyObject* const* made) {
    const Step* step = &self->at[k].step;
    const Loop* loop = &step->loops->of[step->type];
    PyArrayObject *laid[2] = {NULL, NULL}, *to = (PyArrayObject*)made[k];
    int nin = step->loops->nin;
    char* args[3];
    npy_intp steps[3], dims[1] = {PyArray_SIZE(to)};
    for (int o = 0; o < nin && !PyErr_Occurred(); o++) {
        laid[o] = operand_laid(self, &step->of[o], step->type, made, to);
        args[o] = laid[o] ? PyArray_BYTES(laid[o]) : (char*)&self->value[step->of[o].number], steps[o] = laid[o] ? loop->size : 0;
    }
    if (!PyErr_Occurred() && PyArray_ISONESEGMENT(to)) {
        args[nin] = PyArray_BYTES(to), steps[nin] = loop->size;
        loop->function(args, dims, steps, loop->data);
        flags_clear(1);
    }
    Py_XDECREF(laid[0]), Py_XDECREF(laid[1]);
    return PyErr_Occurred() ? -1 : 0;
}

/* Step by step, as NumPy does. */
static int chain_steps(Chain* self, const Outs* outs, PyArrayObject** found) {
    PyObject* made[CHAIN_STEPS];
    int k;
    for (k = 0; k < self->steps; k++) made[k] = NULL;
    for (k = 0; k < self->steps; k++) {
        Step* step = &self->at[k].step;
        PyObject *called[4 + OPERANDS] = {self->state, (PyObject*)self->at[k].site.code, NULL, step->loops->ufunc}, **args = called + 4, *before;
        int quiet = self->told, there = 1;
        if (!outs->wanted[k]) continue;
        if (k && self->size > SIGNALS_FROM && tape_pause(self)) break;
        if ((made[k] = step_direct(self, k, made))) continue;
        if (PyErr_Occurred()) break;
        for (int o = 0; o < step->loops->nin; o++) {
            int number = step->of[o].number;
            switch (step->of[o].kind) {
            case OF_ARRAY: args[o] = (PyObject*)array_of(self->array[number]); break;
            case OF_STEP: args[o] = Py_NewRef(made[number]); break;
            default: {
                PyArray_Descr* descr = PyArray_DescrFromType(step->type);
                args[o] = PyArray_Scalar(&self->value[number], descr, NULL);
                Py_DECREF(descr);
            }
            }
            there &= args[o] != NULL;
        }
        called[2] = PyLong_FromLong(self->at[k].site.offset);
        if (called[2] && there) {
            before = pool_begin(self->size * 8);
            if (quiet) made[k] = quietly(step->loops->ufunc, args, (size_t)step->loops->nin);
            else made[k] = PyObject_Vectorcall(step_method, called, (size_t)step->loops->nin + 4, NULL);
            pool_end(before);
        }
        for (int o = 0; o < OPERANDS; o++) Py_XDECREF(args[o]);
        Py_XDECREF(called[2]);
        if (made[k] && !PyArray_CheckExact(made[k])) {
            PyErr_SetString(PyExc_TypeError, "a ufunc of NumPy's returned no array");
            break;
        }
        if (made[k] == NULL) break;
        if (step->loops->kernels && kernels_again(self, k, made) < 0) break;
    }
    for (int j = 0; j < self->steps; j++) {
        if (k == self->steps && self->at[j].cell) Py_XSETREF(found[j], (PyArrayObject*)Py_XNewRef(made[j]));
        Py_XDECREF(made[j]);
    }
    return k == self->steps || (self->cells == 0 && !PyErr_Occurred());
}

/* A large result as a large array has it; NULL with an exception. */
static PyObject* chain_large(PyArrayObject* found) {
    PyArrayObject* array = array_of(found);
    PyObject *given = PyTuple_New(0), *made = given && array ? PyObject_CallFunctionObjArgs(result_method, (PyObject*)array, given, NULL) : NULL;
    Py_XDECREF(given), Py_XDECREF(array);
    if (made && Py_TYPE(made) != array_type) {
        Py_CLEAR(made);
        PyErr_SetString(PyExc_TypeError, "a large result is no array");
    }
    return made;
}

/* Let a cell have the value of another one. */
static void chain_become(Cell* cell, PyObject* made) {
    Cell* other = (Cell*)made;
    Py_XSETREF(cell->node, Py_XNewRef(other->node));
    Py_XSETREF(cell->view, Py_XNewRef(other->view));
    Py_XSETREF(cell->stamp, Py_XNewRef(other->stamp));
    Py_XSETREF(cell->base, Py_XNewRef(other->base));
    if (!PyObject_GC_IsTracked((PyObject*)cell)) PyObject_GC_Track((PyObject*)cell);
}

/* The value of a cell is there: its views that wait show parts of it from now on.  No code of a program's runs. */
static void views_follow(Cell* cell) {
    PyArrayObject* x = cell->base && (IS_RAW(cell->base) || PyArray_CheckExact(cell->base)) ? (PyArrayObject*)cell->base : NULL;
    Chain* next;
    if (x == NULL) return; /* who asks for one says that it cannot be had */
    for (Chain* self = waiting.after; cell->waiting_views && self != &waiting; self = next) {
        PyArrayObject* made;
        Cell* view = self->at[0].cell;
        next = self->after;
        if (!self->view || self->source[0] != cell || view == NULL || self->at[0].step.out != PyArray_TYPE(x)) continue;
        if (!self->place && !(self->turned ? lies_in_order(x, self->order) : PyArray_IS_C_CONTIGUOUS(x))) continue;
        made = self->place ? (PyArrayObject*)Py_NewRef((PyObject*)self->place) : raw_view(x, self->ndim, self->dims, self->strides, PyArray_BYTES(x) + self->offset);
        if (made == NULL) {
            PyArrayObject* array = array_of(x);
            Py_XINCREF(array ? PyArray_DESCR(array) : NULL);
            made = array ? (PyArrayObject*)PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(array), self->ndim, self->dims, self->strides, PyArray_BYTES(array) + self->offset, PyArray_FLAGS(array), NULL) : NULL;
            if (made == NULL || PyArray_SetBaseObject(made, (PyObject*)array) < 0) {
                PyErr_Clear(); /* memory is short: it is tried again when the view is asked for */
                Py_XDECREF(made ? (PyObject*)made : (PyObject*)array);
                continue;
            }
        }
        self->at[0].cell = NULL, self->cells--, view->before = NULL, view->offset = 0;
        Py_SETREF(view->base, (PyObject*)made);
        if (self->users == 0) chain_free(self);
    }
}

/* No call computes the tape any more. */
static inline void chain_done(Chain* self) {
    if (--self->users == 0 && self->cells == 0) chain_free(self);
}

/* A tape for the cell of a step's large result, which takes the cell over; NULL where memory is short.  It stands where the step's tape does: who read that one reads this one. */
static Chain* ready_tape(Chain* self, int k, PyArrayObject* made) {
    Chain* to = chain_new(self->state, self->minded, self->ndim, self->dims, self->size);
    if (to == NULL) return PyErr_Clear(), NULL;
    orphaned_bytes -= large_bytes(self->size); /* the program has its result */
    to->closed = ITEM, to->ready = 1;
    to->item.call = to->item.names = NULL, to->item.total = 0;
    to->strided = self->strided, to->ordered = self->ordered, memcpy(to->order, self->order, sizeof(to->order));
    to->array[0] = made, to->source[0] = NULL, to->arrays = 1;
    to->at[0].step.loops = NULL, to->at[0].step.out = (short)PyArray_TYPE(made), to->at[0].put = NULL;
    to->at[0].site = (Site){(PyCodeObject*)Py_XNewRef((PyObject*)self->at[k].site.code), self->at[k].site.offset};
    to->steps = to->cells = 1, to->at[0].cell = self->at[k].cell;
    to->at[0].cell->before = (Cell*)to, to->at[0].cell->offset = 0;
    if (self->after == self) return chain_enter(to), to;
    to->serial = self->serial;
    to->before = self, to->after = self->after;
    to->after->before = self->after = to;
    waiting_count++;
    return to;
}

/* Let the cell of a step have its value (the reference is taken over), in memory; of a large one, a new reference to the cell, which waits for its node (`cell_valued`).  No code of
   Python's runs: other threads would find the step's tape waiting, and compute it from operands in whose memory its results lie. */
static PyObject* cell_bound(Chain* self, int k, PyArrayObject* made) {
    Cell* cell = self->at[k].cell;
    int waits = self->size > limit_now() && ready_tape(self, k, made) != NULL;
    self->at[k].cell = NULL, self->cells--;
    if (waits) return Py_NewRef((PyObject*)cell);
    cell->before = NULL, cell->offset = 0;
    Py_SETREF(cell->base, (PyObject*)made);
    if (cell->waiting_views) {
        Py_INCREF(cell);
        views_follow(cell);
        Py_DECREF(cell);
    }
    return NULL;
}

/* Let the cell of a large result have it as a value of a node like others.  The memory is not shown before: what showed it would see no later
   write, and could write what a node holds. */
static int ready_settle(Chain* self) {
    PyObject *large = chain_large(self->array[0]), *memory = Py_NewRef((PyObject*)self->array[0]);
    Cell* cell = self->at[0].cell;
    if (cell) { /* code of a program's has run */
        self->at[0].cell = NULL, self->cells--, cell->before = NULL, cell->offset = 0;
        Py_INCREF(cell);
        if (large) chain_become(cell, large);
        else Py_SETREF(cell->base, Py_NewRef(memory)); /* memory is short */
        if (cell->waiting_views) views_follow(cell);
        Py_DECREF(cell);
    }
    Py_XDECREF(large), Py_DECREF(memory);
    return chain_done(self), large ? 0 : -1;
}

static int tape_settled(Chain* self);

/* The same of a cell (the reference is taken over), unless another thread has been quicker; -1 with an exception. */
static int cell_valued(PyObject* x) {
    Chain* self = WAITS(x) ? CHAIN_OF(x) : NULL;
    int failed = self && self->ready ? tape_settled(self) : 0;
    return Py_DECREF(x), failed;
}

/* Both. */
static int cell_settled(Chain* self, int k, PyArrayObject* made) {
    PyObject* large = cell_bound(self, k, made);
    return large ? cell_valued(large) : 0;
}

#endif
