"""Memory of GPUs, for programs that want to know or to share it, and the precision of products there.

In: the name of a device.  Out: what is held there, or what was given back.  Promise: importing this touches no driver; where there is no
GPU, each function of memory says why, by the same error as ``lazynp.device``.

Nothing here is needed to use a GPU: ``docs/gpu.md`` says what is.
"""

from __future__ import annotations

from typing import Any

from lazynp.engine import devices as _devices
from lazynp.engine.devices import tf32
from lazynp.graph import usage as _usage

__all__ = ["free", "memory", "tf32"]


def _place(device: Any) -> Any:
    name = _devices.name_of(_devices.default() if device is None else device)
    if name == _devices.CPU:
        if device is not None:
            raise ValueError(f"device {device!r} is no GPU: lazynp.memory() says what the processor's memory holds")
        name = "cuda:0"
    return _devices.place(name)


def memory(device: Any = None) -> dict[str, Any]:
    """Return how much memory of a GPU is in use, and for what.

    Parameters
    ----------
    device : str, optional
        The device, such as ``"cuda:1"``. Without one it is the default device, or ``"cuda:0"`` where that is the processor.

    Returns
    -------
    dict
        The ``device``, and bytes: ``total`` and ``free`` as the driver counts them, for all processes; what CuPy's pool has given out in
        this one (``pool_used``, which includes other users of CuPy) and keeps for reuse (``pooled``); what lazynp's values ``held`` at this
        moment, of it ``large`` values (1 MiB and more), and these at their peak (``large_peak``); ``copies`` of arrays in host memory that
        are kept because they may be read again. ``lines``: which lines made the values, a dictionary of ``line``, ``bytes`` and ``values``
        each, the largest first.

    Raises
    ------
    ValueError
        There is no such device; the error says what is missing.

    See Also
    --------
    lazynp.memory : The same of the machine's own memory, and of all GPUs in use.

    Examples
    --------
    >>> import lazynp as np
    >>> x = np.ones(1000, device="cuda") * 2  # doctest: +SKIP
    >>> np.cuda.memory()["held"]  # doctest: +SKIP
    8000
    """
    place = _place(device)
    return {**place.memory(), **_usage.on_device(place.account)}


def free(device: Any = None) -> int:
    """Give memory of a GPU that no array needs back to the driver, for other processes and libraries.

    What is kept only because it may be wanted again goes: copies of arrays in host memory, what FFTs work in, and free blocks of CuPy's
    pool, which other users of CuPy in this process share. Values are not touched.

    Parameters
    ----------
    device : str, optional
        The device, such as ``"cuda:1"``. Without one it is the default device, or ``"cuda:0"`` where that is the processor.

    Returns
    -------
    int
        How many bytes CuPy's pool has less.

    Raises
    ------
    ValueError
        There is no such device; the error says what is missing.

    Notes
    -----
    Nothing of it is needed to compute: when memory is full, the same is done before an allocation fails.

    Examples
    --------
    >>> import lazynp as np
    >>> freed = np.cuda.free()  # doctest: +SKIP
    """
    freed: int = _place(device).free()
    return freed

