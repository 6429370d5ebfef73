"""The type of a run of capitalised words: person, place, organization, project or none.

Evidence is a list, a word of the name that marks a type, or its surroundings. Without evidence a
name gets less than ``UNSURE``: it is reported, but not linked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memgraph.entities.gazetteer import Gazetteer, without_accents
from memgraph.model.enums import EntityType

if TYPE_CHECKING:
    from memgraph.entities.words import TaggedText

Guess = tuple[EntityType, float]

UNSURE: Final = 0.45
_CAMEL = re.compile(r"[A-Z][a-z]+[A-Z]\w*")
_COMMON_ENDING = re.compile(
    r"(?:s|ing|tion|sion|ment|ness|ity|ly|ed|[ae]nce|[ae]ncy|age|ism|ship|hood|ware|cracy|logy)$"
)
_PEOPLE_ENDING = re.compile(r"(?:ese|ian|ish|ean|er-born|-born|-based|-style)s?$")
DETERMINERS: Final = frozenset(
    ("the", "a", "an", "this", "that", "these", "our", "your", "my", "his", "her", "their", "each")
)
_PROJECT_HEADS: Final = ("project", "projekt", "projet", "proyecto", "operation")
_SPEECH: Final = frozenset(("said", "says", "told", "tells", "asked", "asks", "thinks", "wrote"))
_STREETS: Final = ("straße", "strasse", "platz", "gasse", "allee", "gatan", "straat", "gracht")
_OF: Final = frozenset(("of", "for", "de", "für", "du", "del", "di"))
_SHORTEST: Final = 4
_LOOK_BACK: Final = 3


def guess_type(
    sentence: TaggedText, low: int, high: int, lists: Gazetteer, *, title: bool
) -> Guess | None:
    """Return type and confidence of the words ``low`` to ``high`` (exclusive), None for no name.

    Args:
        title: True when a form of address is directly before it.
    """
    if title or _is_addressed(sentence, low, lists):
        return EntityType.PERSON, 0.95
    words = sentence.words(low, high)
    phrase = sentence.text[words[0].start : words[-1].end]
    if phrase in lists.organizations:
        numbered = sentence.lower(high)[:1].isdigit()
        return None if numbered else (EntityType.ORGANIZATION, 0.9)
    headed = sentence.in_title(low)
    several = high - low > 1
    # In a heading capitals are no evidence: only lists and legal forms are.
    marked = _by_mark(sentence, low, high, lists) if several and not headed else None
    if marked is None and words[-1].lower.endswith(_STREETS):
        marked = (EntityType.LOCATION, 0.8) if len(words[-1].text) > _SHORTEST + 3 else None
    if marked is not None:
        return marked
    has_given_name = is_given(words[0].text, lists)
    if phrase in lists.places and words[0].lower in lists.cues["place_or_word"]:
        return (EntityType.LOCATION, 0.8) if _place_before(sentence, low, lists) else None
    if phrase in lists.places:
        if not has_given_name:
            return EntityType.LOCATION, 0.9
        return (EntityType.PERSON, UNSURE) if headed else _person_or_place(sentence, low, lists)
    if several:
        return _several(sentence, low, high, lists, has_given_name=has_given_name, headed=headed)
    if has_given_name:
        return _one_given(sentence, low, lists, headed=headed)
    return None if headed else _one_unknown(sentence, low, lists)


def _is_addressed(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True when a form of address is before it: ``Dr. Ada``."""
    return sentence.lower(at - 1) in lists.cues["title"] and sentence.gap(at - 1) in (" ", ". ")


def _by_mark(sentence: TaggedText, low: int, high: int, lists: Gazetteer) -> Guess | None:
    """Return the type by a word of the name itself."""
    cues, words = lists.cues, sentence.words(low, high)
    lowers, before = [word.lower for word in words], sentence.lower(low - 1)
    has_given_name = is_given(words[0].text, lists)
    if lowers[0] in _PROJECT_HEADS:
        return EntityType.PROJECT, 0.9
    if words[0].text in lists.organizations:
        # "Google Drive" is what a firm makes.
        return EntityType.ORGANIZATION, UNSURE
    if lowers[-1] in cues["place_word"]:
        # "Frank Ocean" sings; "Madison Park" is a place where a place is meant.
        person = has_given_name and high - low == 2 and not _place_before(sentence, low, lists)
        if not person or lowers[-1] in cues["street"] or before in DETERMINERS:
            return EntityType.LOCATION, 0.8
    weak = lowers[0] in cues["weak_place_head"] and _place_before(sentence, low, lists)
    if (weak or lowers[0] in cues["place_head"]) and not has_given_name:
        return EntityType.LOCATION, 0.8
    # "Art Institute of Chicago"
    ends = [at for at in range(1, len(lowers)) if (*lowers, "of")[at + 1] in _OF]
    if any(lowers[at] in cues["org_word"] for at in ends) and before not in ("a", "an"):
        return EntityType.ORGANIZATION, 0.8
    if lowers[0] in cues["org_head"]:
        return EntityType.ORGANIZATION, 0.8
    if "&" in sentence.text[words[0].start : words[-1].end]:
        return EntityType.ORGANIZATION, 0.7
    return None


