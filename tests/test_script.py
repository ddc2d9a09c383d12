"""``python -m lazynp script.py``: NumPy means lazynp in the user's own modules, and nothing else about the run is different."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lazynp import mapping, script

PACKAGE_PARENT = Path(script.__file__).parent.parent


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        path = directory / (name.replace("__slash__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def launch(
    directory: Path, *arguments: str, module: bool = True, text: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(("-m", "lazynp") if module else ()), *arguments]
    paths = os.pathsep.join(filter(None, [str(PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def output(directory: Path, *arguments: str) -> str:
    done = launch(directory, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


# The rewriting itself -------------------------------------------------------------------------------------------------

REWRITTEN = [
    ("import numpy", "import lazynp as numpy"),
    ("import numpy as np", "import lazynp as np"),
    ("import os, numpy as np, sys", "import os\nimport lazynp as np\nimport sys"),
    ("import numpy.linalg", "import lazynp.linalg as numpy\nimport lazynp as numpy"),
    ("import numpy.linalg as la", "import lazynp.linalg as la"),
    ("from numpy import exp, sin as s", "from lazynp import exp, sin as s"),
    ("from numpy import *", "from lazynp import *"),
    ("from numpy.linalg import norm", "from lazynp.linalg import norm"),
    ("def f():\n    import numpy\n    return numpy", "def f():\n    import lazynp as numpy\n    return numpy"),
    ("try:\n    import numpy\nexcept ImportError:\n    pass", "try:\n    import lazynp as numpy\nexcept ImportError:\n    pass"),
    ("if x:\n    pass\nelse:\n    import numpy", "if x:\n    pass\nelse:\n    import lazynp as numpy"),
    ("match x:\n    case 1:\n        import numpy", "match x:\n    case 1:\n        import lazynp as numpy"),
    ("__import__('numpy')", "__import__('lazynp')"),
    ("importlib.import_module('numpy.fft')", "importlib.import_module('lazynp.fft')"),
    ("pytest.importorskip('numpy', '2.0')", "pytest.importorskip('lazynp', '2.0')"),
    ("from pytest import importorskip as need\nneed('pandas')", "from pytest import importorskip as need\n__lazynp__.twin(need)('pandas')"),
]
UNTOUCHED = [
    "import numpydoc",
    "from numpy_financial import irr",
    "from . import numpy",
    "from .numpy import x",
    "numpy = 'numpy'",
    "print('import numpy')",
    "f = lambda: 'numpy'",
]


@pytest.mark.parametrize(("source", "expected"), REWRITTEN)
def test_imports_of_numpy_are_rewritten(source: str, expected: str) -> None:
    assert ast.unparse(mapping.map_tree(ast.parse(source))) == ast.unparse(ast.parse(expected))


@pytest.mark.parametrize("source", UNTOUCHED)
def test_everything_else_is_left_as_it_is(source: str) -> None:
    assert ast.dump(mapping.map_tree(ast.parse(source))) == ast.dump(ast.parse(source))


def test_rewriting_keeps_positions() -> None:
    tree = mapping.map_tree(ast.parse("x = 1\n\nimport numpy.linalg, os\n"))
    assert [statement.lineno for statement in tree.body] == [1, 3, 3, 3]


def test_a_deep_expression_is_compiled() -> None:
    limit = sys.getrecursionlimit()
    mapping.compile_mapped(("import numpy\nx = 1" + " + 1" * 2500).encode(), "deep.py")
    assert sys.getrecursionlimit() == limit


# Whose modules are mapped ---------------------------------------------------------------------------------------------


def test_numpy_is_lazynp_in_the_script_and_its_modules_only(tmp_path: Path) -> None:
    installed = tmp_path / "lib" / "site-packages"
    write(
        tmp_path,
        main=(
            "import sys\n"
            f"sys.path.append({str(installed)!r})\n"
            "import numpy as np, helper, package.inner, thirdparty\n"
            "print(np.__spec__.name, helper.name(), package.inner.name, thirdparty.name, sys.modules['numpy'].__name__)\n"
        ),
        helper="def name():\n    from numpy import exp\n    import numpy\n    return numpy.__spec__.name\n",
        package__slash____init__="",
        package__slash__inner="import numpy\nname = numpy.__spec__.name\n",
    )
    write(installed, thirdparty="import numpy\nname = numpy.__spec__.name\n")
    assert output(tmp_path, "main.py").split() == ["lazynp", "lazynp", "lazynp", "numpy", "numpy"]


def test_a_module_elsewhere_keeps_numpy(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", other="import numpy\nname = numpy.__spec__.name\n")
    write(tmp_path / "program", main=f"import sys; sys.path.append({str(tmp_path / 'elsewhere')!r})\nimport other\nprint(other.name)\n")
    assert output(tmp_path, "program/main.py").strip() == "numpy"


@pytest.mark.slow
def test_mapped_code_never_reaches_pythons_own_cache(tmp_path: Path) -> None:
    write(tmp_path, main="import helper\nprint(helper.name)\n", helper="import numpy\nname = numpy.__spec__.name\n")
    assert output(tmp_path, "main.py").strip() == "lazynp"
    assert launch(tmp_path, "main.py", module=False).stdout.strip() == "numpy"
    assert output(tmp_path, "main.py").strip() == "lazynp"


@pytest.mark.slow
def test_submodules_of_numpy(tmp_path: Path) -> None:
    write(
        tmp_path,
        main=(
            "import numpy as np, sys\n"
            "import numpy.linalg\n"
            "import numpy.fft as fft\n"
            "from numpy.linalg import norm\n"
            "from numpy.typing import NDArray\n"
            "from numpy.lib.stride_tricks import sliding_window_view\n"
            "from numpy.exceptions import AxisError\n"
            "assert numpy.linalg.norm is norm and numpy is np and callable(fft.fft)\n"
            "assert sys.modules['numpy'].linalg.__name__ == sys.modules['numpy'].linalg.__spec__.name == 'numpy.linalg'\n"
            "assert 'lazynp' not in sys.modules['numpy'].lib.stride_tricks.__name__\n"
            "try:\n    import numpy.nonexistent\nexcept ModuleNotFoundError as error:\n    print(error)\n"
        ),
    )
    assert "nonexistent" in output(tmp_path, "main.py")


@pytest.mark.slow
def test_star_import_brings_numpys_names(tmp_path: Path) -> None:
    write(tmp_path, main="from numpy import *\nprint(float(sin(pi / 2) + arange(3).sum()))\n")
    assert output(tmp_path, "main.py").strip() == "4.0"


# The rest of the run is Python's own ----------------------------------------------------------------------------------

FACTS = """
import sys, os
print(__name__, sys.argv[1:], os.path.basename(sys.argv[0]), os.path.basename(__file__), os.path.isabs(__file__))
print(sys.path[0] == os.path.dirname(os.path.realpath(__file__)), __spec__, __package__, __doc__, __cached__)
print(sys.modules['__main__'].__dict__ is globals(), __builtins__.__name__)
"""


def test_main_is_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", main=FACTS)
    arguments = ("sub/main.py", "--report", "-x", "1")
    assert output(tmp_path, *arguments) == launch(tmp_path, *arguments, module=False).stdout


@pytest.mark.slow
def test_results_can_be_pickled_by_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        main=(
            "import pickle, dataclasses, numpy as np\n"
            "@dataclasses.dataclass\nclass Point:\n    x: object\n"
            "print(int(pickle.loads(pickle.dumps(Point(np.arange(3)))).x.sum()))\n"
        ),
    )
    assert output(tmp_path, "main.py").strip() == "3"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "code"), [("pass", 0), ("raise SystemExit(7)", 7), ("import sys; sys.exit('no')", 1), ("1 / 0", 1), ("def", 1)]
)
def test_exit_codes_are_kept(tmp_path: Path, statement: str, code: int) -> None:
    write(tmp_path, main=statement + "\n")
    assert launch(tmp_path, "main.py").returncode == code


@pytest.mark.slow
@pytest.mark.parametrize(
    "files",
    [
        {"main": "import numpy as np\n\ndef f(x):\n    return x / 0\n\nf(1)\n"},
        {"main": "import helper\nhelper.f(1)\n", "helper": "import numpy\n\ndef f(x):\n    raise ValueError(x)\n"},
        {"main": "import helper\n", "helper": "import numpy\n\nimport missing_module_xyz\n"},
        {"main": "import helper\n", "helper": "import numpy\nx = = 1\n"},
        {"main": "import numpy\nx = = 1\n"},
        {"main": "raise KeyboardInterrupt\n"},
        {"main": "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0\n"},
    ],
    ids=["script", "module", "import", "syntax in module", "syntax", "interrupt", "own hook"],
)
def test_tracebacks_show_the_users_lines_only(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, **files)
    ours, pythons = launch(tmp_path, "main.py"), launch(tmp_path, "main.py", module=False)
    assert (ours.returncode, ours.stdout, ours.stderr) == (pythons.returncode, pythons.stdout, pythons.stderr)


@pytest.mark.slow
def test_a_missing_script_is_reported(tmp_path: Path) -> None:
    done = launch(tmp_path, "missing.py")
    assert done.returncode == 2
    assert "missing.py" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_an_unknown_backend_is_refused(tmp_path: Path) -> None:
    write(tmp_path, main="pass\n")
    done = launch(tmp_path, "--backend", "abacus", "main.py")
    assert done.returncode == 2
    assert "abacus" in done.stderr


# Options --------------------------------------------------------------------------------------------------------------

PROGRAM = "import numpy as np\nx = np.arange(10.0)\nprint(np.exp(x).sum() > 1)\n"


def test_backend_is_chosen(tmp_path: Path) -> None:
    write(tmp_path, main="import os\nfrom lazynp.values import config\nprint(config.backend, os.environ['LAZYNP_BACKEND'])\n")
    assert output(tmp_path, "--backend", "numpy", "main.py").split() == ["numpy", "numpy"]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)\n"])
def test_report_names_the_line_that_forced(tmp_path: Path, ending: str) -> None:
    write(tmp_path, main=PROGRAM + ending)
    done = launch(tmp_path, "--report", "main.py")
    assert done.returncode == (3 if ending else 0)
    assert done.stdout == "True\n"
    assert "main.py:3" in done.stderr


@pytest.mark.slow
def test_counters_as_json(tmp_path: Path) -> None:
    write(tmp_path, main=PROGRAM)
    output(tmp_path, "--report-json", "counters.json", "main.py")
    assert isinstance(json.loads((tmp_path / "counters.json").read_text(encoding="utf-8")), dict)


def test_a_copied_program_prints_what_numpy_prints(tmp_path: Path) -> None:
    write(
        tmp_path,
        main=(
            "import numpy as np\n"
            "a = np.arange(12, dtype=np.float64).reshape(3, 4)\n"
            "b = (a - a.mean(axis=0)) / a.std(axis=0)\n"
            "a[1:] *= 2\n"
            "print(b)\nprint(a.T)\nprint(repr(a[0]), a.sum(), a.dtype, f'{a.max():.3f}')\n"
        ),
    )
    assert output(tmp_path, "main.py") == launch(tmp_path, "main.py", module=False).stdout


def test_a_numpy_beside_the_script_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, main="import numpy\nprint(numpy.__spec__.name)\n", numpy="raise SystemExit('not NumPy')\n")
    assert output(tmp_path, "main.py").strip() == "lazynp"


# Other forms of programs ------------------------------------------------------------------------------------------------------

WHO = """
import sys, os
import numpy as np
here = os.getcwd()
print(np.__spec__.name.replace("lazynp", "numpy"), [a.replace(here, "HERE") for a in sys.argv], sys.path[0].replace(here, "HERE"))
spec = globals().get("__spec__")
print(__name__, __package__, spec and (spec.name, spec.origin.replace(here, "HERE"), spec.parent))
print(globals().get("__file__", "").replace(here, "HERE"))
print(type(__loader__).__name__.lstrip("_").replace("Mapping", ""), __doc__, sorted(set(globals()) - {"np", "spec", "here"}))
print(__annotations__, np.arange(3).sum(), sys.modules["__main__"].__dict__ is globals())
"""
LOADERS = {"Loader": "SourceFileLoader", "Zip": "zipimporter"}


def same_as_python(directory: Path, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program both ways; what differs in the loader's name is that it maps."""
    ours, pythons = (launch(directory, *arguments, module=module, text=text) for module in (True, False))
    shown = ours.stdout
    for mapped, plain in LOADERS.items():
        shown = shown.replace(f"\n{mapped} ", f"\n{plain} ")
    assert (ours.returncode, shown, ours.stderr) == (pythons.returncode, pythons.stdout, pythons.stderr)
    return ours


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["./main.py", "sub/../main.py", "sub/main.py", "./sub/./main.py", "link.py"], ids=["here", "up", "below", "dots", "link"]
)
def test_file_and_path_are_as_given(tmp_path: Path, path: str) -> None:
    write(tmp_path, main=WHO, sub__slash__main=WHO)
    (tmp_path / "link.py").symlink_to("sub/main.py")
    assert "numpy" in same_as_python(tmp_path, path, "a", "-b").stdout


