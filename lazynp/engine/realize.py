"""Making values exist: the one place that knows the graph, the schedule and the backends together.

In: nodes whose values are wanted, and why.  Out: the same nodes, published.  Promise: a program seen before costs one walk, one
look-up and one run; what fails names the user's line and is remembered by the node that failed, and every other node stays as it
was, also after an interrupt or when memory runs out.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from lazynp.backends.base import Backend, CompileError, ExecutionError, Plan
from lazynp.backends.common import ownership, rechecks
from lazynp.engine import budget, devices, in_place
from lazynp.graph import floating, report
from lazynp.graph import op as o
from lazynp.graph._native import mark_computed
from lazynp.graph.build import outputs
from lazynp.graph.node import Node, caller, site_of, span, where
from lazynp.graph.op import Kind
from lazynp.schedule.canonicalise import Canonical, Program, canonicalise
from lazynp.schedule.claims import Claims
from lazynp.schedule.families import Families
from lazynp.values import config, forking, pressure
from lazynp.values.buffer import Buffer
from lazynp.values.loading import load

if TYPE_CHECKING:
    from lazynp.backends.common.target import Target

PLANS: Final = 2048  # plans kept, the least recently used go first

_Plans = OrderedDict[Any, Plan]

# Held while nodes are walked and published, not while plans run.
_lock = forking.graph


class _Engine:
    """The memory that one process keeps between programs."""

    __slots__ = (
        "backends", "caches", "crowding", "failed", "families", "generation", "kin", "large", "larges", "plans", "running", "updates",
    )  # fmt: skip

    def __init__(self) -> None:
        self.caches: dict[tuple[Any, ...], _Plans] = {}  # by switches
        self.plans: _Plans = OrderedDict()  # the cache for the switches of now
        self.kin: dict[tuple[Any, ...], Families] = {}  # likewise
        self.families = Families()
        self.generation = -1  # of the switches that ``plans`` and ``families`` are for
        self.large = budget.Large()  # programs that need much memory
        self.larges: dict[tuple[Any, ...], budget.Large] = {}  # by switches
        self.crowding: dict[str, budget.Large] = {}  # of GPUs that some program needs much of
        self.updates = in_place.Candidates()
        self.backends: dict[str, Backend] = {}
        self.failed: WeakSet[Node] = WeakSet()
        self.running = 0  # calls between their walk and their result


_engine: Final = _Engine()


def realize(nodes: Sequence[Node], reason: str, device: str | None = None) -> None:
    """Compute ``nodes``, all in one program.

    Parameters
    ----------
    nodes
        What is wanted; nodes that have their value already cost nothing.
    reason
        Why now, e.g. ``"__array__"``; counted with the user's line.
    device
        Where, if that is known already; else the nodes are computed at home, on each device those that belong there.

    Raises
    ------
    Exception
        What NumPy raises for the operation that failed, with a note that names the line which recorded it.
    """
    wanted = [node for node in nodes if node.buffer is None]
    if wanted and not _in_one_program(wanted, reason, device):
        _at_home(wanted, reason)


def _in_one_program(wanted: list[Node], reason: str, device: str | None, beside: bool = False) -> bool:
    """Compute nodes in one program; does nothing where they take several, on several devices, and tells.

    ``beside``: large results have memory of their own.
    """
    engine = _engine
    if engine.generation != config.generation:
        _choose_cache()
    begun = False
    error: BaseException | None = None
    found = None
    try:
        with _lock:
            canonical = canonicalise(wanted)
            plans = engine.plans
            if devices.gpus is not None:
                device = device or _only_home(canonical, alone=len(wanted) == 1)
                if device is None:
                    return False
                plans = _plans_on(device)
            if outputs:
                siblings = _siblings(canonical)
                if siblings:
                    wanted += siblings
                    del canonical  # it refers to nodes, and references count
                    canonical = canonicalise(wanted)
            if engine.failed:
                _raise_stored(canonical)
            key = canonical.key
            plan = plans.get(key)
            if plan is not None:
                plans.move_to_end(key)
                report.schedules.hits += 1
            elif device is None:
                engine.large.weigh(canonical, None if choose().name == "numpy" else compiler)
                engine.updates.note(canonical)
            elif device != devices.CPU:
                _weigh_on(device, canonical)
            updates = engine.updates.of(canonical) if (engine.updates or pressure.assigned) and not beside and device is None else None
            large = engine.large if device is None else engine.crowding.get(device)
            first = not updates and large and large.first(canonical)
            if not first and not updates:
                engine.running, begun = engine.running + 1, True
        if updates:
            del canonical  # it refers to nodes, and references count
            _write_in_place(updates, reason)
            wanted = [node for node in wanted if node.buffer is None]
            return not wanted or _in_one_program(wanted, reason, device, beside=True)
        if first:
            del canonical  # it holds inputs, which shall go
            return _in_parts(first, wanted, reason, device)
        report.count_forced(reason, caller())
        if report.operations.watched:
            report.count_operation(f"run by {_way(canonical, plan, device)}", caller())
        if plan is None:
            plan = _prepare(canonical, device)
        claims = plan.claims
        found = _run_owning(plan, canonical, claims) if claims else _run(plan, canonical)
    except ExecutionError as failure:
        error = _remember(failure, canonical)
    finally:
        if begun:
            engine.running -= 1  # one step of the interpreter; waiting for the lock, it might be interrupted
            if floating.heard:
                floating.take()  # of a run that failed
    if error is None:
        del canonical  # it holds inputs, of which is asked whether anything else holds them
        pressure.relieve()
        if rechecks.later or rechecks.looked:
            rechecks.tell(wait=found is not None)  # what comes first is told first
        if found is not None:
            found.tell()
        return True
    # Outside the handler, so that the error does not drag the frames of the plan (and its temporaries) along as its context.
    raise error.with_traceback(None)


_TIERS: Final = {
    "numpy": "in the NumPy tier: LAZYNP_BACKEND asks for it, or there is no llvmlite",
    "llvm": "compiled: LAZYNP_TIER asks for it",
}


def _way(canonical: Canonical, plan: Plan | None, device: str | None) -> str:
    """Tell in words what runs a program, and why that."""
    if plan is not None:
        return f"a plan from the cache, {plan.tier}"
    if device is not None and device != devices.CPU:
        return "a new plan, compiled for the GPU"
    chosen: Any = choose()
    return f"a new plan, {_TIERS[chosen.name] if chosen.name in _TIERS else chosen.forecast(Program.of(canonical))}"


def way(nodes: Sequence[Node]) -> str:
    """Tell in words what would run for nodes, and why that; nothing is planned."""
    if _engine.generation != config.generation:
        _choose_cache()
    device = None if devices.gpus is None else _one_device(list(nodes))
    with _lock:
        canonical = canonicalise([node for node in nodes if node.buffer is None])
    plan: Any = _plans_on(device).get(canonical.key)
    return f"a plan from the cache, {plan.next_tier}" if hasattr(plan, "next_tier") else _way(canonical, plan, device)


def _weigh_on(device: str, canonical: Canonical) -> None:
    """Note what a program needs that a GPU has not seen before."""
    large = _engine.crowding.get(device)
    if large is None:
        large = budget.on_gpu(devices.place(device))
    large.weigh(canonical, lambda: _gpu(device))
    if large:
        _engine.crowding[device] = large


def _in_parts(first: list[Node], wanted: list[Node], reason: str, device: str | None) -> bool:
    """Compute some values in a run of their own, and then what is wanted, in one more or in several."""
    report.schedules.cuts += 1
    realize(first, reason, device)
    first.clear()
    realize(wanted, reason, device)
    return True


def _write_in_place(updates: list[Node], reason: str) -> None:
    """Compute those of some large results that may lie in the memory of an operand, there; and what they need first."""
    while updates:
        node = updates.pop(0)
        if node.buffer is not None:
            continue
        found = in_place.update(node)
        if found is not None and found.needs:
            realize(found.needs, reason)
        del found
        told = in_place.written(node, _run_piece, _prepare_piece, lambda: not _engine.running)
        if told is None:
            if updates and node.op is o.STORE and node.src[0].buffer is not None:
                _in_one_program([node], reason, None, beside=True)  # what the next one is written over
            continue
        pressure.relieve()
        if told:
            in_place.together(told).tell()


def _prepare_piece(node: Node, plans: dict[Any, Plan], times: int) -> None:
    """Make the plan of a piece of a result that comes a number of times, and may be compiled for that."""
    with _lock:
        canonical = canonicalise([node])
        plan = _engine.plans.get(canonical.key)
    if plan is None:
        plan = _prepare(canonical)
    for _ in range(times):
        claims = plan.claims
        assert not claims
    while works := getattr(plan, "works", ()):  # it is about to run as often as pays for waiting
        for work in works:
            work.wait()
        claims = plan.claims
    plans[canonical.key] = plan


def _run_piece(node: Node, plans: dict[Any, Plan]) -> rechecks.Found | None:
    """Compute a piece of a result; what is to be told of floating-point errors comes back."""
    canonical = canonicalise([node])
    plan = plans.get(canonical.key)
    if plan is None:
        plan = plans[canonical.key] = _prepare(canonical)
    try:
        return _run(plan, canonical)
    except ExecutionError as failure:
        raise _remember(failure, canonical).with_traceback(None) from None
    finally:
        if floating.heard:
            floating.take()


def _run(plan: Plan, canonical: Canonical, claim: ownership.Claim | None = None) -> rechecks.Found | None:
    """Run and publish; what is to be told of floating-point errors comes back, for it may raise."""
    if floating.heard:
        floating.take()  # of a run whose caller did not ask
    if config.watched:
        values = _watched(plan, canonical, claim)
    else:
        values = plan.run(canonical.buffers, canonical.integers, canonical.scalars, claim)
    found = None
    if floating.heard:
        found = rechecks.errors(canonical, claim)
    _publish(canonical, values)
    return found


def _watched(plan: Plan, canonical: Canonical, claim: ownership.Claim | None) -> list[Buffer]:
    """Run a plan whose progress is shown, or whose work on a GPU profilers shall find by the program's lines."""
    place = getattr(plan, "place", None) if config.nvtx else None
    if place is not None:
        with place.range(span(canonical.walked)):
            return _shown(plan, canonical, claim)
    return _shown(plan, canonical, claim)


