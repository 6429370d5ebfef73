"""Turn the sections of a note into memories: every paragraph, line, list item and table row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile, zip_longest
from typing import Final

from ingest.candidates import IngestCandidate, ParsedDocument, lines
from ingest.parsers.blocks import FrontMatter
from ingest.parsers.file_names import dates_in_name, document_keys, link_keys, record_number
from ingest.parsers.passages import Passage, passages, source_width
from ingest.parsers.transcript import is_transcript, parse_transcript
from ingest.reasons import SkippedPart
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType
from memgraph.model.sources import FileLink
from memgraph.text.blocks import Block, HeadedSection, TextLink, read_lines, sections
from memgraph.text.dates import is_bare_date, settled
from memgraph.text.fold import fold
from memgraph.text.labels import read_label, type_named

LINK_WEIGHT: Final = 0.4
PART_WEIGHT: Final = 0.6
CONFIDENCE: Final = 0.8
_MAX_SECTION_CHARS: Final = 300
_MAX_LINKS: Final = 20
_HEAD_LINES: Final = 10
_DATE_FIELDS: Final = ("date", "datum", "fecha", "sent")


def parse_text(document: ParsedDocument) -> None:
    """Add the episodes of a transcript, or the lines and paragraphs of a note."""
    if is_transcript(document.text):
        parse_transcript(document, document.text)
        return
    document.format = "prose"
    source = document.text.split("\n")
    parse_note(document, sections(read_lines(source)), source, FrontMatter())


def _date_field(parts: Sequence[HeadedSection]) -> str:
    """Return the line of the field "Date:" among the fields with which a note begins, or ""."""
    blocks = (block for block in parts[0].blocks if block.kind != "omitted") if parts else ()
    fields = takewhile(lambda block: block.kind in ("paragraph", "item"), blocks)
    written = chain.from_iterable((block.raw or block.text).split("\n") for block in fields)
    for line in islice(written, _HEAD_LINES):
        name, colon, _ = line.partition(":")
        if not colon:
            break
        if name.strip().casefold() in _DATE_FIELDS:
            return line
    return ""


def _date_alone(
    document: ParsedDocument, parts: Sequence[HeadedSection], source: Sequence[str]
) -> str:
    """Return the first line of a note's text if it is a date, and no later line is another."""
    lines_of_text = _lines_of_text(parts, source)
    line = next(lines_of_text, "")
    if not is_bare_date(line):
        return ""
    days = document.dates(line)
    # Of several dates, each may be that of the lines below it.
    others = (document.dates(other) for other in lines_of_text if is_bare_date(other))
    return line if all(other == days for other in others) else ""


def _lines_of_text(parts: Sequence[HeadedSection], source: Sequence[str]) -> Iterator[str]:
    """Yield the lines of paragraphs, with those that became headings because they are dates.

    Another heading, except one of the first level, and each other block is an empty line.
    """
    for part in parts:
        if part.level > 1:
            yield "" if source[part.first - 1].lstrip().startswith("#") else part.title
        for block in part.blocks:
            if block.kind == "paragraph":
                yield from (block.raw or block.text).split("\n")
            elif block.kind != "omitted":
                yield ""


def parse_note(
    document: ParsedDocument,
    parts: Sequence[HeadedSection],
    source: Sequence[str],
    front: FrontMatter,
) -> None:
    """Add the passages of a note in order, PartOf the first of them, and links as edges.

    A heading is the ``section`` of the passages below it, and gives them its type and its date. A
    heading with nothing below it is a passage itself. A date at the top, alone on its line or in a
    field "Date:", is the note's date, and no passage.

    Args:
        source: the lines of the file.
    """
    path = document.path
    headings = [part.title for part in parts if part.level == 1]
    title = front.title or next(iter(headings), None)
    document.title = title
    document.document_keys = document_keys(path, record_number(path))
    date_line = _date_field(parts)
    date = date_line.partition(":")[2]
    if not date_line:
        date_line = date = _date_alone(document, parts, source)
    titles = (title, *(headings if len(headings) == 1 else ()))
    times = _Times(document, (front.date, date, *titles, *dates_in_name(path)))
    blocks = [block for part in parts for block in part.blocks]
    width = source_width(blocks, source)
    report_left_out(document, blocks)

    def add(passage: Passage, section: tuple[str, ...]) -> None:
        add_line(
            document,
            passage,
            # A single heading of the first level is the title.
            event_time=times.of(() if [*section] == headings else section),
            tags=front.tags,
            section=(*section, *passage.above),
            title=title,
        )

    for passage in _properties(front, source):
        add(passage, ())
    properties = len(document.candidates)
    own_date = date_line.strip() if times.of(()) in document.dates(date) else None
    for part, following in zip_longest(parts, parts[1:]):
        above = (*part.path, part.title) if part.title else part.path
        # The document's title does not describe a single section.
        section = above[1:] if len(above) > 1 else above
        below = list(passages(part.blocks, source, width))
        is_date = part.title == own_date and following is not None
        if below or is_date:
            below = [passage for passage in below if passage.text != own_date]
            own_date = None
        is_bare = not below and all(block.kind != "omitted" for block in part.blocks)
        if part.title and is_bare and (following is None or following.level <= part.level):
            if not is_date:
                add(Passage(part.title, part.first, part.first), section[:-1])
            continue
        for passage in below:
            add(passage, section)
    # A line of the text stands for the document, rather than a property.
    for main in (document.candidates[properties:] or document.candidates)[:1]:
        join_parts(document, main)
        document.links += related_links(main.key, path, links_in(parts))


