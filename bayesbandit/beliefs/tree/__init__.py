"""A policy tree: few regions of contexts, and what is known of each arm in each (section 4.3)."""
