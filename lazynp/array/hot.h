/* Tapes that come often, as machine code.

   In: expressions, as they are computed.  Out: a function for those that have cost as much as compiling one does.  Promise: which ones follows
   from counts alone; from when on, where a thread compiles them while the program goes on, from when that is done; a function is used after its
   results were compared with those of NumPy's loops, bit by bit, on special values as well; where it raises a floating-point flag NumPy's loops do
   it again.

   What comes often is machine code (`hot.h`, `backends/llvm/expressions.py`). An expression is known by its steps, the dtypes of its arrays and how
   they lie along a row (side by side, apart, one element), not by sizes. When its element operations amount to what compiling costs (500 million, a
   tenth of a second; what an earlier process left on disk, or looked for in vain, is looked for at an eighth of that, before the first run of a large
   tape that would cost so much (`hot_before`); with a second core a thread begins to compile it at a quarter, and the program goes on) it becomes a
   loop over rows with one IEEE operation a step: NumPy's bits, which is tried against NumPy's loops on special values before it is used. Where a
   floating-point flag is raised that the error state does not ignore, NumPy's loops do it again, and a function whose flags say more than theirs is dropped.
   What a `where` chooses from is gathered in a word that is never read: else LLVM would compute it under a mask, or behind a branch, and lose errors
   of what is not chosen. A function of what another function gives is left to loops of its own (`functions_follow`): in one loop it waits for the first.
   Functions whose bits follow from NumPy's library (`exp`, `power`) are not compiled here; where they are to have the kernels' bits (of many
   elements), they are. */

#ifndef LAZYNP_HOT_H
#define LAZYNP_HOT_H

#include "passes.h"

typedef void (*RowsFunction)(char* const* at, const npy_intp* across, const npy_intp* along, const Value* numbers, char* const* to, npy_intp rows, npy_intp length);

/* What is known of expressions with the same steps, whose operands lie alike. */
typedef struct {
    RowsFunction function; /* NULL: there is none yet, or none is to be had */
    long long work;        /* what it has cost, in element operations */
    int asked;             /* how often it was asked for: whether it is on disk, and to be compiled */
    int refused;           /* times that its function raised a flag, where NumPy's loops did not */
    int busy;              /* how many compile it, or compute with it */
    int asking;            /* a call has it compiled, or is about to */
    int ahead;             /* a thread of its own compiles it, or could */
    int steps, arrays, outs;
    int out[CHAIN_STEPS]; /* steps whose results are wanted */
    Step step[CHAIN_STEPS];
    char type[CHAIN_ARRAYS + 1], lies[CHAIN_ARRAYS + 2]; /* of each array: its dtype, and a letter, ended by a zero */
} Hot;

/* Whether a step's result is wanted, in memory or put somewhere. */
static inline int is_out(const Outs* outs, int k) { return outs->to[k] || outs->put[k]; }

/* One element operation costs a vector's share of some cycles, one call of a loop as much as some hundred of them. */
#define HOT_CALL 300
#define HOT_ROW 4 /* elements in a row, fewer are not worth a turn of a loop over rows */
#define HOT_SIDES 64       /* elements in a row, more are never laid side by side */
#define HOT_VECTOR 64      /* bytes in a vector: what is left of a row is computed one by one */
#define HOT_ONE 0.25f      /* nanoseconds that one step of such an element takes, divisions and roots among them */
#define HOT_FUNCTION 10.0f /* and a function */
#define HOT_BEGUN 1.0f     /* nanoseconds that laying a row takes, and each of its elements */
#define HOT_LAID 0.13f
#define HOT_KEPT 8 /* what is on disk costs so much less than compiling */
#define HOT_AHEAD 4 /* and what is compiled while the program goes on, so much */
#define HOT_AGAIN 32 /* how often one asks for that: each time that it has cost so much again */
#define HOT_NEVER 2 /* as what was asked for in vain: loops of their own are better */
#define HOT_LATER -1
#define HOT_CAN -2
#define HOT_REFUSALS 4
#define HOT_BITS 8
#define HOT_WAYS 2
static long long hot_work = 500000000; /* element operations that cost as much as compiling: a tenth of a second */
static Hot* hot_table[1 << HOT_BITS][HOT_WAYS]; /* of a set, the latest first */
/* `compiled(steps, dtypes, lies, outs, kept)`: an address, or 0.  `kept` is True where it is only looked for (HOT_CAN: a thread could compile it), None
   where a thread is to compile it (HOT_LATER: it does) and else False. */
