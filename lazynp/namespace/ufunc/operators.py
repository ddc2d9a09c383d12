"""Python's operators on arrays and scalars.

In: the ufunc table.  Out: ``install(cls)``, which gives a class its ``__add__``, ``__radd__``, ``__iadd__`` and so on, each a
closure of its own.  Promise: recording ``a + b`` on plain arrays of one shape, or ``a + 2.0``, is two dictionary look-ups and one
node; everything else takes the ufunc's general way and has its meaning.
"""

from __future__ import annotations

import operator
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.array import core
from lazynp.arrays import ndarray, node_of, result, update, wrap
from lazynp.graph import _native
from lazynp.graph import op as o
from lazynp.graph.errstate import current
from lazynp.graph.floating import at_once, heard, listen_to_all, stop, tell_here
from lazynp.graph.node import DEPTH_CUT, Node
from lazynp.namespace.bridge.fallback import ours
from lazynp.namespace.ufunc.ufuncs import UFUNCS, ordered, site, ufunc
from lazynp.scalars import CLASSES, OF_TYPE, generic, is_scalar, scalar_of_value
from lazynp.values.loading import late, load

if TYPE_CHECKING:
    from lazynp import conversion, protocols, storage
    from lazynp.array import calls, hand
    from lazynp.graph import build
    from lazynp.namespace.ufunc import loops, promotion
else:
    calls, hand, conversion, build, loops, promotion, protocols, storage = late(
        "array.calls",
        "array.hand",
        "conversion",
        "graph.build",
        "namespace.ufunc.loops",
        "namespace.ufunc.promotion",
        "protocols",
        "storage",
    )

Method = Callable[..., Any]

# Operator -> ufunc.
BINARY: Final = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
COMPARE: Final = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
UNARY: Final = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}

_MIRRORED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}

_getframe = sys._getframe
_CONST = o.CONST
_MEMORY = np.ndarray
_REPEATED: Final = (list, tuple, str, bytes, bytearray, deque)
_SCALARS_PRIORITY: Final = -1_000_000.0  # of NumPy's scalars; its arrays have 0
_WEAK: Final = frozenset({float, int, complex})


def defers(x: Any, other: Any) -> bool:
    """Tell whether the operator leaves the work to the other operand's class."""
    kind = type(other)
    if kind is ndarray or kind in _WEAK or kind is bool or is_scalar(other) or issubclass(kind, (np.generic, list, tuple)):
        return False
    if issubclass(kind, np.ndarray):
        return kind is not np.ndarray  # a subclass's own operators go first, as Python has it
    if hasattr(kind, "__array_ufunc__"):
        return kind.__array_ufunc__ is None
    priority: float = getattr(kind, "__array_priority__", _SCALARS_PRIORITY)
    return priority > (0.0 if type(x) is ndarray else _SCALARS_PRIORITY)


_OF_FLOATS: Final = {1.0: "positive", -1.0: "reciprocal", 2.0: "square"}


def _power_shortcut(x: Any, exponent: Any) -> Any:
    """NumPy's rule for ``x ** 2``, ``-1``, ``1`` and ``0.5``, by the Python type of the exponent; None where it does not apply."""
    kind = type(exponent)
    if kind is int:
        if exponent == 2:
            if type(x) is ndarray:
                node = node_of(x)
                if node.dtype.kind not in "bc" and node.shape:
                    square = Node(o.MULTIPLY, (node, node), None, node.dtype, node.shape, site(_getframe(2)))
                    square.err = square.err.named("square")
                    return ordered(square, (x,), "K")
            elif x.dtype.kind == "b":
                return None  # a number like any other; of an array of them NumPy makes int8
            return UFUNCS["square"](x)
        if exponent == -1 and x.dtype.kind in "fc":
            return UFUNCS["reciprocal"](x)
        if exponent == 1 and type(x) is ndarray and x.dtype.kind == "f":
            return UFUNCS["positive"](x)
    elif kind is float and exponent == 0.5 and x.dtype.kind in ("fc" if type(x) is ndarray else "c"):
        return UFUNCS["sqrt"](x)
    elif kind is float and type(x) is ndarray and x.dtype.kind == "f" and exponent in _OF_FLOATS:
        return UFUNCS[_OF_FLOATS[exponent]](x)
    return None


