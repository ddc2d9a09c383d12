"""The ufuncs of ``lazynp.special``.

In: rows of ``table``, and SciPy's ufuncs by name.  Out: ``ufunc`` objects like those of the main namespace.  Promise: what is
native needs no SciPy, neither to be imported nor to be installed: its dtype rules are borrowed from functions of NumPy with the same loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lazynp.arrays import result
from lazynp.graph.build import broadcast_shape, call, output
from lazynp.graph.dtypes import FLOAT64
from lazynp.graph.floating import at_once
from lazynp.graph.node import Node
from lazynp.graph.op import SPECIAL
from lazynp.namespace.bridge import fallback
from lazynp.namespace.bridge import library as items
from lazynp.namespace.docstrings import Documented
from lazynp.namespace.ufunc.loops import Lowered, Lowering, Outputs, Sources
from lazynp.namespace.ufunc.promotion import Foreign, Key, operand
from lazynp.namespace.ufunc.ufuncs import Direct, ufunc
from lazynp.values.loading import load

# NumPy's functions with loops for half, single, double and nothing before them, by the number of operands; and with complex ones after.
_REAL: Final = {1: np.cbrt, 2: np.hypot}
_COMPLEX: Final = {1: np.exp, 2: np.add}
_HALF: Final = np.dtype(np.float16)
_SINGLE: Final = frozenset([*[op.name for op in SPECIAL], "psi"])  # functions that are one operation
# What those loops are for functions without one for half, and where only operands that are all single take single's.
_LOOPS: Final[dict[bool, dict[np.dtype[Any], np.dtype[Any]]]] = {
    True: {_HALF: np.dtype(np.float32)},
    False: {_HALF: FLOAT64, np.dtype(np.float32): FLOAT64, np.dtype(np.complex64): np.dtype(np.complex128)},
}


def scipys(name: str) -> Any:
    """SciPy's special function of that name, without the dispatch to other array libraries.

    Raises
    ------
    ImportError
        SciPy is not installed.
    """
    try:
        module = load("scipy.special")
    except ImportError:
        raise ImportError(f"lazynp.special.{name} is SciPy's work, and SciPy is not installed: pip install scipy") from None
    found = getattr(module, name)
    return getattr(found, "__wrapped__", found)


def scipy_item(name: str) -> Lowering:
    """SciPy's own loop, called as one item of the schedule."""

    def lower(nodes: Sources, outs: Outputs) -> Lowered:
        scipys(name)
        shape = broadcast_shape(*[x.shape for x in nodes])
        first = call(f"scipy:{name}", (), nodes, outs[0], shape)
        if len(outs) == 1:
            return first
        return (first, *[output(first, k, outs[k], shape) for k in range(1, len(outs))])

    lower.answered = "library"  # type: ignore[attr-defined]
    return lower


