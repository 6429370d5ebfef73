"""Find echoes of the memory's own output. Lines are identified by a hash of their normal form.

The output of a memory comes back: an agent repeats it, a user pastes it. Counted as a source, it
would become evidence for itself. Equal lines are an echo, whoever says them; other words are an
echo only if they say nothing new.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from memgraph.model.conversation import AGENTS, SILENT, SpeakerRole, voice_of
from memgraph.text.lexicon import CALENDAR, NEGATIONS
from memgraph.text.sentences import split_sentences
from memgraph.text.tokens import CONTRACTIONS, WORDS

JACCARD_THRESHOLD = 0.75


class Similarity(StrEnum):
    EXACT = "exact"
    NEAR = "near"
    DIFFERENT = "different"


def normalise_content(text: str) -> str:
    """Return a text in NFC, stripped, with every run of white space as one space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def content_hash(text: str) -> str:
    """Return the SHA-256 of the normalised text in UTF-8, 64 hexadecimal digits."""
    # surrogatepass, so that every str has a hash; storing such a text is refused elsewhere.
    normalised = normalise_content(text).encode("utf-8", "surrogatepass")
    return hashlib.sha256(normalised).hexdigest()


def word_set(text: str) -> frozenset[str]:
    """Return the words after NFKC and case folding; a contraction is one word.

    In a script without spaces a whole run is one word: such texts are compared by
    ``content_hash`` alone.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return frozenset(CONTRACTIONS.findall(folded))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Return the number of shared words by that of all words, 0..1; 0 for two empty sets.

    Source: P. Jaccard, "The distribution of the flora in the alpine zone", 1912.
    """
    shared = len(left & right)
    union = len(left) + len(right) - shared
    return shared / union if union else 0.0


def compare(left: str, right: str, threshold: float = JACCARD_THRESHOLD) -> Similarity:
    """Return how similar two texts are.

    NEAR requires a word overlap of at least ``threshold``, and the same numbers and negations:
    "the limit is 10" and "the limit is not 20" overlap, but say different things. The order of
    words is ignored.
    """
    if normalise_content(left) == normalise_content(right):
        return Similarity.EXACT
    words_left, words_right = word_set(left), word_set(right)
    if jaccard(words_left, words_right) < threshold:
        return Similarity.DIFFERENT
    return Similarity.NEAR if same_weights(left, right) else Similarity.DIFFERENT


def same_weights(left: str, right: str) -> bool:
    """Return True if two texts contain the same numbers and negations."""
    return not any(_weighs(word) for word in word_set(left) ^ word_set(right))


def _weighs(word: str) -> bool:
    """Return True for a word that changes the meaning of a sentence: a negation, a number."""
    return (
        word in NEGATIONS
        or word.endswith("n't")
        or any(character.isnumeric() for character in word)
    )


# Find near duplicates among many texts, without comparing every pair.


MOST_CANDIDATES: Final = 50
"""The maximum number of texts with a common rare word with which a text is compared."""


def near_duplicates(texts: Mapping[int, str]) -> dict[int, int]:
    """Return for each text that is NEAR to an earlier one the key of that text, the lowest one.

    Two sets of words with a Jaccard index of at least t have one of the first
    ``|A| - ceil(t |A|) + 1`` words of A in common, in any fixed order of the words: only texts that
    share such a word are compared. Rare words come first, so that few texts are compared.

    Source: S. Chaudhuri, V. Ganti, R. Kaushik, "A Primitive Operator for Similarity Joins in Data
    Cleaning", ICDE 2006 (the prefix filter).

    Args:
        texts: texts by key; a lower key is earlier.
    """
    words = {key: word_set(texts[key]) for key in sorted(texts)}
    spread = Counter(word for words_of_item in words.values() for word in words_of_item)
    places: defaultdict[str, list[int]] = defaultdict(list)
    duplicates: dict[int, int] = {}
    for key, own in words.items():
        first = sorted(own, key=lambda word: (spread[word], word))[: _prefix(len(own))]
        sharing = {place for word in first for place in places[word][-MOST_CANDIDATES:]}
        # Two sets share at most the smaller one.
        min_words, max_words = JACCARD_THRESHOLD * len(own), len(own) / JACCARD_THRESHOLD
        candidates = sorted(
            place for place in sharing if min_words <= len(words[place]) <= max_words
        )
        for other in candidates[-MOST_CANDIDATES:]:
            if jaccard(own, words[other]) < JACCARD_THRESHOLD:
                continue
            if compare(texts[other], texts[key]) is Similarity.NEAR:
                duplicates[key] = other
                break
        for word in first:
            places[word].append(key)
    return duplicates


