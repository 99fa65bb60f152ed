"""Context of the scenes of group `nasty`: topic, brokers, disks and shell."""
