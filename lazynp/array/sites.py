"""Where in a program an operator's result goes.

In: a code object, and the names it sees.  Out: the operators and calls in it whose result the next operator of the same line gets, and
nobody else.  Promise: what is not known for certain is denied; one walk over the instructions, each with a bounded look around it.

An array on the interpreter's stack is seen by nobody until an instruction takes it from there.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from lazynp.array.core import Ufunc

_UNARY: Final = frozenset({"UNARY_NEGATIVE", "UNARY_INVERT"})
_FUSED: Final = frozenset({"+", "-", "*", "/", "&", "|", "^", "**"})
# Functions that are steps as operators are: those whose loops are IEEE arithmetic.
_FUNCTIONS: Final = frozenset({
    "sqrt", "absolute", "fabs", "square", "negative", "add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "less_equal",
    "equal", "not_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or", "invert",
})  # fmt: skip
# Instructions that may stand between: those that take nothing from the stack, and those that leave one value for some.
_LOADS: Final = frozenset({
    "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_CONST",
    "LOAD_CONST_IMMORTAL", "LOAD_CONST_MORTAL", "LOAD_SMALL_INT", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "PUSH_NULL",
})  # fmt: skip
_TAKES: Final = {
    "BINARY_SUBSCR": 2, "BINARY_SLICE": 3, "LOAD_ATTR": 1, "LOAD_METHOD": 1, "BINARY_OP": 2, "COMPARE_OP": 2, **dict.fromkeys(_UNARY, 1),
}  # fmt: skip
_BUILD: Final = frozenset({"BUILD_SLICE", "BUILD_TUPLE"})
_NOTHING: Final = frozenset({"NOP", "CACHE", "EXTENDED_ARG", "PRECALL", "NOT_TAKEN"})

Names = Mapping[str, Any]
Instructions = list[dis.Instruction]

_present: Final = vars(ModuleType)["__dict__"].__get__  # a module's names; `vars` of one of ours looks all up that it could have

_FURTHEST: Final = 200  # instructions between two operators; more are more steps than a chain has


def places(code: CodeType, names: Names) -> bytearray:
    """Tell of each instruction (two bytes) whether its result is an operand of another operator of its line, and is nothing else."""
    found = bytearray(len(code.co_code) // 2)
    every = list(dis.get_instructions(code))
    instructions = [instruction for instruction in every if instruction.opname not in _NOTHING]
    for at, instruction in enumerate(instructions):
        if _is_step(instructions, at, names):
            found[instruction.offset // 2] = _consumed(instructions, at, names)
    for instruction, after in pairwise(every):
        if instruction.opname == "PRECALL":  # which makes the call, before 3.12, once the interpreter knows what is called
            found[instruction.offset // 2] = found[after.offset // 2]
    return found


def _consumed(instructions: Instructions, at: int, names: Names) -> bool:
    line = _line(instructions[at])
    above = 0  # values that lie on top of the result
    for k in range(at + 1, min(at + _FURTHEST, len(instructions))):
        instruction = instructions[k]
        effects = _effects(instruction)
        if effects is None:
            return False
        takes, leaves = effects
        if takes > above:
            if instruction.opname == "COMPARE_OP" and above == 0:
                return False  # whose right operand the interpreter asks first if its class is a subclass of the left one's
            if instruction.opname == "CALL" and above >= (instruction.arg or 0):
                return False  # it is what is called
            return _is_step(instructions, k, names) and _line(instruction) == line
        if instruction.opname == "CALL" and _called(instructions, k, names) is None:
            return False  # a function that may do anything
        above += leaves - takes
    return False


def _effects(instruction: dis.Instruction) -> tuple[int, int] | None:
    """Return how many values an instruction takes from the stack and how many it leaves; None if it may not stand between operators."""
    name, arg = instruction.opname, instruction.arg
    if name == "CALL":  # what is called, ``self`` or what marks that there is none, and the arguments
        return (arg or 0) + 2, 1
    effect = dis.stack_effect(instruction.opcode, arg)
    if name in _LOADS:
        return 0, effect
    takes = arg if name in _BUILD else _TAKES.get(name)
    return None if takes is None else (takes, takes + effect)


def _is_step(instructions: Instructions, k: int, names: Names) -> bool:
    """Tell whether it is an operator, or a ufunc's call, whose result may be computed together with others; one in place is not."""
    instruction = instructions[k]
    name = instruction.opname
    if name == "BINARY_OP":
        return instruction.argrepr in _FUSED
    if name == "COMPARE_OP":
        return "bool" not in instruction.argrepr  # whether all of it is true
    if name == "CALL":
        called = _called(instructions, k, names)
        return called is abs or getattr(called, "__name__", None) in _FUNCTIONS
    return name in _UNARY


def _called(instructions: Instructions, k: int, names: Names) -> Any:
    """The ufunc that a call without keywords calls by its name, or `abs`; None of all others."""
    below = instructions[k].arg or 0  # the arguments lie on top of what is called
    if instructions[k - 1].opname == "KW_NAMES":
        return None
    for number in range(k - 1, max(k - _FURTHEST, -1), -1):
        effects = _effects(instructions[number])
        if effects is None:
            return None
        takes, leaves = effects
        if below >= leaves:
            below += takes - leaves
        elif instructions[number].opname != "PUSH_NULL":  # by which the interpreter marks that there is no ``self``
            return _named(instructions, number, names)
    return None


def _named(instructions: Instructions, k: int, names: Names) -> Any:
    """Return what a name, or an attribute of a module, means."""
    instruction = instructions[k]
    if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and k:
        module = _named(instructions, k - 1, names)
        name = instruction.argval
        if isinstance(module, ModuleType):
            # lazynp's own names appear when they are first asked for; of other modules nothing is asked that might import more
            found = getattr(module, name, None) if module.__name__ in ("lazynp", "numpy") else _present(module).get(name)
        else:
            found = None
    elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        found = names.get(instruction.argval)
        if found is None and instruction.argval == "abs":
            return abs
    else:
        return None
    return found if isinstance(found, (ModuleType, Ufunc)) else None


def there(code: CodeType, offset: int) -> Callable[..., Any]:
    """Return what calls a function with its arguments as if it stood at a place of the program, whose line warnings shall name."""
    line = next((_line(instruction) for instruction in dis.get_instructions(code) if instruction.offset == offset), None)
    placed = _call.__code__.replace(co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=line or code.co_firstlineno)
    return FunctionType(placed, {"__name__": code.co_name, "__builtins__": builtins})  # by which C code imports


_call = lambda function, *args: function(*args)  # noqa: E731 - in one line, which is that of the place


def _line(instruction: dis.Instruction) -> int | None:
    return None if instruction.positions is None else instruction.positions.lineno
