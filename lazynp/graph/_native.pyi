"""What a type checker sees of the native graph, and what the attributes of a node mean."""

from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from lazynp.graph.errstate import State
from lazynp.graph.op import Op
from lazynp.values.buffer import Buffer

class Node:
    """One value of the program.

    Attributes
    ----------
    op, src, arg, dtype, shape
        What it is; see ``lazynp.graph.op`` for each operation's ``arg``.
    number : int
        Position in recording order; a source always has a smaller number than its consumer.
    depth : int
        Longest chain of pending nodes up to this one; 0 for leaves.  Bounds the pending graph.
    site : (code, instruction offset) or None
        Where the user's program recorded it.
    err : State
        NumPy's floating-point error state when it was recorded.
    buffer : Buffer or None
        The value, once it exists.
    error : BaseException or None
        Why it could not be computed; every dependent raises it again.
    computed : bool
        It was computed before, on the way to another value, and not kept.  The next run that needs it keeps it.
    """

    op: Op
    src: tuple[Node, ...]
    arg: Any
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    site: tuple[CodeType, int] | None
    err: State
    buffer: Buffer | None
    error: BaseException | None
    computed: bool
    number: int
    depth: int
    def __init__(
        self,
        op: Op,
        src: tuple[Node, ...],
        arg: Any,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        site: tuple[CodeType, int] | None = None,
    ) -> None: ...
    def publish(self, buffer: Buffer) -> None: ...

class Canonical:
    """The canonical form of what one realize asks for.

    ``key`` names the structure; ``buffers``, ``integers`` and ``scalars`` are the parameters in order; ``nodes[i]`` is the earliest
    node of entry i (for error messages).  ``wanted`` are the nodes whose values the program gives, ``walked`` all pending ones; ``moves``
    tells whether there is a COPY among these.
    """

    key: Any
    buffers: list[Buffer]
    integers: list[int]
    scalars: list[Any]
    nodes: list[Node]
    wanted: list[Node]
    walked: list[Node]
    moves: bool
    def forget(self) -> None: ...

def bind(cost: Any, most: int) -> None: ...
def caller() -> tuple[CodeType, int]: ...
def calls(slow: Callable[..., Any]) -> Any: ...
def mark_computed(nodes: list[Node]) -> None: ...
def marks(nodes: list[Node]) -> tuple[Any, ...]: ...
def pending() -> int: ...
def recorder(slow: Callable[..., Any] | None, directs: dict[Any, Any], operands: int, power: bool) -> Any: ...
def register_views(view: type) -> None: ...
def register(cls: type, scalar: type, wrap: Callable[[Node], Any], node_of: Callable[[Any], Node], depth: int) -> None: ...
def walk(nodes: Iterable[Node] | Sequence[Node]) -> Canonical: ...
def without_sizes(key: Any) -> tuple[Any, tuple[int, ...]]: ...
