"""Throttle rates and throttled replica lists of a running cluster."""
