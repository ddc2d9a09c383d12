"""From a program to one straight-line Python function.

In: a ``Program``.  Out: its ``Source``: Python text with a line per operation (``t3 = add(t1, t2); del t1``), and the constants
(shapes, dtypes, axes) the text names ``k0, k1, ...``.  Promise: running the text costs NumPy's own calls and next to nothing
beside them; a temporary is dropped at its last use; the line of an error says which entry failed.  The text holds no shapes, so
programs of one pattern share it, and its byte code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from lazynp.array import core
from lazynp.backends.numpy import library, operations, ordered
from lazynp.backends.numpy.operations import COMPLEX, MATERIALISE, SPECIAL, UFUNCS, size
from lazynp.backends.numpy.together import Together
from lazynp.graph import op as o
from lazynp.graph.op import PRODUCTS, Op
from lazynp.schedule import cost
from lazynp.schedule.canonicalise import ZERO, Entry, Program
from lazynp.schedule.claims import nbytes, view_base
from lazynp.values.buffer import Buffer
from lazynp.values.records import Record, field

IN_PLACE: Final = 4096  # elements from which writing over a dying temporary saves more than it costs
NAMED_OUT: Final = (o.MAXIMUM, o.MINIMUM)  # a third operand without a name is deprecated
CHANGING: Final = ("partition", "sort")  # functions of NumPy's that are a copy, and then the method of that name
FOREVER: Final = 1 << 62

NAMESPACE: Final[dict[str, Any]] = {
    **{ufunc.__name__: ufunc for ufunc in UFUNCS.values()},
    **{op.name: function for op, function in [*UFUNCS.items(), *SPECIAL.items()]},
    **{name: getattr(operations, name) for name in ("combine", "written_out", "iota", "padding", "owned", "copied", "pooled")},
    **{name: getattr(operations, name) for name in ("adopted", "called", "changed", "checked", "room")},
    **{f"complex_{op.name}": function for op, function in COMPLEX.items()},
    "where": np.where,
    "broadcast_to": np.broadcast_to,
    "concatenate": np.concatenate,
    "asarray": np.asarray,
    "ordered": ordered,
    "pass_over": core.pass_over,
    "Buffer": Buffer,
}


class Source(Record):
    """Text of the function ``run(b, i, s, w, k0, ...)``; ``lines[n]`` is the entry that line n + 1 computes.

    ``needs`` are pairs: a kernel, and for how many elements it must be ready.
    """

    text: str
    constants: tuple[Any, ...]
    lines: list[int | None]
    needs: list[tuple[Any, int]] = field(factory=list)

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("b", "i", "s", "w", *[f"k{n}" for n in range(len(self.constants))])


class Memory(Record):
    """A record of who owns the memory of one entry's value.

    ``root`` is the entry that allocated it, or None where it belongs to another owner (a scalar, an input not granted).  ``whole``: the
    value is all of that memory, element for element.  ``writable``: its elements are distinct places.  ``c_order``: surely contiguous.
    """

    root: int | None
    whole: bool
    writable: bool
    c_order: bool


class Writer(Record):
    """The state of one translation."""

    program: Program
    debug: bool
    granted: frozenset[int]  # buffer parameters that may be overwritten, once what they hold is saved
    own: frozenset[int] = frozenset()  # buffer parameters that nothing else will ever read
    overwritten: set[int] = field(factory=set)  # entries of those that are
    changed: set[int] = field(factory=set)  # library calls that change the array they are given
    constants: list[Any] = field(factory=list)
    names: list[str] = field(factory=list)
    memory: list[Memory] = field(factory=list)
    last: list[int] = field(factory=list)  # per entry: the entry that reads it last, FOREVER for outputs
    group: dict[int, int] = field(factory=dict)  # per root: the last reader of anything in its memory
    lines: list[str] = field(factory=list)
    entry_of_line: list[int | None] = field(factory=list)
    ours: Ours | None = None  # what computes operations where NumPy's loops have other bits than kernels
    needs: list[Any] = field(factory=list)  # what that must have made ready before the function runs

    def constant(self, value: Any) -> str:
        self.constants.append(value)
        return f"k{len(self.constants) - 1}"

    def line(self, text: str, entry: int | None) -> None:
        self.lines.append(text)
        self.entry_of_line.append(entry)

    def array(self, number: int) -> str:
        """The name of a value, as an array where it might be a NumPy scalar."""
        name = self.names[number]
        return name if self.program.entries[number].shape else f"asarray({name})"

    def dying(self, number: int, at: int) -> bool:
        """Nothing reads the memory of ``number`` after entry ``at``."""
        root = self.memory[number].root
        return root is not None and self.group[root] <= at

    def over(self, number: int, entry: Entry) -> int | None:
        """A large operand that nothing reads after entry ``number``, in whose memory the result may lie."""
        entries = self.program.entries
        for source in entry.src if size(entry.shape) >= IN_PLACE else ():
            taken = self.memory[source]
            fits = entries[source].shape == entry.shape and entries[source].dtype == entry.dtype
            if fits and taken.whole and taken.writable and self.dying(source, number) and entries[taken.root or 0].op is not o.BUFFER:
                return source
        return None

    def written_to(self, entry: Entry, over: int) -> str:
        """The argument of a ufunc that has its result written over an operand."""
        return f"{'out=' if entry.op in NAMED_OUT else ''}{self.names[over]}"


Expression = tuple[str, Memory]


class Ours(Protocol):
    """The functions that stand in for NumPy's loops, see ``ready.py``."""

    def expression(self, w: Writer, number: int, entry: Entry) -> Expression | None:
        """The Python expression of an entry's value; None where NumPy's loop has the bits of kernels."""
        ...


