"""One client: its commands, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from lading.mysql.emulation.statements import Talk, refuse_several
from lading.mysql.protocol import packets
from lading.mysql.protocol.answers import MORE, READY, Answers, Rows
from lading.mysql.protocol.constants import READ_ONLY_CURSOR, Capabilities, Commands
from lading.mysql.protocol.errors import INTERRUPTED, TOO_LARGE, Fault, fault_of, malformed, too_many_prepared
from lading.mysql.protocol.login import Greeted, as_somebody_else
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.protocol.packets import Reader
from lading.mysql.protocol.parameters import Prepared
from lading.mysql.protocol.statement_text import check_size, cut, is_short, is_urgent
from lading.mysql.protocol.values import heads_of
from lading.mysql.protocol.wire import ClosedError, Wire
from lading.service.limits.cancellation import CancelToken
from lading.service.result import Result

T = TypeVar("T")
SHOWN = 1000
"""Bytes of a statement that others may see while it runs."""
_SWITCH_OFF = 1
_GOODBYE_S = 1.0
_FEW_VALUES = 10_000
"""So many are looked at in a few thousandths of a second: no worker is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What a connection needs of the server."""

    options: MysqlOptions
    pool: Callable[[str, Callable[[], Any]], asyncio.Future[Any]]
    """Runs something in a worker thread, when it is this user's turn."""
    desk: Callable[[Callable[[], Any]], asyncio.Future[Any]]
    """The same for what is quick and must not wait for the statements of others."""
    become: Callable[[Greeted], Awaitable[Talk]]
    """Proves who a client is; raises when it cannot."""


