"""``cupy.cuda.runtime``: the calls with integers.

In: handles, addresses, sizes.  Out: what the machine and its memory answer.  Promise: names, numbers and errors are the real module's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_emulator.fakecupy import blocks
from gpu_emulator.fakecupy import device as _device
from gpu_emulator.fakecupy import stream as _stream
from gpu_emulator.fakecupy.blocks import Pinned, store
from gpu_emulator.fakecupy.errors import CUDARuntimeError
from gpu_emulator.fakecupy.machine import GraphState, machine

VERSION = 13000

CONSTANTS = {
    "memcpyHostToHost": 0, "memcpyHostToDevice": 1, "memcpyDeviceToHost": 2, "memcpyDeviceToDevice": 3, "memcpyDefault": 4,
    "streamDefault": 0, "streamNonBlocking": 1, "streamLegacy": 1, "streamPerThread": 2, "eventDefault": 0, "eventBlockingSync": 1,
    "eventDisableTiming": 2, "eventInterprocess": 4, "streamCaptureModeGlobal": 0, "streamCaptureModeThreadLocal": 1,
    "streamCaptureModeRelaxed": 2, "streamCaptureStatusNone": 0, "streamCaptureStatusActive": 1, "streamCaptureStatusInvalidated": 2,
    "hostAllocDefault": 0, "hostAllocPortable": 1, "hostAllocMapped": 2, "hostAllocWriteCombined": 4, "memoryTypeUnregistered": 0,
    "memoryTypeHost": 1, "memoryTypeDevice": 2, "memoryTypeManaged": 3, "is_hip": False,
}
ATTRIBUTES = {f"cudaDevAttr{name}": number for number, name in _device.ATTRIBUTE_NUMBERS.items() if "Capability" not in name}


def driverGetVersion() -> int:
    return VERSION


def runtimeGetVersion() -> int:
    return VERSION


# devices


def getDeviceCount() -> int:
    return machine().devices


def getDevice() -> int:
    return machine().device


def setDevice(device: int) -> None:
    machine().device = device


def getDeviceProperties(device: int) -> dict[str, Any]:
    return _device.properties(device)


def deviceGetAttribute(attrib: int, device: int) -> int:
    if attrib not in _device.ATTRIBUTE_NUMBERS:
        raise CUDARuntimeError(1)
    return _device.attributes()[_device.ATTRIBUTE_NUMBERS[attrib]]


def deviceSynchronize() -> None:
    machine().synchronize_device(machine().device)


def deviceCanAccessPeer(device: int, peerDevice: int) -> int:
    return int(device != peerDevice)


def deviceEnablePeerAccess(peerDevice: int) -> None:
    pair = (machine().device, peerDevice)
    if pair in store().peers:
        raise CUDARuntimeError(704)
    store().peers.add(pair)


def deviceDisablePeerAccess(peerDevice: int) -> None:
    pair = (machine().device, peerDevice)
    if pair not in store().peers:
        raise CUDARuntimeError(705)
    store().peers.remove(pair)


# memory


def memGetInfo() -> tuple[int, int]:
    memory = store()
    return memory.capacity - memory.used[machine().device], memory.capacity


def malloc(size: int) -> int:
    return store().allocate(size, machine().device).address


def _block(ptr: int) -> blocks.Block:
    block = store().device.find(ptr)
    if block is None or block.address != ptr or not block.live:
        raise CUDARuntimeError(1)
    return block


def free(ptr: int) -> None:
    if ptr:
        block = _block(ptr)
        machine().synchronize_device(block.device)
        store().release(block)


def mallocAsync(size: int, stream: int) -> int:
    """Live at once: what uses it in another stream before the stream gets there is not noticed."""
    machine().stream(stream)
    return malloc(size)


def freeAsync(ptr: int, stream: int) -> None:
    block, memory = _block(ptr), store()
    machine().enqueue(machine().stream(stream), lambda: memory.release(block), "free of memory")


def hostAlloc(size: int, flags: int) -> int:
    return store().pin(size).address


def freeHost(ptr: int) -> None:
    pinned = store().pinned.find(ptr)
    if pinned is None or pinned.address != ptr or not pinned.live:
        raise CUDARuntimeError(1)
    for number in range(machine().devices):
        machine().synchronize_device(number)
    store().unpin(pinned)


def hostRegister(ptr: int, size: int, flags: int) -> None:
    if store().pinned.find(ptr) is not None:
        raise CUDARuntimeError(712)
    store().pinned.add(Pinned(ptr, size, None))


def hostUnregister(ptr: int) -> None:
    pinned = store().pinned.find(ptr)
    if pinned is None or pinned.address != ptr or pinned.owner is not None:
        raise CUDARuntimeError(713)
    store().pinned.remove(pinned)


def memcpy(dst: int, src: int, size: int, kind: int) -> None:
    blocks.copy_now(dst, src, size, kind)


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    blocks.copy_async(dst, src, size, kind, machine().stream(stream))


def memcpyPeer(dst: int, dstDevice: int, src: int, srcDevice: int, size: int) -> None:
    blocks.copy_now(dst, src, size, blocks.ON_DEVICE)


def memcpyPeerAsync(dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int) -> None:
    blocks.copy_async(dst, src, size, blocks.ON_DEVICE, machine().stream(stream))


def memset(ptr: int, value: int, size: int) -> None:
    blocks.fill_async(ptr, value, size, machine().stream(0))


def memsetAsync(ptr: int, value: int, size: int, stream: int) -> None:
    blocks.fill_async(ptr, value, size, machine().stream(stream))


class PointerAttributes:
    """What an address is."""

    def __init__(self, device: int, devicePointer: int, hostPointer: int, type: int) -> None:
        self.device, self.devicePointer, self.hostPointer, self.type = device, devicePointer, hostPointer, type


def pointerGetAttributes(ptr: int) -> PointerAttributes:
    block = store().device.find(ptr)
    if block is not None and block.live:
        return PointerAttributes(block.device, ptr, 0, 2)
    if store().pinned.find(ptr) is not None:
        return PointerAttributes(machine().device, ptr, ptr, 1)
    return PointerAttributes(-2, 0, ptr, 0)


# streams


def streamCreate() -> int:
    return machine().create_stream(non_blocking=False)


def streamCreateWithFlags(flags: int) -> int:
    return machine().create_stream(non_blocking=bool(flags & 1))


def streamDestroy(stream: int) -> None:
    machine().destroy_stream(stream)


def streamSynchronize(stream: int) -> None:
    machine().synchronize_stream(machine().stream(stream))


def streamQuery(stream: int) -> int:
    return 0 if _stream.query(machine().stream(stream)) else 600


def streamWaitEvent(stream: int, event: int, flags: int = 0) -> None:
    machine().wait(machine().stream(stream), machine().event(event))


def streamGetFlags(stream: int) -> int:
    return int(not machine().stream(stream).blocking)


def streamGetPriority(stream: int) -> int:
    return machine().stream(stream).priority


def launchHostFunc(stream: int, callback: Callable[[Any], None], arg: Any) -> None:
    machine().enqueue(machine().stream(stream), lambda: callback(arg), "host function")


def streamBeginCapture(stream: int, mode: int = 2) -> None:
    if stream in (0, 1):
        raise RuntimeError("cannot capture on the default (legacy) stream")
    machine().begin_capture(machine().stream(stream), mode)


def streamEndCapture(stream: int) -> int:
    state = machine().end_capture(machine().stream(stream))
    handle = next(machine().handles)
    machine().graphs[handle] = state
    return handle


def streamIsCapturing(stream: int) -> bool:
    return machine().stream(stream).capture is not None


def _graph(handle: int) -> GraphState:
    if handle not in machine().graphs:
        raise CUDARuntimeError(400)
    return machine().graphs[handle]


def graphInstantiate(graph: int) -> int:
    state = _graph(graph)
    handle = next(machine().handles)
    machine().graphs[handle] = GraphState(state.nodes, state.device)
    return handle


def graphLaunch(graphExec: int, stream: int) -> None:
    machine().launch_graph(_graph(graphExec), machine().stream(stream))


def graphUpload(graphExec: int, stream: int) -> None:
    _graph(graphExec)


def graphDestroy(graph: int) -> None:
    machine().graphs.pop(graph, None)


def graphExecDestroy(graphExec: int) -> None:
    machine().graphs.pop(graphExec, None)


# events


def eventCreate() -> int:
    return machine().create_event(timing=True)


def eventCreateWithFlags(flags: int) -> int:
    return machine().create_event(timing=not flags & 2)


def eventDestroy(event: int) -> None:
    machine().events.pop(event, None)


def eventRecord(event: int, stream: int) -> None:
    machine().record(machine().event(event), machine().stream(stream))


def eventQuery(event: int) -> int:
    return 0 if _stream.query_event(machine().event(event)) else 600


def eventSynchronize(event: int) -> None:
    _stream.synchronize_event(machine().event(event))


def eventElapsedTime(start: int, end: int) -> float:
    return _stream.elapsed(machine().event(start), machine().event(end))


def profilerStart() -> None:
    """Nobody profiles."""


def profilerStop() -> None:
    """Nobody profiles."""
