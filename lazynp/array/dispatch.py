"""NumPy's functions and methods in front of ours.

In: a public function or method, and NumPy's of that name.  Out: a function that lets NumPy's answer where all arguments are small and in
memory, and ours everywhere else.  Promise: tables say which functions must not be answered so, and whose results are larger than their
arguments.
"""

# The functions of the namespace do not know of this: `dispatch.first` stands before each that NumPy has too, and has the core let NumPy's
# answer where all arguments are small and in memory; what the core leaves alone is the function's own. `NOT_AT_HAND` names those that must
# not be answered so (they call back, or could read outside the memory), `SIZES` those that say how large their result is. Of the native
# core's functions a table says how they are answered (`function_table.h`, `_core.pyx`): by NumPy's function, by the method that is all it
# calls, or by a C function; NumPy's functions in Python hear floating-point errors for the user's line, except for those that compute
# nothing.
# Products (`@`) of large arrays that exist are computed at the call, too, where the result is small: nothing is fused with a library's
# call. So are operations on complex numbers that exist, at every size (no kernel computes with them), and readings by a mask
# (`indexing._masked`), whose size only the computed mask tells. Truth values that exist are counted at the call, also when they are many
# (`of_truth`), and the parts of complex numbers that exist are a leaf over every other number of their memory (`views._part`), which a
# kernel reads where it lies. Results of 32 KiB and more come from a pool of at most 12 MiB (`pool.h`): they begin where a line of the
# cache begins, for a stored vector that crosses two lines takes twice the time; and the C library would give their pages back to the
# system each time, and NumPy pays more for new ones than for the arithmetic. They are aligned by hand, behind a header: what the C
# library aligns is never used again for the same size, and programs of arrays of a megabyte held twice NumPy's memory. The C library's
# heap is left as the program has it. A warning that is not about floating-point errors names the user's line: such calls go through one
# line of code that bears the user's file and number (`floating.at_users_line`). Array API consumers ask an array for its namespace and
# get `standard.Namespace`: the same names, but results without axes are arrays of ours.
#
# Whole powers of negative floats leave NumPy's vectors for a library's function, one by one; `powers.h` computes them as products of
# pairs of floats and asks NumPy where the true power is so near to the middle between two floats that the function might round it to the
# other one. `np.unique` of whole numbers sorts in vectors (`dispatch.py`), `searchsorted` looks for a number from where the last one was
# found, if what it looks in is in order (`searching.h`). Variances, deviations and `isclose` take NumPy's steps without the way through
# its functions (`spread.h`); operators in place write where the elements lie (`direct.h`), and tell of errors when all is written, as
# NumPy does.

from __future__ import annotations

import functools
from collections.abc import Callable
from math import ceil, prod
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy._core import umath

from lazynp.array import core
from lazynp.array.core import Cell
from lazynp.values import config
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp.array import calls, hand
else:
    calls, hand = late("array.calls", "array.hand")

_MEMORY: Final = np.ndarray
_WHOLE_NUMBERS: Final = frozenset(map(np.dtype, "ilqILQ"))  # themselves, which native arrays have
if (_clip := getattr(umath, "clip", None)) is not None:  # the ufunc that NumPy's function calls
    core.clips(_clip, np.maximum, np.minimum)
# Those that make arrays and never warn of anything but floating-point errors.
_QUIET: Final = frozenset({"zeros", "ones", "empty", "full", "arange", "eye", "identity", "zeros_like", "ones_like", "empty_like"})
# What is not NumPy's to answer: what calls back, is about lazynp's own objects, must not read outside the memory, or warns of writes.
NOT_AT_HAND: Final = frozenset(
    {
        "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "from_dlpack", "fromfunction",
        "frompyfunc", "apply_along_axis", "apply_over_axes", "piecewise", "as_strided", "array2string", "array_repr", "array_str",
        "vectorize", "einsum_path", "broadcast_arrays", "require", "mask_indices",
        "load",  # of maps and archives of arrays
        "isclose", "allclose",  # they ask for the error state
    }
)  # fmt: skip

