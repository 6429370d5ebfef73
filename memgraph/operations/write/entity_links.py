"""Find names in texts and link memories to their entities."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from memgraph.config import Settings
from memgraph.ids import ENTITY_PREFIX, IdSource
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.model.enums import EntityType, ModelUse
from memgraph.model.values import MAX_NAME_CHARS
from memgraph.store import entities, entity_merges, entity_records
from memgraph.store.entities import TOLD, EntityName, Link, MentionContext, NameCursor
from memgraph.store.entity_records import EntityRecord
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot, Transaction
from memgraph.text.stem import LETTERS

if TYPE_CHECKING:
    from memgraph.operations.life.models import LanguageModel
    from memgraph.providers.entity_names import EntityProvider, EntityStrategy
    from memgraph.text.names import EntitySpan, KnownNames


NameFinder = Callable[[str], Sequence[EntityName]]

# The minimum confidence of a link. A single capitalised word without context is below it.
SURE = 0.5
BY_MODEL = 0.8
"""The confidence of a type that a language model gave."""
_NAMES = 4_096
MAX_KEPT_NAMES = 40
_RULES_ALONE = ("regex",)
_TYPES = frozenset(each.value for each in EntityType)


def find_names(text: str) -> list[EntityName]:
    """Return the entities that the rules find in a text, each once, in order of first mention."""
    from memgraph.text.entities import extract

    return names_of(extract(text))


def names_of(spans: Iterable[EntitySpan]) -> list[EntityName]:
    """Return the names of the spans with sufficient confidence, each once, in order."""
    names: dict[tuple[str, str], EntityName] = {}
    for span in spans:
        if span.confidence < SURE:
            continue
        name = _name(span.text, span.type, span.confidence, span.provider)
        if name is not None:
            names.setdefault((name.key, name.type), name)
    return list(names.values())


class NameFinders:
    """The name finders of one orchestrator: its strategies and its nicknames.

    Args:
        rules: the name finder of the ``regex`` provider, used directly on the write path.
        find_llm: returns the model of the ``llm`` provider; called when a strategy needs it.
    """

    def __init__(
        self,
        settings: Settings,
        rules: NameFinder,
        find_llm: Callable[[], LanguageModel | None] = lambda: None,
    ) -> None:
        self._settings = settings.memory.entities
        self._rules = rules
        self._find_llm = find_llm
        # The error code of a provider that failed in the last ``fast`` run; None if all succeeded.
        self.fast_failure: str | None = None

    @cached_property
    def find(self) -> NameFinder:
        """The finder of the ``fast`` strategy with nicknames.

        It never raises: a provider that fails is skipped and reported in ``fast_failure``.
        """
        finder = self._rules if self._settings.fast == _RULES_ALONE else self._find_fast
        # With rules only and no nicknames, writes call the rules directly.
        return self.nicknames.applied(finder) if self.nicknames.by_key else finder

    def kept(self, content: str, names: Any) -> list[EntityName]:
        """Return the names that models found in a text earlier, from ``attributes.enriched_names``.

        Invalid entries and names that do not occur in the text are ignored.
        """
        if not isinstance(names, list):
            return []
        text = _key(content)
        candidates = (_kept(name) for name in names[:MAX_KEPT_NAMES])
        return self.nicknames.resolved(
            candidate
            for candidate in candidates
            if candidate is not None and (candidate.key in text or has_part(candidate, text))
        )

    def named_by_model(self, names: Iterable[tuple[str, EntityType]]) -> list[EntityName]:
        """Return the entities that a model named with their types, each once."""
        found = (_name(name, kind, BY_MODEL, "llm") for name, kind in names)
        return self.nicknames.resolved(name for name in found if name is not None)

    def given(self, names: Any) -> list[EntityName]:
        """Return the names supplied with a memory (``attributes.entity_names``), each once.

        The rules determine the types of the entities, if they know them.
        """
        if not isinstance(names, list):
            return []
        written = [name for name in names[:MAX_KEPT_NAMES] if isinstance(name, str)]
        candidates = (self._given(" ".join(written_name.split())) for written_name in written)
        return list(dict.fromkeys(candidate for candidate in candidates if candidate is not None))

    def _given(self, written: str) -> EntityName | None:
        if len(written) > MAX_NAME_CHARS:
            return None
        key = _key(written)
        by_rules = next((entity for entity in self._rules(written) if entity.key == key), None)
        return by_rules or _name(written, EntityType.OTHER, 0.0, "regex")

    def query_keys(self, text: str) -> set[str]:
        """Return the keys under which the entities in a question may be known.

        Nicknames match in upper or lower case.
        """
        from memgraph.text.names import possible_names

        keys = {name.key for name in self.find(text)} | possible_names(text)
        return self.nicknames.widened(keys, text)

    @cached_property
    def nicknames(self) -> Nicknames:
        return Nicknames(self._settings.nicknames, self._rules)

    @cached_property
    def accurate(self) -> EntityStrategy:
        return self._strategy(self._settings.accurate)

    @property
    def accurate_available(self) -> bool:
        """True if the ``accurate`` strategy has more than rules; loads no model."""
        from memgraph.providers.entity_names import is_installed

        other_names = set(self.accurate.names) - set(_RULES_ALONE)
        return bool(other_names - {"spacy"}) or ("spacy" in other_names and is_installed())

    @cached_property
    def _fast(self) -> EntityStrategy:
        return self._strategy(self._settings.fast)

    def _find_fast(self, text: str) -> list[EntityName]:
        [found], failures = self._fast.extract([text])
        self.fast_failure = next((failure.code for failure in failures.values()), None)
        return names_of(found.spans)

    def _strategy(self, names: Sequence[str]) -> EntityStrategy:
        from memgraph.providers.entity_names import EntityStrategy

        providers = (self.provider(name) for name in names)
        return EntityStrategy(tuple(provider for provider in providers if provider is not None))

    def provider(self, name: str) -> EntityProvider | None:
        """Return a provider by name; None if its pipeline or model is not configured."""
        if name == "llm":
            model = self._find_llm()
            if model is None:
                return None
            from memgraph.providers.entity_names import LlmNames

            return LlmNames(model.completion_for(ModelUse.ENRICHMENT))
        if name == "spacy":
            if not self._settings.spacy_model:
                return None
            from memgraph.providers.entity_names import SpacyNames

            return SpacyNames(self._settings.spacy_model)
        from memgraph.providers.entity_names import RegexNames

        return RegexNames()


class Nicknames:
    """The nicknames of entities, from the settings.

    Args:
        pairs: texts of the form ``nickname=full name``.
        rules: determine the type of a full name; an unknown name is a person.
    """

    def __init__(self, pairs: Sequence[str], rules: NameFinder) -> None:
        self.by_key: dict[str, EntityName] = {}
        self._written: dict[str, EntityName] = {}
        for pair in pairs:
            nick, _, full = (part.strip() for part in pair.partition("="))
            meant, nickname = _meant(full, rules), _name(nick, EntityType.PERSON)
            if meant is not None and nickname is not None:
                self.by_key[nickname.key] = meant
                self._written[nick] = meant

    def pairs_of(self, keys: Collection[str]) -> list[tuple[str, str]]:
        """Return full names and nicknames, as (key, as written), of an entity with these keys."""
        pairs: dict[tuple[str, str], None] = {}
        for nick, meant in self._written.items():
            if meant.key in keys or _key(nick) in keys:
                pairs |= {(meant.key, meant.name): None, (_key(nick), nick): None}
        return list(pairs)

    def applied(self, find: NameFinder) -> NameFinder:
        """Extend ``find`` by nicknames: in the spelling of the settings they are always found."""
        pattern = _any_of(self._written)

        def found(text: str) -> list[EntityName]:
            names = list(find(text))
            words = {word for name in names for word in name.key.split() if name.key != word}
            # Skip a nickname inside a longer name: not "Art" in "Art Gallery".
            names.extend(
                self._written[match[0]]
                for match in pattern.finditer(text)
                if _key(match[0]) not in words
            )
            return self.resolved(names)

        return found

    def resolved(self, names: Iterable[EntityName]) -> list[EntityName]:
        """Replace nicknames by their full names; return each name once."""
        return list(dict.fromkeys(self.by_key.get(name.key, name) for name in names))

    def widened(self, keys: set[str], text: str) -> set[str]:
        """Add the synonyms of the keys, and of nicknames in ``text`` in any case."""
        if not self.by_key:
            return keys
        folded = _key(text)
        names = {*self.by_key, *(entity.key for entity in self.by_key.values())}
        keys = keys | {match[0] for match in _any_of(names).finditer(folded)}
        full = keys | {self.by_key[key].key for key in keys if key in self.by_key}
        return full | {nick for nick, meant in self.by_key.items() if meant.key in full}


def has_part(name: EntityName, key: str) -> bool:
    """Return whether the first or the last name of a person is a word of a canonical text."""
    parts = _parts(name)
    return bool(parts) and not parts.isdisjoint(key.split())


def _parts(name: EntityName) -> set[str]:
    """Return the first and the last name of a person with a full name; empty for others."""
    if name.type is not EntityType.PERSON or " " not in name.key:
        return set()
    return {name.key.partition(" ")[0], name.key.rpartition(" ")[2]}


def _meant_in_full(names: Iterable[EntityName]) -> dict[EntityName, EntityName]:
    """Return the full name of each first or last name that one person of the same text has."""
    people = [name for name in names if name.type is EntityType.PERSON]
    full = {name: [each for each in people if name.key in _parts(each)] for name in people}
    return {name: meant[0] for name, meant in full.items() if len(meant) == 1}


def _kept(value: Any) -> EntityName | None:
    match value:
        case [str(name), str(kind)] if kind in _TYPES and len(name) <= MAX_NAME_CHARS:
            return _name(name, EntityType(kind), BY_MODEL, "llm")
    return None


def _meant(full: str, rules: NameFinder) -> EntityName | None:
    key = _key(full)
    guessed = next((entity.type for entity in rules(full) if entity.key == key), EntityType.PERSON)
    return _name(full, guessed)


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


def _key(text: str) -> str:
    from memgraph.text.names import canonical

    return canonical(text)


# Cached, because a name that occurs once is likely to occur again.
@lru_cache(maxsize=_NAMES)
def _name(
    written: str, kind: EntityType, confidence: float = 1.0, provider: str = TOLD
) -> EntityName | None:
    key = _key(written)
    return EntityName(key, written, kind, confidence, provider) if key else None


@lru_cache(maxsize=_NAMES)
def speaker_named(role: str, told_as: str | None = None) -> EntityName | None:
    """Return the person named by the role of a turn; None for agents and generic roles.

    A role in lower case counts as a name only if it begins with a listed given name, or was
    declared a person's (``told_as``).
    """
    from memgraph.text.gazetteer import gazetteer

    voice = voice_of(role, told_as)
    written = " ".join(role.split())
    lower = written.casefold()
    words = LETTERS.findall(lower)
    if (
        voice not in (SpeakerRole.PERSON, SpeakerRole.NAMED)
        or not words
        or len(written) > MAX_NAME_CHARS
    ):
        return None
    if lower.removeprefix("the ") in _ROLES or _NO_NAME.search(written):
        return None
    if told_as != "person":
        if not _MACHINES.isdisjoint(words):
            return None
        if written == lower != written.upper() and words[0] not in gazetteer().lower_given:
            return None
    return _name(written.title() if written == lower else written, EntityType.PERSON)


# Accounts, addresses and numbers are not names.
_NO_NAME = re.compile(r"[\d_@/\\:<>{}\[\]]")
_ROLES = frozenset(
    (
        *("user", "human", "customer", "client", "caller", "person", "owner", "speaker", "guest"),
        *("visitor", "unknown", "me", "you", "i", "interviewer", "interviewee", "host", "narrator"),
        *("moderator", "everyone", "all", "anonymous", "participant", "student", "teacher"),
        *("patient", "doctor", "team", "admin", "administrator", "operator", "developer"),
    )
)
_MACHINES = frozenset(
    (
        *("assistant", "agent", "ai", "bot", "chatbot", "model", "gpt", "chatgpt", "claude"),
        *("gemini", "copilot", "llama", "mistral", "llm", "system", "tool", "function", "service"),
        *("server", "helper", "planner", "researcher", "critic", "coder", "router", "worker"),
        *("supervisor", "orchestrator", "coordinator", "executor", "reviewer", "summarizer"),
        *("retriever", "runner", "pipeline", "scheduler", "monitor", "support", "notifier"),
    )
)


def _without_short(
    transaction: Transaction,
    linked: Mapping[Link, Collection[str]],
    in_full: Mapping[int, Mapping[EntityName, EntityName]],
) -> dict[Link, Collection[str]]:
    """Delete the links that rest on first and last names for which full names are known."""
    short = {pk: {name.key for name in names} for pk, names in in_full.items()}
    old = [pair for pair, keys in linked.items() if short[pair[1]] >= {*keys}]
    entity_merges.unlink(transaction, old)
    return {pair: keys for pair, keys in linked.items() if pair not in old}


def merge_entry(into: EntityRecord, other: EntityRecord, links: int, reason: str) -> NewEntry:
    """Return the journal entry of a merge that moved ``links`` links."""
    details = {"other": summary(other), "into": summary(into), "links": links, "reason": reason}
    return NewEntry("merge_entities", into.entity_id, details)


def summary(row: EntityRecord) -> dict[str, str]:
    """Return an entity as journal entries name it."""
    return {"id": row.entity_id, "name": row.canonical_name, "type": row.type.value}


def known_names(rows: Iterable[tuple[str, str, EntityType]]) -> Iterator[tuple[str, str]]:
    """Yield the names to search for as (key, as written): those of the rows, and first and last
    names of persons.
    """
    for key, written, kind in rows:
        yield key, written
        if " " in key and kind is EntityType.PERSON:
            yield key.partition(" ")[0], written.partition(" ")[0]
            yield key.rpartition(" ")[2], written.rpartition(" ")[2]


Named = tuple[int, tuple[EntityName, ...]]
"""A memory's key and the names in its text."""


