/* NumPy's inner loops, called directly.

   In: C-contiguous operands of one dtype, or such an array and a number.  Out: NumPy's result, to the bit, without the work that a ufunc does
   around its loop.  Promise: a loop is used after its results were compared with NumPy's, on special values as well; where a
   floating-point flag is raised that somebody minds NumPy tells of it, or does it again.  Of two NaNs of different bits that meet, which one is
   handed on is the processor's choice.

   A loop that was called directly leaves the processor's flags as NumPy's own call would find them. What NumPy's error state ignores (underflow,
   unless it is told otherwise) is no error: the state is asked for when a flag is up, and remembered by its identity (`errors_minded`). What it does
   not ignore NumPy itself is given to tell of, with the ufunc's name (`told`, by `PyUFunc_GiveFloatingpointErrors`): it warns, raises, calls or logs
   at the user's line, and nothing is computed twice. Only expressions, whose flags do not say which operator raised them, writes in place, which
   NumPy does before it raises, reductions and comparisons are done again by NumPy. */

#ifndef LAZYNP_LOOPS_H
#define LAZYNP_LOOPS_H

#include <math.h>
#include "compiled.h"
#include "pieces.h"
#include "pool.h"
#include "powers.h"
#include "sides.h"
#include "numpy/ufuncobject.h"

enum { UNKNOWN, USABLE, UNUSABLE };

typedef struct {
    PyUFuncGenericFunction function;
    void* data;
    char out;   /* type number of the result */
    char size;  /* bytes of an element of it */
    char state; /* whether it was compared with NumPy */
    char basic; /* IEEE arithmetic only, whose errors are in the vector unit's flags */
    char joins; /* it may be a step of an expression in one pass: its bits and flags do not depend on how many elements it gets at a time */
    char raises; /* it raises exceptions, by what it is given */
    char timed; /* how often it was */
    char failed; /* how often comparing it ended with an exception */
    float ns;   /* that an element takes, at best */
} Loop;

typedef struct Loops {
    PyObject* ufunc; /* NumPy's */
    int nin;
    int integers_divide; /* of whole numbers it gives floats of 64 bits */
    int kernels; /* its loops have the kernels' bits, not NumPy's */
    int costly;  /* of large results a kernel has other bits */
    int chooses; /* its first operand is a mask, whatever the type of the others is */
    Loop of[TYPES];
} Loops;

/* The errors of a loop that has run; -1: an exception (integer powers raise one), which NumPy is to raise. */
static inline int loop_errors(Loop* loop) {
    if (!loop->basic && PyErr_Occurred()) {
        PyErr_Clear();
        return -1;
    }
    return flags_raised(loop->basic);
}

/* Whether NumPy would tell of one. */
static inline int minds(int errors) { return errors && (errors < 0 || errors & errors_minded()); }

static inline int run1(Loop* loop, char* x, char* r, npy_intp n, npy_intp sx, npy_intp sr) {
    char* args[2] = {x, r};
    npy_intp dims[1] = {n}, steps[2] = {sx, sr};
    flags_clear(loop->basic);
    loop->function(args, dims, steps, loop->data);
    return loop_errors(loop);
}

static inline int run2(Loop* loop, char* x, char* y, char* r, npy_intp n, npy_intp sx, npy_intp sy, npy_intp sr) {
    char* args[3] = {x, y, r};
    npy_intp dims[1] = {n}, steps[3] = {sx, sy, sr};
    flags_clear(loop->basic);
    loop->function(args, dims, steps, loop->data);
    return loop_errors(loop);
}

/* Many elements ---------------------------------------------------------------------------------------------------------------------- */

#define LONG_FROM 4096  /* elements, from which on it is asked whether several threads shall compute them */
#define LONG_TIMED 4    /* runs that are timed: what an element costs, at best, depends on the machine, and on NumPy */
#define LONG_PIECE 4096 /* elements, a multiple of all that vectors hold: what lies where in a vector does not change */

