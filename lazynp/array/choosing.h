/* Elements that truth values or positions choose: `x[mask]`, `x[mask] = value`, `where`, `x[positions]`.

   In: arrays in memory.  Out: the elements, moved as they are; NULL or 0, without an exception, where it is NumPy's to do.  Promise: the time does
   not depend on how often truth values change, which a processor cannot foresee; nothing is written but what is chosen, also where code
   that needs no interpreter writes the truth values meanwhile.

   Keys of integers and slices lead to a place without NumPy's way through all kinds of keys (`parts.h`, `place_of`), and a number or an array of the
   same dtype and shape is copied there (`writes.h`). Masks are read 64 truth values at a time, as bits (`choosing.h`), and elements of 4, 8 and 16
   bytes move a vector at a time where the processor can compress one (`compress.h`): the time does not depend on how often they change, and nothing
   is written but what is chosen, for another thread may write the rest. Elements and rows at positions (arrays, lists of whole numbers) and points
   (`x[rows, columns]`) are read and written in C, each position looked at when it is used; short rows are added column by column, many arrays are
   joined in one go. All of this moves elements as they are; whatever is not plain is NumPy's to do. Rows and slices of large arrays that exist are
   operands of expressions in one pass, too, as long as the memory was not exported. */

#ifndef LAZYNP_CHOOSING_H
#define LAZYNP_CHOOSING_H

#include "writes.h"
#include "compress.h"

/* An array and a mask of its first axes, as rows of what is chosen, `size` bytes, which lies side by side, and so do the truth values. */
typedef struct {
    npy_intp rows, length, across, across_mask, size;
} Chosen;

static int chosen_rows(PyArrayObject* x, PyArrayObject* mask, Chosen* of) {
    int axes = PyArray_NDIM(mask), ndim = PyArray_NDIM(x), last = axes - 1;
    if (!PyArray_ISBOOL(mask) || axes == 0 || axes > ndim || !PyArray_CompareLists(PyArray_DIMS(mask), PyArray_DIMS(x), axes)) return 0;
    *of = (Chosen){1, PyArray_SIZE(mask), 0, 0, PyArray_ITEMSIZE(x)};
    for (int k = axes; k < ndim; k++) {
        if (PyArray_DIM(x, k) < 2) return 0; /* NumPy has strides of its own for these */
        of->size *= PyArray_DIM(x, k);
    }
    if (PyArray_IS_C_CONTIGUOUS(x) && PyArray_IS_C_CONTIGUOUS(mask)) return 1;
    if (axes > 2 || axes < ndim || PyArray_STRIDE(x, last) != of->size || PyArray_STRIDE(mask, last) != 1) return 0;
    if (axes == 2) of->rows = PyArray_DIM(x, 0), of->length = PyArray_DIM(x, 1), of->across = PyArray_STRIDE(x, 0), of->across_mask = PyArray_STRIDE(mask, 0);
    return 1;
}

#if defined(__GNUC__)
static npy_intp truths_count(PyArrayObject* mask, const Chosen* of) {
    npy_intp count = 0;
    for (npy_intp row = 0; row < of->rows; row++) {
        const char* at = PyArray_BYTES(mask) + row * of->across_mask;
        for (npy_intp k = 0; k < of->length; k += TRUTHS) count += __builtin_popcountll(truths(at + k, of->length - k < TRUTHS ? of->length - k : TRUTHS));
    }
    return count;
}

#define DENSE 48 /* of 64; more of them are worth going through as runs */
/* `DO` with each `k` of a row that is chosen; no more than there is `room` for, which they take. */
#define EACH(DO) \
    for (npy_intp done = 0; done < n; done += TRUTHS) { \
        uint64_t left = truths(mask + done, n - done < TRUTHS ? n - done : TRUTHS); \
        int chosen = __builtin_popcountll(left); \
        if (chosen > *room) break; \
        *room -= chosen; \
        if (chosen > DENSE) { \
            while (left) { \
                npy_intp first = __builtin_ctzll(left), past = ~left >> first ? first + __builtin_ctzll(~left >> first) : TRUTHS; \
                for (npy_intp k = done + first; k < done + past; k++) DO; \
                left = past < TRUTHS ? left & ~(uint64_t)0 << past : 0; \
            } \
        } else { \
            for (; left; left &= left - 1) { \
                npy_intp k = done + __builtin_ctzll(left); \
                DO; \
            } \
        } \
    }
