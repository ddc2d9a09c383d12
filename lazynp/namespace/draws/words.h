/* The words of PCG64 in blocks.

   In: the state of NumPy's bit generator, as it lies in memory.  Out: its next words, one after the other, and the state behind those that
   were used.  Promise: NumPy's words in NumPy's order, whatever was made beyond them.

   A word is made of a state of 128 bits, and the state of the one before it by a multiplication whose result the next one waits for.  But the
   state n words on is a product and a sum, too: lanes that are n words apart do not wait for one another.  M. O'Neill: PCG: a family of
   simple fast space-efficient statistically good algorithms for random number generation (2014). */

#ifndef LAZYNP_WORDS_H
#define LAZYNP_WORDS_H

#include <stddef.h>
#include <stdint.h>

#ifndef __SIZEOF_INT128__
#error "This compiler has no integers of 128 bits: numbers are drawn by NumPy."
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_VECTORS
#include <immintrin.h>
#endif

typedef unsigned __int128 Wide;

/* A bit generator of NumPy's: compared with what it says of itself, before this is believed. */
typedef struct {
    Wide state, increment;
} Pcg;
typedef struct {
    Pcg* pcg;
    int has_half; /* whether the upper half of a word is still to be given */
    uint32_t half;
} Numpys;

#define FACTOR ((Wide)0x2360ed051fc65da4 << 64 | 0x4385df649fccf645)
#define BLOCK 256 /* words that are made at a time: they stay in the nearest cache */
#define ROW 16    /* of which so many come together */
#define LANES 4   /* as many as a processor multiplies at once */
#define FEW 32    /* words that are not worth beginning rows for */

/* As many steps as a power of two: the state is multiplied, and so often the increment is added. */
static Pcg steps[64];

static void words_ready(void) {
    Wide factor = FACTOR, sum = 1;
    for (int k = 0; k < 64; k++) {
        steps[k] = (Pcg){factor, sum};
        sum *= factor + 1, factor *= factor;
    }
}

static Wide stepped(Wide state, Wide increment, uint64_t count) {
    for (int k = 0; count; k++, count >>= 1)
        if (count & 1) state = state * steps[k].state + increment * steps[k].increment;
    return state;
}

static inline uint64_t word_of(Wide state) {
    uint64_t upper = (uint64_t)(state >> 64), mixed = upper ^ (uint64_t)state;
    unsigned turn = (unsigned)(upper >> 58);
    return mixed >> turn | mixed << (-turn & 63);
}

/* The states of the words that come next, a lane each. */
typedef union {
    Wide states[LANES];
    uint64_t limbs[3][ROW]; /* of 52 bits, the lowest first: what a vector multiplies */
} Lanes;

/* How rows of words are made, and numbers of words. */
typedef struct {
    void (*begin)(Lanes*, Pcg);
    void (*rows)(Lanes*, Wide increment, uint64_t* words, size_t count);
    void (*uniform)(const uint64_t* words, double* out, size_t n);
    int (*bounded)(const uint64_t* words, size_t n, uint64_t low, uint32_t most, uint32_t limit, uint64_t* out);
} Way;

static void lanes_begin(Lanes* lanes, Pcg pcg) {
    for (int k = 0; k < LANES; k++) lanes->states[k] = pcg.state = pcg.state * FACTOR + pcg.increment;
}

static void lanes_rows(Lanes* lanes, Wide increment, uint64_t* words, size_t count) {
    const Wide factor = steps[2].state, sum = steps[2].increment * increment;
    Wide a = lanes->states[0], b = lanes->states[1], c = lanes->states[2], d = lanes->states[3];
    for (size_t n = count * (ROW / LANES); n; n--, words += LANES) {
        words[0] = word_of(a), words[1] = word_of(b), words[2] = word_of(c), words[3] = word_of(d);
        a = a * factor + sum, b = b * factor + sum, c = c * factor + sum, d = d * factor + sum;
    }
    lanes->states[0] = a, lanes->states[1] = b, lanes->states[2] = c, lanes->states[3] = d;
}

