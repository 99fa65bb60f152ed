"""Reassignments of a running cluster."""
