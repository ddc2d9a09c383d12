/* Parts of large arrays: rows, slices and elements, as NumPy shows them.

   In: a large array whose value exists, or a part of one, and a basic key.  Out: an element, or a cell of what the key selects.  Promise: a
   part says where it lies in the array that owns the memory, and looks there anew whenever it is used: that array may have been computed,
   written or published meanwhile.  Small parts are operands like values in memory; they are written where the owner's memory is its own. */

#ifndef LAZYNP_PARTS_H
#define LAZYNP_PARTS_H

#include "numbers.h"

static PyObject *config_dict, *at_hand_name, *kernels_above_name, *costly_above_name, *first_limit_name; /* where `config.at_hand` and its kin are looked up */

static npy_intp setting_found(PyObject* name) {
    PyObject* found = PyDict_GetItem(config_dict, name);
    return found ? PyLong_AsSsize_t(found) : 0;
}

#if PY_VERSION_HEX < 0x030C0000 /* a dictionary says whether it has changed */
#define SETTING(FUNCTION, NAME) \
    static inline npy_intp FUNCTION(void) { \
        static uint64_t version; \
        static npy_intp known; \
        if (((PyDictObject*)config_dict)->ma_version_tag != version) { \
            known = setting_found(NAME); \
            version = ((PyDictObject*)config_dict)->ma_version_tag; \
        } \
        return known; \
    }
#else
#define SETTING(FUNCTION, NAME) \
    static inline npy_intp FUNCTION(void) { return setting_found(NAME); }
#endif
SETTING(limit_now, at_hand_name)           /* elements of the largest array that lies in NumPy's memory; 0: none does */
SETTING(kernels_above, kernels_above_name) /* elements, of more than which functions such as `exp` have the kernels' bits */
SETTING(costly_above, costly_above_name)   /* elements, of more than which those do that cost NumPy much, such as `power` */
SETTING(first_limit, first_limit_name)      /* elements of the largest array that is an operand of tapes as long as little was computed with large ones */

/* A program that computes little with large arrays is done before kernels for it are there, and what makes them costs more than all it computes: tapes
   do that, until so many elements, each once for every step, were computed of large arrays.  From then on they are graphs'.  The larger an array, the
   sooner a kernel pays: from FIRST_USUAL elements on each counts FIRST_DEAR times. */
#define FIRST_WORK (1LL << 32)
#define FIRST_USUAL (1 << 22)
#define FIRST_DEAR 8
static long long first_left = FIRST_WORK;

/* Elements of the largest array that is an operand of tapes now. */
static NOT_INLINED npy_intp tapes_limit(void) { return first_left > 0 ? first_limit() : limit_now(); }

/* Whether so many elements are no tape's: most are few. */
static inline int size_beyond(npy_intp size) { return size > limit_now() && size > tapes_limit(); }

/* Large arrays of `size` elements went through so many steps. */
static inline void first_done(npy_intp size, npy_intp steps) {
    if (first_left > 0 && size > limit_now()) first_left -= size * steps * (size > FIRST_USUAL ? FIRST_DEAR : 1);
}

/* Where a plain array's memory is found: `Node.buffer`, `Buffer._array`, `Draft.array`; and who else may write it: `Draft.lease`, `Draft.outside`. */
typedef struct {
    PyTypeObject* type;
    PyObject* name;
    Py_ssize_t at; /* in the object; -1: the attribute is no plain member */
} Member;
static Member member_buffer, member_array, member_shared, member_draft, member_lease, member_outside;

static void member_fill(Member* of, PyTypeObject* type, PyObject* name, PyObject* found) {
    of->type = type;
    of->name = name;
    of->at = Py_TYPE(found) == &PyMemberDescr_Type ? ((PyMemberDescrObject*)found)->d_member->offset : -1;
}

static inline PyObject* member_of(Member* of, PyObject* x) { /* borrowed: `x` keeps it */
    PyObject* found;
    if (x == NULL || Py_TYPE(x) != of->type) return NULL;
    if (of->at >= 0) return *(PyObject**)((char*)x + of->at);
    found = PyObject_GetAttr(x, of->name);
    if (found == NULL) PyErr_Clear();
    else Py_DECREF(found);
    return found;
}

