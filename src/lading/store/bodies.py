"""Records as versioned JSON text.

Free text lives only here: PostgreSQL refuses NUL characters in text columns, and JSON escapes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from lading.deferred import deferred
from lading.errors import RecordError
from lading.model.codec import decode, encode, with_all_fates

if TYPE_CHECKING:
    from lading.sql.statements.load_specs import spec_of_text
else:
    spec_of_text = deferred("lading.sql.statements.load_specs", "spec_of_text")

T = TypeVar("T")

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


def _job_2(body: dict[str, Any]) -> dict[str, Any]:
    """Form 2 knows when a job was last resumed without a person, and which of its secrets are in force."""
    resume = body.get("auto_resume") if isinstance(body, dict) else None
    if not isinstance(resume, dict):
        return body
    return {**body, "auto_resume": {**resume, "resumed_at": None}, "secrets_slot": ""}


def _job_3(body: dict[str, Any]) -> dict[str, Any]:
    """Forms 3 and 4 keep the load beside its text, as it was and is described. A text that makes no load any more is
    kept, and stops its job alone."""
    return {**body, "spec": _spec(body.get("definition"))} if isinstance(body, dict) else body


def _edit_2(body: dict[str, Any]) -> dict[str, Any]:
    """An edit that was cut off: forms 2 and 3 keep the load that it makes."""
    event = body.get("event") if isinstance(body, dict) else None
    if not isinstance(event, dict):
        return body
    return {**body, "event": {**event, "spec": _spec(event.get("definition"))}}


def _job_5(body: dict[str, Any]) -> dict[str, Any]:
    """Form 5 has rows that came too late, and loads that may have a watermark."""
    if not isinstance(body, dict):
        return body
    window, task = body.get("window_base"), body.get("task")
    return {
        **_with_late(body, "totals"),
        "watermark_us": None,
        "kept": None,
        "listening": None,
        "joined": [],
        "window_base": {**window, "late": 0, "duplicate": 0} if isinstance(window, dict) else window,
        "task": _with_late(task, "tally") if isinstance(task, dict) else task,
        "spec": _with_watermark(body.get("spec")),
    }


def _edit_4(body: dict[str, Any]) -> dict[str, Any]:
    event = body.get("event") if isinstance(body, dict) else None
    if not isinstance(event, dict):
        return body
    return {
        **body,
        "event": {
            **event,
            "watermark_us": None,
            "kept": None,
            "is_said_again": False,
            "joined": [],
            "spec": _with_watermark(event.get("spec")),
        },
    }


def _job_6(body: dict[str, Any]) -> dict[str, Any]:
    """Form 6 knows what the last batch read that died, and loads say what becomes of a record that kills workers."""
    if not isinstance(body, dict) or not isinstance(body.get("pace"), dict):
        return body
    new: dict[str, Any] = {"has_committed": False, "fill": 1.0, "least": None, "suspects": [], "poison": None}
    return {**body, "pace": {**new, "passed": 0, **body["pace"]}, "spec": _with_poison(body.get("spec"))}


def _edit_5(body: dict[str, Any]) -> dict[str, Any]:
    event = body.get("event") if isinstance(body, dict) else None
    if not isinstance(event, dict):
        return body
    return {**body, "event": {**event, "spec": _with_poison(event.get("spec"))}}


def _job_7(body: dict[str, Any]) -> dict[str, Any]:
    """Form 7: loads say what becomes of fields that the table has no column for."""
    return {**body, "spec": _with_evolution(body.get("spec"))} if isinstance(body, dict) else body


def _edit_6(body: dict[str, Any]) -> dict[str, Any]:
    event = body.get("event") if isinstance(body, dict) else None
    if not isinstance(event, dict):
        return body
    return {**body, "event": {**event, "spec": _with_evolution(event.get("spec"))}}


def _job_8(body: dict[str, Any]) -> dict[str, Any]:
    """Form 8: what ended workers may be rows inside of a file."""
    paced = body.get("pace") if isinstance(body, dict) else None
    if not isinstance(paced, dict):
        return body
    new = {
        "least": _with_inside(paced["least"]),
        "suspects": [{**each, "place": _with_inside(each["place"])} for each in paced["suspects"]],
        "poison": paced["poison"] and {**paced["poison"], "place": _with_inside(paced["poison"]["place"])},
    }
    return {**body, "pace": {**paced, **new}}


def _job_9(body: dict[str, Any]) -> dict[str, Any]:
    """Form 9: loads say what becomes of files that cannot be read, and such a file is read once more alone."""
    if not isinstance(body, dict):
        return body
    told, paced = {**body, "spec": _with_on_error(body.get("spec"))}, body.get("pace")
    if isinstance(paced, dict) and isinstance(paced.get("poison"), dict):
        told["pace"] = {**paced, "poison": {"is_checked": False, **paced["poison"]}}
    return told


def _job_10(body: dict[str, Any]) -> dict[str, Any]:
    """Form 10: a job may have a table that gets its bad rows."""
    if not isinstance(body, dict):
        return body
    return {**body, "errors_copied": None, "spec": _with_errors_table(body.get("spec"))}


def _job_11(body: dict[str, Any]) -> dict[str, Any]:
    """Form 11 remembers what went wrong lately."""
    return {**body, "tries": []} if isinstance(body, dict) else body


def _edit_7(body: dict[str, Any]) -> dict[str, Any]:
    event = body.get("event") if isinstance(body, dict) else None
    if not isinstance(event, dict):
        return body
    return {**body, "event": {**event, "spec": _with_on_error(event.get("spec"))}}


def _edit_8(body: dict[str, Any]) -> dict[str, Any]:
    event = body.get("event") if isinstance(body, dict) else None
    if not isinstance(event, dict):
        return body
    return {**body, "event": {**event, "spec": _with_errors_table(event.get("spec"))}}


def _with_on_error(spec: Any) -> Any:
    intake = spec.get("intake") if isinstance(spec, dict) else None
    return {**spec, "intake": {"on_error": "PAUSE", **intake}} if isinstance(intake, dict) else spec


def _with_errors_table(spec: Any) -> Any:
    return {"errors_table": "", **spec} if isinstance(spec, dict) else spec


def _with_inside(place: Any) -> Any:
    return {"inside": [], **place} if isinstance(place, dict) else place


def _with_evolution(spec: Any) -> Any:
    return {"evolution": {"mode": "NONE", "rescued_column": ""}, **spec} if isinstance(spec, dict) else spec


def _with_poison(spec: Any) -> Any:
    return {"on_poison_record": "PAUSE", **spec} if isinstance(spec, dict) else spec


def _task_2(body: dict[str, Any]) -> dict[str, Any]:
    return _with_late(body, "tally") if isinstance(body, dict) else body


def _bill_2(body: dict[str, Any]) -> dict[str, Any]:
    return _with_late(_with_late(body, "tally"), "totals") if isinstance(body, dict) else body


def _with_late(body: dict[str, Any], field: str) -> dict[str, Any]:
    tally = body.get(field)
    return {**body, field: with_all_fates(tally)} if isinstance(tally, dict) and "rows" in tally else body


def _with_watermark(spec: Any) -> Any:
    return (
        {"watermark": None, "dedup": None, "window": None, "listening": None, "join": None, **spec}
        if isinstance(spec, dict)
        else spec
    )


def _spec(text: Any) -> Any:
    return encode(spec_of_text(text)) if isinstance(text, str) else None


def _user_2(body: dict[str, Any]) -> dict[str, Any]:
    """Form 2 keeps what caching_sha2_password is checked against. It cannot be made without the password."""
    return {**body, "sha2_verifier": ""} if isinstance(body, dict) else body


def _token_2(body: dict[str, Any]) -> dict[str, Any]:
    """Form 2 knows how long a token is valid, what for, and when it was used. An older one goes on as it was."""
    return {**body, "scope": "FULL", "expires_at": None, "last_used_at": None} if isinstance(body, dict) else body


def _table_2(body: dict[str, Any]) -> dict[str, Any]:
    """Form 2 lacks a name of settings that nothing ever read."""
    return {name: value for name, value in body.items() if name != "options_ref"} if isinstance(body, dict) else body


def _table_3(body: dict[str, Any]) -> dict[str, Any]:
    """Form 3 tells tables that were adopted from those that Lading made."""
    return {**body, "is_adopted": False} if isinstance(body, dict) else body


UPGRADES: dict[str, tuple[Upgrade, ...]] = {
    "JobRecord": (_job_2, _job_3, _job_3, _job_5, _job_6, _job_7, _job_8, _job_9, _job_10, _job_11),
    "BegunEdit": (_edit_2, _edit_2, _edit_4, _edit_5, _edit_6, _edit_7, _edit_8),
    "TaskRecord": (_task_2,),
    "BillEntry": (_bill_2,),
    "UserEntry": (_user_2,),
    "AccessTokenEntry": (_token_2,),
    "TableEntry": (_table_2, _table_3),
}
"""By the name of the record: what makes form 2 of form 1, form 3 of form 2, and so on."""


def version_of(kind: type[Any]) -> int:
    """The form in which records of this kind are written now."""
    return len(UPGRADES.get(kind.__name__, ())) + 1


def render_body(record: Any) -> str:
    return json.dumps({"version": version_of(type(record)), "body": encode(record)})


def parse_body(kind: type[T], text: str, *, where: str) -> T:
    """Read a record of this kind, in this or an older form."""
    try:
        envelope = json.loads(text)
        version, body = envelope["version"], envelope["body"]
    except (ValueError, TypeError, KeyError) as error:
        raise _unreadable(where, "it is not a record") from error
    if version > version_of(kind):
        msg = f"{where} in the metadata store has form {version}; this Lading reads forms up to {version_of(kind)}"
        raise RecordError(msg, left="Nothing was changed.", todo="Use the newer Lading that wrote it.")
    for upgrade in UPGRADES.get(kind.__name__, ())[version - 1 :]:
        body = upgrade(body)
    try:
        record: T = decode(kind, body, where=where)
    except RecordError as error:
        raise _unreadable(where, error.what) from error
    return record


def _unreadable(where: str, why: str) -> RecordError:
    msg = f"{where} in the metadata store cannot be read: {why}"
    todo = "Restore the store from a copy, or rebuild it from the tables."
    return RecordError(msg, left="Nothing was changed.", todo=todo)
