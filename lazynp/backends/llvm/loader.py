"""Machine code in memory, without LLVM.

In: an object file as LLVM writes it for this machine, the functions wanted from it, and who knows the addresses of those elsewhere.
Out: addresses, valid until the process ends.  Promises: no page is ever writable and executable at once; what is not understood, to the
last byte that would run, is ``UnsupportedError`` and leaves nothing behind: LLVM's own linker can take it.

An object file (ELF, relocatable) consists of *sections* of bytes, of *symbols* (each a name for an offset in a section, or for something
elsewhere) and of *relocations*: "at this offset in that section belongs the address of this symbol plus an addend, written in such a
way".  Loading lays the sections out in memory, which gives every symbol its address, and follows the relocations.  Code for LLVM's large
code model, which generated code is, needs few kinds of them, for it writes every address in full.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from lazynp.values.records import Row


class UnsupportedError(Exception):
    """Code that only LLVM can load; the message says why."""


class Section(Row):
    """A section header, as it lies in the file."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Symbol(Row):
    name: str
    kind: int
    section: int  # 0: it is elsewhere
    value: int


class Relocation(Row):
    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


X86_64, AARCH64 = 62, 183  # machines
RELOCATABLE = 1  # a kind of file
UNUSED, PROGBITS, SYMTAB, STRTAB, RELA, NOBITS, X86_64_UNWIND = 0, 1, 2, 3, 4, 8, 0x70000001  # kinds of sections
WRITE, ALLOC, EXECUTE, MERGE, STRINGS, LARGE = 1, 2, 4, 0x10, 0x20, 0x10000000  # flags of sections
DATA, FUNCTION, SECTION = 1, 2, 3  # kinds of symbols
LIMIT: Final = 1 << 26  # bytes of a section; kernels have some thousands
ROW: Final = 24  # bytes of a symbol, and of a relocation


