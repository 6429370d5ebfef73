"""Match an extractor's drafts with the stored facts that they repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from memgraph.consolidation.comparison import NewStatement, find_candidates
from memgraph.consolidation.drafts import FactDraft
from memgraph.model.enums import MemoryKind
from memgraph.rules.similarity import Similarity, compare, content_hash, same_order
from memgraph.store import memories
from memgraph.store import sessions as queries
from memgraph.store.snapshot import Snapshot

Read = Callable[[], AbstractContextManager[Snapshot]]


@dataclass(slots=True)
class MatchedDrafts:
    """The result of matching a group of drafts.

    Attributes:
        fresh: the drafts to store, with the evidence of those that repeat them.
        repeats: what a draft repeats, by its number: a stored memory's id, or ``#number``.
        last_pk: the key of the last memory when they were matched.
    """

    fresh: list[FactDraft] = field(default_factory=list)
    repeats: dict[int, str] = field(default_factory=dict)
    last_pk: int = 0

    def target(self, number: int) -> str:
        """Return what a draft finally resolves to: a memory's id or ``#number``."""
        reference = f"#{number}"
        while reference.startswith("#") and int(reference[1:]) in self.repeats:
            reference = self.repeats[int(reference[1:])]
        return reference


def match(read: Read, drafts: Sequence[FactDraft], *, at: int) -> MatchedDrafts:
    """Find what drafts, all of one place, repeat: one another, or stored facts."""
    matched = MatchedDrafts()
    if not drafts:
        return matched
    new: list[FactDraft] = []
    for draft in drafts:
        # A change is stored as it is: it may differ from what it changes by the order of words.
        same = (
            each.number
            for each in new
            if draft.changes is None and repeats(each.given.content, draft.given.content)
        )
        number = next(same, None)
        if number is None:
            new.append(draft)
        else:
            matched.repeats[draft.number] = f"#{number}"
    place = drafts[0].place
    with read() as snapshot:
        matched.last_pk = memories.last_pk(snapshot)
        hashes = {content_hash(item.given.content): item for item in new}
        for content, memory_id in queries.same_facts(snapshot, hashes, place, at=at).items():
            matched.repeats[hashes[content].number] = memory_id
        for draft in new:
            if draft.number not in matched.repeats and draft.changes is None:
                statement = NewStatement(draft.given.content, place)
                found = find_candidates(snapshot, statement, at=at)
                twins = (
                    fact.memory_id
                    for fact in found
                    if fact.kind == MemoryKind.FACT
                    and fact.agent_id == place.agent_id
                    and fact.sensitivity == place.sensitivity
                    and repeats(fact.content, draft.given.content)
                )
                if (twin := next(twins, None)) is not None:
                    matched.repeats[draft.number] = twin
    matched.fresh = _with_all_evidence(drafts, new, matched)
    return matched


def repeats(stored: str, new: str) -> bool:
    """Return True if a fact that an extractor drew from turns repeats another.

    They share three quarters of their words, in one order, and all names, numbers and negations.
    """
    return compare(stored, new) is not Similarity.DIFFERENT and same_order(stored, new)


def _with_all_evidence(
    drafts: Sequence[FactDraft], new: Sequence[FactDraft], matched: MatchedDrafts
) -> list[FactDraft]:
    """Return the drafts to be stored, each with the evidence of those that repeat it."""
    fresh = {f"#{draft.number}": draft for draft in new if draft.number not in matched.repeats}
    for draft in drafts:
        target = matched.target(draft.number)
        if draft.number in matched.repeats and target in fresh:
            fresh[target] = fresh[target].with_evidence(draft.evidence)
    return list(fresh.values())
