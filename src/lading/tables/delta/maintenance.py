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
CHECKPOINTS = "delta.checkpointInterval"
_NOT_CLEANED = frozenset({"v2Checkpoint", "checkpointProtection"})
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
    checkpoint_made: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRules:
    """What is to be kept whatever the settings of the table say."""

    keeps_all: bool = False
    is_adopted: bool = False


def look_after_log(
    storage: ObjectStore, options: S3Access, policy: CarePolicy, now: datetime, rules: LogRules
) -> LogRound:
    """Make a checkpoint, then remove log entries that the table itself says are expired.

    Of an adopted table the owner has the word: a checkpoint is made when `delta.checkpointInterval` is set, entries are
    removed when `delta.enableExpiredLogCleanup` is set to true. Bills are kept as long as its log could tell of them.
    """
    table = load_table(storage, options)
    settings, features = metadata_of(table).configuration, protocol_of(table).features
    makes = not rules.is_adopted or CHECKPOINTS in settings
    if makes:
        with translated(storage):
            # Dies after the checkpoint: it is complete, or nobody is pointed to it. Entries below it are still there.
            table.create_checkpoint()
    remark = why_not(settings)
    if features & _NOT_CLEANED:
        name = min(features & _NOT_CLEANED)
        remark = f"the table has the feature {name}: what else its log needs is for its own engine to tell"
    keep, removes = _retention(settings, policy), not rules.is_adopted or CLEANS in settings
    if remark or rules.keeps_all or not _is_on(settings) or not removes:
        history = _oldest(now, keep) if rules.is_adopted and not remark and not rules.keeps_all else None
        return LogRound(remark=remark, checkpoint_made=makes, history_from=history)
    oldest = _oldest(now, keep)
    expired = expired_files(storage, oldest) if oldest else []
    # Dies in here: some entries below a checkpoint are gone. Versions from that checkpoint on need none of them.
    storage.delete(expired)
    return LogRound(removed=len(expired), history_from=oldest, checkpoint_made=makes)


def _retention(settings: Mapping[str, str], policy: CarePolicy) -> timedelta:
    return max(parse_interval(settings.get(RETENTION, _DEFAULT_RETENTION)) or timedelta(0), policy.grace)


def _oldest(now: datetime, keep: timedelta) -> datetime | None:
    """As Spark does: the whole day on which the oldest kept entry was written."""
    return (now - keep).replace(hour=0, minute=0, second=0, microsecond=0) if keep < timedelta(days=36500) else None


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
