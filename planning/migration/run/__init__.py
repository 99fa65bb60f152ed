"""Steps of a run: the next change of each partition's agreement, from what both clusters show."""
