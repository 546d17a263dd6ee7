"""The web console: pages over the same records that every other face shows."""
