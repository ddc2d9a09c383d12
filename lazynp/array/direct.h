/* Elementwise operations by inner loops alone: numbers as operands, results, rows, errors, in place.

   In: arrays and numbers.  Out: NumPy's result, to the bit; NULL without an exception where it is NumPy's to do.  Promise: a result lies as NumPy lays it out; an error
   that is not ignored is told by NumPy's own function, and nothing is computed twice. */

#ifndef LAZYNP_DIRECT_H
#define LAZYNP_DIRECT_H

#include "inner_loops.h"

/* Numbers ---------------------------------------------------------------------------------------------------------------------- */

typedef union {
    npy_bool b; npy_byte i8; npy_ubyte u8; npy_short i16; npy_ushort u16; npy_int i32; npy_uint u32; npy_long l; npy_ulong ul;
    npy_longlong ll; npy_ulonglong ull; npy_half half; float f; double d; double c[2]; float cf[2];
} Value;

/* Whether a number of Python's is one of 32 bits without an overflow. */
static inline int single_fits(double v) { return fabs(v) < 3e38 || v != v || fabs(v) == INFINITY; }

/* A number as one of 16 bits, where that is an ordinary one, without an error; to the nearest, of two to the even one. */
static int half_of(double v, npy_half* to) {
    int exponent;
    double bits = fabs(v);
    if (v != 0 && !(bits >= 0x1p-14 && bits < 65520.0)) return 0;
    *to = (npy_half)(signbit(v) ? 0x8000 : 0);
    if (v == 0) return 1;
    bits = rint(ldexp(frexp(bits, &exponent), 11)); /* 1024 to 2048 */
    *to = (npy_half)(*to + ((exponent + 13) << 10) + (int)bits);
    return 1;
}

/* A number as an element of `type`, where NumPy would take it so (NEP 50) without an error. */
static inline int value_of(PyObject* x, int type, Value* to) {
    if (PyFloat_CheckExact(x)) {
        double v = PyFloat_AS_DOUBLE(x);
        if (type == NPY_DOUBLE) {
            to->d = v;
            return 1;
        }
        if ((type == NPY_FLOAT || type == NPY_CFLOAT) && single_fits(v)) {
            to->cf[0] = (float)v, to->cf[1] = 0; /* the first one is `f` */
            return 1;
        }
        if (type == NPY_CDOUBLE) {
            to->c[0] = v, to->c[1] = 0;
            return 1;
        }
        return type == NPY_HALF && half_of(v, &to->half);
    }
    if (PyLong_CheckExact(x)) {
        int overflow;
        long long v = PyLong_AsLongLongAndOverflow(x, &overflow);
        if (overflow) return 0;
        if (type == NPY_HALF) return v >= -2048 && v <= 2048 && half_of((double)v, &to->half);
        if (type == NPY_CDOUBLE && v >= -(1LL << 53) && v <= 1LL << 53) {
            to->c[0] = (double)v, to->c[1] = 0;
            return 1;
        }
        if (type == NPY_CFLOAT && v >= -(1LL << 24) && v <= 1LL << 24) {
            to->cf[0] = (float)v, to->cf[1] = 0;
            return 1;
        }
#define FITS(NUMBER, FIELD, TYPE, LOW, HIGH) case NUMBER: if (v < (LOW) || v > (HIGH)) return 0; to->FIELD = (TYPE)v; return 1;
        switch (type) {
            FITS(NPY_DOUBLE, d, double, -(1LL << 53), 1LL << 53)
            FITS(NPY_FLOAT, f, float, -(1LL << 24), 1LL << 24)
            FITS(NPY_BYTE, i8, npy_byte, NPY_MIN_BYTE, NPY_MAX_BYTE)
            FITS(NPY_UBYTE, u8, npy_ubyte, 0, NPY_MAX_UBYTE)
            FITS(NPY_SHORT, i16, npy_short, NPY_MIN_SHORT, NPY_MAX_SHORT)
            FITS(NPY_USHORT, u16, npy_ushort, 0, NPY_MAX_USHORT)
            FITS(NPY_INT, i32, npy_int, NPY_MIN_INT, NPY_MAX_INT)
            FITS(NPY_UINT, u32, npy_uint, 0, (long long)NPY_MAX_UINT)
            FITS(NPY_LONG, l, npy_long, NPY_MIN_LONG, NPY_MAX_LONG)
            FITS(NPY_ULONG, ul, npy_ulong, 0, NPY_MAX_LONG)
            FITS(NPY_LONGLONG, ll, npy_longlong, NPY_MIN_LONGLONG, NPY_MAX_LONGLONG)
            FITS(NPY_ULONGLONG, ull, npy_ulonglong, 0, NPY_MAX_LONGLONG)
        }
#undef FITS
        return 0;
    }
    if (type == NPY_CDOUBLE && PyComplex_CheckExact(x)) {
        to->c[0] = PyComplex_RealAsDouble(x), to->c[1] = PyComplex_ImagAsDouble(x);
        return 1;
    }
    if (type == NPY_CDOUBLE && IS_A(x, NPY_CDOUBLE)) {
        to->c[0] = PyComplex_RealAsDouble(x), to->c[1] = PyComplex_ImagAsDouble(x);
        return 1;
    }
    if (type == NPY_CFLOAT && PyComplex_CheckExact(x)) {
        double real = PyComplex_RealAsDouble(x), imaginary = PyComplex_ImagAsDouble(x);
        to->cf[0] = (float)real, to->cf[1] = (float)imaginary;
        return single_fits(real) && single_fits(imaginary);
    }
    if (type == NPY_BOOL && PyBool_Check(x)) {
        to->b = x == Py_True;
        return 1;
    }
    if (IS_A(x, NPY_DOUBLE) && type == NPY_DOUBLE) {
        to->d = PyArrayScalar_VAL(x, Double);
        return 1;
    }
    if (IS_A(x, NPY_FLOAT) && type == NPY_FLOAT) {
        to->f = PyArrayScalar_VAL(x, Float);
        return 1;
    }
    if (IS_A(x, NPY_LONG) && type == NPY_LONG) {
        to->l = PyArrayScalar_VAL(x, Long);
        return 1;
    }
    return 0;
}

