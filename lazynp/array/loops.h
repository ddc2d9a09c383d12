/* Reductions by inner loops: of all elements, and along an axis.

   In: an array, and an axis or none.  Out: what NumPy's reduction gives, to the bit; of many elements the sums of kernels (`ordered.h`).  Promise: which order sums have follows from the number
   of elements alone. */

#ifndef LAZYNP_LOOPS_H
#define LAZYNP_LOOPS_H

#include "products.h"

/* Reductions of whole arrays ------------------------------------------------------------------------------------------------------ */

typedef struct {
    Loops loops;
    PyObject* reduce;    /* NumPy's */
    int from_zero;       /* begins with zero, not with the first element */
    char state[TYPES];   /* whether it was compared with NumPy */
    char rows[TYPES][2]; /* the same of one axis of several: the last one, or another */
} Reduction;

#include "rows.h"
#include "ordered.h"

/* In whose order a reduction combines elements: NumPy's, the kernels', or the kernels' in a way that there are no loops of here. */
enum { NUMPYS_ORDER, KERNELS_ORDER, OTHER_ORDER };
static inline int order_of(const Reduction* of, int type, npy_intp size) {
    if (size <= limit_now() || !(type == NPY_DOUBLE || type == NPY_FLOAT || type == NPY_HALF)) return NUMPYS_ORDER;
    if (of->from_zero) return type == NPY_HALF ? OTHER_ORDER : KERNELS_ORDER;
    return strcmp(((PyUFuncObject*)of->loops.ufunc)->name, "multiply") ? NUMPYS_ORDER : OTHER_ORDER; /* of extremes the order does not show */
}

static int reduce_into(Reduction* of, Loop* loop, PyArrayObject* x, Value* value) {
    npy_intp n = PyArray_SIZE(x), size = PyArray_ITEMSIZE(x);
    char* p = PyArray_BYTES(x);
    memset(value, 0, sizeof(*value));
    if (of->from_zero && (loop->out == NPY_DOUBLE || loop->out == NPY_FLOAT)) { /* a sum */
        flags_clear(1);
        if (loop->out == NPY_DOUBLE) value->d = 0 + row_sum_double((const double*)p, n, 0);
        else value->f = 0 + row_sum_float((const float*)p, n, 0);
        return !minds(flags_raised(1));
    }
    if (!of->from_zero) {
        memcpy(value, p, (size_t)size);
        p += size, n -= 1;
    }
    return !minds(run2(loop, (char*)value, p, (char*)value, n, 0, size, 0));
}

/* At least `size` elements of a sample, again and again. */
static PyArrayObject* sample_of(int type, int which, int special, npy_intp size) {
    PyArrayObject *whole = sample(type, which, special), *x = NULL;
    if (size <= SAMPLE) return whole;
    if (whole) x = (PyArrayObject*)PyArray_SimpleNew(1, &size, type);
    npy_intp step = x ? PyArray_ITEMSIZE(x) : 0;
    for (npy_intp k = 0; x && k < size; k += SAMPLE) memcpy(PyArray_BYTES(x) + k * step, PyArray_BYTES(whole), (size_t)((size - k < SAMPLE ? size - k : SAMPLE) * step));
    Py_XDECREF(whole);
    return x;
}

/* Whether a number is what NumPy has; of two NaN that a sum meets it is the compiler's which one is handed on. */
static int is_reduced(const Reduction* of, int type, const Value* value, const void* theirs, size_t size) {
    Value other;
    memcpy(&other, theirs, size);
    if (of->from_zero && type == NPY_FLOAT && value->f != value->f) return other.f != other.f;
    if (of->from_zero && type == NPY_DOUBLE && value->d != value->d) return other.d != other.d;
    return memcmp(value, &other, size) == 0;
}

/* Compare with NumPy: several lengths, special values, two axes. */
static void reduction_check(Reduction* of, Loop* loop, int type) {
    static const npy_intp lengths[] = {1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 65, 66, 301};
    int fine = 1;
    of->state[type] = UNUSABLE;
    for (int k = 0; k < 39 && fine; k++) {
        npy_intp n = lengths[k / 3], dims[2] = {1, n};
        PyArrayObject *whole = sample_of(type, k % 3 == 0, k % 3 == 2, n), *x = NULL;
        PyObject* theirs = NULL;
        Value value;
        if (n == 64 || n == 66) dims[0] = 2, dims[1] = n / 2;
        if (whole) x = sample_part(whole, n == 9 ? SAMPLE - n : 0, 2, dims, 0);
        if (x) theirs = quietly(of->reduce, (PyObject*[]){(PyObject*)x, Py_None}, 2);
        if (theirs) Py_SETREF(theirs, PyArray_FromAny(theirs, NULL, 0, 0, 0, NULL));
        fine = 0;
        if (theirs && x && PyArray_TYPE((PyArrayObject*)theirs) == type) {
            reduce_into(of, loop, x, &value);
            fine = is_reduced(of, type, &value, PyArray_DATA((PyArrayObject*)theirs), (size_t)PyArray_ITEMSIZE(x));
        }
        Py_XDECREF(whole), Py_XDECREF(x), Py_XDECREF(theirs);
    }
    loop_compared(loop, &of->state[type], fine);
}

