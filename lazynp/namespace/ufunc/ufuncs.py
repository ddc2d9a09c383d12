"""Universal functions as objects, all made from one table.

In: rows of ``table``.  Out: ``ufunc`` objects that record nodes.  Promise: calls take NumPy's arguments (``out``,
``where``, ``dtype``, ``casting``, ``order``, ``signature``), answer NumPy's dtypes, shapes and errors at the call, and compute
nothing.
"""

from __future__ import annotations

import copyreg
import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.arrays import ndarray, node_of, result, update, wrap, wrap_ordered
from lazynp.graph import _native, floating
from lazynp.graph import op as o
from lazynp.graph.dtypes import BOOL, NATIVE, DType
from lazynp.graph.node import Node, Site, caller
from lazynp.graph.op import Kind, Op
from lazynp.namespace.bridge import fallback
from lazynp.namespace.docstrings import Documented
from lazynp.scalars import CLASSES, OF_TYPE, node_of_scalar
from lazynp.subclasses import minds
from lazynp.values import config
from lazynp.values.loading import late, load

if TYPE_CHECKING:
    from lazynp import conversion, layout, storage
    from lazynp.array import calls, hand
    from lazynp.graph import build, special_values
    from lazynp.namespace import assignment
    from lazynp.namespace.ufunc import promotion, table
    from lazynp.namespace.ufunc.loops import Lowered, Lowering
    from lazynp.namespace.ufunc.promotion import Key
else:
    calls, hand, conversion, build, special_values, layout, assignment, promotion, table, storage = late(
        "array.calls", "array.hand", "conversion", "graph.build", "graph.special_values", "layout", "namespace.assignment",
        "namespace.ufunc.promotion", "namespace.ufunc.table", "storage",
    )  # fmt: skip

# A kernel of ours computes these several times as fast as NumPy, from few elements on.
ROUNDING: Final = frozenset(op.name for op in o.ALL if op.kind is Kind.ELEMENTWISE and "f" in op.rounds) | {"float_power"}
COSTLY: Final = frozenset(op.name for op in o.ALL if op.kind is Kind.ELEMENTWISE and op.cost >= 20) | {"float_power"}
_COMPARISONS: Final = frozenset(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
_KEYWORDS: Final = frozenset(["out", "where", "casting", "order", "dtype", "subok", "signature", "sig"])
_TYPED: Final = frozenset(["dtype", "signature", "sig"])  # a call with one of them may ask for any of NumPy's loops
_LISTS: Final = frozenset([list, tuple])
_METHODS: Final = "lazynp.namespace.ufunc.methods"
_OF_TABLE: Final[Any] = object()  # in the place of a lowering, which stands in ``table``
_EXCLUSIVE: Final = (("sig", "signature"), ("signature", "dtype"), ("sig", "dtype"))

NO_ARRAY: Final = "output must be an array"  # what functions that are no ufuncs say of an ``out=``
PER_OPERAND: Final = "must use `...` as `out=...` and not per-operand/in a tuple"
_NO_OUT: Final = "'where' used without 'out', expect unitialized memory in output. If this is intentional, use out=None."
_WARNS_OF_MASKS: Final = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 4)


def _of_ellipsis(x: Any) -> Any:
    """``...`` itself, or nothing that could be compared with it."""
    return Ellipsis if x is Ellipsis else None


_getframe = sys._getframe

Direct = tuple[Op, DType, DType, float | None]
"""Graph operation, dtype of its result, dtype of its sources, largest Python number that converts without an error."""


def site(frame: FrameType) -> Site:
    """Tell where the user's program stands, given the frame that called us."""
    if frame.f_globals.get("__name__", "")[:6] == "lazynp":
        return caller()
    return frame.f_code, frame.f_lasti


