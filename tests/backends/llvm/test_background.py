"""Compiling while the program goes on, by a thread or another process: the same code, when it is there; faults, forks, and the end."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.backends.common import disk_cache
from lazynp.backends.llvm import background, client, compiler, expressions
from lazynp.engine import realize, tiers
from lazynp.values import config
from tests.array import chained
from tests.backends.llvm.kernels import map_ir
from tests.backends.llvm.test_compiler import ADD, function

pytestmark = [
    pytest.mark.skipif(background._native is None, reason="the native core was not built"),
    pytest.mark.skipif(config.backend == "numpy", reason="nothing is compiled"),
]


WHO = ["thread", pytest.param("child", marks=pytest.mark.skipif(bool(client.reason()), reason=client.reason()))]


@pytest.fixture(autouse=True, params=WHO)
def ahead(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Programs are compiled while others run, for the user, on two cores, and nothing is on disk."""
    cache = disk_cache.DiskCache(tmp_path / "own")
    monkeypatch.setattr(disk_cache, "shared", lambda: cache)
    monkeypatch.setattr(disk_cache.DiskCache, "get", lambda self, key: None)
    monkeypatch.setattr(compiler, "_begun", {})  # of other tests, some of which ask for much
    with config.override(compiler=request.param, threads=2, optimize=True):
        assert client.ahead() and client.wanted() == (request.param == "child")
        yield


def module(number: int) -> str:
    return ADD.replace("add i64 %a, %b", f"add i64 %a, {number}")


def begun(text: str, names: list[str], level: int = 1) -> Any:
    compiler.begin(text, names, level)  # None where the thread is through already: with a text that it refuses it is at times
    return compiler._begun[compiler._key(text, names, level)]


def test_the_code_is_that_of_who_waits() -> None:
    for name in ("sqrt", "exp", "sin", "power"):
        text = map_ir(name, "f64")
        work = begun(text, ["kernel"])
        work.wait()
        assert work.code() == compiler._compile(compiler._toolchain(), text, ["kernel"])
    assert compiler.begin(text, ["kernel"]) is None, "it is to be taken"
    before = compiler._toolchain().modules
    assert compiler.compile_module(text, ["kernel"])
    assert compiler._toolchain().modules == before, "by what the thread has made"


def test_who_cannot_go_on_without_it_waits() -> None:
    before = [begun(map_ir(name, "f64").replace("@kernel", f"@k{k}"), [f"k{k}"]) for k in range(5) for name in ("power", "sinh", "tan")]
    with pytest.raises(compiler.CompilingError) as caught:
        compiler.compile_module(module(17), ["add"], 1, compiler.BEGIN)
    assert function(module(17))(4, 0) == 21
    assert caught.value.works[0].over
    for work in before:  # behind which it stood: a small one by itself may be done before who began it looks
        work.wait()
    with pytest.raises(compiler.CompileError, match="not compiled before"):
        compiler.compile_module(module(18), ["add"], 1, compiler.LOOK)


@pytest.mark.parametrize("text", ["not LLVM at all", "define i64 @add(i64 %a) {\n  ret i32 0\n}", "define i64 @other() {\n  ret i64 0\n}"])
def test_faults_are_told_to_who_waits(text: str) -> None:
    work = begun(text, ["add"])
    work.wait()
    with pytest.raises(compiler.CompileError):
        compiler.compile_module(text, ["add"])


def test_who_waits_does_not_wait_for_others() -> None:
    works = [begun(module(k), ["add"]) for k in range(200, 260)]
    assert function(module(259))(1, 0) == 260
    assert works[-1].over
    for work in works[:-1]:
        work.wait()
        assert work.code()


def test_what_nobody_asks_for_is_not_held_for_ever() -> None:
    for k in range(300, 300 + 2 * compiler.BEGUN):
        begun(module(k), ["add"]).wait()
    assert len(compiler._begun) <= compiler.BEGUN + 1


def test_many_threads_ask_at_once() -> None:
    found: list[int] = []

    def ask(first: int) -> None:
        for k in range(first, first + 20):
            compiler.begin(module(k), ["add"])
        found.extend(function(module(k))(1, 0) - k for k in range(first, first + 20))

    threads = [threading.Thread(target=ask, args=(100 + 10 * t,)) for t in range(4)]  # each shares half of its modules with the next
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 80


@pytest.mark.parametrize(
    "what", [{"compiler": "wait"}, {"compiler": "thread", "threads": 1}, {"optimize": False}], ids=["the switch", "one core", "in haste"]
)
def test_where_it_is_not_done(what: dict[str, Any]) -> None:
    with config.override(**what):
        assert compiler.begin(module(55), ["add"]) is None
        assert function(module(55))(1, 0) == 56


def test_an_llvm_that_is_another_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    config.update(compiler="thread")
    monkeypatch.setattr(background, "_known", None)
    monkeypatch.setitem(background._FUNCTIONS, "SetLinkage", "pii:")
    assert compiler.begin(module(56), ["add"]) is None
    assert not background.wanted(), "nobody asks again"
    assert function(module(56))(1, 0) == 57


# What is compiled -------------------------------------------------------------------------------------------------------------------


