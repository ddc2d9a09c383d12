/* Recording writes of parts: `a[key] = value` and `a[key] op= value`, where the value waits.

   In: arrays, basic keys, values that wait.  Out: arrays that wait to be written.  Promise: a write waits only where the array's own cell alone shows its memory, so that
   a reader of it asks for the write first.

   `a[key] = b` and `a[key] op= b` of integers and slices wait with `b`, where only the cell of `a` (and tapes) shows the memory. That is found
   by counting its references (`putting.h`). The cell waits for a tape of its own (`PUT`, `puts.h`) whose sources are the value and, if that waits as
   well, the array as it was; what is read of it afterwards (a part is known by its place, `Chain.place`) waits for that tape. A tape depends on older
   ones alone (`serial`): before a write is made what is older and reads the place is computed. When the value's tape runs and nothing else wants the
   value, its blocks are put where they are to lie (`Target`), without memory between. Else, and where that would keep other threads of the program
   waiting for half a millisecond, it is copied. What names had by then is not stored if they have gone; what is not read any more is not written. */

#ifndef LAZYNP_PUTTING_H
#define LAZYNP_PUTTING_H

#include "items.h"

/* What is known of an array's memory: a view of it, or all of it, in a walk through the tapes. */
typedef struct {
    PyObject* memory;
    Py_ssize_t held; /* references that were met */
} Met;

static void met_forget(Met* met, PyArrayObject* x) {
    (void)met;
    if (x && IS_RAW(x)) ((Raw*)x)->seen = 0;
}
static void met_count(Met* met, PyArrayObject* x) {
    if (x == NULL) return;
    if ((PyObject*)x == met->memory) met->held++;
    else if (IS_RAW(x) && ((Raw*)x)->holds == met->memory && ((Raw*)x)->seen++ == 0) met->held++;
}
static void met_check(Met* met, PyArrayObject* x) {
    /* whether the view has another reference */
    if (x && (PyObject*)x != met->memory && IS_RAW(x) && ((Raw*)x)->holds == met->memory && Py_REFCNT(x) != ((Raw*)x)->seen) met->held = -1, met->memory = NULL;
}

static void met_walk(Met* met, void (*visit)(Met*, PyArrayObject*), PyArrayObject* one, PyArrayObject* two) {
    visit(met, one), visit(met, two);
    for (const Chain* chain = waiting.after; chain != &waiting; chain = chain->after) {
        for (int k = 0; k < chain->arrays; k++) visit(met, chain->array[k]);
        visit(met, chain->place), visit(met, chain->to);
    }
}

/* Whether only tapes and the cell `a` show the memory of `x`, which is what `a` shows; `part`: the view of it that an operation already has, or NULL. */
static int shown_by_one(Cell* a, PyArrayObject* x, Cell* part) {
    PyObject* owner = owner_of((PyObject*)a);
    PyArrayObject* parts = part && !WAITS(part) ? (PyArrayObject*)part->base : NULL;
    Met met = {.memory = IS_RAW(x) && ((Raw*)x)->holds ? ((Raw*)x)->holds : (PyObject*)x, .held = 0};
    if (a->readonly != Py_False || a->lent || a->writers || (part && part->lent) || !is_writable(x)) return 0;
    if (IS_RAW(x) ? FIELDS(x)->base != NULL : !PyArray_CheckExact(x)) return 0;
    if (IS_RAW(met.memory)) {
        if (((Raw*)met.memory)->fields.base) return 0; /* other code was shown it */
    } else {
        PyArrayObject_fields* of = (PyArrayObject_fields*)met.memory;
        if (!PyArray_CheckExact(met.memory) || of->base || of->weakreflist || of->_buffer_info || !(of->flags & NPY_ARRAY_OWNDATA)) return 0;
    }
    if (owner != (PyObject*)a) {
        Cell* root = (Cell*)owner;
        if (Py_TYPE(owner) != array_type || root->base != met.memory || root->lent || root->weakrefs || root->readers || root->writers) return 0;
        if (Py_REFCNT(owner) != 1 + (part && part->view == owner)) return 0; /* that of `a`, and of the part */
        met.held++;
    }
    if (part && part->weakrefs) return 0;
    if (a->waiting_views > (part && WAITS(part) && CHAIN_OF(part)->view && CHAIN_OF(part)->source[0] == a)) return 0;
    if (WAITS(a)) return 1; /* it was so when it began to wait, and who has been shown it since had it computed */
    if (IS_RAW(x) && met.memory == (PyObject*)x && ((Raw*)x)->views == 0 && Py_REFCNT(x) == 1) return 1;
    met_walk(&met, met_forget, x, parts);
    met_walk(&met, met_count, x, parts);
    met_walk(&met, met_check, x, parts);
    return met.memory && met.held == Py_REFCNT(met.memory);
}

