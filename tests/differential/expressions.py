"""Statements of random programs that make a new name.

In: a ``Writer``.  Out: one line of source, or None where the names do not serve.  Every function writes one kind of statement.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

from tests.differential.bounds import plain, words
from tests.differential.operands import (
    advanced_key,
    averages,
    condition,
    converts,
    counts,
    dtype_of,
    exact_call,
    has_axes,
    index_text,
    is_array,
    lens,
    no_tied_zeros,
    partner,
    source,
)
from tests.differential.writer import Writer

UNARY: Final = words(
    "negative absolute sign square positive sqrt floor ceil trunc rint reciprocal isnan isinf isfinite signbit logical_not invert "
    "conjugate fabs spacing bitwise_count"
)

BINARY: Final = words(
    "add add add subtract subtract multiply multiply divide floor_divide remainder fmod maximum minimum fmax fmin less less_equal "
    "greater greater_equal equal not_equal copysign nextafter bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm "
    "logical_and logical_or logical_xor heaviside power"
)

MATH: Final = words(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt deg2rad rad2deg "
    "exp sin sqrt square absolute conjugate"
)

MATH_BINARY: Final = words("add subtract multiply divide hypot arctan2 logaddexp logaddexp2 power maximum minimum float_power")

OPERATORS: Final = words("+ + - * * / // % < <= > >= == != & | ^ << >>")

NAMES_OF: Final = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder", "<": "less", "**": "power",
    "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "<<": "left_shift", ">>": "right_shift",
}  # fmt: skip



# Views --------------------------------------------------------------------------------------------------------------------
def view(w: Writer) -> str | None:
    name = w.name(is_array)
    if name is None:
        return None
    text, _ = lens(w, name, w.value(name), 3)
    return f"{w.fresh()} = {text}" if text != name else None


def gathered(w: Writer) -> str | None:
    found = source(w, has_axes)
    if found is None:
        return None
    text, x = found
    if x.dtype.kind in "iuf" and w.chance(0.2) and not w.oracle.inexact:
        return f"{w.fresh()} = {text}[{text} > {w.among(['0', '1', '2'])}]"
    key = advanced_key(w, x)
    if key is None:
        return None
    if w.chance(0.1) and not w.oracle.inexact:
        return f"{w.fresh()} = np.take({text}, {index_text(w, x.shape[0], False)}, axis=0, mode={w.among(['raise', 'wrap', 'clip'])!r})"
    return f"{w.fresh()} = {text}[{key}]"


def element(w: Writer) -> str | None:
    """A scalar of an array, as a name."""
    found = source(w, lambda x: has_axes(x) and x.size > 0)
    if found is None:
        return None
    text, x = found
    return f"{w.fresh()} = {text}[{', '.join([str(w.number(-n, n - 1)) for n in x.shape])}]"


# Elementwise --------------------------------------------------------------------------------------------------------------
def unary(w: Writer) -> str | None:
    found = source(w)
    if found is None:
        return None
    name = w.among(MATH if w.oracle.inexact else UNARY)
    if not w.oracle.inexact and not exact_call(w, name, found[1]):
        return None
    return f"{w.fresh()} = np.{name}({found[0]})"


def binary_text(w: Writer, x: tuple[str, Any]) -> str | None:
    a, b = x, partner(w, x[1])
    if w.chance(0.3):
        a, b = b, a
    name = w.among(MATH_BINARY if w.oracle.inexact and w.chance(0.7) else BINARY)
    if w.oracle.inexact or exact_call(w, name, a[1], b[1]):
        if w.chance(0.06):
            return f"np.{name}.outer({a[0]}, {b[0]})"
        return f"np.{name}({a[0]}, {b[0]})"
    return None


def operator_text(w: Writer, x: tuple[str, Any]) -> str | None:
    a, b = x, partner(w, x[1])
    sign = w.among(OPERATORS[:9]) if w.oracle.inexact else w.among(OPERATORS)
    if sign in "<<>>" and len(sign) == 2 and not all(numpy.asarray(v).dtype.kind in "biu" for v in (a[1], b[1])):
        sign = "+"
    if not w.oracle.inexact and not exact_call(w, NAMES_OF[sign], a[1], b[1]):
        return None
    if w.chance(0.3):
        a, b = b, a
    return f"{a[0]} {sign} {b[0]}"


def binary(w: Writer) -> str | None:
    found = source(w)
    if found is None:
        return None
    text = operator_text(w, found) if w.chance(0.5) else binary_text(w, found)
    return text and f"{w.fresh()} = {text}"


def power(w: Writer) -> str | None:
    found = source(w)
    if found is None or (found[1].dtype.kind == "c" and not w.oracle.inexact):
        return None
    exponents = ["2", "1", "0", "3", "-1"] if found[1].dtype.kind in "iu" else ["2", "1", "0", "0.5", "-1"]
    return f"{w.fresh()} = {found[0]} ** {w.among(exponents)}"


def where(w: Writer) -> str | None:
    found = source(w)
    if found is None:
        return None
    return f"{w.fresh()} = np.where({condition(w, found[1])}, {found[0]}, {partner(w, found[1])[0]})"


def astype(w: Writer) -> str | None:
    found = source(w)
    to = dtype_of(w)
    if found is None or not converts(found[1], to) or (found[1].dtype.kind == "c" and to.kind not in "cb"):
        return None
    options = w.among(["", "", ", copy=False", ", order='F'", ", casting='same_kind'"]) if not w.oracle.inexact else ""
    return f"{w.fresh()} = {found[0]}.astype({to.char!r}{options})"


# Along axes ---------------------------------------------------------------------------------------------------------------
def axis_of(w: Writer, ndim: int) -> Any:
    if not ndim or w.chance(0.3):
        return None
    if w.chance(0.2):
        return tuple([axis for axis in range(ndim) if w.chance(0.5)])
    return w.number(-ndim, ndim - 1)


def reduction(w: Writer) -> str | None:
    found = source(w)
    if found is None:
        return None
    text, x = found
    name = w.among(words("sum sum prod max min any all mean argmax argmin count_nonzero ptp"))
    if w.oracle.inexact:
        name = w.among(words("sum sum mean max min"))
        if name in ("max", "min") and not no_tied_zeros(plain(x)):
            return None
    elif name in ("sum", "prod", "mean", "ptp"):
        if not counts(x) or (name == "mean" and x.dtype.kind == "c"):
            return None
    elif name in ("max", "min", "argmax", "argmin") and (x.dtype.kind == "c" or not no_tied_zeros(x)):
        return None
    if name == "mean" and not averages(x):
        return None
    axis = axis_of(w, x.ndim)
    if name in ("argmax", "argmin") and isinstance(axis, tuple):
        axis = 0
    keep = ", keepdims=True" if w.chance(0.25) and name != "ptp" else ""
    call = f"{text}.{name}(" if w.chance(0.4) and name not in ("count_nonzero", "ptp") and is_array(x) else f"np.{name}({text}, "
    if w.chance(0.2) and not w.oracle.inexact and x.dtype.kind in "biu":
        if name in ("sum", "prod", "max", "min"):
            keep += w.among([f", where={condition(w, x)}, initial=1", ", initial=2", ", dtype='i8'" if name in ("sum", "prod") else ""])
        elif name in ("any", "all"):
            keep += f", where={condition(w, x)}"
    return f"{w.fresh()} = {call}axis={axis}{keep})"


def scan(w: Writer) -> str | None:
    found = source(w, has_axes)
    if found is None:
        return None
    text, x = found
    name, axis = w.among(["cumsum", "cumprod"]), w.among([None, *range(x.ndim)])
    if w.oracle.inexact:
        return f"{w.fresh()} = np.cumsum({text}, axis={axis})"
    return f"{w.fresh()} = np.{name}({text}, axis={axis})" if counts(x) else None


def methods(w: Writer) -> str | None:
    """Methods of ufuncs."""
    found = source(w, has_axes)
    if found is None:
        return None
    text, x = found
    axis = w.number(-x.ndim, x.ndim - 1)
    name = w.among(words("add multiply maximum minimum logical_and logical_or bitwise_or subtract"))
    if w.oracle.inexact:
        name = w.among(["add", "maximum"])
    elif (
        (name in ("add", "multiply", "subtract") and not counts(x))
        or (name in ("maximum", "minimum") and (x.dtype.kind == "c" or not no_tied_zeros(x)))
        or (name == "bitwise_or" and x.dtype.kind not in "biu")
    ):
        return None
    forms = [f"np.{name}.reduce({text}, axis={axis})", f"np.{name}.accumulate({text}, axis={axis})"]
    if x.shape[axis] and not w.oracle.inexact:
        n = x.shape[axis]
        forms.append(f"np.{name}.reduceat({text}, [{w.number(0, n - 1)}, {w.number(0, n - 1)}], axis={axis})")
        if name in ("add", "maximum"):
            forms.append(f"np.{name}.reduce({text}, axis={axis}, initial=1)")
    return f"{w.fresh()} = {w.among(forms)}"


def moved(w: Writer) -> str | None:
    """Functions that rearrange values into new memory."""
    found = source(w, has_axes)
    if found is None:
        return None
    text, x = found
    axis = w.number(-x.ndim, x.ndim - 1)
    other = w.name(lambda y: y.shape == x.shape and has_axes(y)) or text
    forms = [
        f"np.roll({text}, {w.number(-3, 5)}, axis={axis})",
        f"np.roll({text}, 2)",
        f"np.tile({text}, 2)",
        f"np.repeat({text}, 2, axis={axis})",
        f"np.pad({text}, {w.number(0, 2)})",
        f"{text}.copy({w.among('CFKA')!r})",
        f"np.concatenate([{text}, {other}], axis={axis})",
        f"np.stack([{text}, {other}], axis={axis})",
        f"np.concatenate([{other}, {text}, {text}])",
        f"np.take({text}, [0, -1], axis={axis})",
        f"np.append({text}, {other})",
        f"np.vstack([{text}, {other}])",
        f"np.hstack([{text}, {other}])",
        f"{text}.flatten()",
    ]
    if x.ndim == 2:
        forms += [f"np.tril({text})", f"np.triu({text}, 1)"]
    if not w.oracle.inexact:
        forms += [
            f"np.select([{condition(w, x)}, {condition(w, x)}], [{text}, {other}], 1)",
            f"np.insert({text}, 0, 1, axis={axis})",
            f"np.delete({text}, 0, axis={axis})",
            f"np.searchsorted([1, 2, 5], {text}, {w.among(['left', 'right'])!r})",
            f"np.isin({text}, [0, 1, 2])",
            f"np.divmod({text}, 3)[{w.number(0, 1)}]",
            f"np.round({text}, {w.number(-1, 1)})",
            f"np.add({text}, {other}, dtype='f8', casting='same_kind')",
            f"np.choose({condition(w, x)}, [{text}, {other}])",
        ]
    if x.dtype.kind in "biu" and not w.oracle.inexact:
        forms += [f"np.diff({text}, axis={axis})", f"np.unique({text})", f"np.bincount(np.ravel({text}) & 7)"]
    if not w.oracle.inexact and x.dtype.kind in "biuf" and no_tied_zeros(x):
        forms += [
            f"np.sort({text}, axis={axis})",
            f"np.argsort({text}, axis={axis}, kind='stable')",
            f"np.clip({text}, 1, 3)",
            f"np.nonzero({text})[0].copy()",
            f"np.take_along_axis({text}, np.argsort({text}, axis={axis}, kind='stable'), axis={axis})",
            f"np.compress([True, False, True][:{x.shape[axis]}], {text}, axis={axis})",
        ]
    return f"{w.fresh()} = {w.among(forms)}"


def product(w: Writer) -> str | None:
    a = source(w, lambda x: has_axes(x) and (counts(x) or w.oracle.inexact))
    if a is None:
        return None
    n, kind = a[1].shape[-1], a[1].dtype

    def exact(x: Any) -> bool:
        # Signed and unsigned make floats, of which large ones are rounded.
        return counts(x) and (numpy.result_type(kind, x.dtype).kind in "biu" or (kind.kind not in "biu" and x.dtype.kind not in "biu"))

    b = source(w, lambda x: is_array(x) and x.ndim in (1, 2) and x.shape[0] == n and (w.oracle.inexact or exact(x)))
    return b and f"{w.fresh()} = {w.among(['np.matmul({}, {})', 'np.dot({}, {})', '{} @ {}']).format(a[0], b[0])}"
