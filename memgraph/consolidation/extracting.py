"""Facts from the turns of a conversation, by rules and the type classifier alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from memgraph.consolidation.answers import joined_answer
from memgraph.consolidation.cutting import Addressed, cut_turn
from memgraph.consolidation.dating import Dated, annotate, find_dates
from memgraph.consolidation.leaving import has_verb, is_left_out
from memgraph.consolidation.speakers import Speaker, other_of, speaker_of
from memgraph.consolidation.standalone import first_person, resolve, second_person, we
from memgraph.consolidation.statements import KIN, subject_of
from memgraph.consolidation.turns import Turn
from memgraph.consolidation.weighing import confidence_of, tense, weigh
from memgraph.consolidation.words import ENGLISH, FOREIGN, Word, words_of
from memgraph.model.defaults import DEFAULT_IMPORTANCE
from memgraph.model.enums import MemoryType
from memgraph.policy.dedup import Sameness, compare

Classify: TypeAlias = "Callable[[Sequence[str]], Sequence[tuple[MemoryType | None, float]]]"
"""For each text its type (None: nothing to remember) and how likely that is, 0..1."""

# Below it a sentence is not worth a memory of its own.
MIN_SCORE: Final = 0.3
# Facts beyond so many are not counted where it is told how many were left out.
MAX_COUNTED: Final = 200


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A fact that may be remembered.

    Attributes:
        content: stands alone: who, what, when.
        type: never Identity.
        importance: 0..90.
        confidence: 0.1..0.7; at most 0.5 where an agent said it.
        event_time: midnight UTC of the day it tells of, in milliseconds, where it tells one.
        evidence: memory ids of the turns it rests on, the earliest first.
        quote: the sentence as it was said.
        attributes: ``speaker`` (the role), ``quote``, and ``form``: ``resolved`` (put in the third
            person), ``plain`` (as it was said, and it names no speaker) or ``verbatim`` (quoted).
    """

    content: str
    type: MemoryType
    importance: int
    confidence: float
    event_time: int | None
    evidence: tuple[str, ...]
    quote: str
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Said:
    """A sentence that may become a fact."""

    turn: Turn
    speaker: Speaker
    other: Speaker | None
    quote: str
    text: str
    words: tuple[Word, ...]
    evidence: tuple[str, ...]
    joined: bool = False


class RuleExtractor:
    """Reads a page of turns. Instances may be shared by threads if ``classify`` may.

    Args:
        classify: the type classifier, called once per page.
    """

    def __init__(self, classify: Classify) -> None:
        self._classify = classify

    def extract(
        self, turns: Sequence[Turn], *, before: Sequence[Turn] = (), limit: int
    ) -> list[FactCandidate]:
        """At most ``limit`` facts of ``turns``, the most telling, in the order they were said.

        ``before``: turns before the page, read for what they say of it, never evidence.
        """
        return self.extract_some(turns, before=before, limit=limit)[0]

    def extract_some(
        self, turns: Sequence[Turn], *, before: Sequence[Turn] = (), limit: int
    ) -> tuple[list[FactCandidate], int]:
        """What ``extract`` gives, and how many were left out, counted to ``MAX_COUNTED``."""
        said = list(_sentences(turns, before))
        guesses = self._classify([each.text for each in said]) if said else ()
        found = [
            made for each, guess in zip(said, guesses, strict=True) if (made := _fact(each, guess))
        ]
        order = sorted(range(len(found)), key=lambda at: (-found[at][0], at))
        chosen: dict[int, FactCandidate] = {}
        for at in order:
            same = next((one for one in chosen if _alike(chosen[one], found[at][1])), None)
            if same is not None:
                chosen[same] = _merged(chosen[same], found[at][1], turns)
            elif len(chosen) < max(limit, MAX_COUNTED):
                chosen[at] = found[at][1]
        # They were chosen in the order of their worth.
        kept = sorted(list(chosen)[:limit])
        return [chosen[at] for at in kept], len(chosen) - len(kept)


