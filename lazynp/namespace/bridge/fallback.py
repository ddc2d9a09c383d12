"""Everything of NumPy that lazynp does not do itself.

In: a NumPy function and the arguments of a call, which may hold lazynp arrays at any depth of lists, tuples and dictionaries.
Out: NumPy's own result, arrays and scalars turned into ours.  Promise: the call is counted with its bytes and the user's line;
``out=`` and arguments that NumPy writes to are written back, so views see it; nothing falls back silently unless that is the
mode.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, ModuleType, NoneType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from lazynp.array import core, dispatch
from lazynp.arrays import ndarray, node_of, root_node
from lazynp.engine import devices
from lazynp.graph.dtypes import NATIVE
from lazynp.graph.floating import at_users_line, watched
from lazynp.graph.node import Node, caller, where
from lazynp.namespace.docstrings import Documented, Text
from lazynp.scalars import force, is_scalar, scalar_of_value
from lazynp.subclasses import of_numpys, unasking
from lazynp.values import config
from lazynp.values.loading import late, load
from lazynp.values.nesting import MOST_AXES, too_deep

if TYPE_CHECKING:
    from lazynp import conversion, protocols, storage
    from lazynp.array import calls, hand
    from lazynp.graph import build, report
    from lazynp.namespace import standard
    from lazynp.namespace.bridge import proxies
    from lazynp.namespace.ufunc import promotion
else:
    calls, hand, conversion, build, report, proxies, standard, promotion, protocols, storage = late(
        "array.calls",
        "array.hand",
        "conversion",
        "graph.build",
        "graph.report",
        "namespace.bridge.proxies",
        "namespace.standard",
        "namespace.ufunc.promotion",
        "protocols",
        "storage",
    )

_CREATION: Final = "lazynp.namespace.routines.creation"
_DISPATCHED: Final = type(np.concatenate)  # a function that asks its arguments first
_WRITTEN_KEYWORDS: Final = ("a", "arr", "dst")  # what functions that write to their first argument call it

_warned: set[str] = set()


class FallbackError(RuntimeError):
    """Raised instead of calling NumPy when ``set_fallback("error")`` is in force."""


def set_fallback(mode: str) -> None:
    """Set what happens when a call is answered by NumPy itself.

    Parameters
    ----------
    mode : {'silent', 'warn', 'error'}
        Nothing; a RuntimeWarning at the first call of each function; or a ``FallbackError`` instead of the call.

    Returns
    -------
    None

    Raises
    ------
    ValueError
        Where the mode is another word.

    Notes
    -----
    Calls are counted in any mode, see ``report``.  A program that cannot be compiled, which is a defect of lazynp, is computed by NumPy
    with a warning in any mode but ``"error"``, which raises what went wrong.

    Examples
    --------
    >>> import lazynp as np
    >>> np.set_fallback("error")
    >>> np.busday_count("2024-01-01", "2024-01-08")
    Traceback (most recent call last):
        ...
    lazynp.namespace.bridge.fallback.FallbackError: numpy.busday_count is answered by NumPy itself (...)
    >>> np.set_fallback("silent")
    """
    config.update(fallback=mode)
    _warned.clear()


def adopt(array: np.ndarray[Any, Any]) -> Any:
    """A NumPy array that has no other holder, as ours; foreign dtypes stay as they are."""
    if type(array) is not np.ndarray or array.dtype not in NATIVE:
        return array
    return conversion.from_numpy(array, copy=not array.flags.owndata)


def ours(value: Any) -> Any:
    """NumPy's result as the caller of lazynp expects it."""
    if issubclass(type(value), np.generic):
        return scalar_of_value(value) if value.dtype in NATIVE else value
    kind = type(value)
    if kind is np.ndarray:
        return adopt(value)
    if kind is tuple:
        return tuple([ours(item) for item in value])
    if kind is list:
        return [ours(item) for item in value]
    if isinstance(value, tuple) and hasattr(kind, "_make"):
        return kind._make([ours(item) for item in value])
    return value


