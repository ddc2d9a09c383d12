"""Statements of random programs that share memory with the world outside: exports, writes through them, foreign memory taken in.

In: a ``Writer``.  Out: one line of source, or None where the names do not serve.  Arrays outside are called ``e0``, ``e1``, ...; they are
NumPy's in either run, and views, so that nobody sets the shape of an array of ours through them.
"""

from __future__ import annotations

from tests.differential.operands import basic_key, is_array, target
from tests.differential.writer import Writer

_BUFFER = "memoryview({})"


def _outside(w: Writer) -> str | None:
    """An array outside."""
    found = [name for name in w.outside if name in w.oracle.names]
    return w.among(found) if found else None


def _fresh(w: Writer) -> str:
    if len(w.outside) > 3 and w.chance(0.5):
        return w.among(w.outside)  # which lets go of another one
    w.outside.append(f"e{len(w.outside)}")
    return w.outside[-1]


def export(w: Writer) -> str | None:
    """Memory of ours, seen from outside."""
    found = target(w)
    if found is None:
        return None
    text, x = found
    ways = ["numpy.asarray({})[...]"] * 3 + ["numpy.asarray({}.data)", "numpy.array({})", f"numpy.asarray({_BUFFER})"]
    if x.size and x.ndim:
        ways.append("numpy.from_dlpack({})")
    return f"{_fresh(w)} = {w.among(ways).format(text)}"


def taken_in(w: Writer) -> str | None:
    """Memory from outside, as an array of ours."""
    name = _outside(w)
    if name is None:
        return None
    x = w.oracle.names[name]
    view = w.among([name, name, f"{name}.T", f"{name}[{basic_key(w, x.shape)}]"])
    made = w.value(f"numpy.asarray(({view}))")
    if made is None:
        return None
    # By way of what is no array: the base of an array that was outside is none of ours, but NumPy's might be.
    around = f"numpy.asarray(memoryview(({view})))"
    forms = [f"np.asarray({around})", f"np.array({around}, copy=None)", f"np.from_dlpack({view})", f"np.array({view})"]
    if made.flags.c_contiguous and made.ndim:
        forms += [f"np.frombuffer(memoryview({view}), {made.dtype.char!r})", f"np.ndarray({made.shape}, {made.dtype.char!r}, {around})"]
    return f"{w.fresh()} = {w.among(forms)}"



def written_outside(w: Writer) -> str | None:
    """A write that nobody tells lazynp of."""
    name = _outside(w)
    if name is None:
        return None
    x = w.oracle.names[name]
    number = w.among(["1", "2", "0", "3"])
    key = basic_key(w, x.shape)
    forms = [f"{name}[{key}] = {number}", f"{name}[...] = {number}", f"numpy.copyto({name}, {number})", f"{name}.fill({number})"]
    if x.ndim and x.shape[0] > 1:
        forms += [f"{name}[1:] = {name}[:-1].copy()", f"{name}[0] = {name}[-1]", f"{name}[::2] = {number}"]
    y = w.name(lambda y: is_array(y) and y.shape == x.shape and y.dtype == x.dtype and not w.overlaps(y, x))
    if y is not None:
        forms += [f"{name}[...] = {y}"] * 2
    return w.among(forms)


def seen_outside(w: Writer) -> str | None:
    """A look at memory from outside, or one holder less."""
    name = _outside(w)
    return name and w.among([f"see({name})", f"see({name})", f"del {name}"])
