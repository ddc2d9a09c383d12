# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=True
"""The native core: cells, and what is done with small values at the call.

In: operands in memory.  Out: NumPy's results, as cells.  Promise: whatever is not plain is left to the class's own method in Python.
"""

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t

import operator
from operator import attrgetter, getitem
from types import FunctionType, MethodDescriptorType

import numpy as np

from lazynp.values import config
from lazynp.values.loading import load

cnp.import_array()
cnp.import_ufunc()

cdef extern from "Python.h":
    object PyBytes_FromStringAndSize(const char*, Py_ssize_t)
    object PyUnicode_InternFromString(const char*)
    const char* PyUnicode_AsUTF8(object) except NULL

cdef extern from "counting.h":
    object stable_order_of(object x, int axis)
    object positions_apart(object x)
    int CONTRACTION_FROM, CORRELATION_FROM
    int contracted_most
    int contracted_widest()
    object contract_of "contract" (object x, object y, object to, object lengths, object first, object second, object third)
    ctypedef struct Loops:
        PyObject* ufunc
        int costly
    ctypedef struct Reduction:
        Loops loops
        PyObject* reduce
        int from_zero
    ctypedef struct Matrices:
        Loops loops
        int ignores
    PyTypeObject cell_type
    PyTypeObject* array_type
    void array_dealloc(PyObject*)
    void refuse_concatenation(PyTypeObject*)
    int class_members(PyTypeObject*, object) except -1
    int slots_ready() except -1
    int numbers_ready() except -1
    int NUMBER_TYPES
    ctypedef struct NumberClass:
        PyTypeObject type
        PyTypeObject* numpys
    NumberClass* number_classes
    PyObject* number_as(object, PyTypeObject*) except NULL
    PyTypeObject* number_class_below(object)
    PyObject* numpys_plain "numpys_number" (object) except NULL
    int number_members_set(object) except -1
    int rows_in_place(int, object, object) except -1
    int copied_over(object, object) except -1
    object chosen_of(object, object)
    int chosen_put(object, object, object)
    int compress_choose(int)
    int compress_used(Py_ssize_t)
    int ordered_reduce(int, int, const char*, int64_t, int64_t, int64_t, double, char*) nogil
    int METHODS, BINARIES, MATMUL, DIVMOD, ADD, SUB, MUL, DIV, FLOORDIV, MOD, AND, OR, XOR, NEG, ABS, INVERT
    int ANY, ZEROS, ONES, FULL, SQUARE, RANGE, GROWING, WIDENING, LINSPACE, SPACED, REDUCTION, MEAN, FOREIGN, LISTED, AS_IT_IS, DRAW, OF_UFUNC, AT, OUTER, NUMBERS, ORDERED, RESHAPE, ASTYPE, PRODUCT, MATRICES, DOT, SIZED, LIBRARY, VIEW, WHERE, JOINED, SEARCHED, VARIANCE, DEVIATION, CLOSE, ALL_CLOSE, COUNTED, RESIZED, REALIZED, STACKED, ROWS_STACKED, JOINED_FLAT, COLUMNS_STACKED, POSITION, UFUNC, OPERATOR, NAMED
    int NOT_RECORDED, COPIES, SCANS, SORTS, SORTS_POSITIONS, CLIPS, DIFFERS, ROUNDS, ARG_EXTREMES, PRODUCTS, CONJUGATES, EXPANDS, SWAPS_AXES, FLIPS, ROLLS, SELECTS, SCANS_PRODUCTS, SHOWS, DIAGONALS, NO_REDUCTION, SUMS, EXTREMES, TRUTHS_OF
    ctypedef object (*Direct)(object)
    Direct direct_named(const char*)
    const char* slot_name(int)
    PyObject** slow_methods
    PyObject** slow_reflected
    PyObject** slow_in_place
    PyObject* slow_buffer
    Loops* binary_loops
    Loops* unary_loops
    Loops* compare_loops
    Loops square_loops, root_loops, reciprocal_loops, round_loops, power_loops, conjugate_loops
    Loops product_loops
    void loops_fill(Loops*, object, int)
    int ATTRIBUTES
    ctypedef struct PyGetSetDef:
        const char* name
    ctypedef struct Attribute:
        PyGetSetDef definition
    Attribute* attributes
    PyTypeObject elements_type
    void elements_register(PyTypeObject*)
    object attribute_of(PyTypeObject*, int, object, const char*)
    PyObject* config_dict
    PyObject* at_hand_name
    PyObject* kernels_above_name
    PyObject* costly_above_name
    PyObject* first_limit_name
    long long first_left
    PyObject* value_method
    PyObject* own_method
    PyObject* one_object
    PyObject* first_method
    long long FIRST_WORK
    PyObject* getitem_callable
    PyObject* layout_method
    int SEQUENCE
    int ASKED_MOST, ITEM_ARGS
    void functions_forget()
    void operator_set(int, object)
    void named_set(object, int)
    PyObject* transpose_callable
    PyObject* axis_name
    PyObject* dtype_name
    PyObject* out_name
    PyObject* where_name
    PyObject* keepdims_name
    PyObject* shape_name
    PyObject* ddof_name
    PyObject* quiet_call
    PyObject* result_method
    PyObject* passing_method
    PyObject* error_variable
    PyObject* error_quiet
    PyObject* errors_minded_method
    PyObject* error_listening
    PyObject* errors_heard
    PyObject* errors_tell
    PyObject* refusal_method
    PyObject* noted_method
    PyObject* call_name
    ctypedef struct Member:
        pass
    Member member_buffer, member_array, member_shared, member_draft, member_lease, member_outside
    void member_fill(Member*, PyTypeObject*, object, object)
    PyObject* view_method
    PyObject* show_method
    void parts_release()
    object _parts_of "parts_of"(object)
    int chain_register(PyObject*, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*, PyObject*) except -1
    long long* chain_results
    long long hot_runs, hot_work
    void chain_resize(Py_ssize_t, Py_ssize_t, Py_ssize_t, long long)
    int settle_all() except -1
    object tape_told(object)
    void tape_seal(object)
    void tapes_pause(int)
    void state_forget()
    object property_new(object, int)
    object rows_of_array(object)
    int cell_lend(object, int) except -1
    void view_belongs(object, object)
    int class_register(PyTypeObject*, object, object) except -1
    ctypedef struct CellStruct "Cell":
        int writers
    bint cell_exchange(object, object, object, object, object, object, Py_ssize_t)
    void cell_remember(object, object, object, object)
    CellStruct* writing_begin(object)
    void writing_end(CellStruct*)
    int part_attach(object, object, object, object, object) except -1
    PyTypeObject function_type, ufunc_type
    void function_stand_for(object, object)
    void c_draws_later "draws_later"(object)
    PyObject* soon_name
    void clip_fill(object, object, object)
    object function_new(object, object, object, int, int, int, Reduction*, Matrices*, Direct, int, int, int, object, int, int, int, int, int, int)
    int ufunc_bind(object, object, int, int, int, int, int, int, int) except -1
    PyObject* at_call_of(object, object)
    int compiled_call(const char*, object, PyObject*, object, int)
    int compiled_run(const char*, object, PyObject*, object)
    char vectors_wanted[8]
    object together_new(object, object)
    object together_compute(object, object, object, int, object)
    int written_over(object, object, object)
    void ufunc_register(PyTypeObject*)
    int functions_ready() except -1
    void count_with(PyObject*)
    int workers_start(int)
    void workers_spare(int, long long)
    size_t WORKERS_ADDRESS
    Py_ssize_t lag_from
    long long pieces_ns, pieces_shared, pieces_pause, pieces_paused, poisoned
    int poisons_now

