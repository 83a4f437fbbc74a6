"""Generalised linear models of rewards, streamed by Laplace's approximation."""
