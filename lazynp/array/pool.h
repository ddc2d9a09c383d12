/* Memory of results that are no longer small: it begins where a line of the cache begins, and what is freed is kept for the next one.

   In: allocations of NumPy's, between `pool_begin` and `pool_end`.  Out: memory.  Promise: vectors that are stored cross no line of the cache, where
   the C library's memory (16 bytes behind one, mostly) makes each of 64 bytes cross one, and a product of 5,000 numbers takes twice the time; a loop
   over arrays of some hundred kilobytes gets the same few blocks again and again, where the C library would give pages back to the system and take
   new ones, which costs more than the arithmetic; at most POOL_BYTES are kept, or POOL_MOST of what was in use of late.

   The result of a tape is memory with a shape (`Raw`, in `cell.h` and `pool.h`): NumPy's array over it is made when one is asked for. NumPy's
   macros read its fields, so passes, elements and full reductions need none. `shape`, `dtype`, `ndim` and `size` are told of what waits
   (`attributes.h`). Views (`u[1:-1]`, `m.T`, rows) are the same over another array's memory (`raw_view`). `zeros`, `ones`, `full`, `eye`,
   `arange` of plain arguments make such memory (`made.h`). */

#ifndef LAZYNP_POOL_H
#define LAZYNP_POOL_H

#include "parts.h"
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define POOL_FROM (1 << 15)   /* bytes of a block: less is in the nearest cache, where it does not matter how it lies */
#define POOL_LINE 64          /* bytes of a line of the cache, and of the longest vectors */
#define POOL_HUGE (1 << 22)   /* bytes from which on the system is asked for large pages, as NumPy asks */
#define POOL_CLEARED (1 << 20) /* bytes from which on zeros are the system's, page by page, when they are needed */
#define POOL_DOMAIN 389047 /* `numpy.lib.tracemalloc_domain` */
#define POOL_BLOCKS 64
#define POOL_BYTES (12 << 20)
#define POOL_MOST (64 << 20) /* as long as no more is held than the program's arrays had a short while ago: peaks of memory stay what they were */
#define POOL_LARGEST (32 << 20) /* bytes of a block that is kept */
#define POOL_DECAY 256       /* blocks that are freed, until a quarter of what is in use no longer is forgotten */

typedef struct {
    void* memory;
    size_t size;
} Spare;
static Spare spares[POOL_BLOCKS]; /* the latest last: it is most likely in the cache */
static int spare_count;
static size_t spare_bytes;
static size_t used_bytes, peak_bytes; /* of blocks: now, and the most of late */

static inline void* block_used(void* memory, size_t size) {
    if (memory && (used_bytes += size) > peak_bytes) peak_bytes = used_bytes;
    return memory;
}

static inline void block_unused(size_t size) {
    static unsigned freed;
    used_bytes -= size;
    if (++freed % POOL_DECAY == 0) peak_bytes -= (peak_bytes - used_bytes) / 4;
}

/* Whether a block that is freed may be kept beside the others. */
static inline int may_spare(size_t size) {
    return spare_count < POOL_BLOCKS && spare_bytes + size <= (used_bytes + spare_bytes + size <= peak_bytes ? POOL_MOST : POOL_BYTES);
}

static void spare_dropped(void);

/* Let what is kept go, the oldest first, where with a new block more would be held than the program's arrays had of late. */
static inline void spares_fit(size_t size) {
    while (spare_bytes > POOL_BYTES && used_bytes + spare_bytes + size > peak_bytes) spare_dropped();
}

/* The bytes that are asked for: neighbours in size fit. */
static size_t pool_size(size_t size) {
    size_t grain = size < 1 << 17 ? 1 << 12 : 1 << 16;
    return (size + grain - 1) & ~(grain - 1);
}

/* What lies before a block.  Memory that the C library aligns would fit only a smaller request afterwards: it asks itself for more than it gives.
   So a program of arrays of a megabyte held twice the memory. */
