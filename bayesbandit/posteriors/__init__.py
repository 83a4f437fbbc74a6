"""From a declared model and rows of data to its posterior, and to ArviZ."""
