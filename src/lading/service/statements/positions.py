"""Moving positions without SQL, through the same code as ALTER."""

from __future__ import annotations

from collections.abc import Mapping

from lading.errors import ConfigError
from lading.service.edits.begun import settled
from lading.service.edits.edit import Edit, check_paused, check_seen, commit_edit, plan_of
from lading.service.edits.plan import EditPlan
from lading.service.session import Session
from lading.service.statements.loads import prepare_move


def plan_edit(session: Session, job: str, positions: Mapping[str, str | None]) -> EditPlan:
    """What moving these partitions would do, by the words of SQL; None gives a partition up. Changes nothing."""
    return plan_of(_prepared(session, job, positions, ""))


def edit_positions(
    session: Session, job: str, positions: Mapping[str, str | None], *, reason: str = "", seen: str = ""
) -> EditPlan:
    """Move these partitions, through the same code as ALTER; with the `seen` of a plan, only from where that began."""
    edit = _prepared(session, job, positions, reason)
    if seen:
        check_seen(edit, seen)
    return commit_edit(session, edit)


def _prepared(session: Session, job: str, positions: Mapping[str, str | None], reason: str) -> Edit:
    if not positions:
        msg = "No position is named"
        raise ConfigError(msg, left="Nothing was changed.", todo="Name a partition and where it should go.")
    record = settled(session.lading, session.lading.any_job(job))
    check_paused(record, session)
    return prepare_move(session, record, positions, reason)