def _person_or_place(sentence: TaggedText, at: int, lists: Gazetteer) -> Guess:
    if _person_around(sentence, at, lists) or not _place_around(sentence, at, lists):
        return EntityType.PERSON, 0.7
    return EntityType.LOCATION, 0.8


def _several(
    sentence: TaggedText,
    low: int,
    high: int,
    lists: Gazetteer,
    *,
    has_given_name: bool,
    headed: bool,
) -> Guess | None:
    words = sentence.words(low, high)
    surname = words[-1].text in lists.surnames or words[0].text in lists.surnames
    determined = sentence.lower(low - 1) in DETERMINERS and not words[0].first
    if has_given_name and words[0].text not in lists.ambiguous and not determined:
        return EntityType.PERSON, 0.85 if surname or not headed else UNSURE
    if headed or any(word.text.isupper() and len(word.text) > 2 for word in words):
        return None
    if surname and not determined:
        return EntityType.PERSON, 0.75
    if _org_around(sentence, low, lists):
        return EntityType.ORGANIZATION, 0.6
    after = sentence.lower(high)
    if not determined and not sentence.german:
        if _asked(sentence, low, lists) or (after in _SPEECH and not words[0].first):
            return EntityType.PERSON, 0.6
        if has_given_name and after in lists.cues["person_after"]:
            return EntityType.PERSON, 0.6
    if after in lists.cues["project_after"] and sentence.gap(high - 1) == " ":
        return EntityType.PROJECT, UNSURE
    plain = all(word.text.isalpha() for word in words)
    if determined or sentence.german or not plain or (words[0].first and not has_given_name):
        return None
    return EntityType.PERSON, UNSURE


def _one_given(sentence: TaggedText, at: int, lists: Gazetteer, *, headed: bool) -> Guess | None:
    word = sentence.word(at)
    if word.text not in lists.ambiguous:
        return EntityType.PERSON, UNSURE if headed else 0.8
    if headed or sentence.lower(at + 1)[:1].isdigit():
        return None
    if _project_around(sentence, at, lists) and not word.first:
        return EntityType.PROJECT, UNSURE
    if word.first or word.text in lists.ordinary:
        # A common word, unless it speaks or is spoken to.
        cued = _asked(sentence, at, lists) or sentence.lower(at + 1) in _SPEECH
    else:
        cued = _person_around(sentence, at, lists)
    if cued:
        return EntityType.PERSON, 0.7
    common = word.first or word.lower in lists.cues["month"] or word.text in lists.ordinary
    return None if common else (EntityType.PERSON, UNSURE)


def _one_unknown(sentence: TaggedText, at: int, lists: Gazetteer) -> Guess | None:
    word = sentence.word(at)
    lower = word.lower
    short = len(word.text) < _SHORTEST or word.text[:2].isupper()
    if short or _PEOPLE_ENDING.search(lower):
        return None
    if sentence.lower(at + 1) == "et" and sentence.lower(at + 2) == "al":
        return EntityType.PERSON, 0.9
    if word.text in lists.surnames and not word.first and not sentence.german:
        return EntityType.PERSON, 0.65
    if _CAMEL.fullmatch(word.text):
        return EntityType.PROJECT, UNSURE
    head, hyphen, tail = word.text.partition("-")
    if hyphen and (head in lists.ordinary or not tail[:1].isupper() or sentence.german):
        return None
    if sentence.german or "'" in word.text or "’" in word.text:
        return None
    return _by_surroundings(sentence, at, lists)


def looks_common(word: str) -> bool:
    """Return True when ``word`` ends like common nouns, verbs and peoples, or is too short for a
    name.
    """
    if "-" in word or _CAMEL.fullmatch(word) or word.lower().endswith(_STREETS):
        return False
    lower = word.lower()
    short = len(word) < _SHORTEST or word[:2].isupper()
    return short or bool(_COMMON_ENDING.search(lower) or _PEOPLE_ENDING.search(lower))


