"""What every run of the tests has: the user's configuration, where compiled code goes, and fixtures for what is not the user's.

Tests run what users run: nothing here chooses a setting.  A test that looks inside the compiler, or counts what it does, asks for what it
needs by the name of a fixture: ``recorded``, ``compiled``, ``in_haste``, ``waiting``.

Another configuration is lazynp's own environment variables, set before pytest starts: ``LAZYNP_TAPE_LIMIT=0 pytest``,
``LAZYNP_LIBMVEC=0``, ``LAZYNP_DEVICE=cuda`` (any tests run on a GPU then).

``LAZYNP_TEST_CUDA=emulated`` (needs g++ and NVRTC) or ``gpu`` asks for the tests of the CUDA backend, which are left out otherwise.
"""

from __future__ import annotations

import builtins
import gc
import hashlib
import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

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


def asked(**settings: Any) -> Iterator[None]:
    """Settings for a test, here and in processes that it starts."""
    from lazynp.values import config

    with pytest.MonkeyPatch.context() as patch, config.override(**settings):
        for name, value in settings.items():
            patch.setenv(f"LAZYNP_{name.upper()}", str(int(value)) if isinstance(value, bool) else str(value))
        yield


FILTERS = (
    "error::DeprecationWarning:lazynp", "error::pytest.PytestUnraisableExceptionWarning", "error:lazynp. LLVM refused:RuntimeWarning",
)  # fmt: skip


@pytest.fixture(autouse=True)
def filters(request: pytest.FixtureRequest) -> Iterator[None]:
    """The process's own filters of warnings, with those of all tests and those that a test asks for, and no block around the test.

    pytest's plugin has such a block, within which everything is computed at its call.
    """
    before = list(warnings.filters)
    asked_for = [text for mark in request.node.iter_markers("filterwarnings") for text in mark.args]
    for text in (*FILTERS, *reversed(asked_for)):
        action, message, name, module = (*text.split(":"), "", "", "")[:4]
        category: Any = {"pytest.PytestUnraisableExceptionWarning": pytest.PytestUnraisableExceptionWarning}.get(name)
        category = category or getattr(builtins, name or "Warning")
        warnings.filterwarnings(action, message, category, f"{module}$" if module else "")  # type: ignore[arg-type]
    yield
    from lazynp.graph.filters import process

    left = warnings.filters is not process
    warnings.filters = process  # type: ignore[attr-defined]
    warnings.resetwarnings()
    warnings.filters.extend(before)  # type: ignore[attr-defined]
    assert not left, "the test left a block of filters open"


ROOMS_OF_GRAPHS = frozenset({"backends", "codegen", "engine", "graph", "schedule"})


@pytest.fixture(autouse=True)
def first(request: pytest.FixtureRequest) -> None:
    """Each test begins as a program does, with large arrays on tapes; those of graphs as one that has run for a while."""
    from lazynp.array import core

    core.first_work(0 if request.path.parent.name in ROOMS_OF_GRAPHS else -1)


@pytest.fixture
def recorded() -> Iterator[None]:
    """Every operation is recorded, whatever its size, and numbers wait: for tests of graphs, schedules and kernels."""
    yield from asked(tape_limit=0, numbers="wait")


@pytest.fixture
def compiled() -> Iterator[None]:
    """What runs is compiled, and the program waits for it: for tests of machine code."""
    yield from asked(tier="compiled", compiler="wait")


@pytest.fixture
def waiting() -> Iterator[None]:
    """The program waits for what is compiled: for tests that count it."""
    yield from asked(compiler="wait")


@pytest.fixture
def numbers_wait() -> Iterator[None]:
    """Numbers of pending arrays are computed when somebody asks, as on GPUs."""
    yield from asked(numbers="wait")


@pytest.fixture
def unheard() -> Iterator[None]:
    """Floating-point errors are ignored, so that nothing is kept until a device has told of them."""
    import numpy

    with numpy.errstate(all="ignore"):
        yield


@pytest.fixture
def in_haste() -> Iterator[None]:
    """LLVM hurries: code is there in a tenth of the time, with the same values (``backends/test_bits.py`` shows it of every operation)."""
    if "LAZYNP_OPTIMIZE" in os.environ:
        yield
    else:
        yield from asked(optimize=False)


# A tour: of each test with a table at most so many rows -------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows", type=int, default=0, help="of each test function at most so many cases, evenly spread (0: all)")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    most = config.getoption("rows")
    if not most:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {id(group[k * len(group) // min(most, len(group))]) for group in cases.values() for k in range(min(most, len(group)))}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


# What ``-m``, ``-k`` and ``--rows`` left out, said at the end -----------------------------------------------------------------------

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
        terminalreporter.write_line(f"left out by -m, -k or --rows: {left_out.total()} tests ({files})")
