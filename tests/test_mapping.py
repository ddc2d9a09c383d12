"""``lazynp.mapping``: what a program imports, compiles and starts at run time is mapped as what it writes down is."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import lazynp
from lazynp import mapping
from lazynp.backends.common import disk_cache
from lazynp.mapping import kept, syntax
from tests.test_script import launch, output, write

SAME = "print(np.__spec__.name)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "name = 'num' + 'py'; np = importlib.import_module(name)",
        "np = importlib.import_module(name='nump' + 'y')",
        "np = load('num' + 'py')",
        "np = __import__('num' + 'py')",
        "np = __import__('num' + 'py.linalg', fromlist=['norm']); np = sys.modules[getattr(np, '__name__').partition('.')[0]]",
        "exec('import num' + 'py as np')",
        "scope = {}; exec('import num' + 'py as np', scope); np = scope['np']",
        "exec(b'import num' b'py as np')",
        "def inside():\n    exec('import num' + 'py as np')\n    return locals()['np']\nnp = inside()",
        "exec(compile('import num' + 'py as np', os.path.join(os.path.dirname(__file__), 'made.py'), 'exec'))",
        "np = eval(compile('__import__(\"numpy\")', 'made.py', 'eval'))",
        "np = importlib.import_module('plug' + 'in').np",
        "spec = importlib.util.spec_from_file_location('other', plugin); np = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(np); np = np.np",
        "np = runpy.run_path(plugin)['np']",
    ],
)
def test_names_and_texts_that_are_computed(tmp_path: Path, line: str) -> None:
    imports = "import importlib, importlib.util, os, runpy, sys\nfrom importlib import import_module as load\n"
    imports += "plugin = os.path.join(os.path.dirname(__file__), 'plugin.py')\n"
    write(tmp_path, main=f"{imports}{line}\n{SAME}", plugin="import numpy as np\n")
    assert output(tmp_path, "main.py").strip() == "lazynp"
    assert launch(tmp_path, "main.py", module=False).stdout.strip() == "numpy"


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "from re import compile\nprint(compile('num' 'py').pattern)",
        "def exec(x):\n    return x\nprint(exec('import numpy'))",
        "class A:\n    def import_module(self, x):\n        return x\nprint(A().import_module('numpy' * 1))",
        "from __future__ import annotations\ns = {}\nexec('import numpy\\ndef f(x: y): pass', s)\nprint(s['f'].__annotations__)",
        "import ast\nprint(ast.dump(compile('import numpy', 'x', 'exec', ast.PyCF_ONLY_AST)))",
        "try:\n    exec('import numpy as')\nexcept SyntaxError as error:\n    print(error, error.filename)",
        "try:\n    compile('import numpy as', 'name.py', 'exec')\nexcept SyntaxError as error:\n    print(error, error.filename)",
        "import importlib\nimportlib.import_module('num' + 'py.nothing')",
        "def f():\n    x = 1\n    exec('print(x, sorted(locals())) # numpy')\nf()",
        "exec('print(__name__) # numpy', {'__name__': 'other'})",
    ],
)
def test_functions_of_the_same_names_mean_what_they_meant(tmp_path: Path, program: str) -> None:
    write(tmp_path, main=program + "\n")
    ours, pythons = launch(tmp_path, "main.py"), launch(tmp_path, "main.py", module=False)
    assert (ours.returncode, ours.stdout) == (pythons.returncode, pythons.stdout)
    assert ours.stderr.replace("lazynp", "numpy").splitlines()[-1:] == pythons.stderr.splitlines()[-1:]


WORK = """
import multiprocessing, helper, numpy as np
class Point:
    def __init__(self, x):
        self.x = x
def work(point):
    return np.__spec__.name, helper.np.__spec__.name, int(np.asarray(point.x).sum())
def nested(point):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(work, [point])[0]
def chained(queue, point):
    inner = multiprocessing.get_context("spawn").Process(target=put, args=(queue, point))
    inner.start(); inner.join()
def put(queue, point):
    queue.put(work(point))
if __name__ == "__main__":
    for method in METHODS:
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            print(method, pool.map(work, [Point(np.arange(4))])[0])
        queue = multiprocessing.get_context('spawn').Queue()
        process = context.Process(target=chained, args=(queue, Point(np.arange(5))))
        process.start()
        print(queue.get(timeout=60))
        process.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["script", "module"])
