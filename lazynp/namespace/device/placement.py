"""Arrays on devices.

In: arrays and names of devices.  Out: the same values on another device; what the processor did for a GPU, counted.  Promise: nothing is
computed, and no driver is touched for the processor.
"""

from __future__ import annotations

from typing import Any

from lazynp.arrays import ndarray, node_of, wrap_ordered
from lazynp.engine import devices
from lazynp.graph import report
from lazynp.graph.node import caller
from lazynp.layout import copy_order
from lazynp.scalars import CLASSES, scalar_of


def moved(x: Any, name: str) -> Any:
    """The same values on a device; the array itself where they live there."""
    devices.checked(name)
    if (name == devices.CPU and devices.gpus is None) or (type(x) is not ndarray and type(x) not in CLASSES):
        return x
    if type(x) is not ndarray:
        return scalar_of(devices.copied(node_of(x), name))
    if x.device == name and devices.home(node_of(x)) == name:
        return x
    return wrap_ordered(devices.copied(node_of(x), name), copy_order(x, "K"))


def on_gpu(x: Any) -> bool:
    """Tell whether a value belongs to a GPU."""
    return devices.gpus is not None and type(x) is ndarray and x.device != devices.CPU


def count_on_host(name: str, *arrays: Any) -> None:
    """Count what is done on the processor for values of a GPU."""
    if any(map(on_gpu, arrays)):
        report.count_on_host(name, sum(x.nbytes for x in arrays if type(x) is ndarray), caller())
