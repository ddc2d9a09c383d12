/* The cell: what every array is made of, in C.

   In: a NumPy array and its owner.  Out: a new object of the class of arrays.  Promise: its attributes are plain members, which the
   interpreter's inline caches know.  A cell that was made here stays in memory and holds nothing but a NumPy array and its owner.  So it is
   in no cycle, and the garbage collector is not told of it unless the owner is no array of that class. */

#ifndef LAZYNP_CELL_H
#define LAZYNP_CELL_H

#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include "numpy/arrayobject.h"

#if defined(__GNUC__)
#define NOT_INLINED __attribute__((noinline)) /* so that its room on the stack is not that of its callers, which call one another for what a tape reads */
#else
#define NOT_INLINED
#endif

enum { LENT = 1, LENT_ADDRESS }; /* LENT_ADDRESS: an address was told, which nothing refers to */

typedef struct Cell {
    PyObject_HEAD
    PyObject *base, *node, *view, *stamp, *readonly;
    PyObject* weakrefs;
    /* Of a part of a large array (`parts.h`). */
    PyArrayObject* shown;
    npy_intp offset, extent;
    PyObject* origin;
    struct Cell *before, *after;
    int readers; /* tapes that read the value when it is there */
    int waiting_views; /* views of the value that wait for it */
    char lent; /* code outside may write the memory, see `is_own`: LENT as long as there is another reference to it, or LENT_ADDRESS */
    int writers; /* threads and callers that are writing into the memory of a draft */
    int partial_reads; /* small parts that were asked of it while its value waited */
    char whole; /* all that `origin`, an array, owns, in another shape */
} Cell;

static PyTypeObject* array_type; /* the class of arrays, once it is registered */

/* What stands for the memory of a cell whose value waits on a tape (`chain.h`); nothing else reads it. */
static PyTypeObject waiting_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Waiting", .tp_basicsize = sizeof(PyObject), .tp_flags = Py_TPFLAGS_DEFAULT};
static struct {
    PyObject_HEAD
} waiting_value = {PyObject_HEAD_INIT(&waiting_type)};
#define WAITS(x) (((Cell*)(x))->base == (PyObject*)&waiting_value)
static int waiting_count;         /* tapes on which something waits */
static npy_intp orphaned_bytes;   /* of memory that only tapes hold, at most: its cells have died meanwhile */
static int settle_cell(PyObject* x);
static void forget_cell(PyObject* x);

#define RAW_AXES 4

/* What NumPy's arrays are made of, without one: the result of what was recorded, and a view, until an array is asked for (`pool.h`).  It is read by NumPy's macros, which
   look at nothing but these fields. */
typedef struct {
    PyArrayObject_fields fields; /* `base`: the array that has the memory now */
    npy_intp lengths[2 * RAW_AXES]; /* the shape and the strides */
    PyObject* holds; /* of a view: whose memory it is, an array or another of these; else NULL */
    int views;       /* how many hold this one */
    int seen;        /* by tapes, while they are walked through (`shown_by_one`) */
} Raw;
static PyTypeObject raw_type;
#define IS_RAW(x) (Py_TYPE(x) == &raw_type)
static PyArrayObject* cell_array(PyObject* x);

#define SETTLED_MOST 8 /* times: handlers of warnings may have written it meanwhile, so that it waits again */

/* The members in which a value lies: who asks for one has the value computed. */
static PyObject* cell_value(PyObject* self, void* at) {
    PyObject* found;
    for (int k = 0; k < SETTLED_MOST && WAITS(self); k++)
        if (settle_cell(self) < 0) return NULL;
    if (((Cell*)self)->base && IS_RAW(((Cell*)self)->base) && cell_array(self) == NULL) return NULL;
    found = *(PyObject**)((char*)self + (size_t)at);
    return found ? Py_NewRef(found) : (PyErr_SetString(PyExc_AttributeError, "no value"), NULL);
}
static int cell_set_value(PyObject* self, PyObject* to, void* at) {
    for (int k = 0; k < SETTLED_MOST && WAITS(self); k++)
        if (settle_cell(self) < 0) return -1;
    Py_XSETREF(*(PyObject**)((char*)self + (size_t)at), Py_XNewRef(to));
    return 0;
}

