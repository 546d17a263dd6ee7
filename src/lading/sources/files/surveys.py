"""What a survey of files means to people."""

from __future__ import annotations

from lading.jobs.batches import NOT_LOADED
from lading.sources.files.source import FileCount, Survey
from lading.sources.kind import SourceSurvey

LATE, FORGOTTEN, CHANGED, UNREAD = "late", "forgotten", "changed", "unread"


def told_survey(partition: str, survey: Survey, settle_s: float) -> SourceSurvey:
    """The survey of a job's files as every face shows it."""
    pending = survey.pending
    return SourceSurvey(
        pending={partition: pending.files},
        behind=f"{pending.files:,} files behind ({pending.size_bytes:,} bytes)",
        left_out={
            LATE: survey.late.files,
            FORGOTTEN: survey.lost_files or 0,
            CHANGED: survey.changed.files,
            UNREAD: survey.unread.files,
        },
        remark="; ".join(filter(None, (_left_out(survey), _waiting(survey, settle_s)))),
        settles_in_s=survey.settles_in_s,
    )


def _left_out(survey: Survey) -> str:
    remarks = []
    if survey.late.files:
        remarks.append(
            f"{_counted(survey.late.files)} before the position (late files; "
            f'"s3.late_files" = "LOAD" loads them): {_named(survey.late)}'
        )
    if survey.lost_files:
        remarks.append(
            f"at least {_counted(survey.lost_files)} that came after the job had forgotten what it loaded around their "
            'names and times ("s3.also_load" loads files by name)'
        )
    if survey.changed.files:
        remarks.append(
            f"{_counted(survey.changed.files)} that changed after being loaded (a file with another name is loaded): "
            f"{_named(survey.changed)}"
        )
    if survey.unread.files:
        they = "it" if survey.unread.files == 1 else "they"
        remarks.append(
            f"{_counted(survey.unread.files)} put aside because {they} could not be read (SHOW LOAD ERRORS says why; "
            f"what is replaced is loaded): {_named(survey.unread)}"
        )
    return NOT_LOADED + "; ".join(remarks) if remarks else ""


def _waiting(survey: Survey, settle_s: float) -> str:
    if survey.is_missing:
        return "waiting for the folder, which does not exist yet"
    if not survey.unsettled.files:
        return ""
    return (
        f"waiting for {_counted(survey.unsettled.files)} modified in the last {settle_s:g} seconds and possibly still "
        f"being written: {_named(survey.unsettled)}"
    )


def _counted(files: int) -> str:
    return f"{files:,} file" if files == 1 else f"{files:,} files"


def _named(count: FileCount) -> str:
    return ", ".join(count.sample) + (", …" if count.files > len(count.sample) else "")