class Loops:
    """The loops of a native ufunc, in place of the NumPy ufunc that it stands for: their dtypes are float32 and float64.

    Attributes
    ----------
    complex : bool
        SciPy has loops for complex numbers, too.
    wide : bool
        The loop for double comes first in SciPy's list: single is for operands that are single, all of them and none a Python number.
    of : SpecialUfunc
        The function itself.
    """

    nout = 1
    identity = None
    signature = None
    of: SpecialUfunc

    def __init__(self, name: str, nin: int, has_complex: bool, wide: bool, doc: str) -> None:
        self.__name__ = name
        self.__doc__ = doc
        self.nin = nin
        self.nargs = nin + 1
        self.complex = has_complex
        self.wide = wide
        loops = ("df" if wide else "fd") + ("DF" if has_complex else "")
        self.types = [f"{c * nin}->{c}" for c in loops]
        self.ntypes = len(self.types)

    def resolve_dtypes(self, dtypes: tuple[Any, ...], *, signature: Any = None, casting: Any = None) -> tuple[np.dtype[Any], ...]:
        """The loop's dtypes; see :meth:`numpy.ufunc.resolve_dtypes`."""
        options = {key: value for key, value in (("signature", signature), ("casting", casting)) if value is not None}
        forced = signature if isinstance(signature, tuple) else ()
        has_complex = any(x is complex or (isinstance(x, np.dtype) and x.kind == "c") for x in (*dtypes, *forced))
        like = (_COMPLEX if self.complex and has_complex else _REAL)[self.nin]
        try:
            found = like.resolve_dtypes(dtypes, **options)
        except np._core._exceptions._UFuncCastingError as error:  # type: ignore[attr-defined]
            error.ufunc = self.of  # whose name its message has
            raise
        except TypeError as error:
            raise TypeError(str(error).replace(like.__name__, self.__name__)) from None
        if _HALF in forced:
            raise TypeError(f"No loop matching the specified signature and casting was found for ufunc {self.__name__}")
        loop = found[0]
        single = not self.wide or bool(forced) or all(type(x) is not type and x == loop != _HALF for x in dtypes[: self.nin])
        return tuple([_LOOPS[single].get(dtype, dtype) for dtype in found])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the function of numbers, as NumPy's scalar; anything else is SciPy's."""
        if kwargs or len(args) != self.nin or not all(isinstance(x, (int, float, np.number, np.bool_)) for x in args):
            return scipys(self.__name__)(*args, **kwargs)
        node = self.of.nodes(args)
        assert isinstance(node, Node)
        (value,) = items.values(node, reason=self.__name__)
        return value[()]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(scipys(self.__name__), name)


class SpecialUfunc(ufunc):
    """A function of arrays, element by element, with broadcasting, from ``scipy.special``."""

    __doc__ = Documented(__doc__, "of_ufunc")

    def __repr__(self) -> str:
        return f"<ufunc 'lazynp.special.{self.__name__}'>"

    def __reduce__(self) -> Any:
        return fallback.by_path, (f"special.{self.__name__}",)

    def _probe(self, key: tuple[Key, ...]) -> Direct | None:
        # The others are more than one operation, or one that may warn where the lowering does not record it.
        return super()._probe(key) if self.__name__ in _SINGLE else None

    def _stands_for(self) -> Any:
        return scipys(self.__name__)

    def _by_numpy(self, args: Any, kwargs: dict[str, Any]) -> Any:
        return fallback.call(scipys(self.__name__), f"scipy.special.{self.__name__}", args, kwargs)


def native(name: str, nin: int, has_complex: bool, wide: bool, lower: Lowering, doc: str) -> ufunc:
    """A ufunc that needs no SciPy, except for complex numbers."""
    loops = Loops(name, nin, has_complex, wide, doc)
    loops.of = SpecialUfunc(loops, lower)  # type: ignore[arg-type]
    return loops.of


class _Host(fallback.Fallback):
    """A function of SciPy that is called on host arrays."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        super().__init__(function, f"special.{name}")
        self.__module__ = "lazynp.special"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return fallback.call(self.__wrapped__, f"scipy.{self._name}", args, kwargs)

    def __repr__(self) -> str:
        return f"<lazynp fallback scipy.{self._name}>"


def _elementwise(name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function of SciPy that works element by element, as one item of the schedule; it says itself what dtype it gives."""

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            nodes = [operand(np.asarray(arg) if type(arg) in (int, float, complex) else arg)[0] for arg in args]
        except Foreign:
            nodes = [None]
        sources = [node for node in nodes if node is not None]
        if kwargs or len(sources) != len(args):
            return fallback.call(theirs, f"scipy.special.{name}", args, kwargs)
        shape = broadcast_shape(*[node.shape for node in sources])
        dtype = at_once(theirs, *[np.ones(1, node.dtype) for node in sources]).dtype
        return result(call(f"scipy:{name}", (), sources, dtype, shape))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = theirs.__doc__
    return fallback.library(function)


def of_scipy(name: str, elementwise: bool, known: bool) -> Any:
    """Make what stands under a name that SciPy has: a ufunc, a function that records one item, or one that is called on host arrays.

    ``known``: the name is there even where SciPy is not; it then says so when it is called.
    """
    try:
        theirs = scipys(name)
    except ImportError:
        if known:
            return _missing(name)
        raise AttributeError(f"module 'lazynp.special' has no attribute {name!r} (there may be more where SciPy is installed)") from None
    except AttributeError:
        raise AttributeError(f"module 'lazynp.special' has no attribute {name!r}") from None
    if isinstance(theirs, np.ufunc) and theirs.signature is None:
        return SpecialUfunc(theirs, scipy_item(name))
    if elementwise:
        return _elementwise(name, theirs)
    return _Host(theirs, name) if callable(theirs) and not isinstance(theirs, type) else theirs


def _missing(name: str) -> Callable[..., Any]:
    """Make what stands under the name of a function of SciPy's where SciPy is missing."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return scipys(name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return fallback.library(function)
