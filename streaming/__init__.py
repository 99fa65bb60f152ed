"""Spark: session, sources, transforms from DataFrame to DataFrame, sinks and jobs."""
