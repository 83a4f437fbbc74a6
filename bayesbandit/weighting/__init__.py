"""How observations are weighted."""
