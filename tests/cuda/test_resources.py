"""What NVRTC makes of the kernels of named and of random programs: no spills, few registers, 16-byte accesses, exact arithmetic."""

from __future__ import annotations

import os

import numpy
import pytest

import lazynp as np
from bench.workloads import WORKLOADS
from lazynp.arrays import node_of
from lazynp.codegen.grid import nest as grid
from tests.cuda import collected, nvrtc
from tests.cuda.nvrtc import ARCHITECTURES, Resources

RANDOM = int(os.environ.get("LAZYNP_CUDA_SOURCES", "100"))  # random programs whose kernels are compiled, for one architecture
REGISTERS = 64
SPILLS = 16  # bytes around the slow path of a division in double precision
# A reduction of more than 8 elements inside another one is one thread's, and its 32 accumulators lie in local memory.
# What ptxas sets aside in "attention" on sm_90 it does not use: there is no local load or store.
ALLOWED_STACK = {"nearest of all": 256, "attention": 8}
ALLOWED_REGISTERS = {"nearest of all": 168}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_of_named_programs_fit_the_machine(arch: str) -> None:
    named = collected.named()
    sources = list(dict.fromkeys(source for parts in named.values() for source in parts))
    found = dict(zip(sources, nvrtc.compile(sources, arch), strict=True))
    assert len(sources) >= 100
    too_much = []
    for name, parts in named.items():
        key = name.removesuffix(", f8").removesuffix(", f4")
        for source in parts:
            for phase, used in found[source].items():
                spilled = max(used.spill_stores, used.spill_loads)
                fits = (
                    spilled <= SPILLS,
                    used.stack <= max(ALLOWED_STACK.get(key, 0), 2 * spilled),
                    used.registers <= ALLOWED_REGISTERS.get(key, REGISTERS),
                    used.counts[".ftz"] <= used.counts[".approx"],  # inside CUDA's own functions
                )
                if not all(fits):
                    too_much.append((name, phase, used))
    assert not too_much


def test_kernels_of_random_programs_compile() -> None:
    sources = collected.of_random_programs(RANDOM)
    assert len(sources) >= RANDOM
    for kernels in nvrtc.compile(sources, "90"):
        assert all(used.registers <= 255 and used.counts[".ftz"] <= used.counts[".approx"] for used in kernels.values())


# Long chains: what is looked at for floating-point errors does not stay in registers.
LONG = {"Horner, degree 24": 32, "Black-Scholes": 64, "Mandelbrot, 20 steps": 64}


@pytest.mark.parametrize("name", LONG)
def test_long_chains_need_few_registers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(grid, "ELEMENTS_FROM", 0)
    (workload,) = [workload for workload in WORKLOADS if workload.name == name]
    arrays = [np.asarray(array) for array in workload.make(numpy.random.default_rng(0), False)]
    found = workload.bind(np)(*arrays)
    (source,) = collected.sources([node_of(x) for x in (found if isinstance(found, tuple) else (found,))])
    for arch in ("80", "90"):
        (used,) = nvrtc.compile([source], arch)[0].values()
        assert used.registers <= LONG[name] and max(used.spill_stores, used.spill_loads) <= SPILLS


# Instructions ----------------------------------------------------------------------------------------------------------


def counts(name: str, arch: str = "90") -> list[Resources]:
    """Of each launch of a named program, which is one kernel."""
    (kernels,) = nvrtc.compile(collected.named()[name], arch)
    return [used for _, used in sorted(kernels.items())]


# A tree is one barrier and a loop with another one.  A fold is 6 shuffles of 4 bytes; one of a sum has one more, in the loop that runs
# where its result is not finite.
INSTRUCTIONS = {
    "several elements a thread, f4": [{"ld.global.v4": 1, "st.global.v4": 1, "fma": 0, "bar.sync": 0, "ld.local": 0}],
    "several elements a thread, f8": [{"ld.global.v2": 1, "st.global.v2": 1, "fma": 0}],
    "several elements of a row, f4": [{"ld.global.v4": 2, "st.global.v4": 1, "fma": 0, ".s64": 0, "div.u32": 0, "mul.hi": 1}],
    "several elements of a row that is cut, f4": [{"ld.global.v4": 2, "st.global.v4": 1}],
    "elements, f4": [{"ld.global.v4": 0, ".f64": 0, "fma": 0, ".s64": 0, "div.u32": 0}],
    "warps, f4": [{"bar.sync": 0, "shfl": 13, ".f64": 0, "fma": 0}],
    "everything, long, f8": [{"bar.sync": 5, "shfl": 14, "atom": 2}, {"bar.sync": 5, "shfl": 14, "atom": 2}],
    "across, f4": [{"bar.sync": 1, "fma": 0}],
    "columns, f8": [{"bar.sync": 0, "shfl": 0}, {"bar.sync": 2, "shfl": 0}, {"bar.sync": 0}, {"bar.sync": 2}],
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions(name: str) -> None:
    launches = counts(name)
    assert len(launches) == len(INSTRUCTIONS[name])
    for used, expected in zip(launches, INSTRUCTIONS[name], strict=True):
        assert {kind: used.counts[kind] for kind in expected} == expected
