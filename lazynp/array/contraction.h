/* Sums of products of which many lie side by side: windows times a filter, rows times a matrix.

   In: two operands and a result, as NumPy's iterator walks them: lengths from the outermost axis on, and strides of each.  Out: the result.
   Promise: NumPy's bits; nothing is read or written but what the strides say.

   Where the innermost axis is one of the result, each element is the sum, from zero on, of its products in the iterator's order; `numpy.einsum` adds one
   product to each element of a row and begins anew.  Where it is summed, and both operands are contiguous along it, NumPy adds what its
   vectors of 16 bytes sum lane by lane, four vectors at a time from the last one on.  Here eight vectors (or as many as there are registers for lanes) of a
   row of results are summed in registers, over all products, before they are written. */

#ifndef LAZYNP_CONTRACTION_H
#define LAZYNP_CONTRACTION_H

#include "pieces.h"

#define CONTRACTION_FROM 512 /* elements of an operand; fewer are NumPy's as fast */
#define CORRELATION_FROM 131072 /* products of two arrays of which one slides along the other */
#if defined(__GNUC__)
#define CONTRACTED 16            /* axes outside the innermost one */
#define CONTRACTED_TERMS 65536   /* products of one element */
#define CONTRACTED_PIECE 500000  /* products that one thread takes at a time */
#define CONTRACTED_NS 0.05       /* nanoseconds of one product */
#define CONTRACTED_CACHE 32768   /* elements that terms read while a part of the rows is walked: they stay in the cache for the next row */

typedef struct {
    int axes, both; /* of the result; whether both operands have elements along a row, or the second one a number */
    npy_intp length, part, rows, terms; /* of a row, and of the part of it that is walked at a time; of the result; of each element */
    npy_intp inner; /* terms that lanes sum before they are added; 0: each is added by itself */
    npy_intp dims[CONTRACTED], strides[CONTRACTED][3];
    npy_intp (*offsets)[2]; /* of the terms */
    char* of[3];
    void (*row)(const void* self, const char* x, const char* y, char* to, npy_intp n);
    Pieces pieces; /* rows of one part after another */
} Contraction;

#define CONTRACTED_SUM(COUNT) \
    for (; k + COUNT * LANES <= n; k += COUNT * LANES) { \
        Vector sum[COUNT]; \
        for (int v = 0; v < COUNT; v++) sum[v] = (Vector){0}; \
        for (npy_intp t = 0; t < self->terms; t++) { \
            const char *from = x + self->offsets[t][0] + k * (npy_intp)sizeof(*given), *other = y + self->offsets[t][1]; \
            if (self->both) { \
                other += k * (npy_intp)sizeof(*given); \
                _Pragma("GCC unroll 8") for (int v = 0; v < COUNT; v++) sum[v] += ((const Vector*)from)[v] * ((const Vector*)other)[v]; \
            } else { \
                Vector number = ALL(*(const __typeof__(*given)*)other); \
                _Pragma("GCC unroll 8") for (int v = 0; v < COUNT; v++) sum[v] += ((const Vector*)from)[v] * number; \
            } \
        } \
        for (int v = 0; v < COUNT; v++) ((Vector*)(to + k * (npy_intp)sizeof(*given)))[v] = sum[v]; \
    }

/* One product of each element to a lane. */
#define CONTRACTED_TERM(COUNT, TERM, LANE) { \
        const char* from = x + self->offsets[TERM][0] + k * (npy_intp)sizeof(*given); \
        Vector number = ALL(*(const __typeof__(*given)*)(y + self->offsets[TERM][1])); \
        _Pragma("GCC unroll 8") for (int v = 0; v < COUNT; v++) lane[LANE][v] += ((const Vector*)from)[v] * number; \
    }

#define CONTRACTED_LANES(COUNT) \
    for (; k + COUNT * LANES <= n; k += COUNT * LANES) { \
        Vector sum[COUNT]; \
        for (int v = 0; v < COUNT; v++) sum[v] = (Vector){0}; \
        for (npy_intp t = 0; t < self->terms; t += self->inner) { \
            Vector lane[NUMPYS][COUNT]; \
            npy_intp j = t, end = t + self->inner; \
            _Pragma("GCC unroll 4") for (int l = 0; l < NUMPYS; l++) { \
                _Pragma("GCC unroll 8") for (int v = 0; v < COUNT; v++) lane[l][v] = (Vector){0}; \
            } \
            for (; j + NUMPYS <= end; j += NUMPYS) { \
                _Pragma("GCC unroll 4") for (int l = 0; l < NUMPYS; l++) CONTRACTED_TERM(COUNT, j + l, l) \
            } \
            _Pragma("GCC unroll 4") for (int l = 0; l < NUMPYS - 1; l++) { \
                if (j + l < end) CONTRACTED_TERM(COUNT, j + l, l) \
            } \
            for (int v = 0; v < COUNT; v++) sum[v] += NUMPYS == 2 ? lane[0][v] + lane[1][v] : (lane[0][v] + lane[1][v]) + (lane[NUMPYS - 2][v] + lane[NUMPYS - 1][v]); \
        } \
        for (int v = 0; v < COUNT; v++) ((Vector*)(to + k * (npy_intp)sizeof(*given)))[v] = sum[v]; \
    }