/* Whether NumPy multiplies by one first, which shows: of complex numbers it makes of some zeros others. */
static inline int begins_with_one(const Reduction* of, int type) { return !of->from_zero && PyTypeNum_ISCOMPLEX(type); }

/* All elements combined, as a value of their type; 0 (without an exception) where it is NumPy's to do. */
#define LONGEST 8192 /* elements that NumPy takes in one piece */
static inline int direct_reduce(Reduction* of, PyArrayObject* x, Value* value) {
    int type = PyArray_TYPE(x);
    npy_intp n = PyArray_SIZE(x);
    Loop* loop;
    if (!plain_memory(x) || n == 0 || n > LONGEST || begins_with_one(of, type) || order_of(of, type, n) != NUMPYS_ORDER || (loop = loop_of(&of->loops, type)) == NULL || loop->out != type) return 0;
    if (PyArray_ITEMSIZE(x) > (npy_intp)sizeof(Value) || of->state[type] == UNUSABLE) return 0;
    if (of->state[type] == UNKNOWN) return reduction_check(of, loop, type), 0; /* as `loop_of` */
    return reduce_into(of, loop, x, value);
}

/* Put elements that lie apart side by side. */
static void copy_column(char* to, const char* from, npy_intp rows, npy_intp across, npy_intp size) {
#define COPY_COLUMN(TYPE) for (npy_intp k = 0; k < rows; k++, from += across) ((TYPE*)to)[k] = *(const TYPE*)from; break;
    switch (size) {
    case 8: COPY_COLUMN(uint64_t)
    case 4: COPY_COLUMN(uint32_t)
    case 2: COPY_COLUMN(uint16_t)
    default: COPY_COLUMN(uint8_t)
    }
#undef COPY_COLUMN
}

/* The extremes that are zero or NaN, as NumPy's loop has them; 0 where it raises a flag. */
static int zeros_again(Loop* loop, char* from, npy_intp rows, npy_intp columns, npy_intp across, char* to) {
    static const Value zero;
    npy_intp size = loop->size;
    for (npy_intp k = 0; k < rows; k++, from += across, to += size) {
        if (memcmp(to, &zero, (size_t)size) && (((unsigned char*)to)[size - 1] != 0x80 || memcmp(to, &zero, (size_t)size - 1))) continue;
        memcpy(to, from, (size_t)size);
        if (run2(loop, to, from + size, to, columns - 1, 0, size, 0)) return 0;
    }
    return 1;
}

#define SEQUENTIAL 8 /* elements of a row, from which on NumPy adds them in another order */
/* The elements of each row (axis 1), or of each column, of a matrix whose rows are contiguous; 0 where a flag is raised. */
static int reduce_matrix(const Reduction* of, Loop* loop, char* from, npy_intp rows, npy_intp columns, npy_intp across, int axis, char* to) {
    npy_intp size = loop->size, first = !of->from_zero;
    int fine = 1, zeros;
    RowsReduced reduced = rows_reduced(((PyUFuncObject*)of->loops.ufunc)->name, of->from_zero, loop->out, columns, axis, &zeros);
    if (reduced) {
        flags_clear(1);
        reduced(from, rows, columns, across, to);
        if (!zeros) return !flags_raised(1);
        fine = zeros_again(loop, from, rows, columns, across, to);
        return flags_clear(1), fine;
    }
    if (axis && columns < SEQUENTIAL && rows >= columns) { /* column after column, all rows at once: the order in each row is the same */
        flags_clear(1);
        copy_column(to, from, rows, across, size);
        for (npy_intp k = 1; k <= columns - first; k++) {
            static const Value zero;
            int added = k < columns; /* else the zero that sums begin with: of negative zeros they are a positive one */
            char* args[3] = {to, added ? from + k * size : (char*)&zero, to};
            npy_intp steps[3] = {size, added ? across : 0, size};
            loop->function(args, &rows, steps, loop->data);
        }
        return !flags_raised(1);
    }
    if (of->from_zero) memset(to, 0, (size_t)((axis ? rows : columns) * size));
    else if (axis == 0) memcpy(to, from, (size_t)(columns * size));
    for (npy_intp k = axis ? 0 : first; k < rows && fine; k++) {
        char* row = from + k * across;
        if (axis == 0) {
            fine = !run2(loop, to, row, to, columns, size, size, size);
        } else {
            if (first) memcpy(to + k * size, row, (size_t)size);
            fine = !run2(loop, to + k * size, row + first * size, to + k * size, columns - first, 0, size, 0);
        }
    }
    return fine;
}

