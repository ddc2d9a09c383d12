/* NumPy's numbers of 64 bits and truth values, added, multiplied and compared by the shortest way.

   In: operators on `numpy.float64`, `numpy.int64` and `numpy.bool`, which elements of arrays are, among themselves and with Python's numbers.  Out: NumPy's
   result, as a number of NumPy's.  Promise: where an error might have to be told of (what is not finite, what underflows, whole numbers that
   overflow, a division by zero), and of all other operands, NumPy's own operator is called.

   The operators stand in NumPy's types, for the whole process.  A loop over elements spends most of its time in them, and NumPy's ask for much
   before they add: what the operands are, which errors were raised before and afterwards. */

#ifndef LAZYNP_NUMBERS_H
#define LAZYNP_NUMBERS_H

#include <float.h>
#include "chains.h"

#if NPY_SIZEOF_LONG == 8
#define WHOLE_TYPE PyLongArrType_Type
typedef PyLongScalarObject Whole;
#else
#define WHOLE_TYPE PyLongLongArrType_Type
typedef PyLongLongScalarObject Whole;
#endif
typedef PyDoubleScalarObject Real;

static PyNumberMethods real_methods, whole_methods; /* NumPy's */
static richcmpfunc real_compare, whole_compare, truth_compare;

/* A whole number that is NumPy's, or Python's and not larger; 0 of all others. */
static inline int whole_of(PyObject* x, npy_int64* to) {
    int overflow;
    if (Py_IS_TYPE(x, &WHOLE_TYPE)) return *to = ((Whole*)x)->obval, 1;
    if (!PyLong_CheckExact(x)) return 0;
    *to = PyLong_AsLongLongAndOverflow(x, &overflow);
    return !overflow;
}

#define EXACT (1LL << 53) /* up to here all whole numbers of Python's are numbers of 64 bits */
/* The same of a real number, or a whole one as such. */
static inline int real_of(PyObject* x, double* to) {
    npy_int64 whole;
    if (Py_IS_TYPE(x, &PyDoubleArrType_Type)) return *to = ((Real*)x)->obval, 1;
    if (PyFloat_CheckExact(x)) return *to = PyFloat_AS_DOUBLE(x), 1;
    if (!whole_of(x, &whole)) return 0;
    *to = (double)whole;
    return Py_IS_TYPE(x, &WHOLE_TYPE) || (whole >= -EXACT && whole <= EXACT);
}

static inline PyObject* real_new(double value) {
    PyObject* made = PyDoubleArrType_Type.tp_alloc(&PyDoubleArrType_Type, 0);
    if (made) ((Real*)made)->obval = value;
    return made;
}

static inline PyObject* whole_new(npy_int64 value) {
    PyObject* made = WHOLE_TYPE.tp_alloc(&WHOLE_TYPE, 0);
    if (made) ((Whole*)made)->obval = value;
    return made;
}

/* Whether the result raised nothing: sums below the normal numbers are exact, products and quotients may not be,
   and what is rounded up to the least normal number underflowed. */
#define SUM_IS_FINE (fabs(value) <= DBL_MAX)
#define PRODUCT_IS_FINE (fabs(value) <= DBL_MAX && (fabs(value) > DBL_MIN || x == 0 || y == 0))

/* An array of ours is left the operator at once, as Python's floats do it: NumPy would make an array of the number, and ask a ufunc, which asks
   `__array_ufunc__`. */
static inline int is_ours(PyObject* x) { return Py_IS_TYPE(x, array_type) || IS_CHAIN(x); }

#define REAL(NAME, OPERATOR, FINE) \
    static PyObject* real_##NAME(PyObject* a, PyObject* b) { \
        double x, y; \
        if (real_of(a, &x) && real_of(b, &y)) { \
            double value = x OPERATOR y; \
            if (FINE) return real_new(value); \
        } else if (is_ours(b)) { \
            Py_RETURN_NOTIMPLEMENTED; \
        } \
        return real_methods.nb_##NAME(a, b); \
    }
REAL(add, +, SUM_IS_FINE)
REAL(subtract, -, SUM_IS_FINE)
REAL(multiply, *, PRODUCT_IS_FINE)
REAL(true_divide, /, PRODUCT_IS_FINE)
#undef REAL

