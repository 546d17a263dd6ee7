"""Faults of everything that Lading talks to: no wrong row, and the job goes on by itself."""