cdef list _kept = []  # what the C code refers to


cdef object _kept_object(object x):
    _kept.append(x)
    return x


cdef PyObject* _keep(object x):
    _kept.append(x)
    return <PyObject*>x


def _quiet(function, *args):
    with np.errstate(all="ignore"):
        return function(*args)


config_dict = _keep(vars(config))
getitem_callable, transpose_callable = _keep(getitem), _keep(attrgetter("T"))
at_hand_name, kernels_above_name = _keep(PyUnicode_InternFromString("at_hand")), _keep(PyUnicode_InternFromString("kernels_above"))
costly_above_name = _keep(PyUnicode_InternFromString("costly_above"))
first_limit_name = _keep(PyUnicode_InternFromString("first_limit"))
axis_name = _keep(PyUnicode_InternFromString("axis"))
call_name = _keep(PyUnicode_InternFromString("__call__"))
keepdims_name = _keep(PyUnicode_InternFromString("keepdims"))
shape_name = _keep(PyUnicode_InternFromString("shape"))
ddof_name = _keep(PyUnicode_InternFromString("ddof"))
dtype_name = _keep(PyUnicode_InternFromString("dtype"))
soon_name = _keep(PyUnicode_InternFromString("soon"))
out_name = _keep(PyUnicode_InternFromString("out"))
where_name = _keep(PyUnicode_InternFromString("where"))
quiet_call = _keep(_quiet)
numbers_ready()
slots_ready()
functions_ready()
Cell = <object>&cell_type
Ufunc = <object>&ufunc_type
Elements = <object>&elements_type

# NumPy's loops ------------------------------------------------------------------------------------------------------------------

for _number, _of in [(ADD, np.add), (SUB, np.subtract), (MUL, np.multiply), (DIV, np.divide), (AND, np.bitwise_and), (OR, np.bitwise_or), (XOR, np.bitwise_xor)]:
    loops_fill(&binary_loops[<int>_number], _of, 1)
for _number, _of in [(FLOORDIV, np.floor_divide), (MOD, np.remainder)]:
    loops_fill(&binary_loops[<int>_number], _of, 0)
for _number, _of in [(NEG, np.negative), (ABS, np.absolute), (INVERT, np.invert)]:
    loops_fill(&unary_loops[<int>_number], _of, 1)
for _number, _of in enumerate([np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal]):
    loops_fill(&compare_loops[<int>_number], _of, 1)
loops_fill(&square_loops, np.square, 1)
loops_fill(&root_loops, np.sqrt, 1)
loops_fill(&reciprocal_loops, np.reciprocal, 1)
loops_fill(&round_loops, np.rint, 0)
loops_fill(&conjugate_loops, np.conjugate, 1)
loops_fill(&power_loops, np.power, 0)
power_loops.costly = 1
loops_fill(&product_loops, np.matmul, 0)

cdef dict _numbers = {slot_name(_number).decode(): _number for _number in range(BINARIES)}

cdef Reduction[6] _reductions
cdef dict _reduction_of = {"sum": 0, "prod": 1, "max": 2, "min": 3, "any": 4, "all": 5, "mean": 0, "amax": 2, "amin": 3}
for _number, _of in enumerate([np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and]):
    loops_fill(&_reductions[<int>_number].loops, _of, 1)
    _reductions[<int>_number].reduce = _keep(_of.reduce)
    _reductions[<int>_number].from_zero = _of is np.add

cdef Matrices[5] numpys_matrices
cdef dict _MATRICES = {np.linalg.solve: 0, np.linalg.inv: 2, np.linalg.det: 3, np.linalg.cholesky: 4}
for _number, _name in enumerate(["solve1", "solve", "inv", "det", "cholesky_lo"]):
    _of = getattr(getattr(np.linalg, "_umath_linalg", None), _name, None)
    if isinstance(_of, np.ufunc):
        loops_fill(&numpys_matrices[<int>_number].loops, _of, 0)
    numpys_matrices[<int>_number].ignores = _name != "det"

