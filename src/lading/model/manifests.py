"""Manifests of state to JSON and back."""

from __future__ import annotations

import json

from lading.errors import RecordError
from lading.model.codec import decode, encode
from lading.model.state import StateManifest


def render_manifest(manifest: StateManifest) -> bytes:
    """Write a manifest as its file's content."""
    return json.dumps({"lading": "state", "version": 1, "manifest": encode(manifest)}).encode()


def parse_manifest(content: bytes, *, where: str) -> StateManifest:
    """Read a manifest's file. Raises RecordError and RecordError."""
    try:
        envelope = json.loads(content)
        version, body = envelope["version"], envelope["manifest"]
    except (ValueError, KeyError, TypeError) as error:
        msg = f"The manifest {where} cannot be read: it is not the manifest of a state"
        todo = "Restore it from a copy of the table's _lading folder."
        raise RecordError(msg, left="Nothing was changed.", todo=todo) from error
    if version != 1:
        msg = f"The manifest {where} has form {version}; this Lading reads form 1"
        raise RecordError(msg, left="Nothing was changed.", todo="Use the newer Lading that wrote it.")
    manifest: StateManifest = decode(StateManifest, body, where=where)
    return manifest
