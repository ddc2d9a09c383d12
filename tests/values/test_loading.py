"""Imports while values are computed: by who computes, with no handler of signals in them; nobody waits for a thread that waits for him."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

import lazynp
from lazynp.backends.common.interrupts import aside
from lazynp.namespace import methods
from lazynp.values import loading

SECONDS = 60.0
HELD = """
import _imp
import numpy, lazynp as np
numpys = {n: numpy.arange(float(n)) for n in (2000, 900_000)}
_imp.acquire_lock()  # as a handler that raises in an import may leave it
for n, x in numpys.items():
    a = np.arange(float(n))
    assert abs(float(EXPRESSION(np, a)) - float(EXPRESSION(numpy, x))) <= 1e-9 * abs(float(EXPRESSION(numpy, x))) + 1e-9
    b = np.zeros(n)
    for k in range(3):
        b[k::3] += a[k::3]
    assert np.array_equal(numpy.asarray(b), x)
print("held")
"""
EXPRESSIONS = [
    "lambda np, a: (a * 2 + 1).sum()",
    "lambda np, a: np.exp(-a / 1e6).max() + np.sin(a).min()",
    "lambda np, a: np.sort(a[::-1])[7] + np.cumsum(a)[-1]",
    "lambda np, a: np.fft.fft(a).real.sum() + np.linalg.norm(a)",
    "lambda np, a: np.partition(a, 7)[7] + a.reshape(-1, 100).mean(axis=0)[3] + np.where(a > 5, a, 0).std()",
    "lambda np, a: (a + 1j * a).imag.sum() + np.log1p(a).sum() + (a % 7).astype('int8').sum()",
]
SWITCHES = [{}, {"LAZYNP_TIER": "compiled"}, {"LAZYNP_TAPE_LIMIT": "0"}, {"LAZYNP_BACKEND": "numpy"}]


def run(program: str, tmp_path: Path, **switches: str) -> str:
    """Run a program in a process of its own, which has compiled nothing yet, and ends soon."""
    environment = {**os.environ, "LAZYNP_TAPE_LIMIT": "786432", "LAZYNP_COMPILER": "child", **switches}
    environment["LAZYNP_CACHE_DIR"] = str(tmp_path / "cache")
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(Path(lazynp.__file__).parents[1])])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda switches: "-".join(switches) or "default")
def test_a_value_asked_for_while_the_lock_of_imports_is_held(switches: dict[str, str], tmp_path: Path) -> None:
    assert run(HELD.replace("EXPRESSION", f"({EXPRESSIONS[0]})"), tmp_path, **switches) == "held\n"


@pytest.mark.slow
@pytest.mark.parametrize("switches", SWITCHES, ids=lambda switches: "-".join(switches) or "default")
@pytest.mark.parametrize("expression", EXPRESSIONS[1:])
def test_other_values_asked_for_while_the_lock_of_imports_is_held(expression: str, switches: dict[str, str], tmp_path: Path) -> None:
    program = HELD
    if "fft" in expression:  # a module of its own, which the program imports
        program = program.replace("_imp.acquire_lock()", "np.fft, np.linalg\n_imp.acquire_lock()")
    assert run(program.replace("EXPRESSION", f"({expression})"), tmp_path, **switches) == "held\n"


MODULE = """
import threading, time
import numpy, lazynp as np
started.set()
time.sleep(0.05)
total = float((np.exp(np.arange(900_000.0) / 1e6) * NUMBER).sum())
part = np.zeros(900_000)
part[::2] += np.arange(450_000.0)
again = float(part.sum())
"""
IMPORTED = """
import builtins, importlib, sys, threading
builtins.started = threading.Event()
import numpy
def other(name):
    started.wait()
    importlib.import_module(name)
threads = [threading.Thread(target=other, args=(name,), daemon=True) for name in ("first", "second", "first", "third")]
for thread in threads: thread.start()
import first
for thread in threads: thread.join(40)
assert not any(thread.is_alive() for thread in threads)
import second, third
wanted = numpy.exp(numpy.arange(900_000.0) / 1e6).sum()
for number, module in enumerate((first, second, third), 1):
    assert abs(module.total / number - wanted) < 1e-6 * wanted and module.again == numpy.arange(450_000.0).sum()
