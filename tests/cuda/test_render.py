"""Kernels of a grid as CUDA C: what NVRTC makes of them, what the text promises, and the special functions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from lazynp.backends.cuda import functions, render, scalars
from lazynp.backends.cuda.types import type_of
from lazynp.backends.special import FUNCTIONS
from lazynp.codegen import pipeline
from lazynp.engine import realize
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.op import Op
from lazynp.schedule.canonicalise import Program, canonicalise
from lazynp.schedule.spec_rules import scalar_rule
from tests.backends.special_errors import errors_in_ulps
from tests.backends.test_special import NAMES, VALUES, bound
from tests.codegen import test_grid
from tests.codegen.engines import leaf
from tests.codegen.test_grid import softmax
from tests.cuda import rendered
from tests.cuda.host import machine


def test_a_loop_that_accumulates_tells_of_each_operation() -> None:
    """It runs again where its result is not finite; an infinity or NaN that was there is no error."""
    for bad, expected in ((numpy.inf, 0), (numpy.nan, 0), (1e308, 2)):
        x = numpy.full((3, 1000), bad if bad > 1e300 else numpy.nan)
        noted = numpy.zeros(3 * 1024, numpy.uint64)
        node = build.reduce(o.ADD, leaf(x), (1,))
        rendered.run(rendered.plan_of([node], noted=noted), [node])
        assert numpy.bitwise_or.reduce(noted) == expected


# NVRTC ----------------------------------------------------------------------------------------------------------------------

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
N = 70_000

Case = tuple[Callable[..., Any], type]
CASES: dict[str, Case] = {
    **{f"{dtype.__name__} arithmetic": (lambda m, x: ((x * 2 - 1) * x + x * x - 3) * (x + 2), dtype) for dtype in
       (numpy.int8, numpy.uint16, numpy.int32, numpy.int64, numpy.float16, numpy.float32, numpy.float64)},
    "division": (lambda m, x: (x + 1) / x, numpy.float32),
    "comparison": (lambda m, x: (x > 3) | (x < 1), numpy.float32),
    "selection": (lambda m, x: m.where(x > 0, x, -x), numpy.float64),
    "conversion": (lambda m, x: x.astype("i4"), numpy.float32),
    "exponential": (lambda m, x: m.tanh(x) + m.exp(x), numpy.float32),
    "sum": (lambda m, x: x.sum(), numpy.float32),
    "columns": (lambda m, x: x.reshape(700, 100).std(axis=0), numpy.float32),
    "softmax": (lambda m, x: softmax(m, x.reshape(70, 1000)), numpy.float32),
    "transposed": (lambda m, x: x.reshape(700, 100).T + 1, numpy.float32),
    "gathered": (lambda m, x: x[m.arange(60_000) * 7 % 70_000], numpy.float32),
}  # fmt: skip
VECTORS = {"int8": "u8", "uint16": "u16", "int32": "u32", "int64": "u64", "float16": "u16", "float32": "f32", "float64": "f64"}


@functools.cache
def compiled(source: str, arch: str) -> tuple[str, str]:
    """(log, PTX) of NVRTC."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
        from cupy.cuda import nvrtc
    except ImportError as error:
        pytest.fail(f"{error}: these tests need NVRTC: pip install cupy-cuda13x 'cuda-toolkit[cudart,nvrtc]==13.0.*'")

    from lazynp.backends.cuda.compiler import OPTIONS

    program = nvrtc.createProgram(source, "k.cu", (), ())
    options = (*OPTIONS, f"-arch={arch}", "-Xptxas", "-v", f"-I{find_nvidia_header_directory('cudart')}")
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError:
        raise AssertionError(nvrtc.getProgramLog(program)) from None
    ptx = nvrtc.getPTX(program)
    return nvrtc.getProgramLog(program), ptx if isinstance(ptx, str) else ptx.decode()


def source_of(names: list[str]) -> str:
    kernels = [kernel for name in names for kernel in test_grid.kernels(CASES[name][0], numpy.ones(N, CASES[name][1]))]
    return render.module([(f"k{k}", kernel, False) for k, kernel in enumerate(kernels)])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_arithmetic_needs_no_local_memory_and_few_registers(arch: str) -> None:
    log, ptx = compiled(source_of(list(CASES)), arch)
    assert "error" not in log
    stacks = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert set(stacks) == {("0", "0", "0")}
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    assert len(registers) >= len(CASES)
    assert max(registers) <= 64, registers
    for word in (".ftz", ".approx.f32", "div.full", "fma.rn.f32"):
        if word in ptx:  # only within the functions of CUDA's library
            assert "ex2.approx" in ptx


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("arithmetic")])
def test_neighbours_are_read_and_written_together(name: str) -> None:
    _, ptx = compiled(source_of([name]), "sm_90")
    kind = VECTORS[name.split()[0]]
    wide = "v2" if kind.endswith("64") else "v4"
    words = rf"{wide}\.[bsufx]\d+|u32|b32|u64|b64"  # small elements come as words
    assert re.search(rf"ld\.global(\.nc)?\.({words})", ptx)
    assert re.search(rf"st\.global\.({words})", ptx)
    if kind[0] == "f" or kind in ("u32", "u64"):
        assert re.search(rf"ld\.global(\.nc)?\.{wide}\.", ptx)
        assert re.search(rf"st\.global\.{wide}\.", ptx)
    assert "fma.rn" not in ptx


def test_the_text_depends_on_nothing_but_the_kernel() -> None:
    for name in ("softmax", "float32 arithmetic", "sum"):
        assert source_of([name]) == source_of([name])
        assert "#include" not in source_of([name])