def _sentences(turns: Sequence[Turn], before: Sequence[Turn]) -> Iterable[_Said]:
    roles = [turn.source_role for turn in (*before, *turns)]
    told = {turn.source_role: turn.told_as for turn in (*before, *turns)}
    speakers = {role: speaker_of(role, told[role]) for role in roles}
    others = {role: other_of(one, roles) for role, one in speakers.items() if one}
    names = Addressed(
        one.name.removeprefix("the ") for one in dict.fromkeys(speakers.values()) if one
    )
    previous = before[-1] if before else None
    ids = {turn.memory_id for turn in turns}
    for turn in turns:
        speaker = speakers[turn.source_role]
        if speaker is None:
            continue
        other = others[turn.source_role]
        pieces = cut_turn(turn.content, names)
        whole = joined_answer(previous, turn, pieces) if previous and not speaker.agent else None
        if whole and previous:
            sources = tuple(each.memory_id for each in (previous, turn) if each.memory_id in ids)
            words = tuple(words_of(whole.text))
            yield _Said(turn, speaker, other, whole.quote, whole.text, words, sources, joined=True)
        for piece in pieces:
            words = tuple(words_of(piece.text))
            if not is_left_out(piece.text, words, agent=speaker.agent):
                yield _Said(turn, speaker, other, piece.quote, piece.text, words, (turn.memory_id,))
        previous = turn


def _fact(
    said: _Said, guess: tuple[MemoryType | None, float]
) -> tuple[float, FactCandidate] | None:
    past = tense(said.words)
    dates = find_dates(said.text, said.turn.at_ms, past=past)
    foreign = _is_foreign(said.words)
    own = first_person(said.words) or we(said.words) or foreign
    if not own and second_person(said.words):
        return None
    if not foreign and not has_verb(said.words) and subject_of(said.text, said.words) is None:
        return None
    weighed = weigh(
        said.text,
        said.words,
        guess,
        dated=bool(dates),
        past=past,
        own=own,
        agent=said.speaker.agent,
    )
    # Somebody asked for it.
    least = MIN_SCORE / 2 if said.joined else MIN_SCORE
    if weighed is None or weighed.score < least:
        return None
    content, form = _written(said, dates)
    days = [each.day for each in dates if each.day is not None]
    fact = FactCandidate(
        content=content,
        type=weighed.type,
        importance=DEFAULT_IMPORTANCE[weighed.type],
        confidence=confidence_of(
            weighed.type, said.text, own=own, agent=said.speaker.agent, joined=said.joined
        ),
        event_time=days[0] if len(set(days)) == 1 else None,
        evidence=said.evidence,
        quote=said.quote,
        attributes={"speaker": said.speaker.role, "quote": said.quote, "form": form},
    )
    return weighed.score, fact


def _written(said: _Said, dates: list[Dated]) -> tuple[str, str]:
    """The content and how it was made."""
    text = annotate(said.text, dates)
    if we(said.words) or first_person(said.words) or second_person(said.words):
        if resolved := resolve(text, said.speaker, said.other):
            return resolved, "resolved"
        told = [
            f"{said.text[each.start : each.end]}: {each.told}" for each in dates if not each.written
        ]
        behind = f" ({'; '.join(told)})" if told else ""
        words = said.text if said.text.lower() in said.quote.lower() else said.quote
        return f"{said.speaker.head}: “{words}”{behind}", "verbatim"
    if _is_foreign(said.words) or said.words[0].lower.removesuffix("'s") in KIN:
        return f"{said.speaker.head}: “{said.quote}”", "verbatim"
    return text, "plain"


def _is_foreign(words: Sequence[Word]) -> bool:
    """Whether some words are of another language, and none is of English alone."""
    lowers = {word.lower for word in words}
    if lowers & ENGLISH:
        return False
    return bool(lowers & FOREIGN) or any(ord(word.lower[0]) > 0x24F for word in words)


def _alike(left: FactCandidate, right: FactCandidate) -> bool:
    return (
        left.attributes["speaker"] == right.attributes["speaker"]
        and compare(left.content, right.content) is not Sameness.DIFFERENT
    )


def _merged(kept: FactCandidate, again: FactCandidate, turns: Sequence[Turn]) -> FactCandidate:
    both = {*kept.evidence, *again.evidence}
    ordered = dict.fromkeys(turn.memory_id for turn in turns if turn.memory_id in both)
    return replace(kept, evidence=tuple(ordered))
