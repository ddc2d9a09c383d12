"""Loading machine code without LLVM: what it loads, what it refuses, and that refusing leaves nothing behind."""

from __future__ import annotations

import ctypes
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from lazynp.backends.llvm import compiler, loader, mathlib, threads
from lazynp.backends.llvm.host import host
from lazynp.backends.llvm.loader import AARCH64, Image, Object, UnsupportedError
from lazynp.backends.llvm.toolchain import binding

# A function elsewhere, one whose address is taken, constants, data and zeros: everything that an object file has.
TEXT = """
@table = private constant [4 x double] [double 1.0, double 2.5, double 3.75, double 9.5]
@counter = internal global i64 7
@zeros = internal global [3 x i64] zeroinitializer
declare double @lzc_exp(double)
declare void @lz_parallel(ptr, ptr, i32)
define internal void @body(ptr %data) noinline {
  %old = load i64, ptr %data
  %new = add i64 %old, 1
  store i64 %new, ptr %data
  ret void
}
define i64 @count() {
  call void @lz_parallel(ptr @body, ptr @counter, i32 1)
  %a = load i64, ptr @counter
  %b = load i64, ptr getelementptr (i64, ptr @zeros, i64 2)
  store i64 %a, ptr getelementptr (i64, ptr @zeros, i64 2)
  %c = mul i64 %b, 1000
  %r = add i64 %a, %c
  ret i64 %r
}
define double @look_up(i64 %n) {
  %p = getelementptr double, ptr @table, i64 %n
  %v = load double, ptr %p
  %r = call double @lzc_exp(double %v)
  ret double %r
}
"""
NAMES = ["count", "look_up"]


def emit(text: str, triple: str = "", cpu: str = "") -> bytes:
    llvm = binding()
    if triple:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    triple = triple or host().triple
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu or host().cpu, opt=2)
    module = llvm.parse_assembly(text)
    module.triple = triple
    module.data_layout = str(machine.target_data)
    return bytes(machine.emit_object(module))


def resolve(name: str) -> int | None:
    return mathlib.address(name) or threads.address(name)


X86 = emit(TEXT, "x86_64-unknown-linux-gnu", "x86-64")
ARM = emit(TEXT, "aarch64-unknown-linux-gnu", "generic")
KNOWN = loader.machine() is not None
OWN = (ARM if KNOWN and loader.machine()[0] == AARCH64 else X86) if KNOWN else b""  # type: ignore[index]


def test_functions_constants_data_and_zeros_are_where_they_belong() -> None:
    if KNOWN:
        for _ in range(2):  # each has data of its own
            addresses = loader.load(OWN, NAMES, resolve)
            count = ctypes.CFUNCTYPE(ctypes.c_int64)(addresses["count"])
            assert [count(), count(), count()] == [8, 8009, 9010]
            look_up = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(addresses["look_up"])
            assert look_up(2) == pytest.approx(42.521082, rel=1e-7)


def test_no_page_is_writable_and_executable() -> None:
    if KNOWN:
        address = loader.load(OWN, NAMES, resolve)["count"]
        with open("/proc/self/maps") as file:
            for line in file:
                begin, end = (int(bound, 16) for bound in line.split()[0].split("-"))
                if begin <= address < end:
                    assert line.split()[1] == "r-xp"
                    return
        raise AssertionError("the code is mapped nowhere")


@pytest.mark.slow
def test_everything_that_is_compiled_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    if KNOWN:

        def refuse(*args: Any) -> None:
            raise AssertionError("LLVM was asked to link")

        monkeypatch.setattr(compiler, "_link", refuse)
        for name in mathlib.FUNCTIONS:
            for kind in ("f64", "f32"):
                parameters = ", ".join(f"{mathlib.IR_TYPE[kind]} %x{k}" for k in range(mathlib.FUNCTIONS[name].arity))
                call = f"call {mathlib.IR_TYPE[kind]} @{mathlib.symbol(name, kind)}({parameters})"
                body = f"define {mathlib.IR_TYPE[kind]} @f({parameters}) {{\n  %r = {call}\n  ret {mathlib.IR_TYPE[kind]} %r\n}}"
                assert compiler.compile_module(f"{mathlib.prelude([(name, kind)])}{body}", ["f"])["f"]


def changed(data: bytes, form: str, at: int, value: int) -> bytes:
    content = bytearray(data)
    struct.pack_into(form, content, at, value)
    return bytes(content)