/* One axis of an array combined, seen as matrices one behind the other, and who computes some of the results. */
typedef struct {
    Pieces pieces;
    const Reduction* of;
    Loop* loop;
    char *from, *to;
    npy_intp matrices, rows, columns, across;
    int axis, spread; /* variances, or their roots, instead */
    int order;        /* whose: see `order_of` */
    double by;        /* how many elements of each count, then */
} AxisRun;

/* What `spread` says instead of sums. */
enum { SUMS_ALONE, VARIANCES, DEVIATIONS };

/* The same in the kernels' order: sums of the rows, or columns, of a matrix, or variances. */
#define MATRIX_ORDERED(NAME, TYPE, ROOT)                                                                                                     \
    static int NAME(const AxisRun* self, const TYPE* from, npy_intp rows, npy_intp columns, TYPE* to) {                                      \
        npy_intp across = self->across / (npy_intp)sizeof(TYPE), n = self->axis ? rows : columns, length = self->axis ? columns : rows;      \
        npy_intp scratch = self->axis ? 0 : ordered_scratch(rows), means = self->spread && !self->axis ? n : 0;                              \
        TYPE *room = scratch + means ? PyMem_RawMalloc((size_t)(scratch + means) * sizeof(TYPE)) : NULL, *mean = means ? room + scratch : to; \
        if (scratch + means && room == NULL) return 0;                                                                                       \
        if (self->axis) ordered_rows_add_##TYPE(from, rows, columns, across, 0, NULL, mean);                                                 \
        else ordered_columns_add_##TYPE(from, 1, rows, columns, across, 0, NULL, mean, room);                                                \
        for (npy_intp k = 0; self->spread && k < n; k++) mean[k] /= (TYPE)length;                                                            \
        if (self->spread && self->axis) ordered_rows_squares_##TYPE(from, rows, columns, across, 0, mean, to);                               \
        else if (self->spread) ordered_columns_squares_##TYPE(from, 1, rows, columns, across, 0, mean, to, room);                            \
        for (npy_intp k = 0; self->spread && k < n; k++) to[k] /= (TYPE)self->by;                                                            \
        for (npy_intp k = 0; self->spread == DEVIATIONS && k < n; k++) to[k] = ROOT(to[k]);                                                  \
        PyMem_RawFree(room);                                                                                                                 \
        return 1;                                                                                                                            \
    }
MATRIX_ORDERED(matrix_ordered_double, double, sqrt)
MATRIX_ORDERED(matrix_ordered_float, float, sqrtf)
#undef MATRIX_ORDERED

static int matrix_reduced(const AxisRun* self, char* from, npy_intp rows, npy_intp columns, char* to) {
    if (self->order == KERNELS_ORDER) {
        int fine;
        if (self->spread == SUMS_ALONE) flags_clear(1);
        fine = self->loop->out == NPY_DOUBLE ? matrix_ordered_double(self, (const double*)from, rows, columns, (double*)to) : matrix_ordered_float(self, (const float*)from, rows, columns, (float*)to);
        return fine && (self->spread != SUMS_ALONE || !flags_raised(1));
    }
    if (self->spread == SUMS_ALONE) return reduce_matrix(self->of, self->loop, from, rows, columns, self->across, self->axis, to);
    (self->axis ? row_loops_here()->rows_spread : row_loops_here()->columns_spread)[self->loop->out == NPY_FLOAT](from, rows, columns, self->across, self->by, self->spread == DEVIATIONS, to);
    return 1; /* the flags are looked at when all is done */
}

static int axis_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const AxisRun* self = (const AxisRun*)pieces;
    npy_intp size = self->loop->size, whole = self->rows * self->across;
    (void)thread;
    if (self->axis) return !matrix_reduced(self, self->from + first * self->across, count, self->columns, self->to + first * size);
    if (self->matrices == 1) return !matrix_reduced(self, self->from + first * size, self->rows, count, self->to + first * size);
    for (npy_intp k = first; k < first + count; k++)
        if (!matrix_reduced(self, self->from + k * whole, self->rows, self->columns, self->to + k * self->columns * size)) return 1;
    return 0;
}

