"""Changes by a language model: the model proposes, rules decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Unpack

from memgraph.errors import Conflict
from memgraph.model.context import BlockFormat, ContextBlock
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    JobName,
    MemoryKind,
    MemoryStatus,
    MemoryType,
    Scope,
    Sensitivity,
)
from memgraph.model.operation import Blocking, F, local
from memgraph.model.recall import RecallFields, RecallRequest
from memgraph.model.values import EdgeInput, Memory, MemoryInput, Outcome, Source, validated
from memgraph.operations.everyday import Everyday
from memgraph.operations.handle import WritingHandle
from memgraph.operations.tools.rules import (
    FactPlace,
    fact_meant,
    forgettable,
    persons_turn,
    place_of,
    require_confirmable,
    require_correctable,
    require_no_wider,
    sensitivity_of,
)
from memgraph.operations.write import changes
from memgraph.rules.lines import profile_line
from memgraph.rules.proposals import MAX_CONFIDENCE, MAX_IMPORTANCE
from memgraph.rules.similarity import content_hash, folded, normalise_content, statements
from memgraph.rules.workflow_candidates import labelled
from memgraph.store import jobs, memories, receipts
from memgraph.store.entities import ENTITY_NAMES
from memgraph.text.sentences import split_sentences

if TYPE_CHECKING:
    from memgraph.service.open_orchestrator import OpenOrchestrator


MAX_NAMES: Final = 20
_RUNS_LOOKED_AT: Final = 500


@dataclass(frozen=True, slots=True)
class ProposalOutcome:
    """The outcome of a fact that a model proposed.

    ``duplicate``: ``memory_id`` has the same text or meaning. ``found``: the memories that the
    stored fact updates or contradicts, and why.
    """

    outcome: Literal["stored", "duplicate"]
    memory_id: str
    found: Outcome | None = None


@dataclass(frozen=True, slots=True)
class CorrectionOutcome:
    """The id of a new fact, and of the fact that it replaced.

    ``replaced`` is None if that fact has another author: then both stay, and contradict each other.
    """

    memory_id: str
    replaced: str | None


class Agents(WritingHandle[F], group="agents"):
    """Writes for language models: ``orc.agents``.

    The memories have the source ``manual``, captured by an ``extractor``, so they decay. They are
    never an Identity, and their importance is at most 90. If the last turn of the
    conversation at hand is a person's, a model acts on that person's word, and the turn is
    recorded as the evidence.
    """

    @local
    def propose_fact(
        self,
        content: str,
        *,
        confidence: float = 1.0,
        entity_names: Sequence[str] = (),
        kind: Literal["fact", "preference"] = "fact",
        session_id: str | None = None,
        scope: Scope | str | None = None,
        scope_id: str | None = None,
    ) -> ProposalOutcome:
        """Store a fact that a model proposes.

        A fact that an active memory states already in the same words, in any scope that this handle
        sees, is not stored. What it may change is marked in the background. The fact belongs to
        this handle's agent, and has at least the sensitivity of the memories of which it repeats a
        line.

        Args:
            entity_names: the entities that it is about; they are linked to it even if the text
                does not mention them.
            kind: ``preference`` stores a fact of the type Preference.
            session_id: the conversation that it comes from.
            scope, scope_id: where it is stored; see ``operations.tools.rules.place_of``.

        Raises:
            InvalidInput: a field is invalid; the error names each.
            AccessDenied: it repeats memories that fewer readers may see.
        """
        place = place_of(self.viewer, scope, scope_id)
        with self._service.opened(self.name) as opened:
            repeated = self._repeated(opened, content, session_id)
            known = _known(content, repeated)
            if known is not None:
                return ProposalOutcome("duplicate", known)
            require_no_wider(place, repeated)
            floor = min(self.viewer.clearance, Sensitivity.INTERNAL, key=lambda level: level.level)
            fields = {
                "key": "new",
                "content": content,
                "type": MemoryType.PREFERENCE if kind == "preference" else _type_of(content),
                "confidence": confidence,
                "sensitivity": sensitivity_of(floor, repeated),
                "source": _model_source(session_id),
            }
            memory = validated(MemoryInput, fields | place._asdict())
            stored = self._store_fact(opened, memory, entity_names)
            self._embed_soon(opened)
        if stored.outcome == "duplicate":
            return ProposalOutcome("duplicate", stored.memory_id or "")
        return ProposalOutcome("stored", stored.memory_id or "", self._readable(stored))

    @local
    def propose_correction(
        self, memory_id: str, content: str, *, session_id: str | None = None
    ) -> CorrectionOutcome:
        """Replace a fact with the text that a model proposes.

        For a turn, the only fact that was derived from it is replaced. If the turn at hand is a
        person's, the new fact is derived from it.

        Args:
            session_id: the conversation at hand.

        Raises:
            NotFound: the memory does not exist.
            AccessDenied: a person confirmed it, or it is an Identity, and the turn at hand is not
                of the person who said it; or the new text repeats memories that fewer readers may
                see.
            InvalidInput: it is not a fact.
            Conflict: it is retracted, the new text equals the old one, or an active memory has
                replaced it; see ``details["replaced_by"]``.
        """
        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            memory_id = fact_meant(snapshot, memory_id, self._view)
            old = memories.get(snapshot, memory_id, self._view)
            turn = persons_turn(snapshot, session_id, self._view)
        inherited = ("type", "sensitivity", "scope", "scope_id", "agent_id", "tags")
        with self._service.opened(self.name) as opened:
            repeated = self._repeated(opened, content, session_id)
            others = [memory for memory in repeated if memory.memory_id != memory_id]
            fields = {
                **{name: getattr(old, name) for name in inherited},
                "key": "new",
                "content": content,
                "importance": min(old.importance, MAX_IMPORTANCE),
                "confidence": MAX_CONFIDENCE if turn is None else 1.0,
                "sensitivity": sensitivity_of(old.sensitivity, others),
                "source": _model_source(session_id),
                "derived_from": () if turn is None else (turn.memory_id,),
            }
            prepared = opened.writer.prepare(validated(MemoryInput, fields))
            link = EdgeInput(
                from_id="#new",
                to_id=memory_id,
                edge_type=EdgeType.UPDATES,
                reason="corrected by a model" + _on_the_word_of(turn),
            )
            with opened.transaction(self.actor) as transaction:
                old = require_correctable(transaction, memory_id, self._view, turn)
                if normalise_content(content) == normalise_content(old.content):
                    raise Conflict("the new text equals the old one", memory_id=memory_id)
                require_no_wider(FactPlace(old.scope, old.scope_id, old.agent_id), others)
                written = opened.writer.store_all(
                    transaction, [prepared], [link], view=self._view, replacing=memory_id
                )
            self._embed_soon(opened)
            with opened.database.read() as snapshot:
                status = memories.get(snapshot, memory_id, self._view).status
        replaced = None if status is MemoryStatus.ACTIVE else memory_id
        return CorrectionOutcome(written.ids_by_key["new"], replaced)

    @local
    def confirm_proposed(self, memory_id: str, *, session_id: str | None = None) -> None:
        """Protect a fact because a model reports that a person confirmed it.

        Args:
            session_id: the conversation at hand; if its last turn is a person's, the journal names
                it.

        Raises:
            NotFound: the memory does not exist.
            AccessDenied: it comes only from a model or from agents, and the turn at hand is not a
                person's.
            InvalidInput: it is not a fact.
            Conflict: it is not active.
        """
        memory_id = self._whole_id(memory_id)
        with self._write() as (_, transaction):
            memory_id = fact_meant(transaction, memory_id, self._view)
            turn = persons_turn(transaction, session_id, self._view)
            require_confirmable(transaction, memory_id, self._view, turn)
            [entry] = changes.confirm(transaction, memory_id, view=self._view)
            if turn is not None:
                entry.details["on_the_word_of"] = turn.memory_id
            transaction.record([entry])

    @local
    def forget(self, memory_id: str, *, reason: str, session_id: str | None = None) -> list[str]:
        """Retract a memory because a model reports that it is to be forgotten; return the ids.

        A turn is retracted with the facts that were derived from it, a fact with the turns that say
        nothing else. A person can restore them.

        Args:
            session_id: the conversation at hand; if its last turn is a person's, the journal names
                it.

        Raises:
            NotFound: the memory does not exist.
            InvalidInput: it is a reflection, or the reason is invalid.
            AccessDenied: a person confirmed one of the facts, or it is an Identity, and the turn at
                hand is not of the person who said it.
        """
        because = self._because(reason)
        memory_id = self._whole_id(memory_id)
        with self._write() as (_, transaction):
            turn = persons_turn(transaction, session_id, self._view)
            ids = forgettable(transaction, memory_id, self._view, turn)
            for one in ids:
                entries = changes.retract(transaction, one, reason=because, view=self._view)
                if turn is not None:
                    for entry in entries:
                        entry.details["on_the_word_of"] = turn.memory_id
                transaction.record(entries)
        return ids

    @local
    def search(
        self,
        query: str,
        *,
        max_lines: int | None = None,
        budget_tokens: int | None = None,
        **fields: Unpack[RecallFields],
    ) -> ContextBlock:
        """Return the block of memories that answer a question, each line with a short id.

        Args:
            max_lines: the maximum number of lines; None: as many as the budget allows.
            budget_tokens: the maximum tokens; None: ``memory.context.block_tokens``.
            fields: the other fields of ``RecallRequest``.

        Raises:
            InvalidInput: a field is invalid.
        """
        everyday: Everyday[Blocking] = self._as(Everyday)
        return everyday._built(
            validated(RecallRequest, {"query": query, **fields}),
            format=BlockFormat.FENCED,
            budget_tokens=budget_tokens,
            max_lines=max_lines,
            handles=True,
        ).block

    @local
    def entity_block(self, name: str, *, budget_tokens: int | None = None) -> str:
        """Return an entity's profile and the memories that mention it, each with a short id.

        Args:
            name: its name, alias or nickname; of several entities the most mentioned one is meant.
            budget_tokens: the maximum tokens; None: ``memory.context.block_tokens``.

        Raises:
            NotFound: no visible memory names it.
            InvalidInput: the name is invalid.
        """
        from memgraph.operations.context.block import entity_block, plan_for
        from memgraph.operations.life.profiles import MAX_MEMORIES, profile

        with self._service.opened(self.name) as opened:
            found = profile(opened, self.viewer, name, limit=MAX_MEMORIES)
            counter, _ = self._service.counters.at_hand(None)
            chosen = opened.settings.memory.context
            plan = plan_for(
                opened,
                found.canonical_name,
                format=BlockFormat.FENCED,
                budget_tokens=chosen.block_tokens if budget_tokens is None else budget_tokens,
                counter=counter,
            )
            plan = replace(plan, head=profile_line(found, plan.zone))
            with opened.database.read() as snapshot:
                return entity_block(snapshot, self.viewer, found.memories, plan)

    def maintained_since(self, pause_ms: int) -> bool:
        """Return True if a full consolidation was started within the last ``pause_ms``."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            runs = jobs.latest(snapshot, _RUNS_LOOKED_AT)
            since = opened.clock.now_ms() - pause_ms
        return any(
            run.job is JobName.CONSOLIDATION and run.trigger != "event" and run.started_at > since
            for run in runs
        )

    def _repeated(
        self, opened: OpenOrchestrator, content: str, session_id: str | None
    ) -> list[Memory]:
        """Return the active memories of which a text repeats a line or sentence.

        The whole text of any memory counts, and each line of those handed out to the session.
        """
        opened.receipts.flush()
        stated = statements(content)
        parts = [content, *content.splitlines(), *split_sentences(content)]
        with opened.database.read() as snapshot:
            ids = memories.of_hashes(snapshot, {content_hash(part) for part in parts}, self._view)
            if session_id is not None:
                ids += [
                    memory.memory_id
                    for memory in receipts.handed_out(snapshot, session_id)
                    if not stated.isdisjoint(statements(memory.content))
                ]
            visible = memories.existing_ids(
                snapshot, ids, self._view, statuses=frozenset({MemoryStatus.ACTIVE})
            )
            return memories.get_many(snapshot, sorted(visible))

    def _store_fact(
        self, opened: OpenOrchestrator, memory: MemoryInput, entity_names: Sequence[str]
    ) -> Outcome:
        if entity_names:
            # Stored with the memory, for a rebuild of the links to entities.
            attributes = {**memory.attributes, ENTITY_NAMES: list(entity_names[:MAX_NAMES])}
            memory = memory.model_copy(update={"attributes": attributes})
        prepared = opened.writer.prepare(memory)
        with opened.transaction(self.actor) as transaction:
            written = opened.writer.store_all(transaction, [prepared], [], view=self._view)
        return written.memories[0]


def _known(content: str, repeated: Sequence[Memory]) -> str | None:
    """Return the id of a repeated fact that is equal to a text, or None."""
    form = folded(content)
    equal = (each for each in repeated if each.kind is not MemoryKind.EPISODE)
    return next((each.memory_id for each in equal if folded(each.content) == form), None)


def _on_the_word_of(turn: Memory | None) -> str:
    return "" if turn is None else f" on the word of {turn.source_role}"


def _model_source(session_id: str | None) -> Source:
    return Source(captured_by=CapturedBy.EXTRACTOR, conversation_id=session_id)


def _type_of(content: str) -> MemoryType:
    found = labelled(content)
    return MemoryType.FACT if found is None else found[0]
