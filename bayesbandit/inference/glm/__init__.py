"""Generalised linear models: recognised from the declaration, and sampled by augmentation."""
