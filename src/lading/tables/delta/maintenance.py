"""Looking after the log of a Delta table: checkpoints, and removing log entries that the table says are expired.

delta-rs' own removal is not used: it takes a retention that it cannot read, such as `365 days`, for thirty days, and
removes entries that versions within the retention are built on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore
from lading.tables.delta.actions import LOG
from lading.tables.delta.intervals import parse_interval
from lading.tables.delta.library import load_table, metadata_of, protocol_of, translated
from lading.tables.maintenance import CarePolicy

CLEANS = "delta.enableExpiredLogCleanup"
RETENTION = "delta.logRetentionDuration"
_DEFAULT_RETENTION = "interval 30 days"
_ENTRY = re.compile(LOG + r"/(\d{20})\.(json|crc|checkpoint(?:\.\d{10}\.\d{10})?\.parquet)")
_CHECKPOINT = "checkpoint.parquet"
"""Of one part: of several, one may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRound:
    """What one round did."""

    removed: int = 0
    history_from: datetime | None = None
    """Since when the table keeps its own history; None: it keeps all of it."""
    remark: str = ""


def look_after_log(
    storage: ObjectStore, options: S3Access, policy: CarePolicy, now: datetime, *, keeps_all: bool = False
) -> LogRound:
    """Make a checkpoint, then remove log entries that the table itself says are expired."""
    table = load_table(storage, options)
    with translated(storage):
        # Dies after the checkpoint: it is complete, or nobody is pointed to it. Entries below it are still there.
        table.create_checkpoint()
        settings = metadata_of(table).configuration
    remark = why_not(settings)
    if "v2Checkpoint" in protocol_of(table).features:
        remark = "checkpoints of the form v2 have files beside them that Lading does not follow"
    if remark or keeps_all or not _is_on(settings):
        return LogRound(remark=remark)
    retention = parse_interval(settings.get(RETENTION, _DEFAULT_RETENTION)) or timedelta(0)
    keep = max(retention, policy.grace)
    # As Spark does: the whole day on which the oldest kept entry was written.
    oldest = (now - keep).replace(hour=0, minute=0, second=0, microsecond=0) if keep < timedelta(days=36500) else None
    expired = expired_files(storage, oldest) if oldest else []
    # Dies in here: some entries below a checkpoint are gone. Versions from that checkpoint on need none of them.
    storage.delete(expired)
    return LogRound(removed=len(expired), history_from=oldest)


def why_not(settings: Mapping[str, str]) -> str:
    """Why nothing may be removed although cleaning is not off; empty when the settings are understood."""
    if settings.get(CLEANS, "true").strip().lower() not in ("true", "false"):
        return f"{CLEANS} is {settings[CLEANS]!r}, which is not understood"
    if parse_interval(settings.get(RETENTION, _DEFAULT_RETENTION)) is None:
        return f"{RETENTION} is {settings[RETENTION]!r}, which is not understood"
    return ""


def _is_on(settings: Mapping[str, str]) -> bool:
    return settings.get(CLEANS, "true").strip().lower() == "true"


def expired_files(storage: ObjectStore, oldest: datetime) -> list[str]:
    """Keys of log files that no version written since `oldest` is built on, lowest version first.

    Every such version is built on the newest checkpoint at or below it, and the entries from there on.
    """
    listed = storage.list(f"{LOG}/")
    files = [(int(match[1]), match[2], info) for info in listed if (match := _ENTRY.fullmatch(info.key))]
    entries = {version: info.modified for version, kind, info in files if kind == "json"}
    young = [version for version, written in entries.items() if written >= oldest]
    first = min(young, default=max(entries, default=-1))
    base = max((version for version, kind, _ in files if kind == _CHECKPOINT and version <= first), default=-1)
    return [key for _, key in sorted((version, info.key) for version, _, info in files if version < base)]
