/* What operands are to operators and subscripts: numbers, small arrays, parts of large ones; and NumPy's results as ours.

   In: operands.  Out: memory to read, or whether NumPy has to see to it.  Promise: nothing but exact types is looked at. */

#ifndef LAZYNP_MEMORY_READ_H
#define LAZYNP_MEMORY_READ_H

#include "choosing.h"

/* Methods in Python, by slot. */
enum {
    ADD, SUB, MUL, DIV, FLOORDIV, MOD, LSHIFT, RSHIFT, AND, OR, XOR, POW, MATMUL, DIVMOD, BINARIES,
    NEG = BINARIES, POS, ABS, INVERT, BOOL, INT, FLOAT, INDEX, LEN, ITER, GETITEM, SETITEM, DELITEM, LT, LE, EQ, NE, GT, GE, METHODS
};
static const char* const slot_names[METHODS] = {
    "add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift", "and", "or", "xor", "pow", "matmul", "divmod", "neg", "pos", "abs",
    "invert", "bool", "int", "float", "index", "len", "iter", "getitem", "setitem", "delitem", "lt", "le", "eq", "ne", "gt", "ge"};
static const char* slot_name(int k) { return slot_names[k]; }
static PyObject *slow_methods[METHODS], *slow_reflected[BINARIES], *slow_in_place[BINARIES];
static binaryfunc numpys[BINARIES], numpys_in_place[BINARIES];

static Loops binary_loops[BINARIES], unary_loops[METHODS], compare_loops[6], square_loops, root_loops, reciprocal_loops, round_loops, power_loops, conjugate_loops;
static Loops* power_kernels; /* of many elements; NULL where the core has none */

static PyObject* not_implemented(void) { return Py_NewRef(Py_NotImplemented); }

static PyObject* slow1(PyObject* method, PyObject* a) {
    if (PyErr_Occurred()) return NULL;
    if (method == NULL) return PyErr_Format(PyExc_TypeError, "%s does not have this", Py_TYPE(a)->tp_name);
    if (!SETTLED) return NULL;
    return PyObject_CallOneArg(method, a);
}

static PyObject* slow2(PyObject* method, PyObject* a, PyObject* b) {
    PyObject* args[2] = {a, b};
    if (!SETTLED) return NULL;
    return method == NULL ? not_implemented() : PyObject_Vectorcall(method, args, 2, NULL);
}

/* Numbers that NumPy takes as they are, and lazynp, too. */
static inline int is_number(PyObject* x) {
    PyTypeObject* type = Py_TYPE(x);
    if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyDoubleArrType_Type || type == &PyLongArrType_Type) return 1;
    if (type == &PyBool_Type || type == &PyComplex_Type) return 1;
    return is_number_class(type) || type == &PyFloatArrType_Type || type == &PyBoolArrType_Type || type == &PyIntArrType_Type || type == &PyCDoubleArrType_Type ||
           type == &PyCFloatArrType_Type || type == &PyHalfArrType_Type || type == &PyByteArrType_Type || type == &PyShortArrType_Type ||
           type == &PyLongLongArrType_Type || type == &PyUByteArrType_Type || type == &PyUShortArrType_Type || type == &PyUIntArrType_Type ||
           type == &PyULongArrType_Type || type == &PyULongLongArrType_Type;
}

/* Whether the result of broadcasting is a small array as well, or NumPy's to refuse. */
static int fits_broadcast(PyArrayObject* x, PyArrayObject* y) {
    int nx = PyArray_NDIM(x), ny = PyArray_NDIM(y);
    npy_intp size = 1;
    if (!nx || !ny) return 1;
    for (int k = 1; k <= nx || k <= ny; k++) {
        npy_intp p = k <= nx ? PyArray_DIM(x, nx - k) : 1, q = k <= ny ? PyArray_DIM(y, ny - k) : 1;
        if (p != q && p != 1 && q != 1) return 1;
        size *= p == 1 ? q : p;
    }
    return size <= limit_now();
}