typedef struct {
    Pieces pieces;
    Loop* loop;
    int operands; /* the result is one of them */
    char* at[3];
    npy_intp steps[3];
} LongRun;

static int long_piece(const Pieces* pieces, npy_intp first, npy_intp count, int thread) {
    const LongRun* self = (const LongRun*)pieces;
    char* args[3];
    npy_intp dims[1] = {count}, steps[3];
    (void)thread;
    for (int k = 0; k < self->operands; k++) args[k] = self->at[k] + first * self->steps[k], steps[k] = self->steps[k];
    self->loop->function(args, dims, steps, self->loop->data);
    return 0; /* the flags are looked at when all is done */
}

/* Whether several threads may compute it: integer powers call Python where they fail. */
static inline int long_shares(const Loop* loop, int type) { return loop->basic || type == NPY_DOUBLE || type == NPY_FLOAT; }

/* Run a loop over many elements; its errors. */
static int long_run(LongRun* self, npy_intp n) {
    Loop* loop = self->loop;
    long long before;
    int errors;
    if (loop->timed == LONG_TIMED) {
        double ns = (double)loop->ns * (double)n;
        npy_intp moved = 0;
        int threads;
        for (int k = 0; k < self->operands; k++) moved += self->steps[k];
        threads = pieces_threads(ns, moved * n);
        pieces_of(&self->pieces, long_piece, n, 1, LONG_PIECE, loop->basic, ERRORS);
        return pieces_do(&self->pieces, threads, ns);
    }
    before = now_ns();
    flags_clear(loop->basic);
    loop->function(self->at, &n, self->steps, loop->data);
    errors = loop_errors(loop);
    before = now_ns() - before;
    if (!loop->timed++ || (float)before < loop->ns * (float)n) loop->ns = (float)before / (float)n;
    return errors;
}

/* The same for a few, at once. */
static inline int long1(Loop* loop, int type, char* x, char* r, npy_intp n, npy_intp sx, npy_intp sr) {
    LongRun self;
    if (n < LONG_FROM || !long_shares(loop, type)) return run1(loop, x, r, n, sx, sr);
    self.loop = loop, self.operands = 2;
    self.at[0] = x, self.at[1] = r, self.steps[0] = sx, self.steps[1] = sr;
    return long_run(&self, n);
}

static inline int long2(Loop* loop, int type, char* x, char* y, char* r, npy_intp n, npy_intp sx, npy_intp sy, npy_intp sr) {
    LongRun self;
    if (n < LONG_FROM || !long_shares(loop, type)) return run2(loop, x, y, r, n, sx, sy, sr);
    self.loop = loop, self.operands = 3;
    self.at[0] = x, self.at[1] = y, self.at[2] = r, self.steps[0] = sx, self.steps[1] = sy, self.steps[2] = sr;
    return long_run(&self, n);
}

/* Arithmetic of two complex numbers that is sums and products of their parts; quotients and absolute values are functions of libraries. */
static int is_complex_arithmetic(const char* name) {
    return strcmp(name, "add") == 0 || strcmp(name, "subtract") == 0 || strcmp(name, "multiply") == 0 || strcmp(name, "square") == 0 || strcmp(name, "negative") == 0 ||
           strcmp(name, "conjugate") == 0;
}

/* What is exact, but no operation of IEEE arithmetic: it is tried whether elements one by one have the same bits, and then it is a step. */
static int is_exact(const char* name) {
    static const char* const names[] = {"remainder", "fmod", "floor_divide", "rint", "floor", "ceil", "trunc", "copysign", "left_shift", "right_shift"};
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
        if (strcmp(name, names[k]) == 0) return 1;
    return 0;
}

