"""Help texts: every public name says what it does, when it computes, what it takes and what it gives, and says so truly."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import io
import pathlib
import pkgutil
import pydoc
import subprocess
import sys
import types
import warnings
from typing import Any

import numpy
import pytest

import lazynp
from lazynp.arrays import node_of, root_node
from lazynp.graph import op as o
from lazynp.namespace import help_texts, names
from lazynp.namespace.coverage import coverage
from lazynp.namespace.help_texts import AT_CALL, BY_NUMPY, ITEM, NOTHING, RECORDED, ROUTINE, WHEN
from lazynp.namespace.ufunc.docs import LINES
from lazynp.scalars import is_scalar
from tests.namespace.calls import CALLS, arrays, ufunc_call

PACKAGE = pathlib.Path(lazynp.__file__).parent
OWN = [name for name in names.PUBLIC if callable(getattr(lazynp, name))]
# Where NumPy's docstrings are complete; those of the others are shown as they are, with the line on when.
COMPLETE = ("", "linalg", "fft", "random", "lib.stride_tricks", "lib.scimath")
METHODS = [name for name in dir(lazynp.ndarray) if name[0] != "_" and callable(getattr(lazynp.ndarray, name))]


def found(path: str) -> Any:
    value: Any = lazynp
    for part in path.split("."):
        value = getattr(value, part)
    return value


def paths(*modules: str) -> list[str]:
    """The functions, ufuncs and types that are ours, of some modules or of all."""
    rows = [row for row in coverage() if row.kind in ("function", "ufunc", "type") and row.answer != "numpy's own"]
    return [row.path for row in rows if not modules or row.module in modules]


def takes_arguments(function: Any) -> bool:
    try:
        return bool(inspect.signature(function).parameters.keys() - {"self"})
    except (TypeError, ValueError):
        return True


def parts(text: str) -> set[str]:
    return {name for name in ("Parameters", "Returns", "Yields", "Attributes") if f"\n{name}\n{'-' * len(name)}\n" in text}


def line(text: str) -> str:
    """The line on when it computes; empty where there is none."""
    lines = [one for one in text.split("\n") if one in WHEN]
    return lines[0] if len(lines) == 1 else ""


# The four parts ------------------------------------------------------------------------------------------------------------------


def missing(path: str) -> list[str]:
    """The parts that a name's help text lacks."""
    value = found(path)
    text = inspect.getdoc(value) or ""
    if not text.split("\n")[0].strip():
        return ["first line"]
    if value is lazynp.ufunc:
        return []  # the class; each of its objects has a text
    said = [] if line(text) else ["when"]
    if isinstance(value, type):
        return said if parts(text) else [*said, "sections"]
    if "Parameters" not in parts(text) and takes_arguments(value):
        said.append("Parameters")
    return said if {"Returns", "Yields"} & parts(text) else [*said, "Returns"]


def test_help_has_four_parts() -> None:
    listed = [*paths(*COMPLETE), *OWN, *[f"ndarray.{name}" for name in METHODS]]
    assert len(listed) > 450
    assert not {path: lacks for path in listed if (lacks := missing(path))}


def test_every_name_says_when_it_computes() -> None:
    assert [path for path in paths() if not line(inspect.getdoc(found(path)) or "")] == ["ufunc"]  # the class


def test_every_ufunc_has_a_line() -> None:
    assert set(LINES) == {value.__name__ for value in vars(numpy).values() if isinstance(value, numpy.ufunc)}


def test_sections_are_numpys() -> None:
    """Read from NumPy's docstrings at run time."""
    theirs = inspect.cleandoc(numpy.clip.__doc__ or "")
    assert help_texts.section(theirs, "Parameters") in lazynp.clip.__doc__
    assert help_texts.section(theirs, "Returns") in lazynp.clip.__doc__
    # A method has no parameter for the array.
    assert "a : array_like" in lazynp.sum.__doc__
    assert "a : array_like" not in lazynp.ndarray.sum.__doc__
    assert "axis : None or int" in lazynp.ndarray.sum.__doc__
    assert "Raises\n------\nLinAlgError" in lazynp.linalg.inv.__doc__


def test_what_numpy_says_nothing_about_has_a_text() -> None:
    assert lazynp.ma.take.__doc__ == f"Call ``numpy.ma.take``.\n\n{BY_NUMPY}"


def test_aliases_share_one_text() -> None:
    assert lazynp.concat.__doc__ == lazynp.concatenate.__doc__
    assert lazynp.abs.__doc__ == lazynp.absolute.__doc__


# Subject and verb ----------------------------------------------------------------------------------------------------------------

# A docstring that opens with one of these is half a sentence.
HEADLESS = frozenset(
    {
        "After", "As", "For", "From", "How", "If", "In", "Likewise", "Of", "Under", "What", "When", "Where", "Whether", "Which", "Who",
        "Whose", "Why", "With", "Within", "Without",
    }
)  # fmt: skip
_VERBS = (
    "Add Allow Append Apply Build Call Change Choose Combine Compute Contract Convert Copy Count Cut Divide Draw Evaluate Exchange "
    "Find Fix Give Insert Integrate Interpolate Invert Join Keep Limit Make Move Multiply Negate Pack Partition Permute Pickle Put Raise "
    "Realize Record Remove Repeat Replace Return Reverse Rotate Round Select Set Shift Show Solve Sort Split Subtract Sum Take Tell Undo "
    "Unpack Walk Write"
)
VERBS = frozenset(_VERBS.split())