/* The array that a cell shows, or will show when it was written; NULL where it has to be looked at closer. */
static PyArrayObject* put_place(Cell* a) {
    if (WAITS(a)) return CHAIN_OF(a) && CHAIN_OF(a)->closed == PUT && CHAIN_OF(a)->users == 0 ? CHAIN_OF(a)->place : NULL;
    if (a->base == NULL || a->shown) return NULL;
    return IS_RAW(a->base) || Py_TYPE(a->base) == &PyArray_Type ? (PyArrayObject*)a->base : NULL;
}

/* For tests: memory that waits to be written, and that nothing which waits reads, is filled with bytes that are no number; how often it was. */
static int poisons_now;
static long long poisoned;

static void target_poison(const Target* to) {
    char bytes[CHAIN_SIZE];
    npy_intp size = 1;
    memset(bytes, 0xff, sizeof(bytes));
    for (int axis = 0; axis < to->ndim; axis++) size *= to->dims[axis];
    for (npy_intp k = 0; k < size; k++) target_put(to, k, 1, bytes);
    poisoned++;
}

/* Whether a place is in the memory that an array shows. */
static inline int is_place_of(PyArrayObject* x, const Place* at) {
    npy_intp size = PyArray_ITEMSIZE(x);
    Reach whole = reach_of(PyArray_BYTES(x), PyArray_NDIM(x), PyArray_DIMS(x), PyArray_STRIDES(x), size), part = reach_of(at->data, at->ndim, at->dims, at->strides, size);
    return whole.low <= part.low && part.high <= whole.high;
}

/* Whether a write of `value`, which waits, into a place of `x` can be recorded. */
static int put_fits(PyArrayObject* x, const Place* at, PyObject* value) {
    const Chain* from = IS_CHAIN(value) ? CHAIN_OF(value) : NULL;
    if (kept_count == 0 || from == NULL || from->place || from->view || from->failed || from->users || lies_otherwise(from) || step_type(from, STEP_OF(value)) != PyArray_TYPE(x)) return 0;
    if (from->size == 0 || from->ndim != at->ndim || !same_lengths(from->dims, at->dims, at->ndim)) return 0;
    if (PyArray_NDIM(x) == 0 || PyArray_NDIM(x) > PLACE_AXES || at->ndim > AXES || !PyArray_ISBEHAVED(x) || waiting_count >= CHAINS_MOST || !is_place_of(x, at)) return 0;
    return !may_overlap_itself(at->ndim, at->dims, at->strides, PyArray_ITEMSIZE(x)); /* backwards, or elements that are shown several times */
}

/* Have `value`, which fits, written into a place of `x`, which `a` shows, later: whether that was recorded.  `there`: an array that shows the place, or NULL; `passing`: references to
   the value that go with the statement.  `now`: the caller makes the write at once; no other code finds it; what is recorded until then reads what was there before. */
