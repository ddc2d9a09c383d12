"""What random programs are made of: tables of statements.

In: a ``Writer``, with the names there are and their values under NumPy.  Out: one line of source, or None where the names do not
serve.  Every function here writes one kind of statement; ``GRAMMARS`` says how often.  A statement may raise: that is a line like
any other.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy

from tests.differential.writer import Program, Rule, Writer

Array = Any


def words(text: str) -> list[str]:
    return text.split()


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
AUGMENTED: Final = words("+ + - * * / // % & | ^ **")
FLOATS: Final = [0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 0.1, 100.0, -0.0, 1e-5, 1e30, float("inf"), float("-inf"), float("nan")]
TAME: Final = [0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 0.1, 0.7, 1.25, -0.4, 3.3]
NUMBERS: Final = ["0", "1", "2", "-1", "3", "0.5", "2.0", "-1.5", "True"]
ODD_NUMBERS: Final = ["nan", "1j", "300", "1e10", "np.float32(0.5)", "np.int8(3)", "np.float64(2.5)", "np.uint8(200)", "-0.0", "10**20"]


# What is asked of a name ---------------------------------------------------------------------------------------------------
def is_array(x: Any) -> bool:
    return isinstance(x, numpy.ndarray)


def has_axes(x: Any) -> bool:
    return is_array(x) and x.ndim > 0


def kind(letters: str) -> Callable[[Any], bool]:
    return lambda x: x.dtype.kind in letters


def fits(x: Any, shape: tuple[int, ...]) -> bool:
    """Whether ``x`` broadcasts against ``shape``."""
    return all(n == m or 1 in (n, m) for n, m in zip(numpy.shape(x)[::-1], shape[::-1], strict=False))


def fits_into(x: Any, shape: tuple[int, ...]) -> bool:
    """Whether ``x`` can be assigned to ``shape``."""
    return numpy.ndim(x) <= len(shape) and all(n in (m, 1) for n, m in zip(numpy.shape(x)[::-1], shape[::-1], strict=False))


def converts(x: Any, dtype: Any) -> bool:
    """Whether every value has one meaning as ``dtype``: what is out of range of an integer type is up to the processor."""
    x = numpy.asarray(x)
    if x.dtype.kind not in "fc" or dtype.kind not in "iu" or not x.size:
        return True
    return bool(numpy.isfinite(x).all() and (x.real >= 0).all() and (x.real <= 100).all())


def counts(x: Any) -> bool:
    """Whether sums and products of these values are exact in any order: they are small whole numbers."""
    if x.dtype.kind in "biu":
        return True
    most = 30 if x.dtype.char == "e" else 2000
    whole = (x.real == numpy.rint(x.real)).all() and (x.imag == numpy.rint(x.imag)).all()
    return bool(whole and (numpy.abs(x.real) + numpy.abs(x.imag)).sum() < most and not numpy.signbit(x.real).any())


def no_tied_zeros(*values: Any) -> bool:
    """Whether the sign of a zero cannot depend on which of two equal ones was taken."""
    signs = [numpy.signbit(x[x == 0]) for x in map(numpy.asarray, values) if x.dtype.kind == "f"]
    found = numpy.concatenate(signs) if signs else numpy.zeros(0, bool)
    return bool(found.all() or not found.any())


# Inputs ------------------------------------------------------------------------------------------------------------------
def literal(w: Writer, shape: tuple[int, ...], dtype: Any) -> str:
    """The text of a NumPy array."""
    size = prod(shape)
    values: list[Any]
    match dtype.kind:
        case "b":
            values = [w.chance(0.5) for _ in range(min(size, 7))]
        case "i" | "u":
            values = [w.number(0 if dtype.kind == "u" or w.chance(0.7) else -9, 9) for _ in range(min(size, 12))]
            if w.chance(0.1):
                values = [*values[:3], int(numpy.iinfo(dtype).max), int(numpy.iinfo(dtype).min)]
        case _:
            some = TAME if w.oracle.inexact else [0.0, 1.0, 2.0, 3.0] if w.chance(0.5) else TAME if w.chance(0.6) else FLOATS
            values = [65504.0 if v == 1e30 and dtype.char == "e" else v for v in (w.among(some) for _ in range(min(size, 12)))]
            if dtype.kind == "c":
                values = [f"complex({v}, {w.among(some)})" for v in values]
    text = f"numpy.array([{', '.join(map(str, values))}], {dtype.char!r})"
    return f"numpy.resize({text}, {shape})" if shape != (len(values),) else text


def shape_of(w: Writer) -> tuple[int, ...]:
    """A shape of the program's extents."""
    if w.chance(0.08):
        return w.among([(), (1,), (0,), (7,), (2, 2)])
    first = w.number(0, len(w.extents) - 1) if w.chance(0.5) else 0
    return tuple([n if w.chance(0.92) else 1 for n in w.extents[first:]])


