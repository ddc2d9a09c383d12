"""Compiling by a thread while the program goes on, where no process beside it does (``client.py``).

In: the text of a module that the program does not wait for.  Out: its machine code, when it is asked for again.  Promise: values are the
same with that code and without it, so only times depend on when it is there.  What cannot be done here (one core, no native core, another
LLVM than the one that is known, ``LAZYNP_COMPILER=wait``) is compiled while the program waits, as it always was.

LLVM is called by a thread of ``background.h``, which is none of Python's: no finalizer runs in it, and it needs no lock of Python's to go
on.  It has an ``LLVMContext`` of its own for each module, and a target machine of its own, which is all that LLVM asks of threads.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_void_p
from typing import Any, Final

from lazynp.backends.llvm import threads
from lazynp.values import config

_native: Any = None
try:
    from lazynp.backends.llvm import _background as _native  # type: ignore[attr-defined, no-redef]
except ImportError:  # its thread is one of POSIX
    _native = None

# LLVM's functions in the order of ``background.h``, and what llvmlite says that they take and return: by letters, a reference or an address
# is ``p``, a text ``s``, the place of a text ``S``.
_FUNCTIONS: Final = {
    "ContextCreate": ":p", "ContextDispose": "p:", "ParseAssembly": "psS:p", "VerifyModule": "pS:b", "SetTarget": "ps:",
    "SetDataLayout": "ps:", "GetNamedFunction": "ps:p", "SetLinkage": "pi:", "RunNewModulePassManager": "ppp:",
    "TargetMachineEmitToMemory": "ppiS:p", "GetBufferStart": "p:p", "GetBufferSize": "p:z", "DisposeMemoryBuffer": "p:",
    "DisposeModule": "p:", "DisposeString": "?:",
}  # fmt: skip
_LETTERS: Final = {c_char_p: "s", POINTER(c_char_p): "S", c_int: "i", c_bool: "b", c_size_t: "z", c_void_p: "p", None: ""}
_HIDDEN: Final = re.compile(r"^define (?!internal|private)[^@\n]*@(lz_[\w.]+)\(", re.MULTILINE)
_machines: Final[list[Any]] = []  # LLVM's target machine, and its layout of data; never let go
_known: bool | None = None  # whether LLVM is the one that the thread knows; None: not looked at yet


def wanted() -> bool:
    """Tell whether there is a thread for it, and a core."""
    return config.compiler != "wait" and _native is not None and _known is not False and threads.count() > 1


def _bound(ffi: Any) -> bool:
    """Give the thread LLVM's functions; tells whether all are those that it knows."""
    try:
        functions = [getattr(ffi.lib, f"LLVMPY_{name}") for name in _FUNCTIONS]
        found = [_signature(function) for function in functions]
        if any(a != b for a, b in zip(found, _FUNCTIONS.values(), strict=True) if "?" not in b):
            return False
        library = ctypes.CDLL(ffi.lib._name)
        _native.bind([ctypes.cast(library[f"LLVMPY_{name}"], c_void_p).value for name in _FUNCTIONS])
    except (AttributeError, OSError, TypeError):
        return False
    return True


def _signature(function: Any) -> str:
    restype = function.restype
    # ctypes takes a function whose result type is not set for one that returns an int: these return nothing
    return f"{''.join(map(_letter, function.argtypes or ()))}:{'' if restype is c_int else _letter(restype)}"


def _letter(type_: Any) -> str:
    return _LETTERS[type_] if type_ in _LETTERS else "p" if issubclass(type_, ctypes._Pointer) else "!"


def begin(tools: Any, text: str, names: Sequence[str], level: int) -> Any:
    """Have a module compiled; None where that is not done here."""
    global _known
    if _known is None:
        _known = _bound(tools.llvm.ffi)
        if _known and hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_native.pause, after_in_parent=_native.go_on, after_in_child=_native.go_on)
    if not wanted():
        return None
    if not _machines:
        machine = tools.target_machine()
        _machines.extend((machine, str(machine.target_data)))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(machine))
    machine, layout = _machines
    builder = tools.pass_builder(machine, level)
    objects = (builder.getModulePassManager(), tools.tidy(), builder, machine)  # a pipeline is used up when it has run
    addresses = tuple([ctypes.cast(each._ptr, c_void_p).value for each in objects])
    hidden = "".join([f"{name}\0" for name in _HIDDEN.findall(text) if name not in names])
    work = _native.Work(text.encode(), tools.triple.encode(), layout.encode(), hidden.encode(), addresses, objects)
    return work if work.begin() else None


def stop() -> None:
    """Wait for what is being compiled; called at the end of the process, which LLVM does not survive."""
    global _known
    if _native is not None:
        _known = False
        _native.stop()
