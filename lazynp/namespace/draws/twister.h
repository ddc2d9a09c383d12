/* The words of MT19937 in blocks, and the numbers that `RandomState` makes of them.

   In: the state of NumPy's bit generator and of its `RandomState`, as they lie in memory.  Out: numbers.  Promise: NumPy's, to the bit, and
   both states as NumPy leaves them: 624 words are made anew when the next one is wanted, and no word earlier.

   M. Matsumoto, T. Nishimura: Mersenne Twister (1998).  Normal numbers come in pairs, by the polar method: G. Marsaglia, T. A. Bray: A
   convenient method for generating normal variables (1964). */

#ifndef LAZYNP_TWISTER_H
#define LAZYNP_TWISTER_H

#include <numpy/random/bitgen.h>

#include "numbers.h"

#define KEY 624
#define FAR_WORD 397

/* A bit generator of NumPy's. */
typedef struct {
    uint32_t key[KEY];
    int place;
} Twister;

/* What a `RandomState` has besides: of two normal numbers that come together the second one. */
typedef struct {
    bitgen_t* interface;
    int has_other;
    double other;
} Pairs;

typedef struct {
    Twister* twister;
    Pairs* pairs;
} Legacy;

/* Available words: never more than the state has, but for those that were left when it was made anew. */
typedef struct {
    Legacy of;
    size_t place, at, end;
    uint32_t words[KEY + 4];
} Twisted;

static inline uint32_t twisted(uint32_t upper, uint32_t lower, uint32_t far) {
    const uint32_t y = (upper & 0x80000000) | (lower & 0x7fffffff);
    return far ^ y >> 1 ^ (-(y & 1) & 0x9908b0df);
}

static void twister_twist(uint32_t* key) {
    for (int k = 0; k < KEY - FAR_WORD; k++) key[k] = twisted(key[k], key[k + 1], key[k + FAR_WORD]);
    for (int k = KEY - FAR_WORD; k < KEY - 1; k++) key[k] = twisted(key[k], key[k + 1], key[k + FAR_WORD - KEY]);
    key[KEY - 1] = twisted(key[KEY - 1], key[0], key[FAR_WORD - 1]);
}

static void twister_temper(const uint32_t* key, uint32_t* words, size_t n) {
    for (size_t k = 0; k < n; k++) {
        uint32_t y = key[k];
        y ^= y >> 11, y ^= y << 7 & 0x9d2c5680, y ^= y << 15 & 0xefc60000;
        words[k] = y ^ y >> 18;
    }
}

static void twisted_begin(Twisted* s, const Legacy* of) {
    s->of = *of, s->place = (size_t)of->twister->place;
    s->at = s->end = 0;
}

/* Have as many words as are needed, which will all be used, and at most those that are wanted. */
static void twisted_fill(Twisted* s, size_t needed, size_t wanted) {
    size_t left = s->end - s->at;
    memmove(s->words, s->words + s->at, left * sizeof(uint32_t));
    s->at = 0, s->end = left;
    while (s->end < needed) {
        size_t n = wanted - s->end;
        if (s->place == KEY) twister_twist(s->of.twister->key), s->place = 0;
        if (n > KEY - s->place) n = KEY - s->place;
        twister_temper(s->of.twister->key + s->place, s->words + s->end, n);
        s->place += n, s->end += n;
    }
}

static void twisted_end(Twisted* s) { s->of.twister->place = (int)(s->place - (s->end - s->at)); }

static inline double twisted_uniform(const uint32_t* words) { return (double)(int64_t)((uint64_t)(words[0] >> 5) << 26 | words[1] >> 6) * 0x1p-53; }

static void twisted_random(void* words, double* out, size_t n) {
    Twisted* s = words;
    while (n) {
        size_t ready;
        if (s->end - s->at < 2) twisted_fill(s, 2, n < KEY ? 2 * n : KEY);
        ready = (s->end - s->at) / 2 < n ? (s->end - s->at) / 2 : n;
        for (size_t k = 0; k < ready; k++) out[k] = twisted_uniform(s->words + s->at + 2 * k);
        s->at += 2 * ready, out += ready, n -= ready;
    }
}

static void twisted_normal(void* words, double* out, size_t n) {
    Twisted* s = words;
    Pairs* pairs = s->of.pairs;
    double x[KEY / 4 + 1], y[KEY / 4 + 1], square[KEY / 4 + 1];
    if (n && pairs->has_other) {
        *out++ = pairs->other, n--;
        pairs->other = 0, pairs->has_other = 0;
    }
    while (n) {
        size_t wanted = (n + 1) / 2, inside = 0, at;
        if (s->end - s->at < 4) twisted_fill(s, 4, wanted < KEY / 4 ? 4 * wanted : KEY);
        for (at = s->at; at + 4 <= s->end && inside < wanted; at += 4) { /* points of a square, kept if they are in the circle */
            const double a = 2.0 * twisted_uniform(s->words + at) - 1.0, b = 2.0 * twisted_uniform(s->words + at + 2) - 1.0, r = a * a + b * b;
            x[inside] = a, y[inside] = b, square[inside] = r;
            inside += (r < 1.0) & (r != 0.0);
        }
        s->at = at;
        for (size_t k = 0; k < inside; k++) square[k] = -2.0 * log(square[k]) / square[k];
        for (size_t k = 0; k < inside; k++) square[k] = sqrt(square[k]);
        for (size_t k = 0; k < inside; k++) {
            *out++ = square[k] * y[k];
            if (--n) *out++ = square[k] * x[k], n--;
            else pairs->other = square[k] * x[k], pairs->has_other = 1;
        }
    }
}

/* Whole numbers up to `most`: the lowest bits of words, those that are more being rejected. */
static void twisted_integers(const Legacy* of, uint64_t low, uint32_t most, uint64_t* restrict out, size_t n) {
    uint32_t mask = most;
    Twisted s;
    for (int k = 1; k < 32; k *= 2) mask |= mask >> k;
    twisted_begin(&s, of);
    for (size_t k = 0; k < n;) {
        size_t at = s.at;
        if (at == s.end) twisted_fill(&s, 1, n - k < KEY ? n - k : KEY), at = 0;
        for (; at < s.end && k < n; at++) {
            const uint32_t x = s.words[at] & mask;
            out[k] = low + x;
            k += x <= most;
        }
        s.at = at;
    }
    twisted_end(&s);
}

static void twisted_order(const Legacy* of, int64_t* at, uint32_t n) {
    Order order = order_begin(at, n);
    Twisted s;
    twisted_begin(&s, of);
    while (order.last) {
        if (s.at == s.end) twisted_fill(&s, 1, order.last < KEY ? order.last : KEY);
        order_step(&order, s.words[s.at++]);
    }
    twisted_end(&s);
}

#endif
