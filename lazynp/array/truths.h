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
#endif
