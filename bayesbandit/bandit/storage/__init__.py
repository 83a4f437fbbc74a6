"""A bandit in one file, and what is demanded of it."""
