"""The hand-written kernels compile for every architecture, and what is read from log and PTX is so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_emulator.execution import CompilationError
from tests.cuda import nvrtc
from tests.gpu_emulator import kernels
from tests.gpu_emulator.kernels import PROGRAMS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("arch", nvrtc.ARCHITECTURES)
def test_programs_compile(arch: str) -> None:
    found = nvrtc.compile([program.source for program in PROGRAMS.values()], arch)
    resources = {name: each for one in found for name, each in one.items()}
    assert [name for one in found for name in one] == [name.replace(" ", "_") for name in PROGRAMS]
    for each in resources.values():
        assert (each.spill_loads, each.spill_stores, each.stack) == (0, 0, 0) and 0 < each.registers <= 64
        assert each.counts["ld.local"] == each.counts["st.local"] == each.counts[".ftz"] == 0
    vector = resources["scale4"].counts
    assert vector["ld.global.v4"] == vector["st.global.v4"] == 1
    assert resources["block_sum"].shared == 32 and resources["block_sum"].counts["shfl"] >= 8
    assert resources["transpose"].shared == 4 * 32 * 33 and resources["transpose"].counts["bar.sync"] == 1
    assert resources["scale"].counts["fma"] == 0
    assert resources["row_sums"].counts[".f64"] > 0 == resources["block_sum"].counts[".f64"]
    assert resources["histogram"].counts["atom"] >= 2


def test_local_memory_and_calls_are_seen() -> None:
    text = 'extern "C" __global__ void %s { %s }'
    local, power, spilled = nvrtc.compile(
        [
            text % ("local(int* x)", "int a[40]; for (int k = 0; k < 40; k++) a[x[k]] = k; x[0] = a[x[1]] + a[x[2]];"),
            text % ("power(double* x, double y)", "x[threadIdx.x] = pow(x[threadIdx.x], y) * __expf(2.0f);"),
            text
            % (
                "__launch_bounds__(1024, 2) spilled(double* x)",
                "double a[64];\n#pragma unroll\nfor (int k = 0; k < 64; k++) a[k] = x[k];\n__syncthreads();\n"
                "#pragma unroll\nfor (int k = 0; k < 64; k++) x[k + 64] = a[63 - k];",
            ),
        ]
    )
    assert local["local"].stack >= 160 and local["local"].counts["st.local"] > 0
    assert power["power"].counts["call"] > 0
    assert spilled["spilled"].registers <= 32 and spilled["spilled"].spill_loads > 0 < spilled["spilled"].spill_stores


def test_errors() -> None:
    with pytest.raises(CompilationError, match=r'unit[01].cu\(2\): error: identifier "undeclared"'):
        nvrtc.compile([kernels.SCALE, '__global__ void k(int* x) {\n x[0] = undeclared; }'])
    hidden = "import sys; sys.modules['cupy'] = None\nfrom tests.cuda import nvrtc\nsys.stdin = None\nnvrtc.main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, cwd=ROOT, env=environment)
    assert "pip install" in done.stdout and "cuda-toolkit[cudart,nvrtc]" in done.stdout