/* A row of `n` elements, with vectors of so many bytes, `HELD` of which have their lanes in registers. */
#define CONTRACTED_ROW(NAME, TARGET, TYPE, BYTES, HELD) \
    TARGET static void NAME(const void* of, const char* x, const char* y, char* to, npy_intp n) { \
        typedef TYPE Vector __attribute__((vector_size(BYTES), aligned(sizeof(TYPE)), may_alias)); \
        const Contraction* self = of; \
        const TYPE* given = NULL; /* of the type alone */ \
        enum { LANES = BYTES / sizeof(TYPE), NUMPYS = 16 / sizeof(TYPE) }; \
        npy_intp k = 0; \
        if (n < LANES) { \
            NAME##_rest(self, x, y, to, n); \
            return; \
        } \
        for (int again = 0; k < n && again < 2; again++) { \
            if (again) k = n - LANES; /* some elements once more */ \
            if (self->inner) { \
                CONTRACTED_LANES(HELD) \
                CONTRACTED_LANES(1) \
            } else { \
                CONTRACTED_SUM(8) \
                CONTRACTED_SUM(4) \
                CONTRACTED_SUM(2) \
                CONTRACTED_SUM(1) \
            } \
        } \
    }
/* Elements that are fewer than a vector has, one by one. */
#define CONTRACTED_REST(NAME, TYPE) \
    static void NAME##_rest(const Contraction* self, const char* x, const char* y, char* to, npy_intp n) { \
        enum { NUMPYS = 16 / sizeof(TYPE) }; \
        for (npy_intp k = 0; k < n; k++) { \
            TYPE sum = 0, lane[NUMPYS]; \
            for (npy_intp t = 0, j = 0; t < self->terms; t++, j = j + 1 == self->inner ? 0 : j + 1) { \
                TYPE product = *(const TYPE*)(x + self->offsets[t][0] + k * (npy_intp)sizeof(TYPE)) * *(const TYPE*)(y + self->offsets[t][1] + (self->both ? k * (npy_intp)sizeof(TYPE) : 0)); \
                if (self->inner == 0) { \
                    sum += product; \
                    continue; \
                } \
                if (j == 0) memset(lane, 0, sizeof(lane)); \
                lane[j % NUMPYS] += product; \
                if (j + 1 == self->inner) sum += NUMPYS == 2 ? lane[0] + lane[1] : (lane[0] + lane[1]) + (lane[NUMPYS - 2] + lane[NUMPYS - 1]); \
            } \
            ((TYPE*)to)[k] = sum; \
        } \
    }
#define ALL(X) ((X) - (Vector){0})
CONTRACTED_REST(row_of_doubles, double)
CONTRACTED_REST(row_of_floats, float)
#if defined(__x86_64__)
#define row_of_doubles_avx512_rest row_of_doubles_rest
#define row_of_floats_avx512_rest row_of_floats_rest
#define row_of_doubles_avx2_rest row_of_doubles_rest
#define row_of_floats_avx2_rest row_of_floats_rest
CONTRACTED_ROW(row_of_doubles_avx512, __attribute__((target("avx512f"))), double, 64, 8)
CONTRACTED_ROW(row_of_floats_avx512, __attribute__((target("avx512f"))), float, 64, 4)
CONTRACTED_ROW(row_of_doubles_avx2, __attribute__((target("avx2"))), double, 32, 4)
CONTRACTED_ROW(row_of_floats_avx2, __attribute__((target("avx2"))), float, 32, 2)
#endif
CONTRACTED_ROW(row_of_doubles, , double, 16, 4)
CONTRACTED_ROW(row_of_floats, , float, 16, 2)

/* The widest vectors that the processor has: 0 (16 bytes) to 2 (64). */
static int contracted_widest(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
#else
    return 0;
#endif
}

static int contracted_most = 2; /* for tests */

