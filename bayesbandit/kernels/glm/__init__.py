"""Generalised linear models: their likelihoods, modes, and Gibbs sweeps."""
