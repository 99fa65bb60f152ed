"""Reassignments: runs of a plan, and their journal."""
