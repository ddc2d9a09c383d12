"""Machine code of tapes that is asked for in words: who asks writes no text, and who writes it needs no NumPy."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy
import pytest

from lazynp.backends.common import disk_cache
from lazynp.backends.common.interrupts import briefly
from lazynp.backends.llvm import client, compiler, expression_ir, expressions, scalars
from lazynp.backends.llvm.messages import NAME, Described
from lazynp.graph import op as o
from lazynp.values import config, forking

DTYPES = [numpy.dtype(char) for char in "?bBhHiIlLqQfd"]
FLOAT, SINGLE, TRUTH = numpy.dtype(float), numpy.dtype(numpy.float32), numpy.dtype(bool)
by_child = pytest.mark.skipif(bool(client.reason()) or config.backend == "numpy", reason="no process compiles here")

WITHOUT_NUMPY = """
import json, sys, types
sys.modules["numpy"] = None
lazynp = sys.modules["lazynp"] = types.ModuleType("lazynp")
lazynp.__path__ = [sys.argv[1]]
from lazynp.backends.llvm.expression_ir import text_of
print(json.dumps([text_of(words) for words in json.load(sys.stdin)]))
"""


def expression(rng: random.Random) -> tuple[Any, ...]:
    """Some steps, the dtypes of their arrays, how these lie, and what is wanted."""
    dtypes = [rng.choice(DTYPES) for _ in range(rng.randint(1, 3))]
    steps: list[Any] = []
    for k in range(rng.randint(1, 6)):
        name = rng.choice(["add", "multiply", "divide", "sqrt", "maximum", "where", "less", "kernels exp", "kernels sin", "cast", "clip"])
        dtype = rng.choice([FLOAT, SINGLE]) if name[:3] in ("div", "sqr", "ker") else rng.choice(DTYPES)
        count = {"where": 3, "clip": 3, "sqrt": 1, "cast": 1, "kernels exp": 1, "kernels sin": 1}.get(name, 2)
        operands = tuple((2, rng.randrange(k)) if k and rng.random() < 0.4 else (0, rng.randrange(len(dtypes))) for _ in range(count))
        steps.append((name, dtype, TRUTH if name == "less" else rng.choice(DTYPES) if name == "cast" else dtype, operands))
    return steps, dtypes, "".join(rng.choice("cos") for _ in dtypes), sorted(rng.sample(range(len(steps)), rng.randint(1, len(steps))))


def test_the_text_is_the_same_without_numpy() -> None:
    """What is written of NumPy's dtypes, of words in this process, and of words in one that has no NumPy."""
    found = [expression(random.Random(seed)) for seed in range(300)]
    words = [expressions.in_words(*each) for each in found]
    texts = [expression_ir.source(*each) for each in found]
    assert [expression_ir.text_of(each) for each in words] == texts
    assert sum(map(bool, texts)) > 100
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(expressions.__file__))))
    command = [sys.executable, "-c", WITHOUT_NUMPY, os.path.join(package, "lazynp")]
    done = subprocess.run(command, input=json.dumps(words), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == texts


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_numbers_are_written_as_numpy_has_them(dtype: str) -> None:
    tiny = float(numpy.finfo(dtype).smallest_subnormal)
    wide = {"e": numpy.float16, "f": numpy.float64, "d": numpy.float64}[dtype]  # LLVM writes a float as the double of its value
    for value in (0.0, -0.0, 1.5, 0.1, -1e300, 1e300, 65519.0, 65520.0, tiny, -tiny, tiny / 2, float("inf"), -float("inf"), 7, True):
        with numpy.errstate(over="ignore"):
            bits = int.from_bytes(numpy.array(value, wide).tobytes(), "little")
        assert scalars.literal(value, numpy.dtype(dtype)) == (f"0xH{bits:04X}" if dtype == "e" else f"0x{bits:016X}")
    assert scalars.literal(float("nan"), numpy.dtype(dtype)) == ("0xH7E00" if dtype == "e" else "0x7FF8000000000000")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_changes_nothing_is_numpys_limit(dtype: Any) -> None:
    low, high = (False, True) if dtype.kind == "b" else (-numpy.inf, numpy.inf)
    if dtype.kind in "iu":
        low, high = numpy.iinfo(dtype).min, numpy.iinfo(dtype).max
    assert (o.MAXIMUM.identity(dtype), o.MINIMUM.identity(dtype)) == (low, high)


def test_keys_follow_from_the_words_and_who_writes_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Described("c\n0\nf8\nadd\tf8\tf8\t0:0 0:0"), Described("c\n0\nf8\nadd\tf8\tf8\t0:0 1:0")
    key = compiler._key(one, [NAME], 1)
    assert len({key, compiler._key(other, [NAME], 1), compiler._key(one, [NAME], 0), compiler._key(one.words, [NAME], 1)}) == 4
    before = compiler._writers.__wrapped__()
    monkeypatch.setattr(config, "polynomials", not config.polynomials)
    assert compiler._writers.__wrapped__() != before


def test_machine_code_has_the_functions_of_vectors_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiler._writers.__wrapped__()

    def gone(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(compiler.ctypes, "CDLL", gone)
    assert compiler._c_library()[1] is False
    if "True" in before:
        assert compiler._writers.__wrapped__() != before


def test_what_was_written_is_known_without_its_source(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x")
    (tmp_path / "two.pyc").write_text("xy")
    assert [size for _, size in disk_cache.stamps(str(tmp_path), ("one", "two", "three"))] == [1, 2]


@pytest.mark.skipif(config.backend == "numpy", reason="nothing is compiled")
def test_a_module_is_compiled_once_where_nothing_was_loaded() -> None:
    code = """
import numpy
import lazynp
from lazynp.backends.llvm import compiler, expressions
times, compile_ = [], compiler._compile
compiler._compile = lambda *given: times.append(1) or compile_(*given)
float_ = numpy.dtype(float)
steps = [("multiply", float_, float_, ((0, 0), (0, 0))), ("kernels exp", float_, float_, ((2, 0),))]
assert expressions.compiled(steps, [float_], "c", [1], False)
assert len(times) == 1, times
"""
    environment = {**os.environ, "LAZYNP_CACHE": "0", "LAZYNP_COMPILER": "wait"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_writers_are_all_that_a_text_is_written_by() -> None:
    """Whatever of lazynp is loaded for a text, but for settings and late imports, is part of its key."""
    code = WITHOUT_NUMPY.replace("print(", "found = (")
    code += "print('\\n'.join(m.__file__ for n, m in sys.modules.items() if n.startswith('lazynp.')))"
    here = os.path.dirname(os.path.abspath(expressions.__file__))
    package = os.path.dirname(os.path.dirname(here))
    steps = [("kernels exp", FLOAT, FLOAT, ((0, 0),)), ("kernels erf", FLOAT, FLOAT, ((2, 0),))]
    words = json.dumps([expressions.in_words(steps, [FLOAT], "c", [1])])
    done = subprocess.run([sys.executable, "-c", code, package], input=words, capture_output=True, text=True, timeout=120, check=True)
    loaded = {os.path.realpath(name) for name in done.stdout.split() if not name.endswith("__init__.py")}
    known = {os.path.realpath(os.path.join(here, f"{name}.py")) for name in compiler.WRITERS}
    assert loaded <= known and len(known) == len(compiler.WRITERS)
    assert all(map(os.path.exists, known))


LARGE = """
import sys, numpy
import lazynp as np
from lazynp.array import core
core.first_work(1 << 40)  # what is large stays on tapes, however long the code takes
x = np.realize(np.array(numpy.arange(8_000_000.0)))
def run():
    return float((np.sqrt(x * x + x) * 0.5 - abs(x - 3) / (1 + x * x) + x * 2 - x / 7)[5])
before = core.chain_counts()[2]
first = run()
print(core.chain_counts()[2] - before)
import time
from lazynp.backends.llvm import expressions
deadline = time.monotonic() + 60
while core.chain_counts()[2] == before and time.monotonic() < deadline:
    assert run() == first
    time.sleep(0.01)
assert core.chain_counts()[2] > before
writers = ("expression_ir", "scalars", "mathlib", "roots", "toolchain", "background")
print([name for name in writers if f"lazynp.backends.llvm.{name}" in sys.modules])
print("llvmlite.binding" in sys.modules, "numpy" in sys.modules)
"""


@by_child
def test_a_later_program_has_the_code_in_its_first_run(tmp_path: Path) -> None:
    """And neither the earlier one nor this one loads what writes it."""
    settings = {"LAZYNP_CACHE_DIR": str(tmp_path), "LAZYNP_CACHE": "1", "LAZYNP_COMPILER": "child", "LAZYNP_OPTIMIZE": "1"}
    settings |= {"LAZYNP_TAPE_LIMIT": "786432", "LAZYNP_EAGER": "0", "LAZYNP_NUMERICS": "auto"}
    command, environment = [sys.executable, "-c", LARGE], {**os.environ, **settings}
    for known in ("0", "1"):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines == [known, "[]", "False True"]


@by_child
def test_what_no_text_is_written_of_is_refused() -> None:
    half = numpy.dtype(numpy.float16)
    of_halves = expressions.in_words([("add", half, half, ((0, 0), (0, 0)))], [half], "c", [0])
    for words in (of_halves, "what is this", "c\n0\nf8\nadd\tf8\tf8\t0:7 0:0"):
        with config.override(compiler="child", optimize=True), pytest.raises(compiler.CompileError):
            compiler.compile_module(Described(words), [NAME])


@by_child
def test_a_thread_that_compiles_is_not_waited_for() -> None:
    steps = [("add", FLOAT, FLOAT, ((0, 0), (0, 0)))]
    waits, ready = threading.Event(), threading.Event()

    def holds() -> None:
        with forking.compiler:
            ready.set()
            waits.wait(60)

    thread = threading.Thread(target=holds)
    thread.start()
    ready.wait(60)
    try:
        with config.override(compiler="child", optimize=True):
            assert expressions.compiled(steps, [FLOAT], "c", [0], True) == expressions.AHEAD
            assert expressions.compiled(steps, [FLOAT], "c", [0], None) == expressions.LATER
    finally:
        waits.set()
        thread.join()


def test_handlers_run_after_what_is_brief() -> None:
    heard: list[str] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append("handler"))
    try:

        def work() -> int:
            signal.raise_signal(signal.SIGUSR1)
            heard.append("work")
            return 7

        assert briefly(work) == 7
        assert heard == ["work", "handler"]
    finally:
        signal.signal(signal.SIGUSR1, before)
