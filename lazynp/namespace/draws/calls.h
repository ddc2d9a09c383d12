/* Methods of a generator, called.

   In: a bound method of NumPy's and a call of it.  Out: NumPy's answer.  Promise: what is not plain (arrays of parameters, a dtype, `out`, what
   NumPy refuses) is NumPy's to answer; the generator's lock is held while numbers are drawn, as NumPy holds it. */

#ifndef LAZYNP_CALLS_H
#define LAZYNP_CALLS_H

#include <Python.h>
#include <structmember.h>

#include <numpy/arrayobject.h>

#include "twister.h"

#define MOST_AXES 8
#define LONG 4096 /* numbers that other threads may run beside */
#define PART 1024 /* numbers that are made before they are moved and stretched: they stay in the nearest cache */

/* Where the state of a generator is: that of a `Generator` over PCG64, or of a `RandomState` over MT19937. */
typedef struct {
    Numpys* pcg;
    Legacy legacy;
} Place;

/* The words that come next. */
typedef union {
    Stream stream;
    Twisted twisted;
} Words;

static void pcg_begin(Words* words, const Place* place, size_t expected) { stream_begin(&words->stream, place->pcg, expected); }
static void pcg_end(Words* words) { stream_end(&words->stream); }
static void pcg_integers(const Place* place, uint64_t low, uint64_t most, uint64_t* out, size_t n) { integers_fill(place->pcg, low, most, out, n); }
static void pcg_order(const Place* place, int64_t* order, uint32_t n) { order_fill(place->pcg, order, n); }

static void legacy_begin(Words* words, const Place* place, size_t expected) { (void)expected, twisted_begin(&words->twisted, &place->legacy); }
static void legacy_end(Words* words) { twisted_end(&words->twisted); }
static void legacy_integers(const Place* place, uint64_t low, uint64_t most, uint64_t* out, size_t n) {
    twisted_integers(&place->legacy, low, (uint32_t)most, out, n);
}
static void legacy_order(const Place* place, int64_t* order, uint32_t n) { twisted_order(&place->legacy, order, n); }

/* What the methods of a class of generators have in common. */
typedef struct {
    void (*begin)(Words*, const Place*, size_t expected);
    void (*end)(Words*);
    void (*integers)(const Place*, uint64_t low, uint64_t most, uint64_t* out, size_t n);
    void (*order)(const Place*, int64_t* order, uint32_t n);
    uint64_t most; /* of whole numbers that are known here */
} Family;
static const Family pcg = {pcg_begin, pcg_end, pcg_integers, pcg_order, UINT64_MAX};
static const Family legacy = {legacy_begin, legacy_end, legacy_integers, legacy_order, UINT32_MAX};

/* What a method draws: numbers, of a size that is an argument or all of them, whole numbers, of which one is Python's or NumPy's, whole
   numbers below one or elements of an array, or an order, of the numbers below one or of what is in an array. */
enum { NUMBERS, EXTENTS, WHOLE, WHOLE_OF_NUMPY, CHOICE, ORDER, SHUFFLE };

/* The numbers that a method has before the size, and what they are if they are not given. */
typedef struct {
    const Family* of;
    int draws;
    const char *name, *parameters[2];
    double defaults[2];
    void (*fill)(void* words, double* out, size_t n); /* NULL: no floats */
} Method;
static const Method methods[] = {
    {&pcg, NUMBERS, "random", {NULL, NULL}, {0, 0}, random_fill},
    {&pcg, NUMBERS, "standard_normal", {NULL, NULL}, {0, 0}, normal_fill},
    {&pcg, NUMBERS, "standard_exponential", {NULL, NULL}, {0, 0}, exponential_fill},
    {&pcg, NUMBERS, "uniform", {"low", "high"}, {0, 1}, random_fill},
    {&pcg, NUMBERS, "normal", {"loc", "scale"}, {0, 1}, normal_fill},
    {&pcg, NUMBERS, "exponential", {"scale", NULL}, {1, 0}, exponential_fill},
    {&pcg, WHOLE_OF_NUMPY, "integers", {"low", "high"}, {0, 0}, NULL},
    {&pcg, CHOICE, "choice", {"a", NULL}, {0, 0}, NULL},
    {&pcg, ORDER, "permutation", {NULL, NULL}, {0, 0}, NULL},
    {&pcg, SHUFFLE, "shuffle", {NULL, NULL}, {0, 0}, NULL},
    {&legacy, NUMBERS, "random", {NULL, NULL}, {0, 0}, twisted_random},
    {&legacy, NUMBERS, "random_sample", {NULL, NULL}, {0, 0}, twisted_random},
    {&legacy, EXTENTS, "rand", {NULL, NULL}, {0, 0}, twisted_random},
    {&legacy, NUMBERS, "uniform", {"low", "high"}, {0, 1}, twisted_random},
    {&legacy, NUMBERS, "standard_normal", {NULL, NULL}, {0, 0}, twisted_normal},
    {&legacy, EXTENTS, "randn", {NULL, NULL}, {0, 0}, twisted_normal},
    {&legacy, NUMBERS, "normal", {"loc", "scale"}, {0, 1}, twisted_normal},
    {&legacy, WHOLE, "randint", {"low", "high"}, {0, 0}, NULL},
    {&legacy, CHOICE, "choice", {"a", NULL}, {0, 0}, NULL},
    {&legacy, ORDER, "permutation", {NULL, NULL}, {0, 0}, NULL},
    {&legacy, SHUFFLE, "shuffle", {NULL, NULL}, {0, 0}, NULL},
};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

