"""scikit-learn's own array-API tests, the ones its wheel ships, with lazynp as the array library.

In: names of test files.  Out: for each file how many tests passed, why each other one did not, and which tests were skipped although they
run with array-api-strict.  Promise: a pytest process a file and library, with ``lazynp.testing.sklearn`` loaded for both; a test that did
not finish counts as failed; nothing is left out.
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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from conformance import tables
from conformance.numpy_suite import SECONDS, MissingTests, Outcomes, run_pytest

RESULTS = Path(__file__).parent / "results" / "sklearn.json"
SELECTED = "array_api or namespace or lazynp"  # lazynp: tests that have a library among their parameters only
LIBRARIES = ("array_api_strict", "lazynp")
COUNTS = ("passed", "failed", "skipped", "xfailed")
PACKAGES = ("scikit-learn", "scipy", "numpy", "array-api-strict", "pytest")
_MENTIONS = re.compile("array_api|namespace")

# What a test's id calls the same thing for the two libraries.
_IDS = (
    ("array_api_strict-CPU_DEVICE-float64", "lazynp-cpu-float64"),
    ("array_api_strict-device1-float32", "lazynp-cpu-float32"),
    ("array_namespace=array_api_strict,device_name=CPU_DEVICE", "array_namespace=lazynp,device_name=cpu"),
    ("array_namespace=array_api_strict,device_name=device1", "array_namespace=lazynp,device_name=cpu"),
    ("array_api_strict", "lazynp"),
)


def root() -> Path:
    """Where scikit-learn is installed (it is not imported here: the tests' processes must set their environment first).

    Raises
    ------
    MissingTests
        Where there is none, or nothing to compare with.
    """
    for module in ("sklearn", "array_api_strict"):
        if importlib.util.find_spec(module) is None:
            raise MissingTests(f"{module} is not installed")
    spec = importlib.util.find_spec("sklearn")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def found(names: Sequence[str]) -> list[str]:
    """The paths, below scikit-learn's, of test files that mention array namespaces: all, or those asked for as ``test_pca`` or by path.

    Raises
    ------
    MissingTests
        Where there is none.
    """
    place = root()
    files = [path for path in sorted(place.rglob("tests/test_*.py")) if _MENTIONS.search(path.read_text(encoding="utf-8"))]
    paths = [path.relative_to(place).as_posix() for path in files]
    if not paths:
        raise MissingTests(f"scikit-learn in {place} was installed without its tests (the wheels on PyPI have them)")
    wanted: dict[str, None] = {}
    for name in names or paths:
        stem = name.removesuffix(".py")
        matches = [path for path in paths if f"/{path}".endswith(f"/{stem}.py")]
        if not matches:
            raise MissingTests(f"no array-API tests in a file {name!r} in {place}")
        wanted.update(dict.fromkeys(matches))
    return list(wanted)


def run_file(path: str, library: str, seconds: float = SECONDS) -> Outcomes:
    """Run one file's array-API tests in a process of its own."""
    place = root()
    variables = {"SCIPY_ARRAY_API": "1", "CONFORMANCE_LIBRARY": "", "LAZYNP_SKLEARN_NAMESPACE": library}
    arguments = ["-c", os.devnull, "--rootdir", str(place.parent), "-p", "lazynp.testing.sklearn", "-k", SELECTED, str(place / path)]
    return run_pytest(arguments, variables, seconds)


def counterparts(tests: Sequence[str]) -> dict[str, str]:
    """Ids that array-api-strict's tests have, as lazynp's are called -> as they are."""
    same = {}
    for test in tests:
        name = test
        for theirs, ours in _IDS:
            name = name.replace(theirs, ours)
        same[name] = test
    return same


def compared(path: str, theirs: Outcomes, ours: Outcomes) -> dict[str, Any]:
    """One file's row of the results."""
    same = counterparts(theirs.collected)
    strict = {test: theirs.outcome.get(same.get(test, ""), "not collected") for test in ours.collected}
    skips = {test: ours.reason[test] for test in ours.collected if ours.outcome.get(test) == "skipped"}
    failures = {
        test: {"reason": reason, "array_api_strict": strict[test]}
        for test in ours.collected
        if test not in skips and (reason := ours.failed(test))
    }
    expected = sum(ours.outcome.get(test) == "xfailed" for test in ours.collected)
    return {
        "file": path,
        "passed": len(ours.collected) - len(failures) - len(skips) - expected,
        "failed": len(failures),
        "skipped": len(skips),
        "xfailed": expected,
        "array_api_strict": {outcome: list(theirs.outcome.values()).count(outcome) for outcome in COUNTS},
        "crash": ours.crash,
        "failures": failures,
        "skips": dict(Counter(skips.values())),
        "new_skips": {test: reason for test, reason in skips.items() if strict[test] != "skipped"},
        "work": ours.work,
    }


def run(
    paths: Sequence[str], libraries: Sequence[str], jobs: int, report: Callable[[str, str, int], None]
) -> Iterator[dict[str, Any]]:
    """The rows of the results, as they come; ``report`` is told (file, library, tests passed) as the processes end."""
    done: dict[str, dict[str, Outcomes]] = {path: {} for path in paths}
    with ThreadPoolExecutor(jobs) as pool:
        pending: dict[Future[Outcomes], tuple[str, str]] = {
            pool.submit(run_file, path, library): (path, library) for path in paths for library in libraries
        }
        for future in as_completed(pending):
            path, library = pending[future]
            found = done[path]
            found[library] = future.result()
            report(path, library, list(found[library].outcome.values()).count("passed"))
            if len(found) == len(libraries):
                yield compared(path, found.get("array_api_strict", Outcomes()), found["lazynp"])


def total(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The sums of all rows."""
    sums: dict[str, Any] = {name: sum(row[name] for row in rows) for name in COUNTS}
    sums["array_api_strict"] = {name: sum(row["array_api_strict"][name] for row in rows) for name in COUNTS}
    sums["new_skips"] = sum(len(row["new_skips"]) for row in rows)
    sums["work"] = {name: sum(row["work"].get(name, 0) for row in rows) for name in rows[0]["work"]} if rows else {}
    return sums


def regressions(rows: Sequence[dict[str, Any]], target: Path) -> list[str]:
    """What fails or is skipped in ``rows`` and does not in the recorded results."""
    known = {row["file"]: row for row in json.loads(target.read_text(encoding="utf-8"))["files"]} if target.exists() else {}
    found = []
    for row in rows:
        before = known.get(row["file"], {"failures": {}, "skips": {}})
        failures = {test: failure for test, failure in row["failures"].items() if test not in before["failures"]}
        found += [f"{row['file']}::{test}: {failure['reason']}" for test, failure in failures.items()]
        found += [
            f"{row['file']}: {count} skipped: {reason}" for reason, count in row["skips"].items() if count > before["skips"].get(reason, 0)
        ]
        found += [f"{row['file']}: {row['crash']}"] if row["crash"] else []
    return found


def record(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """Write rows into the results, in place of the same files' old ones; files without array-API tests are not worth a row."""
    kept = {row["file"]: row for row in json.loads(target.read_text(encoding="utf-8"))["files"]} if target.exists() else {}
    kept.update({row["file"]: row for row in rows if any(row[name] for name in COUNTS) or row["crash"]})
    files = [kept[name] for name in sorted(kept)]
    document = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "selected": SELECTED,
        "total": total(files),
        "files": files,
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


HEADINGS = ("file", "passed", "failed", "skipped", "new skips", "expected failures", "array-api-strict passes")


def cells(row: dict[str, Any]) -> list[str]:
    """A row of the table."""
    new = row["new_skips"] if isinstance(row["new_skips"], int) else len(row["new_skips"])
    counts = (row["passed"], row["failed"], row["skipped"], new, row["xfailed"], row["array_api_strict"]["passed"])
    return [row["file"], *map(str, counts)]


def add_arguments(suites: Any) -> None:
    """What follows ``python -m conformance sklearn``."""
    parser: argparse.ArgumentParser = suites.add_parser("sklearn", help="the array-API tests that scikit-learn's wheel ships, on lazynp")
    parser.add_argument("files", nargs="*", metavar="FILE", help="test_pca, metrics/tests/test_common, ... (default: all)")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results are recorded (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="run lazynp only, compare with the recorded results, record nothing")


def command(options: argparse.Namespace) -> int:
    """Run, print, record; the exit code is 2 where the tests are missing, 1 where one fails that should not.

    That is: any that fails or is skipped only with lazynp; with ``--check`` what is worse than the recorded results.
    """
    try:
        paths = found(options.files)
    except MissingTests as error:
        sys.stderr.write(f"python -m conformance: {error}\n")
        return 2
    libraries = LIBRARIES[-1:] if options.check else LIBRARIES
    done = 0

    def report(path: str, library: str, passed: int) -> None:
        nonlocal done
        done += 1
        sys.stderr.write(f"[{done}/{len(paths) * len(libraries)}] {path}: {passed} passed with {library}\n")

    rows = []
    for row in run(paths, libraries, max(options.jobs, 1), report):
        rows.append(row)
        if not options.check:
            record([row], options.json)
    rows.sort(key=lambda row: paths.index(row["file"]))
    sums = total(rows)
    if options.check:
        worse = regressions(rows, options.json)
        counts = ", ".join(f"{sums[name]} {name}" for name in COUNTS)
        sys.stdout.write(f"{counts}; worse than recorded: {len(worse)}\n")
        sys.stdout.write("".join(f"{line}\n" for line in worse))
        return int(bool(worse))
    tables.show(HEADINGS, [cells(row) for row in (*rows, {"file": "all", **sums})], left=("file",))
    for row in rows:
        for test, failure in row["failures"].items():
            sys.stdout.write(f"{row['file']}::{test}: {failure['reason']}\n")
    sys.stdout.write(f"{', '.join(f'{name} {count}' for name, count in sums['work'].items())}\nrecorded in {options.json}\n")
    return int(bool(sums["failed"] or sums["new_skips"]))
