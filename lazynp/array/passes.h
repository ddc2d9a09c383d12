/* The steps of an expression in one pass over its operands, block by block, by NumPy's inner loops.

   In: an expression, and how its operands lie.  Out: its value, and whether a floating-point error was raised.  Promise: what is between the
   steps never lies in memory, but in blocks in the first-level cache. */

#ifndef LAZYNP_PASSES_H
#define LAZYNP_PASSES_H

#include "chain.h"

/* What a thread writes between the steps.  No block touches the next: NumPy's loops would take that for an overlap. */
#define DESK_BLOCKS 128
#define DESK_SIZE 8 /* bytes of an element, at most: of complex numbers a quarter as many are computed at a time */
typedef struct {
    char blocks[DESK_BLOCKS][CHAIN_BLOCK * DESK_SIZE + 64];
    char laid[CHAIN_ARRAYS + 1][SIDES_BYTES]; /* short rows, side by side */
    int minded; /* errors that end the pass */
} Desk;
static Desk first_desk;
static Desk* free_desks[8] = {&first_desk};
static int free_desk_count = 1;

/* A desk that is not in use; NULL where memory is short. */
static Desk* desk_take(void) { return free_desk_count ? free_desks[--free_desk_count] : malloc(sizeof(Desk)); }

static void desk_leave(Desk* desk) {
    if (free_desk_count < 8) free_desks[free_desk_count++] = desk;
    else if (desk != &first_desk) free(desk);
}

static Desk* desks[WORKERS_MOST]; /* of the threads that share a pass, who are one call's at a time; that of its first one is the call's own */
static int desk_count = 1;

/* As many desks as there are threads, if there is memory for so many; how many there are. */
static int desks_ready(int threads) {
    while (desk_count < threads) {
        if ((desks[desk_count] = malloc(sizeof(Desk))) == NULL) break;
        desk_count++;
    }
    return desk_count < threads ? desk_count : threads;
}

/* Axes that follow one another are one: rows are as long as may be. */
static void target_of(Target* to, PyArrayObject* x) {
    to->data = PyArray_BYTES(x), to->size = PyArray_ITEMSIZE(x), to->ndim = 0;
    for (int axis = 0; axis < PyArray_NDIM(x); axis++) {
        npy_intp length = PyArray_DIM(x, axis), stride = PyArray_STRIDE(x, axis);
        if (length == 1) continue;
        if (to->ndim && to->strides[to->ndim - 1] == stride * length) to->dims[to->ndim - 1] *= length, to->strides[to->ndim - 1] = stride;
        else to->dims[to->ndim] = length, to->strides[to->ndim++] = stride;
    }
    if (to->ndim == 0) to->dims[0] = 1, to->strides[0] = to->size, to->ndim = 1;
}

/* Put `n` elements, which follow one another, where those from number `first` on lie. */
static void target_put(const Target* to, npy_intp first, npy_intp n, const char* from) {
    int last = to->ndim - 1;
    npy_intp at[AXES], length = to->dims[last], along = to->strides[last], row = first / length, begin = first % length;
    char* begins = to->data;
    for (int k = last - 1; k >= 0; k--) at[k] = row % to->dims[k], row /= to->dims[k], begins += at[k] * to->strides[k];
    while (n > 0) {
        npy_intp some = length - begin < n ? length - begin : n;
        elements_copy(begins + begin * along, along, from, to->size, some, to->size);
        from += some * to->size, n -= some, begin = 0;
        for (int k = last - 1; k >= 0; k--) {
            begins += to->strides[k];
            if (++at[k] < to->dims[k]) break;
            begins -= to->strides[k] * to->dims[k], at[k] = 0;
        }
    }
}

#include "lag.h"

/* Which steps are computed, and where their results lie: in memory where they are wanted, or (NULL) in blocks. */
typedef struct {
    char wanted[CHAIN_STEPS];
    char* to[CHAIN_STEPS];
    const Target* put[CHAIN_STEPS]; /* where the elements of a block are put, which lie nowhere else */
    int count; /* of results that are wanted */
    int puts;  /* of them that are put */
    char given[CHAIN_STEPS]; /* where it lies, or is put, is not this call's to say */
    int alone; /* some lie in an array of the program's, which no other of its threads may see half written */
    int over;  /* some lie where an operand lies: nothing is computed twice, and errors are collected, in `raised` */
    char is_over[CHAIN_STEPS];
    Lag* lag; /* NULL, or how the one result is put that lies across what it is computed from */
    int* raised; /* of each step */
} Outs;

