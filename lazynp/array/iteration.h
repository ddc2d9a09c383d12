/* Iteration over the first axis, and over all elements (`flat`).

   In: an array.  Out: rows and elements, one by one.  Promise: the array may have another shape, or other memory, each time. */

#ifndef LAZYNP_ITERATION_H
#define LAZYNP_ITERATION_H

#include "subscripts.h"

/* Iteration over the first axis: elements as NumPy gives them, or rows. */
typedef struct {
    PyObject_HEAD
    PyObject* array;
    Py_ssize_t at;
} Rows;

static void rows_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Rows*)self)->array);
    PyObject_GC_Del(self);
}
static int rows_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(((Rows*)self)->array);
    return 0;
}
/* Row or element `at` of `from`, what the large array `a` shows, as `large_getitem` has it. */
static PyObject* large_row(PyObject* a, npy_intp at, Cell* root, PyArrayObject* from, PyArrayObject* memory, int own) {
    PyObject* found;
    if (PyArray_NDIM(from) == 1) return PyArray_ISBEHAVED_RO(from) ? element(from, PyArray_BYTES(from) + at * PyArray_STRIDE(from, 0)) : NULL;
    if (PyArray_SIZE(from) == 0 || !(own || PyArray_SIZE(from) / PyArray_DIM(from, 0) <= limit_now())) return NULL;
    Py_INCREF(from), Py_INCREF(memory), Py_INCREF(root);
    found = shown_at(from, PyArray_NDIM(from) - 1, PyArray_DIMS(from) + 1, PyArray_STRIDES(from) + 1, PyArray_BYTES(from) + at * PyArray_STRIDE(from, 0));
    if (found) found = part_of(root, a, memory, (PyArrayObject*)found);
    Py_DECREF(from), Py_DECREF(memory), Py_DECREF(root);
    return found;
}

static PyObject* rows_next(PyObject* object) { /* the array may have another shape each time */
    Rows* self = (Rows*)object;
    int large, own = 0;
    PyArrayObject *x = NULL, *memory;
    PyObject *array = self->array, *index, *found = NULL;
    Cell* root;
    if (array == NULL) return NULL;
    large = Py_TYPE(array) != array_type || is_large(array);
    if (!large) x = plain_of(array);
    else if (Py_TYPE(array) == array_type) x = large_memory(array, &root, &memory, &own);
    if (x && !large && PyArray_NDIM(x) && self->at < PyArray_DIM(x, 0)) {
        if (PyArray_NDIM(x) == 1 && PyArray_ISBEHAVED_RO(x)) return element(x, PyArray_BYTES(x) + self->at++ * PyArray_STRIDE(x, 0));
        found = viewed(array, x, PyArray_NDIM(x) - 1, PyArray_DIMS(x) + 1, PyArray_STRIDES(x) + 1, PyArray_BYTES(x) + self->at * PyArray_STRIDE(x, 0));
        if (found || PyErr_Occurred()) return self->at++, found;
        if ((x = memory_of(array)) == NULL) return PyErr_NoMemory();
        found = PyArray_Type.tp_as_sequence->sq_item((PyObject*)x, self->at++); /* a view, which runs no code */
        return found && PyArray_CheckExact(found) ? cell_of(found, owner_of(array)) : found;
    }
    Py_INCREF(array);
    if (self->at >= (x && PyArray_NDIM(x) ? PyArray_DIM(x, 0) : slot_len(array))) {
        Py_CLEAR(self->array);
    } else {
        if (x && large && PyArray_NDIM(x)) found = large_row(array, self->at, root, x, memory, own);
        if (found == NULL && !PyErr_Occurred() && (index = PyLong_FromSsize_t(self->at))) {
            found = slot_getitem(array, index);
            Py_DECREF(index);
        }
        self->at++;
    }
    Py_DECREF(array);
    return found;
}

