"""The recorded results as a page of the documentation: ``python -m conformance page``.

In: the documents in ``results/``.  Out: Markdown: one line a suite, then what each has by file or part.  Promise: nothing is run and
nothing is known but the documents; a suite without a document is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "conformance.md"

Document = dict[str, Any]


def _table(headings: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * left + "---:|" * (len(headings) - left)
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"


def _share(passed: int, counted: int) -> str:
    return f"{passed / counted:.1%}" if counted else "-"


def _total(rows: Sequence[Document], *names: str) -> list[int]:
    return [sum(row[name] for row in rows) for name in names]


# Each suite: (tests that count, passed), and the text of its section --------------------------------------------------------------


def _array_api_counts(document: Document) -> tuple[int, int]:
    # The worst run of the full number of examples.
    worst = min(document["runs"], key=lambda run: (run["passed"], -run["tests"]))
    return worst["tests"], worst["passed"]


def _array_api(document: Document) -> Iterator[str]:
    yield (
        f"Version {document['standard']} of the standard; the suite at commit `{document['suite']['commit'][:12]}`. Every test runs, "
        "also those that its authors mark as flaky and skip (five, of `remainder`). Failures are the differences between the standard "
        "and NumPy that [conflicts.md](../conformance/conflicts.md) lists."
    )
    yield ""
    names = ("examples", "seed", "backend", "tier", "fallback", "tests", "passed", "failed", "skipped")
    runs = [
        [*[run[name] for name in names], len(run["unexplained"]), run["work"].get("forced", ""), run["work"].get("kernels", "")]
        for run in document["runs"]
    ]
    yield from _table((*names, "not explained", "values forced", "kernels run"), runs, left=0)
    yield ""
    rows = [[name, len(found), list(found.values()).count("passed")] for name, found in document["tests"].items()]
    yield from _table(("file", "tests", "passed"), rows)


def _numpy_counts(document: Document) -> tuple[int, int]:
    counted, passed = _total(document["files"], "counted", "passed")
    return counted, passed


def _numpy(document: Document) -> Iterator[str]:
    yield (
        "The tests that NumPy's wheel ships, with `np` meaning lazynp; what NumPy itself passes counts, less what "
        "[exclusions.toml](../conformance/exclusions.toml) leaves out with a reason each."
    )
    yield ""
    rows = [[row["file"], row["counted"], row["passed"], _share(row["passed"], row["counted"])] for row in document["files"]]
    yield from _table(("file", "tests", "passed", "share"), rows)


def _rows_counts(document: Document) -> tuple[int, int]:
    passed, failed = _total(document.get("files") or document.get("parts") or [], "passed", "failed")
    return passed + failed, passed


def _rows(document: Document) -> Iterator[str]:
    kind = "file" if document.get("files") else "part"
    names = ("passed", "failed", "skipped", "xfailed")
    rows = [[row[kind], *[row.get(name, 0) for name in names]] for row in document.get("files") or document.get("parts") or []]
    yield from _table((kind, "passed", "failed", "skipped", "expected failures"), rows)


def _programs_counts(document: Document) -> tuple[int, int]:
    return len(document["programs"]), sum(row["same"] for row in document["programs"])


def _programs(document: Document) -> Iterator[str]:
    yield (
        "Public programs, and the tests of small libraries, run by `python` and by `python -m lazynp` with no line changed "
        "(`conformance/programs.toml` says what is run); a program that NumPy itself cannot run is left out. Output, global values, "
        "figures and written files are compared, numbers to 1e-6 of the largest, pixels to 3 levels; of tests, that all that pass with "
        "NumPy pass. Times are of the processor, in seconds, one run of each in a process of its own with an empty kernel cache, on a "
        "shared machine; memory is the peak in MiB. `!`: above 1.2 times NumPy's time, or 1.25 times its memory and 64 MiB."
    )
    yield ""
    rows = []
    for row in document["programs"]:
        theirs, ours = row["numpy"], row["lazynp"]
        result = "same" if row["same"] else f"{len(row['differences'])} differ"
        rows.append([
            row["name"], f"{row['repository']} @ {row['commit'][:10]}", row["field"],
            f"{row['tests']} tests" if row["tests"] else "output", result, theirs["cpu"], ours["cpu"],
            f"{row['ratio']}{' !' if row['slow'] else ''}", theirs["peak"], f"{ours['peak']}{' !' if row['large'] else ''}",
        ])  # fmt: skip
    headings = ("program", "repository", "field", "compared", "result", "NumPy s", "lazynp s", "ratio", "NumPy MiB", "lazynp MiB")
    yield from _table(headings, rows, left=5)


def _estimators_counts(document: Document) -> tuple[int, int]:
    rows = [row for row in document["estimators"] if row["data"]]
    return len(rows), sum(not row["differences"] for row in rows)


def _estimators(document: Document) -> Iterator[str]:
    yield (
        "Every estimator that needs no arguments, without array-API dispatch: what its methods return, what it has learned and its "
        "warnings, with our arrays at hand, recorded, in Fortran order and as float32, beside NumPy's; equal to 1e-10 of the largest "
        "element, float32 to 1e-4."
    )
    yield ""
    rows = [
        [row["name"], row["data"] or row.get("reason", ""), row["methods"], row["attributes"], len(row["differences"])]
        for row in document["estimators"]
    ]
    yield from _table(("estimator", "data", "methods", "attributes", "differences"), rows, left=2)


Section = tuple[str, Callable[[Document], tuple[int, int]], Callable[[Document], Iterator[str]]]

# Document -> what its suite is called, and what becomes of it.
SECTIONS: Final[dict[str, Section]] = {
    "array_api": ("array API standard", _array_api_counts, _array_api),
    "numpy": ("NumPy", _numpy_counts, _numpy),
    "sklearn": ("scikit-learn", _rows_counts, _rows),
    "scipy": ("SciPy", _rows_counts, _rows),
    "estimators": ("scikit-learn's estimators", _estimators_counts, _estimators),
    "programs": ("programs of others", _programs_counts, _programs),
}


def page(place: Path = RESULTS) -> str:
    """The page."""
    documents = {name: json.loads(path.read_text(encoding="utf-8")) for name in SECTIONS if (path := place / f"{name}.json").exists()}
    rows = []
    for name, document in documents.items():
        title, counts, _ = SECTIONS[name]
        counted, passed = counts(document)
        versions = ", ".join(f"{package} {version}" for package, version in document["versions"].items())
        link = f"[{title}](#{title.lower().replace(' ', '-').replace(chr(39), '')})"
        rows.append([link, document["date"], versions, counted, passed, _share(passed, counted)])
    lines = [
        "# Test suites that others wrote",
        "",
        "Made by `python -m conformance page` from the recorded results; [CONTRIBUTING.md](../CONTRIBUTING.md) says how they are run.",
        "",
        *_table(("suite", "date", "with", "tests", "passed", "share"), rows, left=3),
    ]
    for name, document in documents.items():
        lines += ["", f"## {SECTIONS[name][0]}", "", *SECTIONS[name][2](document)]
    return "\n".join(lines) + "\n"
