/* The steps of an expression in one pass over its operands, block by block, by NumPy's inner loops.

   In: an expression, and how its operands lie.  Out: its value, and whether a floating-point error was raised.  Promise: what is between the
   steps never lies in memory, but in blocks in the first-level cache. */

#ifndef LAZYNP_PASSES_H
#define LAZYNP_PASSES_H

#include "chain.h"

/* What a thread writes between the steps.  No block touches the next: NumPy's loops would take that for an overlap. */
typedef struct {
    char blocks[CHAIN_STEPS + 1][CHAIN_BLOCK * CHAIN_SIZE + 64];
    char laid[CHAIN_STEPS + 1][SIDES_BYTES]; /* short rows, side by side */
    int minded; /* errors that end the pass */
} Desk;
static Desk first_desk;
static Desk* free_desks[8] = {&first_desk};
static int free_desk_count = 1;

/* A desk that nobody else is at; NULL where memory is short. */
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

/* Which block each step's result goes to: that of an operand it is the last to read, if an element is as large there. */
static void blocks_assign(const Chain* self, int* block) {
    int free_blocks[CHAIN_STEPS + 1], count = CHAIN_STEPS + 1;
    for (int k = 0; k < count; k++) free_blocks[k] = count - 1 - k;
    for (int k = 0; k < self->steps; k++) {
        const Step* step = &self->step[k];
        npy_intp size = step->loops->of[step->type].size;
        int taken = -1;
        for (int o = 0; o < step->loops->nin; o++) {
            const Step* source = step->of[o].kind == OF_STEP ? &self->step[step->of[o].number] : NULL;
            if (source && taken < 0 && source->loops->of[source->type].size == size) taken = block[step->of[o].number];
        }
        block[k] = taken < 0 ? free_blocks[--count] : taken;
        for (int o = 0; o < step->loops->nin; o++)
            if (step->of[o].kind == OF_STEP && block[step->of[o].number] != taken) free_blocks[count++] = block[step->of[o].number];
    }
}

/* How the operands lie: rows of `length` elements, `rows` of them. */
typedef struct {
    npy_intp rows, length;
    npy_intp across[CHAIN_STEPS + 1], along[CHAIN_STEPS + 1]; /* steps of each array, in bytes */
} Rows2;

static int rows_of(const Chain* self, Rows2* of) {
    int flat = 1;
    for (int k = 0; k < self->arrays; k++) flat = flat && PyArray_SIZE(self->array[k]) == self->size && PyArray_IS_C_CONTIGUOUS(self->array[k]);
    of->rows = flat || self->ndim == 1 ? 1 : self->dims[0];
    of->length = flat ? self->size : self->dims[self->ndim - 1];
    for (int k = 0; k < self->arrays; k++) {
        npy_intp steps[AXES] = {0}, size = PyArray_ITEMSIZE(self->array[k]);
        if (!flat && (self->ndim > 2 || !operand_steps(self->array[k], self->ndim, self->dims, steps))) return 0;
        of->across[k] = flat || self->ndim == 1 ? 0 : steps[0];
        of->along[k] = flat ? size : steps[self->ndim - 1];
    }
    if (of->length == 1) { /* a column is a row */
        of->length = of->rows, of->rows = 1;
        memcpy(of->along, of->across, sizeof(of->along));
    }
    return 1;
}

/* Whether all arrays lie in rows that are equally far apart, in elements: then they are computed as if the gaps were elements, too. */
static npy_intp apart_in_all(const Chain* self, const Rows2* of) {
    npy_intp apart = 0;
    for (int k = 0; k < self->arrays; k++) {
        npy_intp size = PyArray_ITEMSIZE(self->array[k]), found = of->across[k] / size;
        if (of->along[k] != size || found * size != of->across[k] || (k && found != apart)) return 0;
        apart = found;
    }
    return apart >= of->length && apart - of->length <= of->length / 4 ? apart : 0;
}

/* One step on `n` elements: of block buffers from their start, of arrays from where `at` says.  Whether it raised an error is asked at once: what
   compares and negates clears the flags that the step before it has set. */
