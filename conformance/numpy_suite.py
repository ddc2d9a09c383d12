"""NumPy's own tests, the ones its wheel ships, with ``np`` meaning lazynp.

In: names of test files.  Out: for each file which of the tests that NumPy itself passes lazynp passes too.  Promise: both libraries run
in the same way, a pytest process a file; a test that did not finish (the process died, hung, or could not import the file) counts as
failed; no test is treated specially but for the exclusions, which are data with a reason each.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).parent / "results" / "numpy.json"
EXCLUSIONS = Path(__file__).parent / "exclusions.toml"
NUMPY = Path(numpy.__file__).parent
MEMORY = "2 GB"  # tests that ask for more are skipped, as NumPy's own continuous integration does
SECONDS = 3600.0  # one file, on a machine that has other work too; single tests have a limit of their own
LIBRARIES = ("numpy", "lazynp")

# File -> the share of NumPy's passes that lazynp is to reach.
FILES: dict[str, float] = {
    **dict.fromkeys(
        [f"_core/tests/test_{name}.py" for name in (
            "numeric", "umath", "ufunc", "indexing", "shape_base", "einsum", "item_selection", "nep50_promotions",
        )]
        + [f"lib/tests/test_{name}.py" for name in (
            "shape_base", "function_base", "arraysetops", "index_tricks", "nanfunctions", "histograms", "stride_tricks", "twodim_base",
        )]
        + ["linalg/tests/test_linalg.py", "fft/tests/test_pocketfft.py"],
        0.9,
    ),
    **dict.fromkeys(["_core/tests/test_multiarray.py", "_core/tests/test_scalarmath.py"], 0.8),
    **dict.fromkeys(
        [f"random/tests/test_{name}.py" for name in (
            "direct", "generator_mt19937", "generator_mt19937_regressions", "random", "randomstate", "randomstate_regression",
            "regression", "seed_sequence", "smoke",
        )],
        0.8,
    ),
}  # fmt: skip


INSTALLED = sysconfig.get_path("purelib") + os.sep  # which a result does not name


class MissingTests(Exception):  # noqa: N818 - says what is missing
    """The installed NumPy came without its tests, or without a file that was asked for."""


@dataclass
class Outcomes:
    """What one library did in one file."""

    collected: list[str] = field(default_factory=list)
    outcome: dict[str, str] = field(default_factory=dict)
    reason: dict[str, str] = field(default_factory=dict)
    crash: str = ""
    work: dict[str, int] = field(default_factory=dict)  # forced values, schedules made and used, kernels run, NumPy's answers

    def failed(self, test: str) -> str:
        """Why a test that NumPy passes counts as failed; empty where it passed."""
        outcome = self.outcome.get(test)
        if outcome in ("passed", "xfailed"):
            return ""
        if outcome is None:
            return self.crash or "not collected"
        return self.reason.get(test) or outcome


def found(names: Sequence[str]) -> list[str]:
    """The paths, below NumPy's, of test files that are asked for as ``test_numeric``, ``lib/test_shape_base`` or by path.

    Raises
    ------
    MissingTests
        Where there is none.
    """
    if not names:
        names = list(FILES)
    paths: dict[str, None] = {}
    for name in names:
        stem = name.removesuffix(".py").replace("/tests/", "/")
        package, _, last = stem.rpartition("/")
        matches = sorted(
            path.relative_to(NUMPY).as_posix() for path in NUMPY.glob(f"{package or '**'}/tests/{last.removeprefix('numpy/')}.py")
        )
        if not matches:
            reason = f"no test file {name!r}" if any(NUMPY.glob("*/tests/test_*.py")) else "this NumPy was installed without its tests"
            raise MissingTests(f"{reason} in {NUMPY} (the wheels on PyPI have them)")
        paths.update(dict.fromkeys(matches))
    return list(paths)


def outcomes(lines: Iterable[str], ending: str) -> Outcomes:
    """The events of one pytest process; ``ending`` says how it ended, where that was not the usual way."""
    result, last, error = Outcomes(), "", ""
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue  # cut off in the middle of a line
        if "collected" in event:
            result.collected = [short(test) for test in event["collected"]]
        elif "started" in event:
            last = short(event["started"])
        elif "error" in event:
            error = event["error"]
        elif "work" in event:
            result.work = event["work"]
        elif result.outcome.get(short(event["test"])) in (None, "passed"):
            test = short(event["test"])
            result.outcome[test] = event["outcome"]
            result.reason[test] = event["reason"].replace(INSTALLED, "")
    if error:
        result.crash = f"the file could not be collected: {error}"
    elif ending:
        result.crash = f"{ending} in {last}" if last else ending
    return result


def short(test: str) -> str:
    """A test's id without its file."""
    return test.partition("::")[2]


