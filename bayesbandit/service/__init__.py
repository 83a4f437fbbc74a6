"""A bandit that lives: it decides, takes rewards, learns, and survives the death of any process."""
