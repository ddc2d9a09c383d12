/* Integer powers of floats, negative ones among them.

   In: the operands of NumPy's loop for `power`, the exponent one whole number.  Out: its bits.  Promise: what is not certain is NumPy's loop's.

   NumPy's powers of negative numbers leave its vectors: each takes a library's function, 40 times as long as a positive one (87 ns; `x**3` of signed
   numbers is common).  That function is not correctly rounded, but nearly: of 10^8 powers none is more than 0.511 units in the last place from the true
   one.  So where the true power is more than 0.02 units from the middle between two floats, the function rounds it as one rounds the true power, which
   a product of pairs of floats gives with 100 bits.  The others, one in 25, are asked of NumPy one by one. */

#ifndef LAZYNP_POWERS_H
#define LAZYNP_POWERS_H

#include <float.h>
#include <math.h>
#include "numpy/ufuncobject.h"

/* Where the functions that NumPy calls are known. */
#if defined(__GNUC__) && defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#define POWERS_KNOWN 1
#if defined(__x86_64__)
#define POWERS_TARGET __attribute__((target("avx2,fma")))
#define POWERS_CAN (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define POWERS_TARGET
#define POWERS_CAN 1
#endif

#define POWERS_BLOCK 256
#define POWERS_MOST 16       /* of an exponent; a power of two */
#define POWERS_CERTAIN 0.48  /* units in the last place between a power and the float that it is rounded to, at most */
#define POWERS_COMPARED 4096 /* the first ones are compared with NumPy's */

typedef struct {
    PyUFuncGenericFunction function; /* NumPy's */
    void* data;
    int all;      /* it takes that function of all, not of negative ones only; -1: not yet known */
    int compared; /* how many were, about: several threads count */
    int differs;  /* one did */
} Powers;
static Powers powers_of_doubles, powers_of_floats;

/* What NumPy says of `n` elements of some bytes, side by side. */
static void powers_ask(const Powers* of, void* x, char* y, void* r, npy_intp n, npy_intp size) {
    char* args[3] = {x, y, r};
    npy_intp steps[3] = {size, 0, size};
    of->function(args, &n, steps, of->data);
}

/* Floats that have no sign are ordered as their bits are; to compare floats raises an error where one is a NaN. */
static inline npy_int64 powers_bits(double x) {
    npy_int64 bits;
    memcpy(&bits, &x, 8);
    return bits;
}

/* `a ** e` of positive numbers, and whether it is certain. */
POWERS_TARGET static void powers_block(const double* a, double* high, npy_bool* certain, npy_intp n, int e) {
    double x[POWERS_BLOCK], low[POWERS_BLOCK];
    npy_int64 lowest = powers_bits(ldexp(1, -900 / abs(e))), highest = powers_bits(ldexp(1, 900 / abs(e)));
    int bit = POWERS_MOST;
    while (!(abs(e) & bit)) bit >>= 1;
    for (npy_intp k = 0; k < n; k++) {
        npy_int64 bits = powers_bits(a[k]);
        certain[k] = (bits > lowest) & (bits < highest);
        high[k] = x[k] = certain[k] ? a[k] : 1, low[k] = 0; /* what overflows or underflows raises NumPy's flags */
    }
    while (bit >>= 1) {
        for (npy_intp k = 0; k < n; k++) { /* squared */
            double p = high[k] * high[k], rest = __builtin_fma(high[k], high[k], -p) + 2 * high[k] * low[k];
            high[k] = p + rest;
            low[k] = rest - (high[k] - p);
        }
        if (!(abs(e) & bit)) continue;
        for (npy_intp k = 0; k < n; k++) { /* and multiplied once more */
            double p = high[k] * x[k], rest = __builtin_fma(high[k], x[k], -p) + low[k] * x[k];
            high[k] = p + rest;
            low[k] = rest - (high[k] - p);
        }
    }
    for (npy_intp k = 0; k < n && e < 0; k++) {
        double q = 1 / high[k], rest = q * (__builtin_fma(-q, high[k], 1.0) - q * low[k]);
        high[k] = q + rest;
        low[k] = rest - (high[k] - q);
    }
    for (npy_intp k = 0; k < n; k++) {
        npy_int64 bits, top = 0x7ff0000000000000;
        double unit;
        memcpy(&bits, &high[k], 8);
        top &= bits;
        memcpy(&unit, &top, 8);
        certain[k] &= (low[k] == 0) | ((fabs(low[k]) < POWERS_CERTAIN * DBL_EPSILON * unit) & (bits != top));
    }
}

