// The words of CUDA C that are not C++: qualifiers, built-in variables, vector types.
//
// In: nothing, and no system header: NVRTC has none either, so a kernel that leans on one fails here too.  Promise: sizes and alignments
// are CUDA's.
#pragma once

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __EMULATED__ 1

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __inline__ inline
#define __grid_constant__
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __grid_constant__
// `__shared__` is defined anew before each kernel (source.py): an array of static storage in the kernel's own section

using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype((char*)0 - (char*)0);
using uchar = unsigned char;

#define VECTOR_OF(T, name, align1, align2, align4)                                                                \
    struct __align__(align1) name##1 { T x; };                                                                    \
    struct __align__(align2) name##2 { T x, y; };                                                                 \
    struct __align__(align1) name##3 { T x, y, z; };                                                              \
    struct __align__(align4) name##4 { T x, y, z, w; };                                                           \
    inline name##1 make_##name##1(T x) { return {x}; }                                                            \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                                    \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                            \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR_OF(signed char, char, 1, 2, 4)
VECTOR_OF(unsigned char, uchar, 1, 2, 4)
VECTOR_OF(short, short, 2, 4, 8)
VECTOR_OF(unsigned short, ushort, 2, 4, 8)
VECTOR_OF(int, int, 4, 8, 16)
VECTOR_OF(unsigned, uint, 4, 8, 16)
VECTOR_OF(long, long, 8, 16, 16)
VECTOR_OF(unsigned long, ulong, 8, 16, 16)
VECTOR_OF(long long, longlong, 8, 16, 16)
VECTOR_OF(unsigned long long, ulonglong, 8, 16, 16)
VECTOR_OF(float, float, 4, 8, 16)
VECTOR_OF(double, double, 8, 16, 16)
#undef VECTOR_OF

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Set by the scheduler whenever it goes on with a thread; to the kernel they are constants.
extern "C" const uint3 threadIdx, blockIdx;
extern "C" const dim3 blockDim, gridDim;
constexpr int warpSize = 32;

extern "C" {
int printf(const char*, ...);
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
[[noreturn]] void emulator_assert(const char* condition, int line);
[[noreturn]] void emulator_trap(int line);
}
#define assert(condition) ((condition) ? (void)0 : emulator_assert(#condition, __LINE__))
inline void __trap(int line = __builtin_LINE()) { emulator_trap(line); }
#define __builtin_assume(condition) ((void)0)
