/* Elements that truth values choose, eight or sixteen at a time, where the processor has AVX-512's `compress` and `expand`.

   In: a row of truth values and a row of elements of 4, 8 or 16 bytes.  Out: what `choosing.h` does one by one.  Promise: the same elements; nothing
   but what is chosen is read or written, which the instructions' masks see to. */

#ifndef LAZYNP_COMPRESS_H
#define LAZYNP_COMPRESS_H

#include "truths.h"
#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#define HAS_COMPRESS

#define IN_COMPRESS __attribute__((target("avx512f,popcnt")))

static int compress_wanted = -1; /* -1: not yet known */

static inline int compress_used(npy_intp size) {
    if (compress_wanted < 0) compress_wanted = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt");
    return compress_wanted && (size == 8 || size == 16 || size == 4);
}

/* For tests: whether to use it, where it is to be had; tells whether it is. */
static int compress_choose(int wanted) {
    compress_wanted = wanted ? -1 : 0;
    return compress_used(8);
}

/* Two bits for each of four. */
static const unsigned char twice[16] = {0, 3, 12, 15, 48, 51, 60, 63, 192, 195, 204, 207, 240, 243, 252, 255};

/* `DO` with the mask `m` of each vector of a row, how many lanes of it are chosen, and the element `k` from which it begins; a vector holds `PER`
   elements, and no more are chosen than there is `room` for. */
#define EACH_VECTOR(PER, MASK, DO) \
    for (npy_intp done = 0; done < n; done += TRUTHS) { \
        uint64_t left = truths(mask + done, n - done < TRUTHS ? n - done : TRUTHS); \
        int chosen = __builtin_popcountll(left); \
        if (chosen > *room) break; \
        *room -= chosen; \
        for (npy_intp k = done; left; k += PER, left >>= PER) { \
            unsigned m = MASK, count = (unsigned)__builtin_popcount(m); \
            DO; \
        } \
    }

#define BY_LANES(OF8, OF4) \
    if (size == 8) EACH_VECTOR(8, (unsigned)(left & 255), OF8) \
    else if (size == 16) EACH_VECTOR(4, twice[left & 15], OF8) \
    else EACH_VECTOR(16, (unsigned)(left & 65535), OF4)

IN_COMPRESS static char* row_read_vectors(const char* mask, const char* from, char* to, npy_intp n, npy_intp* room, npy_intp size) {
    BY_LANES(
        (_mm512_mask_storeu_epi64(to, (__mmask8)((1u << count) - 1), _mm512_maskz_compress_epi64((__mmask8)m, _mm512_maskz_loadu_epi64((__mmask8)m, from + k * size))), to += 8 * count),
        (_mm512_mask_storeu_epi32(to, (__mmask16)((1u << count) - 1), _mm512_maskz_compress_epi32((__mmask16)m, _mm512_maskz_loadu_epi32((__mmask16)m, from + k * size))), to += 4 * count)
    )
    return to;
}

/* `from` side by side. */
IN_COMPRESS static const char* row_write_vectors(const char* mask, const char* from, char* to, npy_intp n, npy_intp* room, npy_intp size) {
    BY_LANES(
        (_mm512_mask_storeu_epi64(to + k * size, (__mmask8)m, _mm512_maskz_expand_epi64((__mmask8)m, _mm512_maskz_loadu_epi64((__mmask8)((1u << count) - 1), from))), from += 8 * count),
        (_mm512_mask_storeu_epi32(to + k * size, (__mmask16)m, _mm512_maskz_expand_epi32((__mmask16)m, _mm512_maskz_loadu_epi32((__mmask16)((1u << count) - 1), from))), from += 4 * count)
    )
    return from;
}

/* One element, everywhere. */
IN_COMPRESS static void row_fill_vectors(const char* mask, const char* value, char* to, npy_intp n, npy_intp* room, npy_intp size) {
    npy_uint64 words[8];
    __m512i all;
    for (npy_intp k = 0; k < 64; k += size) memcpy((char*)words + k, value, (size_t)size);
    all = _mm512_loadu_si512(words);
    BY_LANES(((void)count, _mm512_mask_storeu_epi64(to + k * size, (__mmask8)m, all)), ((void)count, _mm512_mask_storeu_epi32(to + k * size, (__mmask16)m, all)))
}
#else
static int compress_choose(int wanted) { return (void)wanted, 0; }
static int compress_used(npy_intp size) { return (void)size, 0; }
#endif
#endif
