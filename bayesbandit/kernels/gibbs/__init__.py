"""Compiled sweeps of the Gibbs sampler."""
