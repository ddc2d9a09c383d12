/* What the interpreter asks of an array: operators, subscripts, length, truth.

   In: operands.  Out: NumPy's answer at once where they are at hand; everything else goes to the method that the class of arrays defines
   in Python.  Promise: nothing but exact types is looked at, and what NumPy computes with is held while it runs. */

#ifndef LAZYNP_SLOTS_H
#define LAZYNP_SLOTS_H

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

/* Whether the result of broadcasting is at hand as well, or NumPy's to refuse. */
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

/* An item of what NumPy returned, which keeps it only where somebody else has it, too: nobody but the item's cell shall hold its memory. */
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

/* The same for elements, which are read wherever they lie; of an array without axes it is a result, which is recorded where nothing is at hand. */
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

/* The memory of a value that is asked for; NULL, perhaps with an exception, of all that is not at hand. */
static inline PyArrayObject* settled_memory(PyObject* a) { return settle_operand(a) < 0 ? NULL : memory_of(a); }

/* A list, tuple or range of numbers, or of what is at hand, or an array of NumPy's, as an array at hand: NumPy takes one for the other. NULL for all
   else, without an exception: the method in Python sees to it. */
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

/* The loops of an array to the power of a number or of another array, as a step; NULL where there are none. */
static Loops* power_steps(PyObject* a, PyObject* b) {
    npy_intp size, other;
    int type;
    if (Py_TYPE(a) != array_type) return NULL;
    if (is_two(b)) return &square_loops;
    if ((type = small_type(a, &size)) < 0) return NULL;
    if (Py_TYPE(b) == array_type) {
        if ((type != NPY_DOUBLE && type != NPY_FLOAT) || small_type(b, &other) != type) return NULL;
        return size > costly_above() || other > costly_above() ? power_kernels : &power_loops;
    }
    if (PyTypeNum_ISINTEGER(type)) return is_natural(b) && size <= costly_above() ? &power_loops : NULL; /* which cannot fail */
    if (type != NPY_DOUBLE && type != NPY_FLOAT) return NULL;
    if (PyFloat_CheckExact(b) && PyFloat_AS_DOUBLE(b) == 0.5) return &root_loops;
    if (is_whole(b, -1)) return &reciprocal_loops;
    if (!is_power_number(b)) return NULL;
    return size > costly_above() ? power_kernels : &power_loops;
}

static PyObject* binary(int op, PyObject* a, PyObject* b) {
    PyArrayObject *x, *y;
    Loops* powers;
    if (waiting_count == 0 && at_the_call()) return binary_answer(op, a, b);
    powers = op == POW ? power_steps(a, b) : NULL;
    if (powers || (op < POW && binary_loops[op].ufunc)) {
        PyObject* found = powers ? step_next(powers, a, powers->nin == 1 ? NULL : b) : step_next(&binary_loops[op], a, b);
        if (found) return found;
    }
    x = operand_seen(a), y = operand_seen(b);
    if (op != MATMUL && (may_chain(a, b, x, y) || (x == NULL && large_real(a, b)) || (y == NULL && large_real(b, a)))) {
        PyObject* found = NULL;
        if (op < POW && binary_loops[op].ufunc) found = chain_step(&binary_loops[op], a, b);
        else if (powers) found = chain_step(powers, a, powers->nin == 1 ? NULL : b);
        if (found == NULL && !PyErr_Occurred()) found = operator_recorded(op, a, b);
        if (found) return found;
        if (PyErr_Occurred() || settle_operand(a) < 0 || settle_operand(b) < 0) return NULL;
    }
    if (op == MATMUL) {
        PyObject* found = product_recorded(a, b);
        if (found == NULL && !PyErr_Occurred()) found = product_number(a, b);
        if (found || PyErr_Occurred()) return found;
    }
    return binary_answer(op, a, b);
}

/* The memory of an array's cell as macros read it, which need not be one of NumPy's arrays (borrowed); NULL where there is none. */
static inline PyArrayObject* raw_memory(PyObject* x) {
    PyObject* base = Py_TYPE(x) == array_type ? ((Cell*)x)->base : NULL;
    return base && (IS_RAW(base) || Py_TYPE(base) == &PyArray_Type) ? (PyArrayObject*)base : NULL;
}

/* The product of two vectors, a number; NULL, perhaps without an exception, where it is to be looked at closer. */
static PyObject* product_number(PyObject* a, PyObject* b) {
    PyArrayObject *x, *y;
    PyObject* found = NULL;
    if (Py_TYPE(a) != array_type || Py_TYPE(b) != array_type || settle_operand(a) < 0 || settle_operand(b) < 0) return NULL;
    if ((x = raw_memory(a)) == NULL || (y = raw_memory(b)) == NULL || PyArray_NDIM(x) != 1 || PyArray_NDIM(y) != 1) return NULL;
    Py_INCREF(x), Py_INCREF(y);
    found = direct_product(x, y);
    Py_DECREF(x), Py_DECREF(y);
    return wrapped(found);
}

/* Whether an array, or what it is a view of, waits in a graph. */
static inline int waits_in_graph(PyObject* x) {
    if (Py_TYPE(x) == array_type && ((Cell*)x)->base && Py_TYPE(((Cell*)x)->base) == array_type) x = ((Cell*)x)->base;
    return Py_TYPE(x) == array_type && ((Cell*)x)->base == Py_None && member_of(&member_buffer, ((Cell*)x)->node) == Py_None;
}

/* Have small operands that wait in graphs computed, for a function that rounds (`calls.at_hand_first`); whether there were any, -1 with an exception. */
static PyObject* first_method;
static int operands_first(PyObject* const* args, Py_ssize_t n, int costly) {
    PyObject *given, *done;
    Py_ssize_t k = 0;
    while (k < n && !waits_in_graph(args[k])) k++;
    if (k == n || first_method == NULL) return 0;
    if ((given = PyTuple_New(n)) == NULL) return -1;
    for (k = 0; k < n; k++) PyTuple_SET_ITEM(given, k, Py_NewRef(args[k]));
    done = PyObject_CallFunctionObjArgs(first_method, given, costly ? Py_True : Py_False, NULL);
    Py_DECREF(given);
    Py_XDECREF(done);
    return done ? done == Py_True : -1;
}

/* What an operator gives where it is computed now. */
static PyObject* binary_answer(int op, PyObject* a, PyObject* b) {
    PyArrayObject *x = memory_of(a), *y = memory_of(b);
    if ((op == MATMUL || op >= POW) && waiting_count) { /* no step, or not with these operands */
        if (settle_operand(a) < 0 || settle_operand(b) < 0) return NULL;
        x = memory_of(a), y = memory_of(b);
    }
    if (op == MATMUL) { /* a library's, which nothing is fused with: where the result is small it is computed at once */
        if (x == NULL) x = read_memory(a);
        if (y == NULL) y = read_memory(b);
        if (x == NULL && y) {
            PyObject* found = product_in_passing(a, b);
            if (found || PyErr_Occurred()) return found;
            y = memory_of(b) ? memory_of(b) : read_memory(b); /* it has run code */
        }
        if (x && y == NULL && PyArray_CheckExact(b) && native_dtype((PyArrayObject*)b)) y = (PyArrayObject*)b; /* as it lies: the sums follow from that */
        if (y && x == NULL && PyArray_CheckExact(a) && native_dtype((PyArrayObject*)a)) x = (PyArrayObject*)a;
    }
    PyObject *p = x ? (PyObject*)x : a, *q = y ? (PyObject*)y : b, *found = NULL;
    int arrays = (x != NULL) | (y != NULL) << 1;
    if (op == POW && arrays && !(arrays == 1 && is_two(b)) && PyArray_SIZE(x ? x : y) > costly_above()) arrays = 0; /* the kernels' bits */
    if (arrays == 3 ? op == MATMUL ? fits_product(x, y) : fits(x, y) : op != MATMUL && arrays && is_number(arrays == 1 ? b : a)) {
        Py_INCREF(p), Py_INCREF(q);
        if (op == MATMUL) found = direct_product(x, y);
        else if (op < BINARIES && binary_loops[op].ufunc) found = direct2(&binary_loops[op], p, q, arrays);
        else if (op == POW && arrays == 1 && PyArray_ISFLOAT(x) && is_two(b)) found = direct1(&square_loops, x);
        else if (op == POW && is_power(x, q, arrays)) found = direct2(&power_loops, p, q, arrays);
        if (found == NULL && !PyErr_Occurred()) {
            PyObject* before = pool_begin(((x ? PyArray_SIZE(x) : 0) + (y ? PyArray_SIZE(y) : 0)) * 8);
            p = numpys_taken(p), q = numpys_taken(q);
            found = p && q ? numpys[op](p, q) : NULL;
            pool_end(before);
        }
        Py_XDECREF(p), Py_XDECREF(q);
        return wrapped(found);
    }
    if (x ? IS_LIKE(b) : y && IS_LIKE(a)) {
        PyObject* made = listed(NULL, x ? b : a, NULL);
        if (made) {
            found = x ? binary(op, a, made) : binary(op, made, b);
            Py_DECREF(made);
            return found;
        }
    }
    if (op == POW && (Py_TYPE(b) == array_type || is_power_number(b))) {
        PyObject* both[2] = {a, b};
        int first = operands_first(both, 2, 1);
        if (first) return first < 0 ? NULL : binary(op, a, b);
    }
    return Py_TYPE(a) == array_type ? slow2(slow_methods[op], a, b) : slow2(slow_reflected[op], b, a);
}

