/* Writes of parts that lie some elements away from what they are computed from: `a[1:-1] = (a[:-2] + a[2:]) / 2`.

   In: blocks of a result, in their order, and how far before and behind an element its operands lie.  Out: memory as NumPy leaves it, which computes the whole
   result before it writes any of it.  Promise: an element is written when everything that is computed from what lies there has been computed; until
   then it is kept in a ring that stays in a cache.  Each thread has a part of the elements of its own; what others read of its ends it writes when all is done. */

#ifndef LAZYNP_LAG_H
#define LAZYNP_LAG_H

#define LAG_FROM (4 << 20)  /* bytes of a result, fewer of which stay in a cache until they are copied to where they are to lie */
#define LAG_BYTES (1 << 18) /* of the rings of a part, at most */

static npy_intp lag_from = LAG_FROM;

typedef struct {
    char *ring, *head;            /* values that wait, from number `written` on; the first ones, which the part before reads */
    npy_intp begin, written, past; /* numbers of elements: the part's first one, the first one in the ring, and behind the last one */
} LagPart;

typedef struct {
    const Target* to;
    npy_intp behind, ahead; /* elements before and after its own place that an element may be computed from, at most */
    npy_intp room, each;    /* elements of a ring, and of a part */
    int parts;
    LagPart* part;
} Lag;

/* Whether an operand lies as what is written does, some bytes away: `lag` takes it in. */
static int lag_takes(Lag* lag, PyArrayObject* to, PyArrayObject* x) {
    npy_intp size = PyArray_ITEMSIZE(to), bytes = PyArray_BYTES(x) - PyArray_BYTES(to), elements = (bytes < 0 ? -bytes : bytes) / size + 1;
    if (PyArray_NBYTES(to) < lag_from || PyArray_ITEMSIZE(x) != size || PyArray_NDIM(x) != PyArray_NDIM(to) || !same_lengths(PyArray_DIMS(x), PyArray_DIMS(to), PyArray_NDIM(to))) return 0;
    for (int k = 0; k < PyArray_NDIM(to); k++)
        if (PyArray_DIM(to, k) != 1 && PyArray_STRIDE(x, k) != PyArray_STRIDE(to, k)) return 0;
    if (bytes < 0 && elements > lag->behind) lag->behind = elements;
    if (bytes > 0 && elements > lag->ahead) lag->ahead = elements;
    return (lag->behind + lag->ahead + CHAIN_BLOCK) * size <= LAG_BYTES;
}

/* Share the work of `pieces`, each of whose units has so many elements, among some threads: how many; 0 where memory is short. */
static int lag_begin(Lag* lag, Pieces* pieces, int threads) {
    npy_intp size = lag->to->size, least = 2 * (lag->behind + lag->ahead + CHAIN_BLOCK), units;
    char* memory;
    if (pieces->whole * pieces->unit / threads < least) threads = 1;
    units = (pieces->whole + threads - 1) / threads;
    lag->each = units * pieces->unit, lag->parts = (int)((pieces->whole + units - 1) / units), lag->room = lag->behind + CHAIN_BLOCK;
    pieces->piece = lag->each;
    lag->part = malloc((size_t)lag->parts * (sizeof(LagPart) + (size_t)((lag->room + lag->ahead) * size)));
    if (lag->part == NULL) return 0;
    memory = (char*)(lag->part + lag->parts);
    for (int k = 0; k < lag->parts; k++, memory += (lag->room + lag->ahead) * size)
        lag->part[k] = (LagPart){.ring = memory, .head = memory + lag->room * size, .begin = k * lag->each, .written = k * lag->each, .past = k * lag->each};
    return threads;
}

/* Write elements of a part, from number `written` on, that follow one another: where they are to lie, or beside, where the part before still reads what lies there. */
static void lag_write(const Lag* lag, LagPart* part, npy_intp n, const char* from) {
    npy_intp size = lag->to->size, head = part->begin > 0 ? part->begin + lag->ahead : 0, some = head - part->written;
    if (some > n) some = n;
    if (some > 0) memcpy(part->head + (part->written - part->begin) * size, from, (size_t)(some * size));
    else some = 0;
    if (n > some) target_put(lag->to, part->written + some, n - some, from + some * size);
    part->written += n;
}

/* Write what a part keeps, up to an element. */
static void lag_written(const Lag* lag, LagPart* part, npy_intp limit) {
    while (part->written < limit) {
        npy_intp at = (part->written - part->begin) % lag->room, some = limit - part->written;
        lag_write(lag, part, some < lag->room - at ? some : lag->room - at, part->ring + at * lag->to->size);
    }
}

/* Take the values of a block, which follows the one before of its part: most are written at once if the operands lie near. */
static void lag_put(const Lag* lag, npy_intp first, npy_intp n, const char* from) {
    LagPart* part = &lag->part[first / lag->each];
    npy_intp size = lag->to->size, limit = first + n - lag->behind, at, some;
    part->past = first + n;
    lag_written(lag, part, limit < first ? limit : first);
    if (limit > first) lag_write(lag, part, limit - first, from), from += (limit - first) * size, first = limit, n = lag->behind;
    at = (first - part->begin) % lag->room, some = n < lag->room - at ? n : lag->room - at;
    memcpy(part->ring + at * size, from, (size_t)(some * size));
    memcpy(part->ring, from + some * size, (size_t)((n - some) * size));
}

/* All is computed: write the rest. */
static void lag_end(Lag* lag) {
    for (int k = 0; k < lag->parts; k++) {
        LagPart* part = &lag->part[k];
        lag_written(lag, part, part->past);
        if (part->begin > 0) target_put(lag->to, part->begin, part->past - part->begin < lag->ahead ? part->past - part->begin : lag->ahead, part->head);
    }
    free(lag->part);
    lag->part = NULL;
}

#endif
