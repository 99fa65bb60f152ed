"""What power cuts, damaged files and upgrades leave of what Headroom has announced and stored."""
