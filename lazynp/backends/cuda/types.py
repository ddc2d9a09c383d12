"""The C++ types of scalars, and their constants.

In: a dtype.  Out: C++ text.  Promise: every element has one type in registers and one in memory, which differ for bool only (a byte);
half precision is its bits, which are computed with as float; a constant has exactly the bits of NumPy's.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

DType = np.dtype[Any]

TYPES: Final = {
    "b1": "bool", "i1": "signed char", "i2": "short", "i4": "int", "i8": "long long",
    "u1": "unsigned char", "u2": "unsigned short", "u4": "unsigned int", "u8": "unsigned long long",
    "f2": "unsigned short", "f4": "float", "f8": "double", "c8": "lz_c8", "c16": "lz_c16",
}  # fmt: skip
INFINITY: Final = {"f4": "__uint_as_float(0x7f800000u)", "f8": "__longlong_as_double(0x7ff0000000000000ll)"}
TINY: Final = {"f4": "1.17549435e-38f", "f8": "2.2250738585072014e-308"}  # the smallest normal number


def code(dtype: DType) -> str:
    """Return what names of device functions end in: f4 for float32."""
    return f"{dtype.kind}{dtype.itemsize}"


def type_of(dtype: DType) -> str:
    """The type of a value."""
    return TYPES[code(dtype)]


def memory_type(dtype: DType) -> str:
    """The type of an element in memory."""
    return "unsigned char" if dtype.kind == "b" else type_of(dtype)


def word_of(dtype: DType) -> str:
    """The unsigned type in which integers of a dtype are computed: nothing overflows there, and nothing is promoted to a signed one."""
    return "unsigned long long" if dtype.itemsize == 8 else "unsigned int"


def literal(value: Any, dtype: DType) -> str:
    """A Python number as a constant of ``dtype``."""
    match dtype.kind:
        case "b":
            return "true" if value else "false"
        case "c":
            part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
            number = complex(value)
            return f"{type_of(dtype)}{{{literal(number.real, part)}, {literal(number.imag, part)}}}"
        case "f":
            return _floating(value, dtype)
        case _:
            return integer(int(value), dtype)


def integer(value: int, dtype: DType) -> str:
    if dtype.kind == "u":
        bits = 8 * dtype.itemsize
        return f"{value & ((1 << bits) - 1)}u{'ll' if bits == 64 else ''}"
    if value == -(2**63):
        return "(-9223372036854775807ll - 1)"
    if value == -(2**31):
        return "(-2147483647 - 1)"
    return f"{value}ll" if dtype.itemsize == 8 else str(value)


def _floating(value: Any, dtype: DType) -> str:
    if dtype.itemsize == 2:
        return f"0x{np.array(value, np.float16).view(np.uint16).item():04x}u"
    single = dtype.itemsize == 4
    number = np.array(value, dtype)
    if not np.isfinite(number):
        bits = number.view(np.uint32 if single else np.uint64).item() if number == number else (0x7FC00000 if single else 0x7FF8 << 48)
        return f"__uint_as_float(0x{bits:08x}u)" if single else f"__longlong_as_double((long long)0x{bits:016x}ull)"
    return f"{float(number)!r}{'f' if single else ''}"
