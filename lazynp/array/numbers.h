/* Numbers that are results: classes derived from NumPy's.

   In: what NumPy made of a call, and operands.  Out: the same number, of a class of ours below NumPy's (`numpy.float64` has one, `numpy.int64`, ...; truth values
   are NumPy's two).  Promise: to `isinstance`, to C code and to pickle it is NumPy's number; NumPy's own types are as they were; where an error might have to
   be told of (what is not finite, what underflows, whole numbers that overflow, a division by zero), and of all other operands, NumPy's own operator is called.

   Results of operators are results again.  A loop over elements spends most of its time in operators, and NumPy's ask for much before they add:
   what the operands are, which errors were raised before and afterwards.  Those of 64 and 32 bits are short here.

   To NumPy's users it is NumPy's number: `isinstance(s, np.float64)`, `float`, `%`, `hash`, `json`, `struct`, `Decimal`, C code that reads it,
   pandas. `repr`, `__class__` and the names of its class say NumPy's; it is pickled as NumPy's, which a process without lazynp reads. Its class is
   equal to NumPy's (`type(s) == np.float64`, `{np.float64: f}[type(s)]`, and so in NumPy's own table of types). Only `type(s) is np.float64` tells
   them apart (not where `numpy` is lazynp: there `type` is the program's).

   To the array API it belongs to lazynp: `__array_namespace__` says so, and the copies of array-api-compat, which look at classes, are told
   (`bridge/neighbours.py`). Beside arrays of ours NumPy's own numbers count as ours, too, for truth values are such.

   It is a number: nothing is written into it (`s[...] = 1` is a TypeError, as in NumPy).

   NumPy's types are left alone. The short operators stand in the classes of ours: among results of 64 and 32 bits, complex ones, narrow whole ones
   and Python's numbers they compute the result and nothing else. Wherever NumPy might have an error to tell of, and for all other operands, NumPy's
   operator gets NumPy's numbers (so does another library's class on the other side); what comes out is a result again.

   NumPy's functions get NumPy's numbers from the core (`numpys_number`), since they take a microsecond with instances of derived classes; lists of
   numbers, Python's and results, are read by the core (`of_items`).

   A statistic of a large array that exists is a pass over its memory. Of a pending array the first number is computed with the expression, without
   storing it; the second one stores it, if there is a reference to the array.

   On a GPU numbers wait, as members of the family in `scalars.py`: each would be a wait for the device. `LAZYNP_NUMBERS=wait` asks for the same on
   the processor: several numbers of one pending array are one program then.

   Ufuncs of one or two such numbers (`np.maximum(x[i], 0.0)`, `np.sqrt(2)`) call NumPy's loop for one element directly (`number_call`), after the
   first 32 calls of each were compared with NumPy's. */

#ifndef LAZYNP_NUMBERS_H
#define LAZYNP_NUMBERS_H

#include <float.h>
#include <math.h>
#include "cell.h"
#include "numpy/arrayscalars.h"

#if NPY_SIZEOF_LONG == 8
#define WHOLE NPY_LONG
typedef PyLongScalarObject Whole;
#else
#define WHOLE NPY_LONGLONG
typedef PyLongLongScalarObject Whole;
#endif
typedef PyDoubleScalarObject Real;
typedef PyFloatScalarObject Single;

typedef struct {
    PyTypeObject type;
    PyNumberMethods methods;
    PyMappingMethods subscripts;
    PyTypeObject* numpys;
} NumberClass;
#define NUMBER_TYPES (NPY_HALF + 1)
static NumberClass number_classes[NUMBER_TYPES]; /* by NumPy's type numbers; many have none */
#define CLASS(TYPE) (&number_classes[TYPE].type)
#define NUMPYS(TYPE) number_classes[TYPE].numpys

/* Whether a class is one of ours. */
static inline int is_number_class(PyTypeObject* type) { return (char*)type >= (char*)number_classes && (char*)type < (char*)(number_classes + NUMBER_TYPES); }

