"""Metrics, lag and logs."""