class Arguments:
    """The arguments of one call on their way to NumPy, which sees copies that it cannot write, or (``shown``) the arrays' own memory."""

    __slots__ = ("nbytes", "nodes", "pending", "shown")

    def __init__(self, shown: bool = False) -> None:
        self.shown: list[tuple[np.ndarray[Any, Any], ndarray]] | None = [] if shown else None
        self.pending: list[Node] = []
        self.nodes: list[Node] = []  # of all arrays
        self.nbytes = 0

    def collect(self, value: Any, depth: int = 0) -> bool:
        """Tell whether ``value`` holds anything of ours; remembers what has to be realized."""
        kind = type(value)
        if kind in _NOBODYS:
            return False
        if kind is ndarray:
            if devices.gpus is None and type(value._base) is np.ndarray:
                self.nbytes += value.nbytes
                return True
            # A view has its value when its base has.
            node = root_node(value._base) if type(value) is ndarray and type(value._base) is ndarray else node_of(value)
            if node.buffer is None:
                self.pending.append(node)
            self.nodes.append(node)
            self.nbytes += value.nbytes
            return True
        if kind in (list, tuple):
            # Long lists of plain numbers are common: look at each item once and no deeper than needed.
            if depth > MOST_AXES:
                raise too_deep()
            return any(self.collect(item, depth + 1) for item in value)
        if kind is dict:
            return any(self.collect(item, depth + 1) for item in value.values())
        if is_scalar(value):
            if value._node is not None:
                self.pending.append(value._node)
            return True
        return proxies.stands_for(value) is not None

    def theirs(self, value: Any) -> Any:
        """The same value with NumPy's objects in place of ours."""
        kind = type(value)
        if kind is ndarray:
            if self.shown is None:
                return protocols.snapshot(value, "fallback")
            memory = protocols.exported(value, "fallback")
            self.shown.append((memory, value))
            return memory
        if kind is tuple:
            return tuple([self.theirs(item) for item in value])
        if kind is list:
            return [self.theirs(item) for item in value]
        if kind is dict:
            return {key: self.theirs(item) for key, item in value.items()}
        if is_scalar(value):
            return value.concrete("fallback")
        original = proxies.stands_for(value)
        return value if original is None else original

    def result(self, value: Any) -> Any:
        """``ours`` of a result that may be, or show, the memory of an argument."""
        if type(value) in _LISTS:
            return type(value)([self.result(item) for item in value])
        for memory, x in self.shown or ():
            if value is memory:
                return x
            if type(value) is np.ndarray and value.dtype in NATIVE and np.may_share_memory(value, memory):
                return hand.cell(value, hand.owner_of(x)) if value.size <= config.at_hand > 0 else storage.adopted(value)
        return ours(value)


def _announce(name: str) -> None:
    text = f"numpy.{name} is answered by NumPy itself ({where(caller())})"
    if config.fallback == "error":
        raise FallbackError(text)
    if name not in _warned:
        _warned.add(name)
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def _copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A writable copy that lies as the original does: some functions refuse memory with gaps, or of another order."""
    if array.flags.forc:
        return array.copy("K")
    spread = np.empty((*array.shape, 2), array.dtype)[..., 0]
    spread[...] = array
    return spread


# Objects that hold nothing of ours, and answer for NumPy only.
_NOBODYS: Final = frozenset({np.ndarray, int, float, bool, complex, str, bytes, NoneType, range, np.dtype, np.datetime64, np.timedelta64})
_LISTS: Final = frozenset({list, tuple})


def _are_nobodys(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Tell whether there is nothing of ours among arguments; of deeper lists it is not known."""
    for values in (args, kwargs.values()) if kwargs else (args,):
        if not _NOBODYS.issuperset(map(type, values)):
            for value in values:
                kind = type(value)
                if kind not in _NOBODYS and not (kind in _LISTS and _NOBODYS.issuperset(map(type, value))):
                    return False
    return True