def test_children_made_by_spawn(tmp_path: Path, how: str) -> None:
    methods = ["spawn"] if sys.platform == "win32" else ["spawn", "forkserver", "fork"]
    write(tmp_path, main=f"METHODS = {methods}\n{WORK}", helper="import numpy as np\n")
    lines = output(tmp_path, *(["main.py"] if how == "script" else ["-m", "main"])).splitlines()
    expected = [line for method in methods for line in (f"{method} ('lazynp', 'lazynp', 6)", "('lazynp', 'lazynp', 10)")]
    assert lines == expected


def test_children_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    write(
        tmp_path,
        main="import multiprocessing as m, helper\nif __name__ == '__main__':\n"
        "    with m.get_context('spawn').Pool(1) as pool:\n        print(pool.map(helper.name, [1]))\n",
        helper="def name(x):\n    import numpy\n    return numpy.__spec__.name\n",
    )
    assert launch(tmp_path, "main.py", module=False).stdout.strip() == "['numpy']"


DELETES = """
import sys
import numpy as np
x = np.arange(30000.0)
y = x * 2
kept = set(KEPT)
for name in list(sys.modules):
    if name.partition(".")[0] == "lazynp" and name not in kept:
        del sys.modules[name]
import numpy
import numpy.linalg
print(float((y + 1).sum()), float(numpy.sqrt(x).max()), numpy is np, type(numpy.zeros(3)) is type(x))
print(float(numpy.tril(x[:9].reshape(3, 3)).sum()), float(numpy.linalg.det(numpy.eye(30) * 1.1)), numpy.median(y), (x @ y)[()])
print(numpy.percentile(y, 30), numpy.random.default_rng(0).random(3), numpy.fft.rfft(y)[:2])
print(numpy.array([1, 2]) + 1, type(x) is numpy.ndarray, numpy.ndarray((2, 3)).shape, callable(numpy.array))
"""


@pytest.mark.slow
def test_a_program_may_delete_modules(tmp_path: Path) -> None:
    write(tmp_path, main=DELETES.replace("KEPT", "()"), some=DELETES.replace("KEPT", "('lazynp', 'lazynp.linalg')"), plain=DELETES)
    (tmp_path / "plain.py").write_text(DELETES.replace("KEPT", "list(sys.modules)"), encoding="utf-8")
    expected = output(tmp_path, "plain.py")
    assert output(tmp_path, "main.py") == expected
    assert output(tmp_path, "some.py") == expected


COPIES = """
import types
import numpy as np
import numpy as _np
mine, wrapped = types.ModuleType("mine"), {}
mine.__dict__.update(vars(np))
for name, value in _np.__dict__.items():
    wrapped[name] = value
print(mine.__name__, mine.pi, mine.median([1, 2, 4]), mine.sin is np.sin, wrapped["astype"] is np.astype, "norm" in np.linalg.__dict__)
import numpy.polynomial
import numpy.fft as fft
print(np.polynomial.Polynomial([1, 2])(3), fft.fft([1.0, 2.0])[0], len(mine.__dict__) >= 500, vars(types.SimpleNamespace(a=1)))
class A:
    def names(self):
        return self.__dict__, vars(self)
print(A().names())
"""


def test_all_names_may_be_copied_from_the_module(tmp_path: Path) -> None:
    write(tmp_path, main=COPIES)
    assert output(tmp_path, "main.py").replace("lazynp", "numpy") == launch(tmp_path, "main.py", module=False).stdout


# pytest, notebooks ------------------------------------------------------------------------------------------------------------

