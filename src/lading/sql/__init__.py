"""Lading's SQL: text to statements and back. Pure: no I/O, no clock, no Spark."""
