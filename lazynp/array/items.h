/* Functions that are recorded whole: reductions along an axis, products, choices, joins, casts, scans, sorts.

   In: calls with arrays in memory, or such that wait.  Out: cells that wait, of the shape and dtype that NumPy gives.  Promise: what is wrong with a call is
   said at the call, by NumPy, since only calls are recorded that cannot fail, whatever the elements are; the answer is made by the very code that
   makes it at once.

   What cannot be computed a block at a time is a tape of its own: `exp` and others whose vectors and remainders differ (one call of NumPy's loop over
   all elements; up to one block they are steps like others of a tape on which all lies as the results do, `Chain.whole`), and functions that are
   recorded whole (`items.h`): reductions along an axis, products of matrices, `concatenate`, scans, sorts, `diff`. `where` and `clip` are steps of
   three operands (`step_recorded`; of `where` the first is a mask). Copies, and the casts that are the same however they are compiled, are steps
   (`ASKED_CASTS`). Only calls that cannot fail are recorded, whatever the elements are; the shape and dtype of the answer are known from the call,
   and the answer is made by the code that makes it at once. Full reductions are numbers, which are asked for.

   Views of what waits wait, too (`view_waits` in `items.h`): a place in the value that will be, by shape, strides and offset. When the value is there
   its views show parts of it, before anything can be written (`views_follow`); a value with views is not rebound in place. A view is an operand of
   steps however it lies; for other functions one that lies in another order than C's is computed before it is read. `base`, exports and writes
   compute what they have to. `broadcast_to` and `diagonal`, which are read-only, compute the value.

   An operation on arrays that is no step (two dtypes whose loop NumPy has to choose, `dtype=`, powers of arrays) is recorded as a call
   (`ufunc_recorded`, `operator_recorded`): its dtype follows from the operands' types, its shape from their shapes, and the call at once makes the
   value. Halves and complex numbers are steps where elements one by one have the bits of many (`same_one_by_one`), else NumPy's loop gets all
   elements at once. `a ** -1` of whole numbers and powers of arrays of them may fail, and are made at their call.

   A call that needs nothing but loops (a reduction along an axis, `argmax`, a small product) is answered by them alone (`Item.by_loops`): no cells
   for its operands, no NumPy array for its result. */

#ifndef LAZYNP_ITEMS_H
#define LAZYNP_ITEMS_H

#include "slots.h"

/* Computing ------------------------------------------------------------------------------------------------------------------------------ */

/* The arguments of a call that waits, with cells for its operands; those of a list of operands are one tuple. */
static int item_arguments(Chain* self, PyObject** args) {
    Item* item = &self->item;
    PyObject* joined = item->joined ? PyTuple_New(self->arrays) : NULL;
    if (item->joined && joined == NULL) return -1;
    for (int k = 0; k < item->total; k++) args[k] = Py_XNewRef(item->args[k]);
    for (int k = 0; joined && k < self->arrays; k++) {
        PyObject* cell = cell_of(Py_NewRef((PyObject*)self->array[k]), NULL);
        if (cell == NULL) return Py_DECREF(joined), -1;
        PyTuple_SET_ITEM(joined, k, cell);
    }
    if (joined) return args[0] = joined, 0;
    for (int k = 0; k < item->total; k++)
        if (args[k] == NULL && (args[k] = cell_of(Py_NewRef((PyObject*)self->array[item->of[k]]), NULL)) == NULL) return -1;
    return 0;
}

static PyObject *error_listening, *errors_heard, *errors_tell;
static PyThreadState* item_thread; /* which makes such a call */

/* While NumPy says nothing of floating-point errors itself: in a context that is always in that state, a quarter of the price of setting it, or where another
   call is in there, by setting it. */
typedef struct {
    PyObject *context, *token;
} Hearing;
static PyObject* hearing_context;

static int hearing_begin(Hearing* hearing) {
    hearing->context = hearing->token = NULL;
    if (hearing_context == NULL && (hearing_context = PyContext_New())) { /* one that is set once */
        if (PyContext_Enter(hearing_context) < 0) return -1;
        Py_XDECREF(PyContextVar_Set(error_variable, error_listening));
        if (PyContext_Exit(hearing_context) < 0) return -1;
    }
    if (hearing_context && PyContext_Enter(hearing_context) == 0) return hearing->context = hearing_context, 0;
    PyErr_Clear();
    return (hearing->token = PyContextVar_Set(error_variable, error_listening)) ? 0 : -1;
}

