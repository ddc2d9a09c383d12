"""The Python twin of the native core: the same names and signatures, for where nothing could be compiled."""

from __future__ import annotations

from typing import Any


class Cell:
    """The cell that every array is made of; see ``lazynp.arrays.ndarray`` for the meaning of its slots."""

    __slots__ = ("__weakref__", "_base", "_node", "_readonly", "_stamp", "_view")

    _base: Any
    _node: Any
    _readonly: Any
    _stamp: Any
    _view: Any


def register(cls: type) -> None:
    """Make ``cls`` the class of arrays; its methods are all there is."""
