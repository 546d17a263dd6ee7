"""Kinesis for tests."""
