"""What one statement says, laid open for comparison: names, figures, polarity, qualifiers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from memgraph.classification import relation_lexicon as lexicon
from memgraph.classification.relation_lexicon import words
from memgraph.classification.relation_tokens import Token, is_cjk, is_code, tokenize
from memgraph.classification.relation_units import ORDINALS
from memgraph.classification.relation_values import Values, read_values

_SCOPE: Final = 6
"""A negator reaches this many content words, or to the end of its clause."""
NOT_NAMES: Final = words(
    "i i'm i've i'd i'll todo ok utc cet am pm eur usd chf gbp mr mrs ms dr english french "
    "german italian spanish portuguese japanese european english-only tv pdf qa"
)
_LANGUAGES: Final = words(
    "english french german italian spanish portuguese japanese dutch polish russian chinese "
    "latin finnish swedish danish korean arabic"
)
_OPINION: Final = (
    "thinks", "opinion", "according to", "finds", "says", "believes", "if it were up", "feels",
    "prefers", "against", "argues", "in favour",
)  # fmt: skip
_GERMAN: Final = words("der die das ist und ein eine nicht wird im für mit auf wir den")
_ROMANCE: Final = words(
    "le la les est une des dans pour avec el los es una con por en il elle du au se un d'après"
)


class Statement(NamedTuple):
    """A text and when it was recorded (milliseconds UTC), or None where that is not known."""

    text: str
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One statement taken apart. ``content`` are the words left when names, figures and function
    words are gone; ``negated`` says for each whether an odd number of negators reaches it."""

    text: str
    low: str
    tokens: tuple[Token, ...]
    content: tuple[Token, ...]
    negated: tuple[bool, ...]
    names: frozenset[str]
    subject: str
    values: Values
    qualifiers: dict[str, frozenset[str]]
    negators: int
    negatives: int
    absolutes: int
    language: str

    @property
    def odd(self) -> bool:
        """Whether negators and words with a "no" of their own leave a negative statement."""
        return (self.negators + self.negatives) % 2 == 1


_PHRASE_WORD: Final = re.compile(r"[\w']+(?:-[\w]+)*")


@lru_cache(maxsize=32)
def _phrase_table(phrases: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...], int]:
    """Phrases of spaced scripts, of unspaced ones, and the most words in one of the former."""
    spaced = frozenset(p for p in phrases if not is_cjk(p))
    return spaced, tuple(p for p in phrases if is_cjk(p)), max(p.count(" ") + 1 for p in spaced)


@lru_cache(maxsize=4_096)
def _runs(low: str, longest: int) -> frozenset[str]:
    """All runs of up to ``longest`` words of a lower-case text."""
    words = _PHRASE_WORD.findall(low)
    return frozenset(
        " ".join(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)
    )


def has_any(low: str, phrases: tuple[str, ...]) -> int:
    """How many of the phrases occur in a lower-case text, as whole words."""
    spaced, unspaced, longest = _phrase_table(phrases)
    return len(_runs(low, longest) & spaced) + sum(p in low for p in unspaced)


def _language(tokens: list[Token]) -> str:
    # MIT is no German preposition.
    words = {token.low for token in tokens if not token.text.isupper()}
    if any(is_cjk(token.text) for token in tokens):
        return "ja"
    german, romance = len(words & _GERMAN), len(words & _ROMANCE)
    english = len(words & {"the", "is", "a", "of", "to", "and", "has", "was", "for", "it", "not"})
    if max(german, romance) <= english or max(german, romance) == 0:
        accented = any(
            c in "äöüßéèêçñáíóú" for t in tokens for c in t.low if not t.text[0].isupper()
        )
        return "en" if english or not accented else "xx"
    return "de" if german >= romance else "fr"


def _is_name(token: Token, language: str, elsewhere: frozenset[str]) -> bool:
    if token.low in NOT_NAMES or token.low in lexicon.MONTHS or token.low in lexicon.WEEKDAYS:
        return False
    if is_code(token.text):
        return True
    if not token.text[0].isupper() or language == "de":
        return False
    if token.initial:
        return token.stem in elsewhere
    return token.low not in lexicon.STOP


def _names(tokens: list[Token], language: str, other: list[Token]) -> frozenset[str]:
    """Names, with a sentence-initial capital counting only where the other statement shows it to
    be a name, or where no common word could stand so."""
    mid_other = frozenset(
        t.stem for t in other if t.text[0].isupper() and (not t.initial or _bare_start(other, t))
    )
    return frozenset(
        t.stem for t in tokens
        if _is_name(t, language, mid_other)
        or (t.initial and language != "de" and _bare_start(tokens, t))
    )  # fmt: skip


VERBISH: Final = words(
    "is was has had will would can can't cannot doesn't isn't hasn't won't didn't does did "
    "wasn't lives works speaks likes loves hates says said thinks told wants prefers plays takes "
    "keeps never always and got gets wrote spent never"
)
_COMMON_START: Final = words(
    "it this that there everyone nobody everything nothing someone somebody somewhere production "
    "staging server data code rent search mail prod release support goal hosting money access "
    "backup feature incident ticket table error work school breakfast dinner lunch water "
    "everybody he she they we you i who what one mother grandma father mum dad my our the a an "
    "each no all only every in on at"
)


