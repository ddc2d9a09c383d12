"""SciPy's own array-API tests, the ones its wheel ships, with lazynp as the array namespace.

In: names of SciPy's parts (``stats``, ``signal``, ...).  Out: for each part which tests ran, and of each that failed the message and the
cause.  Promise: a pytest process a file, with ``lazynp.testing.scipy`` loaded; a test that did not finish counts as failed; what SciPy
marks as not for array-API backends, or as slow, is skipped by SciPy itself, and counted by reason; nothing else is left out.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from conformance import tables
from conformance.numpy_suite import SECONDS, MissingTests, Outcomes, run_pytest

RESULTS = Path(__file__).parent / "results" / "scipy.json"
CAUSES = Path(__file__).parent / "scipy_causes.toml"
PARTS = (
    "special", "stats", "signal", "ndimage", "cluster", "fft", "integrate", "interpolate", "optimize", "spatial", "differentiate",
    "constants",
)  # fmt: skip
PACKAGES = ("numpy", "scipy", "pytest")
COUNTS = ("tests", "run", "passed", "failed", "xfailed", "skipped")
HEADINGS = ("part", "tests", "run", "passed", "failed", "expected failures", "skipped", "share")
GOAL = 0.97  # of the tests that run
UNKNOWN = "not looked into"
_USES_NAMESPACES = re.compile(r"\bxp\b|array_api_backends")

# The slice for continuous integration: every part, in less than ten minutes on two cores.
SLICES: dict[str, tuple[str, ...]] = {
    "ci": (
        "cluster/tests/test_hierarchy.py", "cluster/tests/test_vq.py", "constants/tests/test_constants.py",
        "differentiate/tests/test_differentiate.py", "fft/tests/test_basic.py", "fft/tests/test_helper.py",
        "integrate/tests/test_quadrature.py", "integrate/tests/test_tanhsinh.py", "interpolate/tests/test_bsplines.py",
        "interpolate/tests/test_rbfinterp.py", "ndimage/tests/test_measurements.py", "ndimage/tests/test_morphology.py",
        "optimize/tests/test_chandrupatla.py", "signal/tests/test_filter_design.py", "signal/tests/test_upfirdn.py",
        "signal/tests/test_windows.py", "spatial/transform/tests/test_rotation.py", "special/tests/test_logsumexp.py",
        "special/tests/test_support_alternative_backends.py", "stats/tests/test_correlation.py", "stats/tests/test_device_dtype.py",
        "stats/tests/test_hypotests.py", "stats/tests/test_morestats.py", "stats/tests/test_quantile.py",
    ),
}  # fmt: skip


def root() -> Path:
    """Where SciPy is installed (it is not imported here: the tests' processes must set their environment first).

    Raises
    ------
    MissingTests
        Where there is none.
    """
    spec = importlib.util.find_spec("scipy")
    if spec is None or not spec.submodule_search_locations:
        raise MissingTests("SciPy is not installed")
    return Path(spec.submodule_search_locations[0])


def found(parts: Sequence[str], name: str | None = None) -> dict[str, list[str]]:
    """Part -> the paths, below SciPy's, of its test files that use array namespaces; of a slice only, where one is named.

    Raises
    ------
    MissingTests
        Where SciPy has no such part, or came without its tests.
    """
    place, paths = root(), {}
    for part in parts or PARTS:
        files = (path for path in sorted(place.glob(f"{part}/**/tests/test_*.py")) if _USES_NAMESPACES.search(path.read_text("utf-8")))
        paths[part] = [path.relative_to(place).as_posix() for path in files]
        if not paths[part]:
            reason = "was installed without its tests" if (place / part).is_dir() else f"has no part {part!r}"
            raise MissingTests(f"SciPy in {place} {reason} (the wheels on PyPI have them)")
        if name is not None:
            paths[part] = [path for path in paths[part] if path in SLICES[name]]
    return {part: files for part, files in paths.items() if files}


def run_file(path: str, seconds: float = SECONDS) -> Outcomes:
    """Run one file in a process of its own."""
    place = root()
    variables = {"SCIPY_ARRAY_API": "1", "CONFORMANCE_LIBRARY": ""}
    arguments = ["-c", os.devnull, "--rootdir", str(place.parent), "-p", "lazynp.testing.scipy", str(place / path)]
    return run_pytest(arguments, variables, seconds)


def run(paths: dict[str, list[str]], jobs: int, report: Callable[[str, str, Outcomes], None]) -> Iterator[tuple[str, dict[str, Outcomes]]]:
    """Part and its files' outcomes, as they come; ``report`` is told (part, file, outcomes) as the processes end."""
    done: dict[str, dict[str, Outcomes]] = {part: {} for part in paths}
    with ThreadPoolExecutor(jobs) as pool:
        pending = {pool.submit(run_file, path): (part, path) for part, files in paths.items() for path in files}
        for future in as_completed(pending):
            part, path = pending[future]
            done[part][path] = future.result()
            report(part, path, done[part][path])
            if len(done[part]) == len(paths[part]):
                yield part, done[part]


def causes() -> list[dict[str, str]]:
    """What is known of failures: patterns of ``test`` and of ``message``, and the ``cause`` in words; the first that fits counts."""
    return list(tomllib.loads(CAUSES.read_text(encoding="utf-8")).get("known", []))


def cause_of(test: str, message: str, known: Sequence[dict[str, str]]) -> str:
    """Why a test fails."""
    for row in known:
        if re.search(row.get("test", ""), test) and re.search(row.get("message", ""), message):
            return row["cause"]
    return UNKNOWN


def summary(part: str, files: dict[str, Outcomes]) -> dict[str, Any]:
    """One part's row of the results."""
    known = causes()
    counts: Counter[str] = Counter()
    skips: Counter[str] = Counter()
    failures = []
    for path, result in sorted(files.items()):
        for test in result.collected:
            outcome = result.outcome.get(test)
            counts["xfailed" if outcome == "xfailed" else outcome if outcome in ("passed", "skipped") else "failed"] += 1
            if outcome == "skipped":
                skips[result.reason[test]] += 1
            elif message := result.failed(test):
                name = f"{path}::{test}"
                failures.append({"test": name, "message": message, "cause": cause_of(name, message, known)})
    return {
        "part": part,
        "files": sorted(files),
        "tests": counts.total(),
        "run": counts["passed"] + counts["failed"],
        **{outcome: counts[outcome] for outcome in ("passed", "failed", "xfailed", "skipped")},
        "skips": dict(skips.most_common()),
        "crashes": {path: result.crash for path, result in sorted(files.items()) if result.crash},
        "causes": dict(Counter(failure["cause"] for failure in failures).most_common()),
        "work": {name: sum(result.work.get(name, 0) for result in files.values()) for result in files.values() for name in result.work},
        "failures": failures,
    }


def regressions(rows: Sequence[dict[str, Any]], target: Path) -> list[str]:
    """Tests that fail in ``rows`` and are not known to fail from the recorded results."""
    document = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {"parts": []}
    known = {failure["test"] for row in document["parts"] for failure in row["failures"]}
    failures = [failure for row in rows for failure in row["failures"] if failure["test"] not in known]
    new = [f"{failure['test']}: {failure['message']}" for failure in failures]
    return new + [f"{path}: {text}" for row in rows for path, text in row["crashes"].items()]


def record(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """Write rows into the results, in place of the same parts' old ones."""
    kept = {row["part"]: row for row in json.loads(target.read_text(encoding="utf-8"))["parts"]} if target.exists() else {}
    kept.update({row["part"]: row for row in rows})
    parts = [kept[part] for part in PARTS if part in kept]
    document = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "total": total(parts),
        "parts": parts,
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def total(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The sums of all rows."""
    sums: dict[str, Any] = {name: sum(row[name] for row in rows) for name in COUNTS}
    causes: Counter[str] = Counter()
    for row in rows:
        causes.update(row["causes"])
    return sums | {"causes": dict(causes.most_common())}


def cells(row: dict[str, Any]) -> list[str]:
    """A row of the table."""
    return [row["part"], *[str(row[name]) for name in COUNTS], f"{row['passed'] / row['run']:.2%}" if row["run"] else "-"]


def add_arguments(suites: Any) -> None:
    """What follows ``python -m conformance scipy``."""
    parser: argparse.ArgumentParser = suites.add_parser("scipy", help="the array-API tests that SciPy's wheel ships, on lazynp")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {' '.join(PARTS)} (default: all)")
    parser.add_argument("--slice", choices=SLICES, help="a fixed choice of files; compared with the recorded results, not recorded")
    parser.add_argument("--check", action="store_true", help="compare with the recorded results, record nothing")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results are recorded (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time (default: %(default)s)")


def command(options: argparse.Namespace) -> int:
    """Run, print, record; the exit code is 2 where the tests are missing.

    It is 1 where less than ``GOAL`` of the tests that run pass, or, when comparing, where a test fails that is not recorded as failing.
    """
    check = options.check or options.slice is not None
    try:
        paths = found(options.parts, options.slice)
    except MissingTests as error:
        sys.stderr.write(f"python -m conformance: {error}\n")
        return 2
    done = 0

    def report(part: str, path: str, result: Outcomes) -> None:
        nonlocal done
        done += 1
        passed = list(result.outcome.values()).count("passed")
        sys.stderr.write(f"[{done}/{sum(map(len, paths.values()))}] {path}: {passed} of {len(result.collected)} passed\n")

    rows = []
    for part, files in run(paths, max(options.jobs, 1), report):
        rows.append(summary(part, files))
        if not check:
            record(rows[-1:], options.json)
    rows.sort(key=lambda row: PARTS.index(row["part"]))
    sums = total(rows)
    tables.show(HEADINGS, [cells(row) for row in (*rows, {"part": "all", **sums})], left=("part",))
    for cause, count in sums["causes"].items():
        sys.stdout.write(f"{count} failed: {cause}\n")
    if check:
        worse = regressions(rows, options.json)
        sys.stdout.write("".join(f"{line}\n" for line in [f"worse than recorded: {len(worse)}", *worse]))
        return int(bool(worse))
    sys.stdout.write(f"recorded in {options.json}\n")
    return int(sums["passed"] < GOAL * sums["run"])