/* What is left of an operand where the first elements of its first axis are done (a new reference). */
static PyObject* rest_of(PyObject* x, npy_intp done) {
    return PyArray_CheckExact(x) ? PySequence_GetSlice(x, done, PyArray_DIM((PyArrayObject*)x, 0)) : Py_NewRef(x);
}

/* `to op= b` of large rows and a number or an array of as many; 1 when done, 0 where it is NumPy's to do, -1. */
static int rows_in_place(int op, PyObject* x, PyObject* b) {
    PyArrayObject* to = (PyArrayObject*)x;
    PyObject *rest, *other, *found = NULL;
    npy_intp done = binary_loops[op].ufunc && PyArray_CheckExact(x) ? direct_rows_into(&binary_loops[op], to, b) : 0;
    if (done == 0) return PyErr_Occurred() ? -1 : 0;
    if (done == PyArray_DIM(to, 0)) return 1;
    rest = rest_of(x, done), other = rest ? rest_of(b, done) : NULL; /* an error of NumPy's, or a piece that is too short */
    if (other) found = numpys_in_place[op](rest, other);
    done = found ? 1 : -1;
    Py_XDECREF(rest), Py_XDECREF(other), Py_XDECREF(found);
    return (int)done;
}

/* The same of a large part of an array that nobody else sees, and of an operand that exists: there is nothing that a kernel would do with it. */
static int large_in_place(int op, PyObject* a, PyObject* b) {
    PyArrayObject *to, *memory, *y = NULL;
    Cell *root, *written;
    int own, done;
    if (!is_part(a) || ((Cell*)a)->readonly != Py_False || op == POW) return 0;
    if (!is_number(b) && (y = memory_of(b)) == NULL && (y = read_memory(b)) == NULL) return 0;
    if ((to = large_memory(a, &root, &memory, &own)) == NULL || !own) return 0;
    if (y) b = (PyObject*)y;
    PyArray_ENABLEFLAGS(to, NPY_ARRAY_WRITEABLE);
    Py_INCREF(to), Py_INCREF(b);
    written = writing_begin(a);
    done = rows_in_place(op, (PyObject*)to, b);
    writing_end(written);
    Py_DECREF(to), Py_DECREF(b);
    return done;
}

/* How many references tapes have to an array. */
static Py_ssize_t tapes_hold(PyArrayObject* x) {
    Py_ssize_t count = 0;
    for (const Chain* self = waiting.after; self != &waiting; self = self->after) {
        for (int k = 0; k < self->arrays; k++) count += self->array[k] == x;
        count += (self->place == x) + (self->to == x);
    }
    return count;
}

/* Whether nobody but the cell, and tapes, sees the memory of an array, so that a write is not seen either: there are no views, exports or lenders of it. */
static int is_alone(PyObject* a) {
    Cell* self = (Cell*)a;
    PyArrayObject* memory = (PyArrayObject*)self->base;
    if (Py_TYPE(a) != array_type || memory == NULL || self->readonly != Py_False || self->view != Py_None) return 0;
    if (WAITS(a)) return CHAIN_OF(a) != NULL && CHAIN_OF(a)->closed != PUT && self->waiting_views == 0;
    if (IS_RAW(memory)) return ((Raw*)memory)->fields.base == NULL && ((Raw*)memory)->views == 0;
    return PyArray_CheckExact(memory) && is_writable(memory) && (Py_REFCNT(memory) == 1 || Py_REFCNT(memory) <= 1 + tapes_hold(memory)) && is_own(self);
}

/* What a large array holds that is a value, which is exchanged and never written (borrowed): its views look for the new one.  The new one may lie where it does; NULL of all others. */
static PyArrayObject* large_value(PyObject* a, int now) {
    Cell* self = (Cell*)a;
    PyArrayObject* x;
    if (Py_TYPE(a) != array_type || self->base != Py_None || self->readonly != Py_False || self->lent == LENT_ADDRESS || (self->view && self->view != Py_None) || self->readers || self->waiting_views) return NULL;
    x = large_shown(a, now);
    return x && PyArray_CHKFLAGS(x, NPY_ARRAY_OWNDATA) && PyArray_BASE(x) == NULL && FIELDS(x)->weakreflist == NULL && is_writable(x) ? x : NULL;
}

/* Let a cell have the value of a step that `made` has until now; what reads its old value keeps it, in `old`. */
static void cell_rebind(Cell* cell, Cell* made, Cell* old) {
    Chain *next = CHAIN_OF(made), *before = WAITS(cell) ? CHAIN_OF(cell) : NULL, *free = NULL;
    PyObject* node = cell->base == Py_None ? cell->node : NULL; /* of a large array */
    PyArrayObject* memory = before || node ? NULL : (PyArrayObject*)cell->base;
    int step = STEP_OF(made), at = STEP_OF(cell), kept = 0;
    if (before) {
        kept = readers_follow(cell, old);
        before->at[at].cell = kept ? old : NULL;
        if (kept) old->before = (Cell*)before, old->offset = at;
        else if (--before->cells == 0 && before->users == 0) free = before;
    } else if (node) {
        Py_SETREF(cell->base, Py_NewRef((PyObject*)&waiting_value)); /* from None, of which no code is run */
        cell->node = Py_NewRef(Py_None), cell->lent = 0;
        if (cell->view == NULL) cell->view = Py_NewRef(Py_None);
    } else {
        readers_take(cell, memory);
        if (Py_REFCNT(memory) > 2) orphaned_bytes += PyArray_NBYTES(memory); /* another tape reads the old value */
        cell->base = Py_NewRef((PyObject*)&waiting_value);
    }
    next->at[step].cell = cell, cell->before = (Cell*)next, cell->offset = step;
    made->before = NULL, made->offset = 0;
    if (free) chain_free(free); /* from here on anything may run */
    Py_XDECREF(memory), Py_XDECREF(node);
}

/* Let `a` have the value of a step, where that has its dtype and shape: nobody sees that the result lies elsewhere.  NULL, perhaps without an exception, where it is to be written now. */
static PyObject* into_recorded(Loops* loops, PyObject* const* operands, PyObject* a) {
    Cell *old = NULL, *made;
    Chain* next;
    PyArrayObject *x, *large;
    PyObject* found;
    int type, ndim, same, now;
    npy_intp dims[AXES];
    if (Py_TYPE(a) != array_type) return NULL;
    now = (WAITS(a) ? CHAIN_OF(a) && CHAIN_OF(a)->large : is_large(a)) && any_large_lent(operands, loops->nin); /* of few elements nothing large is added to */
    if (now && ((IS_CHAIN(a) && settle_cell(a) < 0) || (drafted(a) == a && draft_ready(a) < 0))) return NULL;
    large = large_value(a, now);
    if (!(large || is_alone(a))) return NULL;
    x = WAITS(a) ? NULL : large ? large : (PyArrayObject*)((Cell*)a)->base;
    if (x ? PyArray_NDIM(x) > AXES || !PyArray_IS_C_CONTIGUOUS(x) : lies_otherwise(CHAIN_OF(a))) return NULL; /* the result has the order of C */
    type = x ? PyArray_TYPE(x) : step_type(CHAIN_OF(a), STEP_OF(a)), ndim = x ? PyArray_NDIM(x) : CHAIN_OF(a)->ndim;
    if (ndim == 0) return NULL;
    if (loops->nin < 3 && a == operands[0] && large == NULL && (found = step_into(loops, a, operands[1], (Cell*)a))) return found;
    memcpy(dims, x ? PyArray_DIMS(x) : CHAIN_OF(a)->dims, (size_t)ndim * sizeof(npy_intp));
    if (x == NULL && (old = chain_cell()) == NULL) return NULL;
    made = loops->nin < 3 ? (Cell*)step_next(loops, operands[0], operands[1]) : NULL;
    if (made == NULL) made = (Cell*)step_made(loops, operands, &now);
    next = made ? CHAIN_OF(made) : NULL;
    same = next && !next->strided && next->at[STEP_OF(made)].step.out == type && next->ndim == ndim && !memcmp(next->dims, dims, (size_t)ndim * sizeof(npy_intp));
    if (same && now && settle_cell((PyObject*)made) < 0) same = 0; /* what fails leaves the old value */
    if (same && now) {
        if (!WAITS(made) && made->base == Py_None && large && large_value(a, now) == large) {
            Py_SETREF(((Cell*)a)->node, Py_NewRef(made->node));
            ((Cell*)a)->lent = 0;
            Py_INCREF(a);
        } else {
            a = NULL;
        }
    } else if (same && (large ? large_value(a, now) == large : is_alone(a) && (x ? (PyObject*)x == ((Cell*)a)->base : WAITS(a)))) { /* as before: recording may have had code run */
        cell_rebind((Cell*)a, made, old);
        Py_INCREF(a);
    } else {
        a = NULL;
    }
    Py_XDECREF(made), Py_XDECREF(old);
    return a;
}

