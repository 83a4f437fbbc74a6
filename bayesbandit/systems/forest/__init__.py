"""Honest forests: some rows choose a tree's splits, other rows give its leaves their values."""
