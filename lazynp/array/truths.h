/* Truth values as bits.

   In: a row of bytes.  Out: a bit for each, 64 at a time, so that what follows does not depend on how often they change. */

#ifndef LAZYNP_TRUTHS_H
#define LAZYNP_TRUTHS_H

#include "loops.h"
#ifdef LAZYNP_SSE
#include <emmintrin.h>
#endif

#if defined(__GNUC__)
/* Which of at most 64 truth values hold, a bit each. */
#define TRUTHS 64
static inline uint64_t truths(const char* at, npy_intp n) {
    uint64_t found = 0;
    npy_intp k = 0;
#ifdef LAZYNP_SSE
    for (; k + 16 <= n; k += 16) {
        __m128i none = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i*)(at + k)), _mm_setzero_si128());
        found |= (uint64_t)(uint16_t)~_mm_movemask_epi8(none) << k;
    }
#endif
    for (; k < n; k++) found |= (uint64_t)(at[k] != 0) << k;
    return found;
}
#endif

#define TRUTHS_TILE 256 /* columns that are counted at a time, in bytes */
#define TRUTHS_ROWS 255 /* rows, of which a byte holds the count */

/* How many of `length` truth values hold, for each of `outer` times `inner` columns. */
static void truths_counted(const char* from, npy_intp outer, npy_intp length, npy_intp inner, npy_int64* to) {
    for (; outer--; from += length * inner, to += inner) {
#if defined(__GNUC__)
        if (inner == 1) {
            *to = 0;
            for (npy_intp k = 0; k < length; k += TRUTHS) *to += __builtin_popcountll(truths(from + k, length - k < TRUTHS ? length - k : TRUTHS));
            continue;
        }
#endif
        for (npy_intp tile = 0; tile < inner; tile += TRUTHS_TILE) {
            npy_intp n = inner - tile < TRUTHS_TILE ? inner - tile : TRUTHS_TILE;
            for (npy_intp k = 0; k < n; k++) to[tile + k] = 0;
            for (npy_intp row = 0; row < length; row += TRUTHS_ROWS) {
                unsigned char held[TRUTHS_TILE] = {0};
                const char* at = from + row * inner + tile;
                for (npy_intp r = row; r < length && r < row + TRUTHS_ROWS; r++, at += inner)
                    for (npy_intp k = 0; k < n; k++) held[k] += at[k] != 0;
                for (npy_intp k = 0; k < n; k++) to[tile + k] += held[k];
            }
        }
    }
}
#endif
