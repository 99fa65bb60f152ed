"""Estimates of a planned reassignment."""
