"""What a power cut leaves: damaged tables that are mended, and checkpoints that are rebuilt."""