/* Whether an object is a number of this type, NumPy's own or ours. */
#define IS_A(X, TYPE) (Py_IS_TYPE(X, CLASS(TYPE)) || Py_IS_TYPE(X, NUMPYS(TYPE)))

static inline int is_complex(PyObject* number) {
    return Py_IS_TYPE(number, &PyComplex_Type) || IS_A(number, NPY_CDOUBLE) || IS_A(number, NPY_CFLOAT);
}

static NumberClass* class_below(PyTypeObject* numpys) {
    if (numpys == NUMPYS(NPY_DOUBLE)) return &number_classes[NPY_DOUBLE];
    if (numpys == NUMPYS(WHOLE)) return &number_classes[WHOLE];
    if (numpys == &PyArray_Type || numpys == &PyFloat_Type || numpys == &PyLong_Type || numpys == &PyBool_Type || numpys == array_type) return NULL;
    for (int k = 0; k < NUMBER_TYPES; k++)
        if (numpys == NUMPYS(k)) return &number_classes[k];
    return NULL;
}

/* The same number in another class of the same layout (a new reference). */
static PyObject* number_as(PyObject* x, PyTypeObject* type) {
    PyObject* made = type->tp_alloc(type, 0);
    if (made) memcpy((char*)made + sizeof(PyObject), (char*)x + sizeof(PyObject), (size_t)type->tp_basicsize - sizeof(PyObject));
    return made;
}

/* NumPy's number (the reference is taken over) as a result of ours, everything else as it is.  What has no other reference becomes one where it lies. */
static inline PyObject* number_of(PyObject* found) {
    NumberClass* of = found ? class_below(Py_TYPE(found)) : NULL;
    PyObject* made;
    if (of == NULL) return found;
    if (Py_REFCNT(found) == 1) {
        Py_SET_TYPE(found, &of->type);
        return found;
    }
    made = number_as(found, &of->type);
    Py_DECREF(found);
    return made;
}

/* A result of ours as NumPy's own number, everything else as it is (a new reference). */
static inline PyObject* numpys_number(PyObject* x) { return is_number_class(Py_TYPE(x)) ? number_as(x, Py_TYPE(x)->tp_base) : Py_NewRef(x); }

/* The same, taken over. */
static inline PyObject* numpys_taken(PyObject* x) {
    PyObject* made;
    if (!is_number_class(Py_TYPE(x))) return x;
    made = numpys_number(x);
    Py_DECREF(x);
    return made;
}

/* A whole number that is NumPy's or ours, or Python's and not larger; 0 of all others. */
static inline int whole_of(PyObject* x, npy_int64* to) {
    int overflow;
    if (IS_A(x, WHOLE)) return *to = ((Whole*)x)->obval, 1;
    if (!PyLong_CheckExact(x)) return 0;
    *to = PyLong_AsLongLongAndOverflow(x, &overflow);
    return !overflow;
}

#define EXACT (1LL << 53) /* up to here all whole numbers of Python's are numbers of 64 bits */
/* The same of a real number, or a whole one as such. */
static inline int real_of(PyObject* x, double* to) {
    npy_int64 whole;
    if (IS_A(x, NPY_DOUBLE)) return *to = ((Real*)x)->obval, 1;
    if (PyFloat_CheckExact(x)) return *to = PyFloat_AS_DOUBLE(x), 1;
    if (!whole_of(x, &whole)) return 0;
    *to = (double)whole;
    return IS_A(x, WHOLE) || (whole >= -EXACT && whole <= EXACT);
}

