"""What several threads compute, beside NumPy: ``LAZYNP_THREADS=3 python -m tests.array.shared``.

In: nothing.  Out: what differs, how many cases there were, and how often several threads computed something.  Promise: everything is
compared to the bit, with its dtype, shape, strides and warnings; a case runs often enough for its loop to be timed first, which the last
runs then share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

import lazynp
from lazynp.array import core
from lazynp.graph import special_values
from lazynp.values import config
from tests.array import chained

N = 30_011  # elements: seven pieces and a part of one
RUNS = 6
Case = Callable[[Any, Any, Any], Any]  # of a namespace and two operands

UFUNCS = {name: ufunc for name, ufunc in vars(numpy).items() if isinstance(ufunc, numpy.ufunc) and ufunc.nout == 1 and not ufunc.signature}
UNARY = [name for name, ufunc in UFUNCS.items() if ufunc.nin == 1]
BINARY = [name for name, ufunc in UFUNCS.items() if ufunc.nin == 2]
DTYPES = ("float64", "float32", "int64", "bool", "complex128")
SHAPES = [(300, 100), (3, 10_000), (10_000, 3), (60, 170, 3), (3, 2000, 5), (5, 7, 1000), (9, 10, 11, 31), (40, 2, 400), (2, 20_000)]
POWERS = (-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.0, 3, 0.1, 1e300)
EXPRESSIONS: list[Case] = [
    lambda xp, x, y: x * y + x - y * 2.0,
    lambda xp, x, y: xp.sqrt(x * x + y * y) / (1.0 + x),
    lambda xp, x, y: xp.maximum(x - y, 0.5) * x,
    lambda xp, x, y: (x < y) & (x * 2 > 0.5),
]


def operands(dtype: str, shape: tuple[int, ...], odd: bool) -> tuple[Any, Any]:
    rng = numpy.random.default_rng(3)
    made = []
    for k in range(2):
        x = rng.random(shape) * 3 + 0.1
        if odd:
            at = x.size // 3 * (k + 1)  # in one piece; the others are as good as ever
            x.flat[at : at + 8] = [0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, -1.5, 1e300, 1e-310]
        with numpy.errstate(all="ignore"):
            made.append((x > 1 if odd and dtype[0] not in "fc" else x * 20 if dtype == "int64" else x).astype(dtype))
    return made[0], made[1]


def layouts(dtype: str, odd: bool) -> Iterator[tuple[str, Any, Any]]:
    x, y = operands(dtype, (N,), odd)
    yield "lines", x, y
    wide, other = operands(dtype, (N, 2), odd)
    yield "apart", wide[:, 0], other[:, 1]
    x, y = operands(dtype, (170, 180), odd)
    yield "rows", x[:, 3:], y[:, :-3]
    yield "columns", x, y[:, :1]
    yield "a row", x, y[0]
    yield "transposed", x.T, y.T
    x, y = operands(dtype, (100, 170, 2), odd)
    yield "short rows", x, y[:1]
    yield "short rows of one", x, y[..., :1]


def cases() -> Iterator[tuple[str, Case, Any, Any]]:
    for dtype in DTYPES:
        for odd in (False, True):
            for (layout, x, y), (_, p, q) in zip(layouts(dtype, odd), layouts("int64", False), strict=True):
                for name in UNARY:
                    if odd and dtype == "complex128" and name in special_values.FUNCTIONS:
                        continue  # the array API standard has other values than NumPy's loop
                    yield f"{name} {dtype} {layout} {odd}", lambda xp, x, y, name=name: getattr(xp, name)(x), x, y
                for name in BINARY:
                    both = lambda xp, x, y, name=name: getattr(xp, name)(x, y)  # noqa: E731
                    yield f"{name} {dtype} {layout} {odd}", both, x, y
                    if layout == "lines":
                        yield f"{name} {dtype} number {odd}", lambda xp, x, y, name=name: getattr(xp, name)(x, 2), x, y
                    if dtype == "float64":
                        yield f"{name} {dtype} {layout} {odd} mixed", both, x, q
                        yield f"{name} {dtype} {layout} {odd} mixed, truth values", both, p > 1, y
    for odd in (False, True):
        for dtype in ("float64", "float32", "int64"):
            for layout, x, y in layouts(dtype, odd):
                for k, expression in enumerate(EXPRESSIONS):
                    yield f"expression {k} {dtype} {layout} {odd}", expression, x, y
            x, y = operands(dtype, (N,), odd)
            for power in POWERS:
                yield f"** {power} {dtype} {odd}", lambda xp, x, y, power=power: x**power, x, y
            yield f"** {dtype} {odd}", lambda xp, x, y: x**y, x, y
            for shape in SHAPES:
                x, y = operands(dtype, shape, odd)
                for axis in range(len(shape)):
                    for name in ("sum", "max", "min", "prod", "mean", "any"):
                        reduced = lambda xp, x, y, name=name, axis=axis: getattr(x, name)(axis=axis)  # noqa: E731
                        yield f"{name} {shape} {axis} {dtype} {odd}", reduced, x, y
                yield f"sum {shape} kept {dtype} {odd}", lambda xp, x, y: x.sum(axis=-2, keepdims=True), x, y


def as_it_lies(x: Any) -> Any:
    """An array of ours with the elements, and the strides, of NumPy's."""
    if x.base is None:
        return lazynp.asarray(x, copy=True)
    offset = (x.__array_interface__["data"][0] - x.base.__array_interface__["data"][0]) // x.itemsize
    whole = lazynp.asarray(x.base, copy=True).reshape(-1)[offset:]
    return lazynp.lib.stride_tricks.as_strided(whole, x.shape, x.strides)


def found(case: Case, xp: Any, x: Any, y: Any, way: str = chained.BLOCKS) -> Any:
    with chained.hears(way) as caught:
        try:
            made = case(xp, x, y)
        except Exception as error:
            return type(error).__name__, str(error)
        made = numpy.asarray(made)
    if made.dtype.kind in "fc":  # which of two NaNs an operation hands on is the processor's choice
        made = numpy.array(made, copy=True, order="K")
        made[numpy.isnan(made)] = numpy.nan
    return made.dtype, made.shape, made.strides, made.tobytes(), sorted({str(w.message) for w in caught})


def main() -> int:
    count = failed = 0
    core.chain_sizes(256, 32, 1024, 1 << 62)
    before = core.share(0)
    with config.override(tape_limit=1 << 20):
        for name, case, x, y in cases():
            count += 1
            expected = found(case, numpy, x, y)
            p, q = as_it_lies(x), as_it_lies(y)
            for way in (*[chained.BLOCKS] * RUNS, chained.TOLD, chained.TOLD):  # at the call, and on a tape
                ours = found(case, lazynp, p, q, way)
                if ours != expected:
                    failed += 1
                    print(name, ours[:3], expected[:3], ours[4:], expected[4:])
                    break
    print(f"{count} cases, {failed} differ, shared {core.share() - before} times")
    return failed > 0


if __name__ == "__main__":
    raise SystemExit(main())
