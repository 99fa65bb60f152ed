"""Carries out commands that the page shows: first without ``--execute``, then for good, by a process of its own."""
