/* Operands of what is recorded: how they lie, in which type they are computed, under which error state, on which tape.

   In: arrays in memory, cells that wait, numbers.  Out: operands of a step, and the tape that takes it.  Promise: recording reads shapes, dtypes and strides, and runs no code of a program's.

   A tape's elements are gone through in the order of its results, which is C's or another (`Chain.order`): NumPy's rule (`axes_order`), by how far
   the elements of all operands lie apart along each axis, says which, so that transposed matrices of one order are one pass over rows in memory.
   Operands that lie otherwise than the result (transposed beside one that is not, backwards, repeated) are read with the steps between their
   elements. What has axes of one element, for which NumPy has several answers, is a tape of one step that NumPy's ufunc computes (`Chain.strided`), and
   computed before another operation reads it.  What does not lie as the result does is read in rows, of planes where there are three axes left when
   those that follow one another in all operands are one (`rows_of`); `p[:, None, :] - q[None, :, :]` is steps like others. Machine code goes over a
   plane at a time.

   Among the eight youngest tapes one over the same space is looked for; a cell counts the tapes that read it. An operand that waits on another tape
   is read when that has run (`tape_over`). There are at most 32; the older half runs then. A tape has up to 500 steps that read 64
   arrays, of which 24 and 8 have room in itself (`chain_holds`), and a turn of a loop begins another one after 16.

   Filters of warnings are looked up when an operation is recorded: those of a block (`catch_warnings`), those that raise, and error states that raise
   or call back have everything computed at its call (`tapes.state`). A warning is told only while the filters are in force under which its operation
   was recorded: what a block (`catch_warnings`, `pytest.warns`) asks for that was recorded outside is told when the block has ended, with the next
   operation, or when the program ends (`floating.tell_put_off`). Values do not wait. */

#ifndef LAZYNP_OPERANDS_H
#define LAZYNP_OPERANDS_H

#include "casts.h"

/* Recording -------------------------------------------------------------------------------------------------------------------------- */

/* An operand, as it is found. */
typedef struct {
    PyArrayObject* array;
    Chain* chain; /* on which it waits */
    int type;     /* -1: it is a number, or nothing that waits */
    int ndim;
    const npy_intp* dims;
    Cell* root; /* what is to be there before the array is read; NULL: the operand itself, or nothing */
} Read;

/* The shape of operands together, and its elements; -1 where NumPy has to see to it. */
static inline npy_intp dims_join(const Read* read, int nin, int* ndim, npy_intp* dims) {
    npy_intp size = 1;
    *ndim = 0;
    for (int o = 0; o < nin; o++)
        if (read[o].type >= 0 && read[o].ndim > *ndim) *ndim = read[o].ndim;
    if (*ndim == 0 || *ndim > AXES) return -1;
    for (int k = 0; k < *ndim; k++) {
        npy_intp length = 1;
        for (int o = 0; o < nin; o++) {
            int own = read[o].type < 0 ? -1 : k - (*ndim - read[o].ndim);
            npy_intp of = own < 0 ? 1 : read[o].dims[own];
            if (of == 1) continue;
            if (length != 1 && length != of) return -1;
            length = of;
        }
        size *= dims[k] = length;
    }
    return size;
}

/* Whether no operand has half as many elements. */
static NOT_INLINED int all_smaller(const Read* read, int count, npy_intp size) {
    for (int k = 0; k < count; k++) {
        npy_intp own = read[k].type >= 0;
        for (int j = 0; own && j < read[k].ndim; j++) own *= read[k].dims[j];
        if (own >= size / 2) return 0;
    }
    return 1;
}

/* Whether a result is so large, and so much larger than its operands, that a graph never has it lie in memory: who asks for parts of it, or for sums, gets those alone. */
static inline int size_grows(const Read* read, int count, npy_intp size) { return size > FIRST_USUAL && size > limit_now() && all_smaller(read, count, size); }

/* Whether an array is an operand of a tape over `dims`, in the order of its memory. */
static int chain_takes(PyArrayObject* x, int ndim, const npy_intp* dims) {
    npy_intp steps[AXES];
    if (PyArray_ISCARRAY_RO(x) && PyArray_NDIM(x) == ndim && same_lengths(PyArray_DIMS(x), dims, ndim)) return PyArray_STRIDE(x, ndim - 1) >= 0;
    return PyArray_NDIM(x) <= ndim && (PyArray_IS_C_CONTIGUOUS(x) ? 1 : ndim <= 3) && operand_steps(x, ndim, dims, steps);
}

