"""Classes that are rows of named fields, and cheap to define.

In: a class body with annotations, as for ``dataclasses.dataclass`` or ``typing.NamedTuple``.  Out: ``Record``, whose objects change: slots,
a constructor that takes the fields by position or by name, equality, repr and patterns by position (``case Store(dtype, memory)``); and
``Row``, a tuple with named fields.  Promise: at import a class costs next to nothing, its constructor is made with the first object.  A
data class with slots costs four functions and the class made twice, a ``NamedTuple`` a check of every annotation: for the dozens of the
scheduler and the code generator that was a sixth of the time to a process's first result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, dataclass_transform


class _Made:
    """A default that is made anew for every object."""

    __slots__ = ("factory",)

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


def field(*, factory: Callable[[], Any]) -> Any:
    """A field whose default is what ``factory`` returns."""
    return _Made(factory)


def _fields(body: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Take the fields of a class out of its body, and their defaults."""
    fields = tuple(body.get("__annotations__", ()))
    return fields, {field: body.pop(field) for field in fields if field in body}  # a slot cannot have one


@dataclass_transform(field_specifiers=(field,))
class _RecordType(type):
    __match_args__: tuple[str, ...]

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _RecordType:
        if "__slots__" in body:  # a class like others, which goes on from a record
            return super().__new__(cls, name, bases, body)
        fields, defaults = _fields(body)
        body["__slots__"] = body["__match_args__"] = fields
        made = super().__new__(cls, name, bases, body)
        if fields:
            made.__init__ = _first(made, fields, defaults)  # type: ignore[misc]
        return made


def _first(cls: type, fields: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """The constructor of a class's first object, which makes that of all others."""

    def init(self: Any, *args: Any, **named: Any) -> None:
        cls.__init__ = made = _constructor(fields, defaults)  # type: ignore[misc]
        made(self, *args, **named)

    return init


def _constructor(fields: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """``def __init__(self, a, b=default_b)``, with one assignment for each field."""
    lines = []
    for name in fields:
        made = f"default_{name}.factory() if {name} is default_{name} else " if isinstance(defaults.get(name), _Made) else ""
        lines.append(f"    self.{name} = {made}{name}\n")
    return _compiled("__init__", "self", fields, defaults, "".join(lines))


def _compiled(function: str, first: str, fields: tuple[str, ...], defaults: dict[str, Any], body: str) -> Any:
    parameters = [first, *[f"{name}=default_{name}" if name in defaults else name for name in fields]]
    scope: dict[str, Any] = {f"default_{name}": default for name, default in defaults.items()}
    scope["tuple_of"] = tuple.__new__
    exec(f"def {function}({', '.join(parameters)}):\n{body}", scope)
    return scope[function]


class Record(metaclass=_RecordType):
    """The base of such classes; one whose objects never change is better a ``Row``."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).__match_args__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__match_args__)
        return f"{type(self).__name__}({fields})"


if TYPE_CHECKING:
    from typing import NamedTuple as Row
else:
    try:
        from _collections import _tuplegetter as _getter
    except ImportError:  # not CPython

        def _getter(position: int, doc: str) -> Any:
            return property(itemgetter(position))

    class _RowType(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _RowType:
            fields, defaults = _fields(body)
            body["__slots__"] = ()
            body["__match_args__"] = body["_fields"] = fields
            body.update({name: _getter(position, "") for position, name in enumerate(fields)})
            made = super().__new__(cls, name, bases, body)
            if fields:
                made.__new__ = staticmethod(_first_row(made, fields, defaults))
            return made

    def _first_row(cls: type, fields: tuple[str, ...], defaults: dict[str, Any]) -> Any:
        def new(cls_: type, *args: Any, **named: Any) -> Any:
            text = f"    return tuple_of(cls_, ({', '.join(fields)},))\n"
            made = _compiled("__new__", "cls_", fields, defaults, text)
            cls._replace = _replacing(fields)
            cls.__new__ = staticmethod(made)  # last: an interrupt may come, and another thread
            return made(cls_, *args, **named)

        return new

    def _replacing(fields: tuple[str, ...]) -> Any:
        """``_replace``, with one condition for each field."""
        values = ", ".join([f"self[{position}] if {name} is default_{name} else {name}" for position, name in enumerate(fields)])
        text = f"    return tuple_of(type(self), ({values},))\n"
        return _compiled("_replace", "self, /, *", fields, dict.fromkeys(fields, object()), text)

    class Row(tuple, metaclass=_RowType):
        """A tuple with named fields: ``typing.NamedTuple``, of which type checkers take it for one, but for the time it takes to define."""

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Any:
            return cls(*values)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in zip(self._fields, self, strict=True)])})"
