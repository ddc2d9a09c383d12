/* Expressions of values at hand, computed in one pass over their operands.

   In: operators on arrays at hand of hundreds of elements and more, within one expression of the program (`a * x + b * y`).  Out: NumPy's bits; but what is
   between the operators is computed block by block, in the first-level cache, and never lies in memory.  Promise: an operator waits for the next one
   only where the program's own code says that the next one, on the same line, is all that will ever see its result; nothing that is read is
   written, or shown to somebody who could write it, before; where an error is raised NumPy computes step by step, to warn as it does.

   No compiler is needed: a step is NumPy's inner loop, called on some hundred elements at a time. */

#ifndef LAZYNP_CHAINS_H
#define LAZYNP_CHAINS_H

#include "loops.h"

#define CHAIN_STEPS 24
#define CHAIN_BLOCK 1024 /* elements that are computed at a time, at most */
static struct {
    npy_intp from;  /* elements, from which a result that lies in memory costs more than looking at the program's code */
    npy_intp row;   /* elements in a row, fewer are not worth a call of a loop */
    npy_intp block; /* elements that are computed at a time */
    int runs;       /* of a piece of the program, before it is looked at */
} chain_sizes = {256, 32, CHAIN_BLOCK, 1};

enum { OF_ARRAY, OF_NUMBER, OF_STEP };
typedef struct {
    int kind, number;
} Operand;
typedef struct {
    Loops* loops;
    int type; /* of its operands */
    Operand of[2];
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

/* What an expression is so far; it belongs to the cell that stands for its value. */
typedef struct Chain {
    Cell* cell;
    struct Chain *before, *after; /* all that wait, in a ring */
    int steps, arrays, numbers, ndim;
    int told;  /* its errors were told of, or are another chain's to tell */
    unsigned long thread;
    int users; /* calls that compute it now */
    npy_intp dims[AXES], size;
    PyCodeObject* code; /* where the operator is that waits first */
    int offset;
    Step step[CHAIN_STEPS];
    PyArrayObject* array[CHAIN_STEPS + 1];
    Value value[CHAIN_STEPS + 1];
} Chain;

static PyTypeObject* chain_type; /* the class of arrays while they are not computed yet; its instances become the former's */
static long long chain_results[2]; /* computed in one pass, and step by step */
static Chain waiting = {.before = &waiting, .after = &waiting};
static int waiting_count;

#define IS_CHAIN(x) (Py_TYPE(x) == chain_type)
#define CHAIN_OF(x) ((Chain*)((Cell*)(x))->before)

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
    Py_DECREF(self->code);
    if (kept_chain_count < 8) kept_chains[kept_chain_count++] = self;
    else PyMem_Free(self);
}

/* A chain without steps, which does not wait yet. */
static PyObject* chain_new(const Site* site) {
    Chain* self = kept_chain_count ? kept_chains[--kept_chain_count] : PyMem_Malloc(sizeof(Chain));
    Cell* cell = self ? (Cell*)cell_of(Py_NewRef(Py_None), NULL) : NULL;
    if (cell == NULL) {
        PyMem_Free(self);
        return self ? NULL : PyErr_NoMemory();
    }
    Py_SET_TYPE((PyObject*)cell, chain_type);
    Py_INCREF(chain_type), Py_DECREF(array_type);
    cell->before = (Cell*)self;
    cell->lent = 0;
    self->cell = cell;
    self->steps = self->arrays = self->numbers = self->told = self->users = 0;
    self->thread = PyThread_get_thread_ident();
    self->code = (PyCodeObject*)Py_NewRef((PyObject*)site->code), self->offset = site->offset;
    self->before = self->after = self;
    return (PyObject*)cell;
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
   the program is looked at when it runs again: looking costs more than what runs once could win. */
static int site_waits(Site* site) {
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
        if (chain_sizes.runs == 0) failed = places_look(frame, site->code);
    } else if (of->waits == NULL && site->offset <= of->first) {
        failed = places_look(frame, site->code);
    }
    if (failed) return -1;
    waits = waits_at(site->code, site->offset);
    return waits && *waits;
}

/* Computing ------------------------------------------------------------------------------------------------------------------------ */

static char blocks[CHAIN_STEPS + 1][CHAIN_BLOCK * 8];

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
static inline int step_run(const Chain* self, int k, const int* block, char* const* at, const Rows2* of, char* to, npy_intp n) {
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
        default: args[o] = blocks[block[number]], steps[o] = self->step[number].loops->of[self->step[number].type].size;
        }
    }
    args[nin] = to, steps[nin] = loop->size;
    loop->function(args, dims, steps, loop->data);
    return flags_raised(1);
}