def _binary(name: str, of: ufunc) -> Method:
    direct = of._directs
    of_array = of.of_array
    power = name == "pow"
    beside_arrays = UFUNCS[of.__name__]  # where ``of`` may be a rule of numbers
    up = 2 if name in ("pow", "eq", "ne") else 1  # frames to the user's, which called us or the function around us
    at_call = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def operate(a: Any, b: Any) -> Any:
        kind = type(b)
        if type(a) is ndarray:
            base = a._base
            if base is not None or (node := a._node) is None or node.buffer is not None:
                memory = base if type(base) is _MEMORY else hand.memory_of(a)
                if memory is not None and not (power and hand.is_much(memory) and not (kind is int and b == 2)):
                    known = calls.of_two(at_call, a, memory, b)
                    if known is not NotImplemented:
                        return known
            base = memory = None  # the capture looks whether others hold it
            x = a._node if a._base is None else node_of(a)
            if kind is ndarray and b._base is None and a._base is None:
                # The commonest case of all, spelled out.
                y = b._node
                shape = x.shape
                if shape == y.shape and shape:
                    rule = direct.get((x.dtype, y.dtype))
                    if rule is not None:
                        frame = _getframe(up)
                        return wrap(Node(rule[0], (x, y), None, rule[1], shape, (frame.f_code, frame.f_lasti)))
            elif (kind is float or kind is int) and a._base is None and not power:
                rule = direct.get((x.dtype, kind))
                if rule is not None and x.shape and (rule[3] is None or -rule[3] <= b <= rule[3]):
                    try:
                        y = Node(_CONST, (), rule[2].type(b), rule[2], ())
                    except OverflowError:
                        return of(a, b)
                    frame = _getframe(up)
                    return wrap(Node(rule[0], (x, y), None, rule[1], x.shape, (frame.f_code, frame.f_lasti)))
            if power:
                special = _power_shortcut(a, b)
                if special is not None:
                    return special
            found = of_array(a, x, b, _getframe(up))
            if found is not None:
                return found
        elif power:
            special = _power_shortcut(a, b)
            if special is not None:
                return special
        if kind is not ndarray and defers(a, b):
            return NotImplemented if type(a) is not ndarray and a._value is not None else _their_turn(name, at_call, a, b)
        return (of if kind is not ndarray else beside_arrays)(a, b)

    operate.__name__ = operate.__qualname__ = f"__{name}__"
    return operate


def _their_turn(name: str, forward: Method, a: Any, b: Any) -> Any:
    """The operator of the other operand's class, which may know NumPy's arrays and numbers alone: those of JAX do.

    ``x.__add__(other)`` is NumPy's answer: that it is the other's turn (``name_methods``).
    """
    kind, mirrored = type(b), f"__{_MIRRORED.get(name, 'r' + name)}__"
    turn = getattr(kind, mirrored) if any(mirrored in vars(each) for each in kind.__mro__) else None  # not the operator of classes
    found = NotImplemented if turn is None else turn(b, a)
    if found is not NotImplemented:
        return found
    if type(a) is not ndarray:
        return forward(a.concrete("operator"), b)
    return NotImplemented if turn is None else turn(b, np.asarray(a))


def _numpys(a: Any) -> Any:
    return np.asarray(a) if type(a) is ndarray else a.concrete("operator")


def _reflected(name: str, of: ufunc) -> Method:
    forward = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def at_call(x: Any, y: Any) -> Any:
        return forward(y, x)

    def operate(a: Any, b: Any) -> Any:
        kind = type(b)
        if type(a) is ndarray and (a._base is not None or (node := a._node) is None or node.buffer is not None):
            memory = hand.memory_of(a)
            if memory is not None:
                known = calls.of_two(at_call, a, memory, b)
                if known is not NotImplemented:
                    return known
        if (kind is float or kind is int) and type(a) is ndarray and a._base is None:
            x = a._node
            rule = of.direct((kind, x.dtype))
            if rule is not None and x.shape and (rule[3] is None or -rule[3] <= b <= rule[3]):
                dtype = rule[2]
                try:
                    value = Node(_CONST, (), dtype.type(b), dtype, ())
                except OverflowError:
                    return of(b, a)
                frame = _getframe(1)
                return wrap(Node(rule[0], (value, x), None, rule[1], x.shape, (frame.f_code, frame.f_lasti)))
        if defers(a, b):
            # what went first and left it to ours may know NumPy's arrays and numbers alone: `numpy.matrix` does, and PyTorch's tensors
            if isinstance(b, np.ndarray):
                return forward(b, np.asarray(a))
            return NotImplemented if type(a) is not ndarray and a._value is not None else forward(b, _numpys(a))
        return of(b, a)

    operate.__name__ = operate.__qualname__ = f"__r{name}__"
    return operate


