"""Names as they are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

from memgraph.entities.gazetteer import Gazetteer, gazetteer
from memgraph.entities.name_types import (
    DETERMINERS,
    BareWord,
    TaggedText,
    first_word,
    guess_type,
    is_abbreviation,
    is_given,
    looks_common,
    read_words,
)
from memgraph.entities.spans import EntitySpan
from memgraph.model.enums import EntityType

_JOINT = re.compile(r"[ \u00a0]|\. | & ")
_LONGEST: Final = 6
_LONGEST_PHRASE: Final = 4


def find_names(text: str, covered: Sequence[tuple[int, int]]) -> Iterator[EntitySpan]:
    """Yield names in ``text`` outside the ``covered`` ranges, which are sorted by start."""
    lists = gazetteer()
    sentence = read_words(text, covered)
    done = 0
    for at in sentence.likely:
        if at < done:
            continue
        # "GOV.UK" and "io.BytesIO" are one word each.
        if _says_nothing(sentence, at) or sentence.gap(at - 1) == ".":
            continue
        word = sentence.word(at)
        length = 1
        if word.capital:
            length = _known_phrase(sentence, at, lists)
            if length:
                yield _phrase_span(sentence, at, length, lists)
            else:
                length = _run_length(sentence, at, lists)
                yield from _name(sentence, at, length, lists)
        elif "-" in word.text or word.lower in lists.lower_given:
            yield from _lower_cased(sentence, at, lists)
        done = at + length


def _says_nothing(sentence: TaggedText, at: int) -> bool:
    """Return True when a capitalised word is ordinary, as most sentence openers are."""
    if not sentence.capital(at) or sentence.capital(at + 1):
        return False
    plain = _plain(sentence.text_of(at))
    return plain is not None and (plain or (sentence.opens(at) and sentence.lower(at + 1) != "et"))


@lru_cache(maxsize=8_192)
def _plain(word: str) -> bool | None:
    """Return True: ``word`` alone never is a name; False: not at a sentence's beginning; None: it
    may be.
    """
    lists, lower = gazetteer(), word.lower()
    # These may begin something longer without a second capital letter: "Bank of the", "Anna von".
    heads = lower in lists.cues["org_head"] or lower in lists.cues["place_head"]
    if heads or word in _phrase_heads() or is_given(word, lists) or word in lists.surnames:
        return None
    if word in lists.ordinary:
        return True
    return False if looks_common(word) else None


def _known_phrase(sentence: TaggedText, at: int, lists: Gazetteer) -> int:
    """Return how many words from ``at`` form a listed place or organization of two words or
    more.
    """
    head = sentence.word(at)
    if head.text not in _phrase_heads():
        return 0
    for length in range(min(_LONGEST_PHRASE, len(sentence) - at), 1, -1):
        last = sentence.word(at + length - 1)
        phrase = sentence.text[head.start : last.end]
        if phrase in lists.organizations or phrase in lists.places:
            longer = sentence.gap(at + length - 1) == " " and sentence.capital(at + length)
            # "New York Office Supplies GmbH" is decided as a run.
            if not longer or sentence.word(at + length).text in lists.ordinary or last.possessive:
                return length
    return 0


@cache
def _phrase_heads() -> frozenset[str]:
    """Return the first words of the listed phrases, as a text's words are read."""
    lists = gazetteer()
    heads = {first_word(phrase) for phrase in lists.organizations | lists.places}
    return frozenset(heads | {head.removesuffix("'s") for head in heads})


def _phrase_span(sentence: TaggedText, at: int, length: int, lists: Gazetteer) -> EntitySpan:
    start, end = sentence.word(at).start, sentence.word(at + length - 1).end
    phrase = sentence.text[start:end]
    listed = phrase in lists.organizations
    kind = EntityType.ORGANIZATION if listed else EntityType.LOCATION
    return EntitySpan(phrase, start, end, kind, 0.9)


