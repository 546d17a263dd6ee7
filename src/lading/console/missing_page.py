"""What is answered for a path that nobody has."""

from __future__ import annotations

from fastapi.exception_handlers import http_exception_handler
from nicegui import app as pages
from nicegui.client import Client
from nicegui.page import page
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from lading.console.desk import Console
from lading.console.layout import frame
from lading.console.widgets.basic import link, text


def add_missing(console: Console) -> None:
    """The page for every other path."""

    async def missing(request: Request, error: Exception) -> Response:
        if request.scope.get("endpoint") not in (None, pages) and isinstance(error, HTTPException):
            return await http_exception_handler(request, error)  # A part of a page, not a page.
        visitor = await console.ask(console.visitor, request)
        with Client(page(""), request=request) as client, frame(console, visitor, title="No such page", here=""):
            text("h1", "There is no such page")
            link("All jobs", "/")
        return client.build_response(request, 404)

    pages.add_exception_handler(404, missing)
