"""Every name of the namespace on pending operands, once above every limit of size and several times below: NumPy's answer.

In: the names that ``lazynp.namespace.names`` lists, the functions of ``linalg`` and ``fft``, the methods of arrays; and forms of calls.
Out: a test of each.  Promise: a new name is in it by itself: its calls are those of the forms that NumPy answers for small operands.
Values, dtypes, shapes and classes are compared, exceptions by type, warnings by text, and what a write into the result does to the
operands.  A name that no form suits has to say a call in ``OTHERS`` (a whole expression behind ``=``).
"""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.namespace import names
from lazynp.namespace.coverage import public_names
from lazynp.namespace.ufunc import ufuncs
from tests.namespace.compare import plain

BELOW, ABOVE = 8, 900  # rows and columns of a matrix; vectors have as many elements
WORDS = str.split

# Forms of calls, the plainest first.  ``x y`` floats, ``m`` a matrix of them, ``i`` whole numbers, ``b`` truth values, ``z`` complex: all
# pending, and as large as the test says; ``s`` seven floats.
FORMS = (
    "x",
    "m",
    "b",
    "i",
    "z",
    "x, y",
    "m, m",
    "i, i",
    "b, b",
    "m, axis=0",
    "m, axis=1, keepdims=True",
    "m, 1",
    "x, 3",
    "x, 0.3",
    "i, 2",
    "x, s",
    "s, x",
    "x, b",
    "b, x",
    "b, x, y",
    "x, i",
    "i, x",
    "m, [0, 2]",
    "x, [0.2, 0.7]",
    "m, (3, 2)",
    "x, 'f4'",
    "m, out=o",
    "[x, y]",
    "[m, m], axis=1",
    "x, y, s",
    "x, s, s",
    "x, -1, 2",
    "x, 2, 5",
    "m, 0, 1",
    "m, 1, [0, 1]",
    "x, b, 5.0",
    "b, x, 2.0",
    "i, axis=0",
    "5",
    "5, 2",
    "2, 9, 5",
    "(4, 3)",
    "(4, 3), 2.0",
    "'ij,jk->ik', m, m",
    "lambda v: v * 2, x",
    "lambda v: v.sum(), 0, m",
    "x, [x > 0.5, x <= 0.5], [1.0, lambda v: v * 2]",
    "i, [x, y]",
    "[b, ~b], [x, y]",
    "s",
    "s, s",
    "[s, s]",
    "x, (2, 3)",
    "'f8', 'f4'",
    "[1, 2], 'f8'",
    "i, (50, 60)",
    "(i, i), (60, 60)",
)
METHOD_FORMS = (
    "",
    "0",
    "1",
    "-1",
    "axis=0",
    "axis=1, keepdims=True",
    "'f4'",
    "0, 1",
    "[0, 2]",
    "(-1,)",
    "2, 5",
    "m",
    "[x[0, 0], 2.0]",
    "x > 0.5, axis=0",
    "(1, 0)",
    "'l'",
)
OTHERS = {
    "block": ["[[m, m], [m, m]]"],
    **dict.fromkeys(WORDS("concat concatenate stack hstack vstack dstack row_stack column_stack"), ("[x, y]",)),
    **dict.fromkeys(WORDS("array_split split hsplit"), ("x, 3", "x, 2")),
    "vsplit": ["m, 2"],
    "unstack": ["m"],
    "histogramdd": ["m[:, :2]", "m[:, :3], 4", "m[:, 0]", "[x, y]"],  # of a matrix it has ten to the power of its columns
    "choose": ["i % 2, [x, y]"],
    "select": ["[b, ~b], [x, y]"],
    "linalg.lstsq": ["m[:, :5], m[:, 5]"],
    "frombuffer": ["b'12345678'"],
    "fromstring": ["'1 2', sep=' '"],
    "fromfunction": ["lambda a, b: a + b, (4, 3)"],
    "fromiter": ["range(5), 'f8'"],
    "mask_indices": ["3, numpy.triu"],
    "interp": ["x, s, s"],
    "ravel_multi_index": ["(i, i), (60, 60)"],
    "resize": ["x, (5, 7)"],
    "apply_over_axes": ["numpy.sum, m, [0]"],
    "cross": ["m[:, :3], m[:, :3]"],
    "linalg.cross": ["m[:, :3], m[:, :3]"],
    "dsplit": ["m.reshape(2, -1, 4), 2"],
    "full": ["(4, 3), 2.0", "5, s[0]"],
    "linalg.cholesky": ["m @ m.T + numpy.eye(len(m))"],
    "put_along_axis": ["m, numpy.zeros((len(m), 1), int), 5.0, 1"],
    "reshape": ["m, -1", "x, (2, -1)"],
    "tri": ["5, 4"],
    "unpackbits": ["i.astype('u1')"],
    "indices": ["(4, 3)"],
    "isdtype": ["x.dtype, 'real floating'"],
    "isnat": ["i.astype('m8[s]')"],
    ".choose": ["=(i % 2).choose([y, y * 2])"],
    ".searchsorted": ["=numpy.sort(y).searchsorted(s)"],
    ".to_device": ["'cpu'"],
    ".view": ["'i8'", ""],
}
# The order of what is equal, which NumPy leaves open: it is kept.
STABLE = ("argsort", ".argsort")
# They read or write files, set what holds for the whole process, or are classes of options.
ELSEWHERE = frozenset(
    WORDS(
        "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile fromregex memmap set_fallback set_printoptions printoptions "
        "setbufsize errstate show_config show_runtime info test report memory progress explain schedule kernelize realize coverage "
        "lazynp_version device nditer nested_iters ndenumerate broadcast flatiter ufunc empty empty_like frompyfunc vectorize from_dlpack "
        "seterr seterrcall get_include getbufsize geterr geterrcall c_ r_ mgrid ogrid s_ index_exp"
    )
)
# Time that grows with the square or more: one long operand, a short one, or none above the limit.
SLOW = {
    "convolve": ["x, s"],
    "correlate": ["x, s"],
    "polymul": ["x, s"],
    "polydiv": ["x, s"],
    "poly": [],
    "roots": [],
    "polyfit": ["x, y, 2"],
    "polyval": ["s, x"],
    "apply_along_axis": [],
    "vander": ["x, 3"],
}
WIDE = WORDS("outer kron diag diagflat meshgrid ix_ tri diag_indices")  # memory that does