def call(
    function: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    writes: Sequence[int] = (),
    shown: bool = False,
) -> Any:
    """``function(*args, **kwargs)`` by NumPy.

    Parameters
    ----------
    function : callable
        NumPy's own.
    name : str
        As the report shows it.
    args, kwargs
        The user's arguments.
    writes : sequence of int
        Positions of arguments that the function writes to.
    shown : bool
        Whether NumPy sees the arrays' own memory, which the result may show, too.

    Returns
    -------
    object
        NumPy's result; arrays of native dtypes as ``lazynp.ndarray``.
    """
    if config.fallback != "silent":
        _announce(name)
    if not writes and _are_nobodys(args, kwargs):
        report.count_fallback(name, 0, caller())
        return _at_once(function, args, kwargs)
    arguments = Arguments(shown and devices.gpus is None)
    held = arguments.collect(tuple(args)), arguments.collect(kwargs)
    report.count_fallback(name, arguments.nbytes, caller())
    return _performed(function, args, kwargs, writes, arguments, held, name, "fallback")


def _at_once(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """NumPy's answer to a call in which nothing is ours."""
    return _nobodys(watched(at_users_line, function, args, kwargs))


def _nobodys(value: Any) -> Any:
    """``ours`` of what shows nothing of ours: an array may go on being a view."""
    return hand.result(value) if type(value) is np.ndarray and (value.base is not None or value.size <= config.at_hand > 0) else ours(value)


def library_call(function: Callable[..., Any], name: str, args: Sequence[Any], kwargs: dict[str, Any], writes: Sequence[int] = ()) -> Any:
    """``function(*args, **kwargs)`` by NumPy, where that is how lazynp means to answer: as ``call``, but no fallback.

    Files, printing and routines whose result's shape depends on values go this way; values that are pending are forced under ``name``.
    """
    if not writes and _are_nobodys(args, kwargs):
        return _at_once(function, args, kwargs)
    arguments = Arguments()
    held = arguments.collect(tuple(args)), arguments.collect(kwargs)
    return _performed(function, args, kwargs, writes, arguments, held, name, name)


def _performed(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], writes: Sequence[int], arguments: Arguments,
    held: tuple[bool, bool], name: str, reason: str,
) -> Any:  # fmt: skip
    if devices.gpus is not None and arguments.nodes and not writes and kwargs.get("out") is None:
        found = devices.gpus.computed(name, args, kwargs, arguments.nodes)
        if found is not None:
            return found
    if arguments.pending:
        force(arguments.pending, reason)
    values = [arguments.theirs(arg) for arg in args] if held[0] else list(args)
    named = arguments.theirs(kwargs) if held[1] else kwargs
    if arguments.shown is not None:
        return arguments.result(watched(at_users_line, function, values, named))
    written: list[tuple[Any, np.ndarray[Any, Any]]] = []
    for position in writes:
        if position < len(args):
            values[position] = _writable(args[position], written)
        else:
            key = next(key for key in _WRITTEN_KEYWORDS if key in kwargs)
            named = {**named, key: _writable(kwargs[key], written)}
    if kwargs.get("out") is not None:
        named = {**named, "out": _writable(kwargs["out"], written)}
    value = watched(at_users_line, function, values, named)
    for target, copy in written:
        target._write(build.buffer(np.ascontiguousarray(copy).reshape(copy.shape)))
        if value is copy:
            return target
    if written and type(value) is tuple:
        by_id = {id(copy): target for target, copy in written}
        return tuple([by_id.get(id(item)) or ours(item) for item in value])
    if isinstance(value, np.generic) and any(promotion.overrides(arg) for arg in args):
        return value  # another library's answer about its own objects
    return at_home(value, arguments.nodes) if held[0] or held[1] else _nobodys(value)


def at_home(value: Any, nodes: Sequence[Node]) -> Any:
    """``ours``, where the nodes live from which NumPy computed the value."""
    if devices.gpus is None or not nodes:
        return ours(value)
    with devices.making(devices.join(devices.homes(nodes).values(), nodes[-1])):
        return ours(value)


