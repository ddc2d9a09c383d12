"""Random programs give what NumPy gives: values, dtypes, shapes, strides, kinds of object, exceptions.

``LAZYNP_EXAMPLES=2000`` runs that many instead of a few hundred; the same ones every time, unless ``LAZYNP_NEW_EXAMPLES=1``.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy
from hypothesis import HealthCheck, given, settings

import lazynp
from tests.differential import oracle
from tests.differential.generate import Script, scripts

EXAMPLES = os.environ.get("LAZYNP_EXAMPLES")


def public(error: type[BaseException]) -> type[BaseException]:
    """The type a user catches: the first one that is not NumPy's private one."""
    return next(t for t in error.__mro__ if not t.__name__.startswith("_"))


def run(script: Script, module: Any) -> dict[str, Any]:
    """The variables, every one with a value by the end."""
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variables = script.run(module)
        for value in variables.values():
            numpy.asarray(value)
        return variables


def outcome(script: Script) -> Exception | None:
    """What ours raises, at the call or when the values are asked for."""
    try:
        run(script, lazynp)
    except Exception as error:
        return error
    return None


def check(script: Script) -> None:
    if script.raises is not None:
        raised = outcome(script)
        assert isinstance(raised, public(script.raises)), f"raised {raised!r}: {script}"
        return
    expected = run(script, numpy)
    try:
        got = run(script, lazynp)
    except Exception as error:
        raise AssertionError(f"raised {error!r}: {script}") from error
    assert got.keys() == expected.keys()
    arrays = {name: numpy.asarray(value) for name, value in got.items()}
    wrong = oracle.complaints(script.run, expected, arrays)
    assert not wrong, f"{wrong}: {script}"
    for name, value in expected.items():
        ours = got[name]
        same_kind = isinstance(ours, lazynp.ndarray) == isinstance(value, numpy.ndarray)
        assert same_kind, f"{name} is a {type(ours).__name__}, expected a {type(value).__name__}: {script}"
        if isinstance(value, numpy.ndarray) and value.size > 1:
            # NumPy itself leaves the stride of an axis of length 1 to chance.
            steps = [(a, b) for a, b, n in zip(ours.strides, value.strides, value.shape, strict=True) if n > 1]
            assert all(a == b for a, b in steps), f"{name} has strides {ours.strides}, expected {value.strides}: {script}"
            assert ours.flags.writeable == value.flags.writeable, f"{name}.flags.writeable is {ours.flags.writeable}: {script}"
        if script.signed_zeros and value.dtype.kind == "f":
            zero = (arrays[name] == 0) & (value == 0)
            wrong_sign = zero & (numpy.signbit(arrays[name]) != numpy.signbit(value))
            assert not wrong_sign.any(), f"{name}: a zero of the wrong sign: {script}"


@given(script=scripts())
@settings(
    max_examples=int(EXAMPLES or 300),
    derandomize=os.environ.get("LAZYNP_NEW_EXAMPLES") != "1",
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
def test_random_programs(engine: str, script: Script) -> None:
    check(script)
