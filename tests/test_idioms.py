"""What programs ask of arrays, scalars and dtypes in passing: classes, conversions, formatting, containers, in-place names."""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
import math
import numbers
import operator
import random
import statistics
import struct
import time
import typing
from collections import abc
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.runtime import config
from lazynp.scalars import is_scalar
from tests.idioms import CLASSES, CONVERSIONS, STATEMENTS
from tests.namespace.compare import check

A = numpy.arange(6.0).reshape(2, 3)
MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (abc, datetime, decimal, fractions, json, math, numbers, operator, random, statistics, struct, time, typing)
}


def run(text: str, module: Any) -> Any:
    arrays = {"a": A, "i": A.astype(int), "c": A + 1j, "m": A > 2}
    space = {"np": module, **MODULES, **{name: module.array(value) for name, value in arrays.items()}}
    statements, _, last = text.rpartition("; ")
    exec(statements, space)
    return eval(last, space)


@pytest.mark.parametrize("text", CLASSES)
def test_classes_and_dtypes(text: str) -> None:
    check(lambda np: run(text, np), 0, text)


@pytest.mark.parametrize("text", CONVERSIONS)
def test_conversions(text: str) -> None:
    check(lambda np: run(text, np), 0, text)


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(text: str) -> None:
    check(lambda np: run(text, np), 0, text)


def test_what_a_lazy_scalar_cannot_be() -> None:
    # The class of a dtype is NumPy's, and Python reads a float subclass from memory that a lazy scalar does not have.  Each has a form that
    # works beside it.
    x = lazynp.arange(3.0)
    s = x.sum()
    assert x.dtype.type is not lazynp.float64 and x.dtype.type == lazynp.float64
    assert type(s) is not lazynp.float64 and type(s) not in {lazynp.float64} and type(s) in (float, lazynp.float64)
    assert not issubclass(lazynp.float64, float) and isinstance(s, float)
    for refused, works in (
        (lambda: json.dumps(s), lambda: json.dumps(s.item())),
        (lambda: decimal.Decimal(s), lambda: decimal.Decimal(float(s))),
        (lambda: datetime.timedelta(seconds=s), lambda: datetime.timedelta(seconds=float(s))),
    ):
        with pytest.raises(TypeError):
            refused()
        assert works()


def test_classes_are_found_where_they_say() -> None:
    for name in ("float64", "int8", "bool", "complex64", "floating", "generic"):
        cls = getattr(lazynp, name)
        assert (cls.__module__, cls.__name__) == ("lazynp", name)


def test_scalar_types_of_lazy_values_are_lazy() -> None:
    with config.override(eager=False):
        x = lazynp.arange(3.0) + 0
        for made in (lazynp.float32(x), lazynp.float32(x.sum()), lazynp.int8(x), lazynp.float64(lazynp.array(2.0) + 1)):
            assert type(made) is lazynp.ndarray or is_scalar(made)
            assert made._node.buffer is None
