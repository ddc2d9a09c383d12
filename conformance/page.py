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


Section = tuple[str, Callable[[Document], tuple[int, int]], Callable[[Document], Iterator[str]]]

# Document -> what its suite is called, and what becomes of it.
SECTIONS: Final[dict[str, Section]] = {
    "array_api": ("array API standard", _array_api_counts, _array_api),
    "numpy": ("NumPy", _numpy_counts, _numpy),
    "sklearn": ("scikit-learn", _rows_counts, _rows),
    "scipy": ("SciPy", _rows_counts, _rows),
}


def page(place: Path = RESULTS) -> str:
    """The page."""
    documents = {name: json.loads(path.read_text(encoding="utf-8")) for name in SECTIONS if (path := place / f"{name}.json").exists()}
    rows = []
    for name, document in documents.items():
        title, counts, _ = SECTIONS[name]
        counted, passed = counts(document)
        versions = ", ".join(f"{package} {version}" for package, version in document["versions"].items())
        link = f"[{title}](#{title.lower().replace(' ', '-')})"
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