/* A real number of 32 bits, or one of Python's, which NumPy rounds to as many. */
static inline int single_of(PyObject* x, float* to) {
    npy_int64 whole;
    double value;
    if (IS_A(x, NPY_FLOAT)) return *to = ((Single*)x)->obval, 1;
    if (PyLong_CheckExact(x)) {
        if (!whole_of(x, &whole)) return 0;
        *to = (float)whole;
        return whole >= -(1 << 24) && whole <= 1 << 24;
    }
    if (!PyFloat_CheckExact(x)) return 0;
    value = PyFloat_AS_DOUBLE(x);
    *to = (float)value;
    return value == 0 || (fabs(value) <= FLT_MAX && fabs(value) >= FLT_MIN);
}

/* A complex number of twice 64 bits, or a real one as such. */
typedef struct {
    double real, imag;
} Pair;
static inline int pair_of(PyObject* x, Pair* to) {
    if (IS_A(x, NPY_CDOUBLE)) return memcpy(to, (char*)x + offsetof(PyCDoubleScalarObject, obval), sizeof(Pair)), 1;
    if (PyComplex_CheckExact(x)) return to->real = ((PyComplexObject*)x)->cval.real, to->imag = ((PyComplexObject*)x)->cval.imag, 1;
    to->imag = 0;
    return real_of(x, &to->real);
}

/* Whole numbers of less than 64 bits: how many bytes; 0 of all other types. */
static inline int narrow_size(int type) {
    switch (type) {
    case NPY_BYTE: case NPY_UBYTE: return 1;
    case NPY_SHORT: case NPY_USHORT: return 2;
    case NPY_INT: case NPY_UINT: return 4;
    }
    return 0;
}
static inline int type_of_class(PyTypeObject* type) { return is_number_class(type) ? (int)(((char*)type - (char*)number_classes) / (Py_ssize_t)sizeof(NumberClass)) : -1; }
static inline int narrow_fits(int type, npy_int64 value) {
    npy_int64 half = (npy_int64)1 << (8 * narrow_size(type) - 1);
    return PyTypeNum_ISUNSIGNED(type) ? value >= 0 && value < 2 * half : value >= -half && value < half;
}
/* A number of this narrow type, or Python's that is in its range. */
static inline int narrow_of(PyObject* x, int type, npy_int64* to) {
    const char* at = (char*)x + sizeof(PyObject);
    if (IS_A(x, type)) {
        switch (type) {
        case NPY_BYTE: return *to = *(npy_byte*)at, 1;
        case NPY_UBYTE: return *to = *(npy_ubyte*)at, 1;
        case NPY_SHORT: return *to = *(npy_short*)at, 1;
        case NPY_USHORT: return *to = *(npy_ushort*)at, 1;
        case NPY_INT: return *to = *(npy_int*)at, 1;
        default: return *to = *(npy_uint*)at, 1;
        }
    }
    return PyLong_CheckExact(x) && whole_of(x, to) && narrow_fits(type, *to);
}

/* Numbers come and go with every operation: the memory of some is kept. */
#define NUMBERS_KEPT 64
static PyObject* kept_numbers[NUMBERS_KEPT];
static int kept_numbers_count;

static inline PyObject* wide_new(PyTypeObject* type) { /* of 64 bits */
    return kept_numbers_count ? PyObject_Init(kept_numbers[--kept_numbers_count], type) : type->tp_alloc(type, 0);
}

static void wide_dealloc(PyObject* self) {
    if (kept_numbers_count < NUMBERS_KEPT) kept_numbers[kept_numbers_count++] = self;
    else Py_TYPE(self)->tp_free(self);
}

static inline PyObject* real_new(double value) {
    PyObject* made = wide_new(CLASS(NPY_DOUBLE));
    if (made) ((Real*)made)->obval = value;
    return made;
}

static inline PyObject* whole_new(npy_int64 value) {
    PyObject* made = wide_new(CLASS(WHOLE));
    if (made) ((Whole*)made)->obval = value;
    return made;
}

static inline PyObject* single_new(float value) {
    PyObject* made = CLASS(NPY_FLOAT)->tp_alloc(CLASS(NPY_FLOAT), 0);
    if (made) ((Single*)made)->obval = value;
    return made;
}