/* Whether all elements lie side by side; one alone may have been taken out of a reversed array, for which NumPy has other loops. */
static inline int plain_memory(PyArrayObject* x) { return PyArray_ISCARRAY_RO(x) && PyArray_NDIM(x) > 0 && PyArray_STRIDE(x, PyArray_NDIM(x) - 1) >= 0; }

static PyArrayObject* result_of(int ndim, npy_intp* dims, int type, npy_intp size) {
    return (PyArrayObject*)pool_array(ndim, dims, PyArray_DescrFromType(type), size);
}
/* The same; `plain`: as what is no array of NumPy's yet, where it can be (`raw_new`). */
static PyArrayObject* result_room(int ndim, npy_intp* dims, int type, npy_intp size, int plain) {
    return plain && size && IS_NUMERIC(type) ? raw_new(ndim, dims, type, size) : result_of(ndim, dims, type, size);
}

static inline PyObject* copy_of(PyArrayObject* x, NPY_ORDER order) {
    PyObject *made, *before;
    if (PyArray_IS_C_CONTIGUOUS(x) && order != NPY_FORTRANORDER) { /* (in all other orders that is the order of the copy) */
        made = pool_array(PyArray_NDIM(x), PyArray_DIMS(x), (PyArray_Descr*)Py_NewRef((PyObject*)PyArray_DESCR(x)), PyArray_SIZE(x));
        if (made) memcpy(PyArray_DATA((PyArrayObject*)made), PyArray_DATA(x), (size_t)PyArray_NBYTES(x));
        return made;
    }
    before = pool_begin(PyArray_NBYTES(x));
    made = PyArray_NewCopy(x, order);
    pool_end(before);
    return made;
}

/* Memory for an array like `x`, perhaps of another dtype (taken over). */
static inline PyArrayObject* room_like(PyArrayObject* x, PyArray_Descr* dtype) {
    PyObject *before = pool_begin(PyArray_SIZE(x) * (dtype ? PyDataType_ELSIZE(dtype) : PyArray_ITEMSIZE(x))), *made = PyArray_NewLikeArray(x, NPY_KEEPORDER, dtype, 0);
    pool_end(before);
    return (PyArrayObject*)made;
}

static inline PyArrayObject* result_like(PyArrayObject* x, int type) { return result_of(PyArray_NDIM(x), PyArray_DIMS(x), type, PyArray_SIZE(x)); }

/* Operands that lie in rows: slices, columns, and such that are broadcast. */
#define AXES 4
typedef struct {
    int ndim;
    npy_intp dims[AXES], steps[2][AXES];
} Layout;

