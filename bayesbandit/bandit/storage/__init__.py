"""Saved bandits: one file each, with checks of its content."""