/* The elements in one row, from `at` on; whether an error was raised. */
static inline int row_run(const Chain* self, const int* block, char** at, const Rows2* of, char* to, npy_intp size, npy_intp length) {
    int last = self->steps - 1;
    for (npy_intp done = 0; done < length; done += chain_sizes.block) {
        npy_intp n = length - done < chain_sizes.block ? length - done : chain_sizes.block;
        for (int k = 0; k < last; k++)
            if (step_run(self, k, block, at, of, blocks[block[k]], n)) return 1;
        if (step_run(self, last, block, at, of, to + done * size, n)) return 1;
        for (int k = 0; k < self->arrays; k++) at[k] += n * of->along[k];
    }
    return 0;
}

/* The same where rows are short and lie equally far apart, as if they were one: `to` gets what is no gap. */
static int gaps_run(const Chain* self, const int* block, char** at, const Rows2* of, char* to, npy_intp size, npy_intp apart) {
    npy_intp span = (of->rows - 1) * apart + of->length, row = 0;
    int last = self->steps - 1;
    for (npy_intp done = 0; done < span; done += chain_sizes.block) {
        npy_intp n = span - done < chain_sizes.block ? span - done : chain_sizes.block;
        for (int k = 0; k <= last; k++)
            if (step_run(self, k, block, at, of, blocks[block[k]], n)) return 1;
        for (; row < of->rows; row++) { /* the pieces of rows in this block */
            npy_intp from = row * apart, end = from + of->length, first = from > done ? from : done, past = end < done + n ? end : done + n;
            if (first < past) memcpy(to + (row * of->length + first - from) * size, blocks[block[last]] + (first - done) * size, (size_t)((past - first) * size));
            if (end > done + n) break;
        }
        for (int k = 0; k < self->arrays; k++) at[k] += n * of->along[k];
    }
    return 0;
}

/* All in one pass; NULL without an exception where it is to be done step by step. */
static PyArrayObject* chain_run(Chain* self) {
    const Step* last = &self->step[self->steps - 1];
    Loop* loop = &last->loops->of[last->type];
    PyArrayObject* made;
    Rows2 of;
    int block[CHAIN_STEPS];
    char* at[CHAIN_STEPS + 1];
    npy_intp apart = 0;
    int raised = 0;
    if (self->steps < 2 || !rows_of(self, &of)) return NULL;
    if (of.rows > 1 && of.length < chain_sizes.block) apart = apart_in_all(self, &of);
    if (of.rows > 1 && of.length < chain_sizes.row && !apart) return NULL;
    if ((made = result_of(self->ndim, self->dims, loop->out, self->size)) == NULL) return NULL;
    blocks_assign(self, block);
    for (int k = 0; k < self->arrays; k++) at[k] = PyArray_BYTES(self->array[k]);
    flags_clear(1);
    if (apart) {
        raised = gaps_run(self, block, at, &of, PyArray_BYTES(made), loop->size, apart);
    } else {
        for (npy_intp row = 0; row < of.rows && !raised; row++) {
            for (int k = 0; k < self->arrays; k++) at[k] = PyArray_BYTES(self->array[k]) + row * of.across[k];
            raised = row_run(self, block, at, &of, PyArray_BYTES(made) + row * of.length * loop->size, loop->size, of.length);
        }
    }
    if (raised) Py_CLEAR(made);
    return made;
}

/* An operator whose waiting was in vain again and again waits no more. */
static void chain_learn(const Chain* self, int fine) {
    unsigned char* waits = waits_at(self->code, self->offset);
    chain_results[!fine]++;
    if (waits && *waits) *waits = (unsigned char)(!fine ? *waits - 1 : *waits < FAILURES ? *waits + 1 : *waits);
}

/* What calls a function where the chain's operators are, if the program is elsewhere: an array may be asked for by code that stands between them.  Of
   errors that are another chain's to tell, or in another thread, nobody here wants to hear. */
static PyObject* chain_there(const Chain* self) {
    if (self->told || self->thread != PyThread_get_thread_ident()) return Py_NewRef(quiet_call);
    PyFrameObject* frame = PyEval_GetFrame();
    PyCodeObject* code = frame ? PyFrame_GetCode(frame) : NULL;
    int here = code == self->code && PyFrame_GetLineNumber(frame) == PyCode_Addr2Line(self->code, self->offset);
    Py_XDECREF(code);
    return here ? Py_NewRef(Py_None) : PyObject_CallFunction(there_method, "Oi", self->code, self->offset);
}

