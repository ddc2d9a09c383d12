"""``python -m bench.sklearn_calls``: scikit-learn with ``array_api_dispatch`` on lazynp's arrays and on NumPy's.

In: estimators and metrics as users call them, on 20 000 x 50 numbers.  Out: a row for each: the ratio of the processor times (NumPy's over
lazynp's, the median of neighbouring runs, one thread), and what one warm call costs in counts: values forced, schedules
made, kernels, answers by NumPy.  Promise: both sides call the same function with the same parameters, and their results are compared.
"""

from __future__ import annotations

import os

if __name__ == "__main__":
    # Read when the libraries are loaded: scikit-learn's dispatch, and one thread for both sides.
    os.environ["SCIPY_ARRAY_API"] = "1"
    os.environ.update(dict.fromkeys(("LAZYNP_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from bench.machine import describe
from bench.measure import difference

ROWS: Final = 20_000
COLUMNS: Final = 50
WARM_UPS: Final = 3
MOST_WARM_UPS: Final = 100
MIN_PAIRS: Final = 5


class Data(NamedTuple):
    """The arrays of one library; the small ones are for what needs all pairs of rows."""

    x: Any
    positive: Any
    y: Any
    labels: Any
    guesses: Any
    scores: Any
    probabilities: Any
    few: Any
    others: Any


def data(xp: Any, rows: int = ROWS, columns: int = COLUMNS) -> Data:
    """The same numbers for either library."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns)) + rng.normal(size=columns)
    weights = rng.normal(size=columns)
    y = x @ weights + rng.normal(size=rows)
    labels = (y > np.median(y)).astype(np.int64) + (y > np.quantile(y, 0.8))
    guesses = np.where(rng.random(rows) < 0.8, labels, rng.integers(0, 3, rows))
    p = rng.random((rows, 3)) + np.eye(3)[labels]
    few = max(rows // 20, 10)
    arrays = (x, np.abs(x), y, labels, guesses, y + rng.normal(size=rows), p / p.sum(axis=1, keepdims=True), x[:few], x[few : 2 * few])
    return Data(*[xp.asarray(array, copy=True) for array in arrays])  # memory that somebody else holds has to be read again at every look


class Call(NamedTuple):
    name: str
    run: Callable[[Data], Any]
    tolerance: float = 1e-9  # of the largest magnitude


def calls() -> list[Call]:
    """What is measured; scikit-learn is imported here, after the environment is set."""
    from sklearn import metrics, preprocessing
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, RidgeCV
    from sklearn.metrics import pairwise
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import GridSearchCV
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline

    alphas = {"alpha": [0.1, 1.0, 10.0]}

    def searched(model: Any, d: Data) -> Any:
        found = GridSearchCV(model, alphas, cv=5).fit(d.x, d.y)
        return found.cv_results_["mean_test_score"], found.best_estimator_.coef_

    def mixture(d: Data) -> Any:
        model = GaussianMixture(3, init_params="random_from_data", max_iter=10, tol=0, random_state=0).fit(d.x)
        return model.means_, model.covariances_, model.lower_bound_

    def fitted(model: Any, *names: str, y: str = "y", x: str = "x") -> Callable[[Data], Any]:
        def run(d: Data) -> Any:
            found = model.fit(getattr(d, x), getattr(d, y))
            return [getattr(found, name) for name in names]

        return run

    def predicted(model: Any, y: str = "y") -> Callable[[Data], Any]:
        return lambda d: model.fit(d.x, getattr(d, y)).predict(d.x)

    def transformed(model: Any, x: str = "x") -> Callable[[Data], Any]:
        return lambda d: model.fit(getattr(d, x)).transform(getattr(d, x))

    scaled_ridge = make_pipeline(preprocessing.StandardScaler(), PCA(10, svd_solver="full"), Ridge(solver="svd"))
    return [
        Call("StandardScaler", transformed(preprocessing.StandardScaler())),
        Call("MinMaxScaler", transformed(preprocessing.MinMaxScaler())),
        Call("Normalizer", transformed(preprocessing.Normalizer())),
        Call("PolynomialFeatures", transformed(preprocessing.PolynomialFeatures(2), "few")),
        Call("PCA, full", fitted(PCA(10, svd_solver="full"), "components_", "explained_variance_")),
        Call("PCA, covariance_eigh", fitted(PCA(10, svd_solver="covariance_eigh"), "components_", "explained_variance_")),
        Call("LinearDiscriminantAnalysis", predicted(LinearDiscriminantAnalysis(), "labels")),
        Call("LogisticRegression, lbfgs", fitted(LogisticRegression(C=1e-3, tol=1e-6), "coef_", "intercept_", y="labels")),
        Call("PoissonRegressor", fitted(PoissonRegressor(), "coef_", y="labels")),
        Call("GaussianNB", predicted(GaussianNB(), "labels")),
        Call("GaussianMixture", mixture, 1e-6),
        Call("Nystroem", transformed(Nystroem(random_state=0, n_components=50))),
        Call("Ridge, svd", fitted(Ridge(solver="svd"), "coef_", "intercept_")),
        Call("RidgeCV", fitted(RidgeCV(), "coef_", "alpha_")),
        Call("StandardScaler, PCA, Ridge", predicted(scaled_ridge)),
        Call("GridSearchCV(Ridge, svd)", lambda d: searched(Ridge(solver="svd"), d)),
        Call("GridSearchCV(Ridge)", lambda d: searched(Ridge(), d)),
        Call("euclidean_distances", lambda d: pairwise.euclidean_distances(d.few, d.others)),
        Call("manhattan_distances", lambda d: pairwise.manhattan_distances(d.few, d.others)),
        Call("pairwise_distances", lambda d: metrics.pairwise_distances(d.few), 1e-6),
        Call("cosine_similarity", lambda d: pairwise.cosine_similarity(d.few, d.others)),
        Call("rbf_kernel", lambda d: pairwise.rbf_kernel(d.few, d.others)),
        Call("polynomial_kernel", lambda d: pairwise.polynomial_kernel(d.few, d.others)),
        Call("accuracy_score", lambda d: metrics.accuracy_score(d.labels, d.guesses)),
        Call("f1_score", lambda d: metrics.f1_score(d.labels, d.guesses, average="macro")),
        Call("confusion_matrix", lambda d: metrics.confusion_matrix(d.labels, d.guesses)),
        Call("roc_curve", lambda d: metrics.roc_curve(d.labels > 0, d.scores)[:2]),
        Call("log_loss", lambda d: metrics.log_loss(d.labels, d.probabilities)),
        Call("r2_score", lambda d: metrics.r2_score(d.y, d.scores)),
        Call("mean_squared_error", lambda d: metrics.mean_squared_error(d.y, d.scores)),
        Call("mean_absolute_error", lambda d: metrics.mean_absolute_error(d.y, d.scores)),
    ]


def parts(result: Any) -> list[Any]:
    """A result as NumPy's arrays."""
    return [np.asarray(part) for part in (result if isinstance(result, (tuple, list)) else [result])]


def timed(run: Callable[[], Any]) -> float:
    """Seconds of this thread's processor time, with every result computed."""
    start = time.thread_time()
    parts(run())
    return time.thread_time() - start


def warm_up(run: Callable[[], Any], seconds: float) -> None:
    """Run until what pays for its compilation is compiled, or ``seconds`` of processor time are over."""
    end = time.thread_time() + seconds
    for count in range(MOST_WARM_UPS):
        if count >= WARM_UPS and time.thread_time() >= end:
            break
        parts(run())


def measure(call: Call, theirs: Data, ours: Data, seconds: float) -> dict[str, Any]:
    """One row; the order within the pairs alternates."""
    from lazynp.graph import report

    error = difference([part.astype(float) for part in parts(call.run(ours))], [part.astype(float) for part in parts(call.run(theirs))])
    warm_up(lambda: call.run(ours), seconds)
    report.reset()
    parts(call.run(ours))
    counts = report.counters()
    times: tuple[list[float], list[float]] = ([], [])
    end = time.thread_time() + seconds
    while len(times[0]) < MIN_PAIRS or time.thread_time() < end:
        for side in (0, 1) if len(times[0]) % 2 == 0 else (1, 0):
            times[side].append(timed(lambda side=side: call.run((theirs, ours)[side])))  # type: ignore[misc]
    return {
        "call": call.name,
        "ratio": statistics.median(a / b for a, b in zip(*times, strict=True)),
        "numpy_seconds": statistics.median(times[0]),
        "lazynp_seconds": statistics.median(times[1]),
        "difference": error,
        "equal": error <= call.tolerance,
        "forced": sum(row["count"] for row in counts["forced"]),
        "schedules_made": counts["schedule_misses"],
        "kernels": counts["kernels"],
        "fallbacks": sum(row["count"] for row in counts["fallbacks"]),
    }


def rows(only: list[str], seconds: float, size: int) -> Iterator[dict[str, Any]]:
    """Every call that is asked for."""
    import sklearn

    import lazynp

    theirs, ours = data(np, size), data(lazynp, size)
    with sklearn.config_context(array_api_dispatch=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, and of the solver that scikit-learn takes for other libraries
        for call in calls():
            if not only or any(text.lower() in call.name.lower() for text in only):
                yield measure(call, theirs, ours, seconds)


COLUMNS_SHOWN: Final = ("forced", "schedules_made", "kernels", "fallbacks")


def line(row: dict[str, Any]) -> str:
    """A row as Markdown."""
    cells = [row["call"], f"{row['ratio']:.2f}", f"{row['numpy_seconds'] * 1e3:.1f}", f"{row['lazynp_seconds'] * 1e3:.1f}"]
    cells += [str(row[name]) for name in COLUMNS_SHOWN]
    return f"| {' | '.join(cells)} | {row['difference']:.0e}{'' if row['equal'] else ' **differs**'} |"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.sklearn_calls", description="scikit-learn on arrays of NumPy and of lazynp.")
    parser.add_argument("--only", metavar="TEXT", action="append", default=[], help="only calls with TEXT in their name (may be repeated)")
    parser.add_argument("--seconds", type=float, default=1.0, help="processor time of warming up, and again of measuring, a call")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the data (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write everything, with the machine named, to FILE")
    options = parser.parse_args()
    machine = describe(["numpy", "scipy", "scikit-learn", "lazynp", "llvmlite"])
    print(f"{machine['cpu']}, one thread, Python {machine['python']}, {machine['versions']}\n")
    print("| call | times faster | NumPy ms | lazynp ms | forced | schedules made | kernels | by NumPy | difference |")
    print("|---|---|---|---|---|---|---|---|---|")
    found = []
    for row in rows(options.only, options.seconds, options.rows):
        found.append(row)
        print(line(row), flush=True)
    if options.json:
        path = Path(options.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": machine, "rows": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
