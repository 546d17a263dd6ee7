"""A job, put together: what runs it, whatever its source is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lading.model.batch import BatchPlan
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.load import SourceSpec
from lading.model.moves import PartitionMove
from lading.model.positions import Positions
from lading.pipeline.stager import Stage
from lading.plan.planner import Source
from lading.sources.registry import kind_of
from lading.sql.properties.files import is_s3_uri
from lading.tables.base import WriterSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSurvey:
    """What is in a source beside what was loaded, at one moment."""

    pending: Mapping[str, int]
    """Files that are still to be loaded, by partition."""
    behind: str
    """The same in words."""
    left_out: Mapping[str, int]
    """Files that are not going to be loaded, by the reason for it."""
    remark: str = ""
    """What people should know, such as those files; empty when there is nothing."""
    settles_in_s: float = 0.0
    """Until files that wait because they may still be written can be loaded; 0: none waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A job, ready to run as soon as its columns are known."""

    job: Job
    source: Source
    stage: Stage | None
    """None: there is no file yet to learn the columns from."""
    interval_s: float
    """How long to wait after the source had nothing."""
    show_position: Callable[[Positions], str]
    """The position as jobs are shown with it."""
    show_range: Callable[[BatchPlan, Bill | None], str]
    """What a batch reads, as tasks are shown with it: as it was planned, or as its bill has it."""
    show_end: Callable[[], str] = lambda: ""
    """How far the source was known to reach when a batch was last planned; empty where it does not tell."""
    remark: Callable[[Positions], str] = lambda positions: ""
    """What people should know when there is nothing new, where the source does not count files. May be slow."""
    behind: Callable[[Positions], str] = lambda positions: ""
    """How much is there that is not loaded yet, in words; likewise."""
    survey: Callable[[Positions], SourceSurvey] | None = None
    """Count what is there, where the source counts files. May be slow: it lists everything."""
    look_everywhere: Callable[[], None] = lambda: None
    """Have the next batch look for everything there is, however long that takes."""
    pin: Callable[[Positions], Callable[[Positions], bool]] | None = None
    """Remember where the source ends now; the answer says of later positions whether they are there. None: a source
    that is read until it has nothing more."""
    plan_move: Callable[[Positions, str, str], tuple[PartitionMove, ...]] | None = None
    """What moving the one position of the source there would do, with a remark. None: a stream, see its kind."""
    is_once: bool = False
    can_learn_columns: Callable[[], bool] = lambda: True
    """Whether something has come since from which the columns can be learned, when `stage` is None."""
    acknowledge: Callable[[Bill], None] = lambda bill: None
    """Tell the source what was committed. Best effort: it may not raise, and nothing is ever read back."""
    close: Callable[[], None] = lambda: None


def with_identity(stage: Stage, source: SourceSpec, target: WriterSpec) -> Stage:
    """The stage, which is lent the service's cloud identity where the source or the table has no keys of its own."""
    is_written = is_s3_uri(target.location) and not target.options.access_key
    return replace(
        stage,
        reads_as_service=kind_of(source.kind).uses_service_identity(source.properties),
        writes_as_service=is_written,
    )
