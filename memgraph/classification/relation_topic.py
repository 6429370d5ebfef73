"""Whether two statements speak of the same thing, and of the same attribute of it.

What is stored beside a new statement mostly shares a word with it and nothing more: another person
of the same surname, another room of the house, another fact about the same team. Two names that
share a part and differ in another ("Ada Byron" and "Ada Lorne"), or two modifiers of one head ("the
upper field", "the walled field"), tell two things apart. What is left of each statement beside the
words of the thing must meet somewhere: in a word, in words of like meaning, or in two values of one
kind; else they are two facts about one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from memgraph.classification import relation_lexicon as lexicon
from memgraph.classification.relation_frame import NOT_NAMES, VERBISH, Frame
from memgraph.classification.relation_kinds import exclude, opposed
from memgraph.classification.relation_tokens import Token, concepts, is_code
from memgraph.classification.relation_units import SMALL
from memgraph.classification.relation_values import Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memgraph.classification.relation_features import Vectors

_DEFINITE: Final = lexicon.words("the our my your his her their its this that these those")
_OF: Final = lexicon.words("of for about")
_BEARERS: Final = lexicon.words(
    "project product team service server host app application repository repo customer client "
    "supplier company vendor branch campaign colleague neighbour"
)
_STRONG: Final = 2
_CUES: Final = lexicon.words("scratch correction sorry nowadays longer instead meanwhile anymore")
_LONGEST: Final = 4
"""A noun phrase is read up to this many words after its determiner."""
_LONGEST_GAP: Final = 2
_NEAR: Final = 0.9


class _Run(NamedTuple):
    """Neighbouring words that make one name; ``anchor`` above 0: it most likely names what is
    spoken of rather than a value, the more the greater."""

    stems: tuple[str, ...]
    anchor: int


_Span: TypeAlias = tuple[int, int]


def topic_features(a: Frame, b: Frame, vectors: Vectors) -> dict[str, float]:
    """Evidence about thing and attribute, each in 0..1 but for counts.

    ``other_name``, ``other_modifier``: the two things are told apart; ``thing_words``: words of
    the longest phrase that both share; ``slot_word``, ``slot_name``: the best likeness of a word,
    or of a name, of one to one of the other outside that phrase; ``slot_value``: two figures,
    dates, opposites or members of a kind that exclude one another are read elsewhere;
    ``slot_hits``: how many words outside it stand in both.
    """
    names_a, names_b = _name_runs(a), _name_runs(b)
    thing = _thing(a, b)
    rest_a, rest_b = _rest(a, thing), _rest(b, thing)
    words_a, words_b = ([t for t in rest if t.stem not in f.names]
                        for rest, f in ((rest_a, a), (rest_b, b)))  # fmt: skip
    called_a = [t for t in rest_a if t.stem in a.names and t.stem not in b.names]
    called_b = [t for t in rest_b if t.stem in b.names and t.stem not in a.names]
    hits = {t.stem for t in rest_a if t.low not in lexicon.LIGHT} & {t.stem for t in rest_b}
    return {
        "other_name": float(_other_name(names_a, names_b)),
        "other_anchor": float(_other_anchor(names_a, names_b)),
        "other_modifier": float(_other_modifier(_phrases(a), _phrases(b))),
        "thing_words": float(min(len(thing), 4)),
        "thing_named": float(bool(thing & (a.names | b.names))),
        "thing_none": float(not thing),
        "slot_word": _likeness(words_a, words_b, vectors),
        "slot_name": _likeness(called_a, called_b, vectors),
        "slot_hits": float(min(len(hits), 4)),
        "slot_values": float(_same_sort(a.values, b.values)),
        "slot_kind": float(any(exclude(x.stem, y.stem) or opposed(x, y)
                               for x in rest_a for y in rest_b)),
        "rest_a": float(min(len(rest_a), 8)), "rest_b": float(min(len(rest_b), 8)),
    }  # fmt: skip


def _name_runs(frame: Frame) -> list[_Run]:
    """Names of one word or more, with a capital at the beginning of a sentence taken for one
    where another capital follows."""
    if frame.language == "de":
        return []
    runs: list[_Run] = []
    tokens = frame.tokens
    at = 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and _joins(frame, tokens, at, end):
            end += 1
        if end == at + 1 and tokens[at].initial and tokens[at].stem not in frame.names:
            end = at
        if end > at:
            stems = tuple(t.stem for t in tokens[at:end])
            runs.append(_Run(stems, _anchor(tokens, at)))
        at = max(end, at + 1)
    return runs


def _joins(frame: Frame, tokens: Sequence[Token], start: int, at: int) -> bool:
    token = tokens[at]
    if token.low in lexicon.STOP or token.low in NOT_NAMES:
        return False
    if at == start and token.low in SMALL:
        return False
    if token.low in lexicon.MONTHS or token.low in lexicon.WEEKDAYS:
        return False
    if token.clause != tokens[start].clause:
        return False
    return token.text[0].isupper() or is_code(token.text) or token.stem in frame.names


def _anchor(tokens: Sequence[Token], at: int) -> int:
    """2 behind "of", "for" or "about", with a common noun between at the most ("of project
    Heron"); 1 at the beginning of the statement or behind a noun that bears names; else 0."""
    before = at - 1
    while before >= 0 and tokens[before].low in _DEFINITE:
        before -= 1
    if before < 0:
        return 1
    if before > 0 and tokens[before].low not in lexicon.STOP and tokens[before - 1].low in _OF:
        before -= 1
    if tokens[before].low in _OF:
        return 2
    return int(tokens[before].low in _BEARERS)


def _other_name(left: Sequence[_Run], right: Sequence[_Run]) -> bool:
    """Whether a name of each shares a word with the other's and differs in another."""
    same = any(set(x.stems) <= set(y.stems) or set(y.stems) <= set(x.stems)
               for x in left for y in right)  # fmt: skip
    for x in left:
        for y in right:
            one, two = set(x.stems), set(y.stems)
            if one & two and one - two and two - one and (not same or x.anchor or y.anchor):
                return True
    return False


def _other_anchor(left: Sequence[_Run], right: Sequence[_Run]) -> bool:
    """Whether each names what it speaks of, and neither names the other's. Where both do so
    behind "of" or "for", these alone are compared: "Ada is the boss of Bert" and "the boss of
    Carl is Ada" speak of two persons."""
    strong = all(any(run.anchor == _STRONG for run in runs) for runs in (left, right))
    if strong:
        one, two = (_stems(runs, _STRONG) for runs in (left, right))
        return not one & _stems(right, 1) and not two & _stems(left, 1)
    one, two = _stems(left, 1), _stems(right, 1)
    return bool(one and two) and not one & _stems(right, 0) and not two & _stems(left, 0)


def _stems(runs: Sequence[_Run], least: int) -> set[str]:
    return {stem for run in runs if run.anchor >= least for stem in run.stems}


def _phrases(frame: Frame) -> list[tuple[Token, ...]]:
    """What follows a definite determiner, up to the next function word: modifiers, head, and now
    and then the verb behind it."""
    found = []
    for at, token in enumerate(frame.tokens):
        if token.low not in _DEFINITE and not token.low.endswith("'s"):
            continue
        end = at + 1
        while (
            end < len(frame.tokens)
            and end - at <= _LONGEST
            and frame.tokens[end].clause == token.clause
            and frame.tokens[end].low not in lexicon.STOP
        ):
            end += 1
        if end > at + 2:
            found.append(frame.tokens[at + 1 : end])
    return found


def _other_modifier(left: Sequence[tuple[Token, ...]], right: Sequence[tuple[Token, ...]]) -> bool:
    """Whether a phrase of each has the other's head behind modifiers of its own, and no phrase
    stands in both."""
    told = [_compared(x, y) for x in left for y in right]
    return any(each is False for each in told) and not any(each is True for each in told)


def _compared(left: tuple[Token, ...], right: tuple[Token, ...]) -> bool | None:
    """True: one phrase with the same modifiers; False: one head, other modifiers; None: neither."""
    stems = [t.stem for t in right]
    matched, last_i, last_j = 0, -1, -1
    for i, token in enumerate(left):
        if token.stem not in stems[last_j + 1 :]:
            continue
        j = stems.index(token.stem, last_j + 1)
        gap = left[last_i + 1 : i], right[last_j + 1 : j]
        if all(0 < len(words) <= _LONGEST_GAP for words in gap) and not _same_gap(*gap):
            return False
        if not gap[0] and not gap[1]:
            matched += 1
        last_i, last_j = i, j
    return True if matched >= 2 else None


def _same_gap(left: Sequence[Token], right: Sequence[Token]) -> bool:
    both = (*left, *right)
    plain = VERBISH | lexicon.NEGATORS | lexicon.LIGHT
    if any(t.low in plain or t.text[0].isdigit() for t in both):
        return True
    return any(concepts(x.stem) & concepts(y.stem) for x in left for y in right)


def _same_sort(a: Values, b: Values) -> bool:
    """Whether both give a clock time, a date, a version, or an amount of one dimension."""
    dimensions = {q.dimension for q in a.quantities} & {q.dimension for q in b.quantities}
    return bool(
        dimensions or (a.clocks and b.clocks) or (a.dates and b.dates)
        or (a.versions and b.versions)
    )  # fmt: skip


def _thing(a: Frame, b: Frame) -> frozenset[str]:
    """Stems of the phrase that most likely names what both speak of: a name and what stands with
    it, else the longest run of words that is in both."""
    best: tuple[int, int, frozenset[str]] = (0, 0, frozenset())
    for i in range(len(a.tokens)):
        for j in range(len(b.tokens)):
            length = 0
            while (
                i + length < len(a.tokens)
                and j + length < len(b.tokens)
                and a.tokens[i + length].stem == b.tokens[j + length].stem
                and _is_content(a.tokens[i + length])
                and a.tokens[i + length].clause == a.tokens[i].clause
            ):
                length += 1
            if length:
                stems = frozenset(t.stem for t in a.tokens[i : i + length])
                rank = (int(bool(stems & a.names & b.names)), length)
                if rank > best[:2]:
                    best = (*rank, stems)
    return best[2]


def _is_content(token: Token) -> bool:
    low = token.low
    return low not in lexicon.STOP and low not in lexicon.NEGATORS and low not in _CUES


def _rest(frame: Frame, thing: frozenset[str]) -> list[Token]:
    return [
        t for t in frame.tokens
        if t.stem not in thing and _is_content(t) and not t.text[0].isdigit()
    ]  # fmt: skip


def _likeness(left: Sequence[Token], right: Sequence[Token], vectors: Vectors) -> float:
    """The greatest likeness of two words; words that are in nearly every statement don't count."""
    one = [t for t in left if t.low not in lexicon.LIGHT and vectors.has(t.low)]
    two = [t for t in right if t.low not in lexicon.LIGHT and vectors.has(t.low)]
    if not one or not two:
        return 0.0
    if {t.stem for t in one} & {t.stem for t in two}:
        return 1.0
    if any(concepts(x.stem) & concepts(y.stem) for x in one for y in two):
        return _NEAR
    rows: NDArray[np.float32] = vectors.rows([t.low for t in one]) @ (
        vectors.rows([t.low for t in two]).T
    )
    return float(np.clip(rows.max(), 0.0, 1.0))