print("held")
"""


@pytest.mark.parametrize("switches", [SWITCHES[0], pytest.param(SWITCHES[1], marks=pytest.mark.slow)], ids=["default", "compiled"])
def test_modules_that_compute_while_other_threads_import_them(switches: dict[str, str], tmp_path: Path) -> None:
    for number, name in enumerate(("first", "second", "third"), 1):
        (tmp_path / f"{name}.py").write_text(MODULE.replace("NUMBER", str(number)))
    assert run(IMPORTED, tmp_path, **switches) == "held\n"


STRUCK = """
import signal, sys, threading
import numpy, lazynp as np
class Struck(Exception): pass
interrupts = signal.getsignal(signal.SIGINT)  # ignored by what a shell starts behind it
armed, rung, inside = False, 0, []
def handler(number, frame):
    global armed
    if armed:
        while frame is not None:
            if "importlib" in frame.f_code.co_filename and str(frame.f_locals.get("name")).startswith("lazynp."):
                inside.append(frame.f_locals["name"])
            frame = frame.f_back
        armed = False
        raise Struck
class Bell:
    def find_spec(self, name, path=None, target=None):
        global rung
        if armed and name.startswith("lazynp.") and threading.current_thread() is threading.main_thread():
            rung += 1
            signal.raise_signal(signal.SIGALRM)
signal.signal(signal.SIGALRM, handler)
sys.meta_path.insert(0, Bell())
x = numpy.linspace(0, 1, 900_000)
a = np.asarray(x) + 0
def program(np, a): return PROGRAM
struck, quiet = 0, 0
signal.setitimer(signal.ITIMER_REAL, DELAY, 0.004)
while quiet < 5:
    before = rung
    try:
        armed = True
        program(np, a)
        armed = False
    except Struck:
        struck += 1
    quiet = quiet + 1 if rung == before else 0
signal.setitimer(signal.ITIMER_REAL, 0)
found = []
thread = threading.Thread(target=lambda: found.append(program(np, np.arange(900_000.0) / 899_999)), daemon=True)
thread.start()
thread.join(40)
assert found and abs(found[0] - program(numpy, x)) < 1e-5, found
assert abs(program(np, a) - program(numpy, x)) < 1e-5
assert signal.getsignal(signal.SIGALRM) is handler and signal.getsignal(signal.SIGINT) is interrupts
assert struck and not inside, (rung, struck, inside)
print("held")
"""
PROGRAMS = [
    "float((np.exp(a) * 3 + a).sum())",
    "float(np.percentile(a, 7) + np.stack([a, a]).mean() + np.median(a[:100]))",
    "float(np.add.accumulate(a)[-1] + np.linalg.norm(a) + np.fft.fft(a[:100]).real[3] + np.einsum('i,i->', a, a))",
]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a system without timers")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "switches", [pytest.param(SWITCHES[0], marks=pytest.mark.slow), SWITCHES[1]], ids=["default", "compiled"]
)
def test_signals_while_what_computes_is_imported(switches: dict[str, str], program: str, tmp_path: Path) -> None:
    """Each module that a program asks for brings a signal; handlers raise where no import is on the stack, and all is whole afterwards."""
    for delay in (0.0007, 0.002):
        assert run(STRUCK.replace("DELAY", str(delay)).replace("PROGRAM", program), tmp_path, **switches) == "held\n"


SLOW_MODULE = """
import os, signal
os.kill(os.getpid(), signal.SIGUSR1)
for _ in range(1000): pass
os.kill(os.getpid(), signal.SIGUSR2)
done = True
"""


def test_handlers_run_when_the_import_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_import.py").write_text(SLOW_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    came: list[tuple[int, bool]] = []

    def note(number: int, frame: object) -> None:
        came.append((number, getattr(sys.modules.get("slow_to_import"), "done", False)))
        if number == signal.SIGUSR1:
            raise KeyError

    before = [signal.signal(number, note) for number in (signal.SIGUSR1, signal.SIGUSR2)]
    try:
        with pytest.raises(KeyError):
            loading.load("slow_to_import")
        assert came == [(signal.SIGUSR1, True), (signal.SIGUSR2, True)]
        assert [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)] == [note, note]
        assert loading.load("slow_to_import").done
    finally:
        for number, handler in zip((signal.SIGUSR1, signal.SIGUSR2), before, strict=True):
            signal.signal(number, handler)
        sys.modules.pop("slow_to_import", None)


def test_a_thread_that_works_for_another_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "says_where.py").write_text("import threading\nwhere = threading.get_ident()\n")
    monkeypatch.syspath_prepend(tmp_path)
    calls: list[int] = []

    def work(argument: int) -> tuple[int, int]:
        calls.append(threading.get_ident())
        return argument, loading.load("says_where").where

    try:
        assert aside(work, 7) == (7, threading.main_thread().ident)
        assert len(calls) == 2 and threading.main_thread().ident not in calls
    finally:
        sys.modules.pop("says_where", None)


def test_a_module_that_is_not_there_is_an_error_of_who_asked() -> None:
    with pytest.raises(ModuleNotFoundError):
        aside(loading.load, "no_module_of_this_name")


AT_ONCE = """
import sys, lazynp
print(*sys.modules)
"""
TOOLS = {"__main__.py", "doctor.py"}  # what the command line asks for
LATE = {"backends/common", "backends/llvm", "codegen", "engine", "schedule"}  # what computes, which may be in a thread for another one


def test_what_is_wanted_late_is_imported_by_load_alone(tmp_path: Path) -> None:
    """In functions; what is loaded with the package may be imported there as usual, but not by what computes."""
    package = Path(lazynp.__file__).parent
    loaded = set(run(AT_ONCE, tmp_path).split())
    found = []
    for file in package.rglob("*.py"):
        place = file.relative_to(package)
        if place.as_posix() in TOOLS or "cuda" in place.parts:  # GPUs need no thread that works for another
            continue
        for function in ast.walk(ast.parse(file.read_text())):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    inner = [f"{node.module}.{alias.name}" for alias in node.names]
                    names = [str(node.module), *(n for n in inner if (package.parent / n.replace(".", "/")).with_suffix(".py").exists())]
                else:
                    continue
                late = any(place.as_posix().startswith(folder) for folder in LATE)
                if "backends.cuda" not in ast.unparse(node) and (late or not loaded.issuperset(names)):
                    found.append(f"{place}: {ast.unparse(node)}")
    assert found == []


def test_nothing_is_compiled_while_what_compiles_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection of garbage inside the import may run code that computes: a thread that compiled for it would wait for the import."""
    module = ModuleType("llvmlite.half_made")
    module.__spec__ = ModuleSpec("llvmlite.half_made", None)
    module.__spec__._initializing = True  # type: ignore[attr-defined]
    assert not loading.under_way("lazynp", "llvmlite")
    monkeypatch.setitem(sys.modules, "llvmlite.half_made", module)
    assert loading.under_way("lazynp", "llvmlite")
    assert [methods._compiled((), (), "", (), kept) for kept in (True, None)] == [methods._AHEAD, methods._AGAIN]


