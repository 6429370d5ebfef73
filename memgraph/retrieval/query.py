"""What a question says: its terms, what kind of answer it asks for, the times it names.

Any text in, plain values out; nothing of it reaches SQL unquoted.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate

from memgraph.policy.stemming import fold, stem, words
from memgraph.storage.text_index import cjk_bigrams

MAX_TERMS = 32
# A longer query is read up to here: what a question asks for is said early.
MAX_READ_CHARS = 60_000
# Names are looked for in no more than this: rules for names cost more than those for words.
MAX_NAMING_CHARS = 4_000
MAX_CONSIDERED = 96
# The cost of the text leg is the number of rows that match; the rarest terms come first.
MAX_MATCHING_ROWS = 250_000
# The constants of BM25 that FTS5 uses.
BM25_K1, BM25_B = 1.2, 0.75
# How rare a word is weighs in relevance as in a store of at least so many memories.
FEWEST_WEIGHED = 1_000
# So many FTS5 ranks itself; of more, see ``many_matches``.
RANKED_AT_ONCE = 20_000
# Of a small store at most this share, but always so many: a question of real words stays below.
MATCHING_SHARE, ALWAYS_MATCHED = 0.5, 4_000

_STOP_WORDS = """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing done down during each ever few for from further
    get got had has have having he her here hers him his how i if in into is it its just kind like
    many me might more most much must my no nor not of off on once only or other our out over own s
    said same shall she should so some such t than that the their them then there these they this
    those through to too type under until up very was we were what when where which while who whom
    why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DATE = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{'|'.join(_MONTHS)})\b"
    r"(?:\s+(?P<day_after>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<year>(?:19|20)\d\d)\b)?"
    r"|\b(?P<lone_year>(?:19|20)\d\d)(?:-(?P<iso_month>\d\d)(?:-(?P<iso_day>\d\d))?)?\b",
    re.IGNORECASE,
)
_WHEN = re.compile(r"\b(?:when|how long|what (?:date|day|year|month|time))\b")
USER, ASSISTANT = "user", "assistant"
FIRST_PERSON = frozenset({"i", "my", "me", "mine", "we", "our", "us", "myself"})
_ADVISED = re.compile(
    r"\b(?:did|have|had|what|which|that) you\b.{0,30}\b(?:recommend|suggest|advise|propose|explain"
    r"|describe|mention|list|give|gave|tell|told|say|said)\w*|\byour (?:advice|suggestion|answer"
    r"|recommendation|explanation|list)s?\b"
)
_NAMED = re.compile(r"(?<!^)(?<![.!?]\s)\b[A-Z]\w+")
NAME_WEIGHT = 3.0
"""A name that nothing says tells more against an answer than another word."""
_HOW_MANY = re.compile(r"\b(?:how (?:many|much|often|old)|what number)\b")


@dataclass(frozen=True, slots=True)
class Period:
    """A time that a question names: any part of it may be left open (None)."""

    year: int | None
    month: int | None
    day: int | None

    def agreement(self, ms: int) -> float:
        """The share of the named parts (year, month, day) that fit a moment, 0..1.

        A year alone agrees by half: most of what is said in a year is not meant.
        """
        at = datetime.fromtimestamp(ms / 1000, UTC)
        pairs = ((self.year, at.year), (self.month, at.month), (self.day, at.day))
        named = [asked == there for asked, there in pairs if asked is not None]
        return sum(named) / max(len(named), 2)


