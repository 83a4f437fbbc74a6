"""Honest forests: trees that are grown by some rows and filled by others."""
