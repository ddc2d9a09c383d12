/* The kernels' mathematical functions without a kernel: C that is written from the same definitions, for each set of instructions.

   In: the name and the type of a function.  Out: a loop with NumPy's signature; none where the processor has no fused multiply-add, or the compiler is none
   of those that this is written for.  Promise: the bits of kernels, wherever an element stands. */

#ifndef LAZYNP_COMPILED_H
#define LAZYNP_COMPILED_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "numpy/arrayobject.h"
#include "numpy/ufuncobject.h"

typedef struct {
    const char* name;
    int type;
    PyUFuncGenericFunction loop;
} Compiled;

#if defined(__GNUC__)
static inline uint64_t bits_of_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
static inline uint32_t bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
static inline double double_of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}
static inline float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Operand and result are the same elements, or lie apart. */
#if defined(__clang__)
#define VECTORS _Pragma("clang loop vectorize(enable)")
#else
#define VECTORS _Pragma("GCC ivdep")
#endif
#define FUNCTION_LOOP(NAME, TYPE) \
    static void LEVEL(NAME##_loop)(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        npy_intp n = dims[0]; \
        (void)data; \
        if (steps[0] == sizeof(TYPE) && steps[1] == sizeof(TYPE)) { \
            const TYPE* from = (const TYPE*)args[0]; \
            TYPE* to = (TYPE*)args[1]; \
            VECTORS for (npy_intp k = 0; k < n; k++) to[k] = LEVEL(NAME)(from[k]); \
        } else { \
            for (npy_intp k = 0; k < n; k++) *(TYPE*)(args[1] + k * steps[1]) = LEVEL(NAME)(*(const TYPE*)(args[0] + k * steps[0])); \
        } \
    }
#define PARTIAL_LOOP(NAME, BEYOND) \
    static void LEVEL(NAME##_loop)(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        npy_intp n = dims[0]; \
        uint64_t far = 0; \
        (void)data; \
        if (steps[0] == sizeof(double) && steps[1] == sizeof(double)) { \
            const double* from = (const double*)args[0]; \
            double* to = (double*)args[1]; \
            for (npy_intp k = 0; k < n; k++) far |= (uint64_t)LEVEL(is_far)(from[k]); \
            if (!far) { \
                VECTORS for (npy_intp k = 0; k < n; k++) to[k] = LEVEL(NAME)(from[k]); \
                return; \
            } \
        } \
        for (npy_intp k = 0; k < n; k++) { \
            double x = *(const double*)(args[0] + k * steps[0]); \
            *(double*)(args[1] + k * steps[1]) = LEVEL(is_far)(x) ? BEYOND(x) : LEVEL(NAME)(x); \
        } \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-variable" /* of a definition not every value is wanted by every function */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define LEVEL(NAME) NAME##_avx2
#include "polynomials.h"
#undef LEVEL
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512")
#endif
#define LEVEL(NAME) NAME##_avx512
#include "polynomials.h"
#undef LEVEL
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
static const Compiled* compiled_here(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return NULL;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) return functions_avx512;
    return functions_avx2;
}
#define COMPILED_LEVELS 2
static const Compiled* compiled_level(int level) { return compiled_here() == NULL ? NULL : level == 0 ? functions_avx2 : compiled_here() == functions_avx512 ? functions_avx512 : NULL; }
#elif defined(__aarch64__)
#define LEVEL(NAME) NAME##_neon
#include "polynomials.h"
#undef LEVEL
static const Compiled* compiled_here(void) { return functions_neon; }
#define COMPILED_LEVELS 1
static const Compiled* compiled_level(int level) { return level == 0 ? functions_neon : NULL; }
#endif
#pragma GCC diagnostic pop
#endif
#ifndef COMPILED_LEVELS
static const Compiled* compiled_here(void) { return NULL; }
#define COMPILED_LEVELS 0
static const Compiled* compiled_level(int level) { return (void)level, NULL; }
#endif

/* The loop of a function, for one set of instructions (-1: the best that this processor has); NULL where there is none. */
static PyUFuncGenericFunction compiled_loop(const char* name, int type, int level) {
    const Compiled* found = level < 0 ? compiled_here() : compiled_level(level);
    for (; found && found->name; found++)
        if (found->type == type && strcmp(found->name, name) == 0) return found->loop;
    return NULL;
}

/* For tests: `to` = the function of `from`, both without gaps and of one type; -1 where there is no such loop. */
static int compiled_call(const char* name, PyObject* from, PyObject* to, int level) {
    PyUFuncGenericFunction loop = compiled_loop(name, PyArray_TYPE((PyArrayObject*)from), level);
    npy_intp dims[1] = {PyArray_SIZE((PyArrayObject*)from)}, steps[2] = {PyArray_ITEMSIZE((PyArrayObject*)from), PyArray_ITEMSIZE((PyArrayObject*)from)};
    char* args[2] = {PyArray_BYTES((PyArrayObject*)from), PyArray_BYTES((PyArrayObject*)to)};
    if (loop) loop(args, dims, steps, NULL);
    return loop ? 0 : -1;
}

#endif
