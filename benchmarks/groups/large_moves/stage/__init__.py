"""Context of the scenes of group `large_moves`: topic, brokers, disks and shell."""