def _by_surroundings(sentence: TaggedText, at: int, lists: Gazetteer) -> Guess | None:
    word, before, after = sentence.word(at), sentence.lower(at - 1), sentence.lower(at + 1)
    common = _COMMON_ENDING.search(word.lower) is not None
    if word.first:
        if common:
            return None
        if after in _SPEECH:
            return EntityType.PERSON, 0.5
        subject = word.possessive or after in lists.cues["predicate"] or after == "and"
        around = subject or _project_around(sentence, at, lists)
        return (EntityType.PROJECT, UNSURE) if around else None
    if after in lists.cues["in_house"] and sentence.gap(at) == " " and not common:
        return EntityType.PROJECT, 0.55
    if _project_around(sentence, at, lists):
        return EntityType.PROJECT, UNSURE
    if before in ("called", "named", "name", "is") and _kin_before(sentence, at, lists):
        return EntityType.PERSON, 0.5
    if _org_around(sentence, at, lists):
        return EntityType.ORGANIZATION, 0.6
    if after in _SPEECH or (_asked(sentence, at, lists) and before not in ("with", "by")):
        return EntityType.PERSON, UNSURE if common else 0.55
    if _place_before(sentence, at, lists):
        recent = {sentence.lower(i) for i in range(at - 1 - _LOOK_BACK, at - 1)}
        if recent & lists.cues["place_verb"]:
            return EntityType.LOCATION, UNSURE if common else 0.6
    return EntityType.PROJECT, UNSURE


def _project_around(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True for ``the Basalt repo``, ``Basalt 2.4``, ``a bug in Basalt``."""
    word = sentence.word(at)
    after = sentence.lower(at + 1) if sentence.gap(at) == " " else ""
    if word.possessive and after not in ("importer", "api", "backlog", "pipeline"):
        return False
    version = _VERSION.match(sentence.text, word.end)
    # A bare number after a word that opens a sentence is rather a number: "Room 12 is free".
    versioned = version and (version["dotted"] or not word.first)
    if after in lists.cues["project_after"] or versioned:
        return True
    before = sentence.lower(at - 1)
    if before == "in":
        before = sentence.lower(at - 2)
    return before in lists.cues["code_noun_before"] and sentence.gap(at - 1) == " "


_VERSION = re.compile(
    r" (?:(?P<dotted>v\d{1,3}|\d{1,3}(?=\.\d))(?:\.\d{1,4}){0,3}|\d{1,3})(?![\w%:])"
)


def is_given(word: str, lists: Gazetteer) -> bool:
    """Return True when ``word``, or the first part of a double name, is a listed given name."""
    plain = word if word.isascii() else without_accents(word)
    head, _, tail = plain.partition("-")
    return plain in lists.given or (
        tail[:1].isupper() and head in lists.given and head not in lists.ambiguous
    )


def _kin_before(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    recent = {sentence.lower(i) for i in range(max(0, at - 5), at)}
    return bool(recent & lists.cues["person_before"])


def _asked(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True for ``ask Greta``, ``hi, Greta``, ``my brother Emeka``."""
    before = sentence.lower(at - 1)
    return before in lists.cues["person_before"] and sentence.gap(at - 1) in (" ", ": ", ", ")


def _person_around(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    if _asked(sentence, at, lists):
        return True
    word = sentence.word(at)
    if word.possessive and sentence.lower(at + 1) in lists.cues["person_before"]:
        return True
    follows = sentence.gap(at) in (" ", ", ")
    return follows and (
        sentence.lower(at + 1) in lists.cues["person_after"] or sentence.lower(at + 1) == "who"
    )


def _place_around(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True when the context of a person's or place's name is that of a place."""
    if not _place_before(sentence, at, lists):
        return False
    before = sentence.lower(at - 1)
    if before not in ("to", "from", "via", "a", "de", "von", "para", "and", "or", "und", "et", "y"):
        return True
    recent = {sentence.lower(i) for i in range(max(0, at - 2 - _LOOK_BACK), at - 1)}
    return bool(recent & lists.cues["place_verb"]) or "off" in recent or "between" in recent


def _place_before(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    before = sentence.lower(at - 1)
    if before in ("and", "or", "und", "et", "y") and at >= 2:
        # between Zagreb and Split: the first of the two carries the preposition
        before = sentence.lower(at - 3)
    return before in lists.cues["place_before"]


def _org_around(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True for ``works at X``, ``contract with X``, ``Paula from X``."""
    before = sentence.lower(at - 1)
    if before not in lists.cues["org_before"] or sentence.gap(at - 1) != " ":
        return False
    if before in ("customer", "client", "vendor", "supplier", "company", "competitor", "acquired"):
        return True
    recent = [sentence.lower(i) for i in range(max(0, at - 1 - _LOOK_BACK), at - 1)]
    if any(word in lists.cues["org_verb"] for word in recent):
        return True
    if at < 2:
        return False
    introducer = sentence.word(at - 2).text
    is_person = introducer in lists.given or introducer in lists.surnames
    return is_person and before in ("from", "at", "of", "von", "de", "bei", "chez")
