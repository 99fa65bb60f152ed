"""Reassignments: runs of a plan."""
