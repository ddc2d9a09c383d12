/* What an expression of values at hand is until it is computed: its steps and operands, and where in a program its operators may wait.

   In: operators, as the interpreter comes to them.  Out: cells that wait in a ring; whether an operator's result is only there for the next one.
   Promise: what the program's code does not show for certain is denied. */

#ifndef LAZYNP_CHAIN_H
#define LAZYNP_CHAIN_H

#include "loops.h"

#define CHAIN_STEPS 24
#define CHAIN_BLOCK 1024 /* elements that are computed at a time, at most */
#define CHAIN_SIZE 16    /* bytes of an element, at most */
static struct {
    npy_intp from;  /* elements, from which a result that lies in memory costs more than looking at the program's code */
    npy_intp row;   /* elements in a row, fewer are laid beside other rows: they are not worth a call of a loop */
    npy_intp block; /* elements that are computed at a time */
    int runs;       /* of a piece of the program, before it is looked at */
} chain_sizes = {256, 32, CHAIN_BLOCK, 1};

enum { OF_ARRAY, OF_NUMBER, OF_STEP };
typedef struct {
    short kind, number;
} Operand;
typedef struct {
    Loops* loops;
    int type; /* of its operands */
    Operand of[2];
    int end; /* 0: no byte of a step is undefined, so that two may be compared */
} Step;

/* Where an operator is. */
typedef struct {
    PyCodeObject* code; /* borrowed */
    int offset;
} Site;

/* Operations that wait, in the program's order, over one space of elements.  Cells that have a step's value name the tape and the step. */
typedef struct Chain {
    struct Chain *before, *after; /* all that wait, in a ring */
    int steps, arrays, numbers, ndim;
    int cells; /* that have a step's value */
    int told;  /* its errors were told of */
    int users; /* calls that compute it now */
    npy_intp dims[AXES], size;
    PyObject* state; /* of errors, in which all steps were recorded */
    int minded;      /* errors of which somebody is told */
    Step step[CHAIN_STEPS];
    Cell* cell[CHAIN_STEPS]; /* borrowed; NULL: nobody has this step's value */
    Site site[CHAIN_STEPS];  /* whose code objects are held */
    PyArrayObject* array[CHAIN_STEPS + 1];
    Value value[CHAIN_STEPS + 1];
} Chain;

static PyObject* result_method; /* `hand.result`, for answers that are not plain */
static long long chain_results[2]; /* computed in one pass, and step by step */
static Chain waiting = {.before = &waiting, .after = &waiting};

#define IS_CHAIN(x) (Py_TYPE(x) == array_type && WAITS(x))
#define CHAIN_OF(x) ((Chain*)((Cell*)(x))->before)
#define STEP_OF(x) ((int)((Cell*)(x))->offset)

static Chain* kept_chains[8];
static int kept_chain_count;

static void chain_leave(Chain* self) {
    self->before->after = self->after;
    self->after->before = self->before;
    self->before = self->after = self;
    waiting_count--;
}

static void chain_enter(Chain* self) {
    self->after = &waiting, self->before = waiting.before;
    waiting.before->after = self, waiting.before = self;
    waiting_count++;
}

static void chain_free(Chain* self) {
    if (self->after != self) chain_leave(self);
    for (int k = 0; k < self->arrays; k++) Py_DECREF(self->array[k]);
    for (int k = 0; k < self->steps; k++) Py_XDECREF(self->site[k].code);
    Py_XDECREF(self->state);
    if (kept_chain_count < 8) kept_chains[kept_chain_count++] = self;
    else PyMem_Free(self);
}

/* A tape without steps, which does not wait yet. */
static Chain* chain_new(PyObject* state, int minded) {
    Chain* self = kept_chain_count ? kept_chains[--kept_chain_count] : PyMem_Malloc(sizeof(Chain));
    if (self == NULL) return (Chain*)PyErr_NoMemory();
    self->steps = self->arrays = self->numbers = self->cells = self->told = self->users = 0;
    self->state = Py_NewRef(state), self->minded = minded;
    self->before = self->after = self;
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

static PyObject *state_method, *place_method, *step_method; /* of `tapes.py` */

#endif
