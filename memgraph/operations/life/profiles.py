"""Entities as one reader may see them: one that only hidden memories mention does not exist.

An entity may have several names, from merges and from nicknames. A reader sees and can look up only
the names that occur in visible memories or in the settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.entities import EntityInfo, EntityProfile, RelatedEntity
from memgraph.model.enums import EntityType, MemoryStatus
from memgraph.operations.write.entity_links import NameFinders
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import entity_records
from memgraph.store.entity_records import EntityRecord, MentionCounts
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import STANDING, View
from memgraph.text.names import as_a_word, canonical

MAX_MEMORIES: Final = 100
RELATED: Final = 10
MAX_NAME_CHARS: Final = 512
# For an entity with several names, this many of its newest texts are searched for the names. Names
# that do not occur in them are looked up in the full-text index.
MAX_READ: Final = 200


@dataclass(frozen=True, slots=True)
class VisibleEntity:
    """An entity that the reader may see, with the names that he may see.

    Attributes:
        shown: the name to display.
        keys: the keys under which it is found.
        others: the other names, sorted.
    """

    row: EntityRecord
    seen: MentionCounts
    shown: str
    keys: frozenset[str]
    others: tuple[str, ...]

    @property
    def info(self) -> EntityInfo:
        return EntityInfo(
            entity_id=self.row.entity_id,
            canonical_name=self.shown,
            type=self.row.type,
            mention_count=self.seen.mentions,
        )


class EntityReader:
    """Look up entities in one snapshot, as a viewer sees them."""

    def __init__(self, snapshot: Snapshot, viewer: Viewer, naming: NameFinders) -> None:
        self._snapshot = snapshot
        self._naming = naming
        self.view = View(viewer, statuses=STANDING)
        self.active = View(viewer, statuses=frozenset({MemoryStatus.ACTIVE}))

    def meant(self, name_or_id: str) -> list[VisibleEntity]:
        """Return the entities that an id, name, alias or nickname may mean, most mentioned first.

        Raises:
            InvalidInput: the name has no letters or digits, or is too long.
            NotFound: no entity that this reader may see has this name.
        """
        if len(name_or_id) > MAX_NAME_CHARS:
            raise InvalidInput(
                f"a name must have at most {MAX_NAME_CHARS} characters", field="name"
            )
        by_id = entity_records.by_id(self._snapshot, name_or_id)
        if by_id is not None and (entity := self.found(by_id)) is not None:
            return [entity]
        key = canonical(name_or_id)
        if not key:
            raise InvalidInput("the name of an entity needs letters or digits", field="name")
        keys = self._naming.nicknames.widened({key}, "")
        matches = self._called(keys)
        if not matches and len(found := self._naming.find(name_or_id)) == 1:
            # Without its title: "Mr. Petrov".
            matches = self._called({found[0].key})
        if not matches:
            shortened = name_or_id[:80]
            raise NotFound(
                f"no entity {shortened!r} in the memories that you may see", name=shortened
            )
        return sorted(matches, key=lambda entity: (-entity.seen.mentions, entity.row.pk))

    def _called(self, keys: set[str]) -> list[VisibleEntity]:
        matches: list[VisibleEntity] = []
        for look_up in (entity_records.by_keys, entity_records.called):
            rows = () if matches else look_up(self._snapshot, keys)
            matches += [
                entity for row in rows if (entity := self.found(row)) and entity.keys & keys
            ]
        return matches

    def only(self, name_or_id: str) -> VisibleEntity:
        """Return the only entity with this id or name.

        Raises:
            Conflict: the name is ambiguous; ``details["candidates"]`` lists the entities.
        """
        matches = self.meant(name_or_id)
        if len(matches) > 1:
            candidates = [entity.info.model_dump(mode="json") for entity in matches]
            raise Conflict(
                f"{name_or_id[:80]!r} may mean {len(matches)} entities; use the id of one:"
                f" {', '.join(entity.row.entity_id for entity in matches[:5])}",
                candidates=candidates,
            )
        return matches[0]

    def found(self, row: EntityRecord) -> VisibleEntity | None:
        """Return the entity; None if no memory that the reader may see mentions it."""
        counts = entity_records.mention_counts(self._snapshot, row.pk, self.view)
        names = None if counts is None else self._names(row, counts.mentions)
        return None if counts is None or names is None else VisibleEntity(row, counts, *names)

    def profile(
        self, entity: VisibleEntity, *, limit: int, others: Iterable[VisibleEntity]
    ) -> EntityProfile:
        related = []
        for row, together in entity_records.mentioned_together(
            self._snapshot, entity.row.pk, self.view, RELATED
        ):
            other = self.found(row)
            if other is not None:
                related.append(RelatedEntity(**other.info.model_dump(), together=together))
        summaries = entity_records.summaries_shown(self._snapshot, [entity.row.pk], self.view)
        summary = summaries.get(entity.row.pk)
        return EntityProfile(
            **entity.info.model_dump(),
            summary=None if summary is None else summary.text,
            aliases=entity.others,
            protected=entity_records.is_protected(self._snapshot, entity.row.pk),
            first_seen=entity.seen.first,
            last_seen=entity.seen.last,
            memories=tuple(
                entity_records.top_memories(self._snapshot, entity.row.pk, self.active, limit)
            ),
            related=tuple(related),
            candidates=tuple(candidate.info for candidate in others),
        )

    def top(self, rows: Iterator[EntityRecord], limit: int, prefix: str) -> list[VisibleEntity]:
        """Return the ``limit`` entities with the most visible mentions.

        Args:
            rows: the candidates, sorted by all their mentions, most first.
            prefix: the start of one of the names, as a key.
        """
        best: list[VisibleEntity] = []
        for row in rows:
            # Later rows have fewer mentions in all, so they cannot have more visible ones.
            if len(best) >= limit and best[limit - 1].seen.mentions >= row.mention_count:
                break
            entity = self.found(row)
            if entity is not None and any(key.startswith(prefix) for key in entity.keys):
                best.append(entity)
                best.sort(key=lambda match: (-match.seen.mentions, match.row.pk))
        return best[:limit]

    def _names(
        self, row: EntityRecord, mentions: int
    ) -> tuple[str, frozenset[str], tuple[str, ...]] | None:
        """Return the name to display, the keys and the other names that the reader may know."""
        merged = entity_records.merged_names(self._snapshot, row.entity_id)
        written = [(row.name_key, row.canonical_name)]
        written += [(entity.name_key, entity.canonical_name) for entity in merged]
        pks = [row.pk, *(entity.pk for entity in merged)]
        aliases = entity_records.aliases(self._snapshot, pks)
        written += [(key, alias) for _, key, alias in aliases]
        nicknames = self._naming.nicknames.pairs_of([key for key, _ in written])
        single = one_word_names(row)
        written += single
        # An entity with a single name is linked only by that name.
        if len(written) == 1:
            occurring = set(written)
        else:
            occurring = self._said(
                row, [name for name in written if name not in nicknames], mentions
            )
        pairs = [*(name for name in written if name in occurring or name in nicknames), *nicknames]
        if not pairs:
            return None
        shown_name = pairs[0][1]
        others = sorted({name for key, name in pairs if (key, name) not in single} - {shown_name})
        return shown_name, frozenset(key for key, _ in pairs), tuple(others)

    def _said(
        self, row: EntityRecord, pairs: list[tuple[str, str]], mentions: int
    ) -> set[tuple[str, str]]:
        missing, occurring = dict.fromkeys(pairs), set[tuple[str, str]]()
        texts = entity_records.contents(self._snapshot, row.pk, self.view)
        for text in islice(texts, MAX_READ):
            folded = canonical(text)
            for name in list(missing):
                if _says(text, folded, name, row):
                    occurring.add(name)
                    del missing[name]
            if not missing:
                return occurring
        if mentions > MAX_READ:
            occurring.update(name for name in missing if self._is_said(row, name))
        return occurring

    def _is_said(self, row: EntityRecord, name: tuple[str, str]) -> bool:
        texts = entity_records.contents_saying(self._snapshot, row.pk, self.view, name)
        return any(_says(text, canonical(text), name, row) for text in texts)


def one_word_names(row: EntityRecord) -> list[tuple[str, str]]:
    """Return the first and last name of a person as (key, as written): they link to it as well."""
    if row.type is not EntityType.PERSON or " " not in row.name_key:
        return []
    keys, words = row.name_key.split(), row.canonical_name.split()
    return [(keys[0], words[0]), (keys[-1], words[-1])]


def _says(text: str, folded: str, name: tuple[str, str], row: EntityRecord) -> bool:
    """Return True if a name, as (key, as written), is a whole word in a text of the entity."""
    key, written = name
    # An alternative spelling counts only in exactly this spelling.
    if key == row.name_key and written != row.canonical_name:
        return bool(re.search(as_a_word(written), text))
    return bool(re.search(as_a_word(key), folded))


def profile(
    opened: OpenOrchestrator, viewer: Viewer, name_or_id: str, *, limit: int
) -> EntityProfile:
    """Return the profile of an entity; of several with the name, the most mentioned one.

    Raises:
        InvalidInput: the name is invalid.
        NotFound: no memory that the viewer may see mentions it.
    """
    with opened.database.read() as snapshot:
        reader = EntityReader(snapshot, viewer, opened.naming)
        entity, *others = reader.meant(name_or_id)
        return reader.profile(entity, limit=limit, others=others)


def listing(
    opened: OpenOrchestrator, viewer: Viewer, *, prefix: str, limit: int
) -> list[EntityInfo]:
    """Return the entities mentioned in visible memories, most mentioned first."""
    key_prefix = canonical(prefix)
    with opened.database.read() as snapshot:
        reader = EntityReader(snapshot, viewer, opened.naming)
        rows = (
            entity_records.by_prefix(snapshot, key_prefix, reader.view)
            if key_prefix
            else entity_records.most_mentioned(snapshot, reader.view)
        )
        return [entity.info for entity in reader.top(rows, limit, key_prefix)]
