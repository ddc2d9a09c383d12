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


@pytest.fixture(params=["auto", "compiled"], autouse=True)
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
            lazynp.realize(*[y for y in made if isinstance(y, lazynp.ndarray)])
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
