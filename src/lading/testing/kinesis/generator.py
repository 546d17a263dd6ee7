"""Writes records that can be told apart: each key counts from 0, and every record says its key and its number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from lading.clock import Clock, SystemClock

MAX_TRIES = 50
_PAUSE_S = 0.05


class Generator:
    """Puts `{"key": "key-3", "n": 17, "pad": "…"}` into a stream, each key in order.

    A request holds at most one record of a key, and what the service refused of it is sent again before the next
    request. So per key the order in the stream is the order of `n`, also across reshards. Not promised: that a record
    is in the stream only once. If a connection breaks after the service took a request, its records are sent again:
    `maybe_twice` says which those were.
    """

    def __init__(self, client: Any, stream: str, *, keys: int = 20, seed: int = 0, clock: Clock | None = None) -> None:
        self._client, self._stream = client, stream
        self._random = Random(seed)
        self._clock = clock or SystemClock()
        self.keys = [f"key-{number}" for number in range(keys)]
        self.sent: dict[str, int] = dict.fromkeys(self.keys, 0)
        """Per key how many records were accepted: 0, 1, … sent - 1."""
        self.maybe_twice: set[tuple[str, int]] = set()

    @property
    def count(self) -> int:
        return sum(self.sent.values())

    def put(self, count: int, *, pad_bytes: int = 0) -> None:
        """Write about `count` records, at least one and at most one request more."""
        goal = self.count + count
        while self.count < goal:
            most = min(len(self.keys), goal - self.count)
            self._request(self._random.sample(self.keys, self._random.randint(1, most)), pad_bytes)

    def _request(self, keys: Sequence[str], pad_bytes: int) -> None:
        waiting = list(keys)
        for _ in range(MAX_TRIES):
            waiting = self._send(waiting, pad_bytes)
            if not waiting:
                return
            self._clock.sleep(_PAUSE_S)
        msg = f"The stream did not take records of {waiting}"
        raise RuntimeError(msg)

    def _send(self, keys: list[str], pad_bytes: int) -> list[str]:
        """Keys whose record was not taken."""
        records = [{"Data": record_of(key, self.sent[key], pad_bytes), "PartitionKey": key} for key in keys]
        try:
            answer = self._client.put_records(StreamName=self._stream, Records=records)
        except Exception:  # noqa: BLE001  # whatever went wrong, it is not known whether they were taken
            self.maybe_twice |= {(key, self.sent[key]) for key in keys}
            return keys
        refused = []
        for key, told in zip(keys, answer["Records"], strict=True):
            if told.get("ErrorCode"):
                refused.append(key)
            else:
                self.sent[key] += 1
        return refused


def record_of(key: str, n: int, pad_bytes: int = 0) -> bytes:
    """The bytes of one record."""
    return json.dumps({"key": key, "n": n, "pad": "x" * pad_bytes}).encode()
