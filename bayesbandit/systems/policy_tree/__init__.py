"""Policy-tree smoothing: one rule for each of few regions of contexts."""
