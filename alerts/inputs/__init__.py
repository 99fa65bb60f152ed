"""What rules evaluate: rows of the gold tables as frozen dataclasses."""
