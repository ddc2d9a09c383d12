/* Step 1: from wanted nodes to a structure key and parameters; `lazynp/schedule/canonicalise.py` says what these are.

   In: nodes whose values are wanted.  Out: a `Canonical`.  Promise: no Python code runs between the first look at a node and the last, for the
   garbage collector waits and arguments whose comparison could run code are told apart by identity; so what other threads publish falls
   before the walk or after it.

   The key is a string of 32-bit words: the entries, the outputs and how many these are.  An entry is a head (operation, dtype, kinds of errors
   where they are not the default ones), and then what `canonicalise.structure` reads.  Arguments that are no numbers stand beside the string.

   A run is asked for one value, but makes others. Those that are held elsewhere (have more references than the graph accounts for) are kept where
   computing them again would cost more than that. These are results of calls, arrays that were written through a view or are given to a product of
   matrices (both are in memory anyway), small results of reductions, and what is small enough for `at_hand` (`keep_asked_for_later` in
   `graph/canonical.h`). What is changed in place by an operator (`a[k:, k:] -= x`), where nothing else holds the array's value and at least a quarter
   of it stays (`storage.changes_alone`), is changed by NumPy's loop, row by row (`direct_rows_into`). A kernel would need a second array, or to save the
   old elements. Any other write to a part of a large array that exists is a run of its own, at its line (`arrays.replace`): its kernel would end there
   in any case, and afterwards the other parts are in memory. What a recorded expression takes from a small part of a large draft is a copy, so that the
   draft stays one. */

#ifndef LAZYNP_CANONICAL_H
#define LAZYNP_CANONICAL_H

#include "node.h"
#include "numpy/arrayobject.h"
#include "numpy/arrayscalars.h"

typedef int32_t word;

/* What is true of an operation, by its number. */
typedef struct {
    PyObject* op;
    int kind;
    char commutes[16]; /* kinds of dtypes */
} Op;

enum { LEAF, MOVEMENT, ELEMENTWISE, REDUCTION, OTHER };
enum { TAG_ENTRY = 0, TAG_SWAPPED = 1 << 28, TAG_LITERAL = 2 << 28, TAG_SLOT = 3 << 28 };
enum { ARG_NONE, ARG_INT, ARG_TUPLE, ARG_OP, ARG_OBJECT, ARG_BITS };
enum { BITS_FLOAT, BITS_COMPLEX, BITS_SCALAR }; /* Python's numbers, and behind those NumPy's by the code of their dtype */
#define MOST_OPS 256
#define ZERO_SLOT (-1)

static Op ops[MOST_OPS];
static int ops_known;
static Py_ssize_t op_number_offset; /* of the slot `number` in an Op of Python's */
static PyTypeObject* op_class;
static PyObject *buffer_op, *const_op, *iota_op, *slice_op, *store_op, *pad_op, *copy_op, *call_op, *output_op, *contiguous_op;
static PyObject* kinds_name;

typedef struct {
    PyObject_HEAD
    PyObject *key, *buffers, *integers, *scalars, *nodes, *wanted, *walked;
    char moves, counts; /* counts: its references to nodes are counted by these */
} Canonical;

static PyTypeObject canonical_type;

/* Count the references to nodes that a form holds, or no longer. */
static void form_counts(Canonical* self, int counts) {
    PyObject* lists[] = {self->nodes, self->wanted, self->walked};
    if (self->counts == counts) return;
    self->counts = (char)counts;
    for (int l = 0; l < 3; l++)
        for (Py_ssize_t k = PyList_GET_SIZE(lists[l]); k--;) ((Node*)PyList_GET_ITEM(lists[l], k))->forms += counts ? 1 : -1;
}

/* Growing arrays, which are kept from one walk to the next. */
typedef struct {
    uint32_t hash;
    int32_t at, length, value;
} Slot;
static struct {
    Node** nodes;        /* what the walk met; new references */
    Node** entries;      /* entry -> its earliest node */
    PyObject **buffers, **scalars; /* new references, too: code that runs meanwhile may publish nodes */
    long long* offsets;
    word *key, *scratch;
    Slot* table;
    Py_ssize_t nodes_room, entries_room, buffers_room, scalars_room, offsets_room, key_room, scratch_room;
    Py_ssize_t node_count, entry_count, buffer_count, scalar_count, offset_count, key_count, scratch_count, table_size, table_count;
    PyObject *arguments, *numbers, *wanted; /* arguments that stand beside the string; the number of each, or of its address */
    int moves, calls; /* whether there is a COPY, or the result of a library call or of a write */
} walk;
static unsigned long long walks;
static PyObject* being_written; /* `values.outside.BeingWrittenError` */

#define NO_MEMORY (-2)
#define NO_GRAPH (-3) /* something is no node, or has what no operation of the graph has */

