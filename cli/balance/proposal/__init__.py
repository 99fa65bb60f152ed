"""``headroom balance propose`` and ``explain``: changes, what each gains and costs, and the files that make them."""
