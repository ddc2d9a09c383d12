# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=True
"""The native launcher of a schedule's kernels; ``compiled.Launcher`` runs those that are watched while they run, or run on a GPU.

In: launchers.  Out: what runs all of them in one call.  Promise: the same buffers, errors and exceptions as from that.
"""

from cpython.object cimport PyObject, PyTypeObject

import ctypes
import sys

from lazynp.values.buffer import Buffer

cdef extern from "Python.h":
    object PyUnicode_InternFromString(const char*)

cdef extern from "launch.h":
    PyTypeObject* buffer_class
    Py_ssize_t at_array, at_lease, at_shared, at_views, at_ends, at_address, at_block, at_dtype, at_shape
    PyObject* launcher_names
    PyObject* allocate_name
    PyObject* updated_name
    PyObject* kernel_error
    PyObject* address_name
    PyObject* retyped_name
    PyTypeObject kernels_type
    int PyType_Ready(PyTypeObject*) except -1
    object kernels_new(object, object, object, int)
    Py_ssize_t offset_of(object) except -1

cdef list _kept = []  # what the C code refers to


cdef PyObject* _keep(object x):
    _kept.append(x)
    return <PyObject*>x


if sys.byteorder != "little":
    raise ImportError("the native launcher writes numbers as little-endian processors read them")
buffer_class = <PyTypeObject*>_keep(Buffer)
at_array, at_lease, at_shared = offset_of(Buffer._array), offset_of(Buffer._lease), offset_of(Buffer.shared)
at_views, at_ends, at_address = offset_of(Buffer.views), offset_of(Buffer.ends), offset_of(Buffer._address)
at_block, at_dtype, at_shape = offset_of(Buffer.block), offset_of(Buffer.dtype), offset_of(Buffer.shape)
address_name, retyped_name = _keep(PyUnicode_InternFromString("address")), _keep(PyUnicode_InternFromString("retyped"))
allocate_name, updated_name = _keep(PyUnicode_InternFromString("allocate")), _keep(PyUnicode_InternFromString("updated"))
PyType_Ready(&kernels_type)


def bind(dict names, error):
    """Take the names of the module of ``Launcher``, of which ``allocate`` and ``updated`` find memory, and the exception of an index out of range."""
    global launcher_names, kernel_error
    launcher_names, kernel_error = _keep(names), _keep(error)


def kernels(list steps, list inputs, tuple outputs, int entries):
    """Return what runs ``steps``, launchers and the entries that die with each, for a program of so many entries.

    ``inputs`` are pairs: the entry, and the number of its buffer.
    """
    made = []
    for launcher, dead in steps:
        layout = launcher.layout
        address = ctypes.cast(launcher.run, ctypes.c_void_p).value if isinstance(launcher.run, ctypes._CFuncPtr) else 0
        made.append({
            "run": launcher.run, "function": address, "slots": layout.slots, "template": launcher.template.tobytes(),
            "threads": layout.threads, "error_slot": layout.error, "flags": layout.flags, "threaded": int(launcher.threaded),
            "error": int(launcher.error), "wanted": launcher.wanted, "reads": launcher.reads, "outputs": launcher.outputs,
            "taken": launcher.taken, "workspaces": launcher.workspaces, "dead": list(dead), "integers": launcher.integers,
            "scalars": launcher.scalars,
            "updates": [(slot, update.entry, update, given, update.base) for slot, update, given in launcher.updates],
        })
    return kernels_new(made, [number for pair in inputs for number in pair], list(outputs), entries)
