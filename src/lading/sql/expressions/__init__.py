"""Expressions of Doris in the words of Spark."""
