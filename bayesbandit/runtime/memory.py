"""How much is computed at once."""

AT_ONCE = 4_000_000  # numbers in one step's intermediate results
PIECE = 16_384  # those of a density that is computed while other threads decide: a millisecond
