"""SciPy's own array-API tests, the ones its wheel ships, with lazynp as the array namespace.

In: names of SciPy's parts (``stats``, ``signal``, ...).  Out: for each part which tests ran, and of each that failed the message and the
cause.  Promise: a pytest process a file, with ``lazynp.testing.scipy`` loaded; a test that did not finish counts as failed; what SciPy
marks as not for array-API backends, or as slow, is skipped by SciPy itself, and counted by reason; nothing else is left out.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from conformance.numpy_suite import SECONDS, MissingTests, Outcomes, run_pytest

RESULTS = Path(__file__).parent / "results" / "scipy.json"
CAUSES = Path(__file__).parent / "scipy_causes.toml"
PARTS = (
    "special", "stats", "signal", "ndimage", "cluster", "fft", "integrate", "interpolate", "optimize", "spatial", "differentiate",
    "constants",
)  # fmt: skip
GOAL = 0.97  # of the tests that run
UNKNOWN = "not looked into"
_USES_NAMESPACES = re.compile(r"\bxp\b|array_api_backends")

# The slice for continuous integration: every part, in less than ten minutes on two cores.
SLICES: dict[str, tuple[str, ...]] = {
    "ci": (
        "special/tests/test_logsumexp.py",
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
        "failures": failures,
    }


def regressions(rows: Sequence[dict[str, Any]], target: Path) -> list[str]:
    """Tests that fail in ``rows`` and are not known to fail from the recorded results."""
    document = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {"parts": []}
    known = {failure["test"] for row in document["parts"] for failure in row["failures"]}
    new = [failure["test"] for row in rows for failure in row["failures"] if failure["test"] not in known]
    return new + [f"{path}: {text}" for row in rows for path, text in row["crashes"].items()]


def record(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """Write rows into the results, in place of the same parts' old ones."""
    kept = {row["part"]: row for row in json.loads(target.read_text(encoding="utf-8"))["parts"]} if target.exists() else {}
    kept.update({row["part"]: row for row in rows})
    document = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "pytest")} | {"python": platform.python_version()},
        "parts": sorted(kept.values(), key=lambda row: PARTS.index(row["part"]) if row["part"] in PARTS else len(PARTS)),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
