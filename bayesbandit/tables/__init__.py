"""Tables of mixed columns as contexts."""