/* Step by step, as NumPy does. */
static PyArrayObject* chain_steps(Chain* self) {
    PyObject *made[CHAIN_STEPS] = {NULL}, *there = chain_there(self);
    PyArrayObject* found = NULL;
    int k;
    if (there == NULL) return NULL;
    for (k = 0; k < self->steps; k++) {
        Step* step = &self->step[k];
        PyObject *called[3] = {step->loops->ufunc, NULL, NULL}, **args = called + 1, *before;
        for (int o = 0; o < step->loops->nin; o++) {
            int number = step->of[o].number;
            switch (step->of[o].kind) {
            case OF_ARRAY: args[o] = Py_NewRef((PyObject*)self->array[number]); break;
            case OF_STEP: args[o] = made[number], made[number] = NULL; break;
            default: {
                PyArray_Descr* descr = PyArray_DescrFromType(step->type);
                args[o] = PyArray_Scalar(&self->value[number], descr, NULL);
                Py_DECREF(descr);
            }
            }
        }
        if (args[0] && (args[1] || step->loops->nin == 1)) {
            before = pool_begin(self->size * 8);
            if (there == Py_None) made[k] = PyObject_Vectorcall(called[0], args, (size_t)step->loops->nin, NULL);
            else made[k] = PyObject_Vectorcall(there, called, (size_t)step->loops->nin + 1, NULL);
            pool_end(before);
        }
        Py_XDECREF(args[0]), Py_XDECREF(args[1]);
        if (made[k] == NULL) break;
    }
    if (k == self->steps && PyArray_CheckExact(made[k - 1])) found = (PyArrayObject*)made[--k];
    else if (k == self->steps) PyErr_SetString(PyExc_TypeError, "a ufunc of NumPy's returned no array");
    while (k--) Py_XDECREF(made[k]);
    Py_DECREF(there);
    return found;
}

/* In one pass if that goes; NULL where NumPy raises.  `wanted`: whether it went is remembered. */
static PyArrayObject* chain_compute(Chain* self, int wanted) {
    PyArrayObject* found = chain_run(self);
    if (wanted && !self->told) chain_learn(self, found != NULL);
    return found || PyErr_Occurred() ? found : chain_steps(self);
}

/* Compute what `x` stands for: afterwards it is an array at hand like others; -1 where NumPy raises. */
static int chain_settle(PyObject* x) {
    Cell* cell = (Cell*)x;
    Chain* self = CHAIN_OF(x);
    PyArrayObject* found;
    Py_INCREF(x), self->users++;
    if (self->after != self) chain_leave(self); /* NumPy may call a program's handler of errors, or another thread: they may settle all others */
    found = chain_compute(self, 1);
    self->users--;
    if (found == NULL) {
        self->told = 1;
        if (self->users == 0 && IS_CHAIN(x)) chain_enter(self);
    } else if (IS_CHAIN(x)) {
        cell->before = NULL;
        Py_SETREF(cell->base, Py_NewRef((PyObject*)found));
        Py_SET_TYPE(x, array_type);
        Py_INCREF(array_type), Py_DECREF(chain_type);
    } /* else somebody who was asked meanwhile has computed it */
    if (self->users == 0 && !IS_CHAIN(x)) chain_free(self);
    Py_XDECREF(found), Py_DECREF(x);
    return found ? 0 : -1;
}

/* Nobody wants it, because an exception came between; of the errors that it would have raised somebody may want to hear. */
static void chain_dealloc(PyObject* x) {
    Chain* self = CHAIN_OF(x);
    PyObject *type, *value, *trace;
    PyArrayObject* found;
    Py_SET_TYPE(x, array_type);
    Py_INCREF(array_type), Py_DECREF(chain_type);
    array_dealloc(x);
    if (self->after != self) chain_leave(self);
    if (!self->told) {
        PyErr_Fetch(&type, &value, &trace);
        found = chain_compute(self, 0);
        if (found == NULL) PyErr_Clear();
        Py_XDECREF(found);
        PyErr_Restore(type, value, trace);
    }
    chain_free(self);
}

static int settle_all(void) {
    while (waiting_count) {
        PyObject* x = Py_NewRef((PyObject*)waiting.after->cell);
        int failed = chain_settle(x);
        Py_DECREF(x);
        if (failed) return -1;
    }
    return 0;
}

