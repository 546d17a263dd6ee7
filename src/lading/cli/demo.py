"""`lading demo`: to come."""


def demo() -> None:
    """Load, kill, load again, count."""
