"""The Python twin of the native core: the same names and signatures, for where nothing could be compiled.

In: the class of arrays, that of ufuncs, functions.  Out: the same.  Promise: what the native core does in front of them is missing, and
nothing else.
"""

from __future__ import annotations

import functools
import operator
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numpy as np


class Cell:
    """The cell that every array is made of; see ``lazynp.arrays.ndarray`` for the meaning of its slots."""

    __slots__ = ("__weakref__", "_base", "_node", "_partial_reads", "_readonly", "_stamp", "_view")

    _base: Any
    _partial_reads: int
    _node: Any
    _readonly: Any
    _stamp: Any
    _view: Any

    @property
    def _writers(self) -> int:
        """Count the writes into the memory of a draft that are under way."""
        return _writers.get(id(self), 0)


_states: Final = threading.RLock()  # held where cells change their state
_writers: Final[dict[int, int]] = {}  # how many writes are under way, by ``id`` of the array that owns the memory


def exchange(x: Any, base: Any, node: Any, to_base: Any, to_view: Any, to_node: Any, holders: int = -1) -> bool:
    """Give ``x`` another state if it is in the one that is named, without anything in between; tells whether it did.

    It has this ``base``, and where that is None this ``node``; nobody is writing into memory that it leaves, and what it leaves has no more
    than ``holders`` references.
    """
    with _states:
        if x._base is not base or (x._node is not node if base is None else x._writers > 0):
            return False
        if 0 <= holders < sys.getrefcount(node if base is None else base) - 1:
            return False
        x._node, x._view, x._base = to_node, to_view, to_base
        return True


class writing:  # noqa: N801, as the native core has it
    """While somebody writes into the memory of a large array, or of a part of one, that stays its memory: what is recorded is a copy."""

    __slots__ = ("_root",)

    def __init__(self, x: Any) -> None:
        base = x._base
        self._root = base if type(base) is type(x) else x

    def __enter__(self) -> None:
        key = id(self._root)
        with _states:
            _writers[key] = _writers.get(key, 0) + 1

    def __exit__(self, *raised: object) -> None:
        key = id(self._root)
        with _states:
            _writers[key] -= 1
            if not _writers[key]:
                del _writers[key]


class Elements:
    """The elements of an array, one after the other, which ``_next``, ``_read`` and ``_write`` of a subclass find."""

    __slots__ = ("_array", "_index")

    _array: Any
    _index: int

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self._next()  # type: ignore[attr-defined]

    def __getitem__(self, key: Any) -> Any:
        self._index = 0  # NumPy's begins anew, too
        return self._read(key)  # type: ignore[attr-defined]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._write(key, value)  # type: ignore[attr-defined]

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Cannot delete iterator elements")


_TWO: Final = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor")
_ONE: Final = ("neg", "pos", "abs", "invert")


def _two(function: Callable[[Any, Any], Any]) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator of results, and the same with the result on the right."""

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, Cell):
            return NotImplemented
        return number(function(numpys_number(self), numpys_number(other)))

    def reflected(self: Any, other: Any) -> Any:
        return number(function(numpys_number(other), numpys_number(self)))

    return forward, reflected


def _one(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: number(function(numpys_number(self)))


_COMPARISONS: Final = {"lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal"}


def _compared(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compared(self: Any, other: Any) -> Any:
        if isinstance(other, Cell):  # the array would name the reverse comparison in a warning
            own: Any = sys.modules["lazynp"]
            return getattr(own, _COMPARISONS[function.__name__])(self, other) if type(other) is own.ndarray else NotImplemented
        return function(numpys_number(self), numpys_number(other))

    return compared


class _NumberType(type):
    """The class of the classes of results: each is equal to NumPy's, and has its place in tables."""

    def __eq__(cls, other: object) -> bool:
        return cls.__mro__[1] is (other.__mro__[1] if type(other) is _NumberType else other)

    def __hash__(cls) -> int:
        return hash(cls.__mro__[1])


