"""Needs of the throttles of running moves."""
