"""The ticks topic as a source of streaming queries."""