static inline int step_type(const Chain* self, int k) { return self->at[k].step.out; }

static inline int is_private(PyObject* a);

/* What a large array that exists, or a part of one, shows (borrowed), if tapes compute with it: with complex numbers no kernel does; `now`: at the call, as with what may be written
   from outside.  NULL for all others. */
static NOT_INLINED PyArrayObject* large_shown(PyObject* a, int now) {
    PyArrayObject *x, *memory;
    PyObject* found;
    Cell* root;
    int own;
    if (Py_TYPE(a) != array_type || ((Cell*)a)->base == NULL || Py_TYPE(((Cell*)a)->base) == &PyArray_Type || IS_RAW(((Cell*)a)->base)) return NULL;
    if (((Cell*)a)->base == Py_None && !now) { /* most that are recorded are neither, and are seen to be none quickly */
        found = member_of(&member_array, member_of(&member_buffer, ((Cell*)a)->node));
        if (found == NULL || !PyArray_Check(found) || !(PyArray_ISCOMPLEX((PyArrayObject*)found) || PyArray_SIZE((PyArrayObject*)found) <= tapes_limit())) return NULL;
    }
    if ((x = large_memory(a, &root, &memory, &own)) == NULL || PyArray_ISCOMPLEX(x)) return x;
    if (!IS_NUMERIC(PyArray_TYPE(x)) || is_mapped(root)) return NULL;
    return size_of(x) <= tapes_limit() || (size_of(x) <= first_limit() && (now || !is_private(a))) ? x : NULL;
}
static inline PyArrayObject* large_operand(PyObject* a) { return large_shown(a, 0); }

/* The same of every array that exists. */
static inline PyArrayObject* operand_seen(PyObject* x) {
    PyArrayObject* found = seen_of(x);
    return found ? found : large_operand(x);
}

/* Whether only lazynp may write the memory of `a`. */
static inline int is_private(PyObject* a) {
    PyObject *owner = owner_of(a), *held;
    held = ((Cell*)a)->base;
    if (held && IS_RAW(held)) { /* its array was not exported */
        if (((Raw*)held)->holds && !IS_RAW(((Raw*)held)->holds)) return Py_TYPE(owner) == array_type && is_own((Cell*)owner);
        held = ((Raw*)(((Raw*)held)->holds ? ((Raw*)held)->holds : held))->fields.base;
        return held == NULL || (Py_REFCNT(held) == 1 && ((PyArrayObject_fields*)held)->weakreflist == NULL);
    }
    if (held && PyArray_CheckExact(held)) return Py_TYPE(owner) == array_type && is_own_shown((Cell*)owner, held);
    if (is_part(a)) held = ((Cell*)held)->base;
    if (held == NULL) return 0;
    /* None: a value, which is never written; else a draft, which was not exported */
    return held == Py_None || (member_of(&member_lease, held) == Py_None && member_of(&member_outside, held) == Py_None);
}

#define TURN 16                 /* steps from which on a turn of a loop begins another tape */

/* Whether a tape takes another step, and the casts of its operands, from this place. */
static inline int takes_step(Chain* self, const Site* site, PyObject* state) {
    if (self->users | self->told | self->closed | self->sealed) return 0;
    if (self->state != state || (self->steps >= TURN && self->at[0].site.code == site->code && self->at[0].site.offset == site->offset)) return 0;
    return chain_holds(self, OPERANDS, OPERANDS);
}

/* Whether another tape reads what this one computes. */
static int tape_is_read(const Chain* self) {
    for (int k = 0; k < self->steps; k++)
        if (self->at[k].cell && self->at[k].cell->readers) return 1;
    return 0;
}

#define LOOKED_AT 8 /* tapes, the youngest ones, among which one over the same space is looked for */

/* The latest tape over this space, in an order of its axes (NULL: C's), that takes a step, and reads tapes up to `serial`; NULL where there is none.  An older one becomes
   the youngest.  `flat`, `whole`: as of the step; where a loop is to get all elements at once, everything lies as the results do. */
