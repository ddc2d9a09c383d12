"""Importing lazynp leaves the process as it was.

A child compares what belongs to others (NumPy's types and modules, the standard library, the collector, the heap, hooks, signal handlers,
warnings, the environment) before and after.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lazynp

STATE = """
import ctypes, gc, os, signal, sys, warnings
import json, json.encoder, json.decoder
import time, decimal, pickle, copyreg, copy, struct, math, operator, random, threading, types, builtins
import functools, itertools, collections, contextlib, importlib, importlib.util
import linecache, traceback, weakref, numbers, fractions, statistics
import multiprocessing, multiprocessing.spawn
import subprocess, tempfile, io, inspect, ast, abc, enum, dataclasses, re, string, datetime, heapq
import asyncio, concurrent.futures, locale, logging, unittest, sqlite3, queue, mmap, array, atexit, codecs
import numpy, numpy.linalg, numpy.fft, numpy.random, numpy.ma, numpy.lib

SLOTS = range(6, 52)  # pointers of a type object behind its name and sizes

def slots(kind):
    words = ctypes.cast(id(kind), ctypes.POINTER(ctypes.c_size_t))
    at = [words[k] for k in SLOTS if k not in (21, 45, 46, 47, 48, 49, 50)]  # but its flags, caches, subclasses and version
    for k in (11, 12, 13):  # numbers, sequences, mappings
        if words[k]:
            inner = ctypes.cast(words[k], ctypes.POINTER(ctypes.c_size_t))
            at += [inner[j] for j in range(36 if k == 11 else 10 if k == 12 else 3)]
    return at

def below(kind):
    yield kind
    for other in type.__subclasses__(kind):
        if other.__module__.startswith("numpy"):
            yield from below(other)

class Look:
    def __init__(self):
        self.kinds = {}
        for root in (numpy.generic, numpy.ndarray, numpy.ufunc, numpy.dtype, int, float, complex, bool, list, dict, tuple, str, bytes):
            for kind in below(root):
                if kind.__flags__ & 512 or kind not in self.kinds:
                    self.kinds.setdefault(kind, (slots(kind), dict(vars(kind))))
        others = list(sys.modules.items())
        self.modules = {name: dict(vars(module)) for name, module in others if not name.startswith(("lazynp", "__main__", "__mp_main__"))}
        for names in self.modules.values():
            for name in ("__warningregistry__", "_cache", "_lock"):
                names.pop(name, None)
        self.others = {
            "gc": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks), gc.get_debug()),
            "signals": [signal.getsignal(number) for number in sorted(signal.valid_signals())],
            "hooks": (sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook, sys.breakpointhook),
            "traces": (sys.gettrace(), sys.getprofile(), list(sys.path_hooks)),
            "switch": (sys.getswitchinterval(), sys.getrecursionlimit(), sys.getdlopenflags()),
            "files": (sys.stdout, sys.stderr, sys.stdin, sys.argv[:], sys.path[:], os.getcwd()),
            "warnings": list(warnings.filters), "environment": dict(os.environ),
            "errors": numpy.geterr(), "print": numpy.get_printoptions(),
        }

    def same(self, now):
        for kind, known in self.kinds.items():
            assert known[0] == now.kinds[kind][0], f"slots of {kind}"
            names = {name for name in {*known[1], *now.kinds[kind][1]} if known[1].get(name) is not now.kinds[kind][1].get(name)}
            assert not names, f"{kind}: {names}"
        for module, known in self.modules.items():
            after = now.modules[module]
            for name in {*known, *after}:
                if module == "sys" and name in ("last_type", "last_value"):
                    continue
                child = f"{module}.{name}" in sys.modules or (known.get(name) is None and type(after.get(name)).__name__ == "module")
                assert known.get(name) is after.get(name) or child or ALLOWED(module, name), f"{module}.{name}"
        for name, known in self.others.items():
            assert known == now.others[name], f"{name}: {known} -> {now.others[name]}"
"""

IMPORT = """
before = Look()
import lazynp
lazynp.ones(5).sum(), lazynp.ones(10)[3]
before.same(Look())
print("same")
"""

ALLOWED = """
def ALLOWED(module, name):
    return name.startswith("__") and module.startswith("lazynp")
"""


def run(*arguments: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.mark.parametrize("pure", ["0", "1"], ids=["recording", "at the call"])
@pytest.mark.parametrize("adaptors", ["1", "0"])
def test_an_import_changes_nothing_of_others(pure: str, adaptors: str) -> None:
    assert run("-c", STATE + ALLOWED + IMPORT, LAZYNP_PURE=pure, LAZYNP_ADAPTORS=adaptors) == "same"


HEAP = """
import ctypes, sys
if sys.argv[1] == "lazynp":
    import lazynp
import numpy
a = [numpy.empty(40_000) for _ in range(3)]  # 320,000 bytes: beyond what the C library serves from its heap unless somebody tells it
info = ctypes.CDLL(None)
class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]
if hasattr(info, "mallinfo2"):  # glibc
    info.mallinfo2.restype = Info
    print(info.mallinfo2().hblks >= 3)
else:
    print(True)
"""


def test_the_heap_serves_what_it_did() -> None:
    assert run("-c", HEAP, "lazynp") == run("-c", HEAP, "numpy") == "True"


def test_adaptors_are_listed_and_can_be_turned_off() -> None:
    from lazynp.namespace.bridge.meeting import NEIGHBOURS

    listed = run("-m", "lazynp", "doctor")
    assert all(name in listed for name in NEIGHBOURS)
    assert "turned off by LAZYNP_ADAPTORS" in run("-m", "lazynp", "doctor", LAZYNP_ADAPTORS="0")
    program = "import sys, lazynp; print([finder for finder in sys.meta_path if finder.__module__.startswith('lazynp')])"
    assert run("-c", program, LAZYNP_ADAPTORS="0") == "[]"


def test_no_bytecode_is_read() -> None:
    package = Path(lazynp.__file__).parent
    words = re.compile(r"co_code|opmap|opname|\bopcode\b|get_instructions|_co_code_adaptive|PyCode_GetCode")
    files = [path for path in package.rglob("*") if path.suffix in (".py", ".pyx", ".h")]
    assert len(files) > 200
    assert [path.name for path in files if words.search(path.read_text(encoding="utf-8"))] == []
