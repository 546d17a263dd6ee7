"""Packets, logins, values: the bytes."""
