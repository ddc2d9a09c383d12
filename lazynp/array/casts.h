/* Casts as loops: what NumPy does to an operand before its loop gets it, and the casts that a program asks for.

   In: two types.  Out: a loop from one to the other, and the type in which two types are computed.  Promise: a cast has NumPy's bits however it is compiled; all others are none of these loops.

   Mixed dtypes become one by a step that casts, where NumPy would cast (`common_type`); Python's numbers give way as NumPy lets them. */

#ifndef LAZYNP_CASTS_H
#define LAZYNP_CASTS_H

#include "computing.h"

/* Casts ---------------------------------------------------------------------------------------------------------------------------- */

#define NUMBER_OF(X) (sizeof(X) == sizeof(npy_long) ? NPY_LONG : NPY_LONGLONG) /* of the integers of 64 bits NumPy has two */

static int cast_type_npy_bool(void) { return NPY_BOOL; }
static int cast_type_npy_byte(void) { return NPY_BYTE; }
static int cast_type_npy_ubyte(void) { return NPY_UBYTE; }
static int cast_type_npy_short(void) { return NPY_SHORT; }
static int cast_type_npy_ushort(void) { return NPY_USHORT; }
static int cast_type_npy_int(void) { return NPY_INT; }
static int cast_type_npy_uint(void) { return NPY_UINT; }
static int cast_type_npy_int64(void) { return NPY_INT64; }
static int cast_type_npy_uint64(void) { return NPY_UINT64; }
static int cast_type_npy_half(void) { return NPY_HALF; }
static int cast_type_npy_float(void) { return NPY_FLOAT; }
static int cast_type_npy_double(void) { return NPY_DOUBLE; }
static int cast_type_npy_cfloat(void) { return NPY_CFLOAT; }
static int cast_type_npy_cdouble(void) { return NPY_CDOUBLE; }

/* What NumPy does to an operand before its loop gets it: numbers of one type as those of another that holds them, or a float of 64 bits. */
static Loops cast_loops[TYPES]; /* by the type that they become */

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif
#define CAST(FROM, TO) \
    static void cast_##FROM##_##TO(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        const char* from = args[0]; \
        char* to = args[1]; \
        (void)data; \
        if (steps[0] == sizeof(FROM) && steps[1] == sizeof(TO)) { /* neighbours */ \
            if (cast_type_##FROM() == cast_type_##TO()) memmove(to, from, (size_t)dims[0] * sizeof(TO)); \
            else for (npy_intp k = 0; k < dims[0]; k++) ((TO*)to)[k] = (TO)((const FROM*)from)[k]; \
            return; \
        } \
        for (npy_intp k = dims[0]; k > 0; k--, from += steps[0], to += steps[1]) *(TO*)to = (TO)*(const FROM*)from; \
    }
#define CAST_TO_LARGER(X, TO) X(npy_bool, TO) X(npy_byte, TO) X(npy_ubyte, TO)
#define CASTS(X) \
    X(npy_bool, npy_byte) X(npy_bool, npy_ubyte) CAST_TO_LARGER(X, npy_short) X(npy_bool, npy_ushort) X(npy_ubyte, npy_ushort) \
    CAST_TO_LARGER(X, npy_int) X(npy_short, npy_int) X(npy_ushort, npy_int) X(npy_bool, npy_uint) X(npy_ubyte, npy_uint) X(npy_ushort, npy_uint) \
    CAST_TO_LARGER(X, npy_int64) X(npy_short, npy_int64) X(npy_ushort, npy_int64) X(npy_int, npy_int64) X(npy_uint, npy_int64) \
    X(npy_bool, npy_uint64) X(npy_ubyte, npy_uint64) X(npy_ushort, npy_uint64) X(npy_uint, npy_uint64) \
    CAST_TO_LARGER(X, npy_float) X(npy_short, npy_float) X(npy_ushort, npy_float) \
    CAST_TO_LARGER(X, npy_double) X(npy_short, npy_double) X(npy_ushort, npy_double) X(npy_int, npy_double) X(npy_uint, npy_double) \
    X(npy_int64, npy_double) X(npy_uint64, npy_double) X(npy_float, npy_double)
/* And what a program asks for: copies, and the casts to a smaller type that are the same however they are compiled; of floats the instruction gives what is in no
   range, and raises the flag, as in NumPy's loop. */
#define COPY_OF(X, TYPE) X(TYPE, TYPE)
#define ASKED_CASTS(X) \
    COPY_OF(X, npy_byte) COPY_OF(X, npy_ubyte) COPY_OF(X, npy_short) COPY_OF(X, npy_ushort) COPY_OF(X, npy_int) COPY_OF(X, npy_uint) \
    COPY_OF(X, npy_int64) COPY_OF(X, npy_uint64) COPY_OF(X, npy_float) COPY_OF(X, npy_double) X(npy_double, npy_float) X(npy_int64, npy_int) X(npy_int64, npy_float) \
    X(npy_double, npy_int64) X(npy_float, npy_int64)
CASTS(CAST)
ASKED_CASTS(CAST)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
/* Real numbers as complex ones. */
#define CAST_COMPLEX(FROM, TO, PART) \
    static void cast_##FROM##_##TO(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        const char* from = args[0]; \
        char* to = args[1]; \
        (void)data; \
        for (npy_intp k = dims[0]; k > 0; k--, from += steps[0], to += steps[1]) ((PART*)to)[0] = (PART)*(const FROM*)from, ((PART*)to)[1] = 0; \
    }
