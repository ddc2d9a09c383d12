"""``python -m bench``: every workload through lazynp and through each other library that is installed.

Prints a table as the numbers come, and says where a target is missed; the exit code is 0 all the same, for a benchmark on a busy
machine is a report and no test.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.machine import describe
from bench.peers import PEERS
from bench.processes import rows
from bench.workloads import WORKLOADS

TARGETS = {workload.name: workload.target for workload in WORKLOADS}
FLOOR = 1.0  # every large workload against NumPy and against JAX


def compare(peer: str, seconds: float, size: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of one library; a workload at which its process dies is a row that says so."""
    for name, row in rows(["-m", "bench.worker", peer, str(seconds), size], names):
        yield {"workload": name, "peer": peer, "size": size, **row}


def target_of(row: dict[str, Any]) -> float | None:
    if row["size"] != "large":
        return None
    if row["peer"] == "numpy":
        return TARGETS[row["workload"]] or FLOOR
    return FLOOR if row["peer"] == "jax" else None


def verdict(row: dict[str, Any]) -> str:
    target = target_of(row)
    if target is None or "ratio" not in row:
        return ""
    return f"{'pass' if row['ratio'] >= target else 'MISS'} (>= {target:g}x)"


def line(row: dict[str, Any]) -> str:
    head = f"{row['workload']:<24} {row['peer']:<8}"
    if "error" in row:
        return f"{head} {row['error'][:100]}"
    low, high = row["ratio_quartiles"]
    times = f"{row['first_seconds'] * 1e3:>10.3f} {row['second_seconds'] * 1e3:>10.3f}"
    cold = f"{row['first_cold_seconds'] * 1e3:>9.1f} {row['second_cold_seconds'] * 1e3:>9.1f}"
    return f"{head} {times} {row['ratio']:>7.2f}x {low:>6.2f}-{high:<6.2f} {cold} {row['difference']:>9.1e}  {verdict(row)}"


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    for peer in dict.fromkeys(row["peer"] for row in rows):
        measured = [row for row in rows if row["peer"] == peer and "ratio" in row]
        if not measured:
            continue
        mean = math.exp(sum(math.log(row["ratio"]) for row in measured) / len(measured))
        worst = min(measured, key=lambda row: row["ratio"])
        judged = [row for row in measured if target_of(row) is not None]
        met = sum(verdict(row).startswith("pass") for row in judged)
        text = f"against {peer}: geometric mean {mean:.2f}x over {len(measured)}, worst {worst['ratio']:.2f}x ({worst['workload']})"
        yield text + (f", {met} of {len(judged)} targets met" if judged else "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of lazynp, in interleaved pairs.")
    parser.add_argument("--only", metavar="TEXT", action="append", help="only workloads with TEXT in their name (may be repeated)")
    parser.add_argument("--peers", metavar="NAMES", help="comma separated: numpy, numexpr, numba, jax, torch (default: what is installed)")
    parser.add_argument("--size", choices=("large", "small"), default="large", help="small: about 1000 elements")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each pair is measured")
    parser.add_argument("--json", metavar="FILE", help="write everything, with the machine named, to FILE")
    options = parser.parse_args()

    known = [name for name in PEERS if name != "lazynp"]
    peers = options.peers.split(",") if options.peers else [name for name in known if PEERS[name].installed]
    for name in peers:
        if name not in known:
            parser.error(f"--peers: {name!r} is not one of {', '.join(known)}")
        if not PEERS[name].installed:
            parser.error(f"--peers: {name} is not installed")
    names = [w.name for w in WORKLOADS if not options.only or any(text.lower() in w.name.lower() for text in options.only)]
    if not names:
        parser.error(f"--only: no workload is called like {options.only}")

    machine = describe(["numpy", "lazynp", "llvmlite", *peers])
    print(f"{machine['cpu']}, {machine['usable_cores']} of {machine['cores']} cores, Python {machine['python']}, {machine['versions']}")
    heading = f"{'workload':<24} {'against':<8} {'its ms':>10} {'lazynp ms':>10} {'ratio':>8} {'quartiles':^13}"
    print(heading + f" {'its cold':>9} {'our cold':>9} {'diff':>9}")
    measured = []
    for peer in peers:
        for row in compare(peer, options.seconds, options.size, names):
            measured.append(row)
            print(line(row), flush=True)
    print()
    for text in summary(measured):
        print(text)
    if options.json:
        path = Path(options.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        judged = [{**row, "target": target_of(row)} for row in measured]
        path.write_text(json.dumps({"machine": machine, "rows": judged}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
