"""Contexts by a formula: no text of one is evaluated, and its cost is bounded before it is paid."""
