"""``python -m tests.programs [--record] [NAME ...]``: what every program costs in the compiled tier, as a table.

With ``--record`` the numbers become what the test expects.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.programs")
    parser.add_argument("--record", action="store_true", help="write the counts to work.tsv")
    parser.add_argument("names", nargs="*", help="only programs with one of these in their name")
    options = parser.parse_args()
    from lazynp.values import config
    from tests.programs import table

    config.update(tape_limit=0)  # the record is of what is recorded
    chosen = {name: p for name, p in table.PROGRAMS.items() if not options.names or any(part in name for part in options.names)}
    rows = dict(table.recorded()) if table.RECORD.exists() else {}
    wrong = 0
    print(f"{'program':<52}{'kernels':>8}{'forced':>7}{'made':>5}{'in place':>9}{'copied':>8}  fallbacks")
    for name, program in chosen.items():
        got, counters = table.run_lazynp(program, "compiled")
        row = rows[name] = table.work(counters)
        print(
            f"{name:<52}{row.kernels:>8}{row.forced:>7}{counters['schedule_misses']:>5}{counters['in_place']:>9}"
            f"{counters['bytes_copied']:>8}  {row.fallbacks}"
        )
        found = table.difference(got, table.run_numpy(program), table.tolerance(program))
        if found is not None:
            wrong += 1
            print(f"    {found}")
    print(f"{len(chosen)} programs, {wrong} of them not equal to NumPy's")
    if options.record:
        table.write_record({name: rows[name] for name in table.PROGRAMS if name in rows})
    return 1 if wrong else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="lazynp-programs-") as directory:
        os.environ.setdefault("LAZYNP_CACHE_DIR", directory)
        sys.exit(main())
