"""What a run of capitalised words names: person, place, organization, project or nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from memgraph.entities.gazetteer import Gazetteer, without_accents
from memgraph.model.enums import EntityType

if TYPE_CHECKING:
    from memgraph.entities.words import Sentence

Guess = tuple[EntityType, float]

_CAMEL = re.compile(r"[A-Z][a-z]+[A-Z]\w*")
_COMMON_ENDING = re.compile(
    r"(?:ing|tion|sion|ment|ness|ity|ly|ed|ies|[ae]nce|[ae]ncy|age|ism|ship|hood|ware|cracy|logy)s?$"
)
_PEOPLE_ENDING = re.compile(r"(?:ese|ian|ish|ean|er-born|-born|-based|-style)s?$")
_SHORTEST: Final = 4
_VERDICTS: Final = 8_192
_LOOK_BACK: Final = 3


def guess_type(
    sentence: Sentence, low: int, high: int, lists: Gazetteer, *, title: bool
) -> Guess | None:
    """Type and confidence of the words ``low`` to ``high`` (exclusive), None for no name.

    Args:
        title: whether a form of address stood directly before.
    """
    marked = _by_mark(sentence, low, high, lists, title=title)
    if marked is not None:
        return marked
    listed = _by_list(sentence, low, high, lists)
    if listed is not None:
        return listed
    if high - low == 1 and sentence.word(low).text in lists.ambiguous:
        return None
    if high - low > 1:
        return _several_unknown(sentence, low, high, lists)
    return _one_unknown(sentence, low, lists)


def _by_mark(
    sentence: Sentence, low: int, high: int, lists: Gazetteer, *, title: bool
) -> Guess | None:
    """By a word of the name itself, or a form of address before it."""
    cues, words = lists.cues, sentence.words(low, high)
    lowers = [word.lower for word in words]
    several = high - low > 1
    if title or _is_addressed(sentence, low, lists):
        return _ADDRESSED
    if several and lowers[0] in ("project", "projekt", "projet", "proyecto", "operation"):
        return EntityType.PROJECT, 0.9
    place_head = lowers[0] in cues["place_head"] and words[0].text not in lists.given
    if several and (lowers[-1] in cues["place_word"] or place_head):
        return EntityType.LOCATION, 0.85
    if several and any(word in cues["org_word"] for word in lowers[1:]):
        return EntityType.ORGANIZATION, 0.9
    if several and lowers[0] in cues["org_head"]:
        return EntityType.ORGANIZATION, 0.85
    if several and "&" in sentence.text[words[0].start : words[-1].end]:
        return EntityType.ORGANIZATION, 0.8
    if lowers[0] in cues["place_suffix"]:
        return None
    if lowers[-1].endswith(_STREETS) and is_street(lowers[-1]):
        return EntityType.LOCATION, 0.8
    return None


def _is_addressed(sentence: Sentence, at: int, lists: Gazetteer) -> bool:
    """Whether a form of address stands before: ``Dr. Ada``."""
    return sentence.lower(at - 1) in lists.cues["title"] and sentence.gap(at - 1) in (" ", ". ")


_ADDRESSED: Final = (EntityType.PERSON, 0.95)


def is_street(lower: str) -> bool:
    return any(lower.endswith(end) and len(lower) > len(end) + 2 for end in _STREETS)


_STREETS: Final = ("straße", "strasse", "platz", "gasse", "allee", "gatan", "straat", "gracht")


def _by_list(sentence: Sentence, low: int, high: int, lists: Gazetteer) -> Guess | None:
    words = sentence.words(low, high)
    phrase = sentence.text[words[0].start : words[-1].end]
    first = words[0].text
    if phrase in lists.organizations:
        return EntityType.ORGANIZATION, 0.9
    place = phrase in lists.places
    given = is_given(first, lists)
    if place and given:
        if _person_around(sentence, low, lists) or not _place_around(sentence, low, lists):
            return EntityType.PERSON, 0.75
        return EntityType.LOCATION, 0.8
    if place:
        return EntityType.LOCATION, 0.85
    if not given:
        return None
    if high - low > 1:
        return EntityType.PERSON, 0.9
    if _project_around(sentence, low, lists) and first in lists.ambiguous:
        return EntityType.PROJECT, 0.6
    if first not in lists.ambiguous:
        return EntityType.PERSON, 0.8
    cued = _person_around(sentence, low, lists)
    if not cued and (words[0].first or first in lists.ordinary or _number_next(sentence, low)):
        return None
    return EntityType.PERSON, 0.7


def _several_unknown(sentence: Sentence, low: int, high: int, lists: Gazetteer) -> Guess | None:
    words = sentence.words(low, high)
    if sentence.lower(high) in lists.cues["project_after"] and sentence.gap(high - 1) == " ":
        return EntityType.PROJECT, 0.55
    if any(word.text.isupper() and len(word.text) > 2 for word in words):
        return None
    if words[-1].text in lists.surnames or words[0].text in lists.surnames:
        return EntityType.PERSON, 0.75
    if _org_around(sentence, low, lists):
        return EntityType.ORGANIZATION, 0.6
    if _person_around(sentence, low, lists) or sentence.lower(high) in lists.cues["person_after"]:
        return (EntityType.PERSON, 0.6) if not sentence.german else None
    if sentence.german or any(not word.text.isalpha() for word in words):
        return None
    return EntityType.PERSON, 0.5


def guess_unlisted(sentence: Sentence, at: int, lists: Gazetteer) -> Guess | None:
    """``guess_type`` of one word that no list of places, organizations or given names has.

    Nor is it a street by its ending.
    """
    if _is_addressed(sentence, at, lists):
        return _ADDRESSED
    return _one_unknown(sentence, at, lists)


def _one_unknown(sentence: Sentence, at: int, lists: Gazetteer) -> Guess | None:
    word = sentence.word(at)
    if _is_unfit(word.text):
        return None
    if _CAMEL.fullmatch(word.text):
        return EntityType.PROJECT, 0.6
    spoken_of = not word.first and not sentence.german
    if word.text in lists.surnames and (spoken_of or _person_around(sentence, at, lists)):
        return EntityType.PERSON, 0.65
    if sentence.lower(at + 1) == "et" and sentence.lower(at + 2) == "al":
        return EntityType.PERSON, 0.9
    head, hyphen, tail = word.text.partition("-")
    if hyphen and (head in lists.ordinary or not tail[:1].isupper()):
        return None
    if hyphen and tail[:1].isupper() and not sentence.german:
        return EntityType.PROJECT, 0.55
    if sentence.german or "'" in word.text or "’" in word.text:
        return None
    return _by_surroundings(sentence, at, lists)


def is_plain(word: str, lists: Gazetteer) -> bool:
    """Whether ``word`` is no name wherever it opens a sentence, "et al" aside.

    What ``guess_unlisted`` says of it whatever surrounds it.
    """
    lower = word.lower()
    told = "-" in word or word in lists.surnames or _CAMEL.fullmatch(word)
    return _is_unfit(word) or (_is_common(lower) and not told)


# The two are asked of words that return: a look-up takes a tenth of the searches.
@lru_cache(maxsize=_VERDICTS)
def _is_unfit(word: str) -> bool:
    """Too short, an abbreviation, or who comes from somewhere: no name by itself."""
    short = len(word) < _SHORTEST or word[:2].isupper()
    return short or _PEOPLE_ENDING.search(word.lower()) is not None


@lru_cache(maxsize=_VERDICTS)
def _is_common(lower: str) -> bool:
    """Whether it ends as common nouns, verbs and plurals do."""
    return lower.endswith("s") or _COMMON_ENDING.search(lower) is not None


def _by_surroundings(sentence: Sentence, at: int, lists: Gazetteer) -> Guess | None:
    word, before, after = sentence.word(at), sentence.lower(at - 1), sentence.lower(at + 1)
    if word.first and _is_common(word.lower):
        return None
    if _project_around(sentence, at, lists):
        return EntityType.PROJECT, 0.6
    if before in ("called", "named", "name", "is") and _kin_before(sentence, at, lists):
        return EntityType.PERSON, 0.5
    if word.first:
        coordinated = after == "and" and at + 2 < len(sentence)
        if coordinated and sentence.word(at + 2).capital:
            return EntityType.PROJECT, 0.45
        subject = word.possessive or after in lists.cues["predicate"]
        return (EntityType.PROJECT, 0.4) if subject else None
    if _org_around(sentence, at, lists):
        return EntityType.ORGANIZATION, 0.6
    if before in lists.cues["person_before"] and before not in ("with", "by"):
        return EntityType.PERSON, 0.55
    if _place_before(sentence, at, lists):
        recent = {sentence.lower(i) for i in range(at - 1 - _LOOK_BACK, at - 1)}
        if recent & lists.cues["place_verb"]:
            return EntityType.LOCATION, 0.6
        if recent & lists.cues["code_noun_before"]:
            return EntityType.PROJECT, 0.6
    return EntityType.PROJECT, 0.45


def _number_next(sentence: Sentence, at: int) -> bool:
    return sentence.lower(at + 1)[:1].isdigit()


def _project_around(sentence: Sentence, at: int, lists: Gazetteer) -> bool:
    after = sentence.lower(at + 1) if sentence.gap(at) == " " else ""
    if sentence.word(at).possessive and after not in ("importer", "api", "backlog", "pipeline"):
        return False
    version = _VERSION.match(sentence.text, sentence.word(at).end)
    # A bare number after a word that opens a sentence is rather a number: "Room 12 is free".
    versioned = version and (version["dotted"] or not sentence.word(at).first)
    if after in lists.cues["project_after"] or versioned:
        return True
    before = sentence.lower(at - 1)
    return before in lists.cues["code_noun_before"] and sentence.gap(at - 1) == " "


_VERSION = re.compile(
    r" (?:(?P<dotted>v\d{1,3}|\d{1,3}(?=\.\d))(?:\.\d{1,4}){0,3}|\d{1,3})(?![\w%:])"
)


def is_given(word: str, lists: Gazetteer) -> bool:
    """Whether ``word``, or the first part of a double name, is a listed given name."""
    plain = word if word.isascii() else without_accents(word)
    return plain in lists.given or ("-" in plain and plain.partition("-")[0] in lists.given)


def _kin_before(sentence: Sentence, at: int, lists: Gazetteer) -> bool:
    recent = {sentence.lower(i) for i in range(max(0, at - 5), at)}
    return bool(recent & lists.cues["person_before"])


def _person_around(sentence: Sentence, at: int, lists: Gazetteer) -> bool:
    before = sentence.lower(at - 1)
    if before in lists.cues["person_before"] and sentence.gap(at - 1) in (" ", ": ", ", "):
        return True
    word = sentence.word(at)
    if word.possessive and sentence.lower(at + 1) in lists.cues["person_before"]:
        return True
    follows = sentence.gap(at) in (" ", ", ")
    return follows and (
        sentence.lower(at + 1) in lists.cues["person_after"] or sentence.lower(at + 1) == "who"
    )


def _place_around(sentence: Sentence, at: int, lists: Gazetteer) -> bool:
    """Whether a name that may be a person's or a place's stands where a place is meant."""
    if not _place_before(sentence, at, lists):
        return False
    before = sentence.lower(at - 1)
    if before not in ("to", "from", "via", "a", "de", "von", "para", "and", "or", "und", "et", "y"):
        return True
    recent = {sentence.lower(i) for i in range(max(0, at - 2 - _LOOK_BACK), at - 1)}
    return bool(recent & lists.cues["place_verb"]) or "off" in recent or "between" in recent


def _place_before(sentence: Sentence, at: int, lists: Gazetteer) -> bool:
    before = sentence.lower(at - 1)
    if before in ("and", "or", "und", "et", "y") and at >= 2:
        # between Zagreb and Split: the first of the two carries the preposition
        before = sentence.lower(at - 3)
    return before in lists.cues["place_before"]


def _org_around(sentence: Sentence, at: int, lists: Gazetteer) -> bool:
    """``works at X``, ``contract with X``, ``Paula from X``."""
    before = sentence.lower(at - 1)
    if before not in lists.cues["org_before"] or sentence.gap(at - 1) != " ":
        return False
    recent = [sentence.lower(i) for i in range(max(0, at - 1 - _LOOK_BACK), at - 1)]
    if before in ("customer", "client", "vendor", "supplier", "company", "competitor", "acquired"):
        return True
    if any(word in lists.cues["org_verb"] for word in recent):
        return True
    if at < 2:
        return False
    introducer = sentence.word(at - 2).text
    named = introducer in lists.given or introducer in lists.surnames
    return named and before in ("from", "at", "of", "von", "de", "bei", "chez")
