"""Trees in flat arrays: honest ones filled and asked, policy trees searched and learned from."""
