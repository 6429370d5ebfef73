"""Parse the bytes of a file into a ``ParsedDocument``; the only entry to the parsers."""

from __future__ import annotations

import codecs
import posixpath
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial

from ingest.candidates import ParsedDocument, ParseFinding
from ingest.parsers.file_names import document_keys, title_of
from ingest.parsers.json_ import parse_json
from ingest.parsers.markdown import parse_markdown
from ingest.parsers.notes import parse_text
from ingest.parsers.transcript import place_undated
from ingest.reasons import RejectionReason, SkippedPart, refuse
from memgraph.errors import IngestRejected
from memgraph.text.dates import DateOrder, date_order

Above = Callable[[str], bytes | None]
"""Returns the content of a file in the parent folder of the current one, by name."""
SUPPORTED_TYPES = (".json", ".md", ".txt")


def parse_document(
    data: bytes,
    path: str,
    above: Above = lambda _: None,
    order: DateOrder | None = None,
) -> ParsedDocument:
    """Parse a file. ``path`` is relative to the drop zone, with ``/``.

    Args:
        above: returns the content of a file in the parent folder, or None.
        order: the order of dates such as 05/06/2023, if the file does not reveal it.

    Raises:
        IngestRejected: ``details['reason']`` is a ``RejectionReason``. No other error is raised.
    """
    ending = posixpath.splitext(path)[1].casefold()
    if ending not in SUPPORTED_TYPES:
        raise refuse(
            RejectionReason.UNSUPPORTED_TYPE,
            f"unsupported file type; supported: {', '.join(SUPPORTED_TYPES)}",
            type=ending[:20],
        )
    text, findings = decode(data)

    @cache
    def order_of_dates() -> DateOrder | None:
        # JSON may escape a slash.
        return date_order([text.replace("\\/", "/")]) or order

    document = ParsedDocument(path, text, findings=list(findings), order=order_of_dates)
    if ending == ".json":
        parse_json(document, partial(_text_above, above))
    elif ending == ".md":
        parse_markdown(document)
    else:
        parse_text(document)
    if document.format in ("transcript", "chat"):
        place_undated(document)
    document.title = document.title or title_of(path)
    document.document_keys = document.document_keys or document_keys(path)
    if not document.candidates:
        document.report(SkippedPart.NOTHING_EXTRACTED)
    elif document.main_key is None:
        document.main_key = document.candidates[0].key
    return document


def _text_above(above: Above, name: str) -> str | None:
    data = above(name)
    with suppress(IngestRejected):
        return None if data is None else decode(data)[0]
    return None


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
# A file with a higher share of control characters is not text.
_BINARY_SHARE = 0.02


def decode(data: bytes) -> tuple[str, tuple[ParseFinding, ...]]:
    """Decode a file: return its text with ``\\n`` line ends, and the removed control characters.

    Raises:
        IngestRejected: empty, binary, nul_bytes, not_utf8 or encoding_truncated.
    """
    if not data:
        raise refuse(RejectionReason.EMPTY, "the file is empty", size=0)
    if data.startswith(_MAGIC):
        raise refuse(RejectionReason.BINARY, "the file has a binary format, not text")
    text = _to_text(data)
    if "\x00" in text:
        raise refuse(
            RejectionReason.NUL_BYTES, "the file contains NUL characters", first=text.index("\x00")
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
        raise refuse(RejectionReason.EMPTY, "the file contains only white space", size=len(data))
    if not removed:
        return text, ()
    return text, (ParseFinding(SkippedPart.CONTROL_CHARACTERS_REMOVED, count=removed),)


def _to_text(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise refuse(RejectionReason.NOT_UTF8, "UTF-32 is not supported: save the file as UTF-8")
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
                "the file ends in the middle of a character: it was truncated",
                position=error.start,
            ) from None
        if b"\x00" in data:
            raise refuse(RejectionReason.BINARY, "the file is binary, not text") from None
        raise refuse(
            RejectionReason.NOT_UTF8,
            "the file is not UTF-8: save it as UTF-8",
            position=error.start,
        ) from None