class Object:
    """An object file, read: what it defines and what it needs."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise UnsupportedError("not an ELF file of a 64-bit little-endian machine")
        self.data = data
        try:
            self._read()
        except (struct.error, LookupError, ValueError, OverflowError) as error:
            raise UnsupportedError(f"not a whole object file: {error}") from error

    def _read(self) -> None:
        kind, self.machine = struct.unpack_from("<HH", self.data, 0x10)
        (table,) = struct.unpack_from("<Q", self.data, 0x28)
        entry_size, entries, names = struct.unpack_from("<HHH", self.data, 0x3A)
        if kind != RELOCATABLE:
            raise UnsupportedError(f"a file of kind {kind}")
        self.sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", self.data, table + entry_size * k)) for k in range(entries)]
        if any(section.offset + section.size > len(self.data) for section in self.sections if section.kind != NOBITS):
            raise ValueError("a section ends beyond the file")
        if sum(section.kind == SYMTAB for section in self.sections) != 1:
            raise ValueError("not one table of symbols")
        self.names = [self._string(names, section.name) for section in self.sections]
        self.symbols = []
        self.relocations = []
        for section in self.sections:
            rows = range(section.offset, section.offset + section.size, ROW)
            if section.kind in (SYMTAB, RELA) and (section.entry_size != ROW or section.size % ROW):
                raise ValueError(f"a table with rows of {section.entry_size} bytes")
            if section.kind == SYMTAB:
                for at in rows:
                    name, info, _, defined, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
                    self.symbols.append(Symbol(self._string(section.link, name), info & 0xF, defined, value))
            elif section.kind == RELA:
                for at in rows:
                    offset, info, addend = struct.unpack_from("<QQq", self.data, at)
                    self.relocations.append(Relocation(section.info, offset, info & 0xFFFFFFFF, info >> 32, addend))

    def _string(self, section: int, at: int) -> str:
        start = self.sections[section].offset + at
        return self.data[start : self.data.index(b"\0", start)].decode()

    def undefined(self) -> list[str]:
        """The names of what is taken from elsewhere."""
        return [symbol.name for symbol in self.symbols if symbol.section == 0 and symbol.name]

    def loaded(self) -> dict[int, Section]:
        """The sections that running code may look at, by number; tables for unwinding, which nothing here does, are not among them."""
        found = {}
        for number, section in enumerate(self.sections):
            if section.kind not in (UNUSED, PROGBITS, SYMTAB, STRTAB, RELA, NOBITS, X86_64_UNWIND):  # it may be relocations of another form
                raise UnsupportedError(f"section {self.names[number]} of kind {section.kind}")
            if not section.flags & ALLOC or not section.size or section.kind == X86_64_UNWIND or self.names[number] == ".eh_frame":
                continue
            unknown = section.flags & ~(WRITE | ALLOC | EXECUTE | MERGE | STRINGS | LARGE)
            if section.kind not in (PROGBITS, NOBITS) or unknown or section.flags & (WRITE | EXECUTE) == WRITE | EXECUTE:
                raise UnsupportedError(f"section {self.names[number]} of kind {section.kind} with flags {section.flags:#x}")
            if section.alignment > mmap.PAGESIZE or section.size > LIMIT:
                raise UnsupportedError(f"section {self.names[number]} of {section.size} bytes aligned to {section.alignment}")
            found[number] = section
        return found


# How an address is written: into an image, at an offset, which will be at a place in memory --------------------------------


def _word(image: bytearray, at: int, place: int, address: int) -> None:
    struct.pack_into("<Q", image, at, address)


def _quarter(number: int) -> Callable[[bytearray, int, int, int], None]:
    """16 of the 64 bits, as the operand of a ``movz`` or ``movk``."""

    def write(image: bytearray, at: int, place: int, address: int) -> None:
        (instruction,) = struct.unpack_from("<I", image, at)
        if instruction & 0xDFFFFFE0 != 0xD2800000 | number << 21:
            raise UnsupportedError(f"instruction {instruction:#x} takes no quarter {number} of an address")
        struct.pack_into("<I", image, at, instruction | (address >> 16 * number & 0xFFFF) << 5)

    return write


def _branch(image: bytearray, at: int, place: int, address: int) -> None:
    """The distance in instructions, as the operand of a ``b`` or ``bl``."""
    (instruction,) = struct.unpack_from("<I", image, at)
    distance = address - place
    if instruction & 0x7FFFFFFF != 0x14000000 or distance % 4 or not -(1 << 27) <= distance < 1 << 27:
        raise UnsupportedError(f"instruction {instruction:#x} cannot branch over {distance} bytes")
    struct.pack_into("<I", image, at, instruction | distance >> 2 & 0x03FFFFFF)


# By machine and kind of relocation: the number of bytes and who writes them.
WRITERS: Final[dict[tuple[int, int], tuple[int, Callable[[bytearray, int, int, int], None]]]] = {
    (X86_64, 1): (8, _word),  # R_X86_64_64
    (AARCH64, 257): (8, _word),  # R_AARCH64_ABS64
    (AARCH64, 264): (4, _quarter(0)),  # R_AARCH64_MOVW_UABS_G0_NC, G1_NC, G2_NC, G3
    (AARCH64, 266): (4, _quarter(1)),
    (AARCH64, 268): (4, _quarter(2)),
    (AARCH64, 269): (4, _quarter(3)),
    (AARCH64, 282): (4, _branch),  # R_AARCH64_JUMP26
    (AARCH64, 283): (4, _branch),  # R_AARCH64_CALL26
}
# A branch reaches 128 MB and libraries are farther away: it goes to a *veneer* behind the code, which jumps on.
BRANCHES: Final = {(AARCH64, 282), (AARCH64, 283)}
VENEER: Final = struct.pack("<IIQ", 0x58000050, 0xD61F0200, 0)  # ldr x16, <the word behind>; br x16; the word


class Image:
    """An object laid out in segments of whole pages: code with its veneers, constants, data."""

    def __init__(self, source: Object) -> None:
        self.source = source
        self.content = bytearray()
        self.places: dict[int, int] = {}  # section -> offset
        self.veneers: dict[int, int] = {}  # symbol -> offset
        self.segments: list[tuple[int, int, int]] = []  # (begin, end, protection)
        loaded = source.loaded()
        for flag, more in ((EXECUTE, mmap.PROT_EXEC), (0, 0), (WRITE, mmap.PROT_WRITE)):
            begin = len(self.content)
            for number, section in loaded.items():
                if section.flags & (EXECUTE | WRITE) == flag:
                    self.places[number] = self._aligned(section.alignment)
                    filled = section.kind == PROGBITS
                    self.content += source.data[section.offset : section.offset + section.size] if filled else bytes(section.size)
            if flag == EXECUTE:
                for relocation in source.relocations:
                    if (source.machine, relocation.kind) in BRANCHES and relocation.symbol not in self.veneers:
                        self.veneers[relocation.symbol] = self._aligned(8)
                        self.content += VENEER
            end = self._aligned(mmap.PAGESIZE)
            if end > begin:
                self.segments.append((begin, end, mmap.PROT_READ | more))

    def _aligned(self, alignment: int) -> int:
        self.content += bytes(-len(self.content) % (alignment or 1))
        return len(self.content)

    def offset(self, symbol: Symbol) -> int:
        section = symbol.section
        if section not in self.places or symbol.kind not in (DATA, FUNCTION, SECTION) or symbol.value > self.source.sections[section].size:
            raise UnsupportedError(f"symbol {symbol.name!r} of kind {symbol.kind} in section {section}")
        return self.places[section] + symbol.value

    def relocate(self, base: int, elsewhere: dict[str, int]) -> None:
        """Write every address, for an image that begins at ``base``."""
        machine, symbols = self.source.machine, self.source.symbols

        def address(symbol: Symbol) -> int:
            return elsewhere[symbol.name] if symbol.section == 0 and symbol.name else base + self.offset(symbol)

        for section, offset, kind, number, addend in self.source.relocations:
            if section not in self.places:  # it is not read
                continue
            width, write = WRITERS.get((machine, kind), (0, _word))
            if not width or offset + width > self.source.sections[section].size or number >= len(symbols):
                raise UnsupportedError(f"relocation of kind {kind} at {offset} of section {section} with symbol {number}")
            target = address(symbols[number]) + addend
            if (machine, kind) in BRANCHES:
                if addend:
                    raise UnsupportedError("a branch into the middle of something")
                veneer = self.veneers[number]
                _word(self.content, veneer + 8, 0, target)
                target = base + veneer
            at = self.places[section] + offset
            write(self.content, at, base + at, target & 0xFFFF_FFFF_FFFF_FFFF)


class Memory:
    """Memory from the system itself: an object of Python's would give it back while the interpreter shuts down."""

    def __init__(self, machine: int) -> None:
        library: Any = ctypes.CDLL(None)
        pointer, size, integer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self._map = ctypes.CFUNCTYPE(pointer, pointer, size, integer, integer, integer, ctypes.c_long)(("mmap", library))
        self._protect = ctypes.CFUNCTYPE(integer, pointer, size, integer)(("mprotect", library))
        self._unmap = ctypes.CFUNCTYPE(integer, pointer, size)(("munmap", library))
        self._synchronise: Any = None
        if machine == AARCH64:  # instructions have a cache of their own, which does not see what is written (on x86-64 it does)
            self._synchronise = ctypes.CFUNCTYPE(None, pointer, pointer)(("__clear_cache", ctypes.CDLL("libgcc_s.so.1")))

    def map(self, size: int) -> int:
        base: int | None = self._map(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if base is None or base == (1 << 64) - 1:
            raise UnsupportedError(f"no memory for {size} bytes of code")
        return base

    def fill(self, base: int, image: Image) -> None:
        ctypes.memmove(base, bytes(image.content), len(image.content))
        if self._synchronise is not None:
            self._synchronise(base, base + len(image.content))
        for begin, end, protection in image.segments:
            if self._protect(base + begin, end - begin, protection):
                raise UnsupportedError("the system does not let memory become executable")

    def unmap(self, base: int, size: int) -> None:
        self._unmap(base, size)


@functools.cache
def machine() -> tuple[int, Memory] | None:
    """The number of this machine and its memory, None where code cannot be loaded here."""
    name = os.uname().machine if sys.platform == "linux" and sys.maxsize > 1 << 32 else ""
    number = {"x86_64": X86_64, "aarch64": AARCH64}.get(name)
    try:
        return None if number is None else (number, Memory(number))
    except (OSError, AttributeError):
        return None


def load(data: bytes, names: Sequence[str], resolve: Callable[[str], int | None]) -> dict[str, int]:
    """Load machine code, for good, and return the addresses of functions.

    Parameters
    ----------
    data : bytes
        An object file; the disk cache that kept it checks that it is what a compilation made.
    names : sequence of str
        The functions wanted.
    resolve : callable
        Returns the address of a function elsewhere, None where there is none.

    Raises
    ------
    UnsupportedError
        This system, or something in the object, is none of those known here.
    """
    here = machine()
    if here is None:
        raise UnsupportedError("this system")
    number, memory = here
    source = Object(data)
    if source.machine != number:
        raise UnsupportedError(f"machine {source.machine}")
    elsewhere = {name: resolve(name) or 0 for name in source.undefined()}
    if not all(elsewhere.values()):
        raise UnsupportedError(f"there is no {', '.join(name for name, address in elsewhere.items() if not address)}")
    image = Image(source)
    functions = {symbol.name: symbol for symbol in source.symbols if symbol.kind == FUNCTION}
    if not set(names) <= functions.keys():
        raise UnsupportedError(f"not all of {names} are functions of it")
    offsets = {name: image.offset(functions[name]) for name in names}
    base = memory.map(len(image.content))
    try:
        image.relocate(base, elsewhere)
        memory.fill(base, image)
    except UnsupportedError:
        memory.unmap(base, len(image.content))
        raise
    return {name: base + offset for name, offset in offsets.items()}