/* `a op= b` as a step, likewise. */
static PyObject* in_place_recorded(int op, PyObject* a, PyObject* b) {
    if (op >= POW || binary_loops[op].ufunc == NULL || Py_TYPE(a) != array_type) return NULL;
    if (drafted(a) == a && draft_ready(a) < 0) return NULL;
    if (Py_REFCNT(a) == 1 && !WAITS(a) && !IS_CHAIN(b)) return NULL; /* no name has it: of `x[positions] += b`, which writes it next */
    return into_recorded(&binary_loops[op], (PyObject*[]){a, b, NULL}, a);
}

/* `a[mask] = number` of what waits is a choice between them, with what else waits: whether it was recorded. */
static int masked_into(PyObject* a, PyObject* key, PyObject* value) {
    const Chain* chain = IS_CHAIN(a) ? CHAIN_OF(a) : NULL;
    PyArrayObject* mask = NULL;
    PyObject* made;
    int ndim;
    const npy_intp* dims;
    if (chain == NULL || Py_TYPE(key) != array_type || !is_number(value)) return 0;
    if (IS_CHAIN(key) ? CHAIN_OF(key) == NULL || step_type(CHAIN_OF(key), STEP_OF(key)) != NPY_BOOL : (mask = plain_of(key)) == NULL || PyArray_TYPE(mask) != NPY_BOOL) return 0;
    ndim = mask ? PyArray_NDIM(mask) : CHAIN_OF(key)->ndim, dims = mask ? PyArray_DIMS(mask) : CHAIN_OF(key)->dims;
    if (ndim != chain->ndim || !same_lengths(dims, chain->dims, ndim)) return 0;
    made = into_recorded(&where_loops, (PyObject*[]){key, value, a}, a);
    Py_XDECREF(made);
    return made != NULL;
}

/* Of a step and its copy on the same tape exchange the cells: the copy is computed only if `b`, whose value was copied, is kept. */
static void values_exchanged(Cell* a, Cell* b) {
    Chain* self = IS_CHAIN((PyObject*)a) ? CHAIN_OF(a) : NULL;
    int copy = STEP_OF(a), step = STEP_OF(b);
    if (self == NULL || !IS_CHAIN((PyObject*)b) || CHAIN_OF(b) != self || self->closed == ITEM || a->readers || b->readers || a->waiting_views || b->waiting_views) return;
    if (self->at[copy].step.loops != &cast_loops[self->at[copy].step.type] || self->at[copy].step.of[0].kind != OF_STEP || self->at[copy].step.of[0].number != step) return; /* code of a program's may have run */
    self->at[copy].cell = b, self->at[step].cell = a, a->offset = step, b->offset = copy;
}

/* `a[:] = b` and `a[...] = b` of what waits: a copy is a step, too.  0, perhaps with an exception, where it is to be written now. */
static int copied_into(PyObject* a, PyObject* key, PyObject* b) {
    PyObject* made;
    int type;
    if (!IS_CHAIN(b) || CHAIN_OF(b) == NULL || lies_otherwise(CHAIN_OF(b)) || a == b) return 0;
    if (key != Py_Ellipsis && !(PySlice_Check(key) && ((PySliceObject*)key)->start == Py_None && ((PySliceObject*)key)->stop == Py_None && ((PySliceObject*)key)->step == Py_None)) return 0;
    type = step_type(CHAIN_OF(b), STEP_OF(b));
    if (cast_loops[type].of[type].function == NULL) return 0;
    made = into_recorded(&cast_loops[type], (PyObject*[]){b, NULL, NULL}, a);
    if (made && is_passing(b)) values_exchanged((Cell*)a, (Cell*)b);
    Py_XDECREF(made);
    return made != NULL;
}

static PyObject* put_in_place(Loops* loops, PyObject* v, PyObject* b);
static int put_into(PyObject* a, PyObject* key, PyObject* value);
static PyObject* large_put_in_place(Loops* loops, PyObject* v, PyObject* b);
static int large_put_into(PyObject* a, PyObject* key, PyObject* value);
static PyObject* in_place(int op, PyObject* a, PyObject* b) {
    PyArrayObject *x, *y;
    PyObject *q, *found;
    Cell* written;
    int done;
    if ((waiting_count || !at_the_call()) && ((found = in_place_recorded(op, a, b)) || PyErr_Occurred())) return found;
    if (waiting_count && op < POW && binary_loops[op].ufunc && ((found = put_in_place(&binary_loops[op], a, b)) || PyErr_Occurred())) return found;
    if (first_left > 0 && op < POW && binary_loops[op].ufunc && is_large(a) && ((found = large_put_in_place(&binary_loops[op], a, b)) || PyErr_Occurred())) return found;
    if (!SETTLED) return NULL;
    x = plain_of(a), y = plain_of(b);
    if (x && (y || is_number(b)) && op < BINARIES && binary_loops[op].ufunc && direct_into_few(&binary_loops[op], x, y, b)) return Py_NewRef(a);
    y = memory_of(b), x = own_memory_of(a);
    q = y ? (PyObject*)y : b;
    if (x == NULL && is_large(a) && (done = large_in_place(op, a, b))) return done < 0 ? NULL : Py_NewRef(a);
    if (x == NULL && is_part(a) && op != MATMUL && (is_number(b) || y || read_memory(b)) && large_owned(a, size_of(((Cell*)a)->shown), 0)) return in_place(op, a, b);
    if (PyErr_Occurred()) return NULL;
    if (x == NULL || !(y || is_number(b)) || op == MATMUL) {
        if (x == NULL || !IS_LIKE(b) || (q = listed(NULL, b, NULL)) == NULL) return slow2(slow_in_place[op], a, b);
        found = in_place(op, a, q);
        Py_DECREF(q);
        return found;
    }
    Py_INCREF(x), Py_INCREF(q);
    written = writing_begin(a);
    done = binary_loops[op].ufunc && direct_into(&binary_loops[op], x, q);
    if (!done && !PyErr_Occurred() && (q = numpys_taken(q))) {
        found = numpys_in_place[op]((PyObject*)x, q);
        done = found != NULL;
        Py_XDECREF(found);
    }
    writing_end(written);
    Py_DECREF(x), Py_XDECREF(q);
    return done ? Py_NewRef(a) : NULL;
}

static inline PyObject* unary(int op, PyObject* a, unaryfunc numpys_own) {
    PyArrayObject* x;
    PyObject* found = unary_loops[op].ufunc ? step_next(&unary_loops[op], a, NULL) : NULL;
    if (found) return found;
    x = operand_seen(a);
    if (may_chain(a, NULL, x, NULL)) {
        if (unary_loops[op].ufunc) found = chain_step(&unary_loops[op], a, NULL);
        if (found || PyErr_Occurred()) return found;
        if (settle_operand(a) < 0) return NULL;
    }
    x = memory_of(a);
    if (x == NULL) return slow1(slow_methods[op], a);
    Py_INCREF(x);
    if (unary_loops[op].ufunc) found = direct1(&unary_loops[op], x);
    if (found == NULL && !PyErr_Occurred()) {
        PyObject* before = pool_begin(PyArray_SIZE(x) * 8);
        found = numpys_own((PyObject*)x);
        pool_end(before);
    }
    Py_DECREF(x);
    return wrapped(found);
}

static PyObject* compare(PyObject* a, PyObject* b, int op) {
    PyArrayObject *x, *y;
    PyObject *q, *found = step_next(&compare_loops[op], a, b);
    if (found) return found;
    x = operand_seen(a), y = operand_seen(b);
    if (may_chain(a, b, x, y)) {
        if ((found = chain_step(&compare_loops[op], a, b))) return found;
        if (PyErr_Occurred() || settle_operand(a) < 0 || settle_operand(b) < 0) return NULL;
    }
    x = memory_of(a), y = memory_of(b);
    q = y ? (PyObject*)y : b;
    if (x == NULL || !(y ? fits(x, y) : is_number(b))) {
        if (x == NULL || !IS_LIKE(b) || (q = listed(NULL, b, NULL)) == NULL) return slow2(slow_methods[LT + op], a, b);
        found = compare(a, q, op);
        Py_DECREF(q);
        return found;
    }
    Py_INCREF(x), Py_INCREF(q);
    found = direct2(&compare_loops[op], (PyObject*)x, q, y ? 3 : 1);
    if (found == NULL && !PyErr_Occurred() && (q = numpys_taken(q))) found = PyArray_Type.tp_richcompare((PyObject*)x, q, op);
    Py_DECREF(x), Py_XDECREF(q);
    return wrapped(found);
}

