"""The CUDA backend: programs on one GPU.

In: programs, and values in host or device memory.  Out: plans that run on a device, and values in its memory.  Promise: results, warnings
and errors are NumPy's, but for the differences that ``docs/gpu.md`` lists; CuPy is imported when a program asks for a GPU, not before.

The way of a program: ``backend.py`` takes loop nests from ``codegen/grid``, ``render.py`` makes C++ of them, ``compiler.py`` makes
functions of that, and ``launch.py`` runs these and the calls of ``library.py``.  Memory and streams are in ``memory.py``, ``runs.py`` and
``transfers.py``.  An error goes from ``errors.py``, ``looks.py`` or ``watch.py`` through ``words.py`` to ``backends/common/rechecks.py``.
Where a value lives is decided in ``engine/devices.py``.  What NumPy's functions do on a device is in ``namespace/device``.

All of it has run, with the native core, on one H100 80GB HBM3 beside 16 cores of an Emerald Rapids Xeon.  Versions: driver 580.159, CUDA
13.0, Python 3.12, NumPy 2.5.2, CuPy 14.2.0, JAX 0.11.2.  Commands: ``tools/first_light.sh smoke`` and ``tests``, and ``python -m bench.gpu
--peers cupy,jax --seconds 0.3 --limit 8``.  Several GPUs, other generations and Windows have only been emulated.

A copy within the memory of that device moves 3,030 GB/s.  Workloads bound by memory run at 70 to 99 % of a copy; 11 of 16 reach the goal of
85 %.  ``mean, std, min and max`` is at 43 %: by definition it reads twice.  JAX is ahead where the host counts (ten small products), where
doubles are multiplied by the dozen (Mandelbrot, ``gelu`` with ``erf``, pairwise distances), and in masked means.
"""
