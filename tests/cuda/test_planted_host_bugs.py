"""Bugs planted in the host code of the CUDA backend: each must be found by the test named beside it, under at least one order of work."""

from __future__ import annotations

import inspect
import pathlib
import textwrap
from typing import Any, NamedTuple

import pytest

from lazynp.backends.common import ownership, rechecks
from lazynp.backends.cuda import backend, compiler, graphs, launch, memory, render, runs, transfers, words
from lazynp.engine import devices, realize
from lazynp.namespace.device import accumulating, scattering, sequences, sharing, ziggurats
from lazynp.namespace.device import routines as composed
from lazynp.namespace.device import words as random_words
from lazynp.namespace.device.gpus import GPUs
from lazynp.values import pressure
from tests.cuda import (
    counts,
    test_accumulating,
    test_ahead,
    test_composed,
    test_devices,
    test_drawing,
    test_graphs,
    test_host,
    test_memory,
    test_sequences,
    test_transfers,
    test_writes,
)
from tests.cuda.host import SEEDS, machine


class Bug(NamedTuple):
    name: str
    owner: Any  # of the function
    function: str
    right: str
    wrong: str
    probe: Any  # a test, or a function of none
    arguments: tuple[Any, ...] = ()
    devices: int = 1
    inside: Any = None  # a machine of another kind, by its seed


H, D, G, T, M = test_host, test_devices, test_graphs, test_transfers, test_memory
A, C, P, W = test_accumulating, test_composed, test_ahead, test_writes
R, S = test_drawing, test_sequences