def test_public_lines_begin_with_a_verb() -> None:
    """Those that are ours; NumPy's own lines are NumPy's."""
    odd = []
    for path in [*paths(*COMPLETE), *OWN, *[f"ndarray.{name}" for name in METHODS]]:
        value = found(path)
        text = inspect.getdoc(value) or ""
        if isinstance(value, lazynp.ufunc) and text.startswith(f"{value.__name__}("):
            text = text.partition("\n\n")[2]
        first = text.split("\n")[0]
        theirs: Any = numpy
        for part in path.split("."):
            theirs = getattr(theirs, part, None)
        if first in (getattr(theirs, "__doc__", None) or "") or value in (lazynp.ndarray, lazynp.ufunc):
            continue
        if first.split()[0] not in VERBS:
            odd.append((path, first))
    assert not odd


@pytest.mark.slow
def test_no_docstring_of_the_package_is_half_a_sentence() -> None:
    odd = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                text = ast.get_docstring(node) or "."
                if text.split()[0].rstrip(".,:;") in HEADLESS:
                    odd.append(f"{path.name}:{node.name}: {text.splitlines()[0]}")
    assert not odd


# What it says of when is what happens --------------------------------------------------------------------------------------------

OF_LINALG = {
    "cholesky": "m @ m.T", "cond": "m", "cross": "i, i[::-1]", "det": "m", "diagonal": "m", "eig": "m", "eigh": "m", "eigvals": "m",
    "eigvalsh": "m", "inv": "m", "lstsq": "m, m[0]", "matmul": "m, m", "matrix_norm": "m", "matrix_power": "m, 2", "matrix_rank": "m",
    "matrix_transpose": "m", "multi_dot": "[m, m]", "norm": "m", "outer": "v, v", "pinv": "m", "qr": "m", "slogdet": "m",
    "solve": "m, m[0]", "svd": "m", "svdvals": "m", "tensordot": "m, m", "tensorinv": "m, 1", "tensorsolve": "m, m[0]", "trace": "m",
    "vecdot": "v, v", "vector_norm": "v",
}  # fmt: skip
OF_FFT = {"fft2": "m", "fftn": "m", "ifft2": "m", "ifftn": "m", "irfft2": "m", "irfftn": "m", "rfft2": "m", "rfftn": "m", "fftfreq": "8",
          "rfftfreq": "8"}  # fmt: skip
OF_METHODS = {
    "astype": "'f4'", "clip": "2, 5", "compress": "[True, False, True], 0", "dot": "m", "dump": "FILE", "fill": "2",
    "getfield": "'f4'", "item": "0", "partition": "1", "put": "[0], [5]", "repeat": "2", "reshape": "-1", "resize": "2, 2, refcheck=False",
    "searchsorted": "2", "choose": "[i, i, i, i]", "setflags": "False", "swapaxes": "0, 1", "take": "[0, 1]", "argpartition": "1",
    "setfield": "1, 'f4'", "to_device": "'cpu'", "tofile": "FILE",
}  # fmt: skip

def method_call(name: str) -> str:
    array = {"dot": "m", "searchsorted": "v", "choose": "i"}.get(name, "a")
    return f"{array}.{name}({OF_METHODS.get(name, '')})"


def calls() -> dict[str, str]:
    table = {}
    for row in coverage():
        if row.kind not in ("function", "ufunc") or row.answer == "numpy's own":
            continue
        if row.module == "":
            table[row.path] = CALLS[row.name] if row.kind == "function" else ufunc_call(row.name)
        elif row.module == "linalg":
            table[row.path] = f"np.{row.path}({OF_LINALG[row.name]})"
        elif row.module == "fft":
            table[row.path] = f"np.{row.path}({OF_FFT.get(row.name, 'v')})"
    return table | {f"ndarray.{name}": method_call(name) for name in METHODS}


def nodes(x: Any) -> list[Any]:
    if type(x) is lazynp.ndarray:
        return [root_node(x._base) if type(x._base) is lazynp.ndarray else node_of(x)]
    if is_scalar(x):
        return [x._node] if x._node is not None else []
    return [node for item in x for node in nodes(item)] if isinstance(x, (tuple, list)) else []


def pending(x: Any) -> Any:
    return lazynp.logical_not(lazynp.logical_not(x)) if x.dtype == bool else x * lazynp.ones((), x.dtype)


