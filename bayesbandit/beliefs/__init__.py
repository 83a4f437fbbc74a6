"""What is known now about all arms at once."""
