"""CUDA C text made ready for g++.

In: sources as NVRTC takes them.  Out: one C++ text for several of them, each in a namespace of its own, with a table of kernels at its end.
Promise: line numbers stay, so that the compiler and every violation name the line of the source.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEADERS = ("cuda_fp16.h",)

# PTX that a source may have, of one result and one operand, and the functions that do the same.
INSTRUCTIONS = {"cvt.f32.f16 %0, %1;": "emulator_from_half", "cvt.rn.f16.f32 %0, %1;": "emulator_to_half"}

_COMMENTS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]*)[>\"][^\n]*$", re.M)
_ALIGN = r"(?:__align__\s*\(\s*\w+\s*\)\s*)?"
_DYNAMIC = re.compile(rf"\bextern\s+__shared__\s+{_ALIGN}([\w\s:]*?[\w>])\s*{_ALIGN}\b(\w+)\s*\[\s*\]\s*;")
_LINKAGE = re.compile(r'\bextern\s+"C"(?:\s*(\{))?')
_ASM = re.compile(r'\basm\s*\(\s*"([^"]*)"\s*:\s*"=\w"\s*\((\w+)\)\s*:\s*"\w"\s*\((\w+)\)\s*\)\s*;')
_WORD = re.compile(r"\s*(\w+)")


class UnsupportedSource(Exception):
    """What the emulator cannot run: an include, a kernel template, PTX."""


class Kernel(NamedTuple):
    name: str
    bounds: str  # the expression in __launch_bounds__, "0" without
    start: int  # of its `__global__` in the text


def _strip_comments(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        found = match[0]
        return found if found[0] == '"' else re.sub(r"[^\n]", " ", found)

    return _COMMENTS.sub(blank, text)


def _closing(text: str, at: int, pair: str) -> int:
    """The end of the parenthesis or brace that opens at or after ``at``."""
    depth = 0
    for k in range(text.index(pair[0], at), len(text)):
        depth += {pair[0]: 1, pair[1]: -1}.get(text[k], 0)
        if depth == 0:
            return k + 1
    raise UnsupportedSource(f"a {pair[0]} that does not close")


def kernels(text: str) -> list[Kernel]:
    """The kernels that a text without comments defines."""
    found = []
    for match in re.finditer(r"\b__global__\b", text):
        at, bounds = match.end(), "0"
        while True:
            word = _WORD.match(text, at)
            if word is None:
                raise UnsupportedSource(f"no kernel follows the __global__ on line {text.count(chr(10), 0, match.start()) + 1}")
            at = word.end()
            if word[1] in ("__launch_bounds__", "__attribute__"):
                end = _closing(text, at, "()")
                if word[1] == "__launch_bounds__":
                    bounds = text[text.index("(", at) + 1 : end - 1].split(",")[0].strip()
                at = end
            elif text[at:].lstrip().startswith("("):
                break
        if text[: match.start()].rstrip().endswith(">"):
            raise UnsupportedSource(f"the kernel {word[1]} is a template")
        if text[_closing(text, at, "()") :].lstrip().startswith("{"):  # else a declaration
            found.append(Kernel(word[1], bounds, match.start()))
    return found


def unit_name(number: int) -> str:
    return f"unit{number}"


def without_includes(source: str) -> tuple[str, set[str]]:
    """A text that may stand in a namespace: no comments, C++ linkage, and apart from it the headers that it includes."""
    text = _strip_comments(source)
    headers = set(_INCLUDE.findall(text))
    if headers - set(HEADERS):
        raise UnsupportedSource(f"#include of {', '.join(sorted(headers - set(HEADERS)))}")
    text = _INCLUDE.sub("", text)
    while match := _LINKAGE.search(text):
        if match[1]:
            end = _closing(text, match.end() - 1, "{}")
            text = f"{text[: end - 1]} {text[end:]}"
        text = text[: match.start()] + "\n" * match[0].count("\n") + text[match.end() :]
    return text, headers


def _without_ptx(text: str) -> str:
    def called(match: re.Match[str]) -> str:
        if match[1] not in INSTRUCTIONS:
            raise UnsupportedSource(f"PTX: {match[1]}")
        return f"{match[2]} = {INSTRUCTIONS[match[1]]}({match[3]});"

    text = _ASM.sub(called, text)
    if re.search(r"\basm\b", text):
        raise UnsupportedSource("asm of another form than one result and one operand")
    return text


def _unit(number: int, source: str) -> tuple[str, set[str]]:
    text, headers = without_includes(source)
    text = _without_ptx(text)
    # a reference to the pointer that the scheduler sets: right inside a kernel and outside
    text = _DYNAMIC.sub(r"static \1* const & \2 = (\1* const &)emulator_dynamic;", text)
    unit = unit_name(number)
    parts, at, sections, table = [], 0, [], []
    for kernel in kernels(text):
        section = f"shared_{unit}_{kernel.name}"
        sections.append(section)
        start = text.rfind("\n", 0, kernel.start) + 1
        line = text.count("\n", 0, start) + 1
        parts.append(text[at:start])
        parts.append(f'#undef __shared__\n#define __shared__ static __attribute__((section("{section}")))\n#line {line} "{unit}.cu"\n')
        at = start
        table.append(f'    EMULATOR_KERNEL({kernel.name}, "{unit}", {section}, {kernel.bounds}),\n')
    parts.append(text[at:])
    lines = [
        *(f"EMULATOR_SECTION({section})\n" for section in sections),
        f"#undef __shared__\nnamespace {unit} {{ namespace {{\n",
        f'#line 1 "{unit}.cu"\n',
        *parts,
        f'\n}}\n#line 1 "{unit}.table"\n',
        f'extern "C" __attribute__((visibility("default"))) const emulator::Kernel emulator_{unit}[] = {{\n',
        *table,
        "    {}};\n}\n",
    ]
    return "".join(lines), headers


def combine(sources: list[str]) -> str:
    """One translation unit; what follows the includes is each source in its namespace."""
    parts, headers = [], set()
    for number, source in enumerate(sources):
        text, wanted = _unit(number, source)
        parts.append(text)
        headers |= wanted
    return "".join([*(f'#include "{name}"\n' for name in sorted(headers)), *parts])
