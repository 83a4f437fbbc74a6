"""Compiled leaves of beliefs about probabilities and rates."""