static int grow(void** array, Py_ssize_t* room, Py_ssize_t size, Py_ssize_t needed) {
    Py_ssize_t larger = 2 * needed + 64;
    void* made = PyMem_Realloc(*array, size * larger);
    if (made == NULL) return PyErr_NoMemory(), -1;
    *array = made;
    *room = larger;
    return 0;
}
#define ROOM(NAME, COUNT, MORE) \
    (walk.COUNT + (MORE) <= walk.NAME##_room ? 0 : grow((void**)&walk.NAME, &walk.NAME##_room, sizeof(*walk.NAME), walk.COUNT + (MORE)))

static inline uint32_t hash_of(const word* words, Py_ssize_t n) {
    uint32_t h = 2166136261u;
    while (n--) h = (h ^ (uint32_t)*words++) * 0x9E3779B1u, h ^= h >> 15;
    return h;
}

static int table_resize(Py_ssize_t size) {
    Slot *old = walk.table, *made = PyMem_Malloc(size * sizeof(Slot));
    Py_ssize_t k, n = walk.table_size;
    if (made == NULL) return PyErr_NoMemory(), -1;
    memset(made, 0xff, size * sizeof(Slot));
    walk.table = made;
    walk.table_size = size;
    for (k = 0; old && walk.table_count && k < n; k++)
        if (old[k].at >= 0) {
            Py_ssize_t i = old[k].hash & (size - 1);
            while (made[i].at >= 0) i = (i + 1) & (size - 1);
            made[i] = old[k];
        }
    PyMem_Free(old);
    return 0;
}

/* The place in the table of a string of words; an empty one where it is not there. */
static inline Slot* table_find(const word* words, Py_ssize_t n, uint32_t hash) {
    Py_ssize_t i = hash & (walk.table_size - 1);
    for (;; i = (i + 1) & (walk.table_size - 1)) {
        Slot* slot = &walk.table[i];
        if (slot->at < 0) return slot;
        if (slot->hash == hash && slot->length == n && !memcmp(walk.scratch + slot->at, words, n * sizeof(word))) return slot;
    }
}

/* The number a string of words was given; where it is new it is given `value`, and the answer is -1.  The words lie at the end of the scratch. */
static inline int numbered(Py_ssize_t n, int value) {
    word* words = walk.scratch + walk.scratch_count;
    uint32_t hash = hash_of(words, n);
    Slot* slot;
    if (2 * (walk.table_count + 1) > walk.table_size && table_resize(2 * walk.table_size) < 0) return NO_MEMORY;
    slot = table_find(words, n, hash);
    if (slot->at >= 0) return slot->value;
    *slot = (Slot){hash, (int32_t)walk.scratch_count, (int32_t)n, value};
    walk.scratch_count += n;
    walk.table_count++;
    return -1;
}

static inline int known(const word* words, Py_ssize_t n) { return table_find(words, n, hash_of(words, n))->at >= 0; }

static inline Op* op_of(Node* node) {
    PyObject* number;
    long k;
    if (Py_TYPE(node->op) != op_class) return NULL;
    number = *(PyObject**)((char*)node->op + op_number_offset);
    k = number ? PyLong_AsLong(number) : -1;
    return k >= 0 && k < ops_known ? &ops[k] : NULL;
}

/* A code for each dtype that lazynp has: equal ones have equal codes. */
static inline int dtype_code(PyObject* dtype) {
    PyArray_Descr* descr = (PyArray_Descr*)dtype;
    int number;
    if (!PyArray_DescrCheck(dtype)) return -1;
    number = descr->type_num;
    if (number > NPY_CDOUBLE && number != NPY_HALF) return -1;
    if (descr->byteorder == NPY_OPPBYTE) return -1;
    switch (number) {
    case NPY_LONGLONG: return sizeof(npy_long) == sizeof(npy_longlong) ? NPY_LONG : NPY_LONGLONG;
    case NPY_ULONGLONG: return sizeof(npy_long) == sizeof(npy_longlong) ? NPY_ULONG : NPY_ULONGLONG;
    case NPY_LONGDOUBLE: return -1;
    default: return number;
    }
}

static int gather(Node* node) {
    if (node->walk == walks) return 0;
    if (ROOM(nodes, node_count, 1) < 0) return -1;
    node->walk = walks;
    node->entry = -1;
    node->readers = 0;
    node->counted = NULL;
    node->kept = node->later = node->given = 0;
    walk.nodes[walk.node_count++] = (Node*)Py_NewRef((PyObject*)node);
    return 0;
}

static int later(const void* a, const void* b) {
    long long x = (*(Node* const*)a)->number, y = (*(Node* const*)b)->number;
    return (x > y) - (x < y);
}

static void sort_nodes(void) {
    Node **nodes = walk.nodes, *node;
    Py_ssize_t n = walk.node_count, k, i;
    for (k = 0; k < n / 2; k++) node = nodes[k], nodes[k] = nodes[n - 1 - k], nodes[n - 1 - k] = node; /* the first are the last, nearly */
    if (n > 48) {
        qsort(nodes, n, sizeof(Node*), later);
        return;
    }
    for (k = 1; k < n; k++) {
        node = nodes[k];
        for (i = k; i && nodes[i - 1]->number > node->number; i--) nodes[i] = nodes[i - 1];
        nodes[i] = node;
    }
}

static int dimensions(word* to, PyObject* shape) { /* two words each */
    Py_ssize_t k, n = PyTuple_GET_SIZE(shape);
    for (k = 0; k < n; k++) {
        long long extent = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k));
        if (extent == -1 && PyErr_Occurred()) return -1;
        to[2 * k] = (word)extent;
        to[2 * k + 1] = (word)(extent >> 32);
    }
    return 0;
}

static int new_entry(Node* node) { /* the number of an entry that is not made yet */
    if (ROOM(entries, entry_count, 1) < 0) return -1;
    walk.entries[walk.entry_count] = node;
    return node->entry = (int)walk.entry_count++;
}

static int write_key(const word* words, Py_ssize_t n) {
    if (ROOM(key, key_count, n) < 0) return -1;
    memcpy(walk.key + walk.key_count, words, n * sizeof(word));
    walk.key_count += n;
    return 0;
}