static void hearing_end(Hearing* hearing) {
    if (hearing->context ? PyContext_Exit(hearing->context) < 0 : PyContextVar_Reset(error_variable, hearing->token) < 0) PyErr_Clear();
    Py_XDECREF(hearing->token);
}

/* Make the call now.  Floating-point errors are told at the line that recorded it. */
static PyObject* item_answer(Chain* self) {
    Item* item = &self->item;
    PyObject *args[ITEM_ARGS] = {NULL}, *found = NULL, *told, *type, *value, *trace;
    PyThreadState* before = item_thread;
    Hearing hearing;
    if (item_arguments(self, args) < 0) {
    } else if (item->silent) {
        found = item->answer(item->call, args, item->n, item->names);
    } else if (hearing_begin(&hearing) == 0) {
        item_thread = PyThreadState_Get();
        found = item->answer(item->call, args, item->n, item->names);
        item_thread = before;
        PyErr_Fetch(&type, &value, &trace);
        hearing_end(&hearing);
        if (PyDict_GET_SIZE(errors_heard) && self->told) { /* to tell of them has raised an exception, and the value is asked for again */
            PyObject* ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
            if (ident == NULL || (PyDict_Contains(errors_heard, ident) == 1 && PyDict_DelItem(errors_heard, ident) < 0)) PyErr_Clear();
            Py_XDECREF(ident);
        } else if (PyDict_GET_SIZE(errors_heard)) {
            self->told = 1;
            told = PyObject_CallFunction(tell_method, "OOi", self->state, (PyObject*)self->at[0].site.code, self->at[0].site.offset);
            if (told == NULL) {
                Py_CLEAR(found);
                Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
                type = value = trace = NULL;
                PyErr_Fetch(&type, &value, &trace);
            }
            Py_XDECREF(told);
        }
        PyErr_Restore(type, value, trace);
    }
    for (int k = 0; k < ITEM_ARGS; k++) Py_XDECREF(args[k]);
    return found;
}

/* Whether an answer is what was said when the call was recorded. */
static int is_as_recorded(const Chain* self, int k, PyObject* found) {
    PyArrayObject* x = Py_TYPE(found) == array_type ? memory_of(found) : NULL;
    if (x == NULL) return Py_TYPE(found) == array_type; /* a graph: the limit has been changed meanwhile */
    return PyArray_TYPE(x) == self->at[k].step.out && PyArray_NDIM(x) == self->ndim && !memcmp(PyArray_DIMS(x), self->dims, (size_t)self->ndim * sizeof(npy_intp));
}

static PyObject* product_answer(PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    (void)callable, (void)n, (void)names;
    return binary_answer(MATMUL, args[0], args[1]);
}

/* A small product by NumPy's loop. */
static PyArrayObject* product_by_loops(Chain* self) {
    const Item* item = &self->item;
    Loop* loop = product_loop(self->array[item->of[0]], self->array[item->of[1]]);
    return loop ? product_run(loop, self->array[item->of[0]], self->array[item->of[1]], 1, self->minded) : NULL;
}

/* Views were recorded of a value in C's order. */
static void cell_in_order(Cell* cell) {
    PyArrayObject* x = (PyArrayObject*)cell->base;
    PyObject* copy = PyArray_IS_C_CONTIGUOUS(x) ? NULL : PyArray_NewCopy(x, NPY_CORDER);
    if (copy) Py_SETREF(cell->base, copy);
    else PyErr_Clear(); /* who asks for a view hears of it */
}

