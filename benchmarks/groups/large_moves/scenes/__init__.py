"""The scenes of group `nasty`."""