static PyObject* hot_method;
static long long hot_runs;

static char array_lies(const Chain* self, const Rows2* of, int k) {
    return of->along[k] == PyArray_ITEMSIZE(self->array[k]) ? 'c' : of->along[k] == 0 ? 'o' : 's';
}

static int hot_is(const Hot* hot, const Chain* self, const Rows2* of, const Outs* outs) {
    if (hot->steps != self->steps || hot->arrays != self->arrays) return 0;
    if (hot->outs != outs->count) return 0;
    for (int k = 0; k < self->steps; k++)
        if (!same_step(&hot->step[k], &self->at[k].step)) return 0;
    for (int k = 0; k < hot->outs; k++)
        if (!is_out(outs, hot->out[k])) return 0;
    for (int k = 0; k < self->arrays; k++)
        if (hot->type[k] != PyArray_TYPE(self->array[k]) || hot->lies[k] != array_lies(self, of, k)) return 0;
    return 1;
}

/* Whether a function is computed of what another one gives: in one loop the second waits for the first, and what they have in common for registers; two such take
   1.1 of the time that a loop for each takes, four 1.7, thirty 2.5. */
static int functions_follow(const Chain* self) {
    char behind[CHAIN_STEPS]; /* a function */
    for (int k = 0; k < self->steps; k++) {
        const Step* step = &self->at[k].step;
        behind[k] = 0;
        for (int o = 0; o < step->loops->nin; o++)
            if (step->of[o].kind == OF_STEP) behind[k] |= behind[step->of[o].number];
        if (step->loops->kernels && behind[k]) return 1;
        behind[k] |= (char)step->loops->kernels;
    }
    return 0;
}

static Hot* hot_new(const Chain* self, const Rows2* of, const Outs* outs) {
    Hot* hot = PyMem_Calloc(1, sizeof(Hot));
    if (hot == NULL) return NULL;
    hot->asked = functions_follow(self) ? HOT_NEVER : hot_work == 0, hot->steps = self->steps, hot->arrays = self->arrays;
    for (int k = 0; k < self->steps; k++) hot->step[k] = self->at[k].step;
    for (int k = 0; k < self->steps; k++)
        if (is_out(outs, k)) hot->out[hot->outs++] = k;
    for (int k = 0; k < self->arrays; k++) hot->type[k] = (char)PyArray_TYPE(self->array[k]), hot->lies[k] = array_lies(self, of, k);
    return hot;
}

/* What is known of an expression; NULL where memory is short, or all that could go is in use. */
static Hot* hot_of(const Chain* self, const Rows2* of, const Outs* outs) {
    uint64_t hash = (uint64_t)self->steps * 31 + (uint64_t)self->arrays;
    Hot **set, *found, *last;
    for (int k = 0; k < self->steps; k++) {
        const Step* step = &self->at[k].step;
        hash = (hash ^ ((uint64_t)(uintptr_t)step->loops >> 4) ^ (uint64_t)(step->of[0].number * 8 + step->of[0].kind)) * 0x9E3779B97F4A7C15u;
        hash ^= (hash >> 32) + (uint64_t)(step->of[1].number * 8 + step->of[1].kind + 64 * step->type + 4096 * is_out(outs, k) + 8192 * step->of[2].number);
    }
    for (int k = 0; k < self->arrays; k++) hash = (hash + (uint64_t)array_lies(self, of, k)) * 0x9E3779B97F4A7C15u;
    set = hot_table[hash >> (64 - HOT_BITS)];
    for (int k = 0; k < HOT_WAYS; k++)
        if (set[k] && hot_is(set[k], self, of, outs)) return set[k];
    last = set[HOT_WAYS - 1];
    if (last && last->busy) return NULL;
    if ((found = hot_new(self, of, outs)) == NULL) return NULL;
    memmove(set + 1, set, (HOT_WAYS - 1) * sizeof(Hot*));
    set[0] = found;
    PyMem_Free(last);
    return found;
}

/* For tests: as if nothing had run yet. */
static void hot_forget(void) {
    for (int k = 0; k < 1 << HOT_BITS; k++)
        for (int way = 0; way < HOT_WAYS; way++)
            if (hot_table[k][way] && !hot_table[k][way]->busy) PyMem_Free(hot_table[k][way]), hot_table[k][way] = NULL;
}

/* Computing ---------------------------------------------------------------------------------------------------------------------------- */