static PyMemberDef cell_members[] = {
    {"_known_base", T_OBJECT_EX, offsetof(Cell, base), READONLY, "_base, or what stands for it"},
    {"_known_node", T_OBJECT_EX, offsetof(Cell, node), READONLY, "_node, likewise"},
    {"_stamp", T_OBJECT_EX, offsetof(Cell, stamp), 0, NULL}, {"_readonly", T_OBJECT_EX, offsetof(Cell, readonly), 0, NULL},
    {"_writers", T_INT, offsetof(Cell, writers), READONLY, "how many writes into the memory of a draft are under way"},
    {"_partial_reads", T_INT, offsetof(Cell, partial_reads), 0, "how many small parts were asked of it while its value waited"},
    {"_known_view", T_OBJECT_EX, offsetof(Cell, view), READONLY, "_view, if somebody has asked for it"}, {NULL, 0, 0, 0, NULL}};

/* All cells that show a part of a large array, in a ring. */
static Cell parts = {.before = &parts, .after = &parts};

/* Arrays of one and of two axes that showed parts, kept for the next ones: making one takes NumPy longer than all the rest of a part. */
#define SHOWN_KEPT 32
static PyArrayObject* kept_shown[2][SHOWN_KEPT];
static int kept_shown_count[2];

static void shown_drop(PyArrayObject* x) {
    PyArrayObject_fields* of = (PyArrayObject_fields*)x;
    int kind = of->nd - 1;
    PyObject* base = of->base;
    if (kind < 0 || kind > 1 || kept_shown_count[kind] == SHOWN_KEPT || Py_REFCNT(x) > 1 || !PyArray_CheckExact(x) || of->weakreflist || of->_buffer_info || base == NULL ||
        of->flags & (NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY)) {
        Py_DECREF(x);
        return;
    }
    of->base = NULL;
    kept_shown[kind][kept_shown_count[kind]++] = x;
    Py_DECREF(base); /* which may run code */
}

static inline void part_forget(Cell* self) {
    PyArrayObject* shown = self->shown;
    if (shown == NULL) return;
    self->before->after = self->after;
    self->after->before = self->before;
    self->shown = NULL;
    shown_drop(shown);
    Py_CLEAR(self->origin);
}

static int cell_traverse(PyObject* object, visitproc visit, void* arg) {
    Cell* self = (Cell*)object;
    Py_VISIT(self->base);
    Py_VISIT(self->node);
    Py_VISIT(self->view);
    Py_VISIT(self->stamp);
    Py_VISIT(self->origin);
    return 0;
}

static int cell_clear(PyObject* object) {
    Cell* self = (Cell*)object;
    if (WAITS(self)) forget_cell(object);
    Py_CLEAR(self->base);
    Py_CLEAR(self->node);
    Py_CLEAR(self->view);
    Py_CLEAR(self->stamp);
    part_forget(self);
    return 0;
}

/* Whether memory goes with what a cell shows: views leave it to its owner. */
static inline int owns_memory(PyObject* x) { return IS_RAW(x) ? ((Raw*)x)->holds == NULL : PyArray_CheckExact(x) && PyArray_CHKFLAGS((PyArrayObject*)x, NPY_ARRAY_OWNDATA); }

static PyObject *part_view, *part_parent; /* the latest view of a view, and that one, as long as both are there: both name the owner of the memory */

static npy_intp large_orphaned(PyObject* self);

static inline void cell_release(PyObject* self) {
    if (self == part_view || self == part_parent) part_view = part_parent = NULL;
    PyObject_GC_UnTrack(self);
    if (WAITS(self)) forget_cell(self);
    else if (waiting_count && ((Cell*)self)->base && owns_memory(((Cell*)self)->base) && Py_REFCNT(((Cell*)self)->base) > 1)
        orphaned_bytes += PyArray_NBYTES((PyArrayObject*)((Cell*)self)->base);
    else if (waiting_count)
        orphaned_bytes += large_orphaned(self);
    if (((Cell*)self)->weakrefs) PyObject_ClearWeakRefs(self);
    cell_clear(self);
    Py_CLEAR(((Cell*)self)->readonly);
}

