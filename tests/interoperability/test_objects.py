"""Subclasses of the array, objects that are not arrays, and what both are told: a program's text under NumPy, and mapped.

Each line of a table is an expression of its own; what it gives, or the exception with its text, is NumPy's, below the limit of what is
computed at the call and above it.
"""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.mapping import compile_mapped
from lazynp.values import config

TEXT_OF = """
import abc, fractions, decimal, functools, inspect, copy, pickle
import numpy as np

def shown(found):
    if isinstance(found, np.ndarray):
        return type(found).__name__, found.dtype.str, found.shape, repr(np.ndarray.tolist(found))[:400]
    return type(found).__name__, repr(found)[:400]

def told(call):
    try:
        return shown(call())
    except Exception as error:
        return type(error).__name__, str(error)
"""


def outcomes(text: str, lines: list[str], mapped: bool) -> list[Any]:
    """What each line gives, after the program's text."""
    scope: dict[str, Any] = {"__name__": "program"}
    source = TEXT_OF + text + "\nRESULTS = [" + ",\n".join(f"told(lambda: ({line}))" for line in lines) + "]\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile_mapped(source, "<program>") if mapped else compile(source, "<program>", "exec", dont_inherit=True), scope)
    return [re.sub("0x[0-9a-f]+", "0x", str(each)) for each in scope["RESULTS"]]


def same(text: str, table: str) -> None:
    lines = [line for line in table.strip().splitlines() if line.strip()]
    wanted = outcomes(text, lines, mapped=False)
    for below in (0, 4, 786_432):
        with config.override(tape_limit=below):
            found = outcomes(text, lines, mapped=True)
        for line, want, got in zip(lines, wanted, found, strict=True):
            assert got == want, (line, below)


ASKED = """
TABLE = {np.add: "add", np.multiply: "product", np.sqrt: "root", np.less: "less", np.divmod: "divmod", np.matmul: "matmul",
         np.negative: "neg", np.sum: "sum", np.concatenate: "joined", np.linalg.norm: "norm", np.fft.fft: "fft", np.mean: "mean",
         np.where: "where", np.max: "max", np.amax: "amax", np.round: "round", np.around: "around", np.allclose: "close",
         np.copyto: "copied", np.stack: "stacked"}
class Asked(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kw):
        return TABLE.get(ufunc), ufunc is getattr(np, ufunc.__name__), method, [type(x).__name__ for x in inputs], sorted(kw)
    def __array_function__(self, func, types, args, kwargs):
        return TABLE.get(func), func.__name__, sorted(t.__name__ for t in types), len(args), sorted(kwargs)
class Duck:
    __array_ufunc__, __array_function__ = Asked.__array_ufunc__, Asked.__array_function__
x = np.arange(8.0)
q = x.view(Asked)
d = Duck()
"""
DOORS = """
q + x
x + q
2 * q
q * np.float64(2)
[1] + q
x < q
divmod(x, q)
x @ q
-q
np.add(q, [1])
np.add([1], q)
np.add(x, x, out=q)
np.multiply(x, 2, where=q)
np.add.reduce(q)
np.add.accumulate(q)
np.add.reduceat(q, [0])
np.add.outer(x, q)
np.add.at(q, 0, 1)
np.add.at(x, q, 1)
q.sum()
q.max()
np.sum(q)
np.max(q)
np.amax(q)
np.around(q)
np.round(q)
np.mean(q)
np.linalg.norm(q)
np.fft.fft(q)
np.concatenate([x, q])
np.stack((x, q))
np.where(x, q, q)
np.allclose(x, q)
np.copyto(q, x)
np.sum(x, out=q)
"""


@pytest.mark.parametrize("name", ["q", "d"])
def test_protocols_are_asked_with_what_the_program_finds(name: str) -> None:
    of_arrays = ("q.sum()", "q.max()", "[1] + q", "-q", "q + x", "q * np.float64(2)")
    table = "\n".join(re.sub(r"\bq\b", name, line) for line in DOORS.strip().splitlines() if name == "q" or line not in of_arrays)
    same(ASKED, table)