/* How an operand lies under `dims`; 0 where NumPy might go through it in another order than C's, or lay the result out in one. */
static int operand_steps(PyArrayObject* x, int ndim, const npy_intp* dims, npy_intp* steps) {
    int own = PyArray_NDIM(x);
    npy_intp before = NPY_MAX_INTP;
    if (!PyArray_ISBEHAVED_RO(x)) return 0;
    for (int k = 0; k < ndim; k++) {
        int axis = k - (ndim - own);
        npy_intp length = axis < 0 ? 1 : PyArray_DIM(x, axis), step = length == 1 ? 0 : PyArray_STRIDE(x, axis);
        if (length != 1 && length != dims[k]) return 0;
        if (length != 1 && (step <= 0 || step > before)) return 0;
        if (length != 1) before = step;
        steps[k] = step;
    }
    return 1;
}

/* How what has axes of its own lies under `dims`, whichever way; 0 where its shape is another one. */
static int operand_strides(int own, const npy_intp* lengths, const npy_intp* strides, int ndim, const npy_intp* dims, npy_intp* steps) {
    for (int k = 0; k < ndim; k++) {
        int axis = k - (ndim - own);
        npy_intp length = axis < 0 ? 1 : lengths[axis];
        if (length != 1 && length != dims[k]) return 0;
        steps[k] = length == 1 ? 0 : strides[axis];
    }
    return own <= ndim;
}

/* The order in which NumPy goes through the axes of `count` operands, and lays out a result: by how far elements lie apart, where the operands agree, else C's. */
static void axes_order(int count, int ndim, npy_intp steps[][AXES], char* order) {
    for (int k = 0; k < ndim; k++) order[k] = (char)k;
    for (int from = ndim - 2; from >= 0; from--) { /* axes from `from` + 1 on are in order */
        int axis = order[from], to = from;
        for (int other = from + 1; other < ndim; other++) {
            int compared = 0, further = 0;
            for (int o = 0; o < count; o++) {
                npy_intp own = steps[o][axis] < 0 ? -steps[o][axis] : steps[o][axis], its = steps[o][(int)order[other]];
                if (its < 0) its = -its;
                if (own == 0 || its == 0) continue;
                if (its <= own) further = 0;
                else if (!compared) further = 1;
                compared = 1;
            }
            if (!compared) continue;
            if (!further) break;
            to = other;
        }
        for (int k = from; k < to; k++) order[k] = order[k + 1];
        order[to] = (char)axis;
    }
}

/* Short rows, as many at a time as a block holds. */
static void sides_run(Loop* loop, const Layout* of, char* const* operands, const npy_intp* sizes, char* to, npy_intp rows) {
    char block[2][SIDES_BYTES];
    int last = of->ndim - 1, how[2], apart;
    npy_intp n = of->dims[last], most = SIDES_ELEMENTS / n, at[AXES] = {0};
    char* from[2] = {operands[0], operands[1]};
    for (int o = 0; o < 2; o++) {
        how[o] = lies(of->ndim, of->dims, of->steps[o], sizes[o]);
        if (how[o] == LIES_SAME) sides(block[o], from[o], rows < most ? rows : most, n, 0, of->steps[o][last], sizes[o]);
    }
    apart = how[0] == LIES_APART || how[1] == LIES_APART;
    while (rows) {
        npy_intp together = rows < most ? rows : most, dims[1] = {together * n}, steps[3] = {0, 0, sizes[2]};
        char* args[3] = {from[0], from[1], to};
        for (npy_intp row = 0, run; apart && row < together; row += run) { /* runs of rows along the axis before the last one */
            run = of->dims[last - 1] - at[last - 1];
            if (run > together - row) run = together - row;
            at[last - 1] += run;
            for (int o = 0; o < 2; o++) {
                if (how[o] != LIES_APART) continue;
                sides(block[o] + row * n * sizes[o], from[o], run, n, of->steps[o][last - 1], of->steps[o][last], sizes[o]);
                from[o] += run * of->steps[o][last - 1];
            }
            for (int k = last - 1; k > 0 && at[k] == of->dims[k]; k--) {
                at[k] = 0, at[k - 1]++;
                for (int o = 0; o < 2; o++)
                    if (how[o] == LIES_APART) from[o] += of->steps[o][k - 1] - of->steps[o][k] * of->dims[k];
            }
        }
        for (int o = 0; o < 2; o++) {
            if (how[o] == LIES_APART || how[o] == LIES_SAME) args[o] = block[o];
            if (how[o] == LIES_DENSE) from[o] += together * n * sizes[o];
            if (how[o] != LIES_ONE) steps[o] = sizes[o];
        }
        loop->function(args, dims, steps, loop->data);
        to += together * n * sizes[2], rows -= together;
    }
}

