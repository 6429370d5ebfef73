"""``memgraph bench consolidation``: what the rules keep of conversations, and what it is worth.

Input: LoCoMo's JSON, as for ``bench locomo``. Every session is read in pages, as a consolidation
reads it. A question's evidence is covered when a fact rests on one of its turns; the same number of
turns, chosen at random or as the longest ones, says what that is worth.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.locomo import Conversation, Scored, figures, load, read, score
from memgraph.clock import parse_time
from memgraph.config.schema import ConsolidationSettings
from memgraph.consolidation.agent_tools import PageTurn
from memgraph.consolidation.ports import FactCandidate
from memgraph.consolidation.sentence_rules import RuleExtractor
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.memory_service import MemoryService

_TOP = 20
Found = tuple[Conversation, list[FactCandidate]]


def run(
    data: Path,
    seed: int = 1,
    *,
    recall: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Make facts of every session, by rules, and count.

    Args:
        seed: of the turns that are chosen at random.
        recall: also store and consolidate everything, and ask all questions: of turns alone, of
            turns and facts, of facts alone. A fact counts as the turns it rests on.

    Returns:
        ``facts`` (their number, per session, by type), ``turns`` (share that facts rest
        on), ``coverage`` (of the facts and of both base lines: share of the questions with a
        covered turn, mean share of the evidence turns, characters per character of all turns),
        ``cpu_ms_per_20_turns``, and with ``recall`` the measures of ``bench locomo``.

    Raises:
        InvalidInput: the file is not LoCoMo's.
    """
    conversations = list(read(data))
    extractor = RuleExtractor()
    # The patterns are compiled and the names are read at the first call.
    extractor.extract([PageTurn("", "I moved to Rome.", "Ana", 0, 0)], limit=1)
    started = time.process_time()
    found = [(each, list(_facts(extractor, each))) for each in conversations]
    spent = time.process_time() - started
    turns = sum(len(each.turns) for each in conversations)
    result = {
        **_described(found),
        "coverage": _coverages(found, random.Random(seed)),
        "cpu_ms_per_20_turns": round(spent * 20_000 / max(1, turns), 2),
    }
    if recall:
        result["recall"] = _recalled(conversations, progress)
    return result


def _facts(extractor: RuleExtractor, conversation: Conversation) -> Iterator[FactCandidate]:
    rules = ConsolidationSettings()
    for _, said in groupby(conversation.turns, key=lambda turn: turn.session_id):
        turns = [
            PageTurn(
                memory_id=turn.turn_id or "",
                content=turn.content,
                source_role=turn.source_role or "",
                at_ms=parse_time(turn.event_time) if turn.event_time is not None else 0,
                sequence=turn.sequence,
            )
            for turn in said
        ]
        for at in range(0, len(turns), rules.page_episodes):
            yield from extractor.extract(
                turns[at : at + rules.page_episodes], limit=rules.max_facts_per_page
            )


def _described(found: Sequence[Found]) -> dict[str, Any]:
    facts = [fact for _, each in found for fact in each]
    turns = [turn for conversation, _ in found for turn in conversation.turns]
    sessions = sum(
        len({turn.session_id for turn in conversation.turns}) for conversation, _ in found
    )
    return {
        "facts": {
            "number": len(facts),
            "per_session": round(len(facts) / max(1, sessions), 2),
            "by_type": dict(sorted(Counter(fact.type.value for fact in facts).items())),
        },
        "turns": {
            "number": len(turns),
            "sessions": sessions,
            "covered": round(sum(len(_covered(each)) for _, each in found) / max(1, len(turns)), 4),
        },
    }


def _covered(facts: Sequence[FactCandidate]) -> set[str]:
    return {turn for fact in facts for turn in fact.evidence}


_COUNTED = ("facts", "strengthened", "compared", "contradictions", "updates")


@dataclass(slots=True)
class _Coverage:
    """Shares of evidence, one of each question; characters kept, and of all turns."""

    shares: list[float] = field(default_factory=list)
    kept: int = 0
    whole: int = 0

    def add(self, conversation: Conversation, turns: set[str], kept: int | None = None) -> None:
        """``kept``: characters; None: those of ``turns``."""
        lengths = {turn.turn_id: len(turn.content) for turn in conversation.turns}
        self.kept += sum(lengths[one] for one in turns) if kept is None else kept
        self.whole += sum(lengths.values())
        for asked in conversation.questions:
            self.shares.append(len(asked.evidence & turns) / len(asked.evidence))

    def as_dict(self) -> dict[str, Any]:
        count = max(1, len(self.shares))
        return {
            "questions": round(sum(share > 0 for share in self.shares) / count, 4),
            "evidence": round(sum(self.shares) / count, 4),
            "characters": round(self.kept / max(1, self.whole), 4),
        }


