/* Recording the commonest operations: arrays that are plain, with arrays or numbers, where the loop is one graph operation.

   In: the operands of an operator or ufunc.  Out: a new array of a new node.  Promise: it is the node that the function in Python would have
   made; what is not plain goes to that function. */

#ifndef LAZYNP_RECORD_H
#define LAZYNP_RECORD_H

#include "canonical.h"

/* What an array keeps, and where. */
static PyTypeObject *array_class, *view_class, *scalar_class;
static Py_ssize_t base_at, node_at, view_at, stamp_at, readonly_at, path_at, root_at, root_dtype_at, view_shape_at, scalar_node_at;
static PyObject *wrap_function, *node_function, *eager_name, *recorder_name, *axes_op, *expand_op;
static int remembered_depth; /* arrays of deeper nodes are known to those who cut chains */

#define FIELD(X, AT) (*(PyObject**)((char*)(X) + (AT)))

enum { BINARY, REFLECTED, UNARY, GETITEM };
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
    PyObject *key, *found, *limit;
    Rule* rule;
    if (self->rules == NULL && (self->rules = PyMem_Calloc(CODES * CODES, sizeof(Rule))) == NULL) return (Rule*)PyErr_NoMemory();
    rule = &self->rules[row * CODES + column];
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

/* Whether a shape has so few elements that its array may hold its memory itself. */
static inline int small(PyObject* shape) {
    long long most = most_at_hand(), size = 1;
    Py_ssize_t k;
    for (k = PyTuple_GET_SIZE(shape); most && k--;) size *= PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k));
    return most && size <= most;
}

/* The node of a plain array (borrowed); NULL for all others. */
static inline Node* plain(PyObject* x) {
    PyObject* node = Py_TYPE(x) == array_class && FIELD(x, base_at) == Py_None ? FIELD(x, node_at) : NULL;
    if (node == NULL || Py_TYPE(node) != &node_type || !PyTuple_CheckExact(((Node*)node)->shape)) return NULL;
    return (Node*)node;
}

/* Whether the strides of a view cannot ask for another order than C: anything but axes that were exchanged, and what is no slice. */
static int in_c_order(PyObject* view) {
    PyObject *path = FIELD(view, path_at), *step, *arg;
    Py_ssize_t k, i;
    if (path == NULL || !PyTuple_CheckExact(path)) return 0;
    for (k = 0; k < PyTuple_GET_SIZE(path); k++) {
        long last = -1, axis;
        step = PyTuple_GET_ITEM(path, k);
        if (!PyTuple_CheckExact(step) || PyTuple_GET_SIZE(step) != 3) return 0;
        if (PyTuple_GET_ITEM(step, 0) == slice_op) continue;
        arg = PyTuple_GET_ITEM(step, 1);
        if (PyTuple_GET_ITEM(step, 0) != axes_op || !PyTuple_CheckExact(arg)) return 0;
        for (i = 0; i < PyTuple_GET_SIZE(arg); i++) {
            axis = PyLong_AsLong(PyTuple_GET_ITEM(arg, i));
            if (axis >= 0 && axis < last) return 0;
            if (axis >= 0) last = axis;
        }
    }
    return 1;
}

