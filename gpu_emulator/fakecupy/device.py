"""``cupy.cuda.device`` and the properties of the devices.

In: device numbers.  Out: ``Device`` objects, dictionaries of properties as the runtime gives them.  Promise: the current device is each
thread's own; figures are those of an H100 class device, with the compute capability and the memory that ``install`` was told.
"""

from __future__ import annotations

from typing import Any

from gpu_emulator.fakecupy.blocks import store
from gpu_emulator.fakecupy.errors import CUDARuntimeError
from gpu_emulator.fakecupy.machine import machine

SHARED, SHARED_OPTIN = 48 << 10, 227 << 10
MAX_GRID, MAX_BLOCK, MAX_THREADS = (2**31 - 1, 65535, 65535), (1024, 1024, 64), 1024

ATTRIBUTES = {
    "AsyncEngineCount": 3, "ClockRate": 1980000, "ComputeCapabilityMajor": 9, "ComputeCapabilityMinor": 0, "ConcurrentKernels": 1,
    "CooperativeLaunch": 1, "L2CacheSize": 52428800, "MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 64, "MaxGridDimX": 2**31
    - 1, "MaxGridDimY": 65535, "MaxGridDimZ": 65535, "MaxRegistersPerBlock": 65536, "MaxRegistersPerMultiprocessor": 65536,
    "MaxSharedMemoryPerBlock": SHARED, "MaxSharedMemoryPerBlockOptin": SHARED_OPTIN, "MaxSharedMemoryPerMultiprocessor": 233472,
    "MaxThreadsPerBlock": 1024, "MaxThreadsPerMultiProcessor": 2048, "MultiProcessorCount": 132, "WarpSize": 32, "GlobalMemoryBusWidth":
    6144, "MemoryClockRate": 3201000, "UnifiedAddressing": 1, "PageableMemoryAccess": 0, "MemoryPoolsSupported": 1,
}
# the numbers of cudaDeviceAttr that hosts ask for by number
ATTRIBUTE_NUMBERS = {
    1: "MaxThreadsPerBlock", 8: "MaxSharedMemoryPerBlock", 10: "WarpSize", 16: "MultiProcessorCount", 38: "L2CacheSize",
    39: "MaxThreadsPerMultiProcessor", 41: "UnifiedAddressing", 75: "ComputeCapabilityMajor", 76: "ComputeCapabilityMinor",
    81: "MaxSharedMemoryPerMultiprocessor", 82: "MaxRegistersPerMultiprocessor", 88: "PageableMemoryAccess", 95: "CooperativeLaunch",
    97: "MaxSharedMemoryPerBlockOptin", 115: "MemoryPoolsSupported",
}


def attributes() -> dict[str, int]:
    major, minor = machine().capability
    return {**ATTRIBUTES, "ComputeCapabilityMajor": major, "ComputeCapabilityMinor": minor}


def properties(device: int) -> dict[str, Any]:
    """``cudaDeviceProp`` as CuPy's dictionary; the names are those that it has for every CUDA version."""
    if not 0 <= device < machine().devices:
        raise CUDARuntimeError(101)
    major, minor = machine().capability
    return {
        "name": b"Fake H100", "totalGlobalMem": store().capacity, "sharedMemPerBlock": SHARED, "sharedMemPerBlockOptin": SHARED_OPTIN,
        "sharedMemPerMultiprocessor": 233472, "reservedSharedMemPerBlock": 1024, "regsPerBlock": 65536, "regsPerMultiprocessor": 65536,
        "warpSize": 32, "maxThreadsPerBlock": MAX_THREADS, "maxThreadsDim": MAX_BLOCK, "maxGridSize": MAX_GRID, "major": major, "minor":
        minor, "multiProcessorCount": 132, "maxThreadsPerMultiProcessor": 2048, "maxBlocksPerMultiProcessor": 32, "l2CacheSize": 52428800,
        "memoryBusWidth": 6144, "concurrentKernels": 1, "asyncEngineCount": 3, "unifiedAddressing": 1, "managedMemory": 1,
        "pageableMemoryAccess": 0, "cooperativeLaunch": 1, "ECCEnabled": 1, "integrated": 0, "canMapHostMemory": 1, "pciBusID": 16 +
        device, "pciDeviceID": 0, "pciDomainID": 0, "totalConstMem": 65536, "streamPrioritiesSupported": 1, "uuid": bytes([device]) * 16,
    }


class Device:
    """A device, by number; as a context, the current one."""

    def __init__(self, device: int | None = None) -> None:
        number = machine().device if device is None else int(device)
        self.id = number
        self._stack: list[int] = []

    def use(self) -> None:
        machine().device = self.id

    def synchronize(self) -> None:
        machine().synchronize_device(self.id)

    def __enter__(self) -> Device:
        before = machine().device
        self.use()
        self._stack.append(before)
        return self

    def __exit__(self, *args: object) -> None:
        machine().device = self._stack.pop()

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    @property
    def compute_capability(self) -> str:
        return "{}{}".format(*machine().capability)

    @property
    def attributes(self) -> dict[str, int]:
        return attributes()

    @property
    def mem_info(self) -> tuple[int, int]:
        memory = store()
        return memory.capacity - memory.used[self.id], memory.capacity

    @property
    def pci_bus_id(self) -> str:
        return f"0000:{16 + self.id:02X}:00.0"


def get_device_id() -> int:
    return machine().device


def get_compute_capability() -> str:
    return Device().compute_capability
