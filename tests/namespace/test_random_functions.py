# ruff: noqa: E501 - a family of calls is one line of the table
"""Random calls of functions that are no ufuncs: dtypes, shapes, memory orders, pending values, keywords, arguments that do not fit.

``LAZYNP_EXAMPLES`` sets how many.  A call that differs is printed as the expression that it is.  Where NumPy raises, so do we; which of two
errors comes first is open, and the tables of the other tests say which one a single mistake gives.
"""

from __future__ import annotations

import os
import random
import re
import warnings
from math import prod
from typing import Any

import numpy
import pytest

import lazynp
from tests.namespace.compare import COMPLEX, DTYPES, FLOATS, INTEGERS, plain

REALS = ["bool", *INTEGERS, *FLOATS]
SHAPES = [(), (1,), (4,), (0,), (2, 3), (3, 1), (2, 0, 3), (2, 3, 4), (1, 3), (3, 3)]
LINES = [(4,), (1,), (0,), (3,), (7,)]
SQUARES = [*[(3, 3)] * 5, (2, 2), (2, 3, 3), (0, 0), (1, 1), (2, 3)]
VIEWS = [*["{}"] * 6, "{}.T", "{}[::-1]", "{}[1:]", "{}[..., ::2]", "{}[None]"]

# Words of the templates: arrays (dtypes, shapes) and what else is drawn.
ARRAYS = {
    "A": (DTYPES, SHAPES), "R": (REALS, SHAPES), "F": (FLOATS, SHAPES), "I": (INTEGERS, SHAPES), "B": (["bool"], SHAPES), "V": (DTYPES, LINES),
    "VR": (REALS, LINES), "VI": (INTEGERS, LINES), "M": (["float64", "float32", "complex128", "int64", "complex64", "int8"], SQUARES),
}  # fmt: skip
WORDS = {
    "AXIS": ["0", "1", "-1", "-2", "None", "0", "-1", "2"],
    "AXES": ["(0, 1)", "(0,)", "()", "(-1,)", "None", "0", "(1, 0)", "(0, 0)"],
    "K": ["0", "1", "2", "-1", "3"],
    "N": ["0", "1", "2", "5", "-1"],
    "X": ["0", "1", "2.5", "-1", "1j", "True", "np.float32(2)", "np.int8(3)"],
    "XR": ["0", "1", "2.5", "-1", "True", "np.float32(2)", "np.int8(3)"],
    "BOOL": ["True", "False"],
    "DTYPE": [repr(dtype) for dtype in DTYPES],
    "SHAPE": ["(2, 3)", "6", "(-1,)", "(3, 2)", "()", "(0,)", "(1, -1)", "(2, 3, 4)", "(4,)", "(3, 3)"],
    "ORDER": ["'C'", "'F'", "'A'", "'K'"],
    "IDX": ["[0]", "0", "[0, 1]", "[[0], [1]]", "-1", "[5]", "slice(None)", "np.array([0, -1])", "[]", "np.array(1)"],
    "Q": ["0.5", "0", "1", "[0.25, 0.5]", "0.3", "np.float32(0.3)"],
    "METHOD": ["'linear'", "'lower'", "'nearest'", "'midpoint'", "'hazen'", "'inverted_cdf'", "'weibull'", "'median_unbiased'"],
    "PAD": ["'edge'", "'wrap'", "'reflect'", "'symmetric'", "'constant'", "'mean'", "'linear_ramp'"],
    "OUT": ["np.zeros((2, 3))", "np.zeros(())", "np.zeros(4)", "np.zeros(3, 'f4')", "np.zeros((3, 3), complex)", "np.zeros(3)", "np.zeros((2, 1))"],
}  # fmt: skip

