"""Migrations under way: run, status, shield and cancel. All state is in the agreement topic."""
