"""NumPy in the place of lazynp, where the native core cannot be had: every operation is computed at its call.

In: why there is no core.  Out: NumPy's names, and those that lazynp has beyond them; programs, run by Python itself.  Promise: a program
does what it does with NumPy; nothing is ever pending, and who did not ask for that is told once.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from lazynp.array import core
from lazynp.values import config

MODULES: Final = (
    "char", "ctypeslib", "dtypes", "exceptions", "fft", "lib", "lib.array_utils", "lib.format", "lib.mixins", "lib.npyio",
    "lib.scimath", "lib.stride_tricks", "linalg", "ma", "polynomial", "random", "rec", "strings", "typing",
)  # fmt: skip
"""NumPy's public modules, by their names in the package; but for ``testing``, which is a package of ours."""
WITHOUT: Final = f"NumPy computes each operation at its call: lazynp's native core is {core.reason}"


class Schedule:
    """The plan of arrays that exist: nothing is left to run."""

    items: tuple[()] = ()
    peak_bytes = 0


def _checked(arrays: Sequence[Any]) -> None:
    for x in arrays:
        if isinstance(x, (list, tuple)):
            _checked(x)
        elif not isinstance(x, (np.ndarray, np.generic)):
            raise TypeError(f"expected arrays, got {type(x).__name__}")


def realize(*arrays: Any) -> Any:
    """Return arrays, which exist."""
    _checked(arrays)
    return arrays[0] if len(arrays) == 1 else arrays


def schedule(*arrays: Any) -> Schedule:
    """Return the plan that would compute arrays: an empty one."""
    _checked(arrays)
    return Schedule()


def explain(*arrays: Any) -> str:
    """Say how arrays were computed."""
    _checked(arrays)
    return WITHOUT


def memory() -> dict[str, Any]:
    """Return how much memory lazynp holds: none."""
    counts = dict.fromkeys(("allocations", "held_peak", "in_use", "numpy", "peak", "pending", "pooled", "reuses", "scratch"), 0)
    return {**counts, "devices": {}, "lines": [], "peak_lines": []}


def progress(show: bool = True) -> Any:
    """Return a context manager that does nothing: there are no long runs of lazynp's."""
    return contextlib.nullcontext()


def report() -> str:
    """Say who computed."""
    return WITHOUT


def set_fallback(mode: str) -> None:
    """Set what happens when NumPy answers a call, which it always does."""
    if mode not in ("silent", "warn", "error"):
        raise ValueError(f"mode must be 'silent', 'warn' or 'error', not {mode!r}")
    if mode == "error":
        raise RuntimeError(WITHOUT)


def coverage() -> tuple[()]:
    """Return the names that lazynp answers: none."""
    return ()


def device(name: str) -> Any:
    """Return a context manager within which arrays live on the processor, the one device."""
    if name != "cpu":
        raise ValueError(f"there is no device {name!r}: {WITHOUT}")
    return contextlib.nullcontext()


NAMES: Final[dict[str, Any]] = {
    "realize": realize, "schedule": schedule, "explain": explain, "kernelize": realize, "memory": memory, "progress": progress,
    "report": report, "set_fallback": set_fallback, "coverage": coverage, "device": device,
}  # fmt: skip


def install(names: dict[str, Any]) -> None:
    """Give the package's namespace NumPy's names."""
    if not config.pure:
        warnings.warn(WITHOUT, RuntimeWarning, stacklevel=3)
    for module in MODULES:
        found = sys.modules[f"lazynp.{module}"] = import_module(f"numpy.{module}")
        names.setdefault(module, found)  # those with a dot do no harm
    names.update({name: getattr(np, name) for name in np.__all__ if name in names})  # where a room of the package has the name
    names.update(NAMES)
    names["__array_namespace_info__"] = np.__array_namespace_info__
    names["__array_api_version__"] = np.__array_api_version__

    def attribute(name: str) -> Any:
        if name == "special":
            return import_module("scipy.special")
        return getattr(np, name)

    names["__getattr__"] = attribute
    names["__dir__"] = lambda: sorted({*dir(np), *NAMES, "lazynp_version"})
    names["__all__"] = sorted({*np.__all__, *NAMES, "lazynp_version"})


def run(arguments: Sequence[str], told: bool, json_file: str | None) -> None:
    """Run a program, given as Python takes it, in the place of this process; what was to be reported is said before.

    ``arguments`` are a script or ``-m`` or ``-c`` and what belongs to it, or nothing.
    """
    if told:
        sys.stderr.write(report() + "\n")
    if json_file is not None:
        with open(json_file, "w", encoding="utf-8") as file:
            json.dump({"core": core.reason}, file)
    given = sys.orig_argv[1:]
    flags = given[: given.index("-m")] if "-m" in given else []  # the interpreter's own
    command = [sys.executable, *flags, *arguments]
    if os.name == "nt":
        raise SystemExit(subprocess.call(command))
    sys.stdout.flush()
    os.execv(command[0], command)