def header(data: bytes, flags: int) -> int:
    """Where the header of the first section with these flags lies."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    return next(table + 64 * k for k, section in enumerate(Object(data).sections) if section.flags & 7 == flags and section.size)


def headers_of(data: bytes, kind: int) -> list[int]:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    return [table + 64 * k for k, section in enumerate(Object(data).sections) if section.kind == kind]


def table(data: bytes, kind: int) -> loader.Section:
    return next(section for section in Object(data).sections if section.kind == kind)


def relocation_of_code(data: bytes) -> int:
    """Where the first relocation that is not of a table for unwinding lies."""
    sections = Object(data).sections
    return next(section.offset for section in sections if section.kind == loader.RELA and sections[section.info].flags & loader.EXECUTE)


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: b"",
    "another format": lambda data: b"\xcf\xfa\xed\xfe" + data[4:],
    "32 bits": lambda data: changed(data, "<B", 4, 1),
    "a program, not an object": lambda data: changed(data, "<H", 0x10, 2),
    "another machine": lambda data: changed(data, "<H", 0x12, 243),
    "cut": lambda data: data[: len(data) // 2],
    "the table of sections is elsewhere": lambda data: changed(data, "<Q", 0x28, 1 << 60),
    "the table of sections is beyond all addresses": lambda data: changed(data, "<Q", 0x28, 1 << 63),
    "a section ends beyond the file": lambda data: changed(data, "<Q", header(data, 6) + 0x20, len(data)),
    "a section is in the wrong place": lambda data: changed(data, "<Q", header(data, 6) + 0x18, len(data) - 8),
    "zeros without end": lambda data: changed(changed(data, "<I", header(data, 3) + 4, 8), "<Q", header(data, 3) + 0x20, 1 << 50),
    "data of threads": lambda data: changed(data, "<Q", header(data, 3) + 8, 0x403),
    "code that is writable": lambda data: changed(data, "<Q", header(data, 6) + 8, 7),
    "constructors": lambda data: changed(data, "<I", header(data, 3) + 4, 14),
    "alignment beyond a page": lambda data: changed(data, "<Q", header(data, 6) + 0x30, 1 << 20),
    "a table with other rows": lambda data: changed(data, "<Q", data.index(struct.pack("<QQ", 8, 24)) + 8, 16),
    "two tables of symbols": lambda data: changed(data, "<I", header(data, 3) + 4, 2),
    "no table of symbols": lambda data: changed(data, "<I", headers_of(data, loader.SYMTAB)[0] + 4, 1),
    "relocations of another form": lambda data: changed(data, "<I", headers_of(data, loader.RELA)[0] + 4, 9),
    "another kind of relocation": lambda data: changed(data, "<I", relocation_of_code(data) + 8, 9),
    "a relocation beyond its section": lambda data: changed(data, "<Q", relocation_of_code(data), 1 << 20),
    "a relocation at the very end": lambda data: changed(
        data, "<Q", relocation_of_code(data), next(s.size for s in Object(data).sections if s.flags & loader.EXECUTE and s.size) - 3
    ),
    "a relocation with no symbol": lambda data: changed(data, "<I", relocation_of_code(data) + 12, 0),
    "a relocation with a symbol that is not there": lambda data: changed(data, "<I", relocation_of_code(data) + 12, 1 << 20),
    "functions elsewhere that do not exist": lambda data: data.replace(b"lzc_exp\0", b"lzc_nix\0"),
    "functions under other names": lambda data: data.replace(b"look_up\0", b"lock_up\0"),
    "symbols of another kind": lambda data: bytes(
        bytearray(data[: table(data, 2).offset])
        + b"".join(
            data[at : at + 4] + bytes([data[at + 4] & 0xF0 | 10]) + data[at + 5 : at + 24]
            for at in range(table(data, 2).offset, table(data, 2).offset + table(data, 2).size, 24)
        )
        + data[table(data, 2).offset + table(data, 2).size :]
    ),
}


class Ledger(loader.Memory):
    """Counts what is mapped."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.bytes = 0

    def map(self, size: int) -> int:
        self.bytes += size
        return super().map(size)

    def unmap(self, base: int, size: int) -> None:
        self.bytes -= size
        super().unmap(base, size)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_understood_is_refused_and_leaves_nothing(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = loader.machine()
    if here is not None:
        ledger = Ledger(here[0])
        monkeypatch.setattr(loader, "machine", lambda: (here[0], ledger))
        damaged = FAULTS[fault](OWN)
        assert damaged != OWN
        with pytest.raises(UnsupportedError):
            loader.load(damaged, NAMES, resolve)
        assert ledger.bytes == 0
        loader.load(OWN, NAMES, resolve)
        assert ledger.bytes


def test_a_system_without_executable_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    here = loader.machine()
    if here is not None:
        ledger = Ledger(here[0])
        monkeypatch.setattr(ledger, "_protect", lambda *args: -1)
        monkeypatch.setattr(loader, "machine", lambda: (here[0], ledger))
        with pytest.raises(UnsupportedError, match="executable"):
            loader.load(OWN, NAMES, resolve)
        assert ledger.bytes == 0


@pytest.mark.parametrize("data", [X86, ARM], ids=["x86-64", "AArch64"])
def test_damage_anywhere_is_refused_or_without_consequence(data: bytes) -> None:
    """Nothing is run here: the point is that no other error and no access outside the image comes of it."""
    rng = random.Random(0)
    for _ in range(1500):
        content = bytearray(data)
        for _ in range(rng.choice([1, 1, 4])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        try:
            source = Object(bytes(content))
            image = Image(source)
            size = len(image.content)
            image.relocate(0x7F00_0000_0000, dict.fromkeys(source.undefined(), 0x5500_0000_0000))
        except UnsupportedError:
            continue
        assert len(image.content) == size


def test_addresses_in_instructions_of_aarch64() -> None:
    source = Object(ARM)
    image = Image(source)
    base, elsewhere = 0x7F12_3456_7000, {"lzc_exp": 0x5501_2345_6780, "lz_parallel": 0x5509_8765_4320}
    image.relocate(base, elsewhere)
    kinds = set()
    for section, offset, kind, number, addend in source.relocations:
        if section not in image.places:
            continue
        kinds.add(kind)
        at = image.places[section] + offset
        (instruction,) = struct.unpack_from("<I", image.content, at)
        symbol = source.symbols[number]
        address = elsewhere[symbol.name] if symbol.section == 0 else base + image.offset(symbol) + addend
        if kind in (282, 283):
            distance = (instruction & 0x03FFFFFF ^ 0x02000000) - 0x02000000
            load, jump, target = struct.unpack_from("<IIQ", image.content, at + 4 * distance)
            assert (load, jump, target) == (0x58000050, 0xD61F0200, address)
        else:
            quarter = instruction >> 21 & 3
            assert instruction >> 5 & 0xFFFF == address >> 16 * quarter & 0xFFFF
    assert {264, 266, 268, 269, 283} <= kinds
