"""NumPy as the oracle, with a tolerance of its own for every element.

In: a function of the module ``np``, and another's results.  Out: what is wrong with them.  The function runs
several times more with a NumPy whose inexact functions (exp, sum, matmul, ...) each return a result moved by the error they are
allowed; what moves with them is the tolerance.  An element that no such error can reach must be equal, bit for bit, and one that
an error can flip (``floor`` of a sum) is not judged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from conformance import conflicts

Array = np.ndarray[Any, Any]
Amplitude = Callable[..., Any]

def words(text: str) -> list[str]:
    return text.split()


SAFETY: Final = 3.0  # errors at several places may add up where the moved runs let them cancel
# Units in the last place: what lazynp promises, and what NumPy's own loops keep.
ULP: Final = dict.fromkeys(
    words("exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt "
    "power float_power hypot arctan2 logaddexp logaddexp2 deg2rad rad2deg degrees radians sinc i0 geomspace logspace"),
    4,
)
COMPLEX_ULP: Final = 16  # of the modulus: cancellation inside may cost one part all its digits


def _eps(x: Any) -> float:
    return float(np.finfo(np.asarray(x).dtype).eps) if np.asarray(x).dtype.kind in "fc" else 0.0


def _modulus(x: Any) -> Any:
    """Absolute values wide enough not to overflow."""
    x = np.asarray(x)
    return np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))


def _ulps(name: str) -> Amplitude:
    def amplitude(result: Any, *args: Any, **kwargs: Any) -> Any:
        size = _modulus(result)
        least = _eps(result) if name.startswith("logadd") else 0.0  # the sum of logarithms cancels
        ulp = 1 if np.asarray(result).dtype.char == "e" else ULP[name]  # halves are computed in single precision
        return ulp * (1 + 3 * (np.asarray(result).dtype.kind == "c")) * _eps(result) * np.maximum(size, least)

    return amplitude


def _complex_only(name: str) -> Amplitude:
    def amplitude(result: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(np.asarray(a).dtype.kind == "c" for a in args):
            return 0.0
        if name == "multiply":
            return 4 * _eps(result) * _modulus(args[0]) * _modulus(args[-1])
        return COMPLEX_ULP * _eps(result) * _modulus(result)

    return amplitude


def _additive(name: str) -> Amplitude:
    """n * eps * the same reduction of the absolute values."""

    def amplitude(result: Any, *args: Any, **kwargs: Any) -> Any:
        operands = [_modulus(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in args]
        kwargs = {key: value for key, value in kwargs.items() if key != "dtype"}
        count = max([np.size(a) for a in args if isinstance(a, (np.ndarray, np.generic))])
        return (count + 2) * _eps(result) * getattr(np, name)(*operands, **kwargs)

    return amplitude


def _product(result: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return 4 * (np.size(x) + 2) * _eps(result) * _modulus(result)


def _variance(result: Any, x: Any, **kwargs: Any) -> Any:
    mean_square = np.mean(_modulus(x) ** 2, **{k: v for k, v in kwargs.items() if k in ("axis", "keepdims")})
    eps = _eps(result) * (np.size(x) + 4)
    return eps * _modulus(result) + eps * eps * mean_square + eps * np.finfo(float).tiny


def _deviation(result: Any, x: Any, **kwargs: Any) -> Any:
    variance = _modulus(result) ** 2
    return np.sqrt(variance + _variance(variance.astype(np.asarray(result).real.dtype), x, **kwargs)) - np.sqrt(variance) + 4 * _eps(
        result
    ) * _modulus(result)


AMPLITUDES: Final[dict[str, Amplitude]] = {
    **{name: _ulps(name) for name in ULP},
    **{name: _complex_only(name) for name in ("multiply", "divide", "true_divide", "absolute", "abs", "sqrt", "square", "reciprocal")},
    **{name: _additive(name) for name in words("sum mean cumsum nansum nanmean average matmul dot vdot inner tensordot einsum trace")},
    **dict.fromkeys(("prod", "cumprod", "nanprod"), _product),
    "var": _variance,
    "std": _deviation,
}


class Standard:
    """``numpy``, with the array API standard's values for the arguments that ``conformance/conflicts.md`` lists."""

    def __getattr__(self, name: str) -> Any:
        return conflicts.function(name)


