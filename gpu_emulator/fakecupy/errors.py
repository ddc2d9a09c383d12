"""What goes wrong: the exceptions of the real package, and ``Violation``.

In: a status number, or a sentence.  Out: exceptions with the real classes' names, bases, attributes and texts.  Promise: what real
hardware answers with an error code raises the real class; what it would answer with garbage, a race or a dead context is a ``Violation``,
which the machine also writes down, so that a host that swallows exceptions cannot hide it.
"""

from __future__ import annotations

RUNTIME = {
    1: ("cudaErrorInvalidValue", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    3: ("cudaErrorInitializationError", "initialization error"),
    21: ("cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    600: ("cudaErrorNotReady", "device not ready"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    704: ("cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"),
    705: ("cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"),
    712: ("cudaErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"),
    713: ("cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"),
    900: ("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"),
    901: ("cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"),
    902: ("cudaErrorStreamCaptureMerge", "operation would result in a merge of separate capture sequences"),
    903: ("cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"),
    904: ("cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"),
    905: ("cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"),
    906: ("cudaErrorStreamCaptureImplicit", "operation would make the legacy stream depend on a capturing blocking stream"),
    907: ("cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"),
}
DRIVER = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    200: ("CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"),
    209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
    301: ("CUDA_ERROR_FILE_NOT_FOUND", "file not found"),
    400: ("CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
}
NVRTC = {
    4: "NVRTC_ERROR_INVALID_PROGRAM",
    5: "NVRTC_ERROR_INVALID_OPTION",
    6: "NVRTC_ERROR_COMPILATION",
}


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__("{}: {}".format(*RUNTIME[status]))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.status,)


class CUDADriverError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__("{}: {}".format(*DRIVER[status]))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.status,)


class NVRTCError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"{NVRTC[status]} ({status})")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.status,)


class OutOfMemoryError(MemoryError):
    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        self._size, self._total, self._limit = size, total, limit
        so_far = f"allocated so far: {total:,} bytes"
        if limit:
            so_far += f", limit set to: {limit:,} bytes"
        super().__init__(f"Out of memory allocating {size:,} bytes ({so_far}).")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._size, self._total, self._limit)


class Violation(AssertionError):
    """The host did what hardware answers with garbage, or with a fault that kills the context."""
