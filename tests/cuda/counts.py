"""What a run of these tests did, said at its end: kernels compiled and for what, kernels run, planted bugs and what found them.

In: the sets that the emulator, NVRTC's checks and the planted bugs keep.  Out: a line each in pytest's summary; workers of xdist send
theirs.  Promise: no test passes because NumPy ran what the device has no code for: one whose kernel does not compile or load fails, unless
it is marked ``refused``; and a run of tests on a device that launched nothing there fails.
"""

from __future__ import annotations

import functools
import os
from collections import Counter, defaultdict
from typing import Any

import pytest

REFUSED = "refused: programs of this test are meant to go to the host, because the device has no code for them"
HARDWARE = os.environ.get("LAZYNP_TEST_CUDA") == "gpu"
ON_DEVICE = os.environ.get("LAZYNP_DEVICE", "cpu") != "cpu"  # all tests of this run

found_by: defaultdict[str, set[str]] = defaultdict(set)  # names of planted bugs

_refused: list[str] = []  # programs that went to the host, in the test that runs
_here: Counter[str] = Counter()  # what this process did
_counts: Counter[str] = Counter()  # what all did
_sets: defaultdict[str, set[str]] = defaultdict(set)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", REFUSED)
    _watch()


def _watch() -> None:
    """Hear of each launch, and of each program that the device has no code for."""
    from lazynp.backends.cuda import backend, launch

    launched, on_host = launch.Phase.launch, backend.CUDABackend.on_host

    @functools.wraps(launched)
    def launching(self: Any, *arguments: Any) -> None:
        _here["launches on the device"] += 1
        launched(self, *arguments)

    @functools.wraps(on_host)
    def refusing(self: Any, program: Any) -> Any:
        _refused.append(" ".join(dict.fromkeys(entry.op.name for entry in program.entries)))
        _here["programs refused"] += 1
        return on_host(self, program)

    launch.Phase.launch, backend.CUDABackend.on_host = launching, refusing  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    _refused.clear()
    try:
        result = yield
    except BaseException:
        if HARDWARE:
            _leave_a_broken_device(item)
        raise
    if _refused and item.get_closest_marker("refused") is None:
        pytest.fail(f"the device has no code for these programs, and NumPy ran them: {'; '.join(_refused)}", pytrace=False)
    return result


def _leave_a_broken_device(item: pytest.Item) -> None:
    """End a process in which every further call of CUDA fails, as after an illegal access: xdist goes on with another one."""
    import cupy

    try:
        cupy.cuda.runtime.deviceSynchronize()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if hasattr(item.config, "workerinput"):
            os._exit(70)
        pytest.exit(f"CUDA failed in {item.nodeid} and does not go on: {error}", returncode=70)


def _gather() -> dict[str, Any]:
    from gpu_emulator.execution import module
    from tests.cuda import nvrtc

    sets = {"kernels": module.kernels, "compiled": nvrtc.compiled, **{f"bugs {by}": names for by, names in found_by.items()}}
    return {"counts": {**_here, "emulated": module.launches}, "sets": {name: sorted(each) for name, each in sets.items()}}


def _add(found: dict[str, Any]) -> None:
    _counts.update(found["counts"])
    for name, each in found["sets"].items():
        _sets[name].update(each)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["cuda"] = _gather()
        return
    _add(_gather())
    if ON_DEVICE and session.testscollected and not session.config.option.collectonly and not _counts["launches on the device"]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _add(getattr(node, "workeroutput", {}).get("cuda", {"counts": {}, "sets": {}}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    write = terminalreporter.write_line
    name = "on hardware" if HARDWARE else "on an imitation"
    write(f"device ({name}): {_counts['launches on the device']} launches of lazynp's; {_counts['programs refused']} programs had no code")
    if ON_DEVICE and not _counts["launches on the device"]:
        write("FAILED: these tests were to run on a device, and nothing was launched there")
    if not _counts["emulated"]:
        return
    write(f"emulated: {_counts['emulated']} launches of {len(_sets['kernels'])} kernels on the processor")
    if _sets["compiled"]:
        by_arch = Counter(each.partition(" ")[0] for each in _sets["compiled"])
        order = sorted(by_arch, key=int)
        write("emulated: compiled by NVRTC: " + ", ".join(f"{by_arch[arch]} kernels for sm_{arch}" for arch in order))
    bugs = {name[5:]: each for name, each in sorted(_sets.items()) if name.startswith("bugs ")}
    if bugs:
        total = len(set().union(*bugs.values()))
        write(f"emulated: {total} planted bugs found; by " + ", ".join(f"{by}: {len(each)}" for by, each in bugs.items()))
