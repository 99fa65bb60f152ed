"""Offsets of consumer groups beside a real MirrorMaker 2, and beside a model of it."""
