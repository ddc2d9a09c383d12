"""Functions and signals: transforms, filters, interpolation, roots, quadrature, polynomials."""

from tests.programs.tolerance import close

_TWO_PI = 6.283185307179586


@close(1e-15, "sines within 4 ulp; the transform is NumPy's own")
def fft_low_pass(np):
    t = np.arange(32) / 32
    x = np.sin(_TWO_PI * 2 * t) + 0.5 * np.sin(_TWO_PI * 11 * t)
    spectrum = np.fft.rfft(x)
    frequency = np.fft.rfftfreq(32, 1 / 32)
    spectrum[frequency > 5] = 0
    smooth = np.fft.irfft(spectrum)
    return smooth, frequency[np.abs(spectrum).argmax()]


@close(1e-15, "sines within 4 ulp; multiplied by wave numbers up to 8")
def spectral_derivative(np):
    x = np.linspace(0, _TWO_PI, 16, endpoint=False)
    k = np.fft.fftfreq(16, d=1 / 16) * 1j
    derivative = np.fft.ifft(k * np.fft.fft(np.sin(x))).real
    return derivative, np.allclose(derivative, np.cos(x))


@close(1e-15, "the transform is NumPy's own; cosines within 4 ulp")
def periodogram_with_window(np):
    n = 32
    x = np.cos(_TWO_PI * 5 * np.arange(n) / n)
    window = np.hanning(n)
    power = np.abs(np.fft.fft(x * window)[: n // 2]) ** 2 / (window**2).sum()
    return power, power.argmax(), 10 * np.log10(power.max())


@close(1e-15, "products of complex numbers may round differently")
def convolution_by_fft(np):
    a, b = np.array([1.0, 2, 3, 4]), np.array([1.0, 0, -1])
    n = len(a) + len(b) - 1
    via = np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n)
    return via.round(12) + 0.0, np.allclose(via, np.convolve(a, b))


@close(1e-15, "a matrix of exponentials within 4 ulp, products of 8 terms")
def dft_matrix(np):
    n = 8
    k = np.arange(n)
    w = np.exp(-2j * np.pi * np.outer(k, k) / n)
    x = np.arange(n) ** 2
    return w @ x, np.allclose(w @ x, np.fft.fft(x)), np.allclose(w.conj().T @ w, n * np.eye(n))


@close(1e-15, "cosines within 4 ulp, products of 8 terms")
def cosine_transform_compression(np):
    n = 8
    k, i = np.ogrid[:n, :n]
    basis = np.sqrt(2 / n) * np.cos(np.pi * (2 * i + 1) * k / (2 * n))
    basis[0] /= np.sqrt(2)
    block = np.add.outer(np.arange(n), np.arange(n)) ** 2.0
    coefficients = basis @ block @ basis.T
    coefficients[np.abs(coefficients) < 10] = 0
    return basis.T @ coefficients @ basis, np.count_nonzero(coefficients)


def haar_wavelet(np):
    x = np.array([4.0, 6, 10, 12, 8, 6, 5, 5])
    details = []
    while len(x) > 1:
        x, d = (x[::2] + x[1::2]) / 2, (x[::2] - x[1::2]) / 2
        details.append(d)
    back = x
    for d in reversed(details):
        back = np.column_stack([back + d, back - d]).ravel()
    return x, np.concatenate(details), back


def walsh_hadamard(np):
    a = np.array([1, 0, 1, 0, 0, 1, 1, 0])
    h = 1
    while h < len(a):
        a = a.reshape(-1, 2, h)
        a = np.stack([a[:, 0] + a[:, 1], a[:, 0] - a[:, 1]], axis=1).reshape(-1)
        h *= 2
    return a


@close(1e-15, "LAPACK on powers of the data")
def polynomial_fit(np):
    x = np.linspace(-1, 1, 11)
    y = 2 * x**3 - x + 0.5
    p = np.polyfit(x, y, 3)
    return np.polyval(p, [0.0, 1.0, 2.0]), np.round(p, 8) + 0.0, np.polyder([2, 0, -1, 0.5])


@close(1e-15, "roots are eigenvalues")
def polynomial_class(np):
    p = np.polynomial.Polynomial([6.0, -5, 1])
    q = p * np.polynomial.Polynomial([0, 1]) + 1
    return q.coef, np.sort(p.roots()), p(np.array([0.0, 1, 2])), p.deriv().coef, p.integ()(3.0), q.degree()


def linear_interpolation(np):
    x, y = np.array([0.0, 1, 3, 4]), np.array([0.0, 2, -2, 0])
    at = np.array([-1, 0.5, 2, 3.5, 9])
    i = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
    by_hand = y[i] + (at - x[i]) * (y[i + 1] - y[i]) / (x[i + 1] - x[i])
    return np.interp(at, x, y), by_hand, np.interp(at, x, y, left=-9, right=9)


def lagrange_interpolation(np):
    x, y = np.array([0.0, 1, 2, 4]), np.array([1.0, 3, 2, 5])
    at = np.linspace(0, 4, 9)
    total = np.zeros_like(at)
    for j in range(4):
        term = np.full_like(at, y[j])
        for m in range(4):
            if m != j:
                term *= (at - x[m]) / (x[j] - x[m])
        total += term
    return total


@close(1e-15, "the system is solved by LAPACK")
def natural_cubic_spline(np):
    x, y = np.array([0.0, 1, 2, 3, 4]), np.array([0.0, 1, 0, 1, 0])
    h, slope = np.diff(x), np.diff(y) / np.diff(x)
    a = np.diag(2 * (h[:-1] + h[1:])) + np.diag(h[1:-1], 1) + np.diag(h[1:-1], -1)
    m = np.zeros(5)
    m[1:-1] = np.linalg.solve(a, 6 * np.diff(slope))
    at, i = 1.5, 1
    s = (m[i] * (x[i + 1] - at) ** 3 + m[i + 1] * (at - x[i]) ** 3) / (6 * h[i])
    s += (y[i] / h[i] - m[i] * h[i] / 6) * (x[i + 1] - at) + (y[i + 1] / h[i] - m[i + 1] * h[i] / 6) * (at - x[i])
    return m, s


@close(1e-15, "sums of 17 samples in another order; sines within 4 ulp")
def quadrature_rules(np):
    x = np.linspace(0, np.pi, 17)
    y, h = np.sin(x), np.pi / 16
    simpson = h / 3 * (y[0] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum() + y[-1])
    nodes, weights = np.polynomial.legendre.leggauss(4)
    gauss = np.pi / 2 * (weights * np.sin(np.pi / 2 * (nodes + 1))).sum()
    return np.trapezoid(y, x), simpson, gauss, np.pi / 16 * np.sin((x[1:] + x[:-1]) / 2).sum()


@close(1e-15, "exponentials within 4 ulp")
def newton_root_finding(np):
    x = np.array([0.0, 1.0, 2.0])
    for i in range(50):
        f, df = np.exp(x) - 3, np.exp(x)
        step = f / df
        x = x - step
        if np.max(np.abs(step)) < 1e-3:
            break
    return x, i


def bisection_vectorised(np):
    target = np.array([2.0, 3, 10])
    lo, hi = np.zeros(3), np.full(3, 10.0)
    while (hi - lo).max() > 1e-2:
        mid = (lo + hi) / 2
        above = mid * mid > target
        hi = np.where(above, mid, hi)
        lo = np.where(above, lo, mid)
    return (lo + hi) / 2


@close(1e-15, "sines within 4 ulp")
def zero_crossings_and_peaks(np):
    t = np.linspace(0, 4 * np.pi, 41)
    x = np.sin(t + 0.05)
    crossings = np.where(np.diff(np.signbit(x)))[0]
    peaks = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])) + 1
    envelope = np.maximum.accumulate(np.abs(x))
    return crossings, peaks, x[peaks], envelope