/* Nothing is wanted yet. */
static inline void outs_begin(Outs* outs) { outs->count = outs->over = outs->puts = outs->alone = 0, outs->lag = NULL; }

/* Put a block of a result where it is to lie. */
static inline void out_put(const Outs* outs, int k, npy_intp first, npy_intp n, const char* from) {
    if (outs->lag) lag_put(outs->lag, first, n, from);
    else target_put(outs->put[k], first, n, from);
}

/* Wants what the wanted steps read, too. */
static void outs_close(const Chain* self, Outs* outs) {
    for (int k = self->steps; k--;)
        for (int o = 0; outs->wanted[k] && o < self->at[k].step.loops->nin; o++)
            if (self->at[k].step.of[o].kind == OF_STEP) outs->wanted[self->at[k].step.of[o].number] = 1;
}

static inline npy_intp step_size(const Chain* self, int k) { return self->at[k].step.loops->of[self->at[k].step.type].size; }

/* Which block each step's result goes to: that of an operand it is the last to read, if an element is as large there; 0 where there are too few. */
static int blocks_assign(const Chain* self, const Outs* outs, int* block) {
    int free_blocks[DESK_BLOCKS], last[CHAIN_STEPS], count = DESK_BLOCKS;
    for (int k = 0; k < count; k++) free_blocks[k] = count - 1 - k;
    for (int k = 0; k < self->steps; k++) {
        last[k] = -1;
        if (!outs->wanted[k]) continue;
        for (int o = 0; o < self->at[k].step.loops->nin; o++)
            if (self->at[k].step.of[o].kind == OF_STEP) last[self->at[k].step.of[o].number] = k;
    }
    for (int k = 0; k < self->steps; k++) {
        const Step* step = &self->at[k].step;
        int taken = -1;
        block[k] = -1;
        if (!outs->wanted[k]) continue;
        for (int o = 0; o < step->loops->nin && outs->to[k] == NULL; o++) {
            int source = step->of[o].kind == OF_STEP ? step->of[o].number : -1;
            if (source >= 0 && taken < 0 && last[source] == k && outs->to[source] == NULL && outs->put[source] == NULL && step_size(self, source) == step_size(self, k)) taken = block[source];
        }
        if (outs->to[k] == NULL && taken < 0 && count == 0) return 0;
        if (outs->to[k] == NULL) block[k] = taken < 0 ? free_blocks[--count] : taken;
        for (int o = 0; o < step->loops->nin; o++) {
            int source = step->of[o].kind == OF_STEP ? step->of[o].number : -1;
            if (source < 0 || last[source] != k || outs->to[source] || outs->put[source] || block[source] == taken) continue;
            free_blocks[count++] = block[source];
            last[source] = -1; /* once, however often it is read */
        }
    }
    return 1;
}

/* How the operands lie: rows of `length` elements, `rows` of them, `within` in each of some planes. */
typedef struct {
    npy_intp rows, length, within;
    npy_intp over[CHAIN_ARRAYS + 1], across[CHAIN_ARRAYS + 1], along[CHAIN_ARRAYS + 1]; /* steps of each array, in bytes: to the next plane, row and element */
} Rows2;

static inline int is_one_plane(const Rows2* of) { return of->rows == of->within; }

/* Where a row of an array lies, from the first one on. */
static inline npy_intp row_at(const Rows2* of, int k, npy_intp row) {
    return is_one_plane(of) ? row * of->across[k] : row / of->within * of->over[k] + row % of->within * of->across[k];
}

/* Rows of arrays over `dims`, of which `steps` says how they lie; axes that follow one another in all of them are one.  0 where more than three are left. */
static int rows_joined(Rows2* of, int arrays, int ndim, const npy_intp* dims, npy_intp steps[][AXES]) {
    npy_intp joined[AXES] = {1};
    int axes = 0;
    for (int axis = 0; axis < ndim; axis++) {
        int follows = axes > 0;
        if (dims[axis] == 1) continue;
        for (int k = 0; k < arrays && follows; k++) follows = steps[k][axes - 1] == steps[k][axis] * dims[axis];
        axes += !follows;
        joined[axes - 1] = follows ? joined[axes - 1] * dims[axis] : dims[axis];
        for (int k = 0; k < arrays; k++) steps[k][axes - 1] = steps[k][axis];
    }
    if (axes > 3) return 0;
    of->length = axes > 0 ? joined[axes - 1] : 1;
    of->within = axes > 1 ? joined[axes - 2] : 1;
    of->rows = axes > 2 ? joined[0] * of->within : of->within;
    for (int k = 0; k < arrays; k++) {
        of->along[k] = axes > 0 ? steps[k][axes - 1] : 0;
        of->across[k] = axes > 1 ? steps[k][axes - 2] : 0;
        of->over[k] = axes > 2 ? steps[k][0] : 0;
    }
    return 1;
}