typedef struct {
    PyObject_HEAD
    vectorcallfunc vector;
    PyObject *theirs, *bits, *acquire, *release;
    const Method* method;
    Place place; /* in `bits`, and in what `theirs` is a method of */
} Drawn;

/* What is drawn: so many numbers, from where to where. */
typedef struct {
    int axes; /* -1: one number that is no array */
    npy_intp shape[MOST_AXES];
    size_t n;
    double start, scale;
    uint64_t low, most;
    PyArrayObject* of; /* elements of an array, or NULL; borrowed from the call */
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

/* A number of NumPy's or a result, which is of a class below it. */
static inline int is_double(PyObject* x) {
    return PyObject_TypeCheck(x, &PyDoubleArrType_Type) && !PyType_HasFeature(Py_TYPE(x), Py_TPFLAGS_HEAPTYPE);
}

static int wanted_numbers(const Method* method, Wanted* w, PyObject* const* given) {
    double number[2] = {method->defaults[0], method->defaults[1]};
    for (int k = 0; k < 2; k++) {
        if (given[k] == NULL) continue;
        if (!PyFloat_CheckExact(given[k]) && !PyLong_CheckExact(given[k]) && !is_double(given[k])) return 0;
        number[k] = PyFloat_AsDouble(given[k]);
        if (number[k] == -1 && PyErr_Occurred()) return PyErr_Clear(), 0;
        if (!isfinite(number[k])) return 0;
    }
    if (method->fill == random_fill || method->fill == twisted_random) number[1] -= number[0];
    w->start = method->parameters[1] ? number[0] : 0;
    w->scale = method->parameters[1] ? number[1] : number[0];
    return isfinite(w->scale) && !signbit(w->scale); /* NumPy refuses the others */
}

static int wanted_integers(const Method* method, Wanted* w, PyObject* const* given) {
    PyObject *low = given[1] && given[1] != Py_None ? given[0] : NULL, *high = low ? given[1] : given[0];
    int beyond[2] = {0, 0};
    int64_t bounds[2] = {0, 0};
    if (high == NULL || !PyLong_CheckExact(high) || (low && !PyLong_CheckExact(low))) return 0;
    if (low) bounds[0] = PyLong_AsLongLongAndOverflow(low, &beyond[0]);
    bounds[1] = PyLong_AsLongLongAndOverflow(high, &beyond[1]);
    w->low = (uint64_t)bounds[0], w->most = (uint64_t)bounds[1] - w->low - 1;
    return !beyond[0] && !beyond[1] && bounds[0] < bounds[1] && w->most && w->most <= method->of->most;
}

/* Elements of a row. */
static int wanted_elements(Wanted* w, PyObject* x) {
    PyArrayObject* array = (PyArrayObject*)x;
    if (w->axes < 0 || PyArray_NDIM(array) != 1 || !PyTypeNum_ISNUMBER(PyArray_TYPE(array)) || PyArray_SIZE(array) < 2) return 0;
    w->of = array, w->low = 0, w->most = (uint64_t)PyArray_SIZE(array) - 1;
    return w->most <= UINT32_MAX;
}

/* An array whose elements change places as numbers of 64 bits, whatever they mean. */
static int wanted_places(Wanted* w, PyObject* x) {
    PyArrayObject* array = (PyArrayObject*)x;
    if (!PyArray_CheckExact(x) || PyArray_NDIM(array) != 1 || !PyArray_ISCARRAY(array) || PyArray_ITEMSIZE(array) != 8) return 0;
    w->axes = 1, w->n = (size_t)PyArray_SIZE(array);
    return PyTypeNum_ISNUMBER(PyArray_TYPE(array)) && w->n <= UINT32_MAX;
}

/* Read a call; tells whether it is plain. */
static int wanted_of(const Method* method, Wanted* w, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    PyObject *given[3] = {NULL, NULL, NULL}, *size;
    int before = method->parameters[1] ? 2 : method->parameters[0] ? 1 : 0;
    w->of = NULL;
    if (method->draws == ORDER) return n == 1 && names == NULL && PyLong_CheckExact(args[0]) && wanted_size(w, args[0]) && w->n <= UINT32_MAX;
    if (method->draws == SHUFFLE) return n == 1 && names == NULL && wanted_places(w, args[0]);
    if (method->draws == EXTENTS) {
        w->axes = n ? 0 : -1, w->n = 1;
        for (Py_ssize_t k = 0; k < n; k++)
            if (n > MOST_AXES || !wanted_extent(w, args[k])) return 0;
        return names == NULL;
    }
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
    if (!wanted_size(w, size)) return 0;
    if (method->draws == CHOICE && given[0] && PyArray_CheckExact(given[0])) return wanted_elements(w, given[0]);
    return (method->fill ? wanted_numbers : wanted_integers)(method, w, given);
}

static void draw(Drawn* self, const Wanted* w, void* made) {
    const Method* method = self->method;
    double* out = made;
    Words words;
    if (method->fill == NULL) {
        int64_t* at = made;
        for (size_t k = 0; method->draws == ORDER && k < w->n; k++) at[k] = (int64_t)k;
        if (method->draws >= ORDER) method->of->order(&self->place, at, (uint32_t)w->n);
        else method->of->integers(&self->place, w->low, w->most, made, w->n);
        return;
    }
    method->of->begin(&words, &self->place, w->n);
    for (size_t left = w->n, n; left; left -= n, out += n) {
        n = left < PART ? left : PART;
        method->fill(&words, out, n);
        if (method->parameters[0])
            for (size_t k = 0; k < n; k++) out[k] = w->start + w->scale * out[k];
    }
    method->of->end(&words);
}

/* Whether a `RandomState` draws from the same bits as when it was asked for this method: NumPy's own may be given others. */
static int is_elsewhere(const Drawn* self) {
    const Legacy* of = &self->place.legacy;
    return of->twister && of->pairs->interface->state != of->twister;
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
    if (!wanted_of(self->method, &w, args, PyVectorcall_NARGS(nargsf), names) || w.n == 0 || is_elsewhere(self))
        return PyObject_Vectorcall(self->theirs, args, nargsf, names);
    if (self->method->draws == SHUFFLE) {
        if (locked_draw(self, &w, PyArray_DATA((PyArrayObject*)args[0])) < 0) return NULL;
        Py_RETURN_NONE;
    }
    if (w.axes < 0) {
        union {
            double number;
            int64_t whole;
        } one;
        PyArray_Descr* descr;
        if (locked_draw(self, &w, &one) < 0) return NULL;
        if (self->method->fill) return PyFloat_FromDouble(one.number);
        if (self->method->draws != WHOLE_OF_NUMPY) return PyLong_FromLongLong(one.whole);
        if ((descr = PyArray_DescrFromType(type)) == NULL) return NULL;
        made = PyArray_Scalar(&one, descr, NULL);
        Py_DECREF(descr);
        return made;
    }
    made = PyArray_SimpleNew(w.axes, w.shape, type);
    if (made && locked_draw(self, &w, PyArray_DATA((PyArrayObject*)made)) < 0) Py_CLEAR(made);
    if (made && w.of) Py_SETREF(made, PyArray_TakeFrom(w.of, made, 0, NULL, NPY_RAISE));
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

static int is_inside(const void* part, size_t size, PyObject* object) {
    const char *first = (const char*)object, *at = part;
    return at >= first && at + size <= first + Py_TYPE(object)->tp_basicsize;
}

/* Find the state of a bit generator, and of a `RandomState` over it; tells whether they are inside these objects, else they are not believed. */
static int place_find(Place* place, const Family* of, PyObject* generator, PyObject* bits, const bitgen_t* interface) {
    void* state = interface->state;
    if (of == &pcg) {
        place->pcg = state;
        return is_inside(state, sizeof(Numpys), bits) && is_inside(place->pcg->pcg, sizeof(Pcg), bits);
    }
    place->legacy.twister = state;
    for (char* at = (char*)(generator + 1); is_inside(at, sizeof(Pairs), generator); at += sizeof(void*)) {
        place->legacy.pairs = (Pairs*)at; /* begins with where the interface is, of which there is a copy */
        if (is_inside(place->legacy.pairs->interface, sizeof(bitgen_t), generator) && place->legacy.pairs->interface->state == state)
            return is_inside(state, sizeof(Twister), bits);
    }
    return 0;
}

/* What draws as a method of a generator does, or of a `RandomState`; None where it is not known. */
static PyObject* drawn_new(PyObject* theirs, PyObject* generator, PyObject* bits, PyObject* capsule, int is_legacy, const char* name) {
    const bitgen_t* interface = PyCapsule_GetPointer(capsule, "BitGenerator");
    const Family* of = is_legacy ? &legacy : &pcg;
    const Method* method = methods;
    Place place = {NULL, {NULL, NULL}};
    PyObject* lock;
    Drawn* self;
    if (interface == NULL) return NULL;
    while (method < methods + METHODS && (method->of != of || strcmp(method->name, name))) method++;
    if (method == methods + METHODS || !place_find(&place, of, generator, bits, interface)) Py_RETURN_NONE;
    if ((lock = PyObject_GetAttrString(bits, "lock")) == NULL) return NULL;
    if ((self = PyObject_New(Drawn, &drawn_type))) {
        self->vector = drawn_call;
        self->method = method, self->place = place;
        self->theirs = Py_NewRef(theirs), self->bits = Py_NewRef(bits);
        self->acquire = PyObject_GetAttrString(lock, "acquire"), self->release = PyObject_GetAttrString(lock, "release");
        if (self->acquire == NULL || self->release == NULL) Py_CLEAR(self);
    }
    Py_DECREF(lock);
    return (PyObject*)self;
}

#endif