# One writer per operation that is not a ufunc: the Python expression of its value, and the memory that is in ---------------


def _fresh(number: int, entry: Entry, c_order: bool = False) -> Memory:
    return Memory(number, True, True, c_order or len(entry.shape) < 2)


def _view(w: Writer, entry: Entry, whole: bool = False, writable: bool = True, c_order: bool = False) -> Memory:
    source = w.memory[entry.src[0]]
    return Memory(source.root, whole and source.whole, writable and source.writable, c_order and source.c_order)


def _elementwise(w: Writer, number: int, entry: Entry) -> Expression:
    entries = w.program.entries
    arguments = ", ".join([w.names[source] for source in entry.src])
    if entry.dtype.kind == "c" and entry.op in COMPLEX:
        return f"complex_{entry.op.name}({arguments})", _fresh(number, entry)
    c_order = all(w.memory[s].c_order and entries[s].shape in (entry.shape, ()) for s in entry.src)
    over = w.over(number, entry)
    if over is not None:
        taken = w.memory[over]
        return f"{entry.op.name}({arguments}, {w.written_to(entry, over)})", Memory(taken.root, True, True, taken.c_order)
    return f"{entry.op.name}({arguments})", _fresh(number, entry, c_order)


def _buffer(w: Writer, number: int, entry: Entry) -> Expression:
    granted = entry.arg in w.granted or entry.arg in w.own
    return f"b[{entry.arg}].array", Memory(number if granted else None, True, granted, True)


def _const(w: Writer, number: int, entry: Entry) -> Expression:
    return f"s[{entry.arg}]", Memory(None, True, False, True)


def _iota(w: Writer, number: int, entry: Entry) -> Expression:
    start, step = entry.arg
    text = f"iota({w.constant(entry.shape[0])}, s[{start}], s[{step}], {w.constant(entry.dtype)})"
    return text, _fresh(number, entry)


def _reshape(w: Writer, number: int, entry: Entry) -> Expression:
    text = f"{w.names[entry.src[0]]}.reshape({w.constant(entry.shape)})"
    return text, _view(w, entry, whole=True, c_order=True)


def _permute(w: Writer, number: int, entry: Entry) -> Expression:
    return f"{w.names[entry.src[0]]}.transpose({w.constant(entry.arg)})", _view(w, entry, whole=True)


def _expand(w: Writer, number: int, entry: Entry) -> Expression:
    source = entry.src[0]
    x, shape = w.names[source], w.constant(entry.shape)
    if size(entry.shape) <= MATERIALISE or w.program.entries[source].op is o.CONST:
        return f"written_out({x}, {w.constant(entry.dtype)}, {shape})", _fresh(number, entry, c_order=True)
    return f"broadcast_to({x}, {shape})", _view(w, entry, writable=False)


