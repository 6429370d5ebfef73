"""Compare new facts with stored facts, and write the edges between them.

A later statement replaces an earlier one of the same author and actor. Conflicting statements of
different authors become an open contradiction, which waits for a decision.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.consolidation.comparison import (
    IN_LINE_CANDIDATES,
    FactMatch,
    NewStatement,
    StatementAuthor,
    find_candidates,
    find_matches,
    is_later,
    matches_of,
)
from memgraph.consolidation.ports import ModelBudget
from memgraph.errors import ProviderAnswerInvalid, ProviderError
from memgraph.model.enums import (
    ComparisonStage,
    EdgeType,
    MemoryKind,
    MemoryStatus,
    Relation,
    Sensitivity,
)
from memgraph.model.values import EdgeInput, MemoryInput, Outcome
from memgraph.operations.write.edges import OTHER_SOURCE, EdgeWriter, StoredBatch
from memgraph.operations.write.embedding import MAX_REFUSALS, pause_ms
from memgraph.relations.statement import Statement
from memgraph.rules.namespaces import is_item
from memgraph.store import comparisons, embeddings, memories
from memgraph.store.comparisons import ComparedFact, WaitingFact
from memgraph.store.sessions import ComparisonPlace
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.visibility import View

if TYPE_CHECKING:
    from memgraph.consolidation.conflict_judge import ModelJudgement
    from memgraph.operations.life.models import LanguageModel
    from memgraph.operations.write.embedding import EmbeddingRun
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import JournalledTransaction

ACTOR: Final = "comparison"
"""The actor of journal entries for work from the outbox."""
COMPARED_AT_ONCE: Final = 16
"""The maximum number of facts per transaction, so that concurrent writes wait briefly."""
GIVE_WAY_S: Final = 0.001
NEAR: Final = 24
"""The number of nearest memories by vector that become candidates for the model."""
_RULES: Final = ComparisonStage.RULES
_MODEL: Final = ComparisonStage.MODEL

MAX_EDGES = 8
"""A statement with more relations than this is not a plain statement."""


def is_comparable(memory: MemoryInput) -> bool:
    """Return True for an active fact with a single claim that is not an item of a store."""
    return (
        memory.kind is MemoryKind.FACT
        and memory.status is MemoryStatus.ACTIVE
        and not is_item(memory.item_id, memory.tags)
        and Statement.of(memory.content).is_one_claim
    )


def statement_of(
    memory: MemoryInput, at: int, *, roles: Collection[str] = (), entity_pks: Sequence[int] = ()
) -> NewStatement:
    """Convert a memory to the statement that is compared.

    Args:
        at: the time of storing, in milliseconds.
        roles: the speakers of the turns that it was extracted from.
        entity_pks: the keys of the entities that it names.
    """
    source = memory.source
    return NewStatement(
        content=memory.content,
        time=at if memory.event_time is None else min(memory.event_time, at),
        place=ComparisonPlace(
            memory.scope.value, memory.scope_id, memory.agent_id, memory.sensitivity.value
        ),
        author=StatementAuthor.of(
            memory.content,
            captured_by=source.captured_by.value,
            source_type=source.source_type.value,
            agent_id=memory.agent_id,
            source_path=source.source_path,
            content_sha256=source.content_sha256,
            roles=roles,
        ),
        document=source.content_sha256,
        entity_pks=tuple(entity_pks),
    )


def duplicate_among(memory: MemoryInput, matches: Sequence[FactMatch]) -> FactMatch | None:
    """Return the stored fact that a memory duplicates: same statement, place, type and author.

    A fact that the writer may not see is not returned: its id would disclose it.
    """
    if memory.item_id is not None:
        return None
    for match in matches:
        fact = match.fact
        same = match.finding.relation is Relation.DUPLICATE and match.same_author
        if same and fact.twin and fact.seen and fact.type == memory.type.value:
            return match
    return None


def duplicate_outcome(match: FactMatch) -> Outcome:
    """Return the outcome of a fact that was not stored because it is a duplicate."""
    memory_id = match.memory_id
    return Outcome(
        outcome="duplicate",
        memory_id=memory_id,
        duplicate_of=memory_id,
        reasons={memory_id: match.finding.reason},
    )


@dataclass(slots=True)
class Comparison:
    """The relations of one new memory to visible ones, by kind, with the reasons."""

    updates: list[str] = field(default_factory=list)
    updated_by: list[str] = field(default_factory=list)
    contradicts: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)

    def added_to(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the write with these relations."""
        return outcome.model_copy(
            update={
                "updates": tuple(self.updates),
                "updated_by": tuple(self.updated_by),
                "contradicts": tuple(self.contradicts),
                "reasons": self.reasons,
            }
        )


