"""Bytes of LDAP: the small part of BER that it uses (RFC 4511, section 5.1). Lengths are always definite."""

from __future__ import annotations

from collections.abc import Iterator

BOOLEAN, INTEGER, TEXT, ENUMERATED, SEQUENCE = 0x01, 0x02, 0x04, 0x0A, 0x30


def pack(tag: int, *contents: bytes) -> bytes:
    """One value with its tag and length."""
    content = b"".join(contents)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(digits))) + digits + content


def pack_number(value: int, tag: int = INTEGER) -> bytes:
    """A number that is not negative."""
    return pack(tag, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def pack_text(text: str | bytes, tag: int = TEXT) -> bytes:
    """A text, or any bytes."""
    return pack(tag, text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)


def unpack(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The values that stand one after the other, each with its tag. Raises ConnectionError."""
    at = 0
    while at < len(data):
        tag, head, size = unpack_head(data[at : at + 6])
        content = data[at + head : at + head + size]
        if len(content) != size:
            msg = "a value is shorter than it says"
            raise ConnectionError(msg)
        yield tag, content
        at += head + size


def unpack_head(data: bytes) -> tuple[int, int, int]:
    """The tag of a value, how long its head is, and how long its content. Raises ConnectionError."""
    if len(data) < 2 or data[0] & 0x1F == 0x1F:
        msg = "a value has no tag that LDAP knows"
        raise ConnectionError(msg)
    if data[1] < 0x80:
        return data[0], 2, data[1]
    digits = data[1] & 0x7F
    if not 1 <= digits <= 4 or len(data) < 2 + digits:
        msg = "a value has no length that LDAP knows"
        raise ConnectionError(msg)
    return data[0], 2 + digits, int.from_bytes(data[2 : 2 + digits], "big")


def number(content: bytes) -> int:
    """The content of a number."""
    return int.from_bytes(content, "big", signed=True)
