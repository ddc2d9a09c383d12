"""Running a program with ``numpy`` meaning lazynp.

In: a script, a directory or zip with a ``__main__``, a module's name, text, or nothing (a prompt), and arguments.  Out: the program run as
``python`` runs it, with every import of ``numpy`` in the user's modules answered by lazynp (``lazynp.mapping``).  Promise: ``sys.argv``,
``sys.path`` and ``__main__`` are as Python makes them; tracebacks show the user's own lines, and exit codes are the program's.

Each function here is the whole life of a process: import hooks, ``sys.argv``, ``sys.path`` and ``__main__`` stay as the program had them.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType, TracebackType
from typing import Any

from lazynp import mapping


def _users_part(error: BaseException, trace: TracebackType | None, namespace: dict[str, Any]) -> TracebackType | None:
    """The traceback from the script's own frame on, without the frames that imported and compiled its modules for it."""
    while trace is not None and trace.tb_frame.f_globals is not namespace:
        trace = trace.tb_next
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    hidden = {name for name in sys.modules if (name + ".").startswith(mapping.__name__ + ".")}
    if isinstance(error, SyntaxError):
        hidden |= {ast.__name__, "importlib._bootstrap", "importlib._bootstrap_external"}
    for entry in reversed(entries):
        if entry.tb_frame.f_globals.get("__name__") not in hidden:
            trace = TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return trace


def _trimming(hook: Callable[..., Any], namespace: dict[str, Any]) -> Callable[..., Any]:
    """The same hook for uncaught exceptions, shown only the part of the traceback that is the user's."""

    def trimmed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        trace = _users_part(error, trace, namespace)
        return hook(kind, error.with_traceback(trace), trace)

    return trimmed


class MissingProgramError(ModuleNotFoundError):
    """There is no such module, or no ``__main__`` in what is to be run."""


def read(path: str) -> bytes:
    """The script's source; raises ``OSError`` where there is none to read."""
    with io.open_code(path) as file:
        return file.read()


def fresh_main(**attributes: Any) -> dict[str, Any]:
    """A fresh ``__main__``: pickle, dataclasses and the like look the running program up under this name."""
    module = ModuleType("__main__")
    if sys.version_info < (3, 14):
        attributes["__annotations__"] = {}
    module.__dict__.update(__builtins__=sys.modules["builtins"], __loader__=importlib.machinery.BuiltinImporter)
    module.__dict__.update(attributes)
    sys.modules["__main__"] = module
    return module.__dict__


def _execute(make: Callable[[], CodeType], namespace: dict[str, Any]) -> dict[str, Any]:
    try:
        exec(make(), namespace)
    except BaseException:
        sys.excepthook = _trimming(sys.excepthook, namespace)
        raise
    return namespace


def search_first(directory: str) -> None:
    """Put the program's own directory where ``python -m`` put the working directory."""
    if not sys.flags.safe_path:
        sys.path[0] = directory


def run(path: str, arguments: Sequence[str] = (), source: bytes | None = None) -> dict[str, Any]:
    """Run a script as ``python path arguments...`` would, with ``numpy`` meaning lazynp.

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
    text = read(path) if source is None else source
    # as given, but absolute: Python does not take `..` out of it
    file = os.path.join(os.getcwd(), path)
    root = os.path.dirname(os.path.realpath(path))
    mapping.install(root, script=file)
    sys.argv = [path, *arguments]
    search_first(root)
    loader = importlib.machinery.SourceFileLoader("__main__", file)
    namespace = fresh_main(__file__=file, __loader__=loader, __cached__=None)
    return _execute(lambda: mapping.compile_kept(text, file), namespace)


def is_collection(path: str) -> bool:
    """Tell whether a path is a directory or a zip, which Python runs by the ``__main__`` in it."""
    return os.path.isdir(path) or (os.path.isfile(path) and mapping.is_zip(path))


def run_collection(path: str, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Run a directory or a zip that has a ``__main__``, as ``python path arguments...`` would; parameters as for `run`.

    Raises
    ------
    MissingProgramError
        Where there is no ``__main__`` in it.
    """
    mapping.install(path)
    sys.argv = [path, *arguments]
    place = os.path.join(os.getcwd(), path)
    sys.path[0 : 0 if sys.flags.safe_path else 1] = [place]
    return _run_spec(_spec("__main__", [place], path))


def run_module(name: str, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Run a module or package as ``python -m name arguments...`` would; parameters as for `run`.

    The modules under the working directory are the user's, and all modules of the package that is named, wherever it is.

    Raises
    ------
    MissingProgramError
        Where there is no such module, or no ``__main__`` in the package.
    """
    top = importlib.machinery.PathFinder.find_spec(name.partition(".")[0])
    places = list(top.submodule_search_locations or ()) if top is not None else []
    mapping.install(os.getcwd(), package=places[0] if places else "")
    sys.argv = ["-m", *arguments]
    spec = _spec(name, None, name)
    if spec.submodule_search_locations is not None:
        spec = _spec(name + ".__main__", None, name)
    sys.argv[0] = spec.origin or name
    return _run_spec(spec)


def _spec(name: str, path: Sequence[str] | None, subject: str) -> importlib.machinery.ModuleSpec:
    if path is None:
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            spec = None
    else:
        spec = next((found for finder in mapping.programs() if (found := finder.find_spec(name, path)) is not None), None)
        spec = spec or importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        raise MissingProgramError(f"can't find '__main__' module in {subject!r}" if path else f"No module named {name}", name=name)
    return spec


def _run_spec(spec: importlib.machinery.ModuleSpec) -> dict[str, Any]:
    loader: Any = spec.loader
    facts = {"__spec__": spec, "__loader__": loader, "__package__": spec.parent, "__file__": spec.origin, "__cached__": spec.cached}
    return _execute(lambda: loader.get_code(spec.name), fresh_main(**facts))


def run_text(text: str | bytes, name: str, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Run source text as ``python -c text arguments...`` would (`name` is ``-c``), or ``python - arguments...`` (``-``).

    The modules under the working directory are the user's.
    """
    mapping.install(os.getcwd())
    sys.argv = [name, *arguments]
    search_first("")
    filename = "<string>" if name == "-c" else "<stdin>"
    file = {} if name == "-c" else {"__file__": filename, "__cached__": None}
    return _execute(lambda: mapping.compile_mapped(text, filename), fresh_main(**file))
