"""All of scikit-learn's estimators that can be made without arguments, given NumPy's arrays and ours; array-API dispatch is off.

In: names of estimators.  Out: for each what its methods return and what it has learned, and where that differs between the two.  Promise:
the estimators are as scikit-learn makes them, but for a fixed ``random_state``; data are the first of ``DATA`` that NumPy's arrays can be
fitted with; each estimator sees them at hand and recorded, C and Fortran ordered, as float64 and float32.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import io
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy

from conformance import tables

RESULTS: Final = Path(__file__).parent / "results" / "estimators.json"
TOLERANCE: Final = 1e-10  # of the largest element: sums of recorded values have an order of their own
METHODS: Final = (
    "predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "inverse_transform", "score_samples", "score",
    "fit_predict", "fit_transform", "kneighbors", "radius_neighbors", "apply", "partial_fit", "get_feature_names_out", "get_support",
    "sample", "mahalanobis", "error_norm", "correct_covariance", "reconstruction_error", "staged_predict", "decision_path", "path",
)  # fmt: skip
OF_TARGETS: Final = ("score", "fit_predict", "fit_transform", "partial_fit")
VARIANTS: Final = ("at hand", "recorded", "Fortran", "float32")
HEADINGS: Final = ("estimator", "data", "methods", "attributes", "result")
ROWS: Final = 90


def _data() -> dict[str, tuple[Any, Any]]:
    random = numpy.random.default_rng(7)
    x = random.normal(size=(ROWS, 5))
    x[:, 1] += x[:, 0]
    labels = (x[:, 0] + 0.3 * x[:, 2] > 0).astype(int) + (x[:, 1] > 1)
    y = x @ numpy.array([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.1 * random.normal(size=ROWS)
    positive = numpy.abs(x) + 0.1
    several = numpy.stack([y, x[:, 0] - x[:, 3]], axis=1)
    indicators = (several > 0).astype(int)
    words = numpy.array(["red green", "green blue blue", "red", "blue moon"] * (ROWS // 4 + 1))[:ROWS]
    return {
        "classes": (x, labels),
        "numbers": (x, y),
        "positive numbers": (positive, numpy.abs(y) + 0.1),
        "counts": (numpy.floor(positive * 3), labels),
        "several numbers": (x, several),
        "several classes": (x, indicators),
        "one column": (x[:, 0].copy(), y),
        "labels": (labels, None),
        "sets": (indicators, None),
        "text": (words, labels),
        "two classes": (x, (x[:, 0] > 0).astype(int)),
        "square": (positive[:5] @ positive[:5].T, None),
        "wide": (random.normal(size=(5, 1500)), None),
    }


DATA: Final = _data()


def estimators() -> dict[str, type]:
    """Name -> class, of all that can be made without arguments."""
    from sklearn.utils import all_estimators

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kind in all_estimators():
            try:
                kind()
            except TypeError:
                continue
            found[name] = kind
    return found


def outcome(kind: type, x: Any, y: Any, seed: int = 0) -> dict[str, Any]:
    """What an estimator does with data: what each method returns, what it has learned, and which warnings it gave."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as heard, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        numpy.random.seed(seed)
        estimator = kind()
        if "random_state" in estimator.get_params(deep=False):
            estimator.set_params(random_state=seed)
        estimator.fit(x) if y is None else estimator.fit(x, y)
        for name in sorted(vars(estimator)):
            if name.endswith("_") and not name.startswith("_"):
                found[name] = getattr(estimator, name)
        for name in METHODS:
            method: Callable[..., Any] | None = getattr(estimator, name, None)
            if method is None:
                continue
            numpy.random.seed(seed)
            arguments: tuple[Any, ...] = () if name in ("get_feature_names_out", "get_support", "sample", "reconstruction_error") else (x,)
            if name in OF_TARGETS and y is not None:
                arguments = (x, y)
            try:
                result = method(*arguments)
                found[name + "()"] = list(result) if isinstance(result, Iterator) else result
            except Exception as error:
                found[name + "()"] = (type(error).__name__, str(error).partition("\n")[0])
    found["warnings"] = sorted({(type(w.message).__name__, str(w.message).partition("\n")[0]) for w in heard})
    return found