def _run_length(sentence: TaggedText, at: int, lists: Gazetteer) -> int:
    """Return the length of the run of capitalised words that begins at ``at``, with particles."""
    cues = lists.cues
    length = 1
    while length < _LONGEST and at + length < len(sentence):
        last = sentence.word(at + length - 1)
        following = sentence.word(at + length)
        # "St Anne's Hall", but "Anne's Bible".
        owns = last.possessive and following.lower not in cues["place_word"]
        if owns or not _joined(sentence, at + length - 1):
            break
        if following.capital and not following.first:
            length += 1
            continue
        if (
            following.lower not in cues["person_particle"]
            and following.lower not in cues["phrase_particle"]
        ):
            break
        head = last.lower in cues["org_head"] or last.lower in cues["place_head"]
        person = not head and any(
            is_given(word.text, lists) for word in sentence.words(at, at + length)
        )
        allowed = cues["person_particle"] if person else cues["phrase_particle"]
        if not person and not head:
            break
        ahead = at + length
        while ahead - at - length < 2 and sentence.lower(ahead) in allowed:
            ahead += 1
        skipped = ahead - at - length
        plain = all(sentence.gap(i) == " " for i in range(at + length - 1, ahead))
        if not skipped or not sentence.capital(ahead) or not plain:
            break
        length += skipped + 1
    return length


def _joined(sentence: TaggedText, at: int) -> bool:
    gap = sentence.gap(at)
    if gap == " ":
        return True
    if gap == ". ":
        return is_abbreviation(sentence.word(at)) and sentence.lower(at) != "al"
    return bool(_JOINT.fullmatch(gap))


def _name(sentence: TaggedText, at: int, length: int, lists: Gazetteer) -> Iterator[EntitySpan]:
    """Yield the names inside a run, after other words were cut from its edges."""
    begin, end = at, at + length
    title = False
    while begin < end:
        word = sentence.word(begin)
        if word.lower in lists.cues["title"] and word.capital and end - begin > 1:
            title = True
        elif not _cut_first(sentence, begin, end, lists):
            break
        begin += 1
    if _remnant(sentence, at, begin, end, lists):
        return
    headed = sentence.word(begin).lower in lists.cues["org_head"] if begin < end else False
    while end > begin and not headed and _is_ordinary(sentence.word(end - 1), lists, end - begin):
        end -= 1
    if begin >= end:
        return
    split = _split_at(sentence, begin, end, lists)
    for low, high in ((begin, split), (split, end)):
        if low >= high:
            continue
        guess = guess_type(sentence, low, high, lists, title=title and low == begin)
        if guess is not None:
            start, stop = sentence.word(low).start, sentence.word(high - 1).end
            yield EntitySpan(sentence.text[start:stop], start, stop, *guess)


def _remnant(sentence: TaggedText, at: int, begin: int, end: int, lists: Gazetteer) -> bool:
    """Return True for one word left of a compound whose head is ordinary: "Internet Explorer"."""
    if begin == at or end - begin != 1 or sentence.word(begin - 1).first:
        return False
    word, cut = sentence.word(begin), sentence.word(begin - 1)
    dated = cut.lower in lists.cues["weekday"] or cut.lower in lists.cues["title"]
    listed = word.text in lists.places or word.text in lists.organizations
    return (
        not dated and not listed and (word.text not in lists.given or word.text in lists.ambiguous)
    )


def _cut_first(sentence: TaggedText, begin: int, end: int, lists: Gazetteer) -> bool:
    """Return True when the run's first word opens the sentence and does not begin the name."""
    word = sentence.word(begin)
    follower = sentence.word(begin + 1) if begin + 1 < end else None
    if word.lower in DETERMINERS and follower is not None:
        return True
    if word.text in lists.ordinary:
        if not word.first and sentence.word(end - 1).lower in lists.cues["org_word"]:
            # "European Medicines Agency"; but "The Hollin Bank" after a colon.
            return end - begin < 2 or word.lower in lists.cues["english"]
        if follower is None:
            return word.text not in lists.given
        if word.lower == "project" or follower.lower in lists.cues["org_word"]:
            return word.lower in ("the", "a", "an", "our", "der", "die", "das")
        if word.lower in lists.cues["org_head"] or word.lower in lists.cues["place_head"]:
            return False
        return not (word.text in lists.given and follower.text not in lists.given)
    is_person = is_given(word.text, lists) or word.text in lists.surnames
    return bool(
        word.first
        and follower is not None
        and follower.text in lists.given
        and not is_person
        and word.lower not in lists.cues["org_head"]
    )


