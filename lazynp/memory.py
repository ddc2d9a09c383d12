"""Values in host memory: reading an array through NumPy, and filling one element by element.

In: arrays.  Out: NumPy arrays over their memory with the nominal strides, and *drafts*.  Promise: ``host`` computes what is pending and
copies nothing; a draft is seen by one cell only, and becomes a node, never to be written again, before anybody else may see it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lazynp import arrays
from lazynp.conversion import asarray
from lazynp.graph import build
from lazynp.graph import op as o
from lazynp.graph.node import Node
from lazynp.scalars import CLASSES, force
from lazynp.views import Region, View


class Draft:
    """Memory of an array that is being filled: owned by one cell, seen by nobody else."""

    __slots__ = ("array", "dtype", "shape")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape


def host(x: Any, reason: str = "__array__") -> np.ndarray[Any, Any]:
    """The value as a NumPy array with the nominal strides; no copy, so callers must not write to it."""
    if type(x) is not arrays.ndarray:
        if type(x) in CLASSES:
            return np.asarray(x.concrete(reason))
        return host(asarray(x), reason) if not isinstance(x, np.ndarray) else x
    base = x._base
    root = base if type(base) is arrays.ndarray else x
    node = arrays.root_node(root)
    if node.op is o.CONST:
        array = np.asarray(node.arg)
    else:
        if node.buffer is None:
            force([node], reason)
        assert node.buffer is not None
        array = node.buffer.array
    if root is x:
        return array
    return shown(x, array)


def shown(x: arrays.ndarray, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a view shows of its base's memory."""
    view: View = x._view
    if memory.shape != view.root or memory.dtype != view.root_dtype:
        memory = memory.reshape(-1).view(view.root_dtype).reshape(view.root)
    return view.memory(memory)


def cell(x: arrays.ndarray, memory: np.ndarray[Any, Any], region: Region) -> np.ndarray[Any, Any]:
    """One element of a view, at a region of single indices, as an array of length one over its base's memory."""
    view: View = x._view
    offset, strides = view.geometry()
    for (start, _), stride in zip(region, strides, strict=True):
        offset += start * stride
    return np.ndarray((1,), view.dtype, memory, offset)


def published(root: arrays.ndarray) -> Node:
    """The node of an array that was being filled; its memory is not written again."""
    node = build.buffer(root._base.array)
    root._node = node
    root._base = None
    return node


def draft(root: arrays.ndarray) -> np.ndarray[Any, Any]:
    """Memory of a plain array that may be written now, because nobody else sees it."""
    base = root._base
    if base is None:
        node = root._node
        one = node.src[0] if node.op is o.EXPAND else node
        if one.op is o.CONST:
            memory = np.full(node.shape, one.arg, node.dtype)
        else:
            force([node], "element writes")
            memory = node.buffer.array.copy()
        base = root._base = root._view = Draft(memory)
        root._node = None
    found: np.ndarray[Any, Any] = base.array
    return found
