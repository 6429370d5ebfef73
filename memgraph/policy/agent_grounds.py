"""What a sentence by a model holds that its ground does not: numbers, names, a turned negation.

Words may be another's, a value may not. Rules on the surface of a text: of languages that write
nouns in capitals those are held too, and scripts without capitals are held by numbers alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from memgraph.policy.dedup import word_set
from memgraph.policy.echo_wording import CALENDAR
from memgraph.policy.sentences import split_sentences

NUMBER_UNSAID, NAME_UNSAID, NEGATION = "number_unsaid", "name_unsaid", "negation"

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS: Final = {word: str(value) for value, word in enumerate(_SMALL.split())} | {
    word: str(value * 10) for value, word in enumerate(_TENS.split(), start=2)
}
# Said of anything: "one of them", "the hall is zero waste".
_VAGUE: Final = frozenset(("zero", "one"))
_MONTHS: Final = "|".join(sorted(CALENDAR))
# A fact says on which day "tomorrow" is, so dates need not stand in the ground.
_ISO_DATE: Final = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?(?:T[\d:.]+Z?)?\b")
_DATE: Final = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?(?:of\s+)?(?:{_MONTHS})\b"
    r"(?:\s+\d{1,2}(?:st|nd|rd|th)?\b)?(?:,?\s+(?:19|20)\d\d\b)?",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_OF_A_YEAR: Final = re.compile(r"\b(?:year|years|ago|since)\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_GROUPS: Final = re.compile(r"(?<=\d)[,'’ ](?=\d{3}(?!\d))")
_WORD: Final = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_STEM = 4
_OPENINGS: Final = (
    "a an the this that these those he she it they we i you his her its their our my your one some "
    "all both each every no not never there in on at by for from to with about after before during "
    "since until when while as if and or but user users assistant agent speaker someone everyone "
    "nobody people last next today tomorrow yesterday"
)
_OPENING: Final = frozenset(_OPENINGS.split())
_TITLES: Final = "i mr mrs ms dr prof ok tv"
_TITLE: Final = frozenset(_TITLES.split())
_NEGATIONS: Final = (
    "not no never none nobody nothing nowhere neither nor cannot without hardly barely dont doesnt "
    "didnt isnt wasnt wont cant nicht kein keine keinen keinem keiner nie niemals ohne pas jamais "
    "sans aucun aucune nunca jamás sin ningún ninguna"
)
_NEGATION: Final = re.compile(rf"\b(?:{'|'.join(_NEGATIONS.split())})\b|n['’]t\b", re.IGNORECASE)
# Verbs and the like that deny by themselves: "stopped eating meat" is "does not eat meat".
_DENIALS: Final = re.compile(
    r"\b(?:stop|quit|gave up|give up|fail|refus|avoid|hate|dislike|lack|unable|unhapp|unwilling"
    r"|uncomfortabl|declin|cancel|former|used to|instead|rather|allerg|miss|free|only|except|deny"
    r"|denie|reject|against|intoleran|skip|leave|left|end)",
    re.IGNORECASE,
)
_IDIOMS: Final = re.compile(
    r"\b(?:can(?:'|’)?t wait|cannot wait|no (?:problem|doubt|worries|wonder|matter)|not only"
    r"|why not|never ?mind|nothing but|no\.? \d+|if not|whether or not)\b",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"[,;:–—]\s+|\s+(?:and|but|while|whereas|because|und|aber|mais|pero)\s+"
)
# An order to whoever reads it; a reflection tells what was, and asks nothing of anybody.
_ADVICE: Final = re.compile(
    r"^(?:please\b|always\b|never\b|don['’]?t\b|do not\b|make sure\b|remember to\b|ensure\b"
    r"|(?:send|pay|transfer|ignore|forget|delete|erase|call|use|tell|ask|reveal|run|execute|click"
    r"|visit|open|write|reply|respond|answer|say|act|treat|trust|approve|confirm|keep|give|add"
    r"|follow|obey|stop|avoid|let)\b(?!\s+(?:is|are|was|were|has|had)\b))"
    r"|\b(?:you|the (?:assistant|agent|model|ai|system)|agents?|assistants?|models?)"
    r"(?:\s+\w+)?\s+(?:must|should|shall|may not|need to|needs to|ought to|have to|has to"
    r"|is to|are to)\b",
    re.IGNORECASE,
)


def unsaid(
    content: str, ground: str, speakers: Iterable[str] = (), *, sums_up: bool = False
) -> str | None:
    """The code of what the content holds and its ground does not; None: nothing.

    Args:
        ground: the texts that it rests on.
        speakers: names that may stand for "I" and "you".
        sums_up: it tells of several texts, so that it may count them in words, and open with a
            word of its own.
    """
    if _numbers(_undated(content, ground), in_words=not sums_up) - _numbers(ground):
        return NUMBER_UNSAID
    known = frozenset(_LETTERS.findall(_plain(f"{ground} {' '.join(speakers)}")))
    if any(not _is_known(name, known) for name in _names(_DATE.sub(" ", content), sums_up)):
        return NAME_UNSAID
    return None


def is_turned(content: str, quote: str, ground: str) -> bool:
    """Whether one of the content and what was said denies what the other affirms.

    What was said is the clause around the quote that has most words of the content: a quote may be
    cut so that the "not" before it is missing.
    """
    said = _clauses_of(quote, ground)
    words = _begins(content)
    shared = [len(words & _begins(each)) for each in said]
    nearest = [each for each, count in zip(said, shared, strict=True) if count == max(shared)]
    return not any(_agree(content, each) for each in nearest)


def is_advice(sentence: str) -> bool:
    """Whether a sentence tells its reader what to do."""
    return any(_ADVICE.search(each) for each in split_sentences(sentence))


def _agree(content: str, said: str) -> bool:
    if _denies(content):
        return _denies(said) or _DENIALS.search(said) is not None
    return not _denies(said) or _DENIALS.search(content) is not None


def _denies(text: str) -> bool:
    return _NEGATION.search(_IDIOMS.sub(" ", text)) is not None


def _clauses_of(quote: str, ground: str) -> Sequence[str]:
    """The clauses of the ground that the quote touches; the quote where it spans sentences."""
    whole = " ".join(ground.split())
    begin = whole.find(quote)
    if begin < 0:
        return [quote]
    found = []
    place = 0
    for sentence in split_sentences(whole):
        start = whole.find(sentence, place)
        place = start + len(sentence)
        at = start
        for clause in _CLAUSE.split(sentence):
            at = whole.find(clause, at)
            if at < begin + len(quote) and at + len(clause) > begin:
                found.append(clause)
            at += len(clause)
    return found or [quote]


def _begins(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in word_set(text))


def _undated(content: str, ground: str) -> str:
    bare = _DATE.sub(" ", _ISO_DATE.sub(" . ", content))
    return _YEAR.sub(" ", bare) if _OF_A_YEAR.search(ground) else bare


def _numbers(text: str, *, in_words: bool = True) -> set[str]:
    """Every number by its digits, one in words too, and the parts of compound ones."""
    plain = _GROUPS.sub("", unicodedata.normalize("NFKC", text))
    found: set[str] = set()
    for number in _NUMBER.findall(plain):
        found.update(part.lstrip("0") or "0" for part in re.split("[.,:/-]", number))
    for word in _WORD.findall(plain.casefold() if in_words else ""):
        for part in word.split("-"):
            if part in _WORDS and part not in _VAGUE:
                found.add(_WORDS[part])
    # Minutes of a full hour, cents of a round sum: "at nine" is 9:00.
    return found - {"0"}


def _names(content: str, openings_apart: bool) -> list[str]:
    """Words that are written as names."""
    found = []
    for sentence in split_sentences(content):
        if sentence.isupper():
            continue
        for place, match in enumerate(_WORD.finditer(sentence)):
            word = re.sub(r"['’]\w*$", "", match.group())
            lower = _plain(word)
            if not word[:1].isupper() or lower in _TITLE or lower in CALENDAR:
                continue
            if place or (lower not in _OPENING and not openings_apart):
                found.append(lower)
    return found


def _is_known(name: str, known: frozenset[str]) -> bool:
    """Whether a name stands among words, in whichever inflection."""
    return all(
        part in known
        or (len(part) > _STEM and any(word.startswith(_begin(part)) for word in known))
        or (len(part) >= _STEM and any(part.startswith(word) for word in known if len(word) >= 3))
        for part in re.split("[-'’]", name)
        if part
    )


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _begin(word: str) -> str:
    return word[: max(_STEM, len(word) - 2)]
