/* Writes of parts that wait: `a[1:-1] = expression` is computed with the expression, block by block, where it is to lie.

   In: a tape whose steps' values are to be written, the part of an array that each is for.  Out: memory as NumPy leaves it.  Promise: what was recorded before
   a write reads what was there before, and what was recorded after it what it leaves; what is not read is not written. */

#ifndef LAZYNP_PUTS_H
#define LAZYNP_PUTS_H

/* A tape with a write: its cell is the array that is written, whose memory is `place`; `to` is the part of it.  Its first source has the value, the second one (if any) is
   the array as it was before, which waits for an older write.  A tape depends on none that is younger (`serial`), so that the order of the ring is an order of the program. */

static int tape_reads(const Chain* self, PyArrayObject* x);
static int fails_for_good(void);

/* The array has been written, or will not be: its cell shows its memory again. */
static void put_finish(Chain* self) {
    Cell* cell = self->at[0].cell;
    if (cell == NULL) return;
    self->at[0].cell = NULL, self->cells--, cell->before = NULL, cell->offset = 0;
    Py_INCREF(cell);
    Py_SETREF(cell->base, Py_NewRef((PyObject*)self->place));
    if (cell->waiting_views) views_follow(cell);
    Py_DECREF(cell);
    if (self->users == 0) chain_free(self);
}

/* A step's value was put where it is to lie; nothing else has it. */
static void put_done(Chain* chain, int k) {
    Chain* self = chain->at[k].put;
    Cell* cell = chain->at[k].cell;
    chain->at[k].put = NULL;
    if (cell) chain->at[k].cell = NULL, chain->cells--, cell->before = NULL, cell->offset = 0;
    put_finish(self);
}

/* How an operand lies to the part that is written: 0 apart, 1 just there, -1 otherwise. */
static int put_meets(PyArrayObject* to, PyArrayObject* x, int ndim, const npy_intp* dims) {
    if (PyArray_BYTES(x) == PyArray_BYTES(to) && PyArray_NDIM(x) == ndim && same_lengths(PyArray_DIMS(x), dims, ndim)) {
        int same = PyArray_ITEMSIZE(x) == PyArray_ITEMSIZE(to);
        for (int k = 0; k < ndim; k++) same &= dims[k] == 1 || PyArray_STRIDE(x, k) == PyArray_STRIDE(to, k);
        if (same) return 1;
    }
    return may_overlap(x, to) ? -1 : 0;
}

/* Whether a step's value can be put at once where a write has it lie: nothing else has it, and nothing that was recorded before waits to read what lies there.
   `meets`: it is computed from just that; -1: also from what lies some elements away, as `lag` says. */
static int put_ready(const Chain* self, const Chain* chain, int k, int* meets, Lag* lag) {
    int away = 0;
    *meets = 0, lag->behind = lag->ahead = 0;
    if (Py_REFCNT(chain->at[k].cell) != 1 + self->passing || chain->users != 1 || chain->whole || (self->users && self->runner != PyThreadState_Get())) return 0;
    if (self->arrays > 1 && self->source[1] && WAITS(self->source[1])) return 0;
    for (int j = 0; j < chain->arrays; j++) {
        int how = put_meets(self->to, chain->array[j], chain->ndim, chain->dims);
        if (how < 0 && !lag_takes(lag, self->to, chain->array[j])) return 0;
        if (how < 0) away = 1;
        else *meets |= how;
    }
    if (away) *meets = -1;
    for (const Chain* other = waiting.after; other != &waiting && other->serial < self->serial; other = other->after)
        if (other != chain && tape_reads(other, self->to)) return 0;
    return 1;
}

#define PUT_NS 5e5 /* nanoseconds that other threads of the program wait for, at most: none of them may run while a part is written that a tape computes from operands */

/* Whether no step after `k` reads what lies where its result is put: it may be written as soon as it is computed. */
static int put_overwrites(const Chain* self, const Outs* outs, int k, PyArrayObject* to) {
    if (self->wide) return 0;
    for (int later = k + 1; later < self->steps; later++)
        for (int o = 0; outs->wanted[later] && o < self->at[later].step.loops->nin; o++)
            if (self->at[later].step.of[o].kind == OF_ARRAY && put_meets(to, self->array[self->at[later].step.of[o].number], self->ndim, self->dims)) return 0;
    return 1;
}

