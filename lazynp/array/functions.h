/* NumPy's functions and ufuncs as objects, each of which stands for the one in Python in everything but being called.

   In: a function in Python, NumPy's of that name, and how it is answered.  Out: an object of the class of functions, of builtins, or of ufuncs.  Promise: its signature, documentation, pickle
   and hash are those of the function that it stands for. */

#ifndef LAZYNP_FUNCTIONS_H
#define LAZYNP_FUNCTIONS_H

#include "ufunc_calls.h"

/* Types ------------------------------------------------------------------------------------------------------------------------------ */

/* The signature that the one in Python shows, by what it wraps. */
static PyObject* function_signature(PyObject* slow, PyObject* name) {
    PyObject *inspect = PyImport_ImportModule("inspect"), *found = inspect ? PyObject_CallMethod(inspect, "signature", "O", slow) : NULL;
    Py_XDECREF(inspect);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_SetObject(PyExc_AttributeError, name); /* a builtin that says none */
    return found;
}

/* A function stands for the one in Python in everything but being called: name, signature, module, documentation. */
static PyObject* function_getattro(PyObject* self, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (text == NULL) return NULL;
    if (((Function*)self)->plain && strcmp(text, "__wrapped__") == 0) return PyErr_SetObject(PyExc_AttributeError, name), NULL;
    if (((Function*)self)->plain && strcmp(text, "__signature__") == 0) return slow_of((Function*)self) ? function_signature(((Function*)self)->slow, name) : NULL;
    if (strncmp(text, "__reduce", 8) == 0 || strcmp(text, "__get__") == 0 || strcmp(text, "__call__") == 0) return PyObject_GenericGetAttr(self, name);
    return slow_of((Function*)self) ? PyObject_GetAttr(((Function*)self)->slow, name) : NULL;
}

static int function_setattro(PyObject* self, PyObject* name, PyObject* value) { return slow_of((Function*)self) ? PyObject_SetAttr(((Function*)self)->slow, name, value) : -1; }