class Rule:
    """A rule says how one combination of operand dtypes runs: the loop's dtypes."""

    __slots__ = ("ins", "outs")

    def __init__(self, ins: tuple[DType, ...], outs: tuple[DType, ...]) -> None:
        self.ins = ins
        self.outs = outs


def _asking(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let NumPy, which asks them, take a method's calls with objects that have a mind of their own."""
    name = method.__name__

    @functools.wraps(method)
    def asking(self: ufunc, *args: Any, **kwargs: Any) -> Any:
        if any(map(minds, args)) or (kwargs and any(map(minds, [*kwargs.values(), *_listed(kwargs.get("out"))]))):
            return fallback.call(getattr(self._numpy, name), f"{self.__name__}.{name}", args, kwargs, (0,) if name == "at" else ())
        return method(self, *args, **kwargs)

    return asking


def _is_much(x: Any) -> bool:
    memory = hand.memory_of(x) if type(x) is ndarray else x
    return isinstance(memory, np.ndarray) and hand.is_much(memory)


def _are_complex(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Tell whether numbers may be complex, of which some functions of ours have other values than NumPy's."""
    values = (*args, *kwargs.values())
    return any(
        issubclass(x, (complex, np.complexfloating)) if isinstance(x, type)
        else type(x) is complex or (x is not None and np.dtype(getattr(x, "dtype", float)).kind == "c")
        for x in values
    )  # fmt: skip


def _listed(out: Any) -> tuple[Any, ...]:
    return out if type(out) is tuple else ()


class UfuncType(type):
    """Metaclass: NumPy's ufuncs pass for ours in ``isinstance``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, np.ufunc)


class ufunc(core.Ufunc, metaclass=UfuncType):
    """A function of arrays, element by element, with broadcasting.

    Attributes and methods are those of :class:`numpy.ufunc`.  A call is recorded, where the ufunc's own help text does not say otherwise.
    """

    __doc__ = Documented(__doc__, "of_ufunc")
    __module__ = "numpy"

    def __init__(self, numpy_ufunc: np.ufunc, lower: Lowering | None = _OF_TABLE) -> None:
        self._numpy = numpy_ufunc
        self._of_numbers = special_values.FUNCTIONS.get(numpy_ufunc.__name__, numpy_ufunc)
        self._at_call = numpy_ufunc if vars(np).get(numpy_ufunc.__name__) is numpy_ufunc else None  # SciPy's have rules of their own
        self._lowering = lower
        self._costly = numpy_ufunc.__name__ in COSTLY
        rounds = numpy_ufunc.__name__ in ROUNDING
        core.bind(self, numpy_ufunc, self._of_numbers is not numpy_ufunc, self._costly, rounds, config.polynomials)
        self._rules: dict[tuple[Key, ...], Rule] = {}
        self._directs: dict[tuple[Key, ...], Direct | None] = {}
        self.__name__: str = numpy_ufunc.__name__
        self._recorder = _native.recorder(None, self._directs, 2 if numpy_ufunc.nin == 1 else 0, False)
        self.nin: int = numpy_ufunc.nin
        self.nout: int = numpy_ufunc.nout
        self.nargs: int = numpy_ufunc.nargs

    @property
    def _lower(self) -> Lowering | None:
        """The function that makes nodes of a call; None where NumPy computes it."""
        return table.LOWERING.get(self.__name__) if self._lowering is _OF_TABLE else self._lowering

    # isinstance(np.sin, numpy.ufunc) holds, which other libraries ask before they call it on their own objects.
    __class__ = property(lambda self: np.ufunc)

    def _stands_for(self) -> np.ufunc:
        return self._numpy

    # Tables that a library keeps by NumPy's ufuncs are filled and asked by programs with ours, and the other way round.
    def __eq__(self, other: object) -> Any:
        theirs = other._numpy if isinstance(type(other), UfuncType) else other  # type: ignore[attr-defined]
        return True if theirs is self._numpy else NotImplemented

    def __hash__(self) -> int:
        return hash(self._numpy)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self) -> Any:
        return (by_name, (self.__name__,)) if UFUNCS.get(self.__name__) is self else (standing_for, (self._numpy,))

    def __getattr__(self, name: str) -> Any:
        # identity, ntypes, types, signature, resolve_dtypes, __qualname__, ...
        return getattr(self._numpy, name)

    # Calling ------------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record ``self(*args)``; see :class:`numpy.ufunc` for the keywords."""
        if kwargs or len(args) != self.nin:
            known = NotImplemented
            # Of so many elements they have the kernels' bits; `float_power` of what exists is asked of NumPy (`_of_anything`).
            costly = self._costly and self.__name__ != "float_power" and any(map(_is_much, args[: self.nin]))
            if self._at_call is not None and not costly and (self._of_numbers is self._at_call or not _are_complex(args, kwargs)):
                theirs = core.at_call(self, args[0]) if args and _TYPED.isdisjoint(kwargs) else self._numpy
                known = calls.answer(theirs, args, kwargs, 1, calls.ALWAYS if "casting" in kwargs else 0)
            if known is not NotImplemented:
                return known
            return self._keyed(args, kwargs)
        a = args[0]
        if type(a) is ndarray:
            base = a._base
            if base is not None or (node := a._node) is None or node.buffer is not None:
                memory = hand.memory_of(a)
                if memory is not None and self.nout == 1 and self._at_call is not None and not (self._costly and hand.is_much(memory)):
                    if self.nin == 1:
                        theirs = core.at_call(self, a)
                        return calls.of_one(self._of_numbers if theirs is self._numpy else theirs, memory)
                    known = calls.of_two(self._at_call, a, memory, args[1])
                    if known is not NotImplemented:
                        return known
            base = memory = None  # the capture looks whether others hold it
            x = a._node if a._base is None else node_of(a)
            if self.nin == 1:
                direct = self.direct((x.dtype,))
                if direct is not None:
                    node = Node(direct[0], (x,), None, direct[1], x.shape, site(_getframe(1)))
                    return (wrap(node) if a._base is None else ordered(node, args, "K")) if x.shape else result(node)
            else:
                found = self.of_array(a, x, args[1], _getframe(1))
                if found is not None:
                    return found
        return self._of_anything(args)

    def direct(self, key: tuple[Key, ...]) -> Direct | None:
        """(operation, result dtype) where operands of these dtypes go into one graph operation as they are.

        A Python type in the key stands for a weak number, which becomes a constant of the arrays' dtype.
        """
        try:
            return self._directs[key]
        except KeyError:
            found = self._directs[key] = self._probe(key)
            return found

    def _probe(self, key: tuple[Key, ...]) -> Direct | None:
        try:
            rule = self.rule(key)
        except (promotion.Foreign, TypeError):
            return None
        loop = rule.ins[0]
        if loop.kind == "c":
            return None  # what exists is computed at the call
        if any(dtype != loop for dtype in rule.ins) or any(kind != loop for kind in key if not isinstance(kind, type)):
            return None
        if self._lower is None or (self.__name__ == "power" and (loop.kind in "iu" or float in key)) or (loop == BOOL and int in key):
            return None
        probes = tuple([Node(o.BUFFER, (), None, loop, ()) for _ in key])
        node = self._lower(probes, rule.outs)
        if not isinstance(node, Node) or node.src != probes or node.op.kind is not Kind.ELEMENTWISE or node.err.name:
            return None
        return node.op, node.dtype, loop, float(np.finfo(loop).max) if loop.char in "ef" else None

    def of_array(self, a: ndarray, x: Node, b: Any, frame: FrameType) -> Any:
        """The function of an array and an array, a scalar or a Python number, where the loop is one graph operation; else None."""
        kind = type(b)
        if kind is ndarray:
            y = b._node if b._base is None else node_of(b)
        elif kind in CLASSES:
            y = node_of_scalar(b)
        elif kind in OF_TYPE:
            y = Node(o.CONST, (), core.numpys_number(b), b.dtype, ())
        elif kind is float or kind is int:
            weak_direct = self.direct((x.dtype, kind))
            if weak_direct is None or not x.shape:
                return None
            dtype, limit = weak_direct[2], weak_direct[3]
            if limit is not None and not -limit <= b <= limit:
                return None
            try:
                y = Node(o.CONST, (), dtype.type(b), dtype, ())
            except OverflowError:
                return None
            node = Node(weak_direct[0], (x, y), None, weak_direct[1], x.shape, site(frame))
            return wrap(node) if a._base is None else ordered(node, (a,), "K")
        else:
            return None
        direct = self.direct((x.dtype, y.dtype))
        if direct is None:
            return None
        shape = x.shape
        if shape != y.shape:
            shape = promotion.broadcast(shape, y.shape)
        node = Node(direct[0], (x, y), None, direct[1], shape, site(frame))
        if not shape:
            return result(node)
        if a._base is None and (kind is not ndarray or b._base is None):
            return wrap(node)
        return ordered(node, (a, b), "K")

    def _of_anything(self, args: Sequence[Any]) -> Any:
        values = []
        for arg in args:
            value = promotion.concrete(arg)
            if value is None:
                break
            values.append(value)
        else:
            # Nothing here is lazy: NumPy's rules, at once.
            return fallback.ours(floating.at_once(self._of_numbers, *values))
        known = NotImplemented
        if config.at_hand and not _LISTS.isdisjoint(map(type, args)) and not any(map(promotion.overrides, args)):
            args = [arg if (made := hand.listed(arg, None)) is None else made for arg in args]
        if self._at_call is not None and calls.fit(args):
            theirs = core.at_call(self, args[0]) if self.nin == 1 else self._numpy
            known = calls.answer(self._of_numbers if theirs is self._numpy else theirs, args, {})
        if self._at_call is not None and known is NotImplemented:
            known = calls.of_complex(self._of_numbers, args)
        if known is not NotImplemented:
            return known
        try:
            nodes = self.nodes(args)
        except promotion.Foreign:
            return self._by_numpy(args, {})
        return self._wrapped(nodes, args, "K")

    def rule(self, key: tuple[Key, ...]) -> Rule:
        """The loop for operands of these dtypes (Python types for Python numbers)."""
        rule = self._rules.get(key)
        if rule is None:
            rule = self._rules[key] = self._resolve(key)
        return rule

    def _resolve(
        self,
        key: tuple[Key, ...],
        outs: tuple[DType | None, ...] | None = None,
        signature: Any = None,
        casting: str | None = None,
    ) -> Rule:
        descriptors = (*key, *(outs or (None,) * self.nout))
        options: dict[str, Any] = {}
        if signature is not None:
            options["signature"] = signature
        if casting is not None:
            options["casting"] = casting
        resolved = self._numpy.resolve_dtypes(descriptors, **options)
        for dtype in resolved:
            if dtype not in NATIVE:
                raise promotion.Foreign
        return Rule(resolved[: self.nin], resolved[self.nin :])

    def nodes(self, args: Sequence[Any], rule: Rule | None = None, mask: Node | None = None) -> Lowered:
        """The result as a node, or a tuple of nodes where there are several outputs.

        What ``mask`` leaves out is computed from a harmless number: its result is not used, nor are its errors.

        Raises
        ------
        Foreign
            An operand, or the loop, is not of the graph's dtypes.
        """
        operands = [promotion.operand(arg) for arg in args]
        if rule is None:
            key = tuple([kind for _, kind in operands])
            rule = self._rules.get(key) or self.rule(key)
        sources = []
        for (node, _), arg, dtype in zip(operands, args, rule.ins, strict=True):
            if node is None:
                try:
                    node = promotion.weak(arg, dtype)
                except OverflowError:
                    if self.__name__ in _COMPARISONS and dtype.kind in "iu" and BOOL not in [kind for _, kind in operands]:
                        return self._out_of_range(args, operands)
                    raise
            elif node.dtype != dtype:
                node = build.cast(node, dtype)
            if mask is not None and node.dtype.kind in "fciu":
                harmless = build.const(0 if self.__name__ == "arctanh" else 1, dtype)
                node = build.elementwise(o.WHERE, dtype, mask, node, harmless)
            sources.append(node)
        if len(sources) == 2 and sources[0].shape != sources[1].shape:
            promotion.broadcast(sources[0].shape, sources[1].shape)
        if self._lower is None:
            raise promotion.Foreign
        return self._lower(tuple(sources), rule.outs)

    def _out_of_range(self, args: Sequence[Any], operands: Sequence[tuple[Node | None, Key]]) -> Node:
        """A comparison with a Python int that the dtype cannot hold has one answer for all elements."""
        if all(node is None for node, _ in operands):
            return build.const(bool(self._numpy(*args)), BOOL)
        sides: list[float] = []
        shape: tuple[int, ...] = ()
        for (node, _), arg in zip(operands, args, strict=True):
            if node is None:
                sides.append(float("inf") if arg > 0 else float("-inf"))
            else:
                sides.append(0.0)
                shape = node.shape
        return build.expand(build.const(bool(self._numpy(*sides)), BOOL), shape)

    def _by_numpy(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return fallback.call(self._numpy, self.__name__, args, kwargs)

    def _wrapped(self, values: Lowered, args: Sequence[Any], order: str) -> Any:
        if isinstance(values, tuple):
            return tuple([self._wrapped(value, args, order) for value in values])
        if not values.shape:
            return result(values)
        return ordered(values, args, order)

    # Keywords -----------------------------------------------------------------------------------------------------------

    def _keyed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call with keywords or outputs, or refuse it as NumPy does."""
        try:
            return self._with_keywords(args, kwargs)
        except Exception as error:
            said = load("lazynp.namespace.bridge.refusals").refusal(self, args, kwargs, error)
            if said is None:
                raise
            raise said.with_traceback(error.__traceback__) from None

    def _with_keywords(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nin, nout = self.nin, self.nout
        if not nin <= len(args) <= nin + nout:
            were = "was" if len(args) == 1 else "were"
            raise TypeError(f"{self.__name__}() takes from {nin} to {nin + nout} positional arguments but {len(args)} {were} given")
        for keyword in kwargs:
            if keyword not in _KEYWORDS:
                raise TypeError(f"{self.__name__}() got an unexpected keyword argument '{keyword}'")
        for pair in _EXCLUSIVE:
            if pair[0] in kwargs and pair[1] in kwargs:
                raise TypeError(f"cannot specify both '{pair[0]}' and '{pair[1]}'")
        inputs = args[:nin]
        outs = self._outputs(args[nin:], kwargs)
        arrays = kwargs.get("out") is Ellipsis  # 0-d results as well
        where = kwargs.get("where", True)
        order = kwargs.get("order", "K") or "K"
        if order not in layout.ORDERS:
            order = layout.checked_order(order)
        if not isinstance(kwargs.get("casting", ""), str):
            raise TypeError(f"casting must be str, not {type(kwargs['casting']).__name__}")
        if promotion.overrides(where) or any(out is not None and promotion.overrides(out) for out in outs):
            return self._by_numpy(args, kwargs)
        if getattr(outs[0], "tells_of_writes", False):  # a map, which takes its result piece by piece
            return outs[0].__array_ufunc__(self._numpy, "__call__", *inputs, **{**kwargs, "out": outs})
        for out in outs:
            need_array(out)
            if type(out) is ndarray and out._readonly:
                raise ValueError("output array is read-only")
        try:
            rule = self._keyword_rule(inputs, outs, kwargs)
            if where is True:
                out = outs[0]
                changes = nout == 1 and type(out) is ndarray and any(shares_root(x, out) for x in inputs)
                if changes and update(out, lambda _: self._into(out, inputs, rule)):
                    return out
                values = self.nodes(inputs, rule)
            else:
                if "out" not in kwargs and len(args) == nin and _WARNS_OF_MASKS:
                    warnings.warn(_NO_OUT, UserWarning, stacklevel=3)
                mask = promotion.mask_node(where)
                values = self.nodes(inputs, rule, mask)
                if nout == 1 and _written_where(outs[0], values, mask):
                    return outs[0]
                values = _masked(values, mask, outs)
        except promotion.Foreign:
            return self._by_numpy(args, kwargs)
        several = values if isinstance(values, tuple) else (values,)
        results = [
            write_out(out, self._converted(value, out)) if out is not None
            else wrap(value) if arrays and not value.shape
            else self._wrapped(value, inputs, order)
            for value, out in zip(several, outs, strict=True)
        ]  # fmt: skip
        return results[0] if nout == 1 else tuple(results)

    def _into(self, out: ndarray, inputs: Sequence[Any], rule: Any) -> Node:
        """The one result, as ``out`` holds it."""
        value = self.nodes(inputs, rule)
        assert not isinstance(value, tuple)
        return out_node(out, self._converted(value, out))

    def _converted(self, value: Node, out: Any) -> Node:
        """A result as its output's dtype; messages about the conversion name the function, whose loop does it.

        Into a foreign dtype, which a NumPy array may have, NumPy converts when it is written.
        """
        if value.dtype != out.dtype and out.dtype in NATIVE:
            value = conversion.converted(value, out.dtype)
            value.err = value.err.named(self.__name__)
        return value

    def _outputs(self, positional: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        nout = self.nout
        if Ellipsis in map(_of_ellipsis, positional):
            raise TypeError("out=... is only allowed as a keyword argument.")
        if positional and "out" in kwargs:
            raise TypeError("cannot specify 'out' as both a positional and keyword argument")
        keyword = kwargs.get("out")
        if keyword is Ellipsis:
            return (None,) * nout
        if keyword is None and (nout == 1 or "out" not in kwargs):
            return positional + (None,) * (nout - len(positional))
        if isinstance(keyword, tuple):
            if len(keyword) != nout:
                raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
            if Ellipsis in map(_of_ellipsis, keyword):
                raise TypeError(PER_OPERAND)
            return keyword
        if nout > 1:
            raise TypeError("'out' must be a tuple of arrays")
        return (keyword,)

    def _keyword_rule(self, inputs: Sequence[Any], outs: Sequence[Any], kwargs: dict[str, Any]) -> Rule | None:
        dtype = kwargs.get("dtype")
        signature = kwargs.get("signature", kwargs.get("sig"))
        casting = kwargs.get("casting")
        if dtype is None and signature is None and casting is None and all(out is None for out in outs):
            return None
        if dtype is not None and np.dtype(dtype) not in NATIVE:
            raise promotion.Foreign
        key = tuple([promotion.operand(x)[1] for x in inputs])
        if all(isinstance(kind, type) for kind in key):
            # Only Python numbers: strong among themselves.  Several are taken by kind, one alone by its value (10**20 is an object).
            key = tuple([np.asarray(x).dtype if self.nin == 1 else np.dtype(kind) for x, kind in zip(inputs, key, strict=True)])
        if dtype is not None:
            signature = (*(None,) * self.nin, *(np.dtype(dtype),) * self.nout)
        wanted = tuple([None if out is None else out.dtype for out in outs])
        try:
            rule = self._resolve(key, wanted, signature, casting)
            if any(isinstance(given, np.dtype) and conversion.loses_a_part(given, loop) for given, loop in zip(key, rule.ins, strict=True)):
                conversion.warn_complex()
            return rule
        except np._core._exceptions._UFuncOutputCastingError:  # type: ignore[attr-defined]
            # NumPy converts numbers, which may not fit, before it looks at the output.
            for x, loop in zip(inputs, self._resolve(key, None, signature, casting).ins, strict=True):
                if type(x) is int:
                    np.asarray(x, loop)
            raise

    # Methods ------------------------------------------------------------------------------------------------------------

    @_asking
    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> Any:
        """Combine along ``axis``; see :meth:`numpy.ufunc.reduce`."""
        reduce = load(_METHODS).reduce
        if calls.any_large((array,), {}):
            given = functools.partial(reduce, self)
            return calls.by_kernels(given, (array, axis, dtype, out, keepdims, initial, where), {})
        return reduce(self, array, axis, dtype, out, keepdims, initial, where)

    @_asking
    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        """Running combination along ``axis``; see :meth:`numpy.ufunc.accumulate`."""
        accumulate = load(_METHODS).accumulate
        return accumulate(self, array, axis, dtype, out)

    @_asking
    def reduceat(self, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        """Combine over segments; see :meth:`numpy.ufunc.reduceat`."""
        reduceat = load(_METHODS).reduceat
        return reduceat(self, array, indices, axis, dtype, out)

    @_asking
    def outer(self, *args: Any, **kwargs: Any) -> Any:
        """The function of all pairs; see :meth:`numpy.ufunc.outer`."""
        outer = load(_METHODS).outer
        known = calls.growing(self._numpy.outer, args, kwargs)
        if known is not NotImplemented:
            return known
        return outer(self, args, kwargs)

    @_asking
    def at(self, a: Any, indices: Any, /, *b: Any) -> None:
        """Unbuffered in-place operation; see :meth:`numpy.ufunc.at`."""
        at = load(_METHODS).at
        if type(a) is ndarray and hand.own_memory(a) is not None and not a._readonly:  # NumPy's writes to read-only memory
            known = calls.answer(self._numpy.at, (a, indices, *b), {}, 1)
            if known is not NotImplemented:
                return
        at(self, a, indices, b)


def ordered(node: Node, inputs: Sequence[Any], order: str) -> ndarray:
    """An elementwise result in the memory order that NumPy would give it."""
    if order == "K":
        if len(node.shape) < 2 or all(layout.lies_in_c_order(x) for x in inputs):
            return wrap(node)
        axes = layout.result_order(list(inputs), node.shape)
    elif order == "F" or (order == "A" and all(_lies(x, "f") for x in inputs) and not all(_lies(x, "c") for x in inputs)):
        axes = tuple(range(len(node.shape)))[::-1]
    else:
        axes = None
    return wrap(node) if axes is None else wrap_ordered(node, axes)


def _lies(x: Any, order: str) -> bool:
    return type(x) is not ndarray or bool(getattr(x.flags, f"{order}_contiguous"))


def _masked(values: Lowered, mask: Node, outs: Sequence[Any]) -> Lowered:
    """``where=``: what is masked keeps the output's value; without an output it is NumPy's garbage, here zero."""
    masked = []
    for value, out in zip(values if isinstance(values, tuple) else (values,), outs, strict=True):
        other = build.const(0, value.dtype)
        if out is not None:
            # The output's old values keep their own dtype: the result is converted to it, not they to the loop's.
            kept, _ = promotion.operand(out)
            assert kept is not None
            other, value = kept, build.cast(value, kept.dtype)
        promotion.broadcast(value.shape, mask.shape, other.shape)
        masked.append(build.elementwise(o.WHERE, value.dtype, mask, value, other))
    return tuple(masked) if isinstance(values, tuple) else masked[0]


def _written_where(out: Any, value: Any, mask: Node) -> bool:
    """Write where a mask is true into an output that it fits; tells whether it did."""
    if type(out) is not ndarray or not assignment.fits(out.shape, value.shape, mask.shape):
        return False
    assignment.write_where(out, mask, build.cast(value, out.dtype))
    return True


def need_array(out: Any, refusal: str = "return arrays must be of ArrayType") -> None:
    """Refuse an ``out=`` argument that is no array; a result without axes is none either."""
    if out is not None and type(out) is not ndarray and not isinstance(out, np.ndarray):
        raise TypeError(refusal)


def shares_root(x: Any, out: ndarray) -> bool:
    """Tell whether an operand shows the array that ``out`` shows: its result depends on what is written to it in the meantime."""
    if x is out:
        return True
    return type(x) is ndarray and (x._base if type(x._base) is ndarray else x) is (out._base if type(out._base) is ndarray else out)


def write_out(out: Any, node: Node) -> Any:
    """``out[...] = node`` for an ``out=`` argument whose cast is allowed; answers ``out``."""
    need_array(out)
    if type(out) is ndarray:
        out._write(out_node(out, node))
        return out
    check_out(out, node)
    # A NumPy array: it is written before the call returns.
    out[...] = wrap(node) if getattr(out, "tells_of_writes", False) else storage.host(wrap(node))
    return out


def check_out(out: Any, node: Node) -> None:
    """Refuse an ``out=`` argument that may not be written, or that the result does not fit."""
    shape = out.shape
    if out._readonly if type(out) is ndarray else not out.flags.writeable:
        raise ValueError("output array is read-only")
    if node.shape != shape and promotion.broadcast(node.shape, shape) != shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {str(shape).replace(' ', '')} "
            f"doesn't match the broadcast shape {str(promotion.broadcast(node.shape, shape)).replace(' ', '')}"
        )


def out_node(out: ndarray, node: Node) -> Node:
    """The result as ``out`` holds it, in its dtype and shape."""
    check_out(out, node)
    shape, node = out.shape, conversion.converted(node, out.dtype)
    return node if node.shape == shape else build.expand(node, shape)


def castable(dtype: DType, out: Any, function: Any = np.add, number: int = 0) -> None:
    """Refuse an ``out=`` argument, the ufunc's operand of that number, that its result of ``dtype`` does not go into."""
    wanted = getattr(out, "dtype", dtype)
    if not np.can_cast(dtype, wanted, "same_kind"):
        raise np._core._exceptions._UFuncOutputCastingError(function, "same_kind", dtype, wanted, number)  # type: ignore[attr-defined]


ufunc.__call__ = _native.calls(ufunc.__call__)  # type: ignore[method-assign]
core.register_ufunc(ufunc)
copyreg.pickle(UfuncType, lambda kind: (fallback.by_path, (kind.__name__,)))  # its own name is NumPy's
class _Ufuncs(dict[str, ufunc]):
    """The ufuncs of NumPy's namespace that are not generalised, by name; each is made when it is first wanted."""

    def __missing__(self, name: str) -> ufunc:
        if NAMES.get(name) != name:
            raise KeyError(name)
        return self.setdefault(name, ufunc(getattr(np, name)))


# Every name of a ufunc in NumPy's namespace, aliases included (abs, mod, acos, bitwise_not, ...) -> its own name.
NAMES: Final[dict[str, str]] = {
    name: value.__name__
    for name, value in vars(np).items()
    if isinstance(value, np.ufunc) and not value.signature and value in (vars(np).get(value.__name__),)  # not a namesake
}
UFUNCS: Final = _Ufuncs()


def by_name(name: str) -> ufunc:
    """The ufunc called ``name``."""
    return UFUNCS[name]


@functools.cache
def standing_for(theirs: np.ufunc) -> ufunc:
    """Our ufunc for one of NumPy's, also under a name that another library gave it (numexpr adds ``numpy.expm1x``)."""
    name = theirs.__name__
    return UFUNCS[name] if name in NAMES and getattr(np, name) is theirs else ufunc(theirs, None)