def _stretches(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Tell whether ``shape`` broadcasts to just this one."""
    return len(shape) <= len(to) and all(n in (m, 1) for n, m in zip(shape[::-1], to[::-1], strict=False))


def _in_place(name: str, of: ufunc) -> Method:
    power = name == "pow"
    at_call = getattr(operator, f"i{name}")

    def by_rows(memory: Any, b: Any) -> None:
        if not core.assign_rows(name, memory, b):
            at_call(memory, b)

    def assign(a: Any, b: Any) -> Any:
        base = a._base
        large = type(b) is ndarray and hand.memory_of(b) is None
        if large and (base is None or (type(base) is _MEMORY and hand.let_go(a, 1))):
            pass  # a loop that changes small weights by large data computes nothing in between
        elif base is not None or (node := a._node) is None or node.buffer is not None:
            with core.writing(a):
                memory = hand.writable(a, (type(b) in hand.NUMBERS and not power) or a.dtype.kind == "c")
                if memory is not None:
                    known = calls.into(at_call, memory, b)
                    if known is not NotImplemented:
                        return a
        if type(b) is ndarray and not a._readonly:
            rule = of.direct((a.dtype, b.dtype))
            if rule is not None and rule[1] == a.dtype:
                if type(base) is ndarray and not rule[0].rounds and storage.changes_alone(base, a, node_of(b)):
                    # NumPy's loop goes over the part once, a kernel twice: its result lies elsewhere until it is known to be one
                    storage.host(b, "part of an array")
                    with core.writing(a):
                        memory = hand.writable(a, large=True)
                        if memory is not None:
                            calls.into(by_rows, memory, b)
                            return a
                y, shape = node_of(b), a.shape
                if y.shape == shape or _stretches(y.shape, shape):
                    frame = _getframe(1)
                    where = frame.f_code, frame.f_lasti

                    def changed(x: Node) -> Node:
                        return Node(rule[0], (x, y), None, rule[1], shape, where)

                    if not update(a, changed):
                        a._write(changed(node_of(a)))
                    return a
        if type(b) is not ndarray and not isinstance(b, np.ndarray) and defers(a, b):
            return NotImplemented
        if power and type(b) in (int, float):
            special = _power_shortcut(a, b)
            if special is not None:
                # The shortcut's dtype is a's own except for bool, whose square is int8 and cannot go back.
                if special.dtype != a.dtype:
                    return of(a, b, out=a)
                known = node_of(special)

                def raised(x: Node) -> Node:
                    return known if any(source is x for source in known.src) else node_of(_power_shortcut(a, b))

                if not update(a, raised):
                    a._write(known)
                return a
        return of(a, b, out=(a,))

    assign.__name__ = assign.__qualname__ = f"__i{name}__"
    return assign


def _unary(name: str, of: ufunc) -> Method:
    at_call = getattr(operator, name)

    def operate(a: Any) -> Any:
        if type(a) is ndarray and (a._base is not None or (node := a._node) is None or node.buffer is not None):
            memory = hand.memory_of(a)
            if memory is not None:
                return calls.of_one(at_call, memory)
        if type(a) is ndarray and a._base is None:
            x = a._node
            rule = of.direct((x.dtype,))
            if rule is not None and x.shape:
                frame = _getframe(1)
                return wrap(Node(rule[0], (x,), None, rule[1], x.shape, (frame.f_code, frame.f_lasti)))
        return of(a)

    operate.__name__ = operate.__qualname__ = f"__{name}__"
    return operate


def _comparison(name: str, of: ufunc) -> Method:
    operate = _binary(name, of)
    if name not in ("eq", "ne"):
        return operate

    def equality(a: Any, b: Any) -> Any:
        # Nothing equals None or a string; where the loop does not exist the answer is elementwise unequal, as NumPy decided.
        try:
            return operate(a, b)
        except np.exceptions.DTypePromotionError:
            return _unequal(a, b, name == "ne")
        except TypeError as error:
            if isinstance(error, np._core._exceptions._UFuncNoLoopError):  # type: ignore[attr-defined]
                return _unequal(a, b, name == "ne")
            raise

    equality.__name__ = equality.__qualname__ = f"__{name}__"
    return equality


def _unequal(a: Any, b: Any, differ: bool) -> Any:
    shape = promotion.broadcast(a.shape, np.shape(b))
    return (
        result(build.expand(build.const(differ, np.dtype(np.bool_)), shape))
        if not shape
        else wrap(loops.filled(differ, np.dtype(np.bool_), node_of(a)))
    )


def _scalar_binary(method: Method, function: Method, reflected: bool, name: str = "") -> Method:
    """Operators of scalars: values that are known are combined at once by NumPy's scalar rules.

    ``name`` is the operation's in messages.
    """
    repeats = function is operator.mul  # of a sequence, where the scalar is an integer

    def operate(a: Any, b: Any) -> Any:
        left = a._value
        if left is None and repeats and isinstance(b, (list, tuple)):
            left = a.concrete("sequence repetition")
        if left is None and _at_call(a, b):
            left = a._value
        if left is not None:
            right = promotion.concrete(b)
            if right is None:
                kind = type(b)
                if kind is ndarray or kind in CLASSES or (issubclass(kind, (list, tuple)) and conversion.holds_ours(b)):
                    return method(a, b)
                # Whatever it is (a subclass of float, an array of NumPy's, a user's class), NumPy's scalar knows what to do with it.
                if kind is not np.ndarray:
                    return protocols.from_host(function(b, left) if reflected else function(left, b))
                right = b
            before = listen_to_all()
            try:
                value = function(right, left) if reflected else function(left, right)
            finally:
                stop(before)
                if heard:
                    tell_here()
            return scalar_of_value(value) if type(value) in OF_TYPE else protocols.from_host(value)
        found = method(a, b)
        if name and is_scalar(found) and found._node is not None and type(b) is not ndarray:
            found._node.err = found._node.err.named(name)
        return found

    operate.__name__ = operate.__qualname__ = method.__name__
    return operate


def _at_call(*operands: Any) -> bool:
    """Compute scalars whose operations are wanted at the call, by NumPy's numbers; tells whether they are."""
    if not current().eager:
        return False
    for x in operands:
        if is_scalar(x):
            x.concrete("eager")
    return True


def _repeating(method: Method) -> Method:
    """Multiplication by an integer scalar repeats a sequence, which is Python's to do."""

    def operate(a: Any, b: Any) -> Any:
        return NotImplemented if issubclass(type(b), _REPEATED) else method(a, b)

    operate.__name__ = operate.__qualname__ = method.__name__
    return operate


def _scalar_unary(name: str, of: ufunc, function: Method) -> Method:
    def operate(a: Any) -> Any:
        value = a._value
        if value is not None:
            return scalar_of_value(at_once(function, value))
        return of(a)

    operate.__name__ = operate.__qualname__ = f"__{name}__"
    return operate


def _divmod(a: Any, b: Any) -> Any:
    found = calls.answer(divmod, (a, b), {})
    if found is not NotImplemented:
        return found
    return _their_turn("divmod", divmod, a, b) if defers(a, b) else UFUNCS["divmod"](a, b)


def _rdivmod(a: Any, b: Any) -> Any:
    found = calls.answer(divmod, (b, a), {})
    if found is not NotImplemented:
        return found
    return divmod(b, _numpys(a)) if defers(a, b) else UFUNCS["divmod"](b, a)


def _scalar_divmod(method: Method, reflected: bool) -> Method:
    def operate(a: Any, b: Any) -> Any:
        if a._value is None:
            _at_call(a, b)
        left, right = a._value, promotion.concrete(b)
        if left is not None and right is not None:
            return ours(at_once(divmod, right, left) if reflected else at_once(divmod, left, right))
        found = method(a, b)
        if type(b) is not ndarray and type(found) is tuple:
            for part in found:
                if is_scalar(part) and part._node is not None:
                    part._node.err = part._node.err.named("scalar divmod")
        return found

    operate.__name__ = operate.__qualname__ = method.__name__
    return operate


def _product(a: Any, b: Any) -> Any:
    return load("lazynp.namespace.ufunc.gufuncs").matmul(a, b)  # many programs have no products


def _matmul(a: Any, b: Any) -> Any:
    found = calls.answer(operator.matmul, (a, b), {})
    if found is NotImplemented:
        found = calls.product(operator.matmul, a, b)
    if found is not NotImplemented:
        return found
    return _their_turn("matmul", operator.matmul, a, b) if defers(a, b) else _product(a, b)


def _rmatmul(a: Any, b: Any) -> Any:
    found = calls.answer(operator.matmul, (b, a), {})
    if found is not NotImplemented:
        return found
    return operator.matmul(b, np.asarray(a)) if defers(a, b) else _product(b, a)


def _imatmul(a: Any, b: Any) -> Any:
    memory = hand.own_memory(a)
    if memory is not None and calls.into(operator.imatmul, memory, b) is not NotImplemented:
        return a
    if a.ndim == 0:
        return _product(a, b)

    def multiplied(_: Node | None = None) -> Node:
        made = node_of(_product(a, b))
        if not np.can_cast(made.dtype, a.dtype, "same_kind"):
            raise np._core._exceptions._UFuncOutputCastingError(np.matmul, "same_kind", made.dtype, a.dtype, 0)  # type: ignore[attr-defined]
        if made.shape != a.shape:
            raise ValueError(f"inplace matrix multiplication of shape {made.shape} into {a.shape} is not possible")
        return build.cast(made, a.dtype)

    if not update(a, multiplied):
        a._write(multiplied())
    return a


def _pow3(operate: Method) -> Method:
    def power(a: Any, b: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            return NotImplemented
        return operate(a, b)

    power.__name__ = power.__qualname__ = operate.__name__
    return power


def install(cls: type) -> None:
    """Attach all operators to ``ndarray`` or to the scalar family's root."""
    array = cls is ndarray
    methods: dict[str, Method] = {}
    for name, ufunc_name in BINARY.items():
        of = UFUNCS[ufunc_name] if array or name != "pow" else ufunc(np.power, loops.power_of_numbers)
        operate = _binary(name, of)
        reflected = _reflected(name, of)
        if array:
            methods[f"__i{name}__"] = _in_place(name, of)
        else:
            function = getattr(operator, f"__{name}__")
            operate = _scalar_binary(operate, function, False, f"scalar {ufunc_name}")
            reflected = _scalar_binary(reflected, function, True, f"scalar {ufunc_name}")
            if name == "mul":
                operate, reflected = _repeating(operate), _repeating(reflected)
        methods[f"__{name}__"] = _pow3(operate) if name == "pow" else operate
        methods[f"__r{name}__"] = reflected
    for name, ufunc_name in COMPARE.items():
        compare = _comparison(name, UFUNCS[ufunc_name])
        methods[f"__{name}__"] = compare if array else _scalar_binary(compare, getattr(operator, name), False)
    for name, ufunc_name in UNARY.items():
        of = UFUNCS[ufunc_name]
        methods[f"__{name}__"] = _unary(name, of) if array else _scalar_unary(name, of, getattr(operator, name))
    if not array:
        methods |= {"__divmod__": _scalar_divmod(_divmod, False), "__rdivmod__": _scalar_divmod(_rdivmod, True)}
    else:
        methods |= {"__divmod__": _divmod, "__rdivmod__": _rdivmod}
        methods |= {"__matmul__": _matmul, "__rmatmul__": _rmatmul, "__imatmul__": _imatmul}
    if array:
        _native.register(ndarray, generic, wrap, node_of, DEPTH_CUT // 2)
        methods |= {f"__{name}__": _recorder(methods[f"__{name}__"], of, 0) for name, of in (BINARY | COMPARE).items()}
        methods |= {f"__r{name}__": _recorder(methods[f"__r{name}__"], of, 1) for name, of in BINARY.items()}
        methods |= {f"__{name}__": _recorder(methods[f"__{name}__"], of, 2) for name, of in UNARY.items()}
        methods["__getitem__"] = _native.recorder(ndarray.__getitem__, {}, 3, False)
    for name, method in methods.items():
        setattr(cls, name, method)


def name_methods(cls: type) -> None:
    """Give arrays methods such as ``__add__`` for programs that call them by name; operators do not go through these.

    NumPy's say ``NotImplemented`` where the other operand's class has a turn, and Python's operator gives it.  An operator of ours gives it
    once more, with NumPy's array, and so must not be what the name means.
    """
    slots = vars(core.Cell)
    names = [f"__{name}__" for name in (*BINARY, *COMPARE, "divmod", "matmul")]
    core.name_methods(cls, {name: _by_name(name, slots[name]) for name in names})


def _by_name(name: str, slot: Any) -> Method:
    def method(self: Any, *value: Any) -> Any:
        return NotImplemented if len(value) == 1 and defers(self, value[0]) else slot(self, *value)

    method.__name__, method.__qualname__, method.__doc__ = name, f"ndarray.{name}", slot.__doc__
    method.__text_signature__ = slot.__text_signature__  # type: ignore[attr-defined]
    return method


def _recorder(method: Method, of: str, operands: int) -> Method:
    made: Method = _native.recorder(method, UFUNCS[of]._directs, operands, of == "power")
    return made
