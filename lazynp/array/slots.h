/* Attributes of arrays, the buffer protocol, and the class with its slots.

   In: an array.  Out: NumPy's answer at once where it lies in memory; everything else goes to the property that the class of arrays defines in Python. */

#ifndef LAZYNP_SLOTS_H
#define LAZYNP_SLOTS_H

#include "iteration.h"

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
    int of_memory; /* asks for more than shape, strides and dtype: 1 of small arrays' memory, 2 of that of large arrays and their parts, too */
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

/* An attribute of the class of arrays that looks at existing memory first, and then asks `slow`, a property. */
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