/* The same of single precision, whose powers doubles hold with 20 bits more than it takes to round them. */
POWERS_TARGET static void powers_block_float(const float* a, float* r, npy_bool* certain, npy_intp n, int e) {
    double x[POWERS_BLOCK], power[POWERS_BLOCK];
    npy_int64 lowest = powers_bits(ldexp(1, -120 / abs(e))), highest = powers_bits(ldexp(1, 120 / abs(e)));
    int bit = POWERS_MOST;
    while (!(abs(e) & bit)) bit >>= 1;
    for (npy_intp k = 0; k < n; k++) {
        npy_int32 small;
        npy_int64 bits; /* as a double, which a conversion by arithmetic would make of it, but for what is signalling */
        memcpy(&small, &a[k], 4);
        bits = ((npy_int64)(small & 0x7fffffff) << 29) + ((npy_int64)896 << 52);
        certain[k] = (bits > lowest) & (bits < highest) & (small < 0x7f800000);
        power[k] = x[k] = certain[k] ? a[k] : 1;
    }
    while (bit >>= 1) {
        for (npy_intp k = 0; k < n; k++) power[k] *= power[k];
        for (npy_intp k = 0; k < n && abs(e) & bit; k++) power[k] *= x[k];
    }
    for (npy_intp k = 0; k < n && e < 0; k++) power[k] = 1 / power[k];
    for (npy_intp k = 0; k < n; k++) {
        npy_int32 bits, top = 0x7f800000;
        float unit;
        double rest;
        r[k] = (float)power[k];
        memcpy(&bits, &r[k], 4);
        top &= bits;
        memcpy(&unit, &top, 4);
        rest = fabs(power[k] - r[k]);
        certain[k] &= (rest == 0) | ((rest < POWERS_CERTAIN * FLT_EPSILON * unit) & (bits != top));
    }
}

/* Whether what NumPy computes of positive numbers, too, is the C library's function; vectors differ from it in one of twenty. */
static int powers_look(const Powers* of) {
    double x[POWERS_BLOCK], r[POWERS_BLOCK], y = 2.7;
    for (int k = 0; k < POWERS_BLOCK; k++) x[k] = 0.5 + k * 0.0137;
    powers_ask(of, x, (char*)&y, r, POWERS_BLOCK, 8);
    for (int k = 0; k < POWERS_BLOCK; k++)
        if (r[k] != pow(x[k], y)) return 0;
    return 1;
}

/* Whether a number has a sign, and whether one of many has. */
#define POWERS_SIGNED(TYPE, BITS) \
    static inline int has_sign_##TYPE(TYPE x) { \
        BITS bits; \
        memcpy(&bits, &x, sizeof(x)); \
        return bits < 0; \
    } \
    static int any_sign_##TYPE(const char* x, npy_intp n) { \
        BITS found = 0; \
        for (npy_intp k = 0; k < n; k++) found |= ((const BITS*)x)[k]; \
        return found < 0; \
    }
POWERS_SIGNED(double, npy_int64)
POWERS_SIGNED(float, npy_int32)
#undef POWERS_SIGNED

