/* Recording operations on arrays that lie in memory, and computing what waits.

   In: operations of every size, wherever the program has them.  Out: cells whose values wait; NumPy's bits when one is asked for.  Promise: steps over
   one space of elements are computed in one pass, block by block, in the first-level cache, and what nobody has lies in no memory; nothing
   that is read is written, or shown to somebody who could write it, before; errors are told at the line that recorded the operation.

   No compiler is needed: a step is NumPy's inner loop, called on some hundred elements at a time.

   Most operations are one call of `step_next`: operands of one type and shape, which are steps of a tape, numbers, or lie in memory as the results
   do; the error state, the filters and the place are those that were asked for before. All else is looked at closer (`step_recorded`). The place is
   read from the interpreter's frame (`frames.h`, the one file that names what is Python's own there), so no frame becomes an object.

   Up to 256 elements each step has room of its own in the first-level cache, and no plan is made (`small_settle`). Among the eight youngest tapes one
   over the same space is looked for; a cell counts the tapes that read it.

   A tape over another shape is another tape. An operand that waits on another one is read when that has run; a tape reads only older ones, so the
   oldest never needs another (`chains.h`, `tape_over`). There are at most 32; the older half runs then. A tape has up to 500 steps that read 64
   arrays, of which 24 and 8 have room in itself (`chain_holds`), and a turn of a loop begins another one after 16.

   A tape's elements are gone through in the order of its results, which is C's or another (`Chain.order`): NumPy's rule (`axes_order`), by how far
   the elements of all operands lie apart along each axis, says which, so that transposed matrices of one order are one pass over rows in memory.
   Operands that lie otherwise than the result (transposed beside one that is not, backwards, repeated) are read with the steps between their
   elements; a value of another order that only one tape reads is computed with it, its steps before that one's (`tape_splice`: `x.T * 2 + y` is one
   pass). What has axes of one element, for which NumPy has several answers, is a tape of one step that NumPy's ufunc computes (`Chain.strided`), and
   computed before another operation reads it.

   Mixed dtypes become one by a step that casts, where NumPy would cast (`common_type`); Python's numbers give way as NumPy lets them.

   Nothing that is read is written before: whatever writes, exports or lends memory has all that waits computed first (`SETTLED`); `a[key] = value` of
   integers and slices only what might read the memory that `a` shows, by the addresses it reaches to (`readers_settle`; when writes have looked at
   256 tapes all is computed, so that a loop over elements finds nothing to look at); what only reads has its own operands computed. Memory that
   somebody outside may write (`is_private`) is read at the call.

   Errors are told when the value is computed, at the line that recorded the operation, under its error state. Filters of warnings are looked up when
   an operation is recorded: those of a block (`catch_warnings`), those that raise, and error states that raise or call back have everything computed
   at its call (`tapes.state`).

   A warning is told only while the filters are in force under which its operation was recorded: what a block (`catch_warnings`, `pytest.warns`) asks
   for that was recorded outside is told when the block has ended, with the next operation, or when the program ends (`floating.tell_put_off`). Values
   do not wait.

   Where a step raises a floating-point flag that somebody minds, the block's work is thrown away and the tape is computed step by step, to find out
   which one, and to tell. The only step of a tape whose result lies where a dying operand did cannot be repeated: it tells of its errors directly
   (`tapes.raised`).

   Sums, differences and products of complex numbers are steps, too, if NumPy's loop gives the same bits to elements one by one as to many (it is
   tried when one is first wanted).

   `f(..., out=a)`, `a[:] = b` and `a[...] = b` of what waits likewise (`into_recorded`, `copied_into`), where dtype and shape are those of `a`. The
   copy is a step that is computed only if `b` is kept.

   Handlers of signals run between tapes of many elements, and in the middle of one each 30 ms, when no thread computes (`pieces_do`, `tape_pause`):
   what a handler asks for, or writes, has the tape computed as if nobody did, and the rest of the first run is thrown away. What takes so long is not
   written over operands, nor put where a write has it lie, for nobody may see that half written (`outs_apart`). What a handler raises fails no value
   (`values/outside.py`): it is computed when it is asked for again, and before its operands are written.

   `a += b` is a step, too, where nobody sees the memory of `a` (no view, export or lender): the cell takes the new step, and what reads the old value
   keeps it (`step_into`). What no name has (`x[positions] += b`) is written next, and updated at once. `a[mask] = number` of an `a` that waits is a
   `where` (`masked_into`).

   What does not lie as the result does is read in rows, of planes where there are three axes left when those that follow one another in all operands
   are one (`rows_of`); `p[:, None, :] - q[None, :, :]` is steps like others. Machine code goes over a plane at a time.

   The result of a tape, from 64 KB on, lies where an operand does that nobody but the tape has (`is_left`, `memory_left`): `a += b; a *= c` is one
   pass over `a` and no memory, and so is `x = x * 0.5 + 1`. From then on nothing can be computed again, so errors are collected step by step and told
   when all is there; machine code computes a block beside and copies it, if it raised none; no other thread of the program runs meanwhile (an operand
   half written would be seen by who asks for the value, and by a child). */

#ifndef LAZYNP_CHAINS_H
#define LAZYNP_CHAINS_H

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

/* What somebody has, and what that reads. */
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

/* Let steps go that nobody wants: those that are left are what machine code is made of. */
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

/* Whether nobody but this tape, which is computed by nobody else, has the memory of an operand: the result of an operation on its elements may lie there. */
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

/* What takes so long that handlers of signals run meanwhile lies in memory of its own, where nobody sees it half written; 0 where memory is short. */
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
                PyErr_Clear(); /* memory is short: it is tried again when somebody asks for the view */
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

/* Let the cell of a large result have it as a value of a node like others.  Nobody sees the memory before: what showed it would see no later write, and could write what a node holds. */
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

#include "puts.h"

/* Compute what waits on a tape of several steps, or of one that has to be looked at closer. */
static NOT_INLINED int tape_compute(Chain* self) {
    PyArrayObject* made[CHAIN_STEPS];
    PyObject* larges[CHAIN_STEPS];
    Outs outs;
    Lag lag;
    Hot* hot = NULL;
    int fine = 0, failed = 0, raised[CHAIN_STEPS];
    for (int k = 0; k < self->steps; k++) made[k] = NULL, raised[k] = 0;
    outs_of(self, &outs);
    if (self->users == 1 && !self->closed && outs.count && !all_wanted(self, &outs)) steps_drop(self, &outs);
    outs.raised = raised;
    if (!self->closed) puts_of(self, &outs, &lag);
    if (!self->closed) fine = chain_run(self, &outs, made, &hot);
    if (!self->told) chain_results[!fine && !self->closed]++;
    if (!fine && !PyErr_Occurred()) fine = self->cells == 0 || chain_steps(self, &outs, made);
    if (!fine) self->told |= fails_for_good(), failed = -1; /* what a handler of signals raised left something untold */
    for (int k = 0; k < self->steps; k++) {
        larges[k] = NULL;
        if (fine && !failed && self->at[k].cell && made[k]) larges[k] = cell_bound(self, k, made[k]);
        else Py_XDECREF(made[k]);
        if (fine && outs.given[k] && made[k] == NULL && self->at[k].put) put_done(self, k);
    }
    for (int k = 0; k < self->steps; k++)
        if (failed) Py_XDECREF(larges[k]); /* who asks for them has them */
        else if (larges[k]) failed = cell_valued(larges[k]);
    if (pieces_wanted) (void)pieces_ready();
    for (int k = 0; k < self->steps && !failed; k++)
        if (raised[k]) failed = step_tell(self, k, raised[k]);
    chain_done(self);
    if (!fine) hot_put_off(hot);
    else if (hot && hot_compile(hot)) failed = -1;
    return failed;
}

#define SMALL 256            /* elements, of which all steps of a tape fit the cache */
#define SMALL_STEPS 32       /* as many as the bits of `wanted` */
#define SMALL_BYTES 32768    /* of all results together */
#define SMALL_APART 64       /* bytes between them, which NumPy's loops take for an overlap else; `sides` writes there, too */

/* Where the arrays of a small tape are read from, and their steps; rows that are repeated or lie apart are laid side by side from `next` on.  The end of
   what was written; NULL where the arrays lie otherwise. */
static char* small_operands(const Chain* self, char* next, char* const end, char** from, npy_intp* along) {
    Rows2 of;
    if (self->flat || self->ndim == 1) {
        for (int k = 0; k < self->arrays; k++)
            from[k] = PyArray_BYTES(self->array[k]), along[k] = self->flat ? PyArray_ITEMSIZE(self->array[k]) : row_step(self->array[k]);
        return next;
    }
    if (!rows_of(self, &of)) return NULL;
    for (int k = 0; k < self->arrays; k++) {
        npy_intp size = PyArray_ITEMSIZE(self->array[k]), row = of.within * of.length * size;
        npy_intp bytes = (self->size * size + SMALL_APART + 15) & ~(npy_intp)15; /* what follows is aligned */
        from[k] = PyArray_BYTES(self->array[k]), along[k] = of.along[k];
        if (of.rows == 1 || lies_in_rows(&of, k, size) == LIES_DENSE || !(of.along[k] | of.across[k] | of.over[k])) continue;
        if (size > SIDES_SIZE || end - next < bytes) return NULL;
        for (npy_intp block = 0; block < of.rows / of.within; block++)
            sides(next + block * row, from[k] + block * of.over[k], of.within, of.length, of.across[k], of.along[k], size);
        from[k] = next, along[k] = size, next += bytes;
    }
    return next;
}

