/* The kernels' mathematical functions without a kernel: C that is written from the same definitions, for each set of instructions.

   In: the name and the type of a function.  Out: a loop with NumPy's signature; none where the processor has no fused multiply-add, or the compiler is none
   of those that this is written for.  Promise: the bits of kernels, wherever an element stands.

   The kernels' functions (`exp`, `exp2`, `expm1`, `tanh`, `sinh`, `cosh`, `log`, `log1p` of floats, `sin`, `cos`, `tan` of doubles, `power`) are C as
   well: a second writer (`backends/llvm/polynomials/c.py`) turns the definitions that LLVM IR is written from into `polynomials.h` when the core is
   built, for AVX2, AVX-512 and NEON (`compiled.h`), operation by operation, every multiply-add spelled out. What kernels take from the C library's
   vectors (`log2`, `arctan`, `hypot`, ...) the core calls there too, in the same widths. 0 of ten million arguments differ
   (`tests/backends/test_compiled.py`). So large operands need no compiler for them: they are steps of tapes, and of the passes of the NumPy tier.
   `LAZYNP_POLYNOMIALS=0`, underflow that is not ignored, and processors without a fused multiply-add leave them to kernels. */

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
    void* data;
} Compiled;

#if defined(__GNUC__)
/* All of a function is computed, whatever its argument is; a compiler that minds traps makes branches of choices, and no vectors of those. */
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-trapping-math")
#endif
#define ALWAYS static inline __attribute__((always_inline))
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
#define FUNCTION_LOOP1(NAME, TYPE) \
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
#define FUNCTION_LOOP2(NAME, TYPE) \
    static void LEVEL(NAME##_loop)(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        npy_intp n = dims[0]; \
        (void)data; \
        if (steps[0] == sizeof(TYPE) && steps[1] == sizeof(TYPE) && steps[2] == sizeof(TYPE)) { \
            const TYPE *from = (const TYPE*)args[0], *with = (const TYPE*)args[1]; \
            TYPE* to = (TYPE*)args[2]; \
            VECTORS for (npy_intp k = 0; k < n; k++) to[k] = LEVEL(NAME)(from[k], with[k]); \
        } else if (steps[0] == sizeof(TYPE) && steps[1] == 0 && steps[2] == sizeof(TYPE)) { \
            const TYPE *from = (const TYPE*)args[0], with = *(const TYPE*)args[1]; \
            TYPE* to = (TYPE*)args[2]; \
            VECTORS for (npy_intp k = 0; k < n; k++) to[k] = LEVEL(NAME)(from[k], with); \
        } else { \
            for (npy_intp k = 0; k < n; k++) \
                *(TYPE*)(args[2] + k * steps[2]) = LEVEL(NAME)(*(const TYPE*)(args[0] + k * steps[0]), *(const TYPE*)(args[1] + k * steps[1])); \
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
#if !defined(__clang__)
#pragma GCC pop_options
#endif
#pragma GCC diagnostic pop
#endif
#ifndef COMPILED_LEVELS
static const Compiled* compiled_here(void) { return NULL; }
#define COMPILED_LEVELS 0
static const Compiled* compiled_level(int level) { return (void)level, NULL; }
#endif

/* The C library's vector functions (libmvec), which kernels take where they have no better ones of their own: always the widest that the processor has, on as many
   elements as it takes, with harmless ones where there are fewer, so that an element has the same bits wherever it stands. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
#include <dlfcn.h>
#define LIBMVEC 1
typedef struct {
    void* function;
    double padding; /* for which it is finite, and raises nothing */
} Vectors;
#define VECTORS_LOOPS(ABI, TYPE, LANES, TARGET) \
    typedef TYPE ABI##_##TYPE __attribute__((vector_size(LANES * sizeof(TYPE)))); \
    TARGET static void ABI##_##TYPE##_loop1(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        const Vectors* of = data; \
        ABI##_##TYPE (*function)(ABI##_##TYPE) = (ABI##_##TYPE(*)(ABI##_##TYPE))of->function; \
        for (npy_intp k = 0; k < dims[0]; k += LANES) { \
            TYPE in[LANES], out[LANES]; \
            ABI##_##TYPE x; \
            npy_intp n = dims[0] - k < LANES ? dims[0] - k : LANES; \
            char *from = args[0] + k * steps[0], *to = args[1] + k * steps[1]; \
            if (n == LANES && steps[0] == sizeof(TYPE)) { \
                memcpy(&x, from, sizeof(x)); \
            } else { \
                for (npy_intp j = 0; j < LANES; j++) in[j] = j < n ? *(const TYPE*)(from + j * steps[0]) : (TYPE)of->padding; \
                memcpy(&x, in, sizeof(x)); \
            } \
            x = function(x); \
            if (n == LANES && steps[1] == sizeof(TYPE)) { \
                memcpy(to, &x, sizeof(x)); \
            } else { \
                memcpy(out, &x, sizeof(x)); \
                for (npy_intp j = 0; j < n; j++) *(TYPE*)(to + j * steps[1]) = out[j]; \
            } \
        } \
    } \
    TARGET static void ABI##_##TYPE##_loop2(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        const Vectors* of = data; \
        ABI##_##TYPE (*function)(ABI##_##TYPE, ABI##_##TYPE) = (ABI##_##TYPE(*)(ABI##_##TYPE, ABI##_##TYPE))of->function; \
        for (npy_intp k = 0; k < dims[0]; k += LANES) { \
            TYPE in[2][LANES], out[LANES]; \
            ABI##_##TYPE x[2]; \
            npy_intp n = dims[0] - k < LANES ? dims[0] - k : LANES; \
            for (int o = 0; o < 2; o++) { \
                char* from = args[o] + k * steps[o]; \
                if (n == LANES && steps[o] == sizeof(TYPE)) { \
                    memcpy(&x[o], from, sizeof(x[o])); \
                } else { \
                    for (npy_intp j = 0; j < LANES; j++) in[o][j] = j < n ? *(const TYPE*)(from + j * steps[o]) : (TYPE)of->padding; \
                    memcpy(&x[o], in[o], sizeof(x[o])); \
                } \
            } \
            x[0] = function(x[0], x[1]); \
            memcpy(out, &x[0], sizeof(out)); \
            for (npy_intp j = 0; j < n; j++) *(TYPE*)(args[2] + (k + j) * steps[2]) = out[j]; \
        } \
    }
