"""What compiles and launches kernels on one kind of device.

In: kernels.  Out: machine code.  Promise: what this names of the code generator is loaded only by code that compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lazynp.backends.base import Layout
from lazynp.codegen import ir, pipeline


class Target(pipeline.Target, Protocol):
    """A target compiles and launches kernels on one kind of device."""

    name: str

    def compile(self, kernels: Sequence[ir.Kernel], sources: Sequence[str]) -> Sequence[tuple[Callable[[int], None], Layout]]:
        """The machine code of loop nests, with the layout of its arguments; ``sources`` are what ``render`` made of them."""
        ...

    def threads(self) -> int: ...
