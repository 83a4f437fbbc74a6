"""The paper's bandits by name: a model, a policy and a balance, put together."""