/* The memory of a plain array that exists (borrowed), else NULL; `own`: it is not shared. */
static inline PyArrayObject* root_memory(Cell* root, int* own) {
    PyObject *base = root->base, *found;
    *own = base != Py_None;
    found = base == Py_None ? member_of(&member_array, member_of(&member_buffer, root->node)) : member_of(&member_draft, base);
    return found && PyArray_CheckExact(found) && PyArray_ISCARRAY_RO((PyArrayObject*)found) ? (PyArrayObject*)found : NULL;
}

/* Whether an array is read from a mapped file, whenever it is computed with. */
static inline int is_mapped(const Cell* root) { return root->base == Py_None && member_of(&member_shared, member_of(&member_buffer, root->node)) == Py_True; }

/* Bytes of a large array that is about to go, of which something else holds the memory: mostly a tape. */
static npy_intp large_orphaned(PyObject* self) {
    Cell* root = (Cell*)self;
    PyArrayObject* memory;
    int own;
    if (root->base == NULL || IS_RAW(root->base) || Py_TYPE(root->base) == &PyArray_Type || Py_TYPE(root->base) == array_type) return 0;
    memory = root_memory(root, &own);
    return memory && Py_REFCNT(memory) > 1 ? PyArray_NBYTES(memory) : 0;
}

static inline int is_part(PyObject* x) { return Py_TYPE(x) == array_type && ((Cell*)x)->shown; }

#define FIELDS(x) ((PyArrayObject_fields*)(x))

/* Whether memory of which there is no array of NumPy's yet is a result's own, of which there are no views. */
static inline int is_bare(PyArrayObject* x) { return FIELDS(x)->base == NULL && ((Raw*)x)->holds == NULL && ((Raw*)x)->views == 0; }

/* `PyArray_SIZE` and `PyArray_NBYTES` without a call: they are asked for at every use of a part. */
static inline npy_intp size_of(PyArrayObject* x) {
    npy_intp size = 1;
    for (int k = PyArray_NDIM(x); k--;) size *= PyArray_DIM(x, k);
    return size;
}
static inline npy_intp nbytes_of(PyArrayObject* x) { return size_of(x) * PyArray_ITEMSIZE(x); }

/* Whether no code of a program's runs when a reference to it goes. */
static inline int goes_quietly(PyObject* memory) {
    if (memory == NULL || Py_REFCNT(memory) > 1) return 1;
    return PyArray_CheckExact(memory) && PyArray_BASE((PyArrayObject*)memory) == NULL && FIELDS(memory)->weakreflist == NULL;
}

/* Memory that parts show no more, and whose end may run code: who asks what a part shows holds other memory without a reference.  It goes before the
   next operation that writes, or is none of the core's. */
static PyObject* faded; /* a list, made before there are parts */
static int faded_count;

static void faded_go(void) {
    PyObject *made = PyList_New(0), *held = faded;
    if (made == NULL) {
        PyErr_Clear();
        return;
    }
    faded = made, faded_count = 0;
    Py_DECREF(held);
}

/* What a part shows now (borrowed), of any size; NULL where its owner's value is yet to be computed.  No code of a program's runs. */
static PyArrayObject* part_shown(Cell* self, int* own) {
    PyArrayObject *shown = self->shown, *memory;
    if (self->base == NULL || Py_TYPE(self->base) != array_type) return NULL;
    memory = root_memory((Cell*)self->base, own);
    if (memory == NULL || nbytes_of(memory) != self->extent) return NULL; /* of another size: it was resized in place */
    if (PyArray_BASE(shown) != (PyObject*)memory) {
        if (!goes_quietly(PyArray_BASE(shown))) {
            if (PyList_Append(faded, PyArray_BASE(shown)) < 0) return PyErr_Clear(), NULL;
            faded_count = 1;
        }
        if (Py_REFCNT(shown) > 1) { /* another reference still reads the old memory */
            PyArrayObject* made = (PyArrayObject*)PyArray_NewFromDescr(
                &PyArray_Type, (Py_INCREF(PyArray_DESCR(shown)), PyArray_DESCR(shown)), PyArray_NDIM(shown), PyArray_DIMS(shown),
                PyArray_STRIDES(shown), PyArray_DATA(shown), 0, NULL);
            if (made == NULL) return PyErr_Clear(), NULL;
            Py_SETREF(self->shown, made);
            shown = made;
        }
        FIELDS(shown)->data = PyArray_BYTES(memory) + self->offset;
        Py_XSETREF(FIELDS(shown)->base, Py_NewRef((PyObject*)memory));
    }
    return shown;
}

