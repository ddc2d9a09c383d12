/* Sums of many numbers, and of expressions: block by block, by several threads, in NumPy's order; extremes as well.

   In: an array in memory, or a tape of which one result goes with its sum.  Out: the sum, to the bit of NumPy's.  Promise: what is summed never lies in memory,
   but in blocks in the first-level cache; bits depend neither on the blocks nor on who sums them.

   NumPy halves what is to be added until at most 128 elements are left: the halves of the halves are what is computed at a time here, and given to its loop.
   For extremes the order does not matter, but among zeros and among NaN, which are left to NumPy.

   The sum, mean or extreme of an expression that goes with it (`((a - b) ** 2).sum()`) is computed with it, block by block, from 8193 elements on
   (`sums.h`); so are deviations. NumPy halves what it adds until 128 elements are left, so blocks are the halves of halves, parts of that tree are
   what several threads take, and the bits are NumPy's. What else the program has of that tape is stored by the same pass. Extremes that are zero or
   NaN are left to NumPy: which of several it names depends on its vectors. */

#ifndef LAZYNP_SUMS_H
#define LAZYNP_SUMS_H

#include "chains.h"

#define SUM_BLOCK CHAIN_BLOCK /* elements that are summed at a time, at most; more than NumPy halves no further */
#define SUM_PIECE 8192        /* elements of a part, at most: what a thread takes */
#define SUM_NS 0.15           /* nanoseconds that an element takes */

/* Elements in the first half of what is summed. */
static inline npy_intp sum_half(npy_intp n) { return n / 2 - n / 2 % 8; }

typedef struct {
    npy_intp first, n;
    Value sum;
} SumPart;

typedef struct {
    Pieces pieces;
    int type, from_zero; /* else from the first element */
    Loop* loop;
    SumPart* part;
    npy_intp parts, most; /* and elements of one, at most */
    const char* from;     /* what is summed; NULL: what a tape computes */
    double apart;         /* and from which number it is apart, of which the squares are summed */
    int squares, order;  /* whose: see `order_of` */
    char* chunk;         /* the sums of all chunks, in the kernels' order */
    Chain* chain;
    const Outs* outs;
    const Rows2* of;
    const int* block;
    RowsFunction function; /* NULL: NumPy's loops compute it */
    Desk* desk;            /* of the first thread */
    int summed;            /* which step */
} SumRun;

static void sum_parts(SumRun* self, npy_intp first, npy_intp n) {
    npy_intp half = sum_half(n);
    if (n <= self->most) {
        self->part[self->parts].first = first, self->part[self->parts++].n = n;
        return;
    }
    sum_parts(self, first, half);
    sum_parts(self, first + half, n - half);
}

static inline void sum_two(const SumRun* self, Value* one, Value* two) {
    char* args[3] = {(char*)one, (char*)two, (char*)one};
    npy_intp dims[1] = {1}, steps[3] = {self->loop->size, self->loop->size, self->loop->size};
    self->loop->function(args, dims, steps, self->loop->data);
}

static Value sum_of_parts(const SumRun* self, npy_intp n, npy_intp* next) {
    npy_intp half = sum_half(n);
    Value one, two;
    if (n <= self->most) return self->part[(*next)++].sum;
    one = sum_of_parts(self, half, next), two = sum_of_parts(self, n - half, next);
    sum_two(self, &one, &two);
    return one;
}

/* Some elements of a tape's results, of which those that are summed go to `to`; whether an error was raised. */
static int sum_computed(const SumRun* self, npy_intp first, npy_intp n, char* to, Desk* desk) {
    const Chain* chain = self->chain;
    const Rows2* of = self->of;
    char *at[CHAIN_ARRAYS + 1], *out[CHAIN_STEPS];
    for (npy_intp done = 0; done < n;) {
        npy_intp row = (first + done) / of->length, column = (first + done) % of->length, some = of->length - column;
        int count = 0;
        if (some > n - done) some = n - done;
        for (int k = 0; k < chain->arrays; k++) at[k] = PyArray_BYTES(chain->array[k]) + row_at(of, k, row) + column * of->along[k];
        for (int k = 0; k < chain->steps; k++) {
            char* memory = self->outs->to[k];
            if (k == self->summed) memory = to + done * step_size(chain, k);
            else if (memory) memory += (first + done) * step_size(chain, k);
            if (self->function == NULL) out[k] = memory;
            else if (memory) out[count++] = memory;
        }
        if (self->function) self->function(at, of->across, of->along, chain->value, out, 1, some);
        else if (row_run(chain, self->outs, self->block, at, of, desk, out, 0 /* nothing is put */, some)) return 1;
        done += some;
    }
    return 0;
}

