"""Results on their way to a client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lading.mysql.protocol import packets
from lading.mysql.protocol.constants import ServerStatus
from lading.mysql.protocol.packets import ColumnHead
from lading.mysql.protocol.values import binary_row, text_row
from lading.mysql.protocol.wire import Wire
from lading.service.result import Result

ROWS_AT_ONCE = 256
READY = ServerStatus.SERVER_STATUS_AUTOCOMMIT
MORE = READY | ServerStatus.SERVER_MORE_RESULTS_EXISTS
OPEN = READY | ServerStatus.SERVER_STATUS_CURSOR_EXISTS
LAST = READY | ServerStatus.SERVER_STATUS_LAST_ROW_SENT


@dataclass(slots=True, kw_only=True)
class Rows:
    """A result with its columns, and how many of its rows were sent."""

    result: Result
    heads: Sequence[ColumnHead]
    codec: str
    binary: bool
    sent: int = 0


class Answers:
    """Writes results. Rows go out in small portions; each waits until the client has taken the one before."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.is_told = False
        """Whether the last packet of an answer was written: from then on nothing may be added to it, not even that
        the statement was killed. The client may not have taken it yet."""

    async def done(self, message: str = "", status: ServerStatus = READY) -> None:
        await self._last(packets.ok(status, message), status)

    async def line(self, text: str) -> None:
        """Nothing but a line of text."""
        await self._last(text.encode(), READY)

    async def whole(self, rows: Rows, status: ServerStatus) -> None:
        """Columns and all rows."""
        self._columns(rows)
        self._wire.put(packets.eof(status))
        await self._portion(rows, len(rows.result.rows))
        await self.end(status)

    async def opened(self, rows: Rows) -> None:
        """Columns only: the client fetches the rows."""
        self._columns(rows)
        await self.end(OPEN)

    async def fetched(self, rows: Rows, number: int) -> None:
        """The next rows of an open result."""
        await self._portion(rows, number)
        await self.end(OPEN if rows.sent < len(rows.result.rows) else LAST)

    async def prepared(self, number: int, parameters: int, codec: str) -> None:
        """A statement was prepared."""
        self._wire.put(packets.prepared(number, parameters))
        for _ in range(parameters):
            self._wire.put(packets.column(ColumnHead(name="?", type=packets.TEXT), codec))
        if parameters:
            self._wire.put(packets.eof(READY))
        self.is_told = True
        await self._wire.flush()

    async def fields(self, table: str, names: Sequence[str], codec: str) -> None:
        """The columns of a table, for COM_FIELD_LIST."""
        for name in names:
            head = ColumnHead(name=name, type=packets.TEXT, table=table)
            self._wire.put(packets.column(head, codec, default=True))
        await self.end(READY)

    async def end(self, status: ServerStatus) -> None:
        """The end of rows or columns."""
        await self._last(packets.eof(status), status)

    async def _last(self, packet: bytes, status: ServerStatus) -> None:
        self.is_told = ServerStatus.SERVER_MORE_RESULTS_EXISTS not in status
        await self._wire.send(packet)

    def _columns(self, rows: Rows) -> None:
        self._wire.put(packets.count(len(rows.heads)))
        for head in rows.heads:
            self._wire.put(packets.column(head, rows.codec))

    async def _portion(self, rows: Rows, number: int) -> None:
        end = min(rows.sent + number, len(rows.result.rows))
        while rows.sent < end:
            for row in rows.result.rows[rows.sent : min(rows.sent + ROWS_AT_ONCE, end)]:
                self._wire.put(_encoded(row, rows))
                rows.sent += 1
                if self._wire.is_full:
                    await self._wire.flush()
            await asyncio.sleep(0)


def _encoded(row: Sequence[Any], rows: Rows) -> bytes:
    return binary_row(row, rows.heads, rows.codec) if rows.binary else text_row(row, rows.codec)