#define HOT_NS 0.12      /* nanoseconds that one step of an element takes */
#define HOT_KERNEL_NS 1.0  /* and a function */
#define HOT_PIECE 16384  /* elements that a thread takes at a time */

typedef struct {
    Pieces pieces;
    RowsFunction function;
    const Chain* chain;
    const Rows2* of;
    const Outs* outs;
    const Pass* again; /* by NumPy's loops, of what is written over an operand */
    Desk* desk;        /* where blocks are computed; NULL where all of it is one call */
    int lays;          /* short rows are laid side by side */
} HotRun;

/* What one call of the function computes: rows, or elements of one row, which begin at `at`. */
typedef struct {
    npy_intp row, begin; /* the first row, and the first element of it */
    npy_intp rows, n;    /* how many, and elements of each */
    char* at[CHAIN_ARRAYS + 1];
    const Rows2* lies;
} HotBlock;

/* Few enough elements for a block: results that lie where an operand lies, or apart from one another, are copied there when no error was raised; else NumPy's loops compute them again. */
static void hot_block(const HotRun* self, HotBlock* block, Desk* desk, int thread) {
    const Chain* chain = self->chain;
    const Outs* outs = self->outs;
    npy_intp first = block->row * self->of->length + block->begin, n = block->rows * block->n;
    char* to[CHAIN_STEPS];
    int count = 0;
    for (int k = 0; k < chain->steps; k++)
        if (is_out(outs, k)) to[count] = outs->put[k] || outs->is_over[k] ? desk->blocks[count] : outs->to[k] + first * step_size(chain, k), count++;
    self->function(block->at, block->lies->across, block->lies->along, chain->value, to, block->lies == self->of ? block->rows : 1, block->lies == self->of ? block->n : n);
    if (outs->over && flags_raised(1) & self->pieces.minded) {
        flags_clear(0);
        desk->minded = self->pieces.minded;
        if (self->of->rows > 1 && block->begin == 0 && block->n == self->of->length) pass_piece(&self->again->pieces, block->row, block->rows, thread);
        else row_part(self->again, desk, block->row, block->begin, block->n);
        return;
    }
    count = 0;
    for (int k = 0; k < chain->steps; k++) {
        if (outs->put[k]) out_put(outs, k, first, n, to[count]);
        else if (outs->is_over[k]) memcpy(outs->to[k] + first * step_size(chain, k), to[count], (size_t)(n * step_size(chain, k)));
        count += is_out(outs, k);
    }
}

/* Rows, or elements of one row, block by block. */
static void hot_blocks(const HotRun* self, npy_intp first, npy_intp count, Desk* desk, int thread) {
    const Chain* chain = self->chain;
    const Rows2* of = self->of;
    HotBlock block = {.lies = of, .rows = 1};
    npy_intp past = first + count, whole = of->rows == 1 ? past : of->length, most = of->length < CHAIN_BLOCK ? CHAIN_BLOCK / of->length : 1;
    for (npy_intp row = of->rows == 1 ? 0 : first; row < (of->rows == 1 ? 1 : past); row += block.rows) {
        block.row = row, block.rows = 1;
        if (of->rows > 1) { /* of one plane */
            block.rows = of->within - row % of->within;
            if (block.rows > past - row) block.rows = past - row;
            if (block.rows > most) block.rows = most;
        }
        for (block.begin = of->rows == 1 ? first : 0; block.begin < whole; block.begin += block.n) {
            block.n = whole - block.begin < CHAIN_BLOCK ? whole - block.begin : CHAIN_BLOCK;
            for (int k = 0; k < chain->arrays; k++) block.at[k] = PyArray_BYTES(chain->array[k]) + row_at(of, k, row) + block.begin * of->along[k];
            hot_block(self, &block, desk, thread);
        }
    }
}

/* Short rows, side by side: the function is that of one long row. */
static void hot_sides(const HotRun* self, npy_intp row, npy_intp count, Desk* desk, int thread) {
    Sides sides;
    HotBlock block = {.begin = 0, .n = self->of->length, .lies = &sides.flat};
    sides_begin(&sides, self->chain, self->of, desk, SIDES_ELEMENTS, count);
    for (npy_intp past = row + count; row < past; row += block.rows) {
        block.row = row, block.rows = past - row < sides.most ? past - row : sides.most;
        sides_next(&sides, row, block.rows);
        memcpy(block.at, sides.at, sizeof(block.at));
        hot_block(self, &block, desk, thread);
    }
}