/* A tape of few elements, without what a pass needs besides: each step has room of its own; whether it was done. */
static int small_settle(Chain* self) {
    static Value room[SMALL_BYTES / sizeof(Value)]; /* nobody else runs meanwhile */
    PyArrayObject* made[SMALL_STEPS];
    char *at[SMALL_STEPS], *from[CHAIN_ARRAYS + 1], *next;
    npy_intp lies[CHAIN_ARRAYS + 1], apart = self->size * CHAIN_SIZE + SMALL_APART;
    unsigned wanted = 0;
    int k, steps = self->steps, failed = 0;
    if ((next = small_operands(self, (char*)room, (char*)room + sizeof(room) - steps * apart, from, lies)) == NULL) return 0;
    for (k = steps; k--;) {
        const Step* step = &self->at[k].step;
        wanted |= (unsigned)(self->at[k].cell != NULL) << k;
        for (int o = 0; wanted >> k & 1 && o < step->loops->nin; o++)
            if (step->of[o].kind == OF_STEP) wanted |= 1u << step->of[o].number;
    }
    for (k = 0; k < steps; k++) {
        made[k] = NULL;
        if (self->at[k].cell) {
            if ((made[k] = step_room(self, k)) == NULL) break;
            at[k] = PyArray_BYTES(made[k]);
        } else if (wanted >> k & 1) {
            at[k] = next, next += apart;
        }
    }
    failed = k < steps;
    flags_clear(!self->whole);
    for (int j = 0; j < steps && !failed; j++) {
        const Step* step = &self->at[j].step;
        const Loop* loop = &step->loops->of[step->type];
        int nin = step->loops->nin;
        char* args[OPERANDS + 1];
        npy_intp along[OPERANDS + 1], dims[1] = {self->size};
        if (!(wanted >> j & 1)) continue;
        for (int o = 0; o < nin; o++) {
            int number = step->of[o].number;
            switch (step->of[o].kind) {
            case OF_ARRAY: args[o] = from[number], along[o] = lies[number]; break;
            case OF_NUMBER: args[o] = (char*)&self->value[number], along[o] = 0; break;
            default: args[o] = at[number], along[o] = step_size(self, number);
            }
        }
        args[nin] = at[j], along[nin] = loop->size;
        loop->function(args, dims, along, loop->data);
        failed = flags_raised(loop->basic) & self->minded;
    }
    if (failed) {
        while (k--) Py_XDECREF(made[k]);
        return 0;
    }
    chain_results[0]++;
    for (int j = 0; j < steps; j++) {
        if (made[j] == NULL) continue;
        if (self->at[j].cell && !failed) failed = cell_settled(self, j, made[j]);
        else Py_DECREF(made[j]);
    }
    return !failed;
}

static PyObject* outside_method; /* `values/outside.py` */

/* Whether the exception that computing has ended with will come again: it is neither short memory nor an interrupt, nor that of a handler of signals. */
static int fails_for_good(void) {
    PyObject *type, *error, *trace, *found;
    int outside;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return 0;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace) PyException_SetTraceback(error, trace);
    found = PyObject_CallOneArg(outside_method, error);
    outside = found == NULL || found == Py_True;
    if (found == NULL) PyErr_Clear(); /* the first one is told */
    Py_XDECREF(found);
    PyErr_Restore(type, error, trace);
    return !outside;
}

/* A view of a value that has come to be a large array's, or lies otherwise, as the methods in Python make it; -1 with an exception. */
static int view_otherwise(Chain* self) {
    Cell *from = self->source[self->arrays - 1], *cell;
    PyObject *args[ITEM_ARGS], *found = NULL, *view = NULL;
    PyArrayObject* shown = NULL; /* of a part of a large array */
    int own;
    if (self->item.call == NULL) return PyErr_SetString(PyExc_SystemError, "an array that waited to be written lies elsewhere"), -1;
    for (int k = 0; k < self->item.total; k++) args[k] = self->item.args[k] ? self->item.args[k] : (PyObject*)from;
    Py_INCREF(from);
    if (!WAITS(from) || settle_cell((PyObject*)from) == 0) found = PyObject_Vectorcall(self->item.call, args, (size_t)self->item.n, NULL);
    Py_DECREF(from);
    if (found && Py_TYPE(found) == array_type && (!WAITS(found) || settle_cell(found) == 0)) {
        if (is_part(found) && (shown = part_shown((Cell*)found, &own))) view = Py_NewRef(found);
        else view = PyObject_GetAttrString(found, "_view");
    }
    if (view && (cell = self->at[0].cell)) {
        self->at[0].cell = NULL, self->cells--, cell->before = NULL, cell->offset = 0;
        Py_INCREF(cell);
        chain_become(cell, found);
        if (shown) {
            part_show(cell, (PyArrayObject*)Py_NewRef((PyObject*)shown), (PyArrayObject*)PyArray_BASE(shown), ((Cell*)found)->origin);
            cell->whole = ((Cell*)found)->whole;
        }
        Py_DECREF(cell);
    } else if (view == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_SystemError, "a view that was recorded is none");
    }
    Py_XDECREF(view), Py_XDECREF(found);
    return view ? 0 : -1;
}

static int view_settle(Chain* self) {
    Cell* from = self->source[0];
    int failed;
    Py_INCREF(from);
    failed = WAITS(from) ? settle_cell((PyObject*)from) : 0;
    if (!failed && self->at[0].cell) views_follow(from);
    Py_DECREF(from);
    if (!failed && self->at[0].cell) failed = view_otherwise(self);
    if (failed && self->at[0].cell) self->failed = fails_for_good();
    return chain_done(self), failed;
}

static int tape_reads(const Chain* self, PyArrayObject* x);
/* Whether it reads what a later tape writes: it stays before that one. */
static int is_overwritten(const Chain* self) {
    for (const Chain* later = self->after; later != &waiting; later = later->after)
        if (later->closed == PUT && later->to && tape_reads(self, later->to)) return 1;
    return 0;
}

/* The older tape, over the same space in another order, of which nothing is wanted but an operand of this one, whose steps can be computed with it: in one pass, and in this one's order;
   else NULL. */
static Chain* spliced(Chain* self, int k) {
    Cell* cell = self->array[k] == NULL ? self->source[k] : NULL;
    Chain* from = cell && WAITS(cell) ? CHAIN_OF(cell) : NULL;
    if (from == NULL || from == self || from->closed != OPEN || from->cells != 1 || Py_REFCNT(cell) != 1 || cell->readers != 1 || cell->waiting_views || cell->weakrefs) return NULL;
    if (self->ndim > 3 || is_laid(self, chain_order(from))) return NULL; /* rows of more axes may not be joined; or it was begun anew that turns of a loop be alike, or for lack of room */
    if (from->users | from->failed | from->told | from->sealed | from->whole | self->told | self->sealed | self->whole) return NULL;
    if (from->state != self->state || from->minded != self->minded || from->ndim != self->ndim || !same_lengths(from->dims, self->dims, self->ndim) || from->at[STEP_OF(cell)].put) return NULL;
    if (!chain_holds(self, from->steps > from->numbers ? from->steps : from->numbers, from->arrays)) return NULL;
    return is_overwritten(from) ? NULL : from; /* this tape is computed after that write, and reads no operands of before */
}

/* Take the steps of such a tape, all of whose operands lie in memory, before the own ones.  No code of a program's runs; what is left of that tape is no longer wanted. */
static void tape_splice(Chain* self, Chain* from, int k) {
    int at[CHAIN_ARRAYS + 1], m = from->steps, made = STEP_OF(self->source[k]);
    for (int j = 0; j < from->arrays; j++) {
        for (at[j] = 0; at[j] < self->arrays && (self->array[at[j]] != from->array[j] || self->source[at[j]]); at[j]++) {}
        if (at[j] == self->arrays) self->array[at[j]] = (PyArrayObject*)Py_NewRef((PyObject*)from->array[j]), self->source[at[j]] = NULL, self->arrays++;
    }
    memcpy(self->value + self->numbers, from->value, (size_t)from->numbers * sizeof(Value));
    for (int j = self->steps; j--;) {
        self->at[j + m] = self->at[j];
        if (self->at[j + m].cell) self->at[j + m].cell->offset = j + m;
        for (int o = 0; o < OPERANDS; o++) {
            Operand* of = &self->at[j + m].step.of[o];
            if (of->kind == OF_STEP) of->number = (short)(of->number + m);
            else if (of->kind == OF_ARRAY && of->number == k) *of = (Operand){OF_STEP, (short)made};
        }
    }
    for (int j = 0; j < m; j++) {
        self->at[j] = (StepAt){.step = from->at[j].step, .site = from->at[j].site};
        Py_INCREF(self->at[j].site.code);
        for (int o = 0; o < from->at[j].step.loops->nin; o++) {
            Operand* of = &self->at[j].step.of[o];
            if (of->kind == OF_ARRAY) of->number = (short)at[of->number];
            else if (of->kind == OF_NUMBER) of->number = (short)(of->number + self->numbers);
        }
    }
    self->steps += m, self->numbers += from->numbers, self->wide |= from->wide;
    self->flat = 0;
}

/* Close the holes that operands have left. */
static void holes_close(Chain* self) {
    for (int k = 0, kept = 0, past = self->arrays; k < past; k++) {
        int gone = self->array[k] == NULL && self->source[k] == NULL;
        if (gone) self->arrays--;
        for (int j = 0; !gone && kept < k && j < self->steps; j++)
            for (int o = 0; o < self->at[j].step.loops->nin; o++)
                if (self->at[j].step.of[o].kind == OF_ARRAY && self->at[j].step.of[o].number == k) self->at[j].step.of[o].number = (short)kept;
        if (!gone) self->array[kept] = self->array[k], self->source[kept] = self->source[k], kept++;
    }
}

/* Let go of operands that are steps now, and of their tapes. */
static void splices_end(Chain* self, Cell** cells, Chain** tapes, int count) {
    holes_close(self);
    while (count--) { /* from here on code of a program's may run */
        tapes[count]->at[STEP_OF(cells[count])].cell = NULL, tapes[count]->cells--;
        cells[count]->before = NULL, cells[count]->offset = 0;
        chain_free(tapes[count]);
        source_drop(cells[count]);
    }
}

/* Whether there is a step that neither a cell nor a later step reads. */
static inline int any_unwanted(const Chain* self) {
    const StepAt* at = self->at;
    uint64_t read[CHAIN_STEPS / 64 + 1];
    for (int k = 0; k <= self->steps / 64; k++) read[k] = 0;
    for (int k = self->steps; k--;) {
        if (at[k].cell == NULL && !(read[k / 64] >> k % 64 & 1)) return 1;
        for (int o = 0; o < OPERANDS; o++)
            if (at[k].step.of[o].kind == OF_STEP) read[at[k].step.of[o].number / 64] |= (uint64_t)1 << at[k].step.of[o].number % 64;
    }
    return 0;
}

/* Let steps go that nobody wants any more, and with them what only they read: it is not computed. */
static NOT_INLINED void unwanted_drop(Chain* self) {
    PyArrayObject* arrays[CHAIN_ARRAYS + 1];
    Cell* sources[CHAIN_ARRAYS + 1];
    char read[CHAIN_ARRAYS + 1] = {0};
    int count = 0;
    Outs outs;
    if (self->users != 1 || self->closed || self->cells == 0 || !any_unwanted(self)) return;
    outs_of(self, &outs);
    steps_drop(self, &outs);
    if (self->users != 1) return; /* code of a program's has run, and computes it */
    for (int k = 0; k < self->steps; k++)
        for (int o = 0; o < self->at[k].step.loops->nin; o++)
            if (self->at[k].step.of[o].kind == OF_ARRAY) read[self->at[k].step.of[o].number] = 1;
    for (int k = 0; k < self->arrays; k++) {
        if (read[k]) continue;
        self->sources -= self->source[k] != NULL;
        arrays[count] = self->array[k], sources[count++] = self->source[k];
        self->array[k] = NULL, self->source[k] = NULL;
    }
    holes_close(self);
    while (count--) {
        Py_XDECREF(arrays[count]);
        source_drop(sources[count]);
    }
}

