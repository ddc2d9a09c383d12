/* Recording operations on arrays that lie in memory, or wait.

   In: operations of every size, wherever the program has them.  Out: cells whose values wait; NumPy's bits when one is asked for.  Promise: steps over
   one space of elements are computed in one pass, block by block, in the first-level cache; nothing that is read is written, or shown to code that could write it,
   before; errors are told at the line that recorded the operation.

   No compiler is needed: a step is NumPy's inner loop, called on some hundred elements at a time.

   Most operations are one call of `step_next`: operands of one type and shape, which are steps of a tape, numbers, or lie in memory as the results
   do; the error state, the filters and the place are those that were asked for before. All else is looked at closer (`step_recorded`). The place is
   read from the interpreter's frame (`frames.h`, the one file that names what is Python's own there), so no frame becomes an object.

   Sums, differences and products of complex numbers are steps, too, if NumPy's loop gives the same bits to elements one by one as to many (it is
   tried when one is first wanted).

   `f(..., out=a)`, `a[:] = b` and `a[...] = b` of what waits likewise (`into_recorded`, `copied_into`), where dtype and shape are those of `a`. The
   copy is a step that is computed only if `b` is kept.

   `a += b` is a step, too, where nothing else sees the memory of `a` (no view, export or lender): the cell takes the new step, and what reads the old value
   keeps it (`step_into`). What no name has (`x[positions] += b`) is written next, and updated at once. `a[mask] = number` of an `a` that waits is a
   `where` (`masked_into`). */

#ifndef LAZYNP_CHAINS_H
#define LAZYNP_CHAINS_H

#include "operands.h"

/* Keep what waits within bounds; -1 where NumPy raises. */
static inline int tapes_bound(void) {
    if (waiting_count >= CHAINS_MOST && tapes_halve() < 0) return -1;
    if (orphaned_bytes <= ORPHANED_MOST) return 0;
    orphaned_bytes = 0;
    return settle_all();
}

/* What anything that waits needs: its error state, a cell, its place in the program. */
typedef struct {
    PyObject* state;
    int minded;
    Cell* cell;
    Site site;
} Begun;

static inline PyObject* recording_end(Begun* begun, PyObject* made) {
    Py_CLEAR(begun->state);
    if (made == NULL) {
        Py_CLEAR(begun->site.code);
        Py_CLEAR(begun->cell);
    }
    return made;
}

/* Whether something may be recorded now; 0, perhaps with an exception, where it is computed at once.  Code of a program's may run. */
static inline int recording_begin(Begun* begun) {
    begun->cell = NULL, begun->site = (Site){NULL, 0};
    if (tapes_bound() < 0 || (begun->state = state_now(&begun->minded)) == NULL) return 0;
    if ((begun->cell = chain_cell()) && site_now(&begun->site)) return 1;
    return recording_end(begun, NULL), 0;
}

/* The array of an operand that lies in memory and that only lazynp may write (borrowed); NULL of all else. */
static inline PyArrayObject* next_array(PyObject* x) {
    PyObject* base = ((Cell*)x)->base;
    if (base == NULL) return NULL;
    if (IS_RAW(base)) {
        if ((((Raw*)base)->holds || ((Raw*)base)->fields.base) && !is_private(x)) return NULL;
    } else if (Py_TYPE(base) != &PyArray_Type || !is_private(x)) {
        return NULL;
    }
    return IS_NUMERIC(PyArray_TYPE((PyArrayObject*)base)) ? (PyArrayObject*)base : NULL;
}

/* Let a cell, whose old value only tapes read from now on, wait for a step of `next`, which holds that value. */
static inline void cell_step(Cell* cell, const Chain* next) {
    Chain* before = WAITS(cell) ? CHAIN_OF(cell) : NULL;
    if (before == NULL) {
        PyObject* memory = cell->base;
        if (Py_REFCNT(memory) > 2) orphaned_bytes += PyArray_NBYTES((PyArrayObject*)memory); /* another tape reads it */
        cell->base = Py_NewRef((PyObject*)&waiting_value);
        Py_DECREF(memory);
        return;
    }
    before->at[STEP_OF(cell)].cell = NULL;
    if (--before->cells == 0 && before->users == 0 && before != next) chain_free(before);
}

/* What most operations are: a step over operands of one type and one shape, which lie as the results do, or in rows of steps forward.  NULL, without an
   exception: it has to be looked at closer (`chain_step`).  `into`: the first operand, whose memory nothing else sees and which lies in C's order, is to have the result;
   NULL: a new cell.  No code of a program's runs. */
