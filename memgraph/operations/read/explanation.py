"""Why an agent said something: the receipts whose memories hold the sentences of an answer.

No model is asked. A sentence is compared by its words, without stop words and by their stems; a
word that few of the memories hold weighs more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from memgraph.ids import first_ulid
from memgraph.model.influence import AnswerExplanation, ReceiptSupport, SentenceSupport
from memgraph.model.receipts import CONSOLE, Receipt
from memgraph.operations.read.receipt_lookup import receipt_list
from memgraph.retrieval.query import STOP_WORDS
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store.graph import visible_memories
from memgraph.store.visibility import View
from memgraph.text.sentences import split_sentences
from memgraph.text.stem import stem, words

MAX_SENTENCES: Final = 60
MAX_RECEIPTS: Final = 300
"""Receipts that are compared, the newest ones."""
ENOUGH: Final = 0.5
"""A memory holds a sentence when it has so much of it."""
MEMORIES_EACH: Final = 3

Weights = Mapping[str, float]


def explain_answer(
    opened: OpenOrchestrator,
    view: View,
    text: str,
    *,
    asked: Mapping[str, str | None],
    until: int | None,
    limit: int,
) -> AnswerExplanation:
    """Return the receipts whose memories best hold the sentences of an answer.

    Args:
        asked: what the receipts are for, as of ``receipt_list``.
        until: milliseconds; only what was handed out by then. None: by now.
        limit: of the receipts.
    """
    before = None if until is None else f"rcl_{first_ulid(until + 1)}"
    page = receipt_list(opened, view, asked, limit=MAX_RECEIPTS, before=before)
    receipts = [each for each in page.receipts if each.items and each.step_id != CONSOLE]
    ids = list(dict.fromkeys(item.memory_id for each in receipts for item in each.items))
    with opened.database.read() as snapshot:
        memories = visible_memories(snapshot, ids, view)
    sentences = [one for one in split_sentences(text) if _stems(one)]
    stems = {one: _stems(memory.content) for one, memory in memories.items()}
    held = Counter(stem for each in stems.values() for stem in each)
    shares = [_shares(_stems(sentence), stems, held) for sentence in sentences[:MAX_SENTENCES]]
    sizes = [len(_stems(sentence)) for sentence in sentences[:MAX_SENTENCES]]
    supports = [
        SentenceSupport(
            text=sentence,
            share=max(by_memory.values(), default=0.0),
            memory_ids=_best(by_memory, stems)[:MEMORIES_EACH],
        )
        for sentence, by_memory in zip(sentences, shares, strict=False)
    ]
    rated = [_rated(receipt, shares, sizes) for receipt in receipts]
    best = sorted((each for each in rated if each.sentences), key=lambda each: -each.share)[:limit]
    holding = [each.memory_ids for each in supports] + [each.memory_ids for each in best]
    named = {one for ids in holding for one in ids}
    return AnswerExplanation(
        sentences=tuple(supports),
        receipts=tuple(best),
        memories={one: memory for one, memory in memories.items() if one in named},
        receipts_read=len(receipts),
        cut=page.cut or len(sentences) > MAX_SENTENCES,
    )


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS)


def _shares(
    sentence: Collection[str], memories: Mapping[str, frozenset[str]], held: Mapping[str, int]
) -> dict[str, float]:
    """Return how much of a sentence each memory has, 0..1, by id; none of it: it is left out."""
    weights: Weights = {
        one: math.log(1 + (len(memories) + 1) / (held.get(one, 0) + 1)) for one in sentence
    }
    whole = sum(weights.values())
    shares = {}
    for memory_id, stems in memories.items():
        if common := stems.intersection(sentence):
            shares[memory_id] = round(sum(weights[one] for one in common) / whole, 4)
    return shares


def _best(shares: Mapping[str, float], memories: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Return the memories that hold enough of a sentence; of equal ones the shorter first."""
    enough = [one for one, share in shares.items() if share >= ENOUGH]
    return tuple(sorted(enough, key=lambda one: (-shares[one], len(memories[one]), one)))


def _rated(
    receipt: Receipt, shares: Sequence[Mapping[str, float]], sizes: Sequence[int]
) -> ReceiptSupport:
    ids = [item.memory_id for item in receipt.items]
    best = [max((each.get(one, 0.0) for one in ids), default=0.0) for each in shares]
    places = tuple(place for place, share in enumerate(best) if share >= ENOUGH)
    # A long sentence says more than a short one.
    whole = sum(share * size for share, size in zip(best, sizes, strict=True))
    holding = [one for one in ids if any(shares[at].get(one, 0.0) >= ENOUGH for at in places)]
    return ReceiptSupport(
        receipt_id=receipt.receipt_id,
        at=receipt.at,
        purpose=receipt.purpose,
        actor=receipt.actor,
        conversation_id=receipt.conversation_id,
        workflow_run_id=receipt.workflow_run_id,
        query=receipt.query,
        share=round(whole / max(sum(sizes), 1), 4),
        sentences=places,
        memory_ids=tuple(dict.fromkeys(holding)),
    )
