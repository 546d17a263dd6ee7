"""Which tables there are, and where."""
