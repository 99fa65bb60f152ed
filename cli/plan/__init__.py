"""``headroom plan``: the estimate of a planned move."""
