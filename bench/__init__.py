"""Benchmarks of lazynp against NumPy and against what its users could pick instead.

``python -m bench`` runs the workloads, ``python -m bench.overheads`` measures the fixed costs.  Every comparison is made of
interleaved pairs in one process, so that a busy machine slows both sides, and reports the median of the pairs' ratios.
"""
