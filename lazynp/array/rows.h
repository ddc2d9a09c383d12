/* Rows of few elements combined, without a call of NumPy's loop for each.

   In: rows whose elements lie side by side.  Out: their sums in NumPy's order, to the bit, their extremes, variances and standard deviations.  Promise: no flag is raised but those that
   NumPy's loops raise; what depends on their vectors (which zero, which NaN is the largest) is left to them.

   NumPy halves a row until at most 128 elements are left, which it adds in eight sums, and those in pairs; fewer than eight it adds one after the other.

   Rows and columns are combined in C (`rows.h`): sums, means, extremes, variances and standard deviations along an axis, in NumPy's order (eight sums
   of at most 128 elements, halves of more; columns one row after the other), which is compared with NumPy's result before it is used. A row that
   NumPy's loop is called for costs 14 ns and more, here two; zeros and NaN among extremes are that loop's. Rows of what waits are combined with the
   steps that compute it, some rows at a time (`rows_waiting`, in `sums.h`); if the program has the elements as well they are stored by the same pass.
   `diff` is a difference of two parts. */

#ifndef LAZYNP_ROWS_H
#define LAZYNP_ROWS_H

typedef void (*RowsReduced)(const char* from, npy_intp rows, npy_intp columns, npy_intp across, char* to);
typedef void (*RowsSpread)(const char* from, npy_intp rows, npy_intp columns, npy_intp across, double by, int root, char* to);

/* Of doubles, floats, and whole numbers of two lengths. */
typedef struct {
    RowsReduced rows_summed[2], columns_summed[2], extremes[2][4]; /* the smallest, and the largest */
    RowsSpread rows_spread[2], columns_spread[2];
    void (*choose)(const char* c, npy_intp sc, const char* p, npy_intp sp, const char* q, npy_intp sq, char* to, npy_intp n, npy_intp size); /* of `where` */
} RowLoops;

#define ROW_SUMS 8     /* sums that a part is added in */
#define ROW_PART 128   /* elements that NumPy does not halve */
#define COLUMNS_AT_ONCE 512
#define ROW_EXTREME 256 /* elements: the vectors of NumPy's loop are worth a call from here on */

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif
/* The elements of a part are `OF(k)`: the `k`-th of `a` as it is, or the square of what it is apart from `mean`. */
#define AS_IT_IS(k) (a[k])
#define SQUARE_APART(k) ((a[k] - mean) * (a[k] - mean))
#define ROW_SUM(NAME, TYPE, OF)                                                                         \
    static TYPE NAME(const TYPE* a, npy_intp n, TYPE mean) {                                            \
        TYPE sum[ROW_SUMS], all;                                                                        \
        npy_intp k;                                                                                     \
        (void)mean;                                                                                     \
        if (n > ROW_PART) {                                                                             \
            npy_intp half = n / 2 - n / 2 % ROW_SUMS;                                                   \
            all = NAME(a, half, mean);                                                                  \
            return all + NAME(a + half, n - half, mean);                                                \
        }                                                                                               \
        if (n < ROW_SUMS) {                                                                             \
            all = OF(0);                                                                                \
            for (k = 1; k < n; k++) all += OF(k);                                                       \
            return all;                                                                                 \
        }                                                                                               \
        for (int j = 0; j < ROW_SUMS; j++) sum[j] = OF(j);                                              \
        for (k = ROW_SUMS; k + ROW_SUMS <= n; k += ROW_SUMS)                                            \
            for (int j = 0; j < ROW_SUMS; j++) sum[j] += OF(k + j);                                     \
        all = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));        \
        for (; k < n; k++) all += OF(k);                                                                \
        return all;                                                                                     \
    }
ROW_SUM(row_sum_double, double, AS_IT_IS)
ROW_SUM(row_sum_float, float, AS_IT_IS)
ROW_SUM(row_squares_double, double, SQUARE_APART)
ROW_SUM(row_squares_float, float, SQUARE_APART)
#undef ROW_SUM
#undef AS_IT_IS
#undef SQUARE_APART

/* Sums of rows; NumPy adds them to a zero, so there is no negative one. */
#define ROWS_SUMMED(NAME, TYPE, SUM) \
    static void NAME(const char* from, npy_intp rows, npy_intp columns, npy_intp across, char* to) { \
        for (npy_intp k = 0; k < rows; k++) ((TYPE*)to)[k] = (TYPE)0 + SUM((const TYPE*)(from + k * across), columns, 0); \
    }
ROWS_SUMMED(rows_summed_double, double, row_sum_double)
ROWS_SUMMED(rows_summed_float, float, row_sum_float)
#undef ROWS_SUMMED

/* Variances of rows (`root`: their roots), of which `by` elements count. */
#define ROWS_SPREAD(NAME, TYPE, SUM, SQUARES, ROOT) \
    static void NAME(const char* from, npy_intp rows, npy_intp columns, npy_intp across, double by, int root, char* to) { \
        for (npy_intp k = 0; k < rows; k++) { \
            const TYPE* row = (const TYPE*)(from + k * across); \
            TYPE mean = ((TYPE)0 + SUM(row, columns, 0)) / (TYPE)columns; \
            ((TYPE*)to)[k] = ((TYPE)0 + SQUARES(row, columns, mean)) / (TYPE)by; \
        } \
        for (npy_intp k = 0; root && k < rows; k++) ((TYPE*)to)[k] = ROOT(((TYPE*)to)[k]); \
    }
ROWS_SPREAD(rows_spread_double, double, row_sum_double, row_squares_double, sqrt)
ROWS_SPREAD(rows_spread_float, float, row_sum_float, row_squares_float, sqrtf)
#undef ROWS_SPREAD

#define LEVEL(NAME) NAME
#include "row_loops.h"
#undef LEVEL
#if defined(__x86_64__) && defined(__GNUC__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define LEVEL(NAME) NAME##_avx2
#include "row_loops.h"
#undef LEVEL
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

static const RowLoops* row_loops_here(void) {
    static const RowLoops* here;
    if (here) return here;
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) return here = &row_loops_avx2;
#endif
    return here = &row_loops;
}

/* What combines rows (`axis` 1), or columns, of a type; NULL where NumPy's loop is to be called for each.  `zeros`: where it says zero that loop is called all the same, and flags say nothing. */
static RowsReduced rows_reduced(const char* name, int from_zero, int type, npy_intp columns, int axis, int* zeros) {
    int which = type == NPY_DOUBLE ? 0 : type == NPY_FLOAT ? 1 : type == NPY_INT ? 2 : type == NPY_LONG ? 3 : -1, largest;
    *zeros = which < 2;
    if (which < 0 || (axis && columns < 2)) return NULL;
    if (from_zero) return *zeros = 0, which > 1 ? NULL : axis ? row_loops_here()->rows_summed[which] : row_loops_here()->columns_summed[which]; /* a sum */
    if (axis == 0 || columns >= ROW_EXTREME) return NULL;
    largest = strcmp(name, "maximum") == 0;
    return (largest || strcmp(name, "minimum") == 0) ? row_loops_here()->extremes[largest][which] : NULL;
}

#endif
