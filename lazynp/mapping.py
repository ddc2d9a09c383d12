"""``numpy`` meaning lazynp in the user's modules.

In: source text, and import statements that run.  Out: the same code, with every import of ``numpy`` that the user's program writes down
or computes answered by lazynp.  Promise: nobody else is touched.  Installed packages keep NumPy, ``sys.modules`` keeps its entry for NumPy,
no builtin is replaced; tracebacks show the user's own lines.

The mapping is done on the syntax tree, before compilation: ``import numpy as np`` becomes ``import lazynp as np``.  A module is the
user's when its source file lies under a directory of the program and in no place that packages are installed to.  Where such a module
calls what takes a module's name, a file or text when it runs (``CALLS``), it calls the function's twin here, which maps what it is given.
Children made by spawn are told whose modules are mapped, and pytest maps a test module before it rewrites its assertions.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import runpy
import site
import sys
import sysconfig
import zipimport
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, ModuleType
from typing import Any, Final, TypeVar

from lazynp.namespace.bridge import fallback

OURS: Final = "lazynp"
THEIRS: Final = "numpy"
SCRIPT: Final = "__lazynp_main__"  # the name under which a child made by spawn imports the script
_TREE_LIMIT: Final = 10_000  # nested expressions of a mapped module

# What may bring NumPy into a module when it runs; as attributes (`importlib.import_module`), too, where no other object has such methods.
CALLS: Final = ("__import__", "import_module", "spec_from_file_location", "run_path", "exec", "compile")
_BARE: Final = ("exec", "compile")
_CONCERNED: Final = re.compile(rb"numpy|__import__|import_module|spec_from_file_location|run_path|(?<!\.)\b(exec|compile)\s*\(")
_Tree = TypeVar("_Tree", bound=ast.AST)
_FUTURE: Final = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


def _renamed(name: str) -> str:
    """``numpy.linalg`` -> ``lazynp.linalg``."""
    return OURS + name[len(THEIRS) :]


def _is_numpy(name: object) -> bool:
    return isinstance(name, str) and (name == THEIRS or name.startswith(THEIRS + "."))


# The syntax tree ------------------------------------------------------------------------------------------------------


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


def _with_twins(call: ast.Call, concerned: set[str]) -> None:
    """Let a call that may bring NumPy when it runs go through this module: only there is known what its function is."""
    match call.func:
        case ast.Name(id=name) if name in concerned:
            pass
        case ast.Attribute(attr=name) if name in CALLS and name not in _BARE:
            pass
        case _:
            return
    match call.args:
        case [ast.Constant(value=str(text)) as constant, *_] if name in ("__import__", "import_module"):
            if _is_numpy(text):
                constant.value = _renamed(text)
        case [first, *_] if name == "exec" and not isinstance(first, ast.Starred):
            call.args[0] = _through("executed", first, ast.Name(name, ast.Load()), first)  # exec itself looks at the frame that calls it
        case _ if name != "exec":
            call.func = _through("twin", call.func, call.func)


def _with_all_names(node: ast.AST, modules: set[str]) -> None:
    """Let ``np.__dict__`` and ``vars(np)`` be read when all names are there: lazynp makes most of them when they are asked for."""
    match node:
        case ast.Attribute(value=ast.Name(id=name) as module, attr="__dict__") if name in modules:
            node.value = _through("complete", module, module)
        case ast.Call(func=ast.Name(id="vars"), args=[ast.Name(id=name) as module]) if name in modules:
            node.args[0] = _through("complete", module, module)


def _through(function: str, old: ast.expr, *arguments: ast.expr) -> ast.expr:
    """A call of a function of this module, in the place of an expression."""
    here = ast.Attribute(ast.Call(ast.Name("__import__", ast.Load()), [ast.Constant(__name__)], []), "mapping", ast.Load())
    call = ast.Call(ast.Attribute(here, function, ast.Load()), list(arguments), [])
    return ast.fix_missing_locations(ast.copy_location(call, old))


def map_tree(tree: _Tree) -> _Tree:
    """Rewrite the imports of NumPy in place.  Iterative: programs with very deep expressions are allowed."""
    nodes = list(ast.walk(tree))
    concerned = {*CALLS}
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update(alias.asname or THEIRS for alias in node.names if _is_numpy(alias.name))
        if isinstance(node, ast.ImportFrom) and node.module in ("importlib", "importlib.util", "builtins", "runpy"):
            concerned.update(alias.asname for alias in node.names if alias.asname and alias.name in CALLS)
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(name), level=0) if _is_numpy(name):
                node.module = _renamed(name)
            case ast.Call():
                _with_twins(node, concerned)
        _with_all_names(node, modules)
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


def concerns(source: bytes | str) -> bool:
    """Tell whether a text may import NumPy."""
    return _CONCERNED.search(source.encode(errors="replace") if isinstance(source, str) else source) is not None


def compile_mapped(source: bytes | str, filename: str, mode: str = "exec", flags: int = 0, optimize: int = -1) -> CodeType:
    """Compile source text with its imports of NumPy mapped to lazynp.

    Parameters
    ----------
    source : bytes or str
        As read from the file; an encoding declaration is honoured.
    filename : str
        Shown in tracebacks, and where they look for the lines.
    mode, flags, optimize
        As Python's own compiler has them.

    Raises
    ------
    SyntaxError
        As Python's own compiler would.
    """
    if not concerns(source):
        return compile(source, filename, mode, flags, dont_inherit=True, optimize=optimize)
    # trees are walked by C code that counts against Python's limit, and reaches it long before the compiler proper does
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _TREE_LIMIT))
    try:
        tree: Any = compile(source, filename, mode, flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        return compile(map_tree(tree), filename, mode, flags, dont_inherit=True, optimize=optimize)
    finally:
        sys.setrecursionlimit(limit)


# What runs, in place of what the user's module calls -----------------------------------------------------------------------------


def _import_module(name: str, package: str | None = None) -> ModuleType:
    return importlib.import_module(_renamed(name) if _is_numpy(name) else name, package)


def _import(name: str, *arguments: Any, **keywords: Any) -> ModuleType:
    return builtins.__import__(_renamed(name) if _is_numpy(name) else name, *arguments, **keywords)


def _compile(
    source: Any, filename: Any, mode: str, flags: int = 0, dont_inherit: bool = False, optimize: int = -1, **keywords: Any
) -> CodeType:
    if not dont_inherit:
        flags |= sys._getframe(1).f_code.co_flags & _FUTURE
    if flags & ast.PyCF_ONLY_AST or not isinstance(source, str | bytes):
        return compile(source, filename, mode, flags, True, optimize, **keywords)
    return compile_mapped(source, filename, mode, flags, optimize)


def _spec_from_file_location(*arguments: Any, **keywords: Any) -> importlib.machinery.ModuleSpec | None:
    spec = importlib.util.spec_from_file_location(*arguments, **keywords)
    return None if spec is None else (_mapped_spec(spec) or spec)


def _run_path(path_name: str, init_globals: dict[str, Any] | None = None, run_name: str | None = None) -> dict[str, Any]:
    name = "<run_path>" if run_name is None else run_name
    if not os.path.isfile(path_name) or is_zip(path_name) or not owned(path_name):
        return runpy.run_path(path_name, init_globals, name)
    with open(path_name, "rb") as file:
        code = compile_mapped(file.read(), os.fspath(path_name))
    return runpy._run_module_code(code, init_globals, name, pkg_name=name.rpartition(".")[0], script_name=path_name)  # type: ignore[attr-defined]


_TWINS: Final[dict[Any, Any]] = {
    builtins.__import__: _import,
    builtins.compile: _compile,
    importlib.import_module: _import_module,
    importlib.util.spec_from_file_location: _spec_from_file_location,
    runpy.run_path: _run_path,
}


def twin(function: Any) -> Any:
    """Return what a function of Python's import system is called as in the user's modules; any other is returned as it is."""
    try:
        return _TWINS.get(function, function)
    except TypeError:  # not hashable
        return function


def executed(function: Any, text: Any) -> Any:
    """Return what ``exec`` gets of a text, if ``exec`` is Python's: code with its imports mapped."""
    if function is not builtins.exec or not isinstance(text, str | bytes) or not concerns(text):
        return text
    try:
        return compile_mapped(text, "<string>", flags=sys._getframe(1).f_code.co_flags & _FUTURE)
    except SyntaxError:
        return text  # exec itself says so


