"""A worn bearing in a vibration signal, with SciPy: filter, envelope, spectrum, and tests of whether two recordings differ.

With ``SCIPY_ARRAY_API`` SciPy computes with the functions of the library that its arrays come from.

    python examples/signals.py
"""

import argparse
import json
import os
import time

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported

import numpy as np
from scipy import signal, stats

RATE = 12_000.0  # samples a second
SHAFT = 29.5  # turns a second
FAULT = 3.585 * SHAFT  # balls over the damaged spot, a second
RESONANCE = 2_900.0  # what each blow makes ring


def recording(seconds, worn, seed):
    """What the sensor hears: the shaft, noise, and from a worn bearing blows that ring and die away."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    heard = np.sin(2 * np.pi * SHAFT * t) + 0.3 * np.sin(4 * np.pi * SHAFT * t + 0.7) + 0.4 * rng.standard_normal(t.size)
    if worn:
        since = t % (1 / FAULT)
        heard = heard + 1.5 * np.exp(-900.0 * since) * np.sin(2 * np.pi * RESONANCE * since)
    return heard


def envelope(heard):
    """How loud the band around the resonance is."""
    band = np.asarray(signal.firwin(255, [RESONANCE - 900, RESONANCE + 900], pass_zero=False, fs=RATE))
    return np.abs(signal.hilbert(signal.fftconvolve(heard, band, mode="same")))


def analyse(healthy, suspect):
    """Everything there is to compute, from two recordings in memory to the results in memory."""
    loud = [envelope(heard) for heard in (healthy, suspect)]
    frequencies, power = signal.welch(loud[1] - loud[1].mean(), fs=RATE, nperseg=8192)
    low = frequencies < 400
    peak = frequencies[low][np.argmax(power[low])]

    # parts of 50 ms: is the suspect's kurtosis higher, are its values from another distribution?
    parts = [x[: x.size // 600 * 600].reshape(-1, 600) for x in (healthy, suspect)]
    kurtosis = [stats.kurtosis(x, axis=1) for x in parts]
    test = stats.ttest_ind(kurtosis[1], kurtosis[0], equal_var=False)
    tones = stats.pearsonr(parts[0][0], parts[0][1])
    return {
        "peak": float(peak),
        "power": float(power[low].max() / power[low].mean()),
        "loudness": [float(x.mean()) for x in loud],
        "kurtosis": [float(x.mean()) for x in kurtosis],
        "skewness": [float(stats.skew(x, axis=None)) for x in parts],
        "t": float(test.statistic),
        "p": float(test.pvalue),
        "correlation": float(tones.statistic),
        "median frequency": float(frequencies[np.searchsorted(np.cumsum(power), power.sum() / 2)]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="length of the recordings")
    parser.add_argument("--repeat", type=int, default=1, help="how often everything is computed")
    parser.add_argument("--json", action="store_true", help="print timings and results as JSON")
    options = parser.parse_args()

    healthy, suspect = recording(options.seconds, False, 1), recording(options.seconds, True, 2)
    computed = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        results = analyse(healthy, suspect)
        computed.append(time.perf_counter() - start)

    if options.json:
        print(json.dumps({"shape": healthy.shape, "compute": computed, "results": results, "arrays": np.__name__}))
    else:
        print(f"{healthy.size:,} samples each in arrays of {np.__name__}, {min(computed):.2f} s")
        print(f"the envelope beats {results['peak']:.1f} times a second; balls pass the outer ring {FAULT:.1f} times")
        print(f"kurtosis {results['kurtosis'][0]:.2f} and {results['kurtosis'][1]:.2f}: t = {results['t']:.1f}, p = {results['p']:.1e}")


if __name__ == "__main__":
    main()
