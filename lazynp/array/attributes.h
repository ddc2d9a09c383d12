/* Attributes that are known of what waits: `shape`, `dtype`, `ndim`, `size`.

   In: an array.  Out: NumPy's answer.  Promise: nothing is computed for it; of what is no array in memory, and does not wait, the property in Python tells. */

#ifndef LAZYNP_ATTRIBUTES_H
#define LAZYNP_ATTRIBUTES_H

#include "putting.h"

enum { ITS_SHAPE, ITS_DTYPE, ITS_NDIM, ITS_SIZE };

typedef struct {
    PyObject_HEAD
    PyObject* slow; /* the property */
    int which;
} Property;

static PyObject* property_get(PyObject* object, PyObject* x, PyObject* type) {
    Property* self = (Property*)object;
    const npy_intp* dims = NULL;
    npy_intp size = 1;
    int ndim = 0, number = -1;
    PyArrayObject* shown = NULL;
    if (x == NULL || x == Py_None) return Py_NewRef(object);
    if (Py_TYPE(x) == array_type && WAITS(x) && CHAIN_OF(x)) {
        ndim = CHAIN_OF(x)->ndim, dims = CHAIN_OF(x)->dims, number = step_type(CHAIN_OF(x), STEP_OF(x));
    } else if (Py_TYPE(x) == array_type && ((Cell*)x)->base && (IS_RAW(((Cell*)x)->base) || Py_TYPE(((Cell*)x)->base) == &PyArray_Type)) {
        shown = (PyArrayObject*)((Cell*)x)->base;
        ndim = PyArray_NDIM(shown), dims = PyArray_DIMS(shown);
    } else {
        return Py_TYPE(self->slow)->tp_descr_get(self->slow, x, type);
    }
    switch (self->which) {
    case ITS_SHAPE: return lengths_tuple(ndim, dims);
    case ITS_DTYPE: return shown ? Py_NewRef((PyObject*)PyArray_DESCR(shown)) : (PyObject*)PyArray_DescrFromType(number);
    case ITS_NDIM: return PyLong_FromLong(ndim);
    default:
        for (int k = 0; k < ndim; k++) size *= dims[k];
        return PyLong_FromSsize_t(size);
    }
}

static int property_set(PyObject* object, PyObject* x, PyObject* value) {
    PyObject* slow = ((Property*)object)->slow;
    return SETTLED ? Py_TYPE(slow)->tp_descr_set(slow, x, value) : -1;
}

static void property_dealloc(PyObject* self) {
    Py_XDECREF(((Property*)self)->slow);
    PyObject_Free(self);
}

static PyObject* property_getattro(PyObject* self, PyObject* name) {
    PyObject* found = PyObject_GetAttr(((Property*)self)->slow, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return PyObject_GenericGetAttr(self, name);
}

static PyTypeObject property_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Property", .tp_basicsize = sizeof(Property), .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = property_dealloc, .tp_getattro = property_getattro, .tp_descr_get = property_get, .tp_descr_set = property_set};

static PyObject* property_new(PyObject* slow, int which) {
    Property* made = PyType_Ready(&property_type) < 0 ? NULL : PyObject_New(Property, &property_type);
    if (made == NULL) return NULL;
    made->slow = Py_NewRef(slow), made->which = which;
    return (PyObject*)made;
}

#endif
