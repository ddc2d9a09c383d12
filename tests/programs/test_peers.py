"""Mistakes that other lazy, compiled or accelerated array libraries made, each as a program of ours.

Programs of values come from ``peer_programs`` and run with nothing, everything and random arrays realized between their statements.  The
rest is about processes, threads, work and counts.  Loops in place and bounded memory are in ``backends/test_ownership``.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import random
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.graph import report
from lazynp.scalars import is_scalar
from lazynp.values import config
from tests.namespace.compare import difference, outcome
from tests.programs.peer_programs import PROGRAMS


def run(program: str, module: Any, seed: int | None = None, chance: float = 0.5) -> Any:
    """The ``result`` of a program; with a seed, arrays are realized between its statements by chance."""
    space: dict[str, Any] = {"np": module}
    dice = random.Random(seed)
    for statement in ast.parse(program).body:
        exec(compile(ast.Module([statement], []), "<program>", "exec"), space)
        for value in list(space.values()) if seed is not None else ():
            if (type(value) is lazynp.ndarray or is_scalar(value)) and dice.random() < chance:
                repr(value)
    return space.get("result")


@pytest.mark.parametrize("family", PROGRAMS)
def test_programs(family: str) -> None:
    for program in PROGRAMS[family]:
        want = outcome(lambda np, program=program: run(program, np), numpy)
        assert isinstance(want, Exception) or want[1] is not None, program
        for seed, chance in ((None, 0.0), (0, 1.0), (1, 0.5), (2, 0.3)):
            got = outcome(lambda np, program=program, seed=seed, chance=chance: run(program, np, seed, chance), lazynp)
            found = difference(got, want, 1)
            assert found is None, f"{program}\nseed {seed}: {found}"


@pytest.mark.parametrize("program", PROGRAMS["bad indices leave everything as it was"][:-1])
def test_a_bad_index_changes_nothing(program: str) -> None:
    space: dict[str, Any] = {"np": lazynp}
    first, _, last = program.partition("; ")
    exec(first, space)
    before = space["x"].tolist()
    with pytest.raises((IndexError, ValueError)):
        exec(last, space)
    assert space["x"].tolist() == before
    assert (space["x"] + 1).tolist() == (numpy.array(before) + 1).tolist()


# Random numbers -----------------------------------------------------------------------------------------------------------------


DISTRIBUTIONS = [
    "random(1000)", "integers(0, 100, 1000)", "normal(1, 2, 1000)", "standard_normal(1000)", "uniform(-1, 1, 1000)", "exponential(2, 1000)",
    "poisson(3, 1000)", "binomial(10, 0.3, 1000)", "beta(2, 3, 1000)", "gamma(2, 3, 1000)", "chisquare(3, 1000)", "permutation(1000)",
    "choice(50, 1000)", "lognormal(0, 1, 1000)", "laplace(0, 1, 1000)", "geometric(0.3, 1000)", "standard_t(5, 1000)", "weibull(2, 1000)",
    "multinomial(20, [0.2, 0.8], 1000)", "triangular(0, 1, 3, 1000)", "dirichlet([1, 2], 1000)", "vonmises(0, 1, 1000)",
]  # fmt: skip


def test_random_numbers_are_bit_equal() -> None:
    for text in DISTRIBUTIONS:
        results = []
        for np in (numpy, lazynp):
            rng = np.random.default_rng(0)
            value = eval(f"rng.{text}", {"rng": rng})
            results.append((numpy.asarray(value), rng.random()))
        assert numpy.array_equal(*[value for value, _ in results]), text
        assert results[0][1] == results[1][1], text


def test_the_seed_counts_also_after_a_fallback() -> None:
    drawn = []
    for np in (numpy, lazynp):
        np.random.seed(7)
        first = np.random.rand(3)
        np.unique(np.asarray([2, 1]))
        np.array(["a"], object)
        drawn.append((first.tolist(), np.random.randn(2).tolist(), np.random.randint(0, 9, 4).tolist()))
    assert drawn[0] == drawn[1]


# Work: done once, or not at all --------------------------------------------------------------------------------------------------


@pytest.fixture
def kernels() -> Any:
    """Counts the kernels that an action runs, everything compiled."""

    def count(action: Any) -> int:
        before = report.work.kernels
        action()
        return report.work.kernels - before

    with config.override(backend="llvm", tier="compiled", eager=False):
        yield count


def test_a_loop_that_looks_at_its_error_does_its_work_once(kernels: Any) -> None:
    def solve(turns: int) -> None:
        x = lazynp.ones(3000)
        for _ in range(turns):
            new = 0.5 * (x + 2 / x)
            error = abs(new - x).max()
            x = new
            if error < 0:
                break

    solve(2)
    few, many = kernels(lambda: solve(4)), kernels(lambda: solve(24))
    assert many - few <= 20 * 2


@pytest.mark.usefixtures("recorded")
def test_a_result_nobody_reads_is_not_computed(kernels: Any) -> None:
    x = lazynp.arange(3000.0)
    x.realize()

    def drop() -> None:
        y = lazynp.exp(x) + 1
        del y
        lazynp.sin(x[:10])

    assert kernels(drop) == 0
    # Nor are its errors found: what depends on values is raised when a value is asked for.
    singular = lazynp.linalg.inv(lazynp.zeros((2, 2)))
    del singular
    kept = lazynp.linalg.inv(lazynp.zeros((2, 2)))
    with pytest.raises(numpy.linalg.LinAlgError):
        kept.tolist()


def test_filling_a_diagonal_element_by_element_computes_nothing_each_time() -> None:
    n = 2000
    x = lazynp.arange(float(n))
    distances = abs(x[:, None] - x[None, :]) + 1
    report.reset()
    for k in range(n):
        distances[k, k] = 0
    total = distances.sum()
    assert sum(counted.count for counted in report.forced.values()) <= 2
    expected = numpy.abs(numpy.arange(n)[:, None] - numpy.arange(n)[None, :]) + 1.0
    numpy.fill_diagonal(expected, 0)
    assert float(total) == expected.sum()


@pytest.mark.usefixtures("recorded")
def test_an_error_names_the_line_that_recorded_it() -> None:
    x = lazynp.zeros((2, 2))
    bad = lazynp.linalg.inv(x) + 1
    with pytest.raises(numpy.linalg.LinAlgError) as caught:
        bad.tolist()
    assert any(__file__ in note for note in caught.value.__notes__)
    assert x.tolist() == [[0, 0], [0, 0]]


def test_a_fallback_warns_once_and_is_counted() -> None:
    values = lazynp.array(["b", "a"], dtype=object)
    lazynp.set_fallback("warn")
    try:
        report.reset()
        with pytest.warns(RuntimeWarning, match=r"test_peers\.py") as seen:
            results = [lazynp.add(values, values) for _ in range(3)]
    finally:
        lazynp.set_fallback("silent")
    assert len([w for w in seen if "answered by NumPy" in str(w.message)]) == 1
    assert results[0].tolist() == ["bb", "aa"]
    assert [counted.count for counted in report.fallbacks.values()] == [3]


# Processes and threads -------------------------------------------------------------------------------------------------------------


def script(text: str, **environment: str) -> str:
    """The output of a program in a process of its own."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(text)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_leaves_the_process_alone() -> None:
    assert script(
        """
        import os, signal, sys, threading
        import numpy
        def state():
            handlers = [signal.getsignal(s) for s in signal.valid_signals()]
            errors = numpy.geterr(), numpy.get_printoptions()
            return numpy, sys.modules["numpy"], dict(os.environ), handlers, threading.active_count(), errors, numpy.sin, numpy.ndarray
        before = state()
        tasks = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
        import lazynp
        assert state() == before
        assert not tasks or len(os.listdir("/proc/self/task")) == tasks
        assert "llvmlite" not in sys.modules and "lazynp.engine.realize" not in sys.modules
        print(lazynp.arange(3.0).sum())
        """
    ) == "3.0"


