"""From a statement to what runs."""
