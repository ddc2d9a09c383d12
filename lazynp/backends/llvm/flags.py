"""The processor's floating-point flags, in generated code.

In: the machine.  Out: lines of IR that clear the flags of the running thread, and that read them as NumPy's bits (``graph/errstate.py``).
Promise: what a kernel computed between the two has set them; where a machine's flags are not known here, kernels look at their
results instead (``Lines.watch``).

Flags belong to the operations that were executed, and LLVM thinks of these as having none: it may execute more operations than were asked
for, or fewer.  They are a filter, never an answer (``backends/common/rechecks.py``).
"""

from __future__ import annotations

from typing import Final

from lazynp.backends.llvm.host import host
from lazynp.values.records import Row


class _Machine(Row):
    declare: str
    clear: str
    read: str  # leaves the machine's word in %fp.word (i64)
    invalid: int  # bit numbers; those of division, overflow and underflow follow one another
    division: int


_MACHINES: Final = {
    "x86_64": _Machine(
        "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
        """  %fp.control = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %fp.control)
  %fp.before = load i32, ptr %fp.control
  %fp.cleared = and i32 %fp.before, -64
  store i32 %fp.cleared, ptr %fp.control
  call void @llvm.x86.sse.ldmxcsr(ptr %fp.control)""",
        """  call void @llvm.x86.sse.stmxcsr(ptr %fp.control)
  %fp.after = load i32, ptr %fp.control
  %fp.word = zext i32 %fp.after to i64""",
        0,
        2,
    ),
    "aarch64": _Machine(
        "declare i64 @llvm.aarch64.get.fpsr()\ndeclare void @llvm.aarch64.set.fpsr(i64)",
        "  call void @llvm.aarch64.set.fpsr(i64 0)",
        "  %fp.word = call i64 @llvm.aarch64.get.fpsr()",
        0,
        1,
    ),
}
_MACHINES["amd64"], _MACHINES["arm64"] = _MACHINES["x86_64"], _MACHINES["aarch64"]


def _machine() -> _Machine | None:
    return _MACHINES.get(host().triple.split("-")[0])


def known() -> bool:
    """Tell whether this machine is one of those above."""
    return _machine() is not None


def declarations() -> str:
    machine = _machine()
    return machine.declare if machine else ""


def clear() -> str:
    """Lines that clear the flags; once in a function, before ``read``."""
    machine = _machine()
    assert machine is not None
    return machine.clear


def read() -> str:
    """Lines that read the flags into ``%fp.bits``, as NumPy numbers them."""
    machine = _machine()
    assert machine is not None
    return f"""{machine.read}
  %fp.low = lshr i64 %fp.word, {machine.division}
  %fp.three = and i64 %fp.low, 7
  %fp.first = lshr i64 %fp.word, {machine.invalid}
  %fp.one = and i64 %fp.first, 1
  %fp.invalid = shl i64 %fp.one, 3
  %fp.bits = or i64 %fp.three, %fp.invalid"""
