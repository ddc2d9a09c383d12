// `__half` and its conversions.  Loaded only where the kernel includes it, as with CUDA.
//
// Sums, products, quotients and roots go through float: 24 digits are enough that rounding twice is rounding once.
#pragma once
#include "half_bits.h"
#include "intrinsics.h"

struct __half_raw { unsigned short x; };
struct __align__(2) __half {
    unsigned short __x;
    __half() = default;
    constexpr __half(const __half_raw& raw) : __x(raw.x) {}
    __half(float x) : __x(emulator_to_half(x)) {}
    __half(double x) : __x(emulator_to_half(x)) {}
    __half(int x) : __x(emulator_to_half(x)) {}
    __half(unsigned x) : __x(emulator_to_half(x)) {}
    __half(short x) : __x(emulator_to_half(x)) {}
    __half(unsigned short x) : __x(emulator_to_half(x)) {}
    __half(long long x) : __x(emulator_to_half((double)x)) {}
    __half(unsigned long long x) : __x(emulator_to_half((double)x)) {}
    operator float() const { return emulator_from_half(__x); }
    operator __half_raw() const { return {__x}; }
};
using half = __half;

inline __half __ushort_as_half(unsigned short bits) { return __half(__half_raw{bits}); }
inline __half __short_as_half(short bits) { return __ushort_as_half((unsigned short)bits); }
inline unsigned short __half_as_ushort(__half h) { return h.__x; }
inline short __half_as_short(__half h) { return (short)h.__x; }
inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) { return __half(x); }
inline float __half2float(__half h) { return emulator_from_half(h.__x); }
#define FROM_INTEGER(T, name) inline __half __##name##2half_rn(T x) { return __half((double)x); }
FROM_INTEGER(int, int) FROM_INTEGER(unsigned, uint) FROM_INTEGER(short, short) FROM_INTEGER(unsigned short, ushort)
FROM_INTEGER(long long, ll) FROM_INTEGER(unsigned long long, ull)
#undef FROM_INTEGER
#define TO_INTEGER(T, name)                                                                                                           \
    inline T __half2##name##_rn(__half h) { return emulator_saturate<T>(rint((double)__half2float(h))); }                             \
    inline T __half2##name##_rz(__half h) { return emulator_saturate<T>(trunc((double)__half2float(h))); }
TO_INTEGER(int, int) TO_INTEGER(unsigned, uint) TO_INTEGER(short, short) TO_INTEGER(unsigned short, ushort)
TO_INTEGER(long long, ll) TO_INTEGER(unsigned long long, ull)
#undef TO_INTEGER

#define ARITHMETIC(op, name)                                                                                                          \
    inline __half operator op(__half a, __half b) { return __half(__half2float(a) op __half2float(b)); }                              \
    inline __half& operator op##=(__half& a, __half b) { return a = a op b; }                                                         \
    inline __half name(__half a, __half b) { return a op b; }
ARITHMETIC(+, __hadd) ARITHMETIC(-, __hsub) ARITHMETIC(*, __hmul) ARITHMETIC(/, __hdiv)
#undef ARITHMETIC
inline __half operator-(__half a) { return __ushort_as_half((unsigned short)(a.__x ^ 0x8000)); }
inline __half operator+(__half a) { return a; }
inline __half __hneg(__half a) { return -a; }
inline __half __habs(__half a) { return __ushort_as_half(a.__x & 0x7fff); }
inline __half __hfma(__half a, __half b, __half c) { return __half((double)__half2float(a) * __half2float(b) + __half2float(c)); }
#define COMPARISON(op, name)                                                                                                          \
    inline bool operator op(__half a, __half b) { return __half2float(a) op __half2float(b); }                                        \
    inline bool name(__half a, __half b) { return a op b; }
COMPARISON(==, __heq) COMPARISON(!=, __hneu) COMPARISON(<, __hlt) COMPARISON(<=, __hle) COMPARISON(>, __hgt) COMPARISON(>=, __hge)
#undef COMPARISON
inline bool __hisnan(__half a) { return (a.__x & 0x7fff) > 0x7c00; }
inline int __hisinf(__half a) { return (a.__x & 0x7fff) == 0x7c00 ? (a.__x & 0x8000 ? -1 : 1) : 0; }
inline __half hsqrt(__half a) { return __half(sqrtf(__half2float(a))); }
inline __half __hmin(__half a, __half b) { return __half(fminf(__half2float(a), __half2float(b))); }
inline __half __hmax(__half a, __half b) { return __half(fmaxf(__half2float(a), __half2float(b))); }

struct __align__(4) __half2 { __half x, y; };
using half2 = __half2;
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline __half2 __hadd2(__half2 a, __half2 b) { return {a.x + b.x, a.y + b.y}; }
inline __half2 __hmul2(__half2 a, __half2 b) { return {a.x * b.x, a.y * b.y}; }

#include "collectives.h"
#define SHUFFLE(name, Operand)                                                                                                        \
    inline __half name(unsigned mask, __half v, Operand n, int width = 32, LINE) {                                                    \
        return __ushort_as_half((unsigned short)name(mask, (unsigned)v.__x, n, width, line));                                         \
    }
SHUFFLE(__shfl_sync, int) SHUFFLE(__shfl_up_sync, unsigned) SHUFFLE(__shfl_down_sync, unsigned) SHUFFLE(__shfl_xor_sync, int)
#undef SHUFFLE
__attribute__((no_sanitize("thread"))) inline __half atomicAdd(__half* address, __half value, LINE) {
    emulator_atomic(address, 2, line);
    __half old = *address;
    *address = old + value;
    return old;
}
