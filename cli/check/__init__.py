"""`headroom check`: connections, permissions, metrics, and the machine."""