#define INLINE static inline __attribute__((always_inline))
/* Sizes of elements that are moved by one instruction are constants where they are moved. */
#define BY_SIZE(FUNCTION, ...) \
    switch (size) { \
        case 1: return FUNCTION(__VA_ARGS__, 1); \
        case 2: return FUNCTION(__VA_ARGS__, 2); \
        case 4: return FUNCTION(__VA_ARGS__, 4); \
        case 8: return FUNCTION(__VA_ARGS__, 8); \
        case 16: return FUNCTION(__VA_ARGS__, 16); \
        default: return FUNCTION(__VA_ARGS__, size); \
    }

/* What is chosen of a row, to `to` one after the other; where the next goes. */
INLINE char* row_read_by(const char* mask, const char* from, char* to, npy_intp n, npy_intp* room, npy_intp size) {
    EACH((memcpy(to, from + k * size, (size_t)size), to += size))
    return to;
}
static char* row_read(const char* mask, const char* from, char* to, npy_intp n, npy_intp* room, npy_intp size) {
#ifdef HAS_COMPRESS
    if (compress_used(size)) return row_read_vectors(mask, from, to, n, room, size);
#endif
    BY_SIZE(row_read_by, mask, from, to, n, room)
}

/* The other way round; `next`: from one element of `from` to the one after. */
INLINE const char* row_write_by(const char* mask, const char* from, npy_intp next, char* to, npy_intp n, npy_intp* room, npy_intp size) {
    EACH((memcpy(to + k * size, from, (size_t)size), from += next))
    return from;
}
static const char* row_write(const char* mask, const char* from, npy_intp next, char* to, npy_intp n, npy_intp* room, npy_intp size) {
#ifdef HAS_COMPRESS
    if (next == size && compress_used(size)) return row_write_vectors(mask, from, to, n, room, size);
    if (next == 0 && compress_used(size)) return row_fill_vectors(mask, from, to, n, room, size), from;
#endif
    BY_SIZE(row_write_by, mask, from, next, to, n, room)
}

/* `x[mask]`, elements or rows. */
static PyObject* chosen_read(PyArrayObject* x, PyArrayObject* mask, int plain) {
    npy_intp dims[AXES], count, room;
    int ndim = PyArray_NDIM(x) - PyArray_NDIM(mask) + 1;
    PyArrayObject* made;
    Chosen of;
    char* to;
    if (!PyArray_ISBEHAVED_RO(x) || ndim > AXES || !chosen_rows(x, mask, &of)) return NULL;
    count = room = dims[0] = truths_count(mask, &of);
    if (ndim > 1 && count < 2) return NULL; /* as above */
    for (int k = 1; k < ndim; k++) dims[k] = PyArray_DIM(x, PyArray_NDIM(mask) + k - 1);
    made = result_room(ndim, dims, PyArray_TYPE(x), count * (of.size / PyArray_ITEMSIZE(x)), plain);
    to = made ? PyArray_BYTES(made) : NULL;
    for (npy_intp row = 0; made && row < of.rows; row++)
        to = row_read(PyArray_BYTES(mask) + row * of.across_mask, PyArray_BYTES(x) + row * of.across, to, of.length, &room, of.size);
    if (made && room) { /* other values than were counted; NumPy would go by them */
        PyArrayObject* all = made;
        dims[0] = count - room;
        made = result_room(ndim, dims, PyArray_TYPE(x), dims[0] * (of.size / PyArray_ITEMSIZE(x)), plain);
        if (made) memcpy(PyArray_BYTES(made), PyArray_BYTES(all), (size_t)(dims[0] * of.size));
        Py_DECREF(all);
    }
    return (PyObject*)made;
}