/* A leaf becomes an entry when something first reads it. */
static int leaf_entry(Node* node) {
    Py_ssize_t ndim;
    int code = dtype_code(node->dtype), found;
    Op* op = op_of(node);
    word* at;
    if (op == NULL || code < 0 || !PyTuple_CheckExact(node->shape)) return NO_GRAPH;
    ndim = PyTuple_GET_SIZE(node->shape);
    if (ROOM(scratch, scratch_count, 8 + 2 * ndim) < 0) return -1;
    at = walk.scratch + walk.scratch_count;
    if (op->op == const_op) {
        PyObject* value = node->arg;
        PyArray_Descr* descr;
        if (value == NULL) return NO_GRAPH;
        if (Py_TYPE(value) != ((PyArray_Descr*)node->dtype)->typeobj) { /* two types of the same numbers */
            if (!PyArray_CheckScalar(value)) return NO_GRAPH;
            descr = PyArray_DescrFromScalar(value);
            if (descr == NULL) return -1;
            found = dtype_code((PyObject*)descr) == code;
            Py_DECREF(descr);
            if (!found) return NO_GRAPH;
        }
        memset(at, 0, 5 * sizeof(word)); /* by their bits: 0.0 equals -0.0, and NaN nothing */
        at[0] = TAG_LITERAL | code;
        PyArray_ScalarAsCtype(value, at + 1);
        found = numbered(5, (int)walk.entry_count);
        if (found != -1) return found >= 0 ? node->entry = found : found;
        if (ROOM(scalars, scalar_count, 1) < 0) return -1;
        word words[2] = {((int)(op - ops)) | code << 8, (word)walk.scalar_count};
        walk.scalars[walk.scalar_count++] = Py_NewRef(value);
        return write_key(words, 2) < 0 ? -1 : new_entry(node);
    }
    at[0] = (int)(op - ops) | code << 8;
    at[2] = (word)ndim;
    if (dimensions(at + 3, node->shape) < 0) return NO_GRAPH;
    if (op->op == buffer_op) {
        if (node->buffer == NULL || node->buffer == Py_None) {
            if (node->error && node->error != Py_None) PyErr_SetObject((PyObject*)Py_TYPE(node->error), node->error);
            else PyErr_SetNone(being_written);
            return -1;
        }
        if (ROOM(buffers, buffer_count, 1) < 0) return -1;
        at[1] = (word)walk.buffer_count;
        walk.buffers[walk.buffer_count++] = Py_NewRef(node->buffer);
    } else if (op->op == iota_op && node->arg && PyTuple_CheckExact(node->arg) && PyTuple_GET_SIZE(node->arg) == 2) {
        if (ROOM(scalars, scalar_count, 2) < 0) return -1;
        at[1] = (word)walk.scalar_count;
        walk.scalars[walk.scalar_count++] = Py_NewRef(PyTuple_GET_ITEM(node->arg, 0));
        walk.scalars[walk.scalar_count++] = Py_NewRef(PyTuple_GET_ITEM(node->arg, 1));
    } else {
        return NO_GRAPH;
    }
    return write_key(at, 3 + 2 * ndim) < 0 ? -1 : new_entry(node);
}

static inline int entry_of(Node* node) { return node->entry >= 0 ? node->entry : leaf_entry(node); }

/* The parameter of an offset; at most one word beyond `scratch_count + used` is written. */
static int slot_of(PyObject* offset, Py_ssize_t used, word* slot) {
    long long start = PyLong_AsLongLong(offset);
    word words[3] = {TAG_SLOT, (word)start, (word)(start >> 32)};
    int found;
    if (start == -1 && PyErr_Occurred()) return NO_GRAPH;
    if (start == 0) return *slot = ZERO_SLOT, 0;
    /* What is being written at the end of the scratch stays; the words of the table go in front of it. */
    if (ROOM(scratch, scratch_count, used + 3) < 0 || ROOM(offsets, offset_count, 1) < 0) return -1;
    memmove(walk.scratch + walk.scratch_count + 3, walk.scratch + walk.scratch_count, used * sizeof(word));
    memcpy(walk.scratch + walk.scratch_count, words, sizeof(words));
    found = numbered(3, (int)walk.offset_count);
    if (found == NO_MEMORY) return -1;
    if (found == -1) {
        found = (int)walk.offset_count;
        walk.offsets[walk.offset_count++] = start;
    } else {
        memmove(walk.scratch + walk.scratch_count, walk.scratch + walk.scratch_count + 3, used * sizeof(word));
    }
    *slot = found;
    return 0;
}

#define ARGUMENTS_DEPTH 80 /* of tuples in tuples: more than arrays have axes */

/* Whether hashing and comparing an argument runs no code but C. */
static int is_compared_in_c(PyObject* arg) {
    PyTypeObject* type = Py_TYPE(arg);
    if (PyArray_DescrCheck(arg)) return ((PyArray_Descr*)arg)->type_num < NPY_USERDEF;
    if (type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyCFunction_Type) return 1;
    return type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare; /* by its address */
}

/* The number of an object that stands beside the string, where those with equal keys have one; -1 with an exception.  `key`: taken over, or NULL with an exception. */
static Py_ssize_t numbered_by(PyObject* key, PyObject* arg) {
    PyObject *number, *found;
    Py_ssize_t n;
    if (key && walk.arguments == NULL && ((walk.arguments = PyList_New(0)) == NULL || (walk.numbers = PyDict_New()) == NULL)) Py_CLEAR(key);
    number = key ? PyLong_FromSsize_t(PyList_GET_SIZE(walk.arguments)) : NULL;
    found = number ? PyDict_SetDefault(walk.numbers, key, number) : NULL; /* borrowed */
    if (found && found == number && PyList_Append(walk.arguments, arg) < 0) found = NULL;
    n = found ? PyLong_AsSsize_t(found) : -1;
    Py_XDECREF(number), Py_XDECREF(key);
    return n;
}

static Py_ssize_t object_number(PyObject* arg) {
    return numbered_by(is_compared_in_c(arg) ? Py_NewRef(arg) : PyLong_FromVoidPtr(arg), arg); /* no number of so few bits is an argument of this kind */
}

/* The same of a number by its kind and bits. */
static Py_ssize_t bits_number(PyObject* arg, const word* words, int count) {
    return numbered_by(Py_BuildValue("(y#)", (const char*)words, (Py_ssize_t)(count * sizeof(word))), arg); /* no tuple is an argument of this kind */
}

