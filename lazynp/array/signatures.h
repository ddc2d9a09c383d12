/* The layout of what a function gives, by the signature of a call: a table.

   In: a call whose result follows in shape and dtype from the shapes and dtypes of its arrays, and from its other arguments.  Out: that shape and dtype.  Promise:
   they are those that NumPy's function gave for arrays of ones of the same shapes, dtypes and orders, in the same call; a call for which it
   raised, or gave anything but a fresh array, has no layout and is made at once.

   The layout of some hundred functions more (`tile`, `pad`, `stack`, `median`, `einsum`, `fft`, `norm`, `ufunc.reduce`, ...: `_ARRAYS` in
   `_core.pyx`) follows from the *signature* of a call: the shapes, dtypes and orders of its arrays and its other arguments (`signatures.h`). NumPy is
   asked once for each, with arrays of ones (`tapes.layout`), where that costs little; else the first call is made at once and its result noted. What
   NumPy refuses, or gives no fresh array for, is made at its call, too. A function whose signatures never come again is mostly made at once. */

#ifndef LAZYNP_SIGNATURES_H
#define LAZYNP_SIGNATURES_H

#include "items.h"

#define SIGNATURE_WORDS 96
#define SIGNATURE_BITS 9

typedef struct {
    int words, known, strided;    /* known: how many results there are, of one layout; strided: it is another order than C's */
    uint64_t word[SIGNATURE_WORDS];
    PyObject* constants;          /* a tuple of the arguments that are no arrays, held: addresses among the words are theirs */
    int type, second, ndim;       /* second: the dtype of a second result */
    npy_intp dims[AXES];
} Signature;
static Signature* signatures[1 << SIGNATURE_BITS];
static PyObject* layout_method; /* `tapes.layout` */

/* The signature of a call while it is read. */
typedef struct {
    int count;
    uint64_t word[SIGNATURE_WORDS];
} Words;

enum { CONSTANT_NONE, CONSTANT_TRUE, CONSTANT_FALSE, CONSTANT_INT, CONSTANT_FLOAT, CONSTANT_COMPLEX, CONSTANT_TEXT, CONSTANT_TUPLE, CONSTANT_OBJECT, AN_ARRAY };

static inline int word_add(Words* to, uint64_t word) {
    if (to->count == SIGNATURE_WORDS) return 0;
    to->word[to->count++] = word;
    return 1;
}

/* An argument that is no array, by its value; 0 where it is none of the immutable ones. */
static int constant_add(Words* to, PyObject* x, int depth) {
    double real;
    uint64_t bits;
    if (x == Py_None) return word_add(to, CONSTANT_NONE);
    if (x == Py_True || x == Py_False) return word_add(to, x == Py_True ? CONSTANT_TRUE : CONSTANT_FALSE);
    if (PyLong_CheckExact(x)) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
        return !overflow && word_add(to, CONSTANT_INT) && word_add(to, (uint64_t)value);
    }
    if (PyFloat_CheckExact(x)) {
        real = PyFloat_AS_DOUBLE(x);
        memcpy(&bits, &real, sizeof(bits));
        return word_add(to, CONSTANT_FLOAT) && word_add(to, bits);
    }
    if (PyUnicode_CheckExact(x)) { /* eight bytes a word */
        Py_ssize_t n;
        const char* text = PyUnicode_AsUTF8AndSize(x, &n);
        if (text == NULL) return PyErr_Clear(), 0;
        if (!word_add(to, CONSTANT_TEXT) || !word_add(to, (uint64_t)n)) return 0;
        for (Py_ssize_t k = 0; k < n; k += 8) {
            bits = 0;
            memcpy(&bits, text + k, (size_t)(n - k < 8 ? n - k : 8));
            if (!word_add(to, bits)) return 0;
        }
        return 1;
    }
    if (PyTuple_CheckExact(x) && depth < 3) {
        if (!word_add(to, CONSTANT_TUPLE) || !word_add(to, (uint64_t)PyTuple_GET_SIZE(x))) return 0;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(x); k++)
            if (!constant_add(to, PyTuple_GET_ITEM(x, k), depth + 1)) return 0;
        return 1;
    }
    if (PyArray_DescrCheck(x) || (PyType_Check(x) && (x == (PyObject*)&PyFloat_Type || x == (PyObject*)&PyLong_Type || x == (PyObject*)&PyBool_Type || PyType_IsSubtype((PyTypeObject*)x, &PyGenericArrType_Type))))
        return word_add(to, CONSTANT_OBJECT) && word_add(to, (uint64_t)(uintptr_t)x);
    return 0;
}