def _bare_start(tokens: list[Token], token: Token) -> bool:
    """A capitalised first word that a verb or a possessive follows: most likely a name."""
    if not token.initial or not token.text[0].isupper() or token.low in lexicon.STOP:
        return False
    if token.low in _COMMON_START or token.low in NOT_NAMES or token.low in lexicon.WEEKDAYS:
        return False
    if token.low.endswith(("'s", "’s")):
        return True
    at = tokens.index(token)
    follows = tokens[at + 1].low if at + 1 < len(tokens) else ""
    plural = token.low.endswith("s") and not token.low.endswith(("as", "is", "us", "ss", "ys"))
    return follows in VERBISH and not plural and not token.low.endswith(("ing", "tion", "ment"))


def _qualifier_table() -> dict[str, tuple[tuple[str, str], ...]]:
    table: dict[str, list[tuple[str, str]]] = {}
    named: list[tuple[str, dict[str, str]]] = [
        ("environment", lexicon.ENVIRONMENTS),
        ("day_part", lexicon.DAY_PARTS),
        ("weekday", {w: str(n) for w, n in lexicon.WEEKDAYS.items()}),
        ("weekday", {f"{w}s": str(n) for w, n in lexicon.WEEKDAYS.items()}),
        ("month", {w: str(n) for w, n in lexicon.MONTHS.items() if len(w) > 3}),
        ("ordinal", {w: str(n) for w, n in ORDINALS.items()}),
        ("colour", {w: w for w in lexicon.COLOURS}),
        ("language", {w: w for w in _LANGUAGES}),
        *(("bound", dict.fromkeys(forms, bound)) for bound, forms in lexicon.BOUND.items()),
    ]
    for kind, values_of in named:
        for word, value in values_of.items():
            table.setdefault(word, []).append((kind, value))
    return {word: tuple(values) for word, values in table.items()}


_QUALIFIERS: Final = _qualifier_table()


def _qualifiers(tokens: list[Token]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for token in tokens:
        for kind, value in _QUALIFIERS.get(token.low.removesuffix("'s"), ()):
            found.setdefault(kind, set()).add(value)
    return {kind: frozenset(values) for kind, values in found.items()}


def _scopes(tokens: list[Token]) -> list[bool]:
    """For every token, whether an odd number of negators stands before it in its clause."""
    negated: list[bool] = []
    clause, reach, odd = -1, 0, False
    for token in tokens:
        if token.clause != clause or token.low in {"but", "aber", "mais", "pero", "sondern"}:
            clause, odd = token.clause, False
        if token.low in lexicon.NEGATORS:
            odd, reach = not odd, _SCOPE
        negated.append(odd)
        if token.low not in lexicon.STOP:
            reach -= 1
            if reach <= 0:
                odd = False
    return negated


def read_pair(earlier: Statement, later: Statement) -> tuple[Frame, Frame]:
    """Both frames; names at the beginning of a sentence are told with the other's help."""
    first, second = tokenize(earlier.text), tokenize(later.text)
    return _read(earlier, first, second), _read(later, second, first)


def _read(statement: Statement, tokens: list[Token], other: list[Token]) -> Frame:
    language = _language(tokens)
    names = _names(tokens, language, other)
    negated = _scopes(tokens)
    content, flags = [], []
    for token, flag in zip(tokens, negated, strict=True):
        plain = token.low.removesuffix("'s")
        if (
            plain in lexicon.STOP or plain in lexicon.NEGATORS or token.stem in names
            or not (token.text[0].isalpha() or is_cjk(token.text))
        ):  # fmt: skip
            continue
        content.append(token)
        flags.append(flag)
    named = [t.stem for t in tokens if t.stem in names]
    subject = named[0] if named else (content[0].stem if content else "")
    low = statement.text.lower().replace("’", "'")
    return Frame(
        text=statement.text, low=low, tokens=tuple(tokens), content=tuple(content),
        negated=tuple(flags), names=names, subject=subject,
        values=read_values(statement.text, statement.time_ms), qualifiers=_qualifiers(tokens),
        negators=sum(t.low in lexicon.NEGATORS for t in tokens) + _cjk_negation(low),
        negatives=sum(t.low in lexicon.NEGATIVE for t in tokens),
        absolutes=sum(t.low in lexicon.ABSOLUTE for t in tokens), language=language,
    )  # fmt: skip


def _cjk_negation(low: str) -> int:
    return sum(part in low for part in ("ない", "ません", "なく", "一度も", "いいえ"))


def opinions(low: str) -> int:
    """How many marks of an opinion a text bears."""
    return has_any(low, _OPINION)


def asserted(frame: Frame) -> bool:
    """Whether a statement claims something: no question, no heading, no bare name or address."""
    return not frame.text.rstrip().endswith(("?", ":")) and (
        len(frame.text.split()) >= 2 or frame.language == "ja"
    )
