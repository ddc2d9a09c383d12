"""The NumPy tier: the oracle of the tests, and what runs programs too small to compile.

In: a ``Program``.  Out: a plan whose ``run`` is one generated Python function.  Promise: values are those of NumPy's own calls
in the recorded order; byte code is made once per pattern of operations, whatever the shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from lazynp.backends.base import ExecutionError
from lazynp.backends.numpy.source import NAMESPACE, Source, translate
from lazynp.runtime import config
from lazynp.runtime.buffer import Buffer
from lazynp.schedule.canonicalise import Program

FILENAME: Final = "<lazynp numpy tier>"
CODES: Final = 1024  # texts whose byte code is kept

_codes: dict[str, CodeType] = {}


def _code(text: str) -> CodeType:
    code = _codes.get(text)
    if code is None:
        module = compile(text, FILENAME, "exec", dont_inherit=True)
        code = next(const for const in module.co_consts if isinstance(const, CodeType))
        if len(_codes) >= CODES:
            _codes.pop(next(iter(_codes)), None)
        _codes[text] = code
    return code


class NumpyPlan:
    """One generated function and the map from its lines to entries."""

    __slots__ = ("_function", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self._function: Callable[..., list[Buffer]] = FunctionType(
            _code(source.text), NAMESPACE, "run", source.constants or None
        )

    def run(self, buffers: list[Buffer], integers: list[int], scalars: list[Any]) -> list[Buffer]:
        """See ``Plan.run``."""
        try:
            with np.errstate(all="ignore"):
                return self._function(buffers, integers, scalars)
        except Exception as error:
            raise ExecutionError(self._failed(error), error) from error

    def _failed(self, error: BaseException) -> int | None:
        """The entry whose line raised."""
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code is self._function.__code__:
                return self.source.lines[traceback.tb_lineno - 1]
            traceback = traceback.tb_next
        return None


class NumpyBackend:
    """See ``Backend``."""

    name = "numpy"

    def prepare(self, program: Program) -> NumpyPlan:
        """See ``Backend.prepare``."""
        return NumpyPlan(translate(program, config.debug))