static PyObject* rows_left(PyObject* object, PyObject* none) {
    Rows* self = (Rows*)object;
    Py_ssize_t length = self->array ? slot_len(self->array) : 0;
    (void)none;
    return length < 0 ? NULL : PyLong_FromSsize_t(length > self->at ? length - self->at : 0);
}

/* As Python's own iterators over sequences: an array to go through, and from where. */
static PyObject* rows_reduce(PyObject* object, PyObject* none) {
    Rows* self = (Rows*)object;
    PyObject* iter = PyDict_GetItemString(PyEval_GetBuiltins(), "iter");
    (void)none;
    if (iter == NULL) return PyErr_SetString(PyExc_AttributeError, "iter"), NULL;
    return self->array ? Py_BuildValue("(O(O)n)", iter, self->array, self->at) : Py_BuildValue("(O(()))", iter);
}

static PyObject* rows_set(PyObject* object, PyObject* at) {
    Py_ssize_t index = PyLong_AsSsize_t(at);
    if (index == -1 && PyErr_Occurred()) return NULL;
    ((Rows*)object)->at = index < 0 ? 0 : index;
    Py_RETURN_NONE;
}

static PyMethodDef rows_methods[] = {
    {"__length_hint__", rows_left, METH_NOARGS, NULL}, {"__reduce__", rows_reduce, METH_NOARGS, NULL}, {"__setstate__", rows_set, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyTypeObject rows_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Rows",
    .tp_doc = "The rows of an array, one after the other.",
    .tp_basicsize = sizeof(Rows),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = rows_dealloc,
    .tp_traverse = rows_traverse,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = rows_next,
    .tp_methods = rows_methods,
};

static PyObject* rows_of_array(PyObject* a) {
    Rows* made = PyObject_GC_New(Rows, &rows_type);
    if (made == NULL) return NULL;
    made->array = Py_NewRef(a);
    made->at = 0;
    PyObject_GC_Track((PyObject*)made);
    return (PyObject*)made;
}

static PyObject* slot_iter(PyObject* a) {
    PyArrayObject* x;
    if (settle_operand(a) < 0) return NULL;
    x = is_large(a) ? read_memory(a) : memory_of(a);
    return x && PyArray_NDIM(x) ? rows_of_array(a) : slow1(slow_methods[ITER], a);
}

/* All elements in C order, as `flat` gives them; what is not in memory is for the methods `_next`, `_read` and `_write` of the class that derives from this one. */
typedef struct {
    PyObject_HEAD
    PyObject* array;
    Py_ssize_t at;
} Elements;

static PyTypeObject* flat_type; /* that class, once it is registered */
static PyObject *flat_kept, *next_name, *read_name, *write_name; /* the memory of one that is gone: `a.flat[k]` makes one at every turn */

static int elements_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(((Elements*)self)->array);
    return 0;
}
static int elements_clear(PyObject* self) {
    Py_CLEAR(((Elements*)self)->array);
    return 0;
}
static void elements_dealloc(PyObject* self) { /* of the base class alone */
    PyObject_GC_UnTrack(self);
    elements_clear(self);
    Py_TYPE(self)->tp_free(self);
}
static void flat_dealloc(PyObject* self) { /* of the class that is registered, which adds nothing */
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    elements_clear(self);
    if (flat_kept == NULL) flat_kept = self;
    else PyObject_GC_Del(self);
    Py_DECREF(type);
}
static PyObject* elements_new(PyObject* a, int ndim) { /* NULL, without an exception, where the class has to see to it */
    Elements* made;
    if (flat_type == NULL || ndim > 32) return NULL;
    made = (Elements*)flat_kept;
    flat_kept = NULL; /* before one is made, which may run code */
    made = made ? (Elements*)PyObject_Init((PyObject*)made, flat_type) : PyObject_GC_New(Elements, flat_type);
    if (made == NULL) return NULL;
    made->array = Py_NewRef(a);
    made->at = 0;
    PyObject_GC_Track((PyObject*)made);
    return (PyObject*)made;
}

