/* Memory of results that are large for the C library: what is freed is kept for the next one.

   In: allocations of NumPy's, while `pooled` runs them.  Out: memory.  Promise: a loop over arrays of some hundred kilobytes gets the same few
   blocks again and again, where the C library would give pages back to the system and take new ones, which costs more than the arithmetic;
   at most POOL_BYTES are kept. */

#ifndef LAZYNP_POOL_H
#define LAZYNP_POOL_H

#include "parts.h"

#define POOL_FROM (1 << 16)   /* bytes of a block that is kept */
#define POOL_BLOCKS 16
#define POOL_BYTES (8 << 20)

typedef struct {
    void* memory;
    size_t size;
} Spare;
static Spare spares[POOL_BLOCKS]; /* the latest last: it is most likely in the cache */
static int spare_count;
static size_t spare_bytes;

static size_t pool_size(size_t size) { return (size + 0xffff) & ~(size_t)0xffff; } /* so that neighbours in size fit */

static void* pool_malloc(void* context, size_t size) {
    (void)context;
    if (size < POOL_FROM) return malloc(size);
    size = pool_size(size);
    for (int k = spare_count; k--;)
        if (spares[k].size == size) {
            void* found = spares[k].memory;
            memmove(&spares[k], &spares[k + 1], (size_t)(--spare_count - k) * sizeof(Spare));
            spare_bytes -= size;
            return found;
        }
    return malloc(size);
}

static void pool_free(void* context, void* memory, size_t size) {
    (void)context;
    if (size < POOL_FROM || (size = pool_size(size)) > POOL_BYTES) {
        free(memory);
        return;
    }
    while (spare_count == POOL_BLOCKS || spare_bytes + size > POOL_BYTES) { /* the oldest go */
        free(spares[0].memory);
        spare_bytes -= spares[0].size;
        memmove(spares, spares + 1, (size_t)--spare_count * sizeof(Spare));
    }
    spares[spare_count++] = (Spare){memory, size};
    spare_bytes += size;
}

/* A block keeps the size it has: NumPy grows few arrays in place. */
static void* pool_realloc(void* context, void* memory, size_t size) {
    (void)context;
    return realloc(memory, size < POOL_FROM ? size : pool_size(size));
}

static void* pool_calloc(void* context, size_t count, size_t size) {
    (void)context;
    return count * size < POOL_FROM ? calloc(count, size) : calloc(1, pool_size(count * size));
}

static PyDataMem_Handler pool_handler = {"lazynp_pool", 1, {NULL, pool_malloc, pool_calloc, pool_realloc, pool_free}};
static PyObject* pool_capsule;

static int pool_ready(void) {
    pool_capsule = PyCapsule_New(&pool_handler, "mem_handler", NULL);
    return pool_capsule ? 0 : -1;
}

/* Begin and end what allocates a result like `x` from the pool; for few elements that is nothing. */
static inline PyObject* pool_begin(npy_intp bytes) {
    PyObject* before = bytes < POOL_FROM ? NULL : PyDataMem_SetHandler(pool_capsule);
    if (before == NULL && bytes >= POOL_FROM) PyErr_Clear(); /* then without */
    return before;
}

static inline void pool_end(PyObject* before) {
    PyObject *type, *value, *trace, *pool;
    if (before == NULL) return;
    PyErr_Fetch(&type, &value, &trace);
    pool = PyDataMem_SetHandler(before);
    Py_XDECREF(pool), Py_DECREF(before);
    PyErr_Restore(type, value, trace);
}

#endif
