"""Where values live.

In: names of devices ("cpu", "cuda", "cuda:1"), nodes.  Out: the device of a node, and the objects that hold memory and run programs there.
Promise: recording an operation asks for no device; no driver is touched before a device is named; a device that is not there is one error
that says what is missing.

``gpus`` is the one hook through which the rest of lazynp, which is written as if there were the processor alone, asks what is to be done
otherwise.  It is None until a GPU is named, then the object of ``namespace/device/gpus.py``.

A node has no device of its own.  A value in device memory is on that device, ``COPY`` pins one, what is computed from a value on a GPU is
on that GPU, and everything else is on the default device at the moment when it is computed or asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from lazynp.graph import op as o
from lazynp.graph.node import Node, site_of, where
from lazynp.values import config

CPU = "cpu"

gpus: Any = None
"""What is done otherwise for values of GPUs; None while everything lives on the processor, which is all that hot paths look at."""

_make: Callable[[], Any]
_chosen: ContextVar[str | None] = ContextVar("lazynp.device", default=None)
_tf32: ContextVar[bool | None] = ContextVar("lazynp.cuda.tf32", default=None)
_named: set[str] = set()  # devices that anything was ever asked of
_homes: WeakKeyDictionary[Node, str] = WeakKeyDictionary()  # of pending nodes whose home was asked for


def made_by(make: Callable[[], Any]) -> None:
    """Tell who makes the hook when it is wanted: a room above this one."""
    global _make
    _make = make


def use() -> Any:
    """The hook; from now on values may live on GPUs."""
    global gpus
    if gpus is None:
        gpus = _make()
        config.at_hand = 0
    return gpus


def settle() -> None:
    """Take note of a default device that the settings name."""
    if config.device != CPU:
        use()
    if gpus is not None:
        config.at_hand = 0


config.followers.append(settle)


def name_of(device: Any) -> str:
    """A device as ``cpu`` or ``cuda:N``; takes names, and CuPy's device objects."""
    if not isinstance(device, str) and type(device).__module__.startswith("cupy"):
        device = f"cuda:{device.id}"
    found = config.device_name(device) if isinstance(device, str) else None
    if found is None:
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device} (and "cuda" and "cuda:N", for GPUs)')
    return found


def checked(device: Any) -> str | None:
    """The name of a device that is there; None for None.

    Raises
    ------
    ValueError
        There is no such device: it says why.
    """
    if device is None:
        return None
    name = name_of(device)
    if name != CPU:
        place(name)
    _named.add(name)
    return name


def place(name: str) -> Any:
    """Return what holds memory and runs programs on a GPU; raises as ``checked``."""
    from lazynp.backends.cuda.memory import place as found

    _named.add(name)
    return found(name)


def default() -> str:
    """The device of what was not placed."""
    return _chosen.get() or config.device


def chosen() -> str | None:
    """The device of the ``with`` block that this is in."""
    return _chosen.get()


def available() -> tuple[str, ...]:
    """All devices of this machine that can be used."""
    from lazynp.backends.cuda.driver import count

    return (CPU, *[f"cuda:{k}" for k in range(count())])


class device:  # noqa: N801, a function to its users
    """Make arrays on a device: within ``with lazynp.device("cuda:0"):`` new arrays live there.

    What is computed within the block of values that are nowhere in particular is computed there, too.

    Parameters
    ----------
    name : {'cpu', 'cuda', 'cuda:N'}
        Where: on the processor, the first GPU, or the GPU of that number.

    Returns
    -------
    device
        A context manager, which can be entered more than once.

    Raises
    ------
    ValueError
        Where there is no such device; the message says what is missing.

    Examples
    --------
    >>> import lazynp as np
    >>> with np.device("cpu"):
    ...     x = np.zeros(3)
    >>> x.device
    'cpu'
    """

    __module__ = "lazynp"

    def __init__(self, name: str) -> None:
        self.name = checked(name) or CPU
        self._tokens: list[Any] = []

    def __enter__(self) -> device:
        if self.name != CPU:
            use()
        self._tokens.append(_chosen.set(self.name))
        return self

    def __exit__(self, *_: object) -> None:
        _chosen.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"lazynp.device({self.name!r})"


_EXACT: tuple[str, ...] = ()
_ROUNDED = (o.TF32,)


def precision(dtype: Any) -> tuple[str, ...]:
    """Return what a product of this dtype that is recorded now says of its precision."""
    if dtype.char not in "fF":
        return _EXACT
    wanted = _tf32.get()
    return _ROUNDED if (config.tf32 if wanted is None else wanted) else _EXACT


