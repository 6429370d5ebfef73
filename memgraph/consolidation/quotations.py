"""Facts from the turns of a conversation without a model: quotations, chosen by rules.

A fact is a sentence as it was said, with its speaker and the day: ``Ann: “I live in Oslo.”
(2024-01-10)``. Nothing is rephrased, joined or inferred; what the rules are unsure of stays in its
turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from memgraph.consolidation.agent_tools import PageTurn
from memgraph.consolidation.clauses import MAX_TURN_CHARS
from memgraph.consolidation.ports import FactCandidate
from memgraph.consolidation.sentence_rules import ClauseVerdict, SentenceKey, facts_of
from memgraph.model.conversation import AGENTS, PERSONS, SpeakerRole, voice_of
from memgraph.model.defaults import DEFAULT_IMPORTANCE
from memgraph.model.enums import MemoryType
from memgraph.relations.statement import quote

MAX_CONFIDENCE: Final = 0.7
AGENT_CONFIDENCE: Final = 0.45
# What an agent writes at length is advice, or a letter in the user's name; a short turn may say
# what it has done.
MAX_REPORT_CHARS: Final = 600
MAX_SPEAKER_CHARS: Final = 60
_PLAIN: Final = frozenset({MemoryType.FACT, MemoryType.EVENT})
# A name is called by its beginning too: "Mel" for Melanie.
_SHORTENED: Final = (3, 4)


# Capitals within a sentence.
_NAMED: Final = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")


class _Found(NamedTuple):
    score: int
    fact: FactCandidate


class RuleExtractor:
    """Reads pages of turns. It has no state; instances may be shared by threads."""

    def extract(self, turns: Sequence[PageTurn], *, limit: int) -> list[FactCandidate]:
        """Return at most ``limit`` facts, the most telling, in the order they were said."""
        return self.extract_some(turns, limit=limit)[0]

    def extract_some(
        self, turns: Sequence[PageTurn], *, limit: int
    ) -> tuple[list[FactCandidate], int]:
        """Return what ``extract`` returns, and the number of facts that were left out."""
        ordered: list[_Found] = []
        gists: dict[str, list[tuple[int, SentenceKey]]] = {}
        for quotation in _quotations(turns):
            speaker = str(quotation.fact.attributes["speaker"])
            earlier_keys, key = gists.setdefault(speaker, []), SentenceKey.of(quotation.fact.quote)
            # A decision or a goal is more than a fact in the same words.
            alike = {quotation.fact.type} | (
                {*MemoryType} if quotation.fact.type in _PLAIN else set()
            )
            at = next(
                (
                    at
                    for at, earlier in earlier_keys
                    if ordered[at].fact.type in alike and key.repeats(earlier)
                ),
                None,
            )
            if at is None:
                earlier_keys.append((len(ordered), key))
                ordered.append(quotation)
                continue
            earlier_quotation = ordered[at]
            evidence = dict.fromkeys((*earlier_quotation.fact.evidence, *quotation.fact.evidence))
            ordered[at] = _Found(
                earlier_quotation.score, replace(earlier_quotation.fact, evidence=tuple(evidence))
            )
        best = sorted(range(len(ordered)), key=lambda at: (-ordered[at].score, at))[:limit]
        return [ordered[at].fact for at in sorted(best)], len(ordered) - len(best)


def speaker_of(role: str) -> str:
    """Return how a speaker is written before a quotation: the name, or the role in lower case."""
    name = " ".join("".join(" " if char in ":“”" else char for char in role).split())
    name = name[:MAX_SPEAKER_CHARS].rstrip()
    if name.casefold() in AGENTS | PERSONS or name.casefold() == "customer":
        return name.casefold()
    return name.capitalize() if name.isalpha() and name.islower() else name


def _quotations(turns: Sequence[PageTurn]) -> Iterator[_Found]:
    """Yield the sentences of turns that are facts, in the order they were said."""
    speakers = _names(turns)
    names = frozenset(
        name for turn in turns for name in _NAMED.findall(turn.content[:MAX_TURN_CHARS])
    )
    for turn in turns:
        voice = voice_of(turn.source_role, turn.told_as)
        drafted = voice is SpeakerRole.AGENT and len(turn.content) > MAX_REPORT_CHARS
        if voice is SpeakerRole.SILENT or drafted:
            continue
        acquainted = turn.source_role.casefold() not in PERSONS
        for quoted, judged in facts_of(
            turn.content, speakers=speakers, voice=voice, acquainted=acquainted, names_around=names
        ):
            yield _Found(judged.score, _fact(turn, quoted, judged, voice))


def _names(turns: Sequence[PageTurn]) -> frozenset[str]:
    """Return the names by which those who talk call each other."""
    names = {speaker_of(turn.source_role) for turn in turns}
    firsts = {name.split()[0] for name in names if name}
    short = {first[:size] for first in firsts for size in _SHORTENED if len(first) > size + 1}
    return frozenset(call_name for call_name in names | firsts | short if call_name[:1].isupper())


def _fact(
    turn: PageTurn, sentence: str, judged: ClauseVerdict, voice: SpeakerRole
) -> FactCandidate:
    confidence = MAX_CONFIDENCE if judged.own or judged.type is MemoryType.DECISION else 0.6
    if voice is SpeakerRole.AGENT:
        confidence = AGENT_CONFIDENCE
    return FactCandidate(
        content=quote(speaker_of(turn.source_role), sentence, turn.day),
        type=judged.type,
        importance=DEFAULT_IMPORTANCE[judged.type],
        confidence=confidence,
        event_time=turn.at_ms if turn.dated else None,
        evidence=(turn.memory_id,),
        quote=sentence,
        attributes={"speaker": turn.source_role, "quote": sentence},
    )
