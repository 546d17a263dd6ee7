"""Shows the watch every page, and every frame of a socket, that an app sends."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lading.testing.marked import MARK
from tests.secret_leaks.files import look_inside
from tests.secret_leaks.watch import Watch

_MARKED = re.compile(rf"{MARK}[\w-]*")


class Overheard:
    """An app whose answers are listened to."""

    def __init__(self, app: ASGIApp, watch: Watch) -> None:
        self._app = app
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        where, body, typed = f"{scope['type']} {scope.get('path', '')}", bytearray(), set[str]()

        async def hear() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive":
                typed.update(_MARKED.findall(message.get("text") or ""))
            return message

        async def heard(message: Message) -> None:
            match message["type"]:
                case "http.response.start":
                    self._watch.look(repr(message.get("headers")), f"headers of {where}")
                case "http.response.body":
                    body.extend(message.get("body", b""))
                    if not message.get("more_body") and not self._watch.look(bytes(body), where):
                        look_inside(bytes(body), Path(where), self._watch)
                case "websocket.send":
                    text = str(message.get("text") or message.get("bytes") or "")
                    # What somebody types stays in the editor that they type it in, on their own page.
                    for word in sorted(typed, key=len, reverse=True):
                        text = text.replace(word, "")
                    self._watch.look(text, f"frame of {where}")
            await send(message)

        await self._app(scope, hear, heard)
