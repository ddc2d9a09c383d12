"""Bugs planted in kernels: each must be found, and by what is on record.

``values``: the result is not NumPy's, in at least one order; ``checks``: the plain build reports a violation; ``races``: the instrumented
build does, whatever the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy
import pytest

from gpu_emulator.execution import EmulationError, Module, Options, precompile
from tests.cuda import counts
from tests.gpu_emulator.kernels import PROGRAMS

ORDERS = (Options(), Options("descending"), Options("random", 1), Options("random", 2))


class Bug(NamedTuple):
    name: str
    program: str
    right: str
    wrong: str
    found: str  # by which, in words
    says: str = ""  # part of the message


BUGS = [
    Bug("guard lets one too many in", "scale", "i < n", "i <= n", "checks races", "past the end of a buffer of 4016"),
    Bug("no guard", "scale", "if (i < n) ", "", "checks races", "past the end"),
    Bug("guard drops the last", "scale", "i < n", "i < n - 1", "values"),
    Bug("block size in the index wrong", "scale", "* 128 +", "* 64 +", "values races", "race: writes byte"),
    Bug("double becomes float too late", "scale", "x[i] * (float)by", "x[i] * by", "values"),
    Bug("one before the start", "shift", "max(i - 1, 0)", "i - 1", "checks races", "4 bytes before the start of a buffer of 1200"),
    Bug("grid covers too little", "scale",
        "(long long)blockIdx.x * 128", "(long long)max((int)blockIdx.x - 1, 0) * 128", "values races"),
    Bug("tail dropped", "scale4", "i == whole", "false", "values"),
    Bug("tail as a vector", "scale4", "(int)(n / 4)", "(int)((n + 3) / 4)", "checks races", "past the end"),
    Bug("misaligned vector load", "scale4", "((const float4*)x)[i]", "*(const float4*)(x + 4 * i + 1)", "checks races", "misaligned"),
    Bug("no barrier before the fold of warps", "block sum", "    __syncthreads();\n", "", "values races", "race: reads shared memory"),
    Bug("shuffle over half a warp", "block sum", "half, 32)", "half, 16)", "values"),
    Bug("shuffle one step short", "block sum",
        "half > 0; half /= 2) sum += __shfl_xor", "half > 1; half /= 2) sum += __shfl_xor", "values"),
    Bug("reads shared memory nobody wrote", "block sum",
        "lane < 8 ? warps[lane] : 0", "warps[lane % 9]", "checks races", "index 8 is outside"),
    Bug("shared memory only for some warps", "block sum",
        "if (lane == 0) warps", "if (lane == 0 && sum != 0 && warp < 7) warps", "values"),
    Bug("barrier in a branch", "block sum",
        "    __syncthreads();\n", "    if (warp < 4) __syncthreads();\n", "checks races", "returned before"),
    Bug("barriers in both branches", "block sum",
        "    __syncthreads();\n", "    if (warp < 4)\n__syncthreads();\n    else __syncthreads();\n",
        "checks races", "divergent barrier"),
    Bug("shuffle in a branch", "row sums",
        "__shfl_down_sync(0xffffffffu, sum, by)", "threadIdx.x < 16 ? __shfl_down_sync(0xffffffffu, sum, by) : 0",
        "checks races", "__shfl_down_sync"),
    Bug("return before a barrier", "column sums",
        "    part[threadIdx.y]", "    if (j >= columns) return;\n    part[threadIdx.y]", "checks races",
        "returned before the __syncthreads"),
    Bug("accumulator not initialised", "column sums", "float sum = 0;", "float sum;", "values"),
    Bug("array one too short", "column sums", "part[8][32]", "part[7][32]", "checks races", "index 7 is outside"),
    Bug("last row of the block forgotten", "column sums", "k < 8", "k < 7", "values"),
    Bug("no barrier in a transpose", "transpose", "    __syncthreads();\n", "", "values races", "race:"),
    Bug("tile too narrow", "transpose", "tile[32][33]", "tile[32][31]", "checks races", "index 31 is outside"),
    Bug("rows for columns", "transpose", "(j + k) * rows + i", "(j + k) * columns + i", "checks races"),
    Bug("++ for atomicAdd in shared memory", "histogram", "atomicAdd(&part[x[i]], 1u)", "part[x[i]]++", "races", "race:"),
    Bug("+= for atomicAdd in device memory", "histogram", "atomicAdd(counts + k, part[k])", "counts[k] += part[k]", "races", "race:"),
    Bug("no barrier after the zeros", "histogram", "part[k] = 0;\n    __syncthreads();", "part[k] = 0;", "values races", "race:"),
    Bug("no zeros", "histogram", "part[k] = 0;", ";", "values"),
    Bug("second barrier of a scan missing", "scan",
        "row[i] += add;\n        __syncthreads();", "row[i] += add;", "values races", "race:"),
    Bug("first barrier of a scan missing", "scan",
        "0;\n        __syncthreads();\n        row[i] += add", "0;\n        row[i] += add", "values races"),
    Bug("no fence before the ticket", "last block",
        "        __threadfence();\n        last", "        last", "races", "race: reads byte 0"),
    Bug("ticket without atomic", "last block", "atomicAdd(tickets, 1u)", "tickets[0]++", "races", "race:"),
    Bug("past dynamic shared memory", "softmax", "row[j] = x[blockIdx.x * columns + j]", "row[j + 1] = x[blockIdx.x * columns + j]",
        "checks races", "past the end of dynamic shared memory"),
    Bug("sees other warps without barrier", "softmax", "    __syncthreads();\n", "    __syncwarp();\n", "values races", "race:"),
    Bug("negative indices", "gather", "if (k < 0) k += n;", "", "values"),
    Bug("index not checked", "gather", "k < 0 || k >= n", "k < 0", "checks races", "past the end"),
    Bug("sum rounded twice", "halves", "__double2half(d[i])", "__float2half((float)d[i])", "values"),
    Bug("conversion of what does not fit", "halves",
        "f > -1e9f && f < 1e9f ? (int)f : 0", "(int)(f * 1e9f)", "checks races", "conversion"),
    Bug("signed overflow", "hash",
        "(unsigned long long)(unsigned)x[i] * 0x9e3779b97f4a7c15ull", "x[i] * 1009", "checks races", "signed overflow"),
    Bug("shift by too much", "hash", "by & 63", "by + 31", "checks races", "shift of"),
    Bug("division by zero", "hash", "h % 1009", "h % (unsigned long long)(n - 256)", "checks races", "division by zero"),
    Bug("index in 32 bits", "hash", "y[i] = ", "y[i * (int)(n << 22) >> 30] = ", "checks races", "signed overflow"),
]


def variant(bug: Bug) -> str:
    source = PROGRAMS[bug.program].source
    assert source.count(bug.right) == 1 or bug.right == "    __syncthreads();\n", bug
    return source.replace(bug.right, bug.wrong, 1)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    for instrumented in (False, True):
        precompile([variant(bug) for bug in BUGS], instrumented)


def findings(bug: Bug) -> tuple[set[str], list[EmulationError]]:
    found: dict[bool, set[str]] = {}
    said: list[EmulationError] = []
    for options in [*ORDERS, *(order._replace(races=True) for order in ORDERS[:3])]:
        module = Module(variant(bug), options)
        try:
            pairs = PROGRAMS[bug.program].run(module, numpy.random.default_rng(0))
        except EmulationError as error:
            by = "races" if options.races else "checks"
            said.append(error)
        else:
            by = "values" if not all(numpy.array_equal(got, expected) for got, expected in pairs) else "nothing"
        found.setdefault(options.races, set()).add(by)
    assert len(found[True]) == 1, "the instrumented build depends on the order"
    return (found[False] | found[True] & {"races"}) - {"nothing"}, said


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_found(bug: Bug) -> None:
    found, said = findings(bug)
    for by in found:
        counts.found_by[by].add(bug.name)
    assert found == set(bug.found.split()), said
    assert any(bug.says in str(error) for error in said) or not bug.says
    for error in said:
        assert error.kernel, error
        assert error.line or "after the launch" in str(error), error
