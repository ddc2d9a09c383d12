/* Short rows, side by side: a call of an inner loop for each of them costs more than what it computes.

   In: where an operand's rows lie.  Out: a block of them in contiguous memory.  Promise: nothing is read but the rows and
   what lies between them. */

#ifndef LAZYNP_SIDES_H
#define LAZYNP_SIDES_H

#include <stdint.h>

#define SIDES_ROW 32        /* elements in a row, more are worth a call each */
#define SIDES_CALL 90       /* elements that are copied in the time that a call of a loop takes */
#define SIDES_BEGUN 25      /* and in the time that it takes to begin a row */
#define SIDES_ELEMENTS 1024 /* in a block */

enum { LIES_DENSE, LIES_ONE, LIES_SAME, LIES_APART }; /* like the result; one element for all; one row for all; rows apart */

/* How an operand lies along the last of some axes, and before it. */
static inline int lies(int ndim, const npy_intp* dims, const npy_intp* steps, npy_intp size) {
    npy_intp dense = size;
    int is_dense = 1, before = 0;
    for (int k = ndim - 1; k >= 0; k--) {
        if (dims[k] != 1 && steps[k] != dense) is_dense = 0;
        if (k < ndim - 1 && dims[k] != 1 && steps[k] != 0) before = 1;
        dense *= dims[k];
    }
    return is_dense ? LIES_DENSE : before ? LIES_APART : steps[ndim - 1] == 0 || dims[ndim - 1] == 1 ? LIES_ONE : LIES_SAME;
}

#define SIDES_STEP 4  /* elements that are written at a time: up to three behind the last row's end, which the next row overwrites */
#define SIDES_COPIED 64 /* bytes in a row, from which on copying it is worth a call */
#define SIDES_SIZE 8  /* bytes of an element, at most */
#define SIDES_BYTES (SIDES_ELEMENTS * SIDES_SIZE + SIDES_STEP * SIDES_SIZE)

/* Put rows of `n` elements, `across` bytes from one to the next and `along` between their elements, into contiguous memory. */
static void sides(char* to, const char* from, npy_intp rows, npy_intp n, npy_intp across, npy_intp along, npy_intp size) {
    if (along == size && n * size >= SIDES_COPIED) {
        for (npy_intp row = 0; row < rows; row++, to += n * size, from += across) memcpy(to, from, (size_t)(n * size));
        return;
    }
#define SIDES(TYPE) \
    if (along == (npy_intp)sizeof(TYPE) && n <= SIDES_STEP && across >= SIDES_STEP * along) { /* another row ends further behind */ \
        for (; rows > 1; rows--, to += n * size, from += across) memcpy(to, from, SIDES_STEP * sizeof(TYPE)); \
    } else if (along == (npy_intp)sizeof(TYPE) && n <= 2 * SIDES_STEP && across >= 2 * SIDES_STEP * along) { \
        for (; rows > 2; rows--, to += n * size, from += across) memcpy(to, from, 2 * SIDES_STEP * sizeof(TYPE)); /* up to seven behind its end */ \
    } \
    for (npy_intp row = 0; row < rows; row++, to += n * size, from += across) { \
        TYPE* element = (TYPE*)to; \
        if (along == 0) { \
            TYPE one = *(const TYPE*)from; \
            for (npy_intp k = 0; k < n; k += SIDES_STEP) element[k] = element[k + 1] = element[k + 2] = element[k + 3] = one; \
        } else if (along == (npy_intp)sizeof(TYPE) && row < rows - 1 && across >= SIDES_STEP * along) { \
            for (npy_intp k = 0; k < n; k += SIDES_STEP) memcpy(element + k, (const TYPE*)from + k, SIDES_STEP * sizeof(TYPE)); \
        } else { \
            for (npy_intp k = 0; k < n; k++) element[k] = *(const TYPE*)(from + k * along); \
        } \
    } \
    break;
    switch (size) {
    case 8: SIDES(uint64_t)
    case 4: SIDES(uint32_t)
    case 2: SIDES(uint16_t)
    default: SIDES(uint8_t)
    }
#undef SIDES
}

#define SHORT 16 /* elements of a row */

/* `n` times the same element, side by side. */
static void elements_fill(char* to, const char* from, npy_intp n, npy_intp size) {
    int same = 1;
    for (npy_intp k = 1; k < size; k++) same &= from[k] == from[0];
    if (same) {
        memset(to, from[0], (size_t)(n * size));
        return;
    }
#define FILL(TYPE) { const TYPE value = *(const TYPE*)from; for (npy_intp k = 0; k < n; k++) ((TYPE*)to)[k] = value; } break
    switch (size) {
        case 2: FILL(npy_uint16);
        case 4: FILL(npy_uint32);
        case 8: FILL(npy_uint64);
        default: for (npy_intp k = 0; k < n; k++) memcpy(to + k * size, from, (size_t)size);
    }
#undef FILL
}

/* `n` elements of `size` bytes, `step` and `from_step` apart. */
static inline void elements_copy(char* to, npy_intp step, const char* from, npy_intp from_step, npy_intp n, npy_intp size) {
    if (step == size && from_step == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    if (from_step == 0 && step == size && n >= SHORT) {
        elements_fill(to, from, n, size);
        return;
    }
#define COPY(TYPE) for (npy_intp k = 0; k < n; k++) *(TYPE*)(to + k * step) = *(const TYPE*)(from + k * from_step)
    switch (size) {
        case 1: COPY(npy_uint8); break;
        case 2: COPY(npy_uint16); break;
        case 4: COPY(npy_uint32); break;
        case 8: COPY(npy_uint64); break;
        default: for (npy_intp k = 0; k < n; k++) memcpy(to + k * step, from + k * from_step, (size_t)size);
    }
#undef COPY
}

/* Put `n` neighbours where they are `apart` elements from one to the next: a column. */
static inline void column_put(char* to, const char* from, npy_intp n, npy_intp apart, npy_intp size) {
#define COLUMN(TYPE) \
    for (npy_intp k = 0; k < n; k++) ((TYPE*)to)[k * apart] = ((const TYPE*)from)[k]; \
    return;
    switch (size) {
    case 8: COLUMN(uint64_t)
    case 4: COLUMN(uint32_t)
    case 2: COLUMN(uint16_t)
    case 1: COLUMN(uint8_t)
    }
#undef COLUMN
    for (npy_intp k = 0; k < n; k++) memcpy(to + k * apart * size, from + k * size, (size_t)size);
}

#endif
