"""What statements of random programs are made of: names, inputs, views, keys, second operands.

In: a ``Writer``, with the names there are and their values under NumPy.  Out: text, mostly with its value.  Promise: what is drawn
fits what it is drawn for, except now and then, when the statement shall raise.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy

from tests.differential.writer import Writer

FLOATS: Final = [0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 0.1, 100.0, -0.0, 1e-5, 1e30, float("inf"), float("-inf"), float("nan")]

TAME: Final = [0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 0.1, 0.7, 1.25, -0.4, 3.3]

NUMBERS: Final = ["0", "1", "2", "-1", "3", "0.5", "2.0", "-1.5", "True"]

ODD_NUMBERS: Final = ["nan", "1j", "300", "1e10", "np.float32(0.5)", "np.int8(3)", "np.float64(2.5)", "np.uint8(200)", "-0.0", "10**20"]



# What is asked of a value -------------------------------------------------------------------------------------------------
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


def averages(x: Any) -> bool:
    """Whether the sum of these values is exact in any order when integers are added as floats."""
    return x.dtype.kind not in "iu" or bool(numpy.abs(x.astype(float)).sum() < 2**53)


def no_tied_zeros(*values: Any) -> bool:
    """Whether the sign of a zero cannot depend on which of two equal ones was taken."""
    signs = [numpy.signbit(x[x == 0].astype(float)) for x in map(numpy.asarray, values) if x.dtype.kind in "fbiu"]
    found = numpy.concatenate(signs) if signs else numpy.zeros(0, bool)
    return bool(found.all() or not found.any())


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


# Inputs -------------------------------------------------------------------------------------------------------------------
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


# Views --------------------------------------------------------------------------------------------------------------------
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


def one_lens(w: Writer, text: str, x: Any) -> str:
    """One view (sometimes a copy) of an array."""
    ndim, shape = x.ndim, x.shape
    if not ndim:
        return text + w.among(["[()]", "[...]", "[None]", ".reshape(1)", ".view()", ".T", ".real"])
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


def lens(w: Writer, text: str, x: Any, depth: int = 2) -> tuple[str, Any]:
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


# Operands -----------------------------------------------------------------------------------------------------------------
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


def value_for(w: Writer, text: str, x: Any, shape: tuple[int, ...] | None = None) -> str | None:
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


def apart(w: Writer, x: Any, value: str) -> str:
    """``value``, or a copy of it where NumPy is wrong about its overlap with ``x``: in one dimension it thinks of equal strides only."""
    y = w.value(value)
    if is_array(x) and x.ndim == 1 and is_array(y) and y.ndim and y.strides[-1] != x.strides[0] and numpy.may_share_memory(x, y):
        return f"({value}).copy()"
    return value


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


# Advanced keys ------------------------------------------------------------------------------------------------------------
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


def advanced_key(w: Writer, x: Any, unique: bool = False) -> str | None:
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