/* A loop over operands that lie in rows, and who computes some of the first axis. */
typedef struct {
    Pieces pieces;
    Loop* loop;
    Layout of;
    npy_intp sizes[3]; /* bytes of an element, of the result last */
    char *from[2], *to;
} RowsRun;

static int rows_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const RowsRun* self = (const RowsRun*)pieces;
    Layout of = self->of;
    npy_intp at[AXES] = {0}, rows = 1, last = of.ndim - 1, n;
    char *from[2] = {self->from[0] + first * of.steps[0][0], self->from[1] + first * of.steps[1][0]}, *to;
    (void)thread;
    to = self->to + first * pieces->unit * self->sizes[2];
    of.dims[0] = count;
    n = of.dims[last];
    for (int k = 0; k < last; k++) rows *= of.dims[k];
    if (n <= SIDES_ROW && rows > 1) {
        sides_run(self->loop, &of, from, self->sizes, to, rows);
        return 0; /* the flags are looked at when all is done */
    }
    for (;;) {
        char* args[3] = {from[0], from[1], to};
        npy_intp dims[1] = {n}, steps[3] = {of.steps[0][last], of.steps[1][last], self->sizes[2]};
        self->loop->function(args, dims, steps, self->loop->data);
        if (--rows == 0) return 0;
        to += n * self->sizes[2];
        for (npy_intp k = last - 1; k >= 0; k--) {
            from[0] += of.steps[0][k], from[1] += of.steps[1][k];
            if (++at[k] < of.dims[k]) break;
            from[0] -= of.steps[0][k] * of.dims[k], from[1] -= of.steps[1][k] * of.dims[k];
            at[k] = 0;
        }
    }
}

#define ROWS_NS 0.3  /* nanoseconds that an element in rows takes, */
#define SIDES_NS 1.0 /* and how many more in short ones */
/* Its errors. */
static int rows_run(RowsRun* self, npy_intp size) {
    double ns = (double)size * (self->of.dims[self->of.ndim - 1] <= SIDES_ROW ? ROWS_NS + SIDES_NS : ROWS_NS);
    npy_intp row = 1;
    for (int k = 1; k < self->of.ndim; k++) row *= self->of.dims[k];
    pieces_of(&self->pieces, rows_piece, self->of.dims[0], row, LONG_PIECE, 1, ERRORS);
    return pieces_do(&self->pieces, size < LONG_FROM || self->pieces.whole < 2 ? 1 : pieces_threads(ns, size * self->sizes[2]), ns);
}

/* Whether an operand's elements are equally far apart, all of them: NumPy goes through them in one call; and how far that is. */
static int is_line(const Layout* of, const npy_intp* steps, npy_intp* step) {
    npy_intp next = 0;
    int seen = 0;
    *step = 0;
    for (int k = of->ndim - 1; k >= 0; k--) {
        if (of->dims[k] == 1) continue;
        if (!seen) *step = steps[k], seen = 1;
        else if (steps[k] != next) return 0;
        next = steps[k] * of->dims[k];
    }
    return 1;
}

/* What becomes of errors: NumPy is told of those that are not ignored now, they end it, or (a mask of 0 and more) those of a mask end it. */
enum { TELLS = -1, ENDS = -2 };

/* A result, if no error was raised, or NumPy has told of those that were as it tells of its own; else NULL, with an exception where it raises one. */
static inline PyObject* told(const Loops* loops, const Loop* loop, PyArrayObject* r, int errors, int tells) {
    if (tells >= 0 ? errors == 0 || (errors > 0 && !(errors & tells)) : !minds(errors)) return (PyObject*)r;
    if (tells == TELLS && errors > 0 && loop->out != NPY_BOOL && PyUFunc_GiveFloatingpointErrors(((PyUFuncObject*)loops->ufunc)->name, errors) == 0) return (PyObject*)r;
    Py_DECREF(r);
    return NULL;
}

