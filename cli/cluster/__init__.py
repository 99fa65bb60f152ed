"""`headroom cluster`: real brokers on this machine."""