/* Let the cell of a result have it (taken over); -1 with an exception. */
static int item_result(Chain* self, int k, PyObject* found) {
    if (IS_CHAIN(found) && settle_cell(found) < 0) Py_CLEAR(found); /* it was recorded anew, for kernels */
    if (found && Py_TYPE(found) == array_type && self->size > limit_now()) { /* a large result, which is a value of a node like others */
        PyArrayObject* large = plain_of(found);
        PyObject* value = large ? chain_large(large) : NULL;
        if (value) Py_SETREF(found, value);
        else if (large) Py_CLEAR(found);
    }
    if (found && !is_as_recorded(self, k, found)) {
        PyArrayObject* x = memory_of(found);
        PyErr_Format(PyExc_SystemError, "%R was recorded with type %d of %d axes, and NumPy gives type %d of %d axes", self->item.call, self->at[k].step.out, self->ndim, x ? PyArray_TYPE(x) : -1,
                     x ? PyArray_NDIM(x) : -1);
        Py_CLEAR(found);
    }
    if (found && self->at[k].cell) {
        Cell* cell = self->at[k].cell;
        PyObject *memory = ((Cell*)found)->base, *owner = ((Cell*)found)->view, *again;
        if (cell->waiting_views && memory && owner && Py_TYPE(owner) == array_type && Py_REFCNT(owner) == 1 && ((Cell*)owner)->base && PyArray_CheckExact(((Cell*)owner)->base)) { /* views have this cell for their owner */
            if ((again = cell_of(Py_NewRef(memory), ((Cell*)owner)->base))) Py_SETREF(found, again);
            else PyErr_Clear();
            memory = ((Cell*)found)->base;
        }
        self->at[k].cell = NULL, self->cells--, cell->before = NULL, cell->offset = 0;
        Py_INCREF(cell);
        if (memory && (PyArray_CheckExact(memory) || IS_RAW(memory)) && ((Cell*)found)->view == Py_None) Py_SETREF(cell->base, Py_NewRef(memory));
        else chain_become(cell, found);
        if (cell->waiting_views) {
            if (IS_RAW(cell->base) || PyArray_CheckExact(cell->base)) cell_in_order(cell);
            views_follow(cell);
        }
        Py_DECREF(cell);
    }
    Py_XDECREF(found);
    return found ? 0 : -1;
}

static int item_settle(Chain* self) {
    PyObject* found = NULL;
    int failed;
    PyArrayObject* made = self->sources && self->item.by_steps ? self->item.by_steps(self) : NULL;
    for (int k = 0; k < self->arrays; k++)
        if (self->array[k]) first_done(size_of(self->array[k]), 1);
    if (made == NULL && !PyErr_Occurred() && self->sources) (void)sources_settle(self);
    if (made == NULL && !PyErr_Occurred() && self->item.by_loops) made = self->item.by_loops(self);
    if (made) {
        failed = 0;
        if (self->at[0].cell) failed = cell_settled(self, 0, made);
        else Py_DECREF(made);
        return chain_done(self), failed;
    }
    if (!PyErr_Occurred()) found = item_answer(self);
    failed = found == NULL;
    if (found && self->steps > 1 && !(PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == self->steps)) failed = 1, PyErr_Format(PyExc_SystemError, "%R was recorded with %d results", self->item.call, self->steps);
    for (int k = 0; !failed && k < self->steps; k++) failed = item_result(self, k, Py_NewRef(self->steps > 1 ? PyTuple_GET_ITEM(found, k) : found)) < 0;
    self->failed = failed && fails_for_good();
    Py_XDECREF(found);
    chain_done(self);
    return failed ? -1 : 0;
}

/* Recording ------------------------------------------------------------------------------------------------------------------------------ */

/* A call that is about to be recorded: its operands, and what NumPy's answer will be. */
typedef struct {
    PyObject* operands[CHAIN_ARRAYS];
    Read read[CHAIN_ARRAYS];
    int count;
    int out, ndim;
    int silent; /* NumPy tells of no floating-point errors of it */
    int when;   /* it is computed, see `operand_now` */
    npy_intp dims[AXES], size;
    ByLoops by_loops, by_steps; /* with its axis, see `Item` */
    int axis, keeps, off;
} Call;

static inline void call_begins(Call* call) { call->count = call->when = 0; }

/* Read an operand, however its elements lie. */
static int call_takes_any(Call* call, PyObject* x) {
    Read* read = &call->read[call->count];
    if (call->count == CHAIN_ARRAYS || Py_TYPE(x) != array_type || (!operand_read(x, read, NULL) && !operand_now(x, read, &call->when)) || read->type < 0 || read->ndim > AXES || read->ndim == 0) return 0;
    if (read->array && !PyArray_ISBEHAVED_RO(read->array)) return 0;
    call->operands[call->count++] = x;
    return 1;
}

