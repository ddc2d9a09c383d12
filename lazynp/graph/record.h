/* Recording the commonest operations: arrays that are plain, with arrays or numbers, where the loop is one graph operation.

   In: the operands of an operator or ufunc.  Out: a new array of a new node.  Promise: it is the node that the function in Python would have
   made; what is not plain goes to that function. */

#ifndef LAZYNP_RECORD_H
#define LAZYNP_RECORD_H

#include "canonical.h"

/* What an array keeps, and where. */
static PyTypeObject* array_class;
static Py_ssize_t base_at, node_at, readonly_at;
static PyObject *wrap_function, *config_dict, *at_hand_name, *eager_name, *recorder_name;
static int remembered_depth; /* arrays of deeper nodes are known to those who cut chains */

#define FIELD(X, AT) (*(PyObject**)((char*)(X) + (AT)))

enum { BINARY, REFLECTED, UNARY };
enum { CODES = 20, WEAK_FLOAT = 18, WEAK_INT = 19 };

/* A rule: the operation, the dtype of its result, that of its sources, the largest number that converts without an error (infinity: any). */
typedef struct {
    PyObject *op, *dtype, *source;
    double limit;
    int looked, limited; /* looked: 1 there is a rule, -1 there is none to use here */
} Rule;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vector;
    PyObject *slow, *directs; /* the function in Python, and the ufunc's rules by dtypes */
    int kind, power;
    Rule* rules;
    PyObject* weakrefs;
} Recorder;

static PyTypeObject recorder_type, calls_type;

static inline int compact_code(PyObject* dtype) {
    int code = dtype_code(dtype);
    return code == NPY_HALF ? NPY_CDOUBLE + 1 : code; /* 16, the first that no other has */
}

/* The rule for two kinds of operands, the second of which may be missing; NULL where there is none to use. */
static Rule* rule_of(Recorder* self, int row, int column, PyObject* first, PyObject* second) {
    Rule* rule = &self->rules[row * CODES + column];
    PyObject *key, *found, *limit;
    if (rule->looked) return rule->looked > 0 ? rule : NULL;
    key = second ? PyTuple_Pack(2, first, second) : PyTuple_Pack(1, first);
    if (key == NULL) return NULL;
    found = PyDict_GetItemWithError(self->directs, key);
    Py_DECREF(key);
    if (found == NULL) return NULL; /* the function in Python finds out */
    if (!PyTuple_CheckExact(found) || PyTuple_GET_SIZE(found) != 4 || dtype_code(PyTuple_GET_ITEM(found, 1)) < 0) return rule->looked = -1, NULL;
    limit = PyTuple_GET_ITEM(found, 3);
    rule->limited = limit != Py_None;
    rule->limit = rule->limited ? PyFloat_AsDouble(limit) : 0;
    rule->op = Py_NewRef(PyTuple_GET_ITEM(found, 0));
    rule->dtype = Py_NewRef(PyTuple_GET_ITEM(found, 1));
    rule->source = Py_NewRef(PyTuple_GET_ITEM(found, 2));
    rule->looked = 1;
    return rule;
}

/* The node of a plain array (borrowed); NULL for all others.  Where it may be at hand, as first operands must not be, it is not plain. */
static inline Node* plain(PyObject* x, int first) {
    PyObject *node, *limit;
    Node* found;
    if (Py_TYPE(x) != array_class || FIELD(x, base_at) != Py_None) return NULL;
    node = FIELD(x, node_at);
    if (node == NULL || Py_TYPE(node) != &node_type) return NULL;
    found = (Node*)node;
    if (!PyTuple_CheckExact(found->shape) || PyTuple_GET_SIZE(found->shape) == 0) return NULL;
    if (first && found->buffer != Py_None && (limit = PyDict_GetItemWithError(config_dict, at_hand_name))) {
        long long most = PyLong_AsLongLong(limit), size = 1;
        Py_ssize_t k;
        for (k = PyTuple_GET_SIZE(found->shape); most && k--;) size *= PyLong_AsLongLong(PyTuple_GET_ITEM(found->shape, k));
        if (most && size <= most) return NULL;
    }
    return found;
}

