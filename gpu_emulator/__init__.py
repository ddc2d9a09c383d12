"""CUDA without a GPU: kernels run from their CUDA C, host programs on a fake CuPy (see README.md).

``execution`` is the device: the CUDA execution model on the processor.  ``fakecupy`` is the host's side of it: what ``import cupy`` means.
Promise: nothing here knows lazynp; the tests of lazynp's CUDA backend are one user of it.
"""
