"""Small kernels written by hand, for tests of what lies under the code generator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from lazynp.backends.llvm import compiler, mathlib

DTYPE = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32)}


def arity_of(name: str) -> int:
    return mathlib.FUNCTIONS[name].arity if name in mathlib.FUNCTIONS else 1  # a special function


def map_ir(name: str, kind: str) -> str:
    """Return a module whose function ``kernel(out, x.., n)`` applies one mathematical function to arrays."""
    element, arity = mathlib.IR_TYPE[kind], arity_of(name)
    parameters = "".join(f", ptr noalias %x{i}" for i in range(arity))
    loads = "".join(
        f"  %p{i} = getelementptr inbounds {element}, ptr %x{i}, i64 %i\n  %v{i} = load {element}, ptr %p{i}\n" for i in range(arity)
    )
    arguments = ", ".join(f"{element} %v{i}" for i in range(arity))
    call = f"call {element} @{mathlib.symbol(name, kind)}({arguments}) {mathlib.call_attributes(name, kind)}"
    return f"""{mathlib.prelude([(name, kind)])}
define void @kernel(ptr noalias %out{parameters}, i64 %n) "prefer-vector-width"="512" {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
{loads}  %r = {call}
  %q = getelementptr inbounds {element}, ptr %out, i64 %i
  store {element} %r, ptr %q
  %i1 = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i1, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def math_kernel(name: str, kind: str) -> Callable[..., np.ndarray]:
    """Return the compiled kernel of ``map_ir`` as a function from arrays to an array."""
    dtype, arity = DTYPE[kind], arity_of(name)
    address = compiler.compile_module(map_ir(name, kind), ["kernel"])["kernel"]
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)(address)

    def call(*arrays: np.ndarray) -> np.ndarray:
        inputs = [np.ascontiguousarray(array, dtype) for array in arrays]
        out = np.empty_like(inputs[0])
        native(out.ctypes.data, *(array.ctypes.data for array in inputs), out.size)
        return out

    return call