/* Whether both are whole, or one is and the other is real. */
#if defined(__GNUC__)
#define OVERFLOWS(NAME) __builtin_##NAME##_overflow(p, q, &r)
#else
#define OVERFLOWS(NAME) (r = 0, 1)
#endif
#define WHOLE(NAME, TEST, OPERATOR, FINE) \
    static PyObject* whole_##NAME(PyObject* a, PyObject* b) { \
        npy_int64 p, q, r; \
        double x, y; \
        if (whole_of(a, &p) && whole_of(b, &q)) { \
            if (TEST) return whole_new(r); \
        } else if (real_of(a, &x) && real_of(b, &y)) { \
            double value = x OPERATOR y; \
            if (FINE) return real_new(value); \
        } \
        return whole_methods.nb_##NAME(a, b); \
    }
WHOLE(add, !OVERFLOWS(add), +, SUM_IS_FINE)
WHOLE(subtract, !OVERFLOWS(sub), -, SUM_IS_FINE)
WHOLE(multiply, !OVERFLOWS(mul), *, PRODUCT_IS_FINE)
#undef WHOLE

static PyObject* whole_true_divide(PyObject* a, PyObject* b) {
    double x, y;
    if (real_of(a, &x) && real_of(b, &y)) {
        double value = x / y;
        if (PRODUCT_IS_FINE) return real_new(value);
    }
    return whole_methods.nb_true_divide(a, b);
}

/* The quotient towards minus infinity, and what is left. */
#define DIVIDED(NAME, RESULT) \
    static PyObject* whole_##NAME(PyObject* a, PyObject* b) { \
        npy_int64 p, q, quotient, rest; \
        if (!whole_of(a, &p) || !whole_of(b, &q) || q == 0 || q == -1) return whole_methods.nb_##NAME(a, b); \
        quotient = p / q, rest = p % q; \
        if (rest && (rest < 0) != (q < 0)) quotient--, rest += q; \
        (void)quotient, (void)rest; \
        return whole_new(RESULT); \
    }
DIVIDED(floor_divide, quotient)
DIVIDED(remainder, rest)
#undef DIVIDED

#define HOLDS(x, y) (op == Py_LT ? x < y : op == Py_LE ? x <= y : op == Py_EQ ? x == y : op == Py_NE ? x != y : op == Py_GT ? x > y : x >= y)

static PyObject* real_richcompare(PyObject* a, PyObject* b, int op) {
    double x, y;
    if (Py_IS_TYPE(a, &PyDoubleArrType_Type) && !Py_IS_TYPE(b, &WHOLE_TYPE) && real_of(a, &x) && real_of(b, &y) && x == x && y == y)
        PyArrayScalar_RETURN_BOOL_FROM_LONG(HOLDS(x, y));
    return real_compare(a, b, op);
}

static PyObject* whole_richcompare(PyObject* a, PyObject* b, int op) {
    npy_int64 p, q;
    if (Py_IS_TYPE(a, &WHOLE_TYPE) && whole_of(a, &p) && whole_of(b, &q)) PyArrayScalar_RETURN_BOOL_FROM_LONG(HOLDS(p, q));
    return whole_compare(a, b, op);
}

/* Truth values, of which NumPy makes arrays to compare them. */
static PyObject* truth_richcompare(PyObject* a, PyObject* b, int op) {
    if (Py_IS_TYPE(a, &PyBoolArrType_Type) && (Py_IS_TYPE(b, &PyBoolArrType_Type) || PyBool_Check(b))) {
        int p = PyArrayScalar_VAL(a, Bool) != 0, q = PyBool_Check(b) ? b == Py_True : PyArrayScalar_VAL(b, Bool) != 0;
        PyArrayScalar_RETURN_BOOL_FROM_LONG(HOLDS(p, q));
    }
    return truth_compare(a, b, op);
}
#undef HOLDS

static void numbers_ready(void) {
    PyNumberMethods *real = PyDoubleArrType_Type.tp_as_number, *whole = WHOLE_TYPE.tp_as_number;
    if (real_methods.nb_add) return; /* in another interpreter of the process */
    real_methods = *real, whole_methods = *whole;
    real_compare = PyDoubleArrType_Type.tp_richcompare, whole_compare = WHOLE_TYPE.tp_richcompare, truth_compare = PyBoolArrType_Type.tp_richcompare;
    real->nb_add = real_add, real->nb_subtract = real_subtract, real->nb_multiply = real_multiply, real->nb_true_divide = real_true_divide;
    whole->nb_add = whole_add, whole->nb_subtract = whole_subtract, whole->nb_multiply = whole_multiply;
    whole->nb_true_divide = whole_true_divide, whole->nb_floor_divide = whole_floor_divide, whole->nb_remainder = whole_remainder;
    PyDoubleArrType_Type.tp_richcompare = real_richcompare, WHOLE_TYPE.tp_richcompare = whole_richcompare;
    PyBoolArrType_Type.tp_richcompare = truth_richcompare;
}

#endif
