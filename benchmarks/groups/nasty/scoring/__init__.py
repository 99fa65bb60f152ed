"""What the alerts of a scene of group `nasty` are worth."""
