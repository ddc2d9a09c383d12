"""Running a program with ``numpy`` meaning lazynp.

In: a script's path and its arguments.  Out: the script run as ``python script.py`` runs it, with every import of ``numpy`` that is
written in the script, or in a module of the user's that it imports, answered by lazynp.  Promise: nobody else is touched.  Installed
packages keep NumPy, ``sys.modules`` keeps its entry for NumPy, no builtin is replaced; tracebacks show the user's own lines, and exit
codes are the script's.

The mapping is done on the syntax tree, before compilation: ``import numpy as np`` becomes ``import lazynp as np``.  A module is the
user's when its source file lies under the directory of the script and in no place that packages are installed to.  An import by
``importlib.import_module("numpy")`` or ``__import__("numpy")`` is mapped where the name is written out; a name that is computed at
run time, and code given to ``exec`` as text, get NumPy.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import io
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType, TracebackType
from typing import Any

from lazynp.namespace.bridge import fallback

OURS = "lazynp"
THEIRS = "numpy"
_TREE_LIMIT = 10_000  # nested expressions of a mapped module


def _renamed(name: str) -> str:
    """``numpy.linalg`` -> ``lazynp.linalg``."""
    return OURS + name[len(THEIRS) :]


def _is_numpy(name: str) -> bool:
    return name == THEIRS or name.startswith(THEIRS + ".")


def _mapped_import(statement: ast.Import) -> list[ast.stmt]:
    """One import statement as the statements that bind the same names to lazynp; they keep its position."""
    mapped: list[ast.stmt] = []
    for alias in statement.names:
        name = alias.name
        if not _is_numpy(name):
            mapped.append(ast.Import([alias]))
        elif alias.asname is not None or name == THEIRS:
            mapped.append(ast.Import([ast.alias(_renamed(name), alias.asname or THEIRS)]))
        else:
            # `import numpy.linalg` loads the submodule and binds the package
            mapped.append(ast.Import([ast.alias(_renamed(name), THEIRS)]))
            mapped.append(ast.Import([ast.alias(OURS, THEIRS)]))
    return [ast.fix_missing_locations(ast.copy_location(new, statement)) for new in mapped]


def _map(tree: ast.Module) -> ast.Module:
    """Rewrite the imports of NumPy in place.  Iterative: programs with very deep expressions are allowed."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(name), level=0) if _is_numpy(name):
                node.module = _renamed(name)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)) as constant, *_],
            ) if _is_numpy(name):
                constant.value = _renamed(name)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            # a lambda's or a conditional expression's body is one expression
            if isinstance(block, list):
                block[:] = [
                    new
                    for old in block
                    for new in (_mapped_import(old) if isinstance(old, ast.Import) and any(_is_numpy(a.name) for a in old.names) else [old])
                ]
    return tree


def compile_mapped(source: bytes, filename: str) -> CodeType:
    """Compile a module's source with its imports of NumPy mapped to lazynp.

    Parameters
    ----------
    source : bytes
        As read from the file; an encoding declaration is honoured.
    filename : str
        Shown in tracebacks, and where they look for the lines.

    Raises
    ------
    SyntaxError
        As Python's own compiler would.
    """
    if THEIRS.encode() not in source:
        return compile(source, filename, "exec", dont_inherit=True)
    # trees are walked by C code that counts against Python's limit, and reaches it long before the compiler proper does
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _TREE_LIMIT))
    try:
        return compile(_map(ast.parse(source, filename)), filename, "exec", dont_inherit=True)
    finally:
        sys.setrecursionlimit(limit)


class _MappingLoader(importlib.machinery.SourceFileLoader):
    """Loads one of the user's modules.  Mapped code must not enter the ``__pycache__`` that Python itself uses."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if THEIRS.encode() not in source:
            return super().get_code(fullname)
        return compile_mapped(source, path)


def _installed() -> tuple[str, ...]:
    """Directories that hold the standard library and installed packages, lazynp among them."""
    places = {path for key, path in sysconfig.get_paths().items() if key in ("stdlib", "platstdlib", "purelib", "platlib")}
    places.update(site.getsitepackages())
    places.add(site.getusersitepackages())
    places.add(os.path.dirname(__file__))
    return tuple(os.path.join(os.path.realpath(place), "") for place in places)


class UserModules:
    """Finds what Python's own path search finds, and gives the user's modules the mapping loader."""

    def __init__(self, root: str) -> None:
        self.root = os.path.join(os.path.realpath(root), "")
        self.installed = _installed()

    def owns(self, path: str) -> bool:
        """Tell whether the source file belongs to the user's program."""
        path = os.path.realpath(path)
        if not path.startswith(self.root) or path.startswith(self.installed):
            return False
        # a virtual environment of another interpreter, or a vendored one, below the script
        inside = path[len(self.root) :].split(os.sep)
        return "site-packages" not in inside and "dist-packages" not in inside

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader or spec.origin is None:
            return None
        if not self.owns(spec.origin):
            return None
        spec.loader = _MappingLoader(fullname, spec.origin)
        return spec


