"""From what a load keeps to what merges its batches."""

from __future__ import annotations

from lading.errors import StageError
from lading.ids import NewToken
from lading.pipeline.environment import without_identity
from lading.pipeline.session import is_local
from lading.pipeline.stage import Stage
from lading.pipeline.stager import SparkStager
from lading.pipeline.state.dedup import DedupMerger
from lading.pipeline.state.jobs import StateJobs
from lading.pipeline.state.joins import JoinMerger
from lading.pipeline.state.rules import JoinRule, StreamJoinRule, WindowRule
from lading.pipeline.state.sessions import SessionMerger
from lading.pipeline.state.stream_joins import StreamJoinMerger
from lading.pipeline.state.windows import WindowMerger

AnyMerger = DedupMerger | WindowMerger | JoinMerger | StreamJoinMerger


def new_merger(stager: SparkStager, stage: Stage, new_token: NewToken) -> AnyMerger:
    """What merges batches with the state of a load or with a table, in the session of its stager."""
    state = stage.state
    if state is None:
        msg = "A load without state has nothing to merge"
        raise StageError(msg, left="Nothing was changed.", todo="Report this.")
    variables = stage.tools.identity if stage.writes_as_service else without_identity(stage.tools.identity)
    jobs = StateJobs(
        spark=stager.session,
        place=state.place,
        group=stager.group,
        pool=stage.pool,
        identity=dict(variables) if is_local(stager.spark) else {},
        libraries=stage.libraries,
    )
    if isinstance(state.rule, StreamJoinRule):
        return StreamJoinMerger(state, state.rule, jobs, new_token)
    if isinstance(state.rule, JoinRule):
        return JoinMerger(state, state.rule, jobs, new_token)
    if isinstance(state.rule, WindowRule):
        merger = SessionMerger if state.rule.is_session else WindowMerger
        return merger(state, state.rule, jobs, new_token)
    return DedupMerger(state, state.rule, jobs, new_token)