/* The bits of a number that is no integer of Python's, which zeros of both signs and equal numbers of two types do not share: how many words; 0 where it is no such number. */
static int number_bits(PyObject* arg, word* words, int* kind) {
    PyArray_Descr* dtype;
    int code;
    if (PyFloat_CheckExact(arg)) {
        double value = PyFloat_AS_DOUBLE(arg);
        return memcpy(words, &value, sizeof(value)), *kind = BITS_FLOAT, 2;
    }
    if (PyComplex_CheckExact(arg)) {
        Py_complex value = PyComplex_AsCComplex(arg);
        return memcpy(words, &value, sizeof(value)), *kind = BITS_COMPLEX, 4;
    }
    if (!PyArray_IsScalar(arg, Number) && !PyArray_IsScalar(arg, Bool)) return 0;
    if ((dtype = PyArray_DescrFromScalar(arg)) == NULL) return PyErr_Clear(), 0;
    code = dtype_code((PyObject*)dtype);
    Py_DECREF(dtype);
    if (code < 0) return 0;
    memset(words, 0, 4 * sizeof(word));
    PyArray_ScalarAsCtype(arg, words);
    return *kind = BITS_SCALAR + code, 4;
}

/* Write an argument behind `used` words; the new number of words, -1 with an exception. */
static Py_ssize_t write_argument(PyObject* arg, Py_ssize_t used, int depth) {
    Py_ssize_t number;
    word* at;
    int count, kind, overflow;
    if (ROOM(scratch, scratch_count, used + 7) < 0) return -1;
    at = walk.scratch + walk.scratch_count + used;
    if (arg == Py_None) {
        at[0] = ARG_NONE;
        return used + 1;
    }
    if (PyLong_CheckExact(arg)) {
        long long value = PyLong_AsLongLongAndOverflow(arg, &overflow);
        if (!overflow) {
            at[0] = ARG_INT, at[1] = (word)value, at[2] = (word)(value >> 32);
            return used + 3;
        }
    }
    if (Py_TYPE(arg) == op_class) {
        PyObject* op_number = *(PyObject**)((char*)arg + op_number_offset);
        at[0] = ARG_OP, at[1] = (word)PyLong_AsLong(op_number);
        return used + 2;
    }
    if (PyTuple_CheckExact(arg) && depth < ARGUMENTS_DEPTH) {
        Py_ssize_t k, n = PyTuple_GET_SIZE(arg);
        at[0] = ARG_TUPLE, at[1] = (word)n;
        for (k = 0, used += 2; k < n && used >= 0; k++) used = write_argument(PyTuple_GET_ITEM(arg, k), used, depth + 1);
        return used;
    }
    if ((count = number_bits(arg, at + 2, &kind)) != 0) {
        at[0] = ARG_BITS, at[1] = count | kind << 8;
        if ((number = bits_number(arg, at + 1, 1 + count)) < 0) return -1;
        at[2 + count] = (word)number;
        return used + 3 + count;
    }
    if ((number = object_number(arg)) < 0) return -1;
    at[0] = ARG_OBJECT, at[1] = (word)number;
    return used + 2;
}

#define OTHER_DTYPES 32 /* codes from here on are of dtypes that only library calls have, such as `longdouble`: they stand beside the string */
#define MOST_DTYPES 256

static int dtype_number(PyObject* dtype) {
    int code = dtype_code(dtype);
    Py_ssize_t number;
    if (code >= 0) return code;
    if (!PyArray_DescrCheck(dtype)) return NO_GRAPH;
    number = object_number(dtype);
    return number < 0 ? -1 : number < MOST_DTYPES - OTHER_DTYPES ? OTHER_DTYPES + (int)number : NO_GRAPH;
}

static int keep(Node* node) {
    if (node->kept) return 0;
    node->kept = 1;
    return PyList_Append(walk.wanted, (PyObject*)node);
}

static long default_kinds;

/* The bits of a head that say which errors are heard of, where it is not the default; -1 on failure. */
static int error_kinds(Node* node) {
    PyObject* kinds;
    long bits;
    if (node->err == default_state) return 0;
    if (node->err == NULL) return -1;
    kinds = PyObject_GetAttr(node->err, kinds_name);
    if (kinds == NULL) return -1;
    bits = PyLong_AsLong(kinds);
    Py_DECREF(kinds);
    return bits == default_kinds ? 0 : (int)(bits | 64) << 16;
}

static inline int is_call(Op* op) { return op->op == call_op || op->op == output_op || op->op == contiguous_op; }

static PyObject* cost_module; /* `schedule.cost` */
static long long most_bytes;

static PyObject *config_dict, *at_hand_name; /* of `values.config` */

/* Elements of the largest array that may hold its memory itself (`hand.py`); 0 where none may. */
static long long most_at_hand(void) {
    PyObject* limit = PyDict_GetItemWithError(config_dict, at_hand_name);
    return limit ? PyLong_AsLongLong(limit) : 0;
}

static long long bytes_of(Node* node) {
    long long total = PyDataType_ELSIZE((PyArray_Descr*)node->dtype), extent;
    Py_ssize_t k;
    for (k = PyTuple_GET_SIZE(node->shape); k--;) {
        extent = PyLong_AsLongLong(PyTuple_GET_ITEM(node->shape, k));
        if (extent && total > most_bytes / extent) total = most_bytes / extent;
        total *= extent;
    }
    return total;
}

static long long bytes_in(Node* a, Node* b) { return a->below > most_bytes - b->below ? most_bytes : a->below + b->below; }

/* Estimate the bytes that it takes to compute each node again: of the results of calls, and of what is reduced. */
static void count_bytes_below(void) {
    Py_ssize_t k, i;
    for (k = 0; k < walk.node_count; k++) {
        Node* node = walk.nodes[k];
        Op* op = op_of(node);
        PyObject* src = node->src;
        node->below = op && is_call(op) ? bytes_of(node) : 0;
        if (src == NULL || (op && is_call(op))) continue;
        for (i = PyTuple_GET_SIZE(src); i--;) {
            Node* source = (Node*)PyTuple_GET_ITEM(src, i);
            if (source->counted == node) continue; /* once, however often it is a source */
            source->counted = node;
            node->below = bytes_in(node, source);
        }
        if (op && op->kind == REDUCTION && PyTuple_GET_SIZE(src)) {
            long long reduced = bytes_of((Node*)PyTuple_GET_ITEM(src, 0));
            if (node->below < reduced) node->below = reduced;
        }
    }
}

