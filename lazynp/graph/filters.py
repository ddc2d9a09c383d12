"""What Python's filters of warnings say of floating-point errors, when an operation is recorded.

In: ``warnings.filters``.  Out: whether a warning of such an error is told with the value, never, or at the call.  Promise: the filters in
force at the call decide.  What they drop is silent for ever.  What they make an exception of, and all that a block which has filters of its
own (``catch_warnings``, ``pytest.warns``) would hear, is computed at the call, so that it stays within the block.  Asking costs a look at
the list.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

try:  # the list outside of all blocks, wherever this is imported first
    from _warnings import filters as process
except ImportError:
    process = warnings.filters  # type: ignore[assignment]

LATER: Final = 0
NEVER: Final = 1
AT_CALL: Final = 2

_TEXTS: Final = tuple([f"{what} encountered in " for what in ("divide by zero", "overflow", "underflow", "invalid value")])
_SPECIAL: Final = frozenset("\\.^$*+?{}[]|()")  # characters of patterns that do not stand for themselves


def are_the_process() -> bool:
    """Tell whether the filters in force are those outside of all blocks."""
    return warnings.filters is process


returned: Final[list[Callable[[], None]]] = []  # called when the filters outside of all blocks may be in force again


def read() -> int:
    """Read what the filters in force say, which have changed."""
    if are_the_process():
        for tell in returned:
            tell()
    actions = set()
    for action, message, category, module, line in warnings.filters:
        if not issubclass(RuntimeWarning, category) or not _may_match(message):
            continue
        actions.add(action)
        if message is None and module is None and line == 0:
            break
    else:
        actions.add(warnings.defaultaction)  # type: ignore[attr-defined]
    if actions == {"ignore"}:
        return NEVER
    return AT_CALL if "error" in actions or not are_the_process() else LATER


def _may_match(message: Any) -> bool:
    """Tell whether a pattern of a filter may match a floating-point error."""
    if message is None:
        return True
    pattern = message if isinstance(message, str) else message.pattern
    end = next((k for k, character in enumerate(pattern) if character in _SPECIAL), len(pattern))
    head = "" if "|" in pattern else pattern[:end].lower()
    return any(text.startswith(head) or head.startswith(text) for text in _TEXTS)


class Filters:
    """The answers of the filters when they were asked last, and what they were then."""

    __slots__ = ("held", "said", "seen")

    def __init__(self) -> None:
        self.seen: Any = None
        self.held: list[Any] = []
        self.said = LATER

    def now(self) -> int:
        """``read``, where they are not what they were."""
        at: Any = warnings.filters
        if at is not self.seen or at != self.held:
            self.said = read()
            self.seen, self.held = at, list(at)
        return self.said

    def forget(self) -> None:
        """Ask anew the next time."""
        self.seen = None


_filters: Final = Filters()
said: Final = _filters.now
asking_anew: Final[list[Callable[[], None]]] = [_filters.forget]  # of all that remember what the filters said
