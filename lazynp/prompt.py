"""The prompt of ``python -m lazynp``: what is typed is read, run and printed as ``python`` does, with ``np`` bound to lazynp."""

from __future__ import annotations

import code
import codeop
import os
import sys
from types import CodeType
from typing import Any

import lazynp
from lazynp import mapping, script


class _Compiler(codeop.CommandCompiler):
    """Compiles what is typed, when it is complete, with its imports mapped."""

    def __call__(self, source: str, filename: str = "<input>", symbol: str = "single") -> CodeType | None:
        complete = super().__call__(source, filename, symbol)
        return complete and mapping.compile_mapped(source, filename, symbol, flags=self.compiler.flags)


class _Console(code.InteractiveConsole):
    def __init__(self, namespace: dict[str, Any]) -> None:
        super().__init__(namespace, "<stdin>")
        self.compile = _Compiler()


def interact() -> None:
    """Read, run and print as ``python`` does without a script, with ``np`` bound to lazynp and imports of ``numpy`` meaning it."""
    mapping.install(os.getcwd())
    sys.argv = [""]
    script.search_first("")
    namespace = script.fresh_main(np=lazynp)
    prepare = getattr(sys, "__interactivehook__", None)  # line editing and history
    if prepare is not None and sys.stdin.isatty():
        prepare()
    console = _Console(namespace)
    startup = os.environ.get("PYTHONSTARTUP")
    if startup and os.path.isfile(startup):
        exec(mapping.compile_mapped(script.read(startup), startup), namespace)
    version = sys.version.replace("\n", "")
    console.interact(f"Python {version}\nlazynp {lazynp.lazynp_version}: `np`, and what `import numpy` gives", exitmsg="")
