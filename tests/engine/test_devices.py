"""Devices where there is no GPU: names, refusals, switches, and that nothing of it is felt before it is asked for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import lazynp
from lazynp import doctor
from lazynp.backends.cuda import driver
from lazynp.engine import devices
from lazynp.graph import op as o
from lazynp.values import config

pytestmark = pytest.mark.usefixtures("recorded")


@pytest.fixture
def without_cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine where CuPy is not installed."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    driver.forget()
    yield
    monkeypatch.undo()
    driver.forget()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a GPU was named in this process."""
    monkeypatch.setattr(devices, "gpus", None)
    devices.use()


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    hidden = "import sys; sys.modules['cupy'] = None; "
    command = [sys.executable, "-c", hidden + arguments[0]] if len(arguments) == 1 else [sys.executable, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("given", "name"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:0", "cuda:0"), ("cuda:12", "cuda:12"), ("cuda:012", "cuda:12")]
)
def test_names(given: str, name: str) -> None:
    assert devices.name_of(given) == name
    assert config.parse({"LAZYNP_DEVICE": given})["device"] == name


@pytest.mark.parametrize("given", ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "cuda:²", 0, None, lazynp])
def test_what_is_no_name(given: Any) -> None:
    with pytest.raises(ValueError, match="Device not understood"):
        devices.name_of(given)
    with pytest.raises(ValueError if isinstance(given, str) else TypeError):  # NumPy's
        lazynp.ones(2).to_device(given)


def test_a_setting_that_is_no_name() -> None:
    with pytest.raises(ValueError, match="LAZYNP_DEVICE='gpu' is not cpu, cuda or cuda:N"):
        config.parse({"LAZYNP_DEVICE": "gpu"})
    with pytest.raises(ValueError, match="cuda:N"):
        config.update(device="tpu")


REFUSED = (
    "np.zeros(2, device=d)", "np.asarray([1], device=d)", "np.arange(3, device=d)", "np.linspace(0, 1, 3, device=d)", "x.to_device(d)",
    "x.sum().to_device(d)", "np.astype(x, 'f4', device=d)", "np.device(d)", "np.fft.fftfreq(4, device=d)", "np.from_dlpack(x, device=d)",
    "np.zeros_like(x, device=d)", "np.eye(2, device=d)", "np.__array_namespace_info__().dtypes(device=d)",
)  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
@pytest.mark.usefixtures("without_cupy")
def test_without_cupy_the_call_says_what_is_missing(call: str) -> None:
    names = {"np": lazynp, "x": lazynp.ones(2), "d": "cuda:1"}
    with pytest.raises(ValueError, match=r"device 'cuda:1' cannot be used: CuPy is not installed \(pip install 'lazynp\[cuda\]'\)"):
        eval(call, names)
    assert devices.gpus is None


