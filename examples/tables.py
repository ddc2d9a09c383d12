"""Measurements through pandas, xarray and matplotlib and back: correlations of wines, a year of temperatures, and pictures of both.

    python examples/tables.py --output docs/images
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from sklearn.datasets import load_wine

DAYS, LATITUDES, LONGITUDES = 360, 37, 72


def wines():
    """Standardised measurements of 178 wines, from a table to arrays and back to a table."""
    table = load_wine(as_frame=True).frame
    names = list(table.columns[:-1])
    x, kind = np.asarray(table[names]), np.asarray(table["target"])
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    correlation = z.T @ z / len(z)
    means = np.stack([z[kind == k].mean(axis=0) for k in range(3)])

    found = pd.DataFrame(correlation, index=names, columns=names)
    by_kind = pd.DataFrame(means, columns=names).rename_axis("kind")
    standardised = pd.DataFrame(z, columns=names).assign(kind=kind)
    # what pandas makes of the groups is what the arrays made
    np.testing.assert_allclose(np.asarray(standardised.groupby("kind").mean()), means, atol=1e-12)
    np.testing.assert_array_equal(np.asarray(found), correlation)
    return found, by_kind


def temperatures():
    """A year on a coarse globe: seasons, weather and a warm year's end; anomalies by month, and the mean over the sphere."""
    rng = np.random.default_rng(0)
    latitude, longitude = np.linspace(-90, 90, LATITUDES), np.arange(LONGITUDES) * 5.0
    day = np.arange(DAYS)
    season = np.cos(2 * np.pi * (day - 200) / DAYS)[:, None] * np.sin(np.radians(latitude))
    mean = 30 * np.cos(np.radians(latitude)) ** 2 - 15
    field = (mean + 12 * season)[:, :, None] + 1.5 * rng.standard_normal((DAYS, LATITUDES, LONGITUDES))
    field[300:] += 0.5

    times = pd.date_range("2001-01-01", periods=DAYS)
    data = xr.DataArray(field, dims=("time", "lat", "lon"), coords={"time": times, "lat": latitude, "lon": longitude}, name="temperature")
    weights = np.cos(np.radians(data.lat))
    globe = (data * weights).mean(("lat", "lon")) / weights.mean()
    anomaly = data.mean("lon") - data.mean("lon").isel(time=slice(0, 300)).mean("time")
    return data, globe, anomaly


def draw(found, globe, anomaly, directory):
    """Two pictures."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    shown = left.imshow(np.asarray(found), cmap="RdBu_r", vmin=-1, vmax=1)
    left.set(title="correlations of what is measured of wines", xticks=[], yticks=range(len(found)), yticklabels=found.index)
    figure.colorbar(shown, ax=left)
    days = np.arange(DAYS)
    right.plot(days, np.asarray(globe), lw=0.8, label="mean over the sphere")
    right.fill_between(days, np.asarray(anomaly.max("lat")), np.asarray(anomaly.min("lat")), alpha=0.2, label="anomalies by latitude")
    right.set(title="a year of temperatures", xlabel="day")
    right.legend()
    path = Path(directory, "tables.png")
    figure.savefig(path, dpi=80)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="", help="directory for the picture")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()

    found, by_kind = wines()
    data, globe, anomaly = temperatures()
    results = {
        "correlation": found.to_numpy().tolist(),
        "kinds": by_kind.to_numpy().tolist(),
        "globe": np.asarray(globe).tolist(),
        "anomaly": np.asarray(anomaly).sum(axis=0).tolist(),
        "warmest": float(data.max()),
    }
    if options.output:
        results["picture"] = str(draw(found, globe, anomaly, options.output))
    if options.json:
        print(json.dumps({"results": results, "arrays": np.__name__}))
    else:
        pairs = found.where(np.triu(np.ones(found.shape, bool), 1)).stack()
        print(f"arrays of {np.__name__}: {pairs.idxmax()} go together most, {pairs.max():.2f}")
        print(f"the year ends {float(globe[300:].mean() - globe[:300].mean()):+.2f} degrees from its first 300 days")


if __name__ == "__main__":
    main()