/* Read an operand whose elements lie in C's order, without gaps. */
static int call_takes(Call* call, PyObject* x) {
    const Read* read = &call->read[call->count];
    return call_takes_any(call, x) && (read->array == NULL || (PyArray_ISCARRAY_RO(read->array) && plain_memory(read->array)));
}

/* Note the dtype and the shape of the answer. */
static void call_gives(Call* call, int out, int ndim, const npy_intp* dims) {
    call->out = out, call->ndim = ndim, call->size = 1, call->by_loops = call->by_steps = NULL, call->axis = call->keeps = call->off = 0;
    for (int k = 0; k < ndim; k++) call->size *= call->dims[k] = dims[k];
}

static npy_intp read_size(const Read* read) {
    npy_intp size = 1;
    for (int k = 0; k < read->ndim; k++) size *= read->dims[k];
    return size;
}

/* An axis of `ndim`; -1 where it is none. */
static int axis_of(PyObject* x, int ndim) {
    int overflow;
    long axis = PyLong_CheckExact(x) ? PyLong_AsLongAndOverflow(x, &overflow) : AXES;
    if (!PyLong_CheckExact(x) || overflow || axis < -ndim || axis >= ndim) return -1;
    return (int)(axis < 0 ? axis + ndim : axis);
}

/* The dtype of sums and products, and of what is summed up on the way. */
static int sum_type(int type) {
    if (type == NPY_BOOL || (PyTypeNum_ISSIGNED(type) && PyTypeNum_ISINTEGER(type) && type < NPY_LONG)) return NPY_LONG;
    return PyTypeNum_ISUNSIGNED(type) && type < NPY_ULONG ? NPY_ULONG : type;
}

/* The call waits: `args` without its operands; NULL with an exception where memory is short. */
static PyObject* call_waits(Call* call, Begun* begun, Answer answer, PyObject* callable, PyObject* const* args, Py_ssize_t n, PyObject* names, int joined) {
    Py_ssize_t total = n + (names ? PyTuple_GET_SIZE(names) : 0);
    Chain* self = chain_new(begun->state, begun->minded, call->ndim, call->dims, call->size);
    if (self == NULL) return NULL;
    if (!chain_holds(self, 1, call->count)) return chain_free(self), PyErr_NoMemory();
    self->closed = ITEM;
    self->item.answer = answer, self->item.by_loops = call->by_loops, self->item.by_steps = call->by_steps, self->item.axis = call->axis, self->item.keeps = call->keeps, self->item.off = call->off, self->item.call = Py_NewRef(callable), self->item.names = Py_XNewRef(names);
    self->item.n = n, self->item.total = (int)total, self->item.joined = joined, self->item.silent = call->silent;
    for (int k = 0; k < total; k++) {
        int of = -1;
        for (int o = 0; o < call->count && of < 0; o++)
            if (call->operands[o] == args[k]) of = o;
        self->item.of[k] = of;
        self->item.args[k] = of >= 0 || (joined && k == 0) ? NULL : Py_NewRef(args[k]);
    }
    for (int o = 0; o < call->count; o++) {
        chain_reads(self, &call->read[o], call->operands[o]);
    }
    self->at[0].step.loops = NULL, self->at[0].step.out = call->out;
    self->steps = 1, self->at[0].site = begun->site, self->at[0].cell = begun->cell, self->at[0].put = NULL, self->cells = 1;
    begun->cell->before = (Cell*)self, begun->cell->offset = 0;
    chain_enter(self);
    tapes_sound("item");
    return (PyObject*)begun->cell;
}

/* A second result of a call that waits, of this dtype. */
static void call_second(Cell* first, Cell* second, int type) {
    Chain* self = CHAIN_OF(first);
    self->at[1].step.loops = NULL, self->at[1].step.out = (short)type;
    self->at[1].site = (Site){(PyCodeObject*)Py_NewRef((PyObject*)self->at[0].site.code), self->at[0].site.offset};
    self->steps = self->cells = 2, self->at[1].cell = second, self->at[1].put = NULL;
    second->before = (Cell*)self, second->offset = 1;
}

