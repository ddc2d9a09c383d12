/* Operations told of while a report is made: operators, subscripts, functions, methods and ufuncs.

   In: a function in Python that is told what came of each.  Out: other entries in the type's slots and in the functions, which call those they
   stand for.  Promise: no program pays for it unasked; what an operation calls on its way is not told of. */

#ifndef LAZYNP_COUNTING_H
#define LAZYNP_COUNTING_H

#include "programs.h"

#ifdef _MSC_VER
#define PER_THREAD __declspec(thread)
#else
#define PER_THREAD __thread
#endif

static PyObject* count_hook;
static PER_THREAD int counted_depth;

typedef struct {
    int waited;           /* an operand was put off, to be computed in one pass with this operation */
    long long by_steps;   /* expressions that were computed step by step after all */
} Before;

static inline Before before_counted(PyObject* a, PyObject* b) {
    Before before = {IS_CHAIN(a) || (b && IS_CHAIN(b)), chain_results[1]};
    counted_depth++;
    return before;
}

/* Whether the operation that is done is one of the program's own, to be told of. */
static inline int is_counted(int done) { return --counted_depth == 0 && done && count_hook; }

/* Tell of it: nothing is shown of what is computed in one pass, for looking at a value that waits computes it. */
static void tell_counted(Before before, PyObject* found, PyObject* a, PyObject* b) {
    int one_pass = chain_results[1] == before.by_steps && (before.waited || (found && IS_CHAIN(found)));
    PyObject* args[3] = {one_pass || found == NULL ? Py_None : found, one_pass ? Py_None : a, one_pass || b == NULL ? Py_None : b};
    PyObject* told;
    counted_depth++;
    told = PyObject_CallFunction(count_hook, "iOOO", one_pass, args[0], args[1], args[2]);
    counted_depth--;
    if (told == NULL) PyErr_WriteUnraisable(count_hook);
    Py_XDECREF(told);
}

static PyObject* counted(Before before, PyObject* found, PyObject* a, PyObject* b) {
    if (is_counted(found && found != Py_NotImplemented)) tell_counted(before, found, a, b);
    return found;
}

#define COUNTED_BINARY(NAME) \
    static PyObject* counted_##NAME(PyObject* a, PyObject* b) { Before before = before_counted(a, b); return counted(before, slot_##NAME(a, b), a, b); }
#define COUNTED_UNARY(NAME) \
    static PyObject* counted_##NAME(PyObject* a) { Before before = before_counted(a, NULL); return counted(before, slot_##NAME(a), a, NULL); }
#define COUNTED_POWER(NAME) \
    static PyObject* counted_##NAME(PyObject* a, PyObject* b, PyObject* c) { Before before = before_counted(a, b); return counted(before, slot_##NAME(a, b, c), a, b); }
#define BINARY_SLOTS(X) \
    X(add, nb_add) X(sub, nb_subtract) X(mul, nb_multiply) X(truediv, nb_true_divide) X(floordiv, nb_floor_divide) X(mod, nb_remainder) \
    X(divmod, nb_divmod) X(lshift, nb_lshift) X(rshift, nb_rshift) X(and, nb_and) X(or, nb_or) X(xor, nb_xor) X(matmul, nb_matrix_multiply) \
    X(iadd, nb_inplace_add) X(isub, nb_inplace_subtract) X(imul, nb_inplace_multiply) X(itruediv, nb_inplace_true_divide) \
    X(ifloordiv, nb_inplace_floor_divide) X(imod, nb_inplace_remainder) X(ilshift, nb_inplace_lshift) X(irshift, nb_inplace_rshift) \
    X(iand, nb_inplace_and) X(ior, nb_inplace_or) X(ixor, nb_inplace_xor) X(imatmul, nb_inplace_matrix_multiply)
#define UNARY_SLOTS(X) X(neg, nb_negative) X(pos, nb_positive) X(abs, nb_absolute) X(invert, nb_invert)
#define POWER_SLOTS(X) X(pow, nb_power) X(ipow, nb_inplace_power)

#define DEFINE_BINARY(NAME, SLOT) COUNTED_BINARY(NAME)
#define DEFINE_UNARY(NAME, SLOT) COUNTED_UNARY(NAME)
#define DEFINE_POWER(NAME, SLOT) COUNTED_POWER(NAME)
BINARY_SLOTS(DEFINE_BINARY)
UNARY_SLOTS(DEFINE_UNARY)
POWER_SLOTS(DEFINE_POWER)
COUNTED_BINARY(getitem)

static PyObject* counted_compare(PyObject* a, PyObject* b, int op) {
    Before before = before_counted(a, b);
    return counted(before, compare(a, b, op), a, b);
}

static int counted_setitem(PyObject* a, PyObject* key, PyObject* value) {
    Before before = before_counted(a, value);
    int failed = slot_setitem(a, key, value);
    if (is_counted(!failed)) tell_counted(before, a, a, value);
    return failed;
}

static PyObject* counted_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names, vectorcallfunc call) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyObject *first = n > 0 ? args[0] : Py_None, *second = n > 1 ? args[1] : NULL;
    Before before = before_counted(first, second);
    return counted(before, call(callable, args, nargsf, names), first, second);
}
static PyObject* counted_function(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
    return counted_call(callable, args, nargsf, names, function_call);
}
static PyObject* counted_ufunc(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
    return counted_call(callable, args, nargsf, names, ufunc_call);
}

/* The slots of one class of arrays. */
static void count_slots(PyTypeObject* type) {
    PyNumberMethods* number = type->tp_as_number;
#define EXCHANGE(NAME, SLOT) if (number->SLOT == slot_##NAME) number->SLOT = counted_##NAME;
    BINARY_SLOTS(EXCHANGE)
    UNARY_SLOTS(EXCHANGE)
    POWER_SLOTS(EXCHANGE)
    if (type->tp_as_mapping->mp_subscript == slot_getitem) type->tp_as_mapping->mp_subscript = counted_getitem;
    if (type->tp_as_mapping->mp_ass_subscript == slot_setitem) type->tp_as_mapping->mp_ass_subscript = counted_setitem;
    if (type->tp_richcompare == compare) type->tp_richcompare = counted_compare;
}

/* Tell `hook` from now on, of functions that are made later, too. */
static void count_with(PyObject* hook) {
    count_hook = hook;
    count_slots(array_type);
    function_vector = counted_function, ufunc_vector = counted_ufunc;
    for (Function* made = functions_made; made; made = made->next)
        if (made->vector == function_call) made->vector = counted_function;
    for (Ufunc* bound = ufuncs_bound; bound; bound = bound->next) bound->vector = counted_ufunc;
}

#endif
