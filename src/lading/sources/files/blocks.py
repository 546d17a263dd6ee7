"""Blocks of whole lines from a stream of bytes, and the lines that start in a range of a file."""

from __future__ import annotations

from collections.abc import Iterator

from lading.sources.files.errors import file_unreadable
from lading.sources.files.unpack import Read

BLOCK_BYTES = 4 * 1024 * 1024
SMALL_BYTES = 4 * 1024
"""Smaller pieces are not cut further when the fast way does not take them."""
SLOW_BYTES = 256 * 1024
"""More is never taken apart row by row at one time: rows as Python objects take much memory."""
BOM = b"\xef\xbb\xbf"


class Lines:
    """What a text file consists of: where its lines end and how long they may be."""

    def __init__(self, delimiter: bytes, *, max_record: int, uri: str, block_bytes: int = BLOCK_BYTES) -> None:
        self.delimiter = delimiter
        self.max_record = max_record
        self.uri = uri
        self.block_bytes = block_bytes
        self._has_border = any(delimiter[:n] == delimiter[-n:] for n in range(1, len(delimiter)))

    def last_end(self, text: bytes) -> int:
        """Where the last whole line ends; 0 when there is none."""
        size = len(self.delimiter)
        if not self._has_border:
            return text.rfind(self.delimiter) + size if self.delimiter in text else 0
        # Such a delimiter can overlap with itself, so its places depend on where the search begins.
        end = 0
        while (found := text.find(self.delimiter, end)) >= 0:
            end = found + size
        return end

    def too_long(self) -> Exception:
        why = f"a row is longer than {self.max_record} bytes"
        return file_unreadable(self.uri, f"{why}; look at line_delimiter and enclose, or raise max_record_bytes")


def line_blocks(read: Read, lines: Lines) -> Iterator[bytes]:
    """All of a stream, in blocks that end where a line ends. The last line may lack its delimiter."""
    rest = b""
    while chunk := read(lines.block_bytes):
        text = rest + chunk if rest else chunk
        end = lines.last_end(text)
        if end:
            yield text[:end]
        rest = text[end:]
        if len(rest) > lines.max_record:
            raise lines.too_long()
    if rest:
        yield rest


def quarters(block: bytes, lines: Lines, *, smallest: int = SMALL_BYTES) -> list[bytes]:
    """A block in about four pieces of whole lines; fewer when it is small or its lines are long."""
    pieces: list[bytes] = []
    at, size = 0, max(smallest, len(block) // 4 + 1)
    while at < len(block):
        end = lines.last_end(block[at : at + size]) if at + size < len(block) else len(block) - at
        if not end:
            found = block.find(lines.delimiter, at)
            end = len(block) - at if found < 0 else found + len(lines.delimiter) - at
        pieces.append(block[at : at + end])
        at += end
    return pieces


def first_line_offset(read: Read, lines: Lines) -> int:
    """How many bytes lie before the first line that starts in a stream, which begins one delimiter before a range.

    -1: no line starts there.
    """
    seen, rest = 0, b""
    keep = len(lines.delimiter) - 1
    while chunk := read(lines.block_bytes):
        text = rest + chunk
        found = text.find(lines.delimiter)
        if found >= 0:
            return seen + found + len(lines.delimiter)
        kept = min(keep, len(text))
        seen += len(text) - kept
        rest = text[len(text) - kept :]
        if seen > lines.max_record:
            raise lines.too_long()
    return -1


def until(read: Read, lines: Lines, size: int) -> Read:
    """A stream that ends with the line that starts before `size` bytes are read."""
    at, rest, is_done = 0, b"", False
    keep = len(lines.delimiter)

    def limited(wanted: int) -> bytes:
        nonlocal at, rest, is_done
        if is_done:
            return b""
        if at + wanted < size - keep:
            content = read(wanted)
            at += len(content)
            return content
        # Close to the end or past it: look for the first line end that is not before `size`.
        content = read(wanted)
        text = rest + content
        start = at - len(rest)
        found = text.find(lines.delimiter, max(0, size - keep - start))
        at += len(content)
        if found >= 0:
            is_done = True
            return text[len(rest) : found + keep]
        rest = text[len(text) - keep + 1 :] if keep > 1 else b""
        return content

    return limited
