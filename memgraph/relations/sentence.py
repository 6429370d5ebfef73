"""Read a sentence into words, typed values, verb, mode and tense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memgraph.relations.statement import (
    UNCHANGED,
    is_past,
)
from memgraph.text import lexicon
from memgraph.text.phrases import read_words
from memgraph.text.quantities import QuantityReader
from memgraph.text.stem import stem
from memgraph.text.tokens import ComparedToken, TypedWord

MAX_TOKENS: Final = 40


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """A sentence parsed for comparison.

    Attributes:
        text: the whole sentence in lower case, contractions written out.
        tokens: content words and values, in order; the verb is among them.
        verb: the index of the verb in ``tokens``; -1 if none was recognised.
        mode: "", "not", "may", "forbid", "must", "neednot", "can", "cannot", "should",
            "shouldnot", "always", "never".
        past: True if the sentence is in the past tense ("was", "formerly").
        changed: True if the sentence says that something is new ("now", "no longer", "again").
        passive: True for "was moved", "has been cancelled".
        perfect: True for "has moved", "has not answered".
        unsure: True for questions, opinions and conditions.
        additive: True for "also", "another".
        first: True if the sentence contains "I" or "my".
        deictic: the first word if it refers to the context ("it", "this"); else "".
        plural: True if the sentence contains "we" or "our".
        left_out: the words of introductory phrases and further clauses, not in ``tokens``.
    """

    text: str
    tokens: tuple[ComparedToken, ...]
    verb: int
    mode: str
    past: bool
    changed: bool
    passive: bool
    perfect: bool
    unsure: bool
    additive: bool
    plural: bool
    first: bool
    deictic: str
    left_out: tuple[str, ...]

    @property
    def subject(self) -> tuple[ComparedToken, ...]:
        return self.tokens[: self.verb] if self.verb > 0 else ()

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(token.key for token in self.tokens if token.kind != "prep")


_CLAUSE_OPENERS: Final = lexicon.words(
    "so but because since starting which who where as whereas then they we it he she i"
)
_BREAKS: Final = lexicon.words(", ; – — because although though until weil porque")
_OPENS_SUBORDINATE: Final = lexicon.words("that if whether what which who when where how , ; – —")
_GOT: Final = lexicon.words("got gets")
_AFTER_COMMAND: Final = lexicon.words(
    "the a an your my our this that these those it them and to in on at for with by us you all how"
)
_PRONOUNS: Final = lexicon.words("i we they he she")
_ADVERBS: Final = lexicon.words("often sometimes ever even once then soon and or who as today")
_PARTICLES: Final = frozenset({"on", "off", "up", "down", "out"})
_MODALS: Final = lexicon.words(
    "may can must should shall forbid neednot cannot shouldnot never always not_any_more"
)
_MODES: Final = {
    "may": "may", "can": "can", "must": "must", "should": "should", "shall": "must",
    "forbid": "forbid", "neednot": "neednot", "cannot": "cannot", "shouldnot": "shouldnot",
    "always": "always", "immer": "always", "toujours": "always", "siempre": "always",
    "never": "never", "nie": "never", "niemals": "never", "jamais": "never", "nunca": "never",
    "not": "not", "not_any_more": "not", "no": "not", "nobody": "not", "nothing": "not",
    "kein": "not", "hardly": "not",
}  # fmt: skip


@lru_cache(maxsize=16_384)
def read(text: str, speaker: str | None = None) -> ParsedSentence:
    """Parse a sentence for comparison; "I" and "my" mean ``speaker`` if it is known."""
    words, plain, claim = read_words(text)
    return _Reader(words, speaker, claim).read(plain.lower())


@lru_cache(maxsize=16_384)
def clauses(text: str, speaker: str | None = None) -> tuple[ParsedSentence, ...]:
    """Return the clauses of a compound sentence, each with its subject; () for a simple one.

    "Jo left Oslo and lives in Rome" is read as "Jo left Oslo" and "Jo lives in Rome".
    """
    words, plain, claim = read_words(text)
    parsed: list[ParsedSentence] = []
    subject: list[TypedWord] = []
    start = 0
    for at in range(1, len(words)):
        if len(parsed) < _MOST_CLAUSES - 1 and words[at].low in _JOINS:
            reader = _Reader([*subject, *words[start:at]], speaker, claim)
            clause = reader.read(plain.lower())
            whole = clause.verb >= 1 or words[at].low == ";"
            opens = _opens_clause(words, at + 1, clause) if whole else 0
            if opens:
                parsed.append(clause)
                carried = reader.subject_words or subject
                start = at + opens
                own = words[at].low == ";" and words[start].text[0].isupper()
                subject = [] if own or words[start].low in _OWN_SUBJECTS else carried
                start += words[start].low in _SAME_SUBJECTS
    if not parsed:
        return ()
    last = _Reader([*subject, *words[start:]], speaker, claim)
    return (*parsed, last.read(plain.lower()))


_MOST_CLAUSES: Final = 3
_JOINS: Final = lexicon.words(", ; – — and but so und y et pero")
_SAME_SUBJECTS: Final = lexicon.words("it he she they which who")
_OWN_SUBJECTS: Final = lexicon.words("i we you the my our his her their")


def _opens_clause(words: Sequence[TypedWord], at: int, before: ParsedSentence) -> int:
    """Return how many words after a comma or "and" a new clause begins; 0 if none does."""
    place = at
    while place < len(words) - 1 and words[place].low in _LINKS:
        place += 1
    if place >= len(words) - 1:
        return 0
    low = words[place].low
    verb = (
        low in lexicon.BE
        or low in lexicon.HAVE
        or low in lexicon.DO
        or low in _MODALS
        or (
            stem(lexicon.ALIASES.get(low, low)) in lexicon.VERBS
            and (
                is_past(low)
                or low.endswith("s")
                # "We swam, visit 2": after a bare comma the word may also be a noun.
                or (
                    (place > at or words[at - 1].low != ",") and before.tokens[0].key in ("i", "we")
                )
            )
        )
    )
    opens = verb or low in _SAME_SUBJECTS or low in _OWN_SUBJECTS or words[at - 1].low == ";"
    return place - at + 1 if opens else 0


_NOT_FINITE: Final = ("ed", "ing", "al", "ion", "ment", "er", "or", "ance", "ence")
_LINKS: Final = lexicon.words("and but so then also that")


def _is_clause(words: Sequence[TypedWord]) -> bool:
    """Return True for "we know more" and "the board decides", False for "the end of May"."""
    if not words:
        return False
    if words[0].low in _SAME_SUBJECTS or words[0].low in _PRONOUNS:
        return True
    return words[0].low in _OWN_SUBJECTS and any(
        word.low in lexicon.BE
        or word.low in lexicon.HAVE
        or (word.low.endswith(("s", "ed")) and stem(word.low) in lexicon.VERBS)
        for word in words[2:]
    )


class _Reader:
    """Parses one sentence; its fields are the results so far."""

    def __init__(self, words: list[TypedWord], speaker: str | None, claim: bool) -> None:
        self.words = words
        self.quantities = QuantityReader(words)
        self.speaker = speaker.casefold() if speaker else None
        self.tokens: list[ComparedToken] = []
        self.lows: list[str] = []
        self.mode = ""
        self.past = self.changed = self.passive = self.perfect = self.additive = False
        self.over = False
        self.unsure = not claim or self._is_command()
        self.deictic = words[0].low if words and words[0].low in lexicon.SUBJECTLESS else ""
        self.verb = -1
        self.modal = -1
        self.plural = self.first = False
        self.places: list[int] = []
        self.subject_words: list[TypedWord] = []

    def read(self, text: str) -> ParsedSentence:
        at = self._opening()
        left_out = self._lows(self.words[:at])
        while at < len(self.words) and len(self.tokens) < MAX_TOKENS:
            if self._ends_clause(at):
                self._note_rest(at)
                left_out += self._lows(self.words[at:])
                break
            length = self._take(at)
            self.places += [at] * (len(self.tokens) - len(self.places))
            at += length
        self._find_verb()
        return ParsedSentence(
            text=text,
            tokens=tuple(self.tokens),
            verb=self.verb,
            mode=self.mode,
            past=self.past,
            changed=self.changed,
            passive=self.passive,
            perfect=self.perfect,
            unsure=self.unsure,
            additive=self.additive,
            plural=self.plural,
            first=self.first,
            deictic=self.deictic,
            left_out=left_out,
        )

    @staticmethod
    def _lows(words: Sequence[TypedWord]) -> tuple[str, ...]:
        return tuple(word.low for word in words if word.group != "sign")

    def _is_command(self) -> bool:
        """Return True for a command such as "Check the log", which has no subject."""
        if len(self.words) < 2 or self.words[0].low.endswith("ing"):
            return False
        if stem(self.words[0].low) not in lexicon.VERBS:
            return False
        for word in self.words[1:]:
            if word.low in _OPENS_SUBORDINATE:
                break
            if word.low in lexicon.BE:  # "Rent for the studio is": a noun
                return False
        return self.words[1].low in _AFTER_COMMAND

    def _opening(self) -> int:
        """Return the number of words in an introductory phrase such as "After the fire,"."""
        if not self.words or self.words[0].low not in ("after", "since"):
            return 0
        for at, word in enumerate(self.words[:8]):
            if word.low == ",":
                return at + 1
        return 0

    def _ends_clause(self, at: int) -> bool:
        """Return True if the word at ``at`` ends a complete clause and another one follows."""
        low = self.words[at].low
        if low not in _BREAKS or self._verb_place() < 0:
            return False
        rest = self.words[at + 1 :]
        if low == "until":
            return _is_clause(rest)
        if low != "," or not rest:
            return True
        return rest[0].low in _CLAUSE_OPENERS or any(
            word.low in lexicon.BE or word.low in lexicon.HAVE for word in rest
        )

    def _note_rest(self, at: int) -> None:
        """Mark the sentence as unsure if a clause that is not compared is a condition."""
        for word in self.words[at + 1 :]:
            if word.low in ("if", "unless", "except", "?"):
                self.unsure = True

    def _take(self, at: int) -> int:
        """Read the word at ``at``, and return the number of words consumed."""
        word = self.words[at]
        if word.group == "sign":
            self.unsure = self.unsure or word.low == "?"
            return 1
        low = word.low.removesuffix("'s").removesuffix("'") if word.group == "word" else word.low
        if low in ("", "s"):
            return 1
        value = self.quantities.read(at, low, self.tokens[-1] if self.tokens else None)
        if value is not None:
            previous = self.words[at - 1]
            joined = (
                bool(self.tokens)
                and previous.text == self.tokens[-1].text
                and previous.at + len(previous.text) == word.at
            )
            token = ComparedToken(value.text, value.key, value.kind, joined)
            self._push(token, value.text.lower())
            return value.length
        alias = lexicon.ALIASES.get(low, low)
        if self._grammar(alias, low, at):
            return 1
        self._add(word, low, alias, at)
        return 1

    def _grammar(self, alias: str, low: str, at: int) -> bool:
        """Record the effect of a function word; return True if it is not a content word."""
        if alias in ("now", "again", "instead", "lately"):
            self.changed = True
            return True
        if alias == "new" and len(self.tokens) <= 2:
            self.changed = True
            return True
        if alias in _MODES and not (alias == "may" and self.quantities.is_month(at)):
            self._set_mode(_MODES[alias])
            if alias in _MODALS and self.modal < 0:
                self.modal = len(self.tokens)
            self.changed = self.changed or alias == "not_any_more"
            return True
        if alias == "formerly":
            self.over = self.past = self.changed = True
            self.modal = len(self.tokens)
            return True
        if alias == "now_does":
            self.changed = True
            self.modal = len(self.tokens)
            return True
        if alias == "will" and self.modal < 0:
            self.modal = len(self.tokens)
        if low in lexicon.PAST_AUX:
            self.past = True
        if alias == "too":
            self.additive = self.additive or at + 1 >= len(self.words)
            return True
        if alias in lexicon.ADDITIVE:
            self.additive = True
        elif alias in lexicon.CONDITIONS or alias in lexicon.OPINIONS:
            self.unsure = True
        return alias in lexicon.FILLERS or alias in ("will", "to_", "would")

    def _set_mode(self, mode: str) -> None:
        if self.mode in ("", "always") or (self.mode == "must" and mode == "not"):
            self.mode = {"must": "neednot"}.get(self.mode, mode) if mode == "not" else mode
        elif mode == "not" and self.mode in ("may", "can", "should"):
            self.mode = {"may": "forbid", "can": "cannot", "should": "shouldnot"}[self.mode]
        elif mode == "not" and self.mode == "not":
            self.unsure = True
        elif mode in ("always", "may", "must", "can", "should"):
            pass
        else:
            self.mode = mode

    def _add(self, word: TypedWord, low: str, alias: str, at: int) -> None:
        if alias in ("i", "my", "me", "mine", "myself"):
            self.first = True
            key = self.speaker or "i"
            self._push(ComparedToken(word.text, key, "name" if self.speaker else "word"), low)
            return
        if alias in ("we", "our", "us", "ours"):
            self.plural = True
            if alias == "we":
                self._push(ComparedToken(word.text, "we", "word"), low)
            return
        if alias in _PARTICLES and self._is_state(at):
            self._push(ComparedToken(word.text, alias, "word"), low)
            return
        if alias in lexicon.PREPS or alias == "to":
            self._push(ComparedToken(word.text, alias, "prep"), low)
            return
        if self.speaker and low == self.speaker:
            self._push(ComparedToken(word.text, low, "name"), low)
            return
        if word.group in ("url", "mail", "ip", "code"):
            kind = "address" if word.group != "code" or "." in low or low[-1].isdigit() else "name"
            self._push(ComparedToken(word.text, low.rstrip(".:/"), kind), low)
            return
        acronym = len(low) > 1 and word.text.isupper()
        capital = word.text[0].isupper() and (at > 0 or len(self.words) == 1 or acronym)
        key = stem(alias) if alias.isalpha() else alias
        self._push(ComparedToken(word.text, key, "name" if capital else "word"), low)

    def _is_state(self, at: int) -> bool:
        """Return True for "on" and "off" after "is", where no noun follows."""
        if not self.lows or self.lows[-1] not in lexicon.BE:
            return False
        after = self.words[at + 1] if at + 1 < len(self.words) else None
        return (
            after is None
            or after.group == "sign"
            or after.low in lexicon.PREPS
            or (after.low in ("now", "again"))
        )

    def _push(self, token: ComparedToken, low: str) -> None:
        self.tokens.append(token)
        self.lows.append(low)

    # -- the verb ----------------------------------------------------------------------------

    def _find_verb(self) -> None:
        """Find the main verb; drop auxiliaries before it."""
        at = self._verb_place()
        if at < 0:
            return
        self.subject_words = [
            word
            for word in self.words[: self.places[at]]
            if lexicon.ALIASES.get(word.low, word.low) not in _MODES.keys() | {"now", "formerly"}
        ]
        low = self.lows[at]
        perfect = low in lexicon.HAVE or low in lexicon.DO
        self.perfect = low in ("has", "have", "'ve") and at + 1 < len(self.tokens)
        # "has been moved", "was moved", "is kept": the last word of the chain is the verb.
        while at + 1 < len(self.tokens) and (
            (low in lexicon.BE or low in lexicon.HAVE or low in lexicon.DO or low in _GOT)
            and (self.lows[at + 1] in lexicon.BE or self._is_verb_form(at + 1, low))
        ):
            self.passive = self.passive or low in lexicon.BE or low in _GOT
            del self.tokens[at], self.lows[at]
            low = self.lows[at]
        self.verb = at
        if low in lexicon.BE:
            self.tokens[at] = ComparedToken(self.tokens[at].text, "be", "word")
        elif self.passive and self.tokens[at].key == "call":
            self.tokens[at] = ComparedToken("called", "be", "word")
        elif low in lexicon.HAVE:
            self.tokens[at] = ComparedToken(self.tokens[at].text, "have", "word")
        elif not perfect and not self.passive and is_past(low) and low not in UNCHANGED:
            self.past = True
        if perfect and self.past and not self.over and low not in ("had", "did"):
            self.past = False

    def _verb_place(self) -> int:
        if (
            0 < self.modal < len(self.lows)
            and not any(low in lexicon.BE or low in lexicon.HAVE for low in self.lows[: self.modal])
            and self.tokens[self.modal].kind == "word"
        ):
            return self.modal
        for at, low in enumerate(self.lows):
            if low in lexicon.BE or low in lexicon.HAVE or low in lexicon.DO:
                return at
            if at and self._is_finite(at):
                return at
            if at == 1 and self._follows_pronoun(low):
                return at
        for at in range(1, len(self.lows) - 1):
            low = self.lows[at]
            if (
                low.endswith("s")
                and not low.endswith(("ss", "'s"))
                and low.isalpha()
                and self.tokens[at].kind == "word"
                and self.tokens[at - 1].kind != "prep"
                and not self.lows[at - 1].endswith("s")
            ):
                return at
        return -1

    def _follows_pronoun(self, low: str) -> bool:
        """Return True for a verb right after a pronoun: "subscribe" in "I subscribe to …"."""
        return (
            self.lows[0] in _PRONOUNS
            and self.tokens[1].kind == "word"
            and not low.endswith("ly")
            and low not in _ADVERBS
            and low not in lexicon.ADDITIVE
        )

    def _is_finite(self, at: int) -> bool:
        """Return True if its form and its neighbours show that a word is the main verb."""
        token, low = self.tokens[at], self.lows[at]
        if token.kind != "word" or token.key not in lexicon.VERBS:
            return False
        if low == "happens":
            return True
        before = self.tokens[at - 1]
        if before.kind == "prep":
            return False
        if at + 1 < len(self.tokens):
            after, after_low = self.tokens[at + 1], self.lows[at + 1]
            if after_low in lexicon.BE or after_low in lexicon.HAVE or after_low in lexicon.DO:
                return False
            if (
                after.kind == "word"
                and after.key in lexicon.VERBS
                and (low.endswith("s") != after_low.endswith("s"))
                and not after_low.endswith(_NOT_FINITE)
                and not low.endswith("ed")
                and at + 2 < len(self.tokens)
                and not self.tokens[at + 2].is_value
            ):
                return False
        plural = self.lows[at - 1].endswith("s") and not self.lows[at - 1].endswith("ss")
        if at == 1 and low.endswith("s"):
            plural = False
        if at == 1 and low in UNCHANGED and self.tokens[0].text[0].isupper():
            return True
        if low.endswith("s") and not low.endswith("ss"):
            return not plural or before.kind == "name"
        if low in lexicon.PAST_FORMS or low.endswith("ed"):
            return True
        return (
            plural
            or before.key in ("i", "we", "you")
            or before.kind == "name"
            or bool(self.mode)
            or (
                self.lows[0].endswith("s")
                and at + 1 < len(self.lows)
                and self.tokens[at + 1].kind == "prep"
            )
            or lexicon.ALIASES.get(low, low) != low
            or before.key == (self.speaker or "i")
        )

    def _is_verb_form(self, at: int, auxiliary: str) -> bool:
        token, low = self.tokens[at], self.lows[at]
        if token.kind != "word" or (auxiliary in lexicon.BE and token.key in lexicon.STATES):
            return False
        if auxiliary in lexicon.DO:
            return True
        if (auxiliary in _GOT or auxiliary in lexicon.HAVE) and low.endswith("ing"):
            return False  # "We have a rowing boat."
        if auxiliary in _GOT and not is_past(low):
            return False
        if low.endswith(("ed", "ing")) and len(low) > 4:
            return True
        return (
            low in lexicon.PAST_FORMS
            or (low in lexicon.ALIASES and stem(lexicon.ALIASES[low]) in lexicon.VERBS)
            or (low in UNCHANGED or low in ("run", "come", "become"))
        )