@functools.cache
def drawn(rows: int) -> dict[str, Any]:
    rng = numpy.random.default_rng(5)
    return {"a": rng.random((rows, rows)), "c": rng.random(rows * rows), "i": rng.integers(0, 50, rows * rows), "s": rng.random(7)}


MADE = {
    "x": "numpy.abs(numpy.asarray(a).reshape(-1) - 0.1)",
    "y": "numpy.asarray(c) * 2 - 1",
    "m": "numpy.asarray(a) * 2 - 0.5",
    "i": "numpy.asarray(i) + 1",
    "b": "numpy.asarray(c) > 0.5",
    "z": "numpy.abs(numpy.asarray(a).reshape(-1) - 0.1) + 1j * numpy.asarray(c)",
    "s": "numpy.asarray(s) + 0.25",
}


class Operands(dict[str, Any]):
    """Operands of a module by name, made when a form names them; lazynp's are pending where it records."""

    def __init__(self, module: Any, rows: int) -> None:
        self["numpy"] = module
        self.rows = rows

    def __missing__(self, name: str) -> Any:
        if name not in MADE and name != "o":
            raise KeyError(name)
        self[name] = self["numpy"].zeros(self.rows) if name == "o" else eval(MADE[name], {"numpy": self["numpy"], **drawn(self.rows)})
        return self[name]