static int hot_piece(const Pieces* pieces, npy_intp first, npy_intp rows, int thread) {
    const HotRun* self = (const HotRun*)pieces;
    const Rows2* of = self->of;
    const Chain* chain = self->chain;
    char *at[CHAIN_ARRAYS + 1], *to[CHAIN_STEPS];
    if (self->desk) {
        Desk* desk = thread ? desks[thread] : self->desk;
        if (self->lays) hot_sides(self, first, rows, desk, thread);
        else hot_blocks(self, first, rows, desk, thread);
        return 0; /* its flags are asked for at the end */
    }
    if (of->rows == 1) {
        int count = 0;
        for (int k = 0; k < chain->steps; k++)
            if (self->outs->to[k]) to[count++] = self->outs->to[k] + first * step_size(chain, k);
        for (int k = 0; k < chain->arrays; k++) at[k] = PyArray_BYTES(chain->array[k]) + first * of->along[k];
        self->function(at, of->across, of->along, chain->value, to, 1, rows);
        return 0; /* its flags are asked for at the end */
    }
    while (rows > 0) { /* those of a plane at a time */
        npy_intp some = of->within - first % of->within;
        int count = 0;
        if (some > rows) some = rows;
        for (int k = 0; k < chain->steps; k++)
            if (self->outs->to[k]) to[count++] = self->outs->to[k] + first * of->length * step_size(chain, k);
        for (int k = 0; k < chain->arrays; k++) at[k] = PyArray_BYTES(chain->array[k]) + row_at(of, k, first);
        self->function(at, of->across, of->along, chain->value, to, some, of->length);
        first += some, rows -= some;
    }
    return 0;
}

/* Nanoseconds that it takes one thread. */
static double hot_ns(const Chain* self) {
    double ns = 0;
    for (int k = 0; k < self->steps; k++) ns += self->at[k].step.loops->kernels ? HOT_KERNEL_NS : HOT_NS;
    return ns * (double)self->size;
}

/* Whether laying short rows side by side costs less than computing one by one what of each row fills no vector. */
static int hot_lays(const Chain* self, const Rows2* of) {
    float ns = 0, laid = 0;
    if (of->rows == 1 || of->length >= HOT_SIDES || !sides_fit(self)) return 0;
    for (int k = 0; k < self->steps; k++) ns += self->at[k].step.loops->kernels ? HOT_FUNCTION : HOT_ONE;
    for (int k = 0; k < self->arrays; k++)
        if (lies_in_rows(of, k, PyArray_ITEMSIZE(self->array[k])) == LIES_APART) laid += HOT_BEGUN + HOT_LAID * (float)of->length;
    return ns * (float)(of->length % (HOT_VECTOR / step_size(self, self->steps - 1))) > laid;
}

/* Compute by machine code; whether that was all.  `lays`: short rows are laid side by side. */
static int hot_run(RowsFunction function, Chain* self, const Rows2* of, const Outs* outs, int minded, int lays) {
    HotRun run = {.function = function, .chain = self, .of = of, .outs = outs, .lays = lays};
    double ns = hot_ns(self);
    int raised, threads = 1, block[CHAIN_STEPS];
    Pass again;
    pieces_of(&run.pieces, hot_piece, of->rows == 1 ? of->length : of->rows, of->rows == 1 ? 1 : of->length, HOT_PIECE, 1, minded);
    run.pieces.pause = tape_pause, run.pieces.of = self;
    if (self->size >= LONG_FROM && ns >= (double)pieces_ns && !(ns < PIECES_FETCH * (double)pieces_ns && pass_memory(self, outs) < PIECES_NEAR))
        threads = pieces_threads(ns, 0);
    if (outs->over && !pass_begin(&again, self, outs, of, block, minded)) return 0;
    if (outs->over) again.sides = lays, run.again = &again;
    if (outs->over || outs->puts || lays) {
        threads = desks_ready(threads);
        if ((run.desk = again.desk = desk_take()) == NULL) return 0;
    }
    if (outs->lag && !(threads = lag_begin(outs->lag, &run.pieces, threads))) return desk_leave(run.desk), 0;
    raised = pieces_do(&run.pieces, threads, ns);
    if (outs->lag) lag_end(outs->lag);
    if (run.desk) desk_leave(run.desk);
    flags_clear(1);
    hot_runs += !raised;
    return !raised;
}

/* Asking for machine code ------------------------------------------------------------------------------------------------------------- */

