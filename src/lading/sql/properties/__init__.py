"""Properties: which there are, and what they may be."""