# A keyword in double brackets is given or not.
TEMPLATES = """
np.sum(A[[, axis=AXIS]][[, dtype=DTYPE]][[, keepdims=BOOL]][[, initial=XR]])
np.prod(A, axis=AXES[[, keepdims=BOOL]])
np.mean(A[[, axis=AXIS]][[, keepdims=BOOL]])
np.std(A[[, axis=AXES]][[, ddof=N]][[, keepdims=BOOL]])
np.var(A[[, axis=AXIS]][[, correction=N]])
np.max(A[[, axis=AXES]][[, keepdims=BOOL]])
np.min(A[[, axis=AXIS]], initial=X)
np.ptp(A[[, axis=AXIS]][[, keepdims=BOOL]])
np.argmax(A[[, axis=AXIS]][[, keepdims=BOOL]])
np.argmin(A[[, axis=AXIS]])
np.any(A[[, axis=AXES]])
np.all(A[[, axis=AXIS]][[, keepdims=BOOL]])
np.count_nonzero(A[[, axis=AXES]][[, keepdims=BOOL]])
np.cumsum(A[[, axis=AXIS]][[, dtype=DTYPE]])
np.cumprod(A[[, axis=AXIS]])
np.cumulative_sum(A[[, axis=AXIS]][[, include_initial=BOOL]])
np.cumulative_prod(A[[, axis=AXIS]][[, include_initial=BOOL]])
np.nansum(A[[, axis=AXIS]])
np.nanprod(A[[, axis=AXIS]])
np.nanmean(A[[, axis=AXIS]][[, keepdims=BOOL]])
np.nanvar(A[[, axis=AXIS]][[, ddof=N]])
np.nanmax(A[[, axis=AXES]])
np.nanmin(A[[, axis=AXIS]][[, keepdims=BOOL]])
np.nanargmax(A[[, axis=AXIS]])
np.nancumsum(A[[, axis=AXIS]])
np.median(R[[, axis=AXIS]][[, keepdims=BOOL]])
np.nanmedian(R[[, axis=AXIS]])
np.average(A[[, axis=AXIS]])
np.average(V, weights=VR)
np.quantile(R, Q[[, axis=AXIS]][[, method=METHOD]][[, keepdims=BOOL]])
np.nanquantile(R, Q[[, axis=AXES]][[, method=METHOD]])
np.sum(A, axis=AXIS, where=A > 1)
np.max(R, axis=AXIS, where=B, initial=XR)
np.mean(A, where=A > 1)
np.all(A, axis=AXES, where=B)
np.sort(A[[, axis=AXIS]])
np.argsort(A[[, axis=AXIS]], kind='stable')
np.sort_complex(A)
np.lexsort((V, V))
np.partition(R, K)[..., :0]
np.searchsorted(np.sort(VR), R[[, side='right']])
np.digitize(R, np.sort(VR)[[, right=BOOL]])
np.nonzero(A)
np.argwhere(A)
np.flatnonzero(A)
np.where(A, A, X)
np.where(B, X, X)
np.select([B, A > 1], [A, A])
np.choose(I % 2, [V, X])
np.piecewise(F, [B], [XR, XR])
np.unique(A[[, axis=AXIS]][[, return_index=BOOL]][[, return_counts=BOOL]])
np.isin(A, A[[, invert=BOOL]])
np.intersect1d(A, X)
np.union1d(A, X)
np.setdiff1d(A, A)
np.setxor1d(A, X)
np.isin(A, [1, 2])
np.trim_zeros(V[[, trim='f']])
np.reshape(A, SHAPE[[, order=ORDER]])
np.ravel(A[[, order=ORDER]])
np.transpose(A[[, axes=AXES]])
np.moveaxis(A, K, K)
np.moveaxis(A, AXES, AXES)
np.rollaxis(A, K, K)
np.swapaxes(A, K, K)
np.expand_dims(A, AXES)
np.squeeze(A[[, axis=AXES]])
np.flip(A[[, axis=AXES]])
np.rot90(A[[, k=N]])
np.roll(A, N[[, axis=AXIS]])
np.roll(A, (1, 2), axis=(0, -1))
np.tile(A, SHAPE)
np.repeat(A, N[[, axis=AXIS]])
np.repeat(A, VI[[, axis=AXIS]])
np.concatenate((A, A)[[, axis=AXIS]][[, dtype=DTYPE]][[, casting='unsafe']])
np.stack((A, A)[[, axis=AXIS]])
np.hstack((A, A))
np.vstack((A, X))
np.dstack((A, A))
np.column_stack((A, V))
np.append(A, X)
np.append(A, A[[, axis=AXIS]])
np.block([[A, A]])
np.unstack(A[[, axis=AXIS]])
np.insert(A, K, X[[, axis=AXIS]])
np.delete(A, IDX[[, axis=AXIS]])
np.split(A, N[[, axis=AXIS]])
np.array_split(A, N[[, axis=AXIS]])
np.pad(A, K[[, mode=PAD]])
np.pad(R, ((1, 2),), constant_values=XR)
np.resize(A, SHAPE)
np.atleast_2d(A, V)
np.atleast_3d(A)
np.broadcast_to(A, SHAPE)
np.diag(A[[, k=N]])
np.diagflat(A[[, k=N]])
np.diagonal(A[[, offset=N]])
np.trace(A[[, offset=N]][[, dtype=DTYPE]])
np.tril(A[[, k=N]])
np.triu(A[[, k=N]])
np.tri(K[[, k=N]][[, dtype=DTYPE]])
np.vander(V[[, increasing=BOOL]])
np.eye(K[[, k=N]][[, dtype=DTYPE]])
np.linalg.inv(M)
np.linalg.det(M)
np.linalg.slogdet(M)
np.linalg.solve(M, V)
np.linalg.solve(M, M)
np.linalg.eigvalsh(M)
np.linalg.svdvals(M)
np.linalg.cholesky(M)
np.linalg.matrix_power(M, K)
np.linalg.matrix_rank(M)
np.linalg.norm(A[[, axis=AXIS]][[, keepdims=BOOL]])
np.linalg.norm(M, 'fro')
np.linalg.vector_norm(A[[, axis=AXES]][[, keepdims=BOOL]])
np.linalg.matrix_norm(M)
np.linalg.multi_dot([M, M, V])
np.linalg.trace(M[[, offset=N]])
np.linalg.diagonal(M[[, offset=N]])
np.linalg.outer(V, V)
np.linalg.tensordot(M, M[[, axes=K]])
np.matmul(M, M)
np.matmul(A, A)
np.dot(M, V)
np.vdot(V, V)
np.inner(M, M)
np.outer(A, A)
np.kron(A, A)
np.cross(A, A)
np.vecdot(M, M)
np.einsum('ij,jk->ik', M, M)
np.einsum('ii->i', M)
np.einsum('i,i', V, V)
np.einsum('...i->...', A)
np.matvec(M, V)
np.vecmat(V, M)
np.fft.fft(A[[, n=K]][[, axis=AXIS]][[, norm='ortho']])
np.fft.ifft(A[[, axis=AXIS]])
np.fft.rfft(R[[, n=K]][[, axis=AXIS]])
np.fft.hfft(V)
np.fft.irfft(V[[, n=4]])
np.fft.fft2(A[[, axes=(0, 1)]])
np.fft.fftn(A[[, axes=AXES]])
np.fft.fftshift(A, AXES)
np.fft.fftfreq(K[[, d=XR]])
np.diff(A[[, n=N]][[, axis=AXIS]][[, prepend=X]][[, append=X]])
np.ediff1d(A[[, to_end=X]])
np.gradient(A[[, axis=AXIS]])
np.trapezoid(A, A)
np.trapezoid(A[[, dx=XR]][[, axis=AXIS]])
np.interp(R, np.sort(VR), VR)
np.interp(R, VR, V, period=3)
np.convolve(V, V[[, mode='same']])
np.correlate(V, V)
np.histogram(R[[, bins=K]])
np.histogram(R, range=(0, 3))
np.bincount(abs(VI))
np.cov(M)
np.unwrap(R[[, axis=AXIS]])
np.clip(A, X, X)
np.clip(A, None, A)
np.round(A[[, decimals=N]])
np.fix(A)
np.nan_to_num(A[[, nan=XR]])
np.real(A)
np.imag(A)
np.angle(A)
np.isclose(A, A)
np.allclose(A, X)
np.array_equal(A, A)
np.iscomplex(A)
np.isposinf(R)
np.sinc(A)
np.heaviside(R, XR)
np.conjugate(A)
np.polyval(V, A)
np.polyadd(V, V)
np.polymul(V, V)
np.polyder(V)
np.polyint(V)
np.poly1d(V)(A)
np.polynomial.polynomial.polyval(X, V)
np.take(A, IDX[[, axis=AXIS]][[, mode='clip']])
np.compress(B, A[[, axis=AXIS]])
np.extract(B, A)
np.take_along_axis(A, I, K)
A.take(IDX)
(lambda a: (np.place(a, a > 1, V), a))(A.copy())
(lambda a: (np.put(a, I, V, mode='wrap'), a))(A.copy())
(lambda a: (np.putmask(a, B, V), a))(A.copy())
(lambda a: (np.copyto(a, A[[, casting='unsafe']][[, where=B]]), a))(A.copy())
(lambda a: (np.fill_diagonal(a, X[[, wrap=BOOL]]), a))(A.copy())
(lambda a: (a.__setitem__(IDX, X), a))(A.copy())
(lambda a: (a.__setitem__(IDX, A), a))(A.copy())
(lambda a: (a.__setitem__(a > 1, X), a))(A.copy())
(lambda a: (a[::-1].__setitem__(Ellipsis, a), a))(A.copy())
(lambda a: (setattr(a, 'flat', a[::-1]), a))(A.copy())
(lambda a: (a.sort(AXIS), a))(A.copy())
(lambda a: (a.flat.__setitem__(slice(1, None), a), a))(A.copy())
(lambda a: (setattr(a, 'real', X), a))(A.copy())
(lambda a: (a.fill(X), a))(A.copy())
(lambda a: (a.__iadd__(A), a))(A.copy())
(lambda a: (a.__imul__(X), a))(A.copy())
(lambda a: (a.partition(K), a.shape))(V.copy())
(lambda o: (np.sum(A[[, axis=AXIS]], out=o), o))(OUT)
(lambda o: (np.mean(A[[, axis=AXIS]], out=o), o))(OUT)
(lambda o: (np.dot(M, M, out=o), o))(OUT)
(lambda o: (np.max(R[[, axis=AXIS]], out=o), o))(OUT)
(lambda o: (np.ptp(R[[, axis=AXIS]], out=o), o))(OUT)
(lambda o: (np.clip(R, 0, 1, out=o), o))(OUT)
(lambda o: (np.concatenate((A, A)[[, axis=AXIS]], out=o), o))(OUT)
(lambda o: (np.take(A, IDX, out=o), o))(OUT)
A[IDX]
A[IDX, IDX]
A[..., IDX]
A[None, IDX]
A[IDX, None, IDX]
A[B]
A[A > 1]
A[::-1, IDX]
A[I % 2]
A.T[IDX]
(lambda a: a.flat[IDX])(A)
np.packbits(B[[, axis=AXIS]])
np.ix_(VI, V)
np.meshgrid(V, V[[, indexing='ij']][[, sparse=BOOL]])
np.indices(SHAPE)
np.unravel_index(abs(I), (99, 9))
np.arange(XR, 9, 2[[, dtype='f4']])
np.linspace(X, X, K[[, endpoint=BOOL]])
np.linspace(V, X, 3[[, axis=AXIS]])
np.full(SHAPE, X[[, dtype=DTYPE]])
np.full_like(A, XR)
np.zeros_like(A[[, dtype=DTYPE]][[, shape=SHAPE]])
np.array(A[[, dtype=DTYPE]][[, ndmin=3]])
np.array([A, A])
np.array([X, X, X])
A.astype(DTYPE[[, casting='safe']])
A.view(DTYPE)
A.item()
A.tolist()
A.flatten(ORDER)
bool(A)
float(R)
int(R)
complex(A)
len(A)
A.tobytes()
A + X
X - A
A * A
A / X
A // XR
XR % R
A ** 2
2 ** F
A == A
A < X
A & A
-A
~A
A @ A
divmod(R, R)
abs(A)
round(A, N)
I << 1
np.apply_along_axis(np.sort, AXIS, A)
np.apply_over_axes(np.sum, A, AXES)
np.lib.stride_tricks.sliding_window_view(A, 2[[, axis=AXIS]])
np.result_type(A, X)
np.common_type(F, A)
np.can_cast(A.dtype, DTYPE)
np.size(A[[, axis=AXIS]])
str(A)
repr(A)
np.emath.sqrt(A)
np.emath.log(A)
"""
CALLS = TEMPLATES.strip().split("\n")
# Where a value that is no number decides, or is in the way of LAPACK.
FINITE = re.compile(r"linalg|fft|einsum|gradient|interp|conv|corr|cov|hist|astype|view|int\(|cast|dtype|poly|kron|dot|mat|@|emath|quantile|median")