def happened(text: str, path: str) -> tuple[bool, bool]:
    """Whether a call of pending arrays forced one, and whether a result, or an array that it wrote to, is pending."""
    given = {name: pending(x) if type(x) is lazynp.ndarray else x for name, x in arrays(lazynp).items()}
    before = {name: node_of(x) for name, x in given.items() if type(x) is lazynp.ndarray}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(text, {**given, "io": io, "FILE": path, "NPY": path})
    written = [node_of(given[name]) for name, node in before.items() if node_of(given[name]) is not node]
    forced = any(node.buffer is not None for node in before.values())
    return forced, any(node.buffer is None and node.op is not o.CONST for node in [*nodes(result), *written])


def agrees(said: str, forced: bool, is_pending: bool) -> bool:
    if said in (RECORDED, ITEM):
        return is_pending
    if said == NOTHING:
        return not forced
    return said in (AT_CALL, ROUTINE, BY_NUMPY) and not is_pending


@pytest.mark.parametrize("module", ["", "linalg", "fft", "ndarray"])
@pytest.mark.usefixtures("recorded")
def test_it_computes_when_it_says(module: str, tmp_path: pathlib.Path) -> None:
    file = str(tmp_path / "three.npy")
    wrong = []
    for path, text in calls().items():
        if path.rpartition(".")[0] == module:
            numpy.save(file, numpy.arange(3))
            said = line(inspect.getdoc(found(path)) or "")
            if not agrees(said, *happened(text, file)):
                wrong.append((path, said))
    assert not wrong


# Who reads it --------------------------------------------------------------------------------------------------------------------


def test_readers_see_the_whole_text() -> None:
    text = lazynp.clip.__doc__
    whole = str(text)
    assert type(whole) is str
    assert RECORDED in whole and "Returns\n-------" in whole
    page = pydoc.plain(pydoc.render_doc(lazynp.clip)).replace("\n    ", "\n")
    for read in (inspect.getdoc(lazynp.clip), page, f"{text}", "%s" % text, "" + text, text + ""):  # noqa: UP031, an old program's way
        assert "Parameters\n----------\na : array_like" in read
    printed = io.StringIO()
    print(text, file=printed)
    assert printed.getvalue() == whole + "\n"
    assert text == whole and hash(text) == hash(whole) and len(text) == len(whole) and list(text) == list(whole) and "Returns" in text
    assert text.split() == whole.split() and text[:10] == whole[:10] and repr(text) == repr(whole) and bool(text)


def test_methods_and_ufuncs_have_texts_of_their_own() -> None:
    x = lazynp.arange(3)
    assert x.sum.__doc__ == lazynp.ndarray.sum.__doc__ != lazynp.sum.__doc__
    assert "Compute the sine" in pydoc.render_doc(lazynp.sin)
    assert "A function of arrays" in lazynp.ufunc.__doc__
    assert "Computed at the call" in lazynp.random.default_rng(0).normal.__doc__
    assert lazynp.ndarray.__add__.__doc__ == numpy.ndarray.__add__.__doc__


def test_numpys_info_shows_it() -> None:
    printed = io.StringIO()
    lazynp.info(lazynp.clip, output=printed)
    assert RECORDED in printed.getvalue()


# When it is made -----------------------------------------------------------------------------------------------------------------


def run(script: str, *options: str) -> str:
    return subprocess.run([sys.executable, *options, "-c", script], check=True, capture_output=True, text=True).stdout


def test_importing_makes_no_help() -> None:
    """Counted by what is loaded, not by time."""
    loaded = run("import numpy, sys; before = set(sys.modules); import lazynp; print(*sorted(set(sys.modules) - before))").split()
    assert "lazynp.namespace.docstrings" in loaded
    assert not {"lazynp.namespace.help_texts", "lazynp.namespace.ufunc.docs", "lazynp.namespace.coverage", "pydoc"} & set(loaded)
    script = "import lazynp as np, sys; x = np.clip(np.sin(np.arange(3.0)), 0, 1).sum()"
    told = "print('lazynp.namespace.help_texts' in sys.modules)"
    assert run(f"{script}; {told}; np.clip.__doc__.split(); {told}") == "False\nTrue\n"


def test_without_docstrings() -> None:
    """Under ``-OO`` neither NumPy's Python functions nor ours have any."""
    script = "import lazynp as np; print(np.clip.__doc__, np.ndarray.clip.__doc__, 'sine' in np.sin.__doc__, np.clip(3, 0, 1))"
    assert run(script, "-OO") == "None None True 1\n"


def test_no_module_takes_a_public_name() -> None:
    """``lazynp/schedule`` must not stand under ``lazynp.schedule``, whenever it is loaded."""
    for module in pkgutil.iter_modules(lazynp.__path__):
        if names.answers(module.name):
            importlib.import_module(f"lazynp.{module.name}")
            assert not isinstance(getattr(lazynp, module.name), types.ModuleType), module.name


# Examples ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*OWN, "ndarray", "ndarray.realize", "ndarray.kernelize", "ndarray.contiguous", "ndarray.to_numpy"])
@pytest.mark.usefixtures("recorded")
def test_examples(path: str) -> None:
    text = str(found(path).__doc__)
    test = doctest.DocTestParser().get_doctest(text, {}, path, None, None)
    assert test.examples
    told = io.StringIO()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(test, out=told.write).failed == 0, told.getvalue()