/* The sums of chunks in the kernels' order, from element `first` on; whether an error was raised. */
static int chunks_some(const SumRun* self, npy_intp first, npy_intp n, char* room, Desk* desk) {
    npy_intp size = self->loop->size;
    for (npy_intp done = 0, some; done < n; done += some, first += some) {
        const char* from = self->from ? self->from + first * size : room;
        char* to = self->chunk + first / ORDERED_CHUNK * size;
        some = n - done < SUM_BLOCK ? n - done : SUM_BLOCK;
        if (self->from == NULL && sum_computed(self, first, some, room, desk)) return 1;
        if (self->type == NPY_FLOAT) (self->squares ? ordered_chunks_squares_float : ordered_chunks_add_float)((const float*)from, some, 0, (float)self->apart, (float*)to);
        else (self->squares ? ordered_chunks_squares_double : ordered_chunks_add_double)((const double*)from, some, 0, self->apart, (double*)to);
        if (self->from == NULL && flags_raised(1) & self->pieces.minded) return 1; /* the next steps clear them */
    }
    return 0;
}

/* The sums of chunks combined, as a binary counter does: powers of two pairwise, the rest from the short end. */
#define CHUNKS_COUNTED(NAME, TYPE)                                                            \
    static TYPE NAME(const TYPE* chunk, npy_intp chunks) {                                    \
        TYPE stack[ORDERED_LEVELS], total = 0;                                                \
        for (npy_intp k = 0; k < chunks; k++) {                                               \
            TYPE value = chunk[k];                                                            \
            int level = 0;                                                                    \
            for (; k >> level & 1; level++) value = stack[level] + value;                     \
            stack[level] = value;                                                             \
        }                                                                                     \
        for (int level = 0; chunks >> level; level++)                                         \
            if (chunks >> level & 1) total = stack[level] + total;                            \
        return total;                                                                         \
    }
CHUNKS_COUNTED(chunks_counted_float, float)
CHUNKS_COUNTED(chunks_counted_double, double)
#undef CHUNKS_COUNTED

/* The sum of some elements that NumPy sums by themselves. */
static int sum_some(const SumRun* self, npy_intp first, npy_intp n, char* room, Desk* desk, Value* sum) {
    npy_intp size = self->loop->size;
    char *from = self->from ? (char*)self->from + first * size : room, *args[3] = {(char*)sum, NULL, (char*)sum};
    npy_intp dims[1] = {n}, steps[3] = {0, size, 0};
    if (n > SUM_BLOCK && (self->squares || self->from == NULL)) {
        npy_intp half = sum_half(n);
        Value second;
        if (sum_some(self, first, half, room, desk, sum) || sum_some(self, first + half, n - half, room, desk, &second)) return 1;
        return sum_two(self, sum, &second), 0;
    }
    if (self->from == NULL && sum_computed(self, first, n, room, desk)) return 1;
    memset(sum, 0, sizeof(*sum));
    if (self->squares || self->from_zero) {
        if (self->type == NPY_FLOAT) sum->f = 0 + row_sum_float((const float*)from, n, 0);
        else sum->d = 0 + (self->squares ? row_squares_double((const double*)from, n, self->apart) : row_sum_double((const double*)from, n, 0));
        return self->from == NULL && flags_raised(1) & self->pieces.minded; /* the next steps clear them */
    }
    args[1] = from;
    memcpy(sum, from, (size_t)size), args[1] += size, dims[0]--;
    self->loop->function(args, dims, steps, self->loop->data);
    return 0;
}

static int sum_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const SumRun* self = (const SumRun*)pieces;
    Desk* desk = thread ? desks[thread] : self->desk;
    double room[SUM_BLOCK];
    if (desk) desk->minded = pieces->minded;
    if (self->chunk) {
        npy_intp from = first * SUM_BLOCK, past = (first + count) * SUM_BLOCK;
        return chunks_some(self, from, (past < self->most ? past : self->most) - from, (char*)room, desk);
    }
    for (npy_intp k = first; k < first + count; k++)
        if (sum_some(self, self->part[k].first, self->part[k].n, (char*)room, desk, &self->part[k].sum)) return 1;
    return 0;
}