/* IEEE arithmetic row by row, whose bits are those of any other way, and what lies along a line; NULL without an exception where it is NumPy's to do. */
static PyObject* direct_rows(Loops* loops, Loop* loop, PyArrayObject* x, PyArrayObject* y, char* number, int number_first, int tells) {
    RowsRun self;
    Layout* of = &self.of;
    PyArrayObject* r;
    npy_intp size = 1, line[2] = {0, 0};
    int nx = PyArray_NDIM(x), ny = y ? PyArray_NDIM(y) : 0, place = !y && number_first; /* which operand `x` is */
    of->ndim = nx > ny ? nx : ny;
    if (of->ndim == 0 || of->ndim > AXES) return NULL;
    for (int k = 0; k < of->ndim; k++) {
        npy_intp dx = k < of->ndim - nx ? 1 : PyArray_DIM(x, k - (of->ndim - nx)), dy = k < of->ndim - ny ? 1 : PyArray_DIM(y, k - (of->ndim - ny));
        of->dims[k] = dx == 1 ? dy : dx;
        if (of->dims[k] == 0) return NULL;
        size *= of->dims[k];
    }
    if (!operand_steps(x, of->ndim, of->dims, of->steps[place])) return NULL;
    if (y ? !operand_steps(y, of->ndim, of->dims, of->steps[1]) : 0) return NULL;
    if (!y) memset(of->steps[!place], 0, sizeof(of->steps[!place]));
    if (!loop->basic && (size == 1 || !(is_line(of, of->steps[0], &line[0]) && is_line(of, of->steps[1], &line[1])))) return NULL;
    r = result_of(of->ndim, of->dims, loop->out, size);
    if (r == NULL) return NULL;
    self.loop = loop;
    self.sizes[0] = self.sizes[1] = PyArray_ITEMSIZE(x), self.sizes[2] = PyArray_ITEMSIZE(r);
    self.from[place] = PyArray_BYTES(x), self.from[!place] = y ? PyArray_BYTES(y) : number, self.to = PyArray_BYTES(r);
    return told(loops, loop, r, loop->basic ? rows_run(&self, size)
                                            : long2(loop, PyArray_TYPE(x), self.from[0], self.from[1], self.to, size, line[0], line[1], self.sizes[2]), tells);
}

/* The bytes from each element to the next in the order of C, where they are the same everywhere; else 0. */
static npy_intp line_step(PyArrayObject* x) {
    Layout of = {.ndim = PyArray_NDIM(x)};
    npy_intp step;
    if (of.ndim == 0 || of.ndim > AXES || PyArray_SIZE(x) == 0) return 0;
    memcpy(of.dims, PyArray_DIMS(x), (size_t)of.ndim * sizeof(npy_intp));
    return operand_steps(x, of.ndim, of.dims, of.steps[0]) && is_line(&of, of.steps[0], &step) ? step : 0;
}

/* The function of one array, as an array; NULL without an exception where it is NumPy's to do. */
static inline PyObject* direct1_minded(Loops* loops, PyArrayObject* x, int tells) {
    Loop* loop;
    PyArrayObject* r;
    npy_intp step = PyArray_ITEMSIZE(x);
    if (!plain_memory(x) && (step = line_step(x)) == 0) return NULL;
    if ((loop = loop_of(loops, PyArray_TYPE(x))) == NULL) return NULL;
    r = result_like(x, loop->out);
    if (r == NULL) return NULL;
    return told(loops, loop, r, long1(loop, PyArray_TYPE(x), PyArray_BYTES(x), PyArray_BYTES(r), PyArray_SIZE(x), step, PyArray_ITEMSIZE(r)), tells);
}
static inline PyObject* direct1(Loops* loops, PyArrayObject* x) { return direct1_minded(loops, x, TELLS); }

/* Whether an operand of the first type becomes one of the second, where NumPy looks for a loop for both. */
static inline int gives_way(int type, int to) { return to == NPY_DOUBLE && (PyTypeNum_ISBOOL(type) || PyTypeNum_ISINTEGER(type)); }

static PyObject* direct_minded(Loops* loops, PyObject* a, PyObject* b, int arrays, const Value* number, int tells);
/* Two arrays, one of which is of whole numbers: NumPy converts some at a time, and computes those. */
static PyObject* direct_mixed(Loops* loops, PyArrayObject* x, PyArrayObject* y, int tells) {
    int first = gives_way(PyArray_TYPE(x), PyArray_TYPE(y));
    PyArrayObject* whole = first ? x : y;
    PyObject *cast = NULL, *found = NULL;
    npy_intp steps[AXES];
    if (!first && !gives_way(PyArray_TYPE(y), PyArray_TYPE(x))) return NULL;
    if (PyArray_NDIM(whole) > AXES || !operand_steps(whole, PyArray_NDIM(whole), PyArray_DIMS(whole), steps)) return NULL; /* it would lie in C's order then */
    if (loop_of(loops, NPY_DOUBLE)) cast = PyArray_CastToType(whole, PyArray_DescrFromType(NPY_DOUBLE), 0);
    if (cast) found = direct_minded(loops, first ? cast : (PyObject*)x, first ? (PyObject*)y : cast, 3, NULL, tells);
    Py_XDECREF(cast);
    return found;
}

