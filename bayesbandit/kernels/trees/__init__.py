"""Honest trees in flat arrays: filled, and asked."""