static void cell_dealloc(PyObject* self) { /* of a subclass: its own part is done, and it lets its type go */
    cell_release(self);
    Py_TYPE(self)->tp_free(self);
}

/* Cells come and go with every operation: the memory of some is kept. */
#define KEPT 256
static PyObject* kept_cells[KEPT];
static int kept_count;

static void array_dealloc(PyObject* self) { /* of the class of arrays itself, which adds nothing to a cell */
    PyTypeObject* type = Py_TYPE(self);
    cell_release(self);
    if (kept_count < KEPT) {
        kept_cells[kept_count++] = self; /* with its type */
        return;
    }
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject* cell_create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    (void)args, (void)kwargs;
    PyObject* made = type->tp_alloc(type, 0);
    if (made) ((Cell*)made)->lent = LENT; /* until `is_own` has looked */
    return made;
}

/* Have a cell kept, so that the next one is there without code of a program's being run, as a collection of garbage may. */
static void cell_ready(void) {
    PyObject* made = kept_count ? NULL : (PyObject*)PyObject_GC_New(Cell, array_type);
    if (made && kept_count < KEPT) kept_cells[kept_count++] = made;
    else if (made) PyObject_GC_Del(made), Py_DECREF(array_type);
    else PyErr_Clear();
}

/* A cell whose members are yet to be set. */
static inline Cell* cell_new(void) {
    Cell* made = kept_count ? (Cell*)kept_cells[--kept_count] : PyObject_GC_New(Cell, array_type);
    if (made == NULL) return NULL;
    Py_SET_REFCNT((PyObject*)made, 1);
    made->stamp = made->origin = made->weakrefs = NULL;
    made->shown = NULL;
    made->lent = 0;
    made->writers = made->readers = made->waiting_views = made->partial_reads = 0;
    return made;
}

/* The cell of `memory` (the reference is taken over), which belongs to `owner`, or to itself (NULL). */
static inline PyObject* cell_of(PyObject* memory, PyObject* owner) {
    PyObject* view = Py_NewRef(owner ? owner : Py_None); /* before there is a cell: making one may run code, a collection of garbage */
    Cell* made = memory ? cell_new() : NULL;
    if (made == NULL) {
        Py_XDECREF(memory), Py_DECREF(view);
        return NULL;
    }
    made->base = memory;
    made->lent = Py_REFCNT(memory) > 1 ? LENT : 0; /* another reference exists already: a program gave it as `out`, or for `asarray` to show */
    made->node = Py_NewRef(Py_None);
    made->view = view;
    made->readonly = Py_NewRef(!PyArray_ISWRITEABLE((PyArrayObject*)memory) ? Py_True : Py_False);
    if (owner && Py_TYPE(owner) != array_type) PyObject_GC_Track((PyObject*)made);
    return (PyObject*)made;
}

/* Whether memory is written by this program's own operations only: it is NumPy's, and no more than the cell holds it, or did, and no code
   outside was shown it since.  Views, NumPy's and ours, hold it, too. */
static inline int is_own(Cell* owner) {
    PyArrayObject* memory = (PyArrayObject*)owner->base;
    if (memory == NULL || !PyArray_CheckExact(memory) || !PyArray_CHKFLAGS(memory, NPY_ARRAY_OWNDATA)) return 0;
    if (owner->lent == LENT && Py_REFCNT(memory) == 1 && ((PyArrayObject_fields*)memory)->weakreflist == NULL) owner->lent = 0;
    return !owner->lent;
}

