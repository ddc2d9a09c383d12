"""Machine learning on arrays of a GPU: scikit-learn's estimators, by its array API dispatch.

In: as ``bench.workloads``.  Out: coefficients.  Promise: the same lines for every library; SCIPY_ARRAY_API=1 is set before SciPy is
imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.workloads import Arrays, Function, Workload


def _data(rng: np.random.Generator, large: bool, target: Callable[[Any], Any] | None = None) -> Arrays:
    rows, columns = (1_000_000, 64) if large else (200, 8)
    x = rng.standard_normal((rows, columns)) * np.linspace(1, 3, columns)
    return (x,) if target is None else (x, target(x @ rng.standard_normal(columns) + rng.standard_normal(rows)))


def _dispatched(fit: Callable[..., Any]) -> Callable[[Any], Function]:
    def bind(xp: Any) -> Function:
        def function(*arrays: Any) -> Any:
            import sklearn

            with sklearn.config_context(array_api_dispatch=True):
                return fit(*arrays)

        return function

    return bind


def _pca(x: Any) -> Any:
    from sklearn.decomposition import PCA

    return PCA(n_components=4, svd_solver="covariance_eigh").fit(x).explained_variance_


def _ridge(x: Any, y: Any) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge(solver="svd").fit(x, y).coef_


def _logistic(x: Any, y: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver="lbfgs", max_iter=20, tol=1e-8).fit(x, y).coef_


LEARNING = (
    Workload("scikit-learn PCA", _data, _dispatched(_pca)),
    Workload("scikit-learn Ridge", lambda rng, large: _data(rng, large, np.tanh), _dispatched(_ridge)),
    Workload(
        "scikit-learn LogisticRegression", lambda rng, large: _data(rng, large, lambda y: (y > 0).astype(np.int64)), _dispatched(_logistic)
    ),
)