/* A new plain array of a node, which is taken over. */
static PyObject* wrapped(Node* node) {
    PyObject *eager, *made;
    if (node == NULL) return NULL;
    if (node->depth > remembered_depth || PyDict_GetItemWithError(config_dict, eager_name) != Py_False) goto slow;
    if (node->err != default_state) {
        eager = PyObject_GetAttr(node->err, eager_name);
        if (eager == NULL) return Py_DECREF(node), NULL;
        Py_DECREF(eager);
        if (eager != Py_False) goto slow;
    }
    made = array_class->tp_alloc(array_class, 0);
    if (made == NULL) return Py_DECREF(node), NULL;
    FIELD(made, base_at) = Py_NewRef(Py_None);
    FIELD(made, node_at) = (PyObject*)node;
    FIELD(made, readonly_at) = Py_NewRef(Py_False);
    return made;
slow:
    made = PyObject_CallOneArg(wrap_function, (PyObject*)node);
    Py_DECREF(node);
    return made;
}

/* The shape two shapes broadcast to (a new reference); NULL without an exception where they do not. */
static PyObject* common_shape(PyObject* a, PyObject* b) {
    Py_ssize_t n = PyTuple_GET_SIZE(a), m = PyTuple_GET_SIZE(b), k, longer = n > m ? n : m;
    PyObject* made;
    int is_a = n >= m, is_b = m >= n;
    if (a == b) return Py_NewRef(a);
    if (longer > 64) return NULL;
    PyObject* extents[64];
    for (k = 1; k <= longer; k++) {
        PyObject *x = k <= n ? PyTuple_GET_ITEM(a, n - k) : NULL, *y = k <= m ? PyTuple_GET_ITEM(b, m - k) : NULL;
        long long p = x ? PyLong_AsLongLong(x) : 1, q = y ? PyLong_AsLongLong(y) : 1;
        if (p != q && p != 1 && q != 1) return NULL;
        extents[longer - k] = p == 1 && y ? y : x ? x : y;
        if (p != q) p == 1 ? (is_a = 0) : (is_b = 0);
    }
    if (is_a || is_b) return Py_NewRef(is_a ? a : b);
    made = PyTuple_New(longer);
    for (k = 0; made && k < longer; k++) PyTuple_SET_ITEM(made, k, Py_NewRef(extents[k]));
    return made;
}

/* A Python number in a dtype (a new reference); NULL, without an exception where it does not go in. */
static PyObject* converted(PyObject* number, PyObject* dtype, Rule* rule) {
    PyArray_Descr* descr = (PyArray_Descr*)dtype;
    PyObject* made;
    double value;
    int overflow;
    if (PyFloat_CheckExact(number)) {
        value = PyFloat_AS_DOUBLE(number);
    } else {
        long long integer = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (overflow) return NULL;
        if (descr->type_num == NPY_LONG && sizeof(npy_long) == sizeof(long long)) return PyArray_Scalar(&integer, descr, NULL);
        value = (double)integer;
        if (rule->limited && (integer > 1 << 24 || integer < -(1 << 24))) return NULL;
    }
    if (rule->limited && !(-rule->limit <= value && value <= rule->limit)) return NULL;
    if (descr->type_num == NPY_DOUBLE) return PyArray_Scalar(&value, descr, NULL);
    made = PyObject_CallOneArg((PyObject*)descr->typeobj, number);
    if (made == NULL && PyErr_ExceptionMatches(PyExc_OverflowError)) PyErr_Clear();
    return made;
}

static inline PyObject* pair(PyObject* a, PyObject* b) { /* both are taken over */
    PyObject* made = a && b ? PyTuple_New(2) : NULL;
    if (made == NULL) {
        Py_XDECREF(a), Py_XDECREF(b);
        return NULL;
    }
    PyTuple_SET_ITEM(made, 0, a), PyTuple_SET_ITEM(made, 1, b);
    return made;
}

