"""The storage that tables stand on."""