SUPER = """
class Super(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kw):
        inputs = [x.view(np.ndarray) if isinstance(x, Super) else x for x in inputs]
        if out:
            kw["out"] = tuple(x.view(np.ndarray) if isinstance(x, Super) else x for x in out)
        found = super().__array_ufunc__(ufunc, method, *inputs, **kw)
        return found if found is NotImplemented or found is None or type(found) is tuple else np.asarray(found).view(Super)
    def __array_function__(self, func, types, args, kwargs):
        return func.__name__, func is getattr(np, func.__name__), super().__array_function__(func, types, args, kwargs)
class Below(Super):
    def __getitem__(self, key): return super().__getitem__(key)
class Plain(np.ndarray): pass
class Later(Plain):
    def __array_ufunc__(self, ufunc, method, *inputs, **kw):
        return "later", super().__array_ufunc__(ufunc, method, *[x.view(np.ndarray) if isinstance(x, Later) else x for x in inputs], **kw)
class Aside:
    def __array_ufunc__(self, ufunc, method, *inputs, **kw): return "aside", ufunc is np.add
class Mixed(Aside, np.ndarray): pass
class Abstract(np.ndarray, abc.ABC):
    @abc.abstractmethod
    def name(self): ...
class Other:
    def __array_ufunc__(self, *a, **k): return "other"
x = np.arange(6.0)
s, b, later, m = x.copy().view(Super), x.copy().view(Below), x.view(Later), x.view(Mixed)
"""


SAID = """
class Length(np.ndarray): pass
class Says:
    def __init__(self, kind): self.kind = kind
    def __array__(self, dtype=None, copy=None): return np.arange(3.0).view(self.kind).astype(dtype or float)
"""


def test_objects_that_say_they_are_a_subclass_are_one() -> None:
    same(
        SAID,
        """
np.asanyarray(Says(Length))
np.array(Says(Length), subok=True)
np.asarray(Says(Length))
np.array(Says(Length))
np.asanyarray(Says(Length), dtype=int)
np.asanyarray(Says(np.ndarray))
np.asanyarray(Says(np.matrix))
np.matrix_transpose._implementation(np.ones((2, 3))), np.linalg.matrix_transpose is np.matrix_transpose
np.ndarray.resize(np.arange(3), 4)
""",
    )


def test_super_means_numpys_protocol() -> None:
    same(SUPER, """
s + s
np.sqrt(s)
np.ones(6) * s
s.sum()
np.add.accumulate(s)
np.add.outer(s[:2], s[:2])
np.add.at(s, [0, 0], 1)
s
np.modf(s)
np.multiply(s, 2, out=s)
np.sum(s)
np.concatenate([s, x])
np.linalg.norm(s)
s + Other()
np.add(s, 1, where=s, out=np.zeros(6))
np.add.reduce(s, where=s)
b[1:] + b[:-1]
later + later
m + 1
m * 2
type(x.view(Abstract)).__name__
isinstance(x.view(Abstract), np.ndarray), issubclass(Abstract, abc.ABC)
np.ndarray.__array_ufunc__(x.view(Plain), np.add, "__call__", x, x)
np.ndarray.__array_function__(x.view(Plain), np.sum, (Plain,), (x.view(Plain),), {})
np.concatenate._implementation([x, x])
np.linalg.norm._implementation(x)
""")  # fmt: skip


UNBOUND = """
class Rows(np.ndarray):
    def __getitem__(self, key): return np.ndarray.__getitem__(self, key)
    def __setitem__(self, key, value): np.ndarray.__setitem__(self, key, value)
    def __add__(self, other): return np.ndarray.__add__(self, other)
    def __array_finalize__(self, obj): np.ndarray.__array_finalize__(self, obj); self.tag = type(obj).__name__
    def sum(self, *a, **k): return np.ndarray.sum(self, *a, **k)
    def __repr__(self): return "Rows of " + str(np.ndarray.tolist(self))
class Deep(Rows): pass
x = np.arange(6.0)
r, d = np.arange(6.0).view(Rows), np.arange(6.0).view(Deep)
"""


