"""``headroom report``: a report of a range of time."""