BUGS = [
    Bug("nobody waits for another thread's stream", memory.DeviceBlock, "join", "self.place.order(other, run.stream)", "pass",
        H.test_threads_hand_memory_over),
    Bug("another thread's memory is given back too early", runs.Run, "__exit__", "other.wait_event(done)", "pass",
        H.test_threads_hand_memory_over),
    Bug("uploads are not remembered", memory.Place, "uploaded", "self._twins[buffer] = twin", "pass", H.test_values_are_copied_once),
    Bug("uploads of half an array", memory.Place, "uploaded", "address, nbytes, self", "address, nbytes // 2, self",
        H.test_programs, ("elementwise",)),
    Bug("downloads are not kept", memory.DeviceBuffer, "_exported", "array = self._array = ", "array = ", H.test_values_are_copied_once),
    Bug("what others know is written", memory.DeviceBuffer, "exclusive", "self.exported", "False", H.test_what_is_shared_is_not_written),
    Bug("another GPU's value is copied before it is there", memory.Place, "_from_another", "run.stream.wait_event(made)", "pass",
        D.test_a_value_moves_between_gpus_without_the_host, (300_000,), 2),
    Bug("another GPU's memory is used again while it is copied", memory.Place, "_from_another", "source.stream.wait_event(copied)", "pass",
        D.test_memory_of_a_value_that_moved_is_not_used_again_too_early, (), 2),
    Bug("multipliers are rounded down", render, "reciprocal", "-(-(1 << 31 + (divisor - 1).bit_length()) // divisor)",
        "(1 << 31 + (divisor - 1).bit_length()) // divisor", H.test_programs, ("views",)),
    Bug("wide indices are divided by multipliers", launch.DeviceLauncher, "launch", "block[slot] &= 0xFFFFFFFF", "pass",
        H.test_indices_that_turn_out_to_be_wide),
    Bug("downloads are taken before they came", transfers.Uploads, "_arrived", "piece.event.synchronize()", "pass",
        H.test_programs, ("elementwise",)),
    Bug("page-locked memory is given away while a copy comes", transfers.Uploads, "download", "coming.append((piece, staged, part))",
        "coming.append((piece, staged, part)), free.append(piece)", T.test_large_downloads),
    Bug("complex numbers lie anywhere", sharing, "from_gpu", "laid.data.ptr % laid.itemsize", "False",
        H.test_complex_numbers_of_others_are_aligned, (1, "c16")),
    Bug("the account of a device never shrinks", pressure.Account, "released", "self.held -= nbytes", "pass",
        M.test_what_values_hold_by_line),
    Bug("a device computes what the host has", pressure.Account, "pending", "value.buffer.place is self.place", "True",
        M.test_a_device_that_is_full_computes_nothing_of_the_host),
    Bug("what lasts is split off large blocks", memory.Place, "allocate_lasting", "self.lasting.malloc", "self.cupy.cuda.alloc",
        M.test_what_streams_keep_holds_no_large_block),
    Bug("old elements are not put back", memory.DeviceBuffer, "recover", "in reversed(saved)", "in ()",
        H.test_large_arrays_are_written_in_place),
    Bug("old elements are read while others write", memory.DeviceBuffer, "recover", "place.joined(run, self.block)", "pass",
        T.test_old_values_are_saved_before_another_threads_memory_is_used_again),
    Bug("a run that is interrupted is forgotten", transfers.UploadedBlock, "join", "last is not None and last.done is None", "last is run",
        T.test_a_run_that_is_interrupted_ends_later),
    Bug("finalizers compute in the stream of uploads", memory.Place, "apart", "local.run = local.run, None", "local.run = local.run, run",
        T.test_finalizers_compute_in_a_stream_of_their_own),
    Bug("a span is restored from itself", memory.Span, "__setitem__", "value.address", "self.address",
        H.test_a_failed_run_puts_back_what_it_wrote),
    Bug("adopted memory is ours", memory.Place, "adopted", "found.exported = True", "pass", H.test_cupys_memory_is_not_written),
    Bug("no second try when memory is full", memory.Place, "retrying", "    pass\n", "    raise\n",
        D.test_copies_of_host_arrays_go_when_the_device_is_full),
    Bug("copies of host arrays stay when memory is full", memory.Place, "give_back", "self._twins.clear()", "pass",
        D.test_copies_of_host_arrays_go_when_the_device_is_full),
    Bug("a write loses what lies behind it", launch, "_updated", "place.copy(new.address + hi, old.address + hi, old.nbytes - hi, run)",
        "pass", H.test_writes_through_views),
    Bug("a write loses what lies between its elements", launch, "_updated", "update.whole or not _solid(update)", "update.whole",
        H.test_writes_through_views),
    Bug("what is overwritten is not saved", launch, "_updated", "claim.save(", "id(", H.test_large_arrays_are_written_in_place),
    Bug("a write reaches less than it does", launch, "_reach", "(last + 1) * size", "last * size",
        H.test_a_failed_run_puts_back_what_it_wrote),
    Bug("memory of others is overwritten", launch, "_updated", "free = update.last and (claimed or (",
        "free = update.last or (claimed or (", H.test_what_is_shared_is_not_written),
    Bug("offsets are left out", launch.DeviceLauncher, "launch", "(block, integers, scalars)",
        "(block, [0] * len(integers), scalars)", H.test_programs, ("views",)),
    Bug("one word for two things", launch.DeviceLauncher, "launch", "word + 8", "word", H.test_floating_point_errors_are_numpys),
    Bug("words are never cleared", launch, "borrowed",
        "place.runtime.memsetAsync(found.address, 0, PAIR * found.capacity, run.ptr)", "pass", H.test_programs, ("gathered",)),
    Bug("words are not cleared once they told", words.Words, "read", "self.told = True", "pass",
        H.test_an_error_is_told_once),
    Bug("words are looked at too early", words.Words, "read", "self.done.synchronize()", "pass", H.test_an_error_is_told_once),
    Bug("words of a run that failed are used again", launch, "borrowed", "home.pop() if home", "home[-1] if home",
        H.test_a_run_that_fails_leaves_no_words),
    Bug("words are given up while their copy is under way", words.Words, "__del__", "self.done.synchronize()", "pass",
        P.test_words_of_a_run_that_nobody_looks_at_wait_for_their_copy),
    Bug("words are asked for in no order", words.Words, "ask", "self.done.record(run.stream)", "self.done.record(place.cupy.cuda.Stream())",
        H.test_an_error_is_told_once),
    Bug("indices out of range go unnoticed", launch.DevicePlan, "checked", "step.error and found[2 * step.word]", "False",
        H.test_indices_out_of_range),
    Bug("floating-point errors go unnoticed", launch.DevicePlan, "checked", "flags |= found[2 * step.word + 1] & step.wanted",
        "pass", H.test_floating_point_errors_are_numpys),
    Bug("CuPy's errors go unnoticed", launch.DeviceLibraryStep, "run",
        "self.place.watched().look(found, words + PAIR * self.word + 8, run)", "pass", H.test_floating_point_errors_are_numpys),
    Bug("errors that nobody waited for go unnoticed", words.Ticket, "read", "flags |= found[2 * number + 1] & wanted", "pass",
        P.test_the_next_run_tells),
    Bug("a read tells of no earlier run", memory.Place, "downloaded", "rechecks.tell()", "pass", P.test_a_value_that_is_read_tells),
    Bug("what is written in place is not looked at before", rechecks, "look", "_look()", "break",
        P.test_what_is_written_in_place_is_looked_at_before),
    Bug("the last block is not launched", launch.Phase, "launch", "block[self.slot]\n", "max(block[self.slot] - 1, 1)\n",
        H.test_programs, ("elementwise",)),
    Bug("graphs of other arguments", graphs.Launch, "key", "self.block.tobytes()", "0",
        G.test_a_loop_that_replaces_its_array, inside=G.steady),
    Bug("graphs of other copies", graphs.Copy, "key", "self.target, self.source, self.nbytes", "0",
        G.test_copies_of_one_array_and_of_another, inside=G.steady),
    Bug("graphs without their copies", memory.Place, "copy", "run.queue.work.append(piece)", "piece.put(run.stream)",
        G.test_a_loop_that_writes_in_place, inside=G.steady),
    Bug("a graph that is not launched", graphs.Graphs, "put", "graph.launch(run.stream)", "pass",
        G.test_a_loop_that_replaces_its_array, inside=G.steady),
    Bug("a graph in another stream", graphs.Graphs, "put", "graph.launch(run.stream)",
        "graph.launch(place.cupy.cuda.Stream(non_blocking=True))", G.test_a_loop_that_replaces_its_array, inside=G.steady),
    Bug("work is lost where a run fails", runs.Planned, "__exit__", "queue.put(self.run)", "pass",
        G.test_a_run_that_fails_on_the_way, inside=G.steady),
    Bug("work of two plans is mixed", runs.Planned, "__enter__", "self.interrupted, self.run.queue = self.run.queue, None",
        "self.interrupted = None", G.test_a_finalizer_computes_on_the_way, inside=G.steady),
    Bug("memory is not held until work is in the stream", launch.DevicePlan, "run", "run.queue.held += [values[e] for e in dead]", "pass",
        G.test_memory_that_is_given_up_meanwhile, inside=G.steady),
    Bug("workspaces are not held until work is in the stream", launch.DeviceLauncher, "launch", "run.queue.held += held", "pass",
        G.test_memory_that_is_given_up_meanwhile, inside=G.steady),
    Bug("a kernel of the wrong device", backend.CUDABackend, "link", "with self.place.running():", "if True:", D.test_two_devices, (), 2),
    Bug("kernels of another source", backend.CUDABackend, "kernels_of", 'digest(source.encode())', 'b"same"',
        H.test_values_are_copied_once),
    Bug("what the disk has is not looked at", compiler, "functions", "code = cache.get(key)", "code = None",
        H.test_kernels_are_compiled_once),
    Bug("an export without its offset", sharing, "interface", "buffer.address + offset", "buffer.address",
        H.test_cupys_arrays_in_and_out),
    Bug("an export that nobody keeps", sharing, "interface", "held.add(buffer.block)", "pass", H.test_what_is_shared_is_not_written),
    Bug("values move to another device", realize, "_moved", "devices.place(device).uploaded(buffer)", "buffer", D.test_two_devices, (), 2),
    Bug("two devices are one", devices, "join", "raise _mixed(joined, other, node)", "continue",
        D.test_operands_on_two_devices_are_refused, (), 2),
    Bug("the way back to the processor is forgotten", realize, "_compute", "node.buffer = node.buffer.at_home(home)",
        "pass", H.test_homes_under_a_default),
    Bug("a claim forgets device memory", ownership.Claim, "settle", "buffer.recover(self.saved)", "pass",
        H.test_large_arrays_are_written_in_place),
    Bug("an earlier write wins", scattering, "_last", "cupy.maximum.at(last, at, cupy.arange(at.size, dtype=np.uint64))", "pass",
        W.test_writes_are_numpys, ("rows, one twice, of itself",)),
    Bug("a mask takes values of any shape", scattering, "written", "_is_mask(key, x.ndim) and", "False and",
        W.test_writes_are_numpys, ("values of two dimensions",)),
    Bug("a write counts twice", accumulating, "_rows", "const(done - 1, INT64)", "const(max(done - 2, -1), INT64)",
        A.test_positions_with_very_different_numbers_of_writes),
    Bug("what fills the rows is added", accumulating, "_rows", "written, const(NEUTRAL[op], dtype))", "written, value)",
        A.test_reductions, ("add",)),
    Bug("the last write counts only once", accumulating, "_rows", "elementwise(o.MINIMUM, INT64, number, last)", "number",
        A.test_zeros_keep_their_sign),
    Bug("a sum forgets the sign of its zeros", accumulating, "summed", 'if terms.dtype.kind != "f":', "if True:",
        A.test_zeros_keep_their_sign),
    Bug("a single column is added up in another order", accumulating, "_reduced", "max(end, begin + 2)", "end",
        A.test_positions_with_very_different_numbers_of_writes),
    Bug("a busy position keeps everybody waiting", accumulating, "_reduced", "raise TooBusyError", "pass",
        A.test_a_busy_position_is_left_to_numpy),
    Bug("floating-point errors of ufunc.at go unheard", accumulating, "_strict", 'else "raise"', 'else "ignore"',
        A.test_floating_point_errors_are_numpys),
    Bug("the last bin is open", composed, "_between", "where(x == known[-1], n - 1, where(x == x, index, 0))", "where(x == x, index, 0)",
        C.test_histograms, ("l",)),
    Bug("weights are added across blocks", composed, "_weighed", "blocks = -(-index.size // BLOCK)", "blocks = 1",
        C.test_histograms_of_several_blocks),
    Bug("weights are added in an order of ours", composed, "_total", 'if counts.dtype.kind in "iu"', "if True",
        C.test_histograms_of_several_dimensions),
    Bug("every nan is another", composed, "_first_of_each", "if equal_nan and", "if False and", C.test_sets_of_numbers_that_are_none),
    Bug("a line that gives nan is not tried from its other end", composed, "_drawn",
        "found = where(found == found, found, where((other != other) & (y == next_y), y, other))", "pass", C.test_interpolation),
    Bug("windows see beyond the ends", sequences, "_slid", "elementwise(o.WHERE, x.dtype, inside, terms, const(0, x.dtype))", "terms",
        S.test_windows, ("l",)),
    Bug("the last element of a segment counts for those it lacks", sequences, "_pieces", "if op in NEUTRAL:", "if False:",
        S.test_long_segments),
    Bug("the other half of a word is lost", random_words.Words, "advance", "halves % 2", "0",
        R.test_numpys_bits_and_state, ("rng.random(N, dtype='f4')", "PCG64"), inside=R.drawing),
    Bug("words that somebody has set are computed", random_words.Philox, "known",
        'bool((same.state["buffer"] == self.state["buffer"]).all())', "True", R.test_what_the_host_draws, inside=R.drawing),
    Bug("a carry is lost", random_words.Congruential, "_words", "do(o.ADD, do(o.ADD, upper, upper_term), carry)",
        "do(o.ADD, upper, upper_term)", R.test_numpys_bits_and_state, ("rng.random(N)", "PCG64"), inside=R.drawing),
    Bug("a word that another took takes the next", ziggurats._Decided, "_first", "while first[k] and j", "while j",
        R.test_words_that_a_word_takes),
    Bug("a ziggurat without a tail", ziggurats, "numbers", "if not tails:", "if True:",
        R.test_many_numbers_of_ziggurats, ("standard_normal",), inside=R.drawing),
]  # fmt: skip