/* What NumPy's table of a ufunc offers where all operands have one type; `basic`: it is IEEE arithmetic. */
static void loops_fill(Loops* loops, PyObject* object, int basic) {
    PyUFuncObject* ufunc = (PyUFuncObject*)object;
    int nin = ufunc->nin;
    memset(loops, 0, sizeof(*loops));
    loops->ufunc = Py_NewRef(object);
    loops->nin = nin;
    loops->integers_divide = strcmp(ufunc->name, "divide") == 0;
    if (ufunc->nout != 1 || nin > 3) return;
    for (int k = 0; k < ufunc->ntypes; k++) {
        const char* types = ufunc->types + k * (nin + 1);
        int type = types[0], out = types[nin];
        if (!IS_NUMERIC(type) || !IS_NUMERIC(out) || (nin > 1 && types[1] != type) || (nin > 2 && types[2] != type)) continue;
        if (type == NPY_LONGDOUBLE || type == NPY_CLONGDOUBLE || loops->of[type].function) continue;
        loops->of[type].function = ufunc->functions[k];
        loops->of[type].data = ufunc->data ? (void*)ufunc->data[k] : NULL;
        PyArray_Descr* descr = PyArray_DescrFromType(out);
        loops->of[type].out = (char)out;
        loops->of[type].size = (char)PyDataType_ELSIZE(descr);
        Py_DECREF(descr);
        /* halves, and functions from libraries, also use the flags of the old floating-point unit */
        loops->of[type].basic = (char)(basic && type != NPY_HALF && !PyTypeNum_ISCOMPLEX(type));
        loops->of[type].raises = strcmp(ufunc->name, "power") == 0 && PyTypeNum_ISINTEGER(type);
        loops->of[type].joins = (char)(loops->of[type].basic || (basic && PyTypeNum_ISCOMPLEX(type) && is_complex_arithmetic(ufunc->name)) || (basic && type == NPY_HALF) || is_exact(ufunc->name));
    }
    if (strcmp(ufunc->name, "power") == 0)
        for (int type = NPY_FLOAT; type <= NPY_DOUBLE; type++) powers_install(&loops->of[type].function, loops->of[type].data, type);
}

#define COMPILED_NS 1.0f /* nanoseconds that an element takes, about */

/* The kernels' function of a name, of `type`, as a loop like NumPy's; whether there is one. */
static int compiled_as_loop(const char* name, int type, Loop* to) {
    Compiled of;
    if (!compiled_find(name, type, -1, &of)) return 0;
    *to = (Loop){.function = of.loop, .data = of.data, .out = (char)type, .size = type == NPY_DOUBLE ? 8 : 4, .state = USABLE, .basic = 1, .joins = 1, .timed = LONG_TIMED, .ns = COMPILED_NS};
    return 1;
}

/* The kernels' functions in the place of NumPy's, as steps; NULL where this processor has none.  `own`: only those that are polynomials of lazynp's own. */
static Loops* loops_compiled(PyObject* object, int own) {
    PyUFuncObject* ufunc = (PyUFuncObject*)object;
    Loops* loops = NULL;
    Loop loop;
    for (int type = NPY_FLOAT; ufunc->nin <= 2 && ufunc->nout == 1 && type <= NPY_DOUBLE; type++) {
        if ((own && !compiled_own(ufunc->name, type)) || !compiled_as_loop(ufunc->name, type, &loop) || (loops == NULL && (loops = PyMem_Calloc(1, sizeof(Loops))) == NULL)) continue;
        loops->ufunc = object, loops->nin = ufunc->nin, loops->kernels = 1;
        loops->of[type] = loop;
    }
    if (loops) Py_INCREF(object);
    return loops;
}

