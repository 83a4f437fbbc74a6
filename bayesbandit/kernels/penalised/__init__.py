"""Penalised least squares."""
