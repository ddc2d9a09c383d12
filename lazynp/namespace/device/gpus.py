"""What is done otherwise where values live on GPUs.

In: the questions of modules that are written as if there were the processor alone; each names what it is about to do.  Out: that done on
a GPU, or None or False where the values are the processor's, or NumPy has to do it on host copies after all.  Promise: all such questions
are methods here and go through ``engine/devices.py``, whose ``gpus`` is None, and not asked, until a GPU is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazynp.arrays import ndarray, node_of, wrap
from lazynp.conversion import asarray
from lazynp.engine import devices
from lazynp.graph.dtypes import DType
from lazynp.graph.node import Node, Shape
from lazynp.namespace.device import accumulating, drawing, placement, routines, scattering, sequences, sharing


class GPUs:
    """The hook: see the modules that do the work."""

    # Where values are at home
    kept = staticmethod(devices.kept)
    made = staticmethod(devices.made)
    moved = staticmethod(placement.moved)
    count_on_host = staticmethod(placement.count_on_host)

    # Writes; each tells whether it was done
    write = staticmethod(scattering.written)
    write_flat = staticmethod(scattering.flat)
    write_item = staticmethod(scattering.item)
    at = staticmethod(accumulating.at)

    # Memory that is shared with other libraries
    adopted = staticmethod(sharing.adopted)
    from_gpu = staticmethod(sharing.from_gpu)
    interface = staticmethod(sharing.interface)
    dlpack = staticmethod(sharing.dlpack)
    exported = staticmethod(sharing.exported)

    # Random numbers
    drawn = staticmethod(drawing.drawn)

    # Reductions of segments
    reduceat = staticmethod(sequences.reduceat)

    # NumPy's functions by name
    def computed(self, name: str, args: Any, kwargs: dict[str, Any], nodes: list[Node]) -> Any:
        """Return the results of a function with the user's arguments, composed or CuPy's; None: the host's to do, counted."""
        done = routines.composed(name, args, kwargs, nodes, sequences.AT_CALL)
        return sharing.computed(name, args, kwargs, nodes) if done is None else done

    def item(
        self, name: str, args: Any, options: dict[str, Any], nodes: list[Node], outs: Sequence[tuple[DType, Shape]]
    ) -> list[Node] | None:
        """Return the results of an item of the schedule, composed of what a GPU has."""
        found = routines.composed(name, args, options, nodes)
        if found is None:
            return None
        made = [node_of(asarray(each)) for each in (found if isinstance(found, tuple) else (found,))]
        return made if all(node.dtype == dtype and node.shape == shape for node, (dtype, shape) in zip(made, outs, strict=False)) else None

    def at_once(self, name: str, args: Any, options: dict[str, Any], nodes: list[Node]) -> Any:
        """Return the results of a function whose shapes depend on values, composed or CuPy's."""
        done = routines.composed(name, args, options, nodes)
        if done is not None:
            return done
        return sharing.computed(name, [wrap(arg) if isinstance(arg, Node) else arg for arg in args], options, nodes)

    def positions(self, x: ndarray) -> list[ndarray] | None:
        """Return where an array is not zero, an index array per axis."""
        return sharing.positions(x)
