"""The ways to NumPy itself.

The counted fallback, NumPy's functions as items of the schedule, and which of our objects stands for which of NumPy's.
"""
