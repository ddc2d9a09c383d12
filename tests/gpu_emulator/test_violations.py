"""What CUDA forbids is found: violations of single kernels, races, memory, faults and whose they are."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy
import pytest

from gpu_emulator import execution
from gpu_emulator.execution import EmulationError, Module, Options, allocate, free, upload, view
from tests.gpu_emulator.kernels import PROGRAMS, Device, arguments, launch

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
RACES = [Options(order, races=True) for order in ("ascending", "descending", "random")]

def violation(body: str, *, threads: int = 32, options: Options | None = None) -> EmulationError:
    with pytest.raises(EmulationError) as raised:
        launch(body, numpy.zeros(32, "i"), threads=threads, options=options)
    return raised.value


@pytest.mark.parametrize(
    ("body", "line", "thread", "says"),
    [
        ("\nif (t == 3) out[t + 29] = 1;", 4, 3, "0 bytes past the end of a buffer of 128 bytes"),
        ("if (t == 5) *(int*)(long long)(t - 5) = 1;", 3, 5, "a null pointer"),
        ("assert(t < 20);", 3, 20, "assertion failed: t < 20"),
        ("if (t == 9)\n__trap();", 4, 9, "__trap"),
        ("out[t] = 100 / (t - 4);", 3, 4, "division by zero"),
        ("int a[3]; a[t % 3] = 1;\nout[t] = a[t / 10];", 4, 30, "index 3 is outside 'int [3]'"),
        ("out[t] = t << (t + 2);", 3, 30, "shift of 30 of type 'int' by 32"),
        ("for (volatile int k = 0; t == 2; ) k = 1;", 3, 2, "endless"),
        ("volatile char deep[1 << 18]; deep[t] = 1;", 0, 0, "stack overflow"),
        ("if (t < 16) __syncwarp();\nelse __syncwarp(0xffff0000u);", 4, 16, "divergent collective"),
        ("if (t == 1) return;\n__syncthreads();", 4, None, "returned before the __syncthreads"),
        ("if (t == 1) __syncthreads();\nelse out[t] = __shfl_sync(0xffffffffu, t, 0);", 4, 0, "deadlock"),
        ("out[t] = __shfl_sync(0xffffu, t, 0);", 3, 16, "lacks the lane 16"),
        ("if (t < 8) out[t] = __shfl_sync(0xffu, t, 9);", 3, 0, "reads lane 9, which is not there"),
    ],
)
def test_violations(body: str, line: int, thread: int | None, says: str) -> None:
    error = violation(body, options=Options(seconds=0.2))
    assert says in str(error) and error.kernel == "kernel"
    if line:
        assert error.line == line
    if thread is not None:
        assert error.thread == (thread, 0, 0)
    # and the emulator goes on
    numpy.testing.assert_array_equal(launch("out[t] = t; __syncthreads();", numpy.zeros(32, "i")), numpy.arange(32))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("__shared__ int s[32]; s[t] = t; out[t] = s[t ^ 1];", True),
        ("__shared__ int s[32]; s[t] = t; __syncthreads(); out[t] = s[t ^ 1];", False),
        ("__shared__ int s[32]; s[t] = t; __syncwarp(); out[t] = s[t ^ 1];", False),
        ("__shared__ int s[32]; s[t] = t; __shfl_sync(~0u, t, 0); out[t] = s[t ^ 1];", True),  # orders nothing
        ("__shared__ int s[32]; s[t] = t; __syncwarp(); out[t] = s[t ^ 1]; __syncwarp(); s[t ^ 2] = 1;", False),
        ("__shared__ int s[32]; s[t] = t; __syncwarp(); out[t] = s[t ^ 1]; s[t ^ 2] = 1;", True),
        ("__shared__ int s; if (t == 0) s = 1; __syncthreads(); out[t] = s; if (t == 0) s = 2;", True),
        ("__shared__ int s; if (t == 0) s = 1; __syncthreads(); out[t] = s; __syncthreads(); if (t == 0) s = 2;", False),
        ("__shared__ char s[32]; s[t] = 1; out[t] = s[t];", False),  # neighbours in one word
        ("out[0] = 1;", True),
        ("atomicExch(out, 1);", False),
        ("atomicAdd(out, 1); if (t == 3) out[0] = 1;", True),
        ("out[t] = in_table[t % 3];", False),
    ],
)
def test_races(body: str, found: bool) -> None:
    before = "__device__ const int in_table[3] = {1, 2, 3};"
    for options in RACES:
        try:
            launch(body, numpy.zeros(32, "i"), options=options, before=before)
        except EmulationError as error:
            said = str(error)
        else:
            said = ""
        assert ("race:" in said) == found, said
    if "__sync" not in body and "shared" in body:
        return
    big = body.replace("t ^", "63 - t ^").replace("[32]", "[64]")
    if "__syncwarp" in body:  # other warps are not ordered by it
        with pytest.raises(EmulationError, match="race:"):
            launch(big, numpy.zeros(64, "i"), options=RACES[0], threads=64)


def test_every_access_of_an_instrumented_build_is_to_memory_of_the_device() -> None:
    host = numpy.zeros(4, "i")
    with Device() as device:
        out = device.empty(16)
        text = 'extern "C" __global__ void kernel(int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }'
        with pytest.raises(EmulationError, match="no memory of the device"):
            Module(text, Options(races=True)).function("kernel")((1,), (4,), arguments(host.ctypes.data, out))


# Memory --------------------------------------------------------------------------------------------------------------------------


def test_memory() -> None:
    address = allocate(1000)
    assert address % 16 == 0 and (view(address, 1000, "B") == 0xFF).all()
    assert execution.extent(address) == 1000 and execution.extent(address + 999) == 1 and execution.extent(address + 1001) == -1
    view(address, 10, "i")[:] = 7
    free(address)
    assert execution.extent(address) == -1
    for wrong in (address, address + 4, 0, 12345):
        with pytest.raises(EmulationError, match="not allocated"):
            free(wrong)
    assert allocate(100, align=512) % 512 == 0 and allocate(100, guard="start") % 4096 == 0
    empty = allocate(0)
    assert empty
    free(empty)


@pytest.mark.parametrize(("guard", "at", "says"), [("end", 100, "past the end"), ("start", -1, "before the start")])
def test_both_ends_are_guarded(guard: str, at: int, says: str) -> None:
    text = 'extern "C" __global__ void kernel(int* x, long long at) { x[at] = 1; }'
    function = Module(text).function("kernel")
    with Device() as device:
        x = device.empty(400, guard=guard)
        with pytest.raises(EmulationError, match=f"illegal access.* {says}"):
            function((1,), (1,), arguments(x, at))
        with pytest.raises(EmulationError, match="found after the launch"):  # the other end, on the same page
            function((1,), (1,), arguments(x, 99 - at))
    freed = upload(numpy.zeros(4))
    free(freed)
    with pytest.raises(EmulationError, match="a freed buffer"):
        function((1,), (1,), arguments(freed, 0))


def test_writing_beside_memory_from_the_host_is_found_when_it_is_freed() -> None:
    address = allocate(30)
    ctypes.memset(address + 30, 0, 1)
    with pytest.raises(EmulationError, match="beside"):
        free(address)


# Faults --------------------------------------------------------------------------------------------------------------------------


def test_faulthandler_keeps_its_handlers() -> None:
    assert faulthandler.is_enabled()  # by pytest
    violation("*(int*)64 = 1;")
    script = (
        "import ctypes, faulthandler, numpy\nfaulthandler.enable()\n"
        "from gpu_emulator.execution import *\n"
        "f = Module('extern \"C\" __global__ void k(int* p) { *p = 1; }').function('k')\n"
        "try: f((1,), (1,), bytes(8))\nexcept EmulationError as e: print('FOUND', e)\n"
        "ctypes.string_at(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT)
    assert "FOUND k, line 1" in done.stdout and done.returncode == -11
    assert "Fatal Python error: Segmentation fault" in done.stderr


def test_launches_from_several_threads() -> None:
    program = PROGRAMS["block sum"]
    module = Module(program.source)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for k in range(20):
            for got, expected in program.run(module, numpy.random.default_rng(seed + k)):
                if not numpy.array_equal(got, expected):
                    wrong.append((got, expected))
            try:
                launch("out[t + 4096] = 1;", numpy.zeros(32, "i"))
            except EmulationError:
                continue
            wrong.append("no error")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_our_own_switch_of_stacks() -> None:
    """As on other machines than x86-64."""
    script = (
        "from gpu_emulator.execution import build\nfind = build.runtime\nbuild.runtime = lambda: find(True)\n"
        "import numpy\nfrom tests.gpu_emulator.kernels import PROGRAMS\nfrom gpu_emulator.execution import Module, Options\n"
        "for name in ('block sum', 'scan', 'last block'):\n"
        "    for options in (Options(), Options('random', 3)):\n"
        "        for got, expected in PROGRAMS[name].run(Module(PROGRAMS[name].source, options), numpy.random.default_rng(0)):\n"
        "            assert numpy.array_equal(got, expected)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, env=ENVIRONMENT)