/* What waits is computed before anything but the next operator looks at it, or at what it was made of. */
#define SETTLED (waiting_count == 0 || settle_all() == 0)

/* Somebody outside may write the memory of `x`. */
static int cell_lend(PyObject* x) {
    if (Py_TYPE(x) != array_type) return 0;
    x = owner_of(x);
    if (Py_TYPE(x) == array_type) ((Cell*)x)->lent = 1;
    return 0;
}

/* Any attribute: everything that is not an operator. */
static PyObject* chain_getattr(PyObject* x, PyObject* name) { return SETTLED ? PyObject_GenericGetAttr(x, name) : NULL; }
static int chain_setattr(PyObject* x, PyObject* name, PyObject* value) { return SETTLED ? PyObject_GenericSetAttr(x, name, value) : -1; }

/* For tests: chains of few elements. */
static void chain_resize(npy_intp from, npy_intp row, npy_intp block, int runs) {
    chain_sizes.from = from, chain_sizes.row = row, chain_sizes.runs = runs;
    chain_sizes.block = block < 1 ? 1 : block > CHAIN_BLOCK ? CHAIN_BLOCK : block;
}

static void chain_register(PyTypeObject* type, PyObject* look, PyObject* there) {
    chain_type = type;
    places_method = look, there_method = there;
    type->tp_dealloc = chain_dealloc;
    type->tp_getattro = chain_getattr;
    type->tp_setattro = chain_setattr;
}

/* Steps ---------------------------------------------------------------------------------------------------------------------------- */

/* The shape of `x` and `y` together; 0 where NumPy has to see to it. */
static int broadcast_dims(PyArrayObject* x, PyArrayObject* y, int* ndim, npy_intp* dims, npy_intp* size) {
    int nx = PyArray_NDIM(x), ny = y ? PyArray_NDIM(y) : 0;
    *ndim = nx > ny ? nx : ny;
    *size = 1;
    if (*ndim == 0 || *ndim > AXES) return 0;
    for (int k = 0; k < *ndim; k++) {
        npy_intp p = k < *ndim - nx ? 1 : PyArray_DIM(x, k - (*ndim - nx)), q = k < *ndim - ny ? 1 : PyArray_DIM(y, k - (*ndim - ny));
        if (p != q && p != 1 && q != 1) return 0;
        *size *= dims[k] = p == 1 ? q : p;
    }
    return 1;
}

/* Whether an array is an operand under the shape of a chain, in the order of its memory. */
static int chain_takes(const Chain* self, PyArrayObject* x) {
    npy_intp steps[AXES];
    return PyArray_NDIM(x) <= self->ndim && (PyArray_IS_C_CONTIGUOUS(x) ? 1 : self->ndim <= 2) && operand_steps(x, self->ndim, self->dims, steps);
}

static int chain_type_of(const Chain* self) {
    const Step* last = &self->step[self->steps - 1];
    return last->loops->of[last->type].out;
}

/* Put `x` (an array, or NULL and the number `b`) among the operands. */
static int chain_operand(Chain* self, PyArrayObject* x, PyObject* b, int type, Operand* to) {
    if (x) {
        if (self->arrays > CHAIN_STEPS || !chain_takes(self, x)) return 0;
        for (int k = 0; k < self->arrays; k++)
            if (self->array[k] == x) return *to = (Operand){OF_ARRAY, k}, 1;
        *to = (Operand){OF_ARRAY, self->arrays};
        self->array[self->arrays++] = (PyArrayObject*)Py_NewRef((PyObject*)x);
        return 1;
    }
    if (self->numbers > CHAIN_STEPS || !value_of(b, type, &self->value[self->numbers])) return 0;
    *to = (Operand){OF_NUMBER, self->numbers++};
    return 1;
}