def write_edges(
    transaction: JournalledTransaction,
    joiner: EdgeWriter,
    memory_id: str,
    matches: Sequence[FactMatch],
    written: StoredBatch,
) -> Comparison:
    """Write the edges between a stored memory and its matches, in the caller's transaction.

    Args:
        joiner: the writer's ``comparer``.
        written: receives the journal entries and the outcomes of new edges.
    """
    comparison = Comparison()
    joined = StoredBatch()
    for match in matches[:MAX_EDGES]:
        link = _edge(memory_id, match)
        [outcome] = joiner.join_all(transaction, [link], joined)
        if outcome.outcome != "stored" or outcome.edge_id is None:
            continue
        sides = None
        if link.edge_type is EdgeType.CONTRADICTS or outcome.code == OTHER_SOURCE:
            sides = comparison.contradicts
        elif link.edge_type is EdgeType.UPDATES:
            sides = comparison.updates if match.new_is_later else comparison.updated_by
        if match.fact.seen:
            comparison.reasons[match.memory_id] = match.finding.reason
            if sides is not None:
                sides.append(match.memory_id)
    written.entries += joined.entries
    written.edges += [edge for edge in joined.edges if edge.outcome == "stored"]
    return comparison


def _edge(memory_id: str, match: FactMatch) -> EdgeInput:
    """Return the edge from the later fact to the earlier one."""
    edge_type = EdgeType.RELATED_TO
    if match.finding.relation is not Relation.DUPLICATE:
        edge_type = EdgeType.UPDATES if match.replaces else EdgeType.CONTRADICTS
    ends = (memory_id, match.memory_id)
    later, earlier = ends if match.new_is_later else ends[::-1]
    return EdgeInput(from_id=later, to_id=earlier, edge_type=edge_type, reason=match.finding.reason)


@dataclass(slots=True)
class ComparisonRun:
    """The result of one run of the worker.

    Attributes:
        compared: the number of facts compared by the rules.
        judged: the number of facts judged by the model; 0 without a model.
        edges: the number of edges written.
        put_off: the number of facts that will be retried later.
        refused: the numbers of rejected verdicts and answers of the model, by code.
        error_code: the error that stopped the run early, if any.
    """

    compared: int = 0
    judged: int = 0
    edges: int = 0
    put_off: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    error_code: str | None = None


class SettleResult(NamedTuple):
    """The result of ``Orchestrator.settle``."""

    embedded: EmbeddingRun
    compared: ComparisonRun


class _Question(NamedTuple):
    """A fact that waits for the model, with its candidates."""

    fact: WaitingFact
    new: NewStatement
    candidates: Sequence[ComparedFact]