/* One row, of arrays that lie as their results do. */
static void rows_flat(Rows2* of, const Chain* self) {
    of->rows = of->within = 1, of->length = self->size;
    for (int k = 0; k < self->arrays; k++) of->over[k] = of->across[k] = 0, of->along[k] = PyArray_ITEMSIZE(self->array[k]);
}

static int rows_of(const Chain* self, Rows2* of) {
    npy_intp steps[CHAIN_ARRAYS + 1][AXES], own[AXES], dims[AXES];
    if (self->flat) return rows_flat(of, self), 1;
    for (int k = 0; k < self->arrays; k++) {
        PyArrayObject* x = self->array[k];
        if (!PyArray_ISBEHAVED_RO(x) || !operand_strides(PyArray_NDIM(x), PyArray_DIMS(x), PyArray_STRIDES(x), self->ndim, self->dims, own)) return 0;
        for (int axis = 0; axis < self->ndim; axis++) steps[k][axis] = own[chain_axis(self, axis)];
    }
    for (int axis = 0; axis < self->ndim; axis++) dims[axis] = self->dims[chain_axis(self, axis)];
    return rows_joined(of, self->arrays, self->ndim, dims, steps);
}

/* One step on `n` elements: of block buffers from their start, of arrays from where `at` says.  Whether it raised an error is asked at once: what
   compares and negates clears the flags that the step before it has set. */
static inline int step_run(const Chain* self, int k, const int* block, char* const* at, const Rows2* of, Desk* desk, char* const* out, npy_intp n) {
    const Step* step = &self->at[k].step;
    Loop* loop = &step->loops->of[step->type];
    char* args[OPERANDS + 1];
    npy_intp steps[OPERANDS + 1], dims[1] = {n};
    int nin = step->loops->nin;
    for (int o = 0; o < nin; o++) {
        int number = step->of[o].number;
        switch (step->of[o].kind) {
        case OF_ARRAY: args[o] = at[number], steps[o] = of->along[number]; break;
        case OF_NUMBER: args[o] = (char*)&self->value[number], steps[o] = 0; break;
        default: args[o] = out[number] ? out[number] : desk->blocks[block[number]], steps[o] = step_size(self, number);
        }
    }
    args[nin] = out[k] ? out[k] : desk->blocks[block[k]], steps[nin] = loop->size;
    loop->function(args, dims, steps, loop->data);
    return flags_raised(loop->basic) & desk->minded;
}

/* All steps of a block, whose first element has the number `first` in the result. */
static inline int steps_run(const Chain* self, const Outs* outs, const int* block, char* const* at, const Rows2* of, Desk* desk, char* const* out, npy_intp first, npy_intp n) {
    for (int k = 0; k < self->steps; k++) {
        int errors = outs->wanted[k] ? step_run(self, k, block, at, of, desk, out, n) : 0;
        if (errors == 0) continue;
        if (!outs->over) return 1;
        PIECES_NOTE(&outs->raised[k], errors);
        flags_clear(0);
    }
    for (int k = 0; outs->puts && k < self->steps; k++)
        if (outs->put[k]) out_put(outs, k, first, n, desk->blocks[block[k]]);
    return 0;
}

/* The elements in one row, from `at` on, of which the first one has the number `first`; whether an error was raised.  Of complex numbers fewer are computed at a time: two operands, what is between
   and the result are to stay in the first-level cache. */
static inline int row_run(const Chain* self, const Outs* outs, const int* block, char** at, const Rows2* of, Desk* desk, char** out, npy_intp first, npy_intp length) {
    npy_intp most = self->wide && chain_sizes.block > 3 ? chain_sizes.block / 4 : chain_sizes.block;
    for (npy_intp done = 0; done < length; done += most) {
        npy_intp n = length - done < most ? length - done : most;
        if (steps_run(self, outs, block, at, of, desk, out, first + done, n)) return 1;
        for (int k = 0; k < self->arrays; k++) at[k] += n * of->along[k];
        for (int k = 0; k < self->steps; k++)
            if (out[k]) out[k] += n * step_size(self, k);
    }
    return 0;
}

