"""What is kept of a record that ended its workers, and is passed over."""

from __future__ import annotations

MAX_PASSED_BYTES = 64 * 1024
"""A longer one is kept by its position alone: what ended them may be its length."""