/* `to` = the kernels' function of `from`, and of `with` (or NULL), all without gaps and of one type, by several threads; the errors; -1 where there is none. */
static int compiled_run(const char* name, PyObject* from, PyObject* with, PyObject* to) {
    PyArrayObject *x = (PyArrayObject*)from, *y = (PyArrayObject*)with, *r = (PyArrayObject*)to;
    int type = PyArray_TYPE(x);
    Loop loop;
    if (!IS_NUMERIC(type) || PyArray_TYPE(r) != type || PyArray_SIZE(r) != PyArray_SIZE(x) || (y && (PyArray_TYPE(y) != type || PyArray_SIZE(y) != PyArray_SIZE(x)))) return -1;
    if (!compiled_as_loop(name, type, &loop)) return -1;
    if (y) return long2(&loop, type, PyArray_BYTES(x), PyArray_BYTES(y), PyArray_BYTES(r), PyArray_SIZE(x), loop.size, loop.size, loop.size);
    return long1(&loop, type, PyArray_BYTES(x), PyArray_BYTES(r), PyArray_SIZE(x), loop.size, loop.size);
}

/* Operands to compare with: a few that are special, the rest ordinary; `which` tells two operands of one call apart.  They are only read, and kept. */
#define SAMPLE 67
static PyArrayObject* sample(int type, int which, int special) {
    static PyArrayObject* kept[TYPES][2][2];
    const double large = type == NPY_HALF ? 6e4 : type == NPY_FLOAT || type == NPY_CFLOAT ? 3e38 : 1e308; /* no warning when they are cast */
    const double little = ldexp(-1.0, type == NPY_HALF ? -16 : type == NPY_FLOAT || type == NPY_CFLOAT ? -130 : -1030);
    const double odd[] = {0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -2.5, 1e-3, INFINITY, -INFINITY, NAN, large, little, 2.0, 7.0};
    npy_intp n = SAMPLE;
    PyArrayObject *made, *cast;
    double* to;
    if (kept[type][which][special]) return (PyArrayObject*)Py_NewRef(kept[type][which][special]);
    int kind = type == NPY_BOOL ? 0 : type < NPY_FLOAT ? 1 : 2;
    made = (PyArrayObject*)PyArray_SimpleNew(1, &n, NPY_DOUBLE);
    if (made == NULL) return NULL;
    to = (double*)PyArray_DATA(made);
    for (int k = 0; k < SAMPLE; k++) {
        double ordinary = ((k * (which ? 29 : 37) + 11 * which) % 64 - 20) * (kind == 2 ? 0.37 : 1.0);
        to[k] = kind == 0 ? (double)((k >> which) & 1) : kind == 1 ? (which ? fabs(ordinary) + 1 : fabs(ordinary)) : ordinary;
        if (kind == 2 && special) to[k] = which ? odd[(k / 15 + k * 4) % 15] : odd[k % 15];
    }
    cast = (PyArrayObject*)PyArray_CastToType(made, PyArray_DescrFromType(type), 0);
    Py_DECREF(made);
    if (cast) Py_XSETREF(kept[type][which][special], (PyArrayObject*)Py_NewRef(cast));
    return cast;
}

/* Some of its elements, from the one at `from` on, in C's order or with two axes in the other one. */
static PyArrayObject* sample_part(PyArrayObject* whole, npy_intp from, int ndim, const npy_intp* dims, int turned) {
    npy_intp size = PyArray_ITEMSIZE(whole), strides[2] = {size, dims[0] * size};
    PyArrayObject* part;
    Py_INCREF(PyArray_DESCR(whole));
    part = (PyArrayObject*)PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(whole), ndim, dims, turned && ndim == 2 ? strides : NULL, PyArray_BYTES(whole) + from * size, NPY_ARRAY_WRITEABLE, NULL);
    if (part && PyArray_SetBaseObject(part, Py_NewRef(whole)) < 0) Py_CLEAR(part);
    return part;
}

static PyObject* error_quiet; /* the value of `error_variable` where floating-point errors are ignored */
static PyObject* quiet_call;  /* `f(function, *args)` with floating-point errors ignored, where that variable is not known */