static long long number_in(PyObject* module, const char* name) {
    PyObject* found = PyObject_GetAttrString(module, name);
    long long value = found ? PyLong_AsLongLong(found) : -1;
    Py_XDECREF(found);
    return value;
}

/* Whether a call is a product of matrices, whose operands lie in memory; others may be made in the memory of what they are given. */
static int is_product(Node* node, Op* op) {
    PyObject* name = op->op == call_op && PyTuple_CheckExact(node->arg) && PyTuple_GET_SIZE(node->arg) ? PyTuple_GET_ITEM(node->arg, 0) : NULL;
    return name && PyUnicode_Check(name) && (PyUnicode_CompareWithASCIIString(name, "matmul") == 0 || PyUnicode_CompareWithASCIIString(name, "dot") == 0);
}

/* Keep the results of calls that can still be asked for when the program is over, or what is made of them where that is much smaller. Keep also small
   results of what was reduced, arrays that were written through a view or are given to a product, which are in memory anyway, and what is small enough
   for `at_hand`. What has more references than the walk, its readers in the program and the forms of other threads' runs is held by something else. */
static int keep_asked_for_later(void) {
    Py_ssize_t k, i, before = PyList_GET_SIZE(walk.wanted);
    int held;
    long long enough = 0, small = 0, most = most_at_hand(), size;
    if (walk.calls) { /* what is dear is in few programs; the others only look who holds what */
        enough = number_in(cost_module, "KEPT_BYTES"), small = number_in(cost_module, "KEPT_SMALL");
        if (enough < 0 || small < 0) return -1;
        count_bytes_below();
    }
    for (k = walk.node_count; k--;) {
        Node* node = walk.nodes[k];
        Op* op = op_of(node);
        if (op == NULL) return NO_GRAPH;
        if (node->src && (is_product(node, op) || (node->given && op->kind == MOVEMENT))) /* readers come before what they read */
            for (i = PyTuple_GET_SIZE(node->src); i--;) ((Node*)PyTuple_GET_ITEM(node->src, i))->given = 1;
        if (node->kept || op->kind == LEAF || node->src == NULL) continue;
        held = Py_REFCNT(node) > 1 + node->readers + node->forms;
        if (!node->later && !held) continue;
        size = bytes_of(node);
        if (held && most && op->kind != MOVEMENT && size <= most * PyDataType_ELSIZE((PyArray_Descr*)node->dtype)) {
            if (keep(node) < 0) return -1;
            continue;
        }
        if (!walk.calls) continue;
        if (is_call(op) || (held && (op->op == store_op || (node->given && op->kind != MOVEMENT))) || node->below - size > (size <= small ? 0 : enough)) {
            if (keep(node) < 0) return -1;
        } else if (node->below) {
            for (i = PyTuple_GET_SIZE(node->src); i--;) ((Node*)PyTuple_GET_ITEM(node->src, i))->later = 1;
        }
    }
    if (PyList_GET_SIZE(walk.wanted) - before > 1) { /* earlier ones first */
        PyObject* found = PyList_GetSlice(walk.wanted, before, PyList_GET_SIZE(walk.wanted));
        int failed = found == NULL || PyList_Reverse(found) < 0 || PyList_SetSlice(walk.wanted, before, PyList_GET_SIZE(walk.wanted), found) < 0;
        Py_XDECREF(found);
        if (failed) return -1;
    }
    return 0;
}

static int movement(Node* node) {
    Op* op = op_of(node);
    return op && op->kind == MOVEMENT;
}