@close(1e-15, "angles within 4 ulp")
def phase_unwrap(np):
    phase = np.linspace(0, 12, 25)
    wrapped = np.angle(np.exp(1j * phase))
    return np.unwrap(wrapped), np.allclose(np.unwrap(wrapped), phase), np.degrees(wrapped[3])


def downsample_and_hold(np):
    x = np.arange(22) ** 2 % 19
    n = len(x) // 4 * 4
    means = x[:n].reshape(-1, 4).mean(axis=1)
    held = np.repeat(means, 4)[: len(x)]
    return means, held, x[::4], x[:n].reshape(-1, 4).max(1)


def infinite_impulse_filter(np):
    x = np.zeros(10)
    x[0] = 1
    y = np.zeros_like(x)
    b, a = [1.0, 0.5], [1.0, -0.5, 0.25]
    for n in range(len(x)):
        y[n] = sum(b[k] * x[n - k] for k in range(2) if n >= k) - sum(a[k] * y[n - k] for k in range(1, 3) if n >= k)
    return y


def median_of_moving_window(np):
    x = np.array([2, 80, 6, 3, 5, 4, 90, 1])
    out = np.array([np.median(x[max(0, i - 1) : i + 2]) for i in range(len(x))])
    return out


def linear_feedback_register(np):
    state = np.array([1, 0, 0, 1], dtype=np.uint8)
    out = []
    for _ in range(15):
        out.append(int(state[-1]))
        bit = state[3] ^ state[2]
        state[1:] = state[:-1]
        state[0] = bit
    return out, state


@close(2e-15, "cosines within 4 ulp; the recurrence amplifies an error up to 9 times")
def chebyshev_nodes(np):
    n = 6
    nodes = np.cos((2 * np.arange(n) + 1) * np.pi / (2 * n))
    t = [np.ones(n), nodes]
    for _ in range(3):
        t.append(2 * nodes * t[-1] - t[-2])
    gram = np.array(t) @ np.array(t).T
    return np.array(t), np.allclose(gram, np.diag(np.diag(gram)))


def quantise_and_mu_law(np):
    x = np.linspace(-1, 1, 9)
    levels = np.round((x + 1) / 2 * 7).astype(np.uint8)
    restored = levels / 7 * 2 - 1
    return levels, restored, np.abs(x - restored).max() <= 1 / 7