def _class_of(kind: type) -> type:
    members: dict[str, Any] = {"__slots__": (), "__module__": "numpy", "__doc__": kind.__doc__, "__hash__": kind.__hash__}
    members["__class__"] = property(lambda self: kind)
    for name in _TWO:
        function = getattr(operator, f"__{name}__", divmod)
        members[f"__{name}__"], members[f"__r{name}__"] = _two(function)
    for name in _ONE:
        members[f"__{name}__"] = _one(getattr(operator, f"__{name}__"))
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        members[f"__{name}__"] = _compared(getattr(operator, f"__{name}__"))
    members["__iter__"] = None  # or Python would iterate by asking for element 0
    members["__repr__"] = lambda self: repr(numpys_number(self))
    members["__getitem__"] = lambda self, key: self if key == () and type(key) is tuple else _result(numpys_number(self)[key])
    return _NumberType(kind.__name__, (kind,), members)


number_classes_of: Final[dict[type, Any]] = {kind: _class_of(kind) for kind in [np.dtype(letter).type for letter in "bBhHiIlLqQefdFD"]}


def numpys_number(x: Any) -> Any:
    """Return a result as NumPy's own number; everything else as it is."""
    kind: Any = type(x)
    return kind.__mro__[1](x) if type(kind) is _NumberType else x


def number(x: Any) -> Any:
    """Return a number of NumPy's as a result, an instance of a class below NumPy's; everything else as it is."""
    if type(x) is tuple:  # of `divmod`
        return tuple(map(number, x))
    kind = number_classes_of.get(type(x))
    return x if kind is None or type(x) is kind else kind(x)


def number_members(members: dict[str, Any]) -> None:
    """Give the classes of results attributes in addition to NumPy's."""
    for kind in number_classes_of.values():
        for name, member in members.items():
            if name != "__class__":  # which a class has from the beginning, or never
                setattr(kind, name, member)


class Ufunc:
    """The part of a ufunc that the core knows."""

    __slots__ = ()


_result: Callable[..., Any] = number  # what makes answers of NumPy's ours
_classes: list[type] = []  # of arrays and of ufuncs


def register(cls: type, result: Callable[..., Any], passing: Callable[[Any, Any], Any]) -> None:
    """Make ``cls`` the class of arrays; ``result`` makes answers of NumPy's ours, ``passing`` products in passing."""
    global _result
    _classes.append(cls)
    _result = result


def register_elements(cls: type) -> None:
    """Make ``cls`` the class of what ``flat`` gives."""


def register_ufunc(cls: type) -> None:
    """Make ``cls`` the class of ufuncs."""
    _classes.append(cls)


def register_parts(
    node: type, buffer: type, draft: type, view: Callable[..., Any], elements: Callable[[Any], Any]
) -> None:
    """Tell where the memory of a large array is found; ``view`` names how a part of it lies in there, ``elements`` shows a view."""


_kinds: dict[type, type] = {}  # a type, and what a program knows it as
_rare_kind: Callable[[Any, Any], Any] | None = None


def register_kinds(known: dict[type, type], rare: Callable[[Any, Any], Any]) -> None:
    """Tell ``kind`` of the types that a program knows as others; ``rare`` answers for types and modules."""
    global _rare_kind
    _kinds.update(known)
    _rare_kind = rare


def kind(function: Any, value: Any) -> Any:
    """Return ``type(value)`` as the program knows it: its ``np.float64`` of a result, its ``np.ndarray`` of NumPy's, ``type`` of those."""
    if (function is not type or isinstance(value, type | ModuleType)) and _rare_kind is not None:
        return _rare_kind(function, value)
    found = type(value)
    return _kinds.get(found, found)


