"""Closed forms: Gaussian, and normal-inverse-gamma."""
