"""Leader switches that make a throttle too low: by election and by death, and without a disk for the tables."""