/* The same, asked of the only view of it: a cell whose memory is `shown`. */
static inline int is_own_shown(Cell* owner, PyObject* shown) {
    PyArrayObject_fields *memory = (PyArrayObject_fields*)owner->base, *view = (PyArrayObject_fields*)shown;
    if (owner->lent == LENT && (PyObject*)memory != shown && Py_REFCNT(shown) == 1 && view->weakreflist == NULL && view->base == (PyObject*)memory &&
        Py_REFCNT(memory) == 2 && PyArray_CheckExact(view->base) && memory->weakreflist == NULL)
        owner->lent = 0;
    return is_own(owner);
}

/* Whether memory may be written with nothing said: where what `broadcast_arrays` gave is written first NumPy warns, which the highest flag says. */
static inline int is_writable(PyArrayObject* x) { return PyArray_ISWRITEABLE(x) && PyArray_FLAGS(x) >= 0; }
static inline int is_written_plainly(PyArrayObject* x) { return PyArray_ISBEHAVED_RO(x) && is_writable(x); }

/* Let a view of NumPy's have `owner` for its base, as the program sees it. */
static inline void view_belongs(PyObject* view, PyObject* owner) {
    Py_XSETREF(((PyArrayObject_fields*)view)->base, Py_NewRef(owner));
}

/* Whether a view of NumPy's is all of an array to which nothing else refers. */
static inline int is_all_of_unseen(PyArrayObject* view) {
    PyArrayObject_fields* base = (PyArrayObject_fields*)PyArray_BASE(view);
    return base && PyArray_CheckExact((PyObject*)base) && Py_REFCNT(base) == 1 && Py_REFCNT(view) == 1 && base->flags & NPY_ARRAY_OWNDATA &&
           base->weakreflist == NULL && ((PyArrayObject_fields*)view)->weakreflist == NULL && PyArray_NBYTES((PyArrayObject*)base) == PyArray_NBYTES(view) &&
           PyArray_TYPE((PyArrayObject*)base) == PyArray_TYPE(view) && PyArray_ISONESEGMENT(view);
}

/* The cell of what NumPy returned (the reference is taken over).  What `linspace`, `tile`, ... return is a result that they reshape: the view of a cell. */
static PyObject* cell_of_result(PyObject* found) {
    PyObject *base = (PyObject*)PyArray_BASE((PyArrayObject*)found), *owner, *made;
    if (!is_all_of_unseen((PyArrayObject*)found)) return cell_of(found, base);
    if ((owner = cell_of(Py_NewRef(base), NULL)) == NULL) return Py_DECREF(found), NULL;
    ((Cell*)owner)->lent = 0; /* the other reference is the view's */
    made = cell_of(found, owner);
    Py_DECREF(owner);
    return made;
}

/* What is read from the class of arrays, and is not simply its own: name -> object, or None until `class_make` has made it. */
static PyObject *class_names, *class_make;

static PyObject* class_getattro(PyObject* type, PyObject* name) {
    PyObject* found = PyDict_GetItemWithError(class_names, name);
    if (found && found != Py_None) return Py_NewRef(found);
    if (found) return PyObject_CallFunctionObjArgs(class_make, type, name, NULL);
    return PyErr_Occurred() ? NULL : PyType_Type.tp_getattro(type, name);
}

/* `isinstance(x, np.ndarray)`: of the class itself, which Python has seen to, or of NumPy's. It is found on the metaclass and called with `x` alone. */
static PyObject* class_instances(PyObject* none, PyObject* const* args, Py_ssize_t n) {
    int found;
    (void)none;
    if (n != 1 && n != 2) return PyErr_SetString(PyExc_TypeError, "__instancecheck__() takes an instance"), NULL;
    found = Py_TYPE(args[n - 1]) == array_type ? 1 : PyObject_IsInstance(args[n - 1], (PyObject*)&PyArray_Type);
    return found < 0 ? NULL : PyBool_FromLong(found);
}
static PyMethodDef class_instances_method = {
    "__instancecheck__", (PyCFunction)(void (*)(void))class_instances, METH_FASTCALL, "Tell whether an object is an array, lazynp's or NumPy's."};