static inline PyObject* nothing(void) { return PyTuple_New(0); } /* one for all */

static PyObject* record_two(Recorder* self, PyObject* a, PyObject* b) {
    Node *x = plain(a, 1), *y;
    PyTypeObject* type = Py_TYPE(b);
    PyObject *shape, *value, *sources, *code;
    Rule* rule;
    int offset = 0, row, weak;
    if (x == NULL || (row = compact_code(x->dtype)) < 0) return NULL;
    if (type == array_class) {
        int column;
        if (self->kind == REFLECTED || (y = plain(b, 0)) == NULL || (column = compact_code(y->dtype)) < 0) return NULL;
        rule = rule_of(self, row, column, x->dtype, y->dtype);
        if (rule == NULL || (shape = common_shape(x->shape, y->shape)) == NULL) return NULL;
        sources = pair(Py_NewRef((PyObject*)x), Py_NewRef((PyObject*)y));
    } else {
        if (type == &PyFloat_Type) weak = WEAK_FLOAT;
        else if (type == &PyLong_Type) weak = WEAK_INT;
        else return NULL;
        if (self->power) return NULL;
        if (self->kind == REFLECTED) rule = rule_of(self, row, weak, (PyObject*)type, x->dtype);
        else rule = rule_of(self, row, weak, x->dtype, (PyObject*)type);
        if (rule == NULL || (value = converted(b, rule->source, rule)) == NULL) return NULL;
        y = node_make(const_op, nothing(), value, rule->source, nothing(), NULL, 0);
        if (y == NULL) return NULL;
        sources = self->kind == REFLECTED ? pair((PyObject*)y, Py_NewRef((PyObject*)x)) : pair(Py_NewRef((PyObject*)x), (PyObject*)y);
        shape = Py_NewRef(x->shape);
    }
    code = user_code(&offset);
    value = wrapped(node_make(rule->op, sources, Py_NewRef(Py_None), rule->dtype, shape, code, offset));
    Py_DECREF(shape);
    return value;
}

static PyObject* record_one(Recorder* self, PyObject* a) {
    Node* x = plain(a, 1);
    PyObject *sources, *code;
    Rule* rule;
    int offset = 0, row;
    if (x == NULL || (row = compact_code(x->dtype)) < 0 || (rule = rule_of(self, row, 0, x->dtype, NULL)) == NULL) return NULL;
    sources = PyTuple_Pack(1, x);
    code = user_code(&offset);
    return wrapped(node_make(rule->op, sources, Py_NewRef(Py_None), rule->dtype, x->shape, code, offset));
}

/* What was recorded; NULL, without an exception, where the function in Python must do it. */
static inline PyObject* recorded(Recorder* self, PyObject* const* args, Py_ssize_t n) {
    if (n == 2 && self->kind != UNARY) return record_two(self, args[0], args[1]);
    return n == 1 && self->kind == UNARY ? record_one(self, args[0]) : NULL;
}

static PyObject* recorder_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
    Recorder* self = (Recorder*)callable;
    PyObject* found = names ? NULL : recorded(self, args, PyVectorcall_NARGS(nargsf));
    return found || PyErr_Occurred() ? found : PyObject_Vectorcall(self->slow, args, nargsf, names);
}

/* The `__call__` of a class of ufuncs, each of which has a recorder. */
static PyObject* calls_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names) {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyObject *found = NULL, *recorder;
    if (names == NULL && (n == 2 || n == 3) && Py_TYPE(args[1]) == array_class) {
        recorder = PyObject_GetAttr(args[0], recorder_name);
        if (recorder == NULL) return NULL;
        if (Py_TYPE(recorder) == &recorder_type) found = recorded((Recorder*)recorder, args + 1, n - 1);
        Py_DECREF(recorder);
    }
    return found || PyErr_Occurred() ? found : PyObject_Vectorcall(((Recorder*)callable)->slow, args, nargsf, names);
}

