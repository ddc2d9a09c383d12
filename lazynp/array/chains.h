/* Expressions of values at hand, computed in one pass over their operands.

   In: operators on arrays at hand of hundreds of elements and more, within one expression of the program (`a * x + b * y`).  Out: NumPy's bits; but what is
   between the operators is computed block by block, in the first-level cache, and never lies in memory.  Promise: an operator waits for the next one
   only where the program's own code says that the next one, on the same line, is all that will ever see its result; nothing that is read is
   written, or shown to somebody who could write it, before; where an error is raised NumPy computes step by step, to warn as it does.

   No compiler is needed: a step is NumPy's inner loop, called on some hundred elements at a time. */

#ifndef LAZYNP_CHAINS_H
#define LAZYNP_CHAINS_H

#include "hot.h"

/* Computing ------------------------------------------------------------------------------------------------------------------------ */

/* What somebody has, and what that reads. */
static void outs_of(const Chain* self, Outs* outs) {
    outs->count = 0;
    for (int k = 0; k < self->steps; k++) outs->wanted[k] = self->cell[k] != NULL, outs->count += self->cell[k] != NULL, outs->to[k] = NULL;
    for (int k = self->steps; k--;)
        for (int o = 0; outs->wanted[k] && o < self->step[k].loops->nin; o++)
            if (self->step[k].of[o].kind == OF_STEP) outs->wanted[self->step[k].of[o].number] = 1;
}

static int all_wanted(const Chain* self, const Outs* outs) {
    for (int k = 0; k < self->steps; k++)
        if (!outs->wanted[k]) return 0;
    return 1;
}

/* All in one pass; 0 where it is to be done step by step.  `hot`: what is to be compiled afterwards. */
static int chain_run(Chain* self, Outs* outs, PyArrayObject** made, Hot** hot) {
    RowsFunction function;
    Hot* known;
    Rows2 of;
    int raised, minded = self->minded;
    if (self->size == 0 || !rows_of(self, &of)) return 0;
    for (int k = 0; k < self->steps; k++) {
        if (self->cell[k] == NULL) continue;
        if ((made[k] = result_of(self->ndim, self->dims, self->step[k].loops->of[self->step[k].type].out, self->size)) == NULL) return 0;
        outs->to[k] = PyArray_BYTES(made[k]);
    }
    known = self->steps > 1 && all_wanted(self, outs) && (of.rows == 1 || of.length >= HOT_ROW) ? hot_of(self, &of, outs) : NULL;
    function = known ? known->function : NULL; /* other threads of the program may run meanwhile, and change it */
    if (known) known->busy++;
    if (function) raised = !hot_run(function, self, &of, outs, minded);
    else *hot = hot_count(known, self->size), raised = 1;
    if (raised) {
        raised = pass_run(self, outs, &of, minded);
        if (!raised && function && ++known->refused > HOT_REFUSALS) known->function = NULL; /* its flags say too much */
    }
    if (known) known->busy--;
    return !raised;
}

/* Step by step, as NumPy does. */
static int chain_steps(Chain* self, const Outs* outs, PyArrayObject** found) {
    PyObject* made[CHAIN_STEPS] = {NULL};
    int k;
    for (k = 0; k < self->steps; k++) {
        Step* step = &self->step[k];
        PyObject *called[6] = {self->state, (PyObject*)self->site[k].code, NULL, step->loops->ufunc, NULL, NULL}, **args = called + 4, *before;
        int quiet = self->told;
        if (!outs->wanted[k]) continue;
        for (int o = 0; o < step->loops->nin; o++) {
            int number = step->of[o].number;
            switch (step->of[o].kind) {
            case OF_ARRAY: args[o] = Py_NewRef((PyObject*)self->array[number]); break;
            case OF_STEP: args[o] = Py_NewRef(made[number]); break;
            default: {
                PyArray_Descr* descr = PyArray_DescrFromType(step->type);
                args[o] = PyArray_Scalar(&self->value[number], descr, NULL);
                Py_DECREF(descr);
            }
            }
        }
        called[2] = PyLong_FromLong(self->site[k].offset);
        if (called[2] && args[0] && (args[1] || step->loops->nin == 1)) {
            before = pool_begin(self->size * 8);
            if (quiet) made[k] = PyObject_Vectorcall(quiet_call, called + 3, (size_t)step->loops->nin + 1, NULL);
            else made[k] = PyObject_Vectorcall(step_method, called, (size_t)step->loops->nin + 4, NULL);
            pool_end(before);
        }
        Py_XDECREF(args[0]), Py_XDECREF(args[1]), Py_XDECREF(called[2]);
        if (made[k] && !PyArray_CheckExact(made[k])) {
            PyErr_SetString(PyExc_TypeError, "a ufunc of NumPy's returned no array");
            break;
        }
        if (made[k] == NULL) break;
    }
    for (int j = 0; j < self->steps; j++) {
        if (k == self->steps && self->cell[j]) Py_XSETREF(found[j], (PyArrayObject*)Py_XNewRef(made[j]));
        Py_XDECREF(made[j]);
    }
    return k == self->steps;
}

