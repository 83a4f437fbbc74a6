"""The belief about context-free rewards: a probability or a rate for each arm."""
