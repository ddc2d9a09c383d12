"""What every run of the tests has: where compiled code goes, and which variant of lazynp is tested.

The variants are lazynp's own environment variables, set before pytest starts: ``LAZYNP_TIER=compiled pytest``, ``LAZYNP_LIBMVEC=0``,
``LAZYNP_DEVICE=cuda`` (any tests run on a GPU then).  ``DEFAULTS`` are those whose value for tests is not the user's.

``LAZYNP_TEST_CUDA=emulated`` (needs g++ and NVRTC) or ``gpu`` asks for the tests of the CUDA backend, which are left out otherwise.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

# Environment variables of tests, where the one who runs them names no other value.  Most tests look at what small arrays record, and some
# count when something is compiled.
DEFAULTS: dict[str, str] = {"LAZYNP_EAGER_BELOW": "0", "LAZYNP_BACKGROUND": "0"}
for _name, _value in DEFAULTS.items():
    os.environ.setdefault(_name, _value)

# Files whose tests look at kernels, take long runs, or compare random programs: their kernels are optimised as the user's are.  Everywhere
# else LLVM hurries, so that compiling takes a tenth of the time: values are the same, which ``backends/test_bits.py`` shows of every
# operation.
OPTIMISED = (
    "backends/", "bench/", "codegen/", "differential/test_found.py", "differential/test_programs.py", "engine/test_budget.py",
    "engine/test_peak.py", "examples/", "graph/test_progress.py", "test_attacks.py",
)  # fmt: skip

cuda = os.environ.get("LAZYNP_TEST_CUDA")
collect_ignore = [] if cuda in ("emulated", "gpu") else ["cuda", "gpu_emulator"]

if cuda == "emulated" and os.environ.get("LAZYNP_DEVICE", "cpu") != "cpu":
    from gpu_emulator import fakecupy

    fakecupy.install()


def pytest_configure(config: pytest.Config) -> None:
    if cuda in ("emulated", "gpu"):
        config.pluginmanager.import_plugin("tests.cuda.counts")
    if "LAZYNP_TEST_SESSION" not in os.environ:  # workers, and pytests that a test starts, inherit the environment and what it names
        share_compiled_code(config)


def pytest_collection_finish() -> None:
    """Let the garbage collector, and what walks all objects there are, leave the tests themselves alone: they stay to the end."""
    gc.collect()
    gc.freeze()


def share_compiled_code(config: pytest.Config) -> None:
    """Machine code that the tests compile goes to one directory of all processes, not to the user's.

    It stays in pytest's cache, so that the next run compiles what has changed (``--cache-clear`` forgets it).  Its keys are the whole
    text of a module; what makes machine code of the text is ``compiler.py``, and another ``compiler.py`` begins with nothing.
    """
    added = ["LAZYNP_TEST_SESSION", "LAZYNP_CACHE_DIR"]
    before = {name: os.environ.get(name) for name in added}
    cache = getattr(config, "cache", None)
    compiler = Path(__file__).parents[1] / "lazynp" / "backends" / "llvm" / "compiler.py"
    if cache is None:
        directory = Path(tempfile.mkdtemp(prefix="lazynp-tests-"))
        config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    else:
        kept = cache.mkdir("lazynp")
        directory = kept / hashlib.blake2b(compiler.read_bytes(), digest_size=8).hexdigest()
        for other in kept.iterdir():
            if other != directory:
                shutil.rmtree(other, ignore_errors=True)
    os.environ.update(zip(added, ["1", str(directory)], strict=True))
    from lazynp.values import config as settings  # reads the environment when it is imported, which may have been before

    settings.cache_dir = str(directory)

    def restore() -> None:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    config.add_cleanup(restore)


@pytest.fixture(scope="module", autouse=True)
def optimised_where_that_matters(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels of most tests, here and in processes that are started, are compiled in haste, unless somebody names ``LAZYNP_OPTIMIZE``."""
    from lazynp.values import config as settings

    file = request.path.relative_to(Path(__file__).parent).as_posix()
    if "LAZYNP_OPTIMIZE" in os.environ or file.startswith(OPTIMISED):
        yield
        return
    with pytest.MonkeyPatch.context() as patch, settings.override(optimize=False):
        patch.setenv("LAZYNP_OPTIMIZE", "0")
        yield


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is at hand, here and in processes that are started: for tests of what is recorded, in a run where small arrays are not."""
    from lazynp.values import config as settings

    monkeypatch.setenv("LAZYNP_EAGER_BELOW", "0")
    with settings.override(eager_below=0):
        yield


# What ``-m`` and ``-k`` left out, said at the end ------------------------------------------------------------------------------

left_out: Counter[str] = Counter()  # tests by file


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    left_out.update(item.nodeid.partition("::")[0] for item in items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left out"] = dict(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    left_out.update(getattr(node, "workeroutput", {}).get("left out", {}) if not left_out else {})  # each worker deselects the same


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if left_out:
        files = ", ".join(f"{name.removeprefix('tests/')} {count}" for name, count in left_out.most_common())
        terminalreporter.write_line(f"left out by -m or -k: {left_out.total()} tests ({files})")