/* A large result as a large array has it; NULL with an exception. */
static PyObject* chain_large(PyArrayObject* found) {
    PyObject *given = PyTuple_New(0), *made = given ? PyObject_CallFunctionObjArgs(result_method, (PyObject*)found, given, NULL) : NULL;
    Py_XDECREF(given);
    if (made && Py_TYPE(made) != array_type) {
        Py_CLEAR(made);
        PyErr_SetString(PyExc_TypeError, "a large result is no array");
    }
    return made;
}

/* Let a cell have the value of another one. */
static void chain_become(Cell* cell, PyObject* made) {
    Cell* other = (Cell*)made;
    Py_XSETREF(cell->node, Py_XNewRef(other->node));
    Py_XSETREF(cell->view, Py_XNewRef(other->view));
    Py_XSETREF(cell->stamp, Py_XNewRef(other->stamp));
    Py_XSETREF(cell->base, Py_XNewRef(other->base));
    if (!PyObject_GC_IsTracked((PyObject*)cell)) PyObject_GC_Track((PyObject*)cell);
}

/* Compute what waits on a tape: afterwards its cells are arrays at hand like others; -1 where NumPy raises. */
static int tape_settle(Chain* self) {
    PyArrayObject* made[CHAIN_STEPS] = {NULL};
    PyObject* large = NULL;
    Outs outs;
    Hot* hot = NULL;
    int fine, failed = 0;
    self->users++;
    if (self->after != self) chain_leave(self); /* NumPy may call a program's handler of errors, or another thread: they may settle all others */
    outs_of(self, &outs);
    fine = chain_run(self, &outs, made, &hot);
    if (!self->told) chain_results[!fine]++;
    if (!fine && !PyErr_Occurred()) fine = chain_steps(self, &outs, made);
    self->users--;
    if (!fine) self->told = 1, failed = -1;
    for (int k = 0; k < self->steps; k++) {
        Cell* cell = fine ? self->cell[k] : NULL;
        if (cell && made[k]) {
            if (self->size > limit_now() && (large = chain_large(made[k])) == NULL) {
                failed = -1;
                break;
            }
            Py_INCREF(cell);
            self->cell[k] = NULL, self->cells--, cell->before = NULL, cell->offset = 0;
            if (large) chain_become(cell, large);
            else Py_SETREF(cell->base, Py_NewRef((PyObject*)made[k]));
            Py_CLEAR(large);
            Py_DECREF(cell);
        }
    }
    for (int k = 0; k < self->steps; k++) Py_XDECREF(made[k]);
    if (self->users == 0) {
        if (self->cells == 0) chain_free(self);
        else chain_enter(self);
    }
    if (!fine) hot_put_off(hot);
    else if (hot && hot_compile(hot)) failed = -1;
    return failed;
}

static int chain_settle(PyObject* x) {
    int failed;
    Py_INCREF(x);
    failed = tape_settle(CHAIN_OF(x));
    Py_DECREF(x);
    return failed;
}

static int settle_cell(PyObject* x) { return chain_settle(x); }

/* A cell goes.  What nobody has is not computed, unless something reads it. */
static void forget_cell(PyObject* x) {
    Chain* self = CHAIN_OF(x);
    int k = STEP_OF(x);
    ((Cell*)x)->before = NULL, ((Cell*)x)->offset = 0;
    if (self == NULL) return;
    self->cell[k] = NULL;
    if (--self->cells == 0 && self->users == 0) chain_free(self);
}

