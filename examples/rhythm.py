"""Pulse recordings with SciPy: filter them, find each one's rhythm and strength, and compare two groups by statistical tests.

With ``SCIPY_ARRAY_API`` SciPy takes arrays of any library, and gives back arrays of the same one.

    python examples/rhythm.py
"""

import argparse
import json
import os
import time

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported

import numpy as np
from scipy import fft, signal, stats

RATE = 100.0  # samples a second
SECONDS = 60


def recordings(people, rate, rng):
    """Pulses of ``people`` at about ``rate`` beats a second: a beat and its echo, breath, a slow drift, and noise."""
    t = np.arange(int(RATE * SECONDS)) / RATE
    beats = rng.normal(rate, 0.12, (people, 1))
    breath = 1 + 0.2 * np.sin(2 * np.pi * 0.25 * t + rng.uniform(0, 6, (people, 1)))
    phase = 2 * np.pi * beats * t
    pulse = breath * (np.sin(phase) + 0.4 * np.sin(2 * phase + 0.5))
    drift = rng.normal(0, 2, (people, 1)) * (t / SECONDS) ** 2
    return pulse + drift + rng.normal(0, 0.8, (people, len(t)))


def measure(pulses):
    """Of each recording: beats a minute, strength of the pulse, and how regular it is."""
    band = signal.firwin(301, [0.6, 3.0], pass_zero=False, fs=RATE)
    clean = signal.oaconvolve(signal.detrend(pulses, axis=-1), np.asarray(band)[None, :], mode="same", axes=-1)

    power = np.abs(fft.rfft(clean * signal.windows.hann(clean.shape[-1], sym=False, xp=np), n=8 * clean.shape[-1], axis=-1)) ** 2
    beats = 60 * np.argmax(power, axis=-1) * RATE / (8 * clean.shape[-1])

    envelope = np.abs(signal.hilbert(clean, axis=-1))[:, 200:-200]
    strength = np.mean(envelope, axis=-1)
    return beats, strength, stats.variation(envelope, axis=-1)


def compare(rested, trained):
    """Whether the two groups differ, by tests with and without the assumption of a normal distribution."""
    found = {}
    for name, a, b in zip(("beats", "strength", "variation"), measure(rested), measure(trained), strict=True):
        welch = stats.ttest_ind(a, b, equal_var=False)
        ranks = stats.mannwhitneyu(a, b, method="asymptotic")
        found[name] = {
            "means": [float(np.mean(a)), float(np.mean(b))],
            "normal": float(stats.normaltest(np.concatenate([stats.zscore(a), stats.zscore(b)])).pvalue),
            "t": float(welch.statistic),
            "p": [float(welch.pvalue), float(ranks.pvalue)],
        }
    beats, strength, _ = measure(np.concatenate([rested, trained]))
    line = stats.pearsonr(beats, strength)
    found["correlation"] = {"r": float(line.statistic), "p": float(line.pvalue), "rho": float(stats.spearmanr(beats, strength).statistic)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=40, help="in each group")
    parser.add_argument("--repeat", type=int, default=1, help="how often everything is computed")
    parser.add_argument("--json", action="store_true", help="print timings and results as JSON")
    options = parser.parse_args()

    rng = np.random.default_rng(7)
    rested, trained = recordings(options.people, 1.2, rng), recordings(options.people, 1.05, rng)
    computed = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        results = compare(rested, trained)
        computed.append(time.perf_counter() - start)

    if options.json:
        print(json.dumps({"shape": rested.shape, "compute": computed, "results": results, "arrays": np.__package__}))
        return
    print(f"2 x {options.people} recordings of {SECONDS} s in arrays of {np.__package__}, {min(computed):.2f} s")
    for name in ("beats", "strength", "variation"):
        (a, b), (t_test, rank_test) = results[name]["means"], results[name]["p"]
        print(f"{name:10} {a:8.3f} {b:8.3f}   t test p = {t_test:.2g}, rank test p = {rank_test:.2g}")
    print(f"beats and strength: r = {results['correlation']['r']:.2f}, p = {results['correlation']['p']:.2g}")


if __name__ == "__main__":
    main()