# Modules that stand for others ------------------------------------------------------------------------------------------------------


def test_a_module_that_is_wanted_late_has_its_names_and_no_others(tmp_path: Path) -> None:
    program = """
import copy, sys
from lazynp.values.loading import Late
late = Late("lazynp.values.limits")
print("lazynp.values.limits" in sys.modules, hasattr(late, "__wrapped__"), "lazynp.values.limits" in sys.modules)
for _ in range(2):
    try:
        late.no_name
    except AttributeError as error:
        print(error)
print(late.cpus is sys.modules["lazynp.values.limits"].cpus, copy.copy(late).cpus is late.cpus)
late.own = 3
print(sys.modules["lazynp.values.limits"].own, hasattr(late, "__wrapped__"))
"""
    told = "module 'lazynp.values.limits' has no attribute 'no_name'\n"
    again = "'Late' object has no attribute 'no_name'\n"
    assert run(program, tmp_path).replace(again, told) == f"False False False\n{told}{told}True True\n3 False\n"


@pytest.mark.parametrize("program", ["importlib.reload(np)", "del sys.modules['lazynp']\nimport lazynp as np"])
def test_the_package_may_be_loaded_again(program: str, tmp_path: Path) -> None:
    text = f"import importlib, sys\nimport lazynp as np\n{program}\nprint(len(np.schedule(np.array([1, 2]) + 1).items), np.sort([3, 1]))"
    assert run(text, tmp_path) == "1 [1 3]\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_fork_waits_for_what_is_half_imported(tmp_path: Path) -> None:
    program = """
import faulthandler, os, sys, threading, time
import lazynp as np
begun = threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("lazynp"):
            begun.set()
            time.sleep(0.1)
sys.meta_path.insert(0, Slow())
def work():
    return np.full((3, 4), 2.0).sum() + np.linalg.inv(np.eye(3))[0, 0] + str(np.arange(3.0)).count("1")
thread = threading.Thread(target=work)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(20, exit=True)
    os._exit(0 if work() == 26 else 3)
print(os.waitpid(child, 0)[1])
thread.join()
"""
    assert run(program, tmp_path) == "0\n"