/* Sum `n` elements, which takes one thread `ns` and reads so many bytes; 0, perhaps with an exception, where an error is raised that is minded. */
static int sum_run(SumRun* self, npy_intp n, double ns, npy_intp bytes, int minded, Value* sum) {
    npy_intp next = 0;
    int threads = n < LONG_FROM ? 1 : pieces_threads(ns, bytes), raised;
    Value zero;
    if (self->from == NULL) {
        threads = desks_ready(threads);
        if ((self->desk = desk_take()) == NULL) return 0;
    }
    self->most = self->order == KERNELS_ORDER ? n : n / 1024 > SUM_PIECE ? n / 1024 : SUM_PIECE;
    if (self->order == KERNELS_ORDER) self->chunk = PyMem_Malloc((size_t)((n / ORDERED_CHUNK + 1) * self->loop->size));
    else self->part = PyMem_Malloc((size_t)(2 * n / self->most + 2) * 2 * sizeof(SumPart)); /* no part is less than half as long, but for what rounding takes */
    if (self->part == NULL && self->chunk == NULL) {
        if (self->desk) desk_leave(self->desk);
        return 0;
    }
    self->parts = 0;
    if (self->part) sum_parts(self, 0, n);
    pieces_of(&self->pieces, sum_piece, self->part ? self->parts : (n + SUM_BLOCK - 1) / SUM_BLOCK, self->part ? 1 : SUM_BLOCK, self->part ? 1 : SUM_PIECE, 1, minded);
    if (self->chain) self->pieces.pause = tape_pause, self->pieces.of = self->chain;
    raised = pieces_do(&self->pieces, threads, ns);
    flags_clear(1);
    if (!raised && self->part) *sum = sum_of_parts(self, n, &next);
    if (!raised && self->chunk) {
        npy_intp chunks = (n + ORDERED_CHUNK - 1) / ORDERED_CHUNK;
        memset(sum, 0, sizeof(*sum));
        if (self->type == NPY_FLOAT) sum->f = chunks_counted_float((const float*)self->chunk, chunks);
        else sum->d = chunks_counted_double((const double*)self->chunk, chunks);
    } else if (self->from_zero && !raised) {
        memset(&zero, 0, sizeof(zero));
        sum_two(self, &zero, sum); /* what NumPy begins with: of negative zeros it makes a positive one */
        *sum = zero;
    }
    if (!raised && !self->from_zero && self->type == NPY_DOUBLE) raised |= !(sum->d < 0 || sum->d > 0); /* which zero, or which NaN, is NumPy's to say */
    if (!raised && !self->from_zero && self->type == NPY_FLOAT) raised |= !(sum->f < 0 || sum->f > 0);
    raised |= flags_raised(1) & minded;
    PyMem_Free(self->part), PyMem_Free(self->chunk);
    if (self->desk) desk_leave(self->desk);
    return !raised;
}

/* Whether NumPy sums in that order. */
static char sums_state[TYPES];
static void sums_check(Reduction* of, Loop* loop, int type) {
    static const npy_intp lengths[] = {1031, 8200};
    int fine = 1;
    sums_state[type] = UNUSABLE;
    for (int k = 0; k < 2 && fine; k++) {
        PyArrayObject *whole = sample(type, 0, 0), *x = NULL;
        npy_intp n = lengths[k];
        PyObject* theirs = NULL;
        Value sum;
        if (whole) x = (PyArrayObject*)PyArray_SimpleNew(1, &n, type);
        for (npy_intp j = 0; whole && x && j < n; j += SAMPLE - 5) /* not the same in each leaf of the tree */
            memcpy(PyArray_BYTES(x) + j * loop->size, PyArray_BYTES(whole), (size_t)((n - j < SAMPLE - 5 ? n - j : SAMPLE - 5) * loop->size));
        if (x) theirs = quietly(of->reduce, (PyObject*[]){(PyObject*)x, Py_None}, 2);
        if (theirs) Py_SETREF(theirs, PyArray_FromAny(theirs, NULL, 0, 0, 0, NULL));
        fine = 0;
        if (theirs && PyArray_TYPE((PyArrayObject*)theirs) == type) {
            SumRun run = {.type = type, .from_zero = 1, .loop = loop, .from = PyArray_BYTES(x)};
            sum_run(&run, n, 0, 0, 0, &sum);
            fine = memcmp(&sum, PyArray_DATA((PyArrayObject*)theirs), (size_t)loop->size) == 0;
        }
        Py_XDECREF(whole), Py_XDECREF(x), Py_XDECREF(theirs);
    }
    loop_compared(loop, &sums_state[type], fine);
}

