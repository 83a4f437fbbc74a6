"""The paper's bandits by name; each combines a model, a policy and a balance."""