def run_file(path: str, library: str, seconds: float = SECONDS) -> Outcomes:
    """Run one file in a process of its own."""
    return run_pytest(
        ["-c", os.devnull, "--rootdir", str(NUMPY.parent), str(NUMPY / path)],
        {"CONFORMANCE_LIBRARY": library, "NPY_AVAILABLE_MEM": MEMORY},
        seconds,
    )


def run_pytest(arguments: Sequence[str], variables: Mapping[str, str], seconds: float) -> Outcomes:
    """Run pytest in a process of its own, in an empty directory, and say what became of each test."""
    with tempfile.TemporaryDirectory() as place:
        events, output = Path(place, "events"), Path(place, "output")
        events.touch()
        environment = {
            **os.environ,
            **variables,
            "CONFORMANCE_EVENTS": str(events),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        command = [sys.executable, "-P", "-m", "pytest", "-q", "--tb=short", "-p", "conformance.plugin", "-p", "no:cacheprovider"]
        command += ["-p", "no:xdist", *arguments]
        with output.open("wb") as sink:
            process = subprocess.Popen(command, cwd=place, env=environment, stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            try:
                code: int | None = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                process.kill()
                process.wait()
        if code is None:
            ending = f"timeout of {seconds:g} s"
        elif code in (0, 1, 2, 5):
            ending = ""
        else:
            lines = output.read_text(errors="replace").strip().splitlines()
            ending = f"the interpreter died (exit code {code}{''.join(': ' + line for line in lines[-1:])})"
        return outcomes(events.read_text(encoding="utf-8").splitlines(), ending)


def exclusions(path: str) -> dict[str, str]:
    """Test id, or the beginning of one -> why it is not counted."""
    return dict(tomllib.loads(EXCLUSIONS.read_text(encoding="utf-8")).get(path, {}))


def is_excluded(test: str, excluded: dict[str, str]) -> bool:
    """Whether a test, its function or its class is listed."""
    return any(test == key or test.startswith((f"{key}[", f"{key}::")) for key in excluded)


def counterparts(theirs: Sequence[str], ours: Sequence[str]) -> dict[str, str]:
    """NumPy's test id -> lazynp's: the same one, or the one in its place where a parameter's text differs (``numpy.random``)."""
    found = {test: test for test in set(theirs) & set(ours)}
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for side, tests in enumerate((theirs, ours)):
        for test in tests:
            if test not in found:
                groups.setdefault(test.partition("[")[0], ([], []))[side].append(test)
    for left, right in groups.values():
        if len(left) == len(right):
            found.update(zip(left, right, strict=True))
    return found


def compared(path: str, theirs: Outcomes, ours: Outcomes) -> dict[str, Any]:
    """One file's row of the results."""
    passing = [test for test in theirs.collected if theirs.outcome.get(test) == "passed"]
    excluded = exclusions(path)
    counted = [test for test in passing if not is_excluded(test, excluded)]
    same = counterparts(theirs.collected, ours.collected)
    failures = {test: reason for test in counted if (reason := ours.failed(same.get(test, test)))}
    return {
        "file": path,
        "numpy_passes": len(passing),
        "excluded": len(passing) - len(counted),
        "counted": len(counted),
        "passed": len(counted) - len(failures),
        "goal": FILES.get(path),
        "crash": ours.crash,
        "failures": failures,
    }


def run(paths: Sequence[str], jobs: int, report: Callable[[str, str, int], None]) -> Iterator[dict[str, Any]]:
    """The rows of the results, as they come; ``report`` is told (file, library, tests passed) as the processes end.

    Raises
    ------
    MissingTests
        If nothing of a file runs with NumPy itself: something that its tests need is not installed.
    """
    done: dict[tuple[str, str], Outcomes] = {}
    with ThreadPoolExecutor(jobs) as pool:
        pending: dict[Future[Outcomes], tuple[str, str]] = {
            pool.submit(run_file, path, library): (path, library) for path in paths for library in LIBRARIES
        }
        for future in as_completed(pending):
            path, library = pending[future]
            done[path, library] = future.result()
            if library == "numpy" and not done[path, library].outcome:
                pool.shutdown(cancel_futures=True)
                raise MissingTests(f"{path} with NumPy: {done[path, library].crash}")
            report(path, library, list(done[path, library].outcome.values()).count("passed"))
            if all((path, other) in done for other in LIBRARIES):
                yield compared(path, done[path, "numpy"], done[path, "lazynp"])


def record(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """Write rows into the results, in place of the same files' old ones."""
    kept = {row["file"]: row for row in json.loads(target.read_text(encoding="utf-8"))["files"]} if target.exists() else {}
    kept.update({row["file"]: row for row in rows})
    known = list(FILES)
    document = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in ("numpy", "pytest")} | {"python": platform.python_version()},
        "files": sorted(kept.values(), key=lambda row: (known.index(row["file"]) if row["file"] in known else len(known), row["file"])),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
