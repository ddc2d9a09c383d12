// Half precision as bits: conversions bit by bit, to nearest even; what the PTX instructions `cvt` do.
#pragma once

inline unsigned short emulator_to_half(double x) {
    unsigned long long bits = __builtin_bit_cast(unsigned long long, x);
    unsigned sign = (unsigned)(bits >> 48) & 0x8000;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    unsigned long long digits = bits & 0xfffffffffffffull;
    if (exponent == 1024) return (unsigned short)(digits ? 0x7fff : sign | 0x7c00); // CUDA's NaN
    if (exponent > 15) return (unsigned short)(sign | 0x7c00);
    if (exponent < -25) return (unsigned short)sign;
    digits |= 1ull << 52;
    int drop = exponent < -14 ? 42 + (-14 - exponent) : 42; // digits that do not fit
    unsigned long long kept = digits >> drop, rest = digits & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    // the leading digit adds one to the exponent, and so does a carry out of the digits
    return (unsigned short)(sign + (exponent < -14 ? 0u : (unsigned)(exponent + 14) << 10) + (unsigned)kept);
}
inline float emulator_from_half(unsigned short bits) {
    unsigned sign = (unsigned)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, digits = bits & 0x3ff;
    if (exponent == 31) return __builtin_bit_cast(float, digits ? 0x7fffffffu : sign | 0x7f800000u);
    if (exponent) return __builtin_bit_cast(float, sign | (exponent + 112) << 23 | digits << 13);
    float small = (float)digits * 0x1p-24f;
    return sign ? -small : small;
}