#define CASTS_COMPLEX(X) \
    X(npy_bool, npy_cfloat, float) X(npy_byte, npy_cfloat, float) X(npy_ubyte, npy_cfloat, float) X(npy_short, npy_cfloat, float) X(npy_ushort, npy_cfloat, float) \
    X(npy_float, npy_cfloat, float) X(npy_bool, npy_cdouble, double) X(npy_byte, npy_cdouble, double) X(npy_ubyte, npy_cdouble, double) \
    X(npy_short, npy_cdouble, double) X(npy_ushort, npy_cdouble, double) X(npy_int, npy_cdouble, double) X(npy_uint, npy_cdouble, double) \
    X(npy_int64, npy_cdouble, double) X(npy_uint64, npy_cdouble, double) X(npy_float, npy_cdouble, double) X(npy_double, npy_cdouble, double)
CASTS_COMPLEX(CAST_COMPLEX)
static void cast_npy_cfloat_npy_cdouble(char** args, const npy_intp* dims, const npy_intp* steps, void* data) {
    const char* from = args[0];
    char* to = args[1];
    (void)data;
    for (npy_intp k = dims[0]; k > 0; k--, from += steps[0], to += steps[1]) ((double*)to)[0] = ((const float*)from)[0], ((double*)to)[1] = ((const float*)from)[1];
}

/* Halves as larger numbers, which is exact. */
static inline float half_value(npy_half x) {
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = (uint32_t)(x & 0x7fff) << 13;
    float value;
    if (rest >= 0x0f800000) rest += 0x70000000; /* infinities and NaN */
    else if (rest >= 0x00800000) rest += 0x38000000;
    else value = (float)(x & 0x3ff) * 0x1p-24f, memcpy(&rest, &value, sizeof(rest));
    rest |= sign;
    memcpy(&value, &rest, sizeof(value));
    return value;
}
#define CAST_HALF(TO) \
    static void cast_npy_half_##TO(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        const char* from = args[0]; \
        char* to = args[1]; \
        (void)data; \
        for (npy_intp k = dims[0]; k > 0; k--, from += steps[0], to += steps[1]) *(TO*)to = (TO)half_value(*(const npy_half*)from); \
    }
CAST_HALF(npy_float)
CAST_HALF(npy_double)

/* `cast(number)` returns a function of one array that is called in the place of a loop; by the number of the type that an array becomes. */
static int casts_fill(PyObject* cast) {
    for (int to = 0; to < TYPES; to++) {
        PyObject* number = PyLong_FromLong(to);
        cast_loops[to].nin = 1;
        cast_loops[to].ufunc = number ? PyObject_CallOneArg(cast, number) : NULL;
        Py_XDECREF(number);
        if (cast_loops[to].ufunc == NULL) return -1;
    }
#define FILL(FROM, TO) \
    cast_loops[cast_type_##TO()].of[cast_type_##FROM()] = \
        (Loop){.function = (PyUFuncGenericFunction)cast_##FROM##_##TO, .out = (char)cast_type_##TO(), .size = sizeof(TO), .state = USABLE, .basic = 1, .joins = 1};
    CASTS(FILL)
    ASKED_CASTS(FILL)
#define FILL_COMPLEX(FROM, TO, PART) FILL(FROM, TO)
    CASTS_COMPLEX(FILL_COMPLEX)
    FILL(npy_cfloat, npy_cdouble)
    FILL(npy_half, npy_float)
    FILL(npy_half, npy_double)
    return 0;
}

/* The type in which two of different types are computed; -1 where NumPy has to say. */
static int common_type(int a, int b) {
    static signed char known[TYPES][TYPES]; /* one more than the type */
    if (a == b) return a;
    if (known[a][b] == 0) {
        PyArray_Descr *x = PyArray_DescrFromType(a), *y = PyArray_DescrFromType(b), *both = PyArray_PromoteTypes(x, y);
        int type = both ? both->type_num : -1;
        if (both == NULL) PyErr_Clear();
        if (type >= 0 && (!IS_NUMERIC(type) || (type != a && cast_loops[type].of[a].function == NULL) || (type != b && cast_loops[type].of[b].function == NULL))) type = -1;
        if (type == NPY_DOUBLE && !PyTypeNum_ISFLOAT(a) && !PyTypeNum_ISFLOAT(b)) type = -1; /* signed and unsigned: some loops compare them as they are */
        known[a][b] = (signed char)(type < 0 ? -1 : type + 1);
        Py_DECREF(x), Py_DECREF(y), Py_XDECREF(both);
    }
    return known[a][b] < 0 ? -1 : known[a][b] - 1;
}

/* The type in which an operation without a loop for `type` is computed. */
static int loops_type(const Loops* loops, int type) {
    if (loops->of[type].function) return type;
    if (loops->integers_divide && PyTypeNum_ISINTEGER(type)) return NPY_DOUBLE;
    switch (type) {
    case NPY_SHORT: case NPY_USHORT: type = NPY_FLOAT; break;
    case NPY_INT: case NPY_UINT: case NPY_LONG: case NPY_ULONG: case NPY_LONGLONG: case NPY_ULONGLONG: type = NPY_DOUBLE; break;
    default: return -1;
    }
    return loops->of[type].function ? type : -1;
}

#endif
