"""Frozen records and their codec. No I/O, no clock."""