/* `x[mask] = value`: a number (`y` is NULL), or as many elements, or rows, as are chosen. */
static int chosen_write(PyArrayObject* x, PyArrayObject* mask, PyObject* value, PyArrayObject* y) {
    npy_intp next = 0, room = NPY_MAX_INTP;
    const char* from;
    Value number;
    Chosen of;
    int axes = PyArray_NDIM(mask), rest = PyArray_NDIM(x) - axes;
    if (!is_written_plainly(x) || !chosen_rows(x, mask, &of) || may_overlap(x, mask)) return 0;
    if (y == NULL) {
        if (rest || !value_of(value, PyArray_TYPE(x), &number)) return 0;
        from = (char*)&number;
    } else {
        if (PyArray_TYPE(y) != PyArray_TYPE(x) || PyArray_NDIM(y) != 1 + rest || !PyArray_ISBEHAVED_RO(y) || may_overlap(x, y)) return 0;
        if (rest ? !PyArray_IS_C_CONTIGUOUS(y) || !PyArray_CompareLists(PyArray_DIMS(y) + 1, PyArray_DIMS(x) + axes, rest) : 0) return 0;
        if ((room = PyArray_DIM(y, 0)) != truths_count(mask, &of)) return 0;
        if (room == 0) return 1; /* there is no element to read */
        from = PyArray_BYTES(y), next = room > 1 ? PyArray_STRIDE(y, 0) : 0;
    }
    for (npy_intp row = 0; row < of.rows; row++)
        from = row_write(PyArray_BYTES(mask) + row * of.across_mask, from, next, PyArray_BYTES(x) + row * of.across, of.length, &room, of.size);
    return 1;
}
#else
static PyObject* chosen_read(PyArrayObject* x, PyArrayObject* mask, int plain) { return (void)x, (void)mask, (void)plain, NULL; }
static int chosen_write(PyArrayObject* x, PyArrayObject* mask, PyObject* value, PyArrayObject* y) { return (void)x, (void)mask, (void)value, (void)y, 0; }
#endif

/* Positions along the first axis.  One is read once, and looked at before it is used: a thread without the interpreter may write it. */
#define LISTED_MOST 64 /* of a list; of more NumPy makes an array first */
typedef struct {
    const char* at;
    npy_intp n, dims[AXES], listed[LISTED_MOST];
    int ndim;
} Positions;

/* Read an array of positions, or a list of whole numbers, `array` being NULL. */
static int positions_read(PyObject* key, PyArrayObject* array, Positions* to) {
    if (array) {
        if (PyArray_TYPE(array) != NPY_INTP || PyArray_NDIM(array) == 0 || PyArray_NDIM(array) > AXES || !PyArray_ISCARRAY_RO(array)) return 0;
        to->at = PyArray_BYTES(array), to->n = PyArray_SIZE(array), to->ndim = PyArray_NDIM(array);
        memcpy(to->dims, PyArray_DIMS(array), (size_t)to->ndim * sizeof(npy_intp));
        return to->n > 0;
    }
    if (!PyList_CheckExact(key)) return 0;
    to->at = (const char*)to->listed, to->ndim = 1, to->n = to->dims[0] = PyList_GET_SIZE(key);
    if (to->n == 0 || to->n > LISTED_MOST) return 0;
    for (npy_intp k = 0; k < to->n; k++)
        if (!integer_of(PyList_GET_ITEM(key, k), &to->listed[k])) return 0;
    return 1;
}

/* How many bytes of `x` a position names: an element, or a row whose elements lie side by side; 0 of all else. */
static npy_intp placed_size(PyArrayObject* x, const Positions* positions) {
    npy_intp size = PyArray_ITEMSIZE(x);
    int ndim = PyArray_NDIM(x);
    if (ndim == 0 || PyArray_TYPE(x) > NPY_CDOUBLE || !PyArray_ISBEHAVED_RO(x)) return 0;
    if (ndim > 1 && (positions->ndim > 1 || positions->n < 2 || ndim > AXES)) return 0;
    for (int k = ndim - 1; k > 0; size *= PyArray_DIM(x, k--))
        if (PyArray_DIM(x, k) < 2 || PyArray_STRIDE(x, k) != size) return 0; /* of one element NumPy has strides of its own */
    return size;
}

#define PLACED(DO) \
    for (npy_intp k = 0; k < n; k++) { \
        npy_intp position = ((const volatile npy_intp*)at)[k]; \
        position += position < 0 ? length : 0; \
        if ((npy_uintp)position >= (npy_uintp)length) return 0; \
        DO; \
    } \
    return 1;

/* Whether all positions are within, as far as they were read. */
static int gathered_by(const char* at, npy_intp n, const char* from, npy_intp length, npy_intp step, char* to, npy_intp size) {
#define GATHER(SIZE) case SIZE: PLACED(memcpy(to + k * SIZE, from + position * step, SIZE))
    switch (size) {
        GATHER(1)
        GATHER(2)
        GATHER(4)
        GATHER(8)
        GATHER(16)
        default: PLACED(memcpy(to + k * size, from + position * step, (size_t)size))
    }
#undef GATHER
}
static int all_within(const char* at, npy_intp n, npy_intp length) { PLACED((void)0) }
static int scattered_by(const char* at, npy_intp n, char* to, npy_intp length, npy_intp step, const char* from, npy_intp next, npy_intp size) {
#define SCATTER(SIZE) case SIZE: PLACED((memcpy(to + position * step, from, SIZE), from += next))
    switch (size) {
        SCATTER(1)
        SCATTER(2)
        SCATTER(4)
        SCATTER(8)
        SCATTER(16)
        default: PLACED((memcpy(to + position * step, from, (size_t)size), from += next))
    }
#undef SCATTER
}

