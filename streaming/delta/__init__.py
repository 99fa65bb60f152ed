"""Delta tables, with and without Spark."""
