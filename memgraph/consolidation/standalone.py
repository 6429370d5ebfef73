"""A sentence said in the first person, turned into one that can stand without its conversation.

"I moved here with my wife" by Ana becomes "Ana moved here with their wife". English only, and only
where the grammar is plain from word lists: everything else is left as it was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memgraph.consolidation.speakers import Speaker
from memgraph.consolidation.words import (
    ADVERBS,
    BASES,
    DETERMINERS,
    FUNCTION,
    MODALS,
    PARTICIPLES,
    PREPOSITIONS,
    RIVALS,
    UNCHANGING,
    Word,
    is_past,
    is_plural,
    third_person,
    word_list,
    words_of,
)

_FIRST: Final = word_list("i i'm im i've ive i'd i'll me my mine myself")
_SECOND: Final = word_list("you you're you've you'd you'll your yours yourself youre u ur ya")
_WE: Final = word_list("we we're we've we'd we'll us ourselves let's ours our")
_SUBJECTS: Final = {
    "i": "",
    "i'm": "am",
    "im": "am",
    "i've": "have",
    "ive": "have",
    "i'd": "'d",
    "i'll": "will",
    "you": "",
    "you're": "are",
    "you've": "have",
    "you'd": "'d",
    "you'll": "will",
}
_SINGULAR: Final = {
    "am": "is",
    "are": "is",
    "was": "was",
    "were": "was",
    "have": "has",
    "haven't": "hasn't",
    "do": "does",
    "don't": "doesn't",
    "dont": "doesn't",
    "aren't": "isn't",
    "ain't": "isn't",
    "weren't": "wasn't",
    "gotta": "has to",
    "wanna": "wants to",
    "gonna": "is going to",
}
_PLURAL: Final = {
    "am": "are",
    "was": "were",
    "wasn't": "weren't",
    "gotta": "have to",
    "wanna": "want to",
    "gonna": "are going to",
    "dont": "don't",
}
_INVERTED: Final = word_list(
    "do did does am have had has can could would should will was were may might must don't "
    "didn't suggest suggested insist insisted recommend demand"
)
_UNFINISHED: Final = MODALS | word_list("to do don't didn't did doesn't does let help make")
_NUMBERED: Final = word_list("war type phase part level chapter act class grade stage")
_MOVES: Final = word_list(
    "moved went go going move moving travel travelled traveled flew drove came trip back "
    "relocated relocating got been"
)
_SLANG: Final = {"gonna": "going to", "wanna": "want to", "gotta": "got to", "'em": "them"}


class _Unsure(Exception):
    """The grammar is not plain."""


def first_person(words: Sequence[Word]) -> bool:
    """Whether the speaker says something of himself, or of what is his."""
    return any(word.lower in _FIRST for word in words)


def second_person(words: Sequence[Word]) -> bool:
    return any(word.lower in _SECOND for word in words)


def we(words: Sequence[Word]) -> bool:
    return any(word.lower in _WE for word in words)


def resolve(text: str, speaker: Speaker, other: Speaker | None) -> str | None:
    """``text`` in the third person, or None where a rule is not sure.

    ``other``: who "you" is, where exactly two take part.
    """
    try:
        return _Resolver(text, speaker, other).run()
    except _Unsure:
        return None


class _Resolver:
    def __init__(self, text: str, speaker: Speaker, other: Speaker | None) -> None:
        self._text = text
        self._words = words_of(text)
        self._speaker = speaker
        self._other = other
        self._out: dict[int, str] = {}
        self._named: dict[str, int] = {}
        self._paired = False

    def run(self) -> str:
        for at, word in enumerate(self._words):
            if at in self._out:
                continue
            if word.lower in _WE and not self._plain_our(at):
                raise _Unsure
            if word.lower in _FIRST:
                self._place(at, self._speaker, word.lower)
            elif word.lower in _SECOND:
                if self._other is None or self._speaker.role not in self._named:
                    raise _Unsure
                self._place(at, self._other, word.lower)
            elif word.lower == "our":
                self._out[at] = self._whose(at, self._speaker)
            elif word.lower in _SLANG:
                self._out[at] = _SLANG[word.lower]
        self._coordinate()
        return self._written()

    def _plain_our(self, at: int) -> bool:
        """ "Our dog": what a speaker shares is the speaker's too; "our talk" is of the two."""
        following = {word.lower for word in self._words[at + 1 : at + 4]}
        return self._words[at].lower == "our" and not following & {
            "friendship", "conversation", "chat", "talk", "call", "meeting", "bond", "time", "own",
            "discussion", "connection", "lives", "way", "relationship",
        }  # fmt: skip

    def _place(self, at: int, person: Speaker, form: str) -> None:
        if form in ("me", "yourself", "myself") or (
            form in ("you", "ya") and not self._subject(at)
        ):
            reflexive = form.endswith("self")
            if reflexive and person.role not in self._named:
                raise _Unsure
            self._out[at] = "themselves" if reflexive else person.name
        elif form in ("my", "your"):
            self._out[at] = self._whose(at, person)
        elif form in ("mine", "yours"):
            self._out[at] = person.owner
        elif form in _SUBJECTS:
            self._as_subject(at, person, _SUBJECTS[form])
        else:
            raise _Unsure
        self._named.setdefault(person.role, at)

    def _subject(self, at: int) -> bool:
        """Whether a "you" is followed by a verb."""
        verb = self._verb_after(at)
        if verb is None or not self._adjacent(at, verb):
            return False
        word = self._words[verb].lower
        return word in BASES or word in MODALS or is_past(word) or word in _SINGULAR

    def _whose(self, at: int, person: Speaker) -> str:
        return "their" if self._clear(at, person) else person.owner

    def _clear(self, at: int, person: Speaker) -> bool:
        """Whether "they" can only be this person: named before, and nobody else is."""
        if person.role not in self._named or len(self._named) > 1 or self._paired:
            return False
        for place in range(at):
            word = self._words[place]
            if word.lower in RIVALS or is_plural(word.lower):
                return False
            named = word.text[:1].isupper() and place > 0 and word.lower not in _FIRST
            if named and place not in self._out and not self._a_place(place):
                return False
        return True

    def _a_place(self, at: int) -> bool:
        """ "In Rome", "moved to Rome", and names all in capitals: nobody who could be "they"."""
        before = self._words[at - 1].lower
        if before == "to" and at > 1:
            return self._words[at - 2].lower in _MOVES
        return self._words[at].text.isupper() or before in ("in", "at", "from", "near")

    def _as_subject(self, at: int, person: Speaker, verb: str) -> None:
        if at and self._inverted(at):
            raise _Unsure
        if at and self._words[at - 1].lower in _NUMBERED and person is self._speaker:
            raise _Unsure  # World War I
        pair = self._joined_subject(at)
        if pair and self._words[0].lower == "my" and person is self._speaker:
            # "My wife and I": the speaker first.
            self._out |= {0: f"{person.name} and their", at - 1: ""}
            self._as_pair(at, verb)
            return
        plural = pair or self._clear(at, person)
        name = person.name if pair or not plural else "they"
        forms = _PLURAL if plural else _SINGULAR
        if verb == "'d":
            verb = self._had_or_would(at)
        if verb:
            self._out[at] = f"{name} {forms.get(verb, verb)}"
            return
        self._out[at] = name
        place = self._verb_after(at)
        if place is None:
            if at + 1 < len(self._words):
                raise _Unsure
            return
        found = self._words[place].lower
        if found == "were" and person is self._speaker:
            return  # if I were
        if found in forms:
            self._out[place] = forms[found]
        elif found not in _SINGULAR and not self._holds(found, place) and not plural:
            self._out[place] = third_person(found)

    def _as_pair(self, at: int, verb: str) -> None:
        """Two subjects were named before: nothing stands at ``at`` but what of the verb it held."""
        self._paired = True
        if verb == "'d":
            verb = self._had_or_would(at)
        self._out[at] = _PLURAL.get(verb, verb)
        place = self._verb_after(at)
        if not verb and place is not None and self._words[place].lower in _PLURAL:
            self._out[place] = _PLURAL[self._words[place].lower]

    def _holds(self, verb: str, place: int) -> bool:
        """Whether a verb is the same for every person."""
        if verb in MODALS or is_past(verb) or verb in ("did", "had"):
            return True
        if verb in UNCHANGING and not (
            {word.lower for word in self._words} & {"every", "usually", "always", "often"}
        ):
            raise _Unsure
        if verb in FUNCTION or not verb.isalpha() or not self._words[place].text.islower():
            raise _Unsure
        if verb.endswith("ing") and verb not in ("bring", "sing", "ring", "swing", "cling"):
            raise _Unsure
        return False

    def _verb_after(self, at: int) -> int | None:
        """The place of the verb of a subject: the next word that is no adverb."""
        for place in range(at + 1, min(at + 5, len(self._words))):
            if self._words[place].lower not in ADVERBS and not (
                self._words[place].lower.endswith("ly")
                and len(self._words[place].lower) > 4
                and self._words[place].lower not in ("rely", "reply", "apply", "supply", "imply")
            ):
                return place
            if not self._adjacent(place, place + 1) and place + 1 < len(self._words):
                gap = self._text[self._words[place].end : self._words[place + 1].start]
                if gap.strip() not in ("", ","):
                    return None
        return None

    def _had_or_would(self, at: int) -> str:
        place = self._verb_after(at)
        found = self._words[place].lower if place is not None else ""
        if not found:
            raise _Unsure
        had = found in PARTICIPLES or found in ("better", "already") or is_past(found)
        return (
            "had"
            if had and found not in ("come", "run", "become", "put", "read", "set")
            else "would"
        )

    def _inverted(self, at: int) -> bool:
        """ "Do I", "had I": not "last May I"."""
        before = self._words[at - 1]
        asks = before.lower in _INVERTED and (at == 1 or before.text.islower())
        return asks and self._adjacent(at - 1, at)

    def _joined_subject(self, at: int) -> bool:
        """ "My wife and I": two subjects of one verb, where nothing before them is a verb."""
        if at < 2 or self._words[at - 1].lower != "and" or at > 6:
            return False
        before = [word.lower for word in self._words[: at - 1]]
        return not any(
            word in _SUBJECTS
            or word in MODALS
            or is_past(word)
            or word in _SINGULAR
            or word in BASES
            for word in before
        )

    def _coordinate(self) -> None:
        """ "I live in Rome and work at a bank": the second verb goes with the first.

        Raises:
            _Unsure: it cannot be told from a noun or an infinitive.
        """
        plural_only = bool(self._out) and not any(
            place in self._named.values() for place in self._out
        )
        for at in range(1, len(self._words) - 1):
            if self._words[at].lower not in ("and", "but", "or") or plural_only:
                continue
            place = self._verb_after(at)
            if place is None or place in self._out or not self._adjacent(at, place, far=True):
                continue
            verb = self._words[place].lower
            before = {word.lower for word in self._words[max(0, at - 12) : at]}
            if verb in ("look", "check", "guess", "wish", "thank"):
                continue
            if verb not in BASES and verb not in ("have", "don't", "am", "do"):
                continue
            if not self._subject_before(at) or before & _UNFINISHED:
                continue
            following = self._words[place + 1].lower if place + 1 < len(self._words) else ""
            if (
                following in DETERMINERS | PREPOSITIONS
                or following in ("it", "that", "them")
                or (following.endswith("ing") and len(following) > 5)
            ):
                self._out[place] = _SINGULAR.get(verb, third_person(verb))

    def _subject_before(self, at: int) -> bool:
        """Whether the nearest subject before ``at`` is the speaker, alone, by name."""
        for place in range(at - 1, -1, -1):
            word = self._words[place].lower
            if word in _SUBJECTS:
                return "they" not in self._out.get(place, "they") and not self._joined_subject(
                    place
                )
            if word in ("who", "that", "he", "she", "they", "we", "it", "which", "people"):
                return False
        return False

    def _adjacent(self, left: int, right: int, *, far: bool = False) -> bool:
        """Whether only blanks stand between two words (or between all from left to right)."""
        if right >= len(self._words):
            return False
        gap = self._text[self._words[left].end : self._words[right].start]
        return far or not gap.strip()

    def _written(self) -> str:
        parts, at = [], 0
        for place, word in enumerate(self._words):
            if place in self._out:
                parts += [self._text[at : word.start], self._out[place]]
                at = word.end
        text = "".join([*parts, self._text[at:]])
        text = " ".join(text.split()) if "" in self._out.values() else text
        return text[:1].upper() + text[1:]
