"""Iterators over arrays, element by element.

In: arrays.  Out: NumPy's iterators over their memory.  Promise: indices and scalars are NumPy's; what is written through an iterator is
in the array at once, but for arrays on a device, which have it when the iteration ends; a broadcast object computes nothing until its
values are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lazynp.arrays import ndarray
from lazynp.namespace.bridge.fallback import library, ours
from lazynp.scalars import is_scalar, number
from lazynp.values.loading import late

if TYPE_CHECKING:
    from lazynp import conversion, protocols, storage
    from lazynp.graph import build
else:
    conversion, build, protocols, storage = late("conversion", "graph.build", "protocols", "storage")


@library
class ndenumerate(np.ndenumerate):
    """Walk through an array, giving indices and values; see :class:`numpy.ndenumerate`."""

    iter: Any

    def __init__(self, arr: Any) -> None:
        super().__init__(protocols.snapshot(arr, "iteration") if type(arr) is ndarray else arr)
        values = map(number, self.iter) if type(arr) is ndarray else self.iter
        self._pairs = zip(product(*map(range, self.iter.base.shape)), values, strict=False)

    def __next__(self) -> Any:
        return next(self._pairs)


class _Stand:
    """An object that does a NumPy iterator's work and passes for one in ``isinstance``."""

    _iterator: Any

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.__dict__["_iterator"]) if "_iterator" in self.__dict__ else type(self)

    def __getattr__(self, name: str) -> Any:
        if name == "_iterator":
            raise AttributeError(name)
        return getattr(self._iterator, name)


class _Passing(type):
    """Metaclass: NumPy's own objects are instances too."""

    _numpy: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._numpy)


@library
class broadcast(_Stand, metaclass=_Passing):
    """Walk through arrays broadcast against each other; see :class:`numpy.broadcast`."""

    _numpy = np.broadcast

    def __init__(self, *arrays: Any) -> None:
        self._args = arrays
        # The shape needs no values.
        parts = [conversion.asarray(x) for x in arrays]
        self._iterator = np.broadcast(*[np.broadcast_to(np.empty((), bool), x.shape) for x in parts])
        self._started = False

    def _values(self) -> Any:
        if not self._started:
            self._iterator = np.broadcast(*[storage.host(x, "iteration") if type(x) is ndarray else x for x in self._args])
            self._started = True
        return self._iterator

    @property
    def iters(self) -> Any:
        """An iterator for each array."""
        return self._values().iters

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return ours(next(self._values()))


def _writes(flags: Any) -> bool:
    return any(flag in ("readwrite", "writeonly", "updateifcopy") for flag in flags)


class _Operands:
    """The operands of an iterator: the memory of our arrays; of those on a device a copy where the iterator may write."""

    def __init__(self, op: Any, op_flags: Any) -> None:
        self.several = isinstance(op, (list, tuple))
        given = list(op) if self.several else [op]
        flags: Sequence[Any] = op_flags or []
        each = list(flags) if flags and not isinstance(flags[0], str) else [flags] * len(given)
        # Our array, the iterator's memory, and what our array has of it.
        self.written: list[tuple[ndarray, np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self.known: dict[int, ndarray] = {}  # whose memory
        self.values = [self._value(x, each[k] if k < len(each) else ()) for k, x in enumerate(given)]
        self.is_numpys = not self.written and all(x is not None for x in given)

    def _value(self, x: Any, flags: Any) -> Any:
        if is_scalar(x):
            return x.concrete("iteration")
        if type(x) is not ndarray:
            return x
        if not _writes(flags):
            return protocols.snapshot(x, "iteration")
        memory = storage.lend(x)
        if memory is None:
            memory = storage.host(x, "iteration").copy(order="K")
            if x._readonly:
                memory.flags.writeable = False
            else:
                self.written.append((x, memory, memory.copy(order="K")))
        self.known[id(memory)] = x
        return memory

    def argument(self) -> Any:
        return self.values if self.several else self.values[0]

    def write_back(self) -> None:
        for x, copy, seen in self.written:
            if copy.tobytes() != seen.tobytes():
                seen[...] = copy
                x._write(build.buffer(np.array(copy, order="C")))


@library
class nditer(_Stand, metaclass=_Passing):
    """Walk through several arrays, element by element or in chunks; see :class:`numpy.nditer`.

    The elements that it yields are NumPy arrays over the memory of ours; where it makes no array it is NumPy's own iterator.
    """

    _numpy = np.nditer

    def __new__(
        cls, op: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, order: Any = "K", casting: Any = "safe",
        op_axes: Any = None, itershape: Any = None, buffersize: int = 0,
    ) -> Any:  # fmt: skip
        held = _Operands(op, op_flags)
        iterator = np.nditer(held.argument(), flags, op_flags, op_dtypes, order, casting, op_axes, itershape, buffersize)
        return iterator if held.is_numpys else cls._around(iterator, held)

    @classmethod
    def _around(cls, iterator: Any, held: _Operands) -> Any:
        made = object.__new__(cls)
        made.__dict__.update(_iterator=iterator, _held=held)
        return made

    @property
    def operands(self) -> tuple[Any, ...]:
        """The arrays iterated over, those that the iterator made among them.

        As long as the iteration goes on this is its memory, which may be written; afterwards they are arrays of ours.
        """
        if not self._iterator.finished:
            return tuple(self._iterator.operands)
        self._held.write_back()
        known = self._held.known
        return tuple(
            [known[id(x)] if id(x) in known else conversion.from_numpy(x) if type(x) is np.ndarray else x for x in self._iterator.operands]
        )

    def __len__(self) -> int:
        return len(self._iterator)

    def __getitem__(self, key: Any) -> Any:
        return self._iterator[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._iterator[key] = value.concrete("iteration") if is_scalar(value) else value
        self._held.write_back()

    def __iter__(self) -> Iterator[Any]:
        return self if self._held.written else self._iterator

    def __next__(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            self._held.write_back()
            raise

    def iternext(self) -> bool:
        """One step; whether there is one more."""
        more: bool = self._iterator.iternext()
        if not more:
            self._held.write_back()
        return more

    def copy(self) -> Any:
        """An iterator at the same place."""
        return self._around(self._iterator.copy(), self._held)

    def close(self) -> None:
        """End the iteration; what was written is in the arrays."""
        self._iterator.close()
        self._held.write_back()

    def __enter__(self) -> Any:
        self._iterator.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if "_held" in self.__dict__ and "_iterator" in self.__dict__:
            self._held.write_back()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_held", "_iterator"):
            self.__dict__[name] = value
        else:
            setattr(self._iterator, name, value)


@library
def nested_iters(op: Any, axes: Any, flags: Any = None, op_flags: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Make iterators nested over groups of axes; see :func:`numpy.nested_iters`."""
    held = _Operands(op, op_flags)
    made = np.nested_iters(held.argument(), axes, flags, op_flags, *args, **kwargs)
    return made if held.is_numpys else tuple([nditer._around(it, held) for it in made])


nested_iters.__wrapped__ = np.nested_iters  # type: ignore[attr-defined]  # its signature

FUNCTIONS: Final = {"ndenumerate": ndenumerate, "broadcast": broadcast, "nditer": nditer, "nested_iters": nested_iters}