def until(true: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came"


def test_expressions_at_hand() -> None:
    u, v = numpy.linspace(1, 2, 40_000), numpy.linspace(0.5, 3, 40_000)
    expected = numpy.sqrt(u * u + v) / (v - 4) - u
    expression = lambda x, y: lazynp.sqrt(x * x + y) / (y - 4) - x  # noqa: E731
    asked: list[Any] = []
    compiled = expressions.compiled
    others = set(expressions._works)  # what tests before this one have begun

    def counted(*arguments: Any) -> int:
        address = compiled(*arguments)
        asked.append((arguments[4], address))
        return address

    with config.override(tape_limit=1 << 18), pytest.MonkeyPatch.context() as patch:
        x, y = lazynp.asarray(u), lazynp.asarray(v)
        patch.setattr(expressions, "compiled", counted)
        with chained.chains_of(chained.SIZES[0], 64 * 6 * 40_000):

            def computed() -> bool:
                assert numpy.array_equal(numpy.asarray(expression(x, y)), expected)
                return bool(asked) and asked[-1][1] > 0

            until(computed)
    assert asked[0][0] is True and (asked[0][1] == expressions.AHEAD or len(asked) == 1)
    assert {kept for kept, _ in asked[1:]} <= {None}, "nobody waits"
    assert {address for _, address in asked[1:-1]} <= {expressions.LATER}
    assert set(expressions._works) <= others


def test_recorded_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "COMPILE_WORK", 1_000_000)
    monkeypatch.setattr(tiers, "PLAN_WORK", 50_000)
    rng = numpy.random.default_rng(0)
    a, b = rng.random((120, 171)), rng.random((120, 171))

    def program(np: Any, a: Any, b: Any) -> Any:
        return (np.exp(-a) * b - np.sqrt(a + 3)).sum(axis=0) * 1.75 + np.hypot(a, b).max(axis=0)

    waited: list[Any] = []
    prepare = compiler._compile
    realize._engine.plans.clear()
    realize.backend("auto").accounts.clear()  # type: ignore[attr-defined]
    realize.backend("llvm").kernels.clear()  # type: ignore[attr-defined]
    with config.override(tape_limit=0, tier="auto"):
        x, y = lazynp.asarray(a), lazynp.asarray(b)
        first = numpy.asarray(program(lazynp, x, y))  # for which ready-made kernels may be compiled
        monkeypatch.setattr(compiler, "_compile", lambda *arguments: waited.append(arguments[1]) or prepare(*arguments))
        assert numpy.allclose(first, program(numpy, a, b))
        said = []

        def compiled() -> bool:
            assert numpy.asarray(program(lazynp, x, y)).tobytes() == first.tobytes()
            said.extend(plan.next_tier for plan in plans() if plan.program is not None and plan.works)
            return all(plan.program is None for plan in plans())

        assert [plan.tier for plan in plans()] == ["in the NumPy tier, until that has cost as much as compiling it"]
        until(compiled)
    assert all("lz_parallel(" in text for text in waited), "but for the threads that kernels have"
    assert set(said) == {"in the NumPy tier, until it is compiled, which goes on meanwhile"}
    assert [plan.tier for plan in plans()] == ["compiled, because it came often"]


def plans() -> list[tiers.TieredPlan]:
    return [plan for plan in realize._engine.plans.values() if isinstance(plan, tiers.TieredPlan)]


# Forks, and the end of the process ----------------------------------------------------------------------------------------------------

HEAD = """
import os, sys, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside another thread
from lazynp.values import config
config.update(compiler={compiler!r}, threads=2)
from lazynp.backends.llvm import background, compiler
from tests.backends.llvm.kernels import map_ir
def text(k):
    return "\\n".join([map_ir("power", "f64"), *(map_ir("power", "f64").split("define void")[1].join(["define void", ""])
        .replace("@kernel", f"@k{k}x{i}") for i in range(40))])
"""


def run(code: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    variables = {**os.environ, "LAZYNP_CACHE_DIR": str(directory), "LAZYNP_CACHE": "1", **environment}
    head = HEAD.replace("{compiler!r}", repr(config.compiler))
    return subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=300, check=False, env=variables)


@pytest.mark.parametrize("wait", [0, 0.02, 0.2])
def test_a_process_ends_while_it_compiles(tmp_path: Path, wait: float) -> None:
    done = run(f"for k in range(50): assert compiler.begin(text(k), ['kernel'])\ntime.sleep({wait})\nprint('over')", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")


def test_what_nobody_asked_for_is_kept_for_the_next_process(tmp_path: Path) -> None:
    done = run("compiler.begin(text(0), ['kernel']).wait()", tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("assert compiler.compile_module(text(0), ['kernel'], how=compiler.LOOK)", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there is no fork")
def test_a_fork_while_it_compiles(tmp_path: Path) -> None:
    done = run(
        """
works = [compiler.begin(text(k), ['kernel']) for k in range(6)]
for n in range(5):
    child = os.fork()
    if not child:
        assert all(work.over for work in works)  # nobody compiles them here
        assert compiler.compile_module(text(5), ["kernel"]) and compiler.begin(text(7 + n), ["kernel"])
        assert compiler.compile_module(text(7 + n), ["kernel"])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    time.sleep(0.03)
for k, work in enumerate(works):
    work.wait()
    assert work.code()
print('over')
""",
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