/* How a reduction combines elements of a type; 0, perhaps with an exception, where NumPy has to see to it. */
static int sum_begin(SumRun* self, Reduction* of, int type, npy_intp size) {
    const char* name = ((PyUFuncObject*)of->loops.ufunc)->name;
    self->type = type, self->from_zero = of->from_zero;
    if ((self->order = order_of(of, type, size)) == KERNELS_ORDER) return (self->loop = ordered_loop(of, type)) != NULL;
    if (self->order == OTHER_ORDER || type == NPY_BOOL || type >= NPY_CFLOAT || (self->loop = loop_of(&of->loops, type)) == NULL || self->loop->out != type || !self->loop->basic || self->loop->size > (npy_intp)sizeof(double)) return 0;
    if (!of->from_zero) return strcmp(name, "maximum") == 0 || strcmp(name, "minimum") == 0;
    if (type != NPY_DOUBLE && type != NPY_FLOAT) return 0;
    if (sums_state[type] == UNKNOWN) sums_check(of, self->loop, type);
    return sums_state[type] == USABLE && !PyErr_Occurred();
}

/* The sum of the elements of `x`, or (`apart`) of the squares of what they are apart from a number; 0, perhaps with an exception, where NumPy has to see to it. */
static int sum_whole(Reduction* of, PyArrayObject* x, const double* apart, Value* sum) {
    npy_intp n = PyArray_SIZE(x);
    SumRun run = {.squares = apart != NULL, .apart = apart ? *apart : 0};
    int done;
    if (!plain_memory(x) || n <= LONGEST || (apart && PyArray_TYPE(x) != NPY_DOUBLE)) return 0;
    if (!sum_begin(&run, of, PyArray_TYPE(x), n) && (PyErr_Occurred() || n <= limit_now() || !sum_begin(&run, of, PyArray_TYPE(x), n))) return 0; /* the first time its loop is compared with NumPy's */
    run.from = PyArray_BYTES(x);
    Py_INCREF(x);
    done = sum_run(&run, n, (double)n * (SUM_NS + (apart ? 2 * PASS_NS : 0)), n * run.loop->size, errors_minded(), sum);
    Py_DECREF(x);
    return done;
}

/* Whether a tape's steps can be computed together with what combines their results: none of them wants all elements at once. */
static inline int tape_goes_with(const Chain* self) {
    return !(self->closed != OPEN || self->view || self->strided || self->whole || self->wide || self->failed || self->users);
}

/* Rows of what a tape computes, which are combined block by block. */
typedef struct {
    SumRun run;
    AxisRun axis;
    char* stored; /* where the elements lie, if the program has them; NULL: nowhere */
    int sides;    /* short rows of operands are laid side by side first */
} RowsWaiting;

/* Compute some rows from number `row` on, of which those that are combined go to `to`, and combine them; whether an error was raised. */
static int rows_computed(const RowsWaiting* self, Desk* desk, npy_intp row, npy_intp some, char* to) {
    const SumRun* run = &self->run;
    npy_intp size = self->axis.loop->size, length = self->axis.columns, n = some * length;
    char* out[CHAIN_STEPS];
    if (self->sides) {
        for (int k = 0; k < run->chain->steps; k++) out[k] = k == run->summed ? to : run->outs->to[k] ? run->outs->to[k] + row * length * step_size(run->chain, k) : NULL;
        if (sides_pass(run->chain, run->outs, run->block, run->of, desk, out, row, some)) return 1;
    }
    for (npy_intp at = 0; at < n && !self->sides; at += SUM_BLOCK)
        if (sum_computed(run, row * length + at, n - at < SUM_BLOCK ? n - at : SUM_BLOCK, to + at * size, desk)) return 1;
    if (run->function && flags_raised(1) & run->pieces.minded) return 1;
    if (!matrix_reduced(&self->axis, to, some, length, self->axis.to + row * size)) return 1;
    return self->axis.spread && flags_raised(1) & run->pieces.minded; /* the next steps clear them */
}

