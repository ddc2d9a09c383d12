"""``python -m tests.array.any_arguments``: every public function and method, called with arguments that make no sense.

In: ``--all`` for all numbers of arguments.  Out: the number of calls.  Promise: whatever is given to the native core, the interpreter
lives: a call returns or raises.  What the calls return is compared elsewhere.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import lazynp as np
from lazynp.array import core
from lazynp.values import config

MOST = 12  # arguments; the core looks at calls of fewer than that
# What writes files, or changes the state of the process.
LEFT_OUT = frozenset({
    "save", "savez", "savez_compressed", "savetxt", "tofile", "dump", "loadtxt", "genfromtxt", "load", "fromfile", "fromregex", "test",
    "memmap", "info", "show_config", "show_runtime", "set_fallback", "setbufsize", "seterr", "seterrcall", "set_printoptions", "kernelize",
    "progress",
})  # fmt: skip
PROTOCOLS = frozenset({"__array__", "__array_ufunc__", "__array_function__", "__array_wrap__", "__getitem__", "__setitem__", "__pow__"})
KEYWORDS: tuple[dict[str, Any], ...] = ({}, {"dtype": float}, {"axis": 0}, {"nothing": 1}, {"axis": 0, "keepdims": True, "out": None})


def functions() -> Iterator[tuple[str, Any]]:
    for place in (np, np.linalg, np.fft, np.random, np.ndarray):
        for name in dir(place):
            function = getattr(place, name, None)
            if callable(function) and not isinstance(function, type) and name not in LEFT_OUT and (name[0] != "_" or name in PROTOCOLS):
                yield name, function


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    everything = parser.parse_args().all
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    np.progress(False)
    calls = 0
    x, m = np.arange(6.0), np.array([[2.0, 1.0], [1.0, 3.0]])
    values = (1, x, m, None, "f8", [1, 2], (2, 3), 2.5, float) if everything else (1, x, "f8", [1, 2])
    with config.override(tape_limit=65536):
        for _, function in functions():
            for count in range(MOST) if everything else (0, 1, 2, 3, 5, 8, 11):
                for value in values:
                    for first in (value, x):
                        arguments = [first, *[value] * (count - 1)] if count else []
                        for keywords in (*KEYWORDS, {"out": x}) if everything else KEYWORDS[:4]:
                            calls += 1
                            with suppress(Exception):
                                function(*arguments, **keywords)
    core.settle()
    print(calls)
    return calls


if __name__ == "__main__":
    main()
