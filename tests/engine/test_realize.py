"""``realize``: what it publishes, what it remembers, what it leaves alone."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import numpy as np
import pytest

from lazynp.backends.base import CompileError
from lazynp.backends.numpy import library
from lazynp.engine import realize as runtime
from lazynp.engine.realize import realize
from lazynp.graph import build, report
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.values import config

FLOAT = np.dtype(float)


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    with config.override(backend="numpy"):
        report.reset()
        runtime.forget_plans()
        yield


def leaf(array: Any) -> Node:
    return build.buffer(np.array(array, order="C"))


def add(a: Node, b: Node) -> Node:
    return build.elementwise(o.ADD, a.dtype, a, b)


def value(node: Node) -> Any:
    assert node.buffer is not None
    return node.buffer.array


def bad_gather(x: Node) -> Node:
    return build.gather(x, leaf(np.array([99])))


def test_nodes_become_leaves() -> None:
    x = leaf([1.0, 2.0])
    y = add(x, x)
    z = add(y, y)
    realize([z, y, x], "test")
    assert y.op is z.op is o.BUFFER and y.src == z.src == ()
    np.testing.assert_array_equal(value(z), [4.0, 8.0])
    np.testing.assert_array_equal(value(y), [2.0, 4.0])


def test_equal_nodes_are_computed_once_and_all_published() -> None:
    x = leaf([1.0])
    y, z = add(x, x), add(x, x)
    realize([y, z, y], "test")
    assert y.buffer is z.buffer is not None


def test_constants_are_values_too() -> None:
    node = build.const(3, np.dtype("i2"))
    realize([node], "test")
    assert value(node).dtype == "i2" and value(node).shape == ()


def test_cache_is_hit_whatever_the_scalars_and_offsets() -> None:
    x = leaf(np.arange(2000.0))
    for k in range(1, 1000):
        scaled = build.elementwise(o.MULTIPLY, FLOAT, x, build.const(k * 0.1, FLOAT))
        node = build.slice_(scaled, [(k, 1)], (10,))
        realize([node], "test")
        np.testing.assert_array_equal(value(node), np.arange(k, k + 10.0) * (k * 0.1))
    assert (report.schedules.misses, report.schedules.hits) == (1, 998)


def test_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "PLANS", 3)
    for n in [*range(1, 6), 5, 4, 3, 1]:
        x = leaf(np.ones(n))
        realize([add(x, x)], "test")
    assert (report.schedules.misses, report.schedules.hits) == (6, 3)
    assert len(runtime._engine.plans) == 3


def test_failure_names_the_line_and_is_remembered() -> None:
    x = leaf([1.0, 2.0])
    bad = bad_gather(x)
    good, child = add(x, x), add(bad, bad)
    for _ in range(3):
        with pytest.raises(IndexError, match="index 99 is out of bounds") as caught:
            realize([good, child], "test")
        [note] = caught.value.__notes__
        assert note == f"recorded at {__file__}:{bad_gather.__code__.co_firstlineno + 1}"
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert bad.error is caught.value and child.error is None
    assert report.schedules.misses == 1 and report.schedules.hits == 0  # the stored error is raised, nothing runs again
    realize([good], "test")
    np.testing.assert_array_equal(value(good), [2.0, 4.0])


def test_failure_of_a_library_function() -> None:
    singular = build.call("numpy", ("linalg.inv",), [leaf(np.zeros((2, 2)))], FLOAT, (2, 2))
    at = line() - 1
    with pytest.raises(np.linalg.LinAlgError, match="Singular") as caught:
        realize([add(singular, singular)], "test")
    assert caught.value.__notes__ == [f"recorded at {__file__}:{at}"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError("no"), TimeoutError("of the program's own")])
def test_interrupts_and_full_memory_leave_nodes_pending(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf([1.0])
    trouble = [error]

    def flaky(arrays: Any, params: Any) -> Any:
        if trouble:
            raise trouble.pop()
        return arrays[0] + 1

    monkeypatch.setitem(library.FUNCTIONS, "flaky", flaky)
    called = build.call("flaky", (), [x], FLOAT, (1,))
    node = add(called, x)
    with pytest.raises(type(error)):
        realize([node], "test")
    assert node.buffer is None and node.error is None and called.error is None
    realize([node], "test")
    np.testing.assert_array_equal(value(node), [3.0])


def test_what_a_handler_has_lazynp_raise_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf([1.0])
    inside: dict[str, Any] = {"__name__": "lazynp.anything"}
    exec("def fails():\n    raise ValueError('amid')", inside)
    handlers = [lambda: inside["fails"]()]

    def interrupted(arrays: Any, params: Any) -> Any:
        if handlers:
            handlers.pop()()
        return arrays[0] + 1

    monkeypatch.setitem(library.FUNCTIONS, "interrupted", interrupted)
    called = build.call("interrupted", (), [x], FLOAT, (1,))
    with pytest.raises(ValueError, match="amid"):
        realize([called], "test")
    assert called.buffer is None and called.error is None
    realize([called], "test")
    np.testing.assert_array_equal(value(called), [2.0])


def test_all_outputs_of_a_call_come_to_exist_together() -> None:
    for first in range(3):
        x = leaf([1.5, -2.25])
        whole = build.call("ufunc:modf", (), [x], FLOAT, (2,))
        integral = build.output(whole, 1, FLOAT, (2,))
        child = add(integral, x)
        realize([(whole, integral, child)[first]], "test")
        np.testing.assert_array_equal(value(whole), [0.5, -0.25])
        np.testing.assert_array_equal(value(integral), [1.0, -2.0])
        realize([child], "test")
        np.testing.assert_array_equal(value(child), [2.5, -4.25])
    assert not build.outputs


def test_equal_calls_with_several_outputs() -> None:
    x = leaf([1.5])
    calls = [build.call("ufunc:modf", (), [x], FLOAT, (1,)) for _ in range(2)]
    integrals = [build.output(call, 1, FLOAT, (1,)) for call in calls]
    realize(calls[::-1], "test")
    realize(integrals, "test")
    assert [value(node)[0] for node in integrals] == [1.0, 1.0]


def test_a_failed_compile_falls_back_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        name = "broken"

        def prepare(self, program: Any) -> Any:
            raise CompileError("the compiler is on strike")

    monkeypatch.setattr(runtime, "choose", lambda: Broken())
    x = leaf([1.0])
    with pytest.warns(RuntimeWarning, match="on strike; NumPy runs"):
        realize([node := add(x, x)], "test")
    np.testing.assert_array_equal(value(node), [2.0])


def test_forced_values_are_counted_by_reason_and_line() -> None:
    x = leaf([1.0])
    for _ in range(3):
        realize([add(x, x)], "__bool__")
    at = line() - 1
    realize([x], "nothing to do")
    text = report.report()
    assert "values forced: 3" in text and "3 runs, 1 made" in text
    assert "3 x __bool__" in text and f"{__file__}:{at}" in text
    report.count_fallback("sort", 80, None)
    report.count_fallback("sort", 80, None)
    assert "160 bytes" in report.report()


def test_threads_agree() -> None:
    x = leaf(np.arange(100.0))
    shared = x
    for _ in range(50):
        shared = add(shared, x)
    found: list[Any] = []

    def work() -> None:
        node = add(shared, x)
        realize([node, shared], "test")
        found.append((value(node), value(shared)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for more, once in found:
        np.testing.assert_array_equal(once, np.arange(100.0) * 51)
        np.testing.assert_array_equal(more, np.arange(100.0) * 52)
