"""Reads both clusters of the migrations to the watched cluster, apart from the ticks, and makes their rows."""
