"""Choosing what to read next. Pure: all I/O is behind the source."""