class ComparisonWorker:
    """Processes the outbox of facts to compare. Several threads and processes may run one."""

    def __init__(self, opened: OpenOrchestrator) -> None:
        self._opened = opened
        self._one_at_a_time = threading.Lock()
        # A separate lock, so that the rules do not wait for a model.
        self._judging = threading.Lock()

    def drain(
        self, *, limit: int | None = None, stop: Callable[[], bool] = lambda: False
    ) -> ComparisonRun:
        """Compare due facts by the rules, then by the model when one is configured.

        Args:
            limit: the approximate maximum number of facts for each.

        Raises:
            StorageError: the database failed; the outbox is unchanged.
        """
        done = self.compare(limit=limit, stop=stop)
        return self.judge(limit=limit, stop=stop, done=done)

    def compare(
        self, *, limit: int | None = None, stop: Callable[[], bool] = lambda: False
    ) -> ComparisonRun:
        """Compare due facts by the rules, a few at a time."""
        done = ComparisonRun()
        with self._one_at_a_time:
            while not stop() and (limit is None or done.compared < limit):
                at = self._opened.clock.now_ms()
                with self._opened.database.read() as snapshot:
                    facts = comparisons.due(snapshot, [_RULES], at=at, limit=COMPARED_AT_ONCE)
                    matches_by_fact = find_matches(
                        snapshot, [_waiting(fact) for fact in facts], at=at
                    )
                if not facts:
                    return done
                self._write(facts, [matches.found for matches in matches_by_fact], done)
                time.sleep(GIVE_WAY_S)
        return done

    def _write(
        self,
        facts: Sequence[WaitingFact],
        matches_by_fact: Sequence[Sequence[FactMatch]],
        done: ComparisonRun,
    ) -> None:
        pks = [fact.pk for fact in facts]
        if not any(matches_by_fact):
            # If this is lost in a crash, the facts are only compared again.
            with self._opened.database.write(durable=False) as transaction:
                end_rules(transaction, pks, asks_model=self._opened.llm is not None)
            done.compared += len(facts)
            return
        with self._opened.transaction(ACTOR) as transaction:
            remaining = comparisons.still_waiting(transaction, pks, _RULES)
            written = StoredBatch()
            for fact, matches in zip(facts, matches_by_fact, strict=True):
                if fact.pk in remaining:
                    self._join(transaction, fact, matches, written)
            end_rules(transaction, sorted(remaining), asks_model=self._opened.llm is not None)
            transaction.record(written.entries)
        done.compared += len(remaining)
        done.edges += len(written.edges)

    def judge(
        self,
        *,
        limit: int | None = None,
        stop: Callable[[], bool] = lambda: False,
        done: ComparisonRun | None = None,
    ) -> ComparisonRun:
        """Let the model judge due facts, one call for each, within the budget.

        No transaction is open during a call. After a crash, facts without a written result are
        judged again.

        Args:
            done: the result so far, which this run updates.
        """
        done = ComparisonRun() if done is None else done
        chosen = self._opened.settings.memory.consolidation
        budget = ModelBudget(calls=chosen.max_calls, tokens=chosen.max_tokens)
        with self._judging:
            while not stop() and not budget.exhausted and (limit is None or done.judged < limit):
                at = self._opened.clock.now_ms()
                with self._opened.database.read() as snapshot:
                    due = comparisons.due(snapshot, [_MODEL], at=at, limit=1)
                    questions = [self._question(snapshot, fact, at) for fact in due]
                for question in questions:
                    self._judge(question, budget, done)
                if not questions or done.error_code is not None:
                    break
        if done.refused:
            self._opened.log.warning("comparison.refused", codes=dict(done.refused))
        return done

    def _question(self, snapshot: Snapshot, fact: WaitingFact, at: int) -> _Question:
        """Return a fact with the stored facts with which the model compares it."""
        from memgraph.consolidation.conflict_judge import MAX_CANDIDATES

        model, new = self._opened.llm, _waiting(fact)
        if model is None or not fact.active or not model.may_read(Sensitivity(fact.sensitivity)):
            return _Question(fact, new, ())
        new = new._replace(near=self._near(snapshot, fact))
        # Candidates are never more sensitive than the fact itself.
        [(facts, _)] = find_candidates(snapshot, [new], at=at, limit=MAX_CANDIDATES)
        ids = [known_fact.memory_id for known_fact in facts]
        joined = comparisons.joined_ids(snapshot, fact.memory_id, ids)
        return _Question(
            fact, new, [known_fact for known_fact in facts if known_fact.memory_id not in joined]
        )

    def _near(self, snapshot: Snapshot, fact: WaitingFact) -> tuple[int, ...]:
        """Return the keys of the active memories in the fact's scope with the nearest vectors."""
        if self._opened.embedding is None or self._opened.other_model is not None:
            return ()
        index = embeddings.index(snapshot, self._opened.held_vectors)
        [vector] = index.vectors([fact.pk])
        if not vector.any():
            return ()
        levels = [
            embeddings.visibility(fact.scope, fact.scope_id, MemoryStatus.ACTIVE.value, level.value)
            for level in Sensitivity
            if level.level <= Sensitivity(fact.sensitivity).level
        ]
        return tuple(index.search(vector, NEAR, visibilities=levels))

    def _judge(self, question: _Question, budget: ModelBudget, done: ComparisonRun) -> None:
        """Let the model judge one fact, and write the edges."""
        from memgraph.consolidation.conflict_judge import (
            ConflictCandidate,
            ModelJudgement,
            judge_candidates,
        )

        model, fact = self._opened.llm, question.fact
        if model is None or not question.candidates:
            with self._opened.database.write(durable=False) as transaction:
                comparisons.remove(transaction, [fact.pk])
            done.judged += 1
            return
        offered = [
            ConflictCandidate(candidate.content, is_later(question.new, candidate))
            for candidate in question.candidates
        ]
        try:
            judgement = judge_candidates(
                model.completion, fact.content, offered, model=model.name, budget=budget
            )
        except ProviderError as error:
            unreadable = isinstance(error, ProviderAnswerInvalid)
            if unreadable:
                done.refused[error.code] += 1
            if not unreadable or fact.attempts + 1 < MAX_REFUSALS:
                until = self._opened.clock.now_ms() + pause_ms(fact.attempts)
                with self._opened.database.write() as transaction:
                    comparisons.put_off(transaction, [fact.pk], until, error.code)
                done.put_off += 1
                # An unreadable answer does not stop the run: the next one may be readable.
                done.error_code = None if unreadable else error.code
                return
            judgement = ModelJudgement()
        done.refused += judgement.refused
        self._write_judgement(model, question, judgement, done)

    def _write_judgement(
        self,
        model: LanguageModel,
        question: _Question,
        judgement: ModelJudgement,
        done: ComparisonRun,
    ) -> None:
        fact = question.fact
        written = StoredBatch()
        with self._opened.transaction(f"{ACTOR}:{model.name}") as transaction:
            if comparisons.still_waiting(transaction, [fact.pk], _MODEL):
                facts = {candidate.memory_id: candidate for candidate in question.candidates}
                # Another writer may have joined them during the call.
                joined = comparisons.joined_ids(transaction, fact.memory_id, facts)
                fact_matches = [
                    (question.candidates[place], finding)
                    for place, finding in judgement.findings.items()
                    if question.candidates[place].memory_id not in joined
                ]
                matches = matches_of(transaction, question.new, fact_matches, by_model=True)
                self._join(transaction, fact, matches, written)
                comparisons.remove(transaction, [fact.pk])
                transaction.record(written.entries)
        done.judged += 1
        done.edges += len(written.edges)

    def _join(
        self,
        transaction: JournalledTransaction,
        fact: WaitingFact,
        matches: Sequence[FactMatch],
        written: StoredBatch,
    ) -> None:
        """Write the edges between a fact and its matches, if they are still active."""
        ids = {fact.memory_id, *(match.memory_id for match in matches)}
        active = memories.active_ids(transaction, ids)
        if fact.memory_id in active:
            write_edges(
                transaction,
                self._opened.writer.comparer,
                fact.memory_id,
                [match for match in matches if match.memory_id in active],
                written,
            )


