"""Statements as records, and what they ask for."""
