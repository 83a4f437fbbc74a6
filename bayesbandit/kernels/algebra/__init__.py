"""Small dense linear algebra, compiled."""
