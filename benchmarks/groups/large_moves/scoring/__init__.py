"""Scores of the alerts and of the advice in a scene of group `nasty`."""
