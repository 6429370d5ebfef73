"""Compare new facts with what is stored about the same subject.

`remember`, ingestion, the outbox and consolidation all use `find_matches`. The caller decides
what a match becomes: a duplicate, an edge or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, islice
from typing import Final, NamedTuple

from memgraph.model.enums import CapturedBy, Relation, SourceType
from memgraph.relations.compare import compare, search_words
from memgraph.relations.statement import RelationFinding, Statement
from memgraph.store import comparisons, sessions
from memgraph.store.comparisons import ComparedFact, FactLocation
from memgraph.store.sessions import ComparisonPlace
from memgraph.store.snapshot import Snapshot
from memgraph.store.text_index import cjk_bigrams
from memgraph.store.visibility import View
from memgraph.text.lexicon import STOP_WORDS
from memgraph.text.stem import fold, stem, words

MAX_CANDIDATES: Final = 24
IN_LINE_CANDIDATES: Final = 8
"""The number of stored facts that are compared with a new one while its writer waits."""
MAX_MATCHING_ROWS: Final = 100
"""Words are searched for individually while at most this many memories contain them."""
MAX_COMMON_ROWS: Final = 3_000
MAX_PAIRS: Final = 6
"""The number of pairs of more frequent words; one word of each is within MAX_COMMON_ROWS."""
MUCH: Final = 0.5
"""A fact that shares this part of a statement's word weights probably has the same subject."""


