"""Metrics from jmx_exporter, by its own names or those of its rules."""