class tf32:  # noqa: N801, a function to its users
    """Let products of float32 and complex64 on a GPU round their factors to TF32, for speed.

    Matrix products (``@``, ``matmul``, ``dot``, ``tensordot``, ``einsum``, ...) that are written within ``with lazynp.cuda.tf32():`` may
    use tensor cores, which take 10 bits of a factor's mantissa (float32 has 23) and add up in float32: about three decimal digits of each
    factor. It is off unless asked for: then products have NumPy's precision.

    Parameters
    ----------
    enabled : bool, optional
        ``False`` for a part of a program that wants float32, within such a block or where ``LAZYNP_TF32=1`` is set.

    Returns
    -------
    tf32
        A context manager, which can be entered more than once.

    Notes
    -----
    What counts is where the product is written, not where its value is computed. Nothing else is rounded, and nothing on the processor;
    GPUs before the generation of 2020 (compute capability 8.0) compute in float32 all the same. cuBLAS's mode is set for each such
    product and then set back, so that other users of CuPy keep theirs.

    Examples
    --------
    >>> import lazynp as np
    >>> x = np.ones((2, 3), dtype=np.float32)
    >>> with np.cuda.tf32():
    ...     y = x @ x.T
    >>> y
    array([[3., 3.],
           [3., 3.]], dtype=float32)
    """

    __module__ = "lazynp.cuda"

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = bool(enabled)
        self._tokens: list[Any] = []

    def __enter__(self) -> tf32:
        self._tokens.append(_tf32.set(self.enabled))
        return self

    def __exit__(self, *_: object) -> None:
        _tf32.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"lazynp.cuda.tf32({self.enabled})"


def copied(node: Node, name: str) -> Node:
    """The same value on a device."""
    if name != CPU:
        use()
    elif gpus is None:
        return node
    return node if home(node) == name else Node(o.COPY, (node,), name, node.dtype, node.shape, site_of(node))


def pinned(node: Node, name: str | None) -> Node:
    """A value that was made just now, on the device that was asked for or that of the ``with`` block."""
    name = name or _chosen.get()
    return node if name is None else copied(node, name)


def kept(node: Node, old: Node, whole: bool = True) -> Node:
    """Bring what is written into an array to the device where the array is: a write moves no array.

    ``whole``: nothing of the old value remains, so that what is nowhere in particular has to be sent there, too.  Else it is computed with
    what remains; but if it is computed on another device before, the array would follow it there, or could not be computed.
    """
    if not _named or (len(_named) == 1 and default() in _named):
        return node  # there is one device only
    name, at = home(old), home(node)
    if name is None or (at == name and (name != CPU or _stays(node, _homes))):
        return node
    if at is None and not whole and (_is_number(node) or (name != CPU and default() in (CPU, name))):
        return node
    return Node(o.COPY, (node,), name, node.dtype, node.shape, site_of(node))


def _is_number(node: Node) -> bool:
    return (node.src[0] if node.op is o.EXPAND else node).op is o.CONST


def made(node: Node) -> Node:
    """A leaf that was made just now, at home on the device of the ``with`` block."""
    name = _chosen.get()
    if name is not None and node.buffer is not None:
        node.buffer = node.buffer.at_home(name)
    return node


@contextmanager
def making(name: str | None) -> Iterator[None]:
    """Make arrays at home on a device within the block: results of NumPy's functions of values that live there."""
    if name is None:
        yield
        return
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def home(node: Node) -> str | None:
    """The device that a value belongs to; None: the default device, whichever that will be."""
    if gpus is None:
        return None
    return homes([node], known=_homes)[node]


def of(node: Node) -> str:
    """The device of a value."""
    return CPU if gpus is None else home(node) or default()


def homes(nodes: Iterable[Node], known: MutableMapping[Node, str] | None = None) -> dict[Node, str | None]:
    """The homes of pending nodes and of all that they are computed from, sources first.

    What is in ``known`` is not looked behind, and what is found is added to it: of an array that is written again and again only what was
    recorded since the last time.  The processor is added only where it stays: not while an operand is nowhere yet, which may come to be on
    a GPU.
    """
    pending = list(nodes)
    sources: dict[Node, tuple[Node, ...]] = {}
    while pending:
        node = pending.pop()
        if node not in sources:
            src = sources[node] = () if known and node in known else node.src
            pending += src
    found: dict[Node, str | None] = {}
    for node in sorted(sources, key=lambda node: node.number):
        target, buffer = node.arg, node.buffer  # in this order: another thread may publish the node meanwhile
        if buffer is not None:
            found[node] = buffer.device
        elif known and node in known:
            found[node] = known[node]
        elif node.op is o.COPY:
            found[node] = target
        else:
            home = found[node] = join([found[source] for source in sources[node]], node)
            if known is not None and home is not None and (home != CPU or all(_stays(source, known) for source in sources[node])):
                known[node] = home
    return found


def _stays(node: Node, known: MutableMapping[Node, str]) -> bool:
    """Tell whether the home of a value, the processor or none, is for ever."""
    return node.buffer is not None or node.op is o.COPY or node in known or _is_number(node)


def join(names: Iterable[str | None], node: Node) -> str | None:
    """The home of what is computed from values with these homes."""
    joined: str | None = None
    for other in names:
        if other is None or other == joined or (other == CPU and joined is not None):
            continue
        if joined is not None and joined != CPU:
            raise _mixed(joined, other, node)
        joined = other
    return joined


def _mixed(a: str, b: str, node: Node) -> ValueError:
    error = ValueError(f"operands are on two devices, {a} and {b}: x.to_device({a!r}) brings one to the other")
    error.add_note(f"recorded at {where(site_of(node))}")
    return error
