"""Compiling and linking modules: results, errors, the disk cache between processes."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from lazynp.backends.llvm import client, compiler, host, loader, mathlib, render, toolchain
from lazynp.codegen import ir
from lazynp.graph import op as o
from lazynp.values import config
from tests.backends.llvm.kernels import map_ir, math_kernel

ADD = """
define i64 @add(i64 %a, i64 %b) {
  %r = add i64 %a, %b
  ret i64 %r
}
"""


def function(ir, name="add"):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(compiler.compile_module(ir, [name])[name])


def test_a_module_gives_the_addresses_of_its_functions():
    assert function(ADD)(40, 2) == 42


def test_modules_may_use_the_same_names():
    assert function(ADD)(5, 3) == 8
    assert function(ADD.replace("add i64", "sub i64"))(5, 3) == 2
    assert function(ADD)(5, 3) == 8


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        ("not LLVM at all", ["add"], "expected top-level entity"),
        ("define i64 @add(i64 %a) {\n  ret i32 0\n}", ["add"], "ret"),
        (ADD, ["subtract"], "subtract"),
        ("declare i64 @lz_nowhere()\ndefine i64 @add() {\n  %r = call i64 @lz_nowhere()\n  ret i64 %r\n}", ["add"], "lz_nowhere"),
    ],
)
def test_faults_are_compile_errors(text, names, message):
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile_module(text, names)
    assert function(ADD)(1, 1) == 2


def test_refused_text_is_kept_for_developers(monkeypatch):
    monkeypatch.setattr(config, "debug", config.parse({"LAZYNP_DEBUG": "0"})["debug"])
    with pytest.raises(compiler.CompileError) as caught:
        compiler.compile_module("refused text", ["f"])
    assert "kept in" not in str(caught.value)
    monkeypatch.setattr(config, "debug", True)
    with pytest.raises(compiler.CompileError, match="kept in ") as caught:
        compiler.compile_module("refused text", ["f"])
    path = str(caught.value).split("kept in ")[1].split(")")[0]
    with open(path) as file:
        assert file.read() == "refused text"
    os.unlink(path)


def test_loops_with_mathematical_functions_are_vectorised():
    text = compiler.optimised_ir(map_ir("exp", "f64"), ["kernel"])
    definition = mathlib.prelude([("exp", "f64")])
    scalar_only = " x double>" not in definition and mathlib.c_symbol("exp", "f64") in definition  # the C library's, element by element
    assert (" x double>" in text) != scalar_only
    assert "@lz_exp_f64_v16" not in text  # variants that no loop uses are gone


DIVISION = """
define void @divide(ptr noalias %x, ptr noalias %out, i64 %n, i8 %by) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  %p = getelementptr i8, ptr %x, i64 %i
  %v = load i8, ptr %p
  %zero = icmp eq i8 %by, 0
  %safe = select i1 %zero, i8 1, i8 %by
  %d = sdiv i8 %v, %safe
  %r = select i1 %zero, i8 0, i8 %d
  %q = getelementptr i8, ptr %out, i64 %i
  store i8 %r, ptr %q
  %j = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


@pytest.mark.parametrize("level", [0, 1, 3])
def test_every_level_gives_the_same(level):
    x, out = np.arange(-128, 128).astype(np.int8), np.empty(256, np.int8)
    divide = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int8)(
        compiler.compile_module(DIVISION, ["divide"], level)["divide"]
    )
    for by in (0, 3, -7):
        divide(x.ctypes.data, out.ctypes.data, 256, by)
        assert out.tolist() == [int(v / by) if by else 0 for v in x.tolist()]


def test_kernels_that_look_at_divisors_are_known():
    def kernel(op):
        compute = ir.Compute("t", op, np.dtype(int), ("a", "s0"), np.dtype(int))
        return ir.Kernel(phases=[ir.Phase(body=[ir.Loop("i", "0", "n0", [ir.If("c", [compute])])])])

    assert render.tests_divisors(kernel(o.FLOOR_DIVIDE))
    assert not render.tests_divisors(kernel(o.ADD))


def test_only_the_functions_asked_for_are_public():
    text = compiler.optimised_ir(map_ir("sin", "f32"), ["kernel"])
    public = [line for line in text.splitlines() if line.startswith("define ") and "internal" not in line]
    assert len(public) == 1
    assert "@kernel" in public[0]


def test_many_threads_may_compile():
    results = {}

    def work(k):
        results[k] = function(ADD.replace("%a, %b", f"%a, {k}"))(100, 0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: 100 + k for k in range(8)}


