"""What a power cut leaves: files that are synced before a promise rests on them, and checkpoints that are rebuilt."""
