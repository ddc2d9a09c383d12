"""What runs the phases of kernels."""

from __future__ import annotations

import ctypes
from array import array

import numpy
import pytest

import lazynp
from lazynp.backends.llvm import compiler, flags, phases
from lazynp.codegen import ir
from lazynp.codegen.block import Layout
from lazynp.values import config

FLOAT = numpy.dtype(float)


def a_kernel(words: int) -> ir.Kernel:
    """A kernel of one phase whose arguments are the buffer it writes and integers."""
    return ir.Kernel(phases=[ir.Phase(count="n0", chunk="n1")], buffers=[FLOAT], written={0}, integers=words - 1)


def runner(words: int, mask: int) -> tuple[ctypes._CFuncPtr, Layout]:
    """Return a kernel that notes its words, how many elements its pieces have, and the quotient of the first two integers."""
    layout = Layout(a_kernel(words))
    phases.provide([a_kernel(words)])
    noted = "\n".join(f"  %p{k} = getelementptr i64, ptr %w0, i64 {k}\n  store i64 %w{k}, ptr %p{k}" for k in range(1, words))
    text = f"""{phases.declaration(phases.size(layout))}
define internal void @body(i64 %lo, i64 %hi, ptr %error, ptr %w0{"".join(f", i64 %w{k}" for k in range(1, words))}) noinline {{
  %done = load i64, ptr %w0
  %length = sub i64 %hi, %lo
  %sum = add i64 %done, %length
  store i64 %sum, ptr %w0
{noted}
  %zero = load double, ptr %error
  %quotient = fdiv double 1.0, %zero
  store volatile double %quotient, ptr %error
  ret void
}}
define void @kernel{words}(ptr %args) {{
  %tail = getelementptr i64, ptr %args, i64 {layout.threads}
  %counter = getelementptr i64, ptr %args, i64 {layout.counters}
  call void @{phases.name(phases.size(layout))}(ptr @body, ptr %args, ptr %tail, ptr %counter, i64 10, i64 4, i64 {mask})
  ret void
}}"""
    name = f"kernel{words}"
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiler.compile_module(text, [name])[name]), layout


@pytest.mark.parametrize("words", [3, 4, 5, 8, 9, 21])
def test_a_body_gets_every_word_and_pieces_make_the_whole(words: int) -> None:
    kernel, layout = runner(words, 0)
    assert phases.size(layout) <= layout.slots  # nothing is read behind the block
    out = array("q", bytes(8 * words))
    block = array("q", [out.buffer_info()[0], *range(101, 100 + words), 1, 0, 0, 12345])
    kernel(block.buffer_info()[0])
    assert out.tolist() == [10, *range(101, 100 + words)]
    assert block[layout.flags] == 0


def test_flags_of_the_processor_are_kept_where_they_are_wanted() -> None:
    kernel, layout = runner(3, -1)
    out = array("q", bytes(24))
    block = array("q", [out.buffer_info()[0], 0, 0, 1, 0, 0, 0])
    kernel(block.buffer_info()[0])
    assert not flags.known() or block[layout.flags] & 1  # 1 / 0


def test_what_runs_phases_is_compiled_once_for_a_number_of_words() -> None:
    phases.provide([a_kernel(3), a_kernel(4)])
    before = compiler.STATISTICS.compiled, compiler.STATISTICS.loaded
    phases.provide([a_kernel(4), a_kernel(2)])
    assert (compiler.STATISTICS.compiled, compiler.STATISTICS.loaded) == before


def test_every_kind_of_scalar_arrives() -> None:
    one = lazynp.ones(3)
    with config.override(backend="llvm", tier="compiled", tape_limit=0):
        for value in (numpy.True_, numpy.int8(-3), numpy.uint16(60000), numpy.float32(1.5), numpy.float64(-2.25)):
            assert (numpy.asarray(lazynp.full(3, value) + one) == numpy.full(3, value) + 1).all()
        for dtype in "?bBhHiIqQefdFD":
            value = numpy.array(3).astype(dtype)[()]
            found = numpy.asarray(lazynp.where(one > 0, value, value.dtype.type(0)))
            assert found.dtype == value.dtype
            assert (found == value).all()
