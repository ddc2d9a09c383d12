"""The official tests of the array API standard, data-apis/array-api-tests, with lazynp as the namespace.

In: a checkout, or a place to make one.  Out: for each test whether it passed, and whether ``conflicts.md`` explains it if it did not.
Promise: one pinned commit, a pytest process a file, no list of tests to skip or to expect failures of; tests that the authors mark to be
skipped run, too; a test that did not finish counts as failed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from conformance import conflicts, tables
from conformance.numpy_suite import MissingTests, Outcomes, run_pytest
from lazynp import __array_api_version__, lazynp_version
from lazynp.backends.common.disk_cache import default_directory
from lazynp.values import config

REPOSITORY = "https://github.com/data-apis/array-api-tests"
COMMIT = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
RESULTS = Path(__file__).parent / "results" / "array_api.json"
NEEDED = {"hypothesis": "hypothesis", "ndindex": "ndindex", "pytest_jsonreport": "pytest-json-report"}
PACKAGES = ("numpy", "pytest", "hypothesis", "ndindex")
EXAMPLES = 100
MISSING = 3  # exit code where the suite, or what it needs, is not there
SECONDS = 4 * 3600.0  # one file
SECONDS_EXAMPLE = 3.0  # the processor's time of one test, for each example
SETTINGS = ("examples", "seed", "backend", "tier", "fallback")


# The suite --------------------------------------------------------------------------------------------------------------------


def suite(given: Path | None, clone: Callable[[Path], None] | None = None) -> Path:
    """The checkout: the given one, else one made before, else a new one.

    Raises
    ------
    MissingTests
        Where there is none, or something that it needs is not installed.
    """
    absent = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if absent:
        raise MissingTests(f"the suite needs {', '.join(absent)}: pip install {' '.join(absent)}")
    if given is not None:
        if not _is_suite(given):
            raise MissingTests(f"{given} is no checkout of {REPOSITORY} with its submodule array-api")
        return given.resolve()
    cache = default_directory()
    if cache is None:
        raise MissingTests("there is no directory to clone the suite into; name a checkout with --suite PATH")
    place = Path(cache, f"array-api-tests-{COMMIT[:12]}")
    if not _is_suite(place):
        (clone or _clone)(place)
    return place


def _is_suite(place: Path) -> bool:
    return (place / "array_api_tests").is_dir() and any(place.glob("array-api/src/array_api_stubs/*"))


def _clone(place: Path) -> None:
    """A checkout of the pinned commit at ``place``."""
    unfinished = place.with_name(place.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    sys.stderr.write(f"cloning {REPOSITORY} into {place}\n")
    git = ["git", "-c", "advice.detachedHead=false"]
    commands = [
        [*git, "clone", "--quiet", "--no-checkout", REPOSITORY, str(unfinished)],
        [*git, "-C", str(unfinished), "checkout", "--quiet", COMMIT],
        [*git, "-C", str(unfinished), "submodule", "update", "--quiet", "--init"],
    ]
    try:
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise MissingTests(
            f"the suite could not be cloned ({lines[-1] if lines else error}); name a checkout of {REPOSITORY} with --suite PATH"
        ) from error


def commit(place: Path) -> str:
    """The commit that a checkout is at; empty where it does not say."""
    try:
        found = subprocess.run(["git", "-C", str(place), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return found.stdout.strip()


# Running ----------------------------------------------------------------------------------------------------------------------


def run_file(place: Path, name: str, examples: int, seed: int) -> Outcomes:
    """One file of the suite in a process of its own."""
    variables = {
        **{name: "" for name in os.environ if name.startswith("ARRAY_API_TESTS_")},
        "ARRAY_API_TESTS_MODULE": "lazynp",
        "ARRAY_API_TESTS_VERSION": __array_api_version__,
        "CONFORMANCE_LIBRARY": "",
        "CONFORMANCE_SECONDS": str(max(60.0, SECONDS_EXAMPLE * examples)),
    }
    arguments = ["-c", str(place / "pytest.ini"), "--rootdir", str(place), "-p", "conformance.array_api_plugin"]
    arguments += ["--skips-file", os.devnull, "--xfails-file", os.devnull]
    arguments += ["--max-examples", str(examples), "--disable-deadline", f"--hypothesis-seed={seed}"]
    return run_pytest([*arguments, str(place / "array_api_tests" / name)], variables, SECONDS)


def run(place: Path, examples: int, seed: int, jobs: int, report: Callable[[str, Outcomes], None]) -> dict[str, Outcomes]:
    """The outcomes of all files; ``report`` is told of each as its process ends."""
    names = sorted(path.name for path in (place / "array_api_tests").glob("test_*.py"))
    # The longest first.
    names.sort(key=lambda name: -(place / "array_api_tests" / name).stat().st_size)
    done: dict[str, Outcomes] = {}
    with ThreadPoolExecutor(jobs) as pool:
        pending = {pool.submit(run_file, place, name, examples, seed): name for name in names}
        for future in as_completed(pending):
            name = pending[future]
            done[name] = future.result()
            report(name, done[name])
    return dict(sorted(done.items()))


def tests(done: dict[str, Outcomes]) -> Iterator[tuple[str, str, str]]:
    """(test, outcome, reason), of all tests; files that could not be collected are one failed test."""
    for name, result in done.items():
        for test in result.collected:
            outcome = result.outcome.get(test)
            reason = "" if outcome in ("passed", "skipped") else result.failed(test) or "expected to fail"
            yield f"{name}::{test}", "failed" if reason else str(outcome), result.reason.get(test, "") if outcome == "skipped" else reason
        if not result.collected:
            yield name, "failed", result.crash or "no tests"


# Results ----------------------------------------------------------------------------------------------------------------------


def summary(done: dict[str, Outcomes], examples: int, seed: int) -> dict[str, Any]:
    """One run's row of the results."""
    counts: Counter[str] = Counter(outcome for _, outcome, _ in tests(done))
    failures = {test: reason for test, outcome, reason in tests(done) if outcome == "failed"}
    work: Counter[str] = Counter()
    for result in done.values():
        work.update(result.work)
    return {
        "examples": examples,
        "seed": seed,
        "backend": config.backend or "llvm",
        "tier": config.tier,
        "fallback": config.fallback,
        "tests": counts.total(),
        **{outcome: counts[outcome] for outcome in ("passed", "failed", "skipped")},
        "unexplained": sorted(set(failures) - set(conflicts.tests())),
        "work": dict(work),
        "failures": failures,
    }