/* `function(*args)` with floating-point errors ignored. */
static PyObject* quietly(PyObject* function, PyObject* const* args, size_t count) {
    PyObject *token, *made, *type, *value, *trace, *all[5] = {function};
    if (error_quiet == NULL) {
        memcpy(all + 1, args, count * sizeof(PyObject*));
        return PyObject_Vectorcall(quiet_call, all, count + 1, NULL);
    }
    if ((token = PyContextVar_Set(error_variable, error_quiet)) == NULL) return NULL;
    made = PyObject_Vectorcall(function, args, count, NULL);
    PyErr_Fetch(&type, &value, &trace);
    PyContextVar_Reset(error_variable, token);
    Py_DECREF(token);
    PyErr_Restore(type, value, trace);
    return made;
}

static int same_bits(PyArrayObject* x, PyArrayObject* y) {
    return PyArray_TYPE(x) == PyArray_TYPE(y) && PyArray_NBYTES(x) == PyArray_NBYTES(y) &&
           memcmp(PyArray_DATA(x), PyArray_DATA(y), (size_t)PyArray_NBYTES(x)) == 0;
}

/* Whether a loop of complex numbers gives the same bits to elements one by one, and where an operand is one number: where products and sums are
   fused, what is left over of vectors may be computed otherwise. */
static int same_one_by_one(const Loops* loops, Loop* loop, PyArrayObject* x, PyArrayObject* y, PyArrayObject* whole) {
    npy_intp size = PyArray_ITEMSIZE(x), out = PyArray_ITEMSIZE(whole);
    double one[2], row[2 * SAMPLE], column[2 * SAMPLE];
    if (out > (npy_intp)sizeof(one)) return 0;
    if (loops->nin == 2) {
        run2(loop, PyArray_BYTES(x), PyArray_BYTES(y), (char*)row, SAMPLE, size, 0, out);
        run2(loop, PyArray_BYTES(x), PyArray_BYTES(y), (char*)column, SAMPLE, 0, size, out);
    }
    for (npy_intp k = 0; k < SAMPLE; k++) {
        char *p = PyArray_BYTES(x) + k * size, *q = PyArray_BYTES(y) + k * size;
        if (loops->nin == 2) run2(loop, p, q, (char*)one, 1, size, size, out);
        else run1(loop, p, (char*)one, 1, size, out);
        if (memcmp(one, PyArray_BYTES(whole) + k * out, (size_t)out)) return 0;
        if (loops->nin == 1) continue;
        run2(loop, p, PyArray_BYTES(y), (char*)one, 1, size, size, out);
        if (memcmp(one, (char*)row + k * out, (size_t)out)) return 0;
        run2(loop, PyArray_BYTES(x), q, (char*)one, 1, size, size, out);
        if (memcmp(one, (char*)column + k * out, (size_t)out)) return 0;
    }
    return 1;
}

/* A whole number of Python's, not below 0, that fits 64 bits: as an exponent it never fails. */
static inline int is_natural(PyObject* x) {
    int overflow;
    return PyLong_CheckExact(x) && PyLong_AsLongLongAndOverflow(x, &overflow) >= 0;
}

#define CHECKS_MOST 4 /* comparisons that end with an exception, after which a loop is not used */

/* A loop was compared.  An exception may be that of what is around it, the end of the stack, short memory, a handler of signals: then it is compared again the next time. */
static void loop_compared(Loop* loop, char* state, int fine) {
    if (PyErr_Occurred()) {
        int passing = !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError) || PyErr_ExceptionMatches(PyExc_RecursionError);
        if (passing || ++loop->failed < CHECKS_MOST) *state = UNKNOWN;
        if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
        else pieces_put_off();
    } else if (fine) {
        *state = USABLE;
    }
}