static void contracted_choose(Contraction* self, int single) {
    int level = contracted_widest();
    if (level > contracted_most) level = contracted_most;
    self->row = single ? row_of_floats : row_of_doubles;
#if defined(__x86_64__)
    if (level == 2) self->row = single ? row_of_floats_avx512 : row_of_doubles_avx512;
    if (level == 1) self->row = single ? row_of_floats_avx2 : row_of_doubles_avx2;
#endif
}

static int contraction_piece(const Pieces* pieces, npy_intp begin, npy_intp count, int thread) {
    const Contraction* self = (const Contraction*)((const char*)pieces - offsetof(Contraction, pieces));
    npy_intp size = self->strides[self->axes][2];
    (void)thread;
    for (npy_intp piece = begin; piece < begin + count; piece++) {
        npy_intp first = piece / self->rows * self->part, left = piece % self->rows;
        npy_intp at[3] = {first * size, self->both ? first * size : 0, first * size};
        for (int axis = self->axes; axis--; left /= self->dims[axis])
            for (int o = 0; o < 3; o++) at[o] += left % self->dims[axis] * self->strides[axis][o];
        self->row(self, self->of[0] + at[0], self->of[1] + at[1], self->of[2] + at[2], self->length - first < self->part ? self->length - first : self->part);
    }
    return 0;
}

/* The offsets of the terms, in the order of the axes that the result does not have (or, along the innermost one, of NumPy's vectors of `lanes`); whether there is memory. */
static int contraction_terms(Contraction* self, int axes, const npy_intp* dims, npy_intp (*strides)[3], npy_intp lanes) {
    npy_intp whole = self->inner / (4 * lanes) * 4 * lanes;
    self->offsets = PyMem_RawMalloc((size_t)self->terms * sizeof(*self->offsets));
    if (self->offsets == NULL) return 0;
    for (npy_intp t = 0; t < self->terms; t++) {
        npy_intp left = t, place = self->inner ? t % self->inner : 0;
        if (place < whole) left += (3 - 2 * (place / lanes % 4)) * lanes; /* the last of four vectors comes first */
        self->offsets[t][0] = self->offsets[t][1] = 0;
        for (int axis = axes; axis--; left /= dims[axis])
            for (int o = 0; o < 2; o++) self->offsets[t][o] += left % dims[axis] * strides[axis][o];
    }
    return 1;
}

/* The axis of a result's rows: along it the result is contiguous, and each operand either is, too, or has one element; -1 if there is none.  Where the innermost axis is
   summed, one operand has its elements along both, and the other one along that. */
static int contraction_row(int ndim, npy_intp (*strides)[3], npy_intp size) {
    npy_intp* inner = strides[ndim - 1];
    if (inner[2] == size) return (inner[0] == size || inner[0] == 0) && (inner[1] == size || inner[1] == 0) && (inner[0] || inner[1]) ? ndim - 1 : -1;
    if (inner[2] || inner[0] != size || inner[1] != size) return -1;
    for (int axis = ndim - 1; axis--;)
        if (strides[axis][2] == size) return strides[axis][0] + strides[axis][1] == size && (strides[axis][0] == 0 || strides[axis][1] == 0) ? axis : -1;
    return -1;
}

/* Sum products of `x` and `y` into `to`; -1 with an exception, 1 where it is NumPy's to do. */
static int contract_into(PyArrayObject* x, PyArrayObject* y, PyArrayObject* to, int ndim, const npy_intp* dims, npy_intp (*strides)[3]) {
    Contraction self = {.rows = 1, .terms = 1, .of = {PyArray_BYTES(x), PyArray_BYTES(y), PyArray_BYTES(to)}};
    npy_intp summed[CONTRACTED], steps[CONTRACTED][3], size = PyArray_ITEMSIZE(to);
    int axes = 0, along = contraction_row(ndim, strides, size), swapped;
    double ns;
    if (along < 0) return 1;
    swapped = strides[along][0] == 0;
    self.length = dims[along], self.both = strides[along][0] && strides[along][1], self.inner = along == ndim - 1 ? 0 : dims[ndim - 1];
    for (int axis = 0; axis < ndim; axis++) {
        if (axis == along) continue;
        npy_intp* of[3] = {&strides[axis][swapped], &strides[axis][!swapped], &strides[axis][2]};
        if (*of[2]) {
            for (int o = 0; o < 3; o++) self.strides[self.axes][o] = *of[o];
            self.rows *= self.dims[self.axes++] = dims[axis];
        } else {
            for (int o = 0; o < 3; o++) steps[axes][o] = *of[o];
            if (dims[axis] > CONTRACTED_TERMS / self.terms) return 1;
            self.terms *= summed[axes++] = dims[axis];
        }
    }
    if (self.terms < 2) return 1;
    if (swapped) self.of[0] = PyArray_BYTES(y), self.of[1] = PyArray_BYTES(x);
    self.strides[self.axes][2] = size;
    self.part = CONTRACTED_CACHE / self.terms / 64 * 64;
    if (self.part < 64) self.part = 64;
    if (self.part > self.length) self.part = self.length;
    contracted_choose(&self, PyArray_TYPE(to) == NPY_FLOAT);
    if (!contraction_terms(&self, axes, summed, steps, 16 / size)) return PyErr_NoMemory(), -1;
    pieces_of(&self.pieces, contraction_piece, (self.length + self.part - 1) / self.part * self.rows, self.part * self.terms, CONTRACTED_PIECE, 1, 0);
    ns = CONTRACTED_NS * (double)self.terms * (double)self.rows * (double)self.length;
    pieces_do(&self.pieces, pieces_threads(ns, self.rows * self.length * size), ns);
    flags_clear(1); /* nothing is said of what is no number, or too large for one, as by NumPy */
    PyMem_RawFree(self.offsets);
    return 0;
}

