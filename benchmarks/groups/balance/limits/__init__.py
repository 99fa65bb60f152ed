"""Limits while proposals are carried out, counted apart from the product on random clusters."""
