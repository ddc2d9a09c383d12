"""Running one phase of a kernel: what stands around its loops, compiled once for each number of arguments.

In: kernels.  Out: native functions ``lz_phase4``, ``lz_phase8``, ..., which run one phase of a kernel: they unpack the argument block and
hand the pieces of [0, count) to the phase's body, on several threads where there is more than one piece and more than one thread.
Promise: kernels call them by name, so a kernel's own module holds its loops and nothing else.

A body is ``void(i64 lo, i64 hi, ptr error, words...)``; the words are the slots of the argument block (``lazynp/codegen/block.py``) up to
its scalars, each passed as an i64 whether the body takes a pointer or a number.  Their number is rounded up: a block has four
slots and more behind them, and a C function does not notice arguments that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from lazynp.backends.llvm import compiler, flags, threads
from lazynp.codegen import ir
from lazynp.codegen.block import Layout

STEP: Final = 4  # no more than the slots that every block has behind its scalars: threads, error, flags and a counter
_provided: set[int] = set()


def size(layout: Layout) -> int:
    """Return how many words the bodies of a kernel are handed."""
    return -(-layout.threads // STEP) * STEP


def name(words: int) -> str:
    return f"lz_phase{words}"


def declaration(words: int) -> str:
    return f"declare void @{name(words)}(ptr, ptr, ptr, ptr, i64, i64, i64) nounwind"


def provide(kernels: Iterable[ir.Kernel], how: str = compiler.WAIT) -> None:
    """Compile what ``kernels`` call and make it known by name; ``how`` is ``compile_module``'s."""
    works: tuple[Any, ...] = ()
    for words in sorted({size(Layout(kernel)) for kernel in kernels} - _provided):
        try:
            compiler.define(compiler.compile_module(_module(words), [name(words)], 0, how))
            _provided.add(words)
        except compiler.CompilingError as error:
            works += error.works
    if works:
        raise compiler.CompilingError(works)


def _module(words: int) -> str:
    block = range(words)
    loads = [f"  %p{k} = getelementptr i64, ptr %args, i64 {k}\n  %w{k} = load i64, ptr %p{k}, align 8" for k in block]
    passed = ", ".join(["i64 %lo", "i64 %hi", "ptr %error", *(f"i64 %w{k}" for k in block)])
    clear, heard = (flags.clear(), flags.read() + _HEARD) if flags.known() else ("", "")
    return _TEXT % {
        "declarations": threads.DECLARATION + flags.declarations(), "name": name(words), "loads": "\n".join(loads), "passed": passed,
        "clear": clear, "heard": heard,
    }  # fmt: skip


_HEARD = """
  %wanted = and i64 %fp.bits, %mask
  %noted = getelementptr i64, ptr %tail, i64 2
  atomicrmw or ptr %noted, i64 %wanted monotonic"""

# `tail` is the block from its slot for threads on; `mask` which of the processor's floating-point flags are kept.  A phase's counter is set
# behind the end by who stops it (``backends/common/interrupts.py``).
_TEXT = """
%(declarations)s
%%run = type { ptr, ptr, ptr, ptr, i64, i64, i64 }

define void @%(name)s(ptr %%body, ptr %%args, ptr %%tail, ptr %%counter, i64 %%count, i64 %%chunk, i64 %%mask) nounwind {
entry:
  %%run = alloca %%run, align 8
  %%r0 = insertvalue %%run poison, ptr %%body, 0
  %%r1 = insertvalue %%run %%r0, ptr %%args, 1
  %%r2 = insertvalue %%run %%r1, ptr %%tail, 2
  %%r3 = insertvalue %%run %%r2, ptr %%counter, 3
  %%r4 = insertvalue %%run %%r3, i64 %%count, 4
  %%r5 = insertvalue %%run %%r4, i64 %%chunk, 5
  %%r6 = insertvalue %%run %%r5, i64 %%mask, 6
  store %%run %%r6, ptr %%run
  store i64 0, ptr %%counter
  %%word = load i64, ptr %%tail
  %%threads = trunc i64 %%word to i32
  %%many = icmp sgt i32 %%threads, 1
  %%several = icmp sgt i64 %%count, %%chunk
  %%both = and i1 %%many, %%several
  br i1 %%both, label %%parallel, label %%alone
parallel:
  call void @lz_parallel(ptr @work, ptr %%run, i32 %%threads)
  ret void
alone:
  call void @work(ptr %%run)
  ret void
}

define internal void @work(ptr %%run) nounwind noinline {
entry:
  %%r = load %%run, ptr %%run
  %%body = extractvalue %%run %%r, 0
  %%args = extractvalue %%run %%r, 1
  %%tail = extractvalue %%run %%r, 2
  %%counter = extractvalue %%run %%r, 3
  %%count = extractvalue %%run %%r, 4
  %%chunk = extractvalue %%run %%r, 5
  %%mask = extractvalue %%run %%r, 6
  %%error = getelementptr i64, ptr %%tail, i64 1
%(loads)s
%(clear)s
  br label %%claim
claim:
  %%lo = atomicrmw add ptr %%counter, i64 %%chunk monotonic
  %%more = icmp slt i64 %%lo, %%count
  br i1 %%more, label %%piece, label %%done
piece:
  %%end = add i64 %%lo, %%chunk
  %%over = icmp slt i64 %%end, %%count
  %%hi = select i1 %%over, i64 %%end, i64 %%count
  call void %%body(%(passed)s)
  br label %%claim
done:
%(heard)s
  ret void
}
"""