def _prefix(size: int) -> int:
    return size - math.ceil(JACCARD_THRESHOLD * size) + 1 if size else 0


# For this long a repetition by a user may be an echo of what was shown; a day later an equal
# sentence is a new statement.
WINDOW_MS = 86_400_000
# Allows for times that are given as whole days, in any time zone.
LATE_MS = 2 * WINDOW_MS
# Fewer words are not distinctive: "ok", "yes please", "thank you".
MIN_WORDS = 3
MIN_CHARS = 12
# The equivalent in characters of a script without spaces.
MIN_UNSPACED_CHARS = 6

AGENT_ROLES = AGENTS | SILENT

MEMORY_ID = r"(?:fact|ep|ref)_[0-9A-Za-z]{20,32}"
_CITATION = re.compile(rf"\s*[\[(]\s*{MEMORY_ID}(?:\s*[,;]\s*{MEMORY_ID})*\s*[\])]", re.IGNORECASE)
# Citations in prompts: a short id, and the mark of a contradiction.
_SHORT_ID = r"[0-9A-HJKMNP-TV-Z]{8}"
SHORT_CITATION = rf"\[{_SHORT_ID}\]"
_CITED_SHORT = re.compile(rf"\[({_SHORT_ID})\]")
MARK = r"\[(?:contradicted|replaced) by [^\[\]]{1,250}\]"
_SHORT = re.compile(rf"\s*(?:{SHORT_CITATION}|{MARK})")
_LONE_ID = re.compile(rf"\b{MEMORY_ID}\b", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_EMPHATIC = frozenset("*`~_")
_EMPHASIS = re.compile(r"[*`~]+|(?<![^\W_])_+|_+(?![^\W_])")
_QUOTES = re.compile("[\"“”„‟«»「」『』]|(?<!\\w)['‘’‚‛]|['‘’‚‛](?!\\w)")
_MARKER = re.compile(r"^(?:(?:[-+*•·>#|–—]+|\(?\d{1,3}[.)]|\[[ xX]?\])\s+)+")
_LABELS = "|".join(
    (
        *sorted(AGENT_ROLES | {"user", "human", "me", "you"}),
        "decision|event|fact|goal|identity|memory|observation|preference|todo",
    )
)
_LABEL = re.compile(rf"^(?:(?:{_LABELS}):\s+)+", re.IGNORECASE)
# A name before words in quotation marks is their speaker, not a part of the statement.
_SPEECH = re.compile('^[^\\W\\d_][^:"“„«]{0,40}:\\s*(?=["“„«].*["”“»][.!?]?$)')
# The date of the preceding quotation, if a line contains several.
_DATE_BEFORE = re.compile(r"^\(\d{4}-\d\d-\d\d\) (?=\w)")
# What the bulletin writes before and after a memory's own text.
_AT = r"(?:\d{4}-\d\d-\d\d|undated) "
_BULLETIN_HEAD = re.compile(
    rf"^(?:(?:{_AT})?(?:\(until \d{{4}}-\d\d-\d\d\) )|{_AT}(?:\([^)]{{1,40}}\) )?"
    r"|Uncertain \(\d\.\d\d\): |Its evidence was withdrawn on \d{4}-\d\d-\d\d: )"
)
_FROM_FILE = re.compile(r"(?<=”) \(from .{1,60}\)$")
# All of these contain a date, a figure or a file.
_TELLING = re.compile(r"\d-\d\d |\d-\d\d[:)]|\(\d|undated |\(from ")
_CONFLICT = re.compile(rf"^{_AT}(.{{1,2000}}?) against {_AT}(.{{1,2000}})$")
_ENDS = " \t.,;:!?…。、！？"
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")


# Phrases with which an agent introduces what it remembers, in lower case.
_LEAD_IN_FORMS = (
    r"(?:yes|yeah|sure|ok|okay|right|well|so|also|certainly|absolutely|of course|great|great news"
    r"|good question|correct|indeed|noted|got it|understood|hi|hello|in short|to sum up)",
    r"(?:as|like) i (?:can )?(?:recall|remember|noted|mentioned|said|understand|know|see)(?: it)?",
    r"as (?:far as i (?:know|recall|remember)|noted|mentioned|discussed)(?: (?:before|earlier))?",
    r"(?:as )?you(?:'ve| have)? (?:already |once |also |previously )?"
    r"(?:told me|mentioned|said|noted)(?: (?:before|earlier|to me))?(?: that)?",
    r"as you know",
    r"(?:if i (?:recall|remember)(?: correctly| right)?)",
    r"i (?:also |can |do |still )?(?:recall|remember|know|see|believe|think|understand|noted|have"
    r" noted|have it noted)(?: here| from (?:my|our) [a-z ]{1,30})?(?: that)?",
    r"(?:my|the|your) (?:memory|memories|notes|records)(?: also)?"
    r" (?:say|says|show|shows|tell|tells|state|states|indicate|indicates)(?: me)?(?: that)?",
    r"(?:according to|based on|from|per|looking at) (?:my|the|your|our)"
    r" (?:memory|memories|notes|records|bulletin|(?:earlier|previous|past) conversations?)",
    r"from memory",
    r"(?:here(?: is|'s)|this is) what i (?:know|remember|have|recall)(?: about you| of it)?",
)
_LEAD_IN = re.compile(
    rf"^(?:{'|'.join(_LEAD_IN_FORMS)})(?:\s*[,:;!.–—-]+\s+|\s+(?=\w))", re.IGNORECASE
)
_MAX_LEAD_INS = 4


class EchoReason(StrEnum):
    """The reason why a text is not a source. Stable codes.

    LINE: it is a line that the memory returned. RECEIPT: it adds nothing to what was recalled
    shortly before. KNOWN: an agent repeats a memory that was active at that time. FORMAT: it is
    the memory's own output, pasted.
    """

    LINE = "line"
    RECEIPT = "receipt"
    KNOWN = "known"
    FORMAT = "format"


def is_agent(source_role: str | None) -> bool:
    """Return True if a speaker may be a machine: every role except ``user`` and ``human``.

    A name alone may be that of an agent, which may repeat what it was given. Callers that know a
    person by another name use ``heard_role``.
    """
    return voice_of(source_role) is not SpeakerRole.PERSON


def heard_role(source_role: str | None, told_as: str | None) -> str | None:
    """Return the role of a turn: the one of its source, or the one declared by the caller."""
    if told_as is None:
        return source_role
    return "user" if voice_of(source_role, told_as) is SpeakerRole.PERSON else "assistant"


def known_echo(voice: SpeakerRole) -> EchoReason | None:
    """Return the reason why a repeated statement adds no support; None if it adds some.

    Only a person adds support: an agent that repeats a memory adds nothing, however it learned of
    it, so that an echo is detected even if its receipt is lost.

    Args:
        voice: the speaker of the turn from which the statement is quoted.
    """
    return None if voice is SpeakerRole.PERSON else EchoReason.KNOWN


def judged_at(said_ms: int, stored_ms: int) -> int:
    """Return the time before which a text must have been returned for a turn to be its echo.

    This is the time of storage, because a turn's own time may be given in whole days. A turn from
    long before was imported late, and its own time is used.
    """
    return said_ms if said_ms < stored_ms - LATE_MS else stored_ms


@lru_cache(maxsize=1024)
def normal_form(line: str) -> str:
    """Return a line without case, markers, emphasis, quotation marks, citations, labels and end
    marks.
    """
    return " ".join(normal_marks(line).casefold().split()).strip(_ENDS)


def normal_marks(line: str) -> str:
    """Return a line without marks, citations and labels; its case and end marks are kept."""
    plain = line if line.isascii() else unicodedata.normalize("NFKC", line)
    text = _DATE_BEFORE.sub("", _without_marks(plain))
    if ":" in text:
        text = _LABEL.sub("", _SPEECH.sub("", text))
    return _QUOTES.sub("", text).strip()


def without_lead_in(text: str) -> str:
    """Return a sentence without "as I recall", "yes, you told me that" and the like before it."""
    for _ in range(_MAX_LEAD_INS):
        match = _LEAD_IN.match(text)
        if match is None or match.end() >= len(text):
            break
        text = text[match.end() :]
    return text


def says_enough(form: str) -> bool:
    """Return True if a normal form is long enough to be identified by its hash."""
    if len(_UNSPACED.findall(form)) >= MIN_UNSPACED_CHARS:
        return True
    words = [word for word in WORDS.findall(form) if not word.isnumeric()]
    return len(words) >= MIN_WORDS and len(form) >= MIN_CHARS


def form_hash(form: str) -> int:
    """Return 64 bits of BLAKE2b as a signed integer, for SQLite."""
    digest = hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@lru_cache(maxsize=128)
def line_hashes(text: str) -> frozenset[int]:
    """Return the hashes of a returned text: those of its lines and of their sentences.

    For a line of the bulletin, also those of the memory's own text in it.
    """
    forms: set[str] = set()
    for unit in units(text):
        for line in (unit, *_inner(unit)):
            sentences = split_sentences(line)
            forms.update(map(normal_form, {line, *sentences}))
    return frozenset(form_hash(form) for form in forms if says_enough(form))


def units(text: str) -> list[str]:
    """Return the lines of a text; one that continues in lower case is joined to the one before."""
    lines: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            lines.append("")
        elif lines and lines[-1] and _goes_on(lines[-1], line):
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    return [line for line in lines if line]


def cited_ids(text: str) -> tuple[str, ...]:
    """Return the distinct memory ids in a text, in order."""
    return tuple(dict.fromkeys(_LONE_ID.findall(text)))


def cited_short_ids(text: str) -> tuple[str, ...]:
    """Return the distinct short ids that a text cites like a prompt, in order."""
    return tuple(dict.fromkeys(_CITED_SHORT.findall(text)))


def without_citations(line: str) -> str:
    """Return a line without memory ids, short citations and the marks of prompts."""
    return _SHORT.sub("", _LONE_ID.sub("", _CITATION.sub("", line))).rstrip()


def _goes_on(before: str, line: str) -> bool:
    return line[0].islower() and before[-1] not in ".!?:;…。！？" and not _MARKER.match(line)


def inner_texts(line: str) -> tuple[str, ...]:
    """Return the texts of memories in a line, without marks, citations and bulletin additions."""
    return tuple(map(normal_marks, _inner(line))) or (normal_marks(line),)


def _inner(line: str) -> Iterator[str]:
    """Yield the texts of memories in a line of the bulletin."""
    if not _TELLING.search(line):
        return
    bare = _without_marks(line)
    conflict = _CONFLICT.match(bare)
    if conflict:
        yield from (_FROM_FILE.sub("", side) for side in conflict.groups())
        return
    inner = _FROM_FILE.sub("", _BULLETIN_HEAD.sub("", bare))
    if inner != bare:
        yield inner


def _without_marks(text: str) -> str:
    # Most lines have none of these, and searching for a character is cheap.
    if "_" in text:
        text = _LONE_ID.sub("", _CITATION.sub("", text))
    if "[" in text:
        text = _SHORT.sub("", text)
    text = _MARKER.sub("", text.strip())
    if "\\" in text:
        text = _ESCAPED.sub(r"\1", text)
    if not _EMPHATIC.isdisjoint(text):
        text = _EMPHASIS.sub("", text)
    return _MARKER.sub("", text.strip()).strip()


# Decide whether a sentence says anything that a text does not.


Stem = Callable[[str], str]
"""Takes a word in any case, and returns its stem without case and diacritical marks."""

# With fewer content words a sentence is covered by too many texts.
MIN_CONTENT = 2
MAX_TERMS = 24
MAX_CLAUSES = 8

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_CLAUSE = re.compile(
    r"\s*;\s+|\s*,\s+(?:(?:and|but|while|whereas|because|so)\s+)?"
    r"|\s+(?:and|but|while|whereas|because)\s+|\s+[–—-]\s+|:\s+",
    re.IGNORECASE,
)
_ELISIONS = frozenset(("d", "ll", "m", "re", "s", "t", "ve"))
_PLACES = (
    "about after against at before behind below between by during for from in into near of off on "
    "onto over since than through till to toward towards under until upon via with within"
)
_PREPOSITIONS = frozenset(_PLACES.split())
_DETERMINERS = "a an the this that these those my your his her its our their"
_FUNCTION = (
    "i you he she it we they me him us them mine yours hers ours theirs myself yourself himself "
    "herself itself ourselves themselves one who whom whose which what as and or so there here "
    "am is are was were be been being has have had having do does did doing get got "
    "also already actually basically currently indeed just really quite still very too well yes "
    "sure recall remember mention mentioned user users please"
)
_EMPTY = _PREPOSITIONS | frozenset(_DETERMINERS.split()) | frozenset(_FUNCTION.split())
# Words that change the meaning of a sentence: both texts or neither must contain each of them.
_TURNING_WORDS = (
    "neither hardly barely almost "
    "will would shall might could should must can want plan planning intend hope consider think "
    "maybe perhaps possibly probably likely if unless until till used stop quit former formerly "
    "previously longer anymore only except instead rather try refuse decline cancel deny doubt"
)
_NEGATIVE = "not"


@dataclass(frozen=True, slots=True)
class SentenceWords:
    """The words of a sentence.

    Attributes:
        order: stems of its content words, in order.
        terms: the same words as written, each once, for a look-up.
        numbers: the numbers as written: ``3.5``, ``2026-01-05``.
        turning: stems of negations, modal words and the like.
        placed: pairs of a preposition and the content word after it.
        names: stems of capitalised words that do not begin the sentence.
        opening: the stem of its first word, if that is a capitalised content word.
    """

    order: tuple[str, ...]
    terms: tuple[str, ...]
    numbers: frozenset[str]
    turning: frozenset[str]
    placed: frozenset[tuple[str, str]]
    names: frozenset[str]
    opening: str | None


class WordSplitter:
    """Splits sentences into words with a stemmer."""

    def __init__(self, stem: Stem) -> None:
        self._stem = stem
        self._turning = frozenset(stem(word) for word in (*NEGATIONS, *_TURNING_WORDS.split()))
        # Cached, because the same sentences are compared repeatedly.
        self._kept = lru_cache(maxsize=512)(self._taken_apart)

    def wording(self, text: str) -> SentenceWords:
        """Return the words of a sentence or clause."""
        return self._kept(text)

    def _taken_apart(self, text: str) -> SentenceWords:
        plain = unicodedata.normalize("NFKC", text)
        order: list[str] = []
        terms: dict[str, None] = {}
        turning: set[str] = set()
        placed: set[tuple[str, str]] = set()
        names: set[str] = set()
        before, opening = "", None
        for place, word in enumerate(_parts(plain)):
            folded = word.casefold()
            stem = self._stem(folded)
            if stem in self._turning:
                turning.add(stem)
            elif folded in _EMPTY:
                if folded in _PREPOSITIONS:
                    before = folded
                continue
            else:
                order.append(stem)
                terms.setdefault(folded)
                if before:
                    placed.add((before, stem))
                if word[0].isupper() and not plain.isupper() and folded not in CALENDAR:
                    if place:
                        names.add(stem)
                    else:
                        opening = stem
            before = ""
        return SentenceWords(
            tuple(order),
            tuple(terms),
            frozenset(_NUMBER.findall(plain)),
            frozenset(turning),
            frozenset(placed),
            frozenset(names),
            opening,
        )

    def clauses(self, text: str) -> list[str]:
        """Return the clauses of a sentence, joined until each has enough content words."""
        parts = [part for part in _CLAUSE.split(text, maxsplit=MAX_CLAUSES - 1) if part.strip()]
        clauses: list[str] = []
        short = ""
        for part in parts:
            clause = f"{short} {part}".strip()
            enough = len(set(self.wording(clause).order)) >= MIN_CONTENT
            short = "" if enough else clause
            if enough:
                clauses.append(clause)
        if short and clauses:
            clauses[-1] = f"{clauses[-1]} {short}"
        return clauses

    def says_nothing_new(self, statement: str, text: str) -> bool:
        """Return True if a sentence of a text, or a clause of it, covers the statement."""
        wording = self.wording(statement)
        # Most sentences lack one of its words and need not be split.
        begins = [_begin(stem) for stem in set(wording.order) if stem.isascii()]
        return any(
            covered(wording, self.wording(part))
            for sentence, lowered in _sentences(text)
            if not lowered.isascii() or all(begin in lowered for begin in begins)
            for part in self._parts_of(sentence)
        )

    def _parts_of(self, sentence: str) -> Iterator[str]:
        yield sentence
        parts = self.clauses(sentence)
        if len(parts) > 1:
            yield from parts


@lru_cache(maxsize=128)
def _sentences(text: str) -> tuple[tuple[str, str], ...]:
    """Return the distinct sentences of a text, each as written and in lower case."""
    sentences = dict.fromkeys(
        sentence for line in text.splitlines() for sentence in split_sentences(line)
    )
    return tuple((sentence, sentence.casefold()) for sentence in sentences)


def _begin(stem: str) -> str:
    """Return the prefix of all words of a stem; stemming changes the last two letters."""
    return stem[: max(len(stem) - 2, 1)]


def covered(sentence: SentenceWords, text: SentenceWords) -> bool:
    """Return True if ``text`` says all that ``sentence`` says; both are single statements."""
    content = set(sentence.order)
    if len(content) < MIN_CONTENT or not content <= set(text.order):
        return False
    if not sentence.numbers <= text.numbers or sentence.turning != text.turning:
        return False
    return (
        _same_places(sentence, text)
        and _same_order(sentence, text)
        and _same_subject(content, text)
    )


def _same_places(sentence: SentenceWords, text: SentenceWords) -> bool:
    """Return True if words that follow a preposition do not follow other ones in the text."""
    theirs: dict[str, set[str]] = {}
    for preposition, word in text.placed:
        theirs.setdefault(word, set()).add(preposition)
    return all(
        word not in theirs or preposition in theirs[word] for preposition, word in sentence.placed
    )


def _same_order(sentence: SentenceWords, text: SentenceWords) -> bool:
    """Return True if the names have the same order: who does something to whom."""
    names = (sentence.names | text.names) & set(sentence.order)
    first, second = (
        [word for word in dict.fromkeys(order) if word in names]
        for order in (sentence.order, text.order)
    )
    return first == second


def _same_subject(content: set[str], text: SentenceWords) -> bool:
    """Return True if only names, such as the subject, precede the first shared word in the text."""
    for word in text.order:
        if word in content:
            return True
        if word not in text.names and word != text.opening:
            return False
    return False


_CONTRACTED_VERBS: Final = {"ca": "can", "wo": "will", "sha": "shall"}


def _parts(text: str) -> Iterator[str]:
    """Yield words; a contraction yields its first part, and a negation as a separate word."""
    for match in CONTRACTIONS.finditer(text):
        head, *rest = re.split("['’]", match.group())
        if rest and rest[-1].casefold() == "t" and head[-1:] in "nN":
            # "didn't" is split after its n, which belongs to the negation.
            verb = head[:-1] if len(head) > 1 else head
            yield _CONTRACTED_VERBS.get(verb.casefold(), verb)
            yield _NEGATIVE
            continue
        if head.casefold() == "cannot":
            yield from ("can", _NEGATIVE)
            continue
        yield head
        yield from (word for word in rest if word.casefold() not in _ELISIONS)
