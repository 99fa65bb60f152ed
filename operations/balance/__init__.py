"""Balance of a cluster: scores, and proposals."""