class Connection:
    """Commands of a client that is known. Only the loop's thread touches it; statements run in worker threads."""

    def __init__(self, greeted: Greeted, talk: Talk, house: ServerContext) -> None:
        self._greeted = greeted
        self._wire: Wire = greeted.wire
        self._capabilities = greeted.login.capabilities
        self._answers = Answers(self._wire)
        self._several = Capabilities.CLIENT_MULTI_STATEMENTS in self._capabilities
        self.talk = talk
        self._house = house
        self._options = house.options
        self._clock = talk.session.lading.clock
        self._prepared: dict[int, Prepared] = {}
        self._last_prepared = 0
        self._work: asyncio.Future[Any] | None = None
        self._stop = CancelToken()
        self.statement = ""
        """What runs now; empty while it waits for a command."""
        self.since_s = 0.0
        """When it began to do what it does, on the clock that never goes back."""
        self._task: asyncio.Task[None] | None = None
        self._killing = False
        self._ended: Fault | None = None
        self._is_known = True

    async def serve(self) -> None:
        """Answer commands until the client says goodbye or is gone, or until the connection is ended."""
        self._task = asyncio.current_task()
        try:
            while self._ended is None:
                self._wire.begin()
                data = await self._next_command()
                if data is None or not await self._answer(data):
                    return
        except ClosedError:
            return
        except asyncio.CancelledError:
            if self._ended is None or self._task is None:
                raise
            self._task.uncancel()
        with suppress(ClosedError, TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):  # It may take nothing any more.
                await self._wire.send(packets.error(self._ended, self._codec))

    def interrupt(self) -> None:
        """End what runs now; the connection stays. Nothing happens when nothing runs, or when all of it was told."""
        if self.statement and not self._answers.is_told and self._task is not None:
            self._killing = True
            self._task.cancel()

    def end(self, why: Fault) -> None:
        """End the connection now, also in the middle of a statement."""
        self._ended = why
        if self._task is not None:
            self._task.cancel()

    def end_gently(self, why: Fault) -> None:
        """End the connection: now when it waits for a command, else when its statement is done."""
        self._ended = why
        if not self.statement and self._task is not None:
            self._task.cancel()

    async def _next_command(self) -> bytes | None:
        """The next command; None when there will be none."""
        while True:
            try:
                async with asyncio.timeout(self._options.idle_timeout_s):
                    return await self._wire.read(self._options.max_packet_bytes)
            except TimeoutError:
                return None
            except Fault as fault:
                await self._wire.send(packets.error(fault))
                if fault.code != TOO_LARGE:
                    return None
                self._wire.begin()

    async def _answer(self, data: bytes) -> bool:
        """Answer one command. Says whether another may follow."""
        command, rest = data[:1], data[1:]
        if command == bytes([Commands.COM_QUIT]):
            return False
        self.statement = _shown(data)
        self.since_s = self._clock.monotonic_s()
        self._answers.is_told = False
        try:
            if not command:
                msg = "a command is empty"
                raise malformed(msg)
            await self._run(command[0], rest)
        except asyncio.CancelledError:
            if not self._killing or self._ended is not None or self._task is None:
                raise
            self._killing = False
            self._task.uncancel()
            self.statement = ""  # From here on there is nothing to kill.
            await self._wire.send(packets.error(INTERRUPTED, self._codec))
        except ClosedError:
            raise
        except Exception as error:  # noqa: BLE001 - the door: the client is told, and the server lives
            self.statement = ""
            await self._wire.send(packets.error(fault_of(error), self._codec))
        finally:
            self.statement = ""
            self.since_s = self._clock.monotonic_s()
        return self._is_known

    async def _run(self, command: int, rest: bytes) -> None:
        match command:
            case Commands.COM_QUERY:
                await self._query(rest)
            case Commands.COM_STMT_PREPARE:
                await self._prepare(rest)
            case Commands.COM_STMT_EXECUTE:
                await self._execute(rest)
            case Commands.COM_STMT_SEND_LONG_DATA:
                with suppress(Fault):
                    self._long_data(Reader(rest))
            case Commands.COM_STMT_FETCH:
                await self._fetch(Reader(rest))
            case Commands.COM_STMT_CLOSE:
                with suppress(Fault):  # It has no answer, not even a bad one.
                    self._prepared.pop(Reader(rest).uint(4), None)
            case Commands.COM_STMT_RESET:
                self._statement(Reader(rest)).reset()
                await self._answers.done()
            case Commands.COM_INIT_DB:
                name = self._decoded(rest)
                await self._in_thread(lambda: self.talk.use(name))
                await self._answers.done()
            case Commands.COM_FIELD_LIST:
                await self._field_list(rest)
            case Commands.COM_PING | Commands.COM_DEBUG:
                await self._answers.done()
            case Commands.COM_RESET_CONNECTION:
                self._prepared.clear()
                self.talk.reset()
                await self._answers.done()
            case Commands.COM_CHANGE_USER:
                await self._change_user(rest)
            case Commands.COM_SET_OPTION:
                self._several = Reader(rest).uint(2) != _SWITCH_OFF
                await self._answers.end(READY)
            case Commands.COM_STATISTICS:
                told = dict(self.talk.peers.status())
                await self._answers.line(f"Uptime: {told['Uptime']}  Threads: {told['Threads_connected']}")
            case Commands.COM_PROCESS_KILL:
                self.talk.session.check_login()
                self.talk.peers.kill(self.talk.user, Reader(rest).uint(4), whole=True)
                await self._answers.done()
            case _:
                raise Fault(1047, "08S01", f"Unknown command {command:#x}")

    async def _change_user(self, rest: bytes) -> None:
        """A failed change of user leaves the connection without one."""
        self._is_known = False
        login = packets.parse_change_user(rest, self._capabilities, packets.UTF8MB4)
        self.talk = await self._house.become(as_somebody_else(self._greeted, login))
        self._prepared.clear()
        self._is_known = True
        await self._answers.done()

    async def _query(self, rest: bytes) -> None:
        text = self._decoded(rest)
        check_size(text)
        statements = cut(text) or [text]
        if len(statements) > 1 and not self._several:
            raise refuse_several()
        for number, statement in enumerate(statements, start=1):
            result = await self._result_of(statement)
            status = MORE if number < len(statements) else READY
            if result.columns:
                await self._answers.whole(await self._rows(result), status)
            else:
                await self._answers.done(result.message, status)

    async def _result_of(self, statement: str) -> Result:
        quick = self.talk.quick(statement) if is_short(statement) else None
        if quick is not None:
            return quick
        pool = self._house.desk if is_urgent(statement) else self._in_line
        return await self._in_thread(lambda: self.talk.answer(statement), pool)

    async def _rows(self, result: Result, *, binary: bool = False) -> Rows:
        codec, charset = self.talk.variables.writing
        is_small = len(result.rows) * len(result.columns) <= _FEW_VALUES
        heads = heads_of(result, charset) if is_small else await self._in_thread(lambda: heads_of(result, charset))
        return Rows(result=result, heads=heads, codec=codec, binary=binary)

    async def _prepare(self, rest: bytes) -> None:
        if len(self._prepared) >= self._options.max_prepared:
            raise too_many_prepared(self._options.max_prepared)
        text = self._decoded(rest)
        check_size(text)
        statements = cut(text)
        if not statements:
            raise Fault(1065, "42000", "Query was empty")
        if len(statements) > 1:
            raise refuse_several()
        if sum(len(each.text) for each in self._prepared.values()) + len(text) > self._options.max_packet_bytes:
            raise too_many_prepared(len(self._prepared))
        self._last_prepared = self._last_prepared % 0xFFFFFFFF + 1
        statement = Prepared(number=self._last_prepared, text=statements[0])
        if len(statement.marks) > 0xFFFF:
            raise Fault(1390, "HY000", "Prepared statement contains too many placeholders")
        self._prepared[statement.number] = statement
        await self._answers.prepared(statement.number, len(statement.marks), self._codec)

    async def _execute(self, rest: bytes) -> None:
        reader = Reader(rest)
        statement = self._statement(reader)
        statement.rows = None
        wants_cursor = bool(reader.uint(1) & READ_ONLY_CURSOR)
        reader.take(4)  # How often to run it: always once.
        text = statement.bound(reader, self.talk.variables.reading, self._options.max_packet_bytes)
        result = await self._result_of(text)
        if not result.columns:
            await self._answers.done(result.message)
        elif wants_cursor:
            statement.rows = await self._rows(result, binary=True)
            await self._answers.opened(statement.rows)
        else:
            await self._answers.whole(await self._rows(result, binary=True), READY)

    async def _fetch(self, reader: Reader) -> None:
        statement = self._statement(reader)
        if statement.rows is None:
            raise Fault(1421, "HY000", f"The statement ({statement.number}) has no open cursor.")
        await self._answers.fetched(statement.rows, reader.uint(4))
        if statement.rows.sent >= len(statement.rows.result.rows):
            statement.rows = None

    def _long_data(self, reader: Reader) -> None:
        """Has no answer, not even a bad one: what is wrong is told when the statement is run."""
        statement = self._prepared.get(reader.uint(4))
        parameter = reader.uint(2)
        if statement is not None and parameter < len(statement.marks):
            taken = sum(each.long_bytes for each in self._prepared.values())
            statement.append(parameter, reader.rest(), self._options.max_packet_bytes - taken)

    def _statement(self, reader: Reader) -> Prepared:
        number = reader.uint(4)
        if number not in self._prepared:
            raise Fault(1243, "HY000", f"Unknown prepared statement handler ({number}) given to EXECUTE")
        return self._prepared[number]

    async def _field_list(self, rest: bytes) -> None:
        table = self._decoded(Reader(rest).terminated())
        names = await self._in_thread(lambda: self.talk.columns_of(table))
        await self._answers.fields(table, names, self._codec)

    async def _in_thread(
        self, work: Callable[[], T], pool: Callable[[Callable[[], Any]], asyncio.Future[Any]] | None = None
    ) -> T:
        """Run something in a worker thread.

        A thread cannot be stopped from outside. When the client's statement is killed, or the client is gone, its
        thread is told; until it has heard of it it goes on alone, and the next statement of the connection waits for
        it: a session is used by one thread at a time.
        """
        if self._work is not None and not self._work.done():
            await asyncio.wait([self._work])
        stop = self._stop = CancelToken()
        future = self._work = (pool or self._in_line)(lambda: stop.run(work))
        with self._wire.watching(stop.set):
            try:
                return cast("T", await asyncio.shield(future))
            except asyncio.CancelledError:
                stop.set()
                raise

    def _in_line(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        return self._house.pool(self.talk.user, work)

    async def finish(self) -> None:
        """End what a thread still does for this connection, and wait for it, but not for ever."""
        self._stop.set()
        if self._work is not None and not self._work.done():
            await asyncio.wait([self._work], timeout=self._options.close_grace_s)

    @property
    def _codec(self) -> str:
        return self.talk.variables.writing[0]

    def _decoded(self, data: bytes) -> str:
        try:
            return data.decode(self.talk.variables.reading)
        except UnicodeDecodeError as error:
            msg = f"the statement is not text in {self.talk.variables.reading}"
            raise malformed(msg) from error


def _shown(data: bytes) -> str:
    if data[:1] == bytes([Commands.COM_QUERY]):
        return data[1:SHOWN].decode("utf-8", "replace") or " "
    return f"command {data[:1].hex()}"
