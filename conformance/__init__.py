"""Test suites that others wrote, run on lazynp: how they are run, what is left out and why, and the recorded results."""
