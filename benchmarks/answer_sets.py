"""Talks with questions about them, in three forms, as ``memgraph bench answers`` asks them.

LoCoMo's JSON (see `benchmarks.locomo`; adversarial questions have no right answer and are left
out), retrieval sets (see `benchmarks.retrieval`; a question may have an ``answer``), and talks in
which facts change: JSON Lines, one talk a line: ``talk``, ``sessions`` (``session``, ``at`` as ISO
time, ``turns``: ``speaker``, ``text``), ``questions`` (``text``, ``current`` and ``old``: the turns
that hold what holds now and what held before, ``answer``). A turn is named ``s2:t5``: the fifth of
the session ``s2``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import locomo, retrieval
from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.values import EpisodeInput, MemoryInput

CHANGES: Final = "changes"
"""The category of questions about what has changed."""
ADVERSARIAL: Final = "adversarial"


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a talk.

    Attributes:
        evidence: names of the turns that hold the answer, at least one.
        old: names of turns that hold what the answer was before.
        answer: the right answer; empty: not known.
    """

    text: str
    category: str
    evidence: frozenset[str]
    answer: str = ""
    old: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Talk:
    """Turns or documents, in order of time, with their names and the questions about them."""

    name: str
    names: tuple[str, ...]
    turns: tuple[MemoryInput, ...]
    questions: tuple[Question, ...]

    @property
    def sessions(self) -> list[str]:
        return list(dict.fromkeys(turn.session_id for turn in self.turns if turn.session_id))


def read(file: Path, limit: int | None = None) -> list[Talk]:
    """Return the talks of a file that have questions with evidence.

    Args:
        limit: the first so many questions of each talk alone.

    Raises:
        InvalidInput: the file has none of the three forms, or no question with evidence.
    """
    talks = [
        Talk(talk.name, talk.names, talk.turns, talk.questions[:limit])
        for talk in _talks(file)
        if talk.questions
    ]
    if not talks:
        raise InvalidInput(f"no question of {file} has evidence", path=str(file))
    return talks


def _talks(file: Path) -> Iterator[Talk]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {file}", path=str(file)) from error
    if text.lstrip().startswith("["):
        yield from map(_conversation, locomo.read(file))
        return
    try:
        first = json.loads(text.splitlines()[0])
        changes = "sessions" in first
    except (ValueError, LookupError, TypeError) as error:
        raise InvalidInput(f"{file} holds no talks with questions", path=str(file)) from error
    if not changes:
        yield from map(_store, retrieval.read(file))
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield _changing(json.loads(line))
        except (ValueError, LookupError, TypeError) as error:
            raise InvalidInput(
                f"line {number} of {file} is no talk in which facts change: {error}", path=str(file)
            ) from error


def _conversation(conversation: locomo.Conversation) -> Talk:
    questions = tuple(
        Question(asked.text, asked.category, asked.evidence, asked.answer)
        for asked in conversation.questions
        if asked.category != ADVERSARIAL
    )
    turns = tuple(
        EpisodeInput.model_validate(turn.model_dump(exclude_unset=True))
        for turn in conversation.turns
    )
    return Talk(conversation.name, tuple(each.turn_id or "" for each in turns), turns, questions)


def _store(store: retrieval.Store) -> Talk:
    units = store["units"]
    names = tuple(str(unit["id"]) for unit in units)
    known = frozenset(names)
    questions = tuple(
        Question(str(asked["text"]), str(asked["category"]), evidence, str(asked.get("answer", "")))
        for asked in store["questions"]
        if (evidence := known & asked["gold"].keys())
    )
    turns = tuple(retrieval.as_input(unit) for unit in units)
    return Talk(str(store["store"]), names, turns, questions)


def _changing(talk: Mapping[str, Any]) -> Talk:
    """Raises ValueError, LookupError or TypeError: the talk is not of this form."""
    turns: list[EpisodeInput] = []
    for session in talk["sessions"]:
        at = parse_time(session["at"])
        for place, turn in enumerate(session["turns"]):
            turns.append(
                EpisodeInput(
                    content=turn["text"],
                    session_id=str(session["session"]),
                    sequence=place,
                    turn_id=f"{session['session']}:t{place + 1}",
                    source_role=turn["speaker"],
                    event_time=at,
                )
            )
    names = tuple(each.turn_id or "" for each in turns)
    questions = tuple(
        Question(
            str(asked["text"]),
            str(asked.get("category", CHANGES)),
            _known(asked["current"], names),
            str(asked.get("answer", "")),
            _known(asked.get("old", ()), names),
        )
        for asked in talk["questions"]
    )
    if not all(question.evidence for question in questions):
        raise ValueError("a question has no current turn")
    return Talk(str(talk["talk"]), names, tuple(turns), questions)


def _known(references: Sequence[str], names: Sequence[str]) -> frozenset[str]:
    unknown = set(references).difference(names)
    if isinstance(references, str) or unknown:
        raise ValueError(f"no turn {sorted(unknown)[:3]}")
    return frozenset(references)
