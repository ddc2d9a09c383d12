/* Those functions of `rows.h` that wider vectors make faster, for one kind of processors: it is included for each. */

/* Columns, whose elements NumPy adds one after the other. */
#define COLUMNS_SUMMED(NAME, TYPE) \
    static void NAME(const char* from, npy_intp rows, npy_intp columns, npy_intp across, char* to) { \
        TYPE* __restrict sum = (TYPE*)to; \
        for (npy_intp k = 0; k < columns; k++) sum[k] = 0; \
        for (; rows >= 4; rows -= 4, from += 4 * across) { \
            const TYPE *a = (const TYPE*)from, *b = (const TYPE*)(from + across), *c = (const TYPE*)(from + 2 * across), *d = (const TYPE*)(from + 3 * across); \
            for (npy_intp k = 0; k < columns; k++) sum[k] = (((sum[k] + a[k]) + b[k]) + c[k]) + d[k]; \
        } \
        for (; rows; rows--, from += across) \
            for (npy_intp k = 0; k < columns; k++) sum[k] += ((const TYPE*)from)[k]; \
    }
COLUMNS_SUMMED(LEVEL(columns_summed_double), double)
COLUMNS_SUMMED(LEVEL(columns_summed_float), float)
#undef COLUMNS_SUMMED

#define COLUMNS_SPREAD(NAME, TYPE, SUMMED, ROOT) \
    static void NAME(const char* from, npy_intp rows, npy_intp columns, npy_intp across, double by, int root, char* to) { \
        TYPE mean[COLUMNS_AT_ONCE], *__restrict sum = (TYPE*)to; \
        for (npy_intp some; columns; columns -= some, from += some * (npy_intp)sizeof(TYPE), sum += some) { \
            npy_intp row = 0; \
            some = columns < COLUMNS_AT_ONCE ? columns : COLUMNS_AT_ONCE; \
            SUMMED(from, rows, some, across, (char*)mean); \
            for (npy_intp k = 0; k < some; k++) mean[k] /= (TYPE)rows, sum[k] = 0; \
            for (; row + 2 <= rows; row += 2) { \
                const TYPE *a = (const TYPE*)(from + row * across), *b = (const TYPE*)(from + (row + 1) * across); \
                for (npy_intp k = 0; k < some; k++) { \
                    TYPE one = a[k] - mean[k], two = b[k] - mean[k]; \
                    sum[k] = (sum[k] + one * one) + two * two; \
                } \
            } \
            for (npy_intp k = 0; row < rows && k < some; k++) { \
                TYPE apart = ((const TYPE*)(from + row * across))[k] - mean[k]; \
                sum[k] += apart * apart; \
            } \
            for (npy_intp k = 0; k < some; k++) sum[k] /= (TYPE)by; \
            for (npy_intp k = 0; root && k < some; k++) sum[k] = ROOT(sum[k]); \
        } \
    }
COLUMNS_SPREAD(LEVEL(columns_spread_double), double, LEVEL(columns_summed_double), sqrt)
COLUMNS_SPREAD(LEVEL(columns_spread_float), float, LEVEL(columns_summed_float), sqrtf)
#undef COLUMNS_SPREAD

/* The extremes of rows; zero of a row whose elements have no sum, for there may be NaN among them.  Comparisons of those raise a flag. */
#define ROWS_EXTREME(NAME, TYPE, BEYOND, REAL) \
    static void NAME(const char* from, npy_intp rows, npy_intp columns, npy_intp across, char* to) { \
        for (npy_intp k = 0; k < rows; k++) { \
            const TYPE* row = (const TYPE*)(from + k * across); \
            TYPE found = row[0], sum = REAL ? row[0] : 0; \
            npy_intp j = 1; \
            if (columns >= 2 * ROW_SUMS) { \
                TYPE each[ROW_SUMS], sums[ROW_SUMS]; \
                for (int i = 0; i < ROW_SUMS; i++) each[i] = row[i], sums[i] = REAL ? row[i] : 0; \
                for (j = ROW_SUMS; j + ROW_SUMS <= columns; j += ROW_SUMS) { \
                    for (int i = 0; i < ROW_SUMS; i++) each[i] = row[j + i] BEYOND each[i] ? row[j + i] : each[i]; \
                    if (REAL) for (int i = 0; i < ROW_SUMS; i++) sums[i] += row[j + i]; \
                } \
                for (int i = 0; i < ROW_SUMS; i++) found = each[i] BEYOND found ? each[i] : found, sum += sums[i]; \
            } \
            for (; j < columns; j++) { \
                found = row[j] BEYOND found ? row[j] : found; \
                if (REAL) sum += row[j]; \
            } \
            ((TYPE*)to)[k] = REAL && sum != sum ? (TYPE)0 : found; \
        } \
    }
