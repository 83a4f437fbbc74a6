"""Closed forms: Gaussian, normal-inverse-gamma, beta and gamma."""