def region(w: Writer, axes: tuple[tuple[int, int], ...], lengths: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The subscript of a SLICE or STORE; the starts are parameters, so their last element decides a backward stop at run time."""
    parts = []
    for (slot, step), n, extent in zip(axes, lengths, shape, strict=True):
        if n == 0:
            parts.append("0:0")
        elif slot == ZERO and (n == extent or n == 1) and step == 1:
            parts.append(":" if n == extent else ":1")
        elif n == 1:
            parts.append(":1" if slot == ZERO else f"i[{slot}]:i[{slot}] + 1")
        elif step > 0:
            reach = w.constant((n - 1) * step + 1)
            by = "" if step == 1 else f":{w.constant(step)}"
            parts.append(f":{reach}{by}" if slot == ZERO else f"i[{slot}]:i[{slot}] + {reach}{by}")
        else:
            back = w.constant((1 - n) * step)
            parts.append(f"i[{slot}]:i[{slot}] - {back} - 1 if i[{slot}] > {back} else None:{w.constant(step)}")
    return ", ".join(parts)


def _slice(w: Writer, number: int, entry: Entry) -> Expression:
    source = w.program.entries[entry.src[0]]
    if not entry.shape:
        return w.names[entry.src[0]], _view(w, entry, whole=True, c_order=True)
    return f"{w.names[entry.src[0]]}[{region(w, entry.arg, entry.shape, source.shape)}]", _view(w, entry)


def _pad(w: Writer, number: int, entry: Entry) -> Expression:
    x, fill = entry.src
    dtype, shape = w.constant(entry.dtype), w.constant(entry.shape)
    inner = w.program.entries[x].shape
    where = region(w, tuple([(slot, 1) for slot in entry.arg]), inner, entry.shape)
    w.line(f"t{number} = padding({w.names[fill]}, {dtype}, {shape})", number)
    w.line(f"t{number}[{where}] = {w.names[x]}", number)
    return f"t{number}", _fresh(number, entry, c_order=True)


def _cast(w: Writer, number: int, entry: Entry) -> Expression:
    source = entry.src[0]
    x = w.names[source]
    if w.program.entries[source].dtype.kind == "c" and entry.dtype.kind not in "cb":
        x = f"{x}.real"  # the same value without NumPy's ComplexWarning, which belongs to the call
    return f"{x}.astype({w.constant(entry.dtype)})", _fresh(number, entry, w.memory[source].c_order)


def _bitcast(w: Writer, number: int, entry: Entry) -> Expression:
    return f"{w.names[entry.src[0]]}.view({w.constant(entry.dtype)})", _view(w, entry, whole=True, c_order=True)


def _where(w: Writer, number: int, entry: Entry) -> Expression:
    return f"where({', '.join([w.names[s] for s in entry.src])})", _fresh(number, entry)


def _part(w: Writer, number: int, entry: Entry) -> Expression:
    return f"{w.names[entry.src[0]]}.{entry.op.name}", _view(w, entry)


def _complex(w: Writer, number: int, entry: Entry) -> Expression:
    real, imag = [w.names[s] for s in entry.src]
    return f"combine({real}, {imag}, {w.constant(entry.dtype)}, {w.constant(entry.shape)})", _fresh(number, entry, c_order=True)


def _reduce(w: Writer, number: int, entry: Entry) -> Expression:
    op, axes = entry.arg
    over = axes[0] if len(axes) == 1 else axes
    text = f"{op.name}.reduce({w.names[entry.src[0]]}, {w.constant(over)}, {w.constant(entry.dtype)})"
    return text, _fresh(number, entry)


def _scan(w: Writer, number: int, entry: Entry) -> Expression:
    op, axis = entry.arg
    text = f"{op.name}.accumulate({w.names[entry.src[0]]}, {w.constant(axis)}, {w.constant(entry.dtype)})"
    return text, _fresh(number, entry)


def _gather(w: Writer, number: int, entry: Entry) -> Expression:
    x, *indices = [w.names[s] for s in entry.src]
    text = f"{x}[{', '.join(indices)}]"
    if not w.program.entries[entry.src[1]].shape:
        return text, _view(w, entry)  # integers: basic indexing, which gives a view
    return text, _fresh(number, entry)


def _store(w: Writer, number: int, entry: Entry) -> Expression:
    base, value = entry.src
    name = w.names[base]
    memory = w.memory[base]
    where = region(w, entry.arg, w.program.entries[value].shape, entry.shape)
    if memory.writable and w.dying(base, number):
        assert memory.root is not None
        if w.program.entries[memory.root].op is o.BUFFER:
            w.overwritten.add(memory.root)
            if w.program.entries[memory.root].arg not in w.own:
                w.line(f"w({name}[{where}])", number)
        alias = w.memory[value].root == memory.root
        w.line(f"{name}[{where}] = {w.names[value]}{'.copy()' if alias else ''}", number)
        return name, memory
    name = f"t{number}"
    # Memory of the pool: the next write to the array may claim it.
    w.line(f"{name} = {'pooled' if nbytes(entry) >= cost.CLAIM_BYTES else 'copied'}({w.names[base]})", number)
    w.line(f"{name}[{where}] = {w.names[value]}", number)
    return name, _fresh(number, entry, c_order=True)


def _concat(w: Writer, number: int, entry: Entry) -> Expression:
    parts = ", ".join([w.names[s] for s in entry.src])
    return f"concatenate(({parts},), {w.constant(entry.arg)})", _fresh(number, entry)


def _call(w: Writer, number: int, entry: Entry) -> Expression:
    name, params = entry.arg
    source = entry.src[0] if entry.src else number
    if changes(entry) and size(entry.shape) >= IN_PLACE and w.dying(source, number) and w.memory[source].whole:
        memory = w.memory[source]
        root = w.program.entries[memory.root or 0]
        alias = any(w.memory[other].root == memory.root for other in entry.src[1:])
        if memory.writable and not alias and (root.op is not o.BUFFER or root.arg in w.own):
            w.overwritten.add(memory.root or 0)
            w.changed.add(number)
            others = "".join([f", {w.array(other)}" for other in entry.src[1:]])
            return f"changed({w.names[source]}, {w.constant(params[0])}, {w.constant(params[1])}{others})", memory
    function, given = w.constant(library.lookup(name)), w.constant(params)
    arrays = "".join([f"{w.array(s)}, " for s in entry.src])
    # The raw value stays under a name of its own, for the OUTPUT entries.
    w.line(f"a{number} = ({arrays}); c{number} = {function}(a{number}, {given})", number)
    text = f"called(c{number}, 0, {w.constant(entry.dtype)}, {w.constant(entry.shape)}, a{number})"
    return text, _fresh(number, entry)


def _output(w: Writer, number: int, entry: Entry) -> Expression:
    call = entry.src[0]
    text = f"called(c{call}, {entry.arg}, {w.constant(entry.dtype)}, {w.constant(entry.shape)}, a{call})"
    return text, _fresh(number, entry)


def _contiguous(w: Writer, number: int, entry: Entry) -> Expression:
    if entry.dtype.char == "F":  # NumPy's loops have other bits for what runs backwards: ``build.copied``
        return f"copied({w.names[entry.src[0]]})", _fresh(number, entry, c_order=True)
    return w.names[entry.src[0]], _view(w, entry, whole=True, c_order=True)


WRITERS: Final[dict[Op, Callable[[Writer, int, Entry], Expression]]] = {
    **dict.fromkeys([*UFUNCS, *SPECIAL], _elementwise),
    o.BUFFER: _buffer,
    o.CONST: _const,
    o.IOTA: _iota,
    o.RESHAPE: _reshape,
    o.PERMUTE: _permute,
    o.EXPAND: _expand,
    o.SLICE: _slice,
    o.PAD: _pad,
    o.CAST: _cast,
    o.BITCAST: _bitcast,
    o.WHERE: _where,
    o.REAL: _part,
    o.IMAG: _part,
    o.COMPLEX: _complex,
    o.REDUCE: _reduce,
    o.SCAN: _scan,
    o.GATHER: _gather,
    o.STORE: _store,
    o.CONCAT: _concat,
    o.CALL: _call,
    o.OUTPUT: _output,
    o.CONTIGUOUS: _contiguous,
    o.COPY: _contiguous,
}


def _laid_out(program: Program) -> set[int]:
    """Values that must lie in C order, because the bits of NumPy's routines that read them depend on it: there, kernels store them so."""
    entries = program.entries
    found = set()
    for entry in entries:
        op = entry.op
        if op is o.SCAN or (op is o.REDUCE and entry.dtype.kind == "c") or (op is o.CALL and entry.arg[0] not in PRODUCTS):
            for s in entry.src:
                found.add(view_base(program, s))
    return found


def changes(entry: Entry) -> bool:
    """Tell whether an entry is a library call that may be made in the memory of what it is given, where nothing else reads that."""
    return entry.op is o.CALL and entry.arg[0] == "numpy" and entry.arg[1][0] in CHANGING


def translate(
    program: Program,
    debug: bool = False,
    granted: frozenset[int] = frozenset(),
    ours: Ours | None = None,
    own: frozenset[int] = frozenset(),
) -> Source:
    """The function that computes ``program``; ``debug`` adds a check after every operation.

    STOREs may be written into the buffer parameters ``granted``; each region is handed to ``w`` before.  Whatever is done in place may be
    done in the buffer parameters ``own``.
    """
    entries = program.entries
    outputs = frozenset(program.outputs)
    w = Writer(program, debug, granted, own, ours=ours)
    w.last = [-1] * len(entries)
    for number, entry in enumerate(entries):
        for source in entry.src:
            w.last[source] = number
    for number in outputs:
        w.last[number] = FOREVER

    calls: dict[int, int] = {}  # CALL -> the last OUTPUT that takes from its raw value
    for number, entry in enumerate(entries):
        if entry.op is o.CALL:
            calls[number] = number
        elif entry.op is o.OUTPUT:
            calls[entry.src[0]] = number

    readers: list[list[int]] = [[] for _ in entries]
    for number, entry in enumerate(entries):
        for source in entry.src:
            readers[source].append(number)
    together = None if ours is None or debug else Together(readers, outputs)

    laid_out = _laid_out(program)
    for number, entry in enumerate(entries):
        if together is not None:
            c_order = all(w.memory[source].c_order for source in entry.src)  # as NumPy's loops would have it
            if (c_order or number not in laid_out) and together.takes(w, number, entry):
                w.memory.append(Memory(number, True, True, c_order))
                w.group[number] = max(w.group.get(number, -1), w.last[number])
                w.names.append(f"t{number}")
                continue
            if not together.stays(w, number, entry):
                together.end(w)
        made = None if ours is None else ours.expression(w, number, entry)
        text, memory = made or WRITERS[entry.op](w, number, entry)
        if number in laid_out and not memory.c_order and memory.root == number and entry.op is not o.STORE:
            text, memory = f"owned({text})", Memory(number, True, True, True)
        if memory.root is not None:
            w.group[memory.root] = max(w.group.get(memory.root, -1), w.last[number])
        w.memory.append(memory)
        if entry.op is o.STORE:
            w.names.append(text)  # its lines are written, and where it was done in place the base's name lives on
        else:
            w.names.append(f"t{number}")
            w.line(f"t{number} = {text}", number)
        if debug:
            declared = f"{w.constant(entry.op)}, {w.constant(entry.dtype)}, {w.constant(entry.shape)}"
            w.line(f"checked({w.names[number]}, {number}, {declared})", number)
        _drop(w, number, entry, calls)

    if together is not None:
        together.end(w)
    _results(w, outputs)
    text = "\n    ".join([f"def run(b, i, s, w{''.join([f', k{n}' for n in range(len(w.constants))])}):", *w.lines])
    return Source(text + "\n", tuple(w.constants), [None, *w.entry_of_line], w.needs)


def _drop(w: Writer, number: int, entry: Entry, calls: dict[int, int]) -> None:
    """Let go of what was read for the last time."""
    dead = {w.names[s] for s in entry.src if w.last[s] == number and w.program.entries[s].op is not o.BUFFER}
    dead.discard(w.names[number])  # a STORE in place
    if entry.op is o.CALL and calls[number] == number and number not in w.changed:
        dead |= {f"a{number}", f"c{number}"}
    elif entry.op is o.OUTPUT and calls[entry.src[0]] == number:
        dead |= {f"a{entry.src[0]}", f"c{entry.src[0]}"}
    if dead:
        w.line(f"del {', '.join(sorted(dead))}", number)


def _results(w: Writer, outputs: frozenset[int]) -> None:
    """Buffers for the outputs; memory is handed over only where it provably belongs to one output alone."""
    takers: dict[int, int] = {}
    for number in outputs:
        root = w.memory[number].root
        if root is not None:
            takers[root] = takers.get(root, 0) + 1
    for number in sorted(outputs):
        memory, name = w.memory[number], w.names[number]
        entry = w.program.entries[number]
        own = memory.root is not None and memory.whole and takers[memory.root] == 1
        given = w.program.entries[memory.root or 0]
        if own and memory.c_order and given.op is o.BUFFER and memory.root in w.overwritten:
            w.line(f"r{number} = b[{given.arg}].retyped({w.constant(entry.dtype)}, {w.constant(entry.shape)})", number)
            continue
        if not own or given.op is o.BUFFER:
            value = f"copied({name})"
        elif memory.c_order and entry.shape:
            value = name
        else:
            value = f"owned({name})"
        w.line(f"r{number} = {'adopted' if nbytes(entry) >= cost.CLAIM_BYTES else 'Buffer'}({value})", number)
    w.line(f"return [{', '.join([f'r{number}' for number in w.program.outputs])}]", None)