/* A number that is a result, compared with an array: where Python had the array compare itself, a warning would name the reverse. */
static PyObject* compared_from(PyObject* a, PyObject* b, int op) {
    static const char* const names[] = {"less", "less_equal", "equal", "not_equal", "greater", "greater_equal"};
    PyObject *found = step_next(&compare_loops[op], a, b), *module, *function, *name;
    PyArrayObject* y;
    if (found) return found;
    if (Py_TYPE(b) != array_type) Py_RETURN_NOTIMPLEMENTED; /* of a subclass, which has its own say */
    if (may_chain(b, NULL, operand_seen(b), NULL) && ((found = chain_step(&compare_loops[op], a, b)) || PyErr_Occurred())) return found;
    if (settle_operand(b) < 0) return NULL;
    if ((y = memory_of(b))) {
        Py_INCREF(y);
        found = direct2(&compare_loops[op], a, (PyObject*)y, 2);
        Py_DECREF(y);
        if (found || PyErr_Occurred()) return wrapped(found);
    }
    if ((name = PyUnicode_FromString("lazynp")) == NULL) return NULL;
    module = PyImport_GetModule(name);
    Py_DECREF(name);
    function = module ? PyObject_GetAttrString(module, names[op]) : NULL;
    found = function ? PyObject_CallFunctionObjArgs(function, a, b, NULL) : NULL;
    Py_XDECREF(module), Py_XDECREF(function);
    if (found == NULL && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
    return found;
}

/* Python takes `__add__` and `__iadd__` of a class for concatenation, too: what neither operand knows would come back as NotImplemented.  NumPy's refuses. */
static void refuse_concatenation(PyTypeObject* type) {
    type->tp_as_sequence->sq_concat = PyArray_Type.tp_as_sequence->sq_concat;
    type->tp_as_sequence->sq_inplace_concat = PyArray_Type.tp_as_sequence->sq_inplace_concat;
}

#define BINARY(NAME, OP) \
    static PyObject* slot_##NAME(PyObject* a, PyObject* b) { return binary(OP, a, b); } \
    static PyObject* slot_i##NAME(PyObject* a, PyObject* b) { return in_place(OP, a, b); }
BINARY(add, ADD)
BINARY(sub, SUB)
BINARY(mul, MUL)
BINARY(truediv, DIV)
BINARY(floordiv, FLOORDIV)
BINARY(mod, MOD)
BINARY(lshift, LSHIFT)
BINARY(rshift, RSHIFT)
BINARY(and, AND)
BINARY(or, OR)
BINARY(xor, XOR)
BINARY(matmul, MATMUL)
static PyObject* slot_divmod(PyObject* a, PyObject* b) { return binary(DIVMOD, a, b); }
static PyObject* slot_pow(PyObject* a, PyObject* b, PyObject* modulo) { return modulo == Py_None ? binary(POW, a, b) : not_implemented(); }
static PyObject* slot_ipow(PyObject* a, PyObject* b, PyObject* modulo) { return modulo == Py_None ? in_place(POW, a, b) : not_implemented(); }

static PyObject* slot_neg(PyObject* a) { return unary(NEG, a, PyArray_Type.tp_as_number->nb_negative); }
static PyObject* slot_pos(PyObject* a) { return unary(POS, a, PyArray_Type.tp_as_number->nb_positive); }
static PyObject* slot_abs(PyObject* a) { return unary(ABS, a, PyArray_Type.tp_as_number->nb_absolute); }
static PyObject* slot_invert(PyObject* a) { return unary(INVERT, a, PyArray_Type.tp_as_number->nb_invert); }

static inline PyObject* number(int op, PyObject* a, unaryfunc numpys_own) {
    PyArrayObject* x = settled_memory(a);
    PyObject* found;
    if (x == NULL) return slow1(slow_methods[op], a);
    Py_INCREF(x);
    found = numpys_own((PyObject*)x);
    Py_DECREF(x);
    return found;
}
static PyObject* slot_int(PyObject* a) { return number(INT, a, PyArray_Type.tp_as_number->nb_int); }
static PyObject* slot_float(PyObject* a) { return number(FLOAT, a, PyArray_Type.tp_as_number->nb_float); }
static PyObject* slot_index(PyObject* a) { return number(INDEX, a, PyArray_Type.tp_as_number->nb_index); }

static int slot_bool(PyObject* a) {
    PyArrayObject* x = settled_memory(a);
    PyObject* found;
    int truth;
    if (x) {
        Py_INCREF(x);
        truth = PyArray_Type.tp_as_number->nb_bool((PyObject*)x);
        Py_DECREF(x);
        return truth;
    }
    found = slow1(slow_methods[BOOL], a);
    if (found == NULL) return -1;
    truth = PyObject_IsTrue(found);
    Py_DECREF(found);
    return truth;
}

static Py_ssize_t slot_len(PyObject* a) {
    PyArrayObject* x = memory_of(a);
    PyObject* found;
    Py_ssize_t length;
    if (IS_CHAIN(a) && CHAIN_OF(a)) return (Py_ssize_t)CHAIN_OF(a)->dims[0];
    if (x == NULL && is_part(a)) x = ((Cell*)a)->shown; /* its shape is known, whatever it shows now */
    if (x) return PyArray_Type.tp_as_mapping->mp_length((PyObject*)x);
    found = slow1(slow_methods[LEN], a);
    if (found == NULL) return -1;
    length = PyNumber_AsSsize_t(found, PyExc_OverflowError);
    Py_DECREF(found);
    return length;
}

/* Subscripts ------------------------------------------------------------------------------------------------------------------- */

static inline int is_list_of_numbers(PyObject* key) {
    if (!PyList_CheckExact(key)) return 0;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(key); k++)
        if (!is_number(PyList_GET_ITEM(key, k))) return 0;
    return 1;
}

/* One part of a key as NumPy takes it (borrowed); NULL where that is for the method in Python to find out. */
static inline PyObject* key_part(PyObject* key) {
    PyTypeObject* type = Py_TYPE(key);
    if (type == &PyLong_Type || type == &PySlice_Type || key == Py_None || key == Py_Ellipsis) return key;
    if (type == array_type) return (PyObject*)memory_of(key);
    if (type == &PyArray_Type) return native_dtype((PyArrayObject*)key) ? key : NULL;
    return is_number(key) || is_list_of_numbers(key) ? key : NULL;
}

/* A key as NumPy takes it (a new reference); NULL without an exception as above. */
static inline PyObject* numpys_key(PyObject* key) {
    PyObject *part, *made;
    Py_ssize_t k, n;
    int same = 1;
    if (!PyTuple_CheckExact(key)) {
        part = key_part(key);
        return Py_XNewRef(part);
    }
    n = PyTuple_GET_SIZE(key);
    for (k = 0; k < n; k++) {
        part = key_part(PyTuple_GET_ITEM(key, k));
        if (part == NULL) return NULL;
        same &= part == PyTuple_GET_ITEM(key, k);
    }
    if (same) return Py_NewRef(key);
    made = PyTuple_New(n);
    if (made == NULL) return NULL;
    for (k = 0; k < n; k++) { /* once more: making the tuple may have run code, which may have written to a list */
        if ((part = key_part(PyTuple_GET_ITEM(key, k))) == NULL) {
            Py_DECREF(made);
            return NULL;
        }
        PyTuple_SET_ITEM(made, k, Py_NewRef(part));
    }
    return made;
}

/* Whether a key with index arrays selects few elements of `x`, whatever they are. */
static int selects_few(PyArrayObject* x, PyObject* key) {
    PyObject* one[1] = {key};
    PyObject** parts = PyTuple_CheckExact(key) ? &PyTuple_GET_ITEM(key, 0) : one;
    Py_ssize_t n = PyTuple_CheckExact(key) ? PyTuple_GET_SIZE(key) : 1;
    npy_intp size = 1, limit = limit_now();
    int axis = 0, ndim = PyArray_NDIM(x), arrays = 0;
    for (Py_ssize_t k = 0; k < n && axis < ndim; k++) {
        PyObject* part = parts[k];
        if (PyArray_CheckExact(part)) {
            PyArrayObject* index = (PyArrayObject*)part;
            size *= PyArray_SIZE(index);
            axis += PyArray_ISBOOL(index) ? PyArray_NDIM(index) : 1;
            arrays++;
        } else if (PyList_CheckExact(part)) {
            size *= PyList_GET_SIZE(part);
            axis++, arrays++;
        } else if (PySlice_Check(part)) {
            size *= PyArray_DIM(x, axis++);
        } else if (PyLong_CheckExact(part)) {
            axis++;
        } else if (part != Py_None) {
            return 0;
        }
        if (size > limit) return 0;
    }
    for (; axis < ndim; axis++) size *= PyArray_DIM(x, axis);
    return arrays && size <= limit;
}