static PyObject* recorder_new(PyTypeObject* type, PyObject* slow, PyObject* directs, int kind, int power) {
    Recorder* made = PyObject_GC_New(Recorder, type);
    if (made == NULL) return NULL;
    made->vector = type == &calls_type ? calls_call : recorder_call;
    made->slow = Py_NewRef(slow);
    made->directs = Py_NewRef(directs);
    made->kind = kind;
    made->power = power;
    made->weakrefs = NULL;
    made->rules = type == &calls_type ? NULL : PyMem_Calloc(CODES * CODES, sizeof(Rule));
    PyObject_GC_Track((PyObject*)made);
    if (made->rules == NULL && type != &calls_type) return Py_DECREF(made), PyErr_NoMemory();
    return (PyObject*)made;
}

static int recorder_traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(((Recorder*)object)->slow);
    Py_VISIT(((Recorder*)object)->directs);
    return 0;
}
static int recorder_clear(PyObject* object) {
    Py_CLEAR(((Recorder*)object)->slow);
    Py_CLEAR(((Recorder*)object)->directs);
    return 0;
}
static void recorder_dealloc(PyObject* object) {
    Recorder* self = (Recorder*)object;
    int k;
    PyObject_GC_UnTrack(object);
    if (self->weakrefs) PyObject_ClearWeakRefs(object);
    recorder_clear(object);
    for (k = 0; self->rules && k < CODES * CODES; k++) {
        Py_XDECREF(self->rules[k].op);
        Py_XDECREF(self->rules[k].dtype);
        Py_XDECREF(self->rules[k].source);
    }
    PyMem_Free(self->rules);
    PyObject_GC_Del(object);
}
/* It stands for the function in Python in everything but being called: name, signature, documentation. */
static PyObject* recorder_getattro(PyObject* self, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (text == NULL) return NULL;
    if (!strncmp(text, "__reduce", 8) || !strcmp(text, "__get__") || !strcmp(text, "__call__") || !strcmp(text, "__class__"))
        return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(((Recorder*)self)->slow, name);
}
static PyObject* recorder_get(PyObject* self, PyObject* object, PyObject* type) {
    (void)type;
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}
static PyObject* recorder_repr(PyObject* self) { return PyObject_Repr(((Recorder*)self)->slow); }

#define RECORDER(NAME) \
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = NAME, .tp_basicsize = sizeof(Recorder), \
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, \
    .tp_vectorcall_offset = offsetof(Recorder, vector), .tp_call = PyVectorcall_Call, .tp_dealloc = recorder_dealloc, \
    .tp_traverse = recorder_traverse, .tp_clear = recorder_clear, .tp_descr_get = recorder_get, .tp_getattro = recorder_getattro, \
    .tp_repr = recorder_repr, .tp_weaklistoffset = offsetof(Recorder, weakrefs)
static PyTypeObject recorder_type = {RECORDER("lazynp.graph._native.Recorder"), .tp_doc = "An operation that is recorded in C where it is plain."};
static PyTypeObject calls_type = {RECORDER("lazynp.graph._native.Calls"), .tp_doc = "The calls of a class of ufuncs."};

static Py_ssize_t member_offset(PyObject* type, const char* name) {
    PyObject* member = PyObject_GetAttrString(type, name);
    Py_ssize_t offset = -1;
    if (member && Py_TYPE(member) == &PyMemberDescr_Type) offset = ((PyMemberDescrObject*)member)->d_member->offset;
    else if (member) PyErr_Format(PyExc_TypeError, "%s is no member of arrays", name);
    Py_XDECREF(member);
    return offset;
}

static int record_ready(void) { return PyType_Ready(&recorder_type) < 0 || PyType_Ready(&calls_type) < 0 ? -1 : 0; }

static int arrays_are(PyObject* type) {
    if ((base_at = member_offset(type, "_base")) < 0 || (node_at = member_offset(type, "_node")) < 0 || (readonly_at = member_offset(type, "_readonly")) < 0)
        return -1;
    array_class = (PyTypeObject*)type;
    return 0;
}

#endif