def planted(bug: Bug) -> Any:
    """The function with the bug in it."""
    function = inspect.unwrap(getattr(bug.owner, bug.function))
    text = textwrap.dedent(inspect.getsource(function))
    assert text.count(bug.right) == 1, (bug.name, text.count(bug.right))
    namespace: dict[str, Any] = {}
    exec(compile(text.replace(bug.right, bug.wrong), f"<{bug.name}>", "exec"), function.__globals__, namespace)
    return namespace[bug.function]


def _found(bug: Bug, seed: int, tmp_path: pathlib.Path) -> bool:
    given = inspect.signature(bug.probe).parameters
    try:
        if not {"gpu", "one", "two"} & set(given):
            bug.probe(*bug.arguments)  # it makes its own machine
            return False
        with bug.inside(seed) if bug.inside else machine(seed=seed, devices=bug.devices) as fake, pytest.MonkeyPatch.context() as patch:
            extra = {"monkeypatch": patch} if "monkeypatch" in given else {}
            if "tmp_path" in given:
                extra["tmp_path"] = tmp_path
            bug.probe(*bug.arguments, fake, **extra)
    except (Exception, pytest.fail.Exception):
        return True
    return False


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_it_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    right, wrong = getattr(bug.owner, bug.function), planted(bug)
    monkeypatch.setattr(bug.owner, bug.function, wrong)
    for name, member in list(vars(GPUs).items()):
        if isinstance(member, staticmethod) and member.__func__ is right:
            monkeypatch.setattr(GPUs, name, staticmethod(wrong))
    assert any(_found(bug, seed, tmp_path / str(seed)) for seed in SEEDS), "nobody noticed"
    counts.found_by["the tests of the host"].add(bug.name)
