// Bits, casts, conversions with a rounding mode, arithmetic that says how it rounds, cached loads.
//
// Promise: conversions from floating point to integers are the hardware's: they saturate, and NaN is 0 (in 64 bits: the sign bit).
#pragma once
#include "mathematics.h"

#define CAST_BITS(name, To, From) inline To name(From x) { return __builtin_bit_cast(To, x); }
CAST_BITS(__float_as_int, int, float)
CAST_BITS(__float_as_uint, unsigned, float)
CAST_BITS(__int_as_float, float, int)
CAST_BITS(__uint_as_float, float, unsigned)
CAST_BITS(__double_as_longlong, long long, double)
CAST_BITS(__longlong_as_double, double, long long)
#undef CAST_BITS
inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return (int)(__double_as_longlong(x) & 0xffffffffll); }
inline unsigned long long emulator_pair(unsigned hi, unsigned lo) { return (unsigned long long)hi << 32 | lo; }
inline double __hiloint2double(int hi, int lo) { return __longlong_as_double((long long)emulator_pair((unsigned)hi, (unsigned)lo)); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
    unsigned long long r = 0;
    for (int k = 0; k < 64; k++) r |= (x >> k & 1) << (63 - k);
    return r;
}
inline unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int k = 0; k < 4; k++) {
        unsigned choice = selector >> 4 * k & 15, byte = (unsigned)(both >> 8 * (choice & 7)) & 255;
        if (choice & 8) byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * k;
    }
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) { return (unsigned)(emulator_pair(hi, lo) << (n & 31) >> 32); }
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) { return (unsigned)(emulator_pair(hi, lo) >> (n & 31)); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

#define NEAREST(suffix, T, add, sub, mul, div, root, fused)                                                                           \
    inline T add(T a, T b) { return a + b; }                                                                                          \
    inline T sub(T a, T b) { return a - b; }                                                                                          \
    inline T mul(T a, T b) { return a * b; }                                                                                          \
    inline T div(T a, T b) { return a / b; }                                                                                          \
    inline T root(T a) { return sqrt(a); }                                                                                            \
    inline T fused(T a, T b, T c) { return fma(a, b, c); }
NEAREST(f, float, __fadd_rn, __fsub_rn, __fmul_rn, __fdiv_rn, __fsqrt_rn, __fmaf_rn)
NEAREST(d, double, __dadd_rn, __dsub_rn, __dmul_rn, __ddiv_rn, __dsqrt_rn, __fma_rn)
#undef NEAREST
inline float __frcp_rn(float x) { return 1 / x; }
inline double __drcp_rn(double x) { return 1 / x; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }

template <class To> inline To emulator_saturate(double x) { // x is whole
    constexpr bool is_signed = (To)-1 < 0;
    constexpr int bits = 8 * sizeof(To);
    double top = __builtin_ldexp(1.0, bits - is_signed), bottom = is_signed ? -top : 0.0;
    To highest = (To)(~0ull >> (64 - bits + is_signed));
    if (x != x) return bits == 64 ? (To)(1ull << 63) : (To)0;
    if (x >= top) return highest;
    if (x < bottom) return is_signed ? (To)(1ull << (bits - 1)) : (To)0;
    return (To)x;
}
#define TO_INTEGER(From, from, To, to)                                                                                                \
    inline To __##from##2##to##_rn(From x) { return emulator_saturate<To>(rint((double)x)); }                                         \
    inline To __##from##2##to##_rz(From x) { return emulator_saturate<To>(trunc((double)x)); }                                        \
    inline To __##from##2##to##_rd(From x) { return emulator_saturate<To>(floor((double)x)); }                                        \
    inline To __##from##2##to##_ru(From x) { return emulator_saturate<To>(ceil((double)x)); }
#define FROM_INTEGER(From, from)                                                                                                      \
    inline float __##from##2float_rn(From x) { return (float)x; }
TO_INTEGER(float, float, int, int) TO_INTEGER(float, float, unsigned, uint)
TO_INTEGER(float, float, long long, ll) TO_INTEGER(float, float, unsigned long long, ull)
TO_INTEGER(double, double, int, int) TO_INTEGER(double, double, unsigned, uint)
TO_INTEGER(double, double, long long, ll) TO_INTEGER(double, double, unsigned long long, ull)
FROM_INTEGER(int, int) FROM_INTEGER(unsigned, uint) FROM_INTEGER(long long, ll) FROM_INTEGER(unsigned long long, ull)
#undef TO_INTEGER
#undef FROM_INTEGER
inline float __double2float_rn(double x) { return (float)x; }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return (double)x; }
inline double __ull2double_rn(unsigned long long x) { return (double)x; }

template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
template <class T> inline T __ldca(const T* p) { return *p; }
template <class T> inline T __ldcs(const T* p) { return *p; }
template <class T> inline void __stcg(T* p, T v) { *p = v; }
template <class T> inline void __stcs(T* p, T v) { *p = v; }