def _shown(plan: Plan, canonical: Canonical, claim: ownership.Claim | None) -> list[Buffer]:
    if not config.progress:
        return plan.run(canonical.buffers, canonical.integers, canonical.scalars, claim)
    progress = load("lazynp.graph.progress")
    steps = getattr(getattr(plan, "plan", plan), "steps", None) or canonical.walked
    with progress.Run(len(steps), canonical.wanted[-1]) as run:
        run.nodes = canonical.nodes
        return plan.run(canonical.buffers, canonical.integers, canonical.scalars, claim)


def _publish(canonical: Canonical, values: list[Buffer]) -> None:
    if len(values) > 1 and len(set(values)) < len(values):
        # Equal expressions have one value; which of them it is does not matter, only that it is not one's alone.
        for value in values:
            value.shared = True
    with _lock:
        for node, value in zip(canonical.wanted, values, strict=True):
            if node.buffer is None:
                node.publish(value)
                if value.block is None and value.array.nbytes >= pressure.COUNTED_FROM:
                    pressure.count(value)
                if outputs:
                    outputs.pop(node, None)
        mark_computed(canonical.walked)


def _run_owning(plan: Plan, canonical: Canonical, claims: Claims) -> rechecks.Found | None:
    """Run a plan that writes some inputs in place if it may; nothing else reads a buffer meanwhile."""
    if rechecks.later:
        rechecks.look()  # they may have to read once more what is overwritten now
    claim = ownership.Claim()
    with _lock:
        try:
            try:
                if _engine.running != 1 or not claim.take(canonical, claims):
                    return _run(plan, canonical)
                found = _run(plan, canonical, claim)
                claim.new = [node.buffer for node in canonical.wanted if node.buffer is not None]
                canonical.forget()
                claims.settled(contested=claim.settle())
                return found
            finally:
                claim.end(canonical)
        finally:
            claim.end(canonical)  # a second signal may come before the first one of these begins


