"""Kernels of generalised linear models: likelihoods of a linear predictor, and how they are used."""