/* Have the operands of a tape of steps ready: those that older tapes compute for it alone become steps of it, the others are computed.  -1 where NumPy raises. */
static NOT_INLINED int tape_ready(Chain* self) {
    Cell* cells[CHAIN_ARRAYS];
    Chain *tapes[CHAIN_ARRAYS], *from;
    int count = 0;
    unwanted_drop(self);
    for (int k = 0; k < self->arrays; k++) {
        int failed = 0;
        if ((from = spliced(self, k)) == NULL || from->sources == 0) continue;
        from->users++, from->runner = PyThreadState_Get();
        if (tape_ready(from) < 0) from->failed = fails_for_good(), failed = 1;
        chain_done(from);
        if (failed) return -1;
    }
    for (int k = 0; k < self->arrays; k++)
        if (self->source[k] && spliced(self, k) == NULL && source_settle(self, k) < 0) return -1;
    for (int k = 0; k < self->arrays; k++) {
        if ((from = spliced(self, k)) == NULL || from->sources) continue;
        tape_splice(self, from, k);
        cells[count] = self->source[k], tapes[count++] = from;
        self->source[k] = NULL, self->sources--;
    }
    if (count) splices_end(self, cells, tapes, count);
    return self->sources ? sources_settle(self) : 0;
}

/* Before so much is computed of steps for the first time that this pays: look whether an earlier program has left their machine code.  -1 with an exception. */
static NOT_INLINED int hot_before(Chain* self) {
    Outs outs;
    Rows2 of;
    Hot* hot;
    if (self->closed || self->whole || self->steps < 2 || hot_method == NULL || self->steps * self->size < hot_work / HOT_KEPT) return 0;
    outs_of(self, &outs);
    for (int k = 0; k < self->steps; k++)
        if (self->at[k].cell) outs.to[k] = (char*)self; /* it is wanted, wherever it will lie */
    if (!rows_of(self, &of)) return PyErr_Occurred() ? -1 : 0;
    if (!all_wanted(self, &outs) || hot_lays(self, &of) || (of.rows > 1 && of.length < HOT_ROW)) return 0;
    hot = hot_of(self, &of, &outs);
    if (hot == NULL || hot->asked || hot->asking) return 0;
    hot->asked = hot->asking = 1, hot->busy++;
    return hot_compile(hot);
}

/* Have all ready that steps read, and their machine code if it is on disk; -1 where NumPy raises. */
static inline int tape_begin(Chain* self) {
    if (self->sources && tape_ready(self) < 0) return -1;
    return self->large ? hot_before(self) : 0;
}

/* Compute what waits on a tape: afterwards its cells are arrays in memory like others; -1 where NumPy raises.  The tape stays among those that wait until
   it is done: who writes an operand meanwhile, from another thread, has it computed before. */
static int item_settle(Chain* self);
static int tape_settled(Chain* self) {
    PyArrayObject* made;
    int told = 0, small;
    self->users++, self->runner = PyThreadState_Get();
    if (self->view) return view_settle(self);
    if (self->ready) return ready_settle(self);
    if (self->closed == PUT) return put_settle(self);
    if (self->closed == ITEM) return item_settle(self);
    if (tape_begin(self) < 0) {
        self->failed = fails_for_good();
        return chain_done(self), -1;
    }
    if (self->large) first_done(self->size, self->steps);
    small = self->closed == OPEN && self->size > 0 && self->size <= SMALL && self->steps <= SMALL_STEPS && self->steps * (self->size * CHAIN_SIZE + SMALL_APART) <= SMALL_BYTES;
    if (self->steps == 1 && self->at[0].cell && self->at[0].put == NULL && (!small || self->flat || self->ndim == 1) && (made = one_run(self, &told))) {
        int failed = 0;
        chain_results[0]++;
        if (self->at[0].cell) failed = cell_settled(self, 0, made);
        else Py_DECREF(made);
        if (pieces_wanted) (void)pieces_ready();
        if (told && !failed) failed = step_tell(self, 0, told);
        chain_done(self);
        return failed;
    }
    if (PyErr_Occurred()) return chain_done(self), -1;
    if (small) {
        if (small_settle(self)) return chain_done(self), 0;
        if (PyErr_Occurred()) return chain_done(self), -1;
    }
    return tape_compute(self);
}

/* The same.  Where many are computed handlers of signals run in between. */
static int tape_settle(Chain* self) {
    npy_intp size = self->size;
    int failed = tape_settled(self);
    return failed || size <= SIGNALS_FROM ? failed : handlers_run();
}

static int chain_settle(PyObject* x) {
    Chain* self = CHAIN_OF(x);
    int failed;
    if (self == NULL) return 0;
    Py_INCREF(x);
    failed = tape_settle(self);
    Py_DECREF(x);
    return failed;
}

static int settle_cell(PyObject* x) { return chain_settle(x); }

/* A cell goes.  What nobody has is not computed, unless something reads it. */
static void forget_cell(PyObject* x) {
    Chain* self = CHAIN_OF(x);
    int k = STEP_OF(x);
    ((Cell*)x)->before = NULL, ((Cell*)x)->offset = 0;
    if (self == NULL) return;
    self->at[k].cell = NULL;
    if (--self->cells == 0 && self->users == 0) chain_free(self);
}

/* The oldest tape that this thread does not compute already; NULL where there is none. */
static Chain* oldest_waiting(void) {
    for (Chain* self = waiting.after; self != &waiting; self = self->after)
        if (!self->failed && (self->users == 0 || self->runner != PyThreadState_Get())) return self;
    return NULL;
}

static PyThreadState* pausing; /* the thread that looks at what waits, and has nothing of it computed */

#define WALKED_MOST 256 /* tapes that writes have looked at since all was computed, after which all is computed: loops over elements then find nothing that waits */
static int walked;

static int settle_all(void) {
    Chain* self;
    if (pausing == PyThreadState_Get()) return 0;
    if (faded_count) faded_go();
    while ((self = oldest_waiting()))
        if (tape_settle(self)) return -1;
    orphaned_bytes = 0, walked = 0; /* what still waits has failed, or is being computed */
    return 0;
}

/* What waits for a cell's value waits for that of `old` from now on, which has it; whether anything did. */
static int readers_follow(Cell* cell, Cell* old) {
    int before = old->readers;
    for (Chain* self = waiting.before; cell->readers && self != &waiting; self = self->before)
        for (int k = 0; self->sources && k < self->arrays; k++)
            if (self->source[k] == cell) {
                if (self->view && k == 0) cell->waiting_views--, old->waiting_views++;
                self->source[k] = source_new((PyObject*)old);
                source_drop(cell); /* the program has it, too */
            }
    return old->readers > before;
}

/* What waited when a tape was to read it lies in memory by now: the tape reads that, whatever becomes of the cell. */
static void readers_take(Cell* cell, PyArrayObject* memory) {
    for (Chain* self = waiting.before; cell->readers && self != &waiting; self = self->before)
        for (int k = 0; self->sources && k < self->arrays; k++)
            if (self->source[k] == cell) {
                if (self->array[k] == NULL) self->array[k] = (PyArrayObject*)Py_NewRef((PyObject*)memory);
                self->source[k] = NULL;
                self->sources--, source_drop(cell); /* the program has it, too */
            }
}

/* Whether a tape might read memory that `x` shows. */
static int tape_reads(const Chain* self, PyArrayObject* x) {
    if (self->view) return 0; /* its operand has no memory yet */
    for (int k = 0; self->closed == ITEM && k < self->item.total; k++) {
        PyObject* arg = self->item.args[k];
        if (arg && arg != Py_None && !PyLong_Check(arg) && !PyFloat_CheckExact(arg)) return 1;
    }
    for (int k = 0; k < self->arrays; k++) {
        PyArrayObject* read = self->array[k];
        Cell* source = self->source[k];
        if (source && read == NULL && WAITS(source) && CHAIN_OF(source)) read = CHAIN_OF(source)->place;
        if (read) {
            if (may_overlap(read, x)) return 1;
            continue;
        }
        if (source && WAITS(source)) continue;
        if (source && (source->base == NULL || !(IS_RAW(source->base) || PyArray_Check(source->base)))) return 1;
        if (source && may_overlap((PyArrayObject*)source->base, x)) return 1; /* a source that has been computed meanwhile has its value in memory */
    }
    return 0;
}

/* Have all that reads the memory of `x` computed, which is about to be written; what else waits goes on waiting.  -1 where NumPy raises. */
static int readers_settle(PyArrayObject* x) {
    Chain* self = waiting.after;
    if (pausing == PyThreadState_Get()) return 0;
    if ((walked += waiting_count) > WALKED_MOST) return settle_all();
    while (self != &waiting) {
        if (self->failed || (self->users && self->runner == PyThreadState_Get()) || !tape_reads(self, x)) {
            self = self->after;
            continue;
        }
        if (tape_settle(self)) return -1;
        self = waiting.after; /* code of a program's may have run */
    }
    return 0;
}

/* Have an array computed; whether that is all there is to it: it lies in memory, and is no large one.  -1 where NumPy raises. */
static int array_settled(PyObject* x) {
    if (Py_TYPE(x) != array_type) return 0;
    if (WAITS(x) && settle_cell(x) < 0) return -1;
    return ((Cell*)x)->base && (Py_TYPE(((Cell*)x)->base) == &PyArray_Type || IS_RAW(((Cell*)x)->base));
}

/* Let errors be told again of what could not be computed: who asked did not hear them. */
static void tapes_tell_again(void) {
    for (Chain* self = waiting.after; self != &waiting; self = self->after) self->told = 0;
}

/* What waits is computed before anything but the next operator looks at it, or at what it was made of. */
#define SETTLED ((waiting_count | faded_count) == 0 || settle_all() == 0)

/* Others may write the memory of `x`: who was told its `address`, for good. */
static int cell_lend(PyObject* x, int address) {
    if (Py_TYPE(x) != array_type) return 0;
    x = owner_of(x);
    if (Py_TYPE(x) == array_type && ((Cell*)x)->lent != LENT_ADDRESS) ((Cell*)x)->lent = address ? LENT_ADDRESS : LENT;
    return 0;
}

/* For tests: passes over few elements. */
static void chain_resize(npy_intp from, npy_intp row, npy_intp block, long long work) {
    chain_sizes.from = from;
    chain_sizes.row = row > CHAIN_BLOCK ? CHAIN_BLOCK : row; /* rows that are laid side by side fit a block */
    chain_sizes.block = block < 1 ? 1 : block > CHAIN_BLOCK ? CHAIN_BLOCK : block;
    if (work != hot_work) hot_forget();
    hot_work = work;
}

/* Casts ---------------------------------------------------------------------------------------------------------------------------- */

