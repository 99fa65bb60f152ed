"""Rules on running reassignments."""
