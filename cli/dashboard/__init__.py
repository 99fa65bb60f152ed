"""``headroom dashboard``: the page."""
