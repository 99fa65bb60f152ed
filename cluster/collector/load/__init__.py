"""Loads of brokers, which are read seldom and in the background, so that no tick waits for them."""