def _is_ordinary(word: BareWord, lists: Gazetteer, remaining: int) -> bool:
    if word.text not in lists.ordinary:
        return False
    if remaining == 1:
        return word.text not in lists.given
    marks = word.lower in lists.cues["org_word"] or word.lower in lists.cues["place_word"]
    return not marks and word.text not in lists.surnames


def _split_at(sentence: TaggedText, begin: int, end: int, lists: Gazetteer) -> int:
    """Return where a tool or a listed place ends and another name begins; ``end`` for one name."""
    last = sentence.word(end - 1).lower
    if last in lists.cues["org_word"] or last in lists.cues["place_word"]:
        return end
    for at in range(begin, end - 1):
        word = sentence.word(at)
        if word.text in lists.ordinary and word.text not in lists.given and at > begin:
            return at
    return end


def _lower_cased(sentence: TaggedText, at: int, lists: Gazetteer) -> Iterator[EntitySpan]:
    """Yield names as in ``ask priya``, ``TODO(jonas)``; ``the billing-gateway queue``."""
    word = sentence.word(at)
    before, after = sentence.lower(at - 1), sentence.lower(at + 1)
    if "-" in word.text:
        first, _, last = word.lower.rpartition("-")
        generic = first.partition("-")[0] in lists.cues["generic"]
        numbered = after[:1].isdigit() and sentence.gap(at) in (" ", " v")
        filed = sentence.text[word.end : word.end + 1] in ("/", ".") and after != ""
        component = last in lists.cues["component"] and not generic and "-of-" not in word.lower
        if first[:1].isdigit() or (filed and sentence.gap(at) != ". "):
            return
        if component or (numbered and not generic and not last.isdigit()):
            yield _at(sentence, at, EntityType.PROJECT, 0.6)
        return
    opening = sentence.text[max(0, word.start - 1) : word.start]
    marked = before in ("todo", "fixme", "xxx") and opening == "("
    addresses = before in lists.cues["person_before"] or before == "with"
    is_addressed = addresses and sentence.gap(at - 1) in (" ", ": ")
    speaks = word.first and after in lists.cues["person_after"] and sentence.gap(at) == " "
    if marked or is_addressed or speaks or word.possessive:
        yield _at(sentence, at, EntityType.PERSON, 0.7)


def _at(sentence: TaggedText, at: int, kind: EntityType, confidence: float) -> EntitySpan:
    word = sentence.word(at)
    return EntitySpan(word.text, word.start, word.end, kind, confidence)


_POSSESSIVES: Final = ("'s", "s'")
# The scripts of East Asia begin here; they write no spaces between words.
_UNPARTED: Final = "\u2e80"
_EDGE: Final = ' .,;:!?"“”„«»()[]{}'


def canonical(name: str) -> str:
    """Return the name in NFKC, case-folded, without edge punctuation or possessive ``'s``.

    White space is collapsed. Idempotent. May be empty, when the name contains nothing else. ``@``
    and ``#`` are kept: a handle and a word are different names.
    """
    text = name
    while True:
        folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
        folded = " ".join(folded.split()).strip(_EDGE)
        if folded.endswith(_POSSESSIVES[0]):
            folded = folded[:-2]
        elif folded.endswith(_POSSESSIVES[1]):
            folded = folded[:-1]
        # Folding and stripping can each open the way for the other ("’S." and the like).
        if folded == text:
            return folded
        text = folded


def is_unspaced(letter: str) -> bool:
    """Return True when it belongs to a script without spaces between words."""
    return letter >= _UNPARTED


def as_a_word(name: str) -> str:
    """Return a pattern for a name as a whole word, in a script that separates words."""
    before = "" if is_unspaced(name[0]) else r"(?<!\w)"
    after = "" if is_unspaced(name[-1]) else r"(?!\w)"
    return f"{before}{re.escape(name)}{after}"
