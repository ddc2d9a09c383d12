"""What NVRTC makes of kernels: registers, spills, stack and shared memory from the assembler's log, kinds of instructions from the PTX.

In: CUDA C sources and an architecture.  Out: for each source, its kernels by name with their ``Resources``.  Promise: compiled with the
options that lazynp compiles with, 25 sources in one call, in a process of its own (which a fake ``cupy`` in this one does not reach), and
kept on disk by source and architecture.  No driver is needed, but the packages that ``MISSING`` names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from gpu_emulator.execution import source as text
from gpu_emulator.execution.build import BATCH, CompilationError, directory

ARCHITECTURES = ("75", "80", "90", "100")
OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "-Xptxas", "-v")
MISSING = 'compiling for a GPU needs NVRTC: pip install "cupy-cuda13x==14.2.*" "cuda-toolkit[cudart,nvrtc]==13.0.*"'
_FORMAT = 1  # of the files in the cache

# What is counted in the PTX of a kernel: instructions that match.
_COUNTED = {
    "ld.global": r"ld\.(?:volatile\.)?global",
    "ld.global.v2": r"ld\.(?:volatile\.)?global[\w.:]*\.v2\.",
    "ld.global.v4": r"ld\.(?:volatile\.)?global[\w.:]*\.v4\.",
    "st.global": r"st\.(?:volatile\.)?global",
    "st.global.v2": r"st\.(?:volatile\.)?global[\w.:]*\.v2\.",
    "st.global.v4": r"st\.(?:volatile\.)?global[\w.:]*\.v4\.",
    "ld.shared": r"ld\.(?:volatile\.)?shared",
    "st.shared": r"st\.(?:volatile\.)?shared",
    "ld.local": r"ld\.(?:volatile\.)?local",
    "st.local": r"st\.(?:volatile\.)?local",
    "atom": r"(?:atom|red)\.",
    "fma": r"fma\.",
    "div.u32": r"(?:div|rem)\.[us]32",
    "mul.hi": r"mul\.hi\.u32",
    ".ftz": r"\S*\.ftz\b",
    ".approx": r"\S*\.approx\b",
    ".f64": r"\S*\.f64\b",
    ".s64": r"(?:mul|div|rem|mad)\.\S*[su]64\b",
    "bar.sync": r"(?:bar|barrier)\.\S*sync",
    "shfl": r"shfl\.",
    "call": r"call\b",
}
_PATTERNS = {name: re.compile(rf"\s*(?:@!?%p\d+\s+)?{pattern}") for name, pattern in _COUNTED.items()}
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


compiled: set[str] = set()  # kernels, "architecture digest name", that this process asked for


class Resources(NamedTuple):
    """Of one kernel on one architecture; sizes in bytes, ``counts`` of instructions in the PTX."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int
    counts: dict[str, int]


def compile(sources: list[str], arch: str = "90") -> list[dict[str, Resources]]:
    """The kernels of each source; ``CompilationError`` with NVRTC's log where one does not compile."""
    keys = {source: directory() / f"{_digest(source, arch)}.ptxas" for source in sources}
    found: dict[str, Any] = {}
    for source, path in keys.items():
        try:
            found[source] = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            continue
    wanted = [source for source in keys if source not in found]
    if wanted:
        for source, answer in zip(wanted, _ask(wanted, arch), strict=True):
            found[source] = answer
            new = keys[source].with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps(answer))
            os.replace(new, keys[source])
    compiled.update(f"{arch} {keys[source].stem} {name}" for source in sources for name in found[source])
    return [{name: Resources(*values) for name, values in found[source].items()} for source in sources]


def _digest(source: str, arch: str) -> str:
    import importlib.metadata

    try:
        version = importlib.metadata.version("nvidia-cuda-nvrtc")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    parts = repr((_FORMAT, version, OPTIONS, sorted(_COUNTED.items()), arch, source))
    return hashlib.blake2b(parts.encode(), digest_size=16).hexdigest()


