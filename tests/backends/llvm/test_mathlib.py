"""Mathematical functions of generated kernels: accuracy, special values, the same bits at every position, with and without libmvec."""

import ctypes
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from lazynp.backends.llvm import mathlib
from lazynp.backends.llvm.host import Host
from lazynp.backends.llvm.mathlib import FUNCTIONS
from lazynp.backends.llvm.polynomials import functions as polynomials
from lazynp.values import config
from tests.backends.llvm.kernels import DTYPE, math_kernel

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


@pytest.mark.slow
@pytest.mark.parametrize(
    "flavour",
    [
        {"LAZYNP_LIBMVEC": "0"},  # polynomials, and the C library's scalar functions for what there is none
        {"LAZYNP_LIBMVEC": "0", "LAZYNP_POLYNOMIALS": "0"},
        {"LAZYNP_LIBMVEC": "sse", "LAZYNP_POLYNOMIALS": "0"},
        {"LAZYNP_LIBMVEC": "avx2", "LAZYNP_POLYNOMIALS": "0"},
        {"LAZYNP_POLYNOMIALS": "0"},
    ],
    ids=lambda flavour: "-".join(f"{key.removeprefix('LAZYNP_').lower()}={value}" for key, value in flavour.items()),
)
def test_other_flavours_keep_the_same_promises(flavour):
    """Run the tests of this file with another math library; a flavour that the machine lacks means its best one."""
    if "LAZYNP_TEST_FLAVOUR" in os.environ:
        return  # this is that run
    environment = {**os.environ, **flavour, "LAZYNP_TEST_FLAVOUR": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout[-3000:]


POLYNOMIALS = [(name, kind) for name, function in polynomials.FUNCTIONS.items() for kind in function.kinds]


@pytest.mark.parametrize(("name", "kind"), POLYNOMIALS)
def test_polynomials_are_free_of_branches_and_calls(name, kind):
    """So that the vectoriser widens them to any width; of those with a limit, what is computed within it."""
    arity = FUNCTIONS[name].arity
    if polynomials.FUNCTIONS[name].partial:
        texts = ["".join(polynomials.partial(name, kind, arity, 4)[0])]
    else:
        texts = [polynomials.definition(name, kind, "define double @f()", arity).split("\n", 1)[1]]
    for text in texts:
        assert " br " not in text and "load" not in text
        assert {line.split("@")[1].split("(")[0].split(".")[0] for line in text.splitlines() if "call" in line} <= {"llvm"}


@pytest.mark.parametrize(("name", "ulps"), [("sin", 0.8), ("cos", 0.8), ("tan", 1.05)])
def test_angles_are_close_to_exact(name, ulps):
    """Nearer than libmvec's, as libraries expect that are tested with NumPy's functions; also where sines are all but zero."""
    if not polynomials.wanted(name, "f64", True) or not WIDE:
        return
    rng = np.random.default_rng(7)
    turns = rng.integers(-600_000, 600_000, 20_000) * (np.pi / 4)
    near_turns = turns * (1 + rng.integers(-3, 4, turns.size) * 2.0**-52)
    parts = [rng.uniform(-1, 1, 20_000), rng.uniform(-30, 30, 20_000), rng.uniform(-(2**20), 2**20, 20_000), near_turns, turns + 2.0**-30]
    x = np.concatenate([*parts, np.ldexp(rng.uniform(-1, 1, 20_000), rng.integers(-1000, 30, 20_000))])
    error = errors_in_ulps(math_kernel(name, "f64")(x), reference(name, [x]))
    assert error.max() <= ulps, float(x[error.argmax()])


@pytest.mark.parametrize("name", [name for name, function in polynomials.FUNCTIONS.items() if function.partial])
def test_beyond_the_limit_every_element_goes_its_own_way(name):
    """One far argument does not change its neighbours, wherever it stands, and has the bits it has alone."""
    kernel = math_kernel(name, "f64")
    x = np.random.default_rng(8).uniform(-1000, 1000, 37)
    others = [np.full(x.size, 0.3)] * (FUNCTIONS[name].arity - 1)
    plain = kernel(x, *others)
    for at in range(x.size):
        y = x.copy()
        y[at] = (1e9 + at) * (1e30 if others else 1)
        expected = plain.copy()
        expected[at] = kernel(y[at : at + 1], *[other[:1] for other in others])[0]
        assert np.array_equal(kernel(y, *others).view(np.uint64), expected.view(np.uint64))


@pytest.mark.parametrize("kind", ["f64", "f32"])
def test_what_a_division_leaves_is_exact(kind):
    rng, dtype, info = np.random.default_rng(9), DTYPE[kind], np.finfo(DTYPE[kind])
    n, most = 100_000, info.nmant + 3
    x, y = (np.ldexp(rng.uniform(0.5, 1, n), rng.integers(info.minexp + 2, info.maxexp - 60, n)) for _ in range(2))
    near = np.ldexp(rng.uniform(0.5, 1, n), np.frexp(y)[1] + rng.integers(-2, most, n))  # quotients up to what a number holds, and beyond
    whole = np.floor(rng.uniform(0, 2.0 ** rng.integers(0, most, n))) * y.astype(dtype)  # multiples, or their neighbours
    few = rng.integers(0, 1000, (2, n)).astype(float)
    special = specials(kind)
    left = np.concatenate([x, near, whole, few[0], np.repeat(special, special.size)]).astype(dtype)
    right = np.concatenate([y, y, y, few[1], np.tile(special, special.size)]).astype(dtype)
    left *= rng.choice([-1, 1], left.size).astype(dtype)
    right *= rng.choice([-1, 1], right.size).astype(dtype)
    with np.errstate(all="ignore"):
        found, want = math_kernel("fmod", kind)(left, right), np.fmod(left, right)
    same = (found == want) & (np.signbit(found) == np.signbit(want)) | (np.isnan(found) & np.isnan(want))
    assert same.all(), (left[~same][0], right[~same][0], found[~same][0], want[~same][0])


# Numbers of the C library's flags: invalid, division by zero, overflow.
FLAG_BITS = {"x86_64": (1, 4, 8), "aarch64": (1, 2, 4), "arm64": (1, 2, 4)}
INVALID, DIVIDE, OVERFLOW = range(3)
RAISED = [
    ("exp", 1000, {OVERFLOW}), ("exp", -1000, set()), ("exp", np.inf, set()), ("exp", -np.inf, set()), ("exp", np.nan, set()),
    ("exp2", 2000, {OVERFLOW}), ("expm1", 1000, {OVERFLOW}), ("expm1", -np.inf, set()), ("tanh", np.inf, set()), ("tanh", np.nan, set()),
    ("cosh", -1000, {OVERFLOW}), ("cosh", np.inf, set()), ("sinh", 1000, {OVERFLOW}), ("sinh", -np.inf, set()), ("sinh", 0, set()),
    ("log", 0, {DIVIDE}), ("log", -1, {INVALID}), ("log", np.inf, set()), ("log", np.nan, set()), ("log", 1e-40, set()),
    ("log1p", -1, {DIVIDE}), ("log1p", -2, {INVALID}), ("log1p", np.inf, set()), ("log2", 0, {DIVIDE}), ("log10", -1, {INVALID}),
    ("sin", np.inf, {INVALID}), ("cos", -np.inf, {INVALID}), ("tan", np.inf, {INVALID}), ("sin", 1e300, set()), ("cos", np.nan, set()),
    ("tan", 1e22, set()), ("sin", 0, set()), ("tan", -3, set()),
    ("power", (0, -1), {DIVIDE}), ("power", (-2, 0.5), {INVALID}), ("power", (10, 1000), {OVERFLOW}), ("power", (0, 2.5), set()),
    ("power", (np.inf, -1), set()), ("power", (np.nan, 1), set()), ("power", (-3, 3), set()),
    ("fmod", (5, 0), {INVALID}), ("fmod", (-np.inf, 2), {INVALID}), ("fmod", (5, 3), set()), ("fmod", (1e-30, 1e30), set()),
    ("fmod", (3, np.inf), set()), ("fmod", (1e30, 1e-5), set()), ("fmod", (np.nan, 1), set()), ("fmod", (-6, 3), set()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "expected"), RAISED)
def test_no_flag_is_missed_and_polynomials_raise_none_where_there_is_none(name, values, expected):
    clear, test = mathlib.address("lzc_feclearexcept"), mathlib.address("lzc_fetestexcept")
    numbers = FLAG_BITS.get(platform.machine())
    if not (clear and test and numbers):
        return  # the names are C's, the numbers are the system's own
    clear, test = (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(found) for found in (clear, test))
    for kind in ("f64", "f32"):
        kernel = math_kernel(name, kind)
        with np.errstate(all="ignore"):
            arrays = [np.full(19, value, DTYPE[kind]) for value in np.atleast_1d(values)]
        clear(sum(numbers))
        kernel(*arrays)
        bits = test(sum(numbers))
        raised = {flag for flag, number in enumerate(numbers) if bits & number}
        assert raised >= expected
        assert expected or not raised or not polynomials.wanted(name, kind, True)


def test_polynomials_need_fused_multiply_add(monkeypatch):
    monkeypatch.setattr(config, "polynomials", True)
    for features, expected in (("+sse4.2,+fma", True), ("+sse4.2,-fma", False)):
        monkeypatch.setattr(polynomials, "host", lambda features=features: Host("x86_64-unknown-linux-gnu", "generic", features, "LLVM"))
        polynomials.available.cache_clear()
        assert polynomials.available() is expected
    polynomials.available.cache_clear()


def test_every_function_has_its_own_attribute_groups():
    groups = [mathlib.call_attributes(name, kind) for name, kind in CASES]
    assert len(set(groups)) == len(groups)


def test_the_prelude_defines_what_is_needed_once():
    text = mathlib.prelude([("exp", "f64"), ("log", "f32"), ("exp", "f64")])
    assert text.count("@lz_exp_f64(") == 1
    assert text.count("@lz_log_f32(") == 1
    assert mathlib.prelude([]) == ""