def prepare(nodes: Sequence[Node]) -> None:
    """Make the plan that will compute ``nodes``, and keep it; nothing is run."""
    wanted = [node for node in nodes if node.buffer is None]
    if wanted:
        if _engine.generation != config.generation:
            _choose_cache()
        device = None if devices.gpus is None else _one_device(wanted)
        with _lock:
            canonical = canonicalise(wanted)
        if canonical.key not in _plans_on(device):
            _prepare(canonical, device)


# Devices ------------------------------------------------------------------------------------------------------------------


def _only_home(canonical: Canonical, alone: bool) -> str | None:
    """The device of a program that is all on one, as most are; None where it takes a closer look."""
    if canonical.moves:
        return None
    default = devices.default()
    home: str | None = None
    for buffer in canonical.buffers:
        device = buffer.device
        if device is not None and device != home:
            if home is not None or device == devices.CPU or (device != default and not alone):
                return None
            home = device
    return home or default


def _at_home(wanted: list[Node], reason: str) -> None:
    """Compute nodes where they belong; what crosses from one device to another on the way is computed, and moved, first."""
    homes = devices.homes(wanted)
    default = devices.default()
    _cross(homes, default, reason)
    groups: dict[str | None, list[Node]] = {}
    for node in wanted:
        if node.buffer is None:
            groups.setdefault(homes[node], []).append(node)
    del node
    if devices.CPU not in groups:
        homes.clear()  # who holds a node is asked of references
    for home, group in groups.items():
        _compute(group, reason, home, default, homes)


