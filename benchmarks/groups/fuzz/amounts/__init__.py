"""Amounts, times and lists as text: a grammar by hand, texts near it, and the readers that are held against it."""
