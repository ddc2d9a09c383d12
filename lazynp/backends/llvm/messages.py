"""What a program and the process that compiles for it say to each other.

In: nothing.  Out: how requests and replies begin.  Promise: whatever else is sent ends the conversation.
"""

from __future__ import annotations

import struct
from typing import Final

REQUEST: Final = struct.Struct("<B64sbII")  # a kind, a key, a level, how long the names are and the text
REPLY: Final = struct.Struct("<64sBI")  # a key, how it went, how long what follows is: machine code, or why not
COMPILE, FIRST, DESCRIBED = 1, 2, 3  # kinds of requests; FIRST: the program waits for what it asked for before; DESCRIBED: without a text
READY, DONE, REFUSED = 1, 2, 3  # READY, without a key: LLVM is there
LIMIT: Final = 1 << 28  # bytes of a text, or of its code
HASTE: Final = -1  # the level of all modules without optimisation

NAME: Final = "lzx"  # of a tape's function

# What generated text ends with: the attributes and metadata that its functions and loops refer to.
#
# Vectors that are spilled straddle cache lines, and a loop takes twice as long, unless the function aligns its stack; LLVM decides on that
# before it knows what is spilled.
TAIL: Final = """
attributes #0 = { nounwind noinline "prefer-vector-width"="512" "stackrealign" }
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.followup_vectorized", !3}
!3 = !{!"llvm.loop.unroll.full"}
"""


class Described:
    """A module whose text is to be written where it is compiled (``expression_ir.py``), of an expression in words."""

    __slots__ = ("words",)

    def __init__(self, words: str) -> None:
        self.words = words