/* The same of two operands; bit k of `arrays` says whether operand k is one, or a number, which `number` is where it is known as an element. */
static PyObject* direct_minded(Loops* loops, PyObject* a, PyObject* b, int arrays, const Value* number, int tells) {
    PyArrayObject *x = (PyArrayObject*)a, *y = (PyArrayObject*)b, *like, *r;
    Loop* loop;
    Value value;
    char *p, *q;
    npy_intp sx, sy;
    like = arrays & 1 ? x : y;
    if (PyArray_NDIM(like) == 0 || (loop = loop_of(loops, PyArray_TYPE(like))) == NULL) return NULL;
    sx = sy = PyArray_ITEMSIZE(like);
    if (arrays == 3) {
        if (PyArray_TYPE(x) != PyArray_TYPE(y)) return direct_mixed(loops, x, y, tells);
        if (!plain_memory(x) || !plain_memory(y) || !PyArray_SAMESHAPE(x, y)) return direct_rows(loops, loop, x, y, NULL, 0, tells);
        p = PyArray_BYTES(x), q = PyArray_BYTES(y);
    } else {
        if (number) value = *number;
        else if (!value_of(arrays == 1 ? b : a, PyArray_TYPE(like), &value)) return NULL;
        if (!plain_memory(like)) return direct_rows(loops, loop, like, NULL, (char*)&value, arrays == 2, tells);
        if (arrays == 1) p = PyArray_BYTES(x), q = (char*)&value, sy = 0;
        else p = (char*)&value, q = PyArray_BYTES(y), sx = 0;
    }
    r = result_like(like, loop->out);
    if (r == NULL) return NULL;
    return told(loops, loop, r, long2(loop, PyArray_TYPE(like), p, q, PyArray_BYTES(r), PyArray_SIZE(like), sx, sy, PyArray_ITEMSIZE(r)), tells);
}

static inline PyObject* direct2(Loops* loops, PyObject* a, PyObject* b, int arrays) { return direct_minded(loops, a, b, arrays, NULL, TELLS); }

/* The first byte that elements take, and the one behind the last. */
typedef struct {
    const char *low, *high;
} Reach;
static Reach reach_of(const char* data, int ndim, const npy_intp* dims, const npy_intp* strides, npy_intp size) {
    Reach found = {data, data + size};
    for (int k = 0; k < ndim; k++) {
        npy_intp reach = (dims[k] - 1) * strides[k];
        if (reach < 0) found.low += reach;
        else found.high += reach;
    }
    return found;
}

/* Whether two arrays might have memory in common. */
static int may_overlap(PyArrayObject* x, PyArrayObject* y) {
    Reach p = reach_of(PyArray_BYTES(x), PyArray_NDIM(x), PyArray_DIMS(x), PyArray_STRIDES(x), PyArray_ITEMSIZE(x));
    Reach q = reach_of(PyArray_BYTES(y), PyArray_NDIM(y), PyArray_DIMS(y), PyArray_STRIDES(y), PyArray_ITEMSIZE(y));
    return p.low < q.high && q.low < p.high;
}

/* Whether elements might have memory in common, of axes that lie as `operand_steps` asks. */
static int may_overlap_itself(int ndim, const npy_intp* dims, const npy_intp* steps, npy_intp size) {
    npy_intp reach = size;
    for (int k = ndim - 1; k >= 0; k--) {
        if (dims[k] != 1 && steps[k] < reach) return 1;
        reach += (dims[k] - 1) * steps[k];
    }
    return 0;
}

/* IEEE arithmetic in place, where the elements lie, and who computes some of the first axis. */
typedef struct {
    Pieces pieces;
    Loop* loop;
    Layout of; /* of what is written, and of the other operand */
    char *to, *from;
} OverRun;