/* Let go of the memory of large arrays: parts find it again. */
static void parts_release(void) {
    PyObject* held = PyList_New(0); /* what goes may run code, which may end parts: after the walk */
    if (held == NULL) {
        PyErr_Clear();
        return;
    }
    for (Cell* part = parts.after; part != &parts; part = part->after) {
        PyObject* base = FIELDS(part->shown)->base;
        if (base == NULL || Py_REFCNT(part->shown) > 1) continue;
        if (PyList_Append(held, base) < 0) {
            PyErr_Clear();
            break;
        }
        FIELDS(part->shown)->base = NULL;
        Py_DECREF(base);
    }
    Py_DECREF(held);
}

/* The parts that show the memory of a plain array, as a list. */
static PyObject* parts_of(PyObject* root) {
    PyObject* found = PyList_New(0);
    for (Cell* part = parts.after; found && part != &parts; part = part->after)
        if (part->base == root && Py_REFCNT(part) > 0 && PyList_Append(found, (PyObject*)part) < 0) Py_CLEAR(found);
    return found;
}

/* What a small array in memory holds, and what a small part shows (borrowed); NULL for everything else. */
static inline PyArrayObject* memory_of(PyObject* x) {
    PyObject* base;
    PyArrayObject* shown;
    int own;
    if (Py_TYPE(x) != array_type) return NULL;
    base = ((Cell*)x)->base;
    if (base == NULL) return NULL;
    if (Py_TYPE(base) == &PyArray_Type) return (PyArrayObject*)base;
    if (IS_RAW(base)) return cell_array(x);
    if (((Cell*)x)->shown == NULL || size_of(((Cell*)x)->shown) > limit_now()) return NULL;
    shown = part_shown((Cell*)x, &own);
    if (shown) PyArray_CLEARFLAGS(shown, NPY_ARRAY_WRITEABLE);
    return shown;
}

/* Whether an array may be large, or a part of a large one. */
static inline int is_large(PyObject* a) {
    PyObject* base = ((Cell*)a)->base;
    return base == NULL || !(Py_TYPE(base) == &PyArray_Type || IS_RAW(base));
}

/* The memory of a cell that has memory, to be read by macros alone (borrowed); NULL of all else. */
static inline PyArrayObject* plain_of(PyObject* x) { return Py_TYPE(x) != array_type || is_large(x) ? NULL : (PyArrayObject*)((Cell*)x)->base; }

/* The same for macros alone, also where there is no array yet. */
static inline PyArrayObject* seen_of(PyObject* x) {
    return Py_TYPE(x) == array_type && ((Cell*)x)->base && IS_RAW(((Cell*)x)->base) ? (PyArrayObject*)((Cell*)x)->base : memory_of(x);
}

/* The same to be written; NULL where Python has to see to it. */
static inline PyArrayObject* own_memory_of(PyObject* x) {
    PyArrayObject* memory = memory_of(x);
    int own;
    if (memory == NULL || (PyObject*)memory == ((Cell*)x)->base) return memory;
    if (((Cell*)x)->readonly != Py_False || root_memory((Cell*)((Cell*)x)->base, &own) == NULL || !own) return NULL;
    PyArray_ENABLEFLAGS(memory, NPY_ARRAY_WRITEABLE);
    return memory;
}

/* The cell that the memory of `x`, its `base`, belongs to (borrowed). */
static inline PyObject* owner_of(PyObject* x) {
    PyObject* owner = ((Cell*)x)->view; /* of memory that is no array's, bytes or a map, it is the cell that shows it first */
    return owner && owner != Py_None && (Py_TYPE(owner) == array_type || PyObject_TypeCheck(owner, array_type) || PyArray_CheckExact(owner)) ? owner : x;
}

