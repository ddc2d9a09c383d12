"""Floating-point values that carry a bound of how far another implementation may be away.

In: NumPy's functions, called on ``Bounded`` arrays.  Out: their results, each element with its own bound.  A view's bounds are a view
of the same shape over the bounds of its base, so writes through views reach both.  Promise: a bound of zero means equal bits, because
every operation on the way is exactly rounded or only moves values; a function whose result an error could flip (a comparison, a
conversion to integers) is refused with ``Unbounded``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin


def words(text: str) -> list[str]:
    return text.split()


ULP: Final = 4  # what lazynp promises of a math function, and what NumPy's own keep
COMPLEX_ULP: Final = 16  # of the modulus: cancellation inside may cost one part all its digits
USEFUL: Final = 300  # bounds beyond so many epsilons of the largest value say nothing: the generator stops there
TINY: Final = 5e-324
SIZES: Final = {"e": 100.0, "f": 1e5, "F": 1e5}  # and no value is larger


class Unbounded(Exception):
    """An error of the operands cannot be followed through this function."""


def plain(x: Any) -> Any:
    """The values without their bounds."""
    return x.v if isinstance(x, Bounded) else x


def wide(dtype: Any) -> Any:
    """The dtype of bounds: those of a complex number's parts are the parts of a complex number."""
    return numpy.complex128 if dtype.kind == "c" else numpy.float64


def eps(dtype: Any) -> float:
    return float(numpy.finfo(dtype).eps)


def modulus(x: Any) -> Any:
    """Absolute values, wide enough not to overflow."""
    return numpy.abs(numpy.asarray(plain(x)).astype(wide(numpy.asarray(plain(x)).dtype)))


def error(x: Any) -> Any:
    """The bound of an operand's modulus."""
    return numpy.abs(x.e) if isinstance(x, Bounded) else 0.0


def parts(bound: Any, dtype: Any) -> Any:
    """A bound of a modulus as a bound of what it is the modulus of."""
    return bound * (1 + 1j) if dtype.kind == "c" else bound


