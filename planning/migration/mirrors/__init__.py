"""Mirrors of topics on another cluster: offset syncs, records, and where readers continue."""
