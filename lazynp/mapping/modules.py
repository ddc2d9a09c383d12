"""Whose modules are mapped.

In: the directory of a program.  Out: an import hook that gives the user's modules a loader which maps them.  Promise: installed packages
are never mapped; modules of others that compile, or start processes, for the user (``FRIENDS``) are told of the mapping.
"""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import importlib.util
import os
import site
import sys
import zipimport
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, ModuleType
from typing import Any, Final

from lazynp.mapping.kept import compile_kept
from lazynp.mapping.submodules import Submodules
from lazynp.mapping.syntax import EDITION, OURS, compile_mapped, concerns, map_tree
from lazynp.namespace.bridge import meeting
from lazynp.namespace.standard import numpys_names
from lazynp.values import config

SCRIPT: Final = "__lazynp_main__"  # the name under which a child made by spawn imports the script


class _MappingLoader(importlib.machinery.SourceFileLoader):
    """Loads one of the user's modules.  Mapped code must not enter the ``__pycache__`` that Python itself uses."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        if not concerns(source):
            return super().get_code(fullname)
        return compile_kept(source, path)


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


def mapped_spec(spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec | None:
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
    places = {os.path.dirname(os.__file__), *site.getsitepackages(), site.getusersitepackages(), os.path.dirname(os.path.dirname(__file__))}
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
        path = _real(path)
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
        if fullname.partition(".")[0] == OURS:
            return None  # `Submodules` knows
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None:
            return None
        # else what Python's own search, which comes next, would find again
        return mapped_spec(spec) or (None if fullname in meeting.HOOKS else spec)


def _real(path: str) -> str:
    """``os.path.realpath``, which asks the system about each part of a path, for many files of few directories."""
    if os.path.islink(path):
        return os.path.realpath(path)
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(_real_folder(folder), name)


@functools.cache
def _real_folder(path: str) -> str:
    return os.path.realpath(path)


def programs() -> Iterator[UserModules]:
    return (finder for finder in sys.meta_path if isinstance(finder, UserModules))


def owned(path: str) -> bool:
    """Tell whether a source file belongs to the user's program."""
    return any(program.owns(path) for program in programs())


def install(root: str, package: str = "", script: str = "") -> UserModules:
    """Map the modules of a program, from now on and for the life of the process."""
    program = UserModules(root, package, script)
    # where Python's own search stands: hooks before it (pytest's is one) have their say first
    searching = (meeting.Finder, importlib.machinery.PathFinder)
    place = next((i for i, finder in enumerate(sys.meta_path) if finder in searching), len(sys.meta_path))
    sys.meta_path[place:place] = (program, Submodules())
    if config.adaptors:
        meeting.tell(FRIENDS)
    numpys_names()
    return program


# Modules of others that compile, or start processes, for the user ---------------------------------------------------------------


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
        return {**data, OURS: running}  # not read: to unpickle it is enough

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
        module.PYC_TAIL = f".{module.PYTEST_TAG}-{OURS}{EDITION}{module.PYC_EXT}"  # mapped code is not for runs without the mapping


FRIENDS: Final[dict[str, Callable[[Any], None]]] = {
    "_pytest.assertion.rewrite": _pytest,
    "multiprocessing.spawn": _spawn,
}