def _writable(target: Any, written: list[tuple[Any, np.ndarray[Any, Any]]]) -> Any:
    """Memory for NumPy to write to in place of our arrays; ``written`` remembers which is whose.

    A result without axes is no array: NumPy, which gets its value, says so.
    """
    if type(target) is tuple:
        return tuple([_writable(item, written) for item in target])
    if is_scalar(target):
        return target.concrete("fallback")
    if type(target) is not ndarray:
        return target
    copy = _copied(storage.host(target))
    written.append((target, copy))
    return copy


class Library:
    """A function of NumPy that is called on host arrays because that is its place: input and output, printing, small work on the host."""

    answered = "library"
    at_hand = True  # NumPy answers for values in memory
    __wrapped__: Callable[..., Any]
    __doc__ = Documented(__doc__, "of_library")

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.__wrapped__ = function
        self.__name__ = self.__qualname__ = function.__name__
        self.__module__ = "lazynp"
        self._name = name or function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        known = calls.answer(self.__wrapped__, args, kwargs, 0, calls.ALWAYS)
        if known is not NotImplemented:
            return known
        return library_call(self.__wrapped__, self._name, args, kwargs)

    @property
    def _implementation(self) -> Callable[..., Any]:
        return unasking(self.__wrapped__)

    def __reduce__(self) -> Any:
        return by_path, (self._name,)

    def __repr__(self) -> str:
        return f"<lazynp library numpy.{self._name}>"


def users() -> Any:
    """Return the package as users see it, whose functions are short where everything is in memory."""
    return sys.modules["lazynp"]


def by_path(path: str) -> Any:
    """lazynp's object of this name, for pickle."""
    found: Any = load("lazynp")
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _is_documented(value: Any) -> bool:
    """Tell whether the object is a function or a class of ours, with a docstring of its own."""
    function = getattr(value, "__func__", value)  # of a ``staticmethod``
    if type(function) is FunctionType:
        return function.__globals__["__name__"].startswith("lazynp")
    own = value is ndarray or (isinstance(value, type) and value.__module__.startswith("lazynp"))
    return own and type(vars(value).get("__doc__")) is str


# Arguments that no class of others can be among.
_PLAIN: Final = frozenset({ndarray, np.ndarray, int, float, bool, complex, str, bytes, type, NoneType, slice, range, np.dtype})
_LOOKED_AT: Final = 64  # elements of a list; of longer ones the first
_NUMPYS_OWN: Final = np.ndarray.__array_function__
_LARGE: Final = 1 << 30
_minding: dict[Any, Any] = {}


def _overridden(values: Iterable[Any], depth: int = 0) -> bool:
    """Tell whether an object among arguments answers itself for NumPy's functions (``__array_function__``), as ours do not."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is list or kind is tuple:
            if depth < 2 and _overridden(value if len(value) <= _LOOKED_AT else value[:1], depth + 1):
                return True
        elif getattr(kind, "__array_function__", _NUMPYS_OWN) is not _NUMPYS_OWN and not is_scalar(value):
            return True
    return False


# NumPy's functions that ask an object for its own method, or attribute, of a name (``_wrapreduction``, ``_wrapfunc``), and which argument.
_ASKING: Final = dict.fromkeys(
    (
        "all", "amax", "amin", "any", "argmax", "argmin", "argpartition", "argsort", "around", "choose", "clip", "cumprod", "cumsum",
        "diagonal", "imag", "max", "mean", "min", "ndim", "nonzero", "prod", "ptp", "put", "ravel", "real", "repeat", "reshape", "round",
        "searchsorted", "shape", "size", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var",
    ),
    0,
) | {"compress": 1}  # fmt: skip


def _is_somebodys(value: Any) -> bool:
    """Tell whether an object is foreign: no array of NumPy's or ours, no list and no number, so it may have methods of its own."""
    kind = type(value)
    return kind not in _PLAIN and kind not in _LISTS and not issubclass(kind, np.generic) and not is_scalar(value)


