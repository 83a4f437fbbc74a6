"""ILOVETOCONBANDITS: a distribution over policies, which are found by an oracle."""