static int settle_all(void) {
    if (faded_count) faded_go();
    while (waiting_count)
        if (tape_settle(waiting.after)) return -1;
    orphaned_bytes = 0;
    return 0;
}

/* What waits is computed before anything but the next operator looks at it, or at what it was made of. */
#define SETTLED ((waiting_count | faded_count) == 0 || settle_all() == 0)

/* Somebody outside may write the memory of `x`. */
static int cell_lend(PyObject* x) {
    if (Py_TYPE(x) != array_type) return 0;
    x = owner_of(x);
    if (Py_TYPE(x) == array_type) ((Cell*)x)->lent = 1;
    return 0;
}

/* For tests: chains of few elements. */
static void chain_resize(npy_intp from, npy_intp row, npy_intp block, int runs, long long work) {
    chain_sizes.from = from, chain_sizes.runs = runs;
    chain_sizes.row = row > CHAIN_BLOCK ? CHAIN_BLOCK : row; /* rows that are laid side by side fit a block */
    chain_sizes.block = block < 1 ? 1 : block > CHAIN_BLOCK ? CHAIN_BLOCK : block;
    if (work != hot_work) hot_forget();
    hot_work = work;
}

static void chain_register(PyObject* state, PyObject* place, PyObject* step, PyObject* compiled, PyObject* pool) {
    state_method = state, place_method = place, step_method = step, hot_method = compiled, pool_method = pool;
    threads_name = PyUnicode_InternFromString("threads");
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

static inline int step_type(const Chain* self, int k) { return self->step[k].loops->of[self->step[k].type].out; }

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

/* What a large array of complex numbers that exists shows (borrowed), or a part of one: no kernel computes with them; NULL for all others. */
static inline PyArrayObject* large_complex(PyObject* a) {
    PyArrayObject *x, *memory;
    PyObject* found;
    Cell* root;
    int own;
    if (Py_TYPE(a) != array_type || ((Cell*)a)->base == NULL || Py_TYPE(((Cell*)a)->base) == &PyArray_Type) return NULL;
    if (((Cell*)a)->base == Py_None) { /* most that are recorded are no complex numbers, and are seen to be none quickly */
        found = member_of(&member_array, member_of(&member_buffer, ((Cell*)a)->node));
        if (found == NULL || !PyArray_Check(found) || !PyArray_ISCOMPLEX((PyArrayObject*)found)) return NULL;
    }
    x = large_memory(a, &root, &memory, &own);
    return x && PyArray_ISCOMPLEX(x) ? x : NULL;
}

/* Whether the memory of `a` is nobody else's to write. */
static inline int is_private(PyObject* a) {
    PyObject *owner = owner_of(a), *held;
    held = ((Cell*)a)->base;
    if (held && PyArray_CheckExact(held)) return Py_TYPE(owner) == array_type && is_own((Cell*)owner);
    if (is_part(a)) held = ((Cell*)held)->base;
    if (held == NULL) return 0;
    /* None: a value, which nobody writes; else a draft, which nobody outside was shown */
    return held == Py_None || (member_of(&member_lease, held) == Py_None && member_of(&member_outside, held) == Py_None);
}

/* The type of an operand, an array or a step; -1 of all others, -2 of what may not wait to be read. */
static inline int operand_read(PyObject* x, PyArrayObject** array, Chain** chain) {
    *array = NULL, *chain = NULL;
    if (IS_CHAIN(x)) return (*chain = CHAIN_OF(x)) ? step_type(*chain, STEP_OF(x)) : -1;
    if ((*array = memory_of(x)) == NULL && (*array = large_complex(x)) == NULL) return -1;
    return is_private(x) ? PyArray_TYPE(*array) : -2;
}

#define TURN 16                 /* steps from which on a turn of a loop begins another tape */
#define ORPHANED_MOST (8 << 20) /* bytes that only tapes hold */

/* Whether a tape takes another step, from this place. */
static inline int takes_step(const Chain* self, const Site* site, PyObject* state) {
    if (self->users || self->told || self->steps >= CHAIN_STEPS || self->arrays + 2 > CHAIN_STEPS || self->numbers + 2 > CHAIN_STEPS) return 0;
    if (self->state != state) return 0;
    return self->steps < TURN || self->site[0].code != site->code || self->site[0].offset != site->offset;
}

/* The latest tape over this space that takes a step; NULL where there is none. */
static Chain* tape_over(int ndim, const npy_intp* dims, const Site* site, PyObject* state) {
    for (Chain* self = waiting.before; self != &waiting; self = self->before)
        if (self->ndim == ndim && !memcmp(self->dims, dims, (size_t)ndim * sizeof(npy_intp)) && takes_step(self, site, state)) return self;
    return NULL;
}

static PyObject *warnings_dict, *filters_name; /* of the module, where the filters in force are looked up */

/* The error state of what is recorded now, with what the filters of warnings say (borrowed); NULL, without an exception, where an operation is computed at its
   call.  It was asked for before, mostly: under the same value of NumPy's context variable, with the same list of filters. */
static struct {
    PyObject *errors, *filters, *first, *state;
    Py_ssize_t length;
    int minded;
} said;

static PyObject* state_now(int* minded) {
    PyObject *errors = NULL, *filters, *first, *found;
    if (error_variable == NULL || state_method == NULL) return NULL;
    if (warnings_dict == NULL) {
        PyObject* module = PyImport_ImportModule("warnings");
        if (module == NULL) return PyErr_Clear(), NULL;
        warnings_dict = Py_NewRef(PyModule_GetDict(module));
        filters_name = PyUnicode_InternFromString("filters");
        Py_DECREF(module);
    }
    filters = PyDict_GetItemWithError(warnings_dict, filters_name);
    if (filters == NULL || !PyList_CheckExact(filters)) return PyErr_Clear(), NULL;
    if (PyContextVar_Get(error_variable, NULL, &errors) < 0 || errors == NULL) return PyErr_Clear(), NULL;
    first = PyList_GET_SIZE(filters) ? PyList_GET_ITEM(filters, 0) : NULL;
    if (errors == said.errors && filters == said.filters && first == said.first && PyList_GET_SIZE(filters) == said.length) {
        Py_DECREF(errors);
        return *minded = said.minded, said.state;
    }
    Py_INCREF(filters), Py_XINCREF(first);
    found = PyObject_CallNoArgs(state_method);
    if (found == NULL) {
        Py_DECREF(errors), Py_DECREF(filters), Py_XDECREF(first);
        return PyErr_Clear(), NULL;
    }
    Py_XSETREF(said.state, found == Py_None ? NULL : Py_NewRef(PyTuple_GET_ITEM(found, 0)));
    said.minded = found == Py_None ? 0 : (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 1));
    said.length = PyList_GET_SIZE(filters);
    Py_DECREF(found);
    Py_XSETREF(said.errors, errors);
    Py_XSETREF(said.filters, filters);
    Py_XSETREF(said.first, first);
    return *minded = said.minded, said.state;
}

