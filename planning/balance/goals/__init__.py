"""Goals of a balanced cluster: limits that no broker may exceed, and bands that all brokers should be in."""
