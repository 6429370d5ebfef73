"""Compare new facts with what is stored about the same subject.

Every way in uses `find_matches`: remember, ingest, the outbox and consolidation. What a match
becomes (a duplicate, an edge, nothing) is decided by the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import CapturedBy, Relation, SourceType
from memgraph.relations import Finding, Statement, compare, search_words
from memgraph.retrieval.query import read
from memgraph.storage import comparisons, consolidation_queries, recall_queries
from memgraph.storage.comparisons import Beside, ComparedFact
from memgraph.storage.consolidation_queries import Place
from memgraph.storage.visibility import View

if TYPE_CHECKING:
    pass


MAX_CANDIDATES = 24
# Words are searched for, those of the subject first, as long as so few memories hold them.
MAX_MATCHING_ROWS = 300


class Author(NamedTuple):
    """Who states something: two statements have one author where all of it is equal.

    Attributes:
        speaker: of a quotation, or of the one person whose turns a fact was drawn from.
        path: of a file, or else the digest of its content; None for what was said or typed.
        known: False: several may have said it, so that it is the same author as none.
    """

    captured_by: str
    agent_id: str | None = None
    speaker: str | None = None
    path: str | None = None
    known: bool = True

    @classmethod
    def of(
        cls,
        content: str,
        *,
        captured_by: str,
        source_type: str,
        agent_id: str | None = None,
        source_path: str | None = None,
        content_sha256: str | None = None,
        roles: Collection[str] = (),
    ) -> Author:
        """Return the author of a memory.

        Args:
            roles: who said the turns that it was drawn from.
        """
        said = source_type == SourceType.CHANNEL_TRANSCRIPT.value
        path = _path_of(source_type, source_path, content_sha256)
        speaker = Statement.of(content).speaker
        if speaker is None and len(set(roles)) == 1:
            [speaker] = set(roles)
        # Whoever drew a fact from a conversation did not state it.
        known = not said or captured_by != CapturedBy.EXTRACTOR.value or speaker is not None
        folded = None if speaker is None else speaker.strip().casefold()
        return cls(str(captured_by), agent_id, folded, path, known)

    def is_same(self, other: Author) -> bool:
        """Return True if both are known to be one author."""
        return self.known and self == other

    @property
    def is_file(self) -> bool:
        """Return True for what a file says."""
        return self.path is not None


class NewStatement(NamedTuple):
    """A fact to compare.

    Attributes:
        time: when it was said, in milliseconds: its event time, else the time of storing.
        document: digest of the file that holds it; it is not compared with what that says, too.
        memory_id: of one that is stored; it is not compared with itself.
        entity_pks: of the entities that are named in it.
        near: keys of memories whose vectors are near its own, the nearest first.
        before: it is compared with facts of lower keys alone; None: with all.
    """

    content: str
    time: int
    place: Place
    author: Author
    document: str | None = None
    memory_id: str | None = None
    entity_pks: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    before: int | None = None

    @property
    def statement(self) -> Statement:
        return _statement(self.content, self.time, self.author.path)


class Match(NamedTuple):
    """A stored fact that a new statement repeats, updates or contradicts.

    Attributes:
        new_is_later: False: the stored one was said after the new one, and ``finding`` reads so.
        same_author: both are known to be the statements of one author.
        by_model: a language model found it, not the rules.
    """

    fact: ComparedFact
    finding: Finding
    new_is_later: bool
    same_author: bool
    by_model: bool = False

    @property
    def memory_id(self) -> str:
        return self.fact.memory_id

    @property
    def content(self) -> str:
        return self.fact.content

    @property
    def time(self) -> int:
        return self.fact.time

    @property
    def replaces(self) -> bool:
        """Return True if the later of the two takes the place of the earlier.

        What a program stored and a person confirmed waits for a person; and so does what a person
        said where only a model finds that it changed.
        """
        said = self.fact.captured_by == CapturedBy.USER.value
        protected = self.by_model if said else self.fact.confidence >= 1.0
        changes = self.finding.relation in (Relation.UPDATES, Relation.CONTRADICTS)
        return changes and self.same_author and not protected


def find_matches(
    connection: sa.Connection,
    statements: Sequence[NewStatement],
    *,
    at: int,
    view: View | None = None,
    limit: int = MAX_CANDIDATES,
) -> list[list[Match]]:
    """Return for each statement the stored facts that it relates to, the best candidate first.

    Args:
        at: now, in milliseconds; what is valid no more is not compared.
        view: what the author may see: of each match ``fact.seen`` is 1 where it does.
        limit: at most so many stored facts are compared with one statement.
    """
    candidates = find_candidates(connection, statements, at=at, view=view, limit=limit)
    return [
        matches_among(connection, new, facts)
        for new, facts in zip(statements, candidates, strict=True)
    ]


def find_candidates(
    connection: sa.Connection,
    statements: Sequence[NewStatement],
    *,
    at: int,
    view: View | None = None,
    limit: int = MAX_CANDIDATES,
) -> list[list[ComparedFact]]:
    """Return for each statement the stored facts that may speak of the same subject.

    They share rare words with it, then an entity, then they are near by vector. What is no single
    claim has none, and of a file's statement the file's others are none.
    """
    questions = [_search_words(new.statement) for new in statements]
    stems = {stem for question in questions for stem in question}
    frequencies = recall_queries.document_frequencies(connection, stems) if stems else {}
    candidates: list[list[ComparedFact]] = []
    for new, question in zip(statements, questions, strict=True):
        beside = Beside(new.place, at, view, new.before)
        facts: list[ComparedFact] = []
        match = _match_expression(question, frequencies)
        if match is not None:
            # What shares an entity or is near has its share of the places.
            most = limit - limit // 3 if new.entity_pks or new.near else limit
            facts += comparisons.facts_by_text(connection, match, beside, most)
        if question and new.entity_pks:
            facts += comparisons.facts_of_entities(connection, new.entity_pks, beside, limit // 3)
        if question and new.near:
            facts += comparisons.facts_by_key(connection, new.near, beside)
        distinct = {fact.memory_id: fact for fact in facts if _may_meet(new, fact)}
        candidates.append(list(distinct.values())[:limit])
    return candidates


def _search_words(statement: Statement) -> Mapping[str, str]:
    """Return the words to search for by stem, those of the subject first; none: it is no claim."""
    if not statement.is_one_claim:
        return {}
    return read(" ".join(search_words(statement)) or statement.text).words


def _match_expression(words: Mapping[str, str], frequencies: Mapping[str, int]) -> str | None:
    """Return an FTS5 expression of words that few memories hold; of none, of the rarest word."""
    known = {stem: frequencies[stem] for stem in words if stem in frequencies}
    if not known:
        return None
    chosen, rows = [], 0
    for stem, frequency in known.items():
        if rows + frequency <= MAX_MATCHING_ROWS:
            chosen.append(stem)
            rows += frequency
    chosen = chosen or [min(known, key=lambda stem: known[stem])]
    return " OR ".join(f'"{words[stem]}"' for stem in chosen)


def _may_meet(new: NewStatement, side: ComparedFact) -> bool:
    """Return False for the statement itself, and for what stands in the same document."""
    if side.memory_id == new.memory_id:
        return False
    # What is said in one conversation may well change.
    written = new.author.is_file and new.document is not None
    return not (written and new.document == side.content_sha256)


def matches_among(
    connection: sa.Connection, new: NewStatement, facts: Sequence[ComparedFact]
) -> list[Match]:
    """Return those of some stored facts that a statement repeats, updates or contradicts."""
    said = new.statement
    findings: list[tuple[ComparedFact, Finding]] = []
    for fact in facts:
        stored = _of(fact)
        finding = compare(stored, said) if is_later(new, fact) else compare(said, stored)
        if finding is not None:
            findings.append((fact, finding))
    return matches_of(connection, new, findings)


def is_later(new: NewStatement, fact: ComparedFact) -> bool:
    """Return True unless the stored fact was said after the new statement."""
    # Of one moment the stored one is the earlier: it was there first.
    return fact.time <= new.time


def matches_of(
    connection: sa.Connection,
    new: NewStatement,
    findings: Sequence[tuple[ComparedFact, Finding]],
    *,
    by_model: bool = False,
) -> list[Match]:
    """Return what was found about a statement, with whether both sides have one author."""
    if not findings:
        return []
    ids = [fact.memory_id for fact, _ in findings]
    roles = consolidation_queries.speakers(connection, ids)
    judged = []
    for fact, finding in findings:
        author = Author.of(
            fact.content,
            captured_by=fact.captured_by,
            source_type=fact.source_type,
            agent_id=fact.agent_id,
            source_path=fact.source_path,
            content_sha256=fact.content_sha256,
            roles=[role for role, _ in roles.get(fact.memory_id, ()) if role],
        )
        # Documents that agree, or follow one another, are silent.
        documents = author.is_file and new.author.is_file and author.path != new.author.path
        if not documents or finding.relation is Relation.CONTRADICTS:
            same_author = new.author.is_same(author)
            judged.append(Match(fact, finding, is_later(new, fact), same_author, by_model))
    return judged


def _path_of(source_type: str, source_path: str | None, content_sha256: str | None) -> str | None:
    """Return the file that states something; None for what was said or typed."""
    if source_type == SourceType.CHANNEL_TRANSCRIPT.value:
        return None
    return source_path or content_sha256


def _of(fact: ComparedFact) -> Statement:
    path = _path_of(fact.source_type, fact.source_path, fact.content_sha256)
    return _statement(fact.content, fact.time, path)


def _statement(content: str, time: int, path: str | None) -> Statement:
    # "We" of a file are its authors.
    return Statement.of(content, time, speaker=path)