/* `a[key]` with index arrays that select few elements of a large array; NULL as for `large_getitem`. */
static PyObject* large_gathered(PyObject* a, PyObject* key) {
    PyArrayObject *from, *memory;
    PyObject *plain, *found = NULL, *given;
    Cell* root;
    int own;
    if ((from = seen_memory(a, &root, &memory, &own)) == NULL) return NULL;
    Py_INCREF(from);
    plain = numpys_key(key);
    if (plain && selects_few(from, plain)) {
        found = PyArray_CheckExact(plain) ? chosen(from, plain, (PyArrayObject*)plain, 0) : NULL;
        if (found == NULL && !PyErr_Occurred()) found = PyArray_Type.tp_as_mapping->mp_subscript((PyObject*)from, plain);
    }
    Py_DECREF(from), Py_XDECREF(plain);
    if (found == NULL || !PyArray_CheckExact(found)) return number_of(found);
    if (PyArray_BASE((PyArrayObject*)found)) {
        Py_DECREF(found);
        return NULL;
    }
    if (PyArray_SIZE((PyArrayObject*)found) <= limit_now()) return cell_of(found, NULL);
    given = PyTuple_New(0);
    plain = given ? PyObject_CallFunctionObjArgs(result_method, found, given, NULL) : NULL;
    Py_XDECREF(given), Py_DECREF(found);
    return plain;
}

/* Where the element lies that plain integers name; NULL for all other keys, and where NumPy has to see to it. */
static inline char* element_at(PyArrayObject* x, PyObject* key) {
    int ndim = PyArray_NDIM(x);
    char* at = PyArray_BYTES(x);
    PyObject** parts = &key;
    if (PyTuple_CheckExact(key)) {
        if (PyTuple_GET_SIZE(key) != ndim) return NULL;
        parts = &PyTuple_GET_ITEM(key, 0);
    } else if (ndim != 1) {
        return NULL;
    }
    for (int k = 0; k < ndim; k++) {
        npy_intp index, length = PyArray_DIM(x, k);
        if (PyLong_CheckExact(parts[k])) {
            index = PyLong_AsSsize_t(parts[k]);
            if (index == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
        } else if (IS_A(parts[k], NPY_LONG)) {
            index = PyArrayScalar_VAL(parts[k], Long);
        } else {
            return NULL;
        }
        if (index < 0) index += length;
        if (index < 0 || index >= length) return NULL;
        at += index * PyArray_STRIDE(x, k);
    }
    return PyArray_ISBEHAVED_RO(x) ? at : NULL;
}

static inline PyObject* element(PyArrayObject* x, char* at) { return number_read(at, PyArray_DESCR(x), (PyObject*)x); }

/* The view of `a` that a place in its memory is; NULL, perhaps without an exception, where NumPy has to make it. */
static PyObject* viewed(PyObject* a, PyArrayObject* x, int ndim, const npy_intp* dims, const npy_intp* strides, char* data) {
    PyArrayObject* made;
    if (!IS_RAW(x) && ((Cell*)a)->lent) is_own((Cell*)a); /* as long as there is no view */
    PyObject *owner = owner_of(a), *found;
    made = raw_view(x, ndim, dims, strides, data);
    found = made ? cell_of((PyObject*)made, owner) : NULL;
    if (owner != a) part_view = found, part_parent = found ? a : NULL;
    return found;
}

static PyObject* getitem_waits(PyObject* a, PyObject* key);
static PyObject* transpose_waits(PyObject* a, PyObject* callable);
static PyObject* transpose_callable; /* what reads `T` */
static PyObject* slot_getitem(PyObject* a, PyObject* key) {
    PyArrayObject* x;
    PyObject *plain, *found, *base;
    char* at;
    Place place;
    if (IS_CHAIN(a) && ((found = getitem_waits(a, key)) || PyErr_Occurred())) return found;
    if (waiting_count && (settle_operand(a) < 0 || settle_key(key) < 0)) return NULL;
    if ((x = plain_of(a))) {
        if (may_choose(key)) {
            PyArrayObject* by = plain_of(key);
            if ((found = chosen(x, key, by, 1))) return cell_of(found, NULL);
            if (PyErr_Occurred()) return NULL;
        } else if ((at = element_at(x, key))) {
            return element(x, at);
        } else if (place_of(x, key, &place) && ((found = viewed(a, x, place.ndim, place.dims, place.strides, place.data)) || PyErr_Occurred())) {
            return found;
        }
    }
    x = is_large(a) ? stored(a) : memory_of(a);
    at = x ? element_at(x, key) : NULL;
    if (at) return element(x, at);
    if (is_large(a)) {
        found = is_basic(key) ? large_getitem(a, key) : large_gathered(a, key);
        return found || PyErr_Occurred() ? found : slow2(slow_methods[GETITEM], a, key);
    }
    if (x == NULL) return slow2(slow_methods[GETITEM], a, key);
    if (((Cell*)a)->lent) is_own((Cell*)a); /* as long as there is no view */
    Py_INCREF(x);
    if ((plain = numpys_key(key)) == NULL) {
        Py_DECREF(x);
        return PyErr_Occurred() ? NULL : slow2(slow_methods[GETITEM], a, key);
    }
    found = PyArray_CheckExact(plain) ? chosen(x, plain, (PyArrayObject*)plain, 0) : NULL;
    if (found == NULL && !PyErr_Occurred()) found = subscript(x, plain);
    Py_DECREF(plain);
    if (found && PyArray_CheckExact(found)) {
        base = PyArray_BASE((PyArrayObject*)found);
        if (base && (base == (PyObject*)x || base == PyArray_BASE(x))) found = cell_of(found, owner_of(a));
        else if (PyArray_SIZE((PyArrayObject*)found) <= PyArray_SIZE(x) || PyArray_SIZE((PyArrayObject*)found) <= limit_now()) found = cell_of(found, base);
        else Py_SETREF(found, slow2(slow_methods[GETITEM], a, key));
    }
    Py_DECREF(x);
    return number_of(found);
}

/* Whether `a[key]` is what `value`, a part of the same array, shows: the end of `a[key] += ...`, which has written there already. */
static int is_put_back(PyObject* a, PyObject* key, PyObject* value) {
    PyArrayObject *from, *memory, *shown;
    PyObject* found;
    Cell* root;
    int own, same;
    if (!is_part(value) || ((Cell*)a)->readonly != Py_False || !is_basic(key)) return 0;
    if ((from = large_memory(a, &root, &memory, &own)) == NULL || ((Cell*)value)->base != (PyObject*)root) return 0;
    if ((shown = part_shown((Cell*)value, &own)) == NULL) return 0;
    Py_INCREF(from), Py_INCREF(shown);
    found = subscript(from, key);
    if (found == NULL) PyErr_Clear(); /* Python says what is wrong */
    same = found && PyArray_CheckExact(found) && same_place((PyArrayObject*)found, shown);
    Py_XDECREF(found), Py_DECREF(from), Py_DECREF(shown);
    return same;
}

/* `x[key] = value` of integers and slices, or of positions or truth values, of a number or of an array in memory: whether it was written.
   No code of a program's runs. */
static int written_plainly(PyArrayObject* x, PyObject* key, PyObject* value) {
    PyArrayObject* y = plain_of(value);
    Value number;
    char* at;
    if (y == NULL && !is_number(value)) return 0;
    if (may_choose(key)) return chosen_written(x, key, plain_of(key), value, y);
    if (y || !is_writable(x) || (at = element_at(x, key)) == NULL || !value_of(value, PyArray_TYPE(x), &number)) return assigned(x, key, value, y, 0);
    memcpy(at, &number, (size_t)PyArray_ITEMSIZE(x));
    return 1;
}

/* Whether nobody but the cell has the memory, nor waits for its value: then nothing that waits reads it. */
static inline int is_unread(const Cell* a, PyArrayObject* x) {
    if (Py_REFCNT(x) != 1 || a->readers || a->view != Py_None) return 0;
    return IS_RAW(x) ? is_bare(x) : Py_TYPE(x) == &PyArray_Type && PyArray_CHKFLAGS(x, NPY_ARRAY_OWNDATA);
}

/* The same of an array while something waits, of which only what reads the memory is computed; 0, perhaps with an exception, where all of it has to be. */
static int written_beside(PyObject* a, PyObject* key, PyObject* value) {
    PyArrayObject* x;
    int done;
    if (faded_count || settle_operand(a) < 0 || settle_key(key) < 0 || settle_operand(value) < 0) return 0;
    if ((x = plain_of(a)) == NULL || (plain_of(value) == NULL && !is_number(value))) return 0;
    if (is_unread((Cell*)a, x)) return written_plainly(x, key, value);
    Py_INCREF(x); /* handlers of warnings may run, and have others in the place of these */
    done = readers_settle(x) == 0 && !IS_CHAIN(a) && !IS_CHAIN(key) && !IS_CHAIN(value) && plain_of(a) == x && written_plainly(x, key, value);
    Py_DECREF(x);
    return done;
}

static int slot_setitem(PyObject* a, PyObject* key, PyObject* value) {
    PyArrayObject *x, *y;
    PyObject *plain = NULL, *found;
    int failed, tried, lent = 0;
    if (waiting_count && value && (copied_into(a, key, value) || (!PyErr_Occurred() && masked_into(a, key, value)) || (!PyErr_Occurred() && put_into(a, key, value)) || (!PyErr_Occurred() && large_put_into(a, key, value)) || (!PyErr_Occurred() && written_beside(a, key, value)))) return 0;
    if (PyErr_Occurred() || !SETTLED) return -1;
    if (value == NULL) {
        found = slow2(slow_methods[DELITEM], a, key);
        Py_XDECREF(found);
        return found ? 0 : -1;
    }
    if ((x = plain_of(a)) && written_plainly(x, key, value)) return 0;
    tried = x != NULL && (is_number(value) || plain_of(value)); /* to no avail */
    if ((y = memory_of(value)) == NULL) y = foreign_of(value);
    if (y == NULL && is_number(value)) {
        Value number;
        char* at;
        Cell* root;
        int own = 1;
        x = is_large(a) && ((Cell*)a)->readonly == Py_False ? large_memory(a, &root, &y, &own) : NULL;
        if (x && own && (at = element_at(x, key)) && value_of(value, PyArray_TYPE(x), &number)) {
            memcpy(at, &number, (size_t)PyArray_ITEMSIZE(x));
            return 0;
        }
        y = NULL;
    }
    if (y == NULL && is_large(a) && (y = read_memory(value))) lent = is_large_lent(value);
    if (is_large(a) && (y || is_number(value))) {
        failed = large_setitem(a, key, y ? (PyObject*)y : value, y, lent);
        if (failed == 0 && y && is_basic(key) && (is_part(a) || !is_all_of(key)) && large_owned(a, size_of(y), lent)) {
            if ((y = memory_of(value)) == NULL) y = read_memory(value);
            failed = y ? large_setitem(a, key, (PyObject*)y, y, lent) : 0;
        }
        if (failed || PyErr_Occurred()) return failed < 0 || PyErr_Occurred() ? -1 : 0;
    } else if (is_large(a) && is_put_back(a, key, value)) {
        return 0;
    }
    x = own_memory_of(a);
    if (x && !tried && (y || is_number(value)) && assigned(x, key, value, y, 0)) return 0;
    if (x == NULL && is_large(a) && (y || is_number(value)) && ((Cell*)a)->readonly == Py_False) {
        PyArrayObject* memory;
        Cell* root;
        int own; /* places are written in large memory that nobody else sees as they are in small */
        x = large_memory(a, &root, &memory, &own);
        if (x && (!own || is_basic(key))) x = NULL;
        if (x) PyArray_ENABLEFLAGS(x, NPY_ARRAY_WRITEABLE);
    }
    if (x && (y || is_number(value))) {
        PyObject* from = y ? (PyObject*)y : value;
        Cell* written = writing_begin(a);
        Py_INCREF(x), Py_INCREF(from);
        if ((plain = numpys_key(key)) == NULL) failed = 1;
        else if (PyArray_CheckExact(plain) && chosen_written(x, plain, (PyArrayObject*)plain, from, y)) failed = 0;
        else failed = PyArray_Type.tp_as_mapping->mp_ass_subscript((PyObject*)x, plain, from);
        writing_end(written);
        Py_DECREF(x), Py_DECREF(from), Py_XDECREF(plain);
        if (failed < 1) return failed;
    }
    if (PyErr_Occurred()) return -1;
    if (slow_methods[SETITEM] == NULL) {
        PyErr_SetString(PyExc_TypeError, "does not support item assignment");
        return -1;
    }
    PyObject* args[3] = {a, key, value};
    found = PyObject_Vectorcall(slow_methods[SETITEM], args, 3, NULL);
    Py_XDECREF(found);
    return found ? 0 : -1;
}

/* Iteration over the first axis: elements as NumPy gives them, or rows. */
typedef struct {
    PyObject_HEAD
    PyObject* array;
    Py_ssize_t at;
} Rows;

static void rows_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Rows*)self)->array);
    PyObject_GC_Del(self);
}
static int rows_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(((Rows*)self)->array);
    return 0;
}
/* Row or element `at` of `from`, what the large array `a` shows, as `large_getitem` has it. */
static PyObject* large_row(PyObject* a, npy_intp at, Cell* root, PyArrayObject* from, PyArrayObject* memory, int own) {
    PyObject* found;
    if (PyArray_NDIM(from) == 1) return PyArray_ISBEHAVED_RO(from) ? element(from, PyArray_BYTES(from) + at * PyArray_STRIDE(from, 0)) : NULL;
    if (PyArray_SIZE(from) == 0 || !(own || PyArray_SIZE(from) / PyArray_DIM(from, 0) <= limit_now())) return NULL;
    Py_INCREF(from), Py_INCREF(memory), Py_INCREF(root);
    found = shown_at(from, PyArray_NDIM(from) - 1, PyArray_DIMS(from) + 1, PyArray_STRIDES(from) + 1, PyArray_BYTES(from) + at * PyArray_STRIDE(from, 0));
    if (found) found = part_of(root, a, memory, (PyArrayObject*)found);
    Py_DECREF(from), Py_DECREF(memory), Py_DECREF(root);
    return found;
}

