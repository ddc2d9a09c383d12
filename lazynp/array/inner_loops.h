/* NumPy's inner loops, called directly.

   In: C-contiguous operands of one dtype, or such an array and a number.  Out: NumPy's result, to the bit, without the work that a ufunc does
   around its loop.  Promise: a loop is used after its results were compared with NumPy's, on special values as well; where a
   floating-point flag is raised that is not ignored, NumPy tells of it, or does it again.  Of two NaNs of different bits that meet, which one is
   handed on is the processor's choice.

   A loop that was called directly leaves the processor's flags as NumPy's own call would find them. What NumPy's error state ignores (underflow,
   unless it is told otherwise) is no error: the state is asked for when a flag is up, and remembered by its identity (`errors_minded`). What it does
   not ignore NumPy itself is given to tell of, with the ufunc's name (`told`, by `PyUFunc_GiveFloatingpointErrors`): it warns, raises, calls or logs
   at the user's line, and nothing is computed twice. Only expressions, whose flags do not say which operator raised them, writes in place, which
   NumPy does before it raises, reductions and comparisons are done again by NumPy. */

#ifndef LAZYNP_INNER_LOOPS_H
#define LAZYNP_INNER_LOOPS_H

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

#endif