static inline PyObject* step_into(Loops* loops, PyObject* a, PyObject* b, Cell* into) {
    PyObject* operands[2] = {a, b};
    PyArrayObject* array[2] = {NULL, NULL};
    Cell* source[2] = {NULL, NULL}; /* what is to be there before */
    Chain *chain[2] = {NULL, NULL}, *self = NULL;
    const npy_intp* dims = NULL;
    long long serial = 0;
    Operand of[OPERANDS] = {{OF_NUMBER, 0}, {OF_NUMBER, 0}, {OF_NUMBER, 0}};
    Loop* loop;
    Value value;
    Site site;
    const char* order = NULL; /* of those that lie in another one than C's */
    int type = -1, ndim = 0, nin = b ? 2 : 1, flat = 1, whole, others = 0, count = 0;
    npy_intp size = 1;
    if (at_the_call()) return NULL;
    for (int o = 0; o < nin; o++) {
        PyObject* x = operands[o];
        const npy_intp* own;
        npy_intp steps[AXES];
        int found, axes;
        if (Py_TYPE(x) != array_type) continue;
        if (WAITS(x)) {
            if ((chain[o] = CHAIN_OF(x)) == NULL || ((Cell*)x)->lent || chain[o]->ndim > AXES) return NULL;
            if (chain[o]->serial > serial) serial = chain[o]->serial, self = chain[o];
            array[o] = chain[o]->place, source[o] = array[o] && chain[o]->view ? chain[o]->source[0] : (Cell*)x;
            if (array[o] == NULL && lies_otherwise(chain[o])) {
                if (!chain[o]->ordered || (order && memcmp(order, chain[o]->order, (size_t)chain[o]->ndim))) return NULL;
                order = chain[o]->order, others++;
            }
            found = step_type(chain[o], STEP_OF(x)), axes = chain[o]->ndim, own = chain[o]->dims;
        } else if ((array[o] = next_array(x)) == NULL) {
            return NULL;
        }
        if (array[o]) {
            if (chain[o] == NULL) found = PyArray_TYPE(array[o]), axes = PyArray_NDIM(array[o]), own = PyArray_DIMS(array[o]);
            if (axes == 0 || axes > AXES) return NULL;
            if (PyArray_ISFARRAY_RO(array[o]) && axes > 1 && !PyArray_IS_C_CONTIGUOUS(array[o])) {
                if (order && memcmp(order, fortran_order(axes), (size_t)axes)) return NULL;
                for (int k = 0; k < axes; k++)
                    if (own[k] < 2) return NULL;
                order = fortran_order(axes), others++;
            } else {
                if (PyArray_ISCARRAY_RO(array[o]) ? PyArray_STRIDE(array[o], axes - 1) < 0 : axes > 3 || !operand_steps(array[o], axes, own, steps)) return NULL;
                flat &= PyArray_ISCARRAY_RO(array[o]);
            }
        }
        count++;
        if (type < 0) type = found, ndim = axes, dims = own;
        else if (type != found || ndim != axes || (dims != own && !same_lengths(dims, own, ndim))) return NULL;
    }
    if (type < 0 || PyTypeNum_ISCOMPLEX(type) || loops->kernels || (others && others < count)) return NULL;
    loop = &loops->of[type];
    if (loop->state != USABLE || loop->raises || (into && (loop->out != type || into->readers))) return NULL;
    for (int k = 0; k < ndim; k++) size *= dims[k];
    if (!loop->joins && size > chain_sizes.block) return NULL;
    whole = !loop->joins;
    if (whole && !flat) return NULL;
    if (kept_count == 0 || waiting_count >= CHAINS_MOST || orphaned_bytes > ORPHANED_MOST) return NULL;
    for (int o = 0; o < nin; o++)
        if (array[o] == NULL && chain[o] == NULL && !value_of(operands[o], type, &value)) return NULL;
    if (!state_known() || said.state == NULL || (site.code = site_known(&site.offset)) == NULL) return NULL;
    /* the youngest: steps that join older ones have more wait at a time */
    if (self != waiting.before || !is_laid(self, order) || (whole && !self->flat) || (self->whole && !flat) || !takes_step(self, &site, said.state))
        self = waiting_count ? tape_over(ndim, dims, order, &site, said.state, serial, flat, whole) : NULL;
    if (into && chain[0] && chain[0] != self) return NULL; /* who reads the old value of another tape needs a cell that has it */
    if (self == NULL) {
        if (size == 0 || size < chain_sizes.from || size_beyond(size)) return NULL;
        if ((self = chain_new(said.state, said.minded, ndim, dims, size)) == NULL) return PyErr_Clear(), NULL;
        if (order) chain_laid(self, order);
        chain_enter(self);
    }
    for (int o = 0; o < nin; o++) {
        int k = 0;
        if (chain[o] == self) {
            of[o] = (Operand){OF_STEP, (short)STEP_OF(operands[o])};
        } else if (array[o] || chain[o]) {
            PyArrayObject** arrays = self->array;
            Cell** sources = self->source;
            while (k < self->arrays && (arrays[k] != array[o] || sources[k] != source[o])) k++;
            if (k == self->arrays) {
                self->array[k] = (PyArrayObject*)Py_XNewRef((PyObject*)array[o]), self->source[k] = source[o] ? source_new((PyObject*)source[o]) : NULL;
                self->arrays++, self->sources += source[o] != NULL;
            }
            of[o] = (Operand){OF_ARRAY, (short)k};
        } else {
            self->value[self->numbers] = value;
            of[o] = (Operand){OF_NUMBER, (short)self->numbers++};
        }
    }
    Py_INCREF(site.code);
    self->whole |= whole, self->flat &= flat;
    if (into) {
        cell_step(into, self);
        chain_append(self, loops, type, of, into, &site);
        return Py_NewRef((PyObject*)into);
    }
    chain_append(self, loops, type, of, chain_cell(), &site); /* a kept cell */
    tapes_sound("next");
    return (PyObject*)self->at[self->steps - 1].cell;
}

