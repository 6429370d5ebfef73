"""The result of parsing a file, before anything is stored. Keys are local to the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ingest.reasons import RejectionReason, SkippedPart, refuse
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, Scope, Sensitivity
from memgraph.model.sources import FileLink
from memgraph.model.values import EdgeInput
from memgraph.text.dates import DateOrder, date_readings, find_dates, json_readings, settled
from memgraph.text.paragraphs import cut

# Upper limits of what a file may claim about itself; a person may later confirm and raise them.
MAX_CONFIDENCE = 0.9
MAX_IMPORTANCE = 90
MAX_CANDIDATES = 100_000
# A memory is a single thought: longer passages are cut, at paragraphs or sentences if possible.
MAX_PASSAGE_CHARS = 4_000
MAX_TURN_CHARS = 30_000
MAX_SUMMARY_CHARS = 200
MAX_TAGS = 32
MAX_DATE_CHARS = 200

Format = Literal[
    "decision_record", "markdown", "transcript", "prose", "chat", "memories", "observations"
]

Origin = Literal["ChatGPT", "Claude", "Slack", "mem0", "Obsidian"]


@dataclass(frozen=True, slots=True)
class ParseFinding:
    """A part of a file that was left out or changed.

    ``locator`` is its place in the file, ``count`` the number of occurrences.
    """

    code: SkippedPart
    locator: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as it appears in a manifest."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class IngestCandidate:
    """One memory to be stored.

    ``importance`` is 0..90, ``confidence`` 0..0.9, ``event_time`` milliseconds. ``locator`` is
    ``L<first>-L<last>`` (lines from 1) or a JSON pointer (``#`` for the whole document). A
    candidate cannot set who captured it; that is always the extractor.
    """

    key: str
    content: str
    locator: str
    type: MemoryType
    kind: MemoryKind = MemoryKind.FACT
    summary: str | None = None
    importance: int | None = None
    confidence: float = 0.7
    status: MemoryStatus = MemoryStatus.ACTIVE
    event_time: int | None = None
    valid_until: int | None = None
    conversation_id: str | None = None
    session_id: str | None = None
    sequence: int | None = None
    turn_id: str | None = None
    source_role: str | None = None
    sensitivity: Sensitivity | None = None
    scope: Scope | None = None
    scope_id: str | None = None
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ParsedDocument:
    """The content of one file, in the order of the file, to which its parser adds.

    Edges and links name candidates by ``#key``. ``main_key`` is the candidate that represents the
    file when others link to it, under any of ``document_keys``. ``path`` is relative to the drop
    zone. ``text`` is the whole decoded file, whose lines the locators count. ``origin`` is the tool
    that exported it. ``order`` returns that of day and month in its dates, if it is known.
    """

    path: str
    text: str = field(default="", repr=False)
    format: Format = "markdown"
    candidates: list[IngestCandidate] = field(default_factory=list)
    edges: list[EdgeInput] = field(default_factory=list)
    links: list[FileLink] = field(default_factory=list)
    findings: list[ParseFinding] = field(default_factory=list)
    title: str | None = None
    main_key: str | None = None
    document_keys: tuple[str, ...] = ()
    origin: Origin | None = None
    order: Callable[[], DateOrder | None] = field(default=lambda: None, repr=False, compare=False)

    def dates(self, text: str, *, alone: bool = True) -> tuple[int, ...]:
        """Return what the date in a text may mean; see ``date_readings``."""
        return self._in_order(date_readings(text, alone=alone))

    def json_times(self, value: object) -> tuple[int, ...]:
        """Return what a time in JSON may mean."""
        return self._in_order(json_readings(value))

    def _in_order(self, readings: tuple[int, ...]) -> tuple[int, ...]:
        order = self.order() if len(readings) > 1 else None
        if order is None:
            return readings
        return readings[:1] if order == "day first" else readings[1:]

    def json_time(self, value: object) -> int | None:
        """Return a time in JSON; None if it is not known."""
        return settled([self.json_times(value)])

    def add(self, content: str, locator: str, **fields: Any) -> IngestCandidate:
        """Add a candidate; its key is m1, m2, …

        Raises:
            IngestRejected: too_many_items.
        """
        if len(self.candidates) >= MAX_CANDIDATES:
            raise refuse(
                RejectionReason.TOO_MANY_ITEMS,
                f"the file has more than {MAX_CANDIDATES} memories: split it",
                limit=MAX_CANDIDATES,
            )
        key = f"m{len(self.candidates) + 1}"
        self.candidates.append(IngestCandidate(key, content, locator, **fields))
        return self.candidates[-1]

    def join(
        self, key: str, other: str, kind: EdgeType, weight: float, reason: str | None = None
    ) -> None:
        """Add an edge between two candidates."""
        self.edges.append(
            EdgeInput(
                from_id=f"#{key}", to_id=f"#{other}", edge_type=kind, weight=weight, reason=reason
            )
        )

    def report(
        self,
        code: SkippedPart,
        locator: str | None = None,
        details: Mapping[str, Any] | None = None,
        *,
        count: int = 1,
    ) -> None:
        """Add a finding, unless ``count`` is 0."""
        if count:
            self.findings.append(ParseFinding(code, locator, details or {}, count))

    def report_date(self, text: object, locator: str | None = None, *, count: int = 1) -> None:
        """Report a date that is not understood: the date alone, whatever the text says besides."""
        written = str(text)[:MAX_DATE_CHARS]
        start, end = next(find_dates(written), (0, 0))
        details = {"text": written[start:end]} if end else {}
        self.report(SkippedPart.DATE_NOT_UNDERSTOOD, locator, details, count=count)


def lines(first: int, last: int) -> str:
    """Return the locator of whole lines, both counted from 1 and included."""
    return f"L{first}-L{last}"


def line_range(locator: str) -> tuple[int, int]:
    """Return the first and last line of a locator made by ``lines``.

    Raises:
        ValueError: the locator is not a line range.
    """
    first, dash, last = locator.partition("-")
    if not (dash and first.startswith("L") and last.startswith("L")):
        raise ValueError(f"not a line range: {locator[:80]!r}")
    return int(first[1:]), int(last[1:])


def summarize(text: str, limit: int = MAX_SUMMARY_CHARS) -> str:
    """Return the beginning of a text as one line, cut between words."""
    head = " ".join(text[: limit * 4].split())
    if len(head) <= limit:
        return head
    return head[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def clean_tags(values: Iterable[str]) -> tuple[str, ...]:
    """Return the tags lower-cased, stripped, unique in order, at most ``MAX_TAGS``."""
    tags: dict[str, None] = {}
    for value in values:
        tag = " ".join(value.split()).casefold()[:64]
        if tag:
            tags.setdefault(tag)
        if len(tags) == MAX_TAGS:
            break
    return tuple(tags)


def split_long(text: str, limit: int) -> list[str]:
    """Return a text in pieces of at most ``limit`` characters, cut at the ends of sentences."""
    return [piece for start, end in cut(text, limit) if (piece := text[start:end].strip())]
