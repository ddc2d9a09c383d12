"""What a program and the process that compiles for it say to each other.

In: nothing.  Out: how requests and replies begin.  Promise: whatever else is sent ends the conversation.
"""

from __future__ import annotations

import struct
from typing import Final

REQUEST: Final = struct.Struct("<B64sbII")  # a kind, a key, a level, how long the names are and the text
REPLY: Final = struct.Struct("<64sBI")  # a key, how it went, how long what follows is: machine code, or why not
COMPILE, FIRST = 1, 2  # kinds of requests; FIRST: somebody waits for what was asked for before
READY, DONE, REFUSED = 1, 2, 3  # READY, without a key: LLVM is there
LIMIT: Final = 1 << 28  # bytes of a text, or of its code
