"""From the bytes of a dropped file to a ``ParsedDocument``: the only entry to the parsers."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import replace

from ingest.candidates import ParsedDocument, ParseFinding
from ingest.dates import DateOrder
from ingest.decode import decode
from ingest.parsers.json_ import parse_json
from ingest.parsers.markdown import parse_markdown
from ingest.parsers.slack import Above, no_file_above
from ingest.parsers.text import parse_text
from ingest.reasons import RejectionReason, SkippedPart, refuse

_Parser = Callable[[str, str, tuple[ParseFinding, ...]], ParsedDocument]
_Clean = Callable[[str], tuple[str, int]]
_PARSERS: Mapping[str, _Parser] = {".txt": parse_text, ".md": parse_markdown, ".json": parse_json}
SUPPORTED_TYPES = tuple(sorted(_PARSERS))


def parse_document(
    data: bytes,
    path: str,
    clean: _Clean | None = None,
    above: Above = no_file_above,
    order: DateOrder | None = None,
) -> ParsedDocument:
    """Parse a file. ``path`` is relative to the drop zone, with ``/``.

    Args:
        clean: removes from a text what the memory itself wrote, line numbers unchanged, and counts
            it. A file with nothing else is rejected.
        above: returns the content of a file, by its name, in the parent folder.
        order: the order of dates such as 05/06/2023 when the file itself does not show it.

    Raises:
        IngestRejected: ``details['reason']`` is a ``RejectionReason``; nothing else is ever raised.
    """
    ending = posixpath.splitext(path)[1].casefold()
    parser = _PARSERS.get(ending)
    if parser is None:
        raise refuse(
            RejectionReason.UNSUPPORTED_TYPE,
            f"only {', '.join(SUPPORTED_TYPES)} files are taken",
            type=ending[:20],
        )
    text, findings = decode(data)
    if clean is not None:
        text, echoes = clean(text)
        if echoes and not text.strip():
            raise refuse(
                RejectionReason.OWN_OUTPUT, "the file is what this memory itself had handed out"
            )
        if echoes:
            findings = (*findings, ParseFinding(SkippedPart.OWN_OUTPUT, count=echoes))
    if parser is parse_json:
        document = parse_json(text, path, findings, above)
    elif parser is parse_markdown:
        document = parse_markdown(text, path, findings, order)
    else:
        document = parser(text, path, findings)
    document = replace(document, text=text)
    if document.candidates:
        return document
    return replace(
        document, findings=(*document.findings, ParseFinding(SkippedPart.NOTHING_EXTRACTED))
    )