/* Compare a loop with NumPy's ufunc, the first time it is asked for. */
static void loop_check(Loops* loops, int type) {
    Loop* loop = &loops->of[type];
    int fine = 1;
    loop->state = UNUSABLE;
    for (int special = 0; special < 2 && fine; special++) {
        PyArrayObject *x = sample(type, 0, special), *y = sample(type, 1, special), *z = loops->nin == 3 ? sample(type, 1, !special) : NULL, *r = NULL;
        PyObject* theirs = NULL;
        npy_intp n = SAMPLE;
        fine = 0;
        if (x && y && (z || loops->nin < 3)) r = (PyArrayObject*)PyArray_SimpleNew(1, &n, loop->out);
        if (r) theirs = quietly(loops->ufunc, (PyObject*[]){(PyObject*)x, (PyObject*)y, (PyObject*)z}, (size_t)loops->nin);
        if (theirs && PyArray_CheckExact(theirs)) {
            npy_intp sx = PyArray_ITEMSIZE(x), sr = PyArray_ITEMSIZE(r);
            if (loops->nin == 3) {
                char* args[4] = {PyArray_BYTES(x), PyArray_BYTES(y), PyArray_BYTES(z), PyArray_BYTES(r)};
                npy_intp steps[4] = {sx, sx, sx, sr};
                loop->function(args, &n, steps, loop->data);
            } else if (loops->nin == 2) run2(loop, PyArray_BYTES(x), PyArray_BYTES(y), PyArray_BYTES(r), n, sx, sx, sr);
            else run1(loop, PyArray_BYTES(x), PyArray_BYTES(r), n, sx, sr);
            fine = same_bits(r, (PyArrayObject*)theirs);
            if (fine && loop->joins && !loop->basic) loop->joins = (char)(loops->nin < 3 && same_one_by_one(loops, loop, x, y, r));
        }
        Py_XDECREF(x), Py_XDECREF(y), Py_XDECREF(z), Py_XDECREF(r), Py_XDECREF(theirs);
    }
    loop_compared(loop, &loop->state, fine);
    flags_clear(0); /* a loop of NumPy's over objects may be around this */
}

/* A loop that may be used; NULL where there is none, and where it was compared only now: that runs code in Python, and what the caller knows of its
   operands may no longer be so.  NumPy does it this time. */
static inline Loop* loop_of(Loops* loops, int type) {
    Loop* loop;
    if (loops == NULL || !IS_NUMERIC(type)) return NULL;
    loop = &loops->of[type];
    if (loop->state == USABLE) return loop;
    if (loop->function && loop->state == UNKNOWN) loop_check(loops, type);
    return NULL;
}

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

/* What becomes of errors: NumPy is told of those that somebody minds now, they end it, or (a mask of 0 and more) those of a mask end it. */
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

/* Products of vectors and matrices ----------------------------------------------------------------------------------------------- */

static Loops product_loops; /* of `matmul` */
#define SMALL_PRODUCT (1 << 16) /* multiplications; more are worth NumPy's way, which lets other threads run */

/* The product as NumPy's loop makes it; NULL (perhaps without an exception) where it is NumPy's to do.  `raw`: the result is to be read by macros alone. */
static int product_into(Loop* loop, PyArrayObject* x, PyArrayObject* y, char* to, int minded) { /* whether nothing was raised that somebody minds */
    int rows = PyArray_NDIM(x) == 2, columns = PyArray_NDIM(y) == 2, errors;
    npy_intp m = rows ? PyArray_DIM(x, 0) : 1, n = PyArray_DIM(x, rows), p = columns ? PyArray_DIM(y, 1) : 1, size = PyArray_ITEMSIZE(x);
    npy_intp dims[4] = {1, m, n, p};
    npy_intp steps[9] = {0, 0, 0, rows ? PyArray_STRIDE(x, 0) : 0, PyArray_STRIDE(x, rows), PyArray_STRIDE(y, 0), columns ? PyArray_STRIDE(y, 1) : 0,
                         rows ? p * size : 0, columns ? size : 0};
    char* args[3] = {PyArray_BYTES(x), PyArray_BYTES(y), to};
    flags_clear(loop->basic);
    loop->function(args, dims, steps, loop->data);
    errors = loop_errors(loop);
    return !(errors && (minded < 0 ? minds(errors) : errors & minded));
}