#define OF_SSE
#define OF_AVX2 __attribute__((target("avx2,fma")))
#define OF_AVX512 __attribute__((target("avx512f,avx512dq")))
VECTORS_LOOPS(sse, double, 2, OF_SSE)
VECTORS_LOOPS(sse, float, 4, OF_SSE)
VECTORS_LOOPS(avx2, double, 4, OF_AVX2)
VECTORS_LOOPS(avx2, float, 8, OF_AVX2)
VECTORS_LOOPS(avx512, double, 8, OF_AVX512)
VECTORS_LOOPS(avx512, float, 16, OF_AVX512)

/* Which functions, under which names, and for which types; as `backends/llvm/mathlib.py` has them. */
static const struct {
    const char *name, *c_name;
    int arity, doubles, floats;
    double padding;
} vectors_table[] = {
    {"log2", "log2", 1, 1, 1, 1}, {"log10", "log10", 1, 1, 1, 1}, {"log1p", "log1p", 1, 1, 0, 1}, {"sin", "sin", 1, 0, 1, 1}, {"cos", "cos", 1, 0, 1, 1},
    {"tan", "tan", 1, 0, 1, 1}, {"arcsin", "asin", 1, 1, 1, 0.5}, {"arccos", "acos", 1, 1, 1, 0.5}, {"arctan", "atan", 1, 1, 1, 1}, {"arctan2", "atan2", 2, 1, 1, 1},
    {"sinh", "sinh", 1, 0, 1, 1}, {"arcsinh", "asinh", 1, 1, 1, 1}, {"arccosh", "acosh", 1, 1, 1, 2}, {"arctanh", "atanh", 1, 1, 1, 0.5}, {"cbrt", "cbrt", 1, 1, 1, 1},
    {"hypot", "hypot", 2, 1, 1, 1}};