def any_of(kinds: frozenset[type], values: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Tell whether one of the values, or of the keywords', is of one of these types."""
    return not (kinds.isdisjoint(map(type, values)) and kinds.isdisjoint(map(type, keywords.values())))


def of_types(objects: list[Any], kinds: tuple[type, ...]) -> list[Any]:
    """Return those of the objects whose type is one of these; neither objects nor types are asked anything."""
    known = {*map(id, kinds)}  # a class need not even have a hash
    return [x for x in objects if id(type(x)) in known]


def show(x: Any, shown: Any, memory: Any, origin: Any) -> None:
    """Let ``x`` show what the NumPy array ``shown``, which is nobody else's, shows of its owner's ``memory``."""


def release() -> None:
    """Let go of the memory that parts of large arrays show."""


def parts_of(x: Any) -> list[Any]:
    """List the cells that show parts of the memory of a large array, and that the garbage collector does not know."""
    return []


def assign_rows(name: str, memory: Any, other: Any) -> bool:
    """Do ``memory op= other``, of arrays of NumPy's or a number, where that is quicker by rows; tells whether it did."""
    return False


def copy_into(memory: Any, other: Any) -> None:
    """Do ``memory[...] = other``, of arrays of NumPy's; what lies plainly is copied by several threads."""
    memory[...] = other


def compresses(size: int) -> bool:
    """Tell whether elements of so many bytes are chosen by vectors, however often truth values change."""
    return False


def read_chosen(memory: Any, mask: Any) -> Any:
    """Return ``memory[mask]``, of arrays of NumPy's; None where that is NumPy's to do."""
    return None


def write_chosen(memory: Any, mask: Any, values: Any) -> bool:
    """Do ``memory[mask] = values``, of arrays of NumPy's; tells whether it did."""
    return False


def chain(
    state: Callable[[], Any],
    place: Callable[[], Any],
    root: str,
    step: Callable[..., Any],
    tell: Callable[..., Any],
    raised: Callable[..., Any],
    cast: Callable[[int], Any],
    compiled: Callable[[Any, Any, str, Any, bool | None], int],
    pool: Callable[[], int],
    outside: Callable[[BaseException], bool],
) -> None:
    """Let operations wait on tapes; see ``chains.h``.

    ``state`` returns the error state for what is recorded now, or None where it may not wait; ``place`` where the user's program stands
    where that is not the code that runs, whose file's name begins with ``root``; ``step`` computes one operation and tells of its errors,
    which ``tell`` does alone; ``cast`` returns what casts arrays to the type of a number; ``compiled`` an address of machine code for a
    tape that comes often, or 0, and ``pool`` how many threads kernels have.
    """


def chain_sizes(least: int, row: int, block: int, work: int = 500_000_000) -> None:
    """Record results of ``least`` elements and more, in rows of ``row`` at least, of which ``block`` are computed at a time; for tests.

    What has cost ``work`` element operations is compiled.
    """


def chain_counts() -> tuple[int, int, int]:
    """Return how many expressions took one pass, how many went step by step after all, and how many of the former were machine code."""
    return 0, 0, 0


def workers(count: int) -> tuple[int, int]:
    """Start threads until there are ``count``; return the address of what calls a function on them, or 0, and how many there are."""
    return 0, 1


def share(ns: int = 60_000) -> int:
    """Let several threads compute what takes one ``ns`` nanoseconds, and return how often some did until now; for tests."""
    return 0


def pauses(ns: int = 30_000_000) -> int:
    """Let handlers of signals run each ``ns`` nanoseconds within a tape, and return how often they could until now; for tests."""
    return 0


def poisons(on: bool = False) -> int:
    """Fill memory whose write waits, and that nothing reads before, with what is no number; return how often until now; for tests."""
    return 0


_OPERATORS: Final = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "lshift", "rshift", "and", "or", "xor", "matmul", "pow",
)  # fmt: skip
_OTHERS: Final = ("neg", "pos", "abs", "invert", "lt", "le", "eq", "ne", "gt", "ge", "getitem", "setitem", "call")
_METHODS: Final = (
    "sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "dot", "round", "clip",
    "sort", "argsort", "astype", "copy",
)  # fmt: skip
_COUNTED: Final = frozenset(
    [*_METHODS, *[f"__{name}__" for name in _OTHERS]] + [f"__{before}{name}__" for name in _OPERATORS for before in ("", "r", "i")]
)


def count(hook: Callable[[bool, Any, Any, Any], Any]) -> None:
    """Call ``hook`` from now on for each operation of the program's: whether it is part of one pass, its result, its first two operands.

    Where there is no operand, it is None.  Functions that are no ufuncs are not told of here, but for what they compute.
    """
    within = threading.local()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if getattr(within, "call", False):
                return function(*args, **kwargs)
            within.call = True
            try:
                found = function(*args, **kwargs)
                operands = args[1:] if name == "__call__" else args
                if found is not NotImplemented:
                    hook(False, args[0] if name == "__setitem__" else found, *(*operands, None, None)[:2])
                return found
            finally:
                within.call = False

        return call

    for cls in _classes:
        for name in _COUNTED & vars(cls).keys():
            setattr(cls, name, counted(name, vars(cls)[name]))


def settle() -> None:
    """Compute what operators have put off."""


def tape(x: Any) -> Any:
    """Return what an array waits for, `(serial, step, steps, item, operands, sites)`, or None; see ``namespace/waiting.py``."""
    return None