def _by_its_owner(theirs: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """NumPy's function of a foreign object, which answers itself: it gets the memory of our arrays, and its answer is given as it is."""
    if config.fallback != "silent":
        _announce(name)
    report.count_fallback(name, 0, caller())

    def told(*arguments: Any, **keywords: Any) -> Any:
        return watched(at_users_line, theirs, arguments, keywords)

    return of_numpys(told, *args, **kwargs)


def _with_overrides(function: Any, name: str, theirs: Any) -> Any:
    """Let NumPy, which asks them, take the calls with objects that answer themselves."""
    if type(function) is not FunctionType or type(theirs) is not _DISPATCHED:
        return function
    if getattr(function, "__wrapped__", None) in _minding:  # it minds them already, behind what looks for values in memory
        return function
    found = _minding.get(function)
    if found is None:
        place = _ASKING.get(name, _LARGE) if getattr(np, name, None) is theirs else _LARGE

        @functools.wraps(function)
        def minding(*args: Any, **kwargs: Any) -> Any:
            if len(args) > place and _is_somebodys(args[place]):
                return _by_its_owner(theirs, name, args, kwargs)
            if _overridden(args) or (kwargs and _overridden(kwargs.values())):
                return _by_its_owner(theirs, name, args, kwargs)
            return function(*args, **kwargs)

        found = _minding[function] = _minding[minding] = minding
    return found


def _presented(name: str, value: Any, module: str) -> Any:
    """Give a function of ours the name and module that users know it by, where pickle finds it, NumPy's signature and its help text.

    NumPy's signatures have no annotations, and ours are to compare equal; the type checker has read them already.
    """
    if _is_documented(value):
        own = value.__doc__ or getattr(getattr(sys.modules.get(f"numpy{module[6:]}"), name, None), "__doc__", None)
        value.__doc__ = own and Text(own, "of_function", f"{module[7:]}.{name}".lstrip("."), value)
    inner = value
    while type(inner) is FunctionType and inner.__module__.startswith("lazynp"):
        inner.__annotations__ = {}
        inner = getattr(inner, "__wrapped__", None)
    if type(value) is FunctionType and value.__module__.startswith("lazynp.namespace"):
        value.__module__ = module
        if value.__name__ != name and value.__name__.rstrip("_") == name:
            value.__name__ = name
        value.__qualname__ = value.__name__
    theirs = _theirs(name, module)
    innermost = value
    if type(theirs) is _DISPATCHED and hasattr(value, "__code__") and (module == "lazynp" or not hasattr(value, "_implementation")):
        value._implementation = unasking(theirs)
    while type(inner := getattr(innermost, "__wrapped__", None)) is FunctionType and inner.__globals__["__name__"].startswith("lazynp"):
        innermost = inner
    nested = inner is None and type(innermost) is FunctionType and innermost.__code__.co_qualname != name
    if nested and type(theirs) in (_DISPATCHED, FunctionType):
        innermost.__wrapped__ = theirs  # whose source is that of a function of this name
    return _with_overrides(value, name, theirs)


def published(name: str, value: Any, module: str) -> Any:
    """Make what we have under a name ready for users, who get NumPy's answer first."""
    return dispatch.first(name, _presented(name, value, module), _theirs(name, module), module, _own_keywords(name, module))


def promised(name: str, home: str, module: str, table: str = "FUNCTIONS") -> Any:
    """The same of a function in the ``table`` of a module, which is loaded where NumPy's answer will not do; None of what is none."""
    theirs = _theirs(name, module)
    making = home == _CREATION and (name in dispatch.SIZES or name in dispatch.CORES_OWN)
    if not making and (type(theirs) is not _DISPATCHED or name in dispatch.NOT_AT_HAND):
        return None

    def found() -> Any:
        return _presented(name, getattr(load(home), table)[name], module)

    return dispatch.promised(name, found, theirs, module, _own_keywords(name, module))


def _own_keywords(name: str, module: str) -> frozenset[str]:
    return frozenset(standard.KEYWORDS.get(f"{module[7:]}.{name}".lstrip("."), ()))


def _theirs(name: str, module: str) -> Any:
    """NumPy's object of that name, if its module is there without being imported for it."""
    home = sys.modules.get(module.replace("lazynp", "numpy", 1))
    return getattr(home, name, None)


def library(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of ours whose work one of NumPy's routines does, at the call or as an item of the schedule."""
    function.answered = "library"  # type: ignore[attr-defined]
    return function


# Functions, and modules of functions, whose results show what they are given.
_SHOWING: Final = ("asmatrix", "lib.recfunctions.", "ma.", "rec.")


class Fallback:
    """A function of NumPy that is called on host arrays; otherwise it looks like NumPy's."""

    answered = "fallback"
    __doc__ = Documented(__doc__, "of_fallback")

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.__wrapped__ = function
        self.__name__ = name.rpartition(".")[2]
        self.__qualname__ = self.__name__
        self.__module__ = "lazynp"
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self.__wrapped__, self._name, args, kwargs, (), self._name.startswith(_SHOWING))

    def noted(self) -> bool:
        """Count a call of NumPy's without arrays of ours, where that is all there is to do."""
        if config.fallback != "silent":
            return False
        report.count_fallback(self._name, 0, caller())
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)

    @property
    def _implementation(self) -> Callable[..., Any]:
        return unasking(self.__wrapped__)

    def __reduce__(self) -> Any:
        return by_path, (self._name,)

    def __repr__(self) -> str:
        return f"<lazynp fallback numpy.{self._name}>"


