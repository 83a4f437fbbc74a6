"""Hunts for wrong answers: random declarations, each held against PyMC's own log density."""