/* Where element `k` lies, counted from the end if it is negative; NULL of arrays that are not in memory, and beyond the ends. */
static char* element_in_order(PyArrayObject* x, npy_intp k) {
    npy_intp size = x ? PyArray_SIZE(x) : 0;
    char* at;
    if (k < 0) k += size;
    if (k < 0 || k >= size || !PyArray_ISBEHAVED_RO(x)) return NULL;
    at = PyArray_BYTES(x);
    if (PyArray_IS_C_CONTIGUOUS(x)) return at + k * PyArray_ITEMSIZE(x);
    for (int axis = PyArray_NDIM(x); axis--; k /= PyArray_DIM(x, axis)) at += k % PyArray_DIM(x, axis) * PyArray_STRIDE(x, axis);
    return at;
}

static inline PyArrayObject* elements_memory(PyObject* a) {
    return a == NULL || Py_TYPE(a) != array_type ? NULL : is_large(a) ? stored(a) : memory_of(a);
}

static PyObject* elements_next(PyObject* object) {
    Elements* self = (Elements*)object;
    PyArrayObject* x = elements_memory(self->array);
    char* at = self->at < 0 ? NULL : element_in_order(x, self->at);
    if (at == NULL) return PyObject_CallMethodNoArgs(object, next_name);
    self->at++;
    return element(x, at);
}

static PyObject* elements_read(PyObject* object, PyObject* key) {
    Elements* self = (Elements*)object;
    PyArrayObject* x = elements_memory(self->array);
    npy_intp k;
    char* at = x && integer_of(key, &k) ? element_in_order(x, k) : NULL;
    self->at = 0; /* NumPy's begins anew, too */
    return at ? element(x, at) : PyObject_CallMethodOneArg(object, read_name, key);
}

static int elements_write(PyObject* object, PyObject* key, PyObject* value) {
    Elements* self = (Elements*)object;
    PyObject* a = self->array;
    PyArrayObject *x = NULL, *memory;
    Cell* root;
    npy_intp k;
    Value number;
    char* at;
    int own = 1;
    if (!SETTLED) return -1;
    if (value == NULL) return PyErr_SetString(PyExc_TypeError, "Cannot delete iterator elements"), -1;
    if (a && Py_TYPE(a) == array_type && ((Cell*)a)->readonly == Py_False && is_number(value))
        x = is_large(a) ? large_memory(a, &root, &memory, &own) : own_memory_of(a);
    if (x && own && (is_large(a) || is_writable(x)) && integer_of(key, &k) && (at = element_in_order(x, k)) && value_of(value, PyArray_TYPE(x), &number)) {
        memcpy(at, &number, (size_t)PyArray_ITEMSIZE(x));
        self->at = 0;
        return 0;
    }
    if (PyErr_Occurred()) return -1;
    a = PyObject_CallMethodObjArgs(object, write_name, key, value, NULL);
    Py_XDECREF(a);
    return a ? 0 : -1;
}

static PyMemberDef elements_members[] = {
    {"_array", T_OBJECT, offsetof(Elements, array), 0, NULL}, {"_index", T_PYSSIZET, offsetof(Elements, at), 0, NULL}, {NULL, 0, 0, 0, NULL}};
static PyMappingMethods elements_mapping = {.mp_subscript = elements_read, .mp_ass_subscript = elements_write};
static PyTypeObject elements_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Elements",
    .tp_doc = "The elements of an array, one after the other.",
    .tp_basicsize = sizeof(Elements),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = elements_dealloc,
    .tp_traverse = elements_traverse,
    .tp_clear = elements_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = elements_next,
    .tp_as_mapping = &elements_mapping,
    .tp_members = elements_members,
};

/* Make `type`, which derives from Elements, the class of what `flat` gives. */
static void elements_register(PyTypeObject* type) {
    flat_type = type;
    type->tp_dealloc = flat_dealloc;
}

#endif