typedef struct {
    void* begins; /* what the C library gave, and CLEARED */
    size_t room;  /* 0: it is less than a block, and this is all that lies before it, the last POOL_HEAD bytes */
} Block;
#define CLEARED 1 /* bit of an address: it was the system's zeros when it was asked for */
#define POOL_HEAD 16 /* bytes: as the C library aligns */
#define POOL_PAGE 4096
#define POOL_SAMPLES 32
#define POOL_SAMPLED 104 /* bytes by which they lie further apart, so that they are no column of a matrix */
#define POOL_BEFORE (POOL_LINE + sizeof(Block)) /* bytes, at most */

static inline char* untagged(const void* begins) { return (char*)((uintptr_t)begins & ~(uintptr_t)CLEARED); }

static inline size_t* room_of(void* memory) { return (size_t*)memory - 1; }

/* Of less than a block: one more than its size in lines, where it is kept when it is freed. */
static inline size_t* class_of(void* memory) { return (size_t*)memory - 2; }

static inline Block* block_of(void* memory) { return *room_of(memory) ? (Block*)memory - 1 : NULL; }

/* A block in what the C library gave. */
static void* block_made(void* begins, size_t room) {
    uintptr_t at = ((uintptr_t)untagged(begins) + sizeof(Block) + POOL_LINE - 1) & ~(uintptr_t)(POOL_LINE - 1);
    if (begins == NULL) return NULL;
    ((Block*)at)[-1] = (Block){begins, room};
    return (void*)at;
}

/* The same of less than a block. */
static void* little_made(void* begins) {
    void* memory = begins ? (char*)begins + POOL_HEAD : NULL;
    if (memory) *room_of(memory) = *class_of(memory) = 0;
    return memory;
}

static void block_free(void* memory) {
    if (memory) free(*room_of(memory) ? untagged(block_of(memory)->begins) : (char*)memory - POOL_HEAD);
}

/* Whether it seems that a block that was cleared when it was asked for was not written.  What was only read has no pages of its own: the first
   write to each would have the system stop all cores that the program runs on, which takes some times as long as a new page. */
static int is_untouched(const char* memory, Block* block) {
    if (!((uintptr_t)block->begins & CLEARED)) return 0;
    block->begins = untagged(block->begins);
    for (size_t k = 0, at, word; k < POOL_SAMPLES; k++) {
        at = (block->room / POOL_SAMPLES * k + POOL_SAMPLED * k) & ~(sizeof(word) - 1);
        memcpy(&word, memory + at, sizeof(word));
        if (word) return 0;
    }
    return 1;
}

static void spare_dropped(void) {
    block_free(spares[0].memory);
    spare_bytes -= spares[0].size;
    memmove(spares, spares + 1, (size_t)--spare_count * sizeof(Spare));
}

