/* The graph node; what its attributes mean: `_native.pyi`.

   In: an operation and its sources.  Out: a node.  Promise: making one asks for the error state and the line, and runs no Python code but
   where that state is new. */

#ifndef LAZYNP_NODE_H
#define LAZYNP_NODE_H

#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <string.h>

typedef struct Node {
    PyObject_HEAD
    PyObject *op, *src, *arg, *dtype, *shape, *code, *err, *buffer, *error, *weakrefs;
    long long number, below; /* bytes of the results of calls under it */
    struct Node* counted;    /* its reader that was counted last */
    unsigned long long walk; /* the walk that met it last, for which `below`, `entry`, `readers`, `kept`, `later` and `given` hold */
    int entry, depth, offset, readers; /* how many sources in the walk it is */
    int forms; /* references that canonical forms hold: of runs that go on in other threads */
    char computed, kept, later, given; /* given: to a product of matrices, so that its value lies in memory */
} Node;

static PyTypeObject node_type;
static long long next_number;
static long long pending_nodes; /* that have sources: their values do not exist yet */

/* Given by the module: */
static PyObject *leaf_op;                                        /* BUFFER */
static PyObject *state_variable, *default_token, *default_state; /* the variable is NULL where NumPy keeps it elsewhere */
static PyObject* state_of;
static PyObject *last_token, *last_state; /* the state that was asked for last, where it is not the default one */
static const char* root_name;             /* the package's directory */
static Py_ssize_t root_length;

/* Python's filters of warnings, and what they say of floating-point errors (`filters.py`). */
static PyObject *warnings_dict, *filters_name, *read_filters, *minded_name;
static PyObject *filters_list, *filters_held; /* the list in force, and what was in it, as a tuple */
static long filters_said;                     /* 0: they are told with the value */
static PyObject *minded_state, *minded_made;  /* the state that was asked for last where it is not 0, and what was made of it */

static inline int filters_changed(void) {
#if PY_VERSION_HEX < 0x030C0000 /* a dictionary says whether it has changed */
    static uint64_t version;
    if (((PyDictObject*)warnings_dict)->ma_version_tag != version) {
        version = ((PyDictObject*)warnings_dict)->ma_version_tag;
        return 1;
    }
#else
    if (PyDict_GetItem(warnings_dict, filters_name) != filters_list) return 1;
#endif
    Py_ssize_t n = filters_held ? PyTuple_GET_SIZE(filters_held) : -1;
    return n < 0 || PyList_GET_SIZE(filters_list) != n ||
           (n && memcmp(((PyListObject*)filters_list)->ob_item, ((PyTupleObject*)filters_held)->ob_item, (size_t)n * sizeof(PyObject*)));
}

/* Put two objects (taken over; NULL: none) in the place of two others at once: what goes may run code, and let other threads run. */
static void both_set(PyObject** a, PyObject* x, PyObject** b, PyObject* y) {
    PyObject *old_a = *a, *old_b = *b;
    *a = x, *b = y;
    Py_XDECREF(old_a), Py_XDECREF(old_b);
}

/* Ask what the filters say.  Other threads may exchange them meanwhile: then they are read again the next time. */
static int filters_read(void) {
    PyObject *list = Py_XNewRef(PyDict_GetItem(warnings_dict, filters_name)), *held = list && PyList_CheckExact(list) ? PyList_AsTuple(list) : NULL;
    PyObject* said = PyErr_Occurred() ? NULL : PyObject_CallNoArgs(read_filters);
    if (said == NULL) {
        Py_XDECREF(list), Py_XDECREF(held);
        return -1;
    }
    if (PyDict_GetItem(warnings_dict, filters_name) != list) Py_CLEAR(held);
    filters_said = PyLong_AsLong(said);
    Py_DECREF(said);
    both_set(&minded_state, NULL, &minded_made, NULL);
    both_set(&filters_list, list, &filters_held, held);
    return PyErr_Occurred() ? -1 : 0;
}

/* Ask the next time, whether they have changed or not. */
static void filters_forget(void) { both_set(&filters_list, NULL, &filters_held, NULL); }

