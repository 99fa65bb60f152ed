"""The ``headroom`` command: parses, wires and prints; every other room does the work."""
