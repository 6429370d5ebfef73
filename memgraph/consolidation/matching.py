"""New facts against one another and against the store: what repeats, what stands against what.

Reads are short and hold no model call. What is found here is looked at again inside the
transaction that writes, since memory may have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa

from memgraph.classification.relations import RelationGuess, Statement
from memgraph.consolidation.comparing import Claim, Comparer, Pair, claim_of, is_one_claim
from memgraph.consolidation.drafts import Draft
from memgraph.consolidation.gating import of_one_thing, says_the_same, stands
from memgraph.model.enums import EdgeType, Relation
from memgraph.model.values import EdgeInput
from memgraph.policy.dedup import Sameness, compare, content_hash, same_names, same_weights
from memgraph.retrieval.query import choose_terms, read
from memgraph.storage import consolidation_queries as queries
from memgraph.storage import recall_queries
from memgraph.storage.consolidation_queries import FactRow, Place

Read = Callable[[], AbstractContextManager[sa.Connection]]

CANDIDATES = 8
# A repetition shares its rare words, and a contradiction those that name its subject: words are
# searched for, the rarest first, until so many memories hold them.
MAX_MATCHING_ROWS = 500

_EDGES = {Relation.CONTRADICTS: EdgeType.CONTRADICTS, Relation.UPDATES: EdgeType.UPDATES}


@dataclass(slots=True)
class Matched:
    """What a group of drafts comes to.

    Attributes:
        fresh: drafts to store, with the evidence of those that repeat them.
        repeats: by number of a draft what it repeats: a stored memory's id, or ``#number``.
        links: edges to write, ``#number`` for drafts.
        texts: what the stored memories in ``links`` say.
        since: the newest key when the store was read.
    """

    fresh: list[Draft] = field(default_factory=list)
    repeats: dict[int, str] = field(default_factory=dict)
    links: list[EdgeInput] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    compared: int = 0
    since: int = 0

    def target(self, number: int) -> str:
        """What stands for a draft in the end: a memory's id or ``#number``."""
        reference = f"#{number}"
        while reference.startswith("#") and int(reference[1:]) in self.repeats:
            reference = self.repeats[int(reference[1:])]
        return reference


class _Side(NamedTuple):
    """The other side of a comparison: a stored fact or an earlier draft."""

    reference: str
    content: str
    time: int
    twin: bool

    @property
    def claim(self) -> Claim:
        return claim_of(self.content)


def match(read_store: Read, drafts: Sequence[Draft], comparer: Comparer, *, at: int) -> Matched:
    """Find what each draft repeats, contradicts or updates. All drafts are of one place."""
    matched = Matched()
    kept = _merged(drafts, matched)
    if not kept:
        return matched
    place = kept[0].place
    with read_store() as connection:
        matched.since = queries.newest_pk(connection)
        hashes = {each.number: content_hash(each.given.content) for each in kept}
        stored = queries.same_facts(connection, set(hashes.values()), place, at=at)
        new = []
        for each in kept:
            known = stored.get(hashes[each.number])
            if known is None:
                new.append(each)
            else:
                matched.repeats[each.number] = known
        found = beside(connection, [each.given.content for each in new], place, at=at)
    _relate(new, found, comparer, matched)
    matched.fresh = _with_all_evidence(drafts, new, matched)
    return matched


def beside(
    connection: sa.Connection,
    texts: Sequence[str],
    place: Place,
    *,
    at: int,
    limit: int = CANDIDATES,
) -> list[list[FactRow]]:
    """For each text the stored facts that share words with it, the best match first."""
    questions = [read(text) for text in texts]
    words = {word for question in questions for word in question.words}
    frequencies = recall_queries.document_frequencies(connection, words)
    documents = recall_queries.document_count(connection)
    found = []
    for question in questions:
        terms = choose_terms(question, frequencies, documents, MAX_MATCHING_ROWS)
        rows: list[FactRow] = []
        if terms.words:
            rows = queries.facts_by_text(connection, terms.match, place, at=at, limit=limit)
        found.append(rows)
    return found


def repeats(new: str, old: str) -> bool:
    """Whether two texts nearly share their words, and all names, numbers and negations."""
    said = compare(new, old)
    return said is Sameness.EXACT or (said is Sameness.NEAR and same_names(new, old))


