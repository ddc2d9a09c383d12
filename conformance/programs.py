"""Public NumPy programs and the tests of small libraries, by NumPy and with ``numpy`` meaning lazynp.

In: a folder of checkouts, and ``programs.toml``, which says what is run of each.  Out: for each program whether it leaves the same, what
differs, and the processor's time, the clock's and the peak of memory of both.  Promise: no line of theirs is changed; each run is a
process of its own in a fresh copy of the checkout; NumPy runs twice, what differs between its own two runs is not compared, and a program
that NumPy itself cannot run is no row but an error of the list.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import math
import os
import pickle
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy

from conformance import tables

REPOSITORY: Final = Path(__file__).resolve().parent.parent
LIST: Final = Path(__file__).parent / "programs.toml"
RESULTS: Final = Path(__file__).parent / "results" / "programs.json"
SECONDS: Final = 900.0
TOLERANCE: Final = 1e-6  # of the largest element; a row of the list may say another, with its reason
GREY: Final = 3  # levels a pixel may differ by
PIXELS: Final = 1e-3  # the share of pixels that may differ by more
SLOWER: Final = 1.2  # a row above this is marked
LARGER: Final = 1.25  # and above this with 64 MiB on top
HEADINGS: Final = ("program", "compared", "result", "NumPy s", "lazynp s", "ratio", "NumPy MiB", "lazynp MiB")
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])|[-+]?\b(?:nan|inf)\b")


@dataclass
class Run:
    """What one process left."""

    found: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    errors: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cpu: float = math.inf
    wall: float = math.inf
    peak: float = math.inf  # MiB
    error: str = ""


def listed(path: Path = LIST) -> list[dict[str, Any]]:
    """The rows of the list."""
    return list(tomllib.loads(path.read_text(encoding="utf-8"))["program"])


def checkout(row: Mapping[str, Any], folder: Path) -> Path:
    """The folder of a program's repository: ``owner+name``, or ``name``.

    Raises
    ------
    FileNotFoundError
        Where there is none.
    """
    for name in (row["repository"].replace("/", "+"), row["repository"].rpartition("/")[2]):
        if (folder / name).is_dir():
            return folder / name
    raise FileNotFoundError(f"{folder} has no checkout of {row['repository']}")


def commit(place: Path) -> str:
    """What a checkout says it is."""
    asked = subprocess.run(["git", "-C", str(place), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def command(row: Mapping[str, Any], library: str, target: str) -> list[str]:
    """The program's command line."""
    kind = next(kind for kind in ("script", "module", "pytest") if kind in row)
    arguments = row[kind] if isinstance(row[kind], list) else [row[kind]]
    shown = ["--figures"] if row.get("figures", kind != "pytest") else []
    return [sys.executable, "-m", "conformance.program_child", library, target, kind, *shown, *arguments]