/* Whether code is lazynp's own, whose place is no place of the program's. */
static int is_inside(PyCodeObject* code) {
    static struct {
        PyCodeObject* code; /* held */
        int inside;
    } known[64];
    int k = (int)(((uint64_t)((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u) >> 58);
    if (known[k].code != code) {
        PyObject* names = place_method ? PyFunction_GetGlobals(place_method) : NULL;
        PyObject* root = names ? PyDict_GetItemString(names, "ROOT") : NULL;
        Py_INCREF(code);
        Py_XSETREF(known[k].code, code);
        known[k].inside = root && PyUnicode_Check(code->co_filename) && PyUnicode_Tailmatch(code->co_filename, root, 0, PY_SSIZE_T_MAX, -1) == 1;
    }
    return known[k].inside;
}

/* Where the program is (the code is held); 0 where there is no frame of Python's. */
static inline int site_now(Site* site) {
    PyFrameObject* frame = PyEval_GetFrame();
    PyObject* found;
    if (frame == NULL) return 0;
    site->code = PyFrame_GetCode(frame);
    site->offset = PyFrame_GetLasti(frame);
    if (!is_inside(site->code)) return 1;
    found = PyObject_CallNoArgs(place_method);
    if (found == NULL || !PyTuple_Check(found)) return Py_XDECREF(found), 0;
    Py_SETREF(site->code, (PyCodeObject*)Py_NewRef(PyTuple_GET_ITEM(found, 0)));
    site->offset = (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 1));
    Py_DECREF(found);
    return 1;
}

/* `a op b` (b is NULL for an operation on one array) as a step that waits; NULL (perhaps without an exception) where it is to be computed now. */
static PyObject* chain_step(Loops* loops, PyObject* a, PyObject* b) {
    PyObject *operands[2] = {a, b}, *state;
    PyArrayObject* arrays[2] = {NULL, NULL};
    Chain *chains[2] = {NULL, NULL}, *self = NULL;
    int type = -1, found, nin = b ? 2 : 1, ndim, tries, arrays_before, numbers_before, minded = 0;
    Operand of[2] = {{OF_NUMBER, 0}, {OF_NUMBER, 0}};
    npy_intp dims[AXES], size;
    Loop* loop;
    Cell* cell;
    Site site = {NULL, 0};
    for (int o = 0; o < nin; o++) {
        if ((found = operand_read(operands[o], &arrays[o], &chains[o])) == -2 || (found >= 0 && type >= 0 && found != type)) return NULL;
        if (found >= 0) type = found;
    }
    if (type < 0 || (state = state_now(&minded)) == NULL) return NULL;
    if (orphaned_bytes > ORPHANED_MOST) return waiting_count ? settle_all(), NULL : (orphaned_bytes = 0, NULL);
    Py_INCREF(state);
    if ((loop = loop_of(loops, type)) == NULL && (loop = loop_of(loops, type)) == NULL) return Py_DECREF(state), NULL; /* it may have been tried just now */
    if (!loop->joins || (cell = chain_cell()) == NULL) return Py_DECREF(state), NULL;
    if (!site_now(&site)) goto refused;
    for (tries = 0;; tries++) {
        for (int o = 0; o < nin; o++) /* once more: trying a loop and making a cell may run code (a collection of garbage); from here on nothing does */
            if ((found = operand_read(operands[o], &arrays[o], &chains[o])) != -1 && found != type) goto refused;
        self = chains[0] ? chains[0] : chains[1];
        if (self == NULL) {
            PyArrayObject *x = arrays[0] ? arrays[0] : arrays[1], *y = arrays[0] ? arrays[1] : NULL;
            if (x == NULL || !broadcast_dims(x, y, &ndim, dims, &size)) goto refused;
            if (size < chain_sizes.from || (size > limit_now() && !PyTypeNum_ISCOMPLEX(type))) goto refused;
            if ((self = tape_over(ndim, dims, &site, state)) == NULL) {
                if ((self = chain_new(state, minded)) == NULL) goto refused;
                self->ndim = ndim, self->size = size;
                memcpy(self->dims, dims, (size_t)ndim * sizeof(npy_intp));
            }
        } else if (!takes_step(self, &site, state) || (chains[0] && chains[1] && chains[0] != chains[1])) {
            found = 0;
            goto settle;
        }
        arrays_before = self->arrays, numbers_before = self->numbers;
        found = 1;
        for (int o = 0; o < nin && found; o++) {
            if (chains[o]) of[o] = (Operand){OF_STEP, STEP_OF(operands[o])};
            else found = chain_operand(self, arrays[o], operands[o], type, &of[o]);
        }
        if (found) break;
        while (self->arrays > arrays_before) Py_DECREF(self->array[--self->arrays]);
        self->numbers = numbers_before;
    settle:
        if (self->steps == 0) {
            chain_free(self);
            goto refused;
        }
        if (tries || (chains[0] == NULL && chains[1] == NULL)) goto refused;
        for (int o = 0; o < nin; o++)
            if (IS_CHAIN(operands[o]) && chain_settle(operands[o]) < 0) goto refused;
    }
    self->step[self->steps] = (Step){loops, type, {of[0], of[1]}};
    self->site[self->steps] = site;
    self->cell[self->steps] = cell, self->cells++;
    cell->before = (Cell*)self, cell->offset = self->steps++;
    if (self->after == self) chain_enter(self);
    Py_DECREF(state);
    return (PyObject*)cell;
refused:
    Py_DECREF(state);
    Py_XDECREF(site.code);
    Py_DECREF(cell);
    return NULL;
}

#endif
