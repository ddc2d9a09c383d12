/* Reductions in the order of kernels, in C: `ordered.py` is the twin, `codegen/reduce.py` says what the order is.

   In: contiguous memory of floats or doubles, its extents, an operation.  Out: the results.  Promise: the same bits as kernels and the twin. */

#ifndef LAZYNP_ORDERED_H
#define LAZYNP_ORDERED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, CHUNK = 512, ROWS = 256, LEVELS = 48, TOGETHER = 512 };
enum { NO_OPERATION = -1, NO_MEMORY = -2 };

#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define WIDE
#endif

#define ADD(A, B) ((A) + (B))
#define MULTIPLY(A, B) ((A) * (B))

/* rows_: each of `rows` rows of n elements.  columns_: n rows to one, `outer` times; `width` elements each; `stack` is scratch. */
#define DEFINE(NAME, T, OP)                                                                                       \
    static T halved_##NAME##_##T(T* lanes, int64_t width) {                                                        \
        for (int64_t half = LANES / 2; half; half /= 2) {                                                          \
            for (int64_t k = 0; k + half < width; k++) lanes[k] = OP(lanes[k], lanes[k + half]);                   \
            if (width > half) width = half;                                                                        \
        }                                                                                                          \
        return lanes[0];                                                                                           \
    }                                                                                                              \
    WIDE static void rows_##NAME##_##T(const T* x, int64_t rows, int64_t n, T identity, T* out) {                  \
        T stack[LEVELS], lanes[LANES];                                                                             \
        for (int64_t row = 0; row < rows; row++, x += n) {                                                         \
            T total = identity;                                                                                    \
            if (n <= LANES) {                                                                                      \
                memcpy(lanes, x, (size_t)n * sizeof(T));                                                           \
                T found = halved_##NAME##_##T(lanes, n);                                                           \
                out[row] = OP(identity, found);                                                                    \
                continue;                                                                                          \
            }                                                                                                      \
            int64_t chunks = 0;                                                                                    \
            for (int64_t at = 0; at < n; at += CHUNK, chunks++) {                                                  \
                int64_t length = n - at < CHUNK ? n - at : CHUNK, k = 0;                                           \
                for (int l = 0; l < LANES; l++) lanes[l] = identity;                                               \
                for (; k + LANES <= length; k += LANES)                                                            \
                    for (int l = 0; l < LANES; l++) lanes[l] = OP(lanes[l], x[at + k + l]);                        \
                for (int l = 0; k + l < length; l++) lanes[l] = OP(lanes[l], x[at + k + l]);                       \
                for (int l = 0; l < 16; l++) lanes[l] = OP(lanes[l], lanes[l + 16]);                               \
                for (int l = 0; l < 8; l++) lanes[l] = OP(lanes[l], lanes[l + 8]);                                 \
                T value = halved_##NAME##_##T(lanes, 8);                                                           \
                int level = 0;                                                                                     \
                for (; chunks >> level & 1; level++) value = OP(stack[level], value);                              \
                stack[level] = value;                                                                              \
            }                                                                                                      \
            for (int level = 0; chunks >> level; level++)                                                          \
                if (chunks >> level & 1) total = OP(stack[level], total);                                          \
            out[row] = total;                                                                                      \
        }                                                                                                          \
    }                                                                                                              \
    WIDE static void columns_##NAME##_##T(const T* x, int64_t outer, int64_t n, int64_t width, T identity, T* out, T* stack) { \
        for (int64_t o = 0; o < outer; o++, x += n * width, out += width) {                                        \
            for (int64_t lo = 0; lo < width; lo += TOGETHER) {                                                     \
                int64_t count = width - lo < TOGETHER ? width - lo : TOGETHER;                                     \
                T* __restrict block = out + lo;                                                                    \
                for (int64_t first = 0, number = 0; first < n || !number; first += ROWS, number++) {               \
                    int64_t last = n - first < ROWS ? n : first + ROWS;                                            \
                    for (int64_t k = 0; k < count; k++) block[k] = identity;                                       \
                    for (int64_t row = first; row < last; row++) {                                                 \
                        const T* at = x + row * width + lo;                                                        \
                        for (int64_t k = 0; k < count; k++) block[k] = OP(block[k], at[k]);                        \
                    }                                                                                              \
                    /* The last block takes over all that was counted. */                                          \
                    int level = 0;                                                                                 \
                    for (; number >> level && (last == n || number >> level & 1); level++) {                       \
                        const T* held = stack + level * TOGETHER;                                                  \
                        if (number >> level & 1)                                                                   \
                            for (int64_t k = 0; k < count; k++) block[k] = OP(held[k], block[k]);                  \
                    }                                                                                              \
                    if (last < n) memcpy(stack + level * TOGETHER, block, (size_t)count * sizeof(T));              \
                }                                                                                                  \
            }                                                                                                      \
        }                                                                                                          \
    }

#define BOTH(NAME, OP) DEFINE(NAME, float, OP) DEFINE(NAME, double, OP)

BOTH(add, ADD)
BOTH(multiply, MULTIPLY)

#define CALL(NAME, T)                                                                                 \
    if (width) columns_##NAME##_##T((const T*)x, outer, n, width, (T)identity, (T*)out, (T*)stack);   \
    else rows_##NAME##_##T((const T*)x, outer, n, (T)identity, (T*)out);                              \
    return 0
#define CASE(NUMBER, NAME)             \
    case NUMBER:                       \
        if (size == 4) { CALL(NAME, float); } \
        else { CALL(NAME, double); }

static int ordered_into(int op, int size, const char* x, int64_t outer, int64_t n, int64_t width, double identity, char* out, char* stack) {
    switch (op) {
        CASE(0, add)
        CASE(1, multiply)
    }
    return NO_OPERATION;
}

/* width 0: rows.  Returns 0, or what is missing. */
static int ordered_reduce(int op, int size, const char* x, int64_t outer, int64_t n, int64_t width, double identity, char* out) {
    int levels = 0;
    while (width && n > (int64_t)ROWS << levels) levels++;
    char* stack = levels ? malloc((size_t)levels * TOGETHER * size) : 0;
    if (levels && !stack) return NO_MEMORY;
    int failed = ordered_into(op, size, x, outer, n, width, identity, out, stack);
    free(stack);
    return failed;
}

#endif