# Functions whose arguments are no data: they are NumPy's own, called with what the user gave.
PASSED: Final = frozenset(
    {
        "seterr", "geterr", "seterrcall", "geterrcall", "setbufsize", "getbufsize", "get_printoptions", "set_printoptions", "printoptions",
        "get_include", "info", "show_config", "show_runtime", "binary_repr", "base_repr", "typename", "mintypecode", "broadcast_shapes",
        "promote_types", "datetime_data", "errstate", "test", "set_default_printstyle",
    }
)  # fmt: skip


# Modules whose functions take arrays of any library, or none at all: their names are NumPy's own objects.
NUMPYS_OWN: Final = frozenset(
    {
        "core", "ctypeslib", "dtypes", "exceptions", "f2py", "lib.array_utils", "lib.format", "lib.introspect", "lib.mixins", "typing",
        "version",
    }
)  # fmt: skip


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, ModuleType, np.ufunc))


def _home(function: Any) -> ModuleType:
    """The module whose public function this is."""
    home = sys.modules.get(getattr(function, "__module__", None) or "")
    return np if home is None or home.__name__.partition(".")[0] != "numpy" or "._" in home.__name__ else home


def attribute(module: ModuleType, name: str, prefix: str = "") -> Any:
    """Find what ``lazynp.<prefix><name>`` is when lazynp has no own object of that name."""
    value = getattr(module, name)
    own = proxies.stand_in(value)
    if own is None and _is_function(value):
        home = np if vars(np).get(name) is value else _home(value) if "._" in module.__name__ else module
        if home is not module and vars(home).get(name) is value:
            # One of NumPy's public functions under its private name; all our modules are there from the beginning.
            own = getattr(sys.modules.get(home.__name__.replace("numpy", "lazynp", 1)), name, None)
    if own is not None:
        return own
    if name in PASSED or isinstance(value, type) or prefix[:-1] in NUMPYS_OWN:
        return value
    if isinstance(value, ModuleType):
        package, _, path = value.__name__.partition(".")
        return submodule(path) if package == "numpy" and path not in ("core", "f2py") else value
    if isinstance(value, np.ufunc):
        from lazynp.namespace.ufunc.ufuncs import standing_for

        return standing_for(value)
    if _is_function(value):
        made = core.function(Fallback(value, f"{prefix}{name}"), value, name, frozenset(), 0)
        core.stand_for(made, value)
        return made
    return value


def library_attribute(value: Any, path: str) -> Any:
    """Make what ``lazynp.<path>`` is in a module whose functions are NumPy's work by design."""
    return Library(value, path) if _is_function(value) and path.rpartition(".")[2] not in PASSED else value