static inline int class_register(PyTypeObject* metaclass, PyObject* names, PyObject* make) {
    PyObject* instances = PyCFunction_New(&class_instances_method, NULL);
    if (instances == NULL || PyObject_SetAttrString((PyObject*)metaclass, "__instancecheck__", instances) < 0) return Py_XDECREF(instances), -1;
    Py_DECREF(instances);
    class_names = Py_NewRef(names), class_make = Py_NewRef(make);
    metaclass->tp_getattro = class_getattro;
    PyType_Modified(metaclass);
    return 0;
}

/* Give a cell another state if it is in the one that is named: it has this `base`, and where that is None this `node`; no write into the memory that it
   leaves is under way, and what it leaves has at most `holders` references (-1: any number).  Whether it was done.  No other thread or handler comes in between. */
static int cell_exchange(PyObject* object, PyObject* base, PyObject* node, PyObject* to_base, PyObject* to_view, PyObject* to_node, Py_ssize_t holders) {
    Cell* self = (Cell*)object;
    PyObject *old_base = self->base, *old_view = self->view, *old_node = self->node;
    if (old_base != base || (base == Py_None ? old_node != node : self->writers > 0)) return 0;
    if (holders >= 0 && Py_REFCNT(base == Py_None ? node : base) > holders) return 0;
    self->base = Py_NewRef(to_base), self->view = Py_NewRef(to_view), self->node = Py_NewRef(to_node);
    part_forget(self); /* from here on anything may run */
    Py_XDECREF(old_base), Py_XDECREF(old_view), Py_XDECREF(old_node);
    return 1;
}

/* Let a view know the node that was derived of it, and of what, if it is still the same view: a handler or another thread may have given it another shape since. */
static void cell_remember(PyObject* object, PyObject* view, PyObject* node, PyObject* stamp) {
    Cell* self = (Cell*)object;
    PyObject *old_node = self->node, *old_stamp = self->stamp;
    if (self->view != view) return;
    self->node = Py_NewRef(node), self->stamp = Py_NewRef(stamp);
    Py_XDECREF(old_node), Py_XDECREF(old_stamp); /* which may run code */
}

/* Between these two the memory of a draft stays the array's: what is recorded meanwhile is a copy.  Of a view, or of the array itself. */
static inline Cell* writing_begin(PyObject* x) {
    PyObject* base = ((Cell*)x)->base;
    Cell* root = (Cell*)Py_NewRef(base && Py_TYPE(base) == array_type ? base : x);
    root->writers++;
    return root;
}
static inline void writing_end(Cell* root) {
    root->writers--;
    Py_DECREF(root);
}

/* Extents or strides as a tuple, whose making may run code: the array may have others then. */
static PyObject* lengths_tuple(int n, const npy_intp* lengths) {
    npy_intp copy[NPY_MAXDIMS];
    if (n) memcpy(copy, lengths, (size_t)n * sizeof(npy_intp));
    return PyArray_IntTupleFromIntp(n, copy);
}

/* The flags of what lies so: as NumPy has it, an axis of one element, and what has none, lies in both orders. */
static int flags_of(int ndim, const npy_intp* dims, const npy_intp* strides, npy_intp itemsize, int flags) {
    npy_intp row = itemsize, column = itemsize;
    int orders = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS;
    for (int k = 0; k < ndim; k++) {
        int other = ndim - 1 - k;
        if (dims[k] == 0) return flags | NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS;
        if (dims[k] != 1 && strides[k] != column) orders &= ~NPY_ARRAY_F_CONTIGUOUS;
        if (dims[other] != 1 && strides[other] != row) orders &= ~NPY_ARRAY_C_CONTIGUOUS;
        column *= dims[k], row *= dims[other];
    }
    return flags | orders;
}

/* Whether lazynp has arrays of this dtype. */
static inline int native_dtype(PyArrayObject* x) {
    int number = PyArray_TYPE(x);
    return (number <= NPY_CDOUBLE || number == NPY_HALF) && number != NPY_LONGDOUBLE && !PyArray_ISBYTESWAPPED(x);
}

#endif
