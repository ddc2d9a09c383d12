"""Compiling by a process beside the program: what the program sees of it, which is nothing; and what goes wrong with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lazynp.array import core
from lazynp.backends.common import disk_cache
from lazynp.backends.llvm import client, compiler
from lazynp.values import config
from tests.backends.llvm.kernels import map_ir
from tests.backends.llvm.test_compiler import ADD, function

pytestmark = [
    pytest.mark.skipif(bool(client.reason()), reason=client.reason()),
    pytest.mark.skipif(config.backend == "numpy", reason="nothing is compiled"),
]

HEAD = """
import os, signal, subprocess, sys, time
from lazynp.backends.llvm import client, compiler
from tests.backends.llvm.kernels import map_ir

def text(k):
    return map_ir("power", "f64").replace("define void @kernel", f"define void @other{k}() {{ ret void }}\\ndefine void @kernel")

def begun(k):  # `begin` returns None where it is done already
    compiler.begin(text(k), ["kernel"])
    return compiler._begun[compiler._key(text(k), ["kernel"], 1)]

def served():
    return compiler.compile_module(text(0), ["kernel"])["kernel"] > 0

"""


def run(code: str, directory: Path | None, **environment: str) -> subprocess.CompletedProcess[str]:
    cache = {"LAZYNP_CACHE": "0"} if directory is None else {"LAZYNP_CACHE_DIR": str(directory), "LAZYNP_CACHE": "1"}
    variables = {**os.environ, **cache, "LAZYNP_COMPILER": "child", "LAZYNP_OPTIMIZE": "1", **environment}
    return subprocess.run([sys.executable, "-c", HEAD + code], capture_output=True, text=True, timeout=120, check=False, env=variables)


def holds(code: str, directory: Path | None, **environment: str) -> None:
    done = run(code, directory, **environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def servers(directory: Path) -> list[int]:
    """The processes that compile for a directory."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0") if process.name.isdecimal() else []
        except OSError:
            continue
        if os.fsencode(directory) in words and any(b"lazynp.backends.llvm.server" in word for word in words):
            found.append(int(process.name))
    return found


def until(true: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A process of the test's own, in a new state of the client, and the directory that it works for."""
    cache = disk_cache.DiskCache(tmp_path / "cache")
    monkeypatch.setattr(disk_cache, "shared", lambda: cache)
    for name, value in vars(client._State()).items():
        monkeypatch.setattr(client._state, name, value)
    with config.override(compiler="child", optimize=True):
        yield tmp_path / "cache"
        if client._state.connection is not None:
            client._state.connection.close()
    compiler._begun.clear()


def module(number: int) -> str:
    return ADD.replace("add i64 %a, %b", f"add i64 %a, {number}")


def long_module(number: int, depth: int) -> str:
    """A short text of 2**depth steps, whatever functions the machine has: 13 take a second or two, 17 some minutes."""
    first = "%a = fmul double %x, %x\n%b = fadd double %a, 1.5\n%c = fcmp ogt double %b, 2.0\n%r = select i1 %c, double %b, double %x"
    steps = [f"define internal double @f0(double %x) alwaysinline {{\n{first}\nret double %r\n}}"]
    for k in range(depth):
        twice = f"%a = call double @f{k}(double %x)\n%r = call double @f{k}(double %a)"
        steps.append(f"define internal double @f{k + 1}(double %x) alwaysinline {{\n{twice}\nret double %r\n}}")
    kernel = f"define double @kernel(double %x) {{\n%r = call double @f{depth}(double %x)\nret double %r\n}}"
    return "\n".join([module(number), *steps, kernel])


# What the program sees of it ----------------------------------------------------------------------------------------------------------


def test_the_program_maps_no_llvm(tmp_path: Path) -> None:
    code = """
import lazynp as np
x = np.linspace(0, 1, 1000)
assert served()
(np.exp(-x) * np.sqrt(x) + x.sum()).realize()
assert "libllvmlite" not in open("/proc/self/maps").read()
assert "llvmlite.binding" not in sys.modules
"""
    holds(code, tmp_path, LAZYNP_TIER="compiled", LAZYNP_TAPE_LIMIT="0")


def test_the_code_is_that_of_this_process(alone: Path) -> None:
    for name in ("sqrt", "exp", "power"):
        text = map_ir(name, "f64")
        compiler.begin(text, ["kernel"])  # None where it is done already
        work = compiler._begun.pop(compiler._key(text, ["kernel"], 1))
        assert isinstance(work, client.Work)
        work.wait()
        assert work.code() == compiler._compile(compiler._toolchain(), text, ["kernel"])


def test_a_core_is_left_to_it_as_long_as_it_works(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, int]] = []
    monkeypatch.setattr(core, "spare", lambda *arguments: said.append(arguments))
    for k in range(2):
        compiler.begin(module(k), ["kernel"])  # None where it is done already
    for k in range(2):
        compiler._begun[compiler._key(module(k), ["kernel"], 1)].wait()
    assert [ns for _, ns in said if ns] == [compiler.SPARED_NS] * 2
    assert said[-1] == (0, 0)


