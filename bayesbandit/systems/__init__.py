"""The paper's other systems, each with its model, belief, kernels and presets in one folder."""
