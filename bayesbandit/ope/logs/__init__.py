"""Logs: decided rounds, checked, and where they come from."""