/* A state (taken over) with what the filters say of its warnings. */
static PyObject* minded(PyObject* state) {
    PyObject *said, *found;
    if (state == NULL) return NULL;
    if (state == minded_state) {
        Py_DECREF(state);
        return Py_NewRef(minded_made);
    }
    said = PyLong_FromLong(filters_said);
    found = said ? PyObject_CallMethodOneArg(state, minded_name, said) : NULL;
    Py_XDECREF(said);
    if (found) both_set(&minded_state, state, &minded_made, Py_NewRef(found));
    else Py_DECREF(state);
    return found;
}

/* The state that NumPy's error state stands for (a new reference). */
static inline PyObject* numpys_state(void) {
    PyObject *token = NULL, *state;
    if (state_variable && PyContextVar_Get(state_variable, NULL, &token) < 0) return NULL;
    if (token == default_token || (token && token == last_token)) {
        state = Py_NewRef(token == default_token ? default_state : last_state);
        Py_DECREF(token);
        return state;
    }
    state = PyObject_CallOneArg(state_of, token ? token : Py_None);
    if (state && token) both_set(&last_token, Py_NewRef(token), &last_state, Py_NewRef(state));
    Py_XDECREF(token);
    return state;
}

/* The error state of the running context, for what is recorded now (a new reference). */
static inline PyObject* current_state(void) {
    if (filters_changed() && filters_read() < 0) return NULL;
    return filters_said ? minded(numpys_state()) : numpys_state();
}

static inline int ours(PyCodeObject* code) {
    PyObject* name = code->co_filename;
    const char* text;
    if (PyUnicode_IS_COMPACT_ASCII(name)) return PyUnicode_GET_LENGTH(name) > root_length && !memcmp(PyUnicode_DATA(name), root_name, root_length);
    text = PyUnicode_AsUTF8(name);
    if (text == NULL) PyErr_Clear(); /* a name of lone surrogates, which is not ours */
    return text && !strncmp(text, root_name, root_length);
}

/* The nearest frame outside lazynp, as its code (a new reference; NULL where there is none) and the offset of its instruction. */
static inline PyObject* user_code(int* offset) {
    PyFrameObject *frame = PyEval_GetFrame(), *back;
    PyCodeObject* code;
    if (frame == NULL) return NULL;
    Py_INCREF(frame);
    while (1) {
        code = PyFrame_GetCode(frame);
        if (!ours(code) || (back = PyFrame_GetBack(frame)) == NULL) break;
        Py_DECREF(code), Py_DECREF(frame);
        frame = back;
    }
    *offset = PyFrame_GetLasti(frame);
    Py_DECREF(frame);
    return (PyObject*)code;
}

#define KEPT_NODES 1024
static Node* kept_nodes[KEPT_NODES];
static int kept_nodes_count;

static inline int is_node(PyObject* x) { return Py_TYPE(x) == &node_type || PyType_IsSubtype(Py_TYPE(x), &node_type); }

/* A node of a type; `src` and `arg` are taken over, and so is `code`, which may be NULL; also where it fails. */
static inline Node* node_of_type(
    PyTypeObject* type, PyObject* op, PyObject* src, PyObject* arg, PyObject* dtype, PyObject* shape, PyObject* code, int offset) {
    Node* made;
    Py_ssize_t k;
    PyObject* state = current_state();
    if (state == NULL || src == NULL || arg == NULL) goto failed;
    if (type != &node_type) {
        if ((made = (Node*)type->tp_alloc(type, 0)) == NULL) goto failed;
        PyObject_GC_UnTrack((PyObject*)made);
    } else if (kept_nodes_count) {
        made = (Node*)PyObject_Init((PyObject*)kept_nodes[--kept_nodes_count], &node_type);
    } else if ((made = PyObject_GC_New(Node, &node_type)) == NULL) {
        goto failed;
    }
    made->op = Py_NewRef(op);
    made->src = src;
    made->arg = arg;
    made->dtype = Py_NewRef(dtype);
    made->shape = Py_NewRef(shape);
    made->code = code;
    made->offset = offset;
    made->err = state;
    made->buffer = Py_NewRef(Py_None);
    made->error = Py_NewRef(Py_None);
    made->weakrefs = NULL;
    made->number = next_number++;
    made->walk = 0;
    made->computed = made->kept = made->later = made->given = 0;
    made->entry = made->depth = -1;
    made->readers = made->forms = 0;
    made->below = 0;
    made->counted = NULL;
    for (k = PyTuple_GET_SIZE(src); k--;) {
        int depth = ((Node*)PyTuple_GET_ITEM(src, k))->depth;
        if (depth > made->depth) made->depth = depth;
    }
    made->depth++;
    pending_nodes += PyTuple_GET_SIZE(src) > 0;
    PyObject_GC_Track((PyObject*)made);
    return made;
failed:
    Py_XDECREF(state), Py_XDECREF(src), Py_XDECREF(arg), Py_XDECREF(code);
    return NULL;
}

