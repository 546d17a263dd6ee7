"""The kinds of sources that statements can name. A new one is a folder and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from lading.errors import NotSupportedError
from lading.model.load import LoadSpec
from lading.model.pairs import is_pair, kinds_of_pair, single_sources
from lading.sources.files.kind import FilesKind
from lading.sources.kafka.kind import KafkaKind
from lading.sources.kind import SourceKind, StreamKind
from lading.sources.kinesis.kind import KinesisKind
from lading.sources.pairs.kind import PairKind, check_consumers, side_load
from lading.sql.properties.jobs import check_of_pair, check_of_source
from lading.sql.statements.definitions import define_routine_load, define_streaming_job, placed
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.load_specs import load_with_secrets
from lading.sql.statements.parts import SourceFunction, StreamJoin
from lading.sql.syntax.parse_select import ONE_SOURCE

FILES: dict[str, SourceKind] = {"S3": FilesKind(name="S3"), "FILE": FilesKind(name="FILE")}
"""What only CREATE JOB loads from."""
STREAMS: dict[str, StreamKind] = {"KAFKA": KafkaKind(), "KINESIS": KinesisKind()}
"""What both CREATE ROUTINE LOAD and CREATE JOB load from."""


def kinds() -> dict[str, SourceKind]:
    """All of them, by their names."""
    return {**FILES, **STREAMS}


def kind_of(name: str) -> SourceKind:
    """The kind of a source by the name that a statement gives it, or of two that are joined."""
    if is_pair(name):
        return pair_of(name)
    return kinds()[name] if name in kinds() else _unknown(name)


def pair_of(name: str) -> PairKind:
    """The kind of two sources that are joined, each of any kind."""
    left, right = (kind_of(each) for each in kinds_of_pair(name))
    return PairKind(left=left, right=right)


def stream_kind(name: str) -> StreamKind:
    """The same for the source of a routine load."""
    return STREAMS[name] if name in STREAMS else _unknown(name)


def is_stream(load: LoadSpec | None) -> bool:
    """Whether a load reads a stream, which is asked for its lag; files are counted by those who load them."""
    return load is not None and any(each in STREAMS for each in kinds_of_pair(load.source.kind))


def check_load(statement: CreateJob | CreateRoutineLoad) -> None:
    """Check everything that can be checked without looking at the source or the table."""
    if isinstance(statement, CreateJob):
        define_streaming_job(statement)
        if statement.insert.stream_join is not None:
            _check_pair(statement, statement.insert.stream_join)
            return
        source = statement.insert.source
        _check_loadable(source, f"{ONE_SOURCE}, and it")
    else:
        define_routine_load(statement)
        source = statement.source
        _check_known(source, STREAMS, f"{source.name} cannot be the source of a routine load")
    with placed(source):
        if isinstance(statement, CreateJob):
            check_of_source(statement.properties, source.name, is_stream=source.name in STREAMS)
        kind_of(source.name).check(load_with_secrets(statement))


def _check_loadable(source: SourceFunction, what: str) -> None:
    names = list(kinds())
    known = f"{', '.join(names[:-1])} or {names[-1]}"
    _check_known(source, kinds(), f"{what} must be {known}, not {_written(source)}")


def _check_pair(statement: CreateJob, join: StreamJoin) -> None:
    """Both sources of a join, each as if it were alone."""
    load = load_with_secrets(statement)
    sources = single_sources(load.source)
    functions = {
        side: SourceFunction(name=source.kind, properties=source.properties, span=span)
        for (side, source), span in zip(sources.items(), join.spans, strict=True)
    }
    for function in functions.values():
        _check_loadable(function, "A stream that is joined")
    with placed(statement.insert.source):
        check_of_pair(statement.properties, [name in STREAMS for name in kinds_of_pair(load.source.kind)])
    for side, function in functions.items():
        with placed(function):
            kind_of(function.name).check(side_load(load, sources[side]))
            check_consumers(pair_of(load.source.kind), load.source.properties)


def _written(source: SourceFunction) -> str:
    """Its name, as the statement writes it."""
    return source.span.text[source.span.start : source.span.end].partition("(")[0].strip() or source.name


def _check_known(source: SourceFunction, known: Mapping[str, SourceKind], msg: str) -> None:
    if source.name not in known:
        hint = f"expected {' or '.join(f'{name}(…)' for name in known)}"
        raise NotSupportedError(msg, place=source.span, hint=hint)


def _unknown(name: str) -> StreamKind:
    msg = f"{name} cannot be the source of this job"
    raise NotSupportedError(msg, todo=f"Known are: {', '.join(kinds())}.")
