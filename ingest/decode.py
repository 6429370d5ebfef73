"""Bytes to text: UTF-8 with or without a mark, UTF-16 with one; everything else is rejected."""

from __future__ import annotations

import codecs
import re

from ingest.candidates import ParseFinding
from ingest.reasons import RejectionReason, SkippedPart, refuse

_MAGIC = (
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"%PDF-",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"7z\xbc\xaf",
    b"\x7fELF",
    b"MZ\x90",
    b"SQLite format 3\x00",
    b"\xca\xfe\xba\xbe",
    b"\x28\xb5\x2f\xfd",
    b"RIFF",
    b"OggS",
    b"\x00asm",
)
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufeff\ufffe\uffff]")
# Above this share of control characters a file is no text, whatever it decodes to.
_BINARY_SHARE = 0.02


def decode(data: bytes) -> tuple[str, tuple[ParseFinding, ...]]:
    """Return text with ``\\n`` line ends and without control characters, and what was removed.

    Raises:
        IngestRejected: empty, binary, nul_bytes, not_utf8 or encoding_truncated.
    """
    if not data:
        raise refuse(RejectionReason.EMPTY, "the file is empty", size=0)
    if data.startswith(_MAGIC):
        raise refuse(RejectionReason.BINARY, "the file is of a binary format, not text")
    text = _to_text(data)
    if "\x00" in text:
        raise refuse(
            RejectionReason.NUL_BYTES, "the file holds NUL characters", first=text.index("\x00")
        )
    text, removed = _CONTROL.subn("", text)
    if removed > _BINARY_SHARE * (len(text) + removed):
        raise refuse(
            RejectionReason.BINARY, "the file is mostly control characters", removed=removed
        )
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Other line separators would make line numbers differ from those of an editor.
    text = text.replace("\u2028", "\n").replace("\u2029", "\n").replace("\x85", "\n")
    if not text.strip():
        raise refuse(RejectionReason.EMPTY, "the file holds white space only", size=len(data))
    if not removed:
        return text, ()
    return text, (ParseFinding(SkippedPart.CONTROL_CHARACTERS_REMOVED, count=removed),)


def _to_text(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise refuse(RejectionReason.NOT_UTF8, "UTF-32 is not taken: save the file as UTF-8")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _strictly(data, "utf-16")
    return _strictly(data, "utf-8-sig")


def _strictly(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if error.end >= len(data) and error.reason in ("unexpected end of data", "truncated data"):
            raise refuse(
                RejectionReason.ENCODING_TRUNCATED,
                "the file ends within a character: it was cut off",
                position=error.start,
            ) from None
        if b"\x00" in data:
            raise refuse(RejectionReason.BINARY, "the file is binary, not text") from None
        raise refuse(
            RejectionReason.NOT_UTF8,
            "the file is not UTF-8: save it as UTF-8",
            position=error.start,
        ) from None