def test_methods_of_the_class_take_subclasses() -> None:
    same(UNBOUND, """
r[1], r[1:3], r[r > 2]
r.__setitem__(0, 7)
r.__setitem__(x > 4, x[:1])
np.ndarray.__setitem__(r, slice(1, 2), x[5:])
r
r + x
r.sum(), r.sum(axis=0, keepdims=True)
repr(d[2:]), d.tag
np.ndarray.mean(r), np.ndarray.max(d)
np.ndarray.reshape(r, (2, 3))
np.ndarray.astype(r, int)
np.ndarray.view(r, np.ndarray)
np.ndarray.shape.__get__(r), np.ndarray.dtype.__get__(d), np.ndarray.T.__get__(r)
np.ndarray.sort(r), np.ndarray.fill(d, 2), np.ndarray.put(d, [0], [9])
r, d
np.ndarray.__array_wrap__(r, x)
np.ndarray.__eq__(r, r)
np.ndarray.__contains__(r, 5), np.ndarray.__len__(r), np.ndarray.item(r, 0)
np.ndarray.sum(x), np.ndarray.__getitem__(x, 1), np.ndarray.__add__(x, 1)
np.ndarray.sum(5)
np.ndarray.__getitem__(5, 0)
np.ndarray.sum()
np.ndarray.nope
Rows.__mro__[1] is np.ndarray, Deep.__mro__[2] is np.ndarray
Rows.__bases__ == (np.ndarray,), Rows.__base__ is np.ndarray, Rows.mro()[1] is np.ndarray
np.ndarray.__mro__ == (np.ndarray, object), np.ndarray.__bases__
isinstance(r, np.ndarray), isinstance(x, Rows), issubclass(Rows, np.ndarray)
""")  # fmt: skip


BASES = """
class Sub(np.ndarray): pass
a = np.arange(12.0)
v = a[2:]
s, w = a.view(Sub), v.view(Sub)
n = np.ndarray((2,), buffer=a, offset=8)
t = np.ndarray((3,), float, a, 8, (16,))
q = a.view(); q.flags.writeable = False
"""


def test_bases_are_the_arrays_that_are_shown() -> None:
    same(BASES, """
s.base is a, w.base is v, s[1:].base is s, s.view(np.ndarray).base is a, np.asarray(s).base is a, w.view(type=np.ndarray).base is a
n.base is a, n[:1].base is a, t.base is a, Sub((2,), buffer=a).base is a, Sub((2,), float, v, 8).base is v
np.ndarray(buffer=q, dtype=q.dtype, shape=(2,), offset=0, strides=q.strides).base is a
a.view(np.matrix).base is a, a.view(np.recarray).base is a, np.shares_memory(t, a), np.shares_memory(np.asarray(s), a)
s.__setitem__(0, 5), np.asarray(s).__setitem__(1, 6), t.__setitem__(0, 7), w.fill(1)
a, n, t, s
np.asarray(v.copy().view(Sub)).sum()
""")  # fmt: skip


def test_a_view_of_a_subclass_keeps_the_memory() -> None:
    with config.override(tape_limit=6):
        for n in (4, 400):
            x = lazynp.arange(float(n)) * 1
            view = x.view(numpy.matrix)
            x += 1
            x[...] = lazynp.arange(float(n)) + 2
            assert view[0, 0] == 2 and view.base is x
            del x
            assert view.sum() == sum(range(2, n + 2))


OBJECTS = """
class Every:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: (name, a, sorted(k.items()))
class Table:
    shape, ndim, size = (3, 1), 7, 11
    def sum(self, axis=None, dtype=None, out=None): return "sum", axis, dtype, out
    def mean(self, axis=None, dtype=None, out=None): return "mean", axis, dtype, out
    def max(self, axis=None, out=None): return "max", axis, out
    def __array__(self, dtype=None, copy=None): return np.arange(3.0)
class Bare:
    sum = 5
e, t, b = Every(), Table(), Bare()
o = np.array([1, "", None], object); w = np.array(["a", "b"], object); f = np.array([fractions.Fraction(1, 2), fractions.Fraction(1, 3)])
z = np.array([], object); m = np.array([[1, 0], [2, 3]], object); text = np.array(["b", "a"])
"""
FUNCTIONS = [
    "sum", "prod", "max", "min", "any", "all", "mean", "std", "var",
    "ptp", "argmax", "argmin", "cumsum", "cumprod", "round", "squeeze", "ravel", "nonzero",
    "trace", "diagonal", "argsort", "size", "shape", "ndim", "real", "amax",
]  # fmt: skip


