"""``lazynp.special`` against SciPy and against exact values: dtypes, keywords, bounds, sums of exponentials, life without SciPy."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special as theirs

import lazynp
from lazynp import special
from lazynp.arrays import node_of
from lazynp.graph import op as o
from lazynp.namespace.special.table import ALIASES, ROWS
from lazynp.values import config
from tests.backends.special_errors import errors_in_ulps, functions

VALUES = np.load(Path(__file__).parents[1] / "backends" / "special_values.npz")
COMPOSED = sorted(name for name in {key.split(".")[0] for key in VALUES.files} if hasattr(o, name.upper()) is False and name in ROWS)
NATIVE = sorted(ROWS)
INF, NAN = np.inf, np.nan


def naked(name: str) -> np.ufunc:
    found = getattr(theirs, name)
    return getattr(found, "__wrapped__", found)


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The result as NumPy's; the exception; warnings count as such."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = function(*args, **kwargs)
            return np.asarray(found) if np.ndim(found) else found
        except Exception as error:
            return error


def agree(found: Any, expected: Any, tolerance: float, absolute: float = 0) -> None:
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), (found, expected)
        return
    assert not isinstance(found, Exception), found
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert np.allclose(found, expected, rtol=tolerance, atol=absolute, equal_nan=True), (found, expected)


# Two differences from SciPy on purpose: an infinite argument gives the limit.
LIMITS = {"i0": INF, "i1": INF, "pseudo_huber": INF}


def numbers(name: str, char: str) -> list[np.ndarray[Any, Any]]:
    if char == "?":
        x = np.array([False, True, True])
    elif char in "bBhHiIlL":
        x = np.array([0, 1, 2, 3, 100], char)
    else:
        x = np.array([0, 1, 0.5, -0.5, -2, 3, 30, -30, NAN] + ([] if name in LIMITS else [INF, -INF])).astype(char)
    return [x] if ROWS[name].nin == 1 else [x[:, None], x[None, :]]


@pytest.mark.parametrize("name", NATIVE)
def test_values_and_dtypes_are_scipys(name: str) -> None:
    for char in "?bBhHiIlLefdFDgO":
        arrays = numbers(name, char)
        expected = outcome(naked(name), *arrays)
        if not isinstance(expected, Exception) and naked(name).types != getattr(special, name).types and char not in "fdFD":
            continue  # a version of SciPy that lists its loops in another order
        agree(outcome(getattr(special, name), *map(lazynp.asarray, arrays)), expected, 1e-6 if char in "efF" else 1e-11)


@pytest.mark.parametrize("name", NATIVE)
def test_dtypes_of_all_pairs_are_scipys(name: str) -> None:
    ours, of = getattr(special, name), naked(name)
    assert (ours.nin, ours.nout, ours.nargs, ours.__name__) == (of.nin, 1, of.nargs, of.__name__)
    if of.types[: len(ours.types)] != ours.types:
        return  # a version of SciPy that lists its loops in another order

    def resolved(function: Any, key: tuple[Any, ...]) -> Any:
        try:
            return function.resolve_dtypes((*key, None))
        except TypeError:
            return TypeError

    kinds = [*(np.dtype(c) for c in "?bBhHiIlLefdFD"), float, int, complex]
    for key in itertools.product(kinds, repeat=ours.nin):
        assert resolved(ours, key) == resolved(of, key), key


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions_are_within_their_bounds(name: str) -> None:
    x, *exact = (VALUES[f"{name}.{part}"] for part in ("x", "value", "rest", "exponent"))
    for function in functions(name):
        error = errors_in_ulps(function(*x), *exact, name, x)
        worst = int(np.argmax(error))
        assert error[worst] <= ROWS[name].bound, (x[:, worst], error[worst])


def test_every_bound_is_tested() -> None:
    of_numpy = {"gammasgn", "cbrt", "exp2", "expm1", "log1p"}  # exact, or NumPy's functions, which have their own tests
    tested = {key.split(".")[0] for key in VALUES.files} | of_numpy
    assert {name for name in ROWS if name not in tested} <= {"psi"}  # which is tested as digamma


# Keywords -------------------------------------------------------------------------------------------------------------------------


X = np.linspace(-3, 3, 12).reshape(3, 4)
CALLS: list[Any] = [
    lambda np, sp: sp.erf(np.asarray(X), np.zeros((3, 4))),
    lambda np, sp: sp.erf(np.asarray(X), out=np.zeros((2, 3, 4))),
    lambda np, sp: sp.erf(np.asarray(X), out=np.zeros((3, 4), "float32")),
    lambda np, sp: sp.erf(np.asarray(X), out=np.zeros((3, 4), "int64")),
    lambda np, sp: sp.erf(np.asarray(X), out=np.zeros((3, 4), "int64"), casting="unsafe"),
    lambda np, sp: sp.erf(np.asarray(X), out=np.zeros((3, 3))),
    lambda np, sp: sp.erf(np.asarray(X), out=np.ones((3, 4)), where=np.asarray(X) > 0),
    lambda np, sp: sp.erfinv(np.asarray(X), out=np.ones((3, 4)), where=abs(np.asarray(X)) < 1),
    lambda np, sp: sp.erf(np.asarray(X), dtype="float32"),
    lambda np, sp: sp.erf(np.asarray(X), dtype="float32", casting="safe"),
    lambda np, sp: sp.erf(np.asarray(X), dtype="float16"),
    lambda np, sp: sp.erf(np.asarray(X), bad=1),
    lambda np, sp: sp.erf(),
    lambda np, sp: sp.erf(np.asarray(X), np.zeros((3, 4)), 3),
    lambda np, sp: sp.erf("text"),
    lambda np, sp: sp.erf(None),
    lambda np, sp: sp.erf([0.5, 1]),
    lambda np, sp: sp.erf([]),
    lambda np, sp: sp.erf(np.asarray(X)[::2, ::-1]),
    lambda np, sp: sp.erf(np.asarray(X).T),
    lambda np, sp: sp.erf(np.asarray(0.5)),
    lambda np, sp: sp.erf(np.asarray(X)[1, 2]),
    lambda np, sp: sp.erf(0.5),
    lambda np, sp: sp.erf(1),
    lambda np, sp: sp.erf(True),
    lambda np, sp: sp.erf(np.float32(0.5)),
    lambda np, sp: sp.erf(0.5j),
    lambda np, sp: sp.erf(np.asarray(X) + 1j),
    lambda np, sp: sp.xlogy(np.asarray(X), np.asarray(X[0])),
    lambda np, sp: sp.xlogy(np.asarray(X), np.asarray(X[:, 0])),
    lambda np, sp: sp.xlogy(0, 0),
    lambda np, sp: sp.xlogy(2.0, 3),
    lambda np, sp: sp.xlogy(np.asarray(X, "float32"), 2.0),
    lambda np, sp: sp.rel_entr(np.asarray(abs(X), "float32"), 2.0),
    lambda np, sp: sp.xlogy.outer(np.arange(3.0), np.arange(1.0, 3.0)),
    lambda np, sp: sp.erf.outer(np.arange(3.0), np.arange(3.0)),
    lambda np, sp: sp.erf.reduce(np.arange(3.0)),
    lambda np, sp: sp.gammainc(np.asarray([1.0, 2.0]), np.asarray([[0.5], [1.5]])),
    lambda np, sp: sp.betainc(1.0, np.asarray([2.0, 3.0]), 0.5),
    lambda np, sp: sp.gamma(np.asarray(X), out=np.zeros((3, 4))),
    lambda np, sp: sp.jv(np.asarray([0, 1]), 2.5),
    lambda np, sp: sp.sici(np.asarray([0.5, 1.5]))[1],
    lambda np, sp: sp.zeta(np.asarray([2.0, 3.0])),
    lambda np, sp: sp.zeta(np.asarray([2.0, 3.0]), 2),
    lambda np, sp: sp.zeta(2),
    lambda np, sp: sp.zeta(np.asarray([2.0, 3.0]), out=np.zeros(2)),
    lambda np, sp: sp.polygamma(np.asarray([0, 1]), np.asarray([2.5, 3.5])),
    lambda np, sp: sp.multigammaln(np.asarray([3.5, 4.5]), 3),
    lambda np, sp: sp.factorial(np.asarray([3, 4])),
    lambda np, sp: sp.comb(5, 2),
    lambda np, sp: sp.sinc(np.asarray(X)),
    lambda np, sp: sp.digamma(np.asarray(X) + 0.1),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_calls_are_scipys(call: Any) -> None:
    expected, found = outcome(call, np, theirs), outcome(call, lazynp, special)
    agree(found, expected, 1e-6)
    if not isinstance(expected, Exception):
        assert np.ndim(found) == np.ndim(expected)
        assert isinstance(found, np.generic) == isinstance(expected, np.generic) or lazynp.isscalar(found) == np.isscalar(expected)


def test_updates_at_indices() -> None:
    x, y = lazynp.asarray(X.ravel()), X.ravel().copy()
    special.erf.at(x, [0, 3])
    theirs.erf.at(y, [0, 3])
    assert np.allclose(np.asarray(x), y)


# Laziness -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("numbers_wait")
def test_results_are_recorded_not_computed() -> None:
    x = lazynp.asarray(X)
    for name, kind in (("erf", o.ERF), ("gammaln", o.GAMMALN), ("gamma", o.CALL), ("zeta", o.CALL)):
        assert node_of(getattr(special, name)(x)).op is kind
        assert node_of(x[0, 0] * 1.0).op is not None
    assert node_of(special.erf(x.sum())).buffer is None


def test_a_formula_is_one_kernel() -> None:
    with config.override(backend="llvm", tier="compiled"):
        x = lazynp.asarray(np.linspace(-4, 4, 1000))
        y = 0.5 * x * (1 + special.erf(x / np.sqrt(2)))
        assert len(lazynp.schedule(y).items) == 1
        assert np.allclose(np.asarray(y), X_GELU(np.linspace(-4, 4, 1000)))


def X_GELU(x: Any) -> Any:
    return 0.5 * x * (1 + theirs.erf(x / np.sqrt(2)))


@pytest.mark.usefixtures("recorded")
def test_scipys_ufuncs_of_our_arrays_are_ours() -> None:
    x = lazynp.asarray(X)
    assert node_of(naked("erf")(x)).op is o.ERF
    assert node_of(naked("gamma")(x)).op is o.CALL
    out = np.zeros((3, 4))
    assert naked("erf")(x, out=out) is out
    assert np.allclose(out, theirs.erf(X))
    ours = lazynp.zeros((3, 4))
    assert naked("erf")(x, out=ours) is ours
    assert np.allclose(np.asarray(ours), theirs.erf(X))


def test_functions_can_be_pickled_and_name_themselves() -> None:
    for name in ("erf", "xlogy", "gamma", "logsumexp", "zeta", "multigammaln"):
        function = getattr(special, name)
        assert pickle.loads(pickle.dumps(function)) is function
    assert repr(special.erf) == "<ufunc 'lazynp.special.erf'>"
    assert special.digamma is special.psi
    assert "at most 2 units" in special.erf.__doc__


def test_names() -> None:
    assert set(special.__all__) >= {*ROWS, *ALIASES, "gamma", "logsumexp"}
    for name in special.__all__:
        assert callable(getattr(special, name)), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        special.nothing
    assert "special" in dir(lazynp)
    assert "erf" in dir(special)


def test_the_documentation_lists_every_native_function_with_its_bound() -> None:
    page = (Path(__file__).parents[2] / "docs" / "special.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    assert [row[0] for row in rows] == [f"`{name}`" for name in ROWS]
    for (name, what, way, bound, complex_), row in zip(rows, ROWS.values(), strict=True):
        assert what == row.what.replace("``", "`")
        assert (way == "operation") == (name.strip("`") in {op.name for op in o.SPECIAL} | {"psi"}), name
        assert bound.split(";")[0].split()[0] == (str(row.bound) if row.bound else "exact"), name
        assert (str(row.left) in bound.partition(";")[2]) == bool(row.left) or not row.left, name
        assert (complex_ == "SciPy") == row.complex, name


def run(program: str, **environment: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os_environment(), **environment})
    assert done.returncode == 0, done.stderr[-2000:]


def os_environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def test_neither_scipy_nor_the_module_is_loaded_before_it_is_asked_for() -> None:
    run(
        "import sys, lazynp as np\n"
        "later = ('lazynp.special', 'lazynp.backends.special', 'lazynp.backends.numpy.special', 'lazynp.namespace.special.table')\n"
        "assert not any(name in sys.modules for name in later)\n"
        "x = np.linspace(0, 1, 5)\n"
        "y = np.special.erf(x) + np.special.logsumexp(x)\n"
        "assert float(y[0]) > 0\n"
        "assert 'lazynp.special' in sys.modules and 'scipy' not in sys.modules\n"
    )


def test_without_scipy() -> None:
    run(
        "import sys\n"
        "sys.modules['scipy'] = None\n"
        "import lazynp as np, lazynp.special as special\n"
        "x = np.linspace(0.1, 1, 5)\n"
        "assert np.allclose(special.erf(x), [0.11246292, 0.35388444, 0.56332366, 0.72667727 - 0.00000, 0.84270079], atol=0.1)\n"
        "assert float(special.xlogy(x, x).sum()) < 0 and special.erf(0.5) > 0.5\n"
        "assert hasattr(special, 'gamma') and not hasattr(special, 'nothing')\n"
        "for call in (lambda: special.gamma(x), lambda: special.zeta(2.0), lambda: special.erf(x + 1j)):\n"
        "    try:\n"
        "        call()\n"
        "    except ImportError as error:\n"
        "        assert 'pip install scipy' in str(error), error\n"
        "    else:\n"
        "        raise AssertionError\n"
    )


@pytest.mark.slow
def test_scipys_dispatch_finds_it() -> None:
    run(
        "import numpy, lazynp as np, scipy.special as sp\n"
        "x = np.linspace(0.1, 0.9, 5)\n"
        "np.set_fallback('error')\n"
        "for name in ('erf', 'gammaln', 'ndtri', 'gamma', 'entr', 'psi', 'zeta', 'stdtr', 'betaincc', 'polygamma', 'sinc'):\n"
        "    function = getattr(sp, name)\n"
        "    args = {'zeta': (x + 2, x), 'stdtr': (x, x), 'betaincc': (x, x, x), 'polygamma': (1, x)}.get(name, (x,))\n"
        "    found = function(*args)\n"
        "    assert type(found) is np.ndarray, name\n"
        "    hosts = [numpy.asarray(arg) for arg in args]\n"
        "    assert numpy.allclose(numpy.asarray(found), function(*hosts)), name\n",
        SCIPY_ARRAY_API="1",
    )


# Sums of exponentials -------------------------------------------------------------------------------------------------------------

A = np.random.default_rng(3).normal(size=(4, 5)) * 10
WEIRD = np.array([[0, 0, 1000], [-1000, -1000, -INF], [INF, 1, -INF], [-INF, -INF, -INF], [NAN, 1, 2], [INF, INF, 0], [INF, 1000, NAN]])
SUMS: list[tuple[Any, dict[str, Any]]] = [
    (A, {}), (A, {"axis": 0}), (A, {"axis": 1}), (A, {"axis": (0, 1)}), (A, {"axis": -1, "keepdims": True}),
    (A.astype("float32"), {"axis": 1}), (A, {"b": np.arange(5.0)}), (A, {"b": -1.0}),
    (A, {"axis": 1, "b": np.linspace(-1, 1, 20).reshape(4, 5), "return_sign": True}), (A, {"return_sign": True}),
    (A.astype("float32"), {"b": np.arange(5, dtype="float32"), "axis": 0}), ([1, 2, 3], {}), (2.5, {}), ([], {}),
    (np.zeros((0, 3)), {"axis": 0}), (WEIRD, {"axis": 1}), (WEIRD, {"axis": 0}), (WEIRD[:6], {"axis": 1, "b": np.array([1.0, 2.0, 0.0])}),
    (WEIRD, {"axis": 1, "return_sign": True}), (np.array([1.0, 1.0, 0.5]), {"b": np.array([1.0, -1.0, 2.0])}), (A + 1j, {"axis": 1}),
    (np.array([1e-10, 0.0]) + 700, {}), (A, {"axis": 2}), (np.arange(6).reshape(2, 3), {"axis": 0}), (np.float32(1.5), {}),
    (np.array([1.0, 2.0]), {"b": np.array([1.0, -1.0])}), (np.array([1.0, 1.0]), {"b": np.array([1.0, -1.0]), "return_sign": True}),
]  # fmt: skip


@pytest.mark.parametrize(("a", "options"), SUMS, ids=range(len(SUMS)))
def test_logsumexp(a: Any, options: dict[str, Any]) -> None:
    expected = outcome(theirs.logsumexp, a, **options)
    given = {key: lazynp.asarray(value) if key == "b" else value for key, value in options.items()}
    found = outcome(special.logsumexp, lazynp.asarray(a) if isinstance(a, np.ndarray) else a, **given)
    if isinstance(expected, tuple) or (isinstance(expected, np.ndarray) and options.get("return_sign")):
        for f, e in zip(found, expected, strict=True):
            agree(f, e, 1e-6 if e.dtype == np.float32 else 1e-13)
    else:
        agree(found, expected, 1e-6 if getattr(expected, "dtype", None) == np.float32 else 1e-13)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("x", [A, A.astype("float32"), np.arange(6).reshape(2, 3), np.array([1e3, 1.0]), 2.5, [1, 2], np.array([INF, 1])])
def test_softmax(name: str, x: Any) -> None:
    for axis in (None, 0, -1, 7):
        with np.errstate(all="ignore"):
            expected = outcome(getattr(theirs, name), x, axis=axis)
            found = outcome(getattr(special, name), lazynp.asarray(x) if isinstance(x, np.ndarray) else x, axis=axis)
        tolerance = 2e-6 if getattr(expected, "dtype", None) == np.float32 else 1e-13
        agree(found, expected, tolerance, tolerance)  # the logarithm of a number near 1


def test_softplus() -> None:
    assert np.allclose(np.asarray(special.softplus(lazynp.asarray(A))), np.logaddexp(0, A))