/* A small array of NumPy's, which another library has made, if a cell could hold it: of a dtype that lazynp has, and in memory without gaps (borrowed);
   NULL for all else. */
static inline PyArrayObject* foreign_of(PyObject* x) {
    PyArrayObject* owner = (PyArrayObject*)x;
    npy_intp limit;
    if (!PyArray_CheckExact(x) || !native_dtype(owner) || (limit = limit_now()) == 0 || size_of(owner) > limit) return NULL;
    while (PyArray_BASE(owner) && PyArray_CheckExact(PyArray_BASE(owner))) owner = (PyArrayObject*)PyArray_BASE(owner);
    return PyArray_CHKFLAGS(owner, NPY_ARRAY_C_CONTIGUOUS) || PyArray_CHKFLAGS(owner, NPY_ARRAY_F_CONTIGUOUS) ? (PyArrayObject*)x : NULL;
}

/* A cell of such an array: both sides see what the other writes. */
static PyObject* foreign_cell(PyArrayObject* x) {
    PyObject* made = cell_of(Py_NewRef((PyObject*)x), PyArray_BASE(x));
    if (made && !PyArray_ISWRITEABLE(x)) Py_SETREF(((Cell*)made)->readonly, Py_NewRef(Py_True));
    return made;
}

/* `self` shows what `shown` (taken over) does of `memory`; `origin` says how Python is to name it, see `views.part`. */
static void part_show(Cell* self, PyArrayObject* shown, PyArrayObject* memory, PyObject* origin) {
    part_forget(self);
    if (PyArray_BASE(shown) != (PyObject*)memory) Py_XSETREF(FIELDS(shown)->base, Py_NewRef((PyObject*)memory));
    self->shown = shown;
    self->offset = PyArray_BYTES(shown) - PyArray_BYTES(memory);
    self->extent = nbytes_of(memory);
    self->origin = Py_NewRef(origin);
    self->whole = 0;
    self->after = parts.after;
    self->before = &parts;
    parts.after->before = self;
    parts.after = self;
}

/* The cell of what NumPy made of `from`, a part or the plain array `root` (`found` is taken over). */
static Cell* part_from(Cell* root, PyObject* from, PyArrayObject* memory, PyArrayObject* found, PyObject* origin) {
    Cell* made;
    if (origin == NULL) return Py_DECREF(found), NULL;
    Py_INCREF(root), Py_INCREF(origin); /* making a cell may run code, and `from` be another part then */
    if ((made = cell_new()) == NULL) {
        Py_DECREF(root), Py_DECREF(origin), Py_DECREF(found);
        return NULL;
    }
    made->base = (PyObject*)root;
    made->node = Py_NewRef(Py_None);
    made->view = NULL;
    made->stamp = Py_NewRef(Py_None);
    made->readonly = Py_XNewRef(((Cell*)from)->readonly);
    part_show(made, found, memory, origin);
    Py_DECREF(origin);
    return made; /* untracked: what it holds, an array that exists, leads back to it in no program worth a collection a slice */
}

/* How Python is to name parts of `from` (borrowed). */
static PyObject* origin_of(Cell* root, PyObject* from) {
    Cell* self = (Cell*)from;
    if (self->shown == NULL) return (PyObject*)root;
    if (self->whole) { /* by a reshape of the owner's, and a key */
        PyObject* shape = lengths_tuple(PyArray_NDIM(self->shown), PyArray_DIMS(self->shown));
        PyObject* origin = shape ? PyTuple_Pack(3, self->origin, Py_None, shape) : NULL;
        Py_XDECREF(shape);
        if (origin == NULL) return NULL;
        Py_SETREF(self->origin, origin);
        self->whole = 0;
    }
    return self->origin;
}

/* The same of a part of `from`. */
static PyObject* part_of(Cell* root, PyObject* from, PyArrayObject* memory, PyArrayObject* found) {
    PyObject *origin = origin_of(root, from), *held, *made;
    if (origin == NULL || !PyTuple_CheckExact(origin) || PyTuple_GET_ITEM(origin, 0) != Py_None) return (PyObject*)part_from(root, from, memory, found, origin);
    held = Py_NewRef(origin);
    origin = PyTuple_Pack(3, from, PyTuple_GET_ITEM(held, 1), PyTuple_GET_ITEM(held, 2)); /* `from` is whose memory it is */
    made = (PyObject*)part_from(root, from, memory, found, origin);
    Py_XDECREF(origin), Py_DECREF(held);
    return made;
}

