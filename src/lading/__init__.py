"""Lading: continuous loads into lakehouse tables, each record once."""

__version__ = "0.1.0"

__all__ = ["__version__"]