def _coverages(found: Sequence[Found], chance: random.Random) -> dict[str, Any]:
    by_facts, by_chance, by_length = _Coverage(), _Coverage(), _Coverage()
    for conversation, facts in found:
        covered = _covered(facts)
        ids = [turn.turn_id or "" for turn in conversation.turns]
        longest = sorted(conversation.turns, key=lambda turn: -len(turn.content))
        by_facts.add(conversation, covered, sum(len(fact.content) for fact in facts))
        by_chance.add(conversation, set(chance.sample(ids, len(covered))))
        by_length.add(conversation, {turn.turn_id or "" for turn in longest[: len(covered)]})
    return {
        "facts": by_facts.as_dict(),
        "random_turns": by_chance.as_dict(),
        "longest_turns": by_length.as_dict(),
    }


def _recalled(
    conversations: Sequence[Conversation], progress: Callable[[str], None]
) -> dict[str, Any]:
    scores: dict[str, list[Scored]] = {"turns": [], "turns_and_facts": [], "facts": []}
    spent = 0.0
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(root, environ={}, background=False) as service,
    ):
        for conversation in conversations:
            progress(f"{conversation.name}: {len(conversation.turns)} turns")
            load(service, conversation)
            memory = service.orchestrator(conversation.name)
            scores["turns"] += _asked(memory, conversation, {}, None)
            started = time.perf_counter()
            rests_on = _consolidated(memory, conversation, counts)
            spent += time.perf_counter() - started
            memory.maintenance.embed_pending()
            scores["turns_and_facts"] += _asked(memory, conversation, rests_on, None)
            scores["facts"] += _asked(memory, conversation, rests_on, ["fact"])
    measured = {name: figures(each) for name, each in scores.items()}
    told = {name: counts[name] for name in _COUNTED}
    return {**measured, "consolidated": told, "consolidation_seconds": round(spent, 2)}


def _consolidated(
    memory: Orchestrator, conversation: Conversation, counts: Counter[str]
) -> dict[str, set[str]]:
    """Consolidates every session; the turn ids that each fact rests on. Adds to ``counts``."""
    rests_on: dict[str, set[str]] = {}
    turn_ids: dict[str, str] = {}
    for session in dict.fromkeys(turn.session_id for turn in conversation.turns):
        for report in memory.jobs.consolidate(session):
            counts.update(report.counts)
            for fact in report.facts:
                for one in fact.evidence:
                    if one not in turn_ids:
                        turn_ids[one] = memory.get(one).turn_id or ""
                if fact.memory_id is not None:
                    known = rests_on.setdefault(fact.memory_id, set())
                    known.update(turn_ids[one] for one in fact.evidence)
    return rests_on


def _asked(
    memory: Orchestrator,
    conversation: Conversation,
    rests_on: dict[str, set[str]],
    kinds: list[str] | None,
) -> Iterator[Scored]:
    for asked in conversation.questions:
        bundle = memory.recall(asked.text, top_n=_TOP, kinds=kinds or ())
        places = [
            rests_on.get(item.memory.memory_id) or {item.memory.turn_id or ""}
            for item in bundle.items
        ]
        yield asked.category, _score(places, asked.evidence)


def _score(places: Sequence[set[str]], evidence: frozenset[str]) -> dict[str, float]:
    """As ``locomo.score``, where one place may hold several turns."""
    named: list[str] = []
    seen: set[str] = set()
    for turns in places:
        new = sorted((turns & evidence) - seen)
        seen.update(new)
        # Each place counts once in the ranks; what it adds beyond the first is taken as well.
        named.append(new[0] if new else "")
    measured = score(named, evidence)
    for cutoff in (5, 10, 20):
        held = set().union(*places[:cutoff]) if places else set()
        measured[f"recall@{cutoff}"] = len(held & evidence) / len(evidence)
    return measured