/* The same of all of `from`, which is all of the owner's memory, in another shape. */
static PyObject* part_whole(Cell* root, PyObject* from, PyArrayObject* memory, PyArrayObject* found) {
    PyObject* origin = ((Cell*)from)->shown ? ((Cell*)from)->origin : from;
    Cell* made;
    if (PyTuple_CheckExact(origin)) origin = PyTuple_GET_ITEM(origin, 0) == Py_None ? from : PyTuple_GET_ITEM(origin, 0);
    if ((made = part_from(root, from, memory, found, origin))) made->whole = 1;
    return (PyObject*)made;
}

/* What an array that exists in memory of its own, or a part of one, shows (borrowed), and who owns the memory; NULL for everything else. */
static PyArrayObject* stored_memory(PyObject* a, Cell** root, PyArrayObject** memory, int* own) {
    Cell* self = (Cell*)a;
    if (Py_TYPE(a) != array_type || self->base == NULL) return NULL;
    if (Py_TYPE(self->base) == array_type) {
        PyArrayObject* shown = self->shown ? part_shown(self, own) : NULL;
        if (shown == NULL) return NULL;
        *root = (Cell*)self->base;
        *memory = (PyArrayObject*)PyArray_BASE(shown);
        if (!*own) PyArray_CLEARFLAGS(shown, NPY_ARRAY_WRITEABLE);
        return shown;
    }
    *root = self;
    return *memory = root_memory(self, own);
}

/* The same of large arrays, where small ones are kept in memory; elsewhere everything but reads and views is recorded. */
static PyArrayObject* large_memory(PyObject* a, Cell** root, PyArrayObject** memory, int* own) {
    return limit_now() ? stored_memory(a, root, memory, own) : NULL;
}

static int part_attach(PyObject* x, PyObject* view, PyObject* shown, PyObject* memory, PyObject* origin) {
    if (Py_TYPE(x) != array_type || !PyArray_CheckExact(shown) || !PyArray_CheckExact(memory) || Py_REFCNT(shown) > 2)
        return PyErr_SetString(PyExc_TypeError, "not a part of an array"), -1;
    if (((Cell*)x)->view != view) return 0; /* a handler or another thread has given it another shape */
    part_show((Cell*)x, (PyArrayObject*)Py_NewRef(shown), (PyArrayObject*)memory, origin);
    return 0;
}

/* Integers, slices, new axes and an ellipsis. */
static inline int is_basic_part(PyObject* key) {
    PyTypeObject* type = Py_TYPE(key);
    return type == &PyLong_Type || type == &PySlice_Type || key == Py_None || key == Py_Ellipsis || IS_A(key, NPY_LONG);
}
static int is_basic(PyObject* key) {
    if (!PyTuple_CheckExact(key)) return is_basic_part(key);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key); k++)
        if (!is_basic_part(PyTuple_GET_ITEM(key, k))) return 0;
    return 1;
}

/* Where a key of integers, slices and new axes leads. */
#define PLACE_AXES 8 /* of an array, and parts of a key */
typedef struct {
    int ndim;
    npy_intp dims[2 * PLACE_AXES], strides[2 * PLACE_AXES];
    char* data;
} Place;

static inline int has_elements(const Place* at) {
    for (int k = 0; k < at->ndim; k++)
        if (at->dims[k] == 0) return 0;
    return 1;
}

static inline int integer_of(PyObject* x, npy_intp* to) {
    if (IS_A(x, NPY_LONG)) return *to = PyArrayScalar_VAL(x, Long), 1;
    if (!PyLong_CheckExact(x)) return 0;
    *to = PyLong_AsSsize_t(x);
    return *to == -1 && PyErr_Occurred() ? (PyErr_Clear(), 0) : 1;
}