/* The node of a view that is one slice of `root`, where that is no slice and not one number everywhere; else NULL, without an exception. */
static Node* slice_of(Node* root, PyObject* view) {
    PyObject *path = FIELD(view, path_at), *step, *region, *lengths;
    Py_ssize_t k;
    Node* made;
    int whole = 1;
    if (PyTuple_GET_SIZE(path) != 1 || FIELD(view, root_at) != root->shape || FIELD(view, root_dtype_at) != root->dtype) return NULL;
    step = PyTuple_GET_ITEM(path, 0);
    region = PyTuple_GET_ITEM(step, 1), lengths = PyTuple_GET_ITEM(step, 2);
    if (PyTuple_GET_ITEM(step, 0) != slice_op || root->op == slice_op || root->op == expand_op || !PyTuple_CheckExact(region)) return NULL;
    for (k = 0; whole && k < PyTuple_GET_SIZE(lengths) && k < PyTuple_GET_SIZE(root->shape); k++)
        whole = PyLong_AsLongLong(PyTuple_GET_ITEM(lengths, k)) == PyLong_AsLongLong(PyTuple_GET_ITEM(root->shape, k));
    if (whole) return NULL; /* it may be all of it */
    for (k = 0; k < PyTuple_GET_SIZE(lengths); k++) /* along an axis of length one any step is the same, and written 1 */
        if (PyLong_AsLongLong(PyTuple_GET_ITEM(lengths, k)) <= 1 && PyLong_AsLongLong(PyTuple_GET_ITEM(PyTuple_GET_ITEM(region, k), 1)) != 1) return NULL;
    Py_INCREF(path); /* making a tuple may run code, and the view be another one then */
    made = node_make(slice_op, PyTuple_Pack(1, root), Py_NewRef(region), root->dtype, lengths, Py_XNewRef(root->code), root->offset);
    Py_DECREF(path);
    return made;
}

/* The node of an array that is plain, or a view of one that is (a new reference); NULL, mostly without an exception, for all others.
   Where it may be in memory, as first operands must not be, it is not plain. */
