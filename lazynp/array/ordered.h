/* Reductions in the order of kernels, which `codegen/reduce.py` says.

   In: memory of floats or doubles whose rows are contiguous, its extents, an operation.  Out: the results.  Promise: the same bits as kernels. */

#ifndef LAZYNP_ORDERED_H
#define LAZYNP_ORDERED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERED_LANES = 32, ORDERED_CHUNK = 512, ORDERED_ROWS = 256, ORDERED_LEVELS = 48, ORDERED_TOGETHER = 512 };
enum { ORDERED_NO_OPERATION = -1, ORDERED_NO_MEMORY = -2 };

#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
#define ORDERED_WIDE __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define ORDERED_WIDE
#endif
#if defined(__GNUC__)
#define ORDERED_INLINE static inline __attribute__((always_inline)) /* with the vectors of who calls it */
#else
#define ORDERED_INLINE static inline
#endif

#define ORDERED_ADD(A, B) ((A) + (B))
#define ORDERED_MULTIPLY(A, B) ((A) * (B))
/* What is combined: elements, or the squares of what they are apart from a mean. */
#define ORDERED_AS_IT_IS(X, MEAN) (X)
#define ORDERED_SQUARE_APART(X, MEAN) (((X) - (MEAN)) * ((X) - (MEAN)))

/* ordered_chunk_: at most ORDERED_CHUNK elements.  ordered_row_: n elements.  ordered_columns_: n rows, `across` elements one behind the other, of
   `width` elements each to one; `stack` is scratch. */
