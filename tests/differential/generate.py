"""Random programs: well-typed NumPy scripts over a small pool of arrays.

In: hypothesis.  Out: a ``Script``: lines of NumPy source, each of which ran under NumPy while it was drawn; the last one may raise,
and then says what.  Inputs have awkward values, shapes broadcast against each other, variables are views of others and are written
through.  A failing script is its own report: it needs nothing but NumPy to be read and run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy
from hypothesis import strategies as st

NATIVE: Final = "?bhilBHILefdFD"
LARGEST: Final = 600  # elements of a variable
HEADER: Final = "import numpy\nfrom numpy import inf, nan\n"

INTEGERS: Final = [0, 1, 2, 3, 5, 7, 64, 100, 127]
FLOATS: Final = [0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 0.1, 100.0, -0.0, 1e-5, 1e30, float("inf"), float("-inf"), float("nan")]
SCALARS: Final = ["0", "1", "2", "-1", "3", "0.5", "2.0", "-1.5", "True", "1e10", "nan", "1j", "300"]


def words(text: str) -> list[str]:
    return text.split()


EXACT_UNARY: Final = words(
    "negative absolute sign square positive sqrt floor ceil trunc rint reciprocal isnan isinf isfinite signbit logical_not invert "
    "conjugate fabs spacing bitwise_count"
)
INEXACT_UNARY: Final = words(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt deg2rad"
)
BINARY: Final = words(
    "add subtract multiply divide floor_divide remainder fmod maximum minimum fmax fmin less less_equal greater greater_equal equal "
    "not_equal copysign nextafter bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm logical_and logical_or logical_xor "
    "heaviside power hypot arctan2 logaddexp logaddexp2 float_power add subtract multiply divide add multiply"
)
OPERATORS: Final = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "less": "<",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
}
IN_PLACE: Final = ["+", "-", "*", "/", "//", "%", "&", "|", "^"]
# Functions that may return either zero of a tie, or start from one: the sign of a zero is not compared in scripts that use them.
ZERO_TIES: Final = words("max min sum sort mean prod clip ptp var std matmul dot cum")


@dataclass
class Script:
    """Source lines, and the exception type of the last one if that raises."""

    lines: list[str] = field(default_factory=list)
    raises: type[Exception] | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def signed_zeros(self) -> bool:
        return not any(word in self.text for word in ZERO_TIES)

    def run(self, module: Any) -> dict[str, Any]:
        """The variables, with ``np`` standing for ``module``."""
        names: dict[str, Any] = {"np": module, "touch": numpy.asarray, "__name__": "program"}
        exec(HEADER, names)
        exec(compile(self.text, "<program>", "exec"), names)
        return {name: value for name, value in names.items() if name[0] == "v" and name[1:].isdigit()}

    def __repr__(self) -> str:
        ending = f"  # raises {self.raises.__name__}" if self.raises else ""
        return f"\nimport numpy as np\n{HEADER}touch = numpy.asarray\n{self.text.rstrip()}{ending}\n"


class Pool:
    """The variables so far, and how to draw from them."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.script = Script()
        self.names: dict[str, Any] = {"np": numpy, "touch": numpy.asarray}
        self.variables: list[str] = []
        self.count = 0
        exec(HEADER, self.names)

    def among(self, options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def pick(self, fits: Callable[[Any], bool] = lambda value: True) -> str | None:
        """A variable; the later ones are as good as the earlier ones."""
        names = [name for name in self.variables if fits(self.names[name])]
        return self.among(names) if names else None

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count - 1}"

    def execute(self, line: str, name: str | None = None) -> bool:
        """Run one line under NumPy; whether the script goes on."""
        try:
            with numpy.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(line, self.names)
        except Exception as error:
            # Any type: what NumPy raises is what is to be matched.  Now and then the script ends with it.
            if isinstance(error, (SyntaxError, NameError, AttributeError)):
                raise AssertionError(f"the generator wrote {line!r}") from error
            if self.number(0, 9) == 0:
                self.script.lines.append(line)
                self.script.raises = type(error)
                return False
            return True
        if name is not None:
            value = self.names[name]
            if numpy.asarray(value).dtype.char.replace("q", "l").replace("Q", "L") not in NATIVE or numpy.size(value) > LARGEST:
                return True
            self.variables.append(name)
        self.script.lines.append(line)
        return True