static Node* node_make(PyObject* op, PyObject* src, PyObject* arg, PyObject* dtype, PyObject* shape, PyObject* code, int offset) {
    return node_of_type(&node_type, op, src, arg, dtype, shape, code, offset);
}

static int node_clear(PyObject* object) {
    Node* self = (Node*)object;
    pending_nodes -= self->src && PyTuple_GET_SIZE(self->src) > 0;
    Py_CLEAR(self->src);
    Py_CLEAR(self->arg);
    Py_CLEAR(self->err);
    Py_CLEAR(self->buffer);
    Py_CLEAR(self->error);
    return 0;
}

static int node_traverse(PyObject* object, visitproc visit, void* arg) {
    Node* self = (Node*)object;
    Py_VISIT(self->src);
    Py_VISIT(self->arg);
    Py_VISIT(self->err);
    Py_VISIT(self->buffer);
    Py_VISIT(self->error);
    return 0;
}

static void node_dealloc(PyObject* self) { /* chains may be deep */
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, node_dealloc)
    Node* node = (Node*)self;
    if (node->weakrefs) PyObject_ClearWeakRefs(self);
    node_clear(self);
    Py_CLEAR(node->op);
    Py_CLEAR(node->dtype);
    Py_CLEAR(node->shape);
    Py_CLEAR(node->code);
    if (Py_TYPE(self) != &node_type) Py_TYPE(self)->tp_free(self);
    else if (kept_nodes_count < KEPT_NODES) kept_nodes[kept_nodes_count++] = node;
    else PyObject_GC_Del(self);
    Py_TRASHCAN_END
}

/* What `site` is: None, or a code object and an offset in it. */
static int site_parts(PyObject* site, PyObject** code, int* offset) {
    long at;
    *code = NULL;
    *offset = 0;
    if (site == NULL || site == Py_None) return 0;
    if (!PyTuple_Check(site) || PyTuple_GET_SIZE(site) != 2) {
        PyErr_SetString(PyExc_TypeError, "a site is a code object and an offset in it");
        return -1;
    }
    at = PyLong_AsLong(PyTuple_GET_ITEM(site, 1));
    if (at == -1 && PyErr_Occurred()) return -1;
    *code = Py_NewRef(PyTuple_GET_ITEM(site, 0));
    *offset = (int)at;
    return 0;
}

static PyObject* node_new(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* names) {
    PyObject *given[6] = {NULL}, *code;
    static const char* const keywords[6] = {"op", "src", "arg", "dtype", "shape", "site"};
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), k, i;
    int offset;
    for (k = 0; k < n && k < 6; k++) given[k] = args[k];
    for (k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
        for (i = 0; i < 6 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), keywords[i]); i++);
        if (i == 6 || given[i]) goto wrong;
        given[i] = args[n + k];
    }
    if (n > 6 || !given[0] || !given[1] || !given[2] || !given[3] || !given[4]) goto wrong;
    if (!PyTuple_Check(given[1])) goto wrong;
    for (k = PyTuple_GET_SIZE(given[1]); k--;)
        if (!is_node(PyTuple_GET_ITEM(given[1], k))) goto wrong;
    if (site_parts(given[5], &code, &offset) < 0) return NULL;
    return (PyObject*)node_of_type(
        (PyTypeObject*)type, given[0], Py_NewRef(given[1]), Py_NewRef(given[2]), given[3], given[4], code, offset);
wrong:
    PyErr_SetString(PyExc_TypeError, "a node is made of an operation, a tuple of nodes, an argument, a dtype and a shape, and perhaps a site");
    return NULL;
}

static PyObject* node_create(PyTypeObject* type, PyObject* args, PyObject* keywords) { /* of a subclass */
    if (keywords && PyDict_GET_SIZE(keywords)) return PyErr_SetString(PyExc_TypeError, "a node takes no keywords here"), NULL;
    return node_new((PyObject*)type, ((PyTupleObject*)args)->ob_item, PyTuple_GET_SIZE(args), NULL);
}

