"""One program of somebody else's, run in this process: what ``conformance.programs`` starts.

In: ``python -m conformance.program_child LIBRARY FILE KIND ARGUMENTS``; ``LIBRARY`` is ``numpy`` or ``lazynp``, ``KIND`` is ``script``,
``module`` or ``pytest``, and the arguments are the program's.  Out: in FILE, pickled, what the program left: for a script or module its
global values, the pixels of its open figures, and its exception; for pytest the outcome of every test.  Promise: the program runs as
``python`` or ``python -m lazynp`` run it, but for seeds of the global generators, and figures that are not shown: ``plt.show`` and
``plt.pause`` return at once.  Standard output is the program's.
"""

from __future__ import annotations

import numbers
import os
import pickle
import random
import runpy
import sys
import warnings
from types import FunctionType, ModuleType
from typing import Any, Final

SEED: Final = 12345
LARGEST: Final = 1 << 24  # elements of a value that is kept
_PLAIN: Final = (str, bytes, bool, int, float, complex)


def plain(value: Any, depth: int = 0) -> Any:
    """A value of the program's as one that can be compared without its library; None where it is none of numbers, text and arrays."""
    import numpy

    if isinstance(value, _PLAIN) and type(value).__module__ == "builtins":
        return value
    if isinstance(value, list | tuple) and depth < 3 and len(value) <= 1000:
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, dict) and depth < 3 and len(value) <= 1000:
        return {str(key): plain(one, depth + 1) for key, one in value.items()}
    if hasattr(value, "dtype") and hasattr(value, "shape") and isinstance(value.shape, tuple) and not isinstance(value, type):
        array = numpy.asarray(value)
        return array if array.size <= LARGEST and array.dtype.kind in "biufcUSM" else None
    return complex(value) if isinstance(value, numbers.Complex) else None


def left(namespace: dict[str, Any]) -> dict[str, Any]:
    """What a program's global names stand for, where that can be compared."""
    kept: dict[str, Any] = {}
    for name, value in namespace.items():
        if name.startswith("__") or isinstance(value, ModuleType | FunctionType | type):
            continue
        found = plain(value)
        if found is not None:
            kept[name] = found
    return kept


def figures() -> list[Any]:
    """The pixels of all figures that are open."""
    import numpy

    plt = sys.modules.get("matplotlib.pyplot")
    pixels = []
    for number in plt.get_fignums() if plt is not None else ():
        canvas: Any = plt.figure(number).canvas  # type: ignore[union-attr]
        canvas.draw()
        pixels.append(numpy.array(canvas.buffer_rgba()))
    return pixels


class Outcomes:
    """A plugin of pytest's: test -> outcome, and why."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[str, str]] = {}

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.tests[report.nodeid] = ("failed", str(report.longrepr)[-800:])

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
            if self.tests.get(report.nodeid, ("passed",))[0] == "passed":
                self.tests[report.nodeid] = (outcome, str(report.longrepr)[-800:] if report.failed else "")


def tests(library: str, arguments: list[str]) -> dict[str, Any]:
    """Run pytest."""
    import pytest

    outcomes = Outcomes()
    plugins = ["-p", "lazynp.testing.swap"] if library == "lazynp" else []
    code = pytest.main([*plugins, "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--tb=short", *arguments], [outcomes])
    return {"tests": outcomes.tests, "error": "" if int(code) in (0, 1) else f"pytest: {code!s}"}


def program(library: str, kind: str, arguments: list[str]) -> dict[str, Any]:
    """Run a script or a module."""
    if library == "lazynp":
        from lazynp import script

        if kind == "module":
            return script.run_module(arguments[0], arguments[1:])
        return script.run(arguments[0], arguments[1:])
    sys.argv = list(arguments)
    path = os.path.abspath(arguments[0])
    if kind == "module":
        return runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    sys.path[0] = os.path.dirname(path)
    return runpy.run_path(path, run_name="__main__")


def quiet() -> None:
    """Let figures be drawn and not be shown."""
    os.environ["MPLBACKEND"] = "Agg"
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    plt.show = plt.pause = lambda *arguments, **keywords: None


def main(library: str, target: str, kind: str, *arguments: str) -> int:
    """The command."""
    import numpy

    warnings.filterwarnings("ignore", message=".*non-interactive.*")
    random.seed(SEED)
    numpy.random.seed(SEED)
    if "--figures" in arguments[:1]:
        arguments = arguments[1:]
        quiet()
    found: dict[str, Any]
    if kind == "pytest":
        found = tests(library, list(arguments))
    else:
        found = {"error": "", "values": {}, "figures": []}
        try:
            found["values"] = left(program(library, kind, list(arguments)))
        except SystemExit as leaving:
            found["error"] = "" if leaving.code in (None, 0) else f"exit {leaving.code}"
        except BaseException as error:
            import traceback

            traceback.print_exc()
            found["error"] = f"{type(error).__name__}: {error}"
        found["figures"] = figures()
    sys.stdout.flush()
    with open(target, "wb") as file:
        pickle.dump(found, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
