// Math functions: the host's libm under CUDA's names, with overloads for float.
#pragma once
#include "language.h"

#define MATH1(name)                                                                                                                   \
    extern "C" double name(double);                                                                                                   \
    extern "C" float name##f(float);                                                                                                  \
    inline float name(float x) { return name##f(x); }
#define MATH2(name)                                                                                                                   \
    extern "C" double name(double, double);                                                                                           \
    extern "C" float name##f(float, float);                                                                                           \
    inline float name(float x, float y) { return name##f(x, y); }
MATH1(acos) MATH1(asin) MATH1(atan) MATH1(acosh) MATH1(asinh) MATH1(atanh) MATH1(cos) MATH1(sin) MATH1(tan) MATH1(cosh) MATH1(sinh)
MATH1(tanh) MATH1(exp) MATH1(exp2) MATH1(exp10) MATH1(expm1) MATH1(log) MATH1(log2) MATH1(log10) MATH1(log1p) MATH1(logb) MATH1(cbrt)
MATH1(sqrt) MATH1(fabs)
MATH1(ceil) MATH1(floor) MATH1(trunc) MATH1(rint) MATH1(nearbyint) MATH1(round) MATH1(erf) MATH1(erfc) MATH1(tgamma) MATH1(lgamma)
MATH2(pow) MATH2(atan2) MATH2(fmod) MATH2(remainder) MATH2(hypot) MATH2(copysign) MATH2(nextafter) MATH2(fmin) MATH2(fmax) MATH2(fdim)
#undef MATH1
#undef MATH2
extern "C" {
double j0(double); double j1(double); double y0(double); double y1(double); double jn(int, double); double yn(int, double);
float j0f(float); float j1f(float); float y0f(float); float y1f(float); float jnf(int, float); float ynf(int, float);
double fma(double, double, double); float fmaf(float, float, float);
double ldexp(double, int); float ldexpf(float, int); double scalbn(double, int); float scalbnf(float, int);
double frexp(double, int*); float frexpf(float, int*); double modf(double, double*); float modff(float, float*);
int ilogb(double); int ilogbf(float); long lrint(double); long lrintf(float); long lround(double); long lroundf(float);
long long llrint(double); long long llrintf(float); long long llround(double); long long llroundf(float);
double remquo(double, double, int*); float remquof(float, float, int*);
}
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float ldexp(float x, int n) { return ldexpf(x, n); }
inline float scalbn(float x, int n) { return scalbnf(x, n); }
inline float frexp(float x, int* n) { return frexpf(x, n); }
inline float modf(float x, float* whole) { return modff(x, whole); }
inline int ilogb(float x) { return ilogbf(x); }
inline long long llrint(float x) { return llrintf(x); }
inline long long llround(float x) { return llroundf(x); }
inline long lrint(float x) { return lrintf(x); }
inline long lround(float x) { return lroundf(x); }

#define CLASSIFY(name)                                                                                                                \
    inline bool name(double x) { return __builtin_##name(x); }                                                                        \
    inline bool name(float x) { return __builtin_##name(x); }
CLASSIFY(isnan) CLASSIFY(isinf) CLASSIFY(isfinite) CLASSIFY(signbit)
#undef CLASSIFY

inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrtf(float x) { return (float)(1 / sqrt((double)x)); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rcbrt(double x) { return 1 / cbrt(x); }
inline float rcbrtf(float x) { return (float)(1 / cbrt((double)x)); }
inline double sinpi(double x) { x = fmod(x, 2.0); return x == trunc(x) ? copysign(0.0, x) : sin(x * 3.141592653589793); }
inline double cospi(double x) { return sinpi(fmod(fabs(x), 2.0) + 0.5); }
inline float sinpif(float x) { return (float)sinpi((double)x); }
inline float cospif(float x) { return (float)cospi((double)x); }
inline void sincos(double x, double* s, double* c) { *s = sin(x); *c = cos(x); }
inline void sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
inline void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
// functions that CUDA computes with less care: here as exact as the others
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

#define ORDER(T)                                                                                                                      \
    inline T min(T a, T b) { return b < a ? b : a; }                                                                                  \
    inline T max(T a, T b) { return a < b ? b : a; }
ORDER(int) ORDER(unsigned) ORDER(long) ORDER(unsigned long) ORDER(long long) ORDER(unsigned long long)
#undef ORDER
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline long long llabs(long long x) { return abs(x); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
