"""The page: whether a move will finish, and what stands behind that, from the tables alone."""