PROJECT = {
    "pytest.ini": "[pytest]\n",
    "conftest.py": "import numpy as np, pytest\n@pytest.fixture\ndef name():\n    return np.__spec__.name\n",
    "package/__init__.py": "",
    "package/inner.py": "import numpy as np\nname = np.__spec__.name\n",
    "tests/test_it.py": (
        "import importlib\nimport numpy as np, pytest, sys\nfrom package import inner\nfrom pytest import importorskip as need\n"
        "def test_names(name):\n    computed = importlib.import_module('num' + 'py').__name__\n"
        "    assert name == inner.name == np.__spec__.name == computed == pytest.importorskip('numpy', '2.0').__name__ == 'WANTED'\n"
        "    assert need('num' + 'py').__name__ == 'WANTED'\n"
        "def test_others():\n    assert sys.modules['numpy'].__name__ == 'numpy'\n"
        "def test_fails():\n    x = np.arange(3)\n    assert x.sum() == 4\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", [("-m", "pytest", "-p", "lazynp.testing.swap"), ("-m", "lazynp", "-m", "pytest")])
def test_pytest_maps_the_project_and_rewrites_its_assertions(tmp_path: Path, command: tuple[str, ...]) -> None:
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("WANTED", "lazynp"), encoding="utf-8")
    arguments = ("-p", "no:randomly", "-q", "--import-mode=importlib", "-o", "pythonpath=.")
    for _ in range(2):  # from source, and with what pytest kept
        done = launch(tmp_path, *command, *arguments, module=False)
        assert "2 passed" in done.stdout, done.stdout + done.stderr
        assert "assert np.int64(3) == 4" in done.stdout or "assert 3 == 4" in done.stdout, done.stdout
    (tmp_path / "tests" / "test_it.py").write_text(PROJECT["tests/test_it.py"].replace("WANTED", "numpy"), encoding="utf-8")
    assert "2 passed" in launch(tmp_path, "-m", "pytest", *arguments, module=False).stdout  # and without the mapping NumPy is NumPy


NOTEBOOK = """
import sys
from types import SimpleNamespace

import lazynp

finders = list(sys.meta_path)
shell = SimpleNamespace(ast_transformers=[])
lazynp.load_ipython_extension(shell)
lazynp.load_ipython_extension(shell)  # `%load_ext` twice is once
(transformer,) = shell.ast_transformers
tree = compile("import numpy as np; name = np.__spec__.name", "<cell>", "exec", flags=0x400)
exec(compile(transformer.visit(tree), "<cell>", "exec"))
lazynp.unload_ipython_extension(shell)
print(name, shell.ast_transformers, sys.meta_path == finders)
"""


def test_a_notebook_maps_its_cells(tmp_path: Path) -> None:
    write(tmp_path, main=NOTEBOOK)  # a process of its own: what is mapped stays so
    assert launch(tmp_path, "main.py", module=False).stdout.split() == ["lazynp", "[]", "True"]


