"""``memgraph bench locomo``: how much of the marked evidence recall finds in long conversations.

The public interface with default settings: one orchestrator for each conversation, every turn an
episode, every question a recall. Input: LoCoMo's JSON (Maharana et al., "Evaluating Very Long-Term
Conversational Memory of LLM Agents", ACL 2024).
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.plain import NAMES, PlainSearch
from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.enums import CapturedBy, MemoryKind, MemoryType, SourceType
from memgraph.model.values import MemoryInput, Source
from memgraph.service.memory_service import MemoryService

CUTOFFS = (5, 10, 20)
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}

_SESSION = re.compile(r"session_(\d+)")
# Evidence is written "D8:6", several in one string, or slightly off ("D:11:26").
_EVIDENCE = re.compile(r"D:?\s*(\d+)\s*:\s*(\d+)")


Scored = tuple[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the turn ids that hold its answer, and the answer, where it has one."""

    text: str
    evidence: frozenset[str]
    category: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    turns: tuple[MemoryInput, ...]
    questions: tuple[Asked, ...]


def run(
    data: Path, progress: Callable[[str], None] = lambda _: None, *, storage: str = ""
) -> dict[str, Any]:
    """Load every conversation, ask every question that has evidence, and score the answers.

    Args:
        storage: as ``memory.storage.url``, of an empty database; empty: files.

    Returns:
        ``recall@5``, ``recall@10``, ``recall@20`` (mean share of the evidence among the first k),
        ``hit@10`` (share of questions with any of it among the first ten), ``mrr`` (mean of
        1 / rank of the first of it, within twenty); the same ``by_category``, and over all
        questions by ``plain`` search; counts.

    Raises:
        InvalidInput: the file is not LoCoMo's.
    """
    conversations = list(read(data))
    scores: list[Scored] = []
    plain: dict[str, list[dict[str, float]]] = {name: [] for name in NAMES}
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(
            root, config={"memory.storage.url": storage}, environ={}, background=False
        ) as service,
    ):
        for conversation in conversations:
            progress(f"{conversation.name}: {len(conversation.turns)} turns")
            load(service, conversation)
            scores.extend(ask(service, conversation))
            for asked, found in _plain(conversation):
                for name, ranked in found.items():
                    plain[name].append(score(ranked, asked.evidence))
    return {
        **figures(scores),
        "plain": {name: _means(each) for name, each in plain.items()},
        "conversations": len(conversations),
        "turns": sum(len(each.turns) for each in conversations),
    }


def figures(scores: Sequence[Scored]) -> dict[str, Any]:
    """The means over all questions, and over those of each category."""
    by_category = {
        name: _means([each for category, each in scores if category == name])
        for name in CATEGORIES.values()
    }
    return {**_means([each for _, each in scores]), "by_category": by_category}


def read(data: Path) -> Iterator[Conversation]:
    """The conversations of a LoCoMo file.

    Raises:
        InvalidInput: see ``run``.
    """
    try:
        samples = json.loads(data.read_text(encoding="utf-8"))
        for number, sample in enumerate(samples, start=1):
            yield _conversation(f"conversation-{number}", sample)
    except OSError as error:
        raise InvalidInput(f"cannot read {data}", path=str(data)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{data} is not a LoCoMo file", path=str(data)) from error


def evidence_ids(given: Sequence[str]) -> frozenset[str]:
    """Turn ids named in evidence strings, as ``D<session>:<turn>``."""
    return frozenset(
        f"D{session}:{turn}" for each in given for session, turn in _EVIDENCE.findall(each)
    )


def score(ranked: Sequence[str], evidence: frozenset[str]) -> dict[str, float]:
    """The measures of one question; ``ranked`` are turn ids, best first."""
    places = [rank for rank, one in enumerate(ranked, start=1) if one in evidence]
    found = {
        f"recall@{cutoff}": sum(rank <= cutoff for rank in places) / len(evidence)
        for cutoff in CUTOFFS
    }
    first = places[0] if places else None
    return {
        **found,
        "hit@10": float(first is not None and first <= 10),
        "mrr": 1.0 / first if first is not None else 0.0,
    }


def load(service: MemoryService, conversation: Conversation) -> None:
    """Remember the turns of a conversation in an orchestrator of its name.

    Raises:
        InvalidInput: a turn was rejected.
    """
    memory = service.orchestrator(conversation.name, create=True)
    outcomes = memory.remember_many(conversation.turns)
    rejected = [each for each in outcomes if each.memory_id is None]
    if rejected:
        raise InvalidInput(f"a turn was rejected: {rejected[0].message}")
    memory.settle()


def ask(service: MemoryService, conversation: Conversation) -> Iterator[Scored]:
    """Ask all questions of a loaded conversation: the category and the measures of each."""
    memory = service.orchestrator(conversation.name)
    for asked in conversation.questions:
        bundle = memory.recall(asked.text, top_n=max(CUTOFFS))
        ranked = [item.memory.turn_id or "" for item in bundle.items]
        yield asked.category, score(ranked, asked.evidence)


def _plain(conversation: Conversation) -> Iterator[tuple[Asked, dict[str, list[str]]]]:
    """Yield of every question the turn ids that each plain search finds."""
    turns = conversation.turns
    with PlainSearch([f"{each.source_role}: {each.content}" for each in turns]) as plain:
        for asked in conversation.questions:
            found = plain.search(asked.text)
            yield (
                asked,
                {
                    name: [turns[at].turn_id or "" for at in places[: max(CUTOFFS)]]
                    for name, places in found.items()
                },
            )


def _conversation(name: str, sample: Mapping[str, Any]) -> Conversation:
    said = sample["conversation"]
    sessions = sorted(
        (int(match[1]), turns)
        for key, turns in said.items()
        if (match := _SESSION.fullmatch(key)) and turns
    )
    turns = tuple(
        _turn(name, session, place, turn, _time(said[f"session_{session}_date_time"]))
        for session, each in sessions
        for place, turn in enumerate(each)
    )
    known = {turn.turn_id for turn in turns}
    questions = []
    for each in sample["qa"]:
        evidence = evidence_ids(each.get("evidence") or ()) & known
        if evidence:
            category = CATEGORIES[each["category"]]
            answer = str(each.get("answer", ""))
            questions.append(Asked(str(each["question"]), frozenset(evidence), category, answer))
    return Conversation(name, turns, tuple(questions))


def _turn(name: str, session: int, place: int, turn: Mapping[str, Any], at: int) -> MemoryInput:
    content = str(turn["text"])
    if turn.get("blip_caption"):
        content += f" [shares {turn['blip_caption']}]"
    return MemoryInput(
        content=content,
        kind=MemoryKind.EPISODE,
        type=MemoryType.OBSERVATION,
        session_id=f"session-{session}",
        sequence=place,
        turn_id=str(turn["dia_id"]),
        source_role=str(turn["speaker"]),
        event_time=at,
        source=Source(
            source_type=SourceType.CHANNEL_TRANSCRIPT,
            conversation_id=name,
            captured_by=CapturedBy.SYSTEM,
        ),
    )


def _time(told: str) -> int:
    return parse_time(datetime.strptime(told, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC))


def _means(scores: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    names = [*(f"recall@{cutoff}" for cutoff in CUTOFFS), "hit@10", "mrr"]
    count = len(scores)
    means = {name: sum(each[name] for each in scores) / count if count else 0.0 for name in names}
    return {**{name: round(value, 4) for name, value in means.items()}, "questions": count}
