"""Secrets of jobs: sealed where they are kept, and read from where a reference says."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lading.errors import ConfigError, SecretError, SqlError
from lading.ids import JobId
from lading.pipeline.environment import is_for_spark
from lading.service.security.key_file import KEY_BYTES, KEY_FILE, KEY_VARIABLE, load_keys
from lading.service.security.redaction import HIDDEN
from lading.settings import environment, load_settings
from lading.sql.syntax.spans import MASK, is_reference, is_secret, passwords_in

__all__ = [
    "KEY_FILE",
    "KEY_VARIABLE",
    "Vault",
    "find_lost",
    "is_reference",
    "open_secrets",
    "open_vault",
    "resolve_properties",
    "resolve_reference",
    "seal_secrets",
]

_OWN_VARIABLES = "LADING_"
_NONCE_BYTES = 12
_FORM = "sealed1"
_LEFT = "Nothing was changed."


class Vault:
    """Seals and opens text with the keys of a home. The first key seals; every key opens.

    A key is changed by putting a new one before the old one; what is sealed afterwards no longer needs the old one.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            msg = f"A vault needs keys of {KEY_BYTES} bytes"
            raise ConfigError(msg, left=_LEFT, todo=f"Give {KEY_VARIABLE} such a key, in urlsafe base64.")
        self._keys = {_key_id(key): AESGCM(key) for key in keys}
        self._first = _key_id(keys[0])

    def seal(self, text: str) -> str:
        """A text that only this vault can open."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        closed = self._keys[self._first].encrypt(nonce, text.encode("utf-8", "surrogatepass"), _FORM.encode())
        return f"{_FORM}:{self._first}:{base64.urlsafe_b64encode(nonce + closed).decode()}"

    def open(self, sealed: str, *, what: str = "A secret", instead: str = "") -> str:
        """What was sealed. Raises SecretError, which says what is lost and what to do, when the key is another one."""
        form, _, rest = sealed.partition(":")
        key_id, _, body = rest.partition(":")
        advice = f"Put back {KEY_FILE} of the home or {KEY_VARIABLE} as it was{f', or {instead}' if instead else ''}."
        if form != _FORM:
            msg = f"{what} cannot be read: it is not sealed as this Lading seals"
            raise SecretError(msg, left=_LEFT, todo=advice)
        if key_id not in self._keys:
            msg = f"{what} cannot be opened: it was sealed with key {key_id}, and there is only {', '.join(self._keys)}"
            raise SecretError(msg, left=_LEFT, todo=advice, key_id=key_id)
        try:
            raw = base64.urlsafe_b64decode(body)
            opened = self._keys[key_id].decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _FORM.encode())
        except (InvalidTag, binascii.Error, ValueError) as error:
            msg = f"{what} cannot be opened: what the store has of it was damaged"
            raise SecretError(msg, left=_LEFT, todo=advice) from error
        return opened.decode("utf-8", "surrogatepass")

    def __repr__(self) -> str:
        return f"Vault({', '.join(self._keys)})"


def open_vault(home: Path, keys: str | None = None) -> Vault:
    """The vault of a home: keys from the environment, or else from its key file, which is made when it is not there."""
    return Vault(load_keys(home, load_settings(home=home).service.secret_key if keys is None else keys))


def _key_id(key: bytes) -> str:
    """A name for a key that says nothing about it."""
    return hashlib.sha256(b"lading key id" + key).hexdigest()[:8]


def seal_secrets(vault: Vault, properties: Mapping[str, str]) -> str:
    """Secrets of a job as the store keeps them. Raises SqlError for a secret that is only the mask of one."""
    for name, value in properties.items():
        if value == MASK:
            msg = f"The value of {name} is {MASK}, which is what is shown instead of it"
            todo = f'Write the value itself, or where it is kept: "{name}"="env:NAME" or "file:/path".'
            raise SqlError(msg, todo=todo, name=name)
    HIDDEN.learn(properties.values())
    return vault.seal(json.dumps(dict(properties)))


def open_secrets(vault: Vault, kept: str | None, *, job: str = "") -> dict[str, str]:
    """Secrets of a job from what the store keeps, also from what older versions kept unsealed."""
    if not kept:
        return {}
    what, todo = "The keys of a job", "give the keys again with ALTER"
    if job:
        what, todo = f"The keys of job {job}", f"give job {job} its keys again with ALTER"
    # What was kept before there were vaults is a JSON object.
    text = kept if kept.startswith("{") else vault.open(kept, what=what, instead=todo)
    try:
        found = json.loads(text)
    except ValueError as error:
        msg = f"{what} cannot be read: the store has something else there"
        raise SecretError(msg, left=_LEFT, todo=f"{todo[0].upper()}{todo[1:]}.") from error
    opened = {str(name): str(value) for name, value in found.items()}
    HIDDEN.learn([*opened.values(), *(part for value in opened.values() for part in _spelled(value))])
    return opened


def find_lost(vault: Vault, kept: Mapping[str, str | None]) -> list[str]:
    """Of jobs and what the store keeps of their secrets: the jobs that need their keys again by ALTER."""
    lost: list[str] = []
    for job, text in kept.items():
        try:
            open_secrets(vault, text, job=job)
        except SecretError:
            lost.append(job)
    return lost


def resolve_properties(
    properties: Mapping[str, str], *, variables: Mapping[str, str] | None = None, home: Path | None = None
) -> dict[str, str]:
    """Properties with secrets in the place of references to them. Other properties may begin with file: themselves."""
    known = {
        name: resolve_reference(value, name=name, variables=variables, home=home) if is_secret(name) else value
        for name, value in properties.items()
    }
    HIDDEN.learn(value for name, value in known.items() if is_secret(name))
    HIDDEN.learn(part for value in known.values() for part in _spelled(value))
    return known


def _spelled(url: str) -> list[str]:
    """The passwords in a URL, as they are written there and as they are meant."""
    return [spelling for part in passwords_in(url) for spelling in {part, unquote(part)}]


def resolve_reference(
    value: str, *, name: str = "", variables: Mapping[str, str] | None = None, home: Path | None = None
) -> str:
    """The secret that `env:NAME` or `file:/path` names; anything else is the secret itself.

    A user who may create a job chooses where a secret is sent. So what Lading itself keeps secret cannot be named:
    variables that begin with LADING_, and files of its home. Nor what Spark's processes are given: it is no secret.
    """
    if not is_reference(value):
        return value
    kind, _, place = value.partition(":")
    whose = f" for {name}" if name else ""
    if kind == "env":
        return _from_variable(place, whose, environment() if variables is None else variables)
    return _from_file(Path("/" + place.lstrip("/")), whose, home)


def _from_variable(variable: str, whose: str, variables: Mapping[str, str]) -> str:
    if variable.upper().startswith(_OWN_VARIABLES):
        msg = f"The variable {variable}{whose} belongs to Lading itself"
        raise SecretError(msg, left=_LEFT, todo="Keep the secret in a variable of another name.")
    if is_for_spark(variable, variables):
        msg = f"The variable {variable}{whose} is in the environment of Spark's processes, too"
        raise SecretError(msg, left=_LEFT, todo="Keep the secret in a variable of another name.")
    found = variables.get(variable, "")
    if not found:
        msg = f"The variable {variable}{whose} is not set in the environment of the service"
        raise SecretError(msg, left=_LEFT, todo="Set it and start the service again.", variable=variable)
    return found


def _from_file(path: Path, whose: str, home: Path | None) -> str:
    if home is not None and path.resolve().is_relative_to(home.resolve()):
        msg = f"The file {path}{whose} belongs to Lading itself"
        raise SecretError(msg, left=_LEFT, todo="Keep the secret outside of the home folder.")
    problem, found = "", ""
    try:
        if not path.is_file():
            problem = "is not there" if not path.exists() else "is not a file"
        else:
            found = path.read_text(encoding="utf-8").strip()
            problem = "" if found else "is empty"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        problem = "is not text"
    if problem:
        msg = f"The file {path}{whose} {problem}"
        raise SecretError(msg, left=_LEFT, todo="Put the secret there, readable for the service.", path=str(path))
    return found


def secret_key(job_id: JobId, slot: str = "") -> str:
    """Where the store keeps a job's secrets: one slot for each set of them, the first without a name."""
    return f"secrets/{job_id}/{slot}" if slot else f"secrets/{job_id}"