static int waiting_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const RowsWaiting* self = (const RowsWaiting*)pieces;
    Desk* desk = thread ? desks[thread] : self->run.desk;
    double few[SUM_BLOCK], *room = few;
    npy_intp size = self->axis.loop->size, length = self->axis.columns, at_once = length > SUM_BLOCK ? 1 : SUM_BLOCK / length, some;
    int raised = 0;
    if (at_once * length > SUM_BLOCK && self->stored == NULL && (room = PyMem_RawMalloc((size_t)(length * size))) == NULL) return 1; /* it is stored, then */
    desk->minded = pieces->minded;
    for (npy_intp row = first; row < first + count && !raised; row += some) {
        some = at_once < first + count - row ? at_once : first + count - row;
        raised = rows_computed(self, desk, row, some, self->stored ? self->stored + row * length * size : (char*)room);
    }
    if (room != few) PyMem_RawFree(room);
    return raised;
}

#define ROW_WAITS 8192 /* elements of a row, at most, for which there is room in the second-level cache */

/* Rows of what waits combined, with the steps that compute it, as `axis_spread` does what lies in memory; else NULL, perhaps with an exception. */
static PyArrayObject* rows_waiting(Chain* item, Reduction* of, int spread) {
    Cell* cell = item->source[0];
    Chain* self = item->arrays == 1 && cell && WAITS(cell) ? CHAIN_OF(cell) : NULL;
    int summed = self ? STEP_OF(cell) : 0, steps = 0, block[CHAIN_STEPS], done = 0, threads, type;
    PyArrayObject *made[CHAIN_STEPS], *found = NULL;
    Hot *known = NULL, *hot = NULL;
    npy_intp length, rows;
    double ns;
    RowsWaiting run;
    Outs outs;
    Rows2 lies;
    if (self == NULL || !tape_goes_with(self) || self->size <= SMALL || self->ndim < 2 || item->item.axis != self->ndim - 1) return NULL;
    for (int k = 0; k < self->ndim; k++)
        if (self->dims[k] < 2) return NULL; /* else perhaps in another order */
    length = self->dims[self->ndim - 1], rows = self->size / length;
    if (length > ROW_WAITS) return NULL;
    memset(&run, 0, sizeof(run));
    type = self->at[summed].step.out;
    run.axis = (AxisRun){.of = of, .axis = 1, .rows = rows, .columns = length, .spread = spread, .by = (double)length - item->item.off, .order = order_of(of, item->at[0].step.out, self->size)};
    if (run.axis.order == OTHER_ORDER || (run.axis.order != NUMPYS_ORDER && self->ordered)) return NULL;
    if (type != item->at[0].step.out || (run.axis.loop = axis_loop(of, type, 1, run.axis.order, spread, length, item->item.off)) == NULL) return NULL;
    if (item->source[0] != cell || !WAITS(cell) || CHAIN_OF(cell) != self || STEP_OF(cell) != summed || self->users) return NULL; /* code of NumPy's has run */
    run.axis.across = length * run.axis.loop->size;
    self->users++, self->runner = PyThreadState_Get();
    Py_INCREF(cell);
    if (tape_begin(self) < 0) goto over;
    if (!WAITS(cell) || CHAIN_OF(cell) != self) goto over;
    summed = STEP_OF(cell), steps = self->steps; /* those of older tapes may stand before its own now */
    for (int k = 0; k < steps; k++) made[k] = NULL;
    outs_of(self, &outs);
    if (!rows_of(self, &lies)) goto over;
    run.sides = lies.rows > 1 && lies.length < chain_sizes.row;
    if (run.sides && (lies.length != length || !sides_fit(self) || !sides_pay(self, &outs, &lies))) goto over;
    for (int k = 0; k < self->steps; k++) {
        if (self->at[k].cell == NULL) continue;
        if ((k != summed || Py_REFCNT(cell) > 2) && (made[k] = raw_new(self->ndim, self->dims, self->at[k].step.out, self->size)) == NULL) goto over;
        outs.to[k] = made[k] ? PyArray_BYTES(made[k]) : (char*)&run; /* of what is not kept each thread has its own */
    }
    if ((found = raw_new(item->ndim, item->dims, item->at[0].step.out, item->size)) == NULL || !blocks_assign(self, &outs, block)) goto over;
    run.axis.to = PyArray_BYTES(found), run.stored = made[summed] ? PyArray_BYTES(made[summed]) : NULL;
    if (!run.sides && self->steps > 1 && all_wanted(self, &outs)) known = hot_of(self, &lies, &outs);
    if (known) known->busy++, run.run.function = known->function;
    run.run.summed = summed, run.run.chain = self, run.run.outs = &outs, run.run.of = &lies, run.run.block = block;
    pieces_of(&run.run.pieces, waiting_piece, rows, length, PASS_PIECE, 1, self->minded | item->minded);
    run.run.pieces.pause = tape_pause, run.run.pieces.of = self;
    ns = pass_ns(self, &outs, run.sides) + (double)self->size * AXIS_NS;
    threads = desks_ready(self->size < LONG_FROM ? 1 : pieces_threads(ns, pass_bytes(self, &outs)));
    if (!PyErr_Occurred() && (run.run.desk = desk_take())) {
        done = !pieces_do(&run.run.pieces, threads, ns);
        desk_leave(run.run.desk);
        flags_clear(1);
    }
    if (known) {
        if (run.run.function == NULL) hot = hot_count(known, self->size);
        known->busy--;
    }
    first_done(self->size, self->steps);
    done = done && self->at[summed].cell == cell; /* else another thread has had it computed, and has perhaps written an operand since */
over:
    for (int k = 0; k < steps; k++) {
        if (done && made[k] && self->at[k].cell) done = cell_settled(self, k, made[k]) == 0;
        else Py_XDECREF(made[k]);
    }
    chain_done(self);
    Py_DECREF(cell);
    if (!done) hot_put_off(hot);
    else if (hot && hot_compile(hot)) done = 0;
    if (!done) Py_CLEAR(found);
    return found;
}

