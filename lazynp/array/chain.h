/* What is recorded and not yet computed: operations over arrays that lie in memory.

   In: operations, in the program's order.  Out: tapes, each of steps over one space of elements, and cells whose values wait on them.
   Promise: a tape reads nothing of younger tapes, so that computing the oldest first needs no other one. */

#ifndef LAZYNP_CHAIN_H
#define LAZYNP_CHAIN_H

#include "loops.h"

#define CHAIN_STEPS 500 /* of a tape: what a formula of some hundred operations has between them need not lie in memory */
#define CHAIN_ARRAYS 64 /* that a tape reads */
#define CHAIN_FEW 24       /* steps that a tape has room for in itself: most have fewer, and a page of memory that is touched first costs as much as fifty operations */
#define CHAIN_FEW_ARRAYS 8 /* arrays, likewise */
#define CHAIN_SOME 80      /* steps that there is room for then */
#define CHAIN_BLOCK 1024 /* elements that are computed at a time, at most */
#define CHAIN_ROW 512    /* elements in a row, more are worth the calls of loops */
#define CHAIN_SIZE 16    /* bytes of an element, at most */
#define CHAINS_MOST 32   /* tapes that wait: then the older half is computed */
static struct {
    npy_intp from;  /* elements of a result, from which on it is recorded */
    npy_intp row;   /* elements in a row, fewer may be laid beside other rows, where they are not worth the calls of loops */
    npy_intp block; /* elements that are computed at a time */
} chain_sizes = {1, CHAIN_ROW, CHAIN_BLOCK};

enum { OF_ARRAY, OF_NUMBER, OF_STEP };
typedef struct {
    short kind, number;
} Operand;
#define OPERANDS 3
typedef struct {
    Loops* loops;
    short type, out; /* of its operands (of a mask see `operand_type`), and of its result */
    Operand of[OPERANDS];
} Step; /* without padding, so that two may be compared byte by byte */

static inline int same_step(const Step* one, const Step* other) {
    uint64_t words[2][sizeof(Step) / 8];
    memcpy(words[0], one, sizeof(Step)), memcpy(words[1], other, sizeof(Step));
    return !((words[0][0] ^ words[1][0]) | (words[0][1] ^ words[1][1]) | (words[0][2] ^ words[1][2]));
}

static inline int operand_type(const Loops* loops, int type, int o) { return loops->chooses && o == 0 ? NPY_BOOL : type; }

/* Where an operation is in the program. */
typedef struct {
    PyCodeObject* code; /* held */
    int offset;
} Site;

struct Chain;
/* A function that is recorded whole, and its arguments; see `items.h`. */
#define ITEM_ARGS 6
typedef PyObject* (*Answer)(PyObject* call, PyObject* const* args, Py_ssize_t n, PyObject* names);
/* The answer by loops alone, without what a call needs besides; NULL, perhaps without an exception, where there is none or errors are to be told of. */
typedef PyArrayObject* (*ByLoops)(struct Chain* self);
typedef struct {
    Answer answer;              /* makes the call, of arrays in memory */
    ByLoops by_loops;           /* NULL: nothing but the call will do */
    ByLoops by_steps;           /* of an operand that waits, with the steps that compute it; NULL: it is computed before */
    int axis, keeps, off;       /* for `by_loops`: along which one, whether it stays, and how many elements of it do not count */
    PyObject *call, *names;     /* held; NULL of a view of what waits to be written, whose place is known */
    PyObject* args[ITEM_ARGS];  /* held; NULL: an operand, the one that `of` says */
    Py_ssize_t n;
    int total, joined;          /* arguments; whether the operands are the items of the first one */
    int silent;                 /* NumPy tells of no floating-point errors of it */
    int of[ITEM_ARGS];
} Item;

enum { OPEN, ALONE, ITEM, PUT }; /* a tape that takes further steps; one step, over whole arrays; a function; a write of a part */

/* A part of an array, where a result is to lie. */
typedef struct {
    char* data;
    int ndim;
    npy_intp dims[AXES], strides[AXES], size; /* of an element */
} Target;

