"""Tapes as machine code: what `array/tape_values.h` computes by NumPy's loops until it has come often enough.

In: the steps of an expression, the dtypes of its arrays and how they lie along a row.  Out: the address of its function
(``expression_ir.py``), or 0.  Promise: what an earlier program left on disk is found by the expression in words, and what is not there is
asked for in these words; who asks loads nothing that writes code, and nothing of LLVM's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from lazynp.backends.common import disk_cache
from lazynp.backends.common.interrupts import aside, briefly
from lazynp.backends.llvm import client, compiler
from lazynp.backends.llvm.messages import NAME
from lazynp.graph import op as o
from lazynp.values import forking

LATER, AHEAD = -1, -2  # in the place of addresses
_works: Final[dict[str, Any]] = {}  # by words: what compiles it meanwhile


def compiled(steps: Sequence[Any], dtypes: Sequence[Any], lies: str, outs: Sequence[int], kept: bool | None = False) -> int:
    """Compile an expression and return the address of its function; 0 where that does not go.

    Parameters
    ----------
    steps : sequence of (str, dtype, dtype, operands)
        In the order of computation: NumPy's function, the dtypes of its operands and of its result, its operands.  An operand is (kind,
        number).
    dtypes : sequence of dtype
        Of the arrays.
    lies : str
        A letter an array: how it lies along a row, as ``expression_ir.py`` names it.
    outs : sequence of int
        The steps whose results are wanted.
    kept : bool or None
        True: only look whether an earlier run of the program left it on disk, or looked for it, too; the answer is ``AHEAD`` where it
        did not, and it could be compiled meanwhile.  None: have that done, which is ``LATER`` as long as it is.
    """
    if any(_has_no_text(*step) for step in steps):
        return 0
    words = in_words(steps, dtypes, lies, outs)
    work = _works.get(words)
    if work is not None and not work.over and kept is None:
        return LATER
    _works.pop(words, None)
    module = compiler.Described(words)
    call: Any = aside if kept is False or not client.wanted() else _briefly
    if call is aside:
        compiler.prepare()
    try:
        if kept:
            try:
                return call(compiler.compile_module, module, [NAME], 1, compiler.LOOK)[NAME]
            except compiler.CompileError:
                # A process beside the program takes none of its time; others begin what an earlier run wanted, too.
                again = client.wanted() or disk_cache.shared().wanted(disk_cache.digest(words.encode()).hex())
                if client.ahead():
                    if again:
                        call(compiler.begin, module, [NAME])
                    return AHEAD
                if not again:
                    raise
        return call(compiler.compile_module, module, [NAME], 1, compiler.BEGIN if kept is None else compiler.WAIT)[NAME]
    except _BusyError:
        return AHEAD if kept else LATER
    except compiler.CompilingError as error:
        if len(_works) >= compiler.BEGUN:  # some may not be asked for again; a call that does finds the module by its words
            _works.clear()
        (_works[words],) = error.works
        return LATER
    except (compiler.CompileError, OSError, MemoryError):  # nothing was kept; LLVM refuses it, is not there, or has no memory
        return 0


_ROUNDING: Final = {op.name: op.rounds for op in o.ALL if op.rounds}


def _has_no_text(name: str, dtype: Any, result: Any, operands: Any) -> bool:
    """Tell of most steps of which no text is written that it is so; of the others the process says it that compiles."""
    if dtype.kind == "c" or result.kind == "c" or dtype.char == "e" or result.char == "e":
        return True
    return dtype.kind in _ROUNDING.get(name, "") or (name == "cast" and dtype.kind == "f" and result.kind in "iu")


class _BusyError(Exception):
    """Another thread compiles something, and waits for it: who asked asks again."""


def _briefly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Ask the process that compiles, or look on disk: nothing is compiled here, nor waited for."""
    return briefly(_if_free, function, arguments)


def _if_free(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    if not forking.compiler.acquire(blocking=False):
        raise _BusyError
    try:
        return function(*arguments)
    finally:
        forking.compiler.release()


def in_words(steps: Sequence[Any], dtypes: Sequence[Any], lies: str, outs: Sequence[int]) -> str:
    """Return an expression in words: how its arrays lie, what is wanted of it, their dtypes, a line a step."""
    lines = [lies, " ".join(map(str, outs)), " ".join([dtype.str[1:] for dtype in dtypes])]
    for name, dtype, result, operands in steps:
        lines.append(f"{name}\t{dtype.str[1:]}\t{result.str[1:]}\t{' '.join([f'{kind}:{k}' for kind, k in operands])}")
    return "\n".join(lines)
