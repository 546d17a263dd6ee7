"""Compaction: many small files of Lading become few large ones, with the same rows in the same order."""
