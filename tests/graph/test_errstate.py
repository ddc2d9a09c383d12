"""Floating-point errors: the same messages at the same lines as NumPy, in every mode and tier."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.values import config
from tests.array import chained
from tests.differential.tables import words

pytestmark = pytest.mark.usefixtures("recorded")

ENGINES: dict[str, dict[str, Any]] = {"auto": {}, "compiled": {"tier": "compiled"}, "numpy": {"backend": "numpy"}}
Said = list[tuple[str, type, int]]


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name == "compiled" else ()) for name in ENGINES])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with config.override(**ENGINES[request.param]):
        yield request.param


def said(program: str, module: Any) -> Said:
    """What a program warns of: message, category, line.  Every line is one operation; ``r`` collects what is computed afterwards."""
    names: dict[str, Any] = {"np": module, "r": [], "__name__": "program"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(program, "<program>", "exec"), names)
        for value in names["r"]:
            numpy.asarray(value)
    return sorted([(str(w.message), w.category, w.lineno) for w in caught], key=lambda entry: entry[2])


SETUP = """
a = np.array([1.0, 0.0, -1.0, np.inf, -np.inf, np.nan, 1e308, 5e-324])
z = np.zeros(8)
f = a.astype(np.float64)
h = np.array([1, 0, -1, 65504, 6e-8], np.float16)
s = np.array([1, 0, -1, 3e38, 1e-45], np.float32)
c = np.array([1 + 1j, 0, 1e300 + 1e300j])
i = np.array([-128, 1, 0], np.int8)
j = np.array([-1, 0, 0], np.int8)
"""
SPECIAL_FUNCTIONS = words(
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh square "
    "reciprocal fabs rad2deg deg2rad degrees radians floor ceil trunc rint sign negative positive absolute isnan isinf isfinite signbit "
    "spacing logical_not"
)
OF_TWO = words(
    "add subtract multiply divide floor_divide remainder fmod power float_power hypot arctan2 logaddexp logaddexp2 maximum fmin copysign "
    "nextafter heaviside less not_equal logical_and"
)
LINES = {
    "arithmetic": """
        a + a;  a - a;  a * a;  a / z;  z / z;  1 / a;  a // z;  a % z;  a ** 2;  a ** -1;  a ** 0.5;  a ** 3;  -a;  abs(a);  a < z;  a == a
        s * s;  h * h;  s / 0;  h / 0;  c * c;  c / 0;  c ** 2;  abs(c);  c < c;  a + 1;  s + 1e300;  np.divide(a, 0)""",
    "unary": ";".join(f"np.{name}(a)" for name in SPECIAL_FUNCTIONS),
    "narrow": ";".join(f"np.{name}({x})" for x in "hs" for name in words("exp log sqrt square reciprocal rad2deg arctanh sinh spacing")),
    "complex": ";".join(f"np.{name}(c)" for name in words("exp log sqrt square reciprocal sin tan absolute")),
    "binary": ";".join(f"np.{name}(a, z)" for name in OF_TWO) + "; np.ldexp(a, np.array([3000] * 8)); np.multiply.outer(a, a)",
    "integers": "i // j;  i % j;  np.fmod(i, j);  i // 0;  -i;  abs(i);  i + i;  i * i;  np.power(i, 3);  i / j;  np.gcd(i, j)",
    "casts": """
        a.astype(int);  a.astype(np.uint8);  a.astype(np.float32);  a.astype(np.float16);  a.astype(bool);  s.astype(float)
        c.astype(np.complex64);  np.array([70000]).astype(np.float16);  s.astype(np.int32);  a.astype(np.uint64)
        np.array(np.nan).astype(int)""",
    # The fourth: of many elements NumPy multiplies in another order, in which the first NaN may come before the first error.
    "reductions": """
        np.add.reduce(a);  a.cumsum();  a.cumprod();  np.multiply.reduce(a[1:4]);  np.add.accumulate(a);  np.max(a);  np.minimum.reduce(a)
        np.add.reduce(a[3:5]);  np.add.reduce(h);  np.add.reduceat(a, [0, 3]);  np.any(a)""",
    "products": "np.matmul(a[6:7], a[3:4] * 0 + 1e10);  np.dot(a[6:7], 10 * (a[:1]))",
    "masked": """
        np.divide(1, a, where=a != 0, out=np.zeros(8));  np.log(a, where=a > 0, out=np.zeros(8))
        np.divide(1, a, where=a == 0, out=np.zeros(8));  np.arctanh(a, where=a == 0, out=np.zeros(8))""",
    "out": "np.add(a, a, out=np.zeros(8));  np.multiply(a, 10, out=np.zeros(8, np.float32), casting='same_kind')",
    "0-d": "np.array(1.0) / np.array(0.0);  np.array(1.0) / 0;  np.float64(1) / np.array(0.0);  np.log(np.array(0.0));  np.log(0.0)",
    "scalars": """
        np.float64(1) / 0;  1 / np.float64(0);  np.float64(1e308) * 10;  np.float64(1e308) ** 2;  np.float64(0) ** -1;  np.float64(1) // 0
        np.float64(1) % 0;  np.int8(100) + np.int8(100);  -np.int8(-128);  abs(np.int8(-128));  np.int8(1) // np.int8(0);  np.sqrt(-1.0)
        np.uint8(1) - np.uint8(2);  np.float32(1e300);  np.int64(np.float64(np.nan));  np.divide(np.float64(1), np.float64(0))
        divmod(np.float64(1), 0)[0]""",
    "pending scalars": "a[0] / a[1];  np.add.reduce(a[:1]) * 1e308 * a[6];  a[1] // 0;  1 / (a[1] + a[1]);  np.log(a[1] * 1)",
}


@pytest.mark.parametrize("family", LINES)
def test_messages_and_lines_are_numpys(engine: str, family: str) -> None:
    calls = [call.strip() for line in LINES[family].strip().split("\n") for call in line.split(";")]
    program = SETUP + "".join(f"r.append({call})\n" for call in calls)
    expected, got = said(program, numpy), said(program, lazynp)
    lines = dict(enumerate(program.split("\n"), 1))
    assert expected
    assert got == expected, [(lines.get(entry[2]), entry) for entry in {*expected} ^ {*got}]


# Programs of several lines; ``x`` is the result.
STATEMENTS = [
    "x = np.zeros(3, 'f4')\nx[0] = 1e300", "x = np.zeros(3, 'f4')\nx[:] = 1e300", "x = np.zeros(3, 'f4')\nx[0] = np.float64(1e300)",
    "x = np.zeros(3, 'i4')\nx[:] = np.array([1e30, 1, 2])", "x = np.zeros(3, 'f4')\nx[1:] = np.array([1e300])",
    "x = np.zeros(3, 'f4')\nx.fill(1e300)", "x = np.zeros(3, 'f4')\nx += 1e300", "x = np.ones(3, 'f4')\nx *= np.array([1e300])",
    "x = np.array([1e300, 1], 'f4')", "x = np.where([True, False], np.ones(2, 'f4'), 1e300)", "x = np.maximum(np.ones(2, 'f4'), 1e300)",
    "x = np.zeros(3)\ny = np.ones(3)\nfor k in range(3):\n    x[k] = y[k] / 0", "x = np.ones(3)\nx[0] /= 0",
    "x = np.ones((2, 2))\nx[0] /= 0", "x = np.ones(3, int)\nx[0] //= 0", "x = np.ones(3, 'i1') * 100\nx[0] += np.int8(100)",
    "x = np.arange(3)\ns = x.sum()\nx = s // 0", "x = np.zeros(2, 'f4')\nx.flat[0] = 1e300", "x = np.array([1, 2.0])\nx = x.mean() / 0",
    "x = 1 / np.array([0, 1])", "x = np.random.default_rng(0).random(3) / 0",
]  # fmt: skip


@pytest.mark.parametrize("program", STATEMENTS)
def test_statements(engine: str, program: str) -> None:
    expected, got = said(f"{program}\nr.append(x)", numpy), said(f"{program}\nr.append(x)", lazynp)
    assert got == expected != []


FULL = ["ignore", "warn", "raise", "call", "log", "print"]
MODES_OF = [
    "1 / a", "a * a", "np.log(a)", "np.exp(a)", "np.sqrt(a)", "a.astype(int)", "np.float64(1) / 0", "np.cumsum(a)", "a / z", "i // j",
]  # fmt: skip


class Log:
    def __init__(self) -> None:
        self.lines: list[Any] = []

    def write(self, text: str) -> None:
        self.lines.append(text)

    def __call__(self, *what: Any) -> None:
        self.lines.append(what)


def outcome(line: str, module: Any, capfd: Any, **state: str) -> Any:
    """Everything that one line does under an error state."""
    names: dict[str, Any] = {"np": module}
    exec(SETUP, names)
    log = Log()
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with numpy.errstate(call=log, **state):
            try:
                value = eval(line, names)
                error = None
            except FloatingPointError as raised:
                value, error = None, str(raised)
        if value is not None:
            value = numpy.array(value)
    return [(str(w.message), w.category) for w in caught], error, log.lines, capfd.readouterr().err, value


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("call", words("exp(-1000) exp(-104.5) exp(-np.inf) exp2(-2000) power(1e-200,2) square(1e-30) exp(2)"))
def test_what_vanishes_underflows(engine: str, call: str, dtype: str) -> None:
    name, _, numbers = call.removesuffix(")").partition("(")
    with numpy.errstate(all="ignore"):
        numbers = ", ".join(f"np.full(9, {number}, '{dtype}')" for number in numbers.split(","))
        setup = f"arguments = [{numbers}]\n"
        program = f"{setup}with np.errstate(under='warn'): x = np.{name}(*arguments)\nr.append(x)"
        assert said(program, lazynp) == said(program, numpy)


@pytest.mark.parametrize("mode", FULL)
def test_modes(engine: str, mode: str, capfd: Any) -> None:
    for line in MODES_OF:
        expected, got = outcome(line, numpy, capfd, all=mode), outcome(line, lazynp, capfd, all=mode)
        assert got[:4] == expected[:4], (line, mode)
        assert (got[4] is None) == (expected[4] is None)
        if got[4] is not None and "i //" not in line:
            numpy.testing.assert_allclose(got[4], expected[4], rtol=1e-13)


def test_mixed_modes(engine: str, capfd: Any) -> None:
    for state in (
        {"divide": "raise", "invalid": "ignore"}, {"invalid": "raise", "divide": "warn"}, {"over": "call", "divide": "ignore"},
        {"under": "warn", "over": "ignore"}, {"divide": "log", "invalid": "warn", "over": "raise"},
    ):  # fmt: skip
        for line in MODES_OF:
            expected, got = outcome(line, numpy, capfd, **state), outcome(line, lazynp, capfd, **state)
            # Where several happen and one raises, NumPy may have warned of the others first: both tell in NumPy's order.
            assert got[:4] == expected[:4], (line, state)


def test_constants_are_converted_with_their_warning(engine: str) -> None:
    with pytest.warns(RuntimeWarning, match="invalid value encountered in cast") as caught:
        assert numpy.array_equal(lazynp.full(3, numpy.nan, dtype=int), numpy.full(3, numpy.nan, dtype=int))
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        lazynp.full(2, 1e300, numpy.float32)
    assert __file__ in {w.filename for w in caught}


def test_the_state_is_that_of_the_recording(engine: str) -> None:
    x = lazynp.array([1.0, 0.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lazynp.errstate(divide="ignore"):
            quiet = 1 / x
            with lazynp.errstate(divide="warn"):
                loud = 2 / x
            again = 3 / x
        default = 4 / x
        lines = [loud, default]
        for value in (quiet, again, loud, default):
            numpy.asarray(value)
    assert len(caught) == len(lines)
    assert caught[1].lineno - caught[0].lineno == 2


def test_equal_operations_under_unlike_states_are_apart(engine: str) -> None:
    x = lazynp.array([1.0, 0.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lazynp.errstate(all="ignore"):
            quiet = 1 / x
        total = quiet + 1 / x
        numpy.asarray(total)
    assert [str(w.message) for w in caught] == ["divide by zero encountered in divide"]


def test_seterr_and_seterrcall(engine: str) -> None:
    x = lazynp.array([1.0, 0.0])
    log = Log()
    before, handler = lazynp.seterr(divide="call"), lazynp.seterrcall(log)
    try:
        assert lazynp.geterr()["divide"] == "call"
        1 / x
        assert log.lines == [("divide by zero", 1)]
        lazynp.seterr(divide="ignore")
        numpy.asarray(1 / x)
        assert len(log.lines) == 1
    finally:
        lazynp.seterr(**before)
        lazynp.seterrcall(handler)


def test_threads_have_states_of_their_own(engine: str) -> None:
    x = lazynp.array([1.0, 0.0])
    errors: list[Any] = []

    def other() -> None:
        with lazynp.errstate(all="raise"):
            try:
                1 / x
            except FloatingPointError as error:
                errors.append(error)

    with lazynp.errstate(all="ignore"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            numpy.asarray(1 / x)
    assert len(errors) == 1


def test_once_per_location(engine: str) -> None:
    def at_one_line(np: Any, x: Any) -> None:
        for k in range(3):
            numpy.asarray(np.divide(k + 1.0, x))

    counts = []
    for module in (numpy, lazynp):
        with warnings.catch_warnings(record=True) as caught:
            warnings.resetwarnings()
            at_one_line(module, module.array([0.0, 1.0]))
        counts.append(len(caught))
        globals().get("__warningregistry__", {}).clear()
    assert counts == [1, 1]


def test_warnings_as_errors(engine: str) -> None:
    """Of what was recorded before they were errors the exception comes with the value."""
    x = lazynp.array([1.0, 0.0, -1.0])
    y = lazynp.log(x)
    other = x + 1
    with chained.told():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="divide by zero encountered in log") as raised:
            numpy.asarray(y)
        assert "recorded at" in raised.value.__notes__[0]
        assert __file__ in raised.value.__notes__[0]
    assert numpy.isneginf(numpy.asarray(y)[1])
    assert numpy.asarray(other)[1] == 1


def test_writes_that_raise(engine: str) -> None:
    for module in (numpy, lazynp):
        x = module.array([1.0, 2.0])
        with numpy.errstate(all="raise"), pytest.raises(FloatingPointError):
            x /= 0
        assert numpy.isinf(numpy.asarray(x)).all()


@pytest.mark.slow
def test_script_warns_on_its_own_lines(tmp_path: Any) -> None:
    script = tmp_path / "program.py"
    script.write_text("import lazynp as np\nx = np.zeros(3)\ny = 1 / x\nz = np.log(x)\nprint(y, z)\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert f"{script}:3: RuntimeWarning: divide by zero encountered in divide\n  y = 1 / x\n" in done.stderr
    assert f"{script}:4: RuntimeWarning: divide by zero encountered in log\n  z = np.log(x)\n" in done.stderr
    failed = subprocess.run([sys.executable, "-W", "error", str(script)], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert f"recorded at {script}:3" in failed.stderr


# The filter: kernels look at the processor's flags ------------------------------------------------------------------------------


def rechecks(call: Callable[[], Any]) -> int:
    before = report.work.rechecks
    with config.override(tier="compiled"):
        numpy.asarray(call())
    return report.work.rechecks - before


def test_inputs_written_in_place_are_evaluated_again_as_they_were() -> None:
    results = []
    for module in (numpy, lazynp):
        with warnings.catch_warnings(record=True) as caught, config.override(tier="compiled"):
            warnings.simplefilter("always")
            x = module.ones((300, 300))
            x = x - 1 if module is numpy else lazynp.asarray(numpy.ones((300, 300)) - 1)
            x = x + 0
            numpy.asarray(x[0, 0])
            x[1:-1, 1:-1] = 1 / x[1:-1, 1:-1]
            numpy.asarray(x[5, 5])
            x[1:-1, 1:-1] -= x[1:-1, 1:-1]
            numpy.asarray(x[5, 5])
        results.append(([str(w.message) for w in caught], numpy.array(x)))
    assert results[0][0] == results[1][0] == ["divide by zero encountered in divide", "invalid value encountered in subtract"]
    numpy.testing.assert_array_equal(results[0][1], results[1][1])


def test_pauses_after_hits_that_told_nothing() -> None:
    """NaN compared in vectors sets the flag of invalid operations."""
    x = lazynp.array([0.0, 1.0] * 20)
    warnings.filterwarnings("ignore", "divide by zero encountered in divide")
    counts = [rechecks(lambda: 1 / x) for _ in range(16)]
    assert counts == [1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0]


def test_a_change_of_filters_ends_the_pause() -> None:
    x = lazynp.array([0.0, 1.0])

    def run() -> int:
        return rechecks(lambda: 1 / x)

    warnings.filterwarnings("ignore", "divide by zero encountered in divide")
    assert [run() for _ in range(6)] == [1, 0, 1, 0, 0, 0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [run() for _ in range(3)] == [1, 1, 1]
    assert len(caught) == 3


def test_another_line_has_no_pause_with_the_same_plan() -> None:
    x = lazynp.array([0.0, 1.0])
    warnings.filterwarnings("ignore", "divide by zero encountered in divide")
    with config.override(tier="compiled"):
        for _ in range(4):
            numpy.asarray(1 / x)
        before = report.work.rechecks
        numpy.asarray(1 / x)
        assert report.work.rechecks == before + 1


def test_ignored_errors_are_not_looked_into() -> None:
    x = lazynp.array([0.0, 1.0])
    with lazynp.errstate(all="ignore"):
        assert rechecks(lambda: 1 / x) == 0
        assert rechecks(lambda: lazynp.log(x)) == 0