/* Add the steps of `other` to those of `self`; `other` keeps its own, for somebody may have got its cell (NumPy's arrays of objects do). */
static int chain_join(Chain* self, const Chain* other) {
    int first = self->steps, arrays[CHAIN_STEPS + 1];
    if (first == 0) {
        Py_SETREF(self->code, (PyCodeObject*)Py_NewRef((PyObject*)other->code));
        self->offset = other->offset;
        self->ndim = other->ndim, self->size = other->size;
        memcpy(self->dims, other->dims, (size_t)other->ndim * sizeof(npy_intp));
    }
    if (first + other->steps >= CHAIN_STEPS || self->ndim != other->ndim || memcmp(self->dims, other->dims, (size_t)self->ndim * sizeof(npy_intp))) return 0;
    if (self->arrays + other->arrays > CHAIN_STEPS || self->numbers + other->numbers > CHAIN_STEPS) return 0;
    for (int k = 0; k < other->arrays; k++) {
        Operand to = {OF_ARRAY, k};
        if (first) chain_operand(self, other->array[k], NULL, 0, &to);
        else self->array[self->arrays++] = (PyArrayObject*)Py_NewRef((PyObject*)other->array[k]);
        arrays[k] = to.number;
    }
    for (int k = 0; k < other->numbers; k++) self->value[self->numbers + k] = other->value[k];
    for (int k = 0; k < other->steps; k++) {
        Step* step = &self->step[self->steps++];
        *step = other->step[k];
        for (int o = 0; o < 2; o++)
            step->of[o].number = step->of[o].kind == OF_ARRAY ? arrays[step->of[o].number] : step->of[o].number + (step->of[o].kind == OF_STEP ? first : self->numbers);
    }
    self->numbers += other->numbers;
    return 1;
}

/* Whether the memory of `a` is nobody else's to write. */
static inline int is_private(PyObject* a) {
    PyObject* owner = owner_of(a);
    return Py_TYPE(owner) == array_type && is_own((Cell*)owner);
}

/* The type of an operand, an array or a chain; -1 of all others, -2 of what no chain may read. */
static inline int operand_read(PyObject* x, PyArrayObject** array, Chain** chain) {
    *array = NULL, *chain = NULL;
    if (IS_CHAIN(x)) {
        if (Py_REFCNT(x) != 1) return -2; /* it got away */
        return chain_type_of(*chain = CHAIN_OF(x));
    }
    if ((*array = memory_of(x)) == NULL) return -1;
    return is_private(x) ? PyArray_TYPE(*array) : -2;
}

/* `a op b` (b is NULL for an operation on one array) as a step of an expression: a cell that waits, or has the whole expression's value; NULL
   (perhaps without an exception) where it is to be computed by itself. */
static PyObject* chain_step(Loops* loops, PyObject* a, PyObject* b) {
    PyObject *operands[2] = {a, b}, *cell;
    PyArrayObject* arrays[2] = {NULL, NULL};
    Chain *chains[2] = {NULL, NULL}, *self;
    int type = -1, found, nin = b ? 2 : 1, waits;
    Operand of[2] = {{OF_NUMBER, 0}, {OF_NUMBER, 0}};
    Loop* loop;
    Site site = {NULL, 0};
    if ((waits = site_waits(&site)) < 0 || site.code == NULL || (!waits && !IS_CHAIN(a) && !(b && IS_CHAIN(b)))) return NULL;
    for (int o = 0; o < nin; o++) {
        if ((found = operand_read(operands[o], &arrays[o], &chains[o])) == -2 || (found >= 0 && type >= 0 && found != type)) return NULL;
        if (found >= 0) type = found;
    }
    if (type < 0 || (loop = loop_of(loops, type)) == NULL || !loop->basic || loop->size > 8 || (cell = chain_new(&site)) == NULL) return NULL;
    self = CHAIN_OF(cell);
    for (int o = 0; o < nin; o++) /* once more: trying a loop and making a cell may run code (a collection of garbage); from here on nothing does */
        if ((found = operand_read(operands[o], &arrays[o], &chains[o])) != -1 && found != type) goto refused;
    if (chains[0] == NULL && chains[1] == NULL) {
        PyArrayObject *x = arrays[0] ? arrays[0] : arrays[1], *y = arrays[0] ? arrays[1] : NULL;
        if (!waits || x == NULL || !broadcast_dims(x, y, &self->ndim, self->dims, &self->size)) goto refused;
        if (self->size < chain_sizes.from || self->size > limit_now()) goto refused;
    }
    for (int o = 0; o < nin; o++) {
        if (chains[o] && !chain_join(self, chains[o])) goto refused;
        if (chains[o]) of[o] = (Operand){OF_STEP, self->steps - 1};
    }
    for (int o = 0; o < nin; o++)
        if (!chains[o] && !chain_operand(self, arrays[o], operands[o], type, &of[o])) goto refused;
    self->step[self->steps++] = (Step){loops, type, {of[0], of[1]}};
    for (int o = 0; o < nin; o++)
        if (chains[o]) chains[o]->told = 1;
    chain_enter(self);
    if (waits || chain_settle(cell) == 0) return cell;
    Py_DECREF(cell);
    return NULL;
refused:
    self->told = 1, self->steps = 0;
    Py_DECREF(cell);
    return NULL;
}

#endif