def test_it_is_nobodys_child(tmp_path: Path) -> None:
    code = """
heard = []
signal.signal(signal.SIGCHLD, lambda *told: heard.append(told))
assert served()
try:
    raise AssertionError(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    pass
assert subprocess.run(["true"]).returncode == 0 and len(heard) == 1, heard
"""
    holds(code, tmp_path)


def test_signals_to_the_group_are_the_programs(tmp_path: Path) -> None:
    code = """
os.setpgid(0, 0)
heard = []
signal.signal(signal.SIGINT, lambda *told: heard.append(told))
works = [begun(k) for k in range(4)]
end = time.monotonic() + 0.05  # while it is started, too
while time.monotonic() < end:
    os.killpg(0, signal.SIGINT)
for work in works:
    work.wait()
    assert work.code() and work.losses == 0
assert heard
"""
    holds(code, tmp_path)


def test_it_inherits_nothing(alone: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    assert function(module(1))(1, 0) == 2
    os.close(writer)
    assert os.read(reader, 1) == b""  # nobody else holds the other end
    os.close(reader)
    (process,) = servers(alone)
    assert os.readlink(f"/proc/{process}/cwd") == "/"
    assert os.getsid(process) == process != os.getsid(0)


def test_programs_find_the_process_of_others(tmp_path: Path) -> None:
    cache = tmp_path / ("long " * 30) / "cache"  # longer than an address
    asks = HEAD.replace("text(0)", "text(1)") + "assert served() and not client._state.connection.own"
    code = f"""
assert served()
other = subprocess.run([sys.executable, "-c", {asks!r}])
assert other.returncode == 0
assert client._state.connection.own
"""
    holds(code, cache)


def test_it_goes_with_the_program_and_finishes_what_it_was_asked_for(tmp_path: Path) -> None:
    holds("for k in range(4): begun(k)", tmp_path)
    until(lambda: not servers(tmp_path))
    holds("for k in range(4): assert compiler.compile_module(text(k), ['kernel'], how=compiler.LOOK)", tmp_path)
    assert not servers(tmp_path)


@pytest.mark.slow
def test_it_goes_when_nothing_is_wanted_and_comes_back(alone: Path) -> None:
    assert function(module(2))(1, 0) == 3
    (first,) = servers(alone)
    until(lambda: not servers(alone))
    assert function(module(3))(1, 0) == 4
    assert servers(alone) not in ([], [first])
    assert client._state.failures == 0


def test_a_program_that_closes_all_descriptors_gets_another_one(alone: Path) -> None:
    assert function(module(4))(1, 0) == 5
    assert client._state.connection is not None
    descriptor = client._state.connection.descriptor
    os.close(descriptor)
    other = os.open("/dev/null", os.O_RDONLY)
    if other != descriptor:
        os.dup2(other, descriptor)
    assert function(module(5))(1, 0) == 6
    os.fstat(descriptor)  # it was left alone
    os.close(descriptor)


def test_the_connection_is_no_standard_stream(tmp_path: Path) -> None:
    code = """
for stream in range(3):
    os.close(stream)
os._exit(0 if served() and client._state.connection.descriptor > 2 else 1)
"""
    holds(code, tmp_path)


def test_a_copy_of_the_program_has_its_own(tmp_path: Path) -> None:
    code = """
import warnings
warnings.simplefilter("ignore")
works = [begun(k) for k in range(4)]
copy = os.fork()
if not copy:
    assert all(work.over and work.code() is None for work in works)
    assert compiler.compile_module(text(0), ["kernel"]) and compiler.compile_module(text(9), ["kernel"])
    assert client._state.connection is not None
    os._exit(0)
assert os.waitpid(copy, 0)[1] == 0
for work in works:
    work.wait()
    assert work.code() and work.losses == 0
"""
    holds(code, tmp_path)


# What goes wrong with it --------------------------------------------------------------------------------------------------------------


def test_it_is_killed_with_nothing_to_do(alone: Path) -> None:
    assert function(module(6))(1, 0) == 7
    for k in range(7, 7 + client.STARTS - 1):
        (process,) = servers(alone)
        os.kill(process, signal.SIGKILL)
        until(lambda: not servers(alone))
        assert function(module(k))(1, 0) == k + 1
    assert client.wanted()


def test_a_text_may_be_longer_than_what_a_socket_holds(alone: Path) -> None:
    assert function(f"; {'long ' * 400_000}\n{module(35)}")(1, 0) == 36


def test_it_is_killed_at_work(alone: Path) -> None:
    assert function(module(30))(1, 0) == 31  # it is ready
    work = compiler.begin(long_module(31, 13), ["add", "kernel"])
    (process,) = servers(alone)
    os.kill(process, signal.SIGKILL)
    work.wait()
    assert work.code() and work.losses == 1


def test_what_kills_it_is_not_asked_for_again(alone: Path) -> None:
    text = long_module(32, 17)  # it is killed before, however late the test looks
    assert function(module(33))(1, 0) == 34
    work = compiler.begin(text, ["add", "kernel"])
    killed: list[Any] = []

    def ready() -> bool:
        """A process that was not killed yet is: who kills one before finds that none can be started."""
        connection = client._state.connection
        return connection is not None and connection not in killed and connection.ready and bool(servers(alone))

    for _ in range(client.LOSSES):
        until(lambda: work.over or ready())
        killed.append(client._state.connection)
        for process in servers(alone):
            os.kill(process, signal.SIGKILL)
        until(lambda: not servers(alone) or work.over)
    until(lambda: work.over)
    assert work.code() is None and not work.lost
    with pytest.raises(compiler.CompileError, match="has ended"):
        compiler.compile_module(text, ["add", "kernel"])
    assert function(module(34))(1, 0) == 35, "others are"


OTHERS = ["", "exit 3", "printf 'no sense at all, and much of it: %0100d' 1 >&0", "printf '%0200d' 1 >&0; sleep 60"]


@pytest.mark.parametrize("says", OTHERS)
def test_what_is_started_is_something_else(says: str, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "python"
    other.write_text(f"#!/bin/sh\n{says}\n")
    other.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(other))
    assert function(module(36))(1, 0) == 37, "a thread compiles"
    assert not client.wanted() and "before it was ready" in client.reason()


@pytest.mark.parametrize("name", ["", "/usr/bin/uwsgi", "/nowhere/python3"])
def test_no_interpreter_can_be_started(name: str, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", name)
    assert function(module(37))(1, 0) == 38
    assert client.reason()


def test_no_process_can_be_started(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client._native, "start", lambda command: -11)
    assert function(module(38))(1, 0) == 39
    assert "EAGAIN" in client.reason()


def test_faults_are_told(alone: Path) -> None:
    with pytest.raises(compiler.CompileError, match="LLVM refused a generated module"):
        compiler.compile_module("not LLVM at all", ["add"])
    with pytest.raises(compiler.CompileError, match="defines no function"):
        compiler.compile_module(module(39), ["nothing"])
    assert function(module(40))(1, 0) == 41


@pytest.mark.parametrize("directory", ["none", "read-only", "deleted"])
def test_there_is_no_directory_to_write_to(directory: str, tmp_path: Path) -> None:
    where = {"none": None, "read-only": Path("/proc/self"), "deleted": tmp_path / "cache"}[directory]
    code = "import shutil\nassert served()\nshutil.rmtree(os.environ.get('LAZYNP_CACHE_DIR', ''), True)\n" if directory == "deleted" else ""
    holds(f"{code}assert compiler.compile_module(text(5), ['kernel'])\nassert not client.reason()", where)


def test_other_threads_ask_meanwhile(alone: Path) -> None:
    import threading

    found: list[int] = []

    def ask(first: int) -> None:
        for k in range(first, first + 15):
            compiler.begin(module(k), ["add"])
        found.extend(function(module(k))(1, 0) - k for k in range(first, first + 15))

    threads = [threading.Thread(target=ask, args=(100 + 10 * t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 60
    assert len(servers(alone)) == 1


def test_a_program_without_an_environment_starts_one() -> None:
    code = "import ctypes; from lazynp.backends.llvm._background import start; ctypes.CDLL(None).clearenv(); print(start([b'/bin/true']))"
    assert int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) > 2


def test_the_group_of_what_compiles_gives_way(alone: Path) -> None:
    """Linux shares a processor evenly among sessions, whatever the priorities within them."""
    try:
        groups = Path("/proc/self/autogroup").read_text()
    except OSError:
        groups = ""
    compiler.compile_module(module(4711), ["add"])
    (process,) = servers(alone)  # it serves, whether there are such groups or not
    if not groups:  # no file, or one that says nothing: switched off, or in a control group of its own, as containers are
        pytest.skip("there are no such groups")
    until(lambda: Path(f"/proc/{process}/autogroup").read_text().split()[-1] == "7", 10)
