"""One ordinary call of every function in NumPy's namespace.

In: nothing.  Out: ``CALLS``, name -> an expression in ``np`` and the arrays of ``arrays``.  Promise: a test fails when a name is missing.
"""

from __future__ import annotations

from typing import Any

import numpy


def arrays(np: Any) -> dict[str, Any]:
    """What the expressions compute with, as arrays of ``np``."""
    rng = numpy.random.default_rng(5)
    return {
        "np": np,
        "a": np.array(numpy.arange(12.0).reshape(3, 4)),
        "m": np.array(rng.normal(size=(3, 3)) + 3 * numpy.eye(3)),
        "v": np.array(rng.normal(size=5)),
        "i": np.array([3, 1, 2]),
        "b": np.array([True, False, True]),
        "z": np.array([1 + 2j, 3 - 1j]),
        "n": np.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.5]),
        "u": np.array([7, 130, 1], "uint8"),
    }


# A call of the array ``a`` alone, or of ``a`` and one more argument, which is what most functions take.
_OF_A = (
    "all amax amin any argmax argmin argpartition:1 argsort argwhere around array array_repr array_str array_split:3 asanyarray "
    "asarray asarray_chkfinite ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d average clip:2,5 copy "
    "count_nonzero cumprod cumsum diagonal diff ediff1d expand_dims:0 fix flatnonzero flip fliplr flipud hsplit:2 imag iscomplex "
    "iscomplexobj isfortran isneginf isposinf isreal isrealobj isscalar iterable matrix_transpose max mean median min "
    "min_scalar_type nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile:30 nanprod "
    "nanquantile:0.3 nanstd nansum nanvar ndim nonzero ones_like empty_like full_like:2 zeros_like partition:1 percentile:30 prod "
    "ptp quantile:0.3 ravel real real_if_close repeat:2 require resize:(2,3) roll:1 rollaxis:1 rot90 round shape sinc size sort "
    "squeeze std sum swapaxes:0,1 take:[0,3] tile:2 trace transpose trapezoid trim_zeros unique unique_all unique_counts "
    "unique_inverse unique_values unstack unwrap var vsplit:3 tril triu diag diagflat tril_indices_from triu_indices_from "
    "permute_dims moveaxis:0,1 reshape:(4,3) broadcast_to:(2,3,4) corrcoef cov gradient array2string delete:1 insert:1,9 append:3 "
    "i0 angle astype:'f4' common_type histogram histogram_bin_edges sort_complex"
)