static PyObject* rows_next(PyObject* object) { /* the array may have another shape each time */
    Rows* self = (Rows*)object;
    int large, own = 0;
    PyArrayObject *x = NULL, *memory;
    PyObject *array = self->array, *index, *found = NULL;
    Cell* root;
    if (array == NULL) return NULL;
    large = Py_TYPE(array) != array_type || is_large(array);
    if (!large) x = plain_of(array);
    else if (Py_TYPE(array) == array_type) x = large_memory(array, &root, &memory, &own);
    if (x && !large && PyArray_NDIM(x) && self->at < PyArray_DIM(x, 0)) {
        if (PyArray_NDIM(x) == 1 && PyArray_ISBEHAVED_RO(x)) return element(x, PyArray_BYTES(x) + self->at++ * PyArray_STRIDE(x, 0));
        found = viewed(array, x, PyArray_NDIM(x) - 1, PyArray_DIMS(x) + 1, PyArray_STRIDES(x) + 1, PyArray_BYTES(x) + self->at * PyArray_STRIDE(x, 0));
        if (found || PyErr_Occurred()) return self->at++, found;
        if ((x = memory_of(array)) == NULL) return PyErr_NoMemory();
        found = PyArray_Type.tp_as_sequence->sq_item((PyObject*)x, self->at++); /* a view, which runs no code */
        return found && PyArray_CheckExact(found) ? cell_of(found, owner_of(array)) : found;
    }
    Py_INCREF(array);
    if (self->at >= (x && PyArray_NDIM(x) ? PyArray_DIM(x, 0) : slot_len(array))) {
        Py_CLEAR(self->array);
    } else {
        if (x && large && PyArray_NDIM(x)) found = large_row(array, self->at, root, x, memory, own);
        if (found == NULL && !PyErr_Occurred() && (index = PyLong_FromSsize_t(self->at))) {
            found = slot_getitem(array, index);
            Py_DECREF(index);
        }
        self->at++;
    }
    Py_DECREF(array);
    return found;
}

static PyObject* rows_left(PyObject* object, PyObject* none) {
    Rows* self = (Rows*)object;
    Py_ssize_t length = self->array ? slot_len(self->array) : 0;
    (void)none;
    return length < 0 ? NULL : PyLong_FromSsize_t(length > self->at ? length - self->at : 0);
}

/* As Python's own iterators over sequences: an array to go through, and from where. */
static PyObject* rows_reduce(PyObject* object, PyObject* none) {
    Rows* self = (Rows*)object;
    PyObject* iter = PyDict_GetItemString(PyEval_GetBuiltins(), "iter");
    (void)none;
    if (iter == NULL) return PyErr_SetString(PyExc_AttributeError, "iter"), NULL;
    return self->array ? Py_BuildValue("(O(O)n)", iter, self->array, self->at) : Py_BuildValue("(O(()))", iter);
}

static PyObject* rows_set(PyObject* object, PyObject* at) {
    Py_ssize_t index = PyLong_AsSsize_t(at);
    if (index == -1 && PyErr_Occurred()) return NULL;
    ((Rows*)object)->at = index < 0 ? 0 : index;
    Py_RETURN_NONE;
}