class Bounded(NDArrayOperatorsMixin):
    """Values ``v`` and their bounds ``e``, arrays of the same shape and layout (in elements)."""

    __slots__ = ("e", "v")

    def __init__(self, v: Any, e: Any = None) -> None:
        self.v = v
        if e is None:
            e = numpy.zeros_like(v, wide(v.dtype)) if isinstance(v, numpy.ndarray) else wide(v.dtype)(0)
        self.e = e

    def is_useful(self) -> bool:
        """Whether everything is finite and known well enough to find a bug."""
        size = numpy.abs(self.v).max(initial=0)
        return bool(
            numpy.isfinite(self.v).all()
            and size < SIZES.get(self.v.dtype.char, 1e9)
            and (numpy.abs(self.e) <= USEFUL * eps(self.v.dtype) * (1 + float(size))).all()
        )

    # Structure: the same thing to both ----------------------------------------------------------------------------------
    def __getitem__(self, key: Any) -> Any:
        return Bounded(self.v[_exact(key)], self.e[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.v[_exact(key)] = plain(value)
        self.e[key] = self.bounds_of(value)

    def bounds_of(self, value: Any) -> Any:
        """The bounds of ``value`` when it is assigned here: converting rounds what is not exact."""
        if not isinstance(value, Bounded):
            return numpy.zeros(numpy.shape(value))
        if value.v.dtype.kind == "c" and self.v.dtype.kind != "c":
            value = value.real
        if eps(value.v.dtype) >= eps(self.v.dtype):
            return value.e
        return numpy.where(value.e == 0, 0, value.e + parts(eps(self.v.dtype) * modulus(value), self.v.dtype))

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES:
            return getattr(self.v, name)
        if name in VIEWS:
            return Bounded(getattr(self.v, name), getattr(self.e, name))
        if name in METHODS:
            return lambda *args, **kwargs: Bounded(
                getattr(self.v, name)(*_exact(args), **kwargs), getattr(self.e, name)(*args, **kwargs)
            )
        if name in RULES:
            return lambda *args, **kwargs: RULES[name](self, *args, **kwargs)
        if name in ("astype", "fill", "flat"):
            return getattr(self, "_" + name)
        raise Unbounded(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Bounded.__slots__:
            object.__setattr__(self, name, value)
        elif name == "shape":
            self.v.shape = value
            self.e.shape = value
        elif name == "flat":
            self.flat[:] = value
        elif name in ("real", "imag"):
            setattr(self.v, name, plain(value))
            setattr(self.e, name, Bounded(self.v.real, self.e.real).bounds_of(value))
        else:
            raise Unbounded(name)

    def _astype(self, dtype: Any, copy: bool = True) -> Any:
        to = numpy.dtype(dtype)
        if to.kind not in "fc" or (self.v.dtype.kind == "c" and to.kind == "f"):
            raise Unbounded("astype")
        v = self.v.astype(to, copy=copy)
        if isinstance(v, numpy.generic):
            return Bounded(v, wide(to)(Bounded(v).bounds_of(self)))
        if v is self.v:
            return self
        e = self.e.astype(wide(to))
        e[...] = Bounded(v, e).bounds_of(self)
        return Bounded(v, e)

    def _fill(self, value: Any) -> None:
        if isinstance(value, Bounded):
            raise Unbounded("fill")
        self.v.fill(value)
        self.e.fill(0)

    @property
    def _flat(self) -> Any:
        return BoundedFlat(self)

    def __len__(self) -> int:
        return len(self.v)

    def __iter__(self) -> Any:
        raise Unbounded("iteration")

    def __bool__(self) -> bool:
        raise Unbounded("bool")

    __float__ = __int__ = __complex__ = __index__ = __contains__ = __array__ = __bool__  # type: ignore[assignment]

    # The operator is not the function: NumPy's takes a root where the exponent is 0.5.
    def __pow__(self, other: Any) -> Any:
        found = super().__pow__(other)
        return Bounded(self.v ** plain(other), found.e)

    def __ipow__(self, other: Any) -> Any:
        found = self**other
        if isinstance(self.v, numpy.generic):
            return found
        self.v **= plain(other)
        self.e[...] = self.bounds_of(found)
        return self

    # Functions ------------------------------------------------------------------------------------------------------------
    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__
        rule = RULES.get(name)
        if rule is not None:
            return rule(*args, **kwargs)
        positions = MOVES.get(name)
        if positions is None or kwargs.keys() & {"out", "dtype"}:
            raise Unbounded(name)
        if not isinstance(args[0], Bounded) and name in WRITES:
            raise Unbounded(name)  # into exact memory
        v = func(*[_values(a) for a in args], **kwargs)
        moved = [_bounds(a, args[0]) if k in positions else _exact(a) for k, a in enumerate(args)]
        e = func(*moved, **{k: (0 if k == "constant_values" else x) for k, x in kwargs.items()})
        if name in WRITES:
            return None
        if isinstance(v, (list, tuple)):
            return [Bounded(a, b) for a, b in zip(v, e, strict=True)]
        return Bounded(v, e.astype(wide(v.dtype), copy=False))  # complex values among real ones make real bounds complex

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", (None,))[0]
        if isinstance(out, Bounded) and isinstance(out.v, numpy.generic):
            out = None  # a scalar is never changed in place
        if out is not None and not isinstance(out, Bounded):
            raise Unbounded("into exact memory")
        where = kwargs.pop("where", True)
        if isinstance(where, Bounded) or (where is not True and out is None):
            raise Unbounded("where")
        name = ufunc.__name__
        options = {} if out is None else {"out": (out.v,), "where": where}
        if method == "__call__" and name in RULES and out is None and not kwargs:
            return RULES[name](*inputs)
        if method == "__call__" and name in UFUNCS:
            operands = inputs
        elif method == "outer" and name in UFUNCS and not kwargs:
            a, b = [x if isinstance(x, Bounded) else numpy.asarray(x) for x in inputs]
            operands = (a[(..., *(None,) * b.ndim)] if a.ndim else a, b)
        elif method in ("reduce", "accumulate") and (name, method) in METHOD_RULES and out is None:
            return RULES[METHOD_RULES[name, method]](*inputs, axis=kwargs.pop("axis", 0), **kwargs)
        else:
            raise Unbounded(name)
        if kwargs.keys() - {"casting"}:
            raise Unbounded(name)
        # The operands may be the output.
        before = [x.copy() if isinstance(x, (Bounded, numpy.ndarray)) else x for x in operands]
        try:
            loop = ufunc(*[plain(x) for x in before], **kwargs)
        except Exception:
            return ufunc(*[plain(x) for x in operands], **options, **kwargs)  # raises too, maybe for another reason first
        if numpy.asarray(loop).dtype.kind not in "fc":
            raise Unbounded(name)
        bound = UFUNCS[name](ufunc, loop, *before)
        if isinstance(loop, numpy.generic) and out is None:
            return Bounded(loop, wide(loop.dtype)(bound))
        result = ufunc(*[plain(x) for x in operands], **options, **kwargs)
        found = like(loop, bound)
        if out is None:
            return like(result, bound)
        numpy.copyto(out.e, numpy.broadcast_to(out.bounds_of(found), out.e.shape), where=where, casting="unsafe")
        return out


class Module:
    """NumPy's namespace; a math function of exact numbers gives bounded ones."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(numpy, name)
        return Function(found) if isinstance(found, numpy.ufunc) and found.__name__ in UFUNCS else found


class Function:
    """One ufunc of ``Module``."""

    def __init__(self, ufunc: numpy.ufunc) -> None:
        self.ufunc = ufunc

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._bounded(self.ufunc, *args, **kwargs)

    def outer(self, a: Any, b: Any) -> Any:
        return self._bounded(self.ufunc.outer, a, b)

    def _bounded(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if kwargs or isinstance(result, Bounded) or result.dtype.kind not in "fc":
            return result
        if function is not self.ufunc:
            a, b = map(numpy.asarray, args)
            args = (a[(..., *(None,) * b.ndim)] if a.ndim else a, b)
        return like(result, UFUNCS[self.ufunc.__name__](self.ufunc, result, *args))


class BoundedFlat:
    """``x.flat``."""

    def __init__(self, x: Bounded) -> None:
        self.x = x

    def __getitem__(self, key: Any) -> Any:
        return Bounded(self.x.v.flat[key], self.x.e.flat[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.x.v.flat[key] = plain(value)
        self.x.e.flat[key] = self.x.bounds_of(value)


def like(v: Any, bound: Any) -> Bounded:
    """``v`` with bounds laid out in memory as it is."""
    if not isinstance(v, numpy.ndarray):
        return Bounded(v, wide(v.dtype)(bound))
    e = numpy.empty_like(v, wide(v.dtype))
    e[...] = bound
    return Bounded(v, e)


def _values(x: Any) -> Any:
    return type(x)([_values(item) for item in x]) if type(x) in (list, tuple) else plain(x)


def _bounds(x: Any, target: Any) -> Any:
    """The bounds of a function's argument, nothing of an exact one."""
    if type(x) in (list, tuple):
        return type(x)([_bounds(item, None) for item in x])
    if isinstance(x, Bounded):
        return target.bounds_of(x) if isinstance(target, Bounded) and x is not target else x.e
    if isinstance(x, (int, float, complex)):
        return 0.0
    return numpy.zeros_like(x, numpy.float64)


def _exact(x: Any) -> Any:
    """Something that decides (an index, a mask) and therefore has no bounds."""
    if isinstance(x, Bounded) or (type(x) in (list, tuple) and any(isinstance(item, Bounded) for item in x)):
        raise Unbounded("a decision")
    return x


ATTRIBUTES: Final = frozenset(words("shape ndim size dtype itemsize nbytes strides flags base setflags"))
VIEWS: Final = frozenset(words("T mT real imag"))
METHODS: Final = frozenset(words("reshape ravel transpose swapaxes copy diagonal squeeze take repeat flatten compress"))
# Functions that only move values, with the positions of the arguments that hold them.
MOVES: Final[dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(
        words(
            "flip fliplr flipud roll tile repeat reshape ravel transpose swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to rot90 "
            "concatenate stack vstack hstack column_stack split array_split hsplit take take_along_axis compress diagonal diag "
            "atleast_1d atleast_2d atleast_3d copy pad matrix_transpose permute_dims tril triu delete append resize real imag"
        ),
        (0,),
    ),
    **dict.fromkeys(words("copyto fill_diagonal"), (0, 1)),
    **dict.fromkeys(words("put putmask place put_along_axis"), (0, 2)),
    "append": (0, 1),
    "where": (1, 2),
}
WRITES: Final = frozenset(words("copyto fill_diagonal put putmask place put_along_axis"))


# Elementwise: (ufunc, result, operands) -> bound of every element ------------------------------------------------------------
def _corners(ufunc: Any, result: Any, *operands: Any) -> Any:
    """How far the exact function moves within the operands' bounds, which it does monotonically in each."""
    moved = numpy.zeros(result.shape)
    ends = [[plain(x)] if numpy.all(error(x) == 0) else [plain(x) - x.e, plain(x) + x.e] for x in operands]
    if all(len(end) == 1 for end in ends):
        return moved
    exact = ufunc(*[numpy.asarray(plain(x)).astype(numpy.float64) for x in operands])
    for corner in itertools.product(*ends):
        moved = numpy.maximum(moved, numpy.abs(ufunc(*[numpy.asarray(x).astype(numpy.float64) for x in corner]) - exact))
    if not numpy.isfinite(moved).all():
        raise Unbounded("near a pole")
    return moved


def _rounded(ufunc: Any, result: Any, *operands: Any) -> Any:
    """Exactly rounded real functions: equal operands give equal results.  The parts of complex sums likewise."""
    name = ufunc.__name__
    if result.dtype.kind == "c":
        if name in ("add", "subtract"):
            moved = sum([(x.e if isinstance(x, Bounded) else 0.0 * modulus(x)) for x in operands])
            one = numpy.where(moved.real > 0, moved.real + 2 * eps(result.dtype) * numpy.abs(result.real), 0.0)
            two = numpy.where(moved.imag > 0, moved.imag + 2 * eps(result.dtype) * numpy.abs(result.imag), 0.0)
            return one + 1j * two
        raise Unbounded(name)
    if any(numpy.asarray(plain(x)).dtype.kind == "c" for x in operands):
        raise Unbounded(name)
    if name == "divide" and not (modulus(operands[1]) > 2 * error(operands[1])).all():
        raise Unbounded("near a pole")
    moved = _corners(ufunc, result, *operands)
    return numpy.where(moved > 0, moved + 2 * eps(result.dtype) * modulus(result), 0.0)


def _math(ufunc: Any, result: Any, *operands: Any) -> Any:
    if result.dtype.kind == "c":
        raise Unbounded(ufunc.__name__)
    ulp = 1 if result.dtype.char == "e" else ULP  # halves are computed in single precision
    return _corners(ufunc, result, *operands) + 2 * ulp * eps(result.dtype) * modulus(result)


def _lipschitz(ufunc: Any, result: Any, *operands: Any) -> Any:
    """Functions no steeper than 1 in any operand."""
    if result.dtype.kind == "c" or any(numpy.asarray(plain(x)).dtype.kind == "c" for x in operands):
        raise Unbounded(ufunc.__name__)
    ulp = 1 if result.dtype.char == "e" else ULP
    least = 1.0 if ufunc.__name__.startswith("logadd") else 0.0  # the sum of logarithms cancels
    return sum(error(x) for x in operands) + 2 * ulp * eps(result.dtype) * numpy.maximum(modulus(result), least)


def _moving(ufunc: Any, result: Any, *operands: Any) -> Any:
    """Selections and signs: the bound of what may be selected."""
    if ufunc.__name__ in ("conjugate", "negative", "positive"):
        return numpy.abs(operands[0].e.real) + 1j * numpy.abs(operands[0].e.imag) if result.dtype.kind == "c" else operands[0].e
    if any(numpy.asarray(plain(x)).dtype.kind == "c" for x in operands):
        if ufunc.__name__ == "absolute":
            return error(operands[0]) + 2 * ULP * eps(result.dtype) * modulus(result)
        raise Unbounded(ufunc.__name__)
    return numpy.max(numpy.broadcast_arrays(*[error(x) + 0.0 * modulus(x) for x in operands]), axis=0)


def _multiply(ufunc: Any, result: Any, *operands: Any) -> Any:
    if result.dtype.kind != "c":
        return _rounded(ufunc, result, *operands)
    a, b = operands if len(operands) == 2 else operands * 2
    moved = modulus(a) * error(b) + modulus(b) * error(a) + error(a) * error(b)
    return (moved + 4 * eps(result.dtype) * modulus(a) * modulus(b)) * (1 + 1j)


def _divide(ufunc: Any, result: Any, a: Any, b: Any) -> Any:
    if result.dtype.kind != "c":
        return _rounded(ufunc, result, a, b)
    if not (modulus(b) > 2 * error(b) + 1e-3).all():
        raise Unbounded("near a pole")
    moved = (error(a) + modulus(result) * error(b)) / (modulus(b) - error(b))
    return (moved + COMPLEX_ULP * eps(result.dtype) * modulus(result)) * (1 + 1j)


Bound = Callable[..., Any]
UFUNCS: Final[dict[str, Bound]] = {
    **dict.fromkeys(words("add subtract sqrt"), _rounded),
    **dict.fromkeys(words("multiply square"), _multiply),
    **dict.fromkeys(words("divide true_divide"), _divide),
    **dict.fromkeys(words("negative positive absolute fabs maximum minimum fmax fmin conjugate conj"), _moving),
    **dict.fromkeys(
        words(
            "exp exp2 expm1 log log2 log10 log1p tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh cbrt "
            "deg2rad rad2deg power float_power"
        ),
        _math,
    ),
    **dict.fromkeys(words("sin cos hypot logaddexp logaddexp2"), _lipschitz),
}


# Reductions ----------------------------------------------------------------------------------------------------------------
def _only(x: Any) -> Bounded:
    if not isinstance(x, Bounded):
        raise Unbounded("the operand is exact")
    return x


def _count(x: Any, axis: Any) -> int:
    axes = range(x.v.ndim) if axis is None else numpy.atleast_1d(axis)
    return int(numpy.prod([x.v.shape[k] for k in axes]))


def _sum(name: str) -> Bound:
    def rule(x: Any, axis: Any = None, **kwargs: Any) -> Any:
        if kwargs.keys() - {"keepdims"}:
            raise Unbounded(name)
        x = _only(x)
        result = getattr(numpy, name)(x.v, axis=axis, **kwargs)
        # The smallest number more: the sign of a zero depends on the order, too.
        each = error(x) + (_count(x, axis) + 2) * eps(result.dtype) * modulus(x) + TINY
        moved = getattr(numpy, name)(each, axis=axis, **kwargs)
        return like(result, parts(moved, result.dtype))

    return rule


def _extreme(name: str) -> Bound:
    def rule(x: Any, axis: Any = None, **kwargs: Any) -> Any:
        x = _only(x)
        if kwargs.keys() - {"keepdims"} or x.v.dtype.kind == "c":
            raise Unbounded(name)
        return like(getattr(numpy, name)(x.v, axis=axis, **kwargs), numpy.max(error(x), axis=axis, initial=0.0, **kwargs))

    return rule


def _product(name: str) -> Bound:
    def rule(a: Any, b: Any) -> Any:
        function = getattr(numpy, name)
        result = function(plain(a), plain(b))
        n = numpy.shape(plain(a))[-1]
        ea, eb = error(a) + 0.0 * modulus(a), error(b) + 0.0 * modulus(b)
        moved = function(modulus(a), eb) + function(ea, modulus(b)) + function(ea, eb)
        moved = moved + 2 * (n + 2) * eps(result.dtype) * function(modulus(a), modulus(b))
        return like(result, parts(moved, result.dtype))

    return rule


RULES: Final[dict[str, Bound]] = {
    **{name: _sum(name) for name in ("sum", "mean", "cumsum")},
    **{name: _extreme(name) for name in ("max", "min", "amax", "amin")},
    **{name: _product(name) for name in ("matmul", "dot", "outer")},
}
METHOD_RULES: Final = {
    ("add", "reduce"): "sum",
    ("add", "accumulate"): "cumsum",
    ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min",
}