def run(program, tmp_path, **environment):
    environment = {**os.environ, "LAZYNP_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


PROGRAM = """
import sys
import numpy as np
from lazynp.backends.llvm import compiler
from tests.backends.llvm.kernels import math_kernel
x = np.linspace(-1, 1, 101)
value = math_kernel("exp", "f64")(x)
assert np.allclose(value, np.exp(x), rtol=1e-15), value
print(compiler.STATISTICS.compiled, compiler.STATISTICS.loaded, value.tobytes().hex(), "llvmlite.binding" in sys.modules)
"""


def test_the_second_process_compiles_nothing_and_computes_the_same_bits(tmp_path):
    beside = run(PROGRAM, tmp_path / "other", LAZYNP_COMPILER="child")
    first, second = run(PROGRAM, tmp_path, LAZYNP_COMPILER="wait"), run(PROGRAM, tmp_path, LAZYNP_COMPILER="wait")
    assert first[:2] == beside[:2] == ["1", "0"]
    assert second[:2] == ["0", "1"]
    assert first[2] == second[2] == beside[2]
    assert first[3] == "True"
    assert second[3] == str(loader.machine() is None)  # where our loader knows the system, nobody needs LLVM
    assert beside[3] == str(bool(client.reason()))


def test_where_nothing_but_llvm_can_load_code_it_does(tmp_path, monkeypatch):
    monkeypatch.setattr(loader, "machine", lambda: None)
    assert function(ADD)(40, 2) == 42
    value = math_kernel("exp", "f64")(np.linspace(-1, 1, 101))
    np.testing.assert_allclose(value, np.exp(np.linspace(-1, 1, 101)), rtol=1e-15)


DEFINITION = "from lazynp.backends.llvm import mathlib; print(hash(mathlib.prelude([('exp', 'f64')])))"


@pytest.mark.slow
def test_math_libraries_share_the_machine_code_in_which_they_do_not_differ(tmp_path):
    libraries = [{"LAZYNP_LIBMVEC": libmvec, "LAZYNP_POLYNOMIALS": own} for libmvec in ("", "0") for own in ("", "0")]
    known = set()
    for library in libraries:
        (definition,) = run(DEFINITION, tmp_path, **library, PYTHONHASHSEED="0")
        assert run(PROGRAM, tmp_path, **library)[:2] == (["0", "1"] if definition in known else ["1", "0"])
        known.add(definition)


@pytest.mark.slow
def test_damaged_machine_code_is_compiled_again(tmp_path):
    run(PROGRAM, tmp_path)
    for file in (tmp_path / "cache").glob("*.obj"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    assert run(PROGRAM, tmp_path)[:2] == ["1", "0"]
    assert run(PROGRAM, tmp_path)[:2] == ["0", "1"]


@pytest.mark.slow
def test_without_a_cache_everything_is_compiled(tmp_path):
    assert run(PROGRAM, tmp_path, LAZYNP_CACHE="0")[:2] == ["1", "0"]
    assert not (tmp_path / "cache").exists()


def test_importing_the_compiler_loads_no_llvm():
    program = "import sys, lazynp.backends.llvm.compiler, lazynp.backends.llvm.threads; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("wanted", ["lzc_exp", "lzc_nothing"])
def test_undefined_symbols_are_read_from_objects(wanted):
    text = f"declare double @{wanted}(double)\ndefine double @f(double %x) {{\n  %r = call double @{wanted}(double %x)\n  ret double %r\n}}"
    tools = compiler._toolchain()
    module = compiler._optimise(tools, text, ["f"])
    data = bytes(tools.machine.emit_object(module))
    if data.startswith(b"\x7fELF"):
        assert loader.Object(data).undefined() == [wanted]
    if mathlib.address(wanted) is None:
        with pytest.raises(compiler.CompileError, match=wanted):
            compiler.load_object(data, ["f"])
    else:
        assert compiler.load_object(data, ["f"])["f"]


def test_kernels_work_on_any_length():
    kernel = math_kernel("exp", "f64")
    for n in (0, 1, 7, 8, 33):
        x = np.linspace(0, 1, n)
        np.testing.assert_allclose(kernel(x), np.exp(x), rtol=4e-16)


FIRST_RESULT = """
import numpy, sys
before = set(sys.modules)
import lazynp as np
x = np.linspace(0, 1, 1000)
(np.exp(-x) * np.sqrt(x) + x.sum()).realize()
print(*sorted({"dataclasses", "hashlib", "inspect", "pathlib", "subprocess", "tempfile", "llvmlite.binding"} & (set(sys.modules) - before)))
"""


@pytest.mark.slow
def test_a_first_result_from_the_disk_cache_imports_nothing_dear(tmp_path):
    run(FIRST_RESULT, tmp_path, LAZYNP_TIER="compiled")
    second = run(FIRST_RESULT, tmp_path, LAZYNP_TIER="compiled")
    if loader.machine() is not None:
        assert second == []


HOST = "import sys; from lazynp.backends.llvm.host import host; print(host().triple, 'llvmlite.binding' in sys.modules)"


def test_what_the_system_says_of_the_machine_is_what_llvm_says(tmp_path):
    triple, loaded = run(HOST, tmp_path)
    assert loaded == str(sys.platform != "linux")
    tools = toolchain.Toolchain()
    assert triple.split("-")[0] == tools.triple.split("-")[0]
    for abi in (*host.X86_ABIS, *host.AARCH64_ABIS):
        for name in (*abi.features, "fma"):
            assert host.host().has(name) == (f"+{name}" in tools.features.split(",")), name