static PyObject* step_next(Loops* loops, PyObject* a, PyObject* b) { return step_into(loops, a, b, NULL); }

/* What was recorded of memory that may change, computed before anything else happens; NULL with an exception. */
static PyObject* made_now(PyObject* made) {
    if (settle_cell(made) < 0) Py_CLEAR(made);
    return made;
}

/* An operation as a step; NULL, perhaps without an exception, where no tape computes it.  `now`: it reads memory that may change, and is to be computed before
   anything else happens. */
static PyObject* step_made(Loops* loops, PyObject* const* operands, int* now) {
    int type, nin = loops->nin, from = loops->chooses, ndim, joins, flat, whole, compared = 0, other = 0, when = 0;
    char order[AXES];
    npy_intp dims[AXES], size;
    long long serial = 0;
    Read read[OPERANDS] = {{.type = -1}, {.type = -1}, {.type = -1}};
    Operand of[OPERANDS] = {{OF_NUMBER, 0}, {OF_NUMBER, 0}, {OF_NUMBER, 0}};
    Value value[OPERANDS];
    Chain* self;
    Loop* loop;
    Begun begun;
    *now = 0;
    if (waiting_count == 0 && at_the_call()) return NULL;
    for (int o = 0; o < nin; o++)
        if ((!waits_known(operands[o]) && operand_ready(operands[o]) < 0) || (is_lent(operands[o]) && memory_of(operands[o]) && !any_large_lent(operands, nin))) return NULL;
    if (!recording_begin(&begun)) return NULL;
reading: /* from here on no code of a program's runs */
    for (int o = 0; o < nin; o++)
        if (!step_reads(operands[o], &read[o], nin == 2 ? operands[1 - o] : NULL) && !operand_now(operands[o], &read[o], &when)) goto refused;
    if (when && !(*now = when & NOW)) goto refused;
    if (from && read[0].type != NPY_BOOL) goto refused;
    type = nin - from > 2 ? read[0].type : operands_type(loops, read + from, operands[from], nin - from > 1 ? operands[from + 1] : NULL);
    for (int o = 1; nin - from > 2 && o < nin; o++)
        if (read[o].type >= 0 && read[o].type != type) goto refused;
    if (type < 0 || !casts_known(loops, type, read)) goto refused;
    for (int o = 0; loops->kernels && nin == 2 && o < 2; o++) /* which loop it is for others is NumPy's to say */
        if (read[o].type >= 0 && read[o].type != NPY_DOUBLE && read[o].type != NPY_FLOAT) goto refused;
    loop = &loops->of[type];
    if (loop->state == UNKNOWN && loop->function && !compared) { /* but here */
        compared = 1;
        loop_of(loops, type);
        goto reading;
    }
    if (loop->state != USABLE) goto refused;
    joins = loop->joins;
    if ((loop->raises && !(nin == 2 && read[1].type < 0 && is_natural(operands[1]))) || (loops->kernels && begun.minded & ERROR_UNDER)) goto refused;
    size = dims_join(read, nin, &ndim, dims);
    if (size > limit_now() && loops->costly) goto refused; /* small operands, of which the result is large */
    if (size < (chain_sizes.from == 1 ? 0 : chain_sizes.from) || ((size_beyond(size) || size_grows(read, nin, size)) && !*now && !(joins && PyTypeNum_ISCOMPLEX(type)))) goto refused;
    flat = 1;
    for (int o = 0; o < nin; o++) {
        if (read[o].type < 0 && !value_of(operands[o], type, &value[o])) goto refused;
        if (read[o].chain && read[o].chain->serial > serial) serial = read[o].chain->serial;
        flat &= read[o].type < 0 || lies_flat(&read[o], size);
    }
    for (int o = 0; o < nin; o++)
        if (read[o].array ? !chain_takes(read[o].array, ndim, dims) : read[o].type >= 0 && lies_otherwise(read[o].chain)) other = 1;
    if (other) { /* transposed, backwards */
        if (loops >= cast_loops && loops < cast_loops + TYPES && (read[0].type == type_cast_to(loops) || repeats(&read[0]))) goto refused; /* a copy may have an order of its own */
        if (size == 0 || !reads_order(read, nin, ndim, dims, order, &flat) || !(flat || (joins && ndim <= 3))) goto strided;
        other = !in_c_order(order, ndim);
    }
    whole = !joins && flat && size <= chain_sizes.block;
    joins |= whole;
    self = joins && waiting_count ? tape_over(ndim, dims, other ? order : NULL, &begun.site, begun.state, serial, flat, whole) : NULL;
    if (self == NULL) {
        if ((self = chain_new(begun.state, begun.minded, ndim, dims, size)) == NULL) goto refused;
        if (other) chain_laid(self, order);
    }
    self->flat &= flat;
    for (int o = 0; o < nin; o++) {
        if (read[o].chain == self) {
            of[o] = (Operand){OF_STEP, (short)STEP_OF(operands[o])};
        } else if (read[o].type >= 0) {
            of[o] = (Operand){OF_ARRAY, (short)chain_array(self, &read[o], operands[o])};
        } else {
            self->value[self->numbers] = value[o];
            of[o] = (Operand){OF_NUMBER, (short)self->numbers++};
        }
    }
    for (int o = 0; o < nin; o++)
        if (read[o].type >= 0 && read[o].type != operand_type(loops, type, o)) {
            if (!loop->joins && (!joins || (nin == 2 && read[0].type >= 0 && read[1].type >= 0 && read[0].type != read[1].type))) goto unfit; /* which loop it is for two types is NumPy's to say */
            of[o] = chain_cast(self, of[o], read[o].type, type, &begun.site);
        }
    chain_append(self, loops, type, of, begun.cell, &begun.site);
    self->closed = joins ? OPEN : ALONE, self->whole |= whole;
    if (self->after == self) chain_enter(self);
    tapes_sound("recorded");
    return recording_end(&begun, (PyObject*)begun.cell);
strided: /* a tape of its own, whose step NumPy's loop or its ufunc does over the arrays as they lie */
    if (loops->kernels || nin > 2) goto refused;
    for (int o = 0; o < nin; o++)
        if (read[o].type >= 0 && (read[o].type != type || (read[o].array && !PyArray_ISBEHAVED_RO(read[o].array)))) goto refused;
    if ((self = chain_new(begun.state, begun.minded, ndim, dims, size)) == NULL) goto refused;
    for (int o = 0; o < nin; o++) {
        if (read[o].type < 0) {
            self->value[self->numbers] = value[o];
            of[o] = (Operand){OF_NUMBER, (short)self->numbers++};
        } else {
            of[o] = (Operand){OF_ARRAY, (short)self->arrays};
            chain_reads(self, &read[o], operands[o]);
        }
    }
    chain_append(self, loops, type, of, begun.cell, &begun.site);
    self->closed = ALONE, self->flat = 0, self->strided = 1;
    chain_enter(self);
    return recording_end(&begun, (PyObject*)begun.cell);
unfit: /* an operand that this tape has taken meanwhile is no harm */
    if (self->steps == 0) chain_free(self);
refused:
    return recording_end(&begun, NULL);
}

/* The same, computed if it is to be. */
static PyObject* step_recorded(Loops* loops, PyObject* const* operands) {
    int now;
    PyObject* made = step_made(loops, operands, &now);
    return made && now ? made_now(made) : made;
}

/* `a op b` (b is NULL for an operation on one array), likewise. */
static PyObject* chain_step(Loops* loops, PyObject* a, PyObject* b) {
    PyObject* operands[OPERANDS] = {a, b, NULL};
    return step_recorded(loops, operands);
}

static int chain_register(PyObject* state, PyObject* place, PyObject* root, PyObject* step, PyObject* tell, PyObject* raised, PyObject* cast, PyObject* compiled, PyObject* pool, PyObject* outside) {
    raised_method = raised, outside_method = outside;
    state_method = state, place_method = place, own_root = root, step_method = step, tell_method = tell, hot_method = compiled, pool_method = pool;
    threads_name = PyUnicode_InternFromString("threads");
    return threads_name == NULL ? -1 : casts_fill(cast);
}

#endif