class Submodules:
    """Answers ``import lazynp.typing`` and the like: submodules of NumPy that are attributes of lazynp, or are left to NumPy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        parent = sys.modules.get(package)
        if parent is None or package.partition(".")[0] != OURS:
            return None
        own = parent.__name__ == package and getattr(parent, "__file__", None) is not None
        both = package == OURS or isinstance(parent, fallback.Submodule)  # NumPy's names and modules of our own
        if own and (not both or importlib.machinery.PathFinder.find_spec(fullname, path) is not None):
            return None  # lazynp's own modules are files
        module = getattr(parent, name, None)
        if not isinstance(module, ModuleType):
            theirs = THEIRS + fullname[len(OURS) :]
            try:
                module = importlib.import_module(theirs)
            except ModuleNotFoundError as error:
                if error.name is None or not theirs.startswith(error.name):
                    raise
                return None
        # a package with an empty path: submodules come back here, instead of being loaded a second time from NumPy's files
        return importlib.machinery.ModuleSpec(fullname, _Existing(module), is_package=hasattr(module, "__path__"))


class _Existing(importlib.abc.Loader):
    """A loader for a module that exists: makes a second name for it."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        # the import system writes `__spec__` and `__loader__` on what it is given: that is never NumPy's own module
        return _Alias(spec.name, self.module) if _is_numpy(self.module.__name__) else self.module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already."""


class _Alias(ModuleType):
    """The same names as another module, looked up there each time."""

    def __init__(self, name: str, module: ModuleType) -> None:
        super().__init__(name, module.__doc__)
        self.__dict__["_module"] = module
        if hasattr(module, "__all__"):
            self.__dict__["__all__"] = module.__all__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_module"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_module"])


def _users_part(error: BaseException, trace: TracebackType | None, namespace: dict[str, Any]) -> TracebackType | None:
    """The traceback from the script's own frame on, without the frames that imported and compiled its modules for it."""
    while trace is not None and trace.tb_frame.f_globals is not namespace:
        trace = trace.tb_next
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    hidden = (__name__, ast.__name__, "importlib._bootstrap", "importlib._bootstrap_external")
    if isinstance(error, SyntaxError):
        entries = [entry for entry in entries if entry.tb_frame.f_globals.get("__name__") not in hidden]
    for entry in reversed(entries):
        trace = TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return trace


def _trimming(hook: Callable[..., Any], namespace: dict[str, Any]) -> Callable[..., Any]:
    """The same hook for uncaught exceptions, shown only the part of the traceback that is the user's."""

    def trimmed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        trace = _users_part(error, trace, namespace)
        return hook(kind, error.with_traceback(trace), trace)

    return trimmed


def read(path: str) -> bytes:
    """The script's source; raises ``OSError`` where there is none to read."""
    with io.open_code(path) as file:
        return file.read()


def run(path: str, arguments: Sequence[str] = (), source: bytes | None = None) -> dict[str, Any]:
    """Run a script as ``python path arguments...`` would, with ``numpy`` meaning lazynp.

    This is the whole life of a process: import hooks, ``sys.argv``, ``sys.path`` and ``__main__`` stay as the script had them.

    Parameters
    ----------
    path : str
        The script.
    arguments : sequence of str
        The rest of its ``sys.argv``.
    source : bytes, optional
        Its text, where it was read already.

    Returns
    -------
    dict
        The namespace the script leaves behind.

    Raises
    ------
    OSError
        Where the file cannot be read.
    BaseException
        Whatever the script raises, ``SystemExit`` included.
    """
    if source is None:
        source = read(path)
    file = os.path.abspath(path)
    root = os.path.dirname(os.path.realpath(path))

    sys.meta_path[:0] = (UserModules(root), Submodules())
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        # `python -m` put the working directory there
        sys.path[0] = root

    module = ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", file)
    module.__dict__.update(__file__=file, __loader__=loader, __builtins__=sys.modules["builtins"], __cached__=None)
    # pickle, dataclasses and the like look the running program up under this name
    sys.modules["__main__"] = module
    try:
        exec(compile_mapped(source, file), module.__dict__)
    except BaseException:
        sys.excepthook = _trimming(sys.excepthook, module.__dict__)
        raise
    return module.__dict__