static int put_made(Cell* a, PyArrayObject* x, const Place* at, PyObject* value, PyArrayObject* there, int passing, int now) {
    Chain *from = CHAIN_OF(value), *self;
    PyArrayObject* to;
    Cell* old = NULL;
    int read = !poisons_now;
    if ((to = there ? (PyArrayObject*)Py_NewRef((PyObject*)there) : raw_view(x, at->ndim, at->dims, at->strides, at->data)) == NULL) return PyErr_Clear(), 0;
    if ((WAITS(a) && (old = chain_cell()) == NULL) || (self = chain_new(from->state, 0, PyArray_NDIM(x), PyArray_DIMS(x), size_of(x))) == NULL) {
        Py_DECREF(to), Py_XDECREF(old);
        return PyErr_Clear(), 0;
    }
    self->closed = PUT, self->to = to, self->passing = passing, self->flat = PyArray_IS_C_CONTIGUOUS(x) != 0;
    memcpy(self->strides, PyArray_STRIDES(x), (size_t)PyArray_NDIM(x) * sizeof(npy_intp)), self->offset = 0;
    target_of(&self->target, to);
    self->array[0] = self->array[1] = NULL, self->source[0] = source_new(value), self->arrays = self->sources = 1;
    self->at[0].step.loops = NULL, self->at[0].step.out = (short)PyArray_TYPE(x), self->at[0].put = NULL;
    self->at[0].site = (Site){(PyCodeObject*)Py_NewRef((PyObject*)from->at[STEP_OF(value)].site.code), from->at[STEP_OF(value)].site.offset};
    self->place = (PyArrayObject*)Py_NewRef((PyObject*)x);
    if (old) {
        CHAIN_OF(a)->at[STEP_OF(a)].cell = old, old->before = a->before, old->offset = a->offset;
        (void)readers_follow(a, old);
        self->source[1] = source_new((PyObject*)old), self->arrays = self->sources = 2;
        Py_DECREF(old);
    } else {
        readers_take(a, x);
        Py_SETREF(a->base, Py_NewRef((PyObject*)&waiting_value));
    }
    self->steps = self->cells = 1, self->at[0].cell = a, a->before = (Cell*)self, a->offset = 0;
    for (const Chain* other = waiting.after; other != &waiting && !read; other = other->after) read = tape_reads(other, to);
    if (from->closed != ITEM) from->at[STEP_OF(value)].put = self;
    if (now) self->serial = LLONG_MAX;
    else chain_enter(self);
    tapes_sound("put");
    if (!read) target_poison(&self->target);
    return 1;
}

/* The same where only the cell `a` shows the memory.  `part`: see `shown_by_one`.  No code of a program's runs, nor has since the place was looked at. */
static int put_recorded(Cell* a, const Place* at, PyObject* value, Cell* part, PyArrayObject* there) {
    PyArrayObject* x = put_place(a);
    return x && size_of(x) <= limit_now() && put_fits(x, at, value) && shown_by_one(a, x, part) && put_made(a, x, at, value, there, 0, 0);
}

/* Compute `value`, which waits and fits, into a place of `to`, what a large array `a` shows of memory that is its own: whether that was done; 0, perhaps with an exception.  `passing`:
   whether only the statement has the value. */
static int large_put(PyObject* a, PyArrayObject* to, const Place* at, PyObject* value, int passing) {
    PyObject *cell, *there = shown_at(to, at->ndim, at->dims, at->strides, at->data);
    Cell* written;
    int done = 0;
    if (there == NULL) return 0;
    PyArray_ENABLEFLAGS(to, NPY_ARRAY_WRITEABLE);
    PyArray_ENABLEFLAGS((PyArrayObject*)there, NPY_ARRAY_WRITEABLE);
    Py_INCREF(a);
    written = writing_begin(a);
    cell = cell_of(Py_NewRef((PyObject*)to), NULL);
    if (cell && IS_CHAIN(value) && put_made((Cell*)cell, to, at, value, (PyArrayObject*)there, passing, 1)) { /* the value first, which may be put where it is to lie */
        done = tape_settle(CHAIN_OF(value)) == 0;
        if (done && IS_CHAIN(cell)) done = tape_settle(CHAIN_OF(cell)) == 0;
    }
    writing_end(written);
    Py_XDECREF(cell), Py_DECREF(there), Py_DECREF(a);
    return done;
}

/* What a large array shows, where tapes compute what is large, and it may be written; NULL where it is not, or is small. */
static PyArrayObject* large_place(PyObject* a) {
    PyArrayObject *to, *memory;
    Cell* root;
    int own;
    if (first_left <= 0 || Py_TYPE(a) != array_type || !is_large(a) || ((Cell*)a)->readonly != Py_False) return NULL;
    to = large_memory(a, &root, &memory, &own);
    return to && own && size_of(to) > limit_now() ? to : NULL;
}

