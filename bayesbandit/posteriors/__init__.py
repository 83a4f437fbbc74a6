"""Posteriors of declared models given rows of data, and their conversion to ArviZ."""