def _cross(homes: dict[Node, str | None], default: str, reason: str) -> None:
    """Compute, and move, what one device makes and another one reads."""
    for node, home in homes.items():
        for source in node.src:
            at = homes[source]
            if node.op is o.COPY and (at not in (None, home) or source.op is o.BUFFER):
                if source.buffer is None:
                    _compute([source], reason, at, default, homes)
                _moved(node, source, node.arg)
            elif at is not None and at != (home or default) and source.op.kind is not Kind.LEAF:
                _compute([source], reason, at, default, homes)


def _compute(nodes: list[Node], reason: str, home: str | None, default: str, homes: dict[Node, str | None]) -> None:
    """Compute nodes of one home there."""
    realize(nodes, reason, home or default)
    if home == devices.CPU:
        with _lock:
            for node, at in homes.items():
                if at == home and node.buffer is not None:
                    node.buffer = node.buffer.at_home(home)


def _moved(node: Node, source: Node, device: str) -> None:
    """A COPY of a value that exists."""
    buffer = source.buffer
    assert buffer is not None
    if device != devices.CPU:
        value = devices.place(device).uploaded(buffer)
        value.shared = True
    elif buffer.place is None:
        buffer.shared = True
        value = buffer.at_home(device)
    else:
        value = Buffer(buffer.array).at_home(device)
    with _lock:
        if node.buffer is None:
            node.publish(value)


def _one_device(wanted: list[Node]) -> str:
    """Find where a program would run; refuses nodes that belong to several devices."""
    return devices.join(devices.homes(wanted).values(), wanted[-1]) or devices.default()


def _plans_on(device: str | None) -> _Plans:
    """The cached plans of a device."""
    if device is None or device == devices.CPU:
        return _engine.plans
    key = config.backend or "", config.tier, config.debug, device, config.graphs
    found = _engine.caches.get(key)
    return _engine.caches.setdefault(key, OrderedDict()) if found is None else found


def _siblings(canonical: Canonical) -> list[Node]:
    """The other outputs of the calls that the program keeps: a call that has its value forgets how it was made."""
    found: dict[Node, None] = {}
    for node in canonical.wanted:
        if node.op is o.CALL and node in outputs:
            found.update(dict.fromkeys(outputs[node]))
    for node in canonical.wanted:
        found.pop(node, None)
    return [node for node in found if node.buffer is None]


def _prepare(canonical: Canonical, device: str | None = None) -> Plan:
    report.schedules.misses += 1
    gpu = None if device is None or device == devices.CPU else _gpu(device)
    with _lock:
        program = Program.of(canonical) if gpu is not None else _engine.families.program(canonical)
    chosen = gpu or choose()
    plans = _plans_on(device)
    try:
        plan = chosen.prepare(program)
    except CompileError as error:
        if config.debug or config.fallback == "error" or chosen.name == "numpy":
            raise
        warnings.warn(f"lazynp: {error}; NumPy runs this program instead", RuntimeWarning, stacklevel=3)
        plan = backend("numpy").prepare(program) if gpu is None else gpu.on_host(program)
    with _lock:
        plans[canonical.key] = plan
        if len(plans) > PLANS:
            plans.popitem(last=False)
    return plan