static int over_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const OverRun* self = (const OverRun*)pieces;
    const Layout* of = &self->of;
    npy_intp at[AXES] = {0}, rows = count, last = of->ndim - 1, n = of->dims[last];
    char *to = self->to + first * of->steps[0][0], *from = self->from + first * of->steps[1][0];
    (void)thread;
    if (last == 0) n = count, rows = 1;
    for (int k = 1; k < last; k++) rows *= of->dims[k];
    while (rows--) {
        char* args[3] = {to, from, to};
        npy_intp dims[1] = {n}, steps[3] = {of->steps[0][last], of->steps[1][last], of->steps[0][last]};
        self->loop->function(args, dims, steps, self->loop->data);
        for (npy_intp k = last - 1; k >= 0; k--) {
            to += of->steps[0][k], from += of->steps[1][k];
            if (k == 0 || ++at[k] < of->dims[k]) break;
            to -= of->steps[0][k] * of->dims[k], from -= of->steps[1][k] * of->dims[k];
            at[k] = 0;
        }
    }
    return 0; /* the flags are looked at when all is done */
}

#define OVER_ROW 16 /* elements of a row; of shorter ones NumPy takes many at a time */
/* `x op= b` as NumPy does it, in rows or along a line: which errors were raised is known when all is written.  1 if it was done, 0 where it is NumPy's to
   do.  No code of a program's runs. */
static int over_run(Loop* loop, PyArrayObject* x, PyArrayObject* y, char* number, int* errors) {
    OverRun self = {.loop = loop, .to = PyArray_BYTES(x), .from = y ? PyArray_BYTES(y) : number};
    Layout* of = &self.of;
    npy_intp line[2] = {0, 0}, size = PyArray_SIZE(x);
    double ns = (double)size * ROWS_NS;
    of->ndim = PyArray_NDIM(x);
    if (!loop->basic || size == 0 || of->ndim == 0 || of->ndim > AXES || (y && PyArray_NDIM(y) > of->ndim)) return 0;
    memcpy(of->dims, PyArray_DIMS(x), (size_t)of->ndim * sizeof(npy_intp));
    if (!operand_steps(x, of->ndim, of->dims, of->steps[0])) return 0;
    if (may_overlap_itself(of->ndim, of->dims, of->steps[0], PyArray_ITEMSIZE(x))) return 0; /* NumPy computes all before it writes */
    if (y ? !operand_steps(y, of->ndim, of->dims, of->steps[1]) || may_overlap(x, y) : 0) return 0;
    if (!y) memset(of->steps[1], 0, sizeof(of->steps[1]));
    if (is_line(of, of->steps[0], &line[0]) && is_line(of, of->steps[1], &line[1])) {
        of->ndim = 1, of->dims[0] = size, of->steps[0][0] = line[0], of->steps[1][0] = line[1];
    } else if (of->dims[of->ndim - 1] < OVER_ROW) {
        return 0;
    }
    pieces_of(&self.pieces, over_piece, of->dims[0], size / of->dims[0], LONG_PIECE, 1, ERRORS);
    *errors = pieces_do(&self.pieces, size < LONG_FROM || self.pieces.whole < 2 ? 1 : pieces_threads(ns, 2 * size * PyArray_ITEMSIZE(x)), ns);
    return 1;
}

/* The same, telling of the errors; 0 also where that raises an exception. */
static int direct_over(Loops* loops, Loop* loop, PyArrayObject* x, PyArrayObject* y, char* number) {
    int errors;
    if (!over_run(loop, x, y, number, &errors)) return 0;
    return !minds(errors) || PyUFunc_GiveFloatingpointErrors(((PyUFuncObject*)loops->ufunc)->name, errors) == 0;
}

/* In place, through a scratch buffer, so that it can be done again; 1 if it was done. */
#define SCRATCH 16384 /* bytes; for more, the copy costs what a ufunc does around its loop; a multiple of all sizes of elements */
static inline int direct_into(Loops* loops, PyArrayObject* x, PyObject* b) {
    char scratch[SCRATCH]; /* the call's own: who is asked about errors may run another one */
    PyArrayObject* y = (PyArrayObject*)b;
    int type = PyArray_TYPE(x), array = PyArray_CheckExact(b);
    npy_intp n = PyArray_SIZE(x), size = PyArray_ITEMSIZE(x);
    Loop* loop;
    Value value;
    if (!is_writable(x) || (loop = loop_of(loops, type)) == NULL || loop->out != type) return 0;
    if (array ? PyArray_TYPE(y) != type : !value_of(b, type, &value)) return 0;
    if (n * size > SCRATCH) return direct_over(loops, loop, x, array ? y : NULL, (char*)&value);
    if (!plain_memory(x) || (array && (!PyArray_SAMESHAPE(x, y) || !plain_memory(y)))) { /* by rows */
        PyArrayObject* r = (PyArrayObject*)direct_minded(loops, (PyObject*)x, b, array ? 3 : 1, NULL, ENDS); /* NumPy writes, and tells then */
        int done = r && PyArray_SAMESHAPE(x, r) && PyArray_CopyInto(x, r) == 0;
        Py_XDECREF(r);
        return done;
    }
    if (minds(run2(loop, PyArray_BYTES(x), array ? PyArray_BYTES(y) : (char*)&value, scratch, n, size, array ? size : 0, size))) return 0;
    if (!is_writable(x) || PyArray_SIZE(x) != n) return 0;
    memcpy(PyArray_DATA(x), scratch, (size_t)(n * size));
    return 1;
}