@pytest.mark.parametrize("name", ["e", "t", "b", "o", "w", "f", "z", "m", "text", "None", "'abc'"])
def test_objects_are_asked_for_their_own_methods(name: str) -> None:
    lines = [f"np.{function}({name})" for function in FUNCTIONS]
    lines += [f"np.{function}({name}, axis=0)" for function in ("sum", "max", "any", "all", "mean", "argmax", "cumsum")]
    lines += [f"np.{function}({name}, axis=0, keepdims=True)" for function in ("sum", "max", "any", "all", "mean")]
    lines += [f"np.{each}.reduce({name})" for each in ("add", "logical_and", "logical_or", "maximum")]
    lines += [
        f"np.take({name}, [0])",
        f"np.reshape({name}, -1)",
        f"np.clip({name}, 1, 2)",
        f"np.compress([True], {name})",
        f"np.transpose({name})",
    ]
    same(OBJECTS, "\n".join(lines))


PYTHONS = """
add = np.frompyfunc(lambda x, y: x + y, 2, 1); most = np.frompyfunc(max, 2, 1); pair = np.frompyfunc(divmod, 2, 2)
text = np.frompyfunc(lambda x, y: f"{x},{y}", 2, 1); one = np.frompyfunc(hex, 1, 1)
product = np.frompyfunc(lambda x, y: x * y, 2, 1, identity=1)
number = np.frompyfunc(lambda x, y: np.float64(2), 2, 1)
x = np.arange(12); y = np.arange(12.0).reshape(3, 4); z = np.zeros(0)
"""


@pytest.mark.parametrize("name", ["add", "most", "text", "product", "number", "pair", "one"])
def test_functions_of_pythons_reduce(name: str) -> None:
    methods = """reduce(x)
reduce(x[:4])
reduce(y)
reduce(y, axis=1)
reduce(y, axis=None)
reduce(x, keepdims=True)
reduce(x, initial=5)
reduce(z)
accumulate(x)
reduceat(x, [0, 3])
outer(x[:2], x[:2])
reduce([1, 2, 3])
reduce(x, dtype=object)""".splitlines()
    same(PYTHONS, "\n".join([f"{name}.{method}" for method in methods] + [f"{name}(x)", f"{name}(y, 1)", f"str(type({name}))"]))


@pytest.mark.parametrize("name", ["add", "most", "text", "product", "number", "pair", "one"])
def test_functions_of_pythons_write_at_positions(name: str) -> None:
    written, keys = ("x", "y[0]", "x.astype(object)", "z"), ("[0, 0, 2]", "x[:2]", "slice(3)", "99")
    methods = [f"{name}.at({to}, {key}, 7), {to}" for to in written for key in keys]
    same(PYTHONS, "\n".join([*methods, f"{name}.at(x, [1])", f"{name}.at([1, 2], [1], 1)"]))


ATTRIBUTES = """
class Odd:
    ndim, shape, size, dtype, real, imag = 7, (3, 4), 99, "x", "R", "I"
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return lambda *a, **k: name
    def __repr__(self): return "Odd()"
class Kind:
    dtype = np.dtype("c8")
s, k = Odd(), Kind()
x, y = np.arange(6.0), np.arange(12.0).reshape(3, 4)
bytes_ = np.zeros(24, "u1")
off, on, imag = bytes_[1:17].view("f8"), bytes_[8:24].view("f8"), np.zeros(6, "c16").imag
FLAGS = ["aligned", "behaved", "carray", "farray", "num", "c_contiguous", "fnc", "forc"]
def flags(x): return [getattr(x.flags, each) for each in FLAGS]
"""


def test_attributes_are_what_numpy_finds_in_them() -> None:
    same(ATTRIBUTES, """
[f(s) for f in (np.ndim, np.shape, np.size, np.real, np.imag, np.iscomplexobj, np.isrealobj)]
[f(k) for f in (np.iscomplexobj, np.isrealobj)], np.iscomplexobj([1j]), np.iscomplexobj(None)
np.where(s)
np.nonzero(s)
x.flat[6]
x.flat[-7]
x.flat[[0, 9]]
np.putmask(x, [None, 1, "", "a", 0, 2], 7), x
np.putmask(x, None, 7)
np.place(x, np.array([None, 1, "", "a", 0, 2], object), [8]), x
setattr(y[0], "shape", None)
setattr(y, "shape", None)
setattr(y, "dtype", "nope")
flags(off), flags(on), flags(imag), flags(bytes_[1:3]), flags(y), flags(y.T), flags(y[:, 1:]), flags(y[0]), flags(x[:0])
off.sum(), off + 1, np.sort(off), flags(off + 1), flags(off.copy())
""")  # fmt: skip