class Moved:
    """The same, with the results of its inexact functions moved by what they are allowed."""

    def __init__(self, direction: Callable[[tuple[int, ...]], Any]) -> None:
        self._direction = direction

    def __getattr__(self, name: str) -> Any:
        function = conflicts.function(name)
        amplitude = AMPLITUDES.get(name)
        if amplitude is None:
            return function

        def moved(*args: Any, **kwargs: Any) -> Any:
            out = kwargs.get("out")
            result = function(*args, **kwargs)
            if np.asarray(result).dtype.kind not in "fc":
                return result
            kwargs.pop("out", None)
            size = amplitude(result, *args, **kwargs)
            dtype = np.asarray(result).dtype
            step = np.asarray(self._direction(np.shape(result)) * size) * (1 + 1j if dtype.kind == "c" else 1)
            shifted = np.asarray(result + step).astype(dtype)
            shifted = np.where(np.isfinite(result) & np.isfinite(shifted) & (result != 0), shifted, result)
            if out is not None:
                out[...] = shifted
                return out
            if isinstance(result, np.ndarray):
                # The memory order of the result is part of what follows (views, reshape).
                copy = np.empty_like(result)
                copy[...] = shifted
                return copy
            return shifted[()]

        return moved


def _directions() -> list[Callable[[tuple[int, ...]], Any]]:
    random = np.random.default_rng(0)
    return [lambda shape: 1.0, lambda shape: -1.0, *[lambda shape: random.choice([-1.0, 1.0], shape) for _ in range(2)]]


@dataclass
class Expected:
    """One value of the oracle: ``value``, and the tolerance of each element (NaN: not judged)."""

    value: Any
    tolerance: Any

    def complaint(self, got: Any) -> str | None:
        """What is wrong with ``got``, a NumPy array or scalar."""
        value, got = np.asarray(self.value), np.asarray(got)
        if got.dtype != value.dtype:
            return f"dtype {got.dtype}, expected {value.dtype}"
        if got.shape != value.shape:
            return f"shape {got.shape}, expected {value.shape}"
        if value.dtype.kind not in "fc":
            wrong = (got != value) & (self.tolerance == 0)
        else:
            with np.errstate(all="ignore"):
                near = np.abs(got.astype(np.complex128) - value.astype(np.complex128)) <= self.tolerance
            wrong = ~(_equal(got, value) | near | np.isnan(self.tolerance))
        if not wrong.any():
            return None
        at = tuple([int(i) for i in np.argwhere(wrong)[0]])
        tolerance = np.broadcast_to(self.tolerance, value.shape)[at]
        return f"element {at} is {got[at]!r}, expected {value[at]!r} within {tolerance} ({int(wrong.sum())} of {wrong.size} wrong)"


def _equal(a: Array, b: Array) -> Array:
    if a.dtype.kind == "c":
        return _equal(a.real, b.real) & _equal(a.imag, b.imag)
    return (a == b) | (np.isnan(a) & np.isnan(b))


def complaints(program: Callable[[Any], dict[str, Any]], values: dict[str, Any], got: dict[str, Any]) -> dict[str, str]:
    """What is wrong with the results ``got`` of ``program``, by name; ``values`` are NumPy's.

    Tolerances cost five more runs, and are asked for only where something is not equal.
    """
    doubtful = [name for name in values if Expected(values[name], np.zeros(np.shape(values[name]))).complaint(got[name])]
    if not doubtful:
        return {}
    expected = judge(program, values)
    return {name: text for name in doubtful if (text := expected[name].complaint(got[name])) is not None}


def judge(program: Callable[[Any], dict[str, Any]], values: dict[str, Any]) -> dict[str, Expected]:
    """The values of a program with their tolerances."""
    moved: list[dict[str, Any]] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for direction in _directions():
            try:
                moved.append(program(Moved(direction)))
            except (IndexError, ValueError, ZeroDivisionError, OverflowError, np.linalg.LinAlgError):
                # A moved value became an index or a shape: nothing that depends on it can be judged.
                moved.append({})
        return {name: Expected(value, _tolerance(value, [m.get(name) for m in moved])) for name, value in values.items()}


def _tolerance(value: Any, moved: list[Any]) -> Any:
    value = np.asarray(value)
    tolerance = np.zeros(value.shape)
    for other in moved:
        if other is None or np.shape(other) != value.shape or np.asarray(other).dtype != value.dtype:
            return np.full(value.shape, np.nan)
        other = np.asarray(other)
        if value.dtype.kind in "fc":
            wide = np.complex128 if value.dtype.kind == "c" else np.float64
            # Equal covers infinities and NaNs, whose difference is NaN.
            difference = np.where(_equal(other, value), 0.0, np.abs(other.astype(wide) - value.astype(wide)))
            tolerance = np.maximum(tolerance, SAFETY * difference)
        else:
            tolerance = np.where(other != value, np.nan, tolerance)
    # Finite here, infinite or NaN there: not judged.
    return np.where(np.isfinite(tolerance), tolerance, np.nan)
