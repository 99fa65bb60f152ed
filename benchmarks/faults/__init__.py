"""Faults of brokers, processes, networks, disks, files and clocks, made on purpose, and undone."""