/* `a[key] = value` of a large part, where the value waits: whether it was written where it is to lie; 0, perhaps with an exception. */
static int large_put_into(PyObject* a, PyObject* key, PyObject* value) {
    PyArrayObject* to;
    Place at;
    if (!IS_CHAIN(value) || CHAIN_OF(value)->size <= limit_now() || !is_basic(key) || large_place(a) == NULL) return 0;
    cell_ready();
    if (!IS_CHAIN(value) || (to = large_place(a)) == NULL) return 0;
    return place_of(to, key, &at) && put_fits(to, &at, value) && large_put(a, to, &at, value, is_passing(value));
}

/* `v op= b` of a large part: a new reference to it when done; NULL, perhaps without an exception, where it is done otherwise. */
static PyObject* large_put_in_place(Loops* loops, PyObject* v, PyObject* b) {
    PyArrayObject* to;
    PyObject* made;
    Place at;
    int done = 0, passing = is_passing(b), now;
    if (((Cell*)v)->base == Py_None || large_place(v) == NULL) return NULL; /* a value is exchanged for another one */
    made = step_next(loops, v, b);
    if (made == NULL && !PyErr_Occurred()) made = step_made(loops, (PyObject*[]){v, b, NULL}, &now); /* which is computed now in any case */
    if (made) cell_ready();
    if (made && IS_CHAIN(made) && (to = large_place(v)) && place_whole(to, &at) && put_fits(to, &at, made)) { /* code of a program's may have run until here */
        if (passing && IS_CHAIN(b) && CHAIN_OF(b) == CHAIN_OF(made) && !((Cell*)b)->readers && !((Cell*)b)->waiting_views && !((Cell*)b)->weakrefs) forget_cell(b);
        done = large_put(v, to, &at, made, Py_REFCNT(made) == 1);
        if (!done && !PyErr_Occurred()) PyErr_NoMemory();
    }
    Py_XDECREF(made);
    return done ? Py_NewRef(v) : NULL;
}

/* Whether `value` is the view of what `a` waits to be written to that `key` names: the end of `a[key] op= ...`. */
static int put_is_there(PyArrayObject* x, const Place* at, PyObject* a, PyObject* value) {
    const Chain* chain = CHAIN_OF(value);
    PyArrayObject* place = chain && chain->view && chain->source[0] == (Cell*)a ? chain->place : NULL;
    if (place == NULL || PyArray_TYPE(place) != PyArray_TYPE(x) || PyArray_NDIM(place) != at->ndim || PyArray_BYTES(place) != at->data) return 0;
    return same_lengths(PyArray_DIMS(place), at->dims, at->ndim) && same_lengths(PyArray_STRIDES(place), at->strides, at->ndim);
}

/* `a[key] = value` of integers and slices, where the value waits: whether that was recorded, or is already; 0 perhaps with an exception. */
static int put_into(PyObject* a, PyObject* key, PyObject* value) {
    PyArrayObject* x;
    Place at;
    if (Py_TYPE(a) != array_type || !IS_CHAIN(value) || !is_basic(key)) return 0;
    cell_ready();
    if (waiting_count >= CHAINS_MOST && (tapes_bound() < 0 || !IS_CHAIN(value))) return 0; /* the oldest one was computed, which may have been that of the value */
    if ((x = put_place((Cell*)a)) == NULL || !place_of(x, key, &at)) return 0;
    return put_is_there(x, &at, a, value) || put_recorded((Cell*)a, &at, value, NULL, NULL);
}

