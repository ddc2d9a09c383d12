"""Filters of warnings: those in force at the call decide what is heard of it, as they do of NumPy's functions, which are the oracle."""

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
from lazynp.graph import filters
from lazynp.values import config
from tests.array import chained

CASES: dict[str, tuple[int, int | None]] = {"small": (12, None), "large": (900_000, None), "recorded": (12, 0)}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "log": lambda np, x: np.log(x),
    "sqrt and a sum": lambda np, x: np.sqrt(x) + 1,
    "quotient": lambda np, x: x / (x * 0),
    "product": lambda np, x: (x + 1e300) * 1e300,
    "power": lambda np, x: (x + 1e300) ** 2,
    "remainder": lambda np, x: x % (x * 0),
    "cast": lambda np, x: (x + 1e300).astype("f4"),
    "integers": lambda np, x: x.astype(int) // (x.astype(int) * 0),
    "sum": lambda np, x: (x + 1e308).sum(),
    "product of all": lambda np, x: np.multiply.reduce(x + 1e300),
    "running sum": lambda np, x: np.cumsum(x + 1e308),
    "chosen": lambda np, x: np.where(x > 0, 1 / (x * 0), x),
    "a part": lambda np, x: np.log(x[1:] - 1),
    "in place": lambda np, x: x.__itruediv__(x * 0),
    "an output": lambda np, x: np.divide(x, x * 0, out=np.empty(x.shape)),
    "a write": lambda np, x: x.astype("f4").__setitem__(slice(None), x + 1e300),
    "a number": lambda np, x: x.max() / 0,
    "mean of nothing": lambda np, x: np.mean(x[:0]),
    "rows of NaN": lambda np, x: np.nanmean(x * np.nan),
}


@pytest.fixture(params=CASES)
def n(request: pytest.FixtureRequest) -> Iterator[int]:
    """Sizes on both sides of the limit; and a small one where everything is recorded."""
    size, limit = CASES[request.param]
    with config.override(tape_limit=config.tape_limit if limit is None else limit):
        yield size


def numbers(np: Any, n: int) -> Any:
    x = np.arange(n) - 1.0
    return x.realize() if np is lazynp else x


def read(x: Any) -> None:
    if x is not None:
        numpy.asarray(x).sum()


def heard(np: Any, operation: Callable[[Any, Any], Any], n: int, *actions: Any) -> Any:
    """What is heard of an operation within a block with such filters, and of its value afterwards."""
    x = numbers(np, n)
    with warnings.catch_warnings(record=True) as within:
        for action in actions:
            warnings.filterwarnings(*action) if type(action) is tuple else warnings.simplefilter(action)
        try:
            value = operation(np, x)
        except RuntimeWarning as error:
            return str(error)
    with warnings.catch_warnings(record=True) as later, numpy.errstate(all="ignore"):
        warnings.simplefilter("always")
        read(value)
    return [str(entry.message) for entry in within if entry.category is RuntimeWarning], [str(entry.message) for entry in later]


FORCES: dict[str, tuple[Any, ...]] = {
    "none": (),
    "error": ("error",),
    "always": ("always",),
    "ignore": ("ignore",),
    "default": ("default",),
    "once": ("once",),
    "one message is an error": (("error", "divide by zero"),),
    "another message is an error": (("error", "no such thing"),),
    "one message is dropped": ("always", ("ignore", "divide by zero")),
    "another category": ("always", ("ignore", "", DeprecationWarning)),
    "dropped last": ("error", "ignore"),
    "an error last": ("ignore", "error"),
}