static PyObject* hot_steps(const Hot* hot) {
    PyObject* steps = PyTuple_New(hot->steps);
    for (int k = 0; steps && k < hot->steps; k++) {
        const Step* step = &hot->step[k];
        PyObject *name = PyObject_GetAttrString(step->loops->ufunc, "__name__"), *told = NULL;
        if (name && step->loops->kernels) Py_SETREF(name, PyUnicode_FromFormat("kernels %U", name));
        PyArray_Descr *from = PyArray_DescrFromType(step->type), *to = PyArray_DescrFromType(step->loops->of[step->type].out);
        const Operand* of = step->of;
        if (name && step->loops->nin == 1) told = Py_BuildValue("OOO((ii))", name, from, to, of[0].kind, of[0].number);
        else if (name && step->loops->nin == 2) told = Py_BuildValue("OOO((ii)(ii))", name, from, to, of[0].kind, of[0].number, of[1].kind, of[1].number);
        else if (name) told = Py_BuildValue("OOO((ii)(ii)(ii))", name, from, to, of[0].kind, of[0].number, of[1].kind, of[1].number, of[2].kind, of[2].number);
        Py_XDECREF(name), Py_DECREF(from), Py_DECREF(to);
        if (told) PyTuple_SET_ITEM(steps, k, told);
        else Py_CLEAR(steps);
    }
    return steps;
}

static PyObject* hot_dtypes(const Hot* hot) {
    PyObject* dtypes = PyTuple_New(hot->arrays);
    for (int k = 0; dtypes && k < hot->arrays; k++) PyTuple_SET_ITEM(dtypes, k, (PyObject*)PyArray_DescrFromType(hot->type[k]));
    return dtypes;
}

#define TRIED 33 /* elements that are compared: some vectors, and some more */

/* Whether two results are equal, to the bit; which NaN an operation hands on, of two, is the processor's choice. */
static int hot_same(const char* x, const char* y, int type, npy_intp size) {
    for (npy_intp k = 0; k < TRIED; k++, x += size, y += size) {
        if (memcmp(x, y, (size_t)size) == 0) continue;
        if (type == NPY_DOUBLE && *(const double*)x != *(const double*)x && *(const double*)y != *(const double*)y) continue;
        if (type == NPY_FLOAT && *(const float*)x != *(const float*)x && *(const float*)y != *(const float*)y) continue;
        return 0;
    }
    return 1;
}

#define CHECKED_ERRORS (ERROR_DIVIDE | ERROR_OVER | ERROR_INVALID)

/* Whether a function computes what NumPy's loops do, and raises the flags that they raise: what LLVM knows beforehand (`(b ^ b) / (a - a)` of integers) raises none. */
static int hot_check(const Hot* hot, RowsFunction function, int special) {
    Value value[CHAIN_STEPS + 1];
    StepAt at_steps[CHAIN_STEPS];
    Chain tried = {.steps = hot->steps, .at = at_steps, .value = value};
    Rows2 of = {.rows = 1, .within = 1, .length = TRIED};
    PyArrayObject *sampled[CHAIN_ARRAYS + 1] = {NULL}, *numbers[CHAIN_STEPS] = {NULL};
    int block[CHAIN_STEPS], fine = 1, raised = 0;
    char(*found)[TRIED * CHAIN_SIZE] = PyMem_Malloc(2 * (size_t)hot->outs * sizeof(*found)), (*wanted)[TRIED * CHAIN_SIZE] = found + hot->outs;
    char *at[CHAIN_ARRAYS + 1], *to[CHAIN_STEPS];
    Desk* desk = found ? desk_take() : NULL;
    if (desk == NULL) return PyMem_Free(found), 0;
    memset(value, 0, sizeof(value));
    for (int k = 0; k < hot->steps; k++) at_steps[k] = (StepAt){.step = hot->step[k]};
    for (int k = 0; k < hot->arrays && fine; k++) {
        if ((sampled[k] = sample(hot->type[k], k & 1, special)) == NULL) fine = 0;
        else of.along[k] = PyArray_ITEMSIZE(sampled[k]) * (hot->lies[k] == 'c' ? 1 : hot->lies[k] == 'o' ? 0 : 2);
    }
    for (int k = 0; k < hot->steps && fine; k++)
        for (int o = 0; o < hot->step[k].loops->nin && fine; o++) {
            npy_intp size;
            if (hot->step[k].of[o].kind != OF_NUMBER) continue;
            Py_XSETREF(numbers[k], sample(hot->step[k].type, 1, special));
            if (numbers[k] == NULL) {
                fine = 0;
                continue;
            }
            size = PyArray_ITEMSIZE(numbers[k]);
            memcpy(&value[hot->step[k].of[o].number], PyArray_BYTES(numbers[k]) + (3 + 2 * k + 5 * o) % TRIED * size, (size_t)size);
        }
    if (fine) {
        Outs outs = {.count = 0, .over = 0, .puts = 0};
        memset(outs.wanted, 1, sizeof(outs.wanted));
        memset(outs.to, 0, sizeof(outs.to)), memset(outs.put, 0, sizeof(outs.put));
        for (int k = 0; k < hot->outs; k++) outs.to[hot->out[k]] = wanted[k], to[k] = found[k];
        fine = blocks_assign(&tried, &outs, block);
        for (int k = 0; k < hot->arrays; k++) at[k] = PyArray_BYTES(sampled[k]);
        for (int k = 0; k < hot->steps && fine; k++) {
            flags_clear(0);
            step_run(&tried, k, block, at, &of, desk, outs.to, TRIED);
            raised |= flags_raised(0);
        }
        flags_clear(0);
        if (fine) function(at, of.across, of.along, value, to, 1, TRIED);
        fine = fine && !(raised & CHECKED_ERRORS & ~flags_raised(0));
        flags_clear(0);
        for (int k = 0; k < hot->outs && fine; k++) {
            const Step* step = &hot->step[hot->out[k]];
            fine = hot_same(found[k], wanted[k], step->loops->of[step->type].out, step->loops->of[step->type].size);
        }
    }
    desk_leave(desk), PyMem_Free(found);
    for (int k = 0; k <= CHAIN_ARRAYS; k++) Py_XDECREF(sampled[k]);
    for (int k = 0; k < CHAIN_STEPS; k++) Py_XDECREF(numbers[k]);
    if (PyErr_Occurred()) PyErr_Clear();
    return fine;
}