#define NUMBER_OF(X) (sizeof(X) == sizeof(npy_long) ? NPY_LONG : NPY_LONGLONG) /* of the integers of 64 bits NumPy has two */

static int cast_type_npy_bool(void) { return NPY_BOOL; }
static int cast_type_npy_byte(void) { return NPY_BYTE; }
static int cast_type_npy_ubyte(void) { return NPY_UBYTE; }
static int cast_type_npy_short(void) { return NPY_SHORT; }
static int cast_type_npy_ushort(void) { return NPY_USHORT; }
static int cast_type_npy_int(void) { return NPY_INT; }
static int cast_type_npy_uint(void) { return NPY_UINT; }
static int cast_type_npy_int64(void) { return NPY_INT64; }
static int cast_type_npy_uint64(void) { return NPY_UINT64; }
static int cast_type_npy_half(void) { return NPY_HALF; }
static int cast_type_npy_float(void) { return NPY_FLOAT; }
static int cast_type_npy_double(void) { return NPY_DOUBLE; }
static int cast_type_npy_cfloat(void) { return NPY_CFLOAT; }
static int cast_type_npy_cdouble(void) { return NPY_CDOUBLE; }

/* What NumPy does to an operand before its loop gets it: numbers of one type as those of another that holds them, or a float of 64 bits. */
static Loops cast_loops[TYPES]; /* by the type that they become */

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif
#define CAST(FROM, TO) \
    static void cast_##FROM##_##TO(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        const char* from = args[0]; \
        char* to = args[1]; \
        (void)data; \
        if (steps[0] == sizeof(FROM) && steps[1] == sizeof(TO)) { /* neighbours */ \
            if (cast_type_##FROM() == cast_type_##TO()) memmove(to, from, (size_t)dims[0] * sizeof(TO)); \
            else for (npy_intp k = 0; k < dims[0]; k++) ((TO*)to)[k] = (TO)((const FROM*)from)[k]; \
            return; \
        } \
        for (npy_intp k = dims[0]; k > 0; k--, from += steps[0], to += steps[1]) *(TO*)to = (TO)*(const FROM*)from; \
    }
#define CAST_TO_LARGER(X, TO) X(npy_bool, TO) X(npy_byte, TO) X(npy_ubyte, TO)
#define CASTS(X) \
    X(npy_bool, npy_byte) X(npy_bool, npy_ubyte) CAST_TO_LARGER(X, npy_short) X(npy_bool, npy_ushort) X(npy_ubyte, npy_ushort) \
    CAST_TO_LARGER(X, npy_int) X(npy_short, npy_int) X(npy_ushort, npy_int) X(npy_bool, npy_uint) X(npy_ubyte, npy_uint) X(npy_ushort, npy_uint) \
    CAST_TO_LARGER(X, npy_int64) X(npy_short, npy_int64) X(npy_ushort, npy_int64) X(npy_int, npy_int64) X(npy_uint, npy_int64) \
    X(npy_bool, npy_uint64) X(npy_ubyte, npy_uint64) X(npy_ushort, npy_uint64) X(npy_uint, npy_uint64) \
    CAST_TO_LARGER(X, npy_float) X(npy_short, npy_float) X(npy_ushort, npy_float) \
    CAST_TO_LARGER(X, npy_double) X(npy_short, npy_double) X(npy_ushort, npy_double) X(npy_int, npy_double) X(npy_uint, npy_double) \
    X(npy_int64, npy_double) X(npy_uint64, npy_double) X(npy_float, npy_double)
/* And what a program asks for: copies, and the casts to a smaller type that are the same however they are compiled; of floats the instruction gives what is in no
   range, and raises the flag, as in NumPy's loop. */
#define COPY_OF(X, TYPE) X(TYPE, TYPE)
#define ASKED_CASTS(X) \
    COPY_OF(X, npy_byte) COPY_OF(X, npy_ubyte) COPY_OF(X, npy_short) COPY_OF(X, npy_ushort) COPY_OF(X, npy_int) COPY_OF(X, npy_uint) \
    COPY_OF(X, npy_int64) COPY_OF(X, npy_uint64) COPY_OF(X, npy_float) COPY_OF(X, npy_double) X(npy_double, npy_float) X(npy_int64, npy_int) X(npy_int64, npy_float) \
    X(npy_double, npy_int64) X(npy_float, npy_int64)
CASTS(CAST)
ASKED_CASTS(CAST)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
/* Real numbers as complex ones. */
#define CAST_COMPLEX(FROM, TO, PART) \
    static void cast_##FROM##_##TO(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        const char* from = args[0]; \
        char* to = args[1]; \
        (void)data; \
        for (npy_intp k = dims[0]; k > 0; k--, from += steps[0], to += steps[1]) ((PART*)to)[0] = (PART)*(const FROM*)from, ((PART*)to)[1] = 0; \
    }
#define CASTS_COMPLEX(X) \
    X(npy_bool, npy_cfloat, float) X(npy_byte, npy_cfloat, float) X(npy_ubyte, npy_cfloat, float) X(npy_short, npy_cfloat, float) X(npy_ushort, npy_cfloat, float) \
    X(npy_float, npy_cfloat, float) X(npy_bool, npy_cdouble, double) X(npy_byte, npy_cdouble, double) X(npy_ubyte, npy_cdouble, double) \
    X(npy_short, npy_cdouble, double) X(npy_ushort, npy_cdouble, double) X(npy_int, npy_cdouble, double) X(npy_uint, npy_cdouble, double) \
    X(npy_int64, npy_cdouble, double) X(npy_uint64, npy_cdouble, double) X(npy_float, npy_cdouble, double) X(npy_double, npy_cdouble, double)
CASTS_COMPLEX(CAST_COMPLEX)
static void cast_npy_cfloat_npy_cdouble(char** args, const npy_intp* dims, const npy_intp* steps, void* data) {
    const char* from = args[0];
    char* to = args[1];
    (void)data;
    for (npy_intp k = dims[0]; k > 0; k--, from += steps[0], to += steps[1]) ((double*)to)[0] = ((const float*)from)[0], ((double*)to)[1] = ((const float*)from)[1];
}

/* Halves as larger numbers, which is exact. */
static inline float half_value(npy_half x) {
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = (uint32_t)(x & 0x7fff) << 13;
    float value;
    if (rest >= 0x0f800000) rest += 0x70000000; /* infinities and NaN */
    else if (rest >= 0x00800000) rest += 0x38000000;
    else value = (float)(x & 0x3ff) * 0x1p-24f, memcpy(&rest, &value, sizeof(rest));
    rest |= sign;
    memcpy(&value, &rest, sizeof(value));
    return value;
}
#define CAST_HALF(TO) \
    static void cast_npy_half_##TO(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        const char* from = args[0]; \
        char* to = args[1]; \
        (void)data; \
        for (npy_intp k = dims[0]; k > 0; k--, from += steps[0], to += steps[1]) *(TO*)to = (TO)half_value(*(const npy_half*)from); \
    }
CAST_HALF(npy_float)
CAST_HALF(npy_double)