class Calls:
    """A source of expressions in ``np``."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def array(self, dtypes: list[str], shapes: list[tuple[int, ...]], finite: bool) -> str:
        choose, dtype = self.dice.choice, self.dice.choice(dtypes)
        shape = choose(shapes)
        special = dtype in FLOATS and not finite and self.dice.random() < 0.3
        numbers = [0.0, -0.0, 1.5, -2.25, 3.0, numpy.nan, numpy.inf, -numpy.inf] if special else range(0 if dtype[0] in "ub" else -4, 6)
        values = [choose(numbers) for _ in range(prod(shape))] if self.dice.random() < 0.6 or special else list(range(prod(shape)))
        text = f"np.array({values}, {dtype!r}).reshape({shape})".replace("nan", "np.nan").replace("inf", "np.inf")
        if dtype in COMPLEX:
            text = f"({text} * np.{dtype}(1 - 1j))"
        if shape and self.dice.random() < 0.3:
            text = f"np.concatenate([{text}])"  # pending
        return choose(VIEWS).format(text) if shape and shapes is not SQUARES else text

    def call(self) -> str:
        template = self.dice.choice(CALLS)
        template = re.sub(r"\[\[(, [^\[\]]*)\]\]", lambda found: found[1] if self.dice.random() < 0.4 else "", template)
        finite = FINITE.search(template) is not None

        def drawn(found: re.Match[str]) -> str:
            word = found[0]
            return self.dice.choice(WORDS[word]) if word in WORDS else self.array(*ARRAYS[word], finite)

        return re.sub(rf"\b({'|'.join([*WORDS, *ARRAYS])})\b", drawn, template)


def outcome(module: Any, text: str) -> tuple[Any, list[tuple[str, str]]]:
    """What a call gives, and its warnings but those about floating-point errors."""
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        try:
            value = plain(eval(text, {"np": module}))
        except Exception as error:
            value = error
    return value, sorted({(entry.category.__name__, str(entry.message)) for entry in log if entry.category is not RuntimeWarning})


def difference(got: Any, want: Any) -> str | None:
    if isinstance(got, Exception) or isinstance(want, Exception):
        return None if isinstance(got, Exception) and isinstance(want, Exception) else f"{got!r} instead of {want!r}"
    if got[0] != want[0]:
        return f"{got!r} instead of {want!r}"
    if got[0] == "object":
        # A value, or what is none: ``str`` of an array, bytes, lists.
        one, other = [repr(value[1]).replace("lazynp", "numpy") for value in (got, want)]
        return None if one == other else f"{one} instead of {other}"
    if got[0] not in ("array", "scalar"):
        pairs = list(zip(got[1], want[1], strict=False))
        return next(filter(None, [difference(*pair) for pair in pairs]), None if len(got[1]) == len(want[1]) else "another length")
    x, y = numpy.asarray(got[1]), numpy.asarray(want[1])
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return f"{x.dtype} {x.shape} instead of {y.dtype} {y.shape}"
    same = numpy.array_equal(x, y) if y.dtype.kind not in "fc" else close(x, y)
    return None if same else f"{x!r} instead of {y!r}"


def close(x: numpy.ndarray, y: numpy.ndarray) -> bool:
    """Equal but for the order of sums and the last places of functions."""
    tolerance = {"e": 4e-3, "f": 1e-5, "F": 1e-5}.get(y.dtype.char, 1e-12)
    with numpy.errstate(all="ignore"):
        scale = max(1.0, float(numpy.max(abs(y[numpy.isfinite(y)]), initial=0)))
        return bool(numpy.isclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True).all())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_calls(seed: int) -> None:
    calls = Calls(seed)
    for _ in range(max(400, int(os.environ.get("LAZYNP_EXAMPLES", "0")) // 4)):
        text = calls.call()
        want, warned = outcome(numpy, text)
        got, heard = outcome(lazynp, text)
        found = difference(got, want)
        assert found is None, f"{text}: {found}"
        assert isinstance(want, Exception) or heard == warned, f"{text}: {heard} instead of {warned}"


def test_every_template_may_succeed() -> None:
    """A table with a misspelt name would test errors alone."""
    assert all(hasattr(numpy, name) for name in re.findall(r"\bnp\.(\w+)", TEMPLATES))