static inline int fits(PyArrayObject* x, PyArrayObject* y) { return PyArray_SAMESHAPE(x, y) || fits_broadcast(x, y); }

static int fits_product(PyArrayObject* x, PyArrayObject* y) {
    int nx = PyArray_NDIM(x), ny = PyArray_NDIM(y);
    npy_intp size = (nx < 2 ? 1 : PyArray_DIM(x, nx - 2)) * (ny < 2 ? 1 : PyArray_DIM(y, ny - 1));
    for (int k = 3; k <= nx || k <= ny; k++) { /* of stacks of matrices */
        npy_intp p = k <= nx ? PyArray_DIM(x, nx - k) : 1, q = k <= ny ? PyArray_DIM(y, ny - k) : 1;
        if (size > limit_now()) break;
        size *= p == 1 ? q : p; /* where they do not fit NumPy says so */
    }
    return nx && ny && size <= limit_now();
}

/* An item of what NumPy returned, which keeps it only where another reference to it exists: nothing but the item's cell shall hold its memory. */
static inline PyObject* item_of(PyObject* found, PyObject** item) {
    PyObject* taken = *item;
    if (Py_REFCNT(found) > 1) return Py_NewRef(taken);
    *item = Py_NewRef(Py_None);
    return taken;
}

/* NumPy's result as ours: of arrays without axes it is a number. */
static PyObject* wrapped(PyObject* found) {
    PyObject* made;
    if (found == NULL || PyArray_CheckExact(found)) return cell_of(found, NULL);
    if (PyTuple_CheckExact(found)) { /* of `divmod` */
        PyObject *first = wrapped(item_of(found, &PyTuple_GET_ITEM(found, 0))), *second = wrapped(item_of(found, &PyTuple_GET_ITEM(found, 1)));
        Py_DECREF(found);
        made = first && second ? PyTuple_Pack(2, first, second) : NULL;
        Py_XDECREF(first), Py_XDECREF(second);
        return made;
    }
    return number_of(found);
}

static PyObject* numpys_power(PyObject* x, PyObject* y) { return PyArray_Type.tp_as_number->nb_power(x, y, Py_None); }
static PyObject* numpys_power_in_place(PyObject* x, PyObject* y) {
    return PyArray_Type.tp_as_number->nb_inplace_power(x, y, Py_None);
}

static inline int is_whole(PyObject* x, long number) {
    int overflow;
    return PyLong_CheckExact(x) && PyLong_AsLongAndOverflow(x, &overflow) == number && !overflow;
}
static inline int is_two(PyObject* x) { return is_whole(x, 2); }

/* Whether `x ** y` is what the ufunc computes of floats: -1, 0, 0.5, 1 and 2 NumPy takes as other functions. */
static inline int is_power_number(PyObject* y) {
    double number;
    if (!PyFloat_CheckExact(y) && !PyLong_CheckExact(y)) return 0;
    number = PyFloat_AsDouble(y);
    if (number == -1 && PyErr_Occurred()) PyErr_Clear();
    return number != -1 && number != 0 && number != 0.5 && number != 1 && number != 2;
}
static inline int is_power(PyArrayObject* x, PyObject* y, int arrays) {
    if (arrays == 2 || (PyArray_TYPE(x) != NPY_DOUBLE && PyArray_TYPE(x) != NPY_FLOAT)) return 0;
    if (arrays == 3) return 1;
    return is_power_number(y);
}

/* What a large array that exists, or a part of one, shows (borrowed), for what only reads it; NULL for all others. */
static PyArrayObject* read_memory(PyObject* a) {
    PyArrayObject* memory;
    Cell* root;
    int own;
    return Py_TYPE(a) == array_type ? large_memory(a, &root, &memory, &own) : NULL;
}