/* Read a tuple of lengths or strides; whether it holds `n` of them. */
static int contraction_read(PyObject* from, int n, npy_intp* to, int step) {
    if (!PyTuple_CheckExact(from) || PyTuple_GET_SIZE(from) != n) return 0;
    for (int k = 0; k < n; k++) {
        to[k * step] = PyLong_AsSsize_t(PyTuple_GET_ITEM(from, k));
        if (to[k * step] == -1 && PyErr_Occurred()) return 0;
    }
    return 1;
}

/* Whether strides lead no further than an array reaches, forwards. */
static int contraction_fits(PyArrayObject* x, int ndim, const npy_intp* dims, npy_intp (*strides)[3], int o) {
    npy_intp reach = 0, room = 0;
    for (int k = 0; k < PyArray_NDIM(x); k++) {
        if (PyArray_DIM(x, k) == 0 || PyArray_STRIDE(x, k) < 0) return 0;
        room += (PyArray_DIM(x, k) - 1) * PyArray_STRIDE(x, k);
    }
    for (int k = 0; k < ndim; k++) {
        if (dims[k] < 1 || strides[k][o] < 0 || (strides[k][o] && dims[k] - 1 > (room - reach) / strides[k][o])) return 0;
        reach += (dims[k] - 1) * strides[k][o];
    }
    return 1;
}

/* The sum of products of two arrays into a third one, along axes with these lengths and strides, as NumPy's iterator has them; Py_False where it is NumPy's to do. */
static PyObject* contract(PyObject* x, PyObject* y, PyObject* to, PyObject* lengths, PyObject* first, PyObject* second, PyObject* third) {
    PyObject *given[3] = {x, y, to}, *steps[3] = {first, second, third};
    npy_intp dims[CONTRACTED], strides[CONTRACTED][3];
    int ndim = PyTuple_CheckExact(lengths) ? (int)PyTuple_GET_SIZE(lengths) : 0, done = 1, fine = ndim > 0 && ndim < CONTRACTED && PyArray_CheckExact(to) && contraction_read(lengths, ndim, dims, 1);
    for (int o = 0; o < 3 && fine; o++) {
        PyArrayObject* a = (PyArrayObject*)given[o];
        fine = PyArray_CheckExact(given[o]) && (PyArray_TYPE(a) == NPY_DOUBLE || PyArray_TYPE(a) == NPY_FLOAT) && PyArray_ISBEHAVED_RO(a) && PyArray_TYPE(a) == PyArray_TYPE((PyArrayObject*)to)
            && contraction_read(steps[o], ndim, &strides[0][o], 3) && contraction_fits(a, ndim, dims, strides, o);
    }
    if (fine && PyArray_ISWRITEABLE((PyArrayObject*)to)) done = contract_into((PyArrayObject*)x, (PyArrayObject*)y, (PyArrayObject*)to, ndim, dims, strides);
    return done < 0 || PyErr_Occurred() ? NULL : PyBool_FromLong(done == 0);
}
#else
static int contracted_most;
static int contracted_widest(void) { return 0; }
static PyObject* contract(PyObject* x, PyObject* y, PyObject* to, PyObject* lengths, PyObject* first, PyObject* second, PyObject* third) {
    (void)x, (void)y, (void)to, (void)lengths, (void)first, (void)second, (void)third;
    return Py_NewRef(Py_False);
}
#endif
#endif
