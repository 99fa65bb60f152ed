"""Inputs of the rules: rows of the gold tables as frozen dataclasses."""