static PyMethodDef rows_methods[] = {
    {"__length_hint__", rows_left, METH_NOARGS, NULL}, {"__reduce__", rows_reduce, METH_NOARGS, NULL}, {"__setstate__", rows_set, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyTypeObject rows_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Rows",
    .tp_doc = "The rows of an array, one after the other.",
    .tp_basicsize = sizeof(Rows),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = rows_dealloc,
    .tp_traverse = rows_traverse,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = rows_next,
    .tp_methods = rows_methods,
};

static PyObject* rows_of_array(PyObject* a) {
    Rows* made = PyObject_GC_New(Rows, &rows_type);
    if (made == NULL) return NULL;
    made->array = Py_NewRef(a);
    made->at = 0;
    PyObject_GC_Track((PyObject*)made);
    return (PyObject*)made;
}

static PyObject* slot_iter(PyObject* a) {
    PyArrayObject* x;
    if (settle_operand(a) < 0) return NULL;
    x = is_large(a) ? read_memory(a) : memory_of(a);
    return x && PyArray_NDIM(x) ? rows_of_array(a) : slow1(slow_methods[ITER], a);
}

/* All elements in C order, as `flat` gives them; what is not at hand is for the methods `_next`, `_read` and `_write` of the class that derives from this one. */
typedef struct {
    PyObject_HEAD
    PyObject* array;
    Py_ssize_t at;
} Elements;

static PyTypeObject* flat_type; /* that class, once it is registered */
static PyObject *flat_kept, *next_name, *read_name, *write_name; /* the memory of one that is gone: `a.flat[k]` makes one at every turn */

static int elements_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(((Elements*)self)->array);
    return 0;
}
static int elements_clear(PyObject* self) {
    Py_CLEAR(((Elements*)self)->array);
    return 0;
}
static void elements_dealloc(PyObject* self) { /* of the base class alone */
    PyObject_GC_UnTrack(self);
    elements_clear(self);
    Py_TYPE(self)->tp_free(self);
}
static void flat_dealloc(PyObject* self) { /* of the class that is registered, which adds nothing */
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    elements_clear(self);
    if (flat_kept == NULL) flat_kept = self;
    else PyObject_GC_Del(self);
    Py_DECREF(type);
}
static PyObject* elements_new(PyObject* a, int ndim) { /* NULL, without an exception, where the class has to see to it */
    Elements* made;
    if (flat_type == NULL || ndim > 32) return NULL;
    made = (Elements*)flat_kept;
    flat_kept = NULL; /* before one is made, which may run code */
    made = made ? (Elements*)PyObject_Init((PyObject*)made, flat_type) : PyObject_GC_New(Elements, flat_type);
    if (made == NULL) return NULL;
    made->array = Py_NewRef(a);
    made->at = 0;
    PyObject_GC_Track((PyObject*)made);
    return (PyObject*)made;
}

/* Where element `k` lies, counted from the end if it is negative; NULL of arrays that are not at hand, and beyond the ends. */
static char* element_in_order(PyArrayObject* x, npy_intp k) {
    npy_intp size = x ? PyArray_SIZE(x) : 0;
    char* at;
    if (k < 0) k += size;
    if (k < 0 || k >= size || !PyArray_ISBEHAVED_RO(x)) return NULL;
    at = PyArray_BYTES(x);
    if (PyArray_IS_C_CONTIGUOUS(x)) return at + k * PyArray_ITEMSIZE(x);
    for (int axis = PyArray_NDIM(x); axis--; k /= PyArray_DIM(x, axis)) at += k % PyArray_DIM(x, axis) * PyArray_STRIDE(x, axis);
    return at;
}

static inline PyArrayObject* elements_memory(PyObject* a) {
    return a == NULL || Py_TYPE(a) != array_type ? NULL : is_large(a) ? stored(a) : memory_of(a);
}

static PyObject* elements_next(PyObject* object) {
    Elements* self = (Elements*)object;
    PyArrayObject* x = elements_memory(self->array);
    char* at = self->at < 0 ? NULL : element_in_order(x, self->at);
    if (at == NULL) return PyObject_CallMethodNoArgs(object, next_name);
    self->at++;
    return element(x, at);
}

static PyObject* elements_read(PyObject* object, PyObject* key) {
    Elements* self = (Elements*)object;
    PyArrayObject* x = elements_memory(self->array);
    npy_intp k;
    char* at = x && integer_of(key, &k) ? element_in_order(x, k) : NULL;
    self->at = 0; /* NumPy's begins anew, too */
    return at ? element(x, at) : PyObject_CallMethodOneArg(object, read_name, key);
}

static int elements_write(PyObject* object, PyObject* key, PyObject* value) {
    Elements* self = (Elements*)object;
    PyObject* a = self->array;
    PyArrayObject *x = NULL, *memory;
    Cell* root;
    npy_intp k;
    Value number;
    char* at;
    int own = 1;
    if (!SETTLED) return -1;
    if (value == NULL) return PyErr_SetString(PyExc_TypeError, "Cannot delete iterator elements"), -1;
    if (a && Py_TYPE(a) == array_type && ((Cell*)a)->readonly == Py_False && is_number(value))
        x = is_large(a) ? large_memory(a, &root, &memory, &own) : own_memory_of(a);
    if (x && own && (is_large(a) || is_writable(x)) && integer_of(key, &k) && (at = element_in_order(x, k)) && value_of(value, PyArray_TYPE(x), &number)) {
        memcpy(at, &number, (size_t)PyArray_ITEMSIZE(x));
        self->at = 0;
        return 0;
    }
    if (PyErr_Occurred()) return -1;
    a = PyObject_CallMethodObjArgs(object, write_name, key, value, NULL);
    Py_XDECREF(a);
    return a ? 0 : -1;
}

static PyMemberDef elements_members[] = {
    {"_array", T_OBJECT, offsetof(Elements, array), 0, NULL}, {"_index", T_PYSSIZET, offsetof(Elements, at), 0, NULL}, {NULL, 0, 0, 0, NULL}};
static PyMappingMethods elements_mapping = {.mp_subscript = elements_read, .mp_ass_subscript = elements_write};
static PyTypeObject elements_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Elements",
    .tp_doc = "The elements of an array, one after the other.",
    .tp_basicsize = sizeof(Elements),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = elements_dealloc,
    .tp_traverse = elements_traverse,
    .tp_clear = elements_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = elements_next,
    .tp_as_mapping = &elements_mapping,
    .tp_members = elements_members,
};

/* Make `type`, which derives from Elements, the class of what `flat` gives. */
static void elements_register(PyTypeObject* type) {
    flat_type = type;
    type->tp_dealloc = flat_dealloc;
}

/* Attributes ------------------------------------------------------------------------------------------------------------------- */

typedef PyObject* (*attribute)(PyObject* a, PyArrayObject* x);

static PyObject* get_shape(PyObject* a, PyArrayObject* x) { return (void)a, lengths_tuple(PyArray_NDIM(x), PyArray_DIMS(x)); }
static PyObject* get_strides(PyObject* a, PyArrayObject* x) { return (void)a, lengths_tuple(PyArray_NDIM(x), PyArray_STRIDES(x)); }
static PyObject* get_dtype(PyObject* a, PyArrayObject* x) { return (void)a, Py_NewRef(PyArray_DESCR(x)); }
static PyObject* get_ndim(PyObject* a, PyArrayObject* x) { return (void)a, PyLong_FromLong(PyArray_NDIM(x)); }
static PyObject* get_size(PyObject* a, PyArrayObject* x) { return (void)a, PyLong_FromSsize_t(PyArray_SIZE(x)); }
static PyObject* get_itemsize(PyObject* a, PyArrayObject* x) { return (void)a, PyLong_FromSsize_t(PyArray_ITEMSIZE(x)); }
static PyObject* get_nbytes(PyObject* a, PyArrayObject* x) { return (void)a, PyLong_FromSsize_t(PyArray_NBYTES(x)); }
static PyObject* get_real(PyObject* a, PyArrayObject* x) {
    return PyArray_ISCOMPLEX(x) ? cell_of(PyObject_GetAttrString((PyObject*)x, "real"), owner_of(a)) : Py_NewRef(a);
}
static PyObject* get_imag(PyObject* a, PyArrayObject* x) { /* of real numbers zeros, which are not written */
    PyObject *found = PyObject_GetAttrString((PyObject*)x, "imag"), *made;
    if (PyArray_ISCOMPLEX(x)) return cell_of(found, owner_of(a));
    made = cell_of(found, NULL);
    if (made) Py_SETREF(((Cell*)made)->readonly, Py_NewRef(Py_True));
    return made;
}
static PyObject* get_mT(PyObject* a, PyArrayObject* x) { return PyArray_NDIM(x) < 2 ? NULL : cell_of(PyArray_SwapAxes(x, -2, -1), owner_of(a)); }
static PyObject* view_transposed(PyArrayObject* x, const void* with) { return (void)with, PyArray_Transpose(x, NULL); }
static PyObject* get_T(PyObject* a, PyArrayObject* x) {
    PyArrayObject* plain = plain_of(a);
    npy_intp dims[RAW_AXES], strides[RAW_AXES];
    int ndim = plain ? PyArray_NDIM(plain) : 0;
    PyObject* made;
    if (x == NULL && WAITS(a)) {
        if ((made = transpose_waits(a, transpose_callable)) || PyErr_Occurred()) return made;
        if (settle_operand(a) < 0) return NULL;
        return get_T(a, memory_of(a));
    }
    if (ndim > 1 && ndim <= RAW_AXES) {
        for (int k = 0; k < ndim; k++) dims[k] = PyArray_DIM(plain, ndim - 1 - k), strides[k] = PyArray_STRIDE(plain, ndim - 1 - k);
        if ((made = viewed(a, plain, ndim, dims, strides, PyArray_BYTES(plain))) || PyErr_Occurred()) return made;
    }
    if (plain && (x = memory_of(a)) == NULL) return PyErr_NoMemory();
    return x && !is_part(a) ? cell_of(PyArray_Transpose(x, NULL), owner_of(a)) : large_view(a, view_transposed, NULL, 0);
}
static PyObject* get_flat(PyObject* a, PyArrayObject* x) { return x || (x = stored(a)) ? elements_new(a, PyArray_NDIM(x)) : NULL; }

