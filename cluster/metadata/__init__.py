"""Snapshots of the cluster's metadata."""