# Predicates -----------------------------------------------------------------------------------------------------------
def is_array(x: Any) -> bool:
    return isinstance(x, numpy.ndarray)


def has_axes(x: Any) -> bool:
    return is_array(x) and x.ndim > 0


def kind(letters: str) -> Callable[[Any], bool]:
    return lambda x: x.dtype.kind in letters


# Steps: each gives an expression for a new variable, or None where the pool has nothing for it ---------------------------
def _input(p: Pool) -> str:
    char = p.among(NATIVE)
    if p.number(0, 4):
        full = p.among([(2, 3, 4), (3, 4), (4,)])
        shape = tuple([n if p.number(0, 3) else 1 for n in full[p.number(0, len(full)) :]])
    else:
        shape = p.among([(), (0,), (7,), (33,), (0, 4), (5, 7), (2, 0, 3), (100,), (1, 1)])
    dtype = numpy.dtype(char)
    match dtype.kind:
        case "b":
            values: list[Any] = [p.flag() for _ in range(3)]
        case "i" | "u":
            info = numpy.iinfo(dtype)
            options = [*INTEGERS, int(info.max), int(info.min)] + ([] if dtype.kind == "u" else [-1, -2, -7])
            values = [p.among(options) for _ in range(p.number(1, 5))]
        case _:
            values = [65504.0 if v == 1e30 and char == "e" else v for v in (p.among(FLOATS) for _ in range(p.number(1, 5)))]
            if dtype.kind == "c":
                # Spelled out: 1j * inf has a NaN in it.
                values = [f"complex({v}, {p.among(FLOATS)})" for v in values]
    text = f"numpy.resize(numpy.array([{', '.join(map(str, values))}], {dtype.name!r}), {shape})"
    return f"np.array({text}{'.T' if p.number(0, 4) == 0 else ''})"


def _unary(p: Pool) -> str | None:
    x = p.pick()
    return x and f"np.{p.among(EXACT_UNARY if p.flag() else INEXACT_UNARY)}({x})"


def _operand(p: Pool) -> str:
    return p.among(SCALARS) if p.number(0, 2) == 0 else p.pick() or "1"


def _binary(p: Pool) -> str | None:
    a, b = p.pick(), _operand(p)
    if a is None:
        return None
    if p.number(0, 4) == 0:
        a, b = b, a
    name = p.among(BINARY)
    complex_ = any("c" in str(getattr(p.names.get(v), "dtype", "")) or "j" in v for v in (a, b))
    if name in OPERATORS and not complex_ and p.flag():
        return f"{a} {OPERATORS[name]} {b}"
    return f"np.{name}({a}, {b})"


def _square(p: Pool) -> str | None:
    x = p.pick(kind("fiu"))
    return x and f"{x} ** {p.among(['2', '1', '0'])}"


def _where(p: Pool) -> str | None:
    condition, a = p.pick(kind("b")), p.pick()
    if a is None:
        return None
    # Of complex numbers with a NaN, NumPy orders scalars and arrays differently.
    return f"np.where({condition or (f'{a} != 0' if kind('c')(p.names[a]) else f'{a} > 0')}, {a}, {_operand(p)})"


def _cast(p: Pool) -> str | None:
    x = p.pick()
    if x is None:
        return None
    to = numpy.dtype(p.among(NATIVE))
    value = numpy.asarray(p.names[x])
    if value.dtype.kind == "c" and to.kind not in "cb":
        return None
    if value.dtype.kind in "f" and to.kind in "iu":
        low = 0 if to.kind == "u" else -100
        if not (numpy.isfinite(value).all() and (value >= low).all() and (value <= 100).all()):
            return None  # what is out of range is up to the processor
    return f"{x}.astype({to.name!r})"


def _axis(p: Pool, ndim: int) -> Any:
    if not ndim or p.number(0, 3) == 0:
        return None
    if p.number(0, 3) == 0:
        return tuple([axis for axis in range(ndim) if p.flag()])
    return p.number(-ndim, ndim - 1)


def _reduction(p: Pool) -> str | None:
    x = p.pick()
    if x is None:
        return None
    name = p.among(words("sum prod max min any all mean var std argmax argmin count_nonzero ptp sum max"))
    axis = _axis(p, p.names[x].ndim)
    if name in ("argmax", "argmin") and isinstance(axis, tuple):
        axis = 0
    keep = ", keepdims=True" if p.number(0, 3) == 0 and name != "ptp" else ""
    return f"np.{name}({x}, axis={axis}{keep})"