def _merged(drafts: Sequence[Draft], matched: Matched) -> list[Draft]:
    """Drafts without those that repeat an earlier one in nearly its words."""
    kept: list[Draft] = []
    for each in drafts:
        first = next(
            (one for one in kept if repeats(each.given.content, one.given.content)),
            None,
        )
        if first is None:
            kept.append(each)
        else:
            matched.repeats[each.number] = f"#{first.number}"
    return kept


def _relate(
    new: Sequence[Draft], found: Sequence[Sequence[FactRow]], comparer: Comparer, matched: Matched
) -> None:
    """Take the nearest word for word, else ask the classifier about what is of one topic."""
    pairs: list[tuple[Draft, _Side]] = []
    for place, (each, rows) in enumerate(zip(new, found, strict=True)):
        content = each.given.content
        sides = [_stored(row) for row in rows if row.content != content]
        claim = claim_of(content)
        if not is_one_claim(claim.text):
            _take_near(each, sides, matched)
            continue
        sides += [_drafted(one) for one in new[:place]]
        pairs += [
            (each, side)
            for side in sides
            if side.claim.may_meet(claim)
            and is_one_claim(side.claim.text)
            and (of_one_thing(claim.text, side.claim.text) or repeats(content, side.content))
        ]
    said = comparer.relations([_pair(each, side) for each, side in pairs])
    matched.compared += sum(guess is not None for guess in said)
    links: list[tuple[Draft, _Side, RelationGuess]] = []
    best: dict[int, tuple[float, str]] = {}
    for (each, side), guess in zip(pairs, said, strict=True):
        sure = _repeats_by(each, side, guess)
        if sure > best.get(each.number, (0.0, ""))[0]:
            best[each.number] = (sure, side.reference)
        elif guess is not None and stands(guess, each.given.content, side.content):
            links.append((each, side, guess))
    for number, (_, reference) in best.items():
        matched.repeats[number] = reference
    for each, side, guess in links:
        if each.number not in matched.repeats and not _is_repeat(side.reference, matched):
            matched.links.append(_edge(each, side, guess))
            matched.texts[side.reference] = side.content


def _take_near(each: Draft, sides: Sequence[_Side], matched: Matched) -> None:
    for side in sides:
        if side.twin and repeats(each.given.content, side.content):
            matched.repeats[each.number] = side.reference
            return


def _repeats_by(each: Draft, side: _Side, guess: RelationGuess | None) -> float:
    """How sure it is that a draft repeats the other side, 0..1; 0: it does not."""
    new, old = each.given.content, side.content
    if not side.twin:
        return 0.0
    if repeats(new, old):
        # Nearly the same words may still say the opposite: "passed" and "failed" are one word.
        against = guess is not None and guess.relation in _EDGES
        return 0.0 if against else 1.0
    if guess is None or not says_the_same(guess, new, old) or not same_weights(new, old):
        return 0.0
    return guess.probability


def _edge(each: Draft, side: _Side, guess: RelationGuess) -> EdgeInput:
    later, earlier = f"#{each.number}", side.reference
    if each.time < side.time:
        later, earlier = earlier, later
    return EdgeInput(
        from_id=later,
        to_id=earlier,
        edge_type=_EDGES[guess.relation],
        weight=round(guess.probability, 3),
        reason=f"{guess.relation}, by rules: {', '.join(guess.reasons[:5])}",
        partial=guess.relation is Relation.UPDATES,
    )


def _with_all_evidence(
    drafts: Sequence[Draft], new: Sequence[Draft], matched: Matched
) -> list[Draft]:
    """Drafts to be stored, each with the turns of those that say the same."""
    fresh = {f"#{each.number}": each for each in new if each.number not in matched.repeats}
    for each in drafts:
        target = matched.target(each.number)
        if each.number in matched.repeats and target in fresh:
            fresh[target] = fresh[target].with_evidence(each.evidence)
    return list(fresh.values())


def _is_repeat(reference: str, matched: Matched) -> bool:
    return reference.startswith("#") and int(reference[1:]) in matched.repeats


def _stored(row: FactRow) -> _Side:
    return _Side(row.memory_id, row.content, row.time, bool(row.twin))


def _drafted(draft: Draft) -> _Side:
    return _Side(f"#{draft.number}", draft.given.content, draft.time, True)


def _pair(each: Draft, side: _Side) -> Pair:
    # What is stored was said before, at one moment too.
    return (
        Statement(side.claim.text, side.time),
        Statement(claim_of(each.given.content).text, each.time),
    )
