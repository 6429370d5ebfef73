"""Remove the parts of a turn that only repeat this memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from memgraph.consolidation.agent_tools import PageTurn
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.model.enums import MemoryKind
from memgraph.relations.statement import Statement
from memgraph.rules import similarity
from memgraph.rules.blocks import without_own_output
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.rules.similarity import MAX_TERMS, MIN_CONTENT, EchoReason, WordSplitter
from memgraph.store import echoes
from memgraph.store.echoes import StandingText
from memgraph.store.engine import Database
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View
from memgraph.text.sentences import split_sentences
from memgraph.text.stem import fold, stem

LOOKED_UP = 4

_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Mm]e|[Ww]e|[Oo]ur)\b")
_QUOTED = re.compile('[“”"]')
_WORDS = WordSplitter(lambda word: stem(fold(word)))


@dataclass(frozen=True, slots=True)
class EchoRemainder:
    """The part of a text that is not an echo.

    ``text`` is unchanged if there was no echo, and may be empty. ``reasons`` has one entry for each
    sentence or block that was left out.
    """

    text: str
    reasons: tuple[EchoReason, ...] = ()


class EchoFilter:
    """Detects echoes in the turns of a page. Receipts must have been flushed before.

    The lines of all given turns are looked up at once. The words of an agent's other sentences are
    looked up when a text is judged, in one short read for each text.
    """

    def __init__(self, database: Database, turns: Sequence[PageTurn] = ()) -> None:
        self._database = database
        self._lines: dict[int, tuple[int, int] | None] = {}
        hashes = [line_hash for turn in turns for line_hash in similarity.line_hashes(turn.content)]
        with database.read() as snapshot:
            self._load(snapshot, hashes)

    def without_echo(
        self,
        text: str,
        *,
        source_role: str | None,
        at_ms: int,
        viewer: Viewer = DEFAULT_VIEWER,
    ) -> EchoRemainder:
        """Return what remains of a text, judged block by block, line by line, sentence by sentence.

        Args:
            source_role: the speaker's role; see ``similarity.is_agent``.
            at_ms: when it was said, milliseconds; only what was returned before then counts.
            viewer: the speaker's view; memories outside of it do not count.
        """
        bare, blocks = without_own_output(text, lambda line: self._was_handed_out(line, at_ms))
        judge = _Judge(self, source_role, at_ms, View(viewer))
        reasons = [EchoReason.FORMAT] * blocks
        # One read for all look-ups of a text; a person's lines are known already.
        reading = self._database.read() if similarity.is_agent(source_role) else nullcontext()
        with reading as judge.snapshot:
            remaining = [judge.remains(unit) for unit in similarity.units(bare)]
        reasons += judge.reasons
        if not reasons:
            return EchoRemainder(text)
        return EchoRemainder("\n".join(line for line in remaining if line), tuple(reasons))

    def without_marked(self, text: str) -> EchoRemainder:
        """Return a file's text without what is marked as this memory's, with the same line numbers.

        This removes the memory's own output, and lines that cite memories and add nothing to them.
        From other lines that cite memories only the citations are removed. Unmarked lines stay even
        if a memory says the same, because it may have been extracted from them.
        """
        with self._database.read() as snapshot:
            contents = echoes.contents(snapshot, similarity.cited_ids(text))
            contents |= echoes.contents_by_short_id(snapshot, similarity.cited_short_ids(text))
            if not contents:
                return EchoRemainder(text)
            bare, blocks = without_own_output(text, self._was_handed_out)
            lines = [
                (line, (*similarity.cited_ids(line), *similarity.cited_short_ids(line)))
                for line in bare.split("\n")
            ]
            hashes = (similarity.line_hashes(line) for line, ids in lines if ids)
            self._load(snapshot, (item for line_hashes in hashes for item in line_hashes))
        reasons = [EchoReason.FORMAT] * blocks
        remaining = []
        for line, ids in lines:
            cited = [contents[item] for item in ids if item in contents]
            if cited and self.repeats(line, cited):
                reasons.append(EchoReason.RECEIPT)
                remaining.append("")
            else:
                remaining.append(similarity.without_citations(line) if cited else line)
        return EchoRemainder("\n".join(remaining), tuple(reasons))

    def repeats(self, line: str, cited: Sequence[str]) -> bool:
        """Return True when a line that cites memories says nothing that their texts do not."""
        return all(
            self.handed_out(sentence) is not None
            or any(
                _WORDS.says_nothing_new(similarity.without_lead_in(sentence), text)
                for text in cited
            )
            for sentence in _sentences(line)
        )

    def handed_out(self, text: str) -> tuple[int, int] | None:
        """Return the first and the last time that a line was returned, in milliseconds.

        None if it never was, or is too short to decide.
        """
        form = similarity.normal_form(text)
        if not similarity.says_enough(form):
            return None
        line_hash = similarity.form_hash(form)
        if line_hash not in self._lines:
            with self._database.read() as snapshot:
                self._load(snapshot, [line_hash])
        return self._lines[line_hash]

    def _was_handed_out(self, line: str, before_ms: int | None = None) -> bool:
        times = self.handed_out(line)
        return times is not None and (before_ms is None or times[0] < before_ms)

    def cited(self, memory_ids: Sequence[str]) -> list[str]:
        """Return the texts of the memories that a line cites."""
        with self._database.read() as snapshot:
            return list(echoes.contents(snapshot, memory_ids).values())

    def stands(self, text: str, at_ms: int, view: View) -> bool:
        """Return True when active memories within the view say all of a line."""
        with self._database.read() as snapshot:
            return all(
                any(
                    # An agent's private memory counts only for the view of an agent.
                    view.viewer.agent_id is not None or item.agent_id is None
                    for item in _saying(snapshot, sentence, at_ms, view)
                )
                for sentence in _sentences(text)
                if _WORDS.wording(sentence).terms
            )

    def _load(self, snapshot: Snapshot, hashes: Iterable[int]) -> None:
        unknown = set(hashes) - self._lines.keys()
        if unknown:
            times = echoes.find(snapshot, unknown)
            self._lines |= {line_hash: times.get(line_hash) for line_hash in unknown}


def _sentences(line: str) -> list[str]:
    """Return the sentences of a line without marks and citations."""
    return [item for inner in similarity.inner_texts(line) for item in split_sentences(inner)]


@dataclass(frozen=True, slots=True)
class RepeatedMemories:
    """The memories that repeat parts of a text. ``whole``: together they say all of it."""

    whole: bool
    memories: tuple[StandingText, ...]


def repeated(
    snapshot: Snapshot, text: str, *, at_ms: int, view: View, session_id: str | None
) -> RepeatedMemories:
    """Return the active memories within a view that already say parts of a text.

    They are compared sentence by sentence, or clause by clause if no memory says a whole sentence.
    A turn counts only if it was recalled within the day before, and never if it belongs to
    ``session_id``: what is said in the conversation itself is new.
    """
    complete = True
    memories: dict[str, StandingText] = {}
    for sentence in (item for line in similarity.units(text) for item in split_sentences(line)):
        bare = similarity.without_lead_in(similarity.normal_marks(sentence))
        sources = [
            [item for item in _saying(snapshot, part, at_ms, view) if _counts(item, session_id)]
            for part in (bare, *_WORDS.clauses(bare))
        ]
        memories |= {item.memory_id: item for stored in sources for item in stored}
        complete = complete and (bool(sources[0]) or (len(sources) > 1 and all(sources[1:])))
    return RepeatedMemories(complete and bool(memories), tuple(memories.values()))


def _counts(memory: StandingText, session_id: str | None) -> bool:
    if memory.kind != MemoryKind.EPISODE:
        return True
    return memory.recalled > 0 and (session_id is None or memory.session_id != session_id)


def _saying(snapshot: Snapshot, text: str, at_ms: int, view: View) -> list[StandingText]:
    """Return the active memories within a view that say all of a sentence or clause."""
    terms = _WORDS.wording(text).terms
    if not terms:
        return []
    rare = sorted(terms, key=len, reverse=True)[:LOOKED_UP]
    since = at_ms - similarity.WINDOW_MS
    texts = echoes.standing_texts(snapshot, rare, at=at_ms, since=since, view=view)
    line_hash = similarity.form_hash(similarity.normal_form(text))
    return [
        stored
        for stored in texts
        if _WORDS.says_nothing_new(text, stored.content)
        or line_hash in similarity.line_hashes(stored.content)
    ]


@dataclass(slots=True)
class _Judge:
    """The work on one text."""

    filter: EchoFilter
    source_role: str | None
    at_ms: int
    view: View
    snapshot: Snapshot | None = None
    reasons: list[EchoReason] = field(default_factory=list)

    def remains(self, unit: str) -> str:
        """Return what is left of a line."""
        sentences = split_sentences(unit)
        if len(sentences) > 1 and self._counted(self._line(unit)):
            return ""
        ids = similarity.cited_ids(unit)
        cited = self.filter.cited(ids) if ids else []
        if cited and self.filter.repeats(unit, cited):
            self.reasons.append(EchoReason.RECEIPT)
            return ""
        remaining = (part for part in sentences if not self._counted(self._sentence(part, cited)))
        # A citation after the full stop was split off like a sentence: drop it.
        return " ".join(part for part in remaining if not cited or similarity.normal_form(part))

    def _counted(self, reason: EchoReason | None) -> bool:
        if reason is not None:
            self.reasons.append(reason)
        return reason is not None

    def _sentence(self, text: str, cited: Sequence[str]) -> EchoReason | None:
        line = self._line(text)
        if line is not None:
            return line
        bare = similarity.normal_marks(text)
        if any(_WORDS.says_nothing_new(bare, content) for content in cited):
            return EchoReason.RECEIPT
        # A question does not state anything.
        if self.snapshot is None or bare.endswith(("?", "？")):
            return None
        inner = similarity.without_lead_in(bare)
        if inner != bare and (self._line(inner) is not None):
            return EchoReason.LINE
        return self._covered(self.snapshot, inner)

    def _line(self, text: str) -> EchoReason | None:
        times = self.filter.handed_out(text)
        # A turn that was recalled later is not an echo of itself.
        if times is None or times[0] >= self.at_ms:
            return None
        if similarity.is_agent(self.source_role):
            return EchoReason.LINE
        # A person's words must not be lost: leave them out only if a memory still says them.
        recent = times[1] >= self.at_ms - similarity.WINDOW_MS
        is_stored = recent and self.filter.stands(text, self.at_ms, self.view)
        return EchoReason.LINE if is_stored else None

    def _covered(self, snapshot: Snapshot, text: str) -> EchoReason | None:
        """Return why a sentence is an echo; None if no earlier text says it or all its clauses."""
        complete_reason = self._clause(snapshot, text)
        if complete_reason is not None:
            return complete_reason
        clauses = _WORDS.clauses(text)
        if len(clauses) < 2:
            return None
        reasons = []
        for clause in clauses:
            reason = self._clause(snapshot, clause)
            if reason is None:
                return None
            reasons.append(reason)
        return reasons[0]

    def _clause(self, snapshot: Snapshot, text: str) -> EchoReason | None:
        terms = _WORDS.wording(text).terms
        if not MIN_CONTENT <= len(terms) <= MAX_TERMS:
            return None
        # Long words tend to be rare: look up the texts that contain them, then compare in full.
        rare = sorted(terms, key=len, reverse=True)[:LOOKED_UP]
        since = self.at_ms - similarity.WINDOW_MS
        for earlier in echoes.earlier_texts(
            snapshot, rare, at=self.at_ms, since=since, view=self.view
        ):
            # A statement of another speaker that was never returned cannot be echoed.
            if not earlier.recalled and self._is_of_another(text, earlier.content):
                continue
            if _WORDS.says_nothing_new(text, earlier.content):
                return EchoReason.RECEIPT if earlier.recalled else EchoReason.KNOWN
        return None

    def _is_of_another(self, text: str, content: str) -> bool:
        """Return True if a named speaker says in the first person what another is quoted with."""
        quoted = Statement.of(content).speaker
        if quoted is None or voice_of(self.source_role) is not SpeakerRole.NAMED:
            return False
        own = _FIRST_PERSON.search(text) is not None and not _QUOTED.search(text)
        return own and quoted.casefold() != (self.source_role or "").strip().casefold()
