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

/* All in one pass; NULL without an exception where it is to be done step by step.  `hot`: what is to be compiled afterwards. */
static PyArrayObject* chain_run(Chain* self, Hot** hot) {
    const Step* last = &self->step[self->steps - 1];
    Loop* loop = &last->loops->of[last->type];
    PyArrayObject* made;
    RowsFunction function;
    Hot* known;
    Rows2 of;
    int raised, minded;
    if (self->steps < 2 || self->size == 0 || !rows_of(self, &of)) return NULL;
    if ((made = result_of(self->ndim, self->dims, loop->out, self->size)) == NULL) return NULL;
    minded = errors_minded();
    known = of.rows == 1 || of.length >= HOT_ROW ? hot_of(self, &of) : NULL;
    function = known ? known->function : NULL; /* other threads of the program may run meanwhile, and change it */
    if (known) known->busy++;
    if (function) raised = !hot_run(function, self, &of, PyArray_BYTES(made), loop->size, minded);
    else *hot = hot_count(known, self->size), raised = 1;
    if (raised) {
        raised = pass_run(self, &of, PyArray_BYTES(made), loop->size, minded);
        if (!raised && function && ++known->refused > HOT_REFUSALS) known->function = NULL; /* its flags say too much */
    }
    if (known) known->busy--;
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
static PyArrayObject* chain_compute(Chain* self, int wanted, Hot** hot) {
    PyArrayObject* found = chain_run(self, hot);
    if (wanted && !self->told) chain_learn(self, found != NULL);
    return found || PyErr_Occurred() ? found : chain_steps(self);
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

/* Compute what `x` stands for: afterwards it is an array at hand like others; -1 where NumPy raises. */
static int chain_settle(PyObject* x) {
    Cell* cell = (Cell*)x;
    Chain* self = CHAIN_OF(x);
    PyArrayObject* found;
    PyObject* large = NULL;
    Hot* hot = NULL;
    Py_INCREF(x), self->users++;
    if (self->after != self) chain_leave(self); /* NumPy may call a program's handler of errors, or another thread: they may settle all others */
    found = chain_compute(self, 1, &hot);
    if (found && self->size > limit_now() && (large = chain_large(found)) == NULL) Py_CLEAR(found);
    self->users--;
    if (found == NULL) {
        self->told = 1;
        if (self->users == 0 && IS_CHAIN(x)) chain_enter(self);
    } else if (IS_CHAIN(x)) {
        cell->before = NULL;
        if (large) chain_become(cell, large);
        else Py_SETREF(cell->base, Py_NewRef((PyObject*)found));
        Py_SET_TYPE(x, array_type);
        Py_INCREF(array_type), Py_DECREF(chain_type);
    } /* else somebody who was asked meanwhile has computed it */
    if (self->users == 0 && !IS_CHAIN(x)) chain_free(self);
    if (found == NULL) hot_put_off(hot);
    else if (hot && hot_compile(hot)) Py_CLEAR(found);
    Py_XDECREF(found), Py_XDECREF(large), Py_DECREF(x);
    return found ? 0 : -1;
}

/* Nobody wants it, because an exception came between; of the errors that it would have raised somebody may want to hear. */
static void chain_dealloc(PyObject* x) {
    Chain* self = CHAIN_OF(x);
    PyObject *type, *value, *trace;
    PyArrayObject* found;
    Hot* hot = NULL;
    Py_SET_TYPE(x, array_type);
    Py_INCREF(array_type), Py_DECREF(chain_type);
    array_dealloc(x);
    if (self->after != self) chain_leave(self);
    if (!self->told) {
        PyErr_Fetch(&type, &value, &trace);
        found = chain_compute(self, 0, &hot);
        hot_put_off(hot);
        if (found == NULL) PyErr_Clear();
        Py_XDECREF(found);
        PyErr_Restore(type, value, trace);
    }
    chain_free(self);
}

static int settle_all(void) {
    if (faded_count) faded_go();
    while (waiting_count) {
        PyObject* x = Py_NewRef((PyObject*)waiting.after->cell);
        int failed = chain_settle(x);
        Py_DECREF(x);
        if (failed) return -1;
    }
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

/* Any attribute: everything that is not an operator. */
static PyObject* chain_getattr(PyObject* x, PyObject* name) { return SETTLED ? PyObject_GenericGetAttr(x, name) : NULL; }
static int chain_setattr(PyObject* x, PyObject* name, PyObject* value) { return SETTLED ? PyObject_GenericSetAttr(x, name, value) : -1; }

/* For tests: chains of few elements. */
static void chain_resize(npy_intp from, npy_intp row, npy_intp block, int runs, long long work) {
    chain_sizes.from = from, chain_sizes.runs = runs;
    chain_sizes.row = row > CHAIN_BLOCK ? CHAIN_BLOCK : row; /* rows that are laid side by side fit a block */
    chain_sizes.block = block < 1 ? 1 : block > CHAIN_BLOCK ? CHAIN_BLOCK : block;
    if (work != hot_work) hot_forget();
    hot_work = work;
}

static void chain_register(PyTypeObject* type, PyObject* look, PyObject* there, PyObject* compiled, PyObject* pool) {
    chain_type = type;
    places_method = look, there_method = there, hot_method = compiled, pool_method = pool;
    threads_name = PyUnicode_InternFromString("threads");
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

/* The type of an operand, an array or a chain; -1 of all others, -2 of what no chain may read. */
static inline int operand_read(PyObject* x, PyArrayObject** array, Chain** chain) {
    *array = NULL, *chain = NULL;
    if (IS_CHAIN(x)) {
        if (Py_REFCNT(x) != 1) return -2; /* it got away */
        return chain_type_of(*chain = CHAIN_OF(x));
    }
    if ((*array = memory_of(x)) == NULL && (*array = large_complex(x)) == NULL) return -1;
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
    waits = site_waits(&site, 0);
    if (waits == 0 && !IS_CHAIN(a) && !(b && IS_CHAIN(b))) {
        if (!large_complex(a) && !(b && large_complex(b))) return NULL;
        waits = site_waits(&site, 1);
        if (waits == 0) return NULL;
    }
    if (waits < 0 || site.code == NULL) return NULL;
    for (int o = 0; o < nin; o++) {
        if ((found = operand_read(operands[o], &arrays[o], &chains[o])) == -2 || (found >= 0 && type >= 0 && found != type)) return NULL;
        if (found >= 0) type = found;
    }
    if (type < 0) return NULL;
    if ((loop = loop_of(loops, type)) == NULL && (loop = loop_of(loops, type)) == NULL) return NULL; /* it may have been tried just now */
    if (!loop->joins || (cell = chain_new(&site)) == NULL) return NULL;
    self = CHAIN_OF(cell);
    for (int o = 0; o < nin; o++) /* once more: trying a loop and making a cell may run code (a collection of garbage); from here on nothing does */
        if ((found = operand_read(operands[o], &arrays[o], &chains[o])) != -1 && found != type) goto refused;
    if (chains[0] == NULL && chains[1] == NULL) {
        PyArrayObject *x = arrays[0] ? arrays[0] : arrays[1], *y = arrays[0] ? arrays[1] : NULL;
        if (!waits || x == NULL || !broadcast_dims(x, y, &self->ndim, self->dims, &self->size)) goto refused;
        if (self->size < chain_sizes.from || (self->size > limit_now() && !PyTypeNum_ISCOMPLEX(type))) goto refused;
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