static Chain* tape_over(int ndim, const npy_intp* dims, const char* order, const Site* site, PyObject* state, long long serial, int flat, int whole) {
    int looked = 0;
    for (Chain* self = waiting.before; self != &waiting && looked++ < LOOKED_AT; self = self->before) {
        if (self->closed || self->ndim != ndim || !same_lengths(self->dims, dims, ndim) || !takes_step(self, site, state)) continue;
        if ((self->whole && !flat) || (whole && !self->flat) || !is_laid(self, order)) continue;
        if (self->serial == serial || (self->serial > serial && !self->large)) return self;
        if (tape_is_read(self)) continue; /* what reads a large one, and makes little of it, lets it go before others are computed */
        if (self->serial > serial) return self;
        if (is_overwritten(self)) continue;
        chain_leave(self);
        self->serial = ++chain_serial;
        chain_enter(self);
        return self;
    }
    return NULL;
}

static PyObject *warnings_dict, *filters_name; /* of the module, where the filters in force are looked up */

/* The list of filters that is in force (borrowed); NULL, without an exception, where there is none. */
static inline PyObject* filters_now(void) {
#if PY_VERSION_HEX < 0x030C0000 /* PEP 509: what a dict holds is the same while its version is */
    static PyObject* found;
    static uint64_t version;
    if (version == ((PyDictObject*)warnings_dict)->ma_version_tag) return found;
    version = ((PyDictObject*)warnings_dict)->ma_version_tag;
    found = PyDict_GetItemWithError(warnings_dict, filters_name);
#else
    PyObject* found = PyDict_GetItemWithError(warnings_dict, filters_name);
#endif
    if (found == NULL) PyErr_Clear();
    return found;
}

/* The error state of what is recorded now, with what the filters of warnings say; NULL, without an exception, where an operation is computed at its call.
   It was asked for before, mostly: under the same value of NumPy's context variable, with the same list of filters. */
static struct {
    PyObject *errors, *filters, *first, *state;
    Py_ssize_t length;
    int minded;
} said;

/* Whether `said` was asked for under the same circumstances.  No code of a program's runs. */
static inline int state_known(void) {
    PyObject *errors = NULL, *filters = warnings_dict ? filters_now() : NULL;
    if (filters == NULL || filters != said.filters || PyList_GET_SIZE(filters) != said.length || (said.length && PyList_GET_ITEM(filters, 0) != said.first)) return 0;
    if (PyContextVar_Get(error_variable, NULL, &errors) < 0 || errors == NULL) return PyErr_Clear(), 0;
    Py_DECREF(errors); /* the context has it */
    return errors == said.errors;
}

/* Whether it is known that operations are computed at their calls. */
static inline int at_the_call(void) { return said.state == NULL && said.errors && state_known(); }

/* The same as a new reference, asked for where it is not known.  Other threads may exchange the filters meanwhile, and ask, too: what was said under others is not
   remembered, and the circumstances change all at once. */
static PyObject* state_now(int* minded) {
    PyObject *errors = NULL, *filters, *first, *found, *state, *old[4];
    Py_ssize_t length;
    if (error_variable == NULL || state_method == NULL) return NULL;
    if (state_known()) return *minded = said.minded, Py_XNewRef(said.state);
    if (warnings_dict == NULL) {
        PyObject* module = PyImport_ImportModule("warnings");
        if (module == NULL) return PyErr_Clear(), NULL;
        warnings_dict = Py_NewRef(PyModule_GetDict(module));
        filters_name = PyUnicode_InternFromString("filters");
        Py_DECREF(module);
    }
    filters = filters_now();
    if (filters == NULL || !PyList_CheckExact(filters)) return NULL;
    if (PyContextVar_Get(error_variable, NULL, &errors) < 0 || errors == NULL) return PyErr_Clear(), NULL;
    length = PyList_GET_SIZE(filters);
    first = length ? PyList_GET_ITEM(filters, 0) : NULL;
    Py_INCREF(filters), Py_XINCREF(first);
    found = PyObject_CallNoArgs(state_method);
    if (found == NULL) {
        Py_DECREF(errors), Py_DECREF(filters), Py_XDECREF(first);
        return pieces_put_off(), NULL;
    }
    state = found == Py_None ? NULL : PyTuple_GET_ITEM(found, 0);
    *minded = found == Py_None ? 0 : (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 1));
    Py_XINCREF(state);
    if (filters_now() != filters || PyList_GET_SIZE(filters) != length || (length && PyList_GET_ITEM(filters, 0) != first)) length = -1;
    old[0] = said.errors, old[1] = said.filters, old[2] = said.first, old[3] = said.state;
    said.errors = errors, said.filters = filters, said.first = first, said.state = Py_XNewRef(state), said.minded = *minded, said.length = length;
    Py_DECREF(found);
    for (int k = 0; k < 4; k++) Py_XDECREF(old[k]);
    return state;
}