@dataclass(frozen=True, slots=True)
class Question:
    """A query, read.

    Attributes:
        words: distinct words in order, stop words left out unless nothing else remains, by stem;
            the value is the word as it was written. CJK text is there as pairs of characters.
        names: every distinct folded word, for comparison with speakers.
        asks_when, asks_how_many: what the answer should hold.
        periods: times that the question names.
        named: stems of the words that are written large within a sentence: names, most often.
        speaker: the role whose turns it asks for, USER or ASSISTANT; None: no role in particular.
        cut: whether words were left out because there were too many.
    """

    words: Mapping[str, str]
    names: frozenset[str]
    asks_when: bool
    asks_how_many: bool
    periods: tuple[Period, ...]
    named: frozenset[str]
    speaker: str | None
    cut: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms that count: stem, word and inverse document frequency of each, the rarest first.

    Attributes:
        searched: so many of them are searched for; the others tell about what is found.
        rows: so many memories hold those searched for, at most.
        after: only memories with a higher key are searched; 0: all.
        weights: what each term counts as a share of the question: its idf, thrice for a name.
        total: the weights of all words of the question, of those that stand nowhere too.
    """

    stems: tuple[str, ...]
    words: tuple[str, ...]
    idf: tuple[float, ...]
    searched: int
    rows: int = 0
    after: int = 0
    weights: tuple[float, ...] = ()
    total: float = 0.0

    @property
    def match(self) -> str:
        """An FTS5 expression: any of the words searched for. Every word is quoted."""
        return _expression(self.words[: self.searched])

    @property
    def matches(self) -> tuple[str, ...]:
        """An FTS5 expression for each of the words searched for."""
        return tuple(_expression((word,)) for word in self.words[: self.searched])


def _expression(words: Sequence[str]) -> str:
    quoted = " OR ".join(f'"{word}"' for word in words)
    return f"{{content tags search_terms}} : ({quoted})"


def read(query: str) -> Question:
    """Read a query of any Unicode text."""
    text = query[:MAX_READ_CHARS]
    folded = fold(text)
    found = words(text)
    grams = cjk_bigrams(folded)
    content = [word for word in found if word not in STOP_WORDS] or found
    by_stem: dict[str, str] = {}
    for word in [*grams, *content]:
        if len(by_stem) == MAX_CONSIDERED:
            break
        by_stem.setdefault(stem(word), word)
    distinct = frozenset(found)
    return Question(
        words=by_stem,
        names=distinct,
        asks_when=_WHEN.search(folded) is not None,
        asks_how_many=_HOW_MANY.search(folded) is not None,
        periods=_periods(text[:2_000]),
        named=frozenset(stem(fold(each)) for each in _NAMED.findall(text[:2_000])),
        speaker=_speaker(folded, distinct),
        cut=len(text) < len(query) or len(by_stem) == MAX_CONSIDERED,
    )


def _speaker(folded: str, found: Collection[str]) -> str | None:
    """Return the role that a question asks about: "my car" is told by the user's turns, "what did
    you recommend" by the assistant's."""
    if _ADVISED.search(folded):
        return ASSISTANT
    return None if FIRST_PERSON.isdisjoint(found) else USER


def most_matching_rows(documents: int) -> int:
    """How many rows the text leg may look at among ``documents``."""
    return min(MAX_MATCHING_ROWS, max(ALWAYS_MATCHED, int(MATCHING_SHARE * documents)))


def choose_terms(
    question: Question,
    frequencies: Mapping[str, int],
    documents: int,
    most_rows: int = RANKED_AT_ONCE,
) -> Terms:
    """The terms that occur, the rarest first, and how many of them are searched for.

    idf is that of BM25, ln(1 + (N - n + 0.5) / (n + 0.5)).

    Args:
        frequencies: in how many of ``documents`` each stem stands.
        most_rows: no further term is searched for once so many rows match. Where even the rarest
            matches more, about so many of the newest are searched.
    """
    known = sorted((frequencies[each], each) for each in question.words if frequencies.get(each))
    rows = list(accumulate(frequency for frequency, _ in known))
    chosen = [each for _, each in known[:MAX_TERMS]]
    searched = max(bisect_right(rows[:MAX_TERMS], most_rows), min(len(chosen), 1))
    after = 0
    if rows and rows[0] > max(most_rows, RANKED_AT_ONCE):
        after = int(documents * (1 - most_rows / rows[0]))
    # A few memories about one thing share their words, which are no less telling for that.
    weights = {
        each: _idf(frequencies.get(each, 0), max(documents, FEWEST_WEIGHED))
        * (NAME_WEIGHT if each in question.named else 1.0)
        for each in question.words
    }
    return Terms(
        stems=tuple(chosen),
        words=tuple(question.words[each] for each in chosen),
        idf=tuple(_idf(frequencies[each], documents) for each in chosen),
        weights=tuple(weights[each] for each in chosen),
        total=math.fsum(weights.values()),
        searched=searched,
        rows=rows[searched - 1] if searched else 0,
        after=after,
    )


def _idf(frequency: int, documents: int) -> float:
    return math.log(1 + (max(documents, frequency) - frequency + 0.5) / (frequency + 0.5))


def _periods(text: str) -> tuple[Period, ...]:
    found = []
    for match in _DATE.finditer(text):
        named = match.groupdict()
        if named["month"]:
            # "May" begins a sentence as a verb, "march" is one: a month is written large.
            if not named["month"][0].isupper():
                continue
            month = _MONTHS.index(named["month"].lower()) + 1
            day = named["day"] or named["day_after"]
            year = named["year"]
            found.append(Period(int(year) if year else None, month, int(day) if day else None))
        else:
            parts = (named["lone_year"], named["iso_month"], named["iso_day"])
            found.append(Period(*(int(part) if part else None for part in parts)))
    return tuple(dict.fromkeys(found))