/* What a slice takes of `length` elements: how many (-1, without an exception, where NumPy has to see to it), from which one on, how far apart.  None where there are none, as NumPy has it. */
static inline npy_intp slice_taken(const PySliceObject* slice, npy_intp length, npy_intp* first, npy_intp* step) {
    npy_intp at, stop, none;
    if (slice->step == Py_None) *step = 1;
    else if (!integer_of(slice->step, step) || *step == 0 || *step < -PY_SSIZE_T_MAX) return -1;
    none = *step < 0 ? -1 : 0; /* before the first, or behind the last, which a slice backwards ends with */
    if (slice->start == Py_None) at = *step < 0 ? length - 1 : 0;
    else if (!integer_of(slice->start, &at)) return -1;
    else if (at < 0 && (at += length) < 0) at = none;
    else if (at >= length) at = length + none;
    if (slice->stop == Py_None) stop = *step < 0 ? -1 : length;
    else if (!integer_of(slice->stop, &stop)) return -1;
    else if (stop < 0 && (stop += length) < 0) stop = none;
    else if (stop >= length) stop = length + none;
    length = *step == 1 ? stop - at : *step < 0 ? (at > stop ? (at - stop - 1) / -*step + 1 : 0) : at < stop ? (stop - at - 1) / *step + 1 : 0;
    *first = at;
    return length > 0 ? length : (*first = 0, *step = 1, 0);
}

/* 0, without an exception, where NumPy has to see to it: elements, other keys, and such as it refuses. */
static int place_of(PyArrayObject* x, PyObject* key, Place* to) {
    PyObject** parts = PyTuple_CheckExact(key) ? &PyTuple_GET_ITEM(key, 0) : &key;
    Py_ssize_t n = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
    npy_intp length, at, step;
    int axis = 0, ndim = PyArray_NDIM(x), ellipsis = 0;
    if (n == 0 || n > PLACE_AXES || ndim > PLACE_AXES) return 0;
    to->ndim = 0, to->data = PyArray_BYTES(x);
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject* part = parts[k];
        if (part == Py_None) {
            to->dims[to->ndim] = 1, to->strides[to->ndim++] = 0;
            continue;
        }
        if (part == Py_Ellipsis) { /* all axes that no other part of the key names */
            int left = ndim - axis;
            if (ellipsis++) return 0;
            for (Py_ssize_t i = k + 1; i < n; i++) left -= parts[i] != Py_None;
            for (; left > 0; left--, axis++) to->dims[to->ndim] = PyArray_DIM(x, axis), to->strides[to->ndim++] = PyArray_STRIDE(x, axis);
            continue;
        }
        if (axis == ndim) return 0;
        length = PyArray_DIM(x, axis);
        if (PySlice_Check(part)) {
            if ((length = slice_taken((PySliceObject*)part, length, &at, &step)) < 0) return 0;
            to->dims[to->ndim] = length;
            to->strides[to->ndim++] = (npy_intp)((npy_uintp)PyArray_STRIDE(x, axis) * (npy_uintp)step);
        } else if (integer_of(part, &at)) {
            if (at < 0) at += length;
            if (at < 0 || at >= length) return 0;
        } else {
            return 0;
        }
        to->data += at * PyArray_STRIDE(x, axis++);
    }
    for (; axis < ndim; axis++) to->dims[to->ndim] = PyArray_DIM(x, axis), to->strides[to->ndim++] = PyArray_STRIDE(x, axis);
    return to->ndim > 0;
}

/* An array over a place in the memory of `x`, which is yet to be its base. */
static PyObject* shown_at(PyArrayObject* x, int ndim, const npy_intp* dims, const npy_intp* strides, char* data) {
    PyArrayObject_fields* of;
    int kind = ndim - 1;
    if (kind < 0 || kind > 1 || kept_shown_count[kind] == 0 || !native_dtype(x) || !PyArray_ISALIGNED(x) || PyArray_FLAGS(x) < 0) {
        Py_INCREF(PyArray_DESCR(x));
        return PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(x), ndim, (npy_intp*)dims, (npy_intp*)strides, data, PyArray_FLAGS(x), NULL);
    }
    of = FIELDS(kept_shown[kind][--kept_shown_count[kind]]);
    if (of->descr != PyArray_DESCR(x)) Py_SETREF(of->descr, (PyArray_Descr*)Py_NewRef((PyObject*)PyArray_DESCR(x)));
    for (int k = 0; k < ndim; k++) of->dimensions[k] = dims[k], of->strides[k] = strides[k];
    of->data = data;
    of->flags = flags_of(ndim, dims, strides, PyArray_ITEMSIZE(x), PyArray_FLAGS(x) & (NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE));
    return (PyObject*)of;
}

