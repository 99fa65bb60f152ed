"""A cluster as it was observed, as a model for its balance, with what is not known of it."""
