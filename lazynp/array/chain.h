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

/* A piece of a program: a byte an instruction says how often an operator there may still wait in vain, 0 of all that do not wait. */
typedef struct {
    PyCodeObject* code;
    PyObject* waits; /* NULL: nobody has looked yet */
    int first;       /* where the operator is that came here first */
} Places;

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
    unsigned long thread;
    npy_intp dims[AXES], size;
    PyObject* errors; /* NumPy's error state, in which all steps were recorded; may be NULL */
    Step step[CHAIN_STEPS];
    Cell* cell[CHAIN_STEPS]; /* borrowed; NULL: nobody has this step's value */
    Site site[CHAIN_STEPS];  /* whose code objects are held */
    PyArrayObject* array[CHAIN_STEPS + 1];
    Value value[CHAIN_STEPS + 1];
} Chain;

static PyObject* result_method; /* `hand.result`, for answers that are not plain */
static PyTypeObject* chain_type; /* the class of arrays while they are not computed yet; its instances become the former's */
static long long chain_results[2]; /* computed in one pass, and step by step */
static Chain waiting = {.before = &waiting, .after = &waiting};
static int waiting_count;

#define IS_CHAIN(x) (Py_TYPE(x) == chain_type)
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
    Py_XDECREF(self->errors);
    if (kept_chain_count < 8) kept_chains[kept_chain_count++] = self;
    else PyMem_Free(self);
}

/* A tape without steps, which does not wait yet. */
static Chain* chain_new(PyObject* errors) {
    Chain* self = kept_chain_count ? kept_chains[--kept_chain_count] : PyMem_Malloc(sizeof(Chain));
    if (self == NULL) return (Chain*)PyErr_NoMemory();
    self->steps = self->arrays = self->numbers = self->cells = self->told = self->users = 0;
    self->thread = PyThread_get_thread_ident();
    self->errors = Py_XNewRef(errors);
    self->before = self->after = self;
    return self;
}

/* The cell of the step that comes next. */
static Cell* chain_cell(void) {
    Cell* cell = cell_new();
    if (cell == NULL) return NULL;
    cell->base = Py_NewRef(Py_None), cell->node = Py_NewRef(Py_None), cell->view = Py_NewRef(Py_None);
    cell->readonly = Py_NewRef(Py_False);
    Py_SET_TYPE((PyObject*)cell, chain_type);
    Py_INCREF(chain_type), Py_DECREF(array_type);
    cell->before = NULL;
    cell->lent = 0;
    return cell;
}

/* Which operators wait ------------------------------------------------------------------------------------------------------------ */

#define SET_BITS 6
#define WAYS 4
#define FAILURES 4
static Places places[1 << SET_BITS][WAYS]; /* of a set, the latest first */
static PyObject *places_method, *there_method; /* `sites.places` and `sites.there` */

static Places* places_set(PyCodeObject* code) { return places[((uint64_t)((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u) >> (64 - SET_BITS)]; }

static Places* places_of(PyCodeObject* code) {
    Places* set = places_set(code);
    for (int k = 0; k < WAYS; k++)
        if (set[k].code == code) return &set[k];
    return NULL;
}

/* A new piece takes the place of that which came first. */
static void places_add(PyCodeObject* code, int first) {
    Places *set = places_set(code), last = set[WAYS - 1];
    memmove(set + 1, set, (WAYS - 1) * sizeof(Places));
    set[0] = (Places){(PyCodeObject*)Py_NewRef((PyObject*)code), NULL, first};
    Py_XDECREF(last.code), Py_XDECREF(last.waits);
}

static unsigned char* waits_at(PyCodeObject* code, int offset) {
    Places* of = places_of(code);
    if (of == NULL || of->waits == NULL || offset < 0 || offset / 2 >= PyByteArray_GET_SIZE(of->waits)) return NULL;
    return (unsigned char*)PyByteArray_AS_STRING(of->waits) + offset / 2;
}

/* Look where operators wait in a piece of the program; -1 where somebody interrupts it. */
static int places_look(PyFrameObject* frame, PyCodeObject* code) {
    PyObject *names = PyFrame_GetGlobals(frame), *found = PyObject_CallFunctionObjArgs(places_method, (PyObject*)code, names, NULL);
    Places* of;
    Py_DECREF(names);
    if (found == NULL && !PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    if (found == NULL) PyErr_Clear();
    if (found == NULL || !PyByteArray_CheckExact(found)) Py_XSETREF(found, PyByteArray_FromStringAndSize(NULL, 0));
    if (found == NULL) return -1;
    for (Py_ssize_t k = 0; k < PyByteArray_GET_SIZE(found); k++) PyByteArray_AS_STRING(found)[k] *= FAILURES;
    if ((of = places_of(code)) != NULL) Py_XSETREF(of->waits, Py_NewRef(found));
    Py_DECREF(found);
    return 0;
}

/* Whether the operator of the user's that runs now has a result that is only there for the next one; -1 where somebody interrupts it.  A piece of
   the program is looked at when it runs again, or with large arrays: looking costs more than what runs once could win with small ones. */
static int site_waits(Site* site, int large) {
    PyFrameObject* frame = places_method ? PyEval_GetFrame() : NULL;
    unsigned char* waits;
    Places* of;
    int failed = 0;
    if (frame == NULL) return 0;
    site->code = PyFrame_GetCode(frame);
    Py_DECREF(site->code); /* the frame has it */
    site->offset = PyFrame_GetLasti(frame);
    if ((of = places_of(site->code)) == NULL) {
        places_add(site->code, site->offset);
        if (chain_sizes.runs == 0 || large) failed = places_look(frame, site->code);
    } else if (of->waits == NULL && (site->offset <= of->first || large)) {
        failed = places_look(frame, site->code);
    }
    if (failed) return -1;
    waits = waits_at(site->code, site->offset);
    return waits && *waits;
}

#endif