#define AXIS_NS 0.2     /* nanoseconds that an element takes; one of few columns waits for the one before */
#define AXIS_PIECE 512  /* columns that a thread takes at a time: some cache lines of each row */
/* Combine `axis` of `x`, whose elements lie as `axis_reduced` asks; NULL where a flag is raised.  `plain`: no array of NumPy's is made for it.  `spread`, `off`: variances instead,
   of one element fewer by so many. */
static PyArrayObject* reduce_axis(Reduction* of, Loop* loop, PyArrayObject* x, int axis, int keeps, int plain, int spread, double off) {
    int ndim = PyArray_NDIM(x), kept = 0, threads, columns;
    double ns;
    npy_intp dims[AXES], size = PyArray_SIZE(x), length = PyArray_DIM(x, axis), behind = 1;
    AxisRun self = {.of = of, .loop = loop, .from = PyArray_BYTES(x), .matrices = 1, .axis = axis == ndim - 1, .spread = spread, .by = (double)length - off, .order = order_of(of, loop->out, size)};
    PyArrayObject* r;
    for (int k = 0; k < ndim; k++) {
        if (k != axis || keeps) dims[kept++] = k == axis ? 1 : PyArray_DIM(x, k);
        if (k < axis) self.matrices *= PyArray_DIM(x, k);
        if (k > axis) behind *= PyArray_DIM(x, k);
    }
    self.rows = length, self.columns = behind;
    if (self.axis) self.rows = self.matrices, self.columns = length, self.matrices = 1;
    self.across = ndim == 2 ? PyArray_STRIDE(x, 0) : self.columns * loop->size;
    r = result_room(kept, dims, loop->out, size / length, plain);
    if (r == NULL) return NULL;
    self.to = PyArray_BYTES(r);
    columns = !self.axis && self.matrices == 1; /* are what is shared, else rows or matrices */
    pieces_of(&self.pieces, axis_piece, self.axis ? self.rows : columns ? self.columns : self.matrices, columns ? 1 : self.axis ? length : length * behind, columns ? AXIS_PIECE : LONG_PIECE, 1, ERRORS);
    ns = size < LONG_FROM ? 0 : (double)size * (AXIS_NS * (spread ? 2 : 1) + (self.axis ? 0 : 1.0 / (double)behind));
    threads = size < LONG_FROM || self.pieces.whole <= (columns ? AXIS_PIECE : 1) ? 1 : pieces_threads(ns, size * loop->size);
    Py_INCREF(x);
    if (pieces_do(&self.pieces, threads, ns)) Py_CLEAR(r);
    Py_DECREF(x);
    return r;
}

/* Compare with NumPy: rows of less than eight elements, more, and more than it adds in one part. */
static void rows_check(Reduction* of, Loop* loop, int type, int last) {
    static const npy_intp shapes[][3] = {{2, 33}, {33, 2}, {3, 22}, {8, 8}, {22, 3}, {2, 2}, {3, 11, 2}, {2, 3, 11}, {5, 2, 6}, {2, 16, 2}, {2, 301}};
    int fine = 1;
    of->rows[type][last] = UNUSABLE;
    for (int k = 0; k < 66 && fine; k++) { /* each with special values and without, over the last axis or each of the others */
        npy_intp dims[3] = {shapes[k / 6][0], shapes[k / 6][1], shapes[k / 6][2]}, size = dims[0] * dims[1] * (dims[2] ? dims[2] : 1);
        PyArrayObject *whole, *x = NULL, *r = NULL;
        PyObject *theirs = NULL, *axis;
        int ndim = dims[2] ? 3 : 2;
        if (k / 2 % 3 >= ndim || (k / 2 % 3 == ndim - 1) != last) continue;
        axis = PyLong_FromLong(k / 2 % 3);
        whole = sample_of(type, k & 1, k & 1, size);
        if (whole) x = sample_part(whole, 0, ndim, dims, 0);
        if (x && axis) theirs = quietly(of->reduce, (PyObject*[]){(PyObject*)x, axis}, 2);
        if (theirs) r = reduce_axis(of, loop, x, k / 2 % 3, 0, 0, SUMS_ALONE, 0);
        fine = theirs && !PyErr_Occurred() && (r == NULL ? k & 1 : PyArray_CheckExact(theirs) && same_bits(r, (PyArrayObject*)theirs));
        Py_XDECREF(whole), Py_XDECREF(x), Py_XDECREF(r), Py_XDECREF(theirs), Py_XDECREF(axis);
    }
    loop_compared(loop, &of->rows[type][last], fine);
}

