"""Warnings of calls: as many as NumPy gives, in its words, and at the user's line."""

from __future__ import annotations

import types
import warnings

import numpy
import pytest

import lazynp
from lazynp.values import config

# What loses imaginary parts, once per case.
COMPLEX = [
    # Writes.
    "x[:] = z", "x[[0, 1]] = z", "x[x == 0] = z", "x[x == 0] = np.array(1j)", "x.flat[:] = z", "x.flat = z", "x.fill(np.array(1j))",
    "x.put([0], z)", "np.put(x, [0, 1], z)", "np.copyto(x, z, casting='unsafe')", "np.put_along_axis(x, np.array([0, 1]), z, 0)",
    "np.fill_diagonal(np.zeros((2, 2)), z)", "np.insert(x, 0, z[:1])", "np.piecewise(x, [x == 0], [z])",
    # ufunc.at: known values, pending ones, none at all.
    "np.add.at(x, [0, 1], z)", "np.multiply.at(x, 0, 1j)", "np.add.at(x, [], 1j)", "np.add.at(x + 1, [0, 0], z)",
    "np.divide.at(i, [0, 0], z)",
    # Loops and results of a chosen dtype.
    "z.astype('f4')", "np.astype(z, 'f4')", "np.array(z, 'f8')", "np.asarray(z, dtype='i8')", "np.full(2, z, 'f8')", "np.full_like(x, z)",
    "np.sum(z, dtype='f8')", "np.cumsum(z, dtype='f8')", "z.mean(dtype='f8')", "np.var(z, dtype='f8')", "np.trace(z[:, None], dtype='f8')",
    "np.sum(x, initial=np.array(1j))", "np.add(z, 1, dtype='f8', casting='unsafe')", "np.add(x, 1j, out=x, casting='unsafe')",
    "np.concatenate([z], dtype='f8', casting='unsafe')", "np.linspace(0, z, 3, dtype='f8')", "np.histogram(z)",
    "np.histogram(z, range=(0, 3))",
]  # fmt: skip
# What loses none.
SILENT = [
    "np.histogram(z + x, bins=[0, 1, 2])", "z.astype(bool)", "z.astype('F')", "np.multiply.at(z, [0], 1j)", "np.add.at(x, [0, 1], z.real)",
    "x.__setitem__(0, z[0].real)",
]  # fmt: skip


def heard(module: types.ModuleType, text: str) -> list[tuple[type[Warning], str, str]]:
    given = {"np": module, "x": module.zeros(2), "i": module.zeros(2, int), "z": module.array([1j, 2])}
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        exec(compile(text, "<user>", "exec"), given)
    return [(entry.category, str(entry.message), entry.filename) for entry in log]


@pytest.mark.parametrize("text", COMPLEX + SILENT)
@pytest.mark.usefixtures("recorded")
def test_lost_imaginary_parts(text: str) -> None:
    want, got = heard(numpy, text), heard(lazynp, text)
    assert [entry[:2] for entry in got] == [entry[:2] for entry in want]
    assert len(got) == (text in COMPLEX)
    if "histogram" not in text:  # which are NumPy's own in this, and warn where NumPy does
        assert all(file == "<user>" for *_, file in got)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_empty_rows_of_quantiles_warn_once_each(dtype: str) -> None:
    rows = numpy.array([[numpy.nan] * 40, [*range(38), numpy.nan, numpy.nan], [numpy.nan] * 40]).astype(dtype)
    calls = ["np.nanmedian(rows)", "np.nanmedian(rows, 1)", "np.nanmedian(rows[0])"]
    if dtype != "complex64":
        calls += ["np.nanquantile(rows, 0.3, 1)", "np.nanpercentile(rows[0], [10, 50])", "np.nanquantile(rows[2], 0.5, method='hazen')"]
    for text in calls:
        found = []
        for module in (numpy, lazynp):
            with warnings.catch_warnings(record=True) as log:
                warnings.simplefilter("always")
                numpy.asarray(eval(text, {"np": module, "rows": module.array(rows)}))
            found.append([(entry.category, str(entry.message)) for entry in log])
        assert found[1] == found[0], text


def test_means_of_nothing_name_the_division_that_numpy_takes() -> None:
    for x in (numpy.zeros(0), numpy.zeros((0, 3)), numpy.zeros((2, 0), "f4"), numpy.zeros((0, 2), int)):
        for call in ("mean(x, None)", "mean(x, 0)", "mean(x, keepdims=True)", "var(x, None)", "std(x, 0)", "var(x, None, keepdims=True)"):
            found = []
            for module in (numpy, lazynp):
                with warnings.catch_warnings(record=True) as log:
                    warnings.simplefilter("always")
                    numpy.asarray(eval(f"np.{call}", {"np": module, "x": module.array(x)}))
                found.append(sorted(str(entry.message) for entry in log))
            assert found[1] == found[0], (call, x.shape)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "hypot", "subtract", "arctan2"])
@pytest.mark.parametrize("below", [0, 786_432])
def test_a_complex_output_of_a_real_reduction_warns_where_the_user_is(name: str, below: int) -> None:
    found = []
    with config.override(tape_limit=below):
        for np in (numpy, lazynp):
            x, out = np.arange(8), np.zeros((), "c16")
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                getattr(np, name).reduce(x, out=out, dtype="f8")
            found.append(([(w.category, str(w.message), w.filename, w.lineno) for w in said], complex(out)))
    assert found[0] == found[1]
