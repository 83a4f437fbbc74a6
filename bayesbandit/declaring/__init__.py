"""Declarations of reward models: functions and priors, and the gallery that finds them."""