#define ORDERED_DEFINE(NAME, T, OP, OF)                                                                                \
    static inline T ordered_halved_##NAME##_##T(T* lanes, int64_t width) {                                             \
        for (int64_t half = ORDERED_LANES / 2; half; half /= 2) {                                                      \
            for (int64_t k = 0; k + half < width; k++) lanes[k] = OP(lanes[k], lanes[k + half]);                       \
            if (width > half) width = half;                                                                            \
        }                                                                                                              \
        return lanes[0];                                                                                               \
    }                                                                                                                  \
    ORDERED_INLINE T ordered_chunk_##NAME##_##T(const T* x, int64_t length, T identity, T mean) {                      \
        T lanes[ORDERED_LANES];                                                                                        \
        int64_t k = 0;                                                                                                 \
        (void)mean;                                                                                                    \
        for (int l = 0; l < ORDERED_LANES; l++) lanes[l] = identity;                                                   \
        for (; k + ORDERED_LANES <= length; k += ORDERED_LANES)                                                        \
            for (int l = 0; l < ORDERED_LANES; l++) lanes[l] = OP(lanes[l], OF(x[k + l], mean));                       \
        for (int l = 0; k + l < length; l++) lanes[l] = OP(lanes[l], OF(x[k + l], mean));                              \
        for (int l = 0; l < 16; l++) lanes[l] = OP(lanes[l], lanes[l + 16]);                                           \
        for (int l = 0; l < 8; l++) lanes[l] = OP(lanes[l], lanes[l + 8]);                                             \
        return ordered_halved_##NAME##_##T(lanes, 8);                                                                  \
    }                                                                                                                  \
    ORDERED_INLINE T ordered_row_##NAME##_##T(const T* x, int64_t n, T identity, T mean) {                             \
        T stack[ORDERED_LEVELS], lanes[ORDERED_LANES], total = identity;                                               \
        int64_t chunks = 0;                                                                                            \
        if (n <= ORDERED_LANES) {                                                                                      \
            for (int64_t k = 0; k < n; k++) lanes[k] = OF(x[k], mean);                                                 \
            return OP(identity, ordered_halved_##NAME##_##T(lanes, n));                                                \
        }                                                                                                              \
        for (int64_t at = 0; at < n; at += ORDERED_CHUNK, chunks++) {                                                  \
            T value = ordered_chunk_##NAME##_##T(x + at, n - at < ORDERED_CHUNK ? n - at : ORDERED_CHUNK, identity, mean); \
            int level = 0;                                                                                             \
            for (; chunks >> level & 1; level++) value = OP(stack[level], value);                                      \
            stack[level] = value;                                                                                      \
        }                                                                                                              \
        for (int level = 0; chunks >> level; level++)                                                                  \
            if (chunks >> level & 1) total = OP(stack[level], total);                                                  \
        return total;                                                                                                  \
    }                                                                                                                  \
    ORDERED_WIDE static void ordered_rows_##NAME##_##T(const T* x, int64_t rows, int64_t n, int64_t across, T identity, const T* means, T* out) { \
        for (int64_t row = 0; row < rows; row++) out[row] = ordered_row_##NAME##_##T(x + row * across, n, identity, means ? means[row] : 0); \
    }                                                                                                                  \
    ORDERED_WIDE static void ordered_columns_##NAME##_##T(const T* x, int64_t outer, int64_t n, int64_t width, int64_t across, T identity, const T* means, T* out, T* stack) { \
        for (int64_t o = 0; o < outer; o++, x += n * across, out += width) {                                           \
            for (int64_t lo = 0; lo < width; lo += ORDERED_TOGETHER) {                                                 \
                int64_t count = width - lo < ORDERED_TOGETHER ? width - lo : ORDERED_TOGETHER;                         \
                T* __restrict block = out + lo;                                                                        \
                const T* mean = means ? means + lo : x + lo; /* what is not looked at */                               \
                (void)mean;                                                                                            \
                for (int64_t first = 0, number = 0; first < n || !number; first += ORDERED_ROWS, number++) {           \
                    int64_t last = n - first < ORDERED_ROWS ? n : first + ORDERED_ROWS;                                \
                    for (int64_t k = 0; k < count; k++) block[k] = identity;                                           \
                    int64_t row = first;                                                                               \
                    for (; row + 4 <= last; row += 4) {                                                                \
                        const T *a = x + row * across + lo, *b = a + across, *c = b + across, *d = c + across;         \
                        for (int64_t k = 0; k < count; k++) block[k] = OP(OP(OP(OP(block[k], OF(a[k], mean[k])), OF(b[k], mean[k])), OF(c[k], mean[k])), OF(d[k], mean[k])); \
                    }                                                                                                  \
                    for (; row < last; row++) {                                                                        \
                        const T* at = x + row * across + lo;                                                           \
                        for (int64_t k = 0; k < count; k++) block[k] = OP(block[k], OF(at[k], mean[k]));               \
                    }                                                                                                  \
                    /* The last block takes over all that was counted. */                                              \
                    int level = 0;                                                                                     \
                    for (; number >> level && (last == n || number >> level & 1); level++) {                           \
                        const T* held = stack + level * ORDERED_TOGETHER;                                              \
                        if (number >> level & 1)                                                                       \
                            for (int64_t k = 0; k < count; k++) block[k] = OP(held[k], block[k]);                      \
                    }                                                                                                  \
                    if (last < n) memcpy(stack + level * ORDERED_TOGETHER, block, (size_t)count * sizeof(T));          \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

/* The results of chunks, one after the other. */
#define ORDERED_CHUNKS(NAME, T)                                                                                        \
    ORDERED_WIDE static void ordered_chunks_##NAME##_##T(const T* x, int64_t n, T identity, T mean, T* out) {          \
        for (int64_t at = 0; at < n; at += ORDERED_CHUNK) *out++ = ordered_chunk_##NAME##_##T(x + at, n - at < ORDERED_CHUNK ? n - at : ORDERED_CHUNK, identity, mean); \
    }

#define ORDERED_BOTH(NAME, OP, OF) ORDERED_DEFINE(NAME, float, OP, OF) ORDERED_DEFINE(NAME, double, OP, OF)

ORDERED_BOTH(add, ORDERED_ADD, ORDERED_AS_IT_IS)
ORDERED_BOTH(multiply, ORDERED_MULTIPLY, ORDERED_AS_IT_IS)
ORDERED_BOTH(squares, ORDERED_ADD, ORDERED_SQUARE_APART)
ORDERED_CHUNKS(add, float)
ORDERED_CHUNKS(add, double)
ORDERED_CHUNKS(squares, float)
ORDERED_CHUNKS(squares, double)

/* How much scratch columns of n rows take, in elements. */
static inline int64_t ordered_scratch(int64_t n) {
    int levels = 0;
    while (n > (int64_t)ORDERED_ROWS << levels) levels++;
    return (int64_t)levels * ORDERED_TOGETHER;
}

#define ORDERED_CALL(NAME, T)                                                                                          \
    if (width) ordered_columns_##NAME##_##T((const T*)x, outer, n, width, width, (T)identity, 0, (T*)out, (T*)stack);  \
    else ordered_rows_##NAME##_##T((const T*)x, outer, n, n, (T)identity, 0, (T*)out);                                 \
    return 0
#define ORDERED_CASE(NUMBER, NAME)                                                                                     \
    case NUMBER:                                                                                                       \
        if (size == 4) { ORDERED_CALL(NAME, float); }                                                                  \
        else { ORDERED_CALL(NAME, double); }

static int ordered_into(int op, int size, const char* x, int64_t outer, int64_t n, int64_t width, double identity, char* out, char* stack) {
    switch (op) {
        ORDERED_CASE(0, add)
        ORDERED_CASE(1, multiply)
    }
    return ORDERED_NO_OPERATION;
}

/* width 0: rows.  Returns 0, or what is missing. */
static int ordered_reduce(int op, int size, const char* x, int64_t outer, int64_t n, int64_t width, double identity, char* out) {
    int64_t scratch = width ? ordered_scratch(n) : 0;
    char* stack = scratch ? malloc((size_t)(scratch * size)) : 0;
    int failed;
    if (scratch && !stack) return ORDERED_NO_MEMORY;
    failed = ordered_into(op, size, x, outer, n, width, identity, out, stack);
    free(stack);
    return failed;
}

#endif
