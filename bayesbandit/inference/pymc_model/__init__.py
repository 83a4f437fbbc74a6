"""What is asked of a built model: its identity, prior draws, likelihood, mean rewards."""
