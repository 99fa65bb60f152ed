"""Where the scenes of group `nasty` take place."""
