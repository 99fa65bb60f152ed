"""Malformed messages and texts for all readers of outside input."""
