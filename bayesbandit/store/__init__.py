"""A log of decisions in a database, from which the bandit can be rebuilt and checked."""
