"""What the ufuncs do, in one line each.

In: a ufunc.  Out: its help text.  Promise: every ufunc of NumPy's namespace has a line; the module is loaded when one is read.
"""

from __future__ import annotations

from typing import Any, Final

from lazynp.namespace.docstrings import completed, summary, when

LINES: Final[dict[str, str]] = {
    "absolute": "Compute the absolute value of each element.",
    "add": "Add arrays, element by element.",
    "arccos": "Compute the angle in [0, pi] whose cosine each element is.",
    "arccosh": "Compute the inverse hyperbolic cosine of each element.",
    "arcsin": "Compute the angle in [-pi/2, pi/2] whose sine each element is.",
    "arcsinh": "Compute the inverse hyperbolic sine of each element.",
    "arctan": "Compute the angle in [-pi/2, pi/2] whose tangent each element is.",
    "arctan2": "Compute the angle of each point (x2, x1), in (-pi, pi].",
    "arctanh": "Compute the inverse hyperbolic tangent of each element.",
    "bitwise_and": "Compute the bits that are set in both of two integers.",
    "bitwise_count": "Count the bits that are set in the absolute value of each integer.",
    "bitwise_or": "Compute the bits that are set in at least one of two integers.",
    "bitwise_xor": "Compute the bits that are set in exactly one of two integers.",
    "cbrt": "Compute the cube root of each element.",
    "ceil": "Round each element up to an integer.",
    "conjugate": "Compute the complex conjugate of each element.",
    "copysign": "Give each element of x1 the sign of x2's.",
    "cos": "Compute the cosine of each element, an angle in radians.",
    "cosh": "Compute the hyperbolic cosine of each element.",
    "deg2rad": "Convert angles from degrees to radians.",
    "degrees": "Convert angles from radians to degrees.",
    "divide": "Divide x1 by x2, element by element.",
    "divmod": "Compute floor quotient and remainder, element by element.",
    "equal": "Tell whether x1 == x2, element by element.",
    "exp": "Compute e to the power of each element.",
    "exp2": "Compute 2 to the power of each element.",
    "expm1": "Compute exp(x) - 1 of each element, accurate near 0.",
    "fabs": "Compute the absolute value of each real element, as a floating-point number.",
    "float_power": "Raise x1 to the power x2, at least in double precision.",
    "floor": "Round each element down to an integer.",
    "floor_divide": "Divide x1 by x2 and round down, element by element.",
    "fmax": "Take the larger of two elements; a NaN loses against a number.",
    "fmin": "Take the smaller of two elements; a NaN loses against a number.",
    "fmod": "Compute the remainder of x1 / x2 that has the sign of x1.",
    "frexp": "Split each element into mantissa and exponent of 2.",
    "gcd": "Compute the greatest common divisor, element by element.",
    "greater": "Tell whether x1 > x2, element by element.",
    "greater_equal": "Tell whether x1 >= x2, element by element.",
    "heaviside": "Compute the step function: 0 below 0, x2 at 0, 1 above.",
    "hypot": "Compute the hypotenuse sqrt(x1**2 + x2**2) without overflow on the way.",
    "invert": "Invert each bit of integers, or each truth value.",
    "isfinite": "Tell whether each element is finite: no infinity, no NaN.",
    "isinf": "Tell whether each element is an infinity.",
    "isnan": "Tell whether each element is NaN.",
    "isnat": "Tell whether each date or duration is NaT.",
    "lcm": "Compute the least common multiple, element by element.",
    "ldexp": "Compute x1 * 2**x2, element by element.",
    "left_shift": "Shift the bits of x1 by x2 to the left, filling up with zeros.",
    "less": "Tell whether x1 < x2, element by element.",
    "less_equal": "Tell whether x1 <= x2, element by element.",
    "log": "Compute the natural logarithm of each element.",
    "log10": "Compute the logarithm to base 10 of each element.",
    "log1p": "Compute log(1 + x) of each element, accurate near 0.",
    "log2": "Compute the logarithm to base 2 of each element.",
    "logaddexp": "Compute log(exp(x1) + exp(x2)) without overflow on the way.",
    "logaddexp2": "Compute log2(2**x1 + 2**x2) without overflow on the way.",
    "logical_and": "Tell whether both elements are true.",
    "logical_not": "Tell whether each element is false.",
    "logical_or": "Tell whether at least one of two elements is true.",
    "logical_xor": "Tell whether exactly one of two elements is true.",
    "matmul": "Multiply matrices, the last two axes of the operands.",
    "matvec": "Multiply matrices with vectors.",
    "maximum": "Take the larger of two elements; a NaN wins.",
    "minimum": "Take the smaller of two elements; a NaN wins.",
    "modf": "Split each element into fractional and integral part.",
    "multiply": "Multiply arrays, element by element.",
    "negative": "Negate each element.",
    "nextafter": "Compute the floating-point number next to x1 towards x2.",
    "not_equal": "Tell whether x1 != x2, element by element.",
    "positive": "Return each element unchanged: +x.",
    "power": "Raise x1 to the power x2, element by element.",
    "rad2deg": "Convert angles from radians to degrees.",
    "radians": "Convert angles from degrees to radians.",
    "reciprocal": "Compute 1 / x of each element.",
    "remainder": "Compute the remainder of x1 / x2 that has the sign of x2.",
    "right_shift": "Shift the bits of x1 by x2 to the right.",
    "rint": "Round each element to the nearest integer, halves to even.",
    "sign": "Compute the sign of each element: -1, 0 or 1, of complex numbers x / abs(x).",
    "signbit": "Tell whether the sign bit of each element is set.",
    "sin": "Compute the sine of each element, an angle in radians.",
    "sinh": "Compute the hyperbolic sine of each element.",
    "spacing": "Compute the distance from each element to the next floating-point number away from 0.",
    "sqrt": "Compute the square root of each element.",
    "square": "Compute the square of each element.",
    "subtract": "Subtract x2 from x1, element by element.",
    "tan": "Compute the tangent of each element, an angle in radians.",
    "tanh": "Compute the hyperbolic tangent of each element.",
    "trunc": "Round each element towards 0 to an integer.",
    "vecdot": "Compute the dot products of vectors, the first ones conjugated.",
    "vecmat": "Multiply vectors, conjugated, with matrices.",
}


def of_ufunc(function: Any) -> str | None:
    """Make the help text of a ufunc: NumPy's line with the signature, ours with what it does, NumPy's sections."""
    name, theirs = function.__name__, (function._numpy.__doc__ or "").strip()
    answered = getattr(type(function), "answered", None) or ("fallback" if function._lower is None else getattr(function._lower, "answered", None))
    signature = theirs.partition("\n\n")[0] if theirs.startswith(f"{name}(") else ""
    own = LINES.get(name) or (summary(theirs) if signature else theirs)
    text = completed(name, own, when(name, answered), [theirs])
    return f"{signature}\n\n{text}" if signature else text