@pytest.mark.slow
def test_sums_are_bit_equal_with_one_thread_and_many() -> None:
    text = """
        import numpy, lazynp as np
        x = np.asarray(numpy.random.default_rng(0).standard_normal((1500, 700)))
        found = [x.sum(), (x * x).mean(), x.sum(0), x.sum(1), np.cumsum(x), x.std(), np.exp(x).sum(axis=0), (x @ x[0])]
        import hashlib
        print(hashlib.sha256(b"".join(numpy.asarray(f).tobytes() for f in found[:-1])).hexdigest())
    """
    assert len({script(text, LAZYNP_THREADS=str(n), LAZYNP_TIER="compiled") for n in (1, 2, 8)}) == 1


needs_fork = hasattr(os, "fork")


def test_fork_after_use() -> None:
    if not needs_fork:
        return
    assert script(
        """
        import os, numpy, lazynp as np
        x = np.arange(400_000.0)
        pending = np.sin(x) * 2
        float((x + 1).sum())                      # compiled, with threads
        for _ in range(4):
            child = os.fork()
            if child == 0:
                y = (pending + np.exp(x / 1e6)).sum()
                ok = numpy.isclose(float(y), (numpy.sin(numpy.arange(4e5)) * 2 + numpy.exp(numpy.arange(4e5) / 1e6)).sum())
                x[0] = 7
                os._exit(0 if ok and x[0] == 7 else 1)
            assert os.waitpid(child, 0)[1] == 0
        print(float(x[0]), float(pending[1]) == float(numpy.sin(1.0) * 2))
        """
    ) == "0.0 True"