# Of large arrays these have the bits of kernels, in whose order they sum, or kernels find them much sooner.
BY_KERNELS: Final = frozenset(
    {
        "sum", "prod", "mean", "std", "var", "nansum", "nanprod", "nanmean", "nanstd", "nanvar", "average", "norm", "vector_norm",
        "matrix_norm", "trapezoid", "trapz", "median", "nanmedian", "allclose", "isclose", "trace", "cov", "corrcoef", "angle",
    }
)  # fmt: skip

# Among them those of which the native core can: arrays of numbers, and what asks for an error state that is not changed there.
CORES_OWN: Final = frozenset({"array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "isclose", "allclose", "realize"})


def _shape_size(shape: Any = None, *rest: Any, **options: Any) -> int:
    """Elements of a shape argument."""
    if type(shape) in _WHOLE:
        return int(shape)
    return prod(map(int, shape)) if type(shape) in (tuple, list) and _whole(map(type, shape)) else _LARGE


def _matrix_size(n: Any = None, m: Any = None, *rest: Any, **options: Any) -> int:
    """Elements of a matrix of n rows and, if given, m columns."""
    n, m = options.get("N", n), options.get("M", m)
    return int(n) * int(n if m is None else m) if type(n) in _WHOLE and (m is None or type(m) in _WHOLE) else _LARGE


def _grid_size(dimensions: Any = None, *rest: Any, **options: Any) -> int:
    """Elements of the indices of a grid, one array an axis."""
    shape = options.get("dimensions", dimensions)
    return len(shape) * _shape_size(shape) if type(shape) is tuple else _LARGE


def _square_size(n: Any = None, *rest: Any, **options: Any) -> int:
    return int(n) * int(n) if type(n) in _WHOLE else _LARGE


def _range_size(*limits: Any, **options: Any) -> int:
    """Elements of a range between Python numbers."""
    if not limits or len(limits) > 3 or not _REAL.issuperset(map(type, limits)) or options.keys() - {"dtype", "device", "like"}:
        return _LARGE
    start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    try:
        return max(ceil((stop - start) / step), 0)
    except (ArithmeticError, ValueError):
        return _LARGE


def _spaced_size(start: Any = None, stop: Any = None, num: Any = 50, *rest: Any, **options: Any) -> int:
    """Elements of a space of ``num`` steps."""
    num = options.get("num", num)
    return int(num) * calls.bound([x for x in (start, stop) if type(x) is not int]) if type(num) in _WHOLE else _LARGE


_LARGE: Final = 1 << 62
_REAL: Final = frozenset({int, float})
_WHOLE: Final = frozenset({int, *(np.dtype(letter).type for letter in "bhilqBHILQ")})
_whole: Final = _WHOLE.issuperset
# Functions whose arguments say how large their results are.
SIZES: Final[dict[str, Callable[..., int]]] = {
    **dict.fromkeys(("zeros", "ones", "empty", "full"), _shape_size),
    **dict.fromkeys(("eye", "tri"), _matrix_size),
    **dict.fromkeys(("identity", "tril_indices", "triu_indices", "diag_indices"), _square_size),
    **dict.fromkeys(("bartlett", "blackman", "hamming", "hanning", "kaiser", "fftfreq", "rfftfreq"), _shape_size),
    **dict.fromkeys(("linspace", "logspace", "geomspace"), _spaced_size),
    "arange": _range_size,
    "indices": _grid_size,
}
_LIKE: Final = frozenset({"zeros_like", "ones_like", "empty_like", "full_like"})


def _zeros_for(empty: Callable[..., Any], zeros: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands for ``empty``: the same on every run; objects are None, which only NumPy's own makes."""

    def made(*args: Any, **kwargs: Any) -> Any:
        found = zeros(*args, **kwargs)
        return empty(*args, **kwargs) if found.dtype.hasobject else found

    made.__wrapped__ = empty  # type: ignore[attr-defined]
    return made


_ZEROS: Final = {"empty": _zeros_for(np.empty, np.zeros), "empty_like": _zeros_for(np.empty_like, np.zeros_like)}
# Their results are larger than their arguments: the product of all sizes and numbers bounds them.
GROWING: Final = frozenset({"outer", "kron", "meshgrid", "tile", "repeat", "diagflat", "vander", "diag", "ix_", "resize"})
# Their results are views that may be larger than the memory.
_WIDENING: Final = frozenset({"broadcast_to", "sliding_window_view"})
MODULES: Final = frozenset({"lazynp", "lazynp.linalg", "lazynp.fft", "lazynp.lib.stride_tricks", "lazynp.lib.scimath"})
_first: Final[dict[Any, Any]] = {}


def first(name: str, function: Any, theirs: Any, module: str = "lazynp", own: frozenset[str] = frozenset()) -> Any:
    """Let NumPy answer for a public function of ours where everything is in memory; ``own`` are keywords that NumPy's has not."""
    found = _first.get(function) if isinstance(function, FunctionType) or hasattr(type(function), "at_hand") else None
    if found is None and isinstance(function, FunctionType):
        found = _promised.get(theirs)
    if found is None:
        name = _known_as(name, theirs, module)
        found = _letting_numpy(name, function, theirs, module, own)
        if found is not function:
            core.stand_for(found, theirs)
            _first[function] = found
            _first[found] = found
    return found


def promised(name: str, load: Callable[[], Any], theirs: Any, module: str = "lazynp", own: frozenset[str] = frozenset()) -> Any:
    """``first`` for a function in Python that ``load()`` gives: when NumPy does not answer, or something is asked of it."""
    found = _promised.get(theirs)
    if found is not None:
        return found
    name = _known_as(name, theirs, module)
    answering = _answering(name, theirs, module)

    def slow() -> Any:
        function = load()
        itself: list[Any] = []
        called = _in_front(name, function, answering, own, itself)
        made = _promised.get(theirs)  # none yet: the core wants it at once
        if made is not None:
            _first[function] = made
        itself.append(called if made is None else made)
        return called

    builtin = isinstance(theirs, BuiltinFunctionType)  # as an attribute of a class it does not become a method
    given = staticmethod(slow) if builtin else slow
    made = core.function(given, _ZEROS.get(name, answering), name, own, _least(name), name in BY_KERNELS, True)
    if type(made) is not FunctionType:  # the class that a function of the core tells of is that of the one in Python
        core.stand_for(made, theirs)
    made = _promised.setdefault(theirs, made)  # another thread may have been sooner
    _first[made] = made
    return made


_promised: Final[dict[Any, Any]] = {}


def _known_as(name: str, theirs: Any, module: str) -> str:
    """Return one of two names, `concat` and `concatenate`, whichever is asked for first."""
    known: str = getattr(theirs, "__name__", name)
    return known if module == "lazynp" and getattr(np, known, None) is theirs else name


def _answering(name: str, theirs: Any, module: str) -> Any:
    return _INSTEAD[name] if name in _INSTEAD and module == "lazynp" else theirs


def _least(name: str) -> int:
    """Return how many arrays must be among the arguments."""
    return 1 if name in GROWING or name in _WIDENING or name in SIZES or name in _LIKE or name in CORES_OWN else 0


def _letting_numpy(name: str, function: Any, theirs: Any, module: str, own: frozenset[str]) -> Any:
    if name in CORES_OWN and module == "lazynp":
        return core.function(function, theirs, name, own, 1, name in BY_KERNELS)
    theirs = _answering(name, theirs, module)
    if hasattr(type(function), "at_hand"):  # it does what follows itself
        return core.function(function, theirs, name, own, 0)
    if not isinstance(function, FunctionType | staticmethod) or module not in MODULES or name in NOT_AT_HAND or not callable(theirs):
        return function
    if isinstance(theirs, (type, np.ufunc)):
        return function
    itself: list[Any] = []
    made = core.function(
        _in_front(name, function, theirs, own, itself), _ZEROS.get(name, theirs), name, own, _least(name), name in BY_KERNELS
    )
    itself.append(made)
    return made


def _in_front(name: str, function: Any, theirs: Any, own: frozenset[str], itself: list[Any]) -> Any:
    """Return what is called where the core, whose function ``itself`` is, does not answer: it lets NumPy do so, or else ``function``."""
    if name in CORES_OWN:
        return function
    if name in SIZES or name in _LIKE:
        made = _maker(name, function, theirs, own)
        return type(function)(made) if isinstance(function, staticmethod) else made
    if name in GROWING or name in _WIDENING:
        return _of_lists(function, getattr(theirs, "_implementation", theirs), own, name in _WIDENING)
    return _before_kernels(function, lambda args: itself[0]) if name in BY_KERNELS else function


def _of_lists(function: Callable[..., Any], theirs: Any, own: frozenset[str], widens: bool) -> Callable[..., Any]:
    """Return ``function`` for what the core leaves alone, since it does not see how large the result is: lists and numbers."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        seen = widens and args and isinstance(args[0], Cell)  # by the core
        found = NotImplemented if seen or not own.isdisjoint(kwargs) else calls.growing(theirs, args, kwargs, 0, calls.ALWAYS)
        return function(*args, **kwargs) if found is NotImplemented else found

    return call


def _before_kernels(function: Callable[..., Any], whole: Callable[[tuple[Any, ...]], Callable[..., Any]]) -> Callable[..., Any]:
    """Return ``function`` for what kernels have bits of their own for: large arrays are theirs, and what waits of one is computed before.

    ``whole(args)`` is what is called of the function then, once more.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if calls.any_large(args, kwargs):
            return calls.by_kernels(function, args, kwargs)
        return whole(args)(*args, **kwargs) if calls.at_hand_first(args) else function(*args, **kwargs)

    return call


def _maker(name: str, function: Any, theirs: Any, own: frozenset[str]) -> Any:
    """``first`` for a function that makes arrays of a size it is given."""
    size, theirs = SIZES.get(name), _ZEROS.get(name, theirs)
    plain = name in ("zeros", "ones", "empty")

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        limit = config.at_hand
        if plain and limit and len(args) == 1 and not kwargs:
            shape = args[0]
            if (shape if type(shape) is int else _shape_size(shape)) <= limit:
                return hand.cell(theirs(shape))
        if size is None:  # like another array, of which the fifth argument may say the shape
            small = len(args) < 5 and kwargs.get("shape") is None
        else:
            small = size(*args, **kwargs) <= limit
        if limit and small and own.isdisjoint(kwargs):
            found = calls.answer(theirs, args, kwargs, 0 if size is not None else 1, 0 if name in _QUIET else calls.ALWAYS)
            if found is not NotImplemented:
                return found
        return function(*args, **kwargs)

    return make


def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """NumPy's, but stable where nothing is said of that."""
    keeps = stable is None or stable is True if kind is None else stable is None and kind in ("stable", "mergesort")
    if keeps and type(a) is _MEMORY and order is None and type(axis) is int and -a.ndim <= axis < a.ndim:
        return core.stable_order(a, axis)
    kind = "stable" if kind is None and stable is None else kind
    return (np.ndarray.argsort if type(a) is _MEMORY else np.argsort)(a, axis, kind, order, stable=stable)


def unique_values(x: Any, /) -> Any:
    """NumPy's, but in order, which NumPy leaves open and other libraries count on."""
    return np.unique(x, equal_nan=False)


def _unique(*args: Any, **named: Any) -> Any:
    """NumPy's; whole numbers are sorted, in vectors, which takes a fraction of the time that NumPy's table of them does."""
    if len(args) != 1 or named or type(args[0]) is not _MEMORY or args[0].dtype not in _WHOLE_NUMBERS or args[0].size < 2:
        return np.unique(*args, **named)
    made = args[0].flatten()
    made.sort()
    differs = np.empty(made.shape, bool)
    differs[0] = True
    np.not_equal(made[1:], made[:-1], differs[1:])
    return made[differs]


def _asking(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function with its question whose call it is: it refuses an operand that cannot be iterated over."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return theirs(*args, **kwargs)

    return call


_INSTEAD: Final = {  # of NumPy's functions
    "argsort": _argsort, "unique": _unique, "unique_values": unique_values, "poly": _asking(np.poly), "roots": _asking(np.roots),
    "ravel_multi_index": _asking(np.ravel_multi_index), "einsum": core.einsum,
    "convolve": core.convolve, "correlate": core.correlate,
}  # fmt: skip


def numpys_method(name: str) -> Any:
    """Return what answers for a method of an array in memory."""
    return _argsort if name == "argsort" else getattr(np.ndarray, name)


def method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of arrays where the core does not let NumPy's answer."""
    return _before_kernels(function, lambda args: getattr(type(args[0]), name)) if name in BY_KERNELS else function