class _Times:
    """The times of a note's lines, by the headings above them and the dates of the whole note."""

    def __init__(self, document: ParsedDocument, own: Sequence[str | None]) -> None:
        self._document, self._own = document, own
        self._of: dict[tuple[str, ...], int | None] = {}
        self._unread: set[str] = set()

    def of(self, section: tuple[str, ...]) -> int | None:
        """Return the time of the lines of a section; report an ambiguous date once."""
        if section not in self._of:
            texts = [text for text in (*reversed(section), *self._own) if text]
            readings = [self._document.dates(text, alone=False) for text in texts]
            time = self._of[section] = settled(readings)
            if time is None and any(readings):
                text = next(text for text, times in zip(texts, readings, strict=True) if times)
                if text not in self._unread:
                    self._unread.add(text)
                    self._document.report_date(text)
        return self._of[section]


def report_left_out(document: ParsedDocument, blocks: Sequence[Block]) -> None:
    """Report each part that the reader of blocks has left out."""
    for block in blocks:
        if block.kind == "omitted":
            document.report(SkippedPart(block.text), lines(block.first, block.last))


def _properties(front: FrontMatter, source: Sequence[str]) -> Iterator[Passage]:
    """Yield the properties of a note that have no meaning for memgraph itself."""
    for name, values in front.others():
        line = next(
            (at for at, text in enumerate(source, 1) if front.name_of(text) == name and at > 1), 1
        )
        text = ", ".join(values).replace("[[", "").replace("]]", "")
        yield Passage(f"{name}: {text}", line, line)


def add_line(
    document: ParsedDocument,
    passage: Passage,
    *,
    event_time: int | None = None,
    tags: tuple[str, ...] = (),
    section: tuple[str, ...] = (),
    title: str | None = None,
    locator: str | None = None,
) -> None:
    """Add a passage as a candidate.

    A task box is a Todo, superseded if it is ticked. Otherwise a label at the beginning gives the
    type, or else a heading above; without either it is an Observation.
    """
    text = passage.text
    label = read_label(text)
    kind = type_of_headings(section) or MemoryType.OBSERVATION
    if label is not None:
        kind, text = label
    ticked = bool(passage.checked)
    attributes: dict[str, object] = {
        "section": " / ".join(section)[:_MAX_SECTION_CHARS],
        "title": (title or "")[:200],
    }
    if passage.checked is not None:
        kind = MemoryType.TODO
        attributes["done"] = ticked
    document.add(
        text,
        locator or passage.locator,
        type=kind,
        confidence=CONFIDENCE,
        status=MemoryStatus.SUPERSEDED if ticked else MemoryStatus.ACTIVE,
        event_time=event_time,
        tags=tags,
        attributes={name: value for name, value in attributes.items() if value != ""}
        | linked(passage),
    )


def linked(passage: Passage) -> dict[str, object]:
    """Return the attribute with the web addresses that a passage links to, if there are any."""
    return {"links": list(passage.links[:_MAX_LINKS])} if passage.links else {}


def type_of_headings(section: Sequence[str]) -> MemoryType | None:
    """Return the type that the nearest heading with a type gives, such as "3. Decisions"."""
    for title in reversed(section):
        bare = title.partition("(")[0]
        while bare and not bare[0].isalpha():
            bare = bare[1:]
        if (kind := type_named(bare.rstrip(": "))) is not None:
            return kind
    return None


def join_parts(document: ParsedDocument, main: IngestCandidate) -> None:
    """Add PartOf edges to the memory that stands for the document."""
    document.main_key = main.key
    same = _folded(main.content)
    for candidate in document.candidates:
        if candidate is main:
            continue
        if candidate.type is not main.type or _folded(candidate.content) != same:
            document.join(candidate.key, main.key, EdgeType.PART_OF, PART_WEIGHT)


def _folded(text: str) -> str:
    """Return a text so that those that are stored as one memory are equal."""
    return fold(" ".join(text.split())).rstrip(" .!?…")


def related_links(
    main_key: str, path: str, links: Iterable[TextLink], known: Iterable[str] = ()
) -> Iterator[FileLink]:
    """Yield a RelatedTo link for each other file that a text links to, once.

    Args:
        known: document keys that are not linked.
    """
    linked = {*known, *document_keys(path)[:1]}
    for link in links:
        keys = link_keys(link.href, path)
        # A web page is not a file that could be ingested.
        if len(keys) < 2 or linked & set(keys[:1]):
            continue
        linked.add(keys[0])
        yield FileLink(
            local=f"#{main_key}",
            target=keys[0],
            edge_type=EdgeType.RELATED_TO,
            weight=LINK_WEIGHT,
            reason=f"links to {link.label}"[:200] if link.label else None,
            fallbacks=keys[1:],
        )


def links_in(parts: Iterable[HeadedSection]) -> Iterator[TextLink]:
    """Yield the links of the headings and blocks of a document, in order."""
    for part in parts:
        yield from part.links
        for block in part.blocks:
            yield from block.links
