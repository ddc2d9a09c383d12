/* The cell: what every array is made of, in C.

   In: a NumPy array and its owner.  Out: a new object of the class of arrays.  Promise: its attributes are plain members, which the
   interpreter's inline caches know; a cell that holds a NumPy array only is no work for the garbage collector, for it is in no cycle. */

#ifndef LAZYNP_CELL_H
#define LAZYNP_CELL_H

#include <Python.h>
#include <structmember.h>
#include <stddef.h>

typedef struct {
    PyObject_HEAD
    PyObject *base, *node, *view, *stamp, *readonly;
    PyObject* weakrefs;
} Cell;

static PyTypeObject* array_type; /* the class of arrays, once it is registered */

static PyMemberDef cell_members[] = {
    {"_base", T_OBJECT_EX, offsetof(Cell, base), 0, NULL},   {"_node", T_OBJECT_EX, offsetof(Cell, node), 0, NULL},
    {"_view", T_OBJECT_EX, offsetof(Cell, view), 0, NULL},   {"_stamp", T_OBJECT_EX, offsetof(Cell, stamp), 0, NULL},
    {"_readonly", T_OBJECT_EX, offsetof(Cell, readonly), 0, NULL}, {NULL, 0, 0, 0, NULL}};

static int cell_traverse(Cell* self, visitproc visit, void* arg) {
    Py_VISIT(self->base);
    Py_VISIT(self->node);
    Py_VISIT(self->view);
    Py_VISIT(self->stamp);
    return 0;
}

static int cell_clear(Cell* self) {
    Py_CLEAR(self->base);
    Py_CLEAR(self->node);
    Py_CLEAR(self->view);
    Py_CLEAR(self->stamp);
    return 0;
}

static inline void cell_release(Cell* self) {
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject*)self);
    cell_clear(self);
    Py_CLEAR(self->readonly);
}

static void cell_dealloc(Cell* self) { /* of a subclass: the subclass's own part is done, and it lets its type go */
    cell_release(self);
    Py_TYPE(self)->tp_free(self);
}

static void array_dealloc(Cell* self) { /* of the class of arrays itself, which adds nothing to a cell */
    PyTypeObject* type = Py_TYPE(self);
    cell_release(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject* cell_create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    (void)args, (void)kwargs;
    return type->tp_alloc(type, 0);
}

static PyTypeObject cell_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Cell",
    .tp_doc = "What every array is made of; see ``lazynp.arrays.ndarray`` for the meaning of its slots.",
    .tp_basicsize = sizeof(Cell),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = cell_create,
    .tp_dealloc = (destructor)cell_dealloc,
    .tp_traverse = (traverseproc)cell_traverse,
    .tp_clear = (inquiry)cell_clear,
    .tp_weaklistoffset = offsetof(Cell, weakrefs),
    .tp_members = cell_members,
};

#endif
