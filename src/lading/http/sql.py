"""Statements over HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request

from lading.errors import LadingError, RequestError
from lading.http.app_state import Desk, TheCaller, TheDesk
from lading.http.callers import Caller
from lading.http.errors import ERRORS
from lading.http.json_values import json_type, plain_data
from lading.http.models import SqlAnswer, SqlRequest, SqlResult
from lading.http.sessions import open_session
from lading.service.limits.cancellation import CancelToken
from lading.service.limits.fair_semaphore import FairTurns
from lading.service.limits.statement_size import why_too_large
from lading.service.result import Result

router = APIRouter(prefix="/api", tags=["sql"], responses=ERRORS)

LOOK_S = 0.5
MOST_AT_ONCE = 8
"""Statements may run for long on Spark; with threads of their own they keep no other path waiting."""
MOST_OF_ONE = 4
"""Of those, one user's."""
MOST_LETTERS = 32 * 1024 * 1024
"""Of an answer, which is made whole in memory; what is behind it is cut off, as rows behind `max_rows` are."""
_CELL_BYTES = 16


@router.post("/sql")
async def sql(request: Request, desk: TheDesk, caller: TheCaller, body: SqlRequest) -> SqlAnswer:
    """Run statements, one after the other; the first that fails ends it."""
    if why := why_too_large(body.sql):
        msg = f"The statements of {len(body.sql)} characters are too large: {why}"
        raise RequestError(msg, code="StatementTooLarge", left="Nothing was changed.", todo="Send fewer at a time.")
    stop = CancelToken()
    watching = asyncio.create_task(_stop_when_gone(request, stop))
    try:
        line = _line(request)
        async with line.turns.turn(caller.user):
            return await to_thread.run_sync(stop.run, partial(_run, desk, caller, body), limiter=line.threads)
    finally:
        watching.cancel()


async def _stop_when_gone(request: Request, stop: CancelToken) -> None:
    """A query whose answer nobody takes is ended."""
    while not await request.is_disconnected():
        await asyncio.sleep(LOOK_S)
    stop.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """Where statements of one app wait."""

    turns: FairTurns
    threads: CapacityLimiter


def _line(request: Request) -> _Line:
    state = request.app.state
    if not hasattr(state, "lading_sql_line"):
        turns = FairTurns(MOST_AT_ONCE, MOST_OF_ONE)
        state.lading_sql_line = _Line(turns=turns, threads=CapacityLimiter(MOST_AT_ONCE))
    line: _Line = state.lading_sql_line
    return line


def _run(desk: Desk, caller: Caller, body: SqlRequest) -> SqlAnswer:
    session = open_session(desk.lading, caller, "default")
    session.use(body.database)
    session.folder = body.folder
    results: list[SqlResult] = []
    for statement in session.parse(body.sql):
        try:
            results.append(_show(session.execute(statement), body.max_rows))
        except LadingError as error:
            if results:
                error.facts["statements_done"] = len(results)
            raise
    return SqlAnswer(results=results, database=session.database)


def _show(result: Result, most: int) -> SqlResult:
    rows: list[list[Any]] = []
    kinds: list[set[str]] = [set() for _ in result.columns]
    size = 0
    for row in islice(result.rows, most):
        for kind, value in zip(kinds, row, strict=True):
            if value is not None:
                kind.add(json_type(value))
        rows.append([plain_data(value) for value in row])
        size += sum(len(value) if isinstance(value, str) else _CELL_BYTES for value in rows[-1])
        if size > MOST_LETTERS:
            break
    is_cut = len(result.rows) > len(rows)
    types = [kind.pop() if len(kind) == 1 else "" for kind in kinds]
    return SqlResult(columns=list(result.columns), types=types, rows=rows, message=result.message, is_cut=is_cut)
