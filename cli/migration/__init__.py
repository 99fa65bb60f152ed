"""``headroom migration``: topics that move from one cluster to another."""
