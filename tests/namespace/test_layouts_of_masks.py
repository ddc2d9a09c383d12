"""How results lie that masks choose: the other axes in the order of the array's memory, also where the mask's axes cannot be one axis.

In: arrays whose axes lie in every order, masks of some neighbouring axes, between integers and slices.  Out: failures.  Promise: strides
are NumPy's, where operations are recorded and where they are not.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import lazynp

BEFORE: list[Any] = [slice(None), slice(1, None), slice(None, None, -1), 0]
BEHIND: list[tuple[Any, ...]] = [(), (slice(None, None, -1),), (None, slice(0, 2)), (..., 1), (...,)]


def made(np: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> Any:
    x = np.arange(numpy.prod(shape)).reshape([shape[k] for k in order])
    return x.transpose([order.index(k) for k in range(len(shape))])


def lies(x: Any) -> tuple[Any, ...]:
    return x.shape, [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1], x.tolist()


def check(order: tuple[int, ...]) -> None:
    shape = (3, 4, 2, 3)[: len(order)]
    for first, rank in itertools.product(range(len(shape)), range(1, len(shape) + 1)):
        for before, behind in itertools.product(BEFORE, BEHIND):
            mask = numpy.random.default_rng(first).random(shape[first : first + rank]) < 0.6
            key = (*[before] * first, mask, *behind)
            try:
                theirs = made(numpy, shape, order)[key]
            except IndexError:
                continue
            ours = made(lazynp, shape, order)[tuple([lazynp.array(part) if part is mask else part for part in key])]
            assert lies(ours) == lies(theirs), key


ORDERS = [order for n in (2, 3, 4) for order in itertools.permutations(range(n))]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("order", ORDERS)
def test_recorded(order: tuple[int, ...]) -> None:
    check(order)


@pytest.mark.parametrize("order", ORDERS)
def test_at_the_call(order: tuple[int, ...]) -> None:
    check(order)