def dtype_of(w: Writer) -> Any:
    return numpy.dtype(w.among(w.dtypes) if w.chance(0.8) else w.among("dfFD" if w.oracle.inexact else "?bhilBHILefdFD"))


def make(w: Writer) -> str:
    shape, dtype = shape_of(w), dtype_of(w)
    size = prod(shape)
    forms = [f"np.array({literal(w, shape, dtype)})"] * 5 + [
        f"np.arange({size}, dtype={dtype.char!r}).reshape({shape})" if dtype.char != "?" else f"np.ones({shape}, '?')",
        f"np.zeros({shape}, {dtype.char!r})",
        f"np.ones({shape}, {dtype.char!r}, order='F')",
        f"np.full({shape}, {w.number(0, 3)}, {dtype.char!r})",
        f"np.array({literal(w, shape, dtype)}, order='F')",
        f"np.asfortranarray({literal(w, shape, dtype)})",
        f"np.eye({w.extents[0]}, dtype={dtype.char!r})",
        f"np.array({literal(w, shape, dtype)}).T",
    ]
    return f"{w.fresh()} = {w.among(forms)}"


# Views ---------------------------------------------------------------------------------------------------------------------
def slice_text(w: Writer, n: int) -> str:
    start, stop = [w.among(["", "", str(w.number(-n - 1, n + 1))]) for _ in range(2)]
    step = w.among(["", "", "", ":2", ":-1", ":-1", ":3", ":-2"])
    return f"{start}:{stop}{step}"


def basic_key(w: Writer, shape: tuple[int, ...]) -> str:
    parts = []
    for n in shape:
        choice = w.number(0, 7)
        if choice == 0 and n:
            parts.append(str(w.number(-n, n - 1)))
        elif choice <= 2:
            parts.append(":")
        elif choice == 3:
            parts.append("1:")
        elif choice == 4:
            parts.append(":-1")
        else:
            parts.append(slice_text(w, n))
    if parts and w.chance(0.25):
        parts = parts[: w.number(1, len(parts))]
    if w.chance(0.12):
        parts.insert(w.number(0, len(parts)), "None")
    if w.chance(0.12) or not parts:
        parts.insert(w.number(0, len(parts)) if len(parts) < len(shape) or not parts else len(parts), "...")
    if w.chance(0.015):
        parts.insert(0, w.among(["99", "-99", ":", "1.5"]))
    return ", ".join(parts)