/* Whether all elements are as small as what lays rows side by side knows. */
static int sides_fit(const Chain* self) {
    for (int k = 0; k < self->steps; k++)
        if (self->at[k].step.loops->of[self->at[k].step.type].size > SIDES_SIZE) return 0;
    return !self->wide;
}

/* How an array lies in rows, as `lies` has it. */
static int lies_in_rows(const Rows2* of, int k, npy_intp size) {
    npy_intp dims[3] = {of->rows / of->within, of->within, of->length}, steps[3] = {of->over[k], of->across[k], of->along[k]};
    return lies(3, dims, steps, size);
}

/* Whether laying rows side by side costs less than the calls of loops that it saves, each of which costs as much as copying some ninety elements; what
   is one element or one row for all is laid once. */
static int sides_pay(const Chain* self, const Outs* outs, const Rows2* of) {
    npy_intp calls = 0, copied = 0;
    for (int k = 0; k < self->steps; k++) calls += outs->wanted[k];
    for (int k = 0; k < self->arrays; k++) copied += lies_in_rows(of, k, PyArray_ITEMSIZE(self->array[k])) == LIES_APART;
    return copied * (of->length + SIDES_BEGUN) < calls * SIDES_CALL;
}

/* Lay some rows of an array, from the one with number `row` on, side by side. */
static void sides_laid(char* to, const char* from, const Rows2* of, int k, npy_intp row, npy_intp rows, npy_intp size) {
    while (rows > 0) { /* those of a plane at a time */
        npy_intp some = of->within - row % of->within;
        if (some > rows) some = rows;
        sides(to, from + row_at(of, k, row), some, of->length, of->across[k], of->along[k], size);
        to += some * of->length * size, row += some, rows -= some;
    }
}

/* Arrays with short rows, laid side by side, block by block. */
typedef struct {
    const Chain* chain;
    const Rows2* of;
    Desk* desk;
    npy_intp most; /* rows in a block */
    int how[CHAIN_ARRAYS + 1];
    char *from[CHAIN_ARRAYS + 1], *at[CHAIN_ARRAYS + 1]; /* the arrays, and the block's elements of them */
    Rows2 flat;                                        /* how those lie */
} Sides;

/* How arrays lie when they are laid side by side: one element for all, or like the result. */
static void sides_flat(const Chain* self, const Rows2* of, int* how, Rows2* flat) {
    flat->rows = flat->within = 1, flat->length = self->size;
    for (int k = 0; k < self->arrays; k++) {
        npy_intp size = PyArray_ITEMSIZE(self->array[k]);
        how[k] = lies_in_rows(of, k, size);
        flat->over[k] = flat->across[k] = 0, flat->along[k] = how[k] == LIES_ONE ? 0 : size;
    }
}

/* `count` rows are to come. */
static void sides_begin(Sides* self, const Chain* chain, const Rows2* of, Desk* desk, npy_intp block, npy_intp count) {
    self->chain = chain, self->of = of, self->desk = desk, self->most = of->length < block ? block / of->length : 1;
    sides_flat(chain, of, self->how, &self->flat);
    for (int k = 0; k < chain->arrays; k++) {
        self->from[k] = PyArray_BYTES(chain->array[k]);
        self->at[k] = self->how[k] == LIES_ONE ? self->from[k] : desk->laid[k];
        if (self->how[k] == LIES_SAME) sides(desk->laid[k], self->from[k], count < self->most ? count : self->most, of->length, 0, of->along[k], PyArray_ITEMSIZE(chain->array[k]));
    }
}

static void sides_next(Sides* self, npy_intp row, npy_intp rows) {
    for (int k = 0; k < self->chain->arrays; k++)
        if (self->how[k] == LIES_APART) sides_laid(self->desk->laid[k], self->from[k], self->of, k, row, rows, PyArray_ITEMSIZE(self->chain->array[k]));
        else if (self->how[k] == LIES_DENSE) self->at[k] = self->from[k] + row_at(self->of, k, row);
}