static inline int call_fits(const Call* call) {
    return call->ndim > 0 && call->size >= chain_sizes.from && (call->when ? call->when & NOW && call->size <= first_limit() : call->size <= tapes_limit() && !size_grows(call->read, call->count, call->size));
}

/* What was recorded, if anything was, computed if it is to be; NULL with an exception, or where nothing was. */
static inline PyObject* call_made(const Call* call, PyObject* made) { return made && call->when ? made_now(made) : made; }

/* A product of matrices, or of one and a vector. */
static int product_call(Call* call, PyObject* a, PyObject* b) {
    const Read *x = &call->read[0], *y = &call->read[1];
    npy_intp dims[2];
    int ndim = 0;
    if (!call_takes_any(call, a) || !call_takes_any(call, b) || x->type != y->type || x->type == NPY_LONGDOUBLE || x->type == NPY_CLONGDOUBLE) return 0;
    if (x->ndim > 2 || y->ndim > 2 || x->ndim + y->ndim < 3 || x->dims[x->ndim - 1] != y->dims[0]) return 0;
    if (read_size(x) == 0 || read_size(y) == 0) return 0;
    if (x->ndim == 2) dims[ndim++] = x->dims[0];
    if (y->ndim == 2) dims[ndim++] = y->dims[1];
    call_gives(call, x->type, ndim, dims);
    return 1;
}

/* The axes of an array that lies in memory or waits; 0 of all else. */
static inline int axes_of(PyObject* x) {
    PyArrayObject* memory;
    if (Py_TYPE(x) != array_type) return 0;
    if (WAITS(x)) return CHAIN_OF(x) ? CHAIN_OF(x)->ndim : 0;
    memory = operand_seen(x);
    return memory ? PyArray_NDIM(memory) : 0;
}

static PyObject* product_recorded(PyObject* a, PyObject* b) {
    PyObject *args[2] = {a, b}, *made = NULL;
    Call call;
    Begun begun;
    call_begins(&call), call.silent = 0;
    int axes = axes_of(a), others = axes ? axes_of(b) : 0;
    if (operand_ready(a) < 0 || operand_ready(b) < 0) return NULL;
    if (others == 0 || axes + others < 3 || !recording_begin(&begun)) return NULL; /* of two vectors it is a number */
    if (product_call(&call, a, b) && call_fits(&call)) {
        call.by_loops = product_by_loops;
        made = call_waits(&call, &begun, product_answer, slow_methods[MATMUL] ? slow_methods[MATMUL] : Py_None, args, 2, NULL, 0);
    }
    return call_made(&call, recording_end(&begun, made));
}

/* Views -------------------------------------------------------------------------------------------------------------------------------------- */

/* What waits as an array that lies where it will, from address 0 on, for macros alone: whether it is one of few axes. */
static int shadow_of(PyObject* a, Raw* shadow) {
    const Chain* chain = CHAIN_OF(a);
    int type;
    if (chain == NULL || (chain->strided && !chain->ordered) || chain->ndim == 0 || chain->ndim > RAW_AXES || chain->size == 0 || chain->size > tapes_limit()) return 0;
    type = step_type(chain, STEP_OF(a));
    shadow->fields.nd = chain->ndim, shadow->fields.dimensions = shadow->lengths, shadow->fields.strides = shadow->lengths + RAW_AXES;
    if ((shadow->fields.descr = raw_dtypes[type]) == NULL) return 0;
    if (chain->view || chain->place) memcpy(shadow->fields.strides, chain->strides, (size_t)chain->ndim * sizeof(npy_intp));
    else ordered_strides(chain->ndim, chain->dims, chain_order(chain), PyDataType_ELSIZE(shadow->fields.descr), shadow->fields.strides);
    memcpy(shadow->lengths, chain->dims, (size_t)chain->ndim * sizeof(npy_intp));
    shadow->fields.data = (char*)0 + (chain->view ? chain->offset : 0);
    return 1;
}

/* A view of what waits, which waits, too: of a place in it, as `shadow_of` has it.  `callable(*args)` is what the program has asked for, `args[0]` what waits.  NULL, perhaps
   without an exception, where it is computed now. */