static inline int step_run(const Chain* self, int k, const int* block, char* const* at, const Rows2* of, Desk* desk, char* to, npy_intp n) {
    const Step* step = &self->step[k];
    Loop* loop = &step->loops->of[step->type];
    char* args[3];
    npy_intp steps[3], dims[1] = {n};
    int nin = step->loops->nin;
    for (int o = 0; o < nin; o++) {
        int number = step->of[o].number;
        switch (step->of[o].kind) {
        case OF_ARRAY: args[o] = at[number], steps[o] = of->along[number]; break;
        case OF_NUMBER: args[o] = (char*)&self->value[number], steps[o] = 0; break;
        default: args[o] = desk->blocks[block[number]], steps[o] = self->step[number].loops->of[self->step[number].type].size;
        }
    }
    args[nin] = to, steps[nin] = loop->size;
    loop->function(args, dims, steps, loop->data);
    return flags_raised(1) & desk->minded;
}

/* The elements in one row, from `at` on; whether an error was raised.  Of complex numbers fewer are computed at a time: two operands, what is between
   and the result are to stay in the first-level cache. */
static inline int row_run(const Chain* self, const int* block, char** at, const Rows2* of, Desk* desk, char* to, npy_intp size, npy_intp length) {
    int last = self->steps - 1;
    npy_intp most = PyTypeNum_ISCOMPLEX(self->step[0].type) && chain_sizes.block > 3 ? chain_sizes.block / 4 : chain_sizes.block;
    for (npy_intp done = 0; done < length; done += most) {
        npy_intp n = length - done < most ? length - done : most;
        for (int k = 0; k < last; k++)
            if (step_run(self, k, block, at, of, desk, desk->blocks[block[k]], n)) return 1;
        if (step_run(self, last, block, at, of, desk, to + done * size, n)) return 1;
        for (int k = 0; k < self->arrays; k++) at[k] += n * of->along[k];
    }
    return 0;
}

/* The same where rows are short and lie equally far apart, as if they were one: `rows` of them; `to` gets what is no gap. */
static int gaps_run(const Chain* self, const int* block, char** at, const Rows2* of, Desk* desk, char* to, npy_intp size, npy_intp apart, npy_intp rows) {
    npy_intp span = (rows - 1) * apart + of->length, row = 0;
    int last = self->steps - 1;
    for (npy_intp done = 0; done < span; done += chain_sizes.block) {
        npy_intp n = span - done < chain_sizes.block ? span - done : chain_sizes.block;
        for (int k = 0; k <= last; k++)
            if (step_run(self, k, block, at, of, desk, desk->blocks[block[k]], n)) return 1;
        for (; row < rows; row++) { /* the pieces of rows in this block */
            npy_intp from = row * apart, end = from + of->length, first = from > done ? from : done, past = end < done + n ? end : done + n;
            if (first < past) memcpy(to + (row * of->length + first - from) * size, desk->blocks[block[last]] + (first - done) * size, (size_t)((past - first) * size));
            if (end > done + n) break;
        }
        for (int k = 0; k < self->arrays; k++) at[k] += n * of->along[k];
    }
    return 0;
}

/* Whether all elements are as small as what lays rows side by side knows. */
static int sides_fit(const Chain* self) {
    for (int k = 0; k < self->steps; k++)
        if (self->step[k].loops->of[self->step[k].type].size > SIDES_SIZE || PyTypeNum_ISCOMPLEX(self->step[k].type)) return 0;
    return 1;
}

/* The same where rows are short, as many at a time as a block holds, side by side: `count` rows, which begin at `begin`. */
static int sides_pass(const Chain* self, const int* block, char* const* begin, const Rows2* of, Desk* desk, char* to, npy_intp size, npy_intp count) {
    npy_intp n = of->length, most = n < chain_sizes.block ? chain_sizes.block / n : 1, dims[2] = {of->rows, n};
    int last = self->steps - 1, how[CHAIN_STEPS + 1];
    char *from[CHAIN_STEPS + 1], *at[CHAIN_STEPS + 1];
    Rows2 flat = {.rows = 1};
    for (int k = 0; k < self->arrays; k++) {
        npy_intp steps[2] = {of->across[k], of->along[k]}, bytes = PyArray_ITEMSIZE(self->array[k]);
        from[k] = begin[k];
        how[k] = lies(2, dims, steps, bytes);
        at[k] = how[k] == LIES_DENSE || how[k] == LIES_ONE ? from[k] : desk->laid[k];
        flat.along[k] = how[k] == LIES_ONE ? 0 : bytes;
        if (how[k] == LIES_SAME) sides(desk->laid[k], from[k], count < most ? count : most, n, 0, of->along[k], bytes);
    }
    for (npy_intp first = 0; first < count; first += most) {
        npy_intp rows = count - first < most ? count - first : most;
        for (int k = 0; k < self->arrays; k++)
            if (how[k] == LIES_APART) sides(desk->laid[k], from[k] + first * of->across[k], rows, n, of->across[k], of->along[k], PyArray_ITEMSIZE(self->array[k]));
            else if (how[k] == LIES_DENSE) at[k] = from[k] + first * of->across[k];
        for (int k = 0; k < last; k++)
            if (step_run(self, k, block, at, &flat, desk, desk->blocks[block[k]], rows * n)) return 1;
        if (step_run(self, last, block, at, &flat, desk, to + first * n * size, rows * n)) return 1;
    }
    return 0;
}

