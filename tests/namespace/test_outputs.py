"""``out=`` of every dtype: the same values, or the same class of exception; nothing foreign goes through compiled programs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.values import config
from tests.differential.tables import words

OVER_AXES = words("sum prod mean std var median max min any all ptp nansum nanmedian nanmax nanstd argmax")
CALLS = {
    **{name: f"np.{name}(x, axis=0, out=y)" for name in OVER_AXES},
    "cumsum": "np.cumsum(x[0], out=y)", "round": "np.round(x[0], out=y)", "round 1": "np.round(x[0], 1, out=y)",
    "round -1": "np.round(x[0], -1, out=y)", "clip": "np.clip(x[0], 0, 1, out=y)", "take": "np.take(x[0], [0, 1], out=y)",
    "dot": "np.dot(x, x[0], out=y)", "matmul": "np.matmul(x, x[0], out=y)", "choose": "np.choose([0, 1], x, out=y)",
    "compress": "np.compress([True, True], x[0], out=y)", "sqrt": "np.sqrt(x[0], out=y)", "quantile": "np.quantile(x, 0.5, axis=0, out=y)",
    "einsum": "np.einsum('ij->i', x, out=y)", "concatenate": "np.concatenate((x[0, :1], x[1, :1]), out=y)",
    "stack": "np.stack((x[0, 0], x[1, 1]), out=y)", "add": "np.add(x[0], x[1], out=y)",
    "unsafe": "np.add(x[0], x[1], out=y, casting='unsafe')",
    "concatenate unsafe": "np.concatenate((x[0, :1], x[1, :1]), out=y, casting='unsafe')", "trunc": "np.trunc(x[0], out=y)",
}  # fmt: skip


@pytest.fixture(params=["auto", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def _tier(request: pytest.FixtureRequest) -> Iterator[None]:
    with config.override(tier=request.param):
        yield


def outcomes(np: Any, call: str, x: Any, outputs: list[Any]) -> list[Any]:
    """What is in each output after its call, or the class of what the call raises; the outputs are computed together, by one program."""
    made = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for y in outputs:
            try:
                eval(call, {"np": np, "x": x, "y": y})
                made.append(y)
            except Exception as error:
                made.append(type(error))
        if np is lazynp:
            lazynp.realize(*[y for y in made if type(y) is lazynp.ndarray])
        return [y if isinstance(y, type) else numpy.asarray(y).tolist() for y in made]


DTYPES = ["i4", "f4", "f8", "c16", "?", "u1", "f2"]


@pytest.mark.parametrize("source", ["f8", "f4", "i8", "?", "c16"])
@pytest.mark.parametrize("call", CALLS)
def test_dtypes(call: str, source: str) -> None:
    values = numpy.array([[1.0, 2.0], [0.0, 1.0]]).astype(source)
    expected = outcomes(numpy, CALLS[call], values, [numpy.zeros(2, dtype) for dtype in DTYPES])
    found = outcomes(lazynp, CALLS[call], lazynp.asarray(values), [lazynp.zeros(2, dtype) for dtype in DTYPES])
    assert dict(zip(DTYPES, found, strict=True)) == dict(zip(DTYPES, expected, strict=True))


@pytest.mark.parametrize("dtype", [">f8", ">i4", ">c16", "longdouble", "S4", "U3", "O"])
@pytest.mark.parametrize("call", ["add", "unsafe", "concatenate", "concatenate unsafe", "sqrt", "max", "sum", "matmul", "clip", "take"])
def test_foreign_dtypes(call: str, dtype: str) -> None:
    values = numpy.array([[1.5, 2.0], [0.0, 1.0]])
    expected = outcomes(numpy, CALLS[call], values, [numpy.zeros(2, dtype)])
    assert outcomes(lazynp, CALLS[call], lazynp.asarray(values), [numpy.zeros(2, dtype)]) == expected


# What is no array is refused before anything is written: a result without axes, an element, a number, a list.
NO_ARRAYS = {"result": "np.min(x)", "position": "np.argmin(x)", "element": "x[0, 0]", "number": "2.5", "list": "[1.0, 2.0]", "text": "'a'"}
REFUSING = [
    *CALLS.values(),
    *[f"np.{name}(x, out=y)" for name in words(
        "sin add.reduce add.accumulate fix isposinf isneginf around cumsum cumprod nancumsum nancumprod nanmin nanprod nanvar nanmean "
        "nanargmax nanargmin argmin trace isfinite"
    )],
    *[f"np.{name}(x, x, out=y)" for name in words("add gcd vecdot matvec vecmat outer dot multiply.outer divide")],
    *[f"x.{name}(out=y)" for name in words(
        "sum mean std var min max argmax argmin cumsum cumprod prod any all round trace conj conjugate sum().sum sum().round sum().take"
    )],
    "np.add(x, x, y)", "np.add(x, x, out=(y,))", "np.add(y, y, out=y)", "np.exp(x, out=y, where=x > 0)", "np.modf(x, out=(y, None))",
    "np.divmod(x, 2, out=(y, y))", "np.frexp(x, y, y)", "np.clip(x, 0, 1, y)", "x.clip(0, 1, out=y)", "x.take([0], out=y)",
    "x.dot(x, out=y)",
    "x.compress([True], 0, out=y)", "(x[0] > 0).choose([x[0], x[0]], out=y)", "np.add.reduceat(x, [0], out=y)",
    "np.logaddexp.accumulate(x, out=y)", "np.logaddexp.reduce(x, out=y)", "np.einsum('ij->', x, out=y)", "np.einsum('ij,jk', x, x, out=y)",
    "np.median(x, out=y)", "np.percentile(x, 50, out=y)",
    "np.nanquantile(x, 0.5, out=y)", "np.cumulative_sum(x[0], out=y)", "np.stack([x, x], out=y)", "np.fft.fft(x, out=y)",
    "np.fft.irfftn(x, out=y)", "np.linalg.multi_dot([x, x, x], out=y)", "np.isnat(np.array(['2001'], 'M8'), out=y)", "np.matmul(x, x, y)",
    "np.frompyfunc(abs, 1, 1)(x, out=y)", "np.is_busday('2011-10-03', out=y)", "np.random.default_rng(1).random(out=y)",
]  # fmt: skip


@pytest.mark.parametrize("kind", NO_ARRAYS)
@pytest.mark.parametrize("call", dict.fromkeys(REFUSING))
def test_what_is_no_array(call: str, kind: str) -> None:
    def error(np: Any) -> Any:
        x = np.asarray(numpy.array([[1.0, 2.0], [3.0, 4.0]]))
        y = eval(NO_ARRAYS[kind], {"np": np, "x": x})
        try:
            return repr(eval(call, {"np": np, "x": x, "y": y}))
        except Exception as caught:
            return type(caught)

    assert error(lazynp) == error(numpy)