static int node_entry(Node* node) {
    Op* op = op_of(node);
    PyObject *src = node->src, *arg = node->arg, *shape = node->shape;
    Py_ssize_t n, k, used, ndim;
    int code, kinds, found, number;
    word* at;
    if (op == NULL || src == NULL || arg == NULL || !PyTuple_CheckExact(shape)) return NO_GRAPH;
    if (op->kind == LEAF) return 0;
    n = PyTuple_GET_SIZE(src);
    if (!node->computed) {
        for (k = 0; k < n; k++) {
            Node* source = (Node*)PyTuple_GET_ITEM(src, k);
            if (!source->computed) continue;
            while (movement(source) && source->src && PyTuple_GET_SIZE(source->src)) source = (Node*)PyTuple_GET_ITEM(source->src, 0);
            if (source->computed && !source->kept) {
                Op* of = op_of(source);
                if (of == NULL) return NO_GRAPH;
                if (of->kind != LEAF && keep(source) < 0) return -1;
            }
        }
    }
    if (op->op == copy_op) { /* one program runs on one device */
        found = entry_of((Node*)PyTuple_GET_ITEM(src, 0));
        if (found < 0) return found;
        node->entry = found;
        walk.moves = 1;
        return 0;
    }
    code = dtype_number(node->dtype);
    if (code < 0) return code;
    for (k = 0; k < n; k++) { /* leaves write to the scratch */
        found = entry_of((Node*)PyTuple_GET_ITEM(src, k));
        if (found < 0) return found;
    }
    ndim = PyTuple_GET_SIZE(shape);
    if (ROOM(scratch, scratch_count, 8 + n + 2 * ndim) < 0) return -1;
    at = walk.scratch + walk.scratch_count;
    kinds = 0;
    if (op->kind == ELEMENTWISE || (op->kind != MOVEMENT && op->op != store_op && op->op != pad_op && op->op != slice_op)) {
        kinds = error_kinds(node);
        if (kinds < 0) return -1;
    }
    at[0] = (int)(op - ops) | code << 8;
    at[1] = (word)n;
    for (k = 0; k < n; k++) at[2 + k] = ((Node*)PyTuple_GET_ITEM(src, k))->entry;
    used = 2 + n;
    if (op->kind == ELEMENTWISE) {
        /* Operands stay as they were first recorded: so the turns of a loop look alike, however its values are numbered. */
        if (n == 2) {
            word first = at[2], second = at[3];
            if (first > second) {
                if (op->commutes[0] && strchr(op->commutes, ((PyArray_Descr*)node->dtype)->kind)) {
                    at[2] = second, at[3] = first;
                    if (!known(at, used)) {
                        at[0] |= TAG_SWAPPED;
                        if (numbered(used, 0) == NO_MEMORY) return -1;
                        if (ROOM(scratch, scratch_count, used) < 0) return -1;
                        at = walk.scratch + walk.scratch_count;
                        at[0] = (int)(op - ops) | code << 8, at[1] = 2, at[2] = first, at[3] = second;
                    }
                }
            } else if (op->commutes[0]) {
                at[0] |= TAG_SWAPPED;
                if (known(at, used)) at[2] = second, at[3] = first;
                at[0] &= ~TAG_SWAPPED;
            }
        }
        at[0] |= kinds;
    } else if (op->op == slice_op || op->op == store_op || op->op == pad_op) {
        Py_ssize_t axes;
        if (!PyTuple_CheckExact(arg)) return NO_GRAPH;
        axes = PyTuple_GET_SIZE(arg);
        if (ROOM(scratch, scratch_count, used + 1 + 3 * axes + 3) < 0) return -1;
        walk.scratch[walk.scratch_count + used++] = (word)axes;
        for (k = 0; k < axes; k++) {
            PyObject* start = PyTuple_GET_ITEM(arg, k);
            long long step = 0;
            word slot;
            if (op->op != pad_op) {
                if (!PyTuple_CheckExact(start) || PyTuple_GET_SIZE(start) != 2) return NO_GRAPH;
                step = PyLong_AsLongLong(PyTuple_GET_ITEM(start, 1));
                if (step == -1 && PyErr_Occurred()) return NO_GRAPH;
                start = PyTuple_GET_ITEM(start, 0);
            }
            found = slot_of(start, used, &slot);
            if (found < 0) return found;
            if (ROOM(scratch, scratch_count, used + 3) < 0) return -1;
            at = walk.scratch + walk.scratch_count + used;
            at[0] = slot;
            used++;
            if (op->op != pad_op) at[1] = (word)step, at[2] = (word)(step >> 32), used += 2;
        }
        walk.calls |= op->op == store_op;
    } else {
        if ((used = write_argument(arg, used, 0)) < 0) return -1;
        walk.scratch[walk.scratch_count] |= kinds;
        walk.calls |= is_call(op) || op->kind == REDUCTION;
    }
    if (op->kind != ELEMENTWISE) {
        if (ROOM(scratch, scratch_count, used + 1 + 2 * ndim) < 0) return -1;
        at = walk.scratch + walk.scratch_count;
        at[used++] = (word)ndim;
        if (dimensions(at + used, shape) < 0) return NO_GRAPH;
        used += 2 * ndim;
    }
    Py_ssize_t start = walk.scratch_count;
    found = numbered(used, (int)walk.entry_count);
    if (found == NO_MEMORY) return -1;
    if (found >= 0) return node->entry = found, 0;
    number = new_entry(node);
    return number < 0 ? -1 : write_key(walk.scratch + start, used);
}

static PyObject* list_of(PyObject** items, Py_ssize_t n) {
    PyObject* made = PyList_New(n);
    Py_ssize_t k;
    for (k = 0; made && k < n; k++) PyList_SET_ITEM(made, k, Py_NewRef(items[k]));
    return made;
}

static PyObject* walk_key(void) {
    PyObject *text = PyBytes_FromStringAndSize((char*)walk.key, walk.key_count * sizeof(word)), *made;
    Py_ssize_t k, n = walk.arguments ? PyList_GET_SIZE(walk.arguments) : 0;
    if (text == NULL || n == 0) return text;
    made = PyTuple_New(1 + n);
    if (made == NULL) return Py_DECREF(text), NULL;
    PyTuple_SET_ITEM(made, 0, text);
    for (k = 0; k < n; k++) PyTuple_SET_ITEM(made, 1 + k, Py_NewRef(PyList_GET_ITEM(walk.arguments, k)));
    return made;
}

/* 0 where the walk came to its end. */
static int walked(void) {
    Py_ssize_t k, n;
    int done;
    for (k = 0; k < PyList_GET_SIZE(walk.wanted); k++) {
        PyObject* node = PyList_GET_ITEM(walk.wanted, k);
        if (!is_node(node)) return NO_GRAPH;
        if (gather((Node*)node) < 0) return -1;
        ((Node*)node)->kept = 1;
    }
    for (k = 0; k < walk.node_count; k++) {
        PyObject* src = walk.nodes[k]->src;
        Py_ssize_t i;
        if (src == NULL) return NO_GRAPH;
        for (i = PyTuple_GET_SIZE(src); i--;) {
            Node* source = (Node*)PyTuple_GET_ITEM(src, i);
            if (gather(source) < 0) return -1;
            source->readers++;
        }
    }
    sort_nodes();
    for (n = 128; n < 4 * walk.node_count; n *= 2);
    if (walk.table_size != n && (walk.table_size < n || walk.table_size > 8 * n)) {
        walk.table_count = 0;
        if (table_resize(n) < 0) return -1;
    } else {
        memset(walk.table, 0xff, walk.table_size * sizeof(Slot));
    }
    for (k = 0; k < walk.node_count; k++) {
        done = node_entry(walk.nodes[k]);
        if (done < 0) return done;
    }
    if ((walk.calls || most_at_hand()) && (done = keep_asked_for_later()) < 0) return done;
    n = PyList_GET_SIZE(walk.wanted);
    for (k = 0; k < n; k++) { /* a wanted leaf that nothing reads becomes an entry here */
        done = entry_of((Node*)PyList_GET_ITEM(walk.wanted, k));
        if (done < 0) return done;
    }
    if (ROOM(key, key_count, n + 1) < 0) return -1;
    for (k = 0; k < n; k++) walk.key[walk.key_count++] = ((Node*)PyList_GET_ITEM(walk.wanted, k))->entry;
    walk.key[walk.key_count++] = (word)n;
    return 0;
}