def _scan(p: Pool) -> str | None:
    x = p.pick(is_array)
    return x and f"np.{p.among(['cumsum', 'cumprod'])}({x}, axis={p.among([None, *range(p.names[x].ndim)])})"


def _reshape(p: Pool) -> str | None:
    x = p.pick(is_array)
    if x is None:
        return None
    size = p.names[x].size
    shapes: list[Any] = [(-1,), (size,), (1, size), (size, 1)]
    shapes += [(n, size // n) for n in (2, 3, 4, 5) if size % n == 0] + [(2, -1, 3)] * (size % 6 == 0 and size > 0)
    return p.among([f"{x}.reshape({p.among(shapes)})", f"{x}.ravel()", f"np.reshape({x}, {p.among(shapes)})"])


def _movement(p: Pool) -> str | None:
    x = p.pick(has_axes)
    if x is None:
        return None
    ndim = p.names[x].ndim
    a, b = p.number(-ndim, ndim - 1), p.number(0, ndim - 1)
    order = tuple(p.draw(st.permutations(range(ndim))))
    return p.among(
        [
            f"{x}.T",
            f"np.transpose({x}, {order})",
            f"np.swapaxes({x}, {a}, {b})",
            f"np.moveaxis({x}, {a}, {b})",
            f"np.flip({x}, {a})",
            f"np.flip({x})",
            f"np.roll({x}, {p.number(-3, 5)}, axis={a})",
            f"np.roll({x}, 2)",
            f"np.expand_dims({x}, {b})",
            f"np.squeeze({x})",
            f"np.broadcast_to({x}, {(2, *p.names[x].shape)})",
            f"np.tile({x}, 2)",
            f"np.repeat({x}, 2, axis={a})",
            f"np.diff({x}, axis={a})",
            f"np.pad({x}, {p.number(0, 2)})",
            f"np.pad({x}, (1, 2), constant_values=3)",
            f"np.clip({x}, 0, 3)",
            f"{x}.copy()",
            f"{x}.real",
            f"{x}.imag",
        ]
    )


def _basic_key(p: Pool, shape: tuple[int, ...]) -> str:
    parts = []
    for n in shape:
        choice = p.number(0, 5)
        if choice == 0 and n:
            parts.append(str(p.number(-n, n - 1)))
        elif choice == 1:
            parts.append(":")
        elif choice == 2:
            parts.append(p.among(["::2", "::-1", "-1::-2", "1::3"]))
        elif choice == 3:
            parts.append(f"{p.number(-n - 1, n)}:{p.number(-n - 1, n + 1)}")
        elif choice == 4:
            parts.append(f"{p.number(0, 1)}:")
        else:
            parts.append(":-1")
    if p.number(0, 5) == 0:
        parts.insert(p.number(0, len(parts)), "None")
    if parts and p.number(0, 4) == 0:
        parts = parts[: p.number(0, len(parts))]
    if p.number(0, 5) == 0 or not parts:
        parts.insert(p.number(0, len(parts)) if len(parts) < len(shape) else len(parts), "...")
    return ", ".join(parts)


def _basic(p: Pool) -> str | None:
    x = p.pick(is_array)
    return x and f"{x}[{_basic_key(p, p.names[x].shape)}]"


def _advanced_key(p: Pool, shape: tuple[int, ...]) -> str:
    n = shape[0]
    low = [i for i in (0, 1, -1, n - 1, n // 2, 5) if -n <= i < n or p.number(0, 30) == 0]
    ints = [p.among(low or [0]) for _ in range(p.number(1, 4))]
    options = [f"{ints}", f"np.array({ints})", f"numpy.array([{ints}, {ints[::-1]}])"]
    if len(shape) > 1 and shape[1]:
        options += [f":, {[i % shape[1] for i in ints]}", f"{ints}, {[i % shape[1] for i in ints]}", f"{ints}, ::2"]
    return p.among(options)


def _advanced(p: Pool) -> str | None:
    x = p.pick(has_axes)
    if x is None:
        return None
    index = p.pick(lambda i: i.dtype.kind in "iu" and i.size > 0 and i.min() >= 0 and i.max() < p.names[x].shape[0])
    mask = p.pick(lambda m: m.dtype.kind == "b" and m.shape == p.names[x].shape)
    options = [f"{x}[{_advanced_key(p, p.names[x].shape)}]", f"np.take({x}, [0, -1], axis=0)"]
    if index is not None:
        options += [f"{x}[{index}]"] * 2
    if mask is not None:
        options += [f"{x}[{mask}]"] * 2
    elif p.names[x].dtype.kind != "c":
        options.append(f"{x}[{x} > 0]")
    return p.among(options)


def _joined(p: Pool) -> str | None:
    a = p.pick(has_axes)
    if a is None:
        return None
    shape = p.names[a].shape
    b = p.pick(lambda x: x.shape == shape) or a
    axis = p.number(-len(shape), len(shape) - 1)
    return p.among(
        [f"np.concatenate([{a}, {b}], axis={axis})", f"np.stack([{a}, {b}], axis={axis})", f"np.concatenate([{b}, {a}, {a}])"]
    )


def _product(p: Pool) -> str | None:
    a = p.pick(has_axes)
    if a is None:
        return None
    n = p.names[a].shape[-1]
    b = p.pick(lambda x: is_array(x) and x.ndim in (1, 2) and x.shape[0] == n)
    return p.among([f"np.matmul({a}, {b})", f"np.dot({a}, {b})"]) if b else f"np.matmul({a}, np.ones({n}))"


def _sorted(p: Pool) -> str | None:
    x = p.pick(has_axes)
    return x and f"np.{p.among(['sort({}, axis={})', 'argsort({}, axis={}, kind=' + repr('stable') + ')'])}".format(x, p.among([-1, 0]))


EXPRESSIONS: Final[list[Callable[[Pool], str | None]]] = [
    *[_unary] * 3,
    *[_binary] * 6,
    _square,
    *[_where] * 2,
    *[_cast] * 2,
    *[_reduction] * 3,
    _scan,
    *[_reshape] * 2,
    *[_movement] * 3,
    *[_basic] * 3,
    *[_advanced] * 2,
    _joined,
    _product,
    _sorted,
    _input,
]


# Statements: lines that change a variable, or force one ------------------------------------------------------------------
def _assignment(p: Pool) -> str | None:
    x = p.pick(has_axes)
    if x is None:
        return None
    key = _basic_key(p, p.names[x].shape) if p.number(0, 3) else _advanced_key(p, p.names[x].shape)
    value = p.names[x]
    # Conversions that NumPy leaves to the processor, and complex numbers that lose a part, are cases for tables.
    operand = p.pick(lambda v: numpy.can_cast(v.dtype, value.dtype, "same_kind"))
    return f"{x}[{key}] = {operand if operand and p.flag() else p.among(['0', '1', '2', '3'])}"


def _augmented(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype.kind != "c")
    if x is None:
        return None
    key = f"[{_basic_key(p, p.names[x].shape)}]" if has_axes(p.names[x]) and p.flag() else ""
    return f"{x}{key} {p.among(IN_PLACE)}= {p.among(['1', '2', '0.5', 'True']) if p.flag() else p.pick(lambda v: v.dtype.kind != 'c')}"


def _out(p: Pool) -> str | None:
    x = p.pick(is_array)
    return x and f"np.{p.among(['add', 'maximum', 'less'])}({_operand(p)}, {p.pick()}, out={x})"


def _touch(p: Pool) -> str | None:
    x = p.pick()
    return x and f"touch({x})"


STATEMENTS: Final[list[Callable[[Pool], str | None]]] = [_assignment, _assignment, _augmented, _augmented, _out, _touch, _touch]


@st.composite
def scripts(draw: Callable[..., Any], most: int = 16) -> Script:
    """Scripts of up to ``most`` lines after their inputs."""
    p = Pool(draw)
    for _ in range(p.number(1, 3)):
        name = p.fresh()
        p.execute(f"{name} = {_input(p)}", name)
    for _ in range(p.number(1, most)):
        if p.number(0, 3) == 0:
            line = p.among(STATEMENTS)(p)
            going = line is None or p.execute(line)
        else:
            expression = p.among(EXPRESSIONS)(p)
            name = p.fresh()
            going = expression is None or p.execute(f"{name} = {expression}", name)
        if not going:
            break
    return p.script