CALLS: dict[str, str] = {
    **{
        name: f"np.{name}(a{',' + rest if rest else ''})"
        for name, _, rest in (word.partition(":") for word in _OF_A.split())
    },
    "allclose": "np.allclose(a, a)",
    "apply_along_axis": "np.apply_along_axis(np.sum, 0, a)",
    "apply_over_axes": "np.apply_over_axes(np.sum, a, [0, 1])",
    "arange": "np.arange(2, 9, 2)",
    "array_equal": "np.array_equal(a, a)",
    "array_equiv": "np.array_equiv(a, a[:1])",
    "bartlett": "np.bartlett(7)",
    "base_repr": "np.base_repr(5)",
    "binary_repr": "np.binary_repr(5)",
    "bincount": "np.bincount(i)",
    "blackman": "np.blackman(7)",
    "block": "np.block([[a, a], [a, a]])",
    "broadcast_arrays": "np.broadcast_arrays(a, a[0])",
    "broadcast_shapes": "np.broadcast_shapes((3, 1), (4,))",
    "can_cast": "np.can_cast(i.dtype, 'f8')",
    "choose": "np.choose([0, 1, 0], [i, -i])",
    "column_stack": "np.column_stack([i, i])",
    "compress": "np.compress(b, a, axis=0)",
    "concat": "np.concat([a, a])",
    "concatenate": "np.concatenate([a, a])",
    "convolve": "np.convolve(v, i)",
    "copyto": "np.copyto(a, 3)",
    "correlate": "np.correlate(v, i)",
    "cross": "np.cross(i, i[::-1])",
    "cumulative_prod": "np.cumulative_prod(i)",
    "cumulative_sum": "np.cumulative_sum(i)",
    "datetime_data": "np.datetime_data('M8[s]')",
    "diag_indices": "np.diag_indices(3)",
    "diag_indices_from": "np.diag_indices_from(m)",
    "digitize": "np.digitize(v, [0, 1])",
    "dot": "np.dot(a, a.T)",
    "dsplit": "np.dsplit(a.reshape(1, 3, 4), 2)",
    "dstack": "np.dstack([a, a])",
    "einsum": "np.einsum('ij,kj->ik', a, a)",
    "einsum_path": "np.einsum_path('ij,kj->ik', a, a)",
    "empty": "np.empty(0)",
    "extract": "np.extract(a > 3, a)",
    "eye": "np.eye(3)",
    "fill_diagonal": "np.fill_diagonal(a, 7)",
    "format_float_positional": "np.format_float_positional(v[0])",
    "format_float_scientific": "np.format_float_scientific(v[0])",
    "frombuffer": "np.frombuffer(b'12345678', 'u1')",
    "fromfile": "np.fromfile(FILE, 'u1')",
    "fromfunction": "np.fromfunction(lambda i, j: i + j, (2, 3))",
    "fromiter": "np.fromiter(iter(v), float)",
    "fromregex": "np.fromregex(io.StringIO('1 2'), r'(\\d+)', [('n', int)])",
    "fromstring": "np.fromstring('1 2', sep=' ')",
    "frompyfunc": "np.frompyfunc(lambda x: x, 1, 1)",
    "from_dlpack": "np.from_dlpack(a)",
    "full": "np.full(3, 2)",
    "genfromtxt": "np.genfromtxt(io.StringIO('1 2'))",
    "geomspace": "np.geomspace(1, 100, 5)",
    "get_include": "np.get_include()",
    "get_printoptions": "np.get_printoptions()",
    "getbufsize": "np.getbufsize()",
    "geterr": "np.geterr()",
    "geterrcall": "np.geterrcall()",
    "hamming": "np.hamming(7)",
    "hanning": "np.hanning(7)",
    "histogram2d": "np.histogram2d(v, v)",
    "histogramdd": "np.histogramdd(a)",
    "hstack": "np.hstack([a, a])",
    "identity": "np.identity(3)",
    "indices": "np.indices((2, 3))",
    "info": "np.info('nothing', output=io.StringIO())",
    "inner": "np.inner(a, a)",
    "interp": "np.interp(v, [0, 1], [2, 3])",
    "intersect1d": "np.intersect1d(i, [1])",
    "isclose": "np.isclose(a, a)",
    "isdtype": "np.isdtype(a.dtype, 'numeric')",
    "isin": "np.isin(i, [1])",
    "issubdtype": "np.issubdtype(a.dtype, np.floating)",
    "ix_": "np.ix_(i, b)",
    "kaiser": "np.kaiser(7, 2.0)",
    "kron": "np.kron(i, a)",
    "lexsort": "np.lexsort((i, i))",
    "linspace": "np.linspace(0, 1, 5)",
    "load": "np.load(NPY)",
    "loadtxt": "np.loadtxt(io.StringIO('1 2'))",
    "logspace": "np.logspace(0, 1, 5)",
    "mask_indices": "np.mask_indices(3, np.triu)",
    "may_share_memory": "np.may_share_memory(a, a)",
    "meshgrid": "np.meshgrid(i, v)",
    "mintypecode": "np.mintypecode(['d', 'f'])",
    "nested_iters": "np.nested_iters(a, [[0], [1]])",
    "ones": "np.ones(3)",
    "outer": "np.outer(i, v)",
    "packbits": "np.packbits(b)",
    "pad": "np.pad(a, 2)",
    "piecewise": "np.piecewise(a, [a < 3], [0, 1])",
    "place": "np.place(a, a > 3, [7, 8])",
    "poly": "np.poly(v)",
    "polyadd": "np.polyadd(i, v)",
    "polyder": "np.polyder(v)",
    "polydiv": "np.polydiv(v, i)",
    "polyfit": "np.polyfit(v, v * v, 2)",
    "polyint": "np.polyint(v)",
    "polymul": "np.polymul(i, v)",
    "polysub": "np.polysub(i, v)",
    "polyval": "np.polyval(i, a)",
    "printoptions": "np.printoptions()",
    "promote_types": "np.promote_types('i4', 'f4')",
    "put": "np.put(a, i, 9)",
    "put_along_axis": "np.put_along_axis(a, np.array([[1]]), 9, 0)",
    "putmask": "np.putmask(a, a > 3, -a)",
    "ravel_multi_index": "np.ravel_multi_index((i, i), (4, 5))",
    "result_type": "np.result_type(a, i)",
    "roots": "np.roots(v)",
    "row_stack": "np.row_stack([i, i])",
    "save": "np.save(io.BytesIO(), a)",
    "savetxt": "np.savetxt(io.BytesIO(), a)",
    "savez": "np.savez(io.BytesIO(), a)",
    "savez_compressed": "np.savez_compressed(io.BytesIO(), a)",
    "searchsorted": "np.searchsorted(a[0], v)",
    "select": "np.select([a > 3], [a])",
    "set_printoptions": "np.set_printoptions()",
    "setbufsize": "np.setbufsize(8192)",
    "setdiff1d": "np.setdiff1d(i, [1])",
    "seterr": "np.seterr()",
    "seterrcall": "np.seterrcall(None)",
    "setxor1d": "np.setxor1d(i, [1])",
    "shares_memory": "np.shares_memory(a, a)",
    "show_config": "np.show_config('dicts')",
    "show_runtime": "np.show_runtime",
    "split": "np.split(a, 3)",
    "stack": "np.stack([a, a])",
    "take_along_axis": "np.take_along_axis(a, np.array([[0], [1], [2]]), -1)",
    "tensordot": "np.tensordot(a, a)",
    "test": "np.test",
    "tri": "np.tri(3)",
    "tril_indices": "np.tril_indices(3)",
    "triu_indices": "np.triu_indices(3)",
    "typename": "np.typename('d')",
    "union1d": "np.union1d(i, v)",
    "unpackbits": "np.unpackbits(u)",
    "unravel_index": "np.unravel_index(i, (2, 3))",
    "vander": "np.vander(v)",
    "vdot": "np.vdot(v, v)",
    "vstack": "np.vstack([a, a])",
    "where": "np.where(a > 3, a, 0)",
    "zeros": "np.zeros(3)",
    # dates, matrices: objects of NumPy's own
    "asmatrix": "np.asmatrix(a)",
    "bmat": "np.bmat([[a, a]])",
    "busday_count": "np.busday_count('2020-01-01', '2020-02-01')",
    "busday_offset": "np.busday_offset('2020-01-01', 1, 'forward')",
    "datetime_as_string": "np.datetime_as_string(np.datetime64('2020'))",
    "is_busday": "np.is_busday('2020-01-01')",
}

UFUNC_ARGUMENTS = {"ldexp": "v, i[0]", "bitwise_count": "i", "invert": "i", "matmul": "m, m", "matvec": "m, v[:3]", "vecmat": "v[:3], m",
                   "vecdot": "m, m", "isnat": "np.asarray(np.datetime64('2020'))"}  # fmt: skip
INTEGER = {"gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}


def ufunc_call(name: str) -> str:
    """The call of a ufunc, of as many arrays as it takes."""
    of = getattr(numpy, name)
    given = UFUNC_ARGUMENTS.get(of.__name__) or ", ".join(["i" if of.__name__ in INTEGER else "v"] * of.nin)
    return f"np.{name}({given})"