def complete(module: Any) -> Any:
    """Return a module, with all names in it that NumPy's has."""
    if isinstance(module, ModuleType) and (module.__name__ + ".").startswith(OURS + "."):
        theirs = sys.modules.get(THEIRS + module.__name__[len(OURS) :])
        for name in vars(theirs) if theirs is not None else ():
            getattr(module, name, None)
    return module


# Whose modules are mapped -----------------------------------------------------------------------------------------------------


class _MappingLoader(importlib.machinery.SourceFileLoader):
    """Loads one of the user's modules.  Mapped code must not enter the ``__pycache__`` that Python itself uses."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if not concerns(source):
            return super().get_code(fullname)
        return compile_mapped(source, path)


class _MappingZip(zipimport.zipimporter):
    """Loads one of the user's modules from a zip."""

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_source(fullname)
        if source is None or not concerns(source):
            return super().get_code(fullname)
        return compile_mapped(source, self.get_filename(fullname))


def is_zip(path: str) -> bool:
    """Tell whether a path is a zip that Python could import from."""
    try:
        zipimport.zipimporter(os.fspath(path))
    except zipimport.ZipImportError:
        return False
    return True


def _mapped_spec(spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec | None:
    """Give a module that is the user's the mapping loader; None where it is not."""
    if spec.origin is None or not owned(spec.origin):
        return None
    loader: Any = spec.loader
    if type(loader) is importlib.machinery.SourceFileLoader:
        loader = _MappingLoader(loader.name, loader.path)
    elif type(loader) is zipimport.zipimporter:
        loader = _MappingZip(os.path.join(loader.archive, loader.prefix))
    else:
        return None
    spec.loader = loader
    return spec


def _installed() -> tuple[str, ...]:
    """Directories that hold the standard library and installed packages, lazynp among them."""
    places = {path for key, path in sysconfig.get_paths().items() if key in ("stdlib", "platstdlib", "purelib", "platlib")}
    places.update(site.getsitepackages())
    places.add(site.getusersitepackages())
    places.add(os.path.dirname(__file__))
    return tuple(os.path.join(os.path.realpath(place), "") for place in places)


class UserModules:
    """Finds what Python's own path search finds, and gives the user's modules the mapping loader.

    Parameters
    ----------
    root : str
        The directory of the program.
    package : str
        A directory whose modules are the user's although it is installed: the package that ``-m`` names.
    script : str
        The file of ``__main__``, for children that import it.
    """

    def __init__(self, root: str, package: str = "", script: str = "") -> None:
        self.root = os.path.join(os.path.realpath(root), "")
        self.package = package and os.path.join(os.path.realpath(package), "")
        self.script = script
        self.installed = _installed()

    def __reduce__(self) -> tuple[Callable[..., UserModules], tuple[str, str, str]]:
        return install, (self.root, self.package, self.script)  # unpickled by a child, it is installed there

    def owns(self, path: str) -> bool:
        """Tell whether the source file belongs to the user's program."""
        path = os.path.realpath(path)
        if self.package and path.startswith(self.package):
            return True
        if not path.startswith(self.root) or path.startswith(self.installed):
            return False
        # a virtual environment of another interpreter, or a vendored one, below the script
        inside = path[len(self.root) :].split(os.sep)
        return "site-packages" not in inside and "dist-packages" not in inside

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == SCRIPT and self.script:
            return importlib.util.spec_from_file_location(fullname, self.script, loader=_MappingLoader(fullname, self.script))
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None:
            return None
        if fullname in _FRIENDS:
            spec.loader = _Befriending(fullname, spec.loader.path)  # type: ignore[union-attr]
            return spec
        return _mapped_spec(spec) if self.owns(spec.origin or "") else None


def programs() -> Iterator[UserModules]:
    return (finder for finder in sys.meta_path if isinstance(finder, UserModules))


def owned(path: str) -> bool:
    """Tell whether a source file belongs to the user's program."""
    return any(program.owns(path) for program in programs())


def install(root: str, package: str = "", script: str = "") -> UserModules:
    """Map the modules of a program, from now on and for the life of the process."""
    program = UserModules(root, package, script)
    # where Python's own search stands: hooks before it (pytest's is one) have their say first
    place = next((i for i, finder in enumerate(sys.meta_path) if finder is importlib.machinery.PathFinder), len(sys.meta_path))
    sys.meta_path[place:place] = (program, Submodules())
    for name, befriend in _FRIENDS.items():
        if name in sys.modules:
            befriend(sys.modules[name])
    return program


# Submodules ---------------------------------------------------------------------------------------------------------------------


class Submodules:
    """Answers ``import lazynp.typing`` and the like: submodules of NumPy that are attributes of lazynp, or are left to NumPy.

    It also knows lazynp's own modules that were loaded: a program may delete what it finds in ``sys.modules``, and a second copy of a
    module would not know the operations of the first.
    """

    def __init__(self) -> None:
        self.loaded = {name: module for name, module in sys.modules.items() if name == OURS or name.startswith(OURS + ".")}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        known = self.loaded.get(fullname)
        if known is not None:
            return importlib.machinery.ModuleSpec(fullname, _Again(known), is_package=hasattr(known, "__path__"))
        parent = sys.modules.get(package)
        if parent is None or package.partition(".")[0] != OURS:
            return None
        own = parent.__name__ == package and getattr(parent, "__file__", None) is not None
        both = package == OURS or isinstance(parent, fallback.Submodule)  # NumPy's names and modules of our own
        if own:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
                spec.loader = _Remembering(self.loaded, fullname, spec.loader.path)
            if spec is not None or not both:
                return spec
        module: Any = getattr(parent, name, None)
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


class _Remembering(importlib.machinery.SourceFileLoader):
    """Loads one of lazynp's own modules, and remembers it."""

    def __init__(self, loaded: dict[str, ModuleType], fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self.loaded = loaded

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self.loaded[module.__name__] = module


class _Existing(importlib.abc.Loader):
    """A loader for a module that exists: makes a second name for it."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        # the import system writes `__spec__` and `__loader__` on what it is given: that is never NumPy's own module
        return _Alias(spec.name, self.module) if _is_numpy(self.module.__name__) else self.module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already."""


class _Again(importlib.abc.Loader):
    """A loader for a module of lazynp's that was deleted from ``sys.modules``: the same one comes back, as it was."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.kept = {name: value for name, value in vars(module).items() if name in ("__spec__", "__loader__", "__path__", "__package__")}

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self.kept)


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


# Modules of others that compile, or start processes, for the user ---------------------------------------------------------------


class _Befriending(importlib.machinery.SourceFileLoader):
    """Loads a module of others that has to know of the mapping."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _FRIENDS[module.__name__](module)


def _spawn(module: Any) -> None:
    """``multiprocessing.spawn``: what is sent to a child says whose modules are mapped, first of all."""
    prepared = module.get_preparation_data

    def get_preparation_data(name: str, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        data = prepared(name, *arguments, **keywords)
        running = list(programs())
        script = data.get("init_main_from_path")
        if script is not None and any(program.script == script for program in running):
            del data["init_main_from_path"]
            data["init_main_from_name"] = SCRIPT
        return {**data, OURS: running}  # read by nobody: to unpickle it is enough

    if prepared.__module__ != __name__:
        get_preparation_data.__module__ = __name__
        module.get_preparation_data = get_preparation_data


def _pytest(module: Any) -> None:
    """``_pytest.assertion.rewrite``: test modules of the user's are mapped before their assertions are rewritten."""
    rewrite = module.rewrite_asserts

    def rewrite_asserts(tree: ast.Module, source: bytes, module_path: str | None = None, *arguments: Any, **keywords: Any) -> None:
        if module_path is not None and owned(module_path):
            map_tree(tree)
        rewrite(tree, source, module_path, *arguments, **keywords)

    if rewrite.__module__ != __name__:
        rewrite_asserts.__module__ = __name__
        module.rewrite_asserts = rewrite_asserts
        module.PYC_TAIL = f".{module.PYTEST_TAG}-{OURS}{module.PYC_EXT}"  # mapped code is not for runs without the mapping


_FRIENDS: Final[dict[str, Callable[[Any], None]]] = {"multiprocessing.spawn": _spawn, "_pytest.assertion.rewrite": _pytest}


# Notebooks ----------------------------------------------------------------------------------------------------------------------


class Cells:
    """Maps what IPython runs: one of its ``ast_transformers``."""

    def visit(self, tree: ast.AST) -> ast.AST:
        return map_tree(tree)


def load_ipython_extension(shell: Any) -> None:
    """Map the cells from now on, and modules under the working directory that they import."""
    if not any(isinstance(transformer, Cells) for transformer in shell.ast_transformers):
        shell.ast_transformers.append(Cells())
        install(os.getcwd())


def unload_ipython_extension(shell: Any) -> None:
    """Let ``numpy`` mean NumPy again in cells; modules that were imported stay as they are."""
    shell.ast_transformers[:] = [transformer for transformer in shell.ast_transformers if not isinstance(transformer, Cells)]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, UserModules | Submodules)]
