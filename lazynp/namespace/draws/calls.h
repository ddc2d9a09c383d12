/* Methods of a generator, called.

   In: a bound method of NumPy's and a call of it.  Out: NumPy's answer.  Promise: what is not plain (arrays of parameters, a dtype, `out`, what
   NumPy refuses) is NumPy's to answer; the generator's lock is held while numbers are drawn, as NumPy holds it. */

#ifndef LAZYNP_CALLS_H
#define LAZYNP_CALLS_H

#include <Python.h>
#include <structmember.h>

#include <numpy/arrayobject.h>
#include <numpy/random/bitgen.h>

#include "numbers.h"

#define MOST_AXES 8
#define LONG 4096 /* numbers that other threads may run beside */

typedef void (*Fill)(Stream*, double*, size_t);

/* The numbers that a method has before the size, and what they are if they are not given. */
typedef struct {
    const char *name, *parameters[2];
    double defaults[2];
    Fill fill; /* NULL: whole numbers */
    int needed;
} Method;
static const Method methods[] = {
    {"random", {NULL, NULL}, {0, 0}, random_fill, 0},
    {"standard_normal", {NULL, NULL}, {0, 0}, normal_fill, 0},
    {"standard_exponential", {NULL, NULL}, {0, 0}, exponential_fill, 0},
    {"uniform", {"low", "high"}, {0, 1}, random_fill, 0},
    {"normal", {"loc", "scale"}, {0, 1}, normal_fill, 0},
    {"exponential", {"scale", NULL}, {1, 0}, exponential_fill, 0},
    {"integers", {"low", "high"}, {0, 0}, NULL, 1},
};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

typedef struct {
    PyObject_HEAD
    vectorcallfunc vector;
    PyObject *theirs, *bits, *acquire, *release;
    const Method* method;
    Numpys* state; /* in `bits` */
} Drawn;

/* What is drawn: so many numbers, from where to where. */
typedef struct {
    int axes; /* -1: one number that is no array */
    npy_intp shape[MOST_AXES];
    size_t n;
    double start, scale;
    uint64_t low, most;
} Wanted;

static int wanted_extent(Wanted* w, PyObject* x) {
    Py_ssize_t extent = PyLong_CheckExact(x) ? PyLong_AsSsize_t(x) : -1;
    if (extent < 0) return PyErr_Clear(), 0;
    if (extent && w->n > (size_t)(NPY_MAX_INTP / 16) / (size_t)extent) return 0;
    w->shape[w->axes++] = extent, w->n *= (size_t)extent;
    return 1;
}

static int wanted_size(Wanted* w, PyObject* size) {
    w->axes = -1, w->n = 1;
    if (size == NULL || size == Py_None) return 1;
    w->axes = 0;
    if (!PyTuple_CheckExact(size)) return wanted_extent(w, size);
    if (PyTuple_GET_SIZE(size) > MOST_AXES) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(size); k++)
        if (!wanted_extent(w, PyTuple_GET_ITEM(size, k))) return 0;
    return w->axes > 0;
}

static int wanted_numbers(const Method* method, Wanted* w, PyObject* const* given) {
    double number[2] = {method->defaults[0], method->defaults[1]};
    for (int k = 0; k < 2; k++) {
        if (given[k] == NULL) continue;
        if (!PyFloat_CheckExact(given[k]) && !PyLong_CheckExact(given[k]) && !Py_IS_TYPE(given[k], &PyDoubleArrType_Type)) return 0;
        number[k] = PyFloat_AsDouble(given[k]);
        if (number[k] == -1 && PyErr_Occurred()) return PyErr_Clear(), 0;
        if (!isfinite(number[k])) return 0;
    }
    if (method->fill == random_fill) number[1] -= number[0];
    w->start = method->parameters[1] ? number[0] : 0;
    w->scale = method->parameters[1] ? number[1] : number[0];
    return isfinite(w->scale) && !signbit(w->scale); /* NumPy refuses the others */
}

static int wanted_integers(Wanted* w, PyObject* const* given) {
    PyObject *low = given[1] && given[1] != Py_None ? given[0] : NULL, *high = low ? given[1] : given[0];
    int beyond[2] = {0, 0};
    int64_t bounds[2] = {0, 0};
    if (high == NULL || !PyLong_CheckExact(high) || (low && !PyLong_CheckExact(low))) return 0;
    if (low) bounds[0] = PyLong_AsLongLongAndOverflow(low, &beyond[0]);
    bounds[1] = PyLong_AsLongLongAndOverflow(high, &beyond[1]);
    w->low = (uint64_t)bounds[0], w->most = (uint64_t)bounds[1] - w->low - 1;
    return !beyond[0] && !beyond[1] && bounds[0] + 1 < bounds[1];
}