static PyArrayObject* product_run(Loop* loop, PyArrayObject* x, PyArrayObject* y, int raw, int minded) {
    int rows = PyArray_NDIM(x) == 2, columns = PyArray_NDIM(y) == 2;
    npy_intp m = rows ? PyArray_DIM(x, 0) : 1, p = columns ? PyArray_DIM(y, 1) : 1, lengths[2] = {rows ? m : p, p};
    PyArrayObject* r = result_room(rows + columns, lengths, loop->out, m * p, raw);
    if (r && !product_into(loop, x, y, PyArray_BYTES(r), minded)) Py_CLEAR(r);
    return r;
}

static char products_state[TYPES][2][2]; /* of products of each type, by whether the operands are matrices: each kind is another function of BLAS, whose first call costs */

static void product_check(Loop* loop, int type, int rows, int columns) {
    static const int lengths[2][2][3][3] = {{{{1, 67, 1}, {1, 1, 1}}, {{1, 9, 7}, {1, 8, 8}}}, {{{7, 9, 1}}, {{6, 5, 4}, {4, 8, 4}, {3, 1, 5}}}};
    char* state = &products_state[type][rows][columns];
    int fine = 1;
    *state = UNUSABLE;
    for (int k = 0; k < 12 && fine; k++) { /* as they are, with special values, and the second one transposed */
        const int* of = lengths[rows][columns][k / 4];
        npy_intp left[2] = {rows ? of[0] : of[1], of[1]}, right[2] = {of[1], of[2]};
        PyArrayObject *whole, *other, *x = NULL, *y = NULL, *r = NULL;
        PyObject* theirs = NULL;
        if (of[0] == 0) break;
        whole = sample(type, 0, k & 1), other = sample(type, 1, k & 1);
        if (whole) x = sample_part(whole, 0, 1 + rows, left, 0);
        if (other) y = sample_part(other, 0, 1 + columns, right, k & 2);
        if (x && y) theirs = quietly(product_loops.ufunc, (PyObject*[]){(PyObject*)x, (PyObject*)y}, 2);
        if (theirs) Py_SETREF(theirs, PyArray_FromAny(theirs, NULL, 0, 0, 0, NULL));
        if (theirs) r = product_run(loop, x, y, 0, ERRORS);
        fine = theirs && !PyErr_Occurred() && (r == NULL ? k & 1 : same_bits(r, (PyArrayObject*)theirs));
        Py_XDECREF(whole), Py_XDECREF(other), Py_XDECREF(x), Py_XDECREF(y), Py_XDECREF(r), Py_XDECREF(theirs);
    }
    loop_compared(loop, state, fine);
}

/* The loop for `x @ y` of small vectors and matrices; NULL where it is NumPy's to do. */
static Loop* product_loop(PyArrayObject* x, PyArrayObject* y) {
    int nx = PyArray_NDIM(x), ny = PyArray_NDIM(y), type = PyArray_TYPE(x);
    char state;
    Loop* loop;
    if (nx < 1 || ny < 1 || nx > 2 || ny > 2 || type != PyArray_TYPE(y) || !IS_NUMERIC(type)) return NULL;
    if (PyArray_DIM(x, nx - 1) != PyArray_DIM(y, 0) || !PyArray_ISBEHAVED_RO(x) || !PyArray_ISBEHAVED_RO(y)) return NULL;
    if (PyArray_SIZE(x) == 0 || PyArray_SIZE(y) == 0 || PyArray_SIZE(x) * (ny == 2 ? PyArray_DIM(y, 1) : 1) > SMALL_PRODUCT) return NULL;
    loop = &product_loops.of[type];
    state = products_state[type][nx - 1][ny - 1];
    if (loop->function && state == UNKNOWN) return product_check(loop, type, nx - 1, ny - 1), NULL; /* as `loop_of` */
    return state == USABLE ? loop : NULL;
}

