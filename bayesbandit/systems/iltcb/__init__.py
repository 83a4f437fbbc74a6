"""ILOVETOCONBANDITS: a distribution over policies that an oracle finds."""
