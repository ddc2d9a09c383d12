"""Handwritten digits with scikit-learn: scale, project, search for the best penalty, classify, all in the arrays' own library.

With ``array_api_dispatch`` scikit-learn computes with the functions of the library that its arrays come from.

    python examples/pipeline.py
"""

import argparse
import json
import os
import time

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported

import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def learn(pixels, labels):
    """Everything there is to compute, from the pixels in memory to the results in memory."""
    used = pixels[:, pixels.std(axis=0) > 0]
    x_train, x_test, y_train, y_test = train_test_split(used, labels, random_state=0)

    reader = make_pipeline(StandardScaler(), PCA(30, svd_solver="full"), LinearDiscriminantAnalysis())
    guesses = reader.fit(x_train, y_train).predict(x_test)

    # how much ink there is in the lower half, from the upper half
    ink = pixels[:, 32:].sum(axis=1)
    search = GridSearchCV(Ridge(solver="svd"), {"alpha": [0.1, 1.0, 10.0, 100.0]}, cv=5).fit(pixels[:, :32], ink)
    return {
        "accuracy": float(accuracy_score(y_test, guesses)),
        "mistakes": np.asarray(confusion_matrix(y_test, guesses)).tolist(),
        "explained": float(reader[1].explained_variance_ratio_.sum()),
        "alpha": float(search.best_params_["alpha"]),
        "scores": search.cv_results_["mean_test_score"].tolist(),
        "coefficients": search.best_estimator_.coef_.tolist(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=1, help="how often everything is computed")
    parser.add_argument("--json", action="store_true", help="print timings and results as JSON")
    options = parser.parse_args()

    start = time.perf_counter()
    digits = load_digits()
    pixels, labels = np.asarray(digits.data), np.asarray(digits.target)
    loaded = time.perf_counter() - start

    computed = []
    # StandardScaler divides zero by zero at its first batch, and replaces the result; it silences that for NumPy's own arrays only.
    with sklearn.config_context(array_api_dispatch=True), np.errstate(invalid="ignore"):
        for _ in range(options.repeat):
            start = time.perf_counter()
            results = learn(pixels, labels)
            computed.append(time.perf_counter() - start)

    if options.json:
        print(json.dumps({"shape": pixels.shape, "load": loaded, "compute": computed, "results": results, "arrays": np.__package__}))
    else:
        print(f"{len(pixels)} digits in arrays of {np.__package__}, {min(computed):.2f} s")
        print(f"30 components explain {results['explained']:.1%}; {results['accuracy']:.1%} of the digits not seen before are read right")
        print(f"ink of the lower half from the upper half: best penalty {results['alpha']:g}, R² {max(results['scores']):.3f}")


if __name__ == "__main__":
    main()
