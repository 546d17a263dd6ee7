"""Two sources as one, for joins of two streams."""
