"""Faults that are seeded into a copy of the code, to see whether a test catches each."""