def new_shape(w: Writer, size: int) -> Any:
    shapes: list[Any] = [(-1,), (size,), (1, size), (size, 1), -1, (-1, 1)]
    shapes += [(n, size // n) for n in (2, 3, 4, 6) if size % n == 0] * 2 + [(2, -1, 3)] * (size % 6 == 0 and size > 0)
    return (7, 5) if w.chance(0.02) else w.among(shapes)


def one_lens(w: Writer, text: str, x: Array) -> str:
    """One view (sometimes a copy) of an array."""
    ndim, shape = x.ndim, x.shape
    if not ndim:
        return w.among([f"{text}[()]", f"{text}[...]", f"{text}[None]", f"{text}.reshape(1)", f"{text}.view()", f"{text}.T", f"{text}.real"])
    if w.chance(0.45):
        return f"{text}[{basic_key(w, shape)}]"
    a, b = w.number(-ndim, ndim - 1), w.number(0, ndim - 1)
    order = tuple(w.random.sample(range(ndim), ndim))
    wider = (2, *[3 if n == 1 and w.chance(0.5) else n for n in shape])
    forms = [
        f"{text}.T",
        f"{text}.T",
        f"{text}.reshape({new_shape(w, x.size)})",
        f"{text}.reshape({new_shape(w, x.size)})",
        f"{text}.reshape({new_shape(w, x.size)}, order={w.among('FA')!r})",
        f"np.reshape({text}, {new_shape(w, x.size)})",
        f"{text}.ravel()",
        f"{text}.ravel({w.among('FKA')!r})",
        f"np.ravel({text})",
        f"{text}.transpose({order})",
        f"np.transpose({text}, {order})",
        f"{text}.swapaxes({a}, {b})",
        f"np.moveaxis({text}, {a}, {b})",
        f"np.rollaxis({text}, {b})",
        f"{text}.real",
        f"{text}.imag",
        f"np.broadcast_to({text}, {wider})",
        f"{text}.squeeze()",
        f"np.expand_dims({text}, {b})",
        f"np.flip({text}, {a})",
        f"np.flip({text})",
        f"np.atleast_{w.number(1, 3)}d({text})",
        f"{text}.view()",
        f"np.asarray({text})",
        f"np.array_split({text}, 2, axis={a})[{w.number(0, 1)}]",
        f"np.ascontiguousarray({text})",
        f"np.squeeze({text}, axis={b})",
    ]
    if ndim >= 2:
        k = w.number(-1, 1)
        forms += [f"{text}.diagonal({k})", f"np.diagonal({text}, {k}, {a}, {b})", f"np.rot90({text})", f"{text}.mT", f"np.fliplr({text})"]
    if ndim == 2:
        forms += [f"np.diag({text})", f"np.asfortranarray({text})", f"np.vsplit({text}, [1])[1]", f"np.hsplit({text}, [1])[0]"]
    if not w.oracle.inexact and x.dtype.kind != "b":
        # Written as integers, the bytes of booleans would be others than 0 and 1.
        to = w.among("dlif" if x.dtype.itemsize > 2 else "bBhH") if w.chance(0.6) else w.among("BFDLhde")
        forms += [f"{text}.view({to!r})"] * 3
    return w.among(forms)


def lens(w: Writer, text: str, x: Array, depth: int = 2) -> tuple[str, Any]:
    """A chain of views and its value."""
    for _ in range(w.number(1, depth)):
        if not is_array(x):
            break
        further = one_lens(w, text, x)
        value = w.value(further)
        if value is None:
            if not w.chance(0.05):
                break  # NumPy refuses; now and then the statement shall
            return further, x
        text, x = further, value
    return text, x


def source(w: Writer, accept: Callable[[Any], bool] = lambda x: True) -> tuple[str, Any] | None:
    """Something to read: a name, or a view of one."""
    name = w.name(accept)
    if name is None:
        return None
    x = w.value(name)
    if is_array(x) and w.chance(0.35):
        text, value = lens(w, name, x)
        if is_array(value) and accept(value):
            return text, value
    return name, x


def target(w: Writer, accept: Callable[[Any], bool] = is_array) -> tuple[str, Any] | None:
    """Something to write: an array, or what is a view of one."""
    name = w.name(lambda x: is_array(x) and accept(x) and (x.flags.writeable or w.chance(0.03)))
    if name is None:
        return None
    x = w.value(name)
    if w.chance(0.4):
        text, value = lens(w, name, x)
        if is_array(value) and accept(value) and numpy.may_share_memory(value, x) and (value.flags.writeable or w.chance(0.05)):
            return text, value
    return name, x


def view(w: Writer) -> str | None:
    name = w.name(is_array)
    if name is None:
        return None
    text, _ = lens(w, name, w.value(name), 3)
    return f"{w.fresh()} = {text}" if text != name else None


# Operands ----------------------------------------------------------------------------------------------------------------
def number(w: Writer) -> str:
    return w.among(ODD_NUMBERS) if w.chance(0.1) and not w.oracle.inexact else w.among(NUMBERS)


def partner(w: Writer, x: Any, numbers: float = 0.3) -> tuple[str, Any]:
    """A second operand for ``x``."""
    if w.chance(numbers):
        text = number(w)
        return text, w.value(text)
    shape = numpy.shape(x)
    if w.chance(0.08):
        foreign = literal(w, shape[w.number(0, len(shape)) :], dtype_of(w))
        return foreign, w.value(foreign)
    found = source(w, (lambda y: True) if w.chance(0.03) else (lambda y: fits(y, shape)))
    return found or ("1", 1)


def value_for(w: Writer, text: str, x: Array, shape: tuple[int, ...] | None = None) -> str | None:
    """A value to be written into ``x`` (where it has ``shape``): it often reads the same memory."""
    shape = x.shape if shape is None else shape
    if w.chance(0.3):
        return number(w) if w.chance(0.5) or x.dtype.kind == "c" else w.among(["1", "2", "0", "7"])
    if w.chance(0.1):
        foreign = literal(w, shape[w.number(0, len(shape)) :], dtype_of(w))
        return foreign if converts(w.value(foreign), x.dtype) else None
    found = source(w, (lambda y: True) if w.chance(0.03) else (lambda y: fits_into(y, shape) and converts(y, x.dtype)))
    if found is None or not converts(found[1], x.dtype):
        return "1"
    if w.chance(0.25):
        form = w.among(["{} + 1", "{} * 2", "-{}", "{}[::-1]", "np.flip({})", "{}.T", "{}.copy()"])
        changed = form.format(found[0])
        value = w.value(changed)
        if value is not None and fits_into(value, shape) and converts(value, x.dtype):
            return changed
    return found[0]


# Expressions -------------------------------------------------------------------------------------------------------------
def exact_call(w: Writer, name: str, *values: Any) -> bool:
    """Whether a ufunc of these values is exactly rounded, and blind to what the processor chooses."""
    values = tuple(numpy.asarray(v if abs(v) < 2**63 else float(v)) if type(v) is int else numpy.asarray(v) for v in values)
    dtypes = [v.dtype for v in values]
    if any(d.kind == "c" for d in dtypes):
        if name == "multiply":
            return all(map(counts, values))
        return name in ("add", "subtract", "negative", "positive", "conjugate", "equal", "not_equal", "isnan", "isinf", "isfinite") or (
            name in ("less", "greater", "less_equal", "greater_equal") and not any(numpy.isnan(v).any() for v in values)
        )
    if name in ("maximum", "minimum", "fmax", "fmin"):
        return no_tied_zeros(*values)
    if name == "power":
        return all(d.kind in "biu" for d in dtypes)
    if name == "reciprocal":
        return dtypes[0].kind == "f" or bool((values[0] != 0).all())
    return not (name in ("signbit", "copysign") and any(v.dtype.kind == "f" and numpy.isnan(v).any() for v in values))


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


NAMES_OF: Final = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder", "<": "less", "**": "power",
    "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "<<": "left_shift", ">>": "right_shift",
}  # fmt: skip


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


def condition(w: Writer, x: Any) -> str:
    """A mask that broadcasts against ``x``."""
    mask = w.name(lambda m: m.dtype.kind == "b" and fits_into(m, numpy.shape(x)))
    if mask and w.chance(0.6):
        return mask
    exact = w.name(
        lambda m: m.dtype.kind in ("iu" if w.oracle.inexact else "iuf") and fits_into(m, numpy.shape(x)) and is_array(m)
    )
    if exact:
        return f"{exact} {w.among(['>', '<', '!=', '=='])} {w.among(['0', '1', '2', '5'])}"
    return literal(w, numpy.shape(x), numpy.dtype("?"))


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
    elif name in ("sum", "prod", "mean", "ptp"):
        if not counts(x):
            return None
    elif name in ("max", "min", "argmax", "argmin") and (x.dtype.kind == "c" or not no_tied_zeros(x)):
        return None
    axis = axis_of(w, x.ndim)
    if name in ("argmax", "argmin") and isinstance(axis, tuple):
        axis = 0
    keep = ", keepdims=True" if w.chance(0.25) and name != "ptp" else ""
    call = f"{text}.{name}(" if w.chance(0.4) and name not in ("count_nonzero", "ptp") and is_array(x) else f"np.{name}({text}, "
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
    if x.dtype.kind in "biu" and not w.oracle.inexact:
        forms += [f"np.diff({text}, axis={axis})", f"np.unique({text})", f"np.bincount(np.ravel({text}) & 7)"]
    if not w.oracle.inexact and x.dtype.kind in "biuf" and no_tied_zeros(x):
        forms += [
            f"np.sort({text}, axis={axis})",
            f"np.argsort({text}, axis={axis}, kind='stable')",
            f"np.clip({text}, 1, 3)",
            f"np.nonzero({text})[0].copy()",
            f"np.compress([True, False, True][:{x.shape[axis]}], {text}, axis={axis})",
        ]
    return f"{w.fresh()} = {w.among(forms)}"


def product(w: Writer) -> str | None:
    a = source(w, lambda x: has_axes(x) and (counts(x) or w.oracle.inexact))
    if a is None:
        return None
    n = a[1].shape[-1]
    b = source(w, lambda x: is_array(x) and x.ndim in (1, 2) and x.shape[0] == n and (counts(x) or w.oracle.inexact))
    return b and f"{w.fresh()} = {w.among(['np.matmul({}, {})', 'np.dot({}, {})', '{} @ {}']).format(a[0], b[0])}"


# Advanced keys -------------------------------------------------------------------------------------------------------------
def index_text(w: Writer, n: int, unique: bool, count: int | None = None) -> str:
    """An integer index array for an axis of length ``n``."""
    low = -n if w.chance(0.4) else 0
    if unique:
        values = w.random.sample(range(n), min(n, count or w.number(1, 3)))
    else:
        values = [w.number(low, n - 1) for _ in range(count or w.number(0, 4))]
    if w.chance(0.02):
        values.append(99)
    forms = [str(values)] * 3 + [f"np.array({values}, int)", f"numpy.array({values}, 'i4')"]
    if not unique and len(values) == 2:
        forms.append(f"np.array([{values}, {values[::-1]}])")
    return w.among(forms)


def advanced_key(w: Writer, x: Array, unique: bool = False) -> str | None:
    """Integer arrays, masks, and mixtures with slices."""
    shape = x.shape
    if not shape or 0 in shape:
        return None
    index = w.name(
        lambda i: has_axes(i) and i.dtype.kind in "iu" and i.size > 0 and i.min() >= -shape[0] and i.max() < shape[0] and i.ndim < 3
    )
    mask = w.name(lambda m: has_axes(m) and m.dtype.kind == "b" and m.shape == shape[: m.ndim])
    comparable = x.dtype.kind in "iuf" and not w.oracle.inexact
    forms: list[Callable[[], str]] = [lambda: index_text(w, shape[0], unique)] * 2
    forms += [lambda: f"np.array({[w.chance(0.5) for _ in range(shape[0])]})", lambda: condition(w, x)]
    if index is not None and not unique:
        forms += [lambda: index] * 2
    if mask is not None:
        forms += [lambda: mask] * 3
    if len(shape) > 1:
        count = w.number(1, 3)
        forms += [
            lambda: f":, {index_text(w, shape[1], unique)}",
            lambda: f"{index_text(w, shape[0], unique)}, {slice_text(w, shape[1])}",
            lambda: f"{w.number(0, shape[0] - 1)}, {index_text(w, shape[1], unique)}",
            lambda: f"{slice_text(w, shape[0])}, {[w.chance(0.5) for _ in range(shape[1])]}",
            lambda: f"..., {index_text(w, shape[-1], unique)}",
            lambda: f"None, {index_text(w, shape[0], unique)}",
            lambda: f"np.ix_({index_text(w, shape[0], unique)}, {index_text(w, shape[1], unique)})",
        ]
        if not unique or min(shape[:2]) >= count:
            forms.append(lambda: f"{index_text(w, shape[0], unique, count)}, {index_text(w, shape[1], unique, count)}")
    if len(shape) > 2:
        forms.append(lambda: f"{index_text(w, shape[0], unique, 2)}, :, {index_text(w, shape[2], unique, 2)}")
    if comparable and w.chance(0.3):
        return None
    return w.among(forms)()


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


# Writes ------------------------------------------------------------------------------------------------------------------
def assign(w: Writer) -> str | None:
    found = target(w)
    if found is None:
        return None
    text, x = found
    key = basic_key(w, x.shape)
    part = w.value(f"{text}[{key}]")
    shape = numpy.shape(part) if part is not None else x.shape
    value = value_for(w, text, x, shape)
    return value and f"{text}[{key}] = {value}"


def assign_advanced(w: Writer) -> str | None:
    found = target(w, has_axes)
    if found is None:
        return None
    text, x = found
    key = advanced_key(w, x, unique=True)
    if key is None or any(is_array(w.value(name)) and numpy.may_share_memory(x, w.value(name)) for name in key.split() if name in w.pool):
        return None  # NumPy reads the key while it writes
    part = w.value(f"{text}[{key}]")
    value = value_for(w, text, x, numpy.shape(part) if part is not None else x.shape)
    if value and is_array(w.value(value)) and numpy.may_share_memory(x, w.value(value)):
        value = f"({value}).copy()"  # NumPy reads what it has just written
    if w.chance(0.2) and not w.oracle.inexact and value and x.dtype.kind in "biuf":
        return f"{text}[{key}] {w.among(['+', '-', '*'] if x.dtype.kind != 'b' else ['|', '&'])}= {w.among(['1', '2', 'True'])}"
    return value and f"{text}[{key}] = {value}"


def overlap(w: Writer) -> str | None:
    """Statements that read what they write, at another place."""
    found = target(w, lambda x: has_axes(x) and x.shape[0] > 1)
    if found is None:
        return None
    text, x = found
    if x.dtype.kind == "b":
        forms = ["{}[1:] = {}[:-1]", "{}[...] = {}[::-1]", "{}[::2] = {}[1::2]", "{}[1:] |= {}[:-1]"]
    else:
        forms = [
            "{}[1:] = {}[:-1]", "{}[:-1] = {}[1:]", "{}[...] = {}[::-1]", "{}[::-1] = {}", "{}[:] = {}[0]", "{}[1:] += {}[:-1]",
            "{}[:-1] -= {}[1:]", "{}[...] += {}[::-1]", "np.add({0}[1:], {0}[:-1], out={0}[1:])", "{}[::2] = {}[-2::-2]",
            "np.copyto({0}[1:], {0}[:-1])", "{}[1:-1] = {}[2:] + {}[:-2]", "np.subtract({0}[::-1], {0}, out={0})",
        ]  # fmt: skip
        if x.dtype.kind in "iu" and not w.oracle.inexact:
            forms += ["{}[{} > 1] = {}.ravel()[0]", "np.maximum({0}[1:], {0}[:-1], out={0}[:-1])"]
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        forms += ["{}[...] = {}.T", "{}[:] += {}.T", "{}[0] = {}[:, 0]", "{}[:, 0] = {}[1]"]
    return w.among(forms).format(text, text, text)


def augment(w: Writer) -> str | None:
    found = target(w)
    if found is None:
        return None
    text, x = found
    if not x.shape or w.chance(0.4):
        if not text[1:].isdigit():
            text = f"{text}[...]"  # an attribute or a call cannot be assigned to
    else:
        key = basic_key(w, x.shape)
        part = w.value(f"{text}[{key}]")
        text, x = f"{text}[{key}]", x if part is None else part
    sign = w.among(AUGMENTED[:6] if w.oracle.inexact else AUGMENTED)
    if w.chance(0.5):
        value = number(w)
        y = w.value(value)
    else:
        found = source(w, lambda y: fits_into(y, numpy.shape(x)) or w.chance(0.02))
        if found is None:
            return None
        value, y = found
    if not w.oracle.inexact and (not exact_call(w, NAMES_OF[sign], x, y) or not converts(numpy.asarray(y), numpy.asarray(x).dtype)):
        return None
    return f"{text} {sign}= {value}"


def into_out(w: Writer) -> str | None:
    found = target(w)
    if found is None:
        return None
    text, x = found
    a = source(w, lambda y: fits_into(y, x.shape) and numpy.can_cast(y.dtype, x.dtype, "same_kind")) or ("1", 1)
    b = partner(w, x)
    name = w.among(words("add add subtract multiply maximum less copysign") if not w.oracle.inexact else words("add subtract multiply"))
    if not w.oracle.inexact and not exact_call(w, name, a[1], b[1]):
        return None
    # NumPy loses what it does not write where it has to copy or convert the output first, or crashes.
    copied = name == "less" or any(
        y.dtype != x.dtype or (is_array(y) and numpy.may_share_memory(y, x)) for y in (a[1], b[1]) if isinstance(y, numpy.generic | numpy.ndarray)
    )
    options = "" if copied or w.chance(0.6) else f", where={condition(w, x)}"
    if w.chance(0.2) and not w.oracle.inexact:
        counted = source(w, lambda y: has_axes(y) and y.dtype.kind in "bi" and (y.shape[:0] + y.shape[1:]) == x.shape)
        if counted:
            return f"np.{w.among(['sum', 'max', 'any'])}({counted[0]}, axis=0, out={text})"
    if w.chance(0.2):
        return f"np.{w.among(['negative', 'square', 'positive'])}({a[0]}, out={text}{options})" if x.dtype.kind not in "cb" else None
    return f"np.{name}({a[0]}, {b[0]}, out={text}{options})"


def into(w: Writer) -> str | None:
    """Functions that write into their first argument."""
    found = target(w)
    if found is None:
        return None
    text, x = found
    n = x.size
    value = value_for(w, text, x)
    if value is None:
        return None
    some = w.among(["1", "2", "0", f"numpy.array([1, 0, 3], {x.dtype.char!r})"])
    forms = [
        f"np.copyto({text}, {value})",
        f"np.copyto({text}, {value}, where={condition(w, x)})",
        f"np.copyto({text}, {value}, casting='unsafe')",
        f"np.putmask({text}, {condition(w, x)}, {some})",
        f"{text}.fill({w.among(['1', '0', '2'])})",
    ]
    if n:
        mode = w.among(["", "", ", mode='wrap'", ", mode='clip'"])
        forms += [
            f"np.put({text}, {index_text(w, n, True)}, {some}{mode})",
            f"np.place({text}, {literal(w, x.shape, numpy.dtype('?'))}, [1, 2])",
        ]
    if x.ndim >= 2 and len(set(x.shape)) == 1:
        forms.append(f"np.fill_diagonal({text}, {w.among(['1', '0', '[1, 2]'])})")
    if x.ndim == 2:
        forms.append(f"np.fill_diagonal({text}, {w.among(['1', '0'])}, wrap={w.chance(0.5)})")
    if x.ndim and x.shape[-1] and 0 not in x.shape:
        index = numpy.zeros((*x.shape[:-1], 1), int).tolist()
        forms.append(f"np.put_along_axis({text}, np.array({index}), {w.among(['1', '5'])}, axis=-1)")
    if x.ndim and x.shape[0] and x.flags.writeable and not w.oracle.inexact:
        at = index_text(w, x.shape[0], False)
        if x.dtype.kind in "iufc":
            forms += [f"np.add.at({text}, {at}, 1)"] * 2 + [f"np.subtract.at({text}, {at}, {some})"] * (some[0] != "n")
        if x.dtype.kind in "iuf" and no_tied_zeros(x):
            axis = w.number(-x.ndim, x.ndim - 1)
            k = w.number(0, x.shape[axis] - 1) if x.shape[axis] else 0
            forms += [f"{text}.sort({axis})", f"{text}.partition({k}, {axis})", f"{text}[::-1].sort({axis})"]
    return w.among(forms)


def through_attribute(w: Writer) -> str | None:
    """Assignments to attributes."""
    found = target(w)
    if found is None:
        return None
    text, x = found
    number = w.among(["1", "0", "2"])
    key = w.among(["::2", ":", "1::2", "0", "-1", "[0, -1]", "::-1"])
    forms = [f"{text}.flat[{key}] = {w.among([number, '[1, 2]', '[3, 1, 2]'])}", f"{text}.flat = {number}", f"{text}.real = {number}"]
    if x.dtype.kind == "c":
        real = w.name(lambda y: y.dtype.kind in ("fiu" if not w.oracle.inexact else "iu") and fits_into(y, x.shape))
        forms += [f"{text}.imag = {real or '2'}", f"{text}.real += 1", f"{text}.imag *= 2", f"{text}.imag[...] = {text}.real"]
    name = w.name(is_array)
    if name is not None:
        forms.append(f"{name}.shape = {new_shape(w, w.value(name).size)}")
        if not w.oracle.inexact:
            # Memory that a broadcast shows several times is not made writeable.
            forms.append(f"{name}.flags.writeable = {w.chance(0.6) and 0 not in w.value(name).strides}")
    return w.among(forms)


def loop(w: Writer) -> str | None:
    """Element by element."""
    found = target(w, lambda x: x.ndim in (1, 2) and 1 < x.shape[0] < 9 and 0 not in x.shape)
    if found is None:
        return None
    text, x = found
    n = x.shape[0]
    if x.ndim == 2:
        body = w.among([f"{text}[i, 0] = i", f"{text}[i] = {text}[i - 1]", f"{text}[i, i % {x.shape[1]}] = {text}[i - 1, 0]"])
    elif x.dtype.kind in "iuf":
        body = w.among([f"{text}[i] = {text}[i - 1] + 1", f"{text}[i] += {text}[{n} - 1 - i]", f"{text}[i] = i"])
    else:
        body = w.among([f"{text}[i] = {text}[i - 1]", f"{text}[i] = i"])
    return f"for i in range(1, {n}): {body}"


# Reads -------------------------------------------------------------------------------------------------------------------
def element(w: Writer) -> str | None:
    """A scalar of an array, as a name."""
    found = source(w, lambda x: has_axes(x) and x.size > 0)
    if found is None:
        return None
    text, x = found
    return f"{w.fresh()} = {text}[{', '.join([str(w.number(-n, n - 1)) for n in x.shape])}]"


def read(w: Writer) -> str | None:
    """Something that needs a value now."""
    found = source(w)
    if found is None:
        return None
    text, x = found
    forms = [f"see(numpy.asarray({text}))", f"see({text})"] if not w.oracle.inexact else [f"see({text})"]
    forms += [f"force({text})"] * (is_array(x)) * 3
    if not w.oracle.inexact:
        forms += [f"see({text}.tolist())", f"see(repr({text}))", f"see(str({text}))", f"see(({text} == {text}).any())"]
        if not (w.new_nans and x.dtype.kind in "fc"):
            forms.append(f"see({text}.tobytes())")
        if is_array(x):
            forms += [f"see(list({text}.flat))"]
        if x.size == 1:
            forms += [f"see(bool({text}))", f"see({text}.item())", f"see(float({text}))"] if x.dtype.kind != "c" else [f"see({text}.item())"]
        elif x.size:
            forms += [f"see({text}.item({w.number(0, x.size - 1)}))", f"see({text}.flat[{w.number(0, x.size - 1)}])"]
        if has_axes(x):
            forms += [f"see(len({text}))", f"see([y for y in {text}])", f"see(bool({text}))", f"see(np.array_equal({text}, {w.name()}))"]
        if x.dtype.kind in "biuf":
            forms.append(f"see(1 in {text})" if is_array(x) else f"see(hash({text}))" if x == x else f"see({text})")
    return w.among(forms)


# How often ---------------------------------------------------------------------------------------------------------------
STRUCTURE: Final[dict[Rule, float]] = {
    make: 1,
    view: 7,
    gathered: 2.5,
    moved: 2,
    element: 1,
    assign: 5,
    assign_advanced: 2.5,
    overlap: 2,
    augment: 3,
    into_out: 2,
    into: 2.5,
    through_attribute: 1.2,
    loop: 0.8,
    read: 3,
    where: 1,
    product: 0.5,
    reduction: 2,
    scan: 0.5,
    methods: 0.8,
    astype: 1,
}
GRAMMARS: Final[dict[str, dict[Rule, float]]] = {
    "exact": {**STRUCTURE, unary: 2, binary: 5, power: 0.4},
    "inexact": {**STRUCTURE, unary: 4, binary: 7, power: 0.7},
}


def write(seed: int, grammar: str, length: int = 25) -> Program:
    """The program of a seed."""
    rules = GRAMMARS[grammar]
    return Writer(seed, grammar).write(list(rules), list(rules.values()), [make], length)