class StatementAuthor(NamedTuple):
    """The author of a statement. Two statements have the same author when all fields are equal.

    Attributes:
        speaker: of a quotation, or of the turns if one person said all that a fact comes from.
        path: of the file, or the digest of its content; None if it was said or typed.
        known: False if there may be several authors; then it equals no other author.
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
    ) -> StatementAuthor:
        """Return the author of a memory.

        Args:
            roles: the speakers of the turns that it was extracted from.
        """
        from_conversation = source_type == SourceType.CHANNEL_TRANSCRIPT.value
        path = _path_of(source_type, source_path, content_sha256)
        speaker = Statement.of(content).speaker
        if speaker is None and len(set(roles)) == 1:
            [speaker] = set(roles)
        # An extractor is not the author of a fact that it found in a conversation.
        is_known = (
            not from_conversation
            or captured_by != CapturedBy.EXTRACTOR.value
            or speaker is not None
        )
        folded = None if speaker is None else speaker.strip().casefold()
        return cls(str(captured_by), agent_id, folded, path, is_known)

    def is_same(self, other: StatementAuthor) -> bool:
        """Return True if both are known and equal."""
        return self.known and self == other

    @property
    def is_file(self) -> bool:
        """Return True if the statement comes from a file."""
        return self.path is not None


class NewStatement(NamedTuple):
    """A fact to compare.

    Attributes:
        time: its event time, or else the time of storing, in milliseconds.
        document: digest of its file; it is not compared with other statements of that file.
        memory_id: its id if it is stored, so that it is not compared with itself.
        entity_pks: keys of the entities that it names.
        near: keys of the memories with the nearest vectors, nearest first.
        before: only facts with lower keys are compared; None: all.
    """

    content: str
    time: int
    place: ComparisonPlace
    author: StatementAuthor
    document: str | None = None
    memory_id: str | None = None
    entity_pks: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    before: int | None = None

    @property
    def statement(self) -> Statement:
        return _statement(self.content, self.time, self.author.path)


class FactMatch(NamedTuple):
    """A stored fact that a new statement repeats, updates or contradicts.

    Attributes:
        new_is_later: False if the stored fact was said later; then ``finding`` has it as the later.
        same_author: both are known to have the same author.
        by_model: a language model found the relation, not the rules.
    """

    fact: ComparedFact
    finding: RelationFinding
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
        """Return True if the later of the two replaces the earlier without a person's decision.

        A person decides about a program's fact that was confirmed, and about a person's own
        statement if only a model found that it changed.
        """
        by_user = self.fact.captured_by == CapturedBy.USER.value
        protected = self.by_model if by_user else self.fact.confidence >= 1.0
        changes = self.finding.relation in (Relation.UPDATES, Relation.CONTRADICTS)
        return changes and self.same_author and not protected


class FactMatches(NamedTuple):
    """The matches of one statement by the rules, the best candidate first.

    Attributes:
        more: True if other facts that share many words were not compared.
    """

    found: list[FactMatch]
    more: bool


def find_matches(
    snapshot: Snapshot,
    statements: Sequence[NewStatement],
    *,
    at: int,
    view: View | None = None,
    limit: int = MAX_CANDIDATES,
) -> list[FactMatches]:
    """Return, for each statement, the stored facts that it repeats, updates or contradicts.

    Args:
        at: now, in milliseconds; facts that are no longer valid are not compared.
        view: what the author may see; ``fact.seen`` is 1 for each match in it.
        limit: the maximum number of stored facts to compare with one statement.
    """
    candidates = find_candidates(snapshot, statements, at=at, view=view, limit=limit)
    return [
        FactMatches(matches_among(snapshot, new, facts), more)
        for new, (facts, more) in zip(statements, candidates, strict=True)
    ]


class ComparisonCandidates(NamedTuple):
    """Stored facts that may be about a statement's subject, the most similar first.

    Attributes:
        more: True if other facts that share many words were left out.
    """

    facts: list[ComparedFact]
    more: bool


def find_candidates(
    snapshot: Snapshot,
    statements: Sequence[NewStatement],
    *,
    at: int,
    view: View | None = None,
    limit: int = MAX_CANDIDATES,
) -> list[ComparisonCandidates]:
    """Return, for each statement, the stored facts that may be about the same subject.

    First come facts that share words with it, then those that share an entity, then those with
    near vectors. A text that is not a single claim has no candidates, and a statement of a file
    has none in the same file.
    """
    questions = [_search_words(new.statement) for new in statements]
    stems = {word for question in questions for word in question}
    frequencies = comparisons.frequencies(snapshot, stems, exact=MAX_MATCHING_ROWS)
    results: list[ComparisonCandidates] = []
    for new, question in zip(statements, questions, strict=True):
        location = FactLocation(new.place, at, view, new.before)
        facts: list[ComparedFact] = []
        more = False
        match = _match_expression(question, frequencies)
        if match is not None:
            # Some places are reserved for facts that share an entity or have a near vector.
            text_limit = limit - limit // 4 if new.entity_pks or new.near else limit
            matches = comparisons.facts_by_text(snapshot, match, location, 2 * limit)
            matches = [fact for fact in matches if _may_meet(new, fact)]
            facts, more = _most_alike(question, frequencies, matches, text_limit)
        if question and new.entity_pks:
            facts += comparisons.facts_of_entities(snapshot, new.entity_pks, location, limit // 4)
        if question and new.near:
            facts += comparisons.facts_by_key(snapshot, new.near, location)
        distinct = {fact.memory_id: fact for fact in facts if _may_meet(new, fact)}
        results.append(ComparisonCandidates(list(distinct.values())[:limit], more))
    return results


def _search_words(statement: Statement) -> Mapping[str, str]:
    """Return the search words by stem, the subject's first; empty unless it is a single claim."""
    if not statement.is_one_claim:
        return {}
    text = " ".join(search_words(statement)) or statement.text
    every = _words(text)
    return {stem(word): word for word in every if word not in STOP_WORDS} or {
        stem(word): word for word in every
    }


def _words(text: str) -> list[str]:
    """Return the words of a text as the full-text index splits them."""
    return [*cjk_bigrams(fold(text)), *words(text)]


def _match_expression(words: Mapping[str, str], frequencies: Mapping[str, int]) -> str | None:
    """Return an FTS5 expression of the rare words and of pairs of the others.

    If there are neither, it is the rarest word.
    """
    counts = {word: frequencies[word] for word in words if word in frequencies}
    if not counts:
        return None
    rare_words, rows = [], 0
    for word, frequency in counts.items():
        if rows + frequency <= MAX_MATCHING_ROWS:
            rare_words.append(word)
            rows += frequency
    pairs = (
        (first, second)
        for first, second in combinations([word for word in counts if word not in rare_words], 2)
        if min(counts[first], counts[second]) <= MAX_COMMON_ROWS
    )
    parts = [f'"{words[word]}"' for word in rare_words]
    parts += [f'("{words[a]}" AND "{words[b]}")' for a, b in islice(pairs, MAX_PAIRS)]
    return " OR ".join(parts or [f'"{words[min(counts, key=lambda word: counts[word])]}"'])


