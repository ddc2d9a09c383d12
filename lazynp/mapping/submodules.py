"""Submodules of NumPy, as lazynp's.

In: ``import lazynp.typing`` and the like.  Out: the module of ours, or a second name for NumPy's.  Promise: NumPy's own modules stay as
they are, and none of ours is loaded twice.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from lazynp.mapping.syntax import OURS, THEIRS, is_numpy
from lazynp.namespace.bridge import fallback
from lazynp.recording import ROOMS


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
            loader: Any = _Again(known)
            return importlib.machinery.ModuleSpec(fullname, loader, is_package=hasattr(known, "__path__"))
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
        loader = _Existing(module)
        return importlib.machinery.ModuleSpec(fullname, loader, is_package=hasattr(module, "__path__"))


class _Remembering(importlib.machinery.SourceFileLoader):
    """Loads one of lazynp's own modules, and remembers it."""

    def __init__(self, loaded: dict[str, ModuleType], fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self.loaded = loaded

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self.loaded[module.__name__] = module


class _Existing:
    """A loader for a module that exists: makes a second name for it."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        # the import system writes `__spec__` and `__loader__` on what it is given: that is never NumPy's own module
        return _Alias(spec.name, self.module) if is_numpy(self.module.__name__) else self.module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already."""


class _Again:
    """A loader for a module of lazynp's that was deleted from ``sys.modules``: the same one comes back, as it was."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.kept = {name: value for name, value in vars(module).items() if name in ("__spec__", "__loader__", "__path__", "__package__")}

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self.kept)
        package, _, name = module.__name__.rpartition(".")
        if package and (name in ROOMS or vars(sys.modules[package]).get(name, module) is not module):
            sys.modules[package].__class__ = _Package


class _Package(ModuleType):
    """A package whose names stay what they are when a module of the same name comes back: ``np.array`` and ``np.ndarray``."""

    def __setattr__(self, name: str, value: Any) -> None:
        # the import system sets each module it loads as an attribute of its package
        if not (isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}" and (name in ROOMS or name in vars(self))):
            super().__setattr__(name, value)


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