#define VECTORS_FUNCTIONS ((int)(sizeof(vectors_table) / sizeof(vectors_table[0])))

static char vectors_wanted[8]; /* what LAZYNP_LIBMVEC says: nothing, 0, or one of the three */

/* The letter of the widest vectors that are wanted and that the processor has; 0 where none are wanted. */
static char vectors_letter(void) {
    char best = 'b';
    __builtin_cpu_init();
    if (strcmp(vectors_wanted, "0") == 0) return 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        if (strcmp(vectors_wanted, "avx2") == 0) return 'd';
        best = 'd';
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) best = 'e';
    return strcmp(vectors_wanted, "sse") == 0 ? 'b' : best;
}

/* A loop over one of them; whether there is one here. */
static int vectors_find(const char* name, int type, Compiled* to) {
    static Vectors kept[VECTORS_FUNCTIONS][2];
    static void* library;
    static int opened;
    char letter = vectors_letter(), symbol[64];
    int lanes = (letter == 'e' ? 8 : letter == 'd' ? 4 : 2) * (type == NPY_FLOAT ? 2 : 1), wide = type == NPY_DOUBLE;
    for (int k = 0; k < VECTORS_FUNCTIONS; k++) {
        int arity = vectors_table[k].arity;
        Vectors* of = &kept[k][wide];
        if (letter == 0 || strcmp(vectors_table[k].name, name) || !(wide ? vectors_table[k].doubles : vectors_table[k].floats)) continue;
        if (!opened) opened = 1, library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
        snprintf(symbol, sizeof(symbol), "_ZGV%cN%d%s_%s%s", letter, lanes, arity == 2 ? "vv" : "v", vectors_table[k].c_name, wide ? "" : "f");
        of->function = library ? dlsym(library, symbol) : NULL, of->padding = vectors_table[k].padding;
        if (of->function == NULL) return 0;
#define LOOP_OF(ABI) (wide ? (arity == 2 ? ABI##_double_loop2 : ABI##_double_loop1) : (arity == 2 ? ABI##_float_loop2 : ABI##_float_loop1))
        *to = (Compiled){name, type, letter == 'e' ? LOOP_OF(avx512) : letter == 'd' ? LOOP_OF(avx2) : LOOP_OF(sse), of};
        return 1;
    }
    return 0;
}
#else
static char vectors_wanted[8];
static int vectors_find(const char* name, int type, Compiled* to) { return (void)name, (void)type, (void)to, 0; }
#endif

/* The loop of a function, for one set of instructions (-1: the best that this processor has); whether there is one. */
static int compiled_find(const char* name, int type, int level, Compiled* to) {
    const Compiled* found = level < 0 ? compiled_here() : compiled_level(level);
    for (; found && found->name; found++)
        if (found->type == type && strcmp(found->name, name) == 0) return *to = *found, 1;
    return level < 0 ? vectors_find(name, type, to) : 0;
}

/* Whether a function is one of lazynp's own polynomials here. */
static int compiled_own(const char* name, int type) {
    const Compiled* found = compiled_here();
    while (found && found->name && (found->type != type || strcmp(found->name, name))) found++;
    return found && found->name;
}

/* For tests: `to` = the function of `from`, and of `with` (or NULL), all without gaps and of one type; -1 where there is no such loop. */
static int compiled_call(const char* name, PyObject* from, PyObject* with, PyObject* to, int level) {
    Compiled loop;
    npy_intp size = PyArray_ITEMSIZE((PyArrayObject*)from), dims[1] = {PyArray_SIZE((PyArrayObject*)from)}, steps[3] = {size, size, size};
    char* args[3] = {PyArray_BYTES((PyArrayObject*)from), PyArray_BYTES((PyArrayObject*)(with ? with : to)), PyArray_BYTES((PyArrayObject*)to)};
    if (!compiled_find(name, PyArray_TYPE((PyArrayObject*)from), level, &loop)) return -1;
    loop.loop(args, dims, steps, loop.data);
    return 0;
}

#endif