static void* block_new(size_t size) {
    void* found = block_made(malloc(size + POOL_BEFORE), size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (found && size >= POOL_HUGE) {
        size_t before = (size_t)(-(intptr_t)found & (POOL_PAGE - 1));
        (void)madvise((char*)found + before, size - before, MADV_HUGEPAGE);
    }
#endif
    return found;
}

/* Memory of few bytes, by lines: some of what was freed latest. */
#define LITTLE 1024
#define LITTLE_KEPT 16
static struct {
    int count;
    void* memory[LITTLE_KEPT];
} little[LITTLE / POOL_LINE + 1];

/* A spare block of about `size` bytes: the latest of which no more than a fifth is left over, else the smallest of which at most half is; NULL where there is none. */
static void* spare_taken(size_t size) {
    void* found;
    int best = -1;
    for (int k = spare_count; k--;) {
        if (spares[k].size < size || spares[k].size > 2 * size) continue;
        if (best < 0 || spares[k].size < spares[best].size) best = k;
        if (spares[k].size - size > size / 4) continue;
        best = k;
        break;
    }
    if (best < 0) return NULL;
    found = block_used(spares[best].memory, spares[best].size);
    spare_bytes -= spares[best].size;
    memmove(&spares[best], &spares[best + 1], (size_t)(--spare_count - best) * sizeof(Spare));
    return found;
}

static void* pool_malloc(void* context, size_t size) {
    void* found;
    (void)context;
    if (size <= LITTLE) {
        size_t class = (size + POOL_LINE - 1) / POOL_LINE;
        void* found = little[class].count ? little[class].memory[--little[class].count] : little_made(malloc(class * POOL_LINE + POOL_HEAD));
        if (found) *class_of(found) = class + 1;
        return found;
    }
    if (size < POOL_FROM) return little_made(malloc(size + POOL_HEAD));
    if ((found = spare_taken(size))) return found;
    size = pool_size(size);
    spares_fit(size);
    return block_used(block_new(size), size);
}

static void pool_free(void* context, void* memory, size_t size) {
    Block* block = memory ? block_of(memory) : NULL;
    (void)context, (void)size;
    if (memory && block == NULL && *class_of(memory)) {
        size_t class = *class_of(memory) - 1;
        if (little[class].count < LITTLE_KEPT) {
            little[class].memory[little[class].count++] = memory;
            return;
        }
    }
    if (block) block_unused(block->room);
    if (block == NULL || block->room > POOL_LARGEST || is_untouched(memory, block)) {
        block_free(memory);
        return;
    }
    while (spare_count && !may_spare(block->room)) spare_dropped();
    if (!may_spare(block->room)) {
        block_free(memory);
        return;
    }
    spares[spare_count++] = (Spare){memory, block->room};
    spare_bytes += block->room;
}

/* NumPy grows few arrays in place. */
static void* pool_realloc(void* context, void* memory, size_t size) {
    Block* block = memory ? block_of(memory) : NULL;
    void* found;
    if (block == NULL) return little_made(realloc(memory ? (char*)memory - POOL_HEAD : NULL, size + POOL_HEAD)); /* however much it is now */
    if (size <= block->room && size >= block->room / 2) return memory;
    if ((found = pool_malloc(context, size)) == NULL) return NULL;
    memcpy(found, memory, size < block->room ? size : block->room);
    pool_free(context, memory, block->room);
    return found;
}

static void* pool_calloc(void* context, size_t count, size_t size) {
    void* found;
    size *= count; /* of an array that exists: it does not overflow */
    if (size < POOL_FROM) return little_made(calloc(1, size + POOL_HEAD));
    if (size >= POOL_CLEARED) spares_fit(size);
    if (size >= POOL_CLEARED) {
        if ((found = calloc(1, size + POOL_BEFORE))) found = block_made((void*)((uintptr_t)found | CLEARED), size);
        return block_used(found, size);
    }
    if ((found = pool_malloc(context, size))) memset(found, 0, size);
    return found;
}

static PyDataMem_Handler pool_handler = {"lazynp_pool", 1, {NULL, pool_malloc, pool_calloc, pool_realloc, pool_free}};
static PyObject* pool_capsule;
#define TYPES (NPY_HALF + 1) /* above the numbers of NumPy's numeric types; those of others lie between them */
#define IS_NUMERIC(TYPE) ((TYPE) >= 0 && ((TYPE) <= NPY_CLONGDOUBLE || (TYPE) == NPY_HALF))
static PyArray_Descr* raw_dtypes[TYPES]; /* by number, held; NULL where it is no numeric one */

static int pool_ready(void) {
    for (int k = 0; k < TYPES; k++) raw_dtypes[k] = IS_NUMERIC(k) ? PyArray_DescrFromType(k) : NULL;
    pool_capsule = PyCapsule_New(&pool_handler, "mem_handler", NULL);
    return pool_capsule ? 0 : -1;
}

/* A new array of `size` elements; its memory is the pool's as if NumPy had asked for it, which takes NumPy a tenth of a microsecond. */
static PyObject* pool_array(int ndim, npy_intp* dims, PyArray_Descr* dtype, npy_intp size) { /* takes dtype over */
    npy_intp bytes = size * PyDataType_ELSIZE(dtype);
    void* memory;
    PyObject* made;
    if (bytes < POOL_FROM) return PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, dims, NULL, NULL, 0, NULL);
    if ((memory = pool_malloc(NULL, (size_t)bytes)) == NULL) {
        Py_DECREF(dtype);
        return PyErr_NoMemory();
    }
    made = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, dims, NULL, memory, NPY_ARRAY_CARRAY, NULL);
    if (made) {
        ((PyArrayObject_fields*)made)->mem_handler = Py_NewRef(pool_capsule);
        PyArray_ENABLEFLAGS((PyArrayObject*)made, NPY_ARRAY_OWNDATA);
        PyTraceMalloc_Track(POOL_DOMAIN, (uintptr_t)memory, (size_t)bytes); /* for `tracemalloc`; where that is off, it is a comparison */
    } else {
        pool_free(NULL, memory, (size_t)bytes);
    }
    return made;
}