static PyObject* view_waits(const Place* at, PyObject* callable, PyObject* const* args, Py_ssize_t n) {
    PyObject *a = args[0], *made = NULL;
    npy_intp size = 1, serial = CHAIN_OF(a)->serial;
    Call call;
    Begun begun;
    for (int k = 0; k < at->ndim; k++) size *= at->dims[k];
    if (at->ndim == 0 || at->ndim > RAW_AXES || at->ndim > AXES || size == 0 || n > ITEM_ARGS) return NULL;
    if (!recording_begin(&begun)) return NULL;
    call.count = 1, call.silent = 1, call.operands[0] = a;
    if (IS_CHAIN(a) && CHAIN_OF(a) && CHAIN_OF(a)->serial == serial) { /* code of a program's may have run */
        Chain *from = CHAIN_OF(a), *self;
        Cell* root = from->view ? from->source[0] : (Cell*)a;
        call.read[0] = (Read){.array = NULL, .root = NULL, .chain = from, .type = step_type(from, STEP_OF(a)), .ndim = from->ndim, .dims = from->dims};
        call_gives(&call, call.read[0].type, at->ndim, at->dims);
        if ((made = call_waits(&call, &begun, NULL, callable, args, n, NULL, 0))) {
            self = CHAIN_OF(made);
            if (root != (Cell*)a) { /* of a view: it is shown as one, and taken from what that is a view of */
                self->source[1] = self->source[0], self->array[1] = NULL, self->arrays = 2, self->sources = 2;
                self->source[0] = source_new((PyObject*)root), self->item.of[0] = 1;
            }
            self->view = 1, root->waiting_views++;
            if (self->large) orphaned_bytes -= large_bytes(self->size); /* it has no memory of its own */
            self->turned = from->view ? from->turned : from->ordered;
            memcpy(self->order, from->order, sizeof(self->order));
            self->offset = at->data - (char*)0;
            if (from->place) {
                PyArrayObject* whole = from->view ? CHAIN_OF(root)->place : from->place;
                self->place = raw_view(whole, at->ndim, at->dims, at->strides, PyArray_BYTES(whole) + self->offset);
                if (self->place == NULL && PyErr_Occurred()) PyErr_Clear(); /* it is computed when it is read */
            }
            memcpy(self->strides, at->strides, (size_t)at->ndim * sizeof(npy_intp));
            self->flat = (flags_of(at->ndim, at->dims, at->strides, PyDataType_ELSIZE(raw_dtypes[call.out]), 0) & NPY_ARRAY_C_CONTIGUOUS) != 0;
            Py_SETREF(((Cell*)made)->view, Py_NewRef(owner_of((PyObject*)root)));
        }
    }
    return recording_end(&begun, made);
}

/* Let a cell wait for what is to be written to `root`, of which it shows the part `shown`, on a new tape. */
static void part_follows(Chain* self, Cell* cell, Cell* root, PyArrayObject* shown) {
    const Chain* from = CHAIN_OF(root);
    self->closed = ITEM, self->view = 1;
    self->item.call = self->item.names = NULL, self->item.total = 0;
    self->array[0] = NULL, self->source[0] = source_new((PyObject*)root), self->arrays = self->sources = 1;
    root->waiting_views++;
    self->place = (PyArrayObject*)Py_NewRef((PyObject*)shown), self->offset = PyArray_BYTES(shown) - PyArray_BYTES(from->place);
    memcpy(self->strides, PyArray_STRIDES(shown), (size_t)self->ndim * sizeof(npy_intp));
    self->flat = PyArray_IS_C_CONTIGUOUS(shown) != 0;
    self->at[0].step.loops = NULL, self->at[0].step.out = (short)PyArray_TYPE(shown), self->at[0].put = NULL;
    self->at[0].site = (Site){(PyCodeObject*)Py_NewRef((PyObject*)from->at[0].site.code), from->at[0].site.offset};
    self->steps = self->cells = 1, self->at[0].cell = cell, cell->before = (Cell*)self, cell->offset = 0;
    chain_enter(self);
    tapes_sound("part");
}