ROWS_EXTREME(LEVEL(rows_largest_double), double, >, 1)
ROWS_EXTREME(LEVEL(rows_smallest_double), double, <, 1)
ROWS_EXTREME(LEVEL(rows_largest_float), float, >, 1)
ROWS_EXTREME(LEVEL(rows_smallest_float), float, <, 1)
ROWS_EXTREME(LEVEL(rows_largest_int), npy_int, >, 0)
ROWS_EXTREME(LEVEL(rows_smallest_int), npy_int, <, 0)
ROWS_EXTREME(LEVEL(rows_largest_long), npy_long, >, 0)
ROWS_EXTREME(LEVEL(rows_smallest_long), npy_long, <, 0)
#undef ROWS_EXTREME

/* One row of `where`; steps in bytes. */
static void LEVEL(row_choose)(const char* c, npy_intp sc, const char* p, npy_intp sp, const char* q, npy_intp sq, char* to, npy_intp n, npy_intp size) {
#define STEP(TYPE, U, V) \
    { \
        TYPE mask = (TYPE)-(TYPE)(*c != 0), u = *(const TYPE*)(U), v = *(const TYPE*)(V); \
        ((TYPE*)to)[k] = (TYPE)((u & mask) | (v & (TYPE)~mask)); \
    }
#define CHOOSE(TYPE) \
    if (sc == 1 && sp == size && sq == size) \
        for (npy_intp k = 0; k < n; k++, c++) STEP(TYPE, p + k * (npy_intp)sizeof(TYPE), q + k * (npy_intp)sizeof(TYPE)) \
    else if (sc == 1 && sp == size && sq == 0) \
        for (npy_intp k = 0; k < n; k++, c++) STEP(TYPE, p + k * (npy_intp)sizeof(TYPE), at_rest) \
    else if (sc == 1 && sp == 0 && sq == size) \
        for (npy_intp k = 0; k < n; k++, c++) STEP(TYPE, at_rest, q + k * (npy_intp)sizeof(TYPE)) \
    else \
        for (npy_intp k = 0; k < n; k++, c += sc) STEP(TYPE, p + k * sp, q + k * sq)
    Value value; /* what does not change along the row, in a place that nothing is written to */
    const char* at_rest = (char*)&value;
    memcpy(&value, sp ? q : p, (size_t)size);
    switch (size) {
        case 1: CHOOSE(npy_uint8) break;
        case 2: CHOOSE(npy_uint16) break;
        case 4: CHOOSE(npy_uint32) break;
        default: CHOOSE(npy_uint64)
    }
#undef CHOOSE
#undef STEP
}

static const RowLoops LEVEL(row_loops) = {
    {rows_summed_double, rows_summed_float},
    {LEVEL(columns_summed_double), LEVEL(columns_summed_float)},
    {{LEVEL(rows_smallest_double), LEVEL(rows_smallest_float), LEVEL(rows_smallest_int), LEVEL(rows_smallest_long)},
     {LEVEL(rows_largest_double), LEVEL(rows_largest_float), LEVEL(rows_largest_int), LEVEL(rows_largest_long)}},
    {rows_spread_double, rows_spread_float},
    {LEVEL(columns_spread_double), LEVEL(columns_spread_float)},
    LEVEL(row_choose),
};
