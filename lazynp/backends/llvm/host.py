"""The machine that code is generated for.

In: nothing but the machine and ``LAZYNP_LIBMVEC``.  Out: triple, CPU name, features and the vector ABI that the C library's vector
math may be called with.  Promise: answers never change in a process; LLVM gives them, and is loaded by the first question and not
before, or not at all: on Linux its answers are kept in the disk cache, as long as the system runs.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Final

from lazynp.backends.common import disk_cache
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
X86_ABIS: Final = (
    VectorABI("avx512", "e", 512, "", ("avx512f", "avx512dq")),
    VectorABI("avx2", "d", 256, "", ("avx2", "fma")),
    VectorABI("sse", "b", 128, "", ()),
)
AARCH64_ABIS: Final = (VectorABI("neon", "n", 128, "aarch64_vector_pcs ", ()),)


@functools.cache
def binding() -> Any:
    """Return llvmlite.binding with the native target ready."""
    llvm = load("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def host() -> Host:
    """Return the triple, CPU name and features of this machine, and the version of LLVM."""
    cache, key = disk_cache.shared(), _running_system()
    kept = cache.get(key) if key else None
    if kept is not None:
        return Host(*kept.decode().split("\0"))
    llvm = binding()
    version = ".".join(map(str, llvm.llvm_version_info))
    asked = Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), f"{_llvmlite()} {version}")
    if key:
        cache.put(key, "\0".join(asked).encode())
    return asked


def _running_system() -> str:
    """Return a key that no other machine has, nor this one after its next start; an empty string where there is none."""
    if sys.platform != "linux":
        return ""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            start = file.read()
    except OSError:
        return ""
    return disk_cache.digest(repr((Host._fields, start, os.uname().machine, sys.maxsize, _llvmlite())).encode()).hex()


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