@pytest.mark.parametrize("force", FORCES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_heard_within_a_block(name: str, force: str, n: int) -> None:
    actions = FORCES[force]
    assert heard(lazynp, OPERATIONS[name], n, *actions) == heard(numpy, OPERATIONS[name], n, *actions)


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_was_dropped_at_the_call_is_silent_for_ever(name: str, n: int) -> None:
    x = numbers(lazynp, n)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = OPERATIONS[name](lazynp, x)
        read(value)
    assert not said


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_error_state_ignores_no_filter_hears(name: str, n: int) -> None:
    def said(np: Any) -> Any:
        x = numbers(np, n)
        with np.errstate(all="ignore"):
            found = heard(np, OPERATIONS[name], n, "error")
            read(OPERATIONS[name](np, x))
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert said(lazynp) == said(numpy)


def test_blocks_may_be_nested() -> None:
    found = []
    for np in (numpy, lazynp):
        x = numbers(np, 900_000)
        with warnings.catch_warnings(record=True) as outer:
            warnings.simplefilter("always")
            with warnings.catch_warnings(record=True) as inner:
                y = np.log(x)
            z = np.sqrt(x)
        found.append([[str(entry.message) for entry in said] for said in (inner, outer)])
        read(y), read(z)
    assert found[0] == found[1] and all(found[1])


@pytest.mark.usefixtures("recorded")
def test_lines_and_registries_are_those_of_the_program() -> None:
    found = []
    for np in (numpy, lazynp):
        program = "x = np.arange(5) - 1.0\nfor k in range(3):\n    y = np.log(x)\n    z = np.sqrt(x)\nfor k in range(2): w = np.log(x)\n"
        names = {"np": np, "__name__": "program"}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            exec(compile(program, "program.py", "exec"), names)
        found.append([(str(entry.message), entry.filename, entry.lineno) for entry in said])
    assert found[0] == found[1]
    assert {line for *_, line in found[1]} == {3, 4, 5}


@pytest.mark.usefixtures("recorded")
def test_under_the_process_s_own_filters_it_is_told_with_the_value() -> None:
    x = lazynp.arange(5) - 1.0
    y = lazynp.log(x)
    assert y._node.buffer is None
    assert y._node.err.kinds and not y._node.err.eager
    with chained.told() as heard:
        numpy.asarray(y)
    assert [str(w.message) for w in heard] == ["divide by zero encountered in log", "invalid value encountered in log"]


@pytest.mark.parametrize("action", ["always", "error", "ignore"])
@pytest.mark.parametrize("size", [3, 2_000_000])
def test_what_a_block_computes_of_others_is_told_when_it_has_ended(size: int, action: str) -> None:
    """A warning belongs to the filters under which its operation was recorded; a value never waits for it."""
    x = lazynp.zeros(size)
    lazynp.realize(x)
    with chained.told() as heard:
        y = lazynp.log(x)
        with warnings.catch_warnings(record=True) as inside:
            warnings.simplefilter(action)  # type: ignore[arg-type]
            assert numpy.isneginf(numpy.asarray(y)[-1])
        assert not inside and not heard
        z = x + 1
        assert [str(w.message) for w in heard] == ["divide by zero encountered in log"]
        assert heard[0].filename == __file__
        assert numpy.asarray(z)[0] == 1
    assert len(heard) == 1


def test_threads_tell_what_was_put_off_once() -> None:
    with chained.told() as heard:
        many = [1 / lazynp.zeros(k + 1) for k in range(8)]
        with warnings.catch_warnings():
            lazynp.realize(*many)
        failed: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(50):
                    lazynp.ones(3) + lazynp.ones(3)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lazynp.ones(3) + 1
    assert not failed and len(heard) == 8


def test_what_is_told_in_passing_raises_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """By then filters say that it is an error: the operation that finds the block ended is another one."""
    with chained.told():
        y = 1 / lazynp.zeros(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lazynp.realize(y)
        warnings.simplefilter("error")
        assert (lazynp.ones(3) + 1).tolist() == [2.0] * 3
    told = capsys.readouterr().err
    assert "Exception ignored" in told and told.count("RuntimeWarning: divide by zero") == 1


def test_what_was_put_off_is_told_at_the_end() -> None:
    program = (
        "import warnings, lazynp as np\n"
        "y = np.log(np.zeros(3))\n"
        "warnings.catch_warnings().__enter__()\n"
        "warnings.simplefilter('always')\n"
        "print(y)\n"
        "print('asked for', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "asked for" in done.stdout
    assert done.stderr.count("divide by zero encountered in log") == 1 and "<string>:2" in done.stderr


@pytest.mark.usefixtures("recorded")
def test_filters_of_the_process() -> None:
    """They are restored after each test."""
    x = lazynp.arange(5) - 1.0
    warnings.filterwarnings("error", "something else entirely")
    assert lazynp.log(x)._node.buffer is None
    warnings.filterwarnings("ignore", "divide by zero")
    assert lazynp.log(x)._node.err.kinds
    warnings.simplefilter("ignore", RuntimeWarning)
    assert not lazynp.log(x)._node.err.kinds
    assert lazynp.log(x)._node.buffer is None
    warnings.filterwarnings("error", "invalid")
    with pytest.raises(RuntimeWarning, match="invalid value encountered in log"):
        lazynp.log(x)


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ([], filters.LATER),
        ([("ignore", "", RuntimeWarning)], filters.NEVER),
        ([("ignore", "", DeprecationWarning)], filters.LATER),
        ([("error", "", UserWarning)], filters.LATER),
        ([("error", "", Warning)], filters.AT_CALL),
        ([("ignore", "", RuntimeWarning), ("error", "overflow encountered", RuntimeWarning)], filters.AT_CALL),
        ([("error", "numpy.ndarray size changed", Warning)], filters.LATER),
        ([("error", ".* encountered in", Warning)], filters.AT_CALL),
        ([("error", "mean of empty slice|overflow", Warning)], filters.AT_CALL),
        ([("error", "", RuntimeWarning), ("ignore", "", RuntimeWarning)], filters.NEVER),
        ([("ignore", "", RuntimeWarning, "some_module")], filters.LATER),
        ([("always", "", RuntimeWarning)], filters.LATER),
    ],
)
def test_what_filters_say(added: list[tuple[Any, ...]], said: int) -> None:
    for filtered in added:
        warnings.filterwarnings(*filtered)
    assert filters.said() == filters.read() == said


THREADS = """
import gc, sys, threading, warnings
import numpy, lazynp as np
from lazynp.values import config
config.update(tape_limit=int(sys.argv[1]))
sys.setswitchinterval(1e-6)
gc.set_threshold(2, 1, 1)
x = np.array([1.0, 2.0, 3.0])
np.realize(x)
wrong = []
def program(k):
    for n in range(600):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("ignore", f"text {n % k if k else n}")
            with numpy.errstate(all="ignore"):
                z = (x + k) * 2 - x
            if n % 8 == 0 and [float(v) for v in z] != [v + 2 * k for v in (1, 2, 3)]:
                wrong.append(k)
threads = [threading.Thread(target=program, args=(k,)) for k in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(wrong)
"""


@pytest.mark.parametrize("limit", ["0", "786432"])
def test_threads_that_exchange_the_filters(limit: str) -> None:
    """A block of filters ends while another thread asks what it says."""
    done = subprocess.run([sys.executable, "-c", THREADS, limit], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