def test_a_notebook_with_ipython_itself(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    write(tmp_path, helper="import numpy\nname = numpy.__spec__.name\n")
    cells = ["%load_ext lazynp", "import numpy as np; print(np.__spec__.name)", "import helper; print(helper.name)"]
    cells += ["%timeit -n1 -r1 np.eye(3)", "%unload_ext lazynp", "import numpy; print(numpy.__spec__.name)"]
    shell = "from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n"
    write(tmp_path, main=f"{shell}for cell in {cells}:\n    shell.run_cell(cell).raise_error()\n")
    done = launch(tmp_path, "main.py", module=False, IPYTHONDIR=str(tmp_path / "dot"))
    words = done.stdout.split()
    assert (words[:2], words[-1]) == (["lazynp", "lazynp"], "numpy"), done.stdout + done.stderr


# Zips -------------------------------------------------------------------------------------------------------------------------


def test_modules_in_a_zip_of_the_users(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr("zipped/__init__.py", "")
        archive.writestr("zipped/inner.py", "import numpy\nname = numpy.__spec__.name\n")
    path = "import sys, os\nsys.path.append(os.path.join(os.path.dirname(__file__), 'lib.zip'))\n"
    write(tmp_path, main=path + "from zipped import inner\nprint(inner.name)\n")
    assert output(tmp_path, "main.py").strip() == "lazynp"


# What was compiled before -----------------------------------------------------------------------------------------------------

MODULE = b"import numpy\nname = numpy.__spec__.name\n"


class Compiled:
    """What the compiler was given since one last asked, with a cache of its own."""

    def __init__(self, cache: disk_cache.DiskCache, texts: list[bytes]) -> None:
        self.cache, self.texts = cache, texts

    def of(self, source: bytes = MODULE, filename: str = "module.py") -> list[bytes]:
        scope: dict[str, Any] = {}
        code = kept.compile_kept(source, filename)
        exec(code, scope)
        assert (scope["name"], code.co_filename) == ("lazynp", filename)
        found = self.texts[:]
        self.texts.clear()
        return found

    @property
    def file(self) -> Path:
        assert self.cache.directory is not None
        (path,) = Path(self.cache.directory).iterdir()
        return path


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiled]:
    cache, texts, compiler = disk_cache.DiskCache(tmp_path / "cache"), [], syntax.compile_mapped
    monkeypatch.setattr(disk_cache, "shared", lambda: cache)
    monkeypatch.setattr(syntax, "compile_mapped", lambda source, *more: texts.append(source) or compiler(source, *more))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    kept._maker.cache_clear()
    yield Compiled(cache, texts)
    kept._maker.cache_clear()


def test_a_module_is_compiled_once(compiled: Compiled) -> None:
    assert [len(compiled.of()) for _ in range(3)] == [1, 0, 0]
    assert compiled.of(MODULE + b"# more\n") == [MODULE + b"# more\n"]
    assert len(compiled.of(filename="other.py")) == 1  # tracebacks show the name
    assert not compiled.of(filename="other.py") and not compiled.of()


@pytest.mark.parametrize("what", ["mapping", "Python", "optimisation"])
def test_code_of_another_mapping_or_python_is_not_used(
    compiled: Compiled, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled.of()
    if what == "mapping":
        other = tmp_path / "syntax.py"
        other.write_bytes(Path(syntax.__file__).read_bytes() + b"# other\n")
        monkeypatch.setattr(syntax, "__file__", str(other))
    elif what == "Python":
        monkeypatch.setattr(sys, "version", sys.version + "+")
    else:
        monkeypatch.setattr(sys, "flags", type("Flags", (), {"optimize": 2}))
    kept._maker.cache_clear()
    assert [len(compiled.of()) for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("how", ["damaged", "forged", "writable", "FIFO"])
def test_code_that_somebody_touched_is_not_run(compiled: Compiled, how: str) -> None:
    if sys.platform == "win32" and how in ("writable", "FIFO"):
        pytest.skip("Windows keeps a profile's directories private itself")
    compiled.of()
    path = compiled.file
    content = path.read_bytes()
    if how == "damaged":
        path.write_bytes(content[:-3] + b"xyz")
    elif how == "forged":
        path.write_bytes(content.replace(b"lazynp", b"numpy_"))
    elif how == "writable":
        path.chmod(0o666)
    else:
        path.unlink()
        os.mkfifo(path)
    assert [len(compiled.of()) for _ in range(2)] == [1, 0]


def test_nothing_is_kept_where_python_is_told_so(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [len(compiled.of()) for _ in range(2)] == [1, 1]
    monkeypatch.setattr(disk_cache, "shared", lambda: disk_cache.DiskCache(None))
    assert [len(compiled.of()) for _ in range(2)] == [1, 1]


def test_a_text_that_is_wrong_is_wrong_every_time(compiled: Compiled) -> None:
    for _ in range(2):
        with pytest.raises(SyntaxError, match=r"broken\.py"):
            kept.compile_kept(b"import numpy\nx = = 1\n", "broken.py")


def test_modules_come_from_the_cache_and_follow_their_text(tmp_path: Path) -> None:
    write(tmp_path, main="import helper\nprint(helper.name)\n", helper="import numpy\nname = numpy.__spec__.name\n")
    environment = {"LAZYNP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": ""}

    def printed(module: bool = True) -> str:
        done = launch(tmp_path, "main.py", module=module, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert [printed(), printed()] == ["lazynp", "lazynp"]
    assert len(list((tmp_path / "cache").iterdir())) == 2  # the program's text, and its module's
    assert printed(module=False) == "numpy"
    (tmp_path / "helper.py").write_text("import numpy\nname = numpy.__spec__.name + '!'\n")
    assert printed() == "lazynp!"


CONTAINERS = """
import numpy as np

HANDLED = {}
NAMES = (
    "concatenate mean diff where unique zeros_like all any sum cumsum sort max ravel shape ndim clip argsort pad nonzero vstack insert "
    "bincount histogram dot round linalg.norm fft.fft full_like copyto array_equal isclose allclose real size iscomplexobj prod var nansum "
    "moveaxis expand_dims squeeze broadcast_arrays result_type median interp"
).split()


class Rows:
    def __init__(self, rows):
        self.rows = [np.asarray(row) for row in rows]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

    def __array__(self, dtype=None, copy=None):
        return np.concatenate(self.rows)

    def __array_function__(self, func, types, args, kwargs):
        if func not in HANDLED or not all(issubclass(kind, (Rows, np.ndarray)) for kind in types):
            return NotImplemented
        return HANDLED[func], func is np.mean, [np.ndarray in types], len(args)

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        if ufunc is np.add and method == "__call__":
            return [(row + inputs[1]).tolist() for row in self.rows]
        if ufunc in {np.exp: 1, np.sin: 2} and method == "__call__":
            return [ufunc(row).round(9).tolist() for row in self.rows]
        return NotImplemented


def of(name):
    found = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


for name in NAMES[:-2]:
    HANDLED[of(name)] = name
rows = Rows([[0, 1], [2.0]])
beside = {
    "concatenate": ([rows, rows],), "vstack": ([np.ones(2), rows],), "clip": (rows, 0, 1), "pad": (rows, 1), "insert": (rows, 0, 1),
    "moveaxis": (rows, 0, 1), "expand_dims": (rows, 0), "interp": (1.0, rows, rows), "where": (rows, np.ones(2), 3),
}
for name in ("dot", "full_like", "copyto", "array_equal", "isclose", "allclose", "broadcast_arrays"):
    beside[name] = (rows, rows)
result = [np.asarray(rows).tolist(), np.array(rows, dtype=float).sum(), np.add(rows, 1), np.add(rows, np.ones(1)), np.exp(rows)]
for name in NAMES:
    try:
        result.append((name, of(name)(*beside.get(name, (rows,)))))
    except TypeError as error:
        result.append((name, str(error)[:60]))
try:
    np.multiply(rows, 2)
except TypeError as error:
    result.append(str(error)[:60])
"""


def test_containers_of_the_user_are_asked_with_the_functions_that_their_module_knows() -> None:
    theirs: dict[str, Any] = {"__name__": "containers"}
    exec(compile(CONTAINERS, "containers.py", "exec"), theirs)
    ours: dict[str, Any] = {"__name__": "containers"}
    exec(mapping.compile_mapped(CONTAINERS, "containers.py"), ours)
    assert ours["result"] == theirs["result"]
    assert ours["np"] is not theirs["np"]
    # installed packages, which have NumPy, ask it too
    assert numpy.mean(ours["rows"]) == theirs["np"].mean(theirs["rows"])


def test_objects_that_answer_themselves_are_asked_by_lazynp() -> None:
    class Answering:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return numpy.zeros(3)

        def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return func, types

    for name in ("diff", "expand_dims", "vstack", "mean"):
        arguments = {"expand_dims": (Answering(), 0), "vstack": ([numpy.ones(3), Answering()],)}.get(name, (Answering(),))
        assert getattr(lazynp, name)(*arguments)[0] is getattr(numpy, name)


SUBCLASSES = """
import numpy as np

class Tracked(np.ndarray):
    def __array_finalize__(self, made):
        self.touched = True

x = np.arange(6.0).reshape(2, 3) + 0
tracked = x.view(Tracked)
plain = tracked.view(np.ndarray)
plain[0] = 9.0
record = np.rec.fromarrays([x[0], x[1]], names="a,b")
number = np.array(2.0)
result = [
    tracked.tolist(), type(tracked) is Tracked, tracked.view(np.int64).shape, tracked.view(type=np.ndarray).tolist(),
    type(plain) is np.ndarray,
    np.matrix(x).view(np.ndarray).ndim, np.ma.masked_array(x, x > 2).view(np.ndarray).tolist(), record.view(np.ndarray).dtype.names,
    (x.flat > 2.0).tolist(), (x.flat == x.flat).all(), (x.flat < [3.0] * 6).sum(), (x.flat != 9.0).tolist(),
]
types = {np.float64: "float64", np.bool: "bool"}
found = number * 1, 1 + number, np.sin(number), np.add(number, number), -number, number > 1, np.zeros(()) + 1, x[0, 0]
exact = [types[type(value)] for value in found]
"""


def test_subclasses_and_numbers_are_what_they_are_in_numpy(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SUBCLASSES + "print(result, exact)\n", encoding="utf-8")
    ours = launch(tmp_path, "program.py", LAZYNP_TAPE_LIMIT="65536")
    scope: dict[str, Any] = {"__name__": "program"}
    exec(compile(SUBCLASSES, "program.py", "exec"), scope)
    assert ours.stdout.strip() == f"{scope['result']} {scope['exact']}", ours.stderr


def test_the_packages_own_names_stay_where_its_functions_are_copied() -> None:
    before = lazynp.__path__
    with pytest.raises(AttributeError):
        vars(lazynp)["__getattr__"]("__path__")
    assert lazynp.__path__ is before