/* The same of few elements, one after the other, of two arrays that are looked at by macros alone, or of one and a number (`y` is NULL); no code of a program's
   runs.  0 also where it is not known yet whether the loop is to be used. */
static inline int direct_into_few(Loops* loops, PyArrayObject* x, PyArrayObject* y, PyObject* number) {
    char scratch[1024];
    int type = PyArray_TYPE(x);
    npy_intp n = 1, size = PyArray_ITEMSIZE(x);
    Loop* loop = IS_NUMERIC(type) ? &loops->of[type] : NULL;
    Value value;
    if (loop == NULL || loop->state != USABLE || loop->out != type || !is_writable(x) || !plain_memory(x)) return 0;
    for (int k = PyArray_NDIM(x); k--;) n *= PyArray_DIM(x, k);
    if (n * size > (npy_intp)sizeof(scratch)) return 0;
    if (y ? PyArray_TYPE(y) != type || !PyArray_SAMESHAPE(x, y) || !plain_memory(y) : !value_of(number, type, &value)) return 0;
    if (minds(run2(loop, PyArray_BYTES(x), y ? PyArray_BYTES(y) : (char*)&value, scratch, n, size, y ? size : 0, size))) return 0;
    memcpy(PyArray_DATA(x), scratch, (size_t)(n * size));
    return 1;
}

/* IEEE arithmetic in place on large rows, which are contiguous: what NumPy does through a buffer that holds many.  `b` is a number or another
   array's rows.  Returns the number of elements of the first axis that are done: the first ones, which raised no flag. */
#define SHORTEST 32 /* elements of a row; of shorter ones NumPy takes many at a time */
static npy_intp direct_rows_into(Loops* loops, PyArrayObject* x, PyObject* b) {
    char scratch[SCRATCH];
    PyArrayObject* y = PyArray_CheckExact(b) ? (PyArrayObject*)b : NULL;
    int type = PyArray_TYPE(x), ndim = PyArray_NDIM(x);
    npy_intp size = PyArray_ITEMSIZE(x), rows, n, sx, sy = 0, step = size, at;
    Loop* loop = loop_of(loops, type);
    Value value;
    if (loop == NULL || !loop->basic || loop->out != type || ndim < 1 || ndim > 2 || PyArray_SIZE(x) == 0) return 0;
    if (!is_written_plainly(x) || PyArray_STRIDE(x, ndim - 1) != size) return 0;
    if (y ? PyArray_TYPE(y) != type || !PyArray_SAMESHAPE(x, y) || !PyArray_ISBEHAVED_RO(y) || may_overlap(x, y) : !value_of(b, type, &value)) return 0;
    n = PyArray_DIM(x, ndim - 1), rows = ndim == 2 ? PyArray_DIM(x, 0) : n * size / SCRATCH;
    if (ndim == 1) n = SCRATCH / size; /* in pieces; NumPy has what is left */
    if (n < SHORTEST || n * size > SCRATCH) return 0;
    sx = ndim == 2 ? PyArray_STRIDE(x, 0) : SCRATCH;
    if (ndim == 2 && rows > 1 && sx < n * size && sx > -n * size) return 0; /* rows that share memory */
    if (y) step = PyArray_STRIDE(y, ndim - 1), sy = ndim == 2 ? PyArray_STRIDE(y, 0) : n * step;
    for (at = 0; at < rows; at++) {
        char *to = PyArray_BYTES(x) + at * sx, *from = y ? PyArray_BYTES(y) + at * sy : (char*)&value;
        if (minds(run2(loop, to, from, scratch, n, size, y ? step : 0, size))) break;
        memcpy(to, scratch, (size_t)(n * size));
    }
    return ndim == 2 ? at : at * n;
}

#endif