typedef struct {
    PyGetSetDef definition;
    attribute fast;
    int of_memory; /* asks for more than shape, strides and dtype: 1 of memory at hand, 2 of that of large arrays and their parts, too */
    PyObject* slow; /* the property of the class */
} Attribute;

static Attribute attributes[] = {
    {.definition = {.name = "shape"}, .fast = get_shape},   {.definition = {.name = "strides"}, .fast = get_strides},
    {.definition = {.name = "dtype"}, .fast = get_dtype},   {.definition = {.name = "ndim"}, .fast = get_ndim},
    {.definition = {.name = "size"}, .fast = get_size},     {.definition = {.name = "itemsize"}, .fast = get_itemsize},
    {.definition = {.name = "nbytes"}, .fast = get_nbytes}, {.definition = {.name = "real"}, .fast = get_real, .of_memory = 1},
    {.definition = {.name = "imag"}, .fast = get_imag, .of_memory = 1},
    {.definition = {.name = "mT"}, .fast = get_mT, .of_memory = 1},
    {.definition = {.name = "T"}, .fast = get_T, .of_memory = 2},
    {.definition = {.name = "flat"}, .fast = get_flat, .of_memory = 2}};
#define ATTRIBUTES ((int)(sizeof(attributes) / sizeof(attributes[0])))

static PyObject* attribute_get(PyObject* a, void* closure) {
    Attribute* of = (Attribute*)closure;
    PyArrayObject* x = is_part(a) && of->of_memory < 2 ? of->of_memory ? NULL : ((Cell*)a)->shown : NULL;
    PyObject* found;
    if (IS_CHAIN(a) && CHAIN_OF(a)) {
        if (of->fast == get_T && CHAIN_OF(a)->ndim > 1) return get_T(a, NULL);
        if (of->fast == get_real && !PyTypeNum_ISCOMPLEX(step_type(CHAIN_OF(a), STEP_OF(a)))) return Py_NewRef(a);
    }
    if (x == NULL && !is_part(a) && !WAITS(a) && (of->of_memory == 0 || of->fast == get_T)) x = plain_of(a);
    if (x == NULL && !(is_part(a) && of->of_memory < 2)) x = memory_of(a);
    Py_XINCREF(x);
    found = x || of->of_memory == 2 ? of->fast(a, x) : NULL;
    Py_XDECREF(x);
    return found || PyErr_Occurred() ? found : Py_TYPE(of->slow)->tp_descr_get(of->slow, a, (PyObject*)Py_TYPE(a));
}

static int attribute_set(PyObject* a, PyObject* value, void* closure) {
    Attribute* of = (Attribute*)closure;
    return Py_TYPE(of->slow)->tp_descr_set(of->slow, a, value);
}

/* An attribute of the class of arrays that looks at memory at hand first, and then asks `slow`, a property. */
static PyObject* attribute_of(PyTypeObject* type, int k, PyObject* slow, const char* doc) {
    Attribute* of = &attributes[k];
    Py_XSETREF(of->slow, Py_NewRef(slow));
    of->definition.get = attribute_get;
    of->definition.set = attribute_set;
    of->definition.doc = doc;
    of->definition.closure = of;
    return PyDescr_NewGetSet(type, &of->definition);
}

/* The buffer protocol: a request is handed on to the NumPy array that shows the memory. */
static PyObject* slow_buffer;

static int slot_buffer(PyObject* a, Py_buffer* view, int flags) {
    PyObject* found = NULL;
    int failed = -1;
    if (!SETTLED) return tapes_tell_again(), -1; /* NumPy takes that for no more than an array without a buffer, and asks by `__array__` */
    if (slow_buffer) found = PyObject_CallFunction(slow_buffer, "Oi", a, flags);
    if (found && PyMemoryView_Check(found)) failed = PyObject_GetBuffer(PyMemoryView_GET_BUFFER(found)->obj, view, flags);
    else if (!PyErr_Occurred()) PyErr_SetString(PyExc_BufferError, "not an array");
    Py_XDECREF(found);
    return failed;
}

static PyBufferProcs cell_buffer = {.bf_getbuffer = slot_buffer};

/* The type ----------------------------------------------------------------------------------------------------------------------- */

static PyNumberMethods cell_number = {
    .nb_add = slot_add, .nb_subtract = slot_sub, .nb_multiply = slot_mul, .nb_true_divide = slot_truediv, .nb_floor_divide = slot_floordiv,
    .nb_remainder = slot_mod, .nb_divmod = slot_divmod, .nb_lshift = slot_lshift, .nb_rshift = slot_rshift, .nb_and = slot_and, .nb_or = slot_or, .nb_xor = slot_xor,
    .nb_power = slot_pow, .nb_matrix_multiply = slot_matmul, .nb_inplace_add = slot_iadd, .nb_inplace_subtract = slot_isub,
    .nb_inplace_multiply = slot_imul, .nb_inplace_true_divide = slot_itruediv, .nb_inplace_floor_divide = slot_ifloordiv,
    .nb_inplace_remainder = slot_imod, .nb_inplace_lshift = slot_ilshift, .nb_inplace_rshift = slot_irshift, .nb_inplace_and = slot_iand,
    .nb_inplace_or = slot_ior, .nb_inplace_xor = slot_ixor, .nb_inplace_power = slot_ipow, .nb_inplace_matrix_multiply = slot_imatmul,
    .nb_negative = slot_neg, .nb_positive = slot_pos, .nb_absolute = slot_abs, .nb_invert = slot_invert, .nb_bool = slot_bool,
    .nb_int = slot_int, .nb_float = slot_float, .nb_index = slot_index};
static PyMappingMethods cell_mapping = {.mp_length = slot_len, .mp_subscript = slot_getitem, .mp_ass_subscript = slot_setitem};
static PySequenceMethods cell_sequence = {.sq_length = slot_len};

static PyTypeObject cell_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Cell",
    .tp_doc = "The cell that every array is made of; see ``lazynp.arrays.ndarray`` for the meaning of its slots.",
    .tp_basicsize = sizeof(Cell),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = cell_create,
    .tp_dealloc = cell_dealloc,
    .tp_traverse = cell_traverse,
    .tp_clear = cell_clear,
    .tp_weaklistoffset = offsetof(Cell, weakrefs),
    .tp_members = cell_members,
    .tp_getset = cell_getset,
    .tp_as_number = &cell_number,
    .tp_as_mapping = &cell_mapping,
    .tp_as_sequence = &cell_sequence,
    .tp_as_buffer = &cell_buffer,
    .tp_richcompare = compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_iter = slot_iter,
};

static int slots_ready(void) {
    PyNumberMethods* theirs = PyArray_Type.tp_as_number;
    binaryfunc of[BINARIES] = {
        theirs->nb_add, theirs->nb_subtract, theirs->nb_multiply, theirs->nb_true_divide, theirs->nb_floor_divide, theirs->nb_remainder,
        theirs->nb_lshift, theirs->nb_rshift, theirs->nb_and, theirs->nb_or, theirs->nb_xor, numpys_power, theirs->nb_matrix_multiply,
        theirs->nb_divmod};
    binaryfunc in_place_of[BINARIES] = {
        theirs->nb_inplace_add, theirs->nb_inplace_subtract, theirs->nb_inplace_multiply, theirs->nb_inplace_true_divide,
        theirs->nb_inplace_floor_divide, theirs->nb_inplace_remainder, theirs->nb_inplace_lshift, theirs->nb_inplace_rshift,
        theirs->nb_inplace_and, theirs->nb_inplace_or, theirs->nb_inplace_xor, numpys_power_in_place, theirs->nb_inplace_matrix_multiply,
        NULL};
    next_name = PyUnicode_InternFromString("_next"), read_name = PyUnicode_InternFromString("_read"), write_name = PyUnicode_InternFromString("_write");
    memcpy(numpys, of, sizeof(of));
    memcpy(numpys_in_place, in_place_of, sizeof(in_place_of));
    if ((faded = PyList_New(0)) == NULL || pool_ready() < 0 || where_fill() < 0) return -1;
    return PyType_Ready(&waiting_type) < 0 || PyType_Ready(&raw_type) < 0 || PyType_Ready(&cell_type) < 0 || PyType_Ready(&rows_type) < 0 || PyType_Ready(&elements_type) < 0 ? -1 : 0;
}

#endif