def differs(want: Any, got: Any, tolerance: float, depth: int = 0) -> str:
    """In what two results differ; empty where they do not."""
    if hasattr(want, "toarray") and hasattr(got, "toarray"):
        want, got = want.toarray(), got.toarray()
    if isinstance(want, list | tuple) and isinstance(got, list | tuple):
        if len(want) != len(got):
            return f"{len(want)} elements, {len(got)}"
        return next((text for a, b in zip(want, got, strict=True) if (text := differs(a, b, tolerance, depth + 1))), "")
    if isinstance(want, dict) and isinstance(got, dict):
        if [*map(str, want)] != [*map(str, got)]:
            return "other keys"
        return next((text for a, b in zip(want.values(), got.values(), strict=True) if (text := differs(a, b, tolerance, depth + 1))), "")
    if isinstance(want, numpy.ndarray) and hasattr(got, "to_numpy"):
        got = numpy.asarray(got)  # what scikit-learn hands on as it is
    if type(want) != type(got):  # noqa: E721 - classes of results are equal to NumPy's
        return f"{type(want).__name__}, {type(got).__name__}"
    if isinstance(want, numpy.ndarray | numpy.generic | float | int | complex):
        one, two = numpy.asarray(want), numpy.asarray(got)
        if (one.shape, one.dtype) != (two.shape, two.dtype):
            return f"{one.dtype}{one.shape}, {two.dtype}{two.shape}"
        if one.dtype == object:
            return differs(list(one.ravel()), list(two.ravel()), tolerance, depth + 1)
        if one.dtype.kind not in "fc":
            return "" if numpy.array_equal(one, two) else "other elements"
        if numpy.array_equal(one, two, equal_nan=True):
            return ""
        worst, largest = float(numpy.nanmax(numpy.abs(one - two))), float(numpy.nanmax(numpy.abs(one)))
        return "" if worst <= tolerance * largest else f"differs by {worst:.2g} of {largest:.2g}"
    if isinstance(want, str | bytes | bool | None):
        if isinstance(want, str) and want.replace("'numpy.ndarray' object", "'ndarray' object") == got:
            return ""  # a static type of C says its module in errors, a class of Python's does not
        return "" if want == got else f"{want!r}, {got!r}"[:200]
    if hasattr(want, "__dict__") and depth < 4 and not callable(want):
        mine, other = ({k: v for k, v in vars(value).items() if not k.startswith("_")} for value in (want, got))
        return differs(mine, other, tolerance, depth + 1)
    return ""


def given(variant: str, x: Any, y: Any) -> Iterator[tuple[Any, Any, Any, int]]:
    """NumPy's data, ours, and the limit of what is at hand, of one variant."""
    import lazynp

    if variant == "float32" and x.dtype == float:
        x = x.astype("f4")
    if variant == "Fortran":
        x = numpy.asfortranarray(x)
    below = 0 if variant == "recorded" else 65536
    from lazynp.values import config

    with config.override(tape_limit=below):
        # "recorded": what scikit-learn is given is the result of something that has not been computed
        ours = [None if one is None else lazynp.array(one, order="K") for one in (x, y)]
        if variant == "recorded":
            ours = [one + 0 if one is not None and one.dtype.kind in "fi" else one for one in ours]
        yield x, y, ours, below


def compared(name: str, kind: type, variants: Sequence[str] = VARIANTS) -> dict[str, Any]:
    """One estimator's row of the results."""
    row: dict[str, Any] = {"name": name, "data": "", "methods": 0, "attributes": 0, "differences": []}
    for data, (x, y) in DATA.items():
        try:
            outcome(kind, x, y)
        except Exception as error:
            row["reason"] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:200]
            continue
        row["data"] = data
        row.pop("reason", None)
        break
    else:
        return row
    for variant in variants:
        for theirs, targets, ours, _ in given(variant, x, y):
            try:
                want = outcome(kind, theirs, targets)
            except Exception as error:
                want = {"fit": (type(error).__name__, str(error).partition("\n")[0])}
            again = want if "fit" in want else outcome(kind, theirs, targets)
            try:
                got = outcome(kind, *ours)
            except Exception as error:
                got = {"fit": (type(error).__name__, str(error).partition("\n")[0])}
            tolerance = 1e-4 if variant == "float32" else TOLERANCE
            for part in sorted({*want, *got}):
                if part not in want or part not in got:
                    row["differences"].append(f"{variant}: {part}: {want.get(part, 'missing')!r}, {got.get(part, 'missing')!r}"[:300])
                    continue
                text = differs(want[part], got[part], tolerance)
                if text and not part.endswith("time_") and not differs(want[part], again[part], 0.0):  # NumPy's own two runs are equal
                    row["differences"].append(f"{variant}: {part}: {text}")
            row["methods"] = sum(part.endswith("()") for part in want)
            row["attributes"] = sum(part.endswith("_") for part in want)
    return row


def record(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """Write rows into the results, in place of the same estimators' old ones."""
    kept = {row["name"]: row for row in json.loads(target.read_text(encoding="utf-8"))["estimators"]} if target.exists() else {}
    kept.update({row["name"]: row for row in rows})
    document = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in ("scikit-learn", "scipy", "numpy")}
        | {"python": platform.python_version()},
        "estimators": [kept[name] for name in sorted(kept)],
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def add_arguments(suites: Any) -> None:
    """What follows ``python -m conformance estimators``."""
    parser: argparse.ArgumentParser = suites.add_parser("estimators", help="scikit-learn's estimators, given NumPy's arrays and ours")
    parser.add_argument("names", nargs="*", metavar="NAME", help="classes of scikit-learn (default: all that need no arguments)")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results are recorded (default: %(default)s)")


def command(options: argparse.Namespace) -> int:
    """Run, print, record; the exit code is 1 where something differs."""
    rows = []
    for name, kind in estimators().items():
        if options.names and name not in options.names:
            continue
        rows.append(compared(name, kind))
        sys.stderr.write("".join(f"{name}: {text}\n" for text in rows[-1]["differences"]))
    record(rows, options.json)
    lines = [
        [row["name"], row["data"] or "-", str(row["methods"]), str(row["attributes"]),
         f"{len(row['differences'])} differ" if row["differences"] else "same" if row["data"] else row["reason"]]
        for row in rows
    ]  # fmt: skip
    tables.show(HEADINGS, lines, left=("estimator", "data", "result"))
    return int(any(row["differences"] for row in rows))
