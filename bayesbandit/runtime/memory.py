"""How much is computed at once."""

AT_ONCE = 4_000_000  # numbers in one step's intermediate results