/* A step, where it is in the program, and who waits for its value. */
typedef struct {
    Step step;
    Cell* cell;        /* borrowed; NULL: no cell has its value */
    struct Chain* put; /* the write that waits for its value; NULL: none does */
    Site site;
    void* spare; /* so that its place is found without a multiplication */
} StepAt;

/* Steps that wait, in the program's order, over one space of elements.  Cells that have a step's value name the tape and the step. */
typedef struct Chain {
    struct Chain *before, *after; /* all that wait, in a ring, the oldest first */
    long long serial;             /* counts up along the ring */
    int steps, arrays, numbers, ndim;
    int step_room, array_room; /* for so many steps and numbers, and arrays: see `chain_holds` */
    StepAt* at;
    Value* value;
    PyArrayObject** array; /* NULL where it is not known yet */
    Cell** source;         /* a cell that waits, whose array it is to be, or after which the array may be read */
    void* grown;           /* the memory of all these; NULL: `few` */
    void* begins;          /* what the C library gave for this */
    int cells;    /* that have a step's value */
    int sources;  /* operands that wait themselves */
    int closed;   /* OPEN, or why it takes no further step */
    int sealed;   /* it takes no further step, since that was asked for (`tape_seal`) */
    int flat;     /* all its arrays lie as its results do */
    int wide;     /* some of its numbers are complex */
    int whole;    /* a step is NumPy's only where its loop gets all elements at once */
    int told;     /* its errors were told of */
    int strided;  /* its results lie as NumPy lays them out, in another order than C's */
    int ordered;  /* that order is known: `order` */
    int large;    /* over more elements than small arrays have */
    int turned;   /* of a view: what it shows lies in `order` */
    char order[AXES]; /* axes, from the one whose elements lie furthest apart on */
    int view;     /* a call whose answer is a view of its first operand, which waits: of `dims` and `strides`, `offset` bytes behind its beginning */
    int ready;    /* its operand is its result, a large one, of which its cell is to have a node: see `cell_bound` */
    int failed;   /* its call raised an exception, which only code that asks for its value gets */
    int users;    /* calls that compute it now */
    PyThreadState* runner; /* which thread's the latest of them is */
    npy_intp dims[PLACE_AXES], size; /* more than AXES of them only where a part is written */
    npy_intp strides[PLACE_AXES], offset;
    PyArrayObject* place; /* of a write, and of views of what it leaves: where that lies; NULL of all else */
    PyArrayObject* to;    /* of a write: the part that is written, with what its first source holds */
    Target target;        /* that part */
    int passing;          /* references to the value that go with the statement which writes it now */
    PyObject* state; /* of errors, in which all steps were recorded */
    int minded;      /* errors that the error state does not ignore */
    Item item;
    struct {
        StepAt at[CHAIN_FEW];
        Value value[CHAIN_FEW + 1];
        PyArrayObject* array[CHAIN_FEW_ARRAYS + 1];
        Cell* source[CHAIN_FEW_ARRAYS + 1];
    } few;
} Chain;

static PyObject* result_method; /* `hand.result`, for answers that are not plain */
static long long chain_results[2]; /* computed in one pass, and step by step */
static long long chain_serial;
static Chain waiting = {.before = &waiting, .after = &waiting};

#define IS_CHAIN(x) (Py_TYPE(x) == array_type && WAITS(x))
#define CHAIN_OF(x) ((Chain*)((Cell*)(x))->before)
#define STEP_OF(x) ((int)((Cell*)(x))->offset)

#define CHAINS_KEPT 40 /* as many as wait, and some: of some steps each is some pages, which the C library would give back */
static Chain* kept_chains[CHAINS_KEPT];
static int kept_chain_count;

static void chain_leave(Chain* self) {
    self->before->after = self->after;
    self->after->before = self->before;
    self->before = self->after = self;
    if (--waiting_count == 0) orphaned_bytes = 0;
}

static void chain_enter(Chain* self) {
    self->after = &waiting, self->before = waiting.before;
    waiting.before->after = self, waiting.before = self;
    waiting_count++;
}

static inline int same_lengths(const npy_intp* one, const npy_intp* two, int n) {
    while (n--)
        if (one[n] != two[n]) return 0;
    return 1;
}