def run(row: Mapping[str, Any], library: str, place: Path, cache: Path, seconds: float = SECONDS) -> Run:
    """One run, in a copy of the checkout."""
    with tempfile.TemporaryDirectory() as temporary:
        copy, target = Path(temporary, place.name), Path(temporary, "left")
        printed, complained = Path(temporary, "output"), Path(temporary, "errors")
        shutil.copytree(place, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__"))
        folder = copy / row.get("folder", ".")
        before = _stamps(copy)
        paths = [str(REPOSITORY), *(str(copy / name) for name in row.get("path", [])), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ, **row.get("environment", {}), "PYTHONPATH": os.pathsep.join(filter(None, paths)), "MPLBACKEND": "Agg",
            "LAZYNP_CACHE_DIR": str(cache), "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        result = Run()
        start = time.perf_counter()
        with printed.open("wb") as sink, complained.open("wb") as second:
            process = subprocess.Popen(
                command(row, library, str(target)), cwd=folder, env=environment, stdout=sink, stderr=second,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            status, usage = _waited(process, seconds)
        result.wall = time.perf_counter() - start
        result.cpu, result.peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        result.output, result.errors = (
            path.read_text(errors="replace").replace(str(copy), "").replace(temporary, "") for path in (printed, complained)
        )
        if target.exists():
            with target.open("rb") as file:
                result.found = pickle.load(file)
            result.error = result.found["error"]
        else:
            result.error = f"exit status {status}: {(result.output + result.errors)[-600:]}"
        if "pytest" not in row:
            result.files = {name: (copy / name).read_bytes() for name, stamp in _stamps(copy).items() if before.get(name) != stamp}
    return result


def _waited(process: subprocess.Popen[bytes], seconds: float) -> tuple[int, Any]:
    limit = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.monotonic() > limit:
            process.kill()
            limit = math.inf
        time.sleep(0.02)


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.stat().st_size) for path in found}


# Comparing ------------------------------------------------------------------------------------------------------------------------


def differences(row: Mapping[str, Any], want: Run, got: Run) -> list[str]:
    """What one run left that the other did not."""
    tolerance = row.get("tolerance", TOLERANCE)
    if "tests" in want.found:
        wanted, given = want.found["tests"], got.found.get("tests", {})
        good = ("passed", "xfailed", "skipped")
        lost = [test for test, (outcome, _) in wanted.items() if outcome in good and given.get(test, ("gone",))[0] not in good]
        reasons = {test: given.get(test, ("", "not run"))[1].replace(f"{REPOSITORY}{os.sep}", "").split("\n")[-3:] for test in lost}
        return [f"{test}: {' | '.join(reasons[test])}" for test in lost]
    found = []
    if want.error != got.error:
        found.append(f"error: {got.error or 'none'}")
    found += [f"printed: {text}" for text in _text(_kept(row, want.output), _kept(row, got.output), tolerance)]
    # what is recorded warns when it is computed, so lines of errors may come in another order
    theirs, ours = ("\n".join(sorted(_kept(row, text).splitlines())) for text in (want.errors, got.errors))
    found += [f"errors: {text}" for text in _text(theirs, ours, tolerance)]
    mine, other = want.found.get("values", {}), got.found.get("values", {})
    ignored = row.get("values", {})
    for name in sorted({*mine, *other} - {*ignored}):
        if name not in mine or name not in other:
            found.append(f"{name}: only {'NumPy' if name in mine else 'lazynp'} leaves it")
        elif text := _value(mine[name], other[name], tolerance):
            found.append(f"{name}: {text}")
    left, right = want.found.get("figures", []), got.found.get("figures", [])
    if len(left) != len(right):
        found.append(f"{len(left)} figures, {len(right)}")
    found += [f"figure {i}: {text}" for i, pair in enumerate(zip(left, right, strict=False)) if (text := _pixels(*pair, row))]
    for name in sorted({*want.files, *got.files} - {*row.get("files", [])}):
        one, two = want.files.get(name), got.files.get(name)
        if one is None or two is None:
            found.append(f"{name}: written by one only")
        elif one != two and (text := _file(name, one, two, row)):
            found.append(f"{name}: {text}")
    return found


def _kept(row: Mapping[str, Any], text: str) -> str:
    for pattern in row.get("ignore", []):
        text = re.sub(pattern, "", text)
    return text


def _text(want: str, got: str, tolerance: float) -> Iterator[str]:
    """Lines that differ otherwise than by the last digits of numbers."""
    one, two = want.splitlines(), got.splitlines()
    if len(one) != len(two):
        yield f"{len(one)} lines, {len(two)}: ...{' '.join(two[-2:])[-200:]}"
        return
    for left, right in zip(one, two, strict=True):
        if left == right:
            continue
        if re.sub(r"\s+", " ", _NUMBER.sub("#", left)) != re.sub(r"\s+", " ", _NUMBER.sub("#", right)):
            yield f"{left!r}, {right!r}"[:300]
            continue
        pairs = zip(_NUMBER.findall(left), _NUMBER.findall(right), strict=True)
        if not all(_near(float(a), float(b), tolerance) for a, b in pairs):
            yield f"{left!r}, {right!r}"[:300]


def _near(a: float, b: float, tolerance: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= tolerance * max(abs(a), abs(b)) + 1e-9 * (tolerance > 0)


def _value(want: Any, got: Any, tolerance: float) -> str:
    if isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            return f"{len(want)} elements, {len(got)}"
        return next((text for a, b in zip(want, got, strict=True) if (text := _value(a, b, tolerance))), "")
    if isinstance(want, dict) and isinstance(got, dict):
        if [*want] != [*got]:
            return "other keys"
        return next((text for a, b in zip(want.values(), got.values(), strict=True) if (text := _value(a, b, tolerance))), "")
    if type(want) is not type(got):
        return f"{type(want).__name__}, {type(got).__name__}"
    if isinstance(want, bytes | str | None) and not isinstance(want, numpy.generic):
        return "" if want == got else f"{want!r}, {got!r}"[:200]
    one, two = numpy.asarray(want), numpy.asarray(got)
    if (one.shape, one.dtype) != (two.shape, two.dtype):
        return f"{one.dtype}{one.shape}, {two.dtype}{two.shape}"
    if one.dtype.kind not in "fc":
        return "" if numpy.array_equal(one, two) else "other elements"
    finite = numpy.isfinite(one)
    if not numpy.array_equal(finite, numpy.isfinite(two)) or not numpy.array_equal(one[~finite], two[~finite], equal_nan=True):
        return "other special values"
    largest = numpy.abs(one[finite]).max(initial=0)
    worst = numpy.abs(one[finite] - two[finite]).max(initial=0)
    return "" if worst <= tolerance * largest + 1e-12 * (tolerance > 0) else f"differs by {worst:.3g} of {largest:.3g}"


def _pixels(one: Any, two: Any, row: Mapping[str, Any]) -> str:
    if one.shape != two.shape:
        return f"{one.shape}, {two.shape}"
    share = float((numpy.abs(one.astype(int) - two.astype(int)) > GREY).any(axis=-1).mean())
    return "" if share <= row.get("pixels", PIXELS) else f"{share:.2%} of the pixels"


def _file(name: str, one: bytes, two: bytes, row: Mapping[str, Any]) -> str:
    import io

    if name.lower().endswith((".png", ".jpg", ".jpeg", ".bmp", ".tif", ".ppm")):
        from PIL import Image

        left, right = (numpy.array(Image.open(io.BytesIO(data)).convert("RGB")) for data in (one, two))
        return _pixels(left, right, row)
    if name.endswith(".npy"):
        return _value(numpy.load(io.BytesIO(one)), numpy.load(io.BytesIO(two)), row.get("tolerance", TOLERANCE))
    if name.endswith((".txt", ".csv", ".json", ".obj", ".xyz", ".dat")):
        return next(_text(one.decode(errors="replace"), two.decode(errors="replace"), row.get("tolerance", TOLERANCE)), "")
    return "other bytes"


# Running the list -----------------------------------------------------------------------------------------------------------------


def measured(row: Mapping[str, Any], folder: Path, pairs: int = 2, seconds: float = SECONDS) -> dict[str, Any]:
    """One program's row of the results: NumPy and lazynp in turn; lazynp's first run has an empty kernel cache."""
    place = checkout(row, folder)
    with tempfile.TemporaryDirectory() as temporary:
        cache = Path(temporary)
        runs: list[tuple[Run, Run]] = []
        for _ in range(pairs):
            runs.append((run(row, "numpy", place, cache, seconds), run(row, "lazynp", place, cache, seconds)))
            if runs[-1][0].error and not row.get("error"):
                break
    theirs, ours = [pair[0] for pair in runs], [pair[1] for pair in runs]
    broken = theirs[0].error if theirs[0].error and not row.get("error") else ""
    own = {text.partition(":")[0] for other in theirs[1:] for text in differences({**row, "tolerance": 0}, theirs[0], other)}
    if "tests" in theirs[0].found:
        said = theirs[0].found["tests"]
        own = {test for other in theirs[1:] for test, (word, _) in said.items() if other.found["tests"].get(test, ("",))[0] != word}
    found = [text for text in differences(row, theirs[0], ours[-1]) if not any(text.startswith(name) for name in own)]
    outcomes = [outcome for outcome, _ in theirs[0].found.get("tests", {}).values()]
    last, first = ours[-1], ours[0]
    result = {
        "name": row["name"],
        "repository": row["repository"],
        "commit": commit(place),
        "field": row["field"],
        "command": " ".join(command(row, "LIBRARY", "FILE")[5 + 1 :]).replace("--figures ", ""),
        "compared": row.get("compared") or ("the outcome of every test" if outcomes else "output, globals, figures, files"),
        "tolerance": row.get("tolerance", TOLERANCE),
        "reason": row.get("reason", ""),
        "unusable": broken,
        "unsteady": sorted(own),
        "tests": outcomes.count("passed"),
        "differences": found,
        "same": not broken and not found,
    }
    for name, pick in (("numpy", theirs), ("lazynp", ours)):
        result[name] = {
            "cpu": round(min(one.cpu for one in pick), 2),
            "wall": round(min(one.wall for one in pick), 2),
            "peak": round(min(one.peak for one in pick)),
        }
    result["lazynp"]["first"] = round(first.cpu, 2)
    result["ratio"] = round(result["lazynp"]["cpu"] / result["numpy"]["cpu"], 2)
    result["slow"] = result["ratio"] > SLOWER
    result["large"] = result["lazynp"]["peak"] > LARGER * result["numpy"]["peak"] + 64
    result["output"] = (last.output + last.errors)[-1500:] if found else ""
    return result


def record(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """Write rows into the results, in place of the same programs' old ones, in the list's order."""
    kept = {row["name"]: row for row in json.loads(target.read_text(encoding="utf-8"))["programs"]} if target.exists() else {}
    kept.update({row["name"]: {key: value for key, value in row.items() if key != "output"} for row in rows})
    order = [row["name"] for row in listed()]
    document = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "matplotlib")}
        | {"python": platform.python_version()},
        "programs": [kept[name] for name in order if name in kept],
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row of the table."""
    verdict = "NumPy cannot" if row["unusable"] else "same" if row["same"] else f"{len(row['differences'])} differ"
    compared = f"{row['tests']} tests" if row["tests"] else row["compared"]
    times = [f"{row['numpy']['cpu']:.1f}", f"{row['lazynp']['cpu']:.1f}", f"{row['ratio']:.2f}{' !' if row['slow'] else ''}"]
    return [row["name"], compared, verdict, *times, str(row["numpy"]["peak"]), f"{row['lazynp']['peak']}{' !' if row['large'] else ''}"]


def add_arguments(suites: Any) -> None:
    """What follows ``python -m conformance programs``."""
    parser: argparse.ArgumentParser = suites.add_parser("programs", help="public NumPy programs, by NumPy and by lazynp")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names of rows of conformance/programs.toml")
    parser.add_argument("--checkout", type=Path, required=True, help="a folder with clones, each named owner+name or name")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results are recorded (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=2, help="how often each is run by both (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the longest that one run may take (default: %(default)s)")


def main(options: argparse.Namespace) -> int:
    """Run, print, record; the exit code is 1 where something differs or NumPy cannot run a row."""
    rows = []
    for row in listed():
        if options.names and not any(name in row["name"] for name in options.names):
            continue
        try:
            result = measured(row, options.checkout, max(options.pairs, 1), options.seconds)
        except FileNotFoundError as error:
            sys.stderr.write(f"python -m conformance: {error}\n")
            return 2
        rows.append(result)
        sys.stderr.write(f"{'  '.join(cells(result))}\n")
        sys.stderr.write("".join(f"    {text[:400]}\n" for text in [*filter(None, [result["unusable"]]), *result["differences"][:12]]))
        record([result], options.json)
    tables.show(HEADINGS, [cells(row) for row in rows], left=HEADINGS[:3])
    return int(not all(row["same"] for row in rows))
