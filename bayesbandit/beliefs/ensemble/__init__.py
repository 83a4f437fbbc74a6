"""Ensembles of estimates on resampled rounds: bootstrap LASSO and ridge."""