/* `cast(number)` returns a function of one array that is called in the place of a loop; by the number of the type that an array becomes. */
static int casts_fill(PyObject* cast) {
    for (int to = 0; to < TYPES; to++) {
        PyObject* number = PyLong_FromLong(to);
        cast_loops[to].nin = 1;
        cast_loops[to].ufunc = number ? PyObject_CallOneArg(cast, number) : NULL;
        Py_XDECREF(number);
        if (cast_loops[to].ufunc == NULL) return -1;
    }
#define FILL(FROM, TO) \
    cast_loops[cast_type_##TO()].of[cast_type_##FROM()] = \
        (Loop){.function = (PyUFuncGenericFunction)cast_##FROM##_##TO, .out = (char)cast_type_##TO(), .size = sizeof(TO), .state = USABLE, .basic = 1, .joins = 1};
    CASTS(FILL)
    ASKED_CASTS(FILL)
#define FILL_COMPLEX(FROM, TO, PART) FILL(FROM, TO)
    CASTS_COMPLEX(FILL_COMPLEX)
    FILL(npy_cfloat, npy_cdouble)
    FILL(npy_half, npy_float)
    FILL(npy_half, npy_double)
    return 0;
}

/* The type in which two of different types are computed; -1 where NumPy has to say. */
static int common_type(int a, int b) {
    static signed char known[TYPES][TYPES]; /* one more than the type */
    if (a == b) return a;
    if (known[a][b] == 0) {
        PyArray_Descr *x = PyArray_DescrFromType(a), *y = PyArray_DescrFromType(b), *both = PyArray_PromoteTypes(x, y);
        int type = both ? both->type_num : -1;
        if (both == NULL) PyErr_Clear();
        if (type >= 0 && (!IS_NUMERIC(type) || (type != a && cast_loops[type].of[a].function == NULL) || (type != b && cast_loops[type].of[b].function == NULL))) type = -1;
        if (type == NPY_DOUBLE && !PyTypeNum_ISFLOAT(a) && !PyTypeNum_ISFLOAT(b)) type = -1; /* signed and unsigned: some loops compare them as they are */
        known[a][b] = (signed char)(type < 0 ? -1 : type + 1);
        Py_DECREF(x), Py_DECREF(y), Py_XDECREF(both);
    }
    return known[a][b] < 0 ? -1 : known[a][b] - 1;
}

/* The type in which an operation without a loop for `type` is computed. */
static int loops_type(const Loops* loops, int type) {
    if (loops->of[type].function) return type;
    if (loops->integers_divide && PyTypeNum_ISINTEGER(type)) return NPY_DOUBLE;
    switch (type) {
    case NPY_SHORT: case NPY_USHORT: type = NPY_FLOAT; break;
    case NPY_INT: case NPY_UINT: case NPY_LONG: case NPY_ULONG: case NPY_LONGLONG: case NPY_ULONGLONG: type = NPY_DOUBLE; break;
    default: return -1;
    }
    return loops->of[type].function ? type : -1;
}

/* Recording -------------------------------------------------------------------------------------------------------------------------- */

/* An operand, as it is found. */
typedef struct {
    PyArrayObject* array;
    Chain* chain; /* on which it waits */
    int type;     /* -1: it is a number, or nothing that waits */
    int ndim;
    const npy_intp* dims;
    Cell* root; /* what is to be there before the array is read; NULL: the operand itself, or nothing */
} Read;

/* The shape of operands together, and its elements; -1 where NumPy has to see to it. */
static inline npy_intp dims_join(const Read* read, int nin, int* ndim, npy_intp* dims) {
    npy_intp size = 1;
    *ndim = 0;
    for (int o = 0; o < nin; o++)
        if (read[o].type >= 0 && read[o].ndim > *ndim) *ndim = read[o].ndim;
    if (*ndim == 0 || *ndim > AXES) return -1;
    for (int k = 0; k < *ndim; k++) {
        npy_intp length = 1;
        for (int o = 0; o < nin; o++) {
            int own = read[o].type < 0 ? -1 : k - (*ndim - read[o].ndim);
            npy_intp of = own < 0 ? 1 : read[o].dims[own];
            if (of == 1) continue;
            if (length != 1 && length != of) return -1;
            length = of;
        }
        size *= dims[k] = length;
    }
    return size;
}

/* Whether no operand has half as many elements. */
static NOT_INLINED int all_smaller(const Read* read, int count, npy_intp size) {
    for (int k = 0; k < count; k++) {
        npy_intp own = read[k].type >= 0;
        for (int j = 0; own && j < read[k].ndim; j++) own *= read[k].dims[j];
        if (own >= size / 2) return 0;
    }
    return 1;
}

/* Whether a result is so large, and so much larger than its operands, that a graph never has it lie in memory: who asks for parts of it, or for sums, gets those alone. */
static inline int size_grows(const Read* read, int count, npy_intp size) { return size > FIRST_USUAL && size > limit_now() && all_smaller(read, count, size); }

/* Whether an array is an operand of a tape over `dims`, in the order of its memory. */
static int chain_takes(PyArrayObject* x, int ndim, const npy_intp* dims) {
    npy_intp steps[AXES];
    if (PyArray_ISCARRAY_RO(x) && PyArray_NDIM(x) == ndim && same_lengths(PyArray_DIMS(x), dims, ndim)) return PyArray_STRIDE(x, ndim - 1) >= 0;
    return PyArray_NDIM(x) <= ndim && (PyArray_IS_C_CONTIGUOUS(x) ? 1 : ndim <= 3) && operand_steps(x, ndim, dims, steps);
}

static inline int step_type(const Chain* self, int k) { return self->at[k].step.out; }

static inline int is_private(PyObject* a);

/* What a large array that exists, or a part of one, shows (borrowed), if tapes compute with it: with complex numbers no kernel does; `now`: at the call, as with what may be written
   from outside.  NULL for all others. */
static NOT_INLINED PyArrayObject* large_shown(PyObject* a, int now) {
    PyArrayObject *x, *memory;
    PyObject* found;
    Cell* root;
    int own;
    if (Py_TYPE(a) != array_type || ((Cell*)a)->base == NULL || Py_TYPE(((Cell*)a)->base) == &PyArray_Type || IS_RAW(((Cell*)a)->base)) return NULL;
    if (((Cell*)a)->base == Py_None && !now) { /* most that are recorded are neither, and are seen to be none quickly */
        found = member_of(&member_array, member_of(&member_buffer, ((Cell*)a)->node));
        if (found == NULL || !PyArray_Check(found) || !(PyArray_ISCOMPLEX((PyArrayObject*)found) || PyArray_SIZE((PyArrayObject*)found) <= tapes_limit())) return NULL;
    }
    if ((x = large_memory(a, &root, &memory, &own)) == NULL || PyArray_ISCOMPLEX(x)) return x;
    if (!IS_NUMERIC(PyArray_TYPE(x)) || is_mapped(root)) return NULL;
    return size_of(x) <= tapes_limit() || (size_of(x) <= first_limit() && (now || !is_private(a))) ? x : NULL;
}
static inline PyArrayObject* large_operand(PyObject* a) { return large_shown(a, 0); }

/* The same of every array that exists. */
static inline PyArrayObject* operand_seen(PyObject* x) {
    PyArrayObject* found = seen_of(x);
    return found ? found : large_operand(x);
}

/* Whether the memory of `a` is nobody else's to write. */
static inline int is_private(PyObject* a) {
    PyObject *owner = owner_of(a), *held;
    held = ((Cell*)a)->base;
    if (held && IS_RAW(held)) { /* nobody was shown its array */
        if (((Raw*)held)->holds && !IS_RAW(((Raw*)held)->holds)) return Py_TYPE(owner) == array_type && is_own((Cell*)owner);
        held = ((Raw*)(((Raw*)held)->holds ? ((Raw*)held)->holds : held))->fields.base;
        return held == NULL || (Py_REFCNT(held) == 1 && ((PyArrayObject_fields*)held)->weakreflist == NULL);
    }
    if (held && PyArray_CheckExact(held)) return Py_TYPE(owner) == array_type && is_own_shown((Cell*)owner, held);
    if (is_part(a)) held = ((Cell*)held)->base;
    if (held == NULL) return 0;
    /* None: a value, which nobody writes; else a draft, which nobody outside was shown */
    return held == Py_None || (member_of(&member_lease, held) == Py_None && member_of(&member_outside, held) == Py_None);
}

#define TURN 16                 /* steps from which on a turn of a loop begins another tape */

/* Whether a tape takes another step, and the casts of its operands, from this place. */
static inline int takes_step(Chain* self, const Site* site, PyObject* state) {
    if (self->users | self->told | self->closed | self->sealed) return 0;
    if (self->state != state || (self->steps >= TURN && self->at[0].site.code == site->code && self->at[0].site.offset == site->offset)) return 0;
    return chain_holds(self, OPERANDS, OPERANDS);
}

/* Whether another tape reads what this one computes. */
static int tape_is_read(const Chain* self) {
    for (int k = 0; k < self->steps; k++)
        if (self->at[k].cell && self->at[k].cell->readers) return 1;
    return 0;
}

#define LOOKED_AT 8 /* tapes, the youngest ones, among which one over the same space is looked for */

/* The latest tape over this space, in an order of its axes (NULL: C's), that takes a step, and reads tapes up to `serial`; NULL where there is none.  An older one becomes
   the youngest.  `flat`, `whole`: as of the step; where a loop is to get all elements at once, everything lies as the results do. */
static Chain* tape_over(int ndim, const npy_intp* dims, const char* order, const Site* site, PyObject* state, long long serial, int flat, int whole) {
    int looked = 0;
    for (Chain* self = waiting.before; self != &waiting && looked++ < LOOKED_AT; self = self->before) {
        if (self->closed || self->ndim != ndim || !same_lengths(self->dims, dims, ndim) || !takes_step(self, site, state)) continue;
        if ((self->whole && !flat) || (whole && !self->flat) || !is_laid(self, order)) continue;
        if (self->serial == serial || (self->serial > serial && !self->large)) return self;
        if (tape_is_read(self)) continue; /* what reads a large one, and makes little of it, lets it go before others are computed */
        if (self->serial > serial) return self;
        if (is_overwritten(self)) continue;
        chain_leave(self);
        self->serial = ++chain_serial;
        chain_enter(self);
        return self;
    }
    return NULL;
}

static PyObject *warnings_dict, *filters_name; /* of the module, where the filters in force are looked up */

/* The list of filters that is in force (borrowed); NULL, without an exception, where there is none. */
static inline PyObject* filters_now(void) {
#if PY_VERSION_HEX < 0x030C0000 /* PEP 509: what a dict holds is the same while its version is */
    static PyObject* found;
    static uint64_t version;
    if (version == ((PyDictObject*)warnings_dict)->ma_version_tag) return found;
    version = ((PyDictObject*)warnings_dict)->ma_version_tag;
    found = PyDict_GetItemWithError(warnings_dict, filters_name);
#else
    PyObject* found = PyDict_GetItemWithError(warnings_dict, filters_name);
#endif
    if (found == NULL) PyErr_Clear();
    return found;
}

/* The error state of what is recorded now, with what the filters of warnings say; NULL, without an exception, where an operation is computed at its call.
   It was asked for before, mostly: under the same value of NumPy's context variable, with the same list of filters. */
static struct {
    PyObject *errors, *filters, *first, *state;
    Py_ssize_t length;
    int minded;
} said;

/* Whether `said` was asked for under the same circumstances.  No code of a program's runs. */
static inline int state_known(void) {
    PyObject *errors = NULL, *filters = warnings_dict ? filters_now() : NULL;
    if (filters == NULL || filters != said.filters || PyList_GET_SIZE(filters) != said.length || (said.length && PyList_GET_ITEM(filters, 0) != said.first)) return 0;
    if (PyContextVar_Get(error_variable, NULL, &errors) < 0 || errors == NULL) return PyErr_Clear(), 0;
    Py_DECREF(errors); /* the context has it */
    return errors == said.errors;
}

/* Whether it is known that operations are computed at their calls. */
static inline int at_the_call(void) { return said.state == NULL && said.errors && state_known(); }

/* The same as a new reference, asked for where it is not known.  Other threads may exchange the filters meanwhile, and ask, too: what was said under others is not
   remembered, and the circumstances change all at once. */
static PyObject* state_now(int* minded) {
    PyObject *errors = NULL, *filters, *first, *found, *state, *old[4];
    Py_ssize_t length;
    if (error_variable == NULL || state_method == NULL) return NULL;
    if (state_known()) return *minded = said.minded, Py_XNewRef(said.state);
    if (warnings_dict == NULL) {
        PyObject* module = PyImport_ImportModule("warnings");
        if (module == NULL) return PyErr_Clear(), NULL;
        warnings_dict = Py_NewRef(PyModule_GetDict(module));
        filters_name = PyUnicode_InternFromString("filters");
        Py_DECREF(module);
    }
    filters = filters_now();
    if (filters == NULL || !PyList_CheckExact(filters)) return NULL;
    if (PyContextVar_Get(error_variable, NULL, &errors) < 0 || errors == NULL) return PyErr_Clear(), NULL;
    length = PyList_GET_SIZE(filters);
    first = length ? PyList_GET_ITEM(filters, 0) : NULL;
    Py_INCREF(filters), Py_XINCREF(first);
    found = PyObject_CallNoArgs(state_method);
    if (found == NULL) {
        Py_DECREF(errors), Py_DECREF(filters), Py_XDECREF(first);
        return pieces_put_off(), NULL;
    }
    state = found == Py_None ? NULL : PyTuple_GET_ITEM(found, 0);
    *minded = found == Py_None ? 0 : (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 1));
    Py_XINCREF(state);
    if (filters_now() != filters || PyList_GET_SIZE(filters) != length || (length && PyList_GET_ITEM(filters, 0) != first)) length = -1;
    old[0] = said.errors, old[1] = said.filters, old[2] = said.first, old[3] = said.state;
    said.errors = errors, said.filters = filters, said.first = first, said.state = Py_XNewRef(state), said.minded = *minded, said.length = length;
    Py_DECREF(found);
    for (int k = 0; k < 4; k++) Py_XDECREF(old[k]);
    return state;
}

/* The settings have changed: the state is asked for again. */
static void state_forget(void) {
    said.length = -1; /* before what goes lets other threads run */
    Py_CLEAR(said.errors);
    Py_CLEAR(said.filters);
    Py_CLEAR(said.first);
    Py_CLEAR(said.state);
}

/* Whether code is lazynp's own, whose place is no place of the program's. */
static struct {
    PyCodeObject* code; /* held */
    int inside;
} known_codes[64];
static inline int code_place(const PyCodeObject* code) { return (int)(((uint64_t)((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u) >> 58); }
static int is_inside(PyCodeObject* code) {
    int k = code_place(code), inside;
    if (known_codes[k].code != code) {
        Py_INCREF(code);
        known_codes[k].inside = inside = PyUnicode_Check(code->co_filename) && PyUnicode_Tailmatch(code->co_filename, own_root, 0, PY_SSIZE_T_MAX, -1) == 1;
        Py_XSETREF(known_codes[k].code, code); /* letting go of the old one may run code, which looks at others */
        return inside;
    }
    return known_codes[k].inside;
}

/* Where the program is (the code is borrowed), if its code was looked at before; NULL where that is still to be done.  No code of a program's runs. */
static inline PyCodeObject* site_known(int* offset) {
    PyCodeObject* code = frame_code(offset);
    int k = code_place(code);
    return code && known_codes[k].code == code && !known_codes[k].inside ? code : NULL;
}

/* Where the program is (the code is held); 0 where there is no frame of Python's. */
static inline int site_now(Site* site) {
    PyObject* found;
    site->code = frame_code(&site->offset);
    if (site->code == NULL) return 0;
    Py_INCREF(site->code);
    if (!is_inside(site->code)) return 1;
    found = PyObject_CallNoArgs(place_method);
    if (found == NULL || !PyTuple_Check(found)) return Py_XDECREF(found), 0;
    Py_SETREF(site->code, (PyCodeObject*)Py_NewRef(PyTuple_GET_ITEM(found, 0)));
    site->offset = (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 1));
    Py_DECREF(found);
    return 1;
}

/* Whether an order of axes is C's. */
static inline int in_c_order(const char* order, int ndim) {
    for (int k = 0; k < ndim; k++)
        if (order[k] != k) return 0;
    return 1;
}

/* Whether what waits there may lie otherwise than results do, in C's order without gaps. */
static inline int lies_otherwise(const Chain* self) { return self->strided || ((self->view || self->closed == PUT) && !self->flat); }

/* And how is known. */
static inline int lies_known(const Chain* self) { return self->ordered || (self->view && !self->failed && self->ndim <= RAW_AXES); }

/* Whether the elements of an operand lie as those of a result of so many, in C's order. */
static inline int lies_flat(const Read* read, npy_intp size) {
    return read->array ? PyArray_IS_C_CONTIGUOUS(read->array) && size_of(read->array) == size : read->chain->size == size && !lies_otherwise(read->chain);
}

/* How an operand lies under `dims`; 0 where its memory is not plain. */
static int read_strides(const Read* read, int ndim, const npy_intp* dims, npy_intp* steps) {
    npy_intp strides[AXES];
    const Chain* chain = read->chain;
    if (read->array) return PyArray_ISBEHAVED_RO(read->array) && operand_strides(read->ndim, read->dims, PyArray_STRIDES(read->array), ndim, dims, steps);
    if (read->ndim > AXES) return 0;
    if (chain->view) return operand_strides(read->ndim, read->dims, chain->strides, ndim, dims, steps);
    ordered_strides(read->ndim, read->dims, chain_order(chain), PyDataType_ELSIZE(raw_dtypes[read->type]), strides);
    return operand_strides(read->ndim, read->dims, strides, ndim, dims, steps);
}

static inline int type_cast_to(const Loops* loops) { return (int)(loops - cast_loops); }

/* Whether an operand has elements that are shown several times. */
static int repeats(const Read* read) {
    npy_intp steps[AXES];
    if (!read_strides(read, read->ndim, read->dims, steps)) return 1;
    for (int k = 0; k < read->ndim; k++)
        if (steps[k] == 0 && read->dims[k] != 1) return 1;
    return 0;
}

/* What operands that lie otherwise than in C's order come to: the order of the axes of their result, and whether (`flat`) all lie so without gaps; 0 where that is
   NumPy's to say: of axes of one element it has several answers. */
static int reads_order(const Read* read, int nin, int ndim, const npy_intp* dims, char* order, int* flat) {
    npy_intp steps[OPERANDS][AXES], strides[AXES];
    int count = 0;
    for (int k = 0; k < ndim; k++)
        if (dims[k] == 1) return 0;
    for (int o = 0; o < nin; o++)
        if (read[o].type >= 0 && !read_strides(&read[o], ndim, dims, steps[count++])) return 0;
    axes_order(count, ndim, steps, order);
    *flat = 1;
    for (int o = 0, at = 0; o < nin; o++) {
        if (read[o].type < 0) continue;
        ordered_strides(ndim, dims, order, PyDataType_ELSIZE(raw_dtypes[read[o].type]), strides);
        *flat &= same_lengths(steps[at++], strides, ndim);
    }
    return 1;
}

/* Put what was read of an operand behind those of a tape. */
static inline void chain_reads(Chain* self, const Read* read, PyObject* x) {
    int waits = read->array == NULL || read->root, k = self->arrays++;
    self->array[k] = (PyArrayObject*)Py_XNewRef((PyObject*)read->array);
    self->source[k] = waits ? source_new(read->root ? (PyObject*)read->root : x) : NULL;
    self->sources += waits;
}

/* Put an array that a tape takes, or a cell that waits, among its operands. */
static int chain_array(Chain* self, const Read* read, PyObject* x) {
    int k;
    for (k = 0; k < self->arrays; k++)
        if (read->array ? self->array[k] == read->array && self->source[k] == read->root : self->array[k] == NULL && self->source[k] == (Cell*)x) return k;
    chain_reads(self, read, x);
    return k;
}

/* Append a step, whose value `cell` (NULL: nobody) has. */
static void chain_append(Chain* self, Loops* loops, int type, const Operand* of, Cell* cell, const Site* site) {
    int k = self->steps++;
    StepAt* at = &self->at[k];
    Step* step = &at->step;
    step->loops = loops, step->type = (short)type, step->out = loops->of[type].out;
    self->wide |= PyTypeNum_ISCOMPLEX(type) || PyTypeNum_ISCOMPLEX(step->out);
    memcpy(step->of, of, sizeof(step->of));
    at->site = *site, at->cell = cell, at->put = NULL;
    if (cell) cell->before = (Cell*)self, cell->offset = k, self->cells++;
}

/* An operand as one of another type. */
static Operand chain_cast(Chain* self, Operand from, int type, int to, const Site* site) {
    Operand of[OPERANDS] = {from, {OF_NUMBER, 0}, {OF_NUMBER, 0}};
    Site own = {(PyCodeObject*)Py_NewRef((PyObject*)site->code), site->offset};
    for (int k = 0; k < self->steps; k++)
        if (self->at[k].step.loops == &cast_loops[to] && self->at[k].step.of[0].kind == from.kind && self->at[k].step.of[0].number == from.number) return Py_DECREF(own.code), (Operand){OF_STEP, (short)k};
    chain_append(self, &cast_loops[to], type, of, NULL, &own);
    return (Operand){OF_STEP, (short)(self->steps - 1)};
}

/* Whether what an operand is computed with is complex; no code of a program's runs. */
static int with_complex(PyObject* x) {
    PyArrayObject* seen;
    if (Py_TYPE(x) != array_type) return is_complex(x);
    if (WAITS(x)) return CHAIN_OF(x) && PyTypeNum_ISCOMPLEX(step_type(CHAIN_OF(x), STEP_OF(x)));
    if ((seen = seen_of(x)) == NULL) seen = large_operand(x);
    return seen && PyArray_ISCOMPLEX(seen);
}

/* The memory of a large array of real numbers that exists, for an operation with complex ones: no kernel computes with them; NULL for all others. */
static inline PyArrayObject* large_real(PyObject* a, PyObject* other) {
    PyArrayObject* memory;
    Cell* root;
    int own;
    if (other == NULL || Py_TYPE(a) != array_type || ((Cell*)a)->base == NULL || Py_TYPE(((Cell*)a)->base) == &PyArray_Type || IS_RAW(((Cell*)a)->base)) return NULL;
    return with_complex(other) ? large_memory(a, &root, &memory, &own) : NULL;
}

/* The array whose memory a large operand shows (borrowed), where somebody outside might hold it; NULL of all others. */
static NOT_INLINED PyObject* drafted(PyObject* x) {
    PyObject *root = x, *held, *memory;
    if (Py_TYPE(x) != array_type || !is_large(x)) return NULL;
    if (((Cell*)root)->base && Py_TYPE(((Cell*)root)->base) == array_type) root = ((Cell*)root)->base;
    held = ((Cell*)root)->base;
    if (held == NULL || held == Py_None || Py_TYPE(held) != member_draft.type || tapes_limit() <= limit_now() || limit_now() == 0) return NULL;
    if (member_of(&member_lease, held) == Py_None && member_of(&member_outside, held) == Py_None) return NULL;
    memory = member_of(&member_draft, held);
    return memory && PyArray_CheckExact(memory) && PyArray_SIZE((PyArrayObject*)memory) <= tapes_limit() ? root : NULL;
}

/* Let what nobody outside holds any more be a value again; -1 with an exception. */
static PyObject* value_method;
static NOT_INLINED int draft_ready(PyObject* root) {
    PyObject* done = value_method ? PyObject_CallOneArg(value_method, root) : Py_NewRef(Py_None);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Have what lies otherwise computed, for an operation that reads it: with its memory it is an operand like others.  -1 where NumPy raises. */
static inline int operand_ready(PyObject* x) {
    PyObject* root;
    if (IS_CHAIN(x)) return CHAIN_OF(x) && lies_otherwise(CHAIN_OF(x)) && !CHAIN_OF(x)->place ? chain_settle(x) : 0;
    return (root = drafted(x)) ? draft_ready(root) : 0;
}

/* What an operand is, beside `other` (NULL: by itself); 0 where nothing that reads it is recorded. */
static inline int operand_read(PyObject* x, Read* to, PyObject* other) {
    to->array = NULL, to->chain = NULL, to->root = NULL, to->type = -1;
    if (Py_TYPE(x) != array_type) return 1;
    if (WAITS(x)) {
        Chain* chain = CHAIN_OF(x);
        if (chain == NULL || (lies_otherwise(chain) && !chain->place)) return 0;
        if (chain->place) to->array = chain->place, to->root = chain->view ? chain->source[0] : (Cell*)x;
        to->chain = chain, to->type = step_type(chain, STEP_OF(x)), to->ndim = chain->ndim, to->dims = chain->dims;
        return 1;
    }
    if (((Cell*)x)->base && IS_RAW(((Cell*)x)->base)) to->array = (PyArrayObject*)((Cell*)x)->base;
    else if ((to->array = memory_of(x)) == NULL && (to->array = large_operand(x)) == NULL && (to->array = large_real(x, other)) == NULL) return 0;
    to->type = PyArray_TYPE(to->array), to->ndim = PyArray_NDIM(to->array), to->dims = PyArray_DIMS(to->array);
    return IS_NUMERIC(to->type) && is_private(x);
}

/* Whether an operand that cannot wait, for its memory may be written from outside, is read at the call by a tape: small ones are by NumPy's loops. */
static inline int is_read_now(const Read* read) { return read->array && read->chain == NULL && read->type >= 0 && IS_NUMERIC(read->type) && size_of(read->array) > limit_now(); }

/* Whether a large operand's memory may be written from outside. */
static NOT_INLINED int is_large_lent(PyObject* x) { return Py_TYPE(x) == array_type && is_large(x) && large_shown(x, 1) && !is_private(x); }
static inline int any_large_lent(PyObject* const* operands, int n) {
    for (int o = 0; o < n; o++)
        if (is_large_lent(operands[o])) return 1;
    return 0;
}

/* What an operand is of an operation that is computed at the call (`NOW`), or might be beside another one that is (`STORED`). */
enum { NOW = 1, STORED };
static NOT_INLINED int operand_now(PyObject* x, Read* to, int* when) {
    if (is_read_now(to)) return *when |= NOW;
    if (to->array) return IS_NUMERIC(to->type) ? *when |= STORED : 0;
    if (Py_TYPE(x) != array_type || WAITS(x) || (to->array = large_shown(x, 1)) == NULL) return 0;
    to->type = PyArray_TYPE(to->array), to->ndim = PyArray_NDIM(to->array), to->dims = PyArray_DIMS(to->array);
    return *when |= STORED;
}


/* Whether what waits is an operand of a step, however it lies. */
static inline int waits_known(PyObject* x) { return IS_CHAIN(x) && CHAIN_OF(x) && lies_known(CHAIN_OF(x)); }

/* The same, of a step. */
static inline int step_reads(PyObject* x, Read* to, PyObject* other) {
    Chain* chain = waits_known(x) ? CHAIN_OF(x) : NULL;
    if (chain == NULL || chain->place || !lies_otherwise(chain)) return operand_read(x, to, other);
    *to = (Read){.array = NULL, .chain = chain, .root = NULL, .type = step_type(chain, STEP_OF(x)), .ndim = chain->ndim, .dims = chain->dims};
    return 1;
}

/* The type in which the operands are computed; -1 where that is not recorded. */
static int operands_type(const Loops* loops, const Read* read, PyObject* a, PyObject* b) {
    PyObject* number = NULL;
    int type = read[0].type;
    if (type < 0 && b && read[1].type < 0) { /* what is chosen are numbers */
        if (!loops->chooses || !(PyFloat_CheckExact(a) || PyLong_CheckExact(a)) || !(PyFloat_CheckExact(b) || PyLong_CheckExact(b))) return -1;
        return PyFloat_CheckExact(a) || PyFloat_CheckExact(b) ? NPY_DOUBLE : NPY_LONG;
    }
    if (type < 0) type = read[1].type, number = a;
    else if (b && read[1].type >= 0) type = common_type(type, read[1].type);
    else if (b) number = b;
    if (type < 0) return -1;
    if (number && (PyComplex_CheckExact(number) || IS_A(number, NPY_CDOUBLE)) && type < NPY_CFLOAT) type = type == NPY_FLOAT && PyComplex_CheckExact(number) ? NPY_CFLOAT : NPY_CDOUBLE;
    else if (number && type < NPY_FLOAT && PyFloat_CheckExact(number)) type = NPY_DOUBLE;
    else if (number && type == NPY_BOOL && PyLong_CheckExact(number)) type = NPY_LONG;
    if (a && b && read[0].type >= 0 && read[1].type >= 0 && read[0].type != read[1].type && loops->of[type].function == NULL && !loops->integers_divide) return -1; /* it is NumPy's to say */
    return loops_type(loops, type);
}

static inline int casts_known(const Loops* loops, int type, const Read* read) {
    for (int o = 0; o < loops->nin; o++)
        if (read[o].type >= 0 && read[o].type != operand_type(loops, type, o) && cast_loops[type].of[read[o].type].function == NULL) return 0;
    return 1;
}

/* Whether there is something that keeps an operation from being recorded, at first sight. */
static inline int is_lent(PyObject* x) { return Py_TYPE(x) == array_type && ((Cell*)x)->lent && !is_private(x); }

/* Have the older half of what waits computed: what is recorded next need not look whether there is room. */
static NOT_INLINED int tapes_halve(void) {
    Chain* oldest;
    while (waiting_count > CHAINS_MOST / 2 && (oldest = oldest_waiting()))
        if (tape_settle(oldest) < 0) return -1;
    return 0;
}

/* Keep what waits within bounds; -1 where NumPy raises. */
static inline int tapes_bound(void) {
    if (waiting_count >= CHAINS_MOST && tapes_halve() < 0) return -1;
    if (orphaned_bytes <= ORPHANED_MOST) return 0;
    orphaned_bytes = 0;
    return settle_all();
}

/* What anything that waits needs: its error state, a cell, its place in the program. */
typedef struct {
    PyObject* state;
    int minded;
    Cell* cell;
    Site site;
} Begun;

static inline PyObject* recording_end(Begun* begun, PyObject* made) {
    Py_CLEAR(begun->state);
    if (made == NULL) {
        Py_CLEAR(begun->site.code);
        Py_CLEAR(begun->cell);
    }
    return made;
}

/* Whether something may be recorded now; 0, perhaps with an exception, where it is computed at once.  Code of a program's may run. */
static inline int recording_begin(Begun* begun) {
    begun->cell = NULL, begun->site = (Site){NULL, 0};
    if (tapes_bound() < 0 || (begun->state = state_now(&begun->minded)) == NULL) return 0;
    if ((begun->cell = chain_cell()) && site_now(&begun->site)) return 1;
    return recording_end(begun, NULL), 0;
}

/* The array of an operand that lies in memory and is nobody else's to write (borrowed); NULL of all else. */
static inline PyArrayObject* next_array(PyObject* x) {
    PyObject* base = ((Cell*)x)->base;
    if (base == NULL) return NULL;
    if (IS_RAW(base)) {
        if ((((Raw*)base)->holds || ((Raw*)base)->fields.base) && !is_private(x)) return NULL;
    } else if (Py_TYPE(base) != &PyArray_Type || !is_private(x)) {
        return NULL;
    }
    return IS_NUMERIC(PyArray_TYPE((PyArrayObject*)base)) ? (PyArrayObject*)base : NULL;
}

/* Let a cell, whose old value only tapes read from now on, wait for a step of `next`, which holds that value. */
static inline void cell_step(Cell* cell, const Chain* next) {
    Chain* before = WAITS(cell) ? CHAIN_OF(cell) : NULL;
    if (before == NULL) {
        PyObject* memory = cell->base;
        if (Py_REFCNT(memory) > 2) orphaned_bytes += PyArray_NBYTES((PyArrayObject*)memory); /* another tape reads it */
        cell->base = Py_NewRef((PyObject*)&waiting_value);
        Py_DECREF(memory);
        return;
    }
    before->at[STEP_OF(cell)].cell = NULL;
    if (--before->cells == 0 && before->users == 0 && before != next) chain_free(before);
}

/* What most operations are: a step over operands of one type and one shape, which lie as the results do, or in rows of steps forward.  NULL, without an
   exception: it has to be looked at closer (`chain_step`).  `into`: the first operand, whose memory nobody else sees and which lies in C's order, is to have the result; NULL: a new
   cell.  No code of a program's runs. */
static inline PyObject* step_into(Loops* loops, PyObject* a, PyObject* b, Cell* into) {
    PyObject* operands[2] = {a, b};
    PyArrayObject* array[2] = {NULL, NULL};
    Cell* source[2] = {NULL, NULL}; /* what is to be there before */
    Chain *chain[2] = {NULL, NULL}, *self = NULL;
    const npy_intp* dims = NULL;
    long long serial = 0;
    Operand of[OPERANDS] = {{OF_NUMBER, 0}, {OF_NUMBER, 0}, {OF_NUMBER, 0}};
    Loop* loop;
    Value value;
    Site site;
    const char* order = NULL; /* of those that lie in another one than C's */
    int type = -1, ndim = 0, nin = b ? 2 : 1, flat = 1, whole, others = 0, count = 0;
    npy_intp size = 1;
    if (at_the_call()) return NULL;
    for (int o = 0; o < nin; o++) {
        PyObject* x = operands[o];
        const npy_intp* own;
        npy_intp steps[AXES];
        int found, axes;
        if (Py_TYPE(x) != array_type) continue;
        if (WAITS(x)) {
            if ((chain[o] = CHAIN_OF(x)) == NULL || ((Cell*)x)->lent || chain[o]->ndim > AXES) return NULL;
            if (chain[o]->serial > serial) serial = chain[o]->serial, self = chain[o];
            array[o] = chain[o]->place, source[o] = array[o] && chain[o]->view ? chain[o]->source[0] : (Cell*)x;
            if (array[o] == NULL && lies_otherwise(chain[o])) {
                if (!chain[o]->ordered || (order && memcmp(order, chain[o]->order, (size_t)chain[o]->ndim))) return NULL;
                order = chain[o]->order, others++;
            }
            found = step_type(chain[o], STEP_OF(x)), axes = chain[o]->ndim, own = chain[o]->dims;
        } else if ((array[o] = next_array(x)) == NULL) {
            return NULL;
        }
        if (array[o]) {
            if (chain[o] == NULL) found = PyArray_TYPE(array[o]), axes = PyArray_NDIM(array[o]), own = PyArray_DIMS(array[o]);
            if (axes == 0 || axes > AXES) return NULL;
            if (PyArray_ISFARRAY_RO(array[o]) && axes > 1 && !PyArray_IS_C_CONTIGUOUS(array[o])) {
                if (order && memcmp(order, fortran_order(axes), (size_t)axes)) return NULL;
                for (int k = 0; k < axes; k++)
                    if (own[k] < 2) return NULL;
                order = fortran_order(axes), others++;
            } else {
                if (PyArray_ISCARRAY_RO(array[o]) ? PyArray_STRIDE(array[o], axes - 1) < 0 : axes > 3 || !operand_steps(array[o], axes, own, steps)) return NULL;
                flat &= PyArray_ISCARRAY_RO(array[o]);
            }
        }
        count++;
        if (type < 0) type = found, ndim = axes, dims = own;
        else if (type != found || ndim != axes || (dims != own && !same_lengths(dims, own, ndim))) return NULL;
    }
    if (type < 0 || PyTypeNum_ISCOMPLEX(type) || loops->kernels || (others && others < count)) return NULL;
    loop = &loops->of[type];
    if (loop->state != USABLE || loop->raises || (into && (loop->out != type || into->readers))) return NULL;
    for (int k = 0; k < ndim; k++) size *= dims[k];
    if (!loop->joins && size > chain_sizes.block) return NULL;
    whole = !loop->joins;
    if (whole && !flat) return NULL;
    if (kept_count == 0 || waiting_count >= CHAINS_MOST || orphaned_bytes > ORPHANED_MOST) return NULL;
    for (int o = 0; o < nin; o++)
        if (array[o] == NULL && chain[o] == NULL && !value_of(operands[o], type, &value)) return NULL;
    if (!state_known() || said.state == NULL || (site.code = site_known(&site.offset)) == NULL) return NULL;
    /* the youngest: steps that join older ones have more wait at a time */
    if (self != waiting.before || !is_laid(self, order) || (whole && !self->flat) || (self->whole && !flat) || !takes_step(self, &site, said.state))
        self = waiting_count ? tape_over(ndim, dims, order, &site, said.state, serial, flat, whole) : NULL;
    if (into && chain[0] && chain[0] != self) return NULL; /* who reads the old value of another tape needs a cell that has it */
    if (self == NULL) {
        if (size == 0 || size < chain_sizes.from || size_beyond(size)) return NULL;
        if ((self = chain_new(said.state, said.minded, ndim, dims, size)) == NULL) return PyErr_Clear(), NULL;
        if (order) chain_laid(self, order);
        chain_enter(self);
    }
    for (int o = 0; o < nin; o++) {
        int k = 0;
        if (chain[o] == self) {
            of[o] = (Operand){OF_STEP, (short)STEP_OF(operands[o])};
        } else if (array[o] || chain[o]) {
            PyArrayObject** arrays = self->array;
            Cell** sources = self->source;
            while (k < self->arrays && (arrays[k] != array[o] || sources[k] != source[o])) k++;
            if (k == self->arrays) {
                self->array[k] = (PyArrayObject*)Py_XNewRef((PyObject*)array[o]), self->source[k] = source[o] ? source_new((PyObject*)source[o]) : NULL;
                self->arrays++, self->sources += source[o] != NULL;
            }
            of[o] = (Operand){OF_ARRAY, (short)k};
        } else {
            self->value[self->numbers] = value;
            of[o] = (Operand){OF_NUMBER, (short)self->numbers++};
        }
    }
    Py_INCREF(site.code);
    self->whole |= whole, self->flat &= flat;
    if (into) {
        cell_step(into, self);
        chain_append(self, loops, type, of, into, &site);
        return Py_NewRef((PyObject*)into);
    }
    chain_append(self, loops, type, of, chain_cell(), &site); /* a kept cell */
    tapes_sound("next");
    return (PyObject*)self->at[self->steps - 1].cell;
}

static PyObject* step_next(Loops* loops, PyObject* a, PyObject* b) { return step_into(loops, a, b, NULL); }

/* What was recorded of memory that may change, computed before anything else happens; NULL with an exception. */
static PyObject* made_now(PyObject* made) {
    if (settle_cell(made) < 0) Py_CLEAR(made);
    return made;
}

/* An operation as a step; NULL, perhaps without an exception, where no tape computes it.  `now`: it reads memory that may change, and is to be computed before
   anything else happens. */
static PyObject* step_made(Loops* loops, PyObject* const* operands, int* now) {
    int type, nin = loops->nin, from = loops->chooses, ndim, joins, flat, whole, compared = 0, other = 0, when = 0;
    char order[AXES];
    npy_intp dims[AXES], size;
    long long serial = 0;
    Read read[OPERANDS] = {{.type = -1}, {.type = -1}, {.type = -1}};
    Operand of[OPERANDS] = {{OF_NUMBER, 0}, {OF_NUMBER, 0}, {OF_NUMBER, 0}};
    Value value[OPERANDS];
    Chain* self;
    Loop* loop;
    Begun begun;
    *now = 0;
    if (waiting_count == 0 && at_the_call()) return NULL;
    for (int o = 0; o < nin; o++)
        if ((!waits_known(operands[o]) && operand_ready(operands[o]) < 0) || (is_lent(operands[o]) && memory_of(operands[o]) && !any_large_lent(operands, nin))) return NULL;
    if (!recording_begin(&begun)) return NULL;
reading: /* from here on no code of a program's runs */
    for (int o = 0; o < nin; o++)
        if (!step_reads(operands[o], &read[o], nin == 2 ? operands[1 - o] : NULL) && !operand_now(operands[o], &read[o], &when)) goto refused;
    if (when && !(*now = when & NOW)) goto refused;
    if (from && read[0].type != NPY_BOOL) goto refused;
    type = nin - from > 2 ? read[0].type : operands_type(loops, read + from, operands[from], nin - from > 1 ? operands[from + 1] : NULL);
    for (int o = 1; nin - from > 2 && o < nin; o++)
        if (read[o].type >= 0 && read[o].type != type) goto refused;
    if (type < 0 || !casts_known(loops, type, read)) goto refused;
    for (int o = 0; loops->kernels && nin == 2 && o < 2; o++) /* which loop it is for others is NumPy's to say */
        if (read[o].type >= 0 && read[o].type != NPY_DOUBLE && read[o].type != NPY_FLOAT) goto refused;
    loop = &loops->of[type];
    if (loop->state == UNKNOWN && loop->function && !compared) { /* but here */
        compared = 1;
        loop_of(loops, type);
        goto reading;
    }
    if (loop->state != USABLE) goto refused;
    joins = loop->joins;
    if ((loop->raises && !(nin == 2 && read[1].type < 0 && is_natural(operands[1]))) || (loops->kernels && begun.minded & ERROR_UNDER)) goto refused;
    size = dims_join(read, nin, &ndim, dims);
    if (size > limit_now() && loops->costly) goto refused; /* small operands, of which the result is large */
    if (size < (chain_sizes.from == 1 ? 0 : chain_sizes.from) || ((size_beyond(size) || size_grows(read, nin, size)) && !*now && !(joins && PyTypeNum_ISCOMPLEX(type)))) goto refused;
    flat = 1;
    for (int o = 0; o < nin; o++) {
        if (read[o].type < 0 && !value_of(operands[o], type, &value[o])) goto refused;
        if (read[o].chain && read[o].chain->serial > serial) serial = read[o].chain->serial;
        flat &= read[o].type < 0 || lies_flat(&read[o], size);
    }
    for (int o = 0; o < nin; o++)
        if (read[o].array ? !chain_takes(read[o].array, ndim, dims) : read[o].type >= 0 && lies_otherwise(read[o].chain)) other = 1;
    if (other) { /* transposed, backwards */
        if (loops >= cast_loops && loops < cast_loops + TYPES && (read[0].type == type_cast_to(loops) || repeats(&read[0]))) goto refused; /* a copy may have an order of its own */
        if (size == 0 || !reads_order(read, nin, ndim, dims, order, &flat) || !(flat || (joins && ndim <= 3))) goto strided;
        other = !in_c_order(order, ndim);
    }
    whole = !joins && flat && size <= chain_sizes.block;
    joins |= whole;
    self = joins && waiting_count ? tape_over(ndim, dims, other ? order : NULL, &begun.site, begun.state, serial, flat, whole) : NULL;
    if (self == NULL) {
        if ((self = chain_new(begun.state, begun.minded, ndim, dims, size)) == NULL) goto refused;
        if (other) chain_laid(self, order);
    }
    self->flat &= flat;
    for (int o = 0; o < nin; o++) {
        if (read[o].chain == self) {
            of[o] = (Operand){OF_STEP, (short)STEP_OF(operands[o])};
        } else if (read[o].type >= 0) {
            of[o] = (Operand){OF_ARRAY, (short)chain_array(self, &read[o], operands[o])};
        } else {
            self->value[self->numbers] = value[o];
            of[o] = (Operand){OF_NUMBER, (short)self->numbers++};
        }
    }
    for (int o = 0; o < nin; o++)
        if (read[o].type >= 0 && read[o].type != operand_type(loops, type, o)) {
            if (!loop->joins && (!joins || (nin == 2 && read[0].type >= 0 && read[1].type >= 0 && read[0].type != read[1].type))) goto unfit; /* which loop it is for two types is NumPy's to say */
            of[o] = chain_cast(self, of[o], read[o].type, type, &begun.site);
        }
    chain_append(self, loops, type, of, begun.cell, &begun.site);
    self->closed = joins ? OPEN : ALONE, self->whole |= whole;
    if (self->after == self) chain_enter(self);
    tapes_sound("recorded");
    return recording_end(&begun, (PyObject*)begun.cell);
strided: /* a tape of its own, whose step NumPy's loop or its ufunc does over the arrays as they lie */
    if (loops->kernels || nin > 2) goto refused;
    for (int o = 0; o < nin; o++)
        if (read[o].type >= 0 && (read[o].type != type || (read[o].array && !PyArray_ISBEHAVED_RO(read[o].array)))) goto refused;
    if ((self = chain_new(begun.state, begun.minded, ndim, dims, size)) == NULL) goto refused;
    for (int o = 0; o < nin; o++) {
        if (read[o].type < 0) {
            self->value[self->numbers] = value[o];
            of[o] = (Operand){OF_NUMBER, (short)self->numbers++};
        } else {
            of[o] = (Operand){OF_ARRAY, (short)self->arrays};
            chain_reads(self, &read[o], operands[o]);
        }
    }
    chain_append(self, loops, type, of, begun.cell, &begun.site);
    self->closed = ALONE, self->flat = 0, self->strided = 1;
    chain_enter(self);
    return recording_end(&begun, (PyObject*)begun.cell);
unfit: /* an operand that this tape has taken meanwhile is no harm */
    if (self->steps == 0) chain_free(self);
refused:
    return recording_end(&begun, NULL);
}

/* The same, computed if it is to be. */
static PyObject* step_recorded(Loops* loops, PyObject* const* operands) {
    int now;
    PyObject* made = step_made(loops, operands, &now);
    return made && now ? made_now(made) : made;
}

/* `a op b` (b is NULL for an operation on one array), likewise. */
static PyObject* chain_step(Loops* loops, PyObject* a, PyObject* b) {
    PyObject* operands[OPERANDS] = {a, b, NULL};
    return step_recorded(loops, operands);
}

static int chain_register(PyObject* state, PyObject* place, PyObject* root, PyObject* step, PyObject* tell, PyObject* raised, PyObject* cast, PyObject* compiled, PyObject* pool, PyObject* outside) {
    raised_method = raised, outside_method = outside;
    state_method = state, place_method = place, own_root = root, step_method = step, tell_method = tell, hot_method = compiled, pool_method = pool;
    threads_name = PyUnicode_InternFromString("threads");
    return threads_name == NULL ? -1 : casts_fill(cast);
}

#endif
