"""Runs of the tests: their folders, and how busy the machine was; standard library only."""