def compare_waiting(
    transaction: JournalledTransaction,
    joiner: EdgeWriter,
    fact: WaitingFact,
    written: StoredBatch,
    *,
    view: View | None,
) -> tuple[Comparison, bool]:
    """Compare a queued fact by the rules, and write its edges.

    Args:
        joiner: see ``write_edges``.
        view: what the writer may see.

    Returns:
        The comparison, and True when the outbox continues with the fact.
    """
    [matches] = find_matches(
        transaction, [_waiting(fact)], at=transaction.at, view=view, limit=IN_LINE_CANDIDATES
    )
    comparison = write_edges(transaction, joiner, fact.memory_id, matches.found, written)
    return comparison, matches.more


def end_rules(transaction: Transaction, pks: Sequence[int], *, asks_model: bool) -> None:
    """Queue facts for the model, or remove them from the outbox if there is no model."""
    if asks_model:
        comparisons.move_on(transaction, pks, _MODEL)
    else:
        comparisons.remove(transaction, pks)


def _waiting(fact: WaitingFact) -> NewStatement:
    return NewStatement(
        content=fact.content,
        time=fact.time,
        place=ComparisonPlace(fact.scope, fact.scope_id, fact.agent_id, fact.sensitivity),
        author=StatementAuthor.of(
            fact.content,
            captured_by=fact.captured_by,
            source_type=fact.source_type,
            agent_id=fact.agent_id,
            source_path=fact.source_path,
            content_sha256=fact.content_sha256,
            roles=[role for role in json.loads(fact.roles) if role],
        ),
        document=fact.content_sha256,
        memory_id=fact.memory_id,
        entity_pks=tuple(json.loads(fact.entities)),
        before=fact.pk,
    )