/* The same where rows are short, as many at a time as a block holds, side by side: `count` rows, from number `row` on. */
static int sides_pass(const Chain* self, const Outs* outs, const int* block, const Rows2* of, Desk* desk, char** out, npy_intp row, npy_intp count) {
    Sides sides;
    sides_begin(&sides, self, of, desk, chain_sizes.block, count);
    for (npy_intp past = row + count; row < past; row += sides.most) {
        npy_intp rows = past - row < sides.most ? past - row : sides.most;
        sides_next(&sides, row, rows);
        if (steps_run(self, outs, block, sides.at, &sides.flat, desk, out, row * of->length, rows * of->length)) return 1;
        for (int k = 0; k < self->steps; k++)
            if (out[k]) out[k] += rows * of->length * step_size(self, k);
    }
    return 0;
}

/* All of it --------------------------------------------------------------------------------------------------------------------------- */

#define PASS_NS 0.25       /* nanoseconds that one step of an element takes, where it was not measured */
#define PASS_PIECE 8192    /* elements that a thread takes at a time, at most, or a row */

/* A pass over a tape's operands, and who computes a piece of it: whole rows, or elements where there is one row. */
typedef struct {
    Pieces pieces;
    const Chain* chain;
    const Outs* outs;
    const Rows2* of;
    const int* block;
    Desk* desk;
    int sides;
} Pass;

/* `n` elements of a row, from number `begin` on. */
static int row_part(const Pass* self, Desk* desk, npy_intp row, npy_intp begin, npy_intp n) {
    const Chain* chain = self->chain;
    const Rows2* of = self->of;
    npy_intp first = row * of->length + begin;
    char *at[CHAIN_ARRAYS + 1], *out[CHAIN_STEPS];
    for (int k = 0; k < chain->steps; k++) out[k] = self->outs->to[k] ? self->outs->to[k] + first * step_size(chain, k) : NULL;
    for (int k = 0; k < chain->arrays; k++) at[k] = PyArray_BYTES(chain->array[k]) + row_at(of, k, row) + begin * of->along[k];
    return row_run(chain, self->outs, self->block, at, of, desk, out, first, n);
}

static int pass_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const Pass* self = (const Pass*)pieces;
    const Chain* chain = self->chain;
    const Rows2* of = self->of;
    Desk* desk = thread ? desks[thread] : self->desk;
    char* out[CHAIN_STEPS];
    desk->minded = pieces->minded;
    if (of->rows == 1) return row_part(self, desk, 0, first, count);
    if (self->sides) {
        for (int k = 0; k < chain->steps; k++) out[k] = self->outs->to[k] ? self->outs->to[k] + first * of->length * step_size(chain, k) : NULL;
        return sides_pass(chain, self->outs, self->block, of, desk, out, first, count);
    }
    for (npy_intp row = first; row < first + count; row++)
        if (row_part(self, desk, row, 0, of->length)) return 1;
    return 0;
}

/* Bytes of memory that a tape reads and writes, views of the same memory counted once. */
static npy_intp pass_memory(const Chain* self, const Outs* outs) {
    const char *begin[CHAIN_ARRAYS + 1], *end[CHAIN_ARRAYS + 1];
    npy_intp bytes = 0;
    int count = 0;
    for (int k = 0; k < self->steps; k++)
        if (outs->to[k] || outs->put[k]) bytes += self->size * step_size(self, k);
    for (int k = 0; k < self->arrays; k++) {
        const char *low = PyArray_BYTES(self->array[k]), *high = low;
        int at = 0;
        for (int axis = 0; axis < PyArray_NDIM(self->array[k]); axis++) {
            npy_intp span = (PyArray_DIM(self->array[k], axis) - 1) * PyArray_STRIDE(self->array[k], axis);
            if (span < 0) low += span;
            else high += span;
        }
        while (at < count && (high < begin[at] || low > end[at])) at++;
        if (at < count) {
            if (low < begin[at]) begin[at] = low;
            if (high > end[at]) end[at] = high;
        } else {
            begin[count] = low, end[count++] = high;
        }
    }
    while (count--) bytes += end[count] - begin[count];
    return bytes;
}

/* Bytes that a tape reads and writes. */
static npy_intp pass_bytes(const Chain* self, const Outs* outs) {
    npy_intp bytes = 0;
    for (int k = 0; k < self->steps; k++)
        if (outs->to[k] || outs->put[k]) bytes += self->size * step_size(self, k);
    for (int k = 0; k < self->arrays; k++) bytes += PyArray_NBYTES(self->array[k]);
    return bytes;
}