static PyObject* node_publish(PyObject* object, PyObject* buffer) {
    Node* self = (Node*)object;
    PyObject *op = self->op, *arg = self->arg, *src = self->src, *before = self->buffer, *empty = PyTuple_New(0);
    if (empty == NULL) return NULL;
    self->buffer = Py_NewRef(buffer);
    self->op = Py_NewRef(leaf_op);
    self->arg = Py_NewRef(Py_None);
    pending_nodes -= src && PyTuple_GET_SIZE(src) > 0;
    self->src = empty;
    self->depth = 0;
    Py_DECREF(before), Py_DECREF(op), Py_DECREF(arg), Py_DECREF(src);
    Py_RETURN_NONE;
}

static PyObject* node_repr(PyObject* object) {
    Node* self = (Node*)object;
    return PyUnicode_FromFormat("<%R %S %R>", self->op, self->dtype, self->shape);
}

static PyObject* node_site(PyObject* object, void* closure) {
    Node* self = (Node*)object;
    (void)closure;
    return self->code ? Py_BuildValue("(Oi)", self->code, self->offset) : Py_NewRef(Py_None);
}

static int node_set_site(PyObject* object, PyObject* site, void* closure) {
    Node* self = (Node*)object;
    PyObject* code;
    int offset;
    (void)closure;
    if (site_parts(site, &code, &offset) < 0) return -1;
    Py_XSETREF(self->code, code);
    self->offset = offset;
    return 0;
}

static int node_set_src(PyObject* object, PyObject* src, void* closure) {
    Node* self = (Node*)object;
    Py_ssize_t k;
    (void)closure;
    if (src == NULL || !PyTuple_CheckExact(src)) goto wrong;
    for (k = PyTuple_GET_SIZE(src); k--;)
        if (!is_node(PyTuple_GET_ITEM(src, k))) goto wrong;
    pending_nodes += (PyTuple_GET_SIZE(src) > 0) - (self->src && PyTuple_GET_SIZE(self->src) > 0);
    Py_XSETREF(self->src, Py_NewRef(src));
    return 0;
wrong:
    PyErr_SetString(PyExc_TypeError, "the sources of a node are a tuple of nodes");
    return -1;
}

static PyObject* node_src(PyObject* object, void* closure) {
    (void)closure;
    return Py_NewRef(((Node*)object)->src);
}

static PyMemberDef node_members[] = {
    {"op", T_OBJECT_EX, offsetof(Node, op), 0, NULL},         {"arg", T_OBJECT_EX, offsetof(Node, arg), 0, NULL},
    {"dtype", T_OBJECT_EX, offsetof(Node, dtype), 0, NULL},   {"shape", T_OBJECT_EX, offsetof(Node, shape), 0, NULL},
    {"err", T_OBJECT_EX, offsetof(Node, err), 0, NULL},       {"buffer", T_OBJECT_EX, offsetof(Node, buffer), 0, NULL},
    {"error", T_OBJECT_EX, offsetof(Node, error), 0, NULL},   {"number", T_LONGLONG, offsetof(Node, number), 0, NULL},
    {"depth", T_INT, offsetof(Node, depth), 0, NULL},         {"computed", T_BOOL, offsetof(Node, computed), 0, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyGetSetDef node_getset[] = {{"site", node_site, node_set_site, "Where the user's program recorded it.", NULL},
                                    {"src", node_src, node_set_src, "What it is computed from.", NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef node_methods[] = {
    {"publish", node_publish, METH_O, "publish(buffer)\n\nThe value exists now: become a leaf and let go of the history."},
    {NULL, NULL, 0, NULL}};

static PyTypeObject node_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lazynp.graph._native.Node",
    .tp_doc = "One value of the program; see ``lazynp/graph/_native.pyi``.",
    .tp_basicsize = sizeof(Node),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = node_create,
    .tp_vectorcall = (vectorcallfunc)node_new,
    .tp_dealloc = node_dealloc,
    .tp_traverse = node_traverse,
    .tp_clear = node_clear,
    .tp_weaklistoffset = offsetof(Node, weakrefs),
    .tp_members = node_members,
    .tp_getset = node_getset,
    .tp_methods = node_methods,
    .tp_repr = node_repr,
};

#endif