static inline PyObject* pair_new(Pair value) {
    PyObject* made = CLASS(NPY_CDOUBLE)->tp_alloc(CLASS(NPY_CDOUBLE), 0);
    if (made) memcpy((char*)made + offsetof(PyCDoubleScalarObject, obval), &value, sizeof(Pair));
    return made;
}

static inline PyObject* narrow_new(int type, npy_int64 value) {
    PyObject* made = CLASS(type)->tp_alloc(CLASS(type), 0);
    char* at = (char*)made + sizeof(PyObject);
    if (made == NULL) return NULL;
    switch (narrow_size(type)) {
    case 1: *(npy_ubyte*)at = (npy_ubyte)value; break;
    case 2: *(npy_ushort*)at = (npy_ushort)value; break;
    default: *(npy_uint*)at = (npy_uint)value; break;
    }
    return made;
}

/* What lies in memory as one number of an array. */
static inline PyObject* number_read(void* at, PyArray_Descr* dtype, PyObject* array) {
    int type = dtype->type_num;
    PyObject* found;
    Pair pair;
    if (PyDataType_ISNOTSWAPPED(dtype)) switch (type) {
        case NPY_DOUBLE: return real_new(*(double*)at);
        case WHOLE: return whole_new(*(npy_int64*)at);
        case NPY_BOOL: return Py_NewRef(*(npy_bool*)at ? PyArrayScalar_True : PyArrayScalar_False);
        case NPY_FLOAT: return single_new(*(float*)at);
        case NPY_CDOUBLE: return pair_new(*(Pair*)memcpy(&pair, at, sizeof(pair)));
        }
    found = PyArray_Scalar(at, dtype, array);
    if (found && type < NUMBER_TYPES && Py_IS_TYPE(found, NUMPYS(type)) && Py_REFCNT(found) == 1) return Py_SET_TYPE(found, CLASS(type)), found;
    return number_of(found);
}

/* Operators ------------------------------------------------------------------------------------------------------------------------------ */

/* An array of ours is left the operator at once, as Python's floats do it: NumPy would make an array of the number, and ask a ufunc, which asks
   `__array_ufunc__`. */
static inline int is_array_of_ours(PyObject* x) { return array_type && PyObject_TypeCheck(x, array_type); }

static PyObject* numpys_two(binaryfunc operator, PyObject* a, PyObject* b) {
    PyObject *x, *y, *found;
    if (is_array_of_ours(b)) Py_RETURN_NOTIMPLEMENTED;
    x = numpys_number(a), y = numpys_number(b);
    found = x && y ? operator(x, y) : NULL;
    Py_XDECREF(x), Py_XDECREF(y);
    if (found && PyTuple_CheckExact(found) && Py_REFCNT(found) == 1) /* of `divmod` */
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(found); k++) PyTuple_SET_ITEM(found, k, number_of(PyTuple_GET_ITEM(found, k)));
    return number_of(found);
}

static PyObject* numpys_one(unaryfunc operator, PyObject* a) {
    PyObject *x = numpys_number(a), *found = x ? operator(x) : NULL;
    Py_XDECREF(x);
    return number_of(found);
}

#define TWO(NAME, OPERATOR) static PyObject* number_##NAME(PyObject* a, PyObject* b) { return numpys_two(OPERATOR, a, b); }
TWO(add, PyNumber_Add) TWO(subtract, PyNumber_Subtract) TWO(multiply, PyNumber_Multiply) TWO(true_divide, PyNumber_TrueDivide)
TWO(floor_divide, PyNumber_FloorDivide) TWO(remainder, PyNumber_Remainder) TWO(divmod, PyNumber_Divmod) TWO(lshift, PyNumber_Lshift)
TWO(matrix_multiply, PyNumber_MatrixMultiply) TWO(rshift, PyNumber_Rshift) TWO(and, PyNumber_And) TWO(or, PyNumber_Or) TWO(xor, PyNumber_Xor)
#undef TWO
#define ONE(NAME, OPERATOR) static PyObject* number_##NAME(PyObject* a) { return numpys_one(OPERATOR, a); }
ONE(negative, PyNumber_Negative) ONE(positive, PyNumber_Positive) ONE(absolute, PyNumber_Absolute) ONE(invert, PyNumber_Invert)
#undef ONE

