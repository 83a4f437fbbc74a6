"""Experiments: environments × bandits × replications, and their results on disk."""
