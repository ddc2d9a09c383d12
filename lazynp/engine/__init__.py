"""From pending arrays to values.

The way in (``realize``), who is compiled when, where a value belongs, what is known of buffers, and what explains it all.
"""