/* All of it --------------------------------------------------------------------------------------------------------------------------- */

#define PASS_NS 0.25       /* nanoseconds that one step of an element takes, where nobody has measured */
#define PASS_PIECE 8192    /* elements that a thread takes at a time, at most, or a row */

/* A pass over an expression's operands, and who computes a piece of it: whole rows, or elements where there is one row. */
typedef struct {
    Pieces pieces;
    const Chain* chain;
    const Rows2* of;
    const int* block;
    Desk* desk;
    char* to;
    npy_intp size, apart; /* bytes of an element of the result; elements from row to row where all lie with equal gaps */
    int sides;
} Pass;

static int pass_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const Pass* self = (const Pass*)pieces;
    const Chain* chain = self->chain;
    const Rows2* of = self->of;
    Desk* desk = thread ? desks[thread] : self->desk;
    desk->minded = pieces->minded;
    char *begin[CHAIN_STEPS + 1], *at[CHAIN_STEPS + 1], *to = self->to + first * (of->rows == 1 ? 1 : of->length) * self->size;
    for (int k = 0; k < chain->arrays; k++) at[k] = begin[k] = PyArray_BYTES(chain->array[k]) + first * (of->rows == 1 ? of->along[k] : of->across[k]);
    if (of->rows == 1) return row_run(chain, self->block, at, of, desk, to, self->size, count);
    if (self->apart) return gaps_run(chain, self->block, at, of, desk, to, self->size, self->apart, count);
    if (self->sides) return sides_pass(chain, self->block, begin, of, desk, to, self->size, count);
    for (npy_intp row = 0; row < count; row++) {
        for (int k = 0; k < chain->arrays; k++) at[k] = begin[k] + row * of->across[k];
        if (row_run(chain, self->block, at, of, desk, to + row * of->length * self->size, self->size, of->length)) return 1;
    }
    return 0;
}

/* Bytes that an expression reads and writes. */
static npy_intp pass_bytes(const Chain* self) {
    npy_intp bytes = self->size * self->step[self->steps - 1].loops->of[self->step[self->steps - 1].type].size;
    for (int k = 0; k < self->arrays; k++) bytes += PyArray_NBYTES(self->array[k]);
    return bytes;
}

/* Nanoseconds that it takes one thread. */
static double pass_ns(const Chain* self, int sides) {
    double ns = sides ? SIDES_NS : 0;
    for (int k = 0; k < self->steps; k++) {
        const Loop* loop = &self->step[k].loops->of[self->step[k].type];
        ns += loop->timed == LONG_TIMED && loop->ns > PASS_NS ? (double)loop->ns : PASS_NS;
    }
    return ns * (double)self->size;
}

/* Compute an expression into `to`; whether an error was raised, or memory is short. */
static int pass_run(const Chain* self, const Rows2* of, char* to, npy_intp size, int minded) {
    int block[CHAIN_STEPS], threads = 1, raised;
    Pass pass = {.chain = self, .of = of, .block = block, .to = to, .size = size};
    double ns = 0;
    if (of->rows > 1 && of->length < chain_sizes.block) pass.apart = apart_in_all(self, of);
    pass.sides = of->rows > 1 && !pass.apart && of->length < chain_sizes.row && sides_fit(self);
    blocks_assign(self, block);
    if (self->size >= LONG_FROM) ns = pass_ns(self, pass.sides), threads = desks_ready(pieces_threads(ns, pass_bytes(self)));
    if ((pass.desk = desk_take()) == NULL) return 1;
    pass.pieces.compute = pass_piece, pass.pieces.basic = 1, pass.pieces.minded = minded, pass.pieces.piece = PASS_PIECE;
    pass.pieces.whole = of->rows == 1 ? of->length : of->rows, pass.pieces.unit = of->rows == 1 ? 1 : of->length;
    raised = pieces_do(&pass.pieces, threads, ns);
    desk_leave(pass.desk);
    return raised;
}

#endif