/* Read a call; tells whether it is plain. */
static int wanted_of(const Method* method, Wanted* w, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject *given[3] = {NULL, NULL, NULL}, *size;
    int before = method->parameters[1] ? 2 : method->parameters[0] ? 1 : 0;
    if (n > before + 1) return 0;
    for (Py_ssize_t k = 0; k < n; k++) given[k] = args[k];
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
        PyObject* name = PyTuple_GET_ITEM(names, k);
        int place = 0;
        while (place < before && PyUnicode_CompareWithASCIIString(name, method->parameters[place])) place++;
        if (given[place] || (place == before && PyUnicode_CompareWithASCIIString(name, "size"))) return 0;
        given[place] = args[n + k];
    }
    size = given[before], given[before] = NULL;
    return wanted_size(w, size) && (method->fill ? wanted_numbers(method, w, given) : wanted_integers(w, given));
}

static void draw(Drawn* self, const Wanted* w, void* out) {
    if (self->method->fill == NULL) integers_drawn(self->state, w->low, w->most, out, w->n);
    else floats_drawn(self->method->fill, self->state, self->method->parameters[0] != NULL, w->start, w->scale, out, w->n);
}

/* While the lock is held, which other threads may wait for. */
static int locked_draw(Drawn* self, const Wanted* w, void* out) {
    PyObject* done = PyObject_CallNoArgs(self->acquire);
    if (done == NULL) return -1;
    Py_DECREF(done);
    if (w->n < LONG) draw(self, w, out);
    else {
        Py_BEGIN_ALLOW_THREADS
        draw(self, w, out);
        Py_END_ALLOW_THREADS
    }
    done = PyObject_CallNoArgs(self->release);
    if (done == NULL) return -1;
    Py_DECREF(done);
    return 0;
}

static PyObject* drawn_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
    Drawn* self = (Drawn*)callable;
    int type = self->method->fill ? NPY_DOUBLE : NPY_INT64;
    PyObject* made;
    Wanted w;
    if (!wanted_of(self->method, &w, args, PyVectorcall_NARGS(nargsf), names) || w.n == 0) return PyObject_Vectorcall(self->theirs, args, nargsf, names);
    if (w.axes < 0) {
        union {
            double number;
            int64_t whole;
        } one;
        PyArray_Descr* descr;
        if (locked_draw(self, &w, &one) < 0) return NULL;
        if (self->method->fill) return PyFloat_FromDouble(one.number);
        if ((descr = PyArray_DescrFromType(type)) == NULL) return NULL;
        made = PyArray_Scalar(&one, descr, NULL);
        Py_DECREF(descr);
        return made;
    }
    made = PyArray_SimpleNew(w.axes, w.shape, type);
    if (made && locked_draw(self, &w, PyArray_DATA((PyArrayObject*)made)) < 0) Py_CLEAR(made);
    return made;
}

static void drawn_dealloc(PyObject* object) {
    Drawn* self = (Drawn*)object;
    Py_XDECREF(self->theirs), Py_XDECREF(self->bits), Py_XDECREF(self->acquire), Py_XDECREF(self->release);
    PyObject_Free(object);
}

static PyTypeObject drawn_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.namespace.draws._native.Drawn",
    .tp_basicsize = sizeof(Drawn),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Drawn, vector),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = drawn_dealloc,
    .tp_doc = "A method of a generator of NumPy's.",
};

static int drawn_ready(void) { return PyType_Ready(&drawn_type); }

/* Where the state of a bit generator is: inside the object, or it is not believed. */
static Numpys* state_of(PyObject* bits, PyObject* capsule) {
    bitgen_t* interface = PyCapsule_GetPointer(capsule, "BitGenerator");
    const char *first = (const char*)bits, *last = first + Py_TYPE(bits)->tp_basicsize, *at;
    if (interface == NULL) return NULL;
    at = interface->state;
    if (at >= first && at + sizeof(Numpys) <= last) {
        Numpys* state = (Numpys*)at;
        at = (const char*)state->pcg;
        if (at >= first && at + sizeof(Pcg) <= last) return state;
    }
    PyErr_SetString(PyExc_ValueError, "a bit generator keeps its state elsewhere");
    return NULL;
}

/* The method of this name; NULL where it is not known here. */
static const Method* method_named(const char* name) {
    for (size_t k = 0; k < METHODS; k++)
        if (strcmp(methods[k].name, name) == 0) return &methods[k];
    return NULL;
}

static PyObject* drawn_new(PyObject* theirs, PyObject* bits, PyObject* capsule, PyObject* acquire, PyObject* release, const char* name) {
    const Method* method = method_named(name);
    Numpys* state = state_of(bits, capsule);
    Drawn* self;
    if (state == NULL) return NULL;
    if (method == NULL) return PyErr_Format(PyExc_ValueError, "%s is not known here", name);
    self = PyObject_New(Drawn, &drawn_type);
    if (self == NULL) return NULL;
    self->vector = drawn_call;
    self->method = method, self->state = state;
    self->theirs = Py_NewRef(theirs), self->bits = Py_NewRef(bits);
    self->acquire = Py_NewRef(acquire), self->release = Py_NewRef(release);
    return (PyObject*)self;
}

#endif
