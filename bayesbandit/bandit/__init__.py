"""Playing: a belief, a policy and a balance put together."""
