"""Forty years of made-up weather: a grid in xarray, a table in pandas, a picture by matplotlib, with one kind of array under all of them.

    python examples/climate.py --output climate.png
"""

import argparse
import json

import matplotlib
import numpy as np
import pandas as pd
import xarray as xr

matplotlib.use("Agg")
from matplotlib import pyplot as plt

YEARS = 40


def weather(rng):
    """Monthly temperatures on a grid: colder to the poles, seasons, a warming that is faster in the north, and weather."""
    lat, lon = np.linspace(-87.5, 87.5, 36), np.linspace(0, 355, 72)
    month = np.arange(12 * YEARS)
    mean = 28 - 45 * np.sin(np.deg2rad(lat)) ** 2
    seasons = -12 * np.sin(np.deg2rad(lat))[:, None] * np.cos(2 * np.pi * month / 12)[:, None, None]
    warming = (0.02 + 0.03 * np.clip(lat / 90, 0, 1) ** 2)[:, None] * month[:, None, None] / 12
    waves = 3 * np.sin(np.deg2rad(3 * lon)) * np.cos(np.deg2rad(2 * lat))[:, None]
    values = mean[:, None] + seasons + warming + waves + rng.normal(0, 1.5, (len(month), len(lat), len(lon)))
    times = pd.date_range("1985-01", periods=len(month), freq="MS")
    return xr.DataArray(values, dims=("time", "lat", "lon"), coords={"time": times, "lat": lat, "lon": lon}, name="temperature")


def analyse(grid):
    """What is left when the seasons are taken out: its trend at every place, and its mean over the globe, weighted by area."""
    months = grid.data.reshape((YEARS, 12, *grid.shape[1:]))
    seasons = months.mean(axis=0)
    anomaly = grid.copy(data=(months - seasons).reshape(grid.shape))

    decades = np.arange(len(grid.time)) / 120
    centred = xr.DataArray(decades - decades.mean(), dims="time")
    trend = (anomaly * centred).sum("time") / (centred**2).sum()

    weights = np.cos(np.deg2rad(xr.DataArray(np.asarray(grid.lat.data), dims="lat")))
    globe = (anomaly * weights).sum(("lat", "lon")) / (weights.sum() * grid.sizes["lon"])
    return anomaly, trend, globe


def tabulate(globe):
    """The mean over the globe as a table: months, years, and running means; and back again as an array."""
    series = globe.to_series()
    table = pd.DataFrame({"month": series, "running": series.rolling(12, center=True).mean()})
    years = table["month"].groupby(table.index.year).mean()
    warmest = years.nlargest(5)
    back = np.asarray(years.to_numpy())
    slope = float(np.polyfit(np.arange(YEARS), back, 1)[0])
    return table, {"years": back.tolist(), "warmest": [int(year) for year in warmest.index], "slope": slope}


def draw(trend, table, output):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), width_ratios=(1.4, 1), layout="constrained")
    colours = left.pcolormesh(trend.lon.data, trend.lat.data, trend.data, cmap="RdYlBu_r", vmin=0, vmax=0.6)
    left.set(title="warming", xlabel="longitude", ylabel="latitude")
    figure.colorbar(colours, label="K per decade")
    right.plot(table.index, table["month"], lw=0.5, color="0.6", label="months")
    right.plot(table.index, table["running"], lw=2, color="firebrick", label="running year")
    right.set(title="globe", ylabel="K above the mean")
    right.legend(frameon=False)
    figure.savefig(output, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="where the picture goes")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()

    grid = weather(np.random.default_rng(5))
    anomaly, trend, globe = analyse(grid)
    table, results = tabulate(globe)
    if options.output:
        draw(trend, table, options.output)
    results |= {
        "arrays": np.__package__ if isinstance(trend.data, np.ndarray) else type(trend.data).__module__,
        "trend": [float(x) for x in trend.mean("lon").data],
        "spread": float(anomaly.std()),
        "north": float(trend.sel(lat=slice(60, 90)).mean()),
    }
    if options.json:
        print(json.dumps(results))
        return
    print(f"{grid.size:,} temperatures in arrays of {results['arrays']}")
    print(f"the globe warms by {10 * results['slope']:.2f} K in ten years, beyond 60 degrees north by {results['north']:.2f} K")
    print(f"warmest years: {', '.join(map(str, results['warmest']))}")


if __name__ == "__main__":
    main()
