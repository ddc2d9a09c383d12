"""Classes that are rows of named fields, and cheap to define.

In: a class body with annotations, as for ``dataclasses.dataclass``.  Out: slots, a constructor that takes the fields by position or by
name, equality, repr and patterns by position (``case Store(dtype, memory)``).  Promise: at import a class costs one small function; a
data class with slots costs four functions and the class made twice, which for the dozens of the scheduler and the code generator was a
sixth of the time to a process's first result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, dataclass_transform


class _Made:
    """A default that is made anew for every object."""

    __slots__ = ("factory",)

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


def field(*, factory: Callable[[], Any]) -> Any:
    """A field whose default is what ``factory`` returns."""
    return _Made(factory)


@dataclass_transform(field_specifiers=(field,))
class _RecordType(type):
    __match_args__: tuple[str, ...]

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _RecordType:
        if "__slots__" in body:  # a class like others, which goes on from a record
            return super().__new__(cls, name, bases, body)
        fields = tuple(body.get("__annotations__", ()))
        defaults = {field: body.pop(field) for field in fields if field in body}  # a slot cannot have one
        body["__slots__"] = body["__match_args__"] = fields
        if fields:
            body["__init__"] = _constructor(fields, defaults)
        return super().__new__(cls, name, bases, body)


def _constructor(fields: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """``def __init__(self, a, b=default_b)``, with one assignment for each field."""
    parameters = ["self"]
    lines = []
    for name in fields:
        parameters.append(f"{name}=default_{name}" if name in defaults else name)
        made = f"default_{name}.factory() if {name} is default_{name} else " if isinstance(defaults.get(name), _Made) else ""
        lines.append(f"    self.{name} = {made}{name}\n")
    scope: dict[str, Any] = {f"default_{name}": default for name, default in defaults.items()}
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(lines)}", scope)
    return scope["__init__"]


class Record(metaclass=_RecordType):
    """The base of such classes; one whose objects never change is better a ``NamedTuple``."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).__match_args__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__match_args__)
        return f"{type(self).__name__}({fields})"
