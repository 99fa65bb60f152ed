"""Proposals and capacity risks for the alerts of a running watch."""