# Methods of arrays whose answer is NumPy's C code, and functions that stand here for NumPy's in Python: they warn where they were called.
cdef frozenset _IN_PYTHON = frozenset({"convolve", "correlate", "einsum", "sum", "prod", "max", "min", "any", "all", "mean", "std", "var", "clip", "ptp"})
# IEEE arithmetic and what is like it.
cdef frozenset _BASIC = frozenset({
    "add", "subtract", "multiply", "divide", "negative", "positive", "absolute", "fabs", "square", "sqrt", "reciprocal", "maximum", "minimum",
    "less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "isnan", "isinf", "isfinite", "signbit", "sign", "conjugate",
})
cdef dict _RECORDED = {"expand_dims": EXPANDS, "swapaxes": SWAPS_AXES, "flip": FLIPS, "flipud": SHOWS, "fliplr": SHOWS, "moveaxis": SHOWS, "rollaxis": SHOWS, "diagonal": DIAGONALS, "copy": COPIES, "conj": CONJUGATES, "conjugate": CONJUGATES, "cumsum": SCANS, "cumprod": SCANS_PRODUCTS, "sort": SORTS, "argsort": SORTS_POSITIONS, "clip": CLIPS, "diff": DIFFERS,
                       "round": ROUNDS, "around": ROUNDS, "roll": ROLLS, "select": SELECTS, "argmax": ARG_EXTREMES, "argmin": ARG_EXTREMES, "dot": PRODUCTS}
cdef dict _REDUCES = {"sum": SUMS, "prod": SUMS, "max": EXTREMES, "min": EXTREMES, "amax": EXTREMES, "amin": EXTREMES, "any": TRUTHS_OF, "all": TRUTHS_OF}
cdef dict _KINDS = {"array": LISTED, "asarray": AS_IT_IS, "asanyarray": AS_IT_IS,
                    "ascontiguousarray": ORDERED, "asfortranarray": ORDERED, "zeros": ZEROS, "empty": ZEROS, "ones": ONES, "full": FULL, "eye": SQUARE,
                    "identity": SQUARE, "arange": RANGE, "__array_ufunc__": FOREIGN, "realize": REALIZED,
                    "linspace": LINSPACE, **dict.fromkeys(["logspace", "geomspace"], SPACED), **dict.fromkeys(["item", "tolist"], NUMBERS),
                    "reshape": RESHAPE, "astype": ASTYPE, "outer": PRODUCT, "dot": DOT, "inner": DOT, "where": WHERE, "concatenate": JOINED, "stack": STACKED, "vstack": ROWS_STACKED, "hstack": JOINED_FLAT, "column_stack": COLUMNS_STACKED, "argmax": POSITION, "argmin": POSITION, "searchsorted": SEARCHED, "var": VARIANCE, "std": DEVIATION, "allclose": ALL_CLOSE, "isclose": CLOSE,
                    **dict.fromkeys(["repeat", "tile", "kron", "meshgrid", "diag", "diagflat", "vander", "ix_", "resize"], GROWING),
                    **dict.fromkeys(["broadcast_to", "sliding_window_view"], WIDENING), "frombuffer": LIBRARY, "view": VIEW, "ndarray.resize": RESIZED,
                    **dict.fromkeys(["tri", "tril_indices", "triu_indices", "diag_indices", "indices", "bartlett", "blackman", "hamming",
                                     "hanning", "kaiser", "fftfreq", "rfftfreq"], SIZED)}