@pytest.mark.slow
def test_fork_while_other_threads_compute() -> None:
    # The first value imports the runtime and the compiler; the threads write in place and hold locks while the process forks.
    if not needs_fork:
        return
    assert script(
        """
        import faulthandler, os, threading, numpy, lazynp as np
        stop = False
        def work():
            x = np.ones(300_000)
            while not stop:
                x[1000:200000] = np.sin(x[1000:200000]) * 2 + 1
                float(x.sum())
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        base, failed = np.arange(1000.0), 0
        for k in range(30):
            y = base * 2 + k
            child = os.fork()
            if child == 0:
                faulthandler.dump_traceback_later(20, exit=True)
                os._exit(0 if float((y + 1).sum()) == (numpy.arange(1000.0) * 2 + k + 1).sum() else 1)
            failed += os.waitpid(child, 0)[1] != 0
        stop = True
        for thread in threads:
            thread.join()
        print(failed)
        """
    ) == "0"


def _task(x: Any) -> Any:
    return x, float((x * 2).sum()), x.mean()


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_multiprocessing(method: str) -> None:
    given = [lazynp.arange(5.0) * k for k in range(4)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        for x, (same, total, mean) in zip(given, pool.map(_task, given), strict=True):
            assert type(same) is lazynp.ndarray and isinstance(mean, numpy.float64)
            assert (same.tolist(), total, float(mean)) == (x.tolist(), float(x.sum()) * 2, float(x.mean()))


def test_threads_share_a_pending_graph() -> None:
    for repeat in range(5):
        base = lazynp.asarray(numpy.random.default_rng(repeat).random(5000))
        shared = lazynp.sqrt(base) + 1
        middle = shared * 3
        expected = (numpy.sqrt(numpy.asarray(base)) + 1) * 3

        def task(k: int, middle: Any = middle, shared: Any = shared) -> Any:
            mine = middle + k
            return float(mine[k]), numpy.asarray(mine).copy(), float(shared.sum())

        with ThreadPoolExecutor(8) as pool:
            for k, (element, whole, total) in enumerate(pool.map(task, range(16))):
                assert numpy.allclose(whole, expected + k)
                assert element == whole[k]
                assert numpy.isclose(total, (expected / 3).sum())


def test_threads_with_arrays_of_their_own() -> None:
    def task(seed: int) -> bool:
        rng = numpy.random.default_rng(seed)
        start = rng.random(200)
        x, y = lazynp.asarray(start), start.copy()
        for k in range(40):
            x[k % 7 :: 3] *= 1.5
            y[k % 7 :: 3] *= 1.5
            x = x + x[::-1] / 2
            y = y + y[::-1] / 2
            if k % 5 == 0:
                x -= x.max()
                y -= y.max()
        return bool(numpy.allclose(x, y))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(task, range(24)))


@pytest.mark.slow
@pytest.mark.usefixtures("recorded")
def test_two_processes_compile_into_one_cache(tmp_path: Any) -> None:
    text = """
        import lazynp as np
        x = np.arange(3000.0)
        print(float((np.exp(x / 1e4) * 3 - x).sum()), float(np.sqrt(x).max()))
    """
    environment = {**os.environ, "LAZYNP_CACHE_DIR": str(tmp_path), "LAZYNP_TIER": "compiled"}
    command = [sys.executable, "-c", textwrap.dedent(text)]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = {process.communicate(timeout=120)[0] for process in running}
    assert len(outputs) == 1 and {process.returncode for process in running} == {0}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:50])
    assert script(text, LAZYNP_CACHE_DIR=str(tmp_path), LAZYNP_TIER="compiled") == outputs.pop().strip()


@pytest.mark.slow
@pytest.mark.usefixtures("recorded")
def test_scikit_learn_in_our_namespace() -> None:
    found = script(
        """
        import os
        os.environ["SCIPY_ARRAY_API"] = "1"
        import numpy, lazynp as np
        import sklearn
        from sklearn.decomposition import PCA
        from sklearn.linear_model import Ridge
        from sklearn.metrics.pairwise import euclidean_distances
        from sklearn.model_selection import GridSearchCV
        from sklearn.preprocessing import StandardScaler
        from lazynp.graph import report
        rng = numpy.random.default_rng(0)
        X, y = rng.standard_normal((200, 8)), rng.standard_normal(200)

        def work(np, X, y):
            scaled = StandardScaler().fit_transform(X)
            ridge = Ridge(solver="svd").fit(scaled, y)
            search = GridSearchCV(Ridge(solver="svd"), {"alpha": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
            return scaled, ridge.predict(scaled), PCA(3, svd_solver="full").fit(X).components_, search.best_params_["alpha"], \\
                euclidean_distances(X[:50])

        want = work(numpy, X, y)
        with sklearn.config_context(array_api_dispatch=True):
            report.reset()
            got = work(np, np.asarray(X), np.asarray(y))
        assert type(got[0]) is type(got[1]) is type(got[2]) is np.ndarray
        for one, other in zip(got, want):
            assert numpy.allclose(one, other)
        print(sum(counted.count for counted in report.forced.values()))
        """
    )
    assert int(found) < 900
