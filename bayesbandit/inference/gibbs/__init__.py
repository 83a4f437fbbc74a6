"""Gibbs sampling of conditionally Gaussian models, by compiled kernels."""