class EntityLinker:
    """Link memories of one orchestrator to entities; used in one write transaction at a time."""

    def __init__(self, ids: IdSource, naming: NameFinders) -> None:
        self._ids = ids
        self._naming = naming
        self._seen = NameCursor()

    @cached_property
    def _known(self) -> KnownNames:
        from memgraph.text.names import KnownNames

        return KnownNames()

    def link(
        self,
        transaction: JournalledTransaction,
        names_by_pk: Sequence[Named],
        linked: Mapping[Link, Collection[str]] = MappingProxyType({}),
        *,
        search: bool = True,
    ) -> int:
        """Link stored memories to entities; create entities for unknown names.

        The names of a memory are those found in its text, its speakers or those of the turns that
        it was extracted from, the names supplied with it, and every known name in its text.

        Args:
            linked: the names of the existing links.
            search: search the texts for known names; if False, call ``link_known`` for that.

        A person known by one word becomes the one person who has it as a first or last name.

        Returns:
            The number of new links.
        """
        if not names_by_pk:
            return 0
        contexts = entities.mention_contexts(transaction, [pk for pk, _ in names_by_pk])
        by_pk = dict(names_by_pk)
        in_full = {pk: _meant_in_full(names) for pk, names in names_by_pk}
        all_names = {
            context.pk: [
                *(name for name in by_pk[context.pk] if name not in in_full[context.pk]),
                *self._speakers(context),
            ]
            for context in contexts
        }
        if linked:
            linked = _without_short(transaction, linked, in_full)
        names = dict.fromkeys(name for group in all_names.values() for name in group)
        keys, new_names = self._keys_of(transaction, names)
        found: dict[Link, set[str]] = {}
        for pk, group in all_names.items():
            for name in group:
                found.setdefault((keys[name], pk), set()).add(name.key)
        for context in contexts:
            for short, full in in_full[context.pk].items():
                names_ = found[keys[full], context.pk]
                names_.add(short.key)
                if full.key not in _key(context.content):
                    names_.discard(full.key)
        if search:
            for pair, key in self._known_in(transaction, contexts, all_names):
                found.setdefault(pair, set()).add(key)
        number = entities.link(transaction, found, linked)
        self._absorb(transaction, keys, new_names if search else names)
        return number

    @staticmethod
    def _absorb(
        transaction: JournalledTransaction,
        keys: Mapping[EntityName, int],
        names: Iterable[EntityName],
    ) -> None:
        """Merge persons known by one word into the one of these whose first or last name it is.

        Only if nobody else has that name, and if whoever may read of the one person may also read
        of the other.
        """
        full_names = {keys[name]: parts for name in names if (parts := _parts(name))}
        words = set().union(*full_names.values())
        persons = entity_records.of_one_word(transaction, words) if words else []
        meant = entities.by_one_name(transaction, {person.name_key for person in persons})
        for person in persons:
            pk = meant.get(person.name_key)
            if pk in full_names and entity_records.seen_no_wider(transaction, person.pk, pk):
                full = entity_records.by_pk(transaction, pk)
                moved = entity_merges.absorb(transaction, pk, person.pk)
                reason = "the only person with this first or last name"
                transaction.record([merge_entry(full, person, moved, reason)])

    def mend_types(self, transaction: Transaction, names_by_pk: Sequence[Named]) -> list[NewEntry]:
        """Correct entity types that less reliable providers determined for these memories.

        Call it before ``link``, which would otherwise create a second entity of the other type.

        Returns:
            The journal entries.
        """
        entries = []
        for pk, names in names_by_pk:
            for name in names:
                if name.provider == "spacy" and name.type is EntityType.OTHER:
                    continue
                for entity in entities.less_surely_typed(transaction, pk, name):
                    details = {
                        "from": entity.type.value,
                        "to": name.type.value,
                        "provider": name.provider,
                        "confidence": name.confidence,
                        "before": entity.type_provider,
                    }
                    entity_merges.retype(transaction, entity, name)
                    entries.append(NewEntry("retype_entity", entity.entity_id, details))
        return entries

    def link_known(self, transaction: Transaction, names_by_pk: Sequence[Named]) -> None:
        """Link stored memories to the known names in their texts, in addition to existing links."""
        pks = [pk for pk, _ in names_by_pk]
        contexts = entities.mention_contexts(transaction, pks)
        known_names = {pk: list(names) for pk, names in names_by_pk}
        found: dict[Link, set[str]] = {}
        for pair, key in self._known_in(transaction, contexts, known_names):
            found.setdefault(pair, set()).add(key)
        entities.link(transaction, found, entities.links_of(transaction, pks))

    def _speakers(self, context: MentionContext) -> list[EntityName]:
        people = (speaker_named(role, told_as) for role, told_as in context.speakers)
        names = [person for person in people if person is not None]
        if context.given is not None:
            names += self._naming.given(json.loads(context.given))
        return self._naming.nicknames.resolved(names)

    def _keys_of(
        self, transaction: JournalledTransaction, names: Iterable[EntityName]
    ) -> tuple[dict[EntityName, int], list[EntityName]]:
        """Return the entity key of each name, and the names of new entities, which it creates."""
        names = list(names)
        if not names:
            return {}, []
        existing = entities.find(transaction, names)
        keys = existing.keys
        entities.add_spellings(transaction, existing.spellings)
        entities.confirm_types(transaction, existing.surer)
        # If a new entity has several spellings, the first becomes its name.
        new_names: dict[tuple[str, str], EntityName] = {}
        for name in names:
            if name not in keys:
                new_names.setdefault((name.key, name.type), name)
        new_ids = {name: self._ids.new(ENTITY_PREFIX) for name in new_names.values()}
        created = entities.create(transaction, new_ids, transaction.at)
        for name in names:
            if name not in keys:
                keys[name] = created[new_names[name.key, name.type]]
        return keys, list(created)

    def _known_in(
        self,
        snapshot: Snapshot,
        contexts: Sequence[MentionContext],
        linked: dict[int, list[EntityName]],
    ) -> list[tuple[Link, str]]:
        """Return a link and the key of its name for each known name in the texts."""
        # Names that any process added since the last write.
        rows, self._seen, is_stale = entities.new_names(snapshot, self._seen)
        if is_stale:
            self._known.clear()
        self._known.add(known_names(rows))
        pairs: list[tuple[int, str]] = []
        for context in contexts:
            # Skip parts of names that are linked already: not "Art" in "Art Gallery".
            names = [f" {name.key} " for name in linked[context.pk]]
            keys = dict.fromkeys(match.key for match in self._known.find(context.content))
            pairs += [
                (context.pk, key) for key in keys if not any(f" {key} " in name for name in names)
            ]
        pk_by_key = entities.meant_by(snapshot, {key for _, key in pairs})
        return [((pk_by_key[key], pk), key) for pk, key in pairs if key in pk_by_key]