/* Such a tape, without a cell yet; NULL where memory is short. */
static inline Chain* part_chain(const Chain* from, PyArrayObject* shown) {
    Chain* self = chain_new(from->state, from->minded, PyArray_NDIM(shown), PyArray_DIMS(shown), size_of(shown));
    if (self == NULL) PyErr_Clear();
    return self;
}

/* The part `at` of what waits to be written, of which `a` is all or a part; NULL, without an exception, where it has to be looked at closer. */
static PyObject* part_waits(PyObject* a, const Place* at) {
    const Chain* from = CHAIN_OF(a);
    Cell *root = from->view ? from->source[0] : (Cell*)a, *cell = NULL;
    Chain* self = NULL;
    PyArrayObject* shown;
    if (at->ndim > RAW_AXES || !has_elements(at) || kept_count == 0 || waiting_count >= CHAINS_MOST || (shown = raw_view(from->place, at->ndim, at->dims, at->strides, at->data)) == NULL) return PyErr_Clear(), NULL;
    if ((self = part_chain(CHAIN_OF(root), shown))) {
        cell = chain_cell(); /* a kept one */
        Py_SETREF(cell->view, Py_NewRef(owner_of((PyObject*)root)));
        part_follows(self, cell, root, shown);
    }
    Py_DECREF(shown);
    return (PyObject*)cell;
}

/* Whether a key names an element of what has so many axes, which is asked for then; of most keys. */
static inline int names_element(PyObject* key, int ndim) {
    if (!PyTuple_CheckExact(key)) return ndim == 1 && PyLong_CheckExact(key);
    if (PyTuple_GET_SIZE(key) != ndim) return 0;
    while (ndim--)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(key, ndim))) return 0;
    return 1;
}

/* `a[key]` of integers and slices, of what waits; NULL as for `view_waits`. */
static PyObject* getitem_callable; /* `operator.getitem` */
static PyObject* getitem_waits(PyObject* a, PyObject* key) {
    PyObject *args[2] = {a, key}, *made;
    PyArrayObject* place;
    Raw shadow;
    Place at;
    if (getitem_callable == NULL || CHAIN_OF(a) == NULL || names_element(key, CHAIN_OF(a)->ndim) || !is_basic(key)) return NULL;
    if ((place = CHAIN_OF(a)->place) && CHAIN_OF(a)->users == 0) {
        if (!place_of(place, key, &at)) return NULL;
        if ((made = part_waits(a, &at))) return made;
    }
    if (!shadow_of(a, &shadow) || !place_of((PyArrayObject*)&shadow, key, &at)) return NULL;
    return view_waits(&at, getitem_callable, args, 2);
}

/* The axes of what waits, the other way round. */
static PyObject* transpose_waits(PyObject* a, PyObject* callable) {
    Raw shadow;
    Place at;
    if (callable == NULL || !shadow_of(a, &shadow)) return NULL;
    at.ndim = shadow.fields.nd, at.data = shadow.fields.data;
    for (int k = 0; k < at.ndim; k++) at.dims[k] = shadow.lengths[at.ndim - 1 - k], at.strides[k] = shadow.lengths[RAW_AXES + at.ndim - 1 - k];
    return view_waits(&at, callable, &a, 1);
}

/* The elements of what waits, in another shape; NULL also where it has other lengths, or they lie with gaps. */
static PyObject* reshape_waits(PyObject* a, int ndim, const npy_intp* dims, PyObject* callable, PyObject* const* args, Py_ssize_t n) {
    npy_intp size = 1, step;
    Raw shadow;
    Place at;
    if (ndim == 0 || ndim > RAW_AXES || !shadow_of(a, &shadow) || lies_otherwise(CHAIN_OF(a))) return NULL;
    at.ndim = ndim, at.data = shadow.fields.data, step = PyDataType_ELSIZE(shadow.fields.descr);
    for (int k = ndim; k--; step *= dims[k]) at.dims[k] = dims[k], at.strides[k] = step, size *= dims[k];
    return size == CHAIN_OF(a)->size ? view_waits(&at, callable, args, n) : NULL;
}

/* Showing -------------------------------------------------------------------------------------------------------------------------------- */