static PyObject* number_repr(PyObject* a) { /* NumPy's looks for its own classes */
    PyObject *x = numpys_number(a), *found = x ? PyObject_Repr(x) : NULL;
    Py_XDECREF(x);
    return found;
}

static PyObject* power_of(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
static PyObject* number_power(PyObject* a, PyObject* b, PyObject* modulo) {
    PyObject *x, *y, *found;
    if (modulo == Py_None) return numpys_two(power_of, a, b);
    x = numpys_number(a), y = numpys_number(b);
    found = x && y ? PyNumber_Power(x, y, modulo) : NULL;
    Py_XDECREF(x), Py_XDECREF(y);
    return number_of(found);
}

static PyObject* compared_from(PyObject* a, PyObject* b, int op);
static PyObject* number_richcompare(PyObject* a, PyObject* b, int op) {
    PyObject *x, *y, *found;
    if (is_array_of_ours(b)) return compared_from(a, b, op);
    x = numpys_number(a), y = numpys_number(b);
    found = x && y ? PyObject_RichCompare(x, y, op) : NULL;
    Py_XDECREF(x), Py_XDECREF(y);
    return found;
}

/* Whether the result raised nothing: sums below the normal numbers are exact, products and quotients may not be,
   and what is rounded up to the least normal number underflowed. */
#define SUM_IS_FINE(MOST, LEAST) (fabs(value) <= MOST)
#define PRODUCT_IS_FINE(MOST, LEAST) (fabs(value) <= MOST && (fabs(value) > LEAST || x == 0 || y == 0))

#define SHORT(KIND, TYPE, MOST, LEAST, NAME, OPERATOR, FINE) \
    static PyObject* KIND##_##NAME(PyObject* a, PyObject* b) { \
        TYPE x, y; \
        if (KIND##_of(a, &x) && KIND##_of(b, &y)) { \
            TYPE value = x OPERATOR y; \
            if (FINE(MOST, LEAST)) return KIND##_new(value); \
        } \
        return number_##NAME(a, b); \
    }
#define SHORTS(KIND, TYPE, MOST, LEAST) \
    SHORT(KIND, TYPE, MOST, LEAST, add, +, SUM_IS_FINE) SHORT(KIND, TYPE, MOST, LEAST, subtract, -, SUM_IS_FINE) \
    SHORT(KIND, TYPE, MOST, LEAST, multiply, *, PRODUCT_IS_FINE) SHORT(KIND, TYPE, MOST, LEAST, true_divide, /, PRODUCT_IS_FINE)
SHORTS(real, double, DBL_MAX, DBL_MIN)
SHORTS(single, float, FLT_MAX, FLT_MIN)
#undef SHORTS
#undef SHORT

/* Of whole numbers of one narrow type, while the result is one. */
static inline int narrow_operands(PyObject* a, PyObject* b, npy_int64* p, npy_int64* q) {
    int type = type_of_class(Py_TYPE(a));
    if (type < 0) type = type_of_class(Py_TYPE(b));
    return narrow_size(type) && narrow_of(a, type, p) && narrow_of(b, type, q) ? type : -1;
}
#define SHORT(NAME, OPERATOR) \
    static PyObject* narrow_##NAME(PyObject* a, PyObject* b) { \
        npy_int64 p, q; \
        int type = narrow_operands(a, b, &p, &q); \
        if (type >= 0 && narrow_fits(type, p OPERATOR q)) return narrow_new(type, p OPERATOR q); \
        return number_##NAME(a, b); \
    }
