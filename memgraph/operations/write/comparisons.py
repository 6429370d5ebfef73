"""Compare new facts and turns with those stored before them, in the background.

The reader of pairs finds marks, which change no status: an Updates edge where the same author said
both, else an open contradiction, each with a probability as its weight. A configured language model
decides: what it finds between statements of one author is in force. A fact that a model wrote from
a page of turns is compared by the reader alone, with the facts that the page did not show.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.consolidation.comparison import (
    MAX_CANDIDATES,
    NewStatement,
    StatementAuthor,
    find_candidates,
)
from memgraph.errors import ProviderAnswerInvalid, ProviderError
from memgraph.model.enums import (
    ComparisonStage,
    EdgeType,
    MemoryKind,
    MemoryStatus,
    ModelUse,
    Relation,
    Sensitivity,
)
from memgraph.model.values import Edge, EdgeInput
from memgraph.operations.write.changes import is_protected
from memgraph.operations.write.edges import StoredBatch
from memgraph.operations.write.embedding import MAX_REFUSALS, EmbeddingRun, pause_ms
from memgraph.providers.local import LocalEmbedding
from memgraph.providers.pair_reader import PairVerdict, StatementPair
from memgraph.providers.usage import usage_tally
from memgraph.rules.blocks import cut
from memgraph.rules.lines import speaker_of
from memgraph.store import comparisons, edges, embeddings, memories, sessions
from memgraph.store.comparisons import ComparedMemory, WaitingMemory
from memgraph.store.sessions import ComparisonPlace
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction
from memgraph.text.sentences import passages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.consolidation.relations import FactRelation
    from memgraph.operations.life.models import LanguageModel
    from memgraph.service.open_orchestrator import OpenOrchestrator

ACTOR: Final = "comparison"
"""The actor of journal entries for work from the outbox."""
MARK_FROM: Final = 0.8
"""The probability from which a pair of facts is marked."""
TURN_MARK_FROM: Final = 0.9
"""The same where one of the two is a turn: most of what is said changes nothing."""
CLOSE: Final = 0.5
"""The cosine of their vectors from which two memories are read; the rest is seldom related."""
MAX_QUOTED: Final = 240
"""The characters of the earlier statement in the reason of a mark."""
MAX_MARKS: Final = 2
"""The number of earlier memories that one is said to change, the most probable ones."""
MAX_READ: Final = 8
"""The number of pairs that the reader reads for one memory."""
BELOW_FORCE: Final = 0.99
"""The highest weight of a mark; an edge of weight 1 is in force."""
COMPARED_AT_ONCE: Final = 8
"""The maximum number of memories per transaction, so that concurrent writes wait briefly."""
GIVE_WAY_S: Final = 0.001
NEAR: Final = 32
"""The number of nearest memories by vector that are looked at."""
JUDGED_PER_CALL: Final = 20
"""The number of facts with which the model is asked at once."""
_READER: Final = ComparisonStage.READER
_MODEL: Final = ComparisonStage.MODEL
_RELATION: Final = {
    EdgeType.UPDATES: "probably changes",
    EdgeType.CONTRADICTS: "probably contradicts",
    EdgeType.RELATED_TO: "probably says the same as",
}


@dataclass(slots=True)
class ComparisonRun:
    """The result of one run of the worker.

    Attributes:
        compared: the number of memories compared by the reader of pairs.
        judged: the number of facts judged by the model; 0 without a model.
        marks: the edges written.
        put_off: the number of memories that will be retried later.
        refused: the numbers of rejected verdicts and answers of the model, by code.
        error_code: the error that stopped the run early, if any.
    """

    compared: int = 0
    judged: int = 0
    marks: list[Edge] = field(default_factory=list)
    put_off: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    error_code: str | None = None


class SettleResult(NamedTuple):
    """The result of ``Orchestrator.settle``."""

    embedded: EmbeddingRun
    compared: ComparisonRun


class _Question(NamedTuple):
    """A waiting memory with its candidates, and who said each of them by memory id."""

    memory: WaitingMemory
    candidates: Sequence[ComparedMemory]
    authors: dict[str, StatementAuthor]

    def link(
        self, other: ComparedMemory, changes: bool, weight: float, reason: str = ""
    ) -> EdgeInput:
        """Return the edge from the later to the earlier of the two memories.

        Args:
            changes: the later one changes the earlier one; else they say the same.
            reason: by default what the later one does to the earlier one, which is quoted.
        """
        ids = (self.memory.memory_id, other.memory_id)
        later, earlier = ids if self.is_later(other) else ids[::-1]
        edge_type = EdgeType.RELATED_TO
        if changes:
            same = self.authors[later].is_same(self.authors[earlier])
            edge_type = EdgeType.UPDATES if same else EdgeType.CONTRADICTS
        if not reason:
            text = other.content if self.is_later(other) else self.memory.content
            reason = f"{_RELATION[edge_type]}: {cut(text, MAX_QUOTED)}"
        return EdgeInput(
            from_id=later,
            to_id=earlier,
            edge_type=edge_type,
            weight=weight,
            reason=reason,
        )

    def is_later(self, other: ComparedMemory) -> bool:
        """Return True unless the candidate was said after the waiting memory."""
        # At equal times the candidate, which was stored before, counts as the earlier one.
        return other.said_at <= self.memory.said_at


class ComparisonWorker:
    """Processes the outbox of memories to compare. Several threads and processes may run one."""

    def __init__(self, opened: OpenOrchestrator) -> None:
        self._opened = opened
        self._one_at_a_time = threading.Lock()
        # A separate lock, so that the reader does not wait for a model.
        self._judging = threading.Lock()
        embedding = opened.embedding
        self._vectors = embedding if isinstance(embedding, LocalEmbedding) else LocalEmbedding()

    def drain(self, *, limit: int | None = None) -> ComparisonRun:
        """Compare due memories by the reader, then facts by the model when one is configured.

        Args:
            limit: the approximate maximum number of memories for each.

        Raises:
            StorageError: the database failed; the outbox is unchanged.
        """
        return self.judge(limit=limit, done=self.compare(limit=limit))

    def compare(
        self, *, limit: int | None = None, stop: Callable[[], bool] = lambda: False
    ) -> ComparisonRun:
        """Compare due memories by the reader of pairs, the newest first, a few at a time."""
        done = ComparisonRun()
        with self._one_at_a_time:
            while not stop() and (limit is None or done.compared < limit):
                at = self._opened.clock.now_ms()
                with self._opened.database.read() as snapshot:
                    due = comparisons.due(
                        snapshot, _READER, embedded=self._embeds, at=at, limit=COMPARED_AT_ONCE
                    )
                    questions = [self._question(snapshot, memory, at) for memory in due]
                if not questions:
                    return done
                answered: list[tuple[_Question, list[EdgeInput]]] = []
                try:
                    for question in questions:
                        if stop():
                            break
                        answered.append((question, self._marks(question)))
                except ProviderError as error:
                    self._put_off(questions[len(answered)].memory, error.code, done)
                    done.error_code = error.code
                self._write(answered, done)
                if done.error_code is not None:
                    return done
                time.sleep(GIVE_WAY_S)
        return done

    @property
    def _embeds(self) -> bool:
        return self._opened.embedding is not None and self._opened.other_model is None

    def _question(
        self, snapshot: Snapshot, memory: WaitingMemory, at: int, *, by_model: bool = False
    ) -> _Question:
        """Return a memory with the candidates, which are never more sensitive than itself."""
        if not memory.active:
            return _Question(memory, (), {})
        new = NewStatement(
            content=memory.content,
            place=memory.place,
            memory_id=memory.memory_id,
            document=memory.document,
            entity_pks=tuple(json.loads(memory.entities)),
            near=nearest(self._opened, snapshot, memory.pk, memory.place),
            before=memory.pk,
            known=frozenset(json.loads(memory.known or "[]")),
        )
        limit = MAX_CANDIDATES if by_model else MAX_READ
        kind = MemoryKind.FACT if by_model or memory.known is not None else None
        found = find_candidates(snapshot, new, at=at, limit=limit, marked=not by_model, kind=kind)
        both = [memory, *found]
        facts = [each.memory_id for each in both if each.kind == MemoryKind.FACT]
        spoken = sessions.speakers(snapshot, facts) if facts else {}
        authors = {
            each.memory_id: StatementAuthor.of(
                each, [each.source_role, *(role for role, _ in spoken.get(each.memory_id, ()))]
            )
            for each in both
        }
        return _Question(memory, found, authors)

    def _marks(self, question: _Question) -> list[EdgeInput]:
        reader, memory = self._opened.pair_reader, question.memory
        if reader is None or not question.candidates:
            return []
        others: list[tuple[ComparedMemory, float]] = []
        pairs: list[StatementPair] = []
        for other, (ours, theirs, closeness) in self._closest(memory, question.candidates):
            if closeness < CLOSE:
                continue
            spoken = MemoryKind.EPISODE in (memory.kind, other.kind)
            others.append((other, TURN_MARK_FROM if spoken else MARK_FROM))
            later = question.is_later(other)
            pairs.append(StatementPair(theirs, ours) if later else StatementPair(ours, theirs))
        marks = []
        for (other, least), verdict in zip(others, reader.read(pairs), strict=True):
            if (found := _found(verdict, least)) is not None:
                marks.append(question.link(other, *found))
        return sorted(marks, key=lambda mark: -mark.weight)[:MAX_MARKS]

    def _closest(
        self, memory: WaitingMemory, others: Sequence[ComparedMemory]
    ) -> Iterator[tuple[ComparedMemory, tuple[str, str, float]]]:
        """Yield for each other memory the most similar passages of both, and their cosine, -1..1.

        Each passage has its speaker before it.
        """
        contents = [memory.content, *(other.content for other in others)]
        texts = [passages(content) or [content] for content in contents]
        vectors = self._vectors.embed([text for each in texts for text in each])
        ours, end = texts[0], len(texts[0])
        for other, theirs in zip(others, texts[1:], strict=True):
            start, end = end, end + len(theirs)
            close = vectors[: len(ours)] @ vectors[start:end].T
            first, second = divmod(int(close.argmax()), len(theirs))
            said = _spoken(memory, ours[first]), _spoken(other, theirs[second])
            yield other, (*said, float(close[first, second]))

    def _write(
        self, answered: Sequence[tuple[_Question, list[EdgeInput]]], done: ComparisonRun
    ) -> None:
        waiting = [question.memory for question, _ in answered]
        if not any(marks for _, marks in answered):
            # If this is lost in a crash, the memories are only compared again.
            with self._opened.database.write(durable=False) as transaction:
                self._end_reading(transaction, answered)
            done.compared += len(waiting)
            return
        with self._opened.transaction(ACTOR) as transaction:
            pks = [memory.pk for memory in waiting]
            remaining = comparisons.still_waiting(transaction, pks, _READER)
            for question, marks in answered:
                if question.memory.pk in remaining:
                    self._join(transaction, question, marks, done)
            still_due = [each for each in answered if each[0].memory.pk in remaining]
            self._end_reading(transaction, still_due)
        done.compared += len(remaining)

    def _end_reading(
        self, transaction: Transaction, answered: Sequence[tuple[_Question, list[EdgeInput]]]
    ) -> None:
        """Queue facts for the model if there is one; remove other memories from the outbox."""
        to_judge = [
            question.memory.pk
            for question, _ in answered
            if self._opened.llm is not None
            and question.memory.kind == MemoryKind.FACT
            and question.memory.known is None
        ]
        waiting = [question.memory.pk for question, _ in answered]
        comparisons.move_on(transaction, to_judge, _MODEL)
        comparisons.remove(transaction, [pk for pk in waiting if pk not in to_judge])

    def _join(
        self,
        transaction: JournalledTransaction,
        question: _Question,
        links: Sequence[EdgeInput],
        done: ComparisonRun,
    ) -> None:
        """Write edges between memories that are still active and not joined meanwhile."""
        ids = {end for link in links for end in (link.from_id, link.to_id)}
        active = memories.active_ids(transaction, ids)
        memory_id = question.memory.memory_id
        written = StoredBatch()
        writer = self._opened.writer.model_edges
        for link in links:
            other = link.to_id if link.from_id == memory_id else link.from_id
            if not {memory_id, other} <= active or comparisons.joined_ids(
                transaction, memory_id, [other], marked=link.weight < 1.0
            ):
                continue
            [outcome] = writer.join_all(transaction, [link], written)
            if outcome.outcome != "stored" or outcome.edge_id is None:
                continue
            mark = edges.get(transaction, outcome.edge_id)
            # The reason quotes a memory, which whoever runs the comparisons may not see.
            done.marks.append(mark.model_copy(update={"reason": None}))
        transaction.record(written.entries)

    def _put_off(self, memory: WaitingMemory, code: str, done: ComparisonRun) -> None:
        until = self._opened.clock.now_ms() + pause_ms(memory.attempts)
        with self._opened.database.write() as transaction:
            comparisons.put_off(transaction, [memory.pk], until, code)
        done.put_off += 1

    def judge(
        self,
        *,
        limit: int | None = None,
        stop: Callable[[], bool] = lambda: False,
        done: ComparisonRun | None = None,
    ) -> ComparisonRun:
        """Let the model judge due facts, several in one call, within the bounds of a run.

        No transaction is open during a call. After a crash, facts without a written result are
        judged again.

        Args:
            done: the result so far, which this run updates.
        """
        done = ComparisonRun() if done is None else done
        with self._judging, usage_tally() as usage:
            while not stop() and not usage.ends_run and (limit is None or done.judged < limit):
                at = self._opened.clock.now_ms()
                with self._opened.database.read() as snapshot:
                    due = comparisons.due(
                        snapshot, _MODEL, embedded=self._embeds, at=at, limit=JUDGED_PER_CALL
                    )
                    questions = [self._model_question(snapshot, fact, at) for fact in due]
                if questions:
                    self._judge(questions, done)
                if not questions or done.error_code is not None:
                    break
        if done.refused:
            self._opened.log.warning("comparison.refused", codes=dict(done.refused))
        return done

    def _model_question(self, snapshot: Snapshot, fact: WaitingMemory, at: int) -> _Question:
        model = self._opened.llm
        if model is None or not model.may_read(Sensitivity(fact.sensitivity)):
            return _Question(fact, (), {})
        return self._question(snapshot, fact, at, by_model=True)

    def _judge(self, questions: Sequence[_Question], done: ComparisonRun) -> None:
        from memgraph.consolidation.relations import relate

        model = self._opened.llm
        asked = [question for question in questions if model is not None and question.candidates]
        if alone := [question.memory.pk for question in questions if question not in asked]:
            with self._opened.database.write(durable=False) as transaction:
                comparisons.remove(transaction, alone)
            done.judged += len(alone)
        if model is None or not asked:
            return
        facts = [(question.memory, question.candidates) for question in asked]
        try:
            found, refused = relate(model.completion_for(ModelUse.COMPARISON), facts)
        except ProviderError as error:
            unreadable = isinstance(error, ProviderAnswerInvalid)
            done.refused[error.code] += unreadable
            given_up = []
            for question in asked:
                if unreadable and question.memory.attempts + 1 >= MAX_REFUSALS:
                    given_up.append(question)
                else:
                    self._put_off(question.memory, error.code, done)
            # An unreadable answer does not stop the run: the next one may be readable.
            done.error_code = None if unreadable else error.code
            if given_up:
                self._write_relations(model, given_up, [], done)
            return
        done.refused += refused
        self._write_relations(model, asked, found, done)

    def _write_relations(
        self,
        model: LanguageModel,
        questions: Sequence[_Question],
        relations: Sequence[FactRelation],
        done: ComparisonRun,
    ) -> None:
        with self._opened.transaction(f"{ACTOR}:{model.name}") as transaction:
            pks = [question.memory.pk for question in questions]
            waiting = comparisons.still_waiting(transaction, pks, _MODEL)
            for place, question in enumerate(questions):
                if question.memory.pk not in waiting:
                    continue
                links = []
                for found in relations:
                    if found.new != place:
                        continue
                    changes = found.relation is not Relation.DUPLICATE
                    other = question.candidates[found.known]
                    link = question.link(other, changes, 1.0, found.reason)
                    if link.edge_type is EdgeType.UPDATES and is_protected(transaction, link.to_id):
                        # Only a person replaces what a person has confirmed or protected.
                        link = link.model_copy(update={"edge_type": EdgeType.CONTRADICTS})
                    links.append(link)
                self._join(transaction, question, links, done)
            comparisons.remove(transaction, sorted(waiting))
        done.judged += len(questions)


def nearest(
    opened: OpenOrchestrator, snapshot: Snapshot, pk: int, place: ComparisonPlace
) -> tuple[int, ...]:
    """Return the keys of the active memories of a scope with the nearest vectors.

    The result is empty if the memory with this key has no vector.
    """
    if opened.embedding is None or opened.other_model is not None:
        return ()
    index = embeddings.index(snapshot, opened.held_vectors)
    [vector] = index.vectors([pk])
    if not vector.any():
        return ()
    levels = [
        embeddings.visibility(place.scope, place.scope_id, MemoryStatus.ACTIVE.value, level.value)
        for level in Sensitivity
        if level.level <= Sensitivity(place.sensitivity).level
    ]
    return tuple(index.search(vector, NEAR, visibilities=levels))


def cosines(
    opened: OpenOrchestrator, snapshot: Snapshot, pks: Sequence[int], others: Sequence[int]
) -> NDArray[np.float32] | None:
    """Return the cosines of the vectors of memories, a row for each of ``pks``; None without.

    A memory that has no vector has the cosine 0 with all others.
    """
    if opened.embedding is None or opened.other_model is not None:
        return None
    index = embeddings.index(snapshot, opened.held_vectors)
    products: NDArray[np.float32] = index.vectors(pks) @ index.vectors(others).T
    return products


def _found(verdict: PairVerdict, least: float) -> tuple[bool, float] | None:
    """Return whether a pair is a change, else a repetition, with its weight; None: neither."""
    for changes, probability in ((True, verdict.changes), (False, verdict.repeats)):
        if probability >= least:
            return changes, round(min(probability, BELOW_FORCE), 3)
    return None


def _spoken(memory: ComparedMemory, text: str) -> str:
    speaker = speaker_of(memory.kind, memory.source_role)
    return f"{speaker}: {text}" if speaker else text