def by_file(done: dict[str, Outcomes]) -> dict[str, dict[str, str]]:
    """File -> test -> outcome."""
    found: dict[str, dict[str, str]] = {name: {} for name in done}
    for test, outcome, _ in tests(done):
        name, _, short = test.partition("::")
        found[name][short] = outcome
    return found


def record(row: dict[str, Any], outcomes: dict[str, dict[str, str]], at: str, target: Path) -> None:
    """Write a run into the results, in place of an older one of the same settings; the outcomes of single tests are the last run's."""
    runs = json.loads(target.read_text(encoding="utf-8"))["runs"] if target.exists() else []
    same = {tuple(run[name] for name in SETTINGS): run for run in runs}
    same[tuple(row[name] for name in SETTINGS)] = row
    document = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "standard": __array_api_version__,
        "suite": {"repository": REPOSITORY, "commit": at},
        "versions": {
            "lazynp": lazynp_version,
            **{name: importlib.metadata.version(name) for name in PACKAGES},
            "python": platform.python_version(),
        },
        "runs": [same[key] for key in sorted(same)],
        "tests": outcomes,
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


HEADINGS = ("file", "tests", "passed", "failed", "in conflicts.md", "skipped")


def show(outcomes: dict[str, dict[str, str]]) -> None:
    """The table of one run."""
    explained = conflicts.tests()
    lines = []
    for name, found in outcomes.items():
        known = sum(outcome == "failed" and f"{name}::{test}" in explained for test, outcome in found.items())
        counts = Counter(found.values())
        lines.append([name, len(found), counts["passed"], counts["failed"], known, counts["skipped"]])
    total = ["all", *[sum(column) for column in list(zip(*lines, strict=True))[1:]]]
    tables.show(HEADINGS, [[str(cell) for cell in line] for line in [*lines, total]], left=("file",))


# The command --------------------------------------------------------------------------------------------------------------------


def add_arguments(suites: Any) -> None:
    """The command ``array-api`` and its options."""
    parser: argparse.ArgumentParser = suites.add_parser("array-api", help="the official tests of the array API standard")
    checkout = "a checkout with its submodule (default: one in the cache, or a clone)"
    parser.add_argument("--suite", dest="place", type=Path, metavar="PATH", help=checkout)
    parser.add_argument("--max-examples", type=int, default=EXAMPLES, help="Hypothesis' examples for a test (default: %(default)s)")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="Hypothesis' seeds, a run each (default: 0)")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results are recorded (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time (default: %(default)s)")


def command(options: argparse.Namespace) -> int:
    """Run the suite; the exit code is 0 where every failure is in ``conflicts.md``, 1 where one is not, 3 where the suite is missing."""
    try:
        place = suite(options.place)
    except MissingTests as error:
        sys.stderr.write(f"python -m conformance: the array API suite did not run: {error}\n")
        return MISSING
    at = commit(place)
    if at != COMMIT:
        sys.stderr.write(f"{place} is at {at or 'an unknown commit'}, not at {COMMIT}\n")
    code = 0
    for seed in options.seed:
        files = len(list((place / "array_api_tests").glob("test_*.py")))
        count = 0

        def report(name: str, result: Outcomes, files: int = files) -> None:
            nonlocal count
            count += 1
            passed = list(result.outcome.values()).count("passed")
            crash = result.crash and f", {result.crash}"
            sys.stderr.write(f"[{count}/{files}] {name}: {passed} of {len(result.collected)} passed{crash}\n")

        done = run(place, options.max_examples, seed, max(options.jobs, 1), report)
        row, outcomes = summary(done, options.max_examples, seed), by_file(done)
        record(row, outcomes, at, options.json)
        show(outcomes)
        for test in row["unexplained"]:
            sys.stdout.write(f"not in conflicts.md: {test}: {row['failures'][test]}\n")
        sys.stdout.write(f"{row['passed']} of {row['tests']} passed, seed {seed}; recorded in {options.json}\n")
        code = code or int(bool(row["unexplained"] or row["skipped"]))
    return code