/* Which of a tape's results are put where they are to lie. */
static void puts_of(const Chain* self, Outs* outs, Lag* lag) {
    int meets;
    if (outs->count > DESK_BLOCKS || (self->size > SIGNALS_FROM && other_threads() && pass_ns(self, outs, 0) > PUT_NS)) return;
    for (int k = 0; k < self->steps; k++) {
        const Chain* put = self->at[k].cell ? self->at[k].put : NULL;
        if (put == NULL || !put_ready(put, self, k, &meets, lag) || (meets < 0 && outs->count > 1)) continue;
        outs->given[k] = outs->alone = 1, outs->over |= meets != 0;
        if (meets < 0) lag->to = &put->target, outs->lag = lag;
        if (put->target.ndim == 1 && put->target.strides[0] == put->target.size && (!meets || (meets > 0 && put_overwrites(self, outs, k, put->to)))) outs->to[k] = put->target.data, outs->is_over[k] = (char)meets;
        else outs->put[k] = &put->target, outs->puts++; /* when all steps of a block have read what lies there */
    }
}

#define COPY_SHARED (1 << 20) /* bytes, from which on several threads copy */
static void place_copied(const Place* to, const char* from, const npy_intp* strides, npy_intp elements, npy_intp size);
static int place_whole(PyArrayObject* x, Place* to);

/* Write a value that lies in memory. */
static int put_copy(Chain* self) {
    PyArrayObject *value = self->array[0] ? (PyArrayObject*)Py_NewRef((PyObject*)self->array[0]) : source_array(self->source[0]), *array, *laid;
    Place place;
    if (value == NULL) return -1;
    if (size_of(value) != size_of(self->to) || PyArray_TYPE(value) != PyArray_TYPE(self->to)) { /* nothing is written behind the part */
        Py_DECREF(value);
        return PyErr_SetString(PyExc_SystemError, "a value that waits to be written has become another one"), -1;
    }
    if (!PyArray_IS_C_CONTIGUOUS(value)) {
        array = array_of(value);
        laid = array ? (PyArrayObject*)PyArray_NewCopy(array, NPY_CORDER) : NULL;
        Py_XDECREF(array), Py_DECREF(value);
        if ((value = laid) == NULL) return -1;
    }
    if (PyArray_NBYTES(value) >= COPY_SHARED && place_whole(self->to, &place)) place_copied(&place, PyArray_BYTES(value), PyArray_STRIDES(value), size_of(value), PyArray_ITEMSIZE(value));
    else target_put(&self->target, 0, size_of(value), PyArray_BYTES(value));
    put_finish(self);
    return Py_DECREF(value), 0;
}

/* Have what a source waits for computed; -1 where NumPy raises. */
static int put_source(Chain* self, int k) {
    Cell* cell = k < self->arrays ? self->source[k] : NULL; /* NULL also where its array is known: the cell has another value by now */
    int failed = 0;
    if (cell == NULL) return 0;
    Py_INCREF(cell);
    if (WAITS(cell) && CHAIN_OF(cell)) failed = tape_settle(CHAIN_OF(cell));
    return Py_DECREF(cell), failed;
}

/* Write what waits to be written; -1 where NumPy raises. */
static int put_write(Chain* self) {
    Chain* other = waiting.after;
    int failed;
    while (other != &waiting && other->serial < self->serial && self->at[0].cell) { /* what was recorded before reads what was there before */
        const Cell* value = self->source[0];
        if (other->failed || (other->users && other->runner == PyThreadState_Get()) ||
            (value && WAITS(value) && other == CHAIN_OF(value)) || !tape_reads(other, self->to)) {
            other = other->after;
            continue;
        }
        if (tape_settle(other) < 0) return -1;
        other = waiting.after; /* code of a program's may have run */
    }
    if (self->at[0].cell && put_source(self, 1) < 0) return -1;
    failed = self->at[0].cell ? put_source(self, 0) : 0; /* which may put it where it is to lie */
    if (!failed && self->at[0].cell) failed = put_copy(self);
    if (failed && self->at[0].cell && fails_for_good()) put_finish(self); /* as in NumPy, where nothing is written if the value cannot be had */
    return failed;
}

static int put_settle(Chain* self) {
    int failed = put_write(self);
    return chain_done(self), failed;
}

#endif
