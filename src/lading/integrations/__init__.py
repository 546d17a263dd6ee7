"""Lading in the schedulers of others. Nothing here needs more than Python and the scheduler itself."""
