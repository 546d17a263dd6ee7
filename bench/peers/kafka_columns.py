"""What is in a message."""

from __future__ import annotations

COLUMNS = "id BIGINT, city STRING, amount DECIMAL(10,2), url STRING, agent STRING, note STRING"
TOPIC = "bench"
BATCH_ROWS = 200_000
