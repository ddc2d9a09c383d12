"""CUDA C in the emulator: what threads do together, halves, intrinsics, math functions, types, parameters."""

from __future__ import annotations

import numpy
import pytest

from gpu_emulator.execution import EmulationError, Module, Options, download
from gpu_emulator.execution.source import UnsupportedSource
from tests.differential.tables import words
from tests.gpu_emulator.kernels import Device, launch

ORDERS = [Options(), Options("descending"), Options("random", 1)]

LANES = numpy.arange(32)


@pytest.mark.parametrize("options", ORDERS, ids=str)
def test_shuffles(options: Options) -> None:
    body = """
        unsigned all = 0xffffffffu;
        double v = 100.0 + t;
        out[t] = __shfl_sync(all, v, 5);
        out[32 + t] = __shfl_sync(all, v, t + 1, 8);
        out[64 + t] = __shfl_up_sync(all, v, 3);
        out[96 + t] = __shfl_down_sync(all, (float)v, 3, 16);
        out[128 + t] = __shfl_xor_sync(all, (long long)v, 6);
        out[160 + t] = __shfl_xor_sync(all, (int)v, 12, 8);
        if (t < 16) out[192 + t] = __shfl_down_sync(0xffffu, (unsigned)v, 1, 16);
        else out[192 + t] = __shfl_up_sync(0xffff0000u, (unsigned long long)v, 1, 16);
    """
    rows = [
        LANES * 0 + 5,
        LANES // 8 * 8 + (LANES + 1) % 8,
        numpy.where(LANES < 3, LANES, LANES - 3),
        numpy.where(LANES % 16 + 3 < 16, LANES + 3, LANES),
        LANES ^ 6,
        numpy.where((LANES ^ 12) // 8 > LANES // 8, LANES, LANES ^ 12),
        numpy.where(LANES < 15, LANES + 1, numpy.where(LANES < 17, LANES, LANES - 1)),
    ]
    numpy.testing.assert_array_equal(launch(body, numpy.zeros(224), options=options), 100 + numpy.concatenate(rows))


def test_votes_and_reductions() -> None:
    body = """
        unsigned all = 0xffffffffu;
        unsigned v[] = {
            __ballot_sync(all, t % 3 == 0), (unsigned)__any_sync(all, t == 7),
            (unsigned)__all_sync(all, t < 31), (unsigned)__all_sync(all, t < 32),
            __match_any_sync(all, t % 5), (unsigned)__reduce_add_sync(all, t - 40), (unsigned)__reduce_min_sync(all, 3 - t),
            __reduce_max_sync(all, (unsigned)t * 3u), __reduce_xor_sync(all, 1u << t), __activemask(), (unsigned)__syncthreads_count(t < 9),
            (unsigned)__syncthreads_and(t != 4), (unsigned)__syncthreads_or(t == 4),
        };
        for (int k = 0; k < 13; k++) out[32 * k + t] = v[k];
    """
    got = launch(body, numpy.zeros(13 * 32, "I")).reshape(13, 32)
    bits = numpy.uint32(1) << LANES.astype("I")
    single = [bits[::3].sum(), 1, 0, 1, None, 2**32 + 496 - 32 * 40, 2**32 - 28, 93, 2**32 - 1, None, 9, 0, 1]
    for row, expected in zip(got, single, strict=True):
        if expected is not None:
            numpy.testing.assert_array_equal(row, expected)
    assert (got[9] & bits).all()
    numpy.testing.assert_array_equal(got[4], [bits[lane % 5 == LANES % 5].sum() for lane in range(32)])


def test_atomics() -> None:
    body = """
        int* i = (int*)out; unsigned* u = (unsigned*)(out + 10); float* f = (float*)(out + 20); double* d = (double*)(out + 30);
        long long* q = (long long*)(out + 40);
        unsigned long long* m = (unsigned long long*)(out + 50);
        atomicAdd(i, t); atomicSub(i + 1, t); atomicMin(i + 2, 3 - t); atomicMax(i + 3, t); atomicExch(i + 4, 8); atomicXor(i + 5, 1 << t);
        atomicAdd(u, 2u); atomicInc(u + 1, 9u); atomicDec(u + 2, 5u); atomicAnd(u + 3, ~(1u << t)); atomicOr(u + 4, 1u << t);
        atomicAdd(f, 0.5f); atomicAdd(d, 0.25); atomicMax(q, (long long)t << 40); atomicAdd(m, 1ull << 33);
        unsigned long long* bits = (unsigned long long*)(d + 1);
        for (unsigned long long old = *bits, seen;; old = seen) { // a product of doubles
            seen = atomicCAS(bits, old, (unsigned long long)__double_as_longlong(__longlong_as_double((long long)old) * 2));
            if (seen == old) break;
        }
    """
    memory = numpy.zeros(60, "q")
    memory[31] = numpy.float64(1).view("q")
    memory[10:12].view("I")[3] = 0xFFFFFFFF
    for options in (*ORDERS, Options(races=True)):
        if options.races:  # it reads `bits` before it has swapped: let it read by a swap too
            body = body.replace("old = *bits", "old = atomicCAS(bits, 0, 0)")
        got = launch(body, memory, options=options)
        assert got[:3].view("i").tolist() == [496, -496, -28, 31, 8, -1]
        assert got[10:13].view("I").tolist()[:5] == [64, 2, 4, 0, 2**32 - 1]
        assert got[20:21].view("f")[0] == 16 and got[30:32].view("d").tolist() == [8, 2.0**32]
        assert got[40] == 31 << 40 and got[50] == 1 << 38


def test_ptx_of_half_precision() -> None:
    every = numpy.arange(65536, dtype="H")
    body = '''for (int i = t; i < 65536; i += 1024) {
        float single; unsigned short half, bits = in0[i];
        asm("cvt.f32.f16 %0, %1;" : "=f"(single) : "h"(bits));
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(single));
        out[i] = half;
    }'''
    got = launch(body, numpy.zeros(65536, "H"), every, threads=1024)
    expected = every.view("e").astype("f").astype("e")
    assert (got.view("e") == expected)[~numpy.isnan(expected)].all() and numpy.isnan(got.view("e")[numpy.isnan(expected)]).all()


def test_other_ptx_is_refused() -> None:
    with pytest.raises(UnsupportedSource, match="PTX: mov"):
        launch('float x; asm("mov.f32 %0, %1;" : "=f"(x) : "f"(x));', numpy.zeros(4, "f"))
    with pytest.raises(UnsupportedSource, match="asm of another form"):
        launch('asm volatile("bar.sync 0;");', numpy.zeros(4, "f"))


def test_half_conversions_are_exact() -> None:
    before = "#include <cuda_fp16.h>"
    every = numpy.arange(65536, dtype="H")
    body = "for (int i = t; i < 65536; i += 1024) out[i] = __half2float(__ushort_as_half(in0[i]));"
    got = launch(body, numpy.zeros(65536, "f"), every, threads=1024, before=before)
    numpy.testing.assert_array_equal(got, every.view("e").astype("f"))
    values = every.view("e").astype("f")
    values = values[numpy.isfinite(values)]
    values.sort()
    middle = values[:-1].astype("d") + numpy.diff(values.astype("d")) / 2
    other = [65519.99, 65520, 1e300, 5e-324, -0.0, numpy.inf]
    probes = numpy.concatenate([middle, numpy.nextafter(middle, 1e9), numpy.nextafter(middle, -1e9), other])
    body = "for (int i = t; i < N; i += 1024) out[i] = __half_as_ushort(__double2half(in0[i]));"
    got = launch(body, numpy.zeros(len(probes), "H"), probes, threads=1024, before=f"{before}\n#define N {len(probes)}")
    with numpy.errstate(over="ignore", under="ignore"):
        numpy.testing.assert_array_equal(got, probes.astype("e").view("H"))


def test_intrinsics() -> None:
    body = """
        int k = 0;
        float big = 3e10f, bad = __int_as_float(0x7fc00000);
        long long v[] = {
            __popc(0xf0f0u), __popcll(~0ull), __clz(1), __clz(0), __clzll(1), __ffs(8), __ffsll(0), (long long)__brev(1u),
            (long long)__brevll(2ull), __byte_perm(0x33221100u, 0x77665544u, 0x7531u), (long long)__umulhi(0xffffffffu, 16u),
            __mulhi(-1, 5), (long long)__umul64hi(~0ull, 16ull),
            __float2int_rn(2.5f), __float2int_rz(-2.7f), __float2int_rd(-2.1f), __float2int_ru(2.1f),
            __float2int_rz(big), __float2int_rz(-big),
            __float2int_rz(bad), __double2ll_rz(1e30), __double2ll_rz((double)bad), (long long)__double2uint_rz(-5.0), __double2hiint(1.0),
            (long long)__funnelshift_l(0x80000000u, 1u, 1u), __float_as_int(1.0f), min(3, -4), max(3u, 4u), abs(-7ll), __double2loint(-0.1),
        };
        for (long long x : v) out[k++] = x;
    """
    expected = [
        8, 64, 31, 32, 63, 4, 0, 1 << 31, 1 << 62, 0x77553311, 15, -1, 15,
        2, -2, -3, 3, 2**31 - 1, -(2**31), 0, 2**63 - 1, -(2**63), 0, 0x3FF00000, 3, 0x3F800000, -4, 4, 7,
        int(numpy.array([-0.1]).view("i")[0]),
    ]  # fmt: skip
    assert launch(body, numpy.zeros(len(expected), "q"), threads=1).tolist() == expected


def test_math_functions_are_the_hosts() -> None:
    x = numpy.linspace(0.05, 0.95, 32)
    names = words("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh cbrt sqrt erf tgamma floor rint trunc")
    calls = "".join(f"out[{64 * k} + t] = {name}(in0[t]);\n" for k, name in enumerate(names))
    calls += "".join(f"out[{64 * k + 32} + t] = {name}f((float)in0[t]);\n" for k, name in enumerate(names))
    got = launch(calls, numpy.zeros(64 * len(names)), x).reshape(len(names), 2, 32)
    from scipy import special

    other = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
    own = {"erf": special.erf, "tgamma": special.gamma}
    for name, (double, single) in zip(names, got, strict=True):
        expected = (own.get(name) or getattr(numpy, other.get(name, name)))(x)
        numpy.testing.assert_allclose(double, expected, rtol=1e-15, atol=1e-16, err_msg=name)
        numpy.testing.assert_allclose(single, expected, rtol=2e-6, err_msg=name)


def test_vector_types_have_cudas_sizes_and_alignments() -> None:
    types = words("char2 char3 char4 uchar4 short2 short4 int2 int3 int4 uint4 longlong2 longlong4 float2 float3 float4 double2 dim3")
    body = "".join(f"out[{2 * k}] = sizeof({name}); out[{2 * k + 1}] = alignof({name});" for k, name in enumerate(types))
    expected = [2, 2, 3, 1, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 12, 4, 16, 16, 16, 16, 16, 16, 32, 16, 8, 8, 12, 4, 16, 16, 16, 16, 12, 4]
    assert launch(body, numpy.zeros(2 * len(types), "i"), threads=1).tolist() == expected


def test_parameters_lie_as_in_a_c_structure() -> None:
    text = """
    struct pair { char c; double d; };
    extern "C" __global__ void kernel(char a, short b, pair p, float4 v, double* out) {
        out[0] = a; out[1] = b; out[2] = p.c; out[3] = p.d; out[4] = v.w;
    }
    """
    function = Module(text).function("kernel")
    assert function.parameters == (1, 2, 16, 16, 8) and function.offsets == (0, 2, 8, 32, 48) and function.nbytes == 56
    offsets = [0, 2, 8, 16, 44, 48]
    layout = {"names": list("abcdwo"), "formats": list("bhbdfq"), "offsets": offsets, "itemsize": 56}
    with Device() as device:
        out = device.empty(40)
        function((1,), (1,), numpy.array([(1, 2, 3, 4.5, 6, out)], layout).tobytes())
        assert download(out, 5, "d").tolist() == [1, 2, 3, 4.5, 6]
        with pytest.raises(EmulationError, match="48 bytes of arguments"):
            function((1,), (1,), bytes(48))


