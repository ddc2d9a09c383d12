"""What the backends share.

Running schedules, writing in place, finding out which operation raised a flag.
"""
