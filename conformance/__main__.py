"""``python -m conformance SUITE``: run the tests and programs of others on lazynp, print a table, record the results."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance import array_api, estimators, numpy_suite, page, programs, scipy_suite, sklearn_suite, tables


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance", description="Test suites that others wrote, run on lazynp.")
    suites = parser.add_subparsers(dest="suite", required=True)
    numpys = suites.add_parser("numpy", help="the tests that NumPy's wheel ships, with np meaning lazynp")
    numpys.add_argument("files", nargs="*", metavar="FILE", help="test_numeric, lib/test_shape_base, ... (default: all listed files)")
    numpys.add_argument("--json", type=Path, default=numpy_suite.RESULTS, help="where the results are recorded (default: %(default)s)")
    numpys.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time (default: %(default)s)")
    array_api.add_arguments(suites)
    sklearn_suite.add_arguments(suites)
    scipy_suite.add_arguments(suites)
    estimators.add_arguments(suites)
    programs.add_arguments(suites)
    written = suites.add_parser("page", help="write the recorded results into the documentation")
    written.add_argument("--output", type=Path, default=page.PAGE, help="the page (default: %(default)s)")
    return parser.parse_args(arguments)


def verdict(row: dict[str, Any]) -> str:
    """How a file's share compares with its goal."""
    if row["goal"] is None or not row["counted"]:
        return ""
    return f"{'pass' if row['passed'] >= row['goal'] * row['counted'] else 'MISS'} (>= {row['goal']:.0%})"


def cells(row: dict[str, Any]) -> list[str]:
    share = f"{row['passed'] / row['counted']:.1%}" if row["counted"] else "-"
    note = verdict(row) + (" crash" if row["crash"] else "")
    return [row["file"], *[str(row[name]) for name in ("numpy_passes", "excluded", "counted", "passed")], share, note]


HEADINGS = ["file", "NumPy passes", "excluded", "counted", "lazynp passes", "share", "goal"]


def show(rows: Sequence[dict[str, Any]]) -> None:
    """The summary."""
    total = {name: sum(row[name] for row in rows) for name in ("numpy_passes", "excluded", "counted", "passed")}
    lines = [*map(cells, rows), cells({"file": "all", "goal": None, "crash": "", **total})]
    tables.show(HEADINGS, lines, left=("file", "goal"))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code is 2 where the tests are missing, else 0: the results are a report, not a test."""
    options = _arguments(arguments)
    if options.suite == "array-api":
        return array_api.command(options)
    if options.suite == "sklearn":
        return sklearn_suite.command(options)
    if options.suite == "scipy":
        return scipy_suite.command(options)
    if options.suite == "estimators":
        return estimators.command(options)
    if options.suite == "programs":
        return programs.main(options)
    if options.suite == "page":
        options.output.write_text(page.page(), encoding="utf-8")
        return 0
    try:
        paths = numpy_suite.found(options.files)
    except numpy_suite.MissingTests as error:
        sys.stderr.write(f"python -m conformance: {error}\n")
        return 2
    done = 0

    def report(path: str, library: str, passed: int) -> None:
        nonlocal done
        done += 1
        sys.stderr.write(f"[{done}/{len(paths) * len(numpy_suite.LIBRARIES)}] {path}: {passed} passed with {library}\n")

    rows = []
    try:
        for row in numpy_suite.run(paths, max(options.jobs, 1), report):
            rows.append(row)
            numpy_suite.record([row], options.json)
    except numpy_suite.MissingTests as error:
        sys.stderr.write(f"python -m conformance: {error}\n")
        return 2
    show(sorted(rows, key=lambda row: paths.index(row["file"])))
    sys.stdout.write(f"recorded in {options.json}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
