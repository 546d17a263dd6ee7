"""Looks for secrets in all objects of a store: tables, bills and manifests that were written there."""

from __future__ import annotations

from pathlib import Path

from tests.secret_leaks.files import look_inside
from tests.secret_leaks.watch import Watch
from tests.tables.s3_server import S3Server


def look_at_buckets(store: S3Server, watch: Watch) -> int:
    """Show every object to the watch, as it is and unpacked. Says how many there were."""
    count = 0
    for where, metadata, raw in store.objects():
        count += 1
        if not watch.look(f"{where} {metadata}", where) and not watch.look(raw, where):
            look_inside(raw, Path(where), watch)
    return count
