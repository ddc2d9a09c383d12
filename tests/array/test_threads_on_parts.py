"""Threads that write parts of their own of one array: no write is lost, in any form, at any size; readers see old or new elements."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy
import pytest

import lazynp
from lazynp.values import config

THREADS: Final = 8
FEW: Final = 40  # elements that are written at positions
Form = Callable[[Any, Any, int], None]


def _part(a: Any, t: int) -> slice:
    n = len(a) // THREADS
    return slice(t * n, (t + 1) * n)


def _positions(a: Any, t: int) -> Any:
    return numpy.arange(t * (len(a) // THREADS), t * (len(a) // THREADS) + FEW)


def _mask(a: Any, t: int) -> Any:
    return numpy.arange(len(a)) % THREADS == t


def slice_in_place(np: Any, a: Any, t: int) -> None:
    a[_part(a, t)] += 1


def slice_assigned(np: Any, a: Any, t: int) -> None:
    a[_part(a, t)] = a[_part(a, t)] + 1


def view_in_place(np: Any, a: Any, t: int) -> None:
    v = a[_part(a, t)]
    v += 1
    v *= 2
    v %= 1000


def view_of_a_view(np: Any, a: Any, t: int) -> None:
    v = a[_part(a, t)][::-1]
    v[::2] -= 1
    v[1::2] = v[::2][: len(v[1::2])]


def view_assigned(np: Any, a: Any, t: int) -> None:
    v = a[_part(a, t)]
    v[...] = v + 1


def by_an_array(np: Any, a: Any, t: int) -> None:
    v = a[_part(a, t)]
    v += np.ones(len(v)) * 3


def by_a_pending_array(np: Any, a: Any, t: int) -> None:
    v = a[_part(a, t)]
    w = v[::-1] * 2 + 1
    v[...] = w % 7


def strided(np: Any, a: Any, t: int) -> None:
    a[t::THREADS] += 1


def reversed_strides(np: Any, a: Any, t: int) -> None:
    a[t::THREADS][::-1] += 1


def number(np: Any, a: Any, t: int) -> None:
    a[_part(a, t)] = a[_part(a, t)][0] + 2.0


def element(np: Any, a: Any, t: int) -> None:
    a[_part(a, t).start] += 1
    a[_part(a, t).stop - 1] = t


def positions(np: Any, a: Any, t: int) -> None:
    a[_positions(a, t)] += 1


def masked(np: Any, a: Any, t: int) -> None:
    a[_mask(a, t)] += 1


def masked_number(np: Any, a: Any, t: int) -> None:
    v = a[_part(a, t)]
    v[v < 1] = 5.0
    within = numpy.zeros(len(a), bool)
    within[_part(a, t)] = True
    a[within & (np.arange(len(a)) % 3 == 0)] = t + 1.0


def out(np: Any, a: Any, t: int) -> None:
    np.add(a[_part(a, t)], 1, out=a[_part(a, t)])


def out_where(np: Any, a: Any, t: int) -> None:
    np.add(a, 1, out=a, where=_mask(a, t))


def copied(np: Any, a: Any, t: int) -> None:
    np.copyto(a[_part(a, t)], a[_part(a, t)] + 1)


def copied_where(np: Any, a: Any, t: int) -> None:
    np.copyto(a, t + 1.0, where=_mask(a, t))


def put(np: Any, a: Any, t: int) -> None:
    np.put(a, _positions(a, t), a[_positions(a, t)] + 1)


def put_method(np: Any, a: Any, t: int) -> None:
    a.put(_positions(a, t), numpy.arange(float(FEW)))


def put_by_mask(np: Any, a: Any, t: int) -> None:
    np.putmask(a, _mask(a, t), t + 1.0)


def placed(np: Any, a: Any, t: int) -> None:
    np.place(a, _mask(a, t), [1.0, t])


def added_at(np: Any, a: Any, t: int) -> None:
    np.add.at(a, _positions(a, t), 1)
    np.add.at(a[_part(a, t)], numpy.array([0, 0, 1]), a[_part(a, t)][:3] * 0 + 1)


def sorted_part(np: Any, a: Any, t: int) -> None:
    v = a[_part(a, t)]
    v[: len(v) // 2] += 3
    v.sort()


def partitioned(np: Any, a: Any, t: int) -> None:
    v = a[_part(a, t)]
    v -= numpy.arange(float(len(v)))
    v[:FEW].partition(numpy.arange(FEW))


def filled(np: Any, a: Any, t: int) -> None:
    a[_part(a, t)].fill(t + 1)


def flat(np: Any, a: Any, t: int) -> None:
    a.flat[_part(a, t)] = t + 2.0


def drawn(np: Any, a: Any, t: int) -> None:
    np.random.default_rng(t).random(out=a[_part(a, t)])


def summed(np: Any, a: Any, t: int) -> None:
    np.cumsum(np.ones(len(a[_part(a, t)])), out=a[_part(a, t)])


def columns(np: Any, a: Any, t: int) -> None:
    b = a[: len(a) // THREADS * THREADS].reshape(-1, THREADS)
    b[:, t] += 1
    b.T[t][::2] += 1


def diagonal(np: Any, a: Any, t: int) -> None:
    n = FEW if len(a) >= THREADS * FEW * FEW else 2
    np.fill_diagonal(a[_part(a, t)][: n * n].reshape(n, n), t + 1.0)


FORMS: Final[list[Form]] = [
    slice_in_place, slice_assigned, view_in_place, view_of_a_view, view_assigned, by_an_array, by_a_pending_array, strided,
    reversed_strides,
    number, element, positions, masked, masked_number, out, out_where, copied, copied_where, put, put_method, put_by_mask, placed, added_at,
    sorted_part, partitioned, filled, flat, drawn, summed, columns, diagonal,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], None]) -> None:
    """Call a function in all threads at once, with the number of each; what one raises is raised."""
    failed: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def run(t: int) -> None:
        try:
            start.wait()
            work(t)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(t,)) for t in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def made(np: Any, n: int, kind: str) -> Any:
    """An array that is one number everywhere, that is pending, that exists, or whose memory others see."""
    if kind == "fill":
        return np.zeros(n)
    found = np.arange(float(n)) % 10 + 1
    return np.realize(found) if kind == "known" and np is lazynp else found


def held(form: Form, n: int, kind: str, turns: int) -> None:
    a, expected = made(lazynp, n, kind), made(numpy, n, kind)
    shared = numpy.asarray(a) if kind == "shared" else None
    together(lambda t: [form(lazynp, a, t) for _ in range(turns)] and None)
    for t in range(THREADS):
        for _ in range(turns):
            form(numpy, expected, t)
    got = numpy.array(a)
    wrong = numpy.flatnonzero(got != expected)
    assert not wrong.size, f"{wrong.size} of {n} elements, the first at {wrong[0]}: {got[wrong[0]]} in place of {expected[wrong[0]]}"
    assert shared is None or numpy.array_equal(shared, expected)


@pytest.mark.parametrize("limit", [0, 1000], ids=["recorded", "default"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_no_write_is_lost(form: Form, limit: int) -> None:
    with config.override(tape_limit=limit):
        for n, kind in ((900, "pending"), (2000, "fill"), (2000, "known"), (2000, "shared"), (16000, "pending")):
            held(form, n, kind, 2)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 786_432], ids=["recorded", "default"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_no_write_is_lost_in_ten_thousand(form: Form, limit: int) -> None:
    with config.override(tape_limit=limit):
        for n, kind, turns in ((1000, "pending", 8), (786_432, "known", 2), (786_433, "fill", 4), (800_000, "shared", 2)):
            held(form, n, kind, turns)


@pytest.mark.parametrize("limit", [0, 1000], ids=["recorded", "default"])
def test_readers_see_old_or_new_elements(limit: int) -> None:
    with config.override(tape_limit=limit):
        for n in (900, 3000):
            a = lazynp.zeros(n)
            part = n // THREADS

            def work(t: int, a: Any = a, part: int = part) -> None:
                for turn in range(1, 12):
                    if t % 2:
                        a[t * part : (t + 1) * part] += 1
                    else:
                        other = a[(t + 1) * part :][:part]
                        seen = [a[(t + 1) * part + 1], other.max(), (a[part : 2 * part] * 1).min(), *other.tolist()[::50]]
                        assert all(value in range(12) for value in seen), seen
                        a[t * part : (t + 1) * part] = turn

            together(work)
            assert numpy.array(a)[: part * THREADS].reshape(THREADS, part).tolist() == [[11.0] * part] * THREADS


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "complex128", "bool"])
def test_no_write_of_other_dtypes_is_lost(dtype: str) -> None:
    def work(np: Any, x: Any, t: int) -> None:
        if dtype == "bool":
            x[_part(x, t)] ^= True
        else:
            x[_part(x, t)] += np.ones(len(x) // THREADS, dtype)
            x.real[_part(x, t)][:3] = 3
            x.view("uint8").reshape(len(x), -1)[_part(x, t).stop - 1] = t

    with config.override(tape_limit=1000):
        for n in (900, 4000):
            a, expected = lazynp.zeros(n, dtype), numpy.zeros(n, dtype)
            together(lambda t, a=a: [work(lazynp, a, t) for _ in range(3)] and None)  # type: ignore[misc]
            for t in range(THREADS):
                for _ in range(3):
                    work(numpy, expected, t)
            assert numpy.array_equal(numpy.array(a), expected, equal_nan=dtype == "complex128")