/* Nanoseconds that it takes one thread. */
static double pass_ns(const Chain* self, const Outs* outs, int sides) {
    double ns = sides ? SIDES_NS : 0;
    for (int k = 0; k < self->steps; k++) {
        const Loop* loop = &self->at[k].step.loops->of[self->at[k].step.type];
        if (outs->wanted[k]) ns += loop->timed == LONG_TIMED && loop->ns > PASS_NS ? (double)loop->ns : PASS_NS;
    }
    return ns * (double)self->size;
}

static int pass_begin(Pass* pass, const Chain* self, const Outs* outs, const Rows2* of, int* block, int minded) {
    pass->chain = self, pass->outs = outs, pass->of = of, pass->block = block, pass->sides = 0;
    if (self->steps == 1 && outs->puts == 0) block[0] = -1; /* it is wanted, or nothing runs */
    else if (!blocks_assign(self, outs, block)) return 0;
    pieces_of(&pass->pieces, pass_piece, of->rows == 1 ? of->length : of->rows, of->rows == 1 ? 1 : of->length, PASS_PIECE, !outs->over /* what the old unit has of earlier work would be told of */, minded);
    return 1;
}

#define SIGNALS_FROM 16384 /* elements of a tape, after which they run as well */

#define PAUSED_MOST 64 /* tapes that a thread computes, one of which wants another */

/* Let handlers of signals run.  What they ask for, or write, has the tapes that this thread computes, or is about to, computed as if no thread did: a write would not
   wait for them else.  -1 where a handler raises. */
static int handlers_run(void) {
    PyThreadState* own = PyThreadState_Get();
    Chain* held[PAUSED_MOST];
    int count = 0, failed;
    for (Chain* self = waiting.after; self != &waiting && count < PAUSED_MOST; self = self->after)
        if (self->users && self->runner == own) held[count++] = self, self->users++, self->runner = NULL;
    failed = PyErr_CheckSignals();
    while (count) {
        Chain* self = held[--count];
        self->runner = own;
        if (--self->users == 0 && self->cells == 0) chain_free(self);
    }
    return failed;
}

/* In the middle of a tape; not 0, perhaps with an exception, where the rest is not wanted any more. */
static int tape_pause(void* of) { return handlers_run() || ((Chain*)of)->cells == 0; }

/* Compute a tape; whether an error was raised, or memory is short. */
static int pass_run(Chain* self, const Outs* outs, const Rows2* of, int minded) {
    int block[CHAIN_STEPS], threads = 1, raised;
    Pass pass;
    double ns = 0;
    if (!pass_begin(&pass, self, outs, of, block, minded)) return 1;
    if (of->rows == 1 && self->size <= chain_sizes.block / (self->wide ? 4 : 1)) { /* one block */
        char *at[CHAIN_ARRAYS + 1], *out[CHAIN_STEPS];
        if ((pass.desk = desk_take()) == NULL) return 1;
        pass.desk->minded = minded;
        for (int k = 0; k < self->arrays; k++) at[k] = PyArray_BYTES(self->array[k]);
        for (int k = 0; k < self->steps; k++) out[k] = outs->to[k];
        flags_clear(!self->whole && !outs->over);
        if (outs->lag && !lag_begin(outs->lag, &pass.pieces, 1)) return desk_leave(pass.desk), 1;
        raised = steps_run(self, outs, block, at, of, pass.desk, out, 0, self->size);
        if (outs->lag) lag_end(outs->lag);
        desk_leave(pass.desk);
        return raised;
    }
    pass.sides = of->rows > 1 && of->length < chain_sizes.row && sides_fit(self) && sides_pay(self, outs, of);
    if (self->size >= LONG_FROM) ns = pass_ns(self, outs, pass.sides), threads = desks_ready(pieces_threads(ns, pass_bytes(self, outs)));
    if ((pass.desk = desk_take()) == NULL) return 1;
    pass.pieces.pause = tape_pause, pass.pieces.of = self;
    if (outs->lag && !(threads = lag_begin(outs->lag, &pass.pieces, threads))) return desk_leave(pass.desk), 1;
    raised = pieces_do(&pass.pieces, threads, ns);
    if (outs->lag) lag_end(outs->lag);
    desk_leave(pass.desk);
    return raised;
}

#endif