/* A cell that waits, as an operand: it is known to be read. */
static inline Cell* source_new(PyObject* x) {
    ((Cell*)x)->readers++;
    return (Cell*)Py_NewRef(x);
}

static inline void source_drop(Cell* x) {
    if (x == NULL) return;
    x->readers--;
    Py_DECREF(x);
}

static Chain* chain_made(void) {
    void* begins = PyMem_Malloc(sizeof(Chain) + POOL_LINE);
    Chain* self = (Chain*)(((uintptr_t)begins + POOL_LINE - 1) & ~(uintptr_t)(POOL_LINE - 1)); /* what belongs together lies in one line of the cache */
    if (begins == NULL) return NULL;
    self->begins = begins, self->step_room = CHAIN_FEW, self->array_room = CHAIN_FEW_ARRAYS, self->grown = NULL;
    self->at = self->few.at, self->value = self->few.value, self->array = self->few.array, self->source = self->few.source;
    return self;
}

static void chain_unmade(Chain* self) {
    PyMem_Free(self->grown);
    PyMem_Free(self->begins);
}

/* Have more room.  What was found of a tape before, by its address, is somewhere else then. */
static int chain_grow(Chain* self, int steps) {
    size_t some = steps > CHAIN_SOME ? CHAIN_STEPS : CHAIN_SOME, many = CHAIN_ARRAYS;
    StepAt* at = PyMem_Malloc(some * sizeof(StepAt) + (some + 1) * sizeof(Value) + (many + 1) * (sizeof(PyArrayObject*) + sizeof(Cell*)));
    Value* value = (Value*)(at + some);
    PyArrayObject** array = (PyArrayObject**)(value + some + 1);
    Cell** source = (Cell**)(array + many + 1);
    if (at == NULL) return 0;
    memcpy(at, self->at, (size_t)self->steps * sizeof(StepAt)), memcpy(value, self->value, (size_t)self->numbers * sizeof(Value));
    memcpy(array, self->array, (size_t)self->arrays * sizeof(PyArrayObject*)), memcpy(source, self->source, (size_t)self->arrays * sizeof(Cell*));
    self->at = at, self->value = value, self->array = array, self->source = source;
    PyMem_Free(self->grown);
    self->grown = at, self->step_room = (int)some, self->array_room = (int)many;
    return 1;
}

/* Whether a tape has room for so many steps, numbers and arrays more. */
static NOT_INLINED int chain_made_larger(Chain* self, int steps, int arrays) {
    int all = (self->steps > self->numbers ? self->steps : self->numbers) + steps;
    return all <= CHAIN_STEPS && self->arrays + arrays <= CHAIN_ARRAYS && chain_grow(self, all);
}
static inline int chain_holds(Chain* self, int steps, int arrays) {
    return (self->steps + steps <= self->step_room && self->numbers + steps <= self->step_room && self->arrays + arrays <= self->array_room) || chain_made_larger(self, steps, arrays);
}

static void chain_free(Chain* self) {
    if (self->after != self) chain_leave(self);
    for (int k = 0; k < self->steps; k++) Py_XDECREF(self->at[k].site.code);
    self->steps = 0;
    if (self->view && self->source[0]) self->source[0]->waiting_views--;
    if (self->closed == PUT && self->source[0] && WAITS(self->source[0]) && CHAIN_OF(self->source[0]) && CHAIN_OF(self->source[0])->at[STEP_OF(self->source[0])].put == self)
        CHAIN_OF(self->source[0])->at[STEP_OF(self->source[0])].put = NULL;
    for (int k = 0; k < self->arrays; k++) { /* what goes with them may have code run, which finds no such tape any more */
        Py_XDECREF(self->array[k]);
        source_drop(self->source[k]);
    }
    for (int k = 0; self->closed == ITEM && k < self->item.total; k++) Py_XDECREF(self->item.args[k]);
    if (self->closed == ITEM) Py_XDECREF(self->item.call), Py_XDECREF(self->item.names);
    Py_XDECREF(self->place), Py_XDECREF(self->to);
    Py_XDECREF(self->state);
    if (kept_chain_count < CHAINS_KEPT) kept_chains[kept_chain_count++] = self;
    else chain_unmade(self);
}

