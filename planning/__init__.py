"""Arithmetic of throttles and durations: pure functions on frozen dataclasses, with no I/O and no clock."""