def test_a_complex_number_is_one_access() -> None:
    with machine(seed=0):
        x = np.asarray(numpy.ones(50, "c16"), device="cuda") + 1
        (item,) = pipeline.scheduled(Program.of(canonicalise([x._node])), realize.compiler([x._node])).kernels
    ptx = compiled(render.module([("k", item.code, False)]), "sm_90")[1]
    assert re.search(r"ld\.global(\.nc)?\.v2\.(f64|b64|u64)", ptx) and re.search(r"st\.global\.v2\.(f64|b64|u64)", ptx)


def test_quotients_by_multiplication_are_exact() -> None:
    rng = numpy.random.default_rng(11)
    special = [1, 2, 3, 5, 7, *[(1 << k) + d for k in range(2, 31) for d in (-1, 0, 1)], (1 << 31) - 1]
    for divisor in [*special, *(rng.integers(1, 1 << 31, 300) >> rng.integers(0, 31, 300)).clip(1).tolist()]:
        packed = render.reciprocal(divisor)
        assert packed & 0xFFFFFFFF == divisor and 0 < packed < 1 << 63
        multiplier, shift = packed >> 32 | 1 << 31, (divisor - 1).bit_length()
        near = numpy.array([0, 1, divisor, (1 << 31) // divisor * divisor, (1 << 31) - 1, 1 << 30])[:, None] + numpy.arange(-2, 3)
        a = numpy.concatenate([near.ravel(), rng.integers(0, 1 << 31, 50)]).clip(0, (1 << 31) - 1).astype(object)
        assert ((2 * a * multiplier >> 32) >> shift == a // divisor).all()


def test_wide_kernels_divide() -> None:
    (kernel,) = test_grid.kernels(lambda m, x: x + x[0], numpy.ones((300, 5)))
    narrow, wide = (render.module([("k", kernel, wide)]) for wide in (False, True))
    assert render.divisors(kernel) and "lz_quotient" in narrow and "lz_quotient" not in wide


def test_half_precision_needs_no_header() -> None:
    text = source_of(["float16 arithmetic"])
    assert "#include" not in text and "cvt.rn.f16.f32" in text
    assert "cvt.rn.f16.f32" in compiled(text, "sm_90")[1]


EVERY = [numpy.dtype(c) for c in "?bBhHiIlLefdFD"]
RESULTS = [numpy.dtype(c) for c in "?BefdFD"]


def every_operation(dtype: Any) -> Iterator[tuple[Op, Any, list[Any]]]:
    """(operation, dtype of the result, those of the sources) of all that begins with ``dtype`` and can be rendered."""
    for op in o.ALL:
        if op.kind is not o.Kind.ELEMENTWISE or op in (o.CAST, o.BITCAST):
            continue
        sources = [dtype] * (op.arity or 0)
        if op is o.LDEXP:
            sources[1] = numpy.dtype("i4")
        if op is o.WHERE:
            sources[0] = numpy.dtype(bool)
        for result in [dtype, *[other for other in RESULTS if other != dtype and op is not o.LDEXP]]:
            given = sources[1:] if op is o.WHERE else sources
            if not list(scalar_rule(op, result, sources)) and render.supported(op, result, given):
                yield op, result, sources
    for other in EVERY:
        for op in (o.CAST, o.BITCAST):
            if not list(scalar_rule(op, other, [dtype])) and other != dtype and render.supported(op, other, [dtype]):
                yield op, other, [dtype]


@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_nvrtc_takes_every_operation(dtype: Any) -> None:
    kernels = []
    for k, (op, result, sources) in enumerate(every_operation(dtype)):
        parameters = ", ".join(f"{type_of(d)} {name}" for d, name in zip(sources, "abc", strict=False))
        value = scalars.expression(op, result, tuple("abc"[: len(sources)]), sources[-1])
        kernels.append(
            f'extern "C" __global__ void k{k}({parameters}, {type_of(result)}* out, unsigned int* flags)\n'
            f"{{\n    unsigned int noted = 0;\n    const {type_of(result)} d = {value};\n    *out = d;\n    *flags = noted;\n}}\n"
        )
    assert len(kernels) > 25
    text = "\n".join(kernels)
    found = functions.closure(text)
    compiled(f"{found}\n{text}", "sm_75")


# Special functions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_special_functions_are_within_their_bounds(name: str) -> None:
    op = o.by_name(name.removesuffix("_mirrored"))
    (x,), *exact = (VALUES[f"{name}.{part}"] for part in ("x", "value", "rest", "exponent"))
    node = build.elementwise(op, x.dtype, leaf(x))
    (got,) = rendered.compiled([node], library=False)
    error = errors_in_ulps(got, *exact, name)
    worst = int(numpy.argmax(error))
    assert error[worst] <= bound(name), (float(x[worst]), error[worst])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_special_functions_at_special_values(name: str) -> None:
    from lazynp.backends.numpy.special import UFUNCS

    x = numpy.array([0.0, -0.0, 1, -1, 0.5, 2, -2, 1.5, 28, -28, 1e300, -1e300, 5e-324, numpy.inf, -numpy.inf, numpy.nan])
    node = build.elementwise(o.by_name(name), x.dtype, leaf(x))
    (got,) = rendered.compiled([node], library=False)
    with numpy.errstate(all="ignore"):
        expected = UFUNCS[name](x)
    numpy.testing.assert_allclose(got, expected, rtol=1e-14)
    assert (numpy.signbit(got) == numpy.signbit(expected))[~numpy.isnan(expected)].all()


