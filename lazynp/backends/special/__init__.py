"""Special functions of one real argument: what each graph operation of ``graph.op.SPECIAL`` computes, written once for all backends.

In: an ``Arithmetic``, whose values are doubles that a backend stands for (names of LLVM values, NumPy arrays), and the argument.  Out: the
function's value.  Promise: no branches, hence the same operations for every element; at most 4 units in the last place from the exact value
(``lazynp.special`` has the table), NaN, infinities, poles and signs of zeros as SciPy has them, and no floating-point flag on ordinary
data.  Single precision is computed in double and rounded once.

The two backends differ in a fused multiply-add, which NumPy lacks, and in whose exponential and logarithm they take.  So their results may
differ in the last places, as those of any transcendental function do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lazynp.backends.special import bessel, error, gamma, logistic

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
        error.erf, error.erfc, error.erfcx, error.ndtr, error.log_ndtr, error.erfinv, error.erfcinv, error.ndtri,
        logistic.expit, logistic.logit, logistic.log_expit,
        gamma.gammaln, gamma.digamma,
        bessel.i0, bessel.i0e, bessel.i1, bessel.i1e,
    )
}  # fmt: skip
