"""The ground floor: what everybody may hold.

Memory (buffers, their allocator, its limits), locks that a fork waits for, the configuration, records.  Nothing here knows a graph.
"""
