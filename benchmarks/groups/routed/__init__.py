"""What clients of the routing library cost, and what they notice of a switch."""