/* The settings have changed: the state is asked for again. */
static void state_forget(void) {
    said.length = -1; /* before what goes lets other threads run */
    Py_CLEAR(said.errors);
    Py_CLEAR(said.filters);
    Py_CLEAR(said.first);
    Py_CLEAR(said.state);
}

/* Whether code is lazynp's own, whose place is no place of the program's. */
static struct {
    PyCodeObject* code; /* held */
    int inside;
} known_codes[64];
static inline int code_place(const PyCodeObject* code) { return (int)(((uint64_t)((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u) >> 58); }
static int is_inside(PyCodeObject* code) {
    int k = code_place(code), inside;
    if (known_codes[k].code != code) {
        Py_INCREF(code);
        known_codes[k].inside = inside = PyUnicode_Check(code->co_filename) && PyUnicode_Tailmatch(code->co_filename, own_root, 0, PY_SSIZE_T_MAX, -1) == 1;
        Py_XSETREF(known_codes[k].code, code); /* letting go of the old one may run code, which looks at others */
        return inside;
    }
    return known_codes[k].inside;
}

/* Where the program is (the code is borrowed), if its code was looked at before; NULL where that is still to be done.  No code of a program's runs. */
static inline PyCodeObject* site_known(int* offset) {
    PyCodeObject* code = frame_code(offset);
    int k = code_place(code);
    return code && known_codes[k].code == code && !known_codes[k].inside ? code : NULL;
}

/* Where the program is (the code is held); 0 where there is no frame of Python's. */
static inline int site_now(Site* site) {
    PyObject* found;
    site->code = frame_code(&site->offset);
    if (site->code == NULL) return 0;
    Py_INCREF(site->code);
    if (!is_inside(site->code)) return 1;
    found = PyObject_CallNoArgs(place_method);
    if (found == NULL || !PyTuple_Check(found)) return Py_XDECREF(found), 0;
    Py_SETREF(site->code, (PyCodeObject*)Py_NewRef(PyTuple_GET_ITEM(found, 0)));
    site->offset = (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 1));
    Py_DECREF(found);
    return 1;
}

/* Whether an order of axes is C's. */
static inline int in_c_order(const char* order, int ndim) {
    for (int k = 0; k < ndim; k++)
        if (order[k] != k) return 0;
    return 1;
}

/* Whether what waits there may lie otherwise than results do, in C's order without gaps. */
static inline int lies_otherwise(const Chain* self) { return self->strided || ((self->view || self->closed == PUT) && !self->flat); }

/* And how is known. */
static inline int lies_known(const Chain* self) { return self->ordered || (self->view && !self->failed && self->ndim <= RAW_AXES); }

/* Whether the elements of an operand lie as those of a result of so many, in C's order. */
static inline int lies_flat(const Read* read, npy_intp size) {
    return read->array ? PyArray_IS_C_CONTIGUOUS(read->array) && size_of(read->array) == size : read->chain->size == size && !lies_otherwise(read->chain);
}

/* How an operand lies under `dims`; 0 where its memory is not plain. */
static int read_strides(const Read* read, int ndim, const npy_intp* dims, npy_intp* steps) {
    npy_intp strides[AXES];
    const Chain* chain = read->chain;
    if (read->array) return PyArray_ISBEHAVED_RO(read->array) && operand_strides(read->ndim, read->dims, PyArray_STRIDES(read->array), ndim, dims, steps);
    if (read->ndim > AXES) return 0;
    if (chain->view) return operand_strides(read->ndim, read->dims, chain->strides, ndim, dims, steps);
    ordered_strides(read->ndim, read->dims, chain_order(chain), PyDataType_ELSIZE(raw_dtypes[read->type]), strides);
    return operand_strides(read->ndim, read->dims, strides, ndim, dims, steps);
}

static inline int type_cast_to(const Loops* loops) { return (int)(loops - cast_loops); }

/* Whether an operand has elements that are shown several times. */
static int repeats(const Read* read) {
    npy_intp steps[AXES];
    if (!read_strides(read, read->ndim, read->dims, steps)) return 1;
    for (int k = 0; k < read->ndim; k++)
        if (steps[k] == 0 && read->dims[k] != 1) return 1;
    return 0;
}

/* What operands that lie otherwise than in C's order come to: the order of the axes of their result, and whether (`flat`) all lie so without gaps; 0 where that is
   NumPy's to say: of axes of one element it has several answers. */
static int reads_order(const Read* read, int nin, int ndim, const npy_intp* dims, char* order, int* flat) {
    npy_intp steps[OPERANDS][AXES], strides[AXES];
    int count = 0;
    for (int k = 0; k < ndim; k++)
        if (dims[k] == 1) return 0;
    for (int o = 0; o < nin; o++)
        if (read[o].type >= 0 && !read_strides(&read[o], ndim, dims, steps[count++])) return 0;
    axes_order(count, ndim, steps, order);
    *flat = 1;
    for (int o = 0, at = 0; o < nin; o++) {
        if (read[o].type < 0) continue;
        ordered_strides(ndim, dims, order, PyDataType_ELSIZE(raw_dtypes[read[o].type]), strides);
        *flat &= same_lengths(steps[at++], strides, ndim);
    }
    return 1;
}

/* Put what was read of an operand behind those of a tape. */
static inline void chain_reads(Chain* self, const Read* read, PyObject* x) {
    int waits = read->array == NULL || read->root, k = self->arrays++;
    self->array[k] = (PyArrayObject*)Py_XNewRef((PyObject*)read->array);
    self->source[k] = waits ? source_new(read->root ? (PyObject*)read->root : x) : NULL;
    self->sources += waits;
}

/* Put an array that a tape takes, or a cell that waits, among its operands. */
static int chain_array(Chain* self, const Read* read, PyObject* x) {
    int k;
    for (k = 0; k < self->arrays; k++)
        if (read->array ? self->array[k] == read->array && self->source[k] == read->root : self->array[k] == NULL && self->source[k] == (Cell*)x) return k;
    chain_reads(self, read, x);
    return k;
}

/* Append a step, whose value `cell` (NULL: no cell) has. */
static void chain_append(Chain* self, Loops* loops, int type, const Operand* of, Cell* cell, const Site* site) {
    int k = self->steps++;
    StepAt* at = &self->at[k];
    Step* step = &at->step;
    step->loops = loops, step->type = (short)type, step->out = loops->of[type].out;
    self->wide |= PyTypeNum_ISCOMPLEX(type) || PyTypeNum_ISCOMPLEX(step->out);
    memcpy(step->of, of, sizeof(step->of));
    at->site = *site, at->cell = cell, at->put = NULL;
    if (cell) cell->before = (Cell*)self, cell->offset = k, self->cells++;
}

/* An operand as one of another type. */
static Operand chain_cast(Chain* self, Operand from, int type, int to, const Site* site) {
    Operand of[OPERANDS] = {from, {OF_NUMBER, 0}, {OF_NUMBER, 0}};
    Site own = {(PyCodeObject*)Py_NewRef((PyObject*)site->code), site->offset};
    for (int k = 0; k < self->steps; k++)
        if (self->at[k].step.loops == &cast_loops[to] && self->at[k].step.of[0].kind == from.kind && self->at[k].step.of[0].number == from.number) return Py_DECREF(own.code), (Operand){OF_STEP, (short)k};
    chain_append(self, &cast_loops[to], type, of, NULL, &own);
    return (Operand){OF_STEP, (short)(self->steps - 1)};
}

/* Whether what an operand is computed with is complex; no code of a program's runs. */
static int with_complex(PyObject* x) {
    PyArrayObject* seen;
    if (Py_TYPE(x) != array_type) return is_complex(x);
    if (WAITS(x)) return CHAIN_OF(x) && PyTypeNum_ISCOMPLEX(step_type(CHAIN_OF(x), STEP_OF(x)));
    if ((seen = seen_of(x)) == NULL) seen = large_operand(x);
    return seen && PyArray_ISCOMPLEX(seen);
}

/* The memory of a large array of real numbers that exists, for an operation with complex ones: no kernel computes with them; NULL for all others. */
static inline PyArrayObject* large_real(PyObject* a, PyObject* other) {
    PyArrayObject* memory;
    Cell* root;
    int own;
    if (other == NULL || Py_TYPE(a) != array_type || ((Cell*)a)->base == NULL || Py_TYPE(((Cell*)a)->base) == &PyArray_Type || IS_RAW(((Cell*)a)->base)) return NULL;
    return with_complex(other) ? large_memory(a, &root, &memory, &own) : NULL;
}

/* The array whose memory a large operand shows (borrowed), where code outside lazynp might hold it; NULL of all others. */
static NOT_INLINED PyObject* drafted(PyObject* x) {
    PyObject *root = x, *held, *memory;
    if (Py_TYPE(x) != array_type || !is_large(x)) return NULL;
    if (((Cell*)root)->base && Py_TYPE(((Cell*)root)->base) == array_type) root = ((Cell*)root)->base;
    held = ((Cell*)root)->base;
    if (held == NULL || held == Py_None || Py_TYPE(held) != member_draft.type || tapes_limit() <= limit_now() || limit_now() == 0) return NULL;
    if (member_of(&member_lease, held) == Py_None && member_of(&member_outside, held) == Py_None) return NULL;
    memory = member_of(&member_draft, held);
    return memory && PyArray_CheckExact(memory) && PyArray_SIZE((PyArrayObject*)memory) <= tapes_limit() ? root : NULL;
}

/* Let what no code outside lazynp holds any more be a value again; -1 with an exception. */
static PyObject* value_method;
static NOT_INLINED int draft_ready(PyObject* root) {
    PyObject* done = value_method ? PyObject_CallOneArg(value_method, root) : Py_NewRef(Py_None);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Have what lies otherwise computed, for an operation that reads it: with its memory it is an operand like others.  -1 where NumPy raises. */
static inline int operand_ready(PyObject* x) {
    PyObject* root;
    if (IS_CHAIN(x)) return CHAIN_OF(x) && lies_otherwise(CHAIN_OF(x)) && !CHAIN_OF(x)->place ? chain_settle(x) : 0;
    return (root = drafted(x)) ? draft_ready(root) : 0;
}

/* What an operand is, beside `other` (NULL: by itself); 0 where nothing that reads it is recorded. */
static inline int operand_read(PyObject* x, Read* to, PyObject* other) {
    to->array = NULL, to->chain = NULL, to->root = NULL, to->type = -1;
    if (Py_TYPE(x) != array_type) return 1;
    if (WAITS(x)) {
        Chain* chain = CHAIN_OF(x);
        if (chain == NULL || (lies_otherwise(chain) && !chain->place)) return 0;
        if (chain->place) to->array = chain->place, to->root = chain->view ? chain->source[0] : (Cell*)x;
        to->chain = chain, to->type = step_type(chain, STEP_OF(x)), to->ndim = chain->ndim, to->dims = chain->dims;
        return 1;
    }
    if (((Cell*)x)->base && IS_RAW(((Cell*)x)->base)) to->array = (PyArrayObject*)((Cell*)x)->base;
    else if ((to->array = memory_of(x)) == NULL && (to->array = large_operand(x)) == NULL && (to->array = large_real(x, other)) == NULL) return 0;
    to->type = PyArray_TYPE(to->array), to->ndim = PyArray_NDIM(to->array), to->dims = PyArray_DIMS(to->array);
    return IS_NUMERIC(to->type) && is_private(x);
}

/* Whether an operand that cannot wait, for its memory may be written from outside, is read at the call by a tape: small ones are by NumPy's loops. */
static inline int is_read_now(const Read* read) { return read->array && read->chain == NULL && read->type >= 0 && IS_NUMERIC(read->type) && size_of(read->array) > limit_now(); }

/* Whether a large operand's memory may be written from outside. */
static NOT_INLINED int is_large_lent(PyObject* x) { return Py_TYPE(x) == array_type && is_large(x) && large_shown(x, 1) && !is_private(x); }
static inline int any_large_lent(PyObject* const* operands, int n) {
    for (int o = 0; o < n; o++)
        if (is_large_lent(operands[o])) return 1;
    return 0;
}

/* What an operand is of an operation that is computed at the call (`NOW`), or might be beside another one that is (`STORED`). */
enum { NOW = 1, STORED };
static NOT_INLINED int operand_now(PyObject* x, Read* to, int* when) {
    if (is_read_now(to)) return *when |= NOW;
    if (to->array) return IS_NUMERIC(to->type) ? *when |= STORED : 0;
    if (Py_TYPE(x) != array_type || WAITS(x) || (to->array = large_shown(x, 1)) == NULL) return 0;
    to->type = PyArray_TYPE(to->array), to->ndim = PyArray_NDIM(to->array), to->dims = PyArray_DIMS(to->array);
    return *when |= STORED;
}


/* Whether what waits is an operand of a step, however it lies. */
static inline int waits_known(PyObject* x) { return IS_CHAIN(x) && CHAIN_OF(x) && lies_known(CHAIN_OF(x)); }

/* The same, of a step. */
static inline int step_reads(PyObject* x, Read* to, PyObject* other) {
    Chain* chain = waits_known(x) ? CHAIN_OF(x) : NULL;
    if (chain == NULL || chain->place || !lies_otherwise(chain)) return operand_read(x, to, other);
    *to = (Read){.array = NULL, .chain = chain, .root = NULL, .type = step_type(chain, STEP_OF(x)), .ndim = chain->ndim, .dims = chain->dims};
    return 1;
}

/* The type in which the operands are computed; -1 where that is not recorded. */
static int operands_type(const Loops* loops, const Read* read, PyObject* a, PyObject* b) {
    PyObject* number = NULL;
    int type = read[0].type;
    if (type < 0 && b && read[1].type < 0) { /* what is chosen are numbers */
        if (!loops->chooses || !(PyFloat_CheckExact(a) || PyLong_CheckExact(a)) || !(PyFloat_CheckExact(b) || PyLong_CheckExact(b))) return -1;
        return PyFloat_CheckExact(a) || PyFloat_CheckExact(b) ? NPY_DOUBLE : NPY_LONG;
    }
    if (type < 0) type = read[1].type, number = a;
    else if (b && read[1].type >= 0) type = common_type(type, read[1].type);
    else if (b) number = b;
    if (type < 0) return -1;
    if (number && (PyComplex_CheckExact(number) || IS_A(number, NPY_CDOUBLE)) && type < NPY_CFLOAT) type = type == NPY_FLOAT && PyComplex_CheckExact(number) ? NPY_CFLOAT : NPY_CDOUBLE;
    else if (number && type < NPY_FLOAT && PyFloat_CheckExact(number)) type = NPY_DOUBLE;
    else if (number && type == NPY_BOOL && PyLong_CheckExact(number)) type = NPY_LONG;
    if (a && b && read[0].type >= 0 && read[1].type >= 0 && read[0].type != read[1].type && loops->of[type].function == NULL && !loops->integers_divide) return -1; /* it is NumPy's to say */
    return loops_type(loops, type);
}

static inline int casts_known(const Loops* loops, int type, const Read* read) {
    for (int o = 0; o < loops->nin; o++)
        if (read[o].type >= 0 && read[o].type != operand_type(loops, type, o) && cast_loops[type].of[read[o].type].function == NULL) return 0;
    return 1;
}

/* Whether there is something that keeps an operation from being recorded, at first sight. */
static inline int is_lent(PyObject* x) { return Py_TYPE(x) == array_type && ((Cell*)x)->lent && !is_private(x); }

/* Have the older half of what waits computed: what is recorded next need not look whether there is room. */
static NOT_INLINED int tapes_halve(void) {
    Chain* oldest;
    while (waiting_count > CHAINS_MOST / 2 && (oldest = oldest_waiting()))
        if (tape_settle(oldest) < 0) return -1;
    return 0;
}

#endif
