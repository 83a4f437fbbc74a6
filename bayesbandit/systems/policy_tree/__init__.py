"""Policy-tree smoothing: a shallow tree splits the contexts, and each leaf has one rule."""
