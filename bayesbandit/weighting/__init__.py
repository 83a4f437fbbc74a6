"""Balances, which weight observations."""
