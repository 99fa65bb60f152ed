"""Acting from the page, on real brokers."""
