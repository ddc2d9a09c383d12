"""CuPy's SciPy (``cupyx.scipy``) with our arrays: sparse matrices, functions of its own arrays, universal functions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import lazynp as np
from tests.cuda.host import EMULATED, SEEDS, machine, on_host

A = numpy.random.default_rng(3).standard_normal((7, 5)) * (numpy.random.default_rng(4).random((7, 5)) < 0.4)
X, Y, M = numpy.linspace(-1, 1, 5), numpy.linspace(0, 2, 7), numpy.arange(15.0).reshape(5, 3)


@pytest.fixture(params=SEEDS, ids="seed {}".format)
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    with machine(seed=request.param, devices=2) as fake:
        yield fake


def there(array: Any) -> Any:
    return np.asarray(array).to_device("cuda:0")


def check(found: Any, expected: Any) -> None:
    import cupy

    assert type(found) is cupy.ndarray
    numpy.testing.assert_allclose(cupy.asnumpy(found), expected, 1e-14, 1e-15)


OPERATORS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "A @ x": (lambda a: a @ (there(X) * 2), A @ X * 2),
    "A @ matrix": (lambda a: a @ there(M), A @ M),
    "x @ A": (lambda a: (there(Y) * 2) @ a, Y @ A * 2),
    "matrix @ A": (lambda a: there(M.T.copy()) @ a.T, M.T @ A.T),
    "A.dot(x)": (lambda a: a.dot(there(X)), A @ X),
    "A * x": (lambda a: a * there(X), A @ X),
    "x * A": (lambda a: there(Y) * a, Y @ A),
    "A + x": (lambda a: a + there(A) * 2, A * 3),
    "x + A": (lambda a: there(A) * 2 + a, A * 3),
    "A.multiply(x)": (lambda a: a.multiply(there(A)).toarray(), A * A),
    "A @ view": (lambda a: a @ there(numpy.repeat(X, 2))[::2], A @ X),
    "A @ number": (lambda a: (a * there(X).sum()).toarray(), A * X.sum()),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_sparse_matrices(gpu: Any, name: str) -> None:
    from cupyx.scipy.sparse import csr_matrix

    function, expected = OPERATORS[name]
    check(function(csr_matrix(there(A))), expected)
    assert not on_host()


def test_sparse_matrices_are_made_of_our_arrays(gpu: Any) -> None:
    from cupyx.scipy.sparse import csr_array, csr_matrix

    data, indices, indptr = there([1.0, 2, 3]) * 2, there(numpy.array([0, 2, 1], "i4")), there(numpy.array([0, 2, 3], "i4"))
    expected = [[2.0, 0, 4], [0, 6, 0]]
    found = csr_matrix((data, indices, indptr), shape=(2, 3))
    check(found.toarray(), expected)
    assert found.data.data.ptr == data.__cuda_array_interface__["data"][0]
    check((csr_array(there(expected)) * there([[1.0], [2]])).toarray(), numpy.multiply(expected, [[1], [2]]))


def test_what_comes_back_goes_on(gpu: Any) -> None:
    from cupyx.scipy.sparse import csr_matrix

    x = there(X) + 1
    product = np.asarray(csr_matrix(there(A)) @ x)
    assert product.device == "cuda:0"
    numpy.testing.assert_allclose(numpy.asarray(np.exp(product) + 1), numpy.exp(A @ (X + 1)) + 1, 1e-14)
    assert not on_host()


def test_functions(gpu: Any) -> None:
    import cupyx.scipy
    import cupyx.scipy.ndimage
    import cupyx.scipy.special

    x = there(M) / 4
    check(cupyx.scipy.special.expit(x), 1 / (1 + numpy.exp(-M / 4)))
    check(cupyx.scipy.special.logsumexp(x, axis=1), numpy.log(numpy.exp(M / 4).sum(1)))
    weights = there([1.0, 2, 1])
    padded = numpy.pad(M / 4, [(0, 0), (1, 1)], mode="symmetric")
    check(cupyx.scipy.ndimage.convolve1d(x, weights=weights), padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:])
    assert cupyx.scipy.get_array_module(x) is cupyx.scipy
    assert cupyx.scipy.get_array_module(np.ones(3)) is not cupyx.scipy
    assert not on_host()


def test_arrays_of_the_processor_are_refused_as_numpys_are(gpu: Any) -> None:
    from cupyx.scipy.ndimage import convolve1d
    from cupyx.scipy.sparse import csr_matrix

    there(X).realize()
    with pytest.raises(TypeError, match="Unsupported type"):
        convolve1d(np.asarray(M), np.ones(3))
    for product in (lambda x: csr_matrix(there(A)) @ x, lambda x: x @ csr_matrix(there(A))):
        with pytest.raises((TypeError, ValueError)) as theirs:
            product(numpy.asarray(X))
        with pytest.raises(theirs.type):
            product(np.asarray(X))


def test_memory_that_cupy_was_given_is_not_written(gpu: Any) -> None:
    from cupyx.scipy.sparse import csr_matrix

    data = there([1.0, 2, 3]) * 2
    found = csr_matrix((data, there(numpy.array([0, 2, 1], "i4")), there(numpy.array([0, 2, 3], "i4"))), shape=(2, 3))
    data[0] = 100
    data.realize()
    check(found.toarray(), [[2.0, 0, 4], [0, 6, 0]])


@pytest.mark.skipif(not EMULATED, reason="asks the package that is installed")
def test_the_real_modules_are_told() -> None:
    """They load where there is no driver; those that need a library of CUDA's at their import are left out."""
    pytest.importorskip("cupy_backends", reason="the real CuPy is not installed", exc_type=ImportError)
    program = """
import types, lazynp, cupyx.scipy, cupyx.scipy.ndimage, cupyx.scipy.sparse as sparse, cupyx.scipy.special
names = "__init__ __matmul__ __rmatmul__ __mul__ __rmul__ __add__ __radd__ __sub__ __rsub__ __truediv__ dot multiply".split()
print([(kind.__name__, name) for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array, sparse.dia_matrix)
       for name in names if not hasattr(getattr(kind, name), "__given__")])
print([name for module in (sparse, cupyx.scipy.ndimage, cupyx.scipy.special) for name, value in vars(module).items()
       if name[0] != "_" and isinstance(value, types.FunctionType) and not hasattr(value, "__given__")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n[]\n"), done.stderr
