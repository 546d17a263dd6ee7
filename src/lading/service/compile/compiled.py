"""A job, put together: what runs it, whatever its source is."""

from __future__ import annotations

from dataclasses import dataclass

from lading.model.job import Job
from lading.model.load import ListenerSpec, LoadSpec
from lading.model.positions import Positions
from lading.net.addresses import AddressRules
from lading.pipeline.stage import Stage
from lading.service.compile.joins import JoinSource
from lading.sources.kind import OpenSource, SourceKind
from lading.store.records import TableEntry
from lading.tables.base import LakeTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A job, ready to run as soon as its columns are known."""

    job: Job
    kind: SourceKind
    source: OpenSource
    stage: Stage | None
    """None: there is no row yet to learn the columns from."""
    interval_s: float
    """How long to wait after the source had nothing."""
    listeners: tuple[ListenerSpec, ...] = ()
    """Who is told when partitions are done."""
    joins: JoinSource | None = None
    """The table that rows are joined with; None: they are not."""

    def show_position(self, positions: Positions) -> str:
        """The position as jobs are shown with it."""
        return self.kind.position_text(positions)

    def close(self) -> None:
        self.source.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the store does not keep of a job that is only tried."""

    opened: tuple[LoadSpec, AddressRules]
    """What it loads, with its secrets, and by which rules its hosts may be reached."""
    into: tuple[LakeTable, TableEntry] | None = None
    """The table, when the job would make it. None: it is there."""