static PyObject* canonicalise(PyObject* module, PyObject* nodes) {
    Canonical* made = NULL;
    PyObject* given = PySequence_List(nodes);
    Py_ssize_t k;
    int done, collects;
    (void)module;
    if (given == NULL) return NULL;
    collects = PyGC_Disable(); /* what it finalizes could come back to here */
    walk.wanted = given;
    walk.node_count = walk.entry_count = walk.buffer_count = walk.scalar_count = walk.offset_count = 0;
    walk.key_count = walk.scratch_count = walk.table_count = 0;
    walk.moves = walk.calls = 0;
    walks++;
    done = walked();
    if (done == 0 && (made = PyObject_GC_New(Canonical, &canonical_type))) {
        made->moves = (char)walk.moves, made->counts = 0;
        made->key = made->buffers = made->integers = made->scalars = made->nodes = made->walked = NULL;
        made->wanted = Py_NewRef(given);
        if ((made->key = walk_key()) && (made->buffers = list_of(walk.buffers, walk.buffer_count)) &&
            (made->scalars = list_of(walk.scalars, walk.scalar_count)) && (made->nodes = list_of((PyObject**)walk.entries, walk.entry_count)) &&
            (made->integers = PyList_New(walk.offset_count))) {
            for (k = 0; k < walk.offset_count; k++) {
                PyObject* offset = PyLong_FromLongLong(walk.offsets[k]);
                if (offset == NULL) break;
                PyList_SET_ITEM(made->integers, k, offset);
            }
            if (k == walk.offset_count && (made->walked = PyList_New(walk.node_count))) {
                for (k = 0; k < walk.node_count; k++) PyList_SET_ITEM(made->walked, k, (PyObject*)walk.nodes[k]); /* their references go along */
                walk.node_count = 0;
                form_counts(made, 1);
            }
        }
        PyObject_GC_Track((PyObject*)made);
        if (made->walked == NULL) Py_CLEAR(made);
    }
    for (k = 0; k < walk.node_count; k++) Py_DECREF(walk.nodes[k]);
    for (k = 0; k < walk.buffer_count; k++) Py_DECREF(walk.buffers[k]);
    for (k = 0; k < walk.scalar_count; k++) Py_DECREF(walk.scalars[k]);
    Py_CLEAR(walk.arguments);
    Py_CLEAR(walk.numbers);
    if (collects) PyGC_Enable();
    if (done == NO_GRAPH && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "what is wanted is no graph of operations, dtypes and arguments that lazynp has");
    Py_DECREF(given);
    return (PyObject*)made;
}

/* The structure alone: a key with the numbers of its extents (those from 2 on) in place of these, and the extents in the order of their numbers. */
#define MOST_SIZES 48
#define A_SIZE 0x7fffffff /* no extent has this for its higher word */

static Py_ssize_t behind_argument(const word* words, Py_ssize_t at) {
    word count;
    switch (words[at]) {
    case ARG_NONE: return at + 1;
    case ARG_INT: return at + 3;
    case ARG_BITS: return at + 3 + (words[at + 1] & 255);
    case ARG_TUPLE:
        count = words[at + 1];
        for (at += 2; count--;) at = behind_argument(words, at);
        return at;
    default: return at + 2;
    }
}

static PyObject* without_sizes(PyObject* module, PyObject* key) {
    PyObject *text = key, *made = NULL, *sizes = NULL, *whole = NULL;
    long long found[MOST_SIZES];
    Py_ssize_t length, end, at, count = 0, k;
    word* words;
    (void)module;
    if (PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key)) text = PyTuple_GET_ITEM(key, 0);
    if (!PyBytes_CheckExact(text)) return PyErr_SetString(PyExc_TypeError, "a key of the native walk"), NULL;
    length = PyBytes_GET_SIZE(text) / sizeof(word);
    if (length < 1) return PyErr_SetString(PyExc_ValueError, "an empty key"), NULL;
    made = PyBytes_FromStringAndSize(NULL, PyBytes_GET_SIZE(text));
    if (made == NULL) return NULL;
    memcpy(PyBytes_AS_STRING(made), PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text));
    words = (word*)PyBytes_AS_STRING(made); /* not shared yet */
    end = length - 1 - words[length - 1];
    for (at = 0; at < end;) {
        Op* op = &ops[words[at] & 255];
        int shaped = op->kind != ELEMENTWISE && op->op != const_op;
        if (op->kind == LEAF) {
            at += 2;
        } else {
            at += 2 + words[at + 1];
            if (op->op == slice_op || op->op == store_op) at += 1 + 3 * words[at];
            else if (op->op == pad_op) at += 1 + words[at];
            else if (op->kind != ELEMENTWISE) at = behind_argument(words, at);
        }
        if (!shaped) continue;
        for (k = words[at++]; k--; at += 2) {
            long long extent = (long long)(uint32_t)words[at] | (long long)words[at + 1] << 32;
            Py_ssize_t number = 0;
            if (extent < 2) continue;
            while (number < count && found[number] != extent) number++;
            if (number == count) {
                if (count == MOST_SIZES) {
                    Py_DECREF(made);
                    return Py_BuildValue("(OO)", Py_None, Py_None);
                }
                found[count++] = extent;
            }
            words[at] = (word)number, words[at + 1] = A_SIZE;
        }
    }
    sizes = PyTuple_New(count);
    for (k = 0; sizes && k < count; k++) {
        PyObject* extent = PyLong_FromLongLong(found[k]);
        if (extent == NULL) Py_CLEAR(sizes);
        else PyTuple_SET_ITEM(sizes, k, extent);
    }
    if (sizes && text != key) {
        whole = PyTuple_New(PyTuple_GET_SIZE(key));
        for (k = 1; whole && k < PyTuple_GET_SIZE(key); k++) PyTuple_SET_ITEM(whole, k, Py_NewRef(PyTuple_GET_ITEM(key, k)));
        if (whole) PyTuple_SET_ITEM(whole, 0, made);
        else Py_DECREF(made);
        made = whole;
    }
    if (sizes == NULL || made == NULL) {
        Py_XDECREF(sizes), Py_XDECREF(made);
        return NULL;
    }
    return Py_BuildValue("(NN)", made, sizes);
}