/* The same for elements, which are read wherever they lie; of an array without axes it is a result, which is recorded where the limit is 0. */
static inline PyArrayObject* stored(PyObject* a) {
    PyArrayObject *memory, *x;
    Cell* root;
    int own;
    x = stored_memory(a, &root, &memory, &own);
    return x && (PyArray_NDIM(x) || limit_now()) ? x : NULL;
}

/* Whether operands are worth a chain, or part of one. */
static inline int may_chain(PyObject* a, PyObject* b, PyArrayObject* x, PyArrayObject* y) {
    npy_intp n = x ? PyArray_SIZE(x) : 0, m = y ? PyArray_SIZE(y) : 0;
    if (n >= chain_sizes.from || m >= chain_sizes.from || (chain_sizes.from == 1 && ((x && n == 0) || (y && m == 0)))) return 1;
    if (waiting_count && (IS_CHAIN(a) || (b && IS_CHAIN(b)))) return 1;
    return n * m >= chain_sizes.from && !PyArray_SAMESHAPE(x, y);
}

/* An operand that is no longer part of a chain; -1 where NumPy raises. */
static inline int settle_operand(PyObject* a) { return IS_CHAIN(a) ? chain_settle(a) : 0; }

/* The same of a key, and of what it is a tuple of. */
static int settle_key(PyObject* key) {
    if (!PyTuple_CheckExact(key)) return settle_operand(key);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key); k++)
        if (settle_operand(PyTuple_GET_ITEM(key, k)) < 0) return -1;
    return 0;
}

/* The memory of a value that is asked for; NULL, perhaps with an exception, of all that is no small array in memory. */
static inline PyArrayObject* settled_memory(PyObject* a) { return settle_operand(a) < 0 ? NULL : memory_of(a); }

/* A list, tuple or range of numbers or of existing arrays, or an array of NumPy's, as an array in memory: NumPy takes one for the other. NULL for
   all else, without an exception: the method in Python sees to it. */
static PyObject* listed(PyObject* function, PyObject* x, PyObject* dtype);
#define IS_LIST(X) (PyTuple_CheckExact(X) || PyList_CheckExact(X) || PyRange_Check(X))
#define IS_LIKE(X) (IS_LIST(X) || PyArray_CheckExact(X))

/* Whether an operand is an intermediate result, which goes with the operation: the interpreter's stack alone holds it. */
static inline int is_passing(PyObject* x) {
#if PY_VERSION_HEX >= 0x030E0000 /* locals are lent to the stack */
    return PyUnstable_Object_IsUniqueReferencedTemporary(x);
#else
    return Py_REFCNT(x) == 1;
#endif
}

/* The product of an expression of large arrays and an array that exists; NULL, perhaps without an exception, where it is recorded. */
static PyObject* passing_method;
static PyObject* product_in_passing(PyObject* a, PyObject* b) {
    PyObject* found;
    if (Py_TYPE(a) != array_type || ((Cell*)a)->base != Py_None || limit_now() == 0 || !is_passing(a)) return NULL;
    found = PyObject_CallFunctionObjArgs(passing_method, a, b, NULL);
    if (found == Py_NotImplemented) Py_CLEAR(found);
    return found;
}

static PyObject* binary_answer(int op, PyObject* a, PyObject* b);
static PyObject* operator_recorded(int op, PyObject* a, PyObject* b);
static PyObject* product_recorded(PyObject* a, PyObject* b);
static PyObject* product_number(PyObject* a, PyObject* b);

/* The type of a small array, whether it waits or not, and its size; -1 of all else. */
static inline int small_type(PyObject* x, npy_intp* size) {
    PyArrayObject* seen;
    if (WAITS(x)) return CHAIN_OF(x) ? (*size = CHAIN_OF(x)->size, step_type(CHAIN_OF(x), STEP_OF(x))) : -1;
    return (seen = operand_seen(x)) ? (*size = PyArray_SIZE(seen), PyArray_TYPE(seen)) : -1;
}

#endif