static int array_add(Words* to, const Read* x) {
    int strided = x->array && !PyArray_IS_C_CONTIGUOUS(x->array);
    if (!word_add(to, AN_ARRAY + ((uint64_t)x->type << 8) + ((uint64_t)x->ndim << 16) + ((uint64_t)strided << 24))) return 0;
    for (int k = 0; k < x->ndim; k++)
        if (!word_add(to, (uint64_t)x->dims[k]) || (strided && !word_add(to, (uint64_t)PyArray_STRIDE(x->array, k)))) return 0;
    return 1;
}

static unsigned words_hash(const Words* of) {
    uint64_t hash = 0;
    for (int k = 0; k < of->count; k++) hash = (hash ^ of->word[k]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 32;
    return (unsigned)(hash >> (64 - SIGNATURE_BITS)) ^ (unsigned)(hash & ((1 << SIGNATURE_BITS) - 1));
}

/* The entry of a signature; NULL where it is not known. */
static Signature* signature_of(const Words* of) {
    Signature* found = signatures[words_hash(of)];
    return found && found->words == of->count && memcmp(found->word, of->word, (size_t)of->count * sizeof(uint64_t)) == 0 ? found : NULL;
}

/* An array of ones like an operand of which one element is repeated along some axes (it takes `like` and `descr` over): the order of results follows from these steps, too. */
static PyObject* ones_repeated(PyArrayObject* like, PyArray_Descr* descr) {
    npy_intp dims[AXES], steps[AXES];
    int ndim = PyArray_NDIM(like);
    PyObject *few, *ones, *made = NULL, *one = PyLong_FromLong(1);
    for (int k = 0; k < ndim; k++) dims[k] = PyArray_STRIDE(like, k) ? PyArray_DIM(like, k) : 1;
    Py_INCREF(descr), Py_INCREF(descr);
    few = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, PyArray_STRIDES(like), PyArray_DATA(like), 0, NULL);
    ones = few && one ? PyArray_NewLikeArray((PyArrayObject*)few, NPY_KEEPORDER, descr, 0) : (Py_DECREF(descr), NULL);
    if (ones && PyArray_FillWithScalar((PyArrayObject*)ones, one) == 0) {
        for (int k = 0; k < ndim; k++) steps[k] = PyArray_STRIDE(like, k) ? PyArray_STRIDE((PyArrayObject*)ones, k) : 0;
        made = PyArray_NewFromDescr(&PyArray_Type, (Py_INCREF(descr), descr), ndim, PyArray_DIMS(like), steps, PyArray_DATA((PyArrayObject*)ones), 0, NULL);
        if (made && PyArray_SetBaseObject((PyArrayObject*)made, Py_NewRef(ones)) < 0) Py_CLEAR(made);
    }
    Py_XDECREF(one), Py_XDECREF(ones), Py_XDECREF(few), Py_DECREF(descr), Py_DECREF(like);
    return made;
}

/* An array of ones like an operand, or (`few`, of one in C's order) of one element with as many axes. */
static PyObject* ones_like_read(const Read* x, int few) {
    npy_intp dims[NPY_MAXDIMS];
    PyArrayObject* like = x->array && !PyArray_IS_C_CONTIGUOUS(x->array) ? array_of(x->array) : NULL;
    PyArray_Descr* descr = PyArray_DescrFromType(x->type);
    PyObject *made = NULL, *one = PyLong_FromLong(1);
    int repeats = 0;
    for (int k = 0; k < x->ndim; k++) dims[k] = few ? 1 : x->dims[k];
    for (int k = 0; like && k < x->ndim; k++) repeats |= PyArray_STRIDE(like, k) == 0 && x->dims[k] > 1;
    if (repeats) return Py_XDECREF(one), ones_repeated(like, descr);
    if (like) made = PyArray_NewLikeArray(like, NPY_KEEPORDER, descr, 0);
    else if (descr && !PyErr_Occurred()) made = PyArray_Empty(x->ndim, dims, descr, 0);
    Py_XDECREF(like);
    if (made && (one == NULL || PyArray_FillWithScalar((PyArrayObject*)made, one) < 0)) Py_CLEAR(made);
    Py_XDECREF(one);
    return made;
}