@pytest.mark.slow
def test_a_module_and_a_package(tmp_path: Path) -> None:
    write(tmp_path, pkg__slash____init__="", pkg__slash__mod=WHO, pkg__slash____main__=WHO)
    for name in ("pkg.mod", "pkg"):
        assert "__main__" in same_as_python(tmp_path, "-m", name, "--flag", "x").stdout


def test_modules_of_a_package_see_each_other(tmp_path: Path) -> None:
    write(
        tmp_path,
        pkg__slash____init__="import numpy\nname = numpy.__spec__.name\n",
        pkg__slash__tool="from . import name\nfrom .other import np\nprint(name, np.__spec__.name)\n",
        pkg__slash__other="import numpy as np\n",
    )
    assert output(tmp_path, "-m", "pkg.tool").split() == ["lazynp", "lazynp"]


def test_the_package_that_is_named_is_the_program_even_if_it_is_installed(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    write(site, tool__slash____main__="import numpy, thirdparty\nprint(numpy.__spec__.name, thirdparty.name)\n", tool__slash____init__="")
    write(site, thirdparty="import numpy\nname = numpy.__spec__.name\n")
    paths = os.pathsep.join([str(PACKAGE_PARENT), str(site)])
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "lazynp", "-m", "tool"],
        cwd=tmp_path / "empty", env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["lazynp", "numpy"], done.stderr