# Functions whose result follows in shape and dtype from the shapes and dtypes of their arrays and from their other arguments, which never fail for what the elements are, and warn of nothing
# but floating-point errors: how many arrays a call may have, so that none is one for the result.
cdef dict _ARRAYS = {
    **{getattr(np, name): 1 for name in (
        "all", "amax", "amin", "angle", "any", "argmax", "argmin", "argsort", "average", "count_nonzero", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "delete", "diag", "diagflat",
        "diff", "digitize", "ediff1d", "gradient", "i0", "insert", "max", "mean", "median", "min", "nan_to_num", "nancumprod", "nancumsum", "nanprod", "nansum", "packbits", "pad", "partition", "percentile", "prod", "ptp", "quantile",
        "repeat", "roll", "round", "sinc", "sort", "std", "sum", "tile", "tril", "triu", "unwrap", "vander", "var") if hasattr(np, name)},
    **{getattr(np, name): 2 for name in (
        "append", "convolve", "correlate", "inner", "isclose", "isin", "kron", "outer", "polyval", "searchsorted", "tensordot", "trapezoid") if hasattr(np, name)},
    np.interp: 3, np.where: 3, np.einsum: 6, np.linalg.norm: 1,
    **{getattr(np, name): SEQUENCE for name in ("column_stack", "concatenate", "dstack", "hstack", "stack", "vstack")},
    **{getattr(np.ndarray, name): 1 for name in (
        "all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "max", "mean", "min", "prod", "repeat", "round", "std", "sum", "var")},
    np.ndarray.searchsorted: 2,
}
# The same of `numpy.fft`, of one array, by their names: NumPy loads it when a program asks for it.
cdef frozenset _TRANSFORMS = frozenset({
    "fft", "fft2", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
})
# Of what costs much more than reading it, or grows with the square of it, fewer elements are worth asking NumPy for what a call gives.
cdef dict _ASKED = {**dict.fromkeys(["median", "percentile", "quantile", "unwrap", "interp", "searchsorted", "argsort", "sort"], 16384), **dict.fromkeys(["diag", "diagflat", "vander"], 512)}
# How many arguments without a name a call may have that writes into no operand.
cdef dict _POSITIONAL = {"median": 2, "percentile": 3, "quantile": 3, "nan_to_num": 1, "var": 2, "std": 2, "partition": 2, "isin": 2}
cdef dict _OF_UFUNC = {"reduce": 1, "accumulate": 1, "reduceat": 1, "outer": 2}
# Functions in Python that compute nothing, so that there are no floating-point errors to listen to, and those that ask for the error state.
cdef frozenset _MOVING = frozenset({
    "allclose", "append", "argpartition", "argsort", "argwhere", "array_equal", "array_split", "atleast_1d", "atleast_2d", "atleast_3d",
    "broadcast_to", "clip", "column_stack", "compress", "count_nonzero", "delete", "diag", "diag_indices", "diagonal", "digitize", "dsplit", "dstack",
    "expand_dims", "extract", "eye", "flatnonzero", "flip", "fliplr", "flipud", "hsplit", "hstack", "identity", "imag", "indices", "intersect1d", "isclose",
    "iscomplexobj", "isin", "isrealobj", "isscalar", "ix_", "meshgrid", "moveaxis", "ndim", "nonzero", "partition", "ravel", "real", "repeat",
    "reshape", "roll", "rollaxis", "rot90", "searchsorted", "setdiff1d", "setxor1d", "shape", "size", "sort", "split", "squeeze", "stack",
    "swapaxes", "take", "take_along_axis", "tile", "transpose", "tri", "tril", "tril_indices", "trim_zeros", "triu", "triu_indices",
    "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "vsplit", "vstack",
})
# Functions in Python that do nothing with an array but call its method.
cdef frozenset _METHODS = frozenset({
    "argmax", "argmin", "choose", "cumprod", "cumsum", "diagonal", "put", "repeat", "round", "searchsorted", "squeeze", "swapaxes", "take", "trace",
})
# What NumPy's functions and methods do with one array and nothing else.
cdef dict _DIRECTS = {
    np.argmax: b"argmax", np.argmin: b"argmin", np.ndarray.argmax: b"argmax", np.ndarray.argmin: b"argmin", np.ones_like: b"ones like", np.sort: b"sorted",
    np.ndarray.ravel: b"ravel", np.ravel: b"ravel", np.ndarray.flatten: b"flatten", np.ndarray.transpose: b"transpose", np.transpose: b"transpose",
    np.ndarray.squeeze: b"squeeze", np.squeeze: b"squeeze", np.ndarray.copy: b"copy", np.ndarray.__copy__: b"copy as it lies", np.copy: b"copy as it lies", np.ndarray.tolist: b"list",
    np.ndim: b"ndim", np.size: b"size", np.shape: b"shape", np.ndarray.nonzero: b"nonzero", np.nonzero: b"nonzero", np.where: b"nonzero",
    np.flatnonzero: b"flatnonzero", np.zeros_like: b"zeros like", np.empty_like: b"zeros like",
    np.linalg.norm: b"norm",
}


def register(cls, result, passing):
    """Make ``cls`` the class of arrays: what the core does faster than one of its methods, it does, and leaves the rest to the method.

    ``result`` makes an answer of NumPy's ours, given the cells it was computed from; ``passing`` multiplies an expression that has no
    other reference with an array.
    """
    global array_type, result_method, passing_method, slow_buffer
    cdef int k
    members = vars(cls)
    array_type = <PyTypeObject*>cls
    array_type.tp_dealloc = array_dealloc
    array_type.tp_name = b"numpy.ndarray"  # what messages call it
    _keep(cls)
    result_method = _keep(result)
    passing_method = _keep(passing)
    for k in range(METHODS):
        name = slot_name(k).decode()
        slow_methods[k] = _take(cls, members, f"__{name}__")
        if k < BINARIES:
            slow_reflected[k] = _take(cls, members, f"__r{name}__")
            slow_in_place[k] = _take(cls, members, f"__i{name}__")
    slow_buffer = _take(cls, members, "__buffer__")
    for k in range(ATTRIBUTES):
        name = attributes[k].definition.name.decode()
        if name in members:
            slow = members[name]
            setattr(cls, name, attribute_of(array_type, k, slow, PyUnicode_AsUTF8(_kept_object(slow.__doc__ or name))))
    refuse_concatenation(array_type)


def name_methods(cls, dict members):
    """Give a class methods with the names of operators, of which its slots know nothing: operators do not go through them.

    With an array or a number of Python's they do what the operator does, and what ``members`` have with all else.
    """
    named = {}
    for k in range(METHODS):
        name = f"__{slot_name(k).decode()}__"
        if name in members:
            named[name] = method = function_new(members[name], members[name], None, NAMED, NOT_RECORDED, NO_REDUCTION, NULL, NULL, NULL, 1, False, False, None, 0, False, ASKED_MOST, 2, False, False)
            named_set(method, k)
    class_members(<PyTypeObject*>cls, named)


def register_elements(cls):
    """Make ``cls`` the class of what ``flat`` gives: its ``_next``, ``_read`` and ``_write`` see to elements that are not in memory."""
    _keep(cls)
    elements_register(<PyTypeObject*>cls)


number_classes_of = {}
for _k in range(NUMBER_TYPES):
    if number_classes[_k].numpys != NULL:
        number_classes_of[<object>number_classes[_k].numpys] = <object>&number_classes[_k].type


def number(x):
    """Return a number of NumPy's as a result, see ``numbers.h``; everything else as it is."""
    cdef PyTypeObject* kind = number_class_below(x)
    if kind == NULL:
        return x
    cdef PyObject* made = number_as(x, kind)
    found = <object>made
    Py_DECREF(found)
    return found


def numpys_number(x):
    """Return a result as NumPy's own number; everything else as it is."""
    cdef PyObject* made = numpys_plain(x)
    found = <object>made
    Py_DECREF(found)
    return found


def number_members(members):
    """Give the classes of results attributes in addition to NumPy's."""
    number_members_set(members)


def chain(state, place, root, step, tell, raised, cast, compiled, pool, outside):
    """Let operations wait on tapes; see ``chains.h``.

    ``state`` returns the error state for what is recorded now, or None where it may not wait; ``place`` where the user's program stands
    where that is not the code that runs, whose file's name begins with ``root``; ``step`` computes one operation and tells of its errors,
    which ``tell`` does alone, and ``raised`` where they are known; ``cast`` returns what casts arrays to the type of a number; ``compiled`` an address of machine code for a
    tape that comes often, or 0, ``pool`` how many threads kernels have, and
    ``outside`` whether an exception is the program's own.
    """
    chain_register(_keep(state), _keep(place), _keep(root), _keep(step), _keep(tell), _keep(raised), _keep(cast), _keep(compiled), _keep(pool), _keep(outside))


def chain_sizes(least, row, block, work=500_000_000):
    """Record results of ``least`` elements and more, in rows of ``row`` at least, of which ``block`` are computed at a time; for tests.

    What has cost ``work`` element operations is compiled.
    """
    chain_resize(least, row, block, work)


def chain_counts():
    """Return how many expressions took one pass, how many went step by step after all, and how many of the former were machine code."""
    return chain_results[0], chain_results[1], hot_runs


def workers(count):
    """Start threads until there are ``count``; return the address of what calls a function on them, or 0, and how many there are."""
    return WORKERS_ADDRESS, workers_start(count)


def spare(cores, ns):
    """Leave one of ``cores`` cores to a compiler for so many nanoseconds; 0 takes it back."""
    workers_spare(cores, ns)


def share(ns=60_000):
    """Let several threads compute what takes one ``ns`` nanoseconds, and return how often some did until now; for tests."""
    global pieces_ns
    pieces_ns = ns
    return pieces_shared


def pauses(ns=30_000_000):
    """Let handlers of signals run each ``ns`` nanoseconds within a tape, and return how often they could until now; for tests."""
    global pieces_pause
    pieces_pause = ns
    return pieces_paused


def lags(Py_ssize_t size=1 << 22):
    """Let results of so many bytes, and more, be written while they are computed from what lies around them; for tests."""
    global lag_from
    lag_from = size


def poisons(on=False):
    """Fill memory whose write waits, and that nothing reads before, with what is no number; return how often until now; for tests."""
    global poisons_now
    poisons_now = on
    return poisoned


def count(hook):
    """Call ``hook`` from now on for each operation of the program's: whether it is part of one pass, its result, and its first two operands.

    Of what is part of one pass, and where there is no operand, they are None.
    """
    count_with(_keep(hook))


def settle():
    """Compute what operators have put off."""
    settle_all()


def tape(x):
    """Return what an array waits for, `(serial, step, steps, item, operands, sites)`, or None; see ``namespace/waiting.py``."""
    return tape_told(x)


def seal(x):
    """Let what is computed of an array that waits be computed apart from it."""
    tape_seal(x)


def attribute(slow, name):
    """Return what tells `shape`, `dtype`, `ndim` or `size` of what waits without computing it; ``slow``, a property, tells of all else."""
    return property_new(slow, ("shape", "dtype", "ndim", "size").index(name))


def forget():
    """Ask anew whether operations may wait: settings have changed."""
    state_forget()


def pause(on):
    """Let nothing that waits be computed in this thread, or again."""
    tapes_pause(on)


def rows(x):
    """Return an iterator over the first axis of an array, whatever its shape is each time."""
    return rows_of_array(x)


def lend(x, bint address=False):
    """Tell that others may write the memory of ``x`` from now on, for good if they know its ``address``, else while they refer to it."""
    settle_all()
    cell_lend(x, address)


def class_reads(metaclass, dict names, make):
    """Let ``names`` be read from the classes of ``metaclass`` as they are there, made by ``make(cls, name)`` where they are None."""
    class_register(<PyTypeObject*>metaclass, names, make)


def belongs(cnp.ndarray view, owner):
    """Let ``view``, of NumPy's class or a subclass, have ``owner`` for its base; another object keeps the memory."""
    view_belongs(view, owner)


def exchange(x, base, node, to_base, to_view, to_node, Py_ssize_t holders=-1):
    """Give ``x`` another state if it is in the one that is named, without anything in between; tells whether it did.

    It has this ``base``, and where that is None this ``node``; no write into memory that it leaves is under way, and what it leaves has
    no more than ``holders`` references.
    """
    return cell_exchange(x, base, node, to_base, to_view, to_node, holders)


def set_together(x, dict members):
    """Set slots of an object with nothing in between, neither a handler nor another thread."""
    before = [getattr(x, name, None) for name in members]
    for name, value in members.items():
        setattr(x, name, value)
    del before  # which may run code


def remember(x, view, node, stamp):
    """Let ``x`` know the ``node`` of its ``view``, which was made of ``stamp``, if it still has this view."""
    cell_remember(x, view, node, stamp)


@cython.final
@cython.freelist(8)
cdef class writing:
    """While a caller writes into the memory of a large array, or of a part of one, that stays its memory: what is recorded is a copy."""

    cdef object _of
    cdef CellStruct* _root

    def __cinit__(self, x):
        if not isinstance(x, Cell):
            raise TypeError("not an array")
        self._of = x

    def __enter__(self):
        self._root = writing_begin(self._of)

    def __exit__(self, *raised):
        writing_end(self._root)


cdef int _member(Member* member, object cls, str name) except -1:
    _keep(cls)
    member_fill(member, <PyTypeObject*>cls, _kept_object(name), _kept_object(vars(cls)[name]))
    return 0


def register_buffers(node, buffer):
    """Tell where the memory of a node's value is found."""
    _member(&member_buffer, node, "buffer")
    _member(&member_array, buffer, "_array")
    _member(&member_shared, buffer, "shared")


def register_drafts(draft):
    """Tell where the memory of an array is found that other code may write."""
    _member(&member_draft, draft, "array")
    _member(&member_lease, draft, "lease")
    _member(&member_outside, draft, "outside")


def register_parts(view, elements):
    """Let ``view`` name how a part of a large array lies in there, and ``elements`` of a view call ``show``."""
    global view_method, show_method
    view_method = _keep(view)
    show_method = _keep(elements)


def show(x, view, shown, memory, origin):
    """Let ``x`` show what the NumPy array ``shown``, which nothing else refers to, shows of its owner's ``memory``, if ``x`` still has this ``view``."""
    part_attach(x, view, shown, memory, origin)


cdef extern from "Python.h":
    PyObject* PyDict_GetItem(object, object)
    bint PyType_Check(object)
    bint PyModule_Check(object)
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t)


cdef dict _kinds = {}
cdef object _rare_kind = None


def register_kinds(known, rare):
    """Tell ``kind`` of the types that a program knows as others; ``rare`` answers for types and modules."""
    global _rare_kind
    _kinds.update(known)
    _rare_kind = rare


def kind(function, value):
    """Return ``type(value)`` as the program knows it: its ``np.float64`` of a result, its ``np.ndarray`` of NumPy's, ``type`` of those."""
    cdef PyObject* known
    if function is not type or PyType_Check(value) or PyModule_Check(value):
        return _rare_kind(function, value)
    known = PyDict_GetItem(_kinds, <object>Py_TYPE(value))
    return <object>Py_TYPE(value) if known == NULL else <object>known


def any_of(frozenset kinds, tuple values, dict keywords):
    """Tell whether one of the values, or of the keywords', is of one of these types."""
    for value in values:
        if <object>Py_TYPE(value) in kinds:
            return True
    for value in keywords.values():
        if <object>Py_TYPE(value) in kinds:
            return True
    return False


def of_types(list objects, tuple kinds):
    """Return those of the objects whose type is one of these; neither objects nor types are asked anything."""
    cdef list found = []
    cdef PyObject* kind
    cdef Py_ssize_t k, n = len(kinds)
    for x in objects:
        kind = <PyObject*>Py_TYPE(x)
        for k in range(n):
            if kind == PyTuple_GET_ITEM(kinds, k):
                found.append(x)
                break
    return found


def release():
    """Let go of the memory that parts of large arrays show."""
    parts_release()


def parts_of(x):
    """List the cells that show parts of the memory of a large array."""
    return _parts_of(x)


def assign_rows(str name, memory, other):
    """Do ``memory op= other``, of arrays of NumPy's or a number, where that is quicker by rows; tells whether it did."""
    return bool(rows_in_place(_numbers[name], memory, other))


def copy_into(memory, other):
    """Do ``memory[...] = other``, of arrays of NumPy's; what lies plainly is copied by several threads."""
    copied_over(memory, other)


def read_chosen(memory, mask):
    """Return ``memory[mask]``, of arrays of NumPy's; None where that is NumPy's to do."""
    return chosen_of(memory, mask)


def write_chosen(memory, mask, values):
    """Do ``memory[mask] = values``, of arrays of NumPy's; tells whether it did."""
    return bool(chosen_put(memory, mask, values))


def positions(x):
    """Return where an array of NumPy's is not zero, an array of its own for each axis; None where NumPy has to say."""
    return positions_apart(x)


def contract(x, y, to, lengths, first, second, third):
    """Sum products of two arrays of NumPy's into a third one, along axes of these lengths and strides, as NumPy's iterator has them.

    Return whether that could be done; see ``contraction.h``.
    """
    return contract_of(x, y, to, lengths, first, second, third)


def contraction_vectors(int most=2):
    """Let ``contract`` use vectors of 16, 32 or 64 bytes (0, 1, 2) at most; return which it uses; for tests."""
    global contracted_most
    contracted_most = most
    return min(most, contracted_widest())


cdef enum:
    CONTRACTIONS = 512  # plans that are kept
cdef dict _contractions = {}  # plans, or None of what is NumPy's to do, by subscripts and where operands lie
_numpys_einsum = getattr(np.einsum, "_implementation", np.einsum)


cdef bytes layout_key(cnp.ndarray x):
    cdef Py_ssize_t size = cnp.PyArray_NDIM(x) * sizeof(cnp.npy_intp)
    return PyBytes_FromStringAndSize(<char*>cnp.PyArray_DIMS(x), size) + PyBytes_FromStringAndSize(<char*>cnp.PyArray_STRIDES(x), size)


def einsum(*operands, **keywords):
    """Contract operands as ``numpy.einsum`` does, one or two of them by ``contraction.h`` where there is something to gain."""
    cdef Py_ssize_t count = len(operands)
    if (keywords and keywords != {"optimize": False}) or not (2 <= count <= 3) or type(operands[0]) is not str:
        return _numpys_einsum(*operands, **keywords)
    subscripts, x, y = operands[0], operands[1], operands[count - 1]
    if not (cnp.PyArray_CheckExact(x) and cnp.PyArray_CheckExact(y)) or cnp.PyArray_SIZE(x) < CONTRACTION_FROM:
        return _numpys_einsum(*operands)
    key = subscripts, cnp.PyArray_TYPE(x), layout_key(x), cnp.PyArray_TYPE(y), layout_key(y), count
    plan = _contractions.get(key, key)
    if plan is key:
        plan = load("lazynp.backends.numpy.contraction").plan(*operands)
        if len(_contractions) >= CONTRACTIONS:
            _contractions.clear()
        _contractions[key] = plan
    if plan is not None:
        like, one, lengths, strides = plan
        result = np.empty_like(like)
        if contract_of(x, y if count == 3 else one, result, lengths, strides[0], strides[1], strides[2]):
            return result
        _contractions[key] = None
    return _numpys_einsum(*operands)


einsum.__wrapped__ = np.einsum


def _sliding(theirs, mode):
    """Return ``numpy.convolve`` or ``numpy.correlate``, which is ``theirs``, with what ``contraction.h`` gives of two long arrays in its place."""
    numpys = getattr(theirs, "_implementation", theirs)

    def call(*operands, **keywords):
        cdef Py_ssize_t count = len(operands)
        if not (2 <= count <= 3) or (keywords and (count == 3 or keywords.keys() != {"mode"})):
            return numpys(*operands, **keywords)
        a, v = operands[0], operands[1]
        if cnp.PyArray_CheckExact(a) and cnp.PyArray_CheckExact(v) and cnp.PyArray_SIZE(v) >= 4 and cnp.PyArray_SIZE(a) >= CORRELATION_FROM // cnp.PyArray_SIZE(v):
            found = load("lazynp.backends.numpy.contraction").correlation(theirs, a, v, operands[2] if count == 3 else keywords["mode"] if keywords else mode)
            if found is not None:
                return found
        return numpys(*operands, **keywords) if keywords else numpys(*operands)

    call.__name__, call.__wrapped__ = theirs.__name__, theirs
    return call


convolve, correlate = _sliding(np.convolve, "full"), _sliding(np.correlate, "valid")


def stable_order(x, int axis):
    """Return the positions that sort an array of NumPy's along an axis, in which equal elements keep their order."""
    return stable_order_of(x, axis)


def compresses(Py_ssize_t size):
    """Tell whether elements of so many bytes are chosen by vectors, however often truth values change."""
    return bool(compress_used(size))


def by_vectors(bint wanted):
    """Choose elements by vectors from now on, where the processor can; tells whether it does."""
    return bool(compress_choose(wanted))


cdef PyObject* _take(object cls, object members, str name) except? NULL:
    """A method that the core has, too."""
    if name not in members:
        return NULL
    method = members[name]
    delattr(cls, name)
    return _keep(method)


def register_ufunc(cls):
    """Make ``cls`` the class of ufuncs: it and its methods are called by the core, which leaves the rest to the methods in Python."""
    _keep(cls)
    ufunc_register(<PyTypeObject*>cls)
    for name, kind in [("reduce", OF_UFUNC), ("accumulate", OF_UFUNC), ("reduceat", OF_UFUNC), ("outer", OUTER), ("at", AT)]:
        if name in vars(cls):
            setattr(cls, name, function_new(vars(cls)[name], getattr(np.ufunc, name), None, kind, SCANS if name == "accumulate" else NOT_RECORDED, NO_REDUCTION, NULL, NULL, NULL, 1, False, False, None, _OF_UFUNC.get(name, 0), False, ASKED_MOST, ITEM_ARGS, name == "reduce", False))


def bind(ufunc, theirs, real, costly, rounds, compiled):
    """Tell ``ufunc`` which of NumPy's it is; ``real``: its complex numbers are not NumPy's; ``costly``: few elements are left to NumPy; ``rounds``:
    kernels have other bits; ``compiled``: many are left to the core's own C, where it has the function."""
    name = getattr(theirs, "__name__", "")
    ufunc_bind(ufunc, theirs, name in _BASIC, real, not real and vars(np).get(name) is theirs, costly, rounds, compiled, vars(np).get(name) is theirs)


def at_call(ufunc, x):
    """Return the ufunc that computes ``ufunc(x)`` at its call: NumPy's, or one over lazynp's own loops, of arrays of more than ``config.kernels_above`` elements."""
    return <object>at_call_of(ufunc, x)


def compiled(name, x, y=None, level=-1):
    """Return the kernels' function ``name`` of an array in C's order, or of two, computed by the core's C for one set of instructions, from the least one on
    (-1: the best one that is here), and NumPy's bits of the errors it raised; None where there is no such C.  For tests, if a level is given."""
    made = np.empty_like(x)
    cdef PyObject* beside = NULL if y is None else <PyObject*>y
    cdef int errors
    errors = compiled_run(PyUnicode_AsUTF8(name), x, beside, made) if level < 0 else compiled_call(PyUnicode_AsUTF8(name), x, beside, made, level)
    return None if errors < 0 else (made, errors)


def reduce_in_order(name, object x, int64_t outer, int64_t n, int64_t width, double identity, object out):
    """Reduce n elements of an array of floats, in C's order, to one, ``outer`` times; with a ``width``, n rows of so many elements to one row.

    ``name`` is ``add`` or ``multiply``; ``out`` gets the results, with the bits of kernels.
    """
    cdef Py_buffer given, made
    cdef int op = ("add", "multiply").index(name), size = x.itemsize, failed
    PyObject_GetBuffer(x, &given, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(out, &made, PyBUF_SIMPLE | PyBUF_WRITABLE)
        try:
            if given.len < outer * n * (width or 1) * size or made.len < outer * (width or 1) * size:
                raise ValueError("an array is smaller than its extents say")
            with nogil:
                failed = ordered_reduce(op, size, <const char*>given.buf, outer, n, width, identity, <char*>made.buf)
        finally:
            PyBuffer_Release(&made)
    finally:
        PyBuffer_Release(&given)
    if failed:
        raise MemoryError


def vectors(wanted):
    """Say which of the C library's vector functions kernels take: ``0`` none, ``sse``, ``avx2``; all else: the widest."""
    cdef bytes text = wanted.encode()[:7]
    cdef int k
    for k in range(8):
        vectors_wanted[k] = text[k] if k < len(text) else 0


def together(steps, outs):
    """Return what computes elementwise operations in one pass, see ``programs.h``; None where they cannot be in one."""
    return together_new(steps, outs)


def pass_over(of, arrays, numbers, errors, room):
    """Compute what ``together`` returned of arrays and numbers; None where one of ``errors`` is raised, or something does not fit.

    Large results lie in what ``room(dtype, shape)`` gives.
    """
    return together_compute(of, arrays, numbers, errors, room)


def over(ufunc, cnp.ndarray x not None, cnp.ndarray b not None, update):
    """Write ``ufunc(x, b)`` over ``x``, and let ``update.errors`` be NumPy's bits of the errors that were raised; unchanged where it was not done.

    Nothing is done in between, so that an exception of a signal's finds both or neither.
    """
    cdef int errors = written_over(ufunc, x, b)
    if errors >= 0:
        update.errors = errors


def listen(variable, listening, heard, tell, minded):
    """Set ``variable`` to ``listening`` where NumPy runs Python code, and afterwards ``tell`` of the errors that were ``heard``.

    ``minded()`` says which errors the program is told of, as NumPy's bits.
    """
    global error_variable, error_quiet, error_listening, errors_heard, errors_tell, errors_minded_method
    errors_minded_method = _keep(minded)
    error_variable, error_listening, errors_heard, errors_tell = _keep(variable), _keep(listening), _keep(heard), _keep(tell)
    error_quiet = _keep(_quiet(variable.get))


def words(refusal):
    """Let ``refusal(slow, args, kwargs, error)`` say which exception a refused call of a function raises in place of ``error``, or None."""
    global refusal_method
    refusal_method = _keep(refusal)


def function(slow, theirs, name, own, least=1, bint kernels=False, bint unloaded=False):
    """Return a function that lets NumPy's answer where everything is in memory, and ``slow``, a public function or method, all else.

    ``own`` are keywords that NumPy's has not; ``least`` arrays have to be among the arguments, one or none; ``kernels``: of large arrays
    ``slow`` has another answer, or has it sooner; ``unloaded``: ``slow()`` gives it, when it is first wanted.
    """
    cdef Reduction* reduction = NULL
    cdef Matrices* matrices = NULL
    cdef int kind = DRAW if name.startswith("draw ") else COUNTED if hasattr(type(slow), "noted") else LIBRARY if hasattr(type(slow), "at_hand") else _KINDS.get(name, ANY)
    cdef bint numpys_own = getattr(np, name, None) is theirs  # not a namesake of a submodule's
    cdef bint stands_for_it = getattr(np, name, None) is getattr(theirs, "__wrapped__", theirs)
    cdef bint in_their_place = str(getattr(theirs, "__module__", "")).startswith("lazynp")
    cdef bint plain = not hasattr(getattr(np, name, theirs) if in_their_place else theirs, "__wrapped__")
    cdef bytes direct = b"stable order" if name == "argsort" else _DIRECTS.get(theirs) or _DIRECTS.get(getattr(theirs, "__wrapped__", None), b"")
    if theirs in _MATRICES and numpys_matrices[<int>_MATRICES[theirs]].loops.ufunc != NULL:
        kind = MATRICES
        matrices = &numpys_matrices[<int>_MATRICES[theirs]]
    cdef int arrays = _ARRAYS.get(theirs, 0) or _ARRAYS.get(getattr(theirs, "__wrapped__", None), 0)
    if getattr(theirs, "__module__", None) == "numpy.fft" and name.rpartition(".")[2] in _TRANSFORMS:
        arrays = 1
    theirs = getattr(theirs, "_implementation", theirs)  # the arguments are known: none of them overrides it
    if name in _reduction_of:
        reduction = &_reductions[<int>_reduction_of[name]]
        kind = MEAN if name == "mean" else REDUCTION
    if kind == VARIANCE or kind == DEVIATION:
        reduction = &_reductions[0]
    if kind == PRODUCT and not numpys_own:
        kind = GROWING
    python = isinstance(theirs, FunctionType) or name in _IN_PYTHON
    if kind == COUNTED:
        global noted_method
        if noted_method == NULL:
            noted_method = _keep(type(slow).noted)
    if (python or kind == COUNTED) and error_variable == NULL:
        return slow() if unloaded else slow
    method = getattr(np.ndarray, name) if name in _METHODS and numpys_own else None
    cdef int recorded = _RECORDED.get(name, NOT_RECORDED) if numpys_own or stands_for_it or in_their_place or isinstance(theirs, MethodDescriptorType) else NOT_RECORDED
    if name == "sort" and not numpys_own:
        recorded = NOT_RECORDED  # the method writes
    return function_new(slow, theirs, method, kind, recorded, _REDUCES.get(name, NO_REDUCTION), reduction, matrices, direct_named(direct), least, python and name not in _MOVING, plain, own or None, arrays, name in _MOVING, _ASKED.get(name, 16384 if "fft" in name else ASKED_MOST), _POSITIONAL.get(name, ITEM_ARGS), kernels, unloaded)


cdef int operators_known = 0


def layouts(of):
    """Let ``of(function, args, names)`` say what NumPy's function gives for arrays of ones, see ``tapes.layout``; functions are asked as if they had never been."""
    global layout_method, operators_known
    layout_method = _keep(of)
    if operators_known == 0:
        for k in range(BINARIES):
            if k != MATMUL:
                theirs = divmod if k == DIVMOD else getattr(operator, f"__{slot_name(k).decode()}__")
                operator_set(k, function_new(theirs, theirs, None, OPERATOR, NOT_RECORDED, NO_REDUCTION, NULL, NULL, NULL, 1, False, True, None, 2, False, ASKED_MOST, 2, False, False))
        operators_known = 1
    functions_forget()


def first(of):
    """Let ``of(operands, costly)`` have operands that wait in graphs computed, where a small function is to have NumPy's bits; it tells whether there were any."""
    global first_method
    first_method = _keep(of)


def values(of):
    """Let ``of(root)`` see to it that a large array that no reference outside holds any more is a value."""
    global value_method
    value_method = _keep(of)


def owns(of):
    """Let ``of(root)`` have the memory of a large array be its own; it tells whether it is."""
    global own_method, one_object
    own_method, one_object = _keep(of), _keep(1)


def first_work(left=None):
    """Return how many elements, each once for every step, tapes compute of large arrays yet, before those are graphs'; ``left`` sets it."""
    global first_left
    before = first_left
    if left is not None:
        first_left = FIRST_WORK if left < 0 else left
    return before


def clips(both, low, high):
    """Say which ufuncs NumPy's ``clip`` calls where there are two bounds, which is one of three operands, one below, or one above."""
    clip_fill(both, low, high)


def draws_later(function):
    """Have ``soon`` of what a function of ``function`` calls say, now and then, what draws from then on."""
    c_draws_later(function)


def stand_for(function, theirs):
    """Let a function of ours, which nothing has as a key yet, be equal to NumPy's."""
    function_stand_for(function, theirs)

vectors(config.libmvec)