#define POWERS(NAME, TYPE, OF, BLOCK, ALL) \
    static void NAME(char** args, npy_intp const* dims, npy_intp const* steps, void* data) { \
        Powers* of = &OF; \
        npy_intp n = dims[0]; \
        TYPE a[POWERS_BLOCK], of_positive[POWERS_BLOCK], power[POWERS_BLOCK], odd[POWERS_BLOCK], y; \
        npy_bool certain[POWERS_BLOCK]; \
        npy_intp place[POWERS_BLOCK]; \
        int e; \
        (void)data; \
        if (n == 0 || steps[1] != 0 || steps[0] != sizeof(TYPE) || steps[2] != sizeof(TYPE) || of->differs) goto theirs; /* of elements apart NumPy's bits may be others */ \
        memcpy(&y, args[1], sizeof(y)); \
        e = __builtin_isgreaterequal(y, -POWERS_MOST) && __builtin_islessequal(y, POWERS_MOST) ? (int)y : 0; \
        if (e == 0 || e == 1 || (TYPE)e != y) goto theirs; \
        if (of->all < 0) of->all = ALL; \
        if (!of->all && !any_sign_##TYPE(args[0], n)) goto theirs; \
        for (npy_intp at = 0; at < n; at += POWERS_BLOCK) { \
            npy_intp count = n - at < POWERS_BLOCK ? n - at : POWERS_BLOCK, negative = 0, left = 0; /* `left`: to be asked for */ \
            TYPE *x = (TYPE*)args[0] + at, *r = (TYPE*)args[2] + at, *theirs = of_positive; \
            for (npy_intp k = 0; k < count; k++) { \
                TYPE v = x[k]; \
                negative += has_sign_##TYPE(v); \
                a[k] = has_sign_##TYPE(v) ? -v : v; \
            } \
            BLOCK(a, power, certain, count, e); \
            if (negative < count && !of->all) powers_ask(of, a, args[1], of_positive, count, sizeof(TYPE)); \
            else theirs = power; \
            if (of->compared < POWERS_COMPARED) { /* `odd` is what NumPy says of all */ \
                powers_ask(of, x, args[1], odd, count, sizeof(TYPE)); \
                for (npy_intp k = 0; k < count; k++) { \
                    TYPE v = x[k]; \
                    if (!certain[k] || !(has_sign_##TYPE(v) || of->all)) continue; \
                    if (odd[k] != (has_sign_##TYPE(v) && e & 1 ? -power[k] : power[k])) of->differs = 1; \
                } \
                if (of->differs) return powers_ask(of, x, args[1], r, n - at, sizeof(TYPE)); \
                of->compared += (int)count; \
            } \
            for (npy_intp k = 0; k < count; k++) { /* (the result may lie where `x` does) */ \
                TYPE v = x[k]; \
                int takes = certain[k] || !(has_sign_##TYPE(v) || of->all); \
                place[left] = k, odd[left] = v, left += !takes; \
                r[k] = has_sign_##TYPE(v) ? (e & 1 ? -power[k] : power[k]) : theirs[k]; \
            } \
            if (left == 0) continue; \
            powers_ask(of, odd, args[1], a, left, sizeof(TYPE)); \
            for (npy_intp k = 0; k < left; k++) r[place[k]] = a[k]; \
        } \
        return; \
    theirs: \
        of->function(args, dims, steps, of->data); \
    }
POWERS(powers_double, double, powers_of_doubles, powers_block, powers_look(of))
POWERS(powers_float, float, powers_of_floats, powers_block_float, 0)
#undef POWERS
#else
#define POWERS_KNOWN 0
#endif

/* Put these loops in the place of NumPy's. */
static void powers_install(PyUFuncGenericFunction* function, void* data, int type) {
#if POWERS_KNOWN
    Powers* of = type == NPY_DOUBLE ? &powers_of_doubles : &powers_of_floats;
    if (*function == NULL || !POWERS_CAN || *function == powers_double || *function == powers_float) return;
    *of = (Powers){*function, data, -1, 0, 0};
    *function = type == NPY_DOUBLE ? powers_double : powers_float;
#else
    (void)function, (void)data, (void)type;
#endif
}

#endif
