"""Statements of random programs that write into what there is, and those that only read.

In: a ``Writer``.  Out: one line of source, or None where the names do not serve.  What is read is often what is written, at another
place.  Where NumPy itself is wrong about an overlap (masked writes, outputs with ``where=`` that it has to copy, one dimension with two
strides) the value is copied first.
"""

from __future__ import annotations

from typing import Any, Final

import numpy

from lazynp.values import config
from tests.differential.bounds import words
from tests.differential.expressions import NAMES_OF
from tests.differential.operands import (
    advanced_key,
    apart,
    basic_key,
    condition,
    converts,
    exact_call,
    fits_into,
    has_axes,
    index_text,
    is_array,
    literal,
    new_shape,
    no_tied_zeros,
    number,
    partner,
    source,
    target,
    value_for,
)
from tests.differential.writer import Writer

# In which order the elements of a part lie is NumPy's choice, which follows the processor's vectors; a GPU makes its own.
SETTLED: Final = "" if config.device == "cpu" else "; {}.sort({})"
AUGMENTED: Final = words("+ + - * * / // % & | ^ **")



# Keys ---------------------------------------------------------------------------------------------------------------------
def assign(w: Writer) -> str | None:
    found = target(w)
    if found is None:
        return None
    text, x = found
    key = basic_key(w, x.shape)
    part = w.value(f"{text}[{key}]")
    shape = numpy.shape(part) if part is not None else x.shape
    value = value_for(w, text, x, shape)
    return value and f"{text}[{key}] = {apart(w, part, value)}"


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
        forms += ["{}[...] = {}.T", "{}[:] += {}.T", "{}[0] = {}[:, 0].copy()", "{}[:, 0] = {}[1].copy()"]
    return w.among(forms).format(text, text, text)


# In place -----------------------------------------------------------------------------------------------------------------
def mask_for(w: Writer, x: Any) -> str:
    """Where to write into ``x``; memory of its own, for NumPy reads a mask while it writes."""
    text = condition(w, x)
    return f"{text}.copy()" if is_array(w.value(text)) and numpy.may_share_memory(x, w.value(text)) else text


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
    arrays = [y for y in (a[1], b[1]) if isinstance(y, (numpy.generic, numpy.ndarray))]
    copied = name == "less" or any(y.dtype != x.dtype or (is_array(y) and numpy.may_share_memory(y, x)) for y in arrays)
    options = "" if copied or w.chance(0.6) else f", where={mask_for(w, x)}"
    if w.chance(0.2) and not w.oracle.inexact:
        counted = source(w, lambda y: has_axes(y) and y.dtype.kind in "bi" and y.shape[1:] == x.shape and numpy.can_cast(y.dtype, x.dtype))
        if counted:
            return f"np.{w.among(['sum', 'max', 'any'])}({counted[0]}, axis=0, out={text})"
    if w.chance(0.2):
        # Not `negative`: NumPy's is wrong where it writes over what it reads and the stride is four or eight elements.
        return f"np.{w.among(['square', 'positive'])}({a[0]}, out={text}{options})" if x.dtype.kind not in "cb" else None
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
    value = apart(w, x, value)
    some = w.among(["1", "2", "0", f"numpy.array([1, 0, 3], {x.dtype.char!r})"])
    forms = [
        f"np.copyto({text}, {value})",
        f"np.copyto({text}, {value}, where={mask_for(w, x)})",
        f"np.copyto({text}, {value}, casting='unsafe')",
        f"np.putmask({text}, {mask_for(w, x)}, {some})",
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
            forms += [f"{text}.sort({axis})", f"{text}.partition({k}, {axis}){SETTLED.format(text, axis)}", f"{text}[::-1].sort({axis})"]
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
            # A view of a broadcast is not made writeable: NumPy allows it, lazynp does not.
            # Nor is memory from outside, of which NumPy does not know whether it may be written.
            base = w.value(name).base
            ours = base is None or (is_array(base) and w.value(name).flags.writeable)
            forms.append(f"{name}.flags.writeable = {w.chance(0.6) and ours}")
    return w.among(forms)


def loop(w: Writer) -> str | None:
    """Element by element."""
    found = target(w, lambda x: x.ndim in (1, 2) and 1 < x.shape[0] < 9 and 0 not in x.shape)
    if found is None:
        return None
    text, x = found
    n = x.shape[0]
    if w.chance(0.25):
        name = w.name(is_array)
        return f"for _ in range({w.number(2, 4)}): {name} = {name} + {name}[::-1]" if name and w.value(name).ndim else None
    if x.ndim == 2:
        body = w.among([f"{text}[i, 0] = i", f"{text}[i] = {text}[i - 1]", f"{text}[i, i % {x.shape[1]}] = {text}[i - 1, 0]"])
    elif x.dtype.kind in "iuf":
        body = w.among([f"{text}[i] = {text}[i - 1] + 1", f"{text}[i] += {text}[{n} - 1 - i]", f"{text}[i] = i"])
    else:
        body = w.among([f"{text}[i] = {text}[i - 1]", f"{text}[i] = i"])
    return f"for i in range(1, {n}): {body}"


# Reads --------------------------------------------------------------------------------------------------------------------
def forget(w: Writer) -> str | None:
    """One name less: what nobody else holds is free."""
    return f"del {w.among(w.pool)}" if len(w.pool) > 4 else None


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
            forms += [f"see(bool({text}))", f"see({text}.item())"] + [f"see(float({text}))"] * (x.dtype.kind != "c")
        elif x.size:
            forms += [f"see({text}.item({w.number(0, x.size - 1)}))", f"see({text}.flat[{w.number(0, x.size - 1)}])"]
        if has_axes(x):
            forms += [f"see(len({text}))", f"see([y for y in {text}])", f"see(bool({text}))", f"see(np.array_equal({text}, {w.name()}))"]
        if x.dtype.kind in "biuf":
            forms.append(f"see(1 in {text})" if is_array(x) else f"see(hash({text}))" if x == x else f"see({text})")
    return w.among(forms)