static PyObject* function_get(PyObject* self, PyObject* object, PyObject* type) {
    (void)type;
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

static PyObject* function_reduce(PyObject* self, PyObject* none) {
    (void)none;
    PyObject* slow = slow_of((Function*)self);
    if (slow == NULL) return NULL;
    if (!PyFunction_Check(slow) && !PyObject_TypeCheck(slow, &PyStaticMethod_Type)) return PyObject_CallMethod(slow, "__reduce__", NULL);
    return PyObject_GetAttrString(self, "__qualname__"); /* found by its name, as functions are */
}

static void function_dealloc(PyObject* self) {
    Function *of = (Function*)self, **before = &functions_made;
    while (*before && *before != of) before = &(*before)->next;
    if (*before) *before = of->next;
    if (of->arrays) signatures_forget(); /* which know it by its address */
    if (of->weakrefs) PyObject_ClearWeakRefs(self);
    Py_XDECREF(of->slow), Py_XDECREF(of->theirs), Py_XDECREF(of->method), Py_XDECREF(of->own), Py_XDECREF(of->stands_for);
    PyObject_Free(self);
}

static PyObject* function_repr(PyObject* self) { return slow_of((Function*)self) ? PyObject_Repr(((Function*)self)->slow) : NULL; }

static PyObject* function_doc(PyObject* self, void* closure) { return (void)closure, slow_of((Function*)self) ? PyObject_GetAttrString(((Function*)self)->slow, "__doc__") : NULL; }

/* Tables that a library keeps by NumPy's functions, and asks with NumPy's, are filled and asked by programs with ours, and the other way
   round: they are equal as keys. */
static Py_hash_t function_hash(PyObject* self) {
    PyObject* theirs = ((Function*)self)->stands_for;
    return theirs ? PyObject_Hash(theirs) : PyBaseObject_Type.tp_hash(self);
}

static PyObject* function_compare(PyObject* self, PyObject* other, int how) {
    PyObject* theirs = ((Function*)self)->stands_for;
    int same = self == other || (theirs && (other == theirs || (Py_TYPE(other)->tp_hash == function_hash && ((Function*)other)->stands_for == theirs)));
    if (!same || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong(how == Py_EQ);
}

static PyGetSetDef function_getset[] = {{"__doc__", function_doc, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef function_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

#define FUNCTION(FLAGS) \
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Function", .tp_basicsize = sizeof(Function), \
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | (FLAGS), .tp_vectorcall_offset = offsetof(Function, vector), \
    .tp_call = PyVectorcall_Call, .tp_getattro = function_getattro, .tp_setattro = function_setattro, .tp_methods = function_methods, \
    .tp_getset = function_getset, .tp_repr = function_repr, .tp_hash = function_hash, .tp_richcompare = function_compare, .tp_dealloc = function_dealloc, .tp_weaklistoffset = offsetof(Function, weakrefs)
static PyTypeObject function_type = {FUNCTION(Py_TPFLAGS_METHOD_DESCRIPTOR), .tp_descr_get = function_get};
/* Of what is a builtin in NumPy, or a method of an object: as an attribute of a class it does not become a method. */
static PyTypeObject builtin_type = {FUNCTION(0)};

/* Nothing is known of how often signatures were not. */
static void functions_forget(void) {
    for (Function* of = functions_made; of; of = of->next) of->misses = of->skipped = 0;
}

/* What is called of functions and ufuncs that are yet to be made. */
static vectorcallfunc function_vector = function_call, ufunc_vector = ufunc_call;

static PyObject* function_new(PyObject* slow, PyObject* theirs, PyObject* method, int kind, int recorded, int reduces, Reduction* reduction, Matrices* matrices, Direct direct, int least, int listens, int plain, PyObject* own, int arrays, int silent, int asked, int positional, int kernels, int unloaded) {
    int bound = kind == DRAW || PyObject_TypeCheck(slow, &PyStaticMethod_Type);
    Function* made = PyObject_New(Function, bound ? &builtin_type : &function_type);
    if (made == NULL) return NULL;
    made->vector = kind == FOREIGN ? foreign_call : kind == NAMED ? named_call : function_vector;
    made->slow = Py_NewRef(slow);
    made->theirs = Py_NewRef(theirs);
    made->method = method == Py_None ? NULL : Py_NewRef(method);
    made->kind = kind == ALL_CLOSE ? CLOSE : kind;
    made->op = -1, made->recorded = recorded, made->reduces = reduces, made->arrays = arrays, made->silent = silent, made->asked = asked, made->positional = positional, made->kernels = kernels, made->misses = made->skipped = 0;
    made->views = kind == RESHAPE || direct == direct_ravel || direct == direct_transpose || direct == direct_squeeze || recorded == EXPANDS || recorded == SWAPS_AXES || recorded == FLIPS || recorded == SHOWS || recorded == DIAGONALS;
    made->all = kind == ALL_CLOSE;
    made->reduction = reduction;
    made->least = least;
    made->listens = listens;
    made->plain = plain, made->unloaded = unloaded, made->later = 0;
    made->own = own == Py_None ? NULL : Py_NewRef(own);
    made->direct = direct;
    made->matrices = matrices;
    made->stands_for = NULL;
    made->weakrefs = NULL;
    made->next = functions_made;
    functions_made = made;
    return (PyObject*)made;
}

/* What draws sooner than NumPy's method is asked for now and then, until it is there. */
static void draws_later(PyObject* function) {
    if (Py_TYPE(function) == &builtin_type) ((Function*)function)->later = ((Function*)function)->kind == DRAW ? DRAWS : 0;
}

/* Before anything has it as a key. */
static void function_stand_for(PyObject* function, PyObject* theirs) {
    if (Py_TYPE(function)->tp_hash == function_hash) Py_XSETREF(((Function*)function)->stands_for, Py_NewRef(theirs));
}

static void ufunc_dealloc(PyObject* self) { /* of a subclass, which lets its type go */
    Ufunc** before = &ufuncs_bound;
    while (*before && *before != (Ufunc*)self) before = &(*before)->next;
    if (*before) *before = ((Ufunc*)self)->next;
    Py_CLEAR(((Ufunc*)self)->numpy);
    if (((Ufunc*)self)->loops) Py_CLEAR(((Ufunc*)self)->loops->ufunc);
    PyMem_Free(((Ufunc*)self)->loops);
    if (((Ufunc*)self)->own) Py_CLEAR(((Ufunc*)self)->own->ufunc);
    PyMem_Free(((Ufunc*)self)->own);
    Py_CLEAR(((Ufunc*)self)->own_ufunc);
    Py_TYPE(self)->tp_free(self);
}

static PyObject* ufunc_create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    (void)args, (void)kwargs;
    return type->tp_alloc(type, 0);
}

static PyTypeObject ufunc_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.array._core.Ufunc",
    .tp_doc = "The part of a ufunc that the core knows.",
    .tp_basicsize = sizeof(Ufunc),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = ufunc_create,
    .tp_dealloc = ufunc_dealloc,
};

static int is_ufunc(PyObject* x) { return PyObject_TypeCheck(x, &ufunc_type) && ((Ufunc*)x)->numpy; }
/* Whether a ufunc is one of NumPy's own, whose calls run no code of a program's. */
static int is_numpys_ufunc(PyObject* x) { return is_ufunc(x) && ((Ufunc*)x)->theirs && ((Ufunc*)x)->loops; }
static PyObject* numpys_ufunc(PyObject* x) { return ((Ufunc*)x)->numpy; }

/* lazynp's own loops of a function, and a ufunc over them, which NumPy calls as its own: for results in given memory, under a mask, of operands that are to be
   cast.  `tan` has none: where NumPy has vectors for it, it is the faster one. */
static int own_bind(Ufunc* self) {
    static struct {
        PyUFuncGenericFunction functions[2];
        void* data[2];
        char types[4];
    } kept[16]; /* NumPy's ufunc keeps the addresses */
    static int count;
    PyUFuncObject* theirs = (PyUFuncObject*)self->numpy;
    Loops* own = count < 16 ? loops_compiled(self->numpy, 1) : NULL;
    int types = 0;
    if (own == NULL) return 0;
    for (int type = NPY_FLOAT; type <= NPY_DOUBLE; type++) {
        if (own->of[type].function == NULL) continue;
        kept[count].functions[types] = own->of[type].function, kept[count].data[types] = own->of[type].data;
        kept[count].types[2 * types] = kept[count].types[2 * types + 1] = (char)type;
        types++;
    }
    self->own_ufunc = PyUFunc_FromFuncAndData(kept[count].functions, kept[count].data, kept[count].types, types, 1, 1, PyUFunc_None, theirs->name, theirs->doc, 0);
    count++;
    if (self->own_ufunc == NULL) return PyMem_Free(own), -1;
    self->own = own;
    return 0;
}

static int ufunc_bind(PyObject* object, PyObject* numpy, int basic, int real, int theirs_all, int costly, int rounds, int compiled, int numpys) {
    Ufunc* self = (Ufunc*)object;
    PyUFuncObject* theirs = (PyUFuncObject*)numpy;
    if (!PyObject_TypeCheck(object, &ufunc_type)) return PyErr_SetString(PyExc_TypeError, "not a ufunc"), -1;
    if (self->numpy == NULL) self->next = ufuncs_bound, ufuncs_bound = self;
    self->vector = ufunc_vector;
    Py_XSETREF(self->numpy, Py_NewRef(numpy));
    self->nin = PyObject_TypeCheck(numpy, &PyUFunc_Type) && theirs->nin <= MOST ? theirs->nin : 0;
    self->real = real;
    self->theirs = theirs_all;
    self->product = PyObject_TypeCheck(numpy, &PyUFunc_Type) && theirs->core_enabled && theirs->nin == 2;
    self->costly = costly, self->rounds = rounds;
    if (numpys && PyObject_TypeCheck(numpy, &PyUFunc_Type) && theirs->nout == 2 && !theirs->core_enabled) two_loops_add(theirs);
    self->multiplies = self->product && strcmp(theirs->name, "matmul") == 0;
    if (numpys && PyObject_TypeCheck(numpy, &PyUFunc_Type) && theirs->nout <= 2 && theirs->nin <= 3 && !theirs->core_enabled && self->calls == NULL)
        self->calls = (Function*)function_new(object, numpy, Py_None, UFUNC, NOT_RECORDED, NO_REDUCTION, NULL, NULL, NULL, 1, 0, 0, Py_None, theirs->nin, 0, ASKED_MOST, theirs->nin, 0, 0);
    if (PyErr_Occurred()) return -1;
    if (!PyObject_TypeCheck(numpy, &PyUFunc_Type) || theirs->nout != 1 || theirs->nin > 2 || theirs->core_enabled || self->loops) return 0;
    self->loops = PyMem_Malloc(sizeof(Loops));
    if (self->loops == NULL) return PyErr_NoMemory(), -1;
    loops_fill(self->loops, numpy, basic);
    self->loops->costly = costly;
    if (costly && compiled) self->kernels = loops_compiled(numpy, 0);
    if (costly && compiled && numpys && theirs->nin == 1 && strcmp(theirs->name, "tan") && own_bind(self) < 0) return -1;
    self->powers = strcmp(theirs->name, "power") == 0;
    self->errs_at_one = strcmp(theirs->name, "arctanh") == 0 || strncmp(theirs->name, "logaddexp", 9) == 0 || strcmp(theirs->name, "nextafter") == 0;
    self->deprecates = strcmp(theirs->name, "maximum") == 0 || strcmp(theirs->name, "minimum") == 0;
    if (self->kernels && self->powers) power_kernels = self->kernels;
    return 0;
}

/* Calls of the instances of `type`, a subclass of Ufunc, come to `ufunc_call`. */
static void ufunc_register(PyTypeObject* type) {
    type->tp_vectorcall_offset = offsetof(Ufunc, vector);
    type->tp_call = PyVectorcall_Call;
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(type);
}

static int functions_ready(void) { return PyType_Ready(&function_type) < 0 || PyType_Ready(&builtin_type) < 0 || PyType_Ready(&ufunc_type) < 0 ? -1 : 0; }

#endif