/* Note a signature, whose arguments are `constants`, and others; NULL with an exception where memory is short. */
static Signature* signature_note(const Words* of, PyObject* constants) {
    unsigned hash = words_hash(of);
    Signature *made = PyMem_Calloc(1, sizeof(Signature)), *old = signatures[hash];
    if (made == NULL) return (Signature*)PyErr_NoMemory();
    made->words = of->count, made->constants = Py_NewRef(constants);
    memcpy(made->word, of->word, (size_t)of->count * sizeof(uint64_t));
    signatures[hash] = made;
    if (old) {
        PyObject* held = old->constants;
        PyMem_Free(old);
        Py_DECREF(held);
    }
    return made;
}

/* Empty the table. */
static void signatures_forget(void) {
    for (int k = 0; k < 1 << SIGNATURE_BITS; k++) {
        Signature* old = signatures[k];
        signatures[k] = NULL;
        if (old == NULL) continue;
        Py_DECREF(old->constants);
        PyMem_Free(old);
    }
}

/* Have NumPy's function say what it gives, and note it; -1 with an unexpected exception.  `given` (taken over): the arguments, with arrays of ones. */
static int signature_learn(const Words* of, PyObject* function, PyObject* given, PyObject* names) {
    PyObject *found = given ? PyObject_CallFunctionObjArgs(layout_method, function, given, names ? names : Py_None, NULL) : NULL, *dims;
    Signature* made = found ? signature_note(of, given) : NULL;
    if (made) {
        int results = PyTuple_CheckExact(found) ? (int)PyTuple_GET_SIZE(found) - 2 : 0;
        if (results == 2) made->second = (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 3));
        if ((results == 1 || (results == 2 && IS_NUMERIC(made->second))) && IS_NUMERIC(PyLong_AsLong(PyTuple_GET_ITEM(found, 0))) && PyTuple_CheckExact(dims = PyTuple_GET_ITEM(found, 1)) && PyTuple_GET_SIZE(dims) <= AXES) {
            made->known = results, made->strided = PyTuple_GET_ITEM(found, 2) != Py_True, made->type = (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 0)), made->ndim = (int)PyTuple_GET_SIZE(dims);
            for (int k = 0; k < made->ndim; k++) made->dims[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(dims, k));
        }
    }
    Py_XDECREF(found), Py_XDECREF(given);
    return made ? 0 : -1;
}

/* Note what a call gave that was made at once; `call`: its operands.  An exception is cleared. */
static void signature_watch(const Words* of, const Call* call, PyObject* constants, PyObject* found) {
    PyArrayObject* x = Py_TYPE(found) == array_type && !WAITS(found) ? memory_of(found) : NULL;
    Signature* made = signature_note(of, constants);
    int fresh = made && x && PyArray_NDIM(x) && PyArray_NDIM(x) <= AXES && size_of(x) && IS_NUMERIC(PyArray_TYPE(x)) && is_writable(x);
    for (int k = 0; fresh && k < call->count; k++) {
        PyArrayObject* operand = seen_of(call->operands[k]);
        fresh = operand && !may_overlap(operand, x);
    }
    if (made == NULL) PyErr_Clear();
    if (!fresh) return;
    made->known = 1, made->strided = !PyArray_IS_C_CONTIGUOUS(x), made->type = PyArray_TYPE(x), made->ndim = PyArray_NDIM(x);
    memcpy(made->dims, PyArray_DIMS(x), (size_t)made->ndim * sizeof(npy_intp));
}

#define ASKED_MOST 262144 /* elements of all arrays together, or of two multiplied, of more than which a layout is that of the first result: asking NumPy would cost as much */
#define ASKED_TIMES 64     /* the largest number among the other arguments: some say how often something comes */
#define MISSES_MOST 8    /* calls of a function, one after the other, whose signature was not known: then most are made at once */

#endif
