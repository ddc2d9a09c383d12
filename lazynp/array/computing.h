/* What waits is computed when it is asked for, or before what it reads is written.

   In: a cell whose value is wanted, or memory that is about to be written, lent or shown.  Out: values in memory.  Promise: a tape reads older tapes only, so that computing the oldest needs no
   other one; what is not wanted is not computed; nothing that is read is written before.

   Whatever writes, exports or lends memory has all that waits computed first (`SETTLED`); `a[key] = value` of
   integers and slices only what might read the memory that `a` shows, by the addresses it reaches to (`readers_settle`; when writes have looked at
   256 tapes all is computed, so that a loop over elements finds nothing to look at); what only reads has its own operands computed. Memory that
   code outside may write (`is_private`) is read at the call.

   Up to 256 elements each step has room of its own in the first-level cache, and no plan is made (`small_settle`).

   A value of another order that only one tape reads is computed with it, its steps before that one's (`tape_splice`: `x.T * 2 + y` is one pass).

   Handlers of signals run between tapes of many elements, and in the middle of one each 30 ms, when no thread computes (`pieces_do`, `tape_pause`).
   What a handler asks for, or writes, has the tape computed as if no thread did, and the rest of the first run is thrown away. What takes so long is not
   written over operands, nor put where a write has it lie, for that must not be seen half written (`outs_apart`). What a handler raises fails no value
   (`values/outside.py`): it is computed when it is asked for again, and before its operands are written. */

#ifndef LAZYNP_COMPUTING_H
#define LAZYNP_COMPUTING_H

#include "tape_values.h"

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
    static Value room[SMALL_BYTES / sizeof(Value)]; /* no other thread runs meanwhile */
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

/* Let steps go that are not wanted any more, and with them what only they read: it is not computed. */
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

/* The same.  Where many are computed, or written, handlers of signals run in between. */
static int tape_settle(Chain* self) {
    npy_intp size = self->closed == PUT ? (self->to ? size_of(self->to) : 0) : self->view ? 0 : self->size;
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

/* A cell goes.  What no cell holds is not computed, unless something reads it. */
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

#endif