def test_text(tmp_path: Path) -> None:
    assert "-c" in same_as_python(tmp_path, "-c", WHO, "--report", "x").stdout


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("-", "a"), ("-",), ()])
def test_standard_input(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write(tmp_path, helper="import numpy\nname = numpy.__spec__.name\n")
    same_as_python(tmp_path, *arguments, text=WHO)
    assert launch(tmp_path, *arguments, text="import helper\nprint(helper.name)").stdout.strip() == "lazynp"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["directory", "zip"])
def test_a_directory_or_a_zip_with_a_main(tmp_path: Path, form: str) -> None:
    files = {"__main__": WHO + "import helper\nprint(helper.name.replace('lazynp', 'numpy'))\n"}
    files["helper"] = "import numpy\nname = numpy.__spec__.name\n"
    if form == "directory":
        write(tmp_path / "app", **files)
        name = "app"
    else:
        name = "app.pyz"
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for module, source in files.items():
                archive.writestr(module + ".py", source)
    assert "helper" not in same_as_python(tmp_path, name, "1").stderr
    (tmp_path / "who.py").write_text("x")
    assert launch(tmp_path, name).returncode == 0


@pytest.mark.slow
def test_what_cannot_be_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    for arguments, code in ((("empty",), 1), (("-m", "nothing_of_the_kind"), 1), (("-m", "pkg"), 1), (("-m",), 2), (("-c",), 2)):
        done = launch(tmp_path, *arguments)
        assert done.returncode == code, arguments
        assert done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("-c", "import numpy\n1 / 0"), ("-m", "broken"), ("app",)])
