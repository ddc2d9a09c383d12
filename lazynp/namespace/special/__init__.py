"""The functions of ``lazynp.special``."""