# A module's names as they are; ``Submodule.__dict__`` looks all of them up first.
names_in: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__


class Submodule(ModuleType):
    """``lazynp.linalg`` and its kin: own functions where there are any, NumPy's by fallback otherwise.

    Neither NumPy's module nor ours is imported before a name is asked for.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"lazynp.{path}")
        names_in(self).update(_path=path, __path__=[])

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All names, for those who list a module's."""
        for name in dir(self):
            getattr(self, name, None)
        return names_in(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__", "__doc__"):
            raise AttributeError(f"module 'numpy{self.__name__[6:]}' has no attribute {name!r}")
        path = names_in(self)["_path"]
        value = promised(name, _OWN[path][0], self.__name__, _OWN[path][1]) if name in _PROMISED.get(path, ()) else None
        if value is not None:
            names_in(self)[name] = value
            return value
        own = _own(path)
        theirs = load(f"numpy.{path}")
        if name in own:
            value = own[name]
        elif not hasattr(theirs, name):
            raise AttributeError(f"module 'numpy{self.__name__[6:]}' has no attribute {name!r}")
        else:
            special = getattr(_module_of(path), "attribute", None)
            value = attribute(theirs, name, path + ".") if special is None else special(getattr(theirs, name), name)
        value = names_in(self)[name] = published(name, value, self.__name__)
        return value

    def __dir__(self) -> list[str]:
        names = names_in(self)
        return sorted({*names, *dir(load(f"numpy.{names['_path']}"))})


# The modules of NumPy's polynomial package, one a basis.
SERIES: Final = tuple(
    [f"polynomial.{name}" for name in ("polynomial", "chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polyutils")]
)

# Submodule -> our module with its functions, in a dictionary of that name; it may have an ``attribute`` for all other names.
_OWN: Final = {
    "linalg": ("lazynp.namespace.submodules.linalg", "SUBMODULE"),
    "fft": ("lazynp.namespace.submodules.fft", "FUNCTIONS"),
    "random": ("lazynp.namespace.submodules.random", "FUNCTIONS"),
    "lib.stride_tricks": ("lazynp.namespace.submodules.stride_tricks", "FUNCTIONS"),
    "lib.scimath": ("lazynp.namespace.submodules.scimath", "FUNCTIONS"),
    "testing": ("lazynp.namespace.submodules.testing", "FUNCTIONS"),
    "ctypeslib": ("lazynp.namespace.submodules.ctypeslib", "FUNCTIONS"),
    **dict.fromkeys(("polynomial", *SERIES), ("lazynp.namespace.submodules.polynomial", "FUNCTIONS")),
}

# Functions whose module is loaded where NumPy's answer will not do.
_PROMISED: Final = {
    "linalg": frozenset({"cholesky", "det", "inv", "matrix_power", "norm", "solve"}),
    "lib.stride_tricks": frozenset({"sliding_window_view"}),
}

# Submodules that are packages of ours: they have modules beside NumPy's names.
_PACKAGES: Final = ("testing",)

_submodules: dict[str, Submodule] = {}


def _module_of(path: str) -> ModuleType | None:
    return load(_OWN[path][0]) if path in _OWN else None


def _own(path: str) -> dict[str, Any]:
    return getattr(_module_of(path), _OWN[path][1]) if path in _OWN else {}


def submodule(path: str) -> Submodule:
    """lazynp's stand-in for a submodule of NumPy."""
    if path in _PACKAGES and path not in _submodules:
        load(f"lazynp.{path}")
    found = _submodules.get(path)
    if found is None:
        found = _submodules[path] = Submodule(path)
    return found


def adopt_package(package: ModuleType) -> None:
    """Make a package of ours the stand-in for NumPy's submodule of the same name, beside the modules it has itself."""
    path = package.__name__.partition(".")[2]
    vars(package)["_path"] = path
    package.__class__ = Submodule
    _submodules[path] = cast(Submodule, package)