/* The loop of a type whose sums have the kernels' order: there is nothing of NumPy's to compare with. */
static inline Loop* ordered_loop(Reduction* of, int type) {
    Loop* loop = &of->loops.of[type];
    return loop->function && loop->out == type ? loop : NULL;
}

/* The loop of elements of a type, if rows and columns of theirs are combined as NumPy does; NULL where it is NumPy's to do. */
static Loop* axis_loop(Reduction* of, int type, int last, int order, int spread, npy_intp length, double off) {
    Loop* loop = order == KERNELS_ORDER ? ordered_loop(of, type) : loop_of(&of->loops, type);
    if (order == KERNELS_ORDER) return spread && (double)length <= off ? NULL : loop;
    if (loop == NULL || loop->out != type || !loop->basic || begins_with_one(of, type)) return NULL;
    if (of->rows[type][last] == UNKNOWN) return rows_check(of, loop, type, last), NULL; /* as `loop_of` */
    if (of->rows[type][last] == UNUSABLE) return NULL;
    return spread && ((type != NPY_DOUBLE && type != NPY_FLOAT) || (double)length <= off) ? NULL : loop;
}

/* Whether the rows of a matrix lie without gaps in them. */
static inline int rows_dense(PyArrayObject* x, int row) {
    return PyArray_STRIDE(x, row) == PyArray_ITEMSIZE(x) && PyArray_STRIDE(x, 1 - row) >= PyArray_DIM(x, row) * PyArray_ITEMSIZE(x);
}

/* One axis of several combined; NULL without an exception where it is NumPy's to do.  `spread`, `off` as of `reduce_axis`. */
static PyArrayObject* axis_spread(Reduction* of, PyArrayObject* x, npy_intp axis, int keeps, int plain, int spread, double off) {
    int ndim = PyArray_NDIM(x);
    npy_intp behind = 1;
    Loop* loop;
    int order = order_of(of, PyArray_TYPE(x), size_of(x));
    if (axis < 0) axis += ndim;
    if (order == OTHER_ORDER || ndim < 2 || ndim > AXES || axis < 0 || axis >= ndim || !PyArray_ISBEHAVED_RO(x)) return NULL;
    if (ndim == 2 && !keeps && order == NUMPYS_ORDER && !rows_dense(x, 1) && rows_dense(x, 0)) { /* NumPy goes through it as through the transposed matrix */
        npy_intp dims[2] = {PyArray_DIM(x, 1), PyArray_DIM(x, 0)}, strides[2] = {PyArray_STRIDE(x, 1), PyArray_STRIDE(x, 0)};
        PyArrayObject *turned = raw_view(x, 2, dims, strides, PyArray_BYTES(x)), *found = turned ? axis_spread(of, turned, 1 - axis, keeps, plain, spread, off) : NULL;
        Py_XDECREF(turned);
        return found;
    }
    for (int k = 0; k < ndim; k++) {
        if (PyArray_DIM(x, k) < 2) return NULL; /* else perhaps in another order */
        if (k > axis) behind *= PyArray_DIM(x, k);
    }
    if (order == NUMPYS_ORDER && (behind == 1 ? PyArray_DIM(x, axis) : behind) > LONGEST) return NULL;
    if (ndim == 2 ? !rows_dense(x, 1) : !PyArray_IS_C_CONTIGUOUS(x)) return NULL;
    if ((loop = axis_loop(of, PyArray_TYPE(x), behind == 1, order, spread, PyArray_DIM(x, axis), off)) == NULL) return NULL;
    return reduce_axis(of, loop, x, (int)axis, keeps, plain, spread, off);
}

static inline PyArrayObject* axis_reduced(Reduction* of, PyArrayObject* x, npy_intp axis, int keeps, int plain) { return axis_spread(of, x, axis, keeps, plain, SUMS_ALONE, 0); }

static PyObject* direct_axis(Reduction* of, PyArrayObject* x, PyObject* axis, int keeps) {
    npy_intp number = PyLong_CheckExact(axis) ? PyLong_AsSsize_t(axis) : AXES;
    if (number == -1 && PyErr_Occurred()) PyErr_Clear(), number = AXES;
    return (PyObject*)axis_reduced(of, x, number, keeps, 0);
}

#endif
