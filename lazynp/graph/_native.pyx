# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=True
"""The native graph: nodes, and their way into a structure key.

In: operations and their sources; nodes that are wanted.  Out: nodes; canonical forms.  Promise: recording what is not plain is left to
functions in Python, whose nodes are those that would have been recorded here.
"""

cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject

import os
import warnings

from lazynp.graph import errstate, filters
from lazynp.graph import op as o
from lazynp.values import config
from lazynp.values.outside import BeingWrittenError

cnp.import_array()

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL
    object PyUnicode_InternFromString(const char*)

cdef extern from "record.h":
    PyTypeObject node_type, canonical_type
    long long pending_nodes
    PyObject* leaf_op
    PyObject* state_variable
    PyObject* default_token
    PyObject* default_state
    PyObject* state_of
    PyObject* warnings_dict
    PyObject* filters_name
    PyObject* read_filters
    void filters_forget()
    PyObject* minded_name
    const char* root_name
    Py_ssize_t root_length
    ctypedef struct Op:
        PyObject* op
        int kind
        char commutes[16]
    Op* ops
    int ops_known
    int MOST_OPS
    PyTypeObject* op_class
    PyObject* buffer_op
    PyObject* const_op
    PyObject* iota_op
    PyObject* slice_op
    PyObject* store_op
    PyObject* pad_op
    PyObject* copy_op
    PyObject* call_op
    PyObject* output_op
    PyObject* contiguous_op
    PyObject* kinds_name
    PyObject* being_written
    long default_kinds
    PyObject* cost_module
    long long most_bytes
    int graph_ready(object) except -1
    object user_site()
    object canonicalise(object, object)
    object mark_all "mark_computed"(object, object)
    object marks_of "marks"(object, object)
    object structure_of "without_sizes"(object, object)
    PyTypeObject recorder_type, calls_type
    PyObject* wrap_function
    PyObject* config_dict
    PyObject* at_hand_name
    PyObject* eager_name
    PyObject* recorder_name
    int remembered_depth
    int record_ready() except -1
    PyObject* node_function
    PyObject* axes_op
    PyObject* expand_op
    int arrays_are(object, object) except -1
    int views_are(object) except -1
    object recorder_new(PyTypeObject*, object, object, int, int)

cdef list _kept = []  # what the C code refers to


cdef PyObject* _keep(object x):
    _kept.append(x)
    return <PyObject*>x


leaf_op = buffer_op = _keep(o.BUFFER)
const_op, iota_op, slice_op, store_op, pad_op = _keep(o.CONST), _keep(o.IOTA), _keep(o.SLICE), _keep(o.STORE), _keep(o.PAD)
copy_op, call_op, output_op, contiguous_op = _keep(o.COPY), _keep(o.CALL), _keep(o.OUTPUT), _keep(o.CONTIGUOUS)
if errstate.variable is not None:
    state_variable = _keep(errstate.variable)
default_token, default_state, state_of = _keep(errstate.DEFAULT_TOKEN), _keep(errstate.DEFAULT), _keep(errstate.state_of)
default_kinds = errstate.DEFAULT.kinds
warnings_dict, filters_name = _keep(vars(warnings)), _keep(PyUnicode_InternFromString("filters"))
filters.asking_anew.append(lambda: filters_forget())
read_filters, minded_name = _keep(filters.read), _keep(PyUnicode_InternFromString("minded"))
being_written = _keep(BeingWrittenError)
kinds_name = _keep(PyUnicode_InternFromString("kinds"))
at_hand_name, eager_name = _keep(PyUnicode_InternFromString("at_hand")), _keep(PyUnicode_InternFromString("eager"))
recorder_name = _keep(PyUnicode_InternFromString("_recorder"))
config_dict = _keep(vars(config))
cdef object _root = os.path.dirname(os.path.dirname(errstate.__file__)) + os.sep
root_name = PyUnicode_AsUTF8AndSize(_root, &root_length)
axes_op, expand_op = _keep(o.PERMUTE), _keep(o.EXPAND)  # the former is a step of a view's path
op_class = <PyTypeObject*>_keep(o.Op)
if len(o.ALL) > MOST_OPS:
    raise ImportError("more operations than the native graph has numbers for")
for _number, _op in enumerate(o.ALL):
    ops[<int>_number].op = _keep(_op)
    ops[<int>_number].kind = int(_op.kind)
    _commutes = _op.commutes.encode()
    if len(_commutes) > 15:
        raise ImportError("an operation that commutes for more kinds of dtypes than there are")
    for _k, _c in enumerate(_commutes):
        ops[<int>_number].commutes[<int>_k] = <char>_c
ops_known = len(o.ALL)
graph_ready(o.Op.number)
record_ready()
Node = <object>&node_type
Canonical = <object>&canonical_type


def caller():
    """Find the nearest frame outside lazynp: where the user's program stands."""
    return user_site()


def marks(list nodes):
    """Return the error state and the site of each node, as one tuple: state, code object or None, offset, state, ..."""
    return marks_of(None, nodes)


def mark_computed(list nodes):
    """Note that a program computed these nodes on the way to its values."""
    return mark_all(None, nodes)


def bind(cost, long long most):
    """Take ``cost``, the module of numbers, and ``most``, a bound on bytes that are counted."""
    global cost_module, most_bytes
    cost_module = _keep(cost)
    most_bytes = most


def pending():
    """Count the nodes whose values do not exist yet."""
    return pending_nodes


def walk(nodes):
    """Return the canonical form of the program that computes ``nodes``.

    Three kinds of values on the way are wanted as well, because computing them a second time would cost more than keeping them.  First,
    results of library calls and of ``contiguous`` that can be asked for afterwards, themselves or through what is computed from them (all
    others die at their last reader).  Second, arrays that were written through a view or are given to a product, which are in memory
    anyway, if they are held.  Third, values that an earlier program computed without keeping and that something new is computed from.
    """
    return canonicalise(None, nodes)


def without_sizes(key):
    """Return a key with numbers in place of the extents from 2 on, and the extents by their numbers; no numbers where there are too many."""
    structure, extents = structure_of(None, key)
    return structure, extents or ()


def register_views(view):
    """Make ``view`` the class of what views see."""
    views_are(view)
    _keep(view)


def register(cls, scalar, wrap, node_of, int depth):
    """Make ``cls`` the class of arrays, ``scalar`` the root of scalars.

    ``wrap`` makes the arrays of nodes deeper than ``depth``, and of others that are not plain; ``node_of`` finds the nodes of views.
    """
    global wrap_function, node_function, remembered_depth
    arrays_are(cls, scalar)
    _keep((cls, scalar))
    wrap_function, node_function = _keep(wrap), _keep(node_of)
    remembered_depth = depth


def recorder(slow, dict directs, int operands, int power):
    """Return ``slow``, an operator or a ufunc, which is recorded at once where its ``directs`` have a rule and the operands are plain.

    ``operands``: 0 two, 1 two in the other order, 2 one, 3 an array and a key.
    """
    return recorder_new(&recorder_type, slow, directs, operands, power)


def calls(slow):
    """Return the ``__call__`` of a class of ufuncs, which asks each one's recorder before ``slow``."""
    return recorder_new(&calls_type, slow, {}, 0, 0)