#define SCATTERED 512 /* of more NumPy makes as much in less: all positions are looked at twice here, for nothing may be written if one is out of range */

/* `x[positions] = value`: a number (`y` is NULL), or as many elements or rows, or one row for all; where a position is out of range NumPy says so, and nothing is written. */
static int placed_write(PyArrayObject* x, PyObject* key, PyArrayObject* array, PyObject* value, PyArrayObject* y) {
    npy_intp size, next = 0, length;
    int rest = PyArray_NDIM(x) - 1, each;
    const char* from;
    Value number;
    Positions positions;
    if (!positions_read(key, array, &positions) || (size = placed_size(x, &positions)) == 0 || !is_written_plainly(x) || (array && may_overlap(x, array))) return 0;
    length = PyArray_DIM(x, 0);
    if (rest == 0 && positions.n > SCATTERED) return 0;
    if (y == NULL) {
        if (rest || !value_of(value, PyArray_TYPE(x), &number)) return 0;
        from = (char*)&number;
    } else {
        if (positions.ndim != 1 || PyArray_TYPE(y) != PyArray_TYPE(x) || !PyArray_ISBEHAVED_RO(y) || may_overlap(x, y)) return 0;
        each = PyArray_NDIM(y) == rest + 1; /* else one row for all */
        if (each ? PyArray_DIM(y, 0) != positions.n : rest == 0 || PyArray_NDIM(y) != rest) return 0;
        if (rest && (!PyArray_IS_C_CONTIGUOUS(y) || !PyArray_CompareLists(PyArray_DIMS(y) + each, PyArray_DIMS(x) + 1, rest))) return 0;
        from = PyArray_BYTES(y), next = each && positions.n > 1 ? PyArray_STRIDE(y, 0) : 0;
    }
    if (!all_within(positions.at, positions.n, length)) return 0;
    return scattered_by(positions.at, positions.n, PyArray_BYTES(x), length, PyArray_STRIDE(x, 0), from, next, size);
}

/* `x[positions]`, elements or rows. */
static PyObject* placed_read(PyArrayObject* x, PyObject* key, PyArrayObject* array, int plain) {
    Positions positions;
    PyArrayObject* made;
    npy_intp size;
    int ndim;
    if (!positions_read(key, array, &positions) || (size = placed_size(x, &positions)) == 0) return NULL;
    ndim = positions.ndim + PyArray_NDIM(x) - 1;
    if (ndim > AXES) return NULL;
    for (int k = 1; k < PyArray_NDIM(x); k++) positions.dims[k] = PyArray_DIM(x, k);
    made = result_room(ndim, positions.dims, PyArray_TYPE(x), positions.n * (size / PyArray_ITEMSIZE(x)), plain);
    if (made && gathered_by(positions.at, positions.n, PyArray_BYTES(x), PyArray_DIM(x, 0), PyArray_STRIDE(x, 0), PyArray_BYTES(made), size)) return (PyObject*)made;
    Py_XDECREF(made);
    return NULL; /* NumPy's words for it are others */
}

/* Elements at positions along all axes, `x[rows, columns]`: arrays of as many whole numbers each, and numbers. */
typedef struct {
    const char* at[AXES];
    npy_intp step[AXES], number[AXES], n;
} Points;

/* Read a tuple of them, of which one at least is an array; `x` is to be written where `written`. */
static int points_read(PyArrayObject* x, PyObject* key, Points* to, int written) {
    int ndim = PyArray_NDIM(x);
    if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != ndim || ndim < 2 || ndim > AXES || PyArray_TYPE(x) > NPY_CDOUBLE || !PyArray_ISBEHAVED_RO(x)) return 0;
    to->n = -1;
    for (int k = 0; k < ndim; k++) {
        PyObject* part = PyTuple_GET_ITEM(key, k);
        PyArrayObject* array = plain_of(part);
        if (array == NULL) {
            if (!integer_of(part, &to->number[k])) return 0;
            to->at[k] = (const char*)&to->number[k], to->step[k] = 0;
            continue;
        }
        if (PyArray_TYPE(array) != NPY_INTP || PyArray_NDIM(array) != 1 || !PyArray_ISCARRAY_RO(array) || (to->n >= 0 && PyArray_DIM(array, 0) != to->n)) return 0;
        if (written && may_overlap(x, array)) return 0;
        to->n = PyArray_DIM(array, 0), to->at[k] = PyArray_BYTES(array), to->step[k] = sizeof(npy_intp);
    }
    return to->n > 0;
}

