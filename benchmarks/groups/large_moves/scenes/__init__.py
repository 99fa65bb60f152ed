"""The scenes of group `large_moves`."""