/* Results that no array shows yet ---------------------------------------------------------------------------------------------- */

#define RAWS_KEPT 64
static Raw* kept_raws[RAWS_KEPT];
static int kept_raw_count;

static PyArrayObject* array_of(PyArrayObject* x);

static void raw_dealloc(PyObject* object) {
    Raw* self = (Raw*)object;
    PyArrayObject_fields* of = &self->fields;
    PyObject* holds = self->holds;
    Py_XDECREF(of->base);
    if (holds) {
        if (IS_RAW(holds)) ((Raw*)holds)->views--;
        Py_DECREF(holds);
    } else if (of->base == NULL && of->data) {
        PyTraceMalloc_Untrack(POOL_DOMAIN, (uintptr_t)of->data);
        pool_free(NULL, of->data, 0); /* which knows its size */
    }
    if (kept_raw_count < RAWS_KEPT) kept_raws[kept_raw_count++] = self;
    else PyObject_Free(self);
}

static PyTypeObject raw_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Raw", .tp_basicsize = sizeof(Raw), .tp_flags = Py_TPFLAGS_DEFAULT, .tp_dealloc = raw_dealloc};

/* Room for a result in C's order, of at most four axes; to be read as an array by macros alone. */
static PyArrayObject* raw_new(int ndim, const npy_intp* dims, int type, npy_intp size) {
    Raw* made = kept_raw_count ? (Raw*)PyObject_Init((PyObject*)kept_raws[--kept_raw_count], &raw_type) : PyObject_New(Raw, &raw_type);
    PyArray_Descr* dtype = raw_dtypes[type];
    npy_intp bytes, stride;
    if (made == NULL) return NULL;
    stride = PyDataType_ELSIZE(dtype), bytes = size * stride;
    made->fields.base = NULL, made->holds = NULL, made->views = 0;
    made->fields.nd = ndim, made->fields.dimensions = made->lengths, made->fields.strides = made->lengths + RAW_AXES;
    made->fields.descr = dtype;
    made->fields.flags = NPY_ARRAY_CARRAY | (ndim == 1 ? NPY_ARRAY_F_CONTIGUOUS : 0);
    for (int k = ndim; k--; stride *= dims[k]) made->lengths[k] = dims[k], made->lengths[RAW_AXES + k] = size ? stride : 0; /* as NumPy has it of nothing */
    if ((made->fields.data = pool_malloc(NULL, (size_t)(bytes ? bytes : 1))) == NULL) return Py_DECREF(made), (PyArrayObject*)PyErr_NoMemory();
    PyTraceMalloc_Track(POOL_DOMAIN, (uintptr_t)made->fields.data, (size_t)bytes);
    return (PyArrayObject*)made;
}

/* The strides of elements of `size` bytes that lie without gaps, from the axis whose elements lie furthest apart on; of C's order `order` is NULL. */
static inline void ordered_strides(int ndim, const npy_intp* dims, const char* order, npy_intp size, npy_intp* strides) {
    for (int k = ndim; k--;) {
        int axis = order ? order[k] : k;
        strides[axis] = size, size *= dims[axis];
    }
}

/* Let new memory lie in another order. */
static void raw_order(PyArrayObject* x, const char* order) {
    Raw* self = (Raw*)x;
    ordered_strides(self->fields.nd, self->lengths, order, PyArray_ITEMSIZE(x), self->lengths + RAW_AXES);
    self->fields.flags = flags_of(self->fields.nd, self->lengths, self->lengths + RAW_AXES, PyArray_ITEMSIZE(x), NPY_ARRAY_BEHAVED);
}