static PyObject* operand_told(const Chain* self, const Step* step, const Operand* of) {
    PyArray_Descr* descr;
    PyObject *number, *made;
    if (of->kind != OF_NUMBER) return Py_BuildValue("(ii)", of->kind, of->number);
    descr = PyArray_DescrFromType(step->type);
    number = PyArray_Scalar((void*)&self->value[of->number], descr, NULL);
    made = number ? Py_BuildValue("(iO)", of->kind, number) : NULL;
    Py_XDECREF(number), Py_DECREF(descr);
    return made;
}

static PyObject* steps_told(const Chain* self) {
    PyObject* made = PyList_New(0);
    for (int k = 0; made && self->closed != ITEM && k < self->steps; k++) {
        const Step* step = &self->at[k].step;
        PyObject* told = PyTuple_New(1 + step->loops->nin);
        if (told) PyTuple_SET_ITEM(told, 0, Py_NewRef(step->loops->ufunc));
        for (int o = 0; told && o < step->loops->nin; o++) {
            PyObject* operand = operand_told(self, step, &step->of[o]);
            if (operand) PyTuple_SET_ITEM(told, 1 + o, operand);
            else Py_CLEAR(told);
        }
        if (told == NULL || PyList_Append(made, told) < 0) Py_CLEAR(made);
        Py_XDECREF(told);
    }
    return made;
}

static PyObject* item_told(const Chain* self) {
    const Item* item = &self->item;
    PyObject *args, *made;
    if (self->closed != ITEM) return Py_NewRef(Py_None);
    args = PyList_New(0);
    for (int k = 0; args && k < item->total; k++) {
        PyObject* told = item->args[k] ? Py_BuildValue("(iO)", -1, item->args[k]) : Py_BuildValue("(iO)", item->joined ? -2 : item->of[k], Py_None);
        if (told == NULL || PyList_Append(args, told) < 0) Py_CLEAR(args);
        Py_XDECREF(told);
    }
    made = args ? Py_BuildValue("(OOnO)", item->call, args, item->n, item->names ? item->names : Py_None) : NULL;
    Py_XDECREF(args);
    return made;
}

static PyObject* sites_told(const Chain* self) {
    PyObject* made = PyList_New(0);
    for (int k = 0; made && k < self->steps; k++) {
        PyObject* told = Py_BuildValue("(Oi)", (PyObject*)self->at[k].site.code, self->at[k].site.offset);
        if (told == NULL || PyList_Append(made, told) < 0) Py_CLEAR(made);
        Py_XDECREF(told);
    }
    return made;
}

/* What an array waits for: `(serial, step, steps, item, operands, sites)`; None where it does not. */
static PyObject* tape_told(PyObject* x) {
    const Chain* self;
    PyObject *operands, *steps, *item, *sites, *made;
    if (IS_CHAIN(x) && CHAIN_OF(x) && (CHAIN_OF(x)->place || CHAIN_OF(x)->ready) && settle_cell(x) < 0) return NULL; /* what is written has no graph of its own */
    self = IS_CHAIN(x) ? CHAIN_OF(x) : NULL;
    if (self == NULL) return Py_NewRef(Py_None);
    operands = PyList_New(0);
    for (int k = 0; operands && k < self->arrays; k++) {
        PyObject* operand = self->array[k] ? (PyObject*)array_of(self->array[k]) : Py_NewRef((PyObject*)self->source[k]);
        if (operand == NULL || PyList_Append(operands, operand) < 0) Py_CLEAR(operands);
        Py_XDECREF(operand);
    }
    steps = steps_told(self), item = item_told(self), sites = sites_told(self);
    made = operands && steps && item && sites ? Py_BuildValue("(LiOOOO)", self->serial, STEP_OF(x), steps, item, operands, sites) : NULL;
    Py_XDECREF(operands), Py_XDECREF(steps), Py_XDECREF(item), Py_XDECREF(sites);
    return made;
}

static void tapes_pause(int on) { pausing = on ? PyThreadState_Get() : NULL; }

/* From now on what is computed of an array that waits is computed apart from it. */
static void tape_seal(PyObject* x) {
    if (IS_CHAIN(x) && CHAIN_OF(x)) CHAIN_OF(x)->sealed = 1;
}

#endif