@pytest.mark.parametrize(
    ("count", "driver_version", "runtime_version", "words"),
    [
        ("cudaErrorInsufficientDriver", 0, 13000, "there is no NVIDIA driver"),
        ("cudaErrorNoDevice", 13000, 13000, "shows no device"),
        ("cudaErrorInsufficientDriver", 12020, 13000, "for CUDA 12.2, older than the CUDA 13.0"),
        ("cudaErrorInitializationError", 13000, 13000, "cudaErrorInitializationError"),
        (0, 13000, 13000, "shows no device"),
    ],
)
def test_what_may_be_missing_beside_cupy(
    count: Any, driver_version: int, runtime_version: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CUDARuntimeError(RuntimeError):
        pass

    class Runtime:
        def getDeviceCount() -> int:  # type: ignore[misc]
            if isinstance(count, str):
                raise CUDARuntimeError(count)
            return count

        driverGetVersion = staticmethod(lambda: driver_version)
        runtimeGetVersion = staticmethod(lambda: runtime_version)

    Runtime.CUDARuntimeError = CUDARuntimeError  # type: ignore[attr-defined]
    cuda = type("cuda", (), {"runtime": Runtime})
    monkeypatch.setitem(sys.modules, "cupy", type("cupy", (), {"cuda": cuda}))
    driver.forget()
    try:
        with pytest.raises(ValueError, match=words):
            lazynp.zeros(2, device="cuda")
        assert lazynp.__array_namespace_info__().devices() == ("cpu",)
    finally:
        monkeypatch.undo()
        driver.forget()


def test_a_broken_cupy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('libcudart.so.13: cannot open')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    driver.forget()
    try:
        with pytest.raises(ValueError, match=r"CuPy cannot be imported: ImportError: libcudart\.so\.13: cannot open"):
            lazynp.device("cuda")
    finally:
        monkeypatch.undo()
        driver.forget()


def test_importing_and_computing_loads_nothing_of_it() -> None:
    code = """import lazynp, sys
(lazynp.ones(9) + 1).sum().item()
print([name for name, module in sys.modules.items() if module and ("cupy" in name or "backends.cuda" in name)])"""
    done = run(code, LAZYNP_DEVICE="cpu")
    assert done.stdout.strip() == "[]", done.stderr


def test_a_default_device_that_is_not_there() -> None:
    code = """import lazynp as np
x = np.arange(3.0) + 1
assert x.device == "cuda:0"
assert x.shape == (3,)
try:
    print(x)
except ValueError as error:
    print(error)
print(np.asarray([1.0]).to_device("cpu").device)
print((np.ones(2).to_device("cpu") + 1).tolist())
"""
    done = run(code, LAZYNP_DEVICE="cuda")
    assert done.stdout.splitlines() == [
        "device 'cuda:0' cannot be used: CuPy is not installed (pip install 'lazynp[cuda]'); `python -m lazynp doctor` looks at each part",
        "cpu",
        "[2.0, 2.0]",
    ], done.stderr


@pytest.mark.slow
def test_the_command_line(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text("import numpy as np; print(np.ones(2).device)")
    done = run("-m", "lazynp", "--device", "cpu", str(script), LAZYNP_DEVICE="cuda")
    assert (done.stdout, done.returncode) == ("cpu\n", 0)
    done = run("-m", "lazynp", "--device", "tpu", str(script))
    assert done.returncode == 2
    assert done.stderr.startswith("python -m lazynp: Device not understood.")


def test_every_question_to_the_hook_has_an_answer() -> None:
    from lazynp.namespace.device.gpus import GPUs

    texts = [path.read_text() for path in Path(lazynp.__file__).parent.rglob("*.py")]
    asked = {name for text in texts for name in re.findall(r"devices\.(?:gpus|use\(\))\.(\w+)", text)}
    assert asked == {name for name in vars(GPUs) if not name.startswith("_")}


# What is recorded, without a GPU: another home on the processor ------------------------------------------------------------


def test_a_processor_with_no_gpu_in_sight_records_nothing() -> None:
    x = lazynp.arange(4.0)
    assert x.to_device("cpu") is x
    with lazynp.device("cpu"):
        y = lazynp.zeros(3) + 1
    assert y._node.op is o.ADD
    assert x.device == y.device == x.sum().device == "cpu"
    assert devices.gpus is None


@pytest.mark.usefixtures("elsewhere")
def test_pinned_values_are_computed_on_the_processor() -> None:
    x = lazynp.arange(12.0).reshape(3, 4)
    y = x.T.to_device("cpu")
    assert y.strides == x.T.strides
    numpy.testing.assert_array_equal(y * 2, numpy.arange(12.0).reshape(3, 4).T * 2)
    z = (x + 1).to_device("cpu")
    assert z._node.op is o.COPY
    assert z.device == (z + x).device == "cpu"
    numpy.testing.assert_array_equal(z.sum(axis=0) + z[0], (numpy.arange(12.0).reshape(3, 4) + 1).sum(0) + numpy.arange(1.0, 5.0))
    z[1, 1] = 50
    z[2] = -1
    assert z[1, 1] == 50
    assert z.device == "cpu"
    assert z.realize()._node.buffer.device == "cpu"


@pytest.mark.usefixtures("elsewhere")
def test_homes_join() -> None:
    node = lazynp.ones(2)._node
    assert devices.join([None, None], node) is None
    assert devices.join([None, "cpu", None], node) == "cpu"
    assert devices.join(["cuda:1", "cpu", None, "cuda:1"], node) == "cuda:1"
    with pytest.raises(ValueError, match=r"cuda:0 and cuda:1"):
        devices.join(["cuda:0", "cpu", "cuda:1"], node)


@pytest.mark.usefixtures("elsewhere")
def test_blocks_nest_and_end() -> None:
    assert devices.default() == "cpu"
    with lazynp.device("cpu") as outer, outer, lazynp.device("cpu"):
        assert devices.chosen() == "cpu"
        x = lazynp.asarray([1, 2])
    assert devices.chosen() is None
    assert devices.home(x._node) == "cpu"
    assert repr(outer) == "lazynp.device('cpu')"


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    code = doctor.main(lines.append)
    text = "".join(lines)
    for subject in ("lazynp", "Python", "NumPy", "processor", "disk cache", "CuPy"):
        assert subject in text
    assert code == ("FAILED" in text)


@pytest.mark.usefixtures("without_cupy")
def test_doctor_without_cupy_finds_no_fault() -> None:
    found = {check.subject: check for check in doctor.checks()}
    assert found["CuPy"].state == doctor.ABSENT
    assert "pip install 'lazynp[cuda]'" in found["CuPy"].found
    assert found["kernel on the processor"].state == doctor.FOUND
    assert "compiled, run and right" in found["kernel on the processor"].found


@pytest.mark.slow
def test_doctor_from_the_command_line() -> None:
    done = run("-m", "lazynp", "doctor")
    assert done.returncode == ("FAILED" in done.stdout)
    assert done.stdout.startswith("ok ")