/* NumPy's `x[key]`; a view without the way through all kinds of keys. */
static inline PyObject* subscript(PyArrayObject* x, PyObject* key) {
    PyObject* made;
    Place at;
    if (!place_of(x, key, &at)) return PyArray_Type.tp_as_mapping->mp_subscript((PyObject*)x, key);
    made = shown_at(x, at.ndim, at.dims, at.strides, at.data);
    if (made && PyArray_SetBaseObject((PyArrayObject*)made, Py_NewRef((PyObject*)x)) < 0) Py_CLEAR(made);
    return made;
}

/* Whether `a` is a view of an array that exists, which the core was not shown yet. */
static PyObject* show_method;
static inline int is_unseen(PyObject* a) {
    Cell* self = (Cell*)a;
    int own;
    return Py_TYPE(a) == array_type && self->base && Py_TYPE(self->base) == array_type && self->shown == NULL && limit_now() && root_memory((Cell*)self->base, &own);
}

/* The place that all of an array is. */
static int place_whole(PyArrayObject* x, Place* at) {
    if (PyArray_NDIM(x) == 0 || PyArray_NDIM(x) > PLACE_AXES) return 0;
    at->ndim = PyArray_NDIM(x), at->data = PyArray_BYTES(x);
    memcpy(at->dims, PyArray_DIMS(x), (size_t)at->ndim * sizeof(npy_intp)), memcpy(at->strides, PyArray_STRIDES(x), (size_t)at->ndim * sizeof(npy_intp));
    return 1;
}

/* `large_memory`, also of a view that Python made: from now on it is a part like others; NULL, perhaps with an exception. */
static PyArrayObject* seen_memory(PyObject* a, Cell** root, PyArrayObject** memory, int* own) {
    PyArrayObject* from = large_memory(a, root, memory, own);
    PyObject* found;
    if (from || !is_unseen(a)) return from;
    if ((found = PyObject_CallOneArg(show_method, a)) == NULL) return NULL;
    Py_DECREF(found);
    return large_memory(a, root, memory, own);
}

/* `a[key]` of a large array that exists, of a basic key that selects few elements (many are recorded
   where the memory is shared); NULL, perhaps without an exception, where Python has to answer. */
static PyObject* large_getitem(PyObject* a, PyObject* key) {
    PyArrayObject *from, *memory;
    PyObject* found;
    Cell* root;
    int own;
    if ((from = seen_memory(a, &root, &memory, &own)) == NULL) return NULL;
    Py_INCREF(from), Py_INCREF(memory), Py_INCREF(root);
    found = subscript(from, key);
    if (found && PyArray_CheckExact(found)) {
        npy_intp size = size_of((PyArrayObject*)found);
        if (size && (own || size <= tapes_limit()) && PyArray_BASE((PyArrayObject*)found)) found = part_of(root, a, memory, (PyArrayObject*)found);
        else Py_CLEAR(found);
    }
    Py_DECREF(from), Py_DECREF(memory), Py_DECREF(root);
    return found;
}

/* Whether an array, which has elements, begins in the memory of another one. */
static inline int lies_within(PyArrayObject* x, PyArrayObject* memory) {
    return PyArray_BYTES(x) >= PyArray_BYTES(memory) && PyArray_BYTES(x) < PyArray_BYTES(memory) + nbytes_of(memory);
}

/* All elements of a large array that exists, or of a part of one, in another shape or with axes in another order, as `view`, which is given `with`, makes
   them of NumPy's array (NULL: in one row); NULL, perhaps without an exception, where Python has to answer. */
