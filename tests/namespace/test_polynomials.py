"""Polynomials against NumPy: arithmetic, roots, values, fits, and the classes of ``numpy.polynomial``."""

from __future__ import annotations

import numpy

from tests.namespace.compare import table

RNG = numpy.random.default_rng(3)
NAMES = {
    "a": numpy.arange(12.0).reshape(3, 4),
    "i": numpy.array([3, 1, 2]),
    "m": RNG.normal(size=(3, 3)),
    "v": RNG.normal(size=5),
    "z": RNG.normal(size=3) + 1j * RNG.normal(size=3),
    "n": numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.5]),
    "b": numpy.array([True, False, True]),
    "s": numpy.array(2.5),
}

test_exact = table(
    NAMES,
    """
    np.polyadd(i, v)
    np.polyadd([1], v)
    np.polyadd(v, 2)
    np.polysub(i, z)
    np.polysub(2, 3)
    np.polyadd(b, b)
    np.polyadd(i.astype('i1'), [1.5])
    np.polyder(v)
    np.polyder(i, 2)
    np.polyder(i, 0)
    np.polyder(i, 5)
    np.polyder(b)
    np.polyint(i)
    np.polyint(v, 2)
    np.polyint(i, 2, 5)
    np.polyint(i, 2, [1, 2])
    np.polyint(z)
    np.polyint(i, 0)
    np.polyint(v.astype('f4'))
    ! np.polyder(i, -1)
    ! np.polyder(3)
    ! np.polyint(i, -1)
    ! np.polyint(i, 3, [1, 2])
    np.polyval(i, a)
    np.polyval(i, 2)
    np.polyval([1, 2], 3.0)
    np.polyval(z, v)
    np.polyval([], a)
    np.polyval(i, n)
    np.polyval(i, i.astype('f4'))
    np.polyval(b, b)
    np.polyval([2], s)
    np.polyval(np.poly1d([1, 2, 3]), a)
    np.polyval(i, np.poly1d([1, 1])).coeffs
    np.polyadd(np.poly1d([1, 2]), i).coeffs
    np.polyder(np.poly1d(i)).coeffs
    np.polyint(np.poly1d(i)).coeffs
    np.poly1d(i)(a)
    np.polymul(i, [1, 2])
    np.polymul([0, 0, 1], i)
    np.polydiv(i, [1, 2])
    np.polydiv([1.0, 2], i)
    np.polymul(np.poly1d([1, 2]), i).coeffs
    np.poly(i)
    np.poly(m @ m.T)
    np.poly([])
    np.poly([1j, -1j])
    np.roots(i)
    np.roots([0, 0])
    np.roots([0, 1, 2, 0])
    ! np.roots(a)
    ! np.poly(a)
    np.vander(i)
    np.vander(v, 3)
    np.vander(i, 2, True)
    np.vander(i, 0)
    np.vander(i, 1)
    np.vander(b)
    np.vander(z, 3)
    np.vander([])
    np.vander(i.astype('i1'), 5)
    np.vander(i.astype('f4'), 4, increasing=True)
    ! np.vander(a)
    ! np.vander(i, -1)
    np.polynomial.polynomial.polyval(a, [1, 2, 3])
    np.polynomial.polynomial.polyval(a, a)
    np.polynomial.polynomial.polyadd(i, v)
    np.polynomial.chebyshev.chebval(v, i)
    np.polynomial.legendre.legval(a, i)
    np.polynomial.polynomial.polyvander(i, 2)
    np.polynomial.polynomial.polyval2d(v, v, m)
    np.polynomial.polynomial.polyroots([1, 2, 1])
    np.polynomial.hermite.hermval(2.0, [1, 2])
    np.polynomial.polynomial.polyder(i)
    np.polynomial.chebyshev.chebdomain
    np.polynomial.Polynomial([1, 2, 3])(a)
    np.polynomial.Polynomial(i)(2.0)
    np.polynomial.Polynomial(i).coef
    np.polynomial.Chebyshev(v)(a)
    (np.polynomial.Polynomial(i) * 2)(v)
    np.polynomial.Polynomial([6, -5, 1]).roots()
    np.polynomial.Polynomial([1, 2], domain=[0, 2])([1, 2])
    """,
)

test_fits = table(
    NAMES,
    """
    np.polyfit(v, v * v, 2)
    np.polyfit(v, v, 1)
    np.polyfit(v, v, 1, w=v * v)
    np.polyfit(v, v**3, 2, full=True)[0]
    np.polyfit(v, v**2, 1, cov=True)
    ! np.polyfit(v, v, -1)
    ! np.polyfit(a, v, 1)
    """,
    ulps=1 << 12,
)
