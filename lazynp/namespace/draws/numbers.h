/* Numbers of words, as NumPy's `Generator` makes them.

   In: words, what is to be drawn, how many.  Out: the numbers, and the stream behind the words they took.  Promise: NumPy's arithmetic, step
   by step, so NumPy's bits.

   Normal and exponential numbers come from ziggurats: a word says a layer and a place in it.  Of 100 places about 99 lie under the curve as
   a whole, and are a number; of the others the next word decides, and the lowest layer has a tail.  G. Marsaglia, W. W. Tsang: The
   ziggurat method for generating random variables (2000).  The layers are read from NumPy (`ziggurats.py`). */

#ifndef LAZYNP_NUMBERS_H
#define LAZYNP_NUMBERS_H

#include <math.h>
#include <string.h>

#include "words.h"

#define LAYERS 256

typedef struct {
    double width[LAYERS];   /* of a place */
    uint64_t limit[LAYERS]; /* places below it are under the curve */
    double height[LAYERS];
    double start, inverse;  /* where the tail begins, and one by it */
} Ziggurat;
static Ziggurat normal_layers, exponential_layers;

static inline double uniform_next(Stream* s) { return (double)(int64_t)(stream_next(s) >> 11) * 0x1p-53; }

static void random_fill(void* stream, double* out, size_t n) {
    Stream* s = stream;
    while (n) {
        size_t ready;
        if (s->at == s->end) stream_fill(s, n);
        ready = s->end - s->at < n ? s->end - s->at : n;
        s->way.uniform(s->words + s->at, out, ready);
        s->at += ready, out += ready, n -= ready;
    }
}

/* What becomes of a place that is not under the curve as a whole; tells whether it is a number. */
static int normal_beyond(Stream* s, int layer, uint64_t place, double* x) {
    const Ziggurat* z = &normal_layers;
    if (layer) return (z->height[layer - 1] - z->height[layer]) * uniform_next(s) + z->height[layer] < exp(-0.5 * *x * *x);
    for (;;) {
        double beyond = -z->inverse * log1p(-uniform_next(s)), y = -log1p(-uniform_next(s));
        if (y + y > beyond * beyond) {
            *x = place >> 8 & 1 ? -(z->start + beyond) : z->start + beyond;
            return 1;
        }
    }
}

static int exponential_beyond(Stream* s, int layer, uint64_t place, double* x) {
    const Ziggurat* z = &exponential_layers;
    (void)place;
    if (layer) return (z->height[layer - 1] - z->height[layer]) * uniform_next(s) + z->height[layer] < exp(-*x);
    *x = z->start - log1p(-uniform_next(s));
    return 1;
}

/* The number of a word, which has no branch that could be guessed wrongly but the last one; tells whether it is one by itself. */
static inline int normal_of(uint64_t word, int* layer, uint64_t* place, double* x) {
    uint64_t bits;
    *layer = (int)(word & (LAYERS - 1)), *place = word >> 9 & ((UINT64_C(1) << 52) - 1);
    *x = (double)(int64_t)*place * normal_layers.width[*layer];
    memcpy(&bits, x, sizeof(bits));
    bits ^= (word >> 8 & 1) << 63; /* its sign */
    memcpy(x, &bits, sizeof(bits));
    return *place < normal_layers.limit[*layer];
}

static inline int exponential_of(uint64_t word, int* layer, uint64_t* place, double* x) {
    *layer = (int)(word >> 3 & (LAYERS - 1)), *place = word >> 11;
    *x = (double)(int64_t)*place * exponential_layers.width[*layer];
    return *place < exponential_layers.limit[*layer];
}

static inline void ziggurat_fill(Stream* s, double* out, size_t n, int (*of)(uint64_t, int*, uint64_t*, double*),
                                 int (*beyond)(Stream*, int, uint64_t, double*)) {
    while (n) {
        size_t ready, k;
        uint64_t place = 0;
        double x = 0;
        int layer = 0;
        if (s->at == s->end) stream_fill(s, n);
        ready = s->end - s->at < n ? s->end - s->at : n;
        for (k = 0; k < ready; k++) {
            if (!of(s->words[s->at + k], &layer, &place, &x)) break;
            out[k] = x;
        }
        s->at += k, out += k, n -= k;
        if (k == ready) continue;
        s->at++;
        if (beyond(s, layer, place, &x)) *out++ = x, n--;
    }
}