/* Where a point is, in bytes from the first element; NPY_MIN_INTP where it is none. */
static inline npy_intp point_at(PyArrayObject* x, const Points* of, npy_intp k) {
    npy_intp at = 0;
    for (int axis = 0; axis < PyArray_NDIM(x); axis++) {
        npy_intp length = PyArray_DIM(x, axis), position = *(const volatile npy_intp*)(of->at[axis] + k * of->step[axis]);
        position += position < 0 ? length : 0;
        if ((npy_uintp)position >= (npy_uintp)length) return NPY_MIN_INTP;
        at += position * PyArray_STRIDE(x, axis);
    }
    return at;
}

static PyObject* points_chosen(PyArrayObject* x, PyObject* key) {
    npy_intp size = PyArray_ITEMSIZE(x), at;
    PyArrayObject* made;
    Points of;
    if (!points_read(x, key, &of, 0) || (made = raw_new(1, &of.n, PyArray_TYPE(x), of.n)) == NULL) return NULL;
    for (npy_intp k = 0; k < of.n; k++) {
        if ((at = point_at(x, &of, k)) == NPY_MIN_INTP) return Py_DECREF(made), NULL; /* NumPy says so */
        memcpy(PyArray_BYTES(made) + k * size, PyArray_BYTES(x) + at, (size_t)size);
    }
    return (PyObject*)made;
}

static int points_written(PyArrayObject* x, PyObject* key, PyObject* value, PyArrayObject* y) {
    npy_intp size = PyArray_ITEMSIZE(x), at, next = 0;
    const char* from;
    Value number;
    Points of;
    if (!points_read(x, key, &of, 1) || of.n > SCATTERED || !is_written_plainly(x)) return 0;
    if (y == NULL) {
        if (!value_of(value, PyArray_TYPE(x), &number)) return 0;
        from = (char*)&number;
    } else {
        if (PyArray_TYPE(y) != PyArray_TYPE(x) || PyArray_NDIM(y) != 1 || PyArray_DIM(y, 0) != of.n || !PyArray_ISBEHAVED_RO(y) || may_overlap(x, y)) return 0;
        from = PyArray_BYTES(y), next = of.n > 1 ? PyArray_STRIDE(y, 0) : 0;
    }
    for (npy_intp k = 0; k < of.n; k++)
        if (point_at(x, &of, k) == NPY_MIN_INTP) return 0; /* nothing is written then */
    for (npy_intp k = 0; k < of.n; k++, from += next) {
        if ((at = point_at(x, &of, k)) == NPY_MIN_INTP) return 0;
        memcpy(PyArray_BYTES(x) + at, from, (size_t)size);
    }
    return 1;
}

/* Whether a key may be one of those that choose, at first sight. */
static inline int may_choose(PyObject* key) {
    if (Py_TYPE(key) == array_type || PyList_CheckExact(key)) return 1;
    if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) < 2) return 0;
    return Py_TYPE(PyTuple_GET_ITEM(key, 0)) == array_type || Py_TYPE(PyTuple_GET_ITEM(key, 1)) == array_type;
}

/* `x[key]` by one array of truth values or positions, or by a list of these, `array` being NULL; `plain`: nothing of it has to be NumPy's array, nor is the result. */
static PyObject* chosen(PyArrayObject* x, PyObject* key, PyArrayObject* array, int plain) {
    if (PyTuple_CheckExact(key)) return points_chosen(x, key);
    return array && PyArray_ISBOOL(array) ? chosen_read(x, array, plain) : placed_read(x, key, array, plain);
}

/* The same for `x[key] = value`: whether it was written. */
static int chosen_written(PyArrayObject* x, PyObject* key, PyArrayObject* array, PyObject* value, PyArrayObject* y) {
    if (PyTuple_CheckExact(key)) return points_written(x, key, value, y);
    return array && PyArray_ISBOOL(array) ? chosen_write(x, array, value, y) : placed_write(x, key, array, value, y);
}

/* For Python, of arrays of NumPy's: what is chosen, or None, and whether it was written. */
static PyObject* chosen_of(PyObject* x, PyObject* mask) {
    PyObject* found = PyArray_CheckExact(x) && PyArray_CheckExact(mask) ? chosen_read((PyArrayObject*)x, (PyArrayObject*)mask, 0) : NULL;
    return found || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}