/* As if it had not been asked for; a later call will ask again. */
static void hot_put_off(Hot* hot) {
    if (hot) hot->asked -= hot->function == NULL, hot->busy--, hot->asking = 0;
}

/* Have an expression compiled; -1 where it is interrupted. */
static int hot_compile(Hot* hot) {
    PyObject *steps, *dtypes, *outs, *found = NULL;
    PyObject* kept = hot->asked == 1 ? Py_True : hot->ahead ? Py_None : Py_False;
    RowsFunction function;
    long long address;
    steps = hot_steps(hot), dtypes = hot_dtypes(hot);
    outs = PyTuple_New(hot->outs);
    for (int k = 0; outs && k < hot->outs; k++) PyTuple_SET_ITEM(outs, k, PyLong_FromLong(hot->out[k]));
    if (steps && dtypes && outs) found = PyObject_CallFunction(hot_method, "OOsOO", steps, dtypes, hot->lies, outs, kept);
    Py_XDECREF(outs);
    address = found ? PyLong_AsLongLong(found) : 0;
    function = address == HOT_LATER || address == HOT_CAN || PyErr_Occurred() ? NULL : (RowsFunction)(uintptr_t)address;
    Py_XDECREF(steps), Py_XDECREF(dtypes), Py_XDECREF(found);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return hot_put_off(hot), -1;
        PyErr_Clear();
    }
    if (kept == Py_True) hot->ahead = address == HOT_CAN;
    if (kept == Py_None && function == NULL) {
        hot->asked--, hot->ahead = address == HOT_LATER;
        if (hot->ahead) hot->work -= hot_work / HOT_AGAIN;
    }
    if (function) hot->asked = 2;
    if (function && hot_check(hot, function, 0) && hot_check(hot, function, 1)) hot->function = function;
    hot->busy--, hot->asking = 0;
    return 0;
}

/* The expression itself, when what NumPy's loops have computed of it pays for looking for its machine code, and again when it pays for
   compiling it; it stays until that is done or put off. */
static inline Hot* hot_count(Hot* hot, npy_intp size) {
    if (hot == NULL || hot->asked > 1 || hot->asking || hot_method == NULL) return NULL;
    hot->work += (long long)hot->steps * (size + HOT_CALL);
    if (hot->work < (hot->asked == 0 ? hot_work / HOT_KEPT : hot->ahead ? hot_work / HOT_AHEAD : hot_work)) return NULL;
    hot->asked++, hot->busy++, hot->asking = 1;
    return hot;
}

#endif