@pytest.mark.parametrize("below", [0, 786_432])
def test_an_array_stays_of_a_dtype_of_ours(below: int) -> None:
    with config.override(tape_limit=below):
        x = lazynp.arange(3.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(TypeError, match="cannot become"):
                x.dtype = "S8"
        assert x.tolist() == [0, 1, 2]


NAMES = """
x = np.ones(2)
def f(a: np.ndarray) -> np.ndarray: ...
"""


def test_texts_name_what_numpy_names() -> None:
    same(NAMES, """
str(type(x)), str(np.ndarray), np.ndarray.__module__, np.__name__, str(type(np.add))
str(inspect.signature(f))
hash(x)
x.nope
np.nope
np.linalg.nope
f"{x:.2f}"
"%d" % x
x()
x + object()
x.__delitem__(0)
{**x}
[*range(3)][x]
x @ "a"
"a" in {x}
int(x)
np.sqrt()
np.add(1)
np.astype(object(), float)
np.cumulative_sum([[1, 2], [3, 4]])
abs(x) << 2
x.sum(axis=3)
x.reshape(3)
x[5]
x[1.5]
setattr(x, "shape", 7)
setattr(x, "nope", 7)
""")  # fmt: skip


def test_the_class_is_pickled_by_name() -> None:
    for kind in (lazynp.ndarray, type(lazynp.add), Sub):
        assert all(pickle.loads(pickle.dumps(kind, protocol)) is kind for protocol in range(2, 6)) and copy.copy(kind) is kind


class Sub(lazynp.ndarray):
    """At the top of a module, where pickle finds it."""


SYMPY = """
import sympy as S
x = np.arange(1.0, 3.0); t = S.Symbol("t")
"""


def test_numbers_of_sympys_beside_arrays() -> None:
    pytest.importorskip("sympy")
    operators = ("+", "-", "*", "/", "**", "%", "//", "<", "==", "!=")
    numbers = ("S.Float(2)", "S.Rational(1, 3)", "S.pi", "t", "S.Integer(2)", "S.I", "(t + 1)", "S.oo")
    same(
        SYMPY,
        "\n".join(f"{left} {each} {right}" for number in numbers for each in operators for left, right in ((number, "x"), ("x", number))),
    )


PANDAS = """
import pandas as pd
n = 20
table = pd.DataFrame({"a": np.arange(float(n)), "b": np.arange(n)[::-1] * 2, "g": np.arange(n) % 2})
groups = table.groupby("g")
def rms(q): return np.sqrt(np.mean(np.asarray(q) ** 2))
def spread(q, k=1): return np.ptp(q.to_numpy()) * k
def short(found): return found.to_csv() + str(getattr(found, "dtypes", "")) if hasattr(found, "to_csv") else repr(found)
"""


@pytest.mark.parametrize(
    "function", ["rms", "lambda q: np.ptp(q.to_numpy())", "functools.partial(spread, k=2)", "np.sum", "np.median", "np.std"]
)
def test_functions_that_pandas_calls_answer_with_numpys_numbers(function: str) -> None:
    pytest.importorskip("pandas")
    calls = """groups['a'].agg({f})
groups[['a', 'b']].agg([{f}, rms] if {f} is not rms else [rms, 'sum'])
groups.agg(x=('a', {f}), y=pd.NamedAgg('b', {f}))
groups['a'].apply({f})
groups['a'].transform({f})
table[['a', 'b']].apply({f})
table['a'].agg({f})
table['a'].rolling(3).apply({f}, raw=False)
table.pivot_table(index='g', values='a', aggfunc={f})
groups.agg({{'a': {f}, 'b': [{f}, 'mean']}})""".splitlines()
    same(PANDAS, "\n".join(f"short({call.format(f=f'({function})')})" for call in calls))
