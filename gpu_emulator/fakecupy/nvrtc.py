"""``cupy.cuda.nvrtc``: programs "compiled" to an image that holds their source.

In: CUDA C and options.  Out: an image (``MAGIC``, a line with kind, architecture and options, the source).  Promise: options and includes
that NVRTC would refuse are refused with its status and a log; what g++ or the emulator cannot compile is a compilation error; and with
``real_nvrtc`` the real compiler sees every program too.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from typing import Any

from gpu_emulator.fakecupy import images, importing
from gpu_emulator.fakecupy.errors import NVRTCError
from gpu_emulator.fakecupy.machine import machine

ARCHITECTURES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
STANDARDS = ("c++03", "c++11", "c++14", "c++17", "c++20")

_FLAG, _SWITCH, _VALUE = "flag", "true or false", "value"
# long name, short name, what follows it
_TABLE = (
    ("--gpu-architecture", "-arch", _VALUE), ("--std", "-std", _VALUE), ("--fmad", "-fmad", _SWITCH), ("--ftz", "-ftz", _SWITCH),
    ("--prec-div", "-prec-div", _SWITCH), ("--prec-sqrt", "-prec-sqrt", _SWITCH), ("--use_fast_math", "-use_fast_math", _FLAG),
    ("--extra-device-vectorization", "-extra-device-vectorization", _FLAG), ("--define-macro", "-D", _VALUE),
    ("--undefine-macro", "-U", _VALUE), ("--include-path", "-I", _VALUE), ("--pre-include", "-include", _VALUE),
    ("--no-source-include", "-no-source-include", _FLAG), ("--maxrregcount", "-maxrregcount", _VALUE),
    ("--ptxas-options", "-Xptxas", _VALUE), ("--device-debug", "-G", _FLAG), ("--generate-line-info", "-lineinfo", _FLAG),
    ("--dopt", "-dopt", _VALUE), ("--relocatable-device-code", "-rdc", _SWITCH), ("--dlink-time-opt", "-dlto", _FLAG),
    ("--restrict", "-restrict", _FLAG), ("--device-as-default-execution-space", "-default-device", _FLAG),
    ("--device-int128", "-device-int128", _FLAG), ("--disable-warnings", "-w", _FLAG), ("--diag-suppress", "-diag-suppress", _VALUE),
    ("--diag-error", "-diag-error", _VALUE), ("--diag-warn", "-diag-warn", _VALUE), ("--minimal", "-minimal", _FLAG),
    ("--split-compile", "-split-compile", _VALUE), ("--time", "-time", _VALUE), ("--no-cache", "-no-cache", _FLAG),
)
OPTIONS = {name: (names[0], kind) for *names, kind in _TABLE for name in names}
_JOINED = ("-D", "-U", "-I") # their value may follow without a sign


class _Program:
    def __init__(self, source: str, name: str, headers: dict[str, str]) -> None:
        self.source, self.name, self.headers = source, name, headers
        self.log = ""
        self.compiled = False
        self.architecture = ""
        self.options: tuple[str, ...] = ()


_programs: dict[int, _Program] = {}
_numbers = itertools.count(0x7C0000000000, 0x100)


def _program(prog: int) -> _Program:
    if prog not in _programs:
        raise NVRTCError(4) # the real one crashes
    return _programs[prog]


def getVersion() -> tuple[int, int]:
    return (13, 0)


def getSupportedArchs() -> tuple[int, ...]:
    return ARCHITECTURES


def createProgram(src: str, name: str, headers: Any, include_names: Any) -> int:
    if not isinstance(src, str) or not isinstance(name, str):
        raise TypeError("Argument 'src' has incorrect type (expected str)")
    number = next(_numbers)
    _programs[number] = _Program(src, name or "default_program", dict(zip(include_names, headers, strict=True)))
    return number


def destroyProgram(prog: int) -> None:
    _program(prog)
    del _programs[prog]


def getProgramLog(prog: int) -> str:
    return _program(prog).log


class _Refused(Exception):
    """An option that NVRTC does not take."""


def parse(options: Any) -> list[tuple[str, str]]:
    """The options as (long name, value)."""
    found: list[tuple[str, str]] = []
    words = iter(options)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"option {word!r} is not a string")
        name, sign, value = word.partition("=")
        joined = next((short for short in _JOINED if word.startswith(short) and not word.startswith("--")), None)
        if joined is not None:
            name, sign, value = joined, word[2:] and "=", word[2:]
        if name not in OPTIONS:
            raise _Refused(f"nvrtc: error: unrecognized option {word} found")
        long, kind = OPTIONS[name]
        if kind == _FLAG and sign:
            raise _Refused(f"nvrtc: error: {long} takes no value")
        if kind != _FLAG and not sign:
            value = next(words, "")
            if not value:
                raise _Refused(f"nvrtc: error: missing value for {long}")
        if kind == _SWITCH and value not in ("true", "false"):
            raise _Refused(f"nvrtc: error: {long} ({name}) expects true or false")
        if long == "--gpu-architecture" and not re.fullmatch(rf"(sm|compute)_({'|'.join(map(str, ARCHITECTURES))})[af]?", value):
            raise _Refused("nvrtc: error: invalid value for --gpu-architecture (-arch)")
        if long == "--std" and value not in STANDARDS:
            raise _Refused("nvrtc: error: invalid value for --std(-std)")
        found.append((long, value))
    return found


def _check_includes(program: _Program, options: list[tuple[str, str]]) -> str:
    """What NVRTC says where a header cannot be found: it has none of its own."""
    folders = [value for name, value in options if name == "--include-path"]
    for number, line in enumerate(program.source.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if match and match[1] not in program.headers and not any(os.path.exists(os.path.join(folder, match[1])) for folder in folders):
            return f'{program.name}({number}): catastrophic error: could not open source file "{match[1]}"'
    return ""


def compileProgram(prog: int, options: Any) -> None:
    program = _program(prog)
    program.compiled, program.options = False, tuple(options)
    try:
        parsed = parse(program.options)
    except _Refused as error:
        program.log = f"{error}\n"
        raise NVRTCError(5) from None
    program.architecture = next((value for name, value in reversed(parsed) if name == "--gpu-architecture"), "")
    program.log = _check_includes(program, parsed)
    if not program.log:
        program.log = images.check(program.source, machine())
    if not program.log and machine().real_nvrtc:
        program.log = _really(program)
    if program.log:
        raise NVRTCError(6)
    program.compiled = True


def _really(program: _Program) -> str:
    """What the real NVRTC says against a program; nothing, if it takes it."""
    key = (program.source, program.name, tuple(program.headers.items()), program.options)
    return _ask(*key)


@functools.cache
def _ask(source: str, name: str, headers: tuple[tuple[str, str], ...], options: tuple[str, ...]) -> str:
    compiler = real()
    handle = compiler.createProgram(source, name, tuple(text for _, text in headers), tuple(name for name, _ in headers))
    try:
        compiler.compileProgram(handle, options)
    except compiler.NVRTCError as error:
        return f"the real NVRTC: {error}\n{compiler.getProgramLog(handle)}"
    finally:
        compiler.destroyProgram(handle)
    return ""


@functools.cache
def real() -> Any:
    """The real module: its package has another name than the fake's, but it finds its library by way of the real ``cupy``."""
    with importing.real_package():
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion() # finds the library
    return nvrtc


def _image(prog: int, kind: str) -> bytes:
    program = _program(prog)
    if not program.compiled:
        raise NVRTCError(4)
    return images.make(kind, program.architecture.removeprefix("sm_").removeprefix("compute_") or "75", program.options, program.source)


def getCUBIN(prog: int) -> bytes:
    if not _program(prog).architecture.startswith("sm_"):
        raise RuntimeError("cubin is requested, but the real arch (sm_XX) is not provided")
    return _image(prog, "cubin")


def getPTX(prog: int) -> bytes:
    return _image(prog, "ptx")
