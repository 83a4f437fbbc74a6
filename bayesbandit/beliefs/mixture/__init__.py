"""A distribution over policies as a belief: ILOVETOCONBANDITS."""
