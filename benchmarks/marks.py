"""``memgraph bench marks``: what is marked, on pairs and talks of briefs that no training read.

Pairs are read alone, as far as the background would read them. Then the statements of each brief
are stored in an orchestrator of its own, the earlier ones first, and each talk turn by turn, one
session for each date: the marks are counted that the background writes, and those of them that the
author lists.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from benchmarks.pairs import (
    KINDS,
    Pair,
    Turn,
    locked_pairs,
    locked_talks,
    open_pairs,
    open_talks,
    read_labelled,
    related,
)
from memgraph import MemoryService, Orchestrator
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.values import EpisodeInput
from memgraph.operations.write.comparisons import CLOSE, MARK_FROM
from memgraph.providers.local import LocalEmbedding
from memgraph.providers.pair_reader import LocalPairReader, StatementPair

_BATCH: Final = 256
Progress = Callable[[str, int, int], None]


def run(
    progress: Progress,
    *,
    data: Path | None = None,
    unlocked: bool = False,
    examples: int = 0,
    limit: int | None = None,
) -> dict[str, Any]:
    """Measure pairs, stores and talks.

    Args:
        data: labelled changes in JSON Lines to measure instead, as pairs alone.
        unlocked: measure on the open briefs, which the training has read, instead of the locked.
        examples: list so many wrong and missed marks of each kind.
        limit: measure so many pairs and so many talks only; None: all.
    """
    pairs, talks = (open_pairs(), open_talks()) if unlocked else (locked_pairs(), locked_talks())
    if data is not None:
        pairs, talks = list(read_labelled(data)), {}
    pairs, talks = pairs[:limit], dict(islice(talks.items(), limit))
    total = 2 * len(pairs) + sum(map(len, talks.values()))
    scores = list(_scores(pairs, progress, total))
    found: dict[str, Any] = {"mark_from": MARK_FROM, "pairs": _by_kind(pairs, scores, data is None)}
    if data is None:
        found["stores"] = _stores(pairs, progress, total)
        found["talks"] = _talks(talks, progress, 2 * len(pairs), total)
    if examples:
        found["examples"] = _examples(pairs, scores, examples)
    return found


def _scores(pairs: Sequence[Pair], progress: Progress, total: int) -> Iterator[float]:
    """Yield the probability of a change for each pair; 0 where the vectors are too far apart."""
    reader, vectors, remaining, done = LocalPairReader(), LocalEmbedding(), iter(pairs), 0
    while batch := list(islice(remaining, _BATCH)):
        progress("reading pairs", done, total)
        verdicts = reader.read([StatementPair(pair.earlier, pair.later) for pair in batch])
        earlier, later = (vectors.embed([pair[side] for pair in batch]) for side in (1, 2))
        close = (earlier * later).sum(axis=1) >= CLOSE
        yield from (v.changes if near else 0.0 for v, near in zip(verdicts, close, strict=True))
        done += len(batch)


def _by_kind(
    pairs: Sequence[Pair], scores: Sequence[float], ours: bool
) -> dict[str, dict[str, int]]:
    """Return for each kind the number of pairs, and of those marked as a change."""
    found: dict[str, dict[str, int]] = {}
    for pair, score in sorted(zip(pairs, scores, strict=True), key=lambda each: each[0].brief):
        name = KINDS[pair.kind] if ours else f"{pair.brief}, {pair.kind}"
        counts = found.setdefault(name, {"pairs": 0, "marked": 0})
        counts["pairs"] += 1
        counts["marked"] += score >= MARK_FROM
    return found


def _stores(pairs: Sequence[Pair], progress: Progress, total: int) -> dict[str, int]:
    """Return what is marked where the statements of each brief lie in one store.

    Returns:
        ``facts``; ``marks`` of changes; ``right``: between the two statements of a change;
        ``apart``: between statements of different pairs; ``changes``; ``inactive`` facts.
    """
    found = dict.fromkeys(("facts", "marks", "right", "apart", "changes", "inactive"), 0)
    for done, (brief, group) in enumerate(groupby(pairs, key=lambda pair: pair.brief)):
        progress(f"store of {brief}", len(pairs) + done, total)
        own = list(group)
        with _orchestrator() as orc:
            places: dict[str, set[int]] = {}
            for text_of in (itemgetter(1), itemgetter(2)):
                for place, pair in enumerate(own):
                    places.setdefault(orc.remember(text_of(pair)), set()).add(place)
            for mark in orc.settle().compared.marks:
                if mark.edge_type is EdgeType.RELATED_TO:
                    continue
                both = places[mark.from_id] & places[mark.to_id]
                found["marks"] += 1
                found["apart"] += not both
                found["right"] += any(own[place].label == "changes" for place in both)
            found["inactive"] += sum(
                orc.get(one).status is not MemoryStatus.ACTIVE for one in places
            )
        found["facts"] += len(places)
        found["changes"] += sum(pair.label == "changes" for pair in own)
    return found


@contextmanager
def _orchestrator() -> Iterator[Orchestrator]:
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(root, environ={}, background=False) as service,
    ):
        yield service.orchestrator("marks", create=True)


def _inactive(orc: Orchestrator, ids: Iterable[str]) -> int:
    return sum(orc.get(one).status is not MemoryStatus.ACTIVE for one in ids)


def _talks(
    talks: Mapping[str, Sequence[Turn]], progress: Progress, done: int, total: int
) -> dict[str, Any]:
    """Return what is marked in talks that are stored turn by turn."""
    found = dict.fromkeys(("turns", "marks", "right", "changes", "found", "inactive"), 0)
    by_talk: dict[str, dict[str, int]] = {}
    for name, turns in talks.items():
        progress(f"talk {name}", done, total)
        by_talk[name] = _talk(turns)
        for key, count in by_talk[name].items():
            found[key] += count
        done += len(turns)
    false = found["marks"] - found["right"]
    per_100 = round(100 * false / max(found["turns"], 1), 2)
    return {**found, "false_per_100_turns": per_100, "by_talk": by_talk}


def _talk(turns: Sequence[Turn]) -> dict[str, int]:
    """Return the numbers of turns, of marks that say that one changed another, of those that are
    right, of the changes that the author lists and of those that are marked, and of turns that a
    comparison made inactive."""
    with _orchestrator() as orc:
        outcomes = orc.save_episodes([_episode(turn) for turn in turns])
        numbers = {
            str(outcome.memory_id): turn.number
            for outcome, turn in zip(outcomes, turns, strict=True)
        }
        marked = {
            (numbers[mark.from_id], numbers[mark.to_id])
            for mark in orc.settle().compared.marks
            if mark.edge_type is not EdgeType.RELATED_TO
        }
        inactive = _inactive(orc, numbers)
    known = related(turns)
    changes = {(turn.number, earlier) for turn in turns for earlier in turn.changes}
    return {
        "turns": len(turns),
        "marks": len(marked),
        "right": sum(known.get(pair) == "changes" for pair in marked),
        "changes": len(changes),
        "found": len(changes & marked),
        "inactive": inactive,
    }


def _episode(turn: Turn) -> EpisodeInput:
    day = datetime.fromisoformat(turn.date).replace(tzinfo=UTC)
    return EpisodeInput(
        content=turn.text,
        session_id=f"on-{turn.date}",
        source_role=turn.speaker,
        event_time=int(day.timestamp() * 1000) + turn.number * 60_000,
    )


def _examples(pairs: Sequence[Pair], scores: Sequence[float], most: int) -> dict[str, list[str]]:
    """Return changes with the least and other pairs with the highest probability of a change."""
    ranked = sorted(zip(scores, pairs, strict=True), key=lambda each: each[0])
    shown = [(f"{score:.2f} {p.earlier} / {p.later}", p) for score, p in ranked]
    missed = [text for text, pair in shown if pair.label == "changes"][:most]
    wrong = [text for text, pair in reversed(shown) if pair.label != "changes"][:most]
    return {"missed": missed, "wrong": wrong}
