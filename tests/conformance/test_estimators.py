"""``python -m conformance estimators``: estimators are given NumPy's arrays and ours, and what they make of them is compared."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import lazynp
from conformance import estimators


class Partial(BaseEstimator):
    """Knows NumPy's arrays alone."""

    def fit(self, x: Any, y: Any = None) -> Partial:
        self.ours_ = not isinstance(x, numpy.ndarray)
        return self

    def transform(self, x: Any) -> Any:
        if self.ours_:
            raise TypeError("what is this?")
        return x


def test_estimators_that_do_the_same() -> None:
    for kind in (StandardScaler, Ridge):
        row = estimators.compared(kind.__name__, kind)
        assert not row["differences"]
        assert row["data"] and row["methods"] and row["attributes"]


def test_estimators_that_do_not() -> None:
    row = estimators.compared("Partial", Partial, ("at hand",))
    assert sorted(text.split(":")[1].strip() for text in row["differences"]) == ["ours_", "transform()"]


def test_what_cannot_be_fitted_says_why() -> None:
    class Refusing(Partial):
        def fit(self, x: Any, y: Any = None) -> Refusing:
            raise ValueError("not today")

    assert estimators.compared("Refusing", Refusing)["reason"] == "ValueError: not today"


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        (numpy.ones(3), lazynp.ones(3), True),
        (numpy.ones(3), numpy.ones(3) * (1 + 1e-15), True),
        (numpy.ones(3), numpy.ones(3) * 1.01, False),
        (numpy.ones(3), numpy.ones(3, "f4"), False),
        (numpy.ones(3), [1.0, 1.0, 1.0], False),
        ([1, "a"], [1, "b"], False),
        ({"a": 1}, {"a": 1}, True),
        (numpy.array(["a", None], object), numpy.array(["a", None], object), True),
    ],
)
def test_what_is_a_difference(want: Any, got: Any, same: bool) -> None:
    assert (not estimators.differs(want, got, estimators.TOLERANCE)) == same


def test_the_command_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimators, "estimators", lambda: {"StandardScaler": StandardScaler, "Partial": Partial})
    parser = argparse.ArgumentParser()
    estimators.add_arguments(parser.add_subparsers())
    target = tmp_path / "results.json"
    assert estimators.command(parser.parse_args(["estimators", "StandardScaler", "--json", str(target)])) == 0
    assert estimators.command(parser.parse_args(["estimators", "--json", str(target)])) == 1
    assert [row["name"] for row in json.loads(target.read_text())["estimators"]] == ["Partial", "StandardScaler"]