static void normal_fill(void* stream, double* out, size_t n) { ziggurat_fill(stream, out, n, normal_of, normal_beyond); }
static void exponential_fill(void* stream, double* out, size_t n) { ziggurat_fill(stream, out, n, exponential_of, exponential_beyond); }

/* Whole numbers from `low` to `low + most`, none more likely than the others: the upper halves of products, of which those are rejected whose
   lower half is below a limit.  D. Lemire: Fast random integer generation in an interval (2019). */
static void words_bounded(Numpys* of, uint64_t low, uint64_t most, uint64_t* restrict out, size_t n) {
    const uint64_t count = most + 1, limit = count ? -count % count : 0; /* 0: as many as there are words */
    Stream s;
    stream_begin(&s, of, n);
    for (size_t k = 0; k < n;) {
        size_t j = s.at;
        if (j == s.end) stream_fill(&s, n - k), j = 0;
        for (; j < s.end && k < n; j++) {
            const Wide product = count ? (Wide)s.words[j] * count : (Wide)s.words[j] << 64;
            out[k] = low + (uint64_t)(product >> 64);
            k += (uint64_t)product >= limit;
        }
        s.at = j;
    }
    stream_end(&s);
}

/* The same where `most` has 32 bits: a word is two numbers, the lower half first, and the upper one may be left for the next draw. */
static void halves_bounded(Numpys* of, uint64_t low, uint32_t most, uint64_t* restrict out, size_t n) {
    const uint64_t count = (uint64_t)most + 1;
    const uint32_t limit = (uint32_t)(((UINT64_C(1) << 32) - count) % count);
    size_t k = 0;
    Stream s;
    if (of->has_half) {
        out[0] = low + (of->half * count >> 32);
        k = (uint32_t)(of->half * count) >= limit;
    }
    stream_begin(&s, of, (n - k) / 2);
    of->has_half = 0;
    while (k < n) {
        size_t j = s.at;
        if (j == s.end) stream_fill(&s, (n - k + 1) / 2), j = 0;
        if (n - k >= 2 * (s.end - j) && s.way.bounded(s.words + j, s.end - j, low, most, limit, out + k)) {
            k += 2 * (s.end - j), j = s.end;
        } else {
            for (; j < s.end && k < n; j++) {
                const uint64_t lower = (uint32_t)s.words[j] * count, upper = (s.words[j] >> 32) * count;
                out[k] = low + (lower >> 32);
                k += (uint32_t)lower >= limit;
                if ((of->has_half = k == n)) continue;
                out[k] = low + (upper >> 32);
                k += (uint32_t)upper >= limit;
            }
        }
        s.at = j, of->half = (uint32_t)(s.words[j - 1] >> 32);
    }
    stream_end(&s);
}

/* The next step to an order of chance: the number in the last place that was not looked at is exchanged for one up to it, which the lowest bits
   of a word say; where they say more, it is exchanged for itself, and looked at again. */
typedef struct {
    int64_t* at;
    uint32_t last, mask;
} Order;

static Order order_begin(int64_t* at, uint32_t n) {
    Order order = {at, n - 1, n - 1};
    for (int k = 1; k < 32; k *= 2) order.mask |= order.mask >> k;
    return order;
}

static inline void order_step(Order* order, uint32_t word) {
    const uint32_t last = order->last, said = word & order->mask, fits = said <= last, place = fits ? said : last;
    const int64_t other = order->at[last];
    order->at[last] = order->at[place], order->at[place] = other;
    order->last = last - fits;
    order->mask >>= order->last <= order->mask >> 1;
}

static void order_fill(Numpys* of, int64_t* at, uint32_t n) {
    Order order = order_begin(at, n);
    Stream s;
    if (order.last && of->has_half) order_step(&order, of->half), of->has_half = 0;
    stream_begin(&s, of, n / 2);
    while (order.last) {
        uint64_t word;
        if (s.at == s.end) stream_fill(&s, (order.last + 1) / 2);
        word = s.words[s.at++], of->half = (uint32_t)(word >> 32);
        order_step(&order, (uint32_t)word);
        if ((of->has_half = order.last == 0)) break;
        order_step(&order, of->half);
    }
    stream_end(&s);
}

static void integers_fill(Numpys* of, uint64_t low, uint64_t most, uint64_t* out, size_t n) {
    if (most <= UINT32_MAX) halves_bounded(of, low, (uint32_t)most, out, n);
    else words_bounded(of, low, most, out, n);
}

#endif