static Node* operand(PyObject* x, int first) {
    PyObject *base = FIELD(x, base_at), *view, *stamp;
    Node *node = plain(x), *root;
    if (node) {
        if (PyTuple_GET_SIZE(node->shape) == 0 || (first && node->buffer != Py_None && small(node->shape))) return NULL;
        return (Node*)Py_NewRef((PyObject*)node);
    }
    if (base && !first && PyArray_CheckExact(base)) { /* in memory: a copy of what the memory holds now */
        if (!PyArray_IS_C_CONTIGUOUS((PyArrayObject*)base) || PyArray_NDIM((PyArrayObject*)base) == 0) return NULL;
        node = (Node*)PyObject_CallOneArg(node_function, x);
        if (node && Py_TYPE(node) != &node_type) Py_CLEAR(node);
        return node;
    }
    view = FIELD(x, view_at);
    if (base && view == NULL) { /* it is made when it is first asked for */
        view = PyObject_GetAttrString(x, "_view");
        if (view == NULL) return PyErr_Clear(), NULL;
        Py_DECREF(view);
        view = FIELD(x, view_at);
    }
    if (base == NULL || view == NULL || (root = plain(base)) == NULL || Py_TYPE(view) != view_class || !in_c_order(view)) return NULL;
    if (!PyTuple_CheckExact(FIELD(view, view_shape_at)) || PyTuple_GET_SIZE(FIELD(view, view_shape_at)) == 0) return NULL;
    if (first && small(FIELD(view, view_shape_at))) return NULL;
    /* The node is derived again once the base has its value. */
    stamp = root->buffer == Py_None ? (PyObject*)root : root->buffer;
    if (FIELD(x, stamp_at) == stamp && FIELD(x, node_at) && Py_TYPE(FIELD(x, node_at)) == &node_type) return (Node*)Py_NewRef(FIELD(x, node_at));
    Py_INCREF(root), Py_INCREF(stamp);
    node = slice_of(root, view);
    if (node && FIELD(x, view_at) == view) {
        Py_XSETREF(FIELD(x, node_at), Py_NewRef((PyObject*)node));
        Py_XSETREF(FIELD(x, stamp_at), Py_NewRef(stamp));
    }
    Py_DECREF(root), Py_DECREF(stamp);
    if (node) return node;
    if (PyErr_Occurred()) return NULL;
    node = (Node*)PyObject_CallOneArg(node_function, x);
    if (node && Py_TYPE(node) != &node_type) Py_CLEAR(node);
    return node;
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

/* A number of a dtype as a node; takes the reference to the number, as `node_make` does of sources and arguments, but not of shapes. */
static Node* constant(PyObject* value, PyObject* dtype) {
    PyObject* nothing = PyTuple_New(0); /* one for all */
    Node* node = nothing ? node_make(const_op, Py_NewRef(nothing), value, dtype, nothing, NULL, 0) : NULL;
    if (nothing == NULL) Py_DECREF(value);
    Py_XDECREF(nothing);
    return node;
}

/* The node of a second operand (a new reference), and its column in the rules; NULL for what is not plain. */
static Node* second_operand(PyObject* b, int* column) {
    PyTypeObject* type = Py_TYPE(b);
    PyArray_Descr* descr;
    Node* node = NULL;
    if (type == array_class) {
        node = operand(b, 0);
    } else if (PyType_IsSubtype(type, scalar_class)) {
        PyObject* found = FIELD(b, scalar_node_at);
        if (found && Py_TYPE(found) == &node_type) node = (Node*)Py_NewRef(found);
    } else if (PyArray_IsScalar(b, Number) || PyArray_IsScalar(b, Bool)) {
        descr = PyArray_DescrFromScalar(b);
        if (descr == NULL) return NULL;
        if (dtype_code((PyObject*)descr) >= 0 && descr->typeobj == type)
            node = constant(Py_NewRef(b), (PyObject*)descr);
        else if (dtype_code((PyObject*)descr) >= 0 && descr->typeobj == type->tp_base && !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) { /* a result */
            npy_clongdouble room;
            PyObject* number;
            PyArray_ScalarAsCtype(b, &room);
            if ((number = PyArray_Scalar(&room, descr, NULL)) != NULL) node = constant(number, (PyObject*)descr);
        }
        Py_DECREF(descr);
    }
    if (node && (*column = compact_code(node->dtype)) < 0) Py_CLEAR(node);
    return node;
}

static PyObject* record_two(Recorder* self, PyObject* a, PyObject* b) {
    Node *x = Py_TYPE(a) == array_class ? operand(a, 1) : NULL, *y = NULL;
    PyTypeObject* type = Py_TYPE(b);
    PyObject *shape = NULL, *value, *code, *found = NULL;
    Rule* rule;
    int offset = 0, row, column;
    if (x == NULL || (row = compact_code(x->dtype)) < 0) goto done;
    if (type == &PyFloat_Type || type == &PyLong_Type) {
        if (self->power) goto done;
        column = type == &PyFloat_Type ? WEAK_FLOAT : WEAK_INT;
        if (self->kind == REFLECTED) rule = rule_of(self, row, column, (PyObject*)type, x->dtype);
        else rule = rule_of(self, row, column, x->dtype, (PyObject*)type);
        if (rule == NULL || (value = converted(b, rule->source, rule)) == NULL) goto done;
        if ((y = constant(value, rule->source)) == NULL) goto done;
        shape = Py_NewRef(x->shape);
    } else {
        if (self->kind == REFLECTED || (y = second_operand(b, &column)) == NULL) goto done;
        if ((rule = rule_of(self, row, column, x->dtype, y->dtype)) == NULL || (shape = common_shape(x->shape, y->shape)) == NULL) goto done;
    }
    value = self->kind == REFLECTED ? pair(Py_NewRef((PyObject*)y), Py_NewRef((PyObject*)x)) : pair(Py_NewRef((PyObject*)x), Py_NewRef((PyObject*)y));
    code = user_code(&offset);
    found = wrapped(node_make(rule->op, value, Py_NewRef(Py_None), rule->dtype, shape, code, offset));
done:
    Py_XDECREF(shape), Py_XDECREF(x), Py_XDECREF(y);
    return found;
}

static PyObject* record_one(Recorder* self, PyObject* a) {
    Node* x = Py_TYPE(a) == array_class ? operand(a, 1) : NULL;
    PyObject *code, *found = NULL;
    Rule* rule;
    int offset = 0, row;
    if (x && (row = compact_code(x->dtype)) >= 0 && (rule = rule_of(self, row, 0, x->dtype, NULL))) {
        code = user_code(&offset);
        found = wrapped(node_make(rule->op, PyTuple_Pack(1, x), Py_NewRef(Py_None), rule->dtype, x->shape, code, offset));
    }
    Py_XDECREF(x);
    return found;
}

/* Slices ----------------------------------------------------------------------------------------------------------------------------- */

#define SMALL_PART 16 /* as in `storage.py` */

/* `x[key]` where x is a plain array, and the key is of slices, integers, new axes and an ellipsis, not of integers alone; NULL without an
   exception for all else, for what NumPy refuses, and for small parts of what waits (`storage.partial_read`). */
static PyObject* record_slice(PyObject* x, PyObject* key) {
    Node* node = plain(x);
    PyObject *region = NULL, *lengths = NULL, *kept = NULL, *shape = NULL, *path = NULL, *view = NULL, *made = NULL, *item;
    Py_ssize_t ndim, k, n = 1, axis = 0, count = 0, taken = 0, start, stop, step, extent, length, at = 0, rest = 0;
    long axes[64];
    double whole = 1, part_size = 1;
    int same = 1, element = 1, ellipses = 0;
    if (node == NULL || view_class == NULL) return NULL; /* the module of views is yet to be loaded */
    ndim = PyTuple_GET_SIZE(node->shape);
    if (PyTuple_CheckExact(key)) n = PyTuple_GET_SIZE(key);
    if (n == 0 || n + ndim > 64) return NULL;
#define PART(K) (PyTuple_CheckExact(key) ? PyTuple_GET_ITEM(key, K) : key)
    for (k = 0; k < n; k++) {
        PyObject* part = PART(k);
        if (part == Py_Ellipsis) ellipses++;
        else if (PySlice_Check(part) || PyLong_CheckExact(part)) taken++;
        else if (part != Py_None) return NULL;
        element &= PyLong_CheckExact(part);
    }
    if (taken > ndim || ellipses > 1 || (element && taken == ndim)) return NULL;
    Py_INCREF(node); /* making a tuple, and a slice's bounds, may run code */
    region = PyTuple_New(ndim);
    lengths = PyTuple_New(ndim);
    if (region == NULL || lengths == NULL) goto done;
    while (k = at < n && !rest ? at++ : n, k < n || rest || axis < ndim) {
        PyObject* part = k < n ? PART(k) : Py_Ellipsis; /* an axis that is not named is a part of the ellipsis */
        if (part == Py_None) {
            axes[count++] = -1;
            same = 0;
            continue;
        }
        if (k < n && part == Py_Ellipsis) {
            rest = ndim - taken;
            continue;
        }
        if (rest) rest--;
        extent = PyLong_AsSsize_t(PyTuple_GET_ITEM(node->shape, axis));
        start = 0, step = 1, length = extent;
        if (PyLong_CheckExact(part)) {
            start = PyLong_AsSsize_t(part);
            if (start < 0) start += extent;
            if (PyErr_Occurred() || start < 0 || start >= extent) {
                PyErr_Clear(); /* the function in Python knows what NumPy says */
                goto done;
            }
            length = 1;
            same = 0;
        } else {
            if (part != Py_Ellipsis) {
                if (PySlice_Unpack(part, &start, &stop, &step) < 0) {
                    PyErr_Clear();
                    goto done;
                }
                length = PySlice_AdjustIndices(extent, &start, &stop, step);
                if (length == 0) start = 0, step = 1;
            }
            axes[count++] = (long)axis;
        }
        whole *= (double)extent, part_size *= (double)length;
        if ((item = Py_BuildValue("(nn)", start, step)) == NULL) goto done;
        PyTuple_SET_ITEM(region, axis, item);
        item = length == extent ? Py_NewRef(PyTuple_GET_ITEM(node->shape, axis)) : PyLong_FromSsize_t(length);
        if (item == NULL) goto done;
        PyTuple_SET_ITEM(lengths, axis++, item);
    }
    if (node->buffer == Py_None && part_size * SMALL_PART <= whole) goto done;
    if (same) {
        shape = Py_NewRef(lengths);
        path = Py_BuildValue("((OOO))", slice_op, region, lengths);
    } else {
        kept = PyTuple_New(count);
        shape = PyTuple_New(count);
        if (kept == NULL || shape == NULL) goto done;
        for (k = 0; k < count; k++) {
            if ((item = PyLong_FromLong(axes[k])) == NULL) goto done;
            PyTuple_SET_ITEM(kept, k, item);
            PyTuple_SET_ITEM(shape, k, axes[k] < 0 ? PyLong_FromLong(1) : Py_NewRef(PyTuple_GET_ITEM(lengths, axes[k])));
        }
        path = Py_BuildValue("((OOO)(OOO))", slice_op, region, lengths, axes_op, kept, shape);
    }
    if (path == NULL) goto done;
    {
        PyObject* args[6] = {node->shape, node->dtype, path, shape, node->dtype, x};
        view = PyObject_Vectorcall((PyObject*)view_class, args, 6, NULL);
    }
    if (view == NULL || (made = array_class->tp_alloc(array_class, 0)) == NULL) goto done;
    FIELD(made, base_at) = Py_NewRef(x);
    FIELD(made, node_at) = Py_NewRef(Py_None);
    FIELD(made, view_at) = Py_NewRef(view);
    FIELD(made, stamp_at) = Py_NewRef(Py_None);
    FIELD(made, readonly_at) = Py_NewRef(FIELD(x, readonly_at));
done:
    Py_DECREF(node);
    Py_XDECREF(region), Py_XDECREF(lengths), Py_XDECREF(kept), Py_XDECREF(shape), Py_XDECREF(path), Py_XDECREF(view);
    return made;
#undef PART
}

/* What was recorded; NULL, without an exception, where the function in Python must do it. */
static inline PyObject* recorded(Recorder* self, PyObject* const* args, Py_ssize_t n) {
    if (self->kind == GETITEM) return n == 2 ? record_slice(args[0], args[1]) : NULL;
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
    made->rules = NULL; /* most ufuncs are not asked */
    PyObject_GC_Track((PyObject*)made);
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
    if (member && Py_TYPE(member) == &PyGetSetDescr_Type) { /* what the native cell makes when it is asked for */
        char known[32];
        Py_DECREF(member);
        snprintf(known, sizeof(known), "_known%s", name);
        return member_offset(type, known);
    }
    if (member && Py_TYPE(member) == &PyMemberDescr_Type) offset = ((PyMemberDescrObject*)member)->d_member->offset;
    else if (member) PyErr_Format(PyExc_TypeError, "%s is no member of arrays", name);
    Py_XDECREF(member);
    return offset;
}

static int record_ready(void) { return PyType_Ready(&recorder_type) < 0 || PyType_Ready(&calls_type) < 0 ? -1 : 0; }

typedef struct {
    PyObject* of;
    const char* name;
    Py_ssize_t* at;
} Place;

static int places_found(const Place* places, size_t count) {
    size_t k;
    for (k = 0; k < count; k++)
        if ((*places[k].at = member_offset(places[k].of, places[k].name)) < 0) return -1;
    return 0;
}

/* Learn where arrays and scalars keep what. */
static int arrays_are(PyObject* type, PyObject* scalar) {
    const Place places[] = {{type, "_base", &base_at}, {type, "_node", &node_at}, {type, "_view", &view_at}, {type, "_stamp", &stamp_at},
                            {type, "_readonly", &readonly_at}, {scalar, "_node", &scalar_node_at}};
    if (places_found(places, sizeof(places) / sizeof(*places)) < 0) return -1;
    array_class = (PyTypeObject*)type;
    scalar_class = (PyTypeObject*)scalar;
    return 0;
}

/* Learn where views keep what. */
static int views_are(PyObject* view) {
    const Place places[] = {{view, "path", &path_at}, {view, "root", &root_at}, {view, "root_dtype", &root_dtype_at}, {view, "shape", &view_shape_at}};
    if (places_found(places, sizeof(places) / sizeof(*places)) < 0) return -1;
    view_class = (PyTypeObject*)view;
    return 0;
}

#endif