SHORT(add, +)
SHORT(subtract, -)
#undef SHORT
static PyObject* narrow_multiply(PyObject* a, PyObject* b) {
    npy_int64 p, q, r;
    int type = narrow_operands(a, b, &p, &q);
    if (type >= 0 && fabs((double)p * (double)q) < (double)EXACT && narrow_fits(type, r = p * q)) return narrow_new(type, r);
    return number_multiply(a, b);
}

/* Sums of complex numbers, and products by the schoolbook's formula, which is NumPy's where the compiler makes two roundings of it. */
#define SHORT(NAME, OPERATOR) \
    static PyObject* pair_##NAME(PyObject* a, PyObject* b) { \
        Pair x, y; \
        if (pair_of(a, &x) && pair_of(b, &y)) { \
            Pair value = {x.real OPERATOR y.real, x.imag OPERATOR y.imag}; \
            if (fabs(value.real) <= DBL_MAX && fabs(value.imag) <= DBL_MAX) return pair_new(value); \
        } \
        return number_##NAME(a, b); \
    }
SHORT(add, +)
SHORT(subtract, -)
#undef SHORT
static PyObject* pair_multiply(PyObject* a, PyObject* b) {
#if defined(__x86_64__) && !defined(__FMA__)
#define IS_FINE(p, x, y) (fabs(p) > DBL_MIN || (x) == 0 || (y) == 0)
    Pair x, y;
    if (pair_of(a, &x) && pair_of(b, &y)) {
        double rr = x.real * y.real, ii = x.imag * y.imag, ri = x.real * y.imag, ir = x.imag * y.real;
        Pair value = {rr - ii, ri + ir};
        if (fabs(value.real) <= DBL_MAX && fabs(value.imag) <= DBL_MAX && IS_FINE(rr, x.real, y.real) && IS_FINE(ii, x.imag, y.imag) &&
            IS_FINE(ri, x.real, y.imag) && IS_FINE(ir, x.imag, y.real))
            return pair_new(value);
    }
#undef IS_FINE
#endif
    return number_multiply(a, b);
}

/* Whether both are whole, or one is and the other is real. */
#if defined(__GNUC__)
#define OVERFLOWS(NAME) __builtin_##NAME##_overflow(p, q, &r)
#else
#define OVERFLOWS(NAME) (r = 0, 1)
#endif
#define SHORT(NAME, TEST, OPERATOR, FINE) \
    static PyObject* whole_##NAME(PyObject* a, PyObject* b) { \
        npy_int64 p, q, r; \
        double x, y; \
        if (whole_of(a, &p) && whole_of(b, &q)) { \
            if (TEST) return whole_new(r); \
        } else if (real_of(a, &x) && real_of(b, &y)) { \
            double value = x OPERATOR y; \
            if (FINE(DBL_MAX, DBL_MIN)) return real_new(value); \
        } \
        return number_##NAME(a, b); \
    }
SHORT(add, !OVERFLOWS(add), +, SUM_IS_FINE)
SHORT(subtract, !OVERFLOWS(sub), -, SUM_IS_FINE)
SHORT(multiply, !OVERFLOWS(mul), *, PRODUCT_IS_FINE)
#undef SHORT

static PyObject* whole_true_divide(PyObject* a, PyObject* b) { return real_true_divide(a, b); }

/* The quotient towards minus infinity, and what is left. */
#define DIVIDED(NAME, RESULT) \
    static PyObject* whole_##NAME(PyObject* a, PyObject* b) { \
        npy_int64 p, q, quotient, rest; \
        if (!whole_of(a, &p) || !whole_of(b, &q) || q == 0 || q == -1) return number_##NAME(a, b); \
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
    if (IS_A(a, NPY_DOUBLE) && !IS_A(b, WHOLE) && real_of(a, &x) && real_of(b, &y) && x == x && y == y) PyArrayScalar_RETURN_BOOL_FROM_LONG(HOLDS(x, y));
    return number_richcompare(a, b, op);
}

