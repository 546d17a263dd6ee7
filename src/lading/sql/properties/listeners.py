"""Properties of listeners: when a partition of the table is done, and who is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from lading.model.load import ListenerSpec, ListeningSpec, WatermarkSpec
from lading.sql.properties.values import Rule, duration, needed, read_fields, refuse, timezone, word
from lading.sql.syntax.spans import is_reference

PREFIX = "listener."
_OPTIONS: dict[str, tuple[str, ...]] = {
    "success_file": (),
    "done_partition": (),
    "tag": ("retain",),
    "http": ("url", "token", "timeout"),
    "command": ("command", "timeout"),
}
"""By the type of a listener: its further properties."""
_NEEDED = {"http": "url", "command": "command"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST = 16
_MOST_WAIT_S = 60.0
_LONGEST_S = 100 * 366 * 86400
"""A length of time that can be added to any time of a row, or taken away."""
PROCESS_TIME, WATERMARK = "process-time", "watermark"


def _length(name: str, text: str) -> float:
    seconds = duration(name, text)
    if seconds > _LONGEST_S:
        msg = f"{name} should be up to 100 years, and it is {text!r}"
        raise refuse(msg, property=name, value=text, todo="Write a shorter time.")
    return float(seconds)


_RULES = (
    Rule(name="partition.mark_done_mode", field="mode", read=word(PROCESS_TIME, WATERMARK)),
    Rule(name="partition.idle_time_to_done", field="idle_s", read=_length),
    Rule(name="partition.timestamp_pattern", field="pattern", read=needed),
    Rule(name="partition.timestamp_formatter", field="formatter", read=needed),
    Rule(name="partition.time_interval", field="interval_s", read=_length),
    Rule(name="partition.time_zone", field="time_zone", read=timezone),
)
LISTENER_PROPERTY_NAMES = frozenset(rule.name for rule in _RULES)
_OF_WATERMARK = ("pattern", "formatter", "interval_s", "time_zone")


def read_listening(properties: Mapping[str, str], watermark: WatermarkSpec | None) -> ListeningSpec | None:
    """Who is told, and when; None when nobody is."""
    listeners, given = _read_listeners(properties), read_fields(_RULES, properties)
    if not listeners:
        if given:
            names = ", ".join(sorted(name for name in properties if name in LISTENER_PROPERTY_NAMES))
            msg = f"{names} says when partitions are done, and the job has no listener that is told"
            raise refuse(msg, todo='Add "listener.<name>.type", or leave it out.')
        return None
    spec = ListeningSpec(listeners=listeners, **given)
    _check_mode(spec, watermark)
    return spec


def _check_mode(spec: ListeningSpec, watermark: WatermarkSpec | None) -> None:
    if spec.mode == WATERMARK and watermark is None:
        msg = "partition.mark_done_mode is watermark, and the job has no watermark"
        raise refuse(msg, property="watermark.column", todo='Add "watermark.column", or use process-time.')
    if spec.mode == WATERMARK:
        return
    if spec.idle_s is None:
        msg = "A job with listeners needs partition.idle_time_to_done: how long a partition is idle before it is done"
        todo = 'Add it; "0 seconds" tells listeners after each commit.'
        raise refuse(msg, property="partition.idle_time_to_done", todo=todo)
    if any(getattr(spec, name) for name in _OF_WATERMARK):
        msg = "partition.timestamp_pattern, timestamp_formatter, time_interval and time_zone are for watermark mode"
        todo = 'Add "partition.mark_done_mode" = "watermark", or leave them out.'
        raise refuse(msg, property="partition.mark_done_mode", todo=todo)


def _read_listeners(properties: Mapping[str, str]) -> tuple[ListenerSpec, ...]:
    by_name: dict[str, dict[str, str]] = {}
    for each, value in properties.items():
        if each.startswith(PREFIX):
            name, _, option = each.removeprefix(PREFIX).partition(".")
            if not _NAME.fullmatch(name) or not option:
                msg = f"{each} is not a property of a listener"
                raise refuse(msg, property=each, todo='Write "listener.<name>.type", with letters, digits, - and _.')
            by_name.setdefault(name, {})[option] = value
    # An empty type takes a listener away: ALTER can leave no property out.
    present = {name: options for name, options in by_name.items() if options.get("type") != ""}
    if len(present) > _MOST:
        msg = f"The job has {len(present)} listeners, and at most {_MOST} are allowed"
        raise refuse(msg, todo="Let one of them tell the others.")
    return tuple(_listener(name, options) for name, options in sorted(present.items()))


def _listener(name: str, options: Mapping[str, str]) -> ListenerSpec:
    own = f"{PREFIX}{name}."
    kind = options.get("type", "")
    if kind not in _OPTIONS:
        msg = f"{own}type is {kind!r}" if kind else f"Listener {name} has no type"
        raise refuse(msg, property=f"{own}type", todo=f"Known are: {', '.join(_OPTIONS)}.")
    if unknown := sorted(options.keys() - {"type", *_OPTIONS[kind]}):
        msg = f"{own}{unknown[0]} is not a property of a listener of type {kind}"
        known = ", ".join(f"{own}{option}" for option in _OPTIONS[kind]) or "none but the type"
        raise refuse(msg, property=f"{own}{unknown[0]}", todo=f"Known are: {known}.")
    if kind in _NEEDED and not options.get(_NEEDED[kind]):
        msg = f"A listener of type {kind} needs {own}{_NEEDED[kind]}"
        raise refuse(msg, property=f"{own}{_NEEDED[kind]}", todo="Add it.")
    given: dict[str, Any] = {
        option: value for option, value in options.items() if option not in ("type", "timeout", "retain")
    }
    if "timeout" in options:
        given["timeout_s"] = _timeout(f"{own}timeout", options["timeout"])
    if "retain" in options:
        given["retain_s"] = _retain(f"{own}retain", options["retain"])
    if "url" in given:
        _check_url(f"{own}url", given["url"])
    if "token" in given and not is_reference(given["token"]):
        msg = f"{own}token is written out, and it would be kept with the definition of the job"
        raise refuse(msg, property=f"{own}token", todo="Write env:NAME or file:/path, where the service finds it.")
    return ListenerSpec(name=name, type=kind, **given)


def _timeout(name: str, text: str) -> float:
    seconds = duration(name, text)
    if not 0 < seconds <= _MOST_WAIT_S:
        msg = f"{name} should be up to {_MOST_WAIT_S:g} seconds, and more than 0"
        raise refuse(msg, property=name, value=text, todo="The job waits for it: make it short.")
    return float(seconds)


def _retain(name: str, text: str) -> float:
    seconds = _length(name, text)
    if seconds <= 0:
        msg = f"{name} should be more than 0"
        raise refuse(msg, property=name, value=text, todo="Say how long tags are kept.")
    return seconds


def _check_url(name: str, text: str) -> None:
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_good = False
    if not is_good or not text.isascii() or re.search(r"[\s\x00-\x1f]", text):
        msg = f"{name} is not a URL of http or https"
        raise refuse(msg, property=name, todo="Write for example https://hooks.example.com/done.")
    if parts.username is not None or parts.fragment:
        msg = f"{name} has a user, a password or a fragment in it"
        raise refuse(msg, property=name, todo="Give a secret by reference, as listener.<name>.token.")


def check_listener_tokens(old: Mapping[str, str], changed: Mapping[str, str]) -> None:
    """A token goes to the address that it was given for: who sends it elsewhere names it again. Raises SqlError."""
    for name, value in changed.items():
        token = name.removesuffix("url") + "token"
        is_moved = name.startswith(PREFIX) and name.endswith(".url") and old.get(name) not in (None, value)
        if is_moved and old.get(token) and token not in changed:
            msg = f"{name} cannot be changed without the token: it would be sent elsewhere"
            raise refuse(msg, property=name, todo=f"Write {token} in the same statement.")
