"""What programs ask of arrays, scalars and dtypes in passing: classes, conversions, formatting, containers, in-place names."""

from __future__ import annotations

import datetime
import decimal
import fractions
import functools
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
from lazynp.scalars import is_scalar
from lazynp.values import config
from tests.namespace.compare import check
from tests.programs.idioms import CLASSES, CONVERSIONS, STATEMENTS

A = numpy.arange(6.0).reshape(2, 3)
MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (abc, datetime, decimal, fractions, functools, json, math, numbers, operator, random, statistics, struct, time, typing)
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


@pytest.mark.usefixtures("recorded")
def test_what_a_lazy_scalar_cannot_be() -> None:
    # NumPy's scalars and Python's floats are read from memory, where a lazy one has no value.  Each has a form that works beside it.
    s = lazynp.arange(3.0).sum()
    assert type(s) is not lazynp.float64 and type(s) not in {lazynp.float64} and type(s) in (float, lazynp.float64)
    assert not issubclass(type(s), lazynp.floating) and isinstance(s, lazynp.floating) and issubclass(s.dtype.type, lazynp.floating)
    for refused, works in (
        (lambda: decimal.Decimal(s), lambda: decimal.Decimal(float(s))),
        (lambda: datetime.timedelta(seconds=s), lambda: datetime.timedelta(seconds=float(s))),
        (lambda: json.dumps([s]), lambda: json.dumps([float(s)])),
        (lambda: json.dumps({s: 1}), lambda: json.dumps({float(s): 1})),
    ):
        with pytest.raises(TypeError):
            refused()
        assert works()


def test_scalar_types_are_numpys_own() -> None:
    for name, theirs in vars(numpy).items():
        if isinstance(theirs, type) and issubclass(theirs, numpy.generic):
            assert getattr(lazynp, name) is theirs


@pytest.mark.usefixtures("recorded")
def test_scalar_types_called_with_lazy_values_compute_them() -> None:
    # They are NumPy's constructors and give NumPy's objects; ``astype`` is what stays lazy.
    with config.override(eager=False):
        x = lazynp.arange(3.0) + 0
        for made in (lazynp.float32(x), lazynp.int8(x)):
            assert type(made) is numpy.ndarray and made.flags.writeable
        for made in (lazynp.float32(x.sum()), lazynp.int8(x.sum())):
            assert type(made) is made.dtype.type
        assert not is_scalar(lazynp.float64(lazynp.array(2.0) + 1))
        assert numpy.shares_memory(lazynp.float64(x), x)  # where NumPy gives x itself
