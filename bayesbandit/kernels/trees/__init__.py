"""Policy trees: how they are searched, and what their leaves learn."""
