"""Tables of any size: a bandit learns them part by part."""