/* `x @ y` of small vectors and matrices; NULL without an exception where it is NumPy's to do. */
static PyObject* direct_product(PyArrayObject* x, PyArrayObject* y) {
    Loop* loop = product_loop(x, y);
    Value number;
    if (loop == NULL) return NULL;
    if (PyArray_NDIM(x) == 2 || PyArray_NDIM(y) == 2) return (PyObject*)product_run(loop, x, y, 0, -1);
    return product_into(loop, x, y, (char*)&number, -1) ? number_read((char*)&number, raw_dtypes[loop->out], NULL) : NULL;
}

/* Loops over whole matrices (`solve`, `inv`, ...) ---------------------------------------------------------------------------------- */

typedef struct {
    Loops loops;
    int compared;
    int ignores; /* NumPy's function takes an invalid value for an error and hears of nothing else */
} Matrices;
#define SMALL_MATRIX 64 /* rows; more are worth NumPy's way, which lets other threads run */
#define COMPARED 4      /* results that are compared with NumPy's before a loop is used */

/* The result of NumPy's loop for operands that have its core's axes and no others; NULL (perhaps without an exception) where it is NumPy's to do. */
static PyArrayObject* matrices_run(Matrices* of, PyArrayObject* x, PyArrayObject* y) {
    PyUFuncObject* ufunc = (PyUFuncObject*)of->loops.ufunc;
    PyArrayObject *operands[3] = {x, y, NULL}, *r;
    npy_intp dims[1 + 4], steps[3 + 6] = {0}, lengths[2];
    int nin = of->loops.nin, at = nin + 1, type = PyArray_TYPE(x);
    Loop* loop = &of->loops.of[IS_NUMERIC(type) ? type : 0];
    char* args[3];
    if (type != NPY_DOUBLE || loop->function == NULL || loop->state == UNUSABLE || ufunc->core_num_dim_ix > 4 || ufunc->core_num_dims[nin] > 2) return NULL;
    dims[0] = 1;
    for (int k = 0; k < ufunc->core_num_dim_ix; k++) dims[1 + k] = -1;
    for (int o = 0; o < nin; o++) {
        if (PyArray_TYPE(operands[o]) != type || !PyArray_ISBEHAVED_RO(operands[o]) || PyArray_NDIM(operands[o]) != ufunc->core_num_dims[o]) return NULL;
        for (int k = 0; k < PyArray_NDIM(operands[o]); k++) {
            npy_intp length = PyArray_DIM(operands[o], k), *known = &dims[1 + ufunc->core_dim_ixs[ufunc->core_offsets[o] + k]];
            if (length == 0 || length > SMALL_MATRIX || (*known >= 0 && *known != length)) return NULL;
            *known = length;
            steps[at++] = PyArray_STRIDE(operands[o], k);
        }
    }
    for (int k = 0; k < ufunc->core_num_dims[nin]; k++)
        if ((lengths[k] = dims[1 + ufunc->core_dim_ixs[ufunc->core_offsets[nin] + k]]) < 0) return NULL;
    r = (PyArrayObject*)PyArray_SimpleNew(ufunc->core_num_dims[nin], lengths, loop->out);
    if (r == NULL) return NULL;
    for (int k = 0; k < PyArray_NDIM(r); k++) steps[at++] = PyArray_STRIDE(r, k);
    for (int o = 0; o < nin; o++) args[o] = PyArray_BYTES(operands[o]);
    args[nin] = PyArray_BYTES(r);
    flags_clear(0);
    loop->function(args, dims, steps, loop->data);
    if (of->ignores ? flags_raised(0) & ERROR_INVALID : minds(flags_raised(0))) Py_CLEAR(r); /* some tell of a matrix by that error */
    return r;
}

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