/* The sum of more than LONGEST elements that a tape's step computes, which only the caller of its sum has, and lets go.  What else is wanted of the
   tape is computed with it.  0, perhaps with an exception, where the step is to be computed first. */
static int sum_waiting(Reduction* of, PyObject* x, Value* sum) {
    Chain* self = CHAIN_OF(x);
    int summed = STEP_OF(x), block[CHAIN_STEPS], done = 0, fits;
    PyArrayObject* made[CHAIN_STEPS];
    Hot *known = NULL, *hot = NULL;
    SumRun run = {.summed = summed};
    Outs outs;
    Rows2 rows;
    if (!tape_goes_with(self)) return 0;
    if (!sum_begin(&run, of, self->at[summed].step.out, self->size) || (run.order != NUMPYS_ORDER && self->ordered)) return 0;
    if (CHAIN_OF(x) != self || STEP_OF(x) != summed) return 0;
    self->users++, self->runner = PyThreadState_Get();
    if (tape_begin(self) < 0) return chain_done(self), 0;
    if (!WAITS(x) || CHAIN_OF(x) != self) return chain_done(self), 0;
    run.summed = summed = STEP_OF(x); /* steps of older tapes may stand before it now */
    outs_of(self, &outs);
    if (!rows_of(self, &rows) || (rows.rows > 1 && rows.length < chain_sizes.row / 8)) return chain_done(self), 0;
    for (int k = 0; k < self->steps; k++) made[k] = NULL;
    for (int k = 0; k < self->steps; k++) {
        if (self->at[k].cell == NULL) continue;
        if (k != summed && (made[k] = raw_new(self->ndim, self->dims, self->at[k].step.out, self->size)) == NULL) break;
        outs.to[k] = made[k] ? PyArray_BYTES(made[k]) : (char*)&run; /* of what is summed each thread has its own */
    }
    if (self->steps > 1 && all_wanted(self, &outs)) known = hot_of(self, &rows, &outs);
    if (known) known->busy++, run.function = known->function;
    fits = blocks_assign(self, &outs, block);
    run.chain = self, run.outs = &outs, run.of = &rows, run.block = block;
    done = fits && !PyErr_Occurred() && sum_run(&run, self->size, pass_ns(self, &outs, 0) + (double)self->size * SUM_NS, pass_bytes(self, &outs), self->minded | errors_minded(), sum);
    if (known) {
        if (run.function == NULL) hot = hot_count(known, self->size);
        known->busy--;
    }
    first_done(self->size, self->steps);
    done = done && self->at[summed].cell == (Cell*)x; /* else another thread has had it computed, and has perhaps written an operand since */
    for (int k = 0; k < self->steps; k++) {
        if (done && made[k] && self->at[k].cell) done = cell_settled(self, k, made[k]) == 0;
        else Py_XDECREF(made[k]);
    }
    chain_done(self);
    if (!done) hot_put_off(hot);
    else if (hot && hot_compile(hot)) done = 0;
    return done;
}

#endif
