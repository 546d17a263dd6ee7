"""Moves of jobs that keep state: the state goes with the position, or it is forgotten, and the statement says which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lading.errors import SqlError
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.load import LoadSpec, StreamJoinSpec
from lading.service.compile.sourced import source_of
from lading.service.compile.stream_joins import kept_columns
from lading.service.edits.edit import UNDO, Edit
from lading.service.edits.history import bills_since_commit, moves_back
from lading.service.edits.rewritten import rows_written_again
from lading.service.session import Session
from lading.sources.registry import kind_of
from lading.sql.statements.load_specs import load_spec, spec_of_text
from lading.sql.statements.stream_joins import stream_keys

PROPERTY = "state"
_COMMIT = re.compile(r"COMMIT\s+(\d{1,18})", re.IGNORECASE)


def take_state_word(properties: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """What an ALTER says about the state, which is no property of the job, and the other properties."""
    word = properties.get(PROPERTY, "").strip().upper()
    if PROPERTY in properties and word != "RESET" and _COMMIT.fullmatch(word) is None:
        msg = f'"state" should be RESET, or COMMIT and the number of a commit, and it is {properties[PROPERTY]!r}'
        raise SqlError(msg, todo="The page of the job in the console lists its commits.")
    return word, {name: value for name, value in properties.items() if name != PROPERTY}


def with_state_word(session: Session, edit: Edit, word: str) -> Edit:
    """The edit with what its statement says about the state. Raises SqlError where it says too little."""
    if commit := _COMMIT.fullmatch(word):
        return _back_to(session, edit, int(commit[1]))
    if word:
        newest = session.lading.bills(edit.record, 1)
        return replace(edit, resets_state=True, seen=edit.seen or (newest[0].head if newest else None))
    old, new = load_spec(edit.old), load_spec(edit.new)
    bills = session.lading.bills(edit.record, 1)
    if edit.restored is not None:
        _check_is_there(session, edit.record, edit.restored)
    if not bills or edit.restored is not None:
        return edit
    if bills[0].state is None:
        # The event times that are known are those of another column: the watermark begins again.
        is_other = old.watermark is not None and _time(old) != _time(new)
        return replace(edit, resets_state=True, seen=edit.seen or bills[0].head) if is_other else edit
    if edit.is_move:
        what = "its position cannot be moved alone: what it keeps would be that of other rows"
    elif _keys(old) != _keys(new):
        what = "its keys, windows, aggregates, joins and watermark.column cannot be changed: it keeps those of before"
    else:
        return edit
    msg = f"Job {edit.record.full_name} keeps state, so {what}"
    if edit.action == UNDO:
        todo = 'ALTER the job to the definition that you want, with "state" = "RESET" in PROPERTIES.'
    else:
        todo = (
            'Add "state" = "RESET" to PROPERTIES to forget the state, or go back to a commit with its state: '
            'PROPERTIES ("state" = "COMMIT 17").'
        )
    raise SqlError(msg, todo=todo)


def _keys(load: LoadSpec) -> tuple[object, ...]:
    """What a load keeps is of this form."""
    join = load.stream_join
    kept = (join.is_left, join.times, join.low_us, join.high_us, *_on(load, join)) if join is not None else None
    zone = load.session.time_zone if load.watermark is not None else None  # Texts are times in it.
    return load.dedup and load.dedup.keys, load.window and replace(load.window, having=None), _time(load), zone, kept


def _on(load: LoadSpec, join: StreamJoinSpec) -> tuple[object, ...]:
    """Keys and columns of rows that are kept, with the names of their sides: those can be changed together only."""
    on = stream_keys(join, load.mapping.source_alias or "", strict_cast=load.session.strict_cast)
    # Of a LEFT join a row is written alone when nothing matched it: by the condition by which others matched.
    rest = sorted(part.text for part in on.rest) if join.is_left else []
    return [(one.text, other.text) for one, other in on.keys], sorted(kept_columns(load, join)), rest


def _time(load: LoadSpec) -> str | None:
    return load.watermark.column.lower() if load.watermark is not None else None


def _check_is_there(session: Session, record: JobRecord, bill: Bill) -> None:
    """Refuse to go back to state that is gone: the job would stop with its first batch."""
    gone = session.lading.open_target(record).bills.missing_state(record.job_id, bill.state) if bill.state else ""
    if gone:
        msg = f"Job {record.full_name} cannot go back to commit {bill.seq}: its state file {gone} is gone"
        todo = 'Restore the file, go back to another commit, or forget the state: ALTER with "state" = "RESET".'
        raise SqlError(msg, todo=todo)


def _back_to(session: Session, edit: Edit, seq: int) -> Edit:
    if edit.moves or edit.is_new_source:
        msg = "An ALTER that goes back to a commit cannot move the position elsewhere"
        raise SqlError(msg, todo="Say one of the two.")
    line = bills_since_commit(session, edit.record, seq)
    newest, bill = line[0], next(found for found in line if found.seq == seq)
    _check_is_there(session, edit.record, bill)
    then, now = spec_of_text(bill.definition), load_spec(edit.new)
    if then is None or _keys(then) != _keys(now) or then.source.kind != now.source.kind:
        msg = f"Commit {seq} was made by another definition of the job, with other keys or windows"
        raise SqlError(msg, todo='Go back to a commit of the definition of now, or use "state" = "RESET".')
    kind = kind_of(source_of(edit.old).name)
    moves = moves_back(kind, newest.positions, bill.positions)
    moves = tuple(replace(move, remark=_remark(line, seq)) for move in moves)
    return replace(edit, seen=newest.head, moves=moves, restored=bill, facts={**edit.facts, "state": f"commit {seq}"})


def _remark(line: Sequence[Bill], seq: int) -> str:
    again = rows_written_again(line, seq)
    if again is not None:
        return f"{again} rows that were written since commit {seq} are written again"
    why = "how many rows that are cannot be told, because the position or the state was changed since"
    return f"what was written since commit {seq} is written again; {why}"
