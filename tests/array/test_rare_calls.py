"""Functions of numbers, bytes, text and files, functions that call back, and attributes: on small arrays as NumPy has them.

Each case is compared with its type, dtype, layout, flags, base, exceptions, and warnings with their lines.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config

# Functions of sizes and other numbers.
SIZES = ("0", "1", "3", "-1", "2.5", "2.0", "'3'", "None", "(2,)", "(2, 3)", "np.int64(3)", "i[0]")
SIZED = {
    "tri": ("{}", "{}, 2", "3, {}", "3, k={}", "{}, dtype=int", "3, 4, 1, 'f4'", "N=3, M={}", "{}, like=None", "3, bogus=1"),
    "tril_indices": ("{}", "{}, -1", "3, {}", "3, 1, {}", "n=3, m={}"),
    "triu_indices": ("{}", "{}, -1", "3, {}", "3, 1, {}", "n=3, m={}"),
    "diag_indices": ("{}", "{}, 3", "3, {}", "n={}, ndim=1"),
    "indices": ("{}", "({},)", "({}, 2)", "dimensions=(2, 3)", "(2, 3), {}", "(2, 3), dtype='f4'", "(2, 3), sparse=True"),
    "hamming": ("{}", "M={}"),
    "kaiser": ("{}, 2.0", "5, {}"),
    "bartlett": ("{}",),
    "fft.fftfreq": ("{}", "{}, 0.1", "4, {}", "n={}, d=2", "4, device='cpu'", "4, 0.0"),
    "fft.rfftfreq": ("{}", "{}, 0.1", "4, {}", "n={}, d=2"),
    "fromfunction": ("lambda *a: np.asarray(a[0] * 2), {}", "add, ({}, 2)", "add, (2, 3), dtype={}", "add, (2, 2), dtype=int"),
    "mask_indices": ("{}, np.triu", "3, np.tril, {}"),
    "resize": ("x, {}", "x[:0], {}", "x, ({}, 2)", "i, new_shape={}", "2.5, {}", "[1, 2, 3], {}", "y.T, {}"),
    "require": ("{}", "x, {}", "y.T, None, {}", "y.T, float, 'C'", "y, 'f4', ['F', 'W']", "r, None, 'W'", "x, requirements=['E', 'O']"),
    "asarray_chkfinite": ("{}", "n", "x, {}", "z", "i, order='F'", "[1, nan]"),
    "unique_values": ("2.5", "3", "y", "n", "[3, 3]", "x, 1", "x=x", "z.real", "'a'", "None", "x > 0"),
    "frompyfunc": ("{}, 1, 1", "add, {}, 1", "add, 2, 1", "add, 2, 1, identity={}"),
}
INDEXED = (
    "np.r_[1, 2]", "np.r_[x, 3]", "np.r_[0:3]", "np.r_[0:1:5j]", "np.r_['0,2', x, i]", "np.r_['r', 1, 2]", "np.r_['c', x]",
    "np.r_['bogus', x]", "np.r_[x, y]", "np.r_[2:0, x]", "np.r_[x[0]:3]", "np.r_[x, [1, 2], (3,)]", "np.r_['a', 'b', 3]", "np.r_[()]",
    "np.r_[z, 0:2]", "np.r_[i, 2**70]", "np.r_[u8, 300]", "np.r_[u8, 3]", "np.r_[0.5:2]", "np.r_[0:3:0]", "np.r_[0:None]", "np.c_[x, i]",
    "np.c_[0:2, 1:3]", "np.c_[x, y]", "np.c_[y, y]", "np.c_[x]", "np.c_[np.float32(1), 2]", "np.r_[y.T, y.T]", "np.c_[r, 0]",
    "np.r_[np.asmatrix(y)]", "np.mgrid[0:3, 0:2]", "np.mgrid[0:3]", "np.mgrid[0:1:3j, 0:2]", "np.mgrid[0:3, 5]", "np.mgrid[2:0, 0:2]",
    "np.mgrid[0:3, 0.5:2]", "np.mgrid[0:2:0, 0:2]", "np.mgrid[0:i[0], 0:2]", "np.mgrid[()]", "np.mgrid[:3, :2]", "np.mgrid[0:None, 0:2]",
    "np.mgrid[0:1, 0:1j, 0:2]", "np.ogrid[0:3, 0:2]", "np.ogrid[0:3]", "np.ogrid[0:1:3j, 0:2]", "np.ogrid[:2, :2, :2]",
    "np.ogrid[0:3:1j, 0:2:2.5]", "np.mgrid[True:3, 0:2]",
)  # fmt: skip
BYTES = ("b'12345678'", "bytearray(b'12345678')", "memoryview(b'12345678')", "x", "r", "b'123'", "b''", "'text'", "None", "3")
CALLS = (
    "np.frombuffer({}, 'u1')", "np.frombuffer({})", "np.frombuffer({}, dtype=np.int32, count=1)", "np.frombuffer({}, '<i2', -1, 2)",
    "np.frombuffer(buffer={}, dtype='S2')",
    "[v := np.frombuffer({}, 'u1'), v[::2].base is v, v.T.base is v, v[:4].reshape(2, 2)[0].base is v]",
    "[v := np.frombuffer({}, 'u1'), v.view().base is v, v.view('i2').base is v, np.flip(v).base is v, v[None].base is v]",
)  # fmt: skip
TEXTS = (
    "np.fromiter(iter(x), float)", "np.fromiter(range(4), 'i2')", "np.fromiter([1, 2], float, 1)", "np.fromiter([1], float, count=3)",
    "np.fromiter((v * 2 for v in x), 'f4')", "np.fromiter(i, np.int64)", "np.fromiter(3, int)", "np.fromiter(iter(x), 'S3')",
    "np.fromstring('1 2', sep=' ')", "np.fromstring('1 x', sep=' ')", "np.fromstring('1,2', 'i4', sep=',')", "np.fromstring('1 2')",
    "np.loadtxt(io.StringIO('1 2'))", "np.loadtxt(['1 2', '3 4'])", "np.loadtxt(l for l in ['1 2', '3 x'])", "np.loadtxt(io.StringIO())",
    "np.genfromtxt(io.StringIO('1 2\\n3 4'))", "np.fromregex(io.StringIO('1 2'), r'(\\d+)', [('n', int)])",
    "[np.save(f := io.BytesIO(), x), f.getvalue()]", "[np.savetxt(f := io.StringIO(), y), f.getvalue()]",
    "np.format_float_positional(x[0])", "np.format_float_scientific(2.5, precision=3)", "np.busday_count('2020-01-01', '2020-02-01')",
    "np.busday_count(['2020-01-01', '2020-01-05'], '2020-02-01')", "np.busday_offset('2020-01-01', i)", "np.is_busday('2020-01-0')",
    "np.is_busday(dates)", "np.busday_offset(dates, 1, roll='forward')", "np.busday_count(dates, '2020-02-01', weekmask='1111100')",
    "np.datetime_as_string(dates)", "np.strings.upper(['a', 'bc'])", "np.char.add(['a'], ['b'])", "np.strings.str_len(['a', 'bc'])",
    "np.asmatrix(y)", "np.bmat([[y, y], [y, y]])", "np.asmatrix(x, 'f4')", "np.strings.multiply(['a', 'b'], 2)",
    "np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, 7])", "np.piecewise(x, x < 0, [lambda v, k: v * k, 7], 3)",
    "np.piecewise(x, [x < 0], [1, 2, 3])", "np.piecewise(i, [i > 1, i < 1], [lambda v: v / 0, 2.5, 3])", "np.piecewise(2.0, True, [7])",
    "np.piecewise(x, [[True, False, True]], [5])", "np.piecewise(y, y > 1, [np.sqrt, np.square])", "np.piecewise([1, 2], [[1, 0]], [3])",
    "np.apply_over_axes(np.sum, y, [0, 1])", "np.apply_over_axes(np.sum, y, 0)", "np.apply_over_axes(np.sum, y, -1)",
    "np.apply_over_axes(lambda a, k: a[0, 0], y, 0)", "np.apply_over_axes(np.sum, y, (0, 5))",
    "np.apply_over_axes(np.max, y, np.array([0]))",
    "np.apply_along_axis(np.sum, 0, y)", "np.apply_along_axis(np.sort, 1, y)", "np.apply_along_axis(lambda v: v[::-1], 0, y.T)",
    "np.apply_along_axis(lambda v: [v[0], 2], -1, i)", "np.apply_along_axis(len, 2, y)", "np.apply_along_axis(np.diag, 1, y)",
    "np.apply_along_axis(lambda v: v.max() if v[0] else np.nan, 1, y.astype(int))", "np.apply_along_axis(str, 0, y)",
    "[np.apply_along_axis(lambda v: v.fill(3), 0, y), y]", "np.apply_along_axis(lambda v, k, s=1: v[k] * s, 0, y, 1, s=2)",
    "np.apply_along_axis(np.sum, 0, y[:, :0])", "np.apply_along_axis(lambda v: v.sum() * (1 + 1j * v[0]), 1, y)",
    "np.apply_along_axis(np.sum, 0, 3)", "np.apply_along_axis(lambda v: np.shape(v), 0, [[1, 2], [3, 4]])",
    "np.array('a')", "np.array(['a', 'bc'])", "np.array([None, 1])", "np.array([b'a'])", "np.array([2**70])", "np.asarray('a', object)",
    "np.array(['2020'], 'M8[D]')", "np.array([1.5], 'g')", "np.asarray([['a'], ['b']], order='F')", "np.array([None, x[0]])",
)  # fmt: skip
ARRAYS = ("x", "y", "y.T", "y[:, 1:]", "i", "z", "z.real", "r", "x[:0]", "x[::-1]", "o", "x > 0")
ATTRIBUTES = (
    "{}.imag", "{}.imag.flags.num", "{}.imag.base is None", "{}.mT", "{}.mT.base is {}", "{}.view()", "{}.view('i4')", "{}.view('u1')",
    "{}.view(np.float32)", "{}.view(dtype='f8')", "{}.view('S8')", "{}.view(np.dtype('i8'))", "{}.view(float)", "{}.view(np.ndarray)",
    "{}.view([('a', 'f8')])", "{}.view('bogus')", "{}.tobytes()", "{}.tobytes('F')", "{}.tobytes(order='A')",
    "{}.tobytes('?')", "list({}.flat)", "{}.flat[0]", "{}.flat[-1]", "{}.flat[99]", "{}.flat[1:3]", "{}.flat[[0, 0]]", "{}.flat[i % 1]",
    "{}.flat[...]", "{}.flat[True]", "{}.flat[np.array([], int)]", "next({}.flat)", "str({}.flags)", "{}.flags.num", "copy({})",
    "{}.flags.owndata", "{}.flags['F']", "written({}.flat)", "deepcopy({})", "walked({}.flat)",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _at_hand() -> Iterator[None]:
    with config.override(tape_limit=65536):
        yield


def written(flat: Any) -> Any:
    next(flat)
    flat[1:] = 7
    return list(flat)


def walked(flat: Any) -> Any:
    found = []
    for value in flat:
        found.append((value, flat.index))
        if flat.index == 2:
            break
    return found, list(flat), len(flat)


def names(np: Any) -> dict[str, Any]:
    import copy

    r = np.array([1, 2, 3])
    r.flags.writeable = False
    dates = numpy.array(["2020-01-01", "2020-01-04"], "M8[D]")
    return {
        "np": np, "io": io, "x": np.array([1.5, -2.0, 3.5]), "y": np.array([[1.0, -2.0, 3.5], [0.0, 9.0, 7.0]]), "i": np.array([3, 1, 2]),
        "z": np.array([1 + 2j, 3 - 1j]), "r": r, "o": np.array(4.0), "n": np.array([1.0, numpy.nan, numpy.inf]), "nan": numpy.nan,
        "u8": np.array([3, 255], "u1"),
        "add": lambda a, b: a + b, "dates": dates, "written": written, "walked": walked, "copy": copy.copy, "deepcopy": copy.deepcopy,
    }  # fmt: skip


def shown(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [shown(item) for item in value]
    if isinstance(value, (numpy.ndarray, lazynp.ndarray)):
        memory = numpy.asarray(value)
        flags = value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable, value.flags.owndata
        kind = type(value).__name__, isinstance(value, numpy.matrix), type(value.base).__name__
        return kind, value.dtype, value.shape, value.strides if memory.size > 1 else None, flags, str(memory.tolist())
    if type(value).__name__ in ("ufunc", "vectorize"):
        return value.nin, value.nout, value.identity, value.__name__
    return type(value).__name__, str(value)


def outcome(text: str, np: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = shown(eval(compile(f"\n\n{text}", "program", "eval"), names(np)))
        except Exception as error:
            found = type(error), str(error)
    told = [re.sub("0x[0-9a-f]+", "an address", str(w.message)) for w in caught]
    return found, sorted((w.category.__name__, text, w.filename, w.lineno) for w, text in zip(caught, told, strict=True))


def same(theirs: Any, ours: Any) -> bool:
    """A warning that NumPy gives at a line of its own may name the program's."""
    lines = [(*a[:2], *b[2:]) if b[2:] == ("program", 3) != a[2:] else a for a, b in zip(theirs[1], ours[1], strict=False)]
    return bool(theirs[0] == ours[0] and lines == ours[1] and len(theirs[1]) == len(ours[1]))


def compare(texts: list[str]) -> None:
    differing = [(text, a, b) for text in texts if not same(a := outcome(text, numpy), b := outcome(text, lazynp))]
    assert not differing, "\n".join(f"{text}\n    {a}\n    {b}" for text, a, b in differing)


@pytest.mark.parametrize("name", SIZED)
def test_functions_of_numbers(name: str) -> None:
    compare([f"np.{name}({form.format(size)})" for form in SIZED[name] for size in (SIZES if "{}" in form else ("",))])


def test_brackets() -> None:
    compare(list(INDEXED))


@pytest.mark.parametrize("given", BYTES)
def test_buffers(given: str) -> None:
    compare([call.format(given) for call in CALLS])


def test_texts_dates_and_functions_that_call_back() -> None:
    compare(list(TEXTS))


@pytest.mark.parametrize("array", ARRAYS)
def test_attributes(array: str) -> None:
    compare([text.format(array, array) for text in ATTRIBUTES])