def test_tracebacks_of_other_forms(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    source = "import numpy\n\ndef f():\n    raise ValueError(1)\n\nf()\n"
    write(tmp_path, broken=source, app__slash____main__=source)
    ours, pythons = (launch(tmp_path, *arguments, module=module).stderr.splitlines() for module in (True, False))
    frozen = [i for i, line in enumerate(pythons) if "<frozen runpy>" in line]  # Python shows how it found the module
    assert ours == [line for i, line in enumerate(pythons) if i not in frozen]


def test_a_prompt_has_np(tmp_path: Path) -> None:
    typed = "np.__spec__.name\nimport numpy\nnumpy.arange(3)\nfor i in range(2):\n    print(i)\n\n1 / 0\nnumpy is np\n"
    inside = "import sys\nsys.argv[1:] = []\nsys.stdin.isatty = lambda: False\nfrom lazynp import prompt\nprompt.interact()\n"
    (tmp_path / "prompt.py").write_text(inside)
    shown = launch(tmp_path, str(tmp_path / "prompt.py"), module=False, text=typed)
    assert shown.stdout.replace(">>> ", "").replace("... ", "").splitlines() == ["'lazynp'", "array([0, 1, 2])", "0", "1", "True"]
    assert "ZeroDivisionError" in shown.stderr and "lazynp" in shown.stderr.splitlines()[1]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_terminal_gets_the_prompt(tmp_path: Path) -> None:
    import pty

    master, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_PARENT), "HOME": str(tmp_path), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "lazynp"], stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path, env=environment, close_fds=True
    )
    os.close(terminal)
    os.write(master, b"import numpy; print(numpy.__spec__.name + '!', np is numpy)\nexit()\n")
    shown = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    assert process.wait(60) == 0
    assert b"lazynp! True" in shown
