"""Mathematical functions of generated kernels: accuracy, special values, the same bits at every position, with and without libmvec."""

import os
import subprocess
import sys

import numpy as np
import pytest

from lazynp.backends.llvm import mathlib
from lazynp.backends.llvm.mathlib import FUNCTIONS
from tests.backends.llvm_kernels import DTYPE, math_kernel

CASES = [(name, kind) for name in FUNCTIONS for kind in ("f64", "f32")]
ULPS = 4
WIDE = np.finfo(np.longdouble).nmant >= 63  # else there is no reference for double
UNSIGNED = {"f64": np.uint64, "f32": np.uint32}


def specials(kind):
    info = np.finfo(DTYPE[kind])
    positive = [0, 1, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 0.5, 2, 3, 2.5, 89, 104, 710, 746, 1e15, 2.0**53, 1e30]
    values = np.array(positive, DTYPE[kind])
    return np.concatenate([values, -values])


def points(kind, seed):
    """Return values from everywhere: all exponents, dense near the places where functions are hard, subnormal, special."""
    rng = np.random.default_rng(seed)
    dtype, bits = DTYPE[kind], UNSIGNED[kind]
    anything = rng.integers(0, np.iinfo(bits).max, 4000, dtype=bits).view(dtype)
    ranges = [(-1, 1), (0.9, 1.1), (0.5, 2), (-0.03, 0.03), (-20, 20), (-110, 110), (-750, 750), (-1e5, 1e5), (-1e15, 1e15)]
    near_turns = np.arange(-500, 500) * (np.pi / 2)
    parts = [anything, *(rng.uniform(low, high, 1000) for low, high in ranges), near_turns, rng.uniform(-3, 3, 500) * np.finfo(dtype).tiny]
    quiet = np.concatenate([part.astype(dtype) for part in (*parts, specials(kind))])
    quiet[np.isnan(quiet)] = np.nan  # signalling NaNs are nobody's data
    return quiet


def arguments(name, kind):
    if FUNCTIONS[name].arity == 1:
        return (points(kind, 1),)
    special = specials(kind)
    x, y = points(kind, 1), np.random.default_rng(2).permutation(points(kind, 3))
    positive = np.random.default_rng(4).uniform(-50, 50, 4000)
    exponents = np.random.default_rng(5).uniform(-6, 6, 4000)
    left = np.concatenate([np.repeat(special, special.size), x, np.exp(positive)]).astype(DTYPE[kind])
    right = np.concatenate([np.tile(special, special.size), y, exponents]).astype(DTYPE[kind])
    return left, right


def reference(name, arrays):
    with np.errstate(all="ignore"):
        return getattr(np, name)(*(array.astype(np.longdouble) for array in arrays))


def errors_in_ulps(result, exact):
    """Return how far off each result is, in units of the last place; infinite for a NaN too many or too few."""
    info = np.finfo(result.dtype)
    exact, wide = exact.astype(np.longdouble), np.longdouble
    top = wide(info.max) * (1 + wide(info.eps) / 2)  # one unit past the largest number stands for infinity
    with np.errstate(all="ignore"):
        spacing = np.spacing(np.clip(np.abs(exact), info.tiny, info.max).astype(result.dtype)).astype(wide)
        error = np.abs(np.clip(result.astype(wide), -top, top) - np.clip(exact, -top, top)) / spacing
    both = np.isnan(result) & np.isnan(exact)
    return np.where(both, 0, np.where(np.isnan(error), np.inf, error))


@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if WIDE or case[1] == "f32"])
def test_accuracy_and_special_values(name, kind):
    arrays = arguments(name, kind)
    result, exact = math_kernel(name, kind)(*arrays), reference(name, arrays)
    error = errors_in_ulps(result, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= ULPS, ([float(a[worst]) for a in arrays], float(result[worst]), float(exact[worst]))
    # Zero has NumPy's sign, except where the exact value is not zero but too small.
    zero = exact == 0
    assert np.array_equal(np.signbit(result[zero]), np.signbit(exact[zero]))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_bits_do_not_depend_on_the_position(name, kind):
    kernel = math_kernel(name, kind)
    arrays = [array[-97:] for array in arguments(name, kind)]
    whole = kernel(*arrays).view(UNSIGNED[kind])
    for start in (1, 3, 8):
        assert np.array_equal(kernel(*(array[start:] for array in arrays)).view(UNSIGNED[kind]), whole[start:])
    alone = [kernel(*(array[i : i + 1] for array in arrays)).view(UNSIGNED[kind])[0] for i in range(whole.size)]
    assert np.array_equal(alone, whole)


@pytest.mark.parametrize("flavour", ["0", "sse", "avx2"])
def test_other_flavours_keep_the_same_promises(flavour):
    """Run the tests of this file with another math library; a flavour that the machine lacks means its best one."""
    if "LAZYNP_LIBMVEC" in os.environ:
        return  # this is that run
    environment = {**os.environ, "LAZYNP_LIBMVEC": flavour}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout[-3000:]


def test_every_function_has_its_own_attribute_groups():
    groups = [mathlib.call_attributes(name, kind) for name, kind in CASES]
    assert len(set(groups)) == len(groups)


def test_the_prelude_defines_what_is_needed_once():
    text = mathlib.prelude([("exp", "f64"), ("log", "f32"), ("exp", "f64")])
    assert text.count("@lz_exp_f64(") == 1
    assert text.count("@lz_log_f32(") == 1
    assert mathlib.prelude([]) == ""
