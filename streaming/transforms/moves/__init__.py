"""Throttle headroom and reassignment progress as DataFrames."""
