"""Mathematical functions written in LLVM IR.

In: the name and type of a function.  Out: its definition as scalar IR without a branch, to be inlined into the loop that calls it,
where LLVM's loop vectoriser widens it like any arithmetic; or, for functions that are ``partial``, the same of vectors within a limit,
and which elements are beyond it.  Promises: an element's bits depend on neither its position nor the machine; NaN, infinities, signs of
zeros and subnormal numbers come out as NumPy's.

Used where a fused multiply-add is an instruction; elsewhere it would be a call for every term of a polynomial.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from lazynp.backends.llvm.host import host
from lazynp.backends.llvm.polynomials import exponential, logarithm, power, remainder, trigonometric
from lazynp.backends.llvm.polynomials.code import FORMATS, Code, Value
from lazynp.values import config
from lazynp.values.records import Row


class Function(Row):
    """A function of ours: how it is written, and for which types libmvec's comes after it; the C library's scalar one always does."""

    body: Callable[..., Any]
    preferred: tuple[str, ...] = ("f64", "f32")
    kinds: tuple[str, ...] = ("f64", "f32")  # for which it is written at all
    partial: bool = False  # the body also returns which arguments it cannot serve: the C library's function does


FUNCTIONS: Final[dict[str, Function]] = {
    "exp": Function(exponential.exp),
    "exp2": Function(exponential.exp2),
    "expm1": Function(exponential.expm1),
    "tanh": Function(exponential.tanh),
    "sinh": Function(exponential.sinh, preferred=("f64",)),
    "cosh": Function(exponential.cosh),
    "log": Function(logarithm.log),
    # libmvec's use tables, which are faster than a division.
    "log2": Function(logarithm.log2, preferred=()),
    "log10": Function(logarithm.log10, preferred=()),
    "log1p": Function(logarithm.log1p, preferred=("f32",)),
    "power": Function(power.power),
    "sin": Function(trigonometric.sin, kinds=("f64",), partial=True),
    "cos": Function(trigonometric.cos, kinds=("f64",), partial=True),
    "tan": Function(trigonometric.tan, kinds=("f64",), partial=True),
    "fmod": Function(remainder.fmod, preferred=(), partial=True),  # exact: libmvec's, if it had one, would have the same bits
}


@functools.cache
def available() -> bool:
    """Tell whether these functions are used on this machine; ``LAZYNP_POLYNOMIALS=0`` leaves all to the C library."""
    return config.polynomials and fused()


def fused() -> bool:
    """Tell whether a fused multiply-add is an instruction here."""
    machine = host().triple.split("-")[0]
    return machine in ("aarch64", "arm64") or host().has("fma")


def wanted(name: str, kind: str, vector_library: bool) -> bool:
    """Tell whether a function is to be taken from here, where the C library does or does not have a vector function for it."""
    function = FUNCTIONS.get(name)
    return function is not None and kind in function.kinds and available() and (not vector_library or kind in function.preferred)


def definition(name: str, kind: str, head: str, arity: int) -> str:
    """Return the function whose first line is ``head`` and whose parameters are ``%x0``, ``%x1``."""
    code = Code(FORMATS[kind])
    result = FUNCTIONS[name].body(code, *(f"%x{i}" for i in range(arity)))
    return f"{head} {{\n{''.join(code.lines)}  ret {code.element} {result}\n}}\n"


def partial(name: str, kind: str, arity: int, lanes: int) -> tuple[list[str], Value, Value]:
    """Return the lines of a partial function of the vectors ``%x0``, ``%x1``, its result, and which elements are beyond its limit."""
    code = Code(FORMATS[kind], lanes)
    result, far = FUNCTIONS[name].body(code, *(f"%x{i}" for i in range(arity)))
    return code.lines, result, far
