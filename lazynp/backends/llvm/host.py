"""The machine that code is generated for.

In: nothing but the machine and ``LAZYNP_LIBMVEC``.  Out: its system, processor and features, and the vector ABI that the C library's vector
math may be called with.  Promise: answers never change in a process; on Linux the kernel gives them, and LLVM is not loaded for that.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Final

from lazynp.values import config
from lazynp.values.loading import load
from lazynp.values.records import Row


class Host(Row):
    """The host that code is generated for."""

    triple: str
    cpu: str
    features: str  # as LLVM writes them: "+avx2,-avx512f,..."
    llvm: str  # which LLVM says so, and generates the code

    def has(self, *names: str) -> bool:
        have = set(self.features.split(","))
        return all(f"+{name}" in have for name in names)


class VectorABI(Row):
    """One calling convention of the vector function ABI that libmvec follows."""

    name: str  # what LAZYNP_LIBMVEC calls it
    letter: str  # its letter in mangled names
    bits: int  # width of its vectors
    convention: str  # LLVM's calling convention
    features: tuple[str, ...]  # what the CPU must have


# Widest first: the first one that the CPU can do is used.
# What a processor's model is told by, on x86-64 and AArch64.
_MODEL: Final = (
    "vendor_id", "cpu family", "model", "stepping", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
)  # fmt: skip

X86_ABIS: Final = (
    VectorABI("avx512", "e", 512, "", ("avx512f", "avx512dq")),
    VectorABI("avx2", "d", 256, "", ("avx2", "fma")),
    VectorABI("sse", "b", 128, "", ()),
)
AARCH64_ABIS: Final = (VectorABI("neon", "n", 128, "aarch64_vector_pcs ", ()),)


@functools.cache
def host() -> Host:
    """Return what code depends on: the system and its processor, and the version of LLVM that generates it."""
    told = _processor() if sys.platform == "linux" else None
    if told is not None:
        return Host(f"{os.uname().machine}-linux", *told, f"{_llvmlite()} {sys.maxsize}")
    load("llvmlite.binding")
    tools = load("lazynp.backends.llvm.toolchain").Toolchain()
    return Host(tools.triple, tools.cpu, tools.features, f"{_llvmlite()} {tools.llvm.llvm_version_info}")


def _processor() -> tuple[str, str] | None:
    """Return a processor's model, and its features as LLVM writes them, of what Linux says of the first one; None where it says nothing."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(1 << 14).decode(errors="replace")
    except OSError:
        return None
    lines = [line.partition(":") for line in text.split("\n\n")[0].splitlines()]
    told = {name.strip(): value.strip() for name, _, value in lines}
    features = ",".join([f"+{name}" for name in told.get("flags", told.get("Features", "")).split()])
    model = " ".join([value for name, value in told.items() if name.startswith(_MODEL)])
    return (model, features) if model and features else None


def _llvmlite() -> str:
    return str(load("llvmlite").__version__)  # LLVM itself is not loaded by this


@functools.cache
def vector_abi() -> VectorABI | None:
    """Return the widest vector ABI of this CPU, None where there is none or ``LAZYNP_LIBMVEC=0``.

    ``LAZYNP_LIBMVEC`` may also name a narrower ABI (``avx2``, ``sse``), which tests use.
    """
    able = _able()
    if config.libmvec == "0":
        return None
    return next((abi for abi in able if abi.name == config.libmvec), able[0] if able else None)


def vector_bits() -> int:
    """Return the width of the widest vectors of this CPU."""
    return next((abi.bits for abi in _able()), 128)


def _able() -> list[VectorABI]:
    machine = host().triple.split("-")[0]
    abis = X86_ABIS if machine in ("x86_64", "amd64") else AARCH64_ABIS if machine in ("aarch64", "arm64") else ()
    return [abi for abi in abis if host().has(*abi.features)]
