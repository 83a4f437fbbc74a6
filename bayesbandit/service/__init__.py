"""A bandit in production: it decides, takes rewards and learns through a database."""
