"""Mathematical functions written in LLVM IR.

In: the name and type of a function.  Out: its definition as scalar IR without a branch, to be inlined into the loop that calls it,
where LLVM's loop vectoriser widens it like any arithmetic.  Promises: an element's bits depend on neither its position nor the
machine; NaN, infinities, signs of zeros and subnormal numbers come out as NumPy's.

Used where a fused multiply-add is an instruction; elsewhere it would be a call for every term of a polynomial.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Final

from lazynp.backends.llvm.host import host
from lazynp.backends.llvm.polynomials import exponential
from lazynp.backends.llvm.polynomials.code import FORMATS, Code

# What each function is written for: Op.name -> (arity, types, body).
FUNCTIONS: Final[dict[str, tuple[tuple[str, ...], Callable[..., Any]]]] = {
    "exp": (("f64", "f32"), exponential.exp),
    "exp2": (("f64", "f32"), exponential.exp2),
}


@functools.cache
def available() -> bool:
    """Tell whether these functions are used on this machine; ``LAZYNP_POLYNOMIALS=0`` leaves all to the C library."""
    if os.environ.get("LAZYNP_POLYNOMIALS") == "0":
        return False
    machine = host().triple.split("-")[0]
    return machine in ("aarch64", "arm64") or host().has("fma")


def has(name: str, kind: str) -> bool:
    """Tell whether a function is defined here and used on this machine."""
    return name in FUNCTIONS and kind in FUNCTIONS[name][0] and available()


def definition(name: str, kind: str, head: str, arity: int) -> str:
    """Return the function whose first line is ``head`` and whose parameters are ``%x0``, ``%x1``."""
    code = Code(FORMATS[kind])
    result = FUNCTIONS[name][1](code, *(f"%x{i}" for i in range(arity)))
    return f"{head} {{\n{''.join(code.lines)}  ret {code.element} {result}\n}}\n"
