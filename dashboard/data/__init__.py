"""What the page reads from the tables."""
