"""What a run of these tests did, said at its end: kernels compiled and for what, kernels run, planted bugs and what found them.

In: the sets that the emulator, NVRTC's checks and the planted bugs keep.  Out: a line each in pytest's summary; workers of xdist send
theirs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

found_by: defaultdict[str, set[str]] = defaultdict(set)  # names of planted bugs

_launches = 0
_sets: defaultdict[str, set[str]] = defaultdict(set)


def _gather() -> dict[str, Any]:
    from gpu_emulator.execution import module
    from tests.cuda import nvrtc

    sets = {"kernels": module.kernels, "compiled": nvrtc.compiled, **{f"bugs {by}": names for by, names in found_by.items()}}
    return {"launches": module.launches, "sets": {name: sorted(each) for name, each in sets.items()}}


def _add(counts: dict[str, Any]) -> None:
    global _launches
    _launches += counts["launches"]
    for name, each in counts["sets"].items():
        _sets[name].update(each)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        _add(_gather())
    else:
        output["cuda"] = _gather()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _add(getattr(node, "workeroutput", {}).get("cuda", {"launches": 0, "sets": {}}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not _launches:
        return
    write = terminalreporter.write_line
    write(f"emulated: {_launches} launches of {len(_sets['kernels'])} kernels on the processor")
    if _sets["compiled"]:
        by_arch = Counter(each.partition(" ")[0] for each in _sets["compiled"])
        order = sorted(by_arch, key=int)
        write("emulated: compiled by NVRTC: " + ", ".join(f"{by_arch[arch]} kernels for sm_{arch}" for arch in order))
    bugs = {name[5:]: each for name, each in sorted(_sets.items()) if name.startswith("bugs ")}
    if bugs:
        total = len(set().union(*bugs.values()))
        write(f"emulated: {total} planted bugs found; by " + ", ".join(f"{by}: {len(each)}" for by, each in bugs.items()))