static int chosen_put(PyObject* x, PyObject* mask, PyObject* y) {
    int plain = PyArray_CheckExact(x) && PyArray_CheckExact(mask) && PyArray_CheckExact(y);
    return plain && chosen_write((PyArrayObject*)x, (PyArrayObject*)mask, NULL, (PyArrayObject*)y);
}

/* `where` as a step of a tape, by the bytes of an element. */
#define CHOOSING(BYTES) \
    static void choose_##BYTES(char** args, const npy_intp* dims, const npy_intp* steps, void* data) { \
        (void)data; \
        row_loops_here()->choose(args[0], steps[0], args[1], steps[1], args[2], steps[2], args[3], dims[0], BYTES); \
    }
CHOOSING(1) CHOOSING(2) CHOOSING(4) CHOOSING(8)
#undef CHOOSING
static Loops where_loops;

static int where_fill(void) {
    PyObject* numpy = PyImport_ImportModule("numpy");
    where_loops.ufunc = numpy ? PyObject_GetAttrString(numpy, "where") : NULL, where_loops.nin = 3, where_loops.chooses = 1;
    Py_XDECREF(numpy);
    for (int type = 0; type < TYPES; type++) {
        int size = PyTypeNum_ISCOMPLEX(type) || raw_dtypes[type] == NULL ? 0 : (int)PyDataType_ELSIZE(raw_dtypes[type]);
        PyUFuncGenericFunction function = (PyUFuncGenericFunction)(size == 1 ? choose_1 : size == 2 ? choose_2 : size == 4 ? choose_4 : size == 8 ? choose_8 : NULL);
        if (function) where_loops.of[type] = (Loop){.function = function, .out = (char)type, .size = (char)size, .state = USABLE, .basic = 1, .joins = 1};
    }
    return where_loops.ufunc ? 0 : -1;
}

/* `where(c, p, q)` of a mask and two operands of one dtype, of which one may be a number. */
static PyObject* where_of(PyArrayObject* c, PyArrayObject* p, PyArrayObject* q, PyObject* number) {
    PyArrayObject *of[3] = {c, p, q}, *like = p ? p : q, *made;
    npy_intp dims[AXES], steps[3][AXES] = {{0}}, at[AXES] = {0}, size = PyArray_ITEMSIZE(like), rows = 1, n;
    int ndim = 0, last;
    char *from[3], *to;
    Value value;
    if (!PyArray_ISBOOL(c) || size > 8 || (p && q ? PyArray_TYPE(p) != PyArray_TYPE(q) : !value_of(number, PyArray_TYPE(like), &value))) return NULL;
    for (int o = 0; o < 3; o++)
        if (of[o] && PyArray_NDIM(of[o]) > ndim) ndim = PyArray_NDIM(of[o]);
    if (ndim == 0 || ndim > AXES) return NULL;
    for (int k = 0; k < ndim; k++) dims[k] = 1;
    for (int o = 0; o < 3; o++)
        for (int k = of[o] ? ndim - PyArray_NDIM(of[o]) : ndim; k < ndim; k++)
            if (dims[k] == 1) dims[k] = PyArray_DIM(of[o], k - (ndim - PyArray_NDIM(of[o])));
    for (int o = 0; o < 3; o++) {
        if (of[o] && !operand_steps(of[o], ndim, dims, steps[o])) return NULL;
        from[o] = of[o] ? PyArray_BYTES(of[o]) : (char*)&value;
    }
    for (int k = 0; k < ndim; k++)
        if ((rows *= dims[k]) > limit_now()) return NULL; /* before the product of many axes overflows */
    if (rows == 0 || (made = result_of(ndim, dims, PyArray_TYPE(like), rows)) == NULL) return NULL;
    last = ndim - 1, n = dims[last], to = PyArray_BYTES(made);
    for (rows /= n;; to += n * size) {
        row_loops_here()->choose(from[0], steps[0][last], from[1], steps[1][last], from[2], steps[2][last], to, n, size);
        if (--rows == 0) break;
        for (int k = last - 1; k >= 0; k--) {
            at[k]++;
            for (int o = 0; o < 3; o++) from[o] += steps[o][k] - (at[k] == dims[k] ? steps[o][k] * dims[k] : 0);
            if (at[k] < dims[k]) break;
            at[k] = 0;
        }
    }
    return (PyObject*)made;
}

#endif