static PyObject* single_richcompare(PyObject* a, PyObject* b, int op) {
    float x, y;
    if (single_of(a, &x) && single_of(b, &y) && x == x && y == y) PyArrayScalar_RETURN_BOOL_FROM_LONG(HOLDS(x, y));
    return number_richcompare(a, b, op);
}

static PyObject* narrow_richcompare(PyObject* a, PyObject* b, int op) {
    npy_int64 p, q;
    if (narrow_operands(a, b, &p, &q) >= 0) PyArrayScalar_RETURN_BOOL_FROM_LONG(HOLDS(p, q));
    return number_richcompare(a, b, op);
}

static PyObject* whole_richcompare(PyObject* a, PyObject* b, int op) {
    npy_int64 p, q;
    if (whole_of(a, &p) && whole_of(b, &q)) PyArrayScalar_RETURN_BOOL_FROM_LONG(HOLDS(p, q));
    return number_richcompare(a, b, op);
}
#undef HOLDS

/* NumPy's is the C library's, too. */
static PyObject* real_power(PyObject* a, PyObject* b, PyObject* modulo) {
    double x, y, value;
    if (modulo == Py_None && real_of(a, &x) && real_of(b, &y)) {
        value = pow(x, y);
        if (fabs(value) <= DBL_MAX && fabs(value) > DBL_MIN) return real_new(value);
    }
    return number_power(a, b, modulo);
}

static PyObject* real_negative(PyObject* a) { return real_new(-((Real*)a)->obval); }
static PyObject* real_absolute(PyObject* a) { return real_new(fabs(((Real*)a)->obval)); }

static PyObject* result_method; /* `hand.result`, for answers that are not plain */

/* `x[()]` is the number itself; what else NumPy knows to do makes an array. */
static PyObject* number_subscript(PyObject* a, PyObject* key) {
    PyObject *x, *found, *made;
    if (PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) == 0) return Py_NewRef(a);
    x = numpys_number(a);
    found = x ? PyObject_GetItem(x, key) : NULL;
    Py_XDECREF(x);
    if (found == NULL || result_method == NULL) return found;
    made = PyObject_CallOneArg(result_method, found);
    Py_DECREF(found);
    return made;
}

/* Classes -------------------------------------------------------------------------------------------------------------------------------- */

/* A class of results is equal to NumPy's, and has its place in tables: who compares the type of a number, or looks it up, means that. */
static inline PyTypeObject* numpys_class(PyObject* x) { return is_number_class((PyTypeObject*)x) ? ((PyTypeObject*)x)->tp_base : (PyTypeObject*)x; }

static PyObject* number_type_richcompare(PyObject* a, PyObject* b, int op) {
    if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((numpys_class(a) == numpys_class(b)) == (op == Py_EQ));
}

static Py_hash_t number_type_hash(PyObject* a) { return PyObject_Hash((PyObject*)numpys_class(a)); }

static PyTypeObject number_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.NumberType",
    .tp_doc = "The class of the classes of results.",
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_richcompare = number_type_richcompare,
    .tp_hash = number_type_hash,
};