/* marks(nodes): the error state and the site of each, as one tuple: state, code object or None, offset, state, ... */
static PyObject* marks(PyObject* module, PyObject* nodes) {
    Py_ssize_t k, count = PyList_CheckExact(nodes) ? PyList_GET_SIZE(nodes) : -1;
    PyObject* made = count < 0 ? NULL : PyTuple_New(3 * count);
    (void)module;
    if (count < 0) PyErr_SetString(PyExc_TypeError, "a list of nodes");
    for (k = 0; made && k < count; k++) {
        Node* node = k < PyList_GET_SIZE(nodes) ? (Node*)PyList_GET_ITEM(nodes, k) : NULL;
        PyObject* offset = node && is_node((PyObject*)node) ? PyLong_FromLong(node->code ? node->offset : 0) : NULL;
        if (offset == NULL) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a list of nodes");
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, 3 * k, Py_NewRef(node->err));
        PyTuple_SET_ITEM(made, 3 * k + 1, Py_NewRef(node->code ? node->code : Py_None));
        PyTuple_SET_ITEM(made, 3 * k + 2, offset);
    }
    return made;
}

/* The program ran: its nodes were computed. */
static PyObject* mark_computed(PyObject* module, PyObject* nodes) {
    Py_ssize_t k;
    (void)module;
    if (!PyList_CheckExact(nodes)) return PyErr_SetString(PyExc_TypeError, "a list of nodes"), NULL;
    for (k = PyList_GET_SIZE(nodes); k--;) {
        PyObject* node = PyList_GET_ITEM(nodes, k);
        if (is_node(node)) ((Node*)node)->computed = 1;
    }
    Py_RETURN_NONE;
}

static PyObject* user_site(void) {
    int offset;
    PyObject* code = user_code(&offset);
    return code ? Py_BuildValue("(Ni)", code, offset) : NULL;
}

static int graph_ready(PyObject* number_slot) { /* the member descriptor of `Op.number` */
    if (Py_TYPE(number_slot) != &PyMemberDescr_Type) {
        PyErr_SetString(PyExc_ImportError, "operations have no slot for their number");
        return -1;
    }
    op_number_offset = ((PyMemberDescrObject*)number_slot)->d_member->offset;
    return PyType_Ready(&node_type) < 0 || PyType_Ready(&canonical_type) < 0 ? -1 : 0;
}

/* The type ------------------------------------------------------------------------------------------------------------------------- */

static int canonical_clear(PyObject* object) {
    Canonical* self = (Canonical*)object;
    if (self->counts) form_counts(self, 0);
    Py_CLEAR(self->key); Py_CLEAR(self->buffers); Py_CLEAR(self->integers); Py_CLEAR(self->scalars);
    Py_CLEAR(self->nodes); Py_CLEAR(self->wanted); Py_CLEAR(self->walked);
    return 0;
}
static int canonical_traverse(PyObject* object, visitproc visit, void* arg) {
    Canonical* self = (Canonical*)object;
    Py_VISIT(self->key); Py_VISIT(self->buffers); Py_VISIT(self->integers); Py_VISIT(self->scalars);
    Py_VISIT(self->nodes); Py_VISIT(self->wanted); Py_VISIT(self->walked);
    return 0;
}
static void canonical_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    canonical_clear(self);
    PyObject_GC_Del(self);
}
static PyObject* canonical_forget(PyObject* object, PyObject* none) {
    Canonical* self = (Canonical*)object;
    PyObject* empty = PyList_New(0);
    (void)none;
    if (empty == NULL) return NULL;
    form_counts(self, 0);
    Py_XSETREF(self->nodes, Py_NewRef(empty));
    Py_XSETREF(self->wanted, Py_NewRef(empty));
    Py_XSETREF(self->walked, empty);
    Py_RETURN_NONE;
}
static PyMethodDef canonical_methods[] = {
    {"forget", canonical_forget, METH_NOARGS, "forget()\n\nLet go of every node: the program ran."}, {NULL, NULL, 0, NULL}};
static PyMemberDef canonical_members[] = {
    {"key", T_OBJECT_EX, offsetof(Canonical, key), 0, NULL},           {"buffers", T_OBJECT_EX, offsetof(Canonical, buffers), 0, NULL},
    {"integers", T_OBJECT_EX, offsetof(Canonical, integers), 0, NULL}, {"scalars", T_OBJECT_EX, offsetof(Canonical, scalars), 0, NULL},
    {"nodes", T_OBJECT_EX, offsetof(Canonical, nodes), READONLY, NULL},       {"wanted", T_OBJECT_EX, offsetof(Canonical, wanted), READONLY, NULL},
    {"walked", T_OBJECT_EX, offsetof(Canonical, walked), READONLY, NULL},     {"moves", T_BOOL, offsetof(Canonical, moves), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyTypeObject canonical_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.graph._native.Canonical",
    .tp_doc = "The canonical form of what one realize asks for; see ``lazynp.schedule.canonicalise.Canonical``.",
    .tp_basicsize = sizeof(Canonical),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = canonical_dealloc,
    .tp_traverse = canonical_traverse,
    .tp_clear = canonical_clear,
    .tp_members = canonical_members,
    .tp_methods = canonical_methods,
};

#endif
