"""One process that compares one library with lazynp: ``python -m bench.worker PEER SECONDS large|small NAME...``.

Libraries are compared in processes of their own: their thread pools do not disturb each other, and one that crashes takes nothing
else with it.  Prints one JSON object a line, as they are measured.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from bench.measure import pairs
from bench.peers import PEERS
from bench.workloads import WORKLOADS


def main() -> None:
    name, seconds, size, *wanted = sys.argv[1:]
    for workload in WORKLOADS:
        if workload.name not in wanted:
            continue
        row = {"workload": workload.name, "peer": name, "size": size}
        arrays = workload.make(np.random.default_rng(0), size == "large")
        try:
            peer = PEERS[name].prepare(workload, arrays)
            lazynp = PEERS["lazynp"].prepare(workload, arrays)
            row.update(pairs(peer, lazynp, float(seconds)))
        except Exception as error:  # whatever a compiler of another library raises is its answer for this row
            row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
