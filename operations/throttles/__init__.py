"""Throttles: what is in force, what moves need of it, and how it is set and cleared."""