def _most_alike(
    question: Mapping[str, str],
    frequencies: Mapping[str, int],
    facts: Sequence[ComparedFact],
    limit: int,
) -> tuple[list[ComparedFact], bool]:
    """Return the facts most similar to a question, and whether a dropped one is also similar.

    A shared word weighs more if it is rare; the score falls with the number of words in a fact.
    """
    weights = {
        term: 1 / math.log(2 + frequencies[term]) for term in question if term in frequencies
    }
    shares: dict[int, float] = {}
    scores: dict[int, float] = {}
    for fact in facts:
        fact_stems = {stem(word) for word in _words(fact.content)}
        shares[fact.pk] = sum(weight for term, weight in weights.items() if term in fact_stems)
        scores[fact.pk] = shares[fact.pk] / math.sqrt(4 + len(fact_stems))
    ranked = sorted(facts, key=lambda fact: (-scores[fact.pk], -fact.pk))
    threshold = MUCH * sum(weights.values())
    return ranked[:limit], any(shares[fact.pk] >= threshold for fact in ranked[limit:])


def _may_meet(new: NewStatement, fact: ComparedFact) -> bool:
    """Return False for the statement itself and for facts of the same document."""
    if fact.memory_id == new.memory_id:
        return False
    # Statements of one conversation are compared: a speaker may change their mind.
    written = new.author.is_file and new.document is not None
    return not (written and new.document == fact.content_sha256)


def matches_among(
    snapshot: Snapshot, new: NewStatement, facts: Sequence[ComparedFact]
) -> list[FactMatch]:
    """Return the matches of a statement among some stored facts."""
    statement = new.statement
    findings: list[tuple[ComparedFact, RelationFinding]] = []
    for fact in facts:
        stored = _of(fact)
        finding = compare(stored, statement) if is_later(new, fact) else compare(statement, stored)
        if finding is not None:
            findings.append((fact, finding))
    return matches_of(snapshot, new, findings)


def is_later(new: NewStatement, fact: ComparedFact) -> bool:
    """Return True unless the stored fact was said after the new statement."""
    # At equal times the stored fact counts as the earlier one.
    return fact.time <= new.time


def matches_of(
    snapshot: Snapshot,
    new: NewStatement,
    findings: Sequence[tuple[ComparedFact, RelationFinding]],
    *,
    by_model: bool = False,
) -> list[FactMatch]:
    """Turn findings into matches, adding whether both sides have the same author."""
    if not findings:
        return []
    ids = [fact.memory_id for fact, _ in findings]
    roles = sessions.speakers(snapshot, ids)
    judged = []
    for fact, finding in findings:
        author = StatementAuthor.of(
            fact.content,
            captured_by=fact.captured_by,
            source_type=fact.source_type,
            agent_id=fact.agent_id,
            source_path=fact.source_path,
            content_sha256=fact.content_sha256,
            roles=[role for role, _ in roles.get(fact.memory_id, ()) if role],
        )
        # Two different documents match only if they contradict each other.
        documents = author.is_file and new.author.is_file and author.path != new.author.path
        if not documents or finding.relation is Relation.CONTRADICTS:
            same_author = new.author.is_same(author)
            judged.append(FactMatch(fact, finding, is_later(new, fact), same_author, by_model))
    return judged


def _path_of(source_type: str, source_path: str | None, content_sha256: str | None) -> str | None:
    """Return the path or the digest of a statement's file; None if it was said or typed."""
    if source_type == SourceType.CHANNEL_TRANSCRIPT.value:
        return None
    return source_path or content_sha256


def _of(fact: ComparedFact) -> Statement:
    path = _path_of(fact.source_type, fact.source_path, fact.content_sha256)
    return _statement(fact.content, fact.time, path)


def _statement(content: str, time: int, path: str | None) -> Statement:
    # In a file "we" means its authors.
    return Statement.of(content, time, speaker=path)
