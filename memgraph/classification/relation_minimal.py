"""Two statements that are one but for a single value, or for a "not": both cannot hold at once.

The learned head was trained on paraphrases, and is unsure of the plainest case: the same sentence
with another figure in it. Here the words are laid side by side; what differs has to be one slot
that holds a value of its subject, in a statement of how things are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

from memgraph.classification.relation_lexicon import COLOURS, MONTHS, words
from memgraph.classification.relation_literals import FIGURES, one_literal, other_literals
from memgraph.classification.relation_tokens import Token, tokenize
from memgraph.classification.relation_units import SMALL
from memgraph.model.enums import Relation

ONE_VALUE: Final = "one_value_differs"
ONE_NEGATION: Final = "one_negation_differs"
MINIMAL: Final = frozenset({ONE_VALUE, ONE_NEGATION})

_MOST_WORDS: Final = 40
_MOST_IN_SLOT: Final = 3
_LEAST_SHARED: Final = 3
_TOLD: Final = re.compile(
    r"^(?:we|i|they|the user|[A-Z][\w'-]*) (?:have |has |'ve )?"
    r"(?:decided|agreed|confirmed|said|learnt|learned) that ",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(r"\d+(?:[.,:]\d+)*(?:am|pm|k|m|%)?")
_BE: Final = words("is are 's 're am")
_NOW: Final = _BE | words(
    "be may must can cannot will has have does do should needs i we they you i'm i'll we'll it's"
)
_VERBS: Final = _BE | words(
    "be may must can cannot will has have does do should needs need costs takes keep lend open"
    " close run cost take own serve employ store hold charge pay allow"
)
_TO_A_DAY: Final = words("on at due the until by for set a till not")
_PAST: Final = words(
    "was were had did been went came bought sold took gave made got saw met ate drank wrote spoke "
    "sent spent lost won found left built broke chose flew grew fell held paid sat stood wore drew "
    "knew began became forgot said told thought brought caught taught ran swam rose"
)
_ONE_OF_A_KIND: Final = words(
    "name surname nickname manager boss wife husband mother father birthplace hometown capital"
    " employer owner landlord author ceo director captain address birthday age nationality"
    " password pin deadline passphrase email mail phone number colour color limit price fee rent"
    " deposit size height weight title status version provider supplier bank doctor dentist"
)
# What one has one of at a time: a home, an employer, somebody to report to.
_ONE_AT_A_TIME: Final = frozenset(
    {
        ("live", "in"), ("lives", "in"), ("reside", "in"), ("resides", "in"), ("work", "at"),
        ("works", "at"), ("work", "for"), ("works", "for"), ("report", "to"), ("reports", "to"),
        ("born", "in"), ("based", "in"), ("located", "in"), ("hosted", "in"), ("hosted", "on"),
        ("is", "called"), ("is", "named"),
    }
)  # fmt: skip
_NEGATIVE_FORMS: Final = {
    "don't": "do", "doesn't": "do", "didn't": "do", "isn't": "is", "aren't": "are",
    "wasn't": "was", "weren't": "were", "can't": "can", "cannot": "can", "won't": "will",
    "hasn't": "has", "haven't": "have", "hadn't": "had", "couldn't": "could",
    "shouldn't": "should", "wouldn't": "would", "mustn't": "must",
}  # fmt: skip
_SUPPORT: Final = words("do does did")
# Said of the present against the past: the later statement replaces the earlier one.
_CHANGED: Final = words("now currently nowadays anymore")
_CHANGE: Final = re.compile(r"\b(?:now|currently|nowadays|anymore) ", re.IGNORECASE)
_NO_LONGER: Final = re.compile(r"\b(?:no longer|not any ?more|not any longer)\b", re.IGNORECASE)
# Where the statements speak of other things, places or times, nothing is contradicted.
_OTHERWISE: Final = (
    "tag_conflict", "version_conflict", "year_conflict", "environment_differs",
    "weekday_differs", "bound_differs", "correction_b", "open_then_done",
)  # fmt: skip


def minimal_pair(earlier: str, later: str, row: Mapping[str, float]) -> tuple[Relation, str] | None:
    """How two statements relate that differ in one place, and a code; None: words do not tell.

    Args:
        row: the features of the pair (``relation_features``).
    """
    if any(row[name] > 0 for name in _OTHERWISE):
        return None
    a, before = _plain(earlier)
    b, after = _plain(later)
    if not _LEAST_SHARED < max(len(a), len(b)) <= _MOST_WORDS:
        return None
    code = ONE_NEGATION if _one_negation(a, b) else ONE_VALUE if _one_value(a, b) else None
    if code == ONE_VALUE and other_literals(earlier, later, FIGURES):
        # No amount: of addresses and versions a thing may have several (``literal_pair``).
        return None
    if code is None or before:
        return None
    return (Relation.UPDATES if after else Relation.CONTRADICTS), code


def literal_pair(earlier: str, later: str) -> tuple[Relation, str] | None:
    """The same of statements that differ in an address, a version, a host or a mail address, and
    which of them."""
    a, b = (_TOLD.sub("", text) for text in (earlier, later))
    kind = one_literal(_CHANGE.sub("", a), _CHANGE.sub("", b))
    if kind is None or _CHANGE.search(a):
        return None
    return (Relation.UPDATES if _CHANGE.search(b) else Relation.CONTRADICTS), kind


def _plain(text: str) -> tuple[list[Token], bool]:
    """The words of a statement, and whether it tells of a change ("now", "no longer")."""
    told = _NO_LONGER.sub("not", _TOLD.sub("", text))
    tokens = tokenize(told)
    left = [token for token in tokens if token.low not in _CHANGED]
    return left, len(left) < len(tokens) or told.count("not") > text.count("not")


def _one_negation(a: Sequence[Token], b: Sequence[Token]) -> bool:
    (said, nots), (unsaid, other_nots) = _without_not(a), _without_not(b)
    return abs(nots - other_nots) == 1 and min(nots, other_nots) == 0 and said == unsaid


def _without_not(tokens: Sequence[Token]) -> tuple[list[str], int]:
    """The stems without "not" and the "do" that it asks for; how many there were."""
    left, count = [], 0
    for token in tokens:
        plain = _NEGATIVE_FORMS.get(token.low)
        count += plain is not None or token.low == "not"
        if token.low == "not" or token.low in _SUPPORT or plain == "do":
            continue
        left.append(plain or token.stem)
    return left, count


def _one_value(a: Sequence[Token], b: Sequence[Token]) -> bool:
    edits = [
        edit
        for edit in SequenceMatcher(
            None, [token.stem for token in a], [token.stem for token in b], autojunk=False
        ).get_opcodes()
        if edit[0] != "equal"
    ]
    if len(edits) != 1 or edits[0][0] != "replace":
        return False
    _, start, end, other_start, other_end = edits[0]
    slots = a[start:end], b[other_start:other_end]
    before, behind = a[:start], a[end:]
    if max(map(len, slots)) > _MOST_IN_SLOT or len(before) + len(behind) < _LEAST_SHARED:
        return False
    verb = _verb(before)
    # What stands before the verb names the thing: "server 3", "ticket 13".
    if verb is None or not _is_state([*before, *behind]):
        return False
    if all(_is_figure(token) for slot in slots for token in slot):
        return not _is_day(before[verb + 1 :], behind)
    if before[-1].low in _BE and all(len(slot) == 1 and slot[0].low in COLOURS for slot in slots):
        return True
    if not _takes_one(before):
        return False
    named = all(token.text[0].isupper() for slot in slots for token in slot)
    single = all(len(slot) == 1 for slot in slots)
    return named or single


def _verb(before: Sequence[Token]) -> int | None:
    """Where the verb of a statement stands, as far as words tell."""
    for at, token in enumerate(before):
        if token.low in _VERBS or (at and _is_s_form(token)):
            return at
    return None


def _is_s_form(token: Token) -> bool:
    return (
        token.low.endswith("s")
        and not token.low.endswith(("'s", "ss"))
        and token.stem != token.low
        and not token.text[0].isupper()
    )


def _is_day(between: Sequence[Token], behind: Sequence[Token]) -> bool:
    """Whether a figure is a day on which something is so, and not the day that is told of:
    "in the office on 3 March" against "due on 3 March"."""
    months = {token.low for token in (*between[-1:], *behind[:1])} & MONTHS.keys()
    return bool(months) and any(token.low not in _TO_A_DAY for token in between)


def _is_figure(token: Token) -> bool:
    return _FIGURE.fullmatch(token.low) is not None or token.low in SMALL


def _is_state(rest: Sequence[Token]) -> bool:
    """Whether a statement tells how things are, not what once happened."""
    lows = [token.low for token in rest]
    if any(low in _PAST for low in lows):
        return False
    if any(
        # "shed" is no past of anything; "is kept", "is limited" tell how things are.
        token.low.endswith("ed")
        and token.stem != token.low
        and (at == 0 or lows[at - 1] not in _NOW)
        for at, token in enumerate(rest)
    ):
        return False
    return any(low in _NOW or low in _VERBS for low in lows) or any(map(_is_s_form, rest))


def _takes_one(before: Sequence[Token]) -> bool:
    """Whether what follows is the one value that its subject has: "lives in", "her manager is"."""
    lows = tuple(token.low for token in before)
    if lows[-2:] in _ONE_AT_A_TIME:
        return True
    # "One of the founders is", "a friend is": there may be others.
    if lows[-1] not in _BE or lows[0] in ("one", "a", "an") or len(lows) < 3:
        return False
    return lows[-2] in _ONE_OF_A_KIND or "favourite" in lows or "favorite" in lows
