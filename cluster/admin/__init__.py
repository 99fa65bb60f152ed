"""Requests that read and change configurations and elect leaders."""
