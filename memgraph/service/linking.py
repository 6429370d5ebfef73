"""Linking memories to the entities that they name, that speak in them, and that they were given."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from memgraph.audit.journal import Entry
from memgraph.ids import IdSource
from memgraph.model.enums import EntityType
from memgraph.relations.statement import Statement
from memgraph.service.naming import Naming, known_names, speaker_named
from memgraph.store import entities
from memgraph.store.enrichment import links_of
from memgraph.store.entities import EntityName, NamesSeen, Saying
from memgraph.store.snapshot import Snapshot, Transaction

if TYPE_CHECKING:
    from memgraph.entities.known import KnownNames

Named = tuple[int, tuple[EntityName, ...]]
"""A memory's key and the names in its text."""


class EntityLinker:
    """Links memories of one orchestrator; used inside write transactions, one at a time."""

    def __init__(self, ids: IdSource, naming: Naming) -> None:
        self._ids = ids
        self._naming = naming
        self._seen = NamesSeen()

    @cached_property
    def _known(self) -> KnownNames:
        from memgraph.entities.known import KnownNames

        return KnownNames()

    def link(
        self,
        transaction: Transaction,
        found: Sequence[Named],
        at: int,
        linked: Collection[tuple[int, int]] = (),
        *,
        search: bool = True,
    ) -> int:
        """Link stored memories to entities; unknown names become entities.

        The names of a memory are those found in its text, the speakers in it or in the turns that
        it was extracted from, the names that it was given, and every known name in its text.

        Args:
            linked: existing pairs of (entity key, memory key).
            search: search the texts for known names; else ``link_known`` does it.

        Returns:
            The number of new links.
        """
        if not found:
            return 0
        sayings = entities.sayings(transaction, [pk for pk, _ in found])
        named = dict(found)
        told = {each.pk: [*named[each.pk], *self._told(each)] for each in sayings}
        names = dict.fromkeys(name for each in told.values() for name in each)
        keys = self._keys_of(transaction, names, at)
        pairs = {(keys[name], pk): None for pk, names in told.items() for name in names}
        if search:
            pairs |= dict.fromkeys(self._known_in(transaction, sayings, told))
        new = [pair for pair in pairs if pair not in linked]
        entities.link(transaction, new)
        return len(new)

    def mend_types(self, transaction: Transaction, found: Sequence[Named]) -> list[Entry]:
        """Replace the types that worse providers gave the entities of these memories.

        Called before ``link``, which would create an entity of the other type beside the existing
        one.

        Returns:
            The journal entries.
        """
        entries = []
        for pk, names in found:
            for name in names:
                if name.provider == "spacy" and name.type is EntityType.OTHER:
                    continue
                for one in entities.typed_worse(transaction, pk, name):
                    entities.retype(transaction, one, name)
                    told = {
                        "from": one.type.value,
                        "to": name.type.value,
                        "provider": name.provider,
                        "confidence": name.confidence,
                        "before": one.provider,
                    }
                    entries.append(Entry("retype_entity", one.entity_id, told))
        return entries

    def link_known(self, transaction: Transaction, found: Sequence[Named]) -> None:
        """Link stored memories to the known names in their texts, beside existing links."""
        pks = [pk for pk, _ in found]
        sayings = entities.sayings(transaction, pks)
        told = {pk: list(names) for pk, names in found}
        pairs = dict.fromkeys(self._known_in(transaction, sayings, told))
        linked = links_of(transaction, pks)
        entities.link(transaction, [pair for pair in pairs if pair not in linked])

    def _told(self, saying: Saying) -> list[EntityName]:
        """Return the speakers of a memory, and the names that it was given."""
        speakers = list(saying.speakers)
        quoted = Statement.of(saying.content).speaker
        if quoted is not None:
            speakers.append((quoted, None))
        people = (speaker_named(role, told_as) for role, told_as in speakers)
        names = [each for each in people if each is not None]
        if saying.given is not None:
            names += self._naming.given(json.loads(saying.given))
        return self._naming.resolved(names)

    def _keys_of(
        self, transaction: Transaction, names: Iterable[EntityName], at: int
    ) -> dict[EntityName, int]:
        """Return the entity of each name; unknown ones are created."""
        names = list(names)
        if not names:
            return {}
        known = entities.find(transaction, names)
        keys = known.keys
        entities.add_spellings(transaction, known.spellings)
        entities.confirm_types(transaction, known.surer)
        # Two spellings of one new entity: the first one becomes its name.
        fresh: dict[tuple[str, str], EntityName] = {}
        for name in names:
            if name not in keys:
                fresh.setdefault((name.key, name.type), name)
        made = {name: self._ids.new("ent_") for name in fresh.values()}
        created = entities.create(transaction, made, at)
        for name in names:
            if name not in keys:
                keys[name] = created[fresh[name.key, name.type]]
        return keys

    def _known_in(
        self,
        snapshot: Snapshot,
        sayings: Sequence[Saying],
        told: dict[int, list[EntityName]],
    ) -> list[tuple[int, int]]:
        """Return pairs of (entity key, memory key) for known names in the texts."""
        self._refresh(snapshot)
        wanted: list[tuple[int, str]] = []
        for each in sayings:
            # Not "Art" in "Art Gallery", and what the rules found they have judged.
            names = [f" {name.key} " for name in told[each.pk]]
            keys = dict.fromkeys(match.key for match in self._known.find(each.content))
            wanted += [
                (each.pk, key) for key in keys if not any(f" {key} " in name for name in names)
            ]
        meant = entities.known_by(snapshot, {key for _, key in wanted})
        return [(meant[key], pk) for pk, key in wanted if key in meant]

    def _refresh(self, snapshot: Snapshot) -> None:
        """Load the names added since the last write, by any process."""
        rows, self._seen, void = entities.new_names(snapshot, self._seen)
        if void:
            self._known.clear()
        self._known.add(known_names(rows))