static int numbers_ready(void) {
    static const int types[] = {NPY_BYTE, NPY_UBYTE, NPY_SHORT, NPY_USHORT, NPY_INT, NPY_UINT, NPY_LONG, NPY_ULONG, NPY_LONGLONG, NPY_ULONGLONG, NPY_HALF, NPY_FLOAT, NPY_DOUBLE, NPY_CFLOAT, NPY_CDOUBLE};
    NumberClass blank = {.type = {PyVarObject_HEAD_INIT(NULL, 0)}};
    if (NUMPYS(NPY_DOUBLE)) return 0; /* in another interpreter of the process */
    number_type.tp_base = &PyType_Type;
    if (PyType_Ready(&number_type) < 0) return -1;
    for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
        NumberClass* of = &number_classes[types[k]];
        PyTypeObject *type = &of->type, *numpys;
        PyNumberMethods* methods = &of->methods;
        PyArray_Descr* descr = PyArray_DescrFromType(types[k]);
        if (descr == NULL) return -1;
        numpys = descr->typeobj;
        Py_DECREF(descr);
        *of = blank;
        of->numpys = numpys;
        Py_SET_TYPE((PyObject*)type, &number_type);
        type->tp_name = numpys->tp_name;
        type->tp_doc = numpys->tp_doc;
        type->tp_base = numpys;
        type->tp_basicsize = numpys->tp_basicsize;
        type->tp_flags = Py_TPFLAGS_DEFAULT;
        type->tp_hash = numpys->tp_hash;
        type->tp_richcompare = number_richcompare;
        type->tp_repr = number_repr;
        type->tp_as_number = methods;
        type->tp_as_mapping = &of->subscripts;
        of->subscripts.mp_subscript = number_subscript;
        methods->nb_add = number_add, methods->nb_subtract = number_subtract, methods->nb_multiply = number_multiply;
        methods->nb_true_divide = number_true_divide, methods->nb_floor_divide = number_floor_divide, methods->nb_remainder = number_remainder;
        methods->nb_divmod = number_divmod, methods->nb_matrix_multiply = number_matrix_multiply, methods->nb_power = number_power, methods->nb_lshift = number_lshift, methods->nb_rshift = number_rshift;
        methods->nb_and = number_and, methods->nb_or = number_or, methods->nb_xor = number_xor;
        methods->nb_negative = number_negative, methods->nb_positive = number_positive, methods->nb_absolute = number_absolute;
        methods->nb_invert = number_invert;
        if (types[k] == NPY_DOUBLE) {
            methods->nb_add = real_add, methods->nb_subtract = real_subtract, methods->nb_multiply = real_multiply;
            methods->nb_true_divide = real_true_divide, methods->nb_negative = real_negative, methods->nb_absolute = real_absolute, methods->nb_power = real_power;
            type->tp_richcompare = real_richcompare;
        } else if (types[k] == WHOLE) {
            methods->nb_add = whole_add, methods->nb_subtract = whole_subtract, methods->nb_multiply = whole_multiply;
            methods->nb_true_divide = whole_true_divide, methods->nb_floor_divide = whole_floor_divide, methods->nb_remainder = whole_remainder;
            type->tp_richcompare = whole_richcompare;
        } else if (types[k] == NPY_FLOAT) {
            methods->nb_add = single_add, methods->nb_subtract = single_subtract, methods->nb_multiply = single_multiply;
            methods->nb_true_divide = single_true_divide;
            type->tp_richcompare = single_richcompare;
        } else if (types[k] == NPY_CDOUBLE) {
            methods->nb_add = pair_add, methods->nb_subtract = pair_subtract, methods->nb_multiply = pair_multiply;
        } else if (narrow_size(types[k])) {
            methods->nb_add = narrow_add, methods->nb_subtract = narrow_subtract, methods->nb_multiply = narrow_multiply;
            type->tp_richcompare = narrow_richcompare;
        }
        if (types[k] == NPY_DOUBLE || types[k] == WHOLE) type->tp_dealloc = wide_dealloc;
        if (PyType_Ready(type) < 0) return -1;
    }
    return 0;
}

static PyTypeObject* number_class_below(PyObject* x) {
    NumberClass* of = class_below(Py_TYPE(x));
    return of ? &of->type : NULL;
}

/* Attributes that the classes have in addition to NumPy's. */
static int number_members_set(PyObject* members) {
    for (int k = 0; k < NUMBER_TYPES; k++) {
        if (NUMPYS(k) == NULL) continue;
        if (PyDict_Update(CLASS(k)->tp_dict, members) < 0) return -1;
        PyType_Modified(CLASS(k));
    }
    return 0;
}

#endif
