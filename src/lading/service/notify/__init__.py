"""Telling people what became of a job: who is told, of what, and that it was told."""
