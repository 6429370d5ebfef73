"""What a language model may change through a handle: it proposes, rules decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.enums import CapturedBy, EdgeType, MemoryKind, MemoryType, Sensitivity
from memgraph.model.values import EdgeInput, MemoryInput, Outcome, Source, validated
from memgraph.policy.proposals import MAX_CONFIDENCE, MAX_IMPORTANCE
from memgraph.service.handle_reading import ReadingHandle
from memgraph.service.handle_writing import WritingHandle
from memgraph.storage import graph_queries, memories
from memgraph.storage.enrichment_queries import ENRICHED_NAMES

if TYPE_CHECKING:
    from memgraph.model.values import Memory
    from memgraph.service.opened import Opened

MAX_NAMES: Final = 20


class AgentsHandle(WritingHandle, ReadingHandle):
    """The part of ``Orchestrator`` that a language model writes through.

    What is written so has the source ``manual``, captured by an ``extractor``; it is never an
    Identity, its confidence is at most 0.9 and its importance at most 90.
    """

    def propose_fact(
        self,
        content: str,
        *,
        confidence: float = MAX_CONFIDENCE,
        entity_names: Sequence[str] = (),
        session_id: str | None = None,
    ) -> Outcome:
        """Store what a model says is worth remembering.

        What contradicts, amends or repeats it is found by the relation classifier: a contradiction
        becomes an edge and stays open, and of a statement that is there already in other words
        that one is given, as a ``duplicate``.

        Args:
            entity_names: whom or what it names, in case rules miss it; a name that does not stand
                in the text names nothing.
            session_id: the conversation in which it was said.

        Raises:
            InvalidInput: naming each field that is wrong.
        """
        from memgraph.service.relating import find_relations

        given = validated(
            MemoryInput,
            {
                "key": "new",
                "content": content,
                "type": _type_of(content),
                "confidence": min(confidence, MAX_CONFIDENCE),
                "sensitivity": min(
                    self.viewer.clearance, Sensitivity.INTERNAL, key=lambda each: each.level
                ),
                "source": _told_by_a_model(session_id),
            },
        )
        with self._service.opened(self.name) as opened:
            edges = self._seen(opened, find_relations(opened, [given]).edges)
            same = [each.to_id for each in edges if each.edge_type is EdgeType.RELATED_TO]
            if same:
                return Outcome(outcome="duplicate", memory_id=same[0])
            stored = self._store_fact(opened, given, edges, entity_names)
            self._embed_soon(opened)
        return stored

    def propose_correction(
        self, memory_id: str, content: str, *, session_id: str | None = None
    ) -> str:
        """Replace what a fact says, as a model says it should be; gives the new one's id.

        Raises:
            NotFound: no such memory.
            AccessDenied: it is an Identity, or someone confirmed it: a person corrects those.
            InvalidInput: it is no fact.
            Conflict: it is retracted, or the new text is the old one.
        """
        old = self.get(memory_id)
        _require_fact(old)
        if old.type is MemoryType.IDENTITY or old.decay_rate == 0.0:
            raise AccessDenied(
                "it was confirmed: only a person corrects it; remember the new statement instead",
                memory_id=memory_id,
            )
        return self.correct(
            memory_id,
            content,
            reason="corrected by a model",
            importance=min(old.importance, MAX_IMPORTANCE),
            confidence=min(old.confidence, MAX_CONFIDENCE),
            source=_told_by_a_model(session_id),
        )

    def confirm_proposed(self, memory_id: str) -> None:
        """Protect a fact because a model says that a person confirmed it.

        Raises:
            NotFound: no such memory.
            AccessDenied: a model itself remembered it: that, a person confirms without a model.
            InvalidInput: it is no fact.
            Conflict: it is not active.
        """
        memory = self.get(memory_id)
        _require_fact(memory)
        with self._service.opened(self.name) as opened, opened.database.read() as connection:
            [source] = graph_queries.sources_of(connection, [memory])
        if (source.source_type, source.captured_by) == _BY_A_MODEL:
            raise AccessDenied(
                "a model remembered it: only a person confirms it", memory_id=memory_id
            )
        self.confirm(memory_id)

    def note_handed_out(self, texts: Sequence[str]) -> None:
        """Texts that were shown to a model, so that they are no news when they come back."""
        from memgraph.service.life.echoes import record_handed_out

        with self._service.opened(self.name) as opened:
            enough = record_handed_out(opened, texts, at_ms=opened.clock.now_ms())
            self._write_receipts(opened, enough=enough)

    def _seen(self, opened: Opened, edges: Sequence[EdgeInput]) -> list[EdgeInput]:
        """The edges whose stored ends this handle may see."""
        ends = {end for each in edges for end in (each.from_id, each.to_id) if end[0] != "#"}
        with opened.database.read() as connection:
            seen = memories.existing_ids(connection, sorted(ends), self._view) | {"#new"}
        return [each for each in edges if {each.from_id, each.to_id} <= seen]

    def _store_fact(
        self,
        opened: Opened,
        given: MemoryInput,
        edges: Sequence[EdgeInput],
        entity_names: Sequence[str],
    ) -> Outcome:
        prepared = opened.writer.prepare(given)
        known = {each.key for each in prepared.names}
        named = [[name, self._type_of_entity(name)] for name in entity_names[:MAX_NAMES]]
        kept = [each for each in named if opened.naming.kept(given.content, [each])]
        more = [each for each in opened.naming.kept(given.content, kept) if each.key not in known]
        if more:
            # A rebuild of the links does not find them again by rules.
            given = given.model_copy(update={"attributes": {ENRICHED_NAMES: kept}})
        prepared = replace(prepared, given=given, names=(*prepared.names, *more))
        with opened.transaction(self.actor) as transaction:
            written = opened.writer.store(
                transaction.connection,
                [prepared],
                edges,
                at=transaction.at,
                actor=self.actor,
                view=self._view,
            )
            if written.errors:
                raise written.errors[0]
            transaction.tell(written.entries)
        return written.memories[0]

    def _type_of_entity(self, name: str) -> str:
        """What a name is known for; ``other`` when nobody knows it."""
        from memgraph.service.life.profiles import listing

        with self._service.opened(self.name) as opened:
            known = listing(opened, self.viewer, prefix=name, limit=5)
        same = [each for each in known if each.canonical_name.casefold() == name.casefold()]
        return same[0].type.value if same else "other"


_BY_A_MODEL = (Source().source_type, CapturedBy.EXTRACTOR)


def _told_by_a_model(session_id: str | None) -> Source:
    return Source(captured_by=CapturedBy.EXTRACTOR, conversation_id=session_id)


def _type_of(content: str) -> MemoryType:
    from memgraph.service.classifiers import classify_types

    [(guessed, _)] = classify_types([content])
    return MemoryType.FACT if guessed in (None, MemoryType.IDENTITY) else guessed


def _require_fact(memory: Memory) -> None:
    if memory.kind is not MemoryKind.FACT:
        raise InvalidInput("only a fact can be corrected or confirmed", field="memory_id")