def _ask(sources: list[str], arch: str) -> list[dict[str, Any]]:
    """By a process that imports the real CuPy."""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
    question = json.dumps({"sources": sources, "arch": arch})
    command = [sys.executable, "-m", "tests.cuda.nvrtc"]
    done = subprocess.run(command, input=question, capture_output=True, text=True, env=environment, cwd=root)
    if done.returncode:
        raise CompilationError(done.stderr)
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise CompilationError(answer["error"])
    return answer["found"]


# In that process --------------------------------------------------------------------------------------------------------------


def headers() -> list[str]:
    """Folders with ``cuda_fp16.h``, which hand-written kernels include; lazynp's do not."""
    from cuda.pathfinder import find_nvidia_header_directory

    found = find_nvidia_header_directory("cudart")
    return [found] if found else []


def _translation_unit(sources: list[str]) -> str:
    """Each source in a namespace, so that their helpers may have equal names."""
    parts, wanted = [], set()
    for number, source in enumerate(sources):
        plain, includes = text.without_includes(source)
        wanted |= includes
        parts.append(f'namespace unit{number} {{\n#line 1 "unit{number}.cu"\n{plain}\n}}\n')
    return "".join([*(f"#include <{name}>\n" for name in sorted(wanted)), *parts])


def _name(mangled: str) -> tuple[int, str]:
    """(unit, kernel): `_ZN6unit1210block_sumE...` is block_sum of unit12."""
    words, rest = [], mangled.removeprefix("_ZN")
    for _ in range(2):
        digits = re.match(r"\d+", rest)
        assert digits is not None, mangled
        words.append(rest[digits.end() : digits.end() + int(digits[0])])
        rest = rest[digits.end() + int(digits[0]) :]
    return int(words[0].removeprefix("unit")), words[1]


def _counts(ptx: str) -> dict[str, dict[str, int]]:
    """By entry, the instructions of each kind."""
    found: dict[str, dict[str, int]] = {}
    counts: dict[str, int] = {}
    for line in ptx.splitlines():
        if entry := _ENTRY.search(line):
            counts = found[entry[1]] = dict.fromkeys(_COUNTED, 0)
        elif line.startswith(".func"):
            counts = dict.fromkeys(_COUNTED, 0)  # nobody asks
        elif counts:
            for name, pattern in _PATTERNS.items():
                counts[name] += pattern.match(line) is not None
    return found


def _resources(log: str) -> dict[str, tuple[int, int, int, int, int]]:
    found = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        frame, used, shared = _FRAME.search(part), _USED.search(part), _SHARED.search(part)
        assert frame is not None and used is not None, part
        found[part.split("'")[1]] = (int(used[1]), int(frame[2]), int(frame[3]), int(frame[1]), int(shared[1]) if shared else 0)
    return found


def _compile(nvrtc: Any, sources: list[str], arch: str, options: tuple[str, ...]) -> list[dict[str, Any]]:
    program = nvrtc.createProgram(_translation_unit(sources), "kernels.cu", (), ())
    try:
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            raise CompilationError(nvrtc.getProgramLog(program)) from None
        log, ptx = nvrtc.getProgramLog(program), nvrtc.getPTX(program)
    finally:
        nvrtc.destroyProgram(program)
    counts = _counts(ptx.decode() if isinstance(ptx, bytes) else ptx)
    answers: list[dict[str, Any]] = [{} for _ in sources]
    for mangled, values in _resources(log).items():
        unit, name = _name(mangled)
        answers[unit][name] = [*values, counts[mangled]]
    return answers


def main() -> None:
    try:
        from cupy.cuda import nvrtc

        nvrtc.getVersion()
    except Exception as error:
        print(json.dumps({"error": f"{MISSING} ({error})"}))
        return
    question = json.load(sys.stdin)
    sources, arch = question["sources"], question["arch"]
    options = (*OPTIONS, f"-arch=sm_{arch}", *(f"-I{folder}" for folder in headers()))
    batches = [sources[at : at + BATCH] for at in range(0, len(sources), BATCH)]
    try:
        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            found = [each for answers in pool.map(lambda batch: _compile(nvrtc, batch, arch, options), batches) for each in answers]
    except (CompilationError, text.UnsupportedSource) as error:
        print(json.dumps({"error": str(error)}))
        return
    print(json.dumps({"found": found}))


if __name__ == "__main__":
    main()