def comparable(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return [comparable(each) for each in result]
    kind, value = plain(result)
    return kind, value.copy() if isinstance(value, numpy.ndarray) else value


def called(m: Any, path: str, form: str, rows: int) -> tuple[Any, list[str]]:
    """What a call gives, and what a write into it shows; the texts of its warnings."""
    text = form[1:] if form.startswith("=") else f"m{path}({form})" if path.startswith(".") else f"numpy.{path}({form})"
    if path in STABLE and m is numpy:
        text = f"{text[:-1]}, kind='stable')".replace("(, ", "(")
    if path == "unique_values":
        text = f"numpy.sort({text})"
    operands = Operands(m, rows)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = eval(text, {"__builtins__": __builtins__}, operands)
            found = [comparable(result)]
            first = result[0] if isinstance(result, (tuple, list)) and result else result
            if type(first) in (numpy.ndarray, lazynp.ndarray) and first.size and first.flags.writeable and first.dtype.kind != "O":
                first[...] = 1  # seen in the operand where the result is a view
            found += [comparable(operands[name]) for name in sorted({*operands} - {"numpy"})]
        except Exception as error:
            found = [error]
    return found, sorted({f"{one.category.__name__}: {one.message}" for one in heard})


def apart(got: Any, want: Any) -> str | None:
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"{got!r} instead of {want!r}"
        return next(filter(None, map(apart, got, want)), None)
    if isinstance(want, Exception) or isinstance(got, Exception):
        classes = MemoryError if isinstance(want, MemoryError) else type(want)
        return None if isinstance(got, classes) else f"{got!r} instead of {want!r}"  # of a more special class is as good
    if got[0] != want[0]:
        return f"{got[0]} {got[1]!r} instead of {want[0]} {want[1]!r}"
    if want[0] not in ("array", "scalar"):
        return None if type(got[1]) is type(want[1]) or callable(want[1]) else f"{type(got[1])} instead of {type(want[1])}"
    a, b = numpy.asarray(got[1]), numpy.asarray(want[1])
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    if b.dtype.kind not in "fc":
        return None if numpy.array_equal(a, b) else f"{a!r} instead of {b!r}"
    room = 1e-9 if b.dtype.itemsize >= 8 * (1 + (b.dtype.kind == "c")) else 1e-3
    with numpy.errstate(all="ignore"):
        size = numpy.abs(b[numpy.isfinite(b)]).max(initial=0)
        return None if numpy.allclose(a, b, rtol=room, atol=room * float(size), equal_nan=True) else f"{a!r} instead of {b!r}"


@functools.cache
def suited(path: str) -> tuple[list[str], list[str], list[str]]:
    """Forms that NumPy answers, those of them whose results grow as the operands do, and one that it refuses."""
    base = path.rpartition(".")[2]
    answered, growing, refused = [], [], []
    for form in [*OTHERS.get(path, ()), *(METHOD_FORMS if path.startswith(".") else FORMS)]:
        found, _ = called(numpy, path, form, BELOW)
        if isinstance(found[0], TypeError):
            continue
        if isinstance(found[0], Exception):
            refused.append(form)
            continue
        answered.append(form)
        if base not in WIDE and any(name in form for name in "xmibz"):
            growing.append(form)
        if len(answered) == 4:
            break
    return answered, SLOW.get(base, growing[:1]), refused[:1]


def every_path() -> list[str]:
    found = [name for name in [*names.ALL, *names.LATER, *ufuncs.NAMES] if name not in ELSEWHERE]
    functions = [name for name in found if callable(getattr(numpy, name, None)) and not inspect.isclass(getattr(numpy, name))]
    within = [
        f"{module}.{name}"
        for module in ("linalg", "fft")
        for name in public_names(getattr(numpy, module))
        if callable(getattr(getattr(numpy, module), name))
    ]
    methods = [
        f".{name}"
        for name in dir(numpy.ndarray)
        if not name.startswith("_")
        and name not in ("tofile", "dump", "dumps", "setfield", "resize", "setflags")
        and callable(getattr(numpy.ndarray, name))
    ]
    return sorted(
        {*functions, *[each for each in within if not inspect.isclass(functools.reduce(getattr, each.split("."), numpy))], *methods}
    )


PATHS = every_path()


def different(path: str, form: str, rows: int) -> str | None:
    (want, told), (got, heard) = called(numpy, path, form, rows), called(lazynp, path, form, rows)
    found = apart(got, want) or (None if told == heard else f"warns {heard} instead of {told}")
    return found and f"{path}({form}): {found}"


@pytest.mark.parametrize("path", PATHS)
def test_below_the_limit(path: str) -> None:
    answered, _, refused = suited(path)
    assert answered, "no form suits it: say a call in OTHERS"
    assert not [found for form in [*answered, *refused] if (found := different(path, form, BELOW))]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_above_the_limit(path: str) -> None:
    _, growing, refused = suited(path)
    assert not [found for form in [*growing, *refused] if (found := different(path, form, ABOVE))]