def _remember(failure: ExecutionError, canonical: Canonical) -> BaseException:
    """The error as the user shall see it; kept on its node where trying again would fail again."""
    error = failure.error
    node = canonical.nodes[failure.entry] if failure.entry is not None else None
    error.add_note(f"recorded at {where(site_of(node or canonical.nodes[-1]))}")
    error.__cause__ = error.__context__ = None
    if node is not None and not isinstance(error, MemoryError):
        node.error = error
        _engine.failed.add(node)
    return error


def _raise_stored(canonical: Canonical) -> None:
    for node in canonical.nodes:
        if node.error is not None:
            raise node.error.with_traceback(None)


def choose() -> Backend:
    """The backend for programs, by the switches; the tiered one decides by sizes and counts."""
    if config.backend == "numpy" or (config.backend is None and not _can_compile()):
        return backend("numpy")
    return backend("llvm" if config.tier == "compiled" else "auto")


@functools.cache
def _can_compile() -> bool:
    try:
        load("llvmlite")  # a version number: LLVM itself is not loaded by this
    except ImportError:
        return False
    return True


def backend(name: str) -> Backend:
    """The backend of that name, made when first asked for."""
    made = _engine.backends.get(name)
    return _made(name) if made is None else made


class _Later:
    """The compiling backend, whose modules are loaded when something is to be compiled, and not to find that nothing is."""

    name = "llvm"

    def supported(self, program: Program, e: int) -> bool:
        found: bool = load("lazynp.backends.llvm.supported").supported(program, e)
        return found

    @property
    def ahead(self) -> bool:
        """Tell whether programs are compiled while others run."""
        found: bool = load("lazynp.backends.llvm.client").ahead()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(backend("llvm"), name)


_MODULES: Final = {"numpy": "lazynp.backends.numpy.backend", "llvm": "lazynp.backends.llvm.backend", "auto": "lazynp.engine.tiers"}


def _made(name: str) -> Backend:
    if name not in _MODULES:
        raise ValueError(f"backend {name!r} is not one of {', '.join(_MODULES)}")
    module = load(_MODULES[name])
    made: Backend
    if name == "numpy":
        made = module.NumpyBackend()
    elif name == "llvm":
        made = module.LLVMBackend(backend("numpy").prepare)
    else:
        ready = load("lazynp.backends.numpy.ready")
        made = module.TieredBackend(ready.ReadyBackend(_Later()), _Later())
    return _engine.backends.setdefault(name, made)


def _gpu(device: str) -> Any:
    """The backend of a GPU, made when first asked for."""
    place = devices.place(device)
    with _lock:
        if place.backend is None:
            from lazynp.backends.cuda.backend import CUDABackend

            place.backend = CUDABackend(place, backend("numpy").prepare)
    return place.backend


def compiler(nodes: Sequence[Node] = ()) -> Target:
    """The target that programs are scheduled for; those of ``nodes`` where they belong."""
    device = devices.CPU if devices.gpus is None or not nodes else _one_device(list(nodes))
    target: Any = backend("llvm") if device == devices.CPU else _gpu(device)
    return target


def _choose_cache() -> None:
    """Plans made under one set of switches do not serve another."""
    with _lock:
        switches = (config.backend or "", config.tier, config.debug, config.optimize, devices.CPU, config.memory)
        _engine.plans = _engine.caches.setdefault(switches, OrderedDict())
        _engine.families = _engine.kin.setdefault(switches, Families())
        _engine.large = _engine.larges.setdefault(switches, budget.Large())
        _engine.crowding.clear()
        _engine.generation = config.generation


def _alone() -> None:
    """Forget the others: in a child after ``fork`` the parent's other threads, and what they were running, do not exist."""
    _engine.running = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)


def forget_plans() -> None:
    """Empty the schedule cache."""
    with _lock:
        _engine.caches.clear()
        _engine.kin.clear()
        _engine.larges.clear()
        _engine.crowding.clear()
        _engine.plans.clear()
        _choose_cache()