/* 53 bits, which a signed number holds as well: that conversion is an instruction everywhere. */
static inline void uniform_of(const uint64_t* words, double* out, size_t n) {
    for (size_t k = 0; k < n; k++) out[k] = (double)(int64_t)(words[k] >> 11) * 0x1p-53;
}

/* Two whole numbers of each word, from `low` to `low + most`; tells whether all of them may be taken. */
static inline int bounded_of(const uint64_t* words, size_t n, uint64_t low, uint32_t most, uint32_t limit, uint64_t* restrict out) {
    int rejected = 0;
    for (size_t k = 0; k < n; k++) {
        const uint64_t lower = (uint32_t)words[k], upper = words[k] >> 32, first = lower * most + lower, second = upper * most + upper;
        out[2 * k] = low + (first >> 32), out[2 * k + 1] = low + (second >> 32);
        rejected |= ((uint32_t)first < limit) | ((uint32_t)second < limit);
    }
    return !rejected;
}

static void lanes_uniform(const uint64_t* words, double* out, size_t n) { uniform_of(words, out, n); }
static int lanes_bounded(const uint64_t* words, size_t n, uint64_t low, uint32_t most, uint32_t limit, uint64_t* out) {
    return bounded_of(words, n, low, most, limit, out);
}

static const Way in_lanes = {lanes_begin, lanes_rows, lanes_uniform, lanes_bounded};
static Way way; /* that is taken */

#ifdef HAS_VECTORS
#define IN_VECTORS __attribute__((target("avx512f,avx512dq,avx512vl,avx512ifma")))
#define LIMB 52
#define LIMB_MASK ((UINT64_C(1) << LIMB) - 1)

static int vectors_known(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512ifma");
}

static void vectors_begin(Lanes* lanes, Pcg pcg) {
    for (int k = 0; k < ROW; k++) {
        pcg.state = pcg.state * FACTOR + pcg.increment;
        for (int j = 0; j < 3; j++) lanes->limbs[j][k] = (uint64_t)(pcg.state >> j * LIMB) & LIMB_MASK;
    }
}

/* 128 bits are three limbs, and their product six products of limbs, of which an instruction gives the lower or the upper 52 bits, added to
   something: sums stay below 64 bits until they are carried on. */
IN_VECTORS static void vectors_rows(Lanes* lanes, Wide increment, uint64_t* words, size_t count) {
    const Wide factor = steps[4].state, sum = steps[4].increment * increment;
    const __m512i none = _mm512_setzero_si512(), mask = _mm512_set1_epi64((long long)LIMB_MASK), top = _mm512_set1_epi64((1 << (128 - 2 * LIMB)) - 1);
    __m512i f[3], s[3], x[2][3];
    for (int j = 0; j < 3; j++) {
        f[j] = _mm512_set1_epi64((long long)((uint64_t)(factor >> j * LIMB) & LIMB_MASK));
        s[j] = _mm512_set1_epi64((long long)((uint64_t)(sum >> j * LIMB) & LIMB_MASK));
        for (int h = 0; h < 2; h++) x[h][j] = _mm512_loadu_si512(lanes->limbs[j] + 8 * h);
    }
    for (; count; count--, words += ROW)
        for (int h = 0; h < 2; h++) {
            const __m512i a = x[h][0], b = x[h][1], c = x[h][2];
            const __m512i lower = _mm512_or_si512(a, _mm512_slli_epi64(b, LIMB));
            const __m512i upper = _mm512_or_si512(_mm512_srli_epi64(b, 64 - LIMB), _mm512_slli_epi64(c, 2 * LIMB - 64));
            __m512i y0, y1, y2, z1, z2; /* two sums of a limb, so that they do not wait for one another */
            _mm512_storeu_si512(words + 8 * h, _mm512_rorv_epi64(_mm512_xor_si512(lower, upper), _mm512_srli_epi64(upper, 58)));
            y0 = _mm512_madd52lo_epu64(s[0], a, f[0]);
            y1 = _mm512_madd52hi_epu64(s[1], a, f[0]), z1 = _mm512_madd52lo_epu64(none, a, f[1]);
            y2 = _mm512_madd52hi_epu64(s[2], a, f[1]), z2 = _mm512_madd52hi_epu64(none, b, f[0]);
            y1 = _mm512_madd52lo_epu64(y1, b, f[0]);
            y2 = _mm512_madd52lo_epu64(y2, a, f[2]), z2 = _mm512_madd52lo_epu64(z2, b, f[1]);
            y2 = _mm512_madd52lo_epu64(y2, c, f[0]);
            y1 = _mm512_add_epi64(_mm512_add_epi64(y1, z1), _mm512_srli_epi64(y0, LIMB));
            y2 = _mm512_add_epi64(_mm512_add_epi64(y2, z2), _mm512_srli_epi64(y1, LIMB));
            x[h][0] = _mm512_and_si512(y0, mask), x[h][1] = _mm512_and_si512(y1, mask), x[h][2] = _mm512_and_si512(y2, top);
        }
    for (int j = 0; j < 3; j++)
        for (int h = 0; h < 2; h++) _mm512_storeu_si512(lanes->limbs[j] + 8 * h, x[h][j]);
}