#ifdef LAZYNP_CHECK /* see `tools/sanitize.sh` */
static void tapes_sound(const char* where) {
    for (const Chain* self = waiting.after; self != &waiting; self = self->after)
        for (int k = 0; k < self->arrays; k++) {
            const Cell* cell = self->source[k];
            if (cell && WAITS(cell) && CHAIN_OF(cell) && CHAIN_OF(cell)->serial > self->serial) {
                fprintf(stderr, "unsound at %s: tape %lld (closed %d, steps %d, users %d) reads %lld (closed %d)\n", where, self->serial, self->closed, self->steps, self->users, CHAIN_OF(cell)->serial, CHAIN_OF(cell)->closed);
                abort();
            }
        }
}
#else
#define tapes_sound(where) (void)0
#endif

/* The order of a tape's axes; of C's NULL. */
static inline const char* chain_order(const Chain* self) { return self->ordered ? self->order : NULL; }
static inline int chain_axis(const Chain* self, int k) { return self->ordered ? self->order[k] : k; }

/* Let a new tape have an order; whether it is that of one (NULL: C's). */
static inline void chain_laid(Chain* self, const char* order) {
    self->strided = self->ordered = 1;
    for (int k = 0; k < self->ndim; k++) self->order[k] = order[k];
}
static inline int is_laid(const Chain* self, const char* order) { return order ? self->ordered && !memcmp(self->order, order, (size_t)self->ndim) : !self->ordered; }

/* Room for the result of a step. */
static PyArrayObject* step_room(const Chain* self, int k) {
    PyArrayObject* made = raw_new(self->ndim, self->dims, self->at[k].step.out, self->size);
    if (made && self->ordered && self->size) raw_order(made, self->order);
    return made;
}

#define LARGE_SHARE 12 /* one over large arrays counts as if it held so much less than its results: when a value is asked for, all that it reads lies in memory at a time */
#define ORPHANED_MOST (6 << 20) /* bytes that only tapes hold */
#define LARGE_AT_LEAST 2 /* tapes that wait beside each other, however large */

/* As how many bytes a tape over a large array counts. */
static inline npy_intp large_bytes(npy_intp size) {
    npy_intp bytes = size * (npy_intp)sizeof(double) / LARGE_SHARE;
    return bytes < ORPHANED_MOST / LARGE_AT_LEAST ? bytes : ORPHANED_MOST / LARGE_AT_LEAST;
}

/* A tape without steps, which does not wait yet. */
static Chain* chain_new(PyObject* state, int minded, int ndim, const npy_intp* dims, npy_intp size) {
    Chain* self = kept_chain_count ? kept_chains[--kept_chain_count] : chain_made();
    if (self == NULL) return (Chain*)PyErr_NoMemory();
    self->serial = ++chain_serial;
    self->steps = self->arrays = self->numbers = self->cells = self->sources = self->closed = self->sealed = self->told = self->failed = self->users = self->whole = self->wide = self->view = self->ready = self->strided = self->ordered = self->turned = 0;
    self->flat = 1, self->place = self->to = NULL;
    self->ndim = ndim, self->size = size;
    for (int k = 0; k < ndim; k++) self->dims[k] = dims[k];
    self->state = Py_NewRef(state), self->minded = minded;
    self->before = self->after = self;
    if ((self->large = size > limit_now())) orphaned_bytes += large_bytes(size);
    return self;
}

/* The cell of the step that comes next. */
static Cell* chain_cell(void) {
    Cell* cell = cell_new();
    if (cell == NULL) return NULL;
    cell->base = Py_NewRef((PyObject*)&waiting_value), cell->node = Py_NewRef(Py_None), cell->view = Py_NewRef(Py_None);
    cell->readonly = Py_NewRef(Py_False);
    cell->before = NULL;
    cell->lent = 0;
    return cell;
}

static PyObject *state_method, *place_method, *step_method, *tell_method; /* of `tapes.py`, and `caller` of `graph/node.py` */
static PyObject* own_root; /* how the names of lazynp's own files begin */

#endif
