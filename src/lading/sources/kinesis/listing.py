"""Listing a stream: every page, and never a stream that was caught in the middle of a reshard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lading.clock import Clock
from lading.errors import LadingError
from lading.sources.kinesis.client import Backoff, Client, call, server_date_or_none
from lading.sources.kinesis.errors import (
    EXPIRED_TOKEN,
    INVALID,
    NOT_FOUND,
    Foreign,
    code_of,
    listing_incomplete,
    translated,
)
from lading.sources.kinesis.shards import (
    Shard,
    first_hole_or_none,
    open_shards,
    overlaps_by_lineage,
    parents_of,
    shard_of,
)
from lading.sources.kinesis.spec import KinesisSpec

MAX_LISTINGS = 6
"""How often a listing is started again before it is given up as incomplete."""
_IN_USE = "ResourceInUseException"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamView:
    """A stream at one moment."""

    incarnation: str
    """When it was created: a stream of the same name that was made again has another."""
    retention: timedelta
    shards: Mapping[str, Shard]
    """Every shard that is kept, open or closed."""
    seen_at: datetime
    """By the local clock or by that of the service, whichever is earlier."""
    service_now: datetime
    """By the clock of the service, which decides what is trimmed; by the local one where the service does not tell."""


class Lister:
    """Lists one stream."""

    def __init__(self, spec: KinesisSpec, client: Client, clock: Clock) -> None:
        self._spec, self._client, self._clock = spec, client, clock
        self._expired: set[str] = set()
        """Shards that the service said it no longer has. They never come back."""

    def view(self) -> StreamView:
        """The whole stream, or an error.

        The summary is asked for after the shards: if the stream was made again in between, the new incarnation shows.
        """
        shards = self._whole_listing()
        try:
            answer = call(self._spec.stream, self._clock, self._client.describe_stream_summary, **self._spec.target)
        except Foreign as error:
            raise translated(error, self._spec.stream, "describing it") from error
        summary, own = answer["StreamDescriptionSummary"], self._clock.now()
        server = server_date_or_none(answer) or own
        return StreamView(
            incarnation=summary["StreamCreationTimestamp"].astimezone(UTC).isoformat(timespec="milliseconds"),
            retention=timedelta(hours=summary["RetentionPeriodHours"]),
            shards=shards,
            seen_at=min(own, server),
            # Dates are cut to the second: a start at this very moment is not in the future.
            service_now=server + timedelta(seconds=1),
        )

    def open_since_or_none(self, moment: datetime) -> set[str] | None:
        """Shards that were open at a moment, and later ones. None: the service does not tell for this moment."""
        try:
            return set(self._pages({"Type": "FROM_TIMESTAMP", "Timestamp": moment}))
        except Foreign as error:
            if code_of(error) == INVALID:
                return None
            raise translated(error, self._spec.stream, "listing its shards") from error

    def open_at_horizon(self) -> set[str]:
        """Shards that are older than what is kept. Empty where the service does not tell."""
        try:
            found = self._pages({"Type": "AT_TRIM_HORIZON"})
        except Foreign as error:
            if code_of(error) == INVALID:
                return set()
            raise translated(error, self._spec.stream, "listing its shards") from error
        return set() if overlaps_by_lineage(found) else set(found)

    def _whole_listing(self) -> dict[str, Shard]:
        backoff, why = Backoff(), ""
        for _ in range(MAX_LISTINGS):
            if why:
                self._clock.sleep(backoff.next_delay_s())
            try:
                shards = self._pages(None)
            except Foreign as error:
                if code_of(error) != _IN_USE:
                    raise translated(error, self._spec.stream, "listing its shards") from error
                why = "the stream is being made"
                continue
            why = self._flaw(shards)
            if not why:
                return shards
        raise listing_incomplete(self._spec.stream, why)

    def _flaw(self, shards: Mapping[str, Shard]) -> str:
        """Why a listing is not complete. Empty: it is.

        Every closed shard that is kept is the parent of a listed shard, or of one that is missing too, and a missing
        open shard leaves a hole. So without holes, and with every parent that is not listed known to be gone, nothing
        is missing. A finished shard that is missing once would be forgotten and read again when it comes back.
        """
        if self._spec.shards:
            suspects = set(self._spec.shards)
        elif hole := first_hole_or_none(shards[name] for name in open_shards(shards)):
            return f"no open shard takes the hashes from {hole[0]} to {hole[1]}; a reshard may be under way"
        else:
            suspects = parents_of(shards.values())
        for name in sorted(suspects - set(shards) - self._expired):
            if not self._is_gone(name):
                return f"{name} can still be read and is not listed"
        return ""

    def _is_gone(self, shard: str) -> bool:
        arguments = {**self._spec.target, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        try:
            call(self._spec.stream, self._clock, self._client.get_shard_iterator, **arguments)
        except Foreign as error:
            if code_of(error) not in (NOT_FOUND, INVALID):
                raise translated(error, self._spec.stream, f"looking for {shard}") from error
            self._expired.add(shard)
            return True
        return False

    def _pages(self, shard_filter: Mapping[str, Any] | None) -> dict[str, Shard]:
        for _ in range(MAX_LISTINGS):
            try:
                return {shard.name: shard for shard in self._walk(shard_filter)}
            except Foreign as error:
                if code_of(error) != EXPIRED_TOKEN:
                    raise
        raise self._token_expires()

    def _walk(self, shard_filter: Mapping[str, Any] | None) -> Iterator[Shard]:
        # Written by hand: a token must be sent without the name of the stream, and botocore's paginator sends both.
        size = {"MaxResults": self._spec.max_results}
        chosen = {"ShardFilter": dict(shard_filter)} if shard_filter else {}
        arguments: dict[str, Any] = {**self._spec.target, **chosen, **size}
        seen = set[str]()
        while True:
            answer = call(self._spec.stream, self._clock, self._client.list_shards, **arguments)
            for item in answer["Shards"]:
                yield shard_of(item)
            token = answer.get("NextToken")
            if not token:
                return
            if token in seen:
                raise listing_incomplete(self._spec.stream, "the service gave the same page twice")
            seen.add(token)
            arguments = {"NextToken": token, **size}

    def _token_expires(self) -> LadingError:
        return listing_incomplete(self._spec.stream, f"its pages expired {MAX_LISTINGS} times before the last was read")
