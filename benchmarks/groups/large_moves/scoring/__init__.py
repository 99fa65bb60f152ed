"""Scores of the alerts and of the advice in a scene of group `large_moves`."""