/* A view of `x`, which has its memory as long as it is there; NULL, perhaps without an exception, where NumPy has to make it. */
static PyArrayObject* raw_view(PyArrayObject* x, int ndim, const npy_intp* dims, const npy_intp* strides, char* data) {
    PyObject* holds = (PyObject*)x;
    int type = PyArray_TYPE(x);
    Raw* made;
    if (IS_RAW(x)) {
        if (((Raw*)x)->holds) holds = ((Raw*)x)->holds;
    } else {
        while (PyArray_BASE((PyArrayObject*)holds) && PyArray_CheckExact(PyArray_BASE((PyArrayObject*)holds))) holds = PyArray_BASE((PyArrayObject*)holds);
        if (!PyArray_CHKFLAGS((PyArrayObject*)holds, NPY_ARRAY_OWNDATA)) return NULL;
    }
    if (ndim > RAW_AXES || !IS_NUMERIC(type) || raw_dtypes[type] != PyArray_DESCR(x) || !PyArray_ISALIGNED(x) || PyArray_FLAGS(x) < 0) return NULL;
    made = kept_raw_count ? (Raw*)PyObject_Init((PyObject*)kept_raws[--kept_raw_count], &raw_type) : PyObject_New(Raw, &raw_type);
    if (made == NULL) return NULL;
    made->fields.base = NULL, made->holds = Py_NewRef(holds), made->views = 0;
    if (IS_RAW(holds)) ((Raw*)holds)->views++;
    made->fields.nd = ndim, made->fields.dimensions = made->lengths, made->fields.strides = made->lengths + RAW_AXES;
    made->fields.descr = PyArray_DESCR(x), made->fields.data = data;
    for (int k = 0; k < ndim; k++) made->lengths[k] = dims[k], made->lengths[RAW_AXES + k] = strides[k];
    made->fields.flags = flags_of(ndim, dims, strides, PyArray_ITEMSIZE(x), PyArray_FLAGS(x) & (NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE));
    return (PyArrayObject*)made;
}

/* NumPy's array of a view. */
static PyObject* view_of(Raw* self) {
    PyArrayObject_fields* of = &self->fields;
    PyArrayObject* holds = array_of((PyArrayObject*)self->holds);
    PyObject* made;
    if (holds == NULL) return NULL;
    Py_INCREF(of->descr);
    made = PyArray_NewFromDescr(&PyArray_Type, of->descr, of->nd, of->dimensions, of->strides, of->data, of->flags, NULL);
    if (made == NULL) return Py_DECREF(holds), NULL;
    FIELDS(made)->base = (PyObject*)holds;
    return made;
}

/* An array over the memory of what is none yet, which is the array's from now on (a new reference); of an array itself. */
static PyArrayObject* array_of(PyArrayObject* x) {
    PyArrayObject_fields* of = (PyArrayObject_fields*)x;
    PyObject* made;
    if (!IS_RAW(x)) return (PyArrayObject*)Py_NewRef((PyObject*)x);
    if (of->base == NULL) {
        if (((Raw*)x)->holds) made = view_of((Raw*)x);
        else made = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr*)Py_NewRef((PyObject*)of->descr), of->nd, of->dimensions, of->strides, of->data, NPY_ARRAY_CARRAY, NULL);
        if (made == NULL) return NULL;
        if (of->base) return Py_DECREF(made), (PyArrayObject*)Py_NewRef(of->base); /* another call has been quicker, and this one owns nothing */
        if (((Raw*)x)->holds == NULL) {
            FIELDS(made)->mem_handler = Py_NewRef(pool_capsule);
            PyArray_ENABLEFLAGS((PyArrayObject*)made, NPY_ARRAY_OWNDATA);
        }
        of->base = made;
    }
    return (PyArrayObject*)Py_NewRef(of->base);
}

/* The array of a cell whose value is what is none yet (borrowed), and of the cell that owns its memory; NULL, without an exception, where memory is short. */
static PyArrayObject* cell_array(PyObject* x) {
    PyObject* owner = owner_of(x);
    PyArrayObject* made;
    if (owner != x && Py_TYPE(owner) == array_type && ((Cell*)owner)->base && IS_RAW(((Cell*)owner)->base) && cell_array(owner) == NULL) return NULL;
    made = array_of((PyArrayObject*)((Cell*)x)->base);
    if (made == NULL) return PyErr_Clear(), NULL;
    Py_SETREF(((Cell*)x)->base, (PyObject*)made);
    return made;
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