/* Let `v`, an intermediate result that shows the part of `a` which waits to be written, show what is written: whether that was done. */
static int part_moves(Cell* v, Cell* a) {
    Chain *self = WAITS(v) ? CHAIN_OF(v) : NULL, *put = CHAIN_OF(a);
    PyArrayObject* to = put->to;
    Cell* before;
    if (v->readers || v->waiting_views || v->weakrefs || v->readonly != Py_False) return 0;
    if (self == NULL) {
        if (v->base != (PyObject*)to || v->view == Py_None || (self = part_chain(put, to)) == NULL) return 0;
        Py_SETREF(v->base, Py_NewRef((PyObject*)&waiting_value)); /* the write has the other reference */
        return part_follows(self, v, a, to), 1;
    }
    if (self->arrays != 1 || self->users || self->place != to) return 0;
    before = self->source[0]; /* the old value, which the write waits for */
    before->waiting_views--, a->waiting_views++;
    self->source[0] = source_new((PyObject*)a);
    chain_leave(self);
    self->serial = ++chain_serial;
    chain_enter(self);
    source_drop(before);
    tapes_sound("moved");
    return 1;
}

/* The part of `a` that waits to be written; NULL with an exception. */
static PyObject* put_part(PyObject* a, const Place* at) {
    PyArrayObject* x = CHAIN_OF(a)->place;
    PyObject *args[2] = {a, Py_Ellipsis}, *found = part_waits(a, at);
    Place shadow = *at; /* as `shadow_of` has it */
    if (found) return found;
    shadow.data = (char*)0 + (at->data - PyArray_BYTES(x));
    Py_INCREF(x); /* code of a program's may have `a` show other memory */
    found = view_waits(&shadow, getitem_callable, args, 2);
    if (found == NULL && !PyErr_Occurred() && settle_cell(a) == 0 && (found = viewed(a, x, at->ndim, at->dims, at->strides, at->data)) == NULL && !PyErr_Occurred()) PyErr_NoMemory();
    Py_DECREF(x);
    return found;
}

/* The array that is written where `v` gets a value that waits, or `v` (`waits`) does: `v` itself, if it is all that shows its memory, or that of which `v`, which goes with the operation
   (`passing`), shows the part `at`, in `shown` (borrowed).  Borrowed; NULL where the value is computed now. */
static Cell* put_target(PyObject* v, int waits, int* passing, PyArrayObject** shown, Place* at) {
    Cell* a = (Cell*)v;
    PyArrayObject* x = NULL;
    *passing = is_passing(v);
    if (Py_TYPE(v) != array_type || a->readonly != Py_False) return NULL;
    if (WAITS(v) && CHAIN_OF(v) && CHAIN_OF(v)->view) { /* of what waits to be written */
        if (!*passing || (x = CHAIN_OF(v)->place) == NULL) return NULL;
        a = CHAIN_OF(v)->source[0];
    } else if (WAITS(v)) {
        x = put_place(a), *passing = 0;
    } else if (waits && a->base && (IS_RAW(a->base) || PyArray_CheckExact(a->base))) {
        x = (PyArrayObject*)a->base;
        if (*passing && owner_of(v) != v) a = v == part_view ? (Cell*)part_parent : (Cell*)owner_of(v);
        else *passing = 0;
    }
    *shown = x;
    return x == NULL || a == NULL || Py_TYPE(a) != array_type || size_of(x) == 0 || !place_whole(x, at) ? NULL : a;
}

/* `v op= b`, where one of them waits and `v` is a part that goes with the operation (what is returned is a view of the part), or is all that shows its memory; NULL, perhaps
   without an exception, where it is done now. */
static PyObject* put_in_place(Loops* loops, PyObject* v, PyObject* b) {
    PyArrayObject* x;
    PyObject *made, *found = NULL;
    Place at;
    int passing;
    Cell* a = put_target(v, IS_CHAIN(b), &passing, &x, &at);
    if (a == NULL) return NULL;
    Py_INCREF(a);
    made = step_next(loops, v, b);
    if (made == NULL) made = chain_step(loops, v, b);
    if (made) cell_ready(); /* code of a program's may have run until here, and have arrays lie elsewhere */
    if (made && IS_CHAIN(made) && put_target(v, 1, &passing, &x, &at) == a && put_recorded(a, &at, made, passing ? (Cell*)v : NULL, passing && IS_RAW(x) ? x : NULL))
        found = passing && !part_moves((Cell*)v, a) ? put_part((PyObject*)a, &at) : Py_NewRef(v);
    Py_DECREF(a), Py_XDECREF(made);
    return found;
}

#endif