typedef PyObject* (*ViewOf)(PyArrayObject* x, const void* with);
static PyObject* large_view(PyObject* a, ViewOf view, const void* with, int in_order) {
    PyArrayObject *from, *memory;
    PyObject* found;
    Cell* root;
    npy_intp size;
    int own, whole = 0;
    if ((from = stored_memory(a, &root, &memory, &own)) == NULL) from = seen_memory(a, &root, &memory, &own);
    if (from == NULL || (size = size_of(from)) == 0) return NULL;
    if (in_order && size > limit_now()) { /* a copy is recorded; parts of a reshape are named by it and a key */
        whole = from == memory || size * PyArray_ITEMSIZE(from) == ((Cell*)a)->extent;
        if (!whole || !PyArray_IS_C_CONTIGUOUS(from)) return NULL;
    }
    Py_INCREF(from), Py_INCREF(memory);
    if (view == NULL && PyArray_IS_C_CONTIGUOUS(from)) {
        Py_INCREF(PyArray_DESCR(from));
        found = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(from), 1, &size, NULL, PyArray_BYTES(from), PyArray_FLAGS(from), NULL);
        if (found) FIELDS(found)->base = Py_NewRef((PyObject*)memory);
    } else {
        found = view ? view(from, with) : PyArray_Ravel(from, NPY_CORDER);
    }
    if (found && PyArray_CheckExact(found) && PyArray_BASE((PyArrayObject*)found) && !lies_within((PyArrayObject*)found, memory)) /* a copy, in another shape */
        Py_SETREF(found, PyArray_NewCopy((PyArrayObject*)found, NPY_CORDER));
    if (found && (!PyArray_CheckExact(found) || Py_REFCNT(found) > 1)) Py_CLEAR(found);
    else if (found && PyArray_BASE((PyArrayObject*)found) == NULL) found = cell_of(found, NULL);
    else if (found) found = (whole ? part_whole : part_of)(root, a, memory, (PyArrayObject*)found);
    Py_DECREF(from), Py_DECREF(memory);
    return found;
}

static inline int same_place(PyArrayObject* x, PyArrayObject* y) {
    return PyArray_DATA(x) == PyArray_DATA(y) && PyArray_SAMESHAPE(x, y) && PyArray_DESCR(x) == PyArray_DESCR(y) &&
           (PyArray_NDIM(x) == 0 || memcmp(PyArray_STRIDES(x), PyArray_STRIDES(y), (size_t)PyArray_NDIM(x) * sizeof(npy_intp)) == 0);
}

/* How a part lies in its owner (`views.View`), made when Python first asks for it. */
static PyObject* view_method;

static PyObject* get_view(PyObject* object, void* closure) {
    Cell* self = (Cell*)object;
    (void)closure;
    if (self->view == NULL) {
        PyArrayObject* shown = (PyArrayObject*)Py_XNewRef((PyObject*)self->shown);
        PyObject* made;
        if (shown == NULL) return PyErr_SetString(PyExc_AttributeError, "_view"), NULL;
        if (origin_of((Cell*)self->base, object) == NULL) return NULL;
        made = PyObject_CallFunction(
            view_method, "OOnNNO", self->base, self->origin, (Py_ssize_t)self->offset, lengths_tuple(PyArray_NDIM(shown), PyArray_DIMS(shown)),
            lengths_tuple(PyArray_NDIM(shown), PyArray_STRIDES(shown)), (PyObject*)PyArray_DESCR(shown));
        Py_DECREF(shown);
        if (made == NULL) return NULL;
        if (self->view == NULL) self->view = made;
        else Py_DECREF(made);
    }
    return Py_NewRef(self->view);
}

static int set_view(PyObject* object, PyObject* value, void* closure) {
    Cell* self = (Cell*)object;
    PyObject *old_view = self->view, *old_stamp = self->stamp;
    (void)closure;
    self->view = Py_XNewRef(value);
    if (old_stamp) self->stamp = Py_NewRef(Py_None); /* the node that it knows is another view's */
    part_forget(self);
    Py_XDECREF(old_view), Py_XDECREF(old_stamp);
    return 0;
}

static PyGetSetDef cell_getset[] = {
    {"_base", cell_value, cell_set_value, NULL, (void*)offsetof(Cell, base)}, {"_node", cell_value, cell_set_value, NULL, (void*)offsetof(Cell, node)},
    {"_view", get_view, set_view, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

#endif
