"""All names that lazynp answers itself.

In: the topic modules.  Out: ``ALL`` (name -> object) for the package's namespace, and the submodules.  Promise: the one list;
what is not in it is NumPy's, through the fallback.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lazynp import arrays
from lazynp.engine import devices
from lazynp.namespace.bridge import fallback
from lazynp.namespace.ufunc import ufuncs
from lazynp.values.loading import load

PUBLIC: Final = [
    "realize", "schedule", "explain", "kernelize", "memory", "progress", "report", "set_fallback", "coverage", "device", "lazynp_version",
]  # fmt: skip

# Public modules that NumPy does not have; they are loaded when one is asked for.
OWN_MODULES: Final = ("cuda", "special")

ALL: Final[dict[str, Any]] = {
    **{name: value for name, value in vars(np).items() if isinstance(value, type) and issubclass(value, np.generic)},
    "ndarray": arrays.ndarray,
    "device": devices.device,
    "ufunc": ufuncs.ufunc,
    "pi": np.pi,
    "e": np.e,
    "inf": np.inf,
    "nan": np.nan,
    "newaxis": None,
    "True_": np.True_,
    "False_": np.False_,
}

# Module of the routines -> the names it answers.  They are loaded when one is asked for: importing lazynp stays cheap.
_LATER: Final = {
    "creation": "arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray copy diag diagflat diagonal empty "
    "empty_like eye fromfunction full full_like identity indices meshgrid ones ones_like trace tri tril triu zeros zeros_like",
    "types": "astype can_cast common_type copyto finfo iinfo isdtype isfortran isscalar issubdtype iterable may_share_memory "
    "min_scalar_type ndim result_type shape shares_memory size",
    "shaping": "array_split atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to dsplit expand_dims flip fliplr flipud hsplit "
    "matrix_transpose moveaxis permute_dims ravel reshape rollaxis rot90 split squeeze swapaxes transpose unstack vsplit",
    "selecting": "argpartition argsort argwhere clip compress extract flatnonzero nonzero partition searchsorted select sort take "
    "take_along_axis where",
    "joining": "append block column_stack concat concatenate dstack hstack pad repeat roll stack tile vstack",
    "mathematics": "allclose angle around array_equal array_equiv cross diff ediff1d fix imag isclose iscomplex iscomplexobj isneginf "
    "isposinf isreal isrealobj nan_to_num real round sinc",
    "statistics": "average mean std var",
    "vectorize": "frompyfunc vectorize",
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander",
    "windows": "bartlett blackman hamming hanning kaiser",
    "inserting": "fill_diagonal place put put_along_axis putmask",
    "functional": "choose piecewise trim_zeros real_if_close apply_along_axis apply_over_axes",
    "editing": "delete insert resize row_stack require",
    "index_arrays": "diag_indices diag_indices_from ix_ mask_indices ravel_multi_index tril_indices tril_indices_from triu_indices "
    "triu_indices_from unravel_index",
    "index_tricks": "c_ mgrid ogrid r_",
    "iteration": "broadcast ndenumerate nditer nested_iters",
    "files": "frombuffer fromfile fromiter fromregex fromstring from_dlpack genfromtxt load loadtxt save savetxt savez savez_compressed",
    "maps": "memmap",
    "printing": "array2string array_repr array_str format_float_positional format_float_scientific",
    "bits": "einsum_path packbits unpackbits",
    "ranges": "geomspace linspace logspace",
    "order_statistics": "median nanmedian quantile percentile nanquantile nanpercentile lexsort sort_complex",
    "nan_functions": "nansum nanprod nancumsum nancumprod nanmin nanmax nanargmin nanargmax nanmean nanvar nanstd",
    "sets": "unique unique_all unique_counts unique_inverse unique_values intersect1d union1d setdiff1d setxor1d isin",
    "histograms": "histogram histogram_bin_edges histogram2d histogramdd digitize bincount",
    "correlation": "cov corrcoef",
    "contraction": "einsum",
    "calculus": "gradient unwrap trapezoid interp convolve correlate i0",
}
_REDUCTIONS: Final = "all amax amin any argmax argmin count_nonzero cumprod cumsum cumulative_prod cumulative_sum max min prod ptp sum"
_PRODUCTS: Final = "dot inner kron matmul matvec outer tensordot vdot vecdot vecmat"
_OWN: Final = "realize schedule explain kernelize memory progress report set_fallback"
LATER: Final = {
    "coverage": "coverage",
    **dict.fromkeys(_OWN.split(), "laziness"),
    **dict.fromkeys(("__array_api_version__", "__array_namespace_info__"), "standard"),
    **{name: f"routines.{module}" for module, names in _LATER.items() for name in names.split()},
    **dict.fromkeys(_REDUCTIONS.split(), "ufunc.reductions"),
    **dict.fromkeys(_PRODUCTS.split(), "submodules.linalg"),
}


# Of these modules functions are NumPy's work by design, and say so.
_AT_ONCE: Final = frozenset(
    {"coverage", "laziness", "standard", *[f"routines.{module}" for module in ("polynomials", "index_arrays", "files", "printing")]}
)


def answers(name: str) -> bool:
    """Tell whether lazynp has an own object of this name."""
    return name in ALL or name in LATER or name in ufuncs.NAMES


def on_demand(name: str) -> Any:
    """Make what lazynp has under this name ready for users; its module is loaded where it is not yet."""
    if name in ALL or name in ufuncs.NAMES:
        return fallback.published(name, ALL[name] if name in ALL else ufuncs.UFUNCS[ufuncs.NAMES[name]], "lazynp")
    home = f"lazynp.namespace.{LATER[name]}"
    found = None if LATER[name] in _AT_ONCE else fallback.promised(name, home, "lazynp")
    return fallback.published(name, load(home).FUNCTIONS[name], "lazynp") if found is None else found


_SUBMODULES: Final = (
    "linalg", "fft", "random", "polynomial", *fallback.SERIES, "ma", "ma.extras", "char", "strings", "rec", "testing", "exceptions",
    "dtypes", "typing", "ctypeslib", "lib", "lib.array_utils", "lib.format", "lib.introspect", "lib.mixins", "lib.npyio",
    "lib.recfunctions", "lib.scimath", "lib.stride_tricks",
)  # fmt: skip


def submodules() -> dict[str, Any]:
    """Path -> module, for all public modules of NumPy; none of NumPy's is imported for it."""
    modules: dict[str, Any] = {path: fallback.submodule(path) for path in _SUBMODULES}
    return {**modules, "emath": modules["lib.scimath"]}