IN_VECTORS static void vectors_uniform(const uint64_t* words, double* out, size_t n) { uniform_of(words, out, n); }
IN_VECTORS static int vectors_bounded(const uint64_t* words, size_t n, uint64_t low, uint32_t most, uint32_t limit, uint64_t* out) {
    return bounded_of(words, n, low, most, limit, out);
}

static const Way in_vectors = {vectors_begin, vectors_rows, vectors_uniform, vectors_bounded};
#endif

/* Whether rows are made by vectors from now on, which is where the processor can. */
static int words_by_vectors(int wanted) {
    way = in_lanes;
#ifdef HAS_VECTORS
    if (wanted && vectors_known()) {
        way = in_vectors;
        return 1;
    }
#endif
    return (void)wanted, 0;
}

/* The words that come next. */
typedef struct {
    Numpys* of;
    Pcg pcg; /* with the state of the last word that was made, where they are made one by one */
    Way way;
    int in_rows;
    uint64_t made; /* words, since the beginning */
    size_t at, end; /* of those available */
    Lanes lanes;
    uint64_t words[BLOCK];
} Stream;

static void stream_begin(Stream* s, Numpys* of, size_t expected) {
    s->of = of, s->pcg = *of->pcg, s->way = way;
    s->made = 0, s->at = s->end = 0;
    s->in_rows = expected > FEW;
    if (s->in_rows) s->way.begin(&s->lanes, s->pcg);
}

/* Make more words, at least one and not many more than are wanted, where there are none. */
static void stream_fill(Stream* s, size_t wanted) {
    size_t n = wanted < BLOCK ? wanted : BLOCK;
    s->at = 0;
    if (s->in_rows) {
        n = (n + ROW - 1) / ROW;
        s->way.rows(&s->lanes, s->pcg.increment, s->words, n);
        s->made += s->end = n * ROW;
    } else {
        for (s->end = 0; s->end < n; s->end++) s->words[s->end] = word_of(s->pcg.state = s->pcg.state * FACTOR + s->pcg.increment);
        s->made += n;
    }
}

static inline uint64_t stream_next(Stream* s) {
    if (s->at == s->end) stream_fill(s, 1);
    return s->words[s->at++];
}

/* Leave the bit generator behind the words that were used. */
static void stream_end(Stream* s) {
    size_t left = s->end - s->at;
    if (left == 0 && !s->in_rows) s->of->pcg->state = s->pcg.state;
    else s->of->pcg->state = stepped(s->of->pcg->state, s->pcg.increment, s->made - left);
}

#endif