def seal(x: Any) -> None:
    """Let what is computed of an array that waits be computed apart from it."""


def attribute(slow: Any, name: str) -> Any:
    """Return what tells `shape`, `dtype`, `ndim` or `size` of what waits without computing it; ``slow``, a property, tells of all else."""
    return slow


def forget() -> None:
    """Ask anew whether operations may wait: settings have changed."""


def pause(on: bool) -> None:
    """Let nothing that waits be computed in this thread, or again."""


def rows(x: Any) -> Any:
    """Return an iterator over the first axis of an array, whatever its shape is each time."""
    at = 0
    while at < len(x):
        yield x[at]
        at += 1


def lend(x: Any, address: bool = False) -> None:
    """Tell that others may write the memory of ``x`` from now on, for good if they know its ``address``, else while they refer to it."""


def class_reads(metaclass: Any, names: dict[str, Any], make: Callable[[Any, str], Any]) -> None:
    """Let ``names`` be read from the classes of ``metaclass`` as they are there, made by ``make(cls, name)`` where they are None."""

    def read(cls: Any, name: str) -> Any:
        if name not in names:
            return type.__getattribute__(cls, name)
        found = names[name]
        return make(cls, name) if found is None else found

    metaclass.__getattribute__ = read


def belongs(view: Any, owner: Any) -> None:
    """Let ``view``, of NumPy's class or a subclass, have ``owner`` for its base; somebody else keeps the memory."""


def bind(ufunc: Any, theirs: Any, real: bool, costly: bool, rounds: bool, compiled: bool) -> None:
    """Tell ``ufunc`` which of NumPy's it is; ``real``: its complex numbers are not NumPy's; ``costly``: few elements are left to NumPy."""


def at_call(ufunc: Any, x: Any) -> Any:
    """Return the ufunc that computes ``ufunc(x)`` at its call: NumPy's."""
    return ufunc._numpy


def together(steps: tuple[Any, ...], outs: tuple[int, ...]) -> Any:
    """Return None: there is no C."""


def pass_over(of: Any, arrays: tuple[Any, ...], numbers: tuple[Any, ...], errors: int, room: Any) -> Any:
    """Return None: there is no C."""


def over(ufunc: Any, x: Any, b: Any, update: Any) -> None:
    """Write nothing: there is no C."""


def compiled(name: str, x: Any, y: Any = None, level: Any = -1) -> Any:
    """Return None: there is no C."""


def layouts(of: Any) -> None:
    """Let ``of`` say what functions give for arrays of ones: nothing waits here."""


def first(of: Any) -> None:
    """Let ``of(operands, costly)`` see to operands that wait: what they are computed by is not asked here."""


def values(of: Any) -> None:
    """Let ``of(root)`` see to large arrays that others held."""


def first_work(left: int | None = None) -> int:
    """Return how many elements tapes compute of large arrays yet: there are no tapes."""
    return 0


def clips(both: Any, low: Any, high: Any) -> None:
    """Say which ufuncs NumPy's ``clip`` calls where there are two bounds, one below, or one above: nothing waits here."""


def vectors(wanted: str) -> None:
    """Say which of the C library's vector functions kernels take: there is no C."""


def listen(variable: Any, listening: Any, heard: dict[int, Any], tell: Callable[[], Any], minded: Callable[[], int]) -> None:
    """Set ``variable`` to ``listening`` where NumPy runs Python code, and afterwards ``tell`` of the errors that were ``heard``.

    ``minded()`` says which errors somebody is told of, as NumPy's bits.
    """


def words(refusal: Callable[..., Any]) -> None:
    """Let ``refusal(slow, args, kwargs, error)`` say which exception a refused call raises: here functions in Python say their own."""


def function(slow: Callable[..., Any], theirs: Any, name: str, own: frozenset[str], least: int = 1, kernels: bool = False) -> Any:
    """Return ``slow``, a public function or method that lets NumPy answer where everything is at hand.

    ``own`` are keywords that NumPy's has not; ``least`` arrays have to be among the arguments, one or none; ``kernels``: of
    large arrays it has another answer than NumPy, or has it sooner.
    """
    return slow


def stand_for(function: Any, theirs: Any) -> None:
    """Let a function of ours be equal to NumPy's, which functions in Python cannot be."""
