"""Decide which clauses of a turn are facts that a reader understands alone, and of which type.

A clause is kept as it was said: nothing here rewrites it. It has to have one of a few shapes: what
the speaker is, has, does by habit, prefers, decided, has to do or aims at; a turn in a life; what
holds for somebody named, for "my …" or "the … …". No word of it may stand for something that was
said elsewhere. Everything else stays in its turn. English only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from memgraph.consolidation import clause_patterns as patterns
from memgraph.consolidation.agent_tools import PageTurn
from memgraph.consolidation.clause_patterns import (
    FINITE,
    MAX_TURN_CHARS,
    PAST,
    REASON,
    SUBORDINATE,
    TurnSentence,
    clauses_of,
    sentences_of,
)
from memgraph.consolidation.ports import FactCandidate
from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.conversation import AGENTS, PERSONS, SpeakerRole, voice_of
from memgraph.model.enums import MemoryType
from memgraph.relations.statement import quote
from memgraph.text.gazetteer import gazetteer
from memgraph.text.statement_forms import is_instruction
from memgraph.text.tokens import COMPOUNDS

MAX_FACT_CHARS: Final = 400
MIN_WORDS: Final = 3
MAX_BEFORE: Final = 2
"""So many sentences before a clause may be quoted to say whom it is about."""
# The share of its words that makes a sentence a repetition of an earlier one.
MIN_REPEATED: Final = 0.8

MAX_CONTEXT_CHARS: Final = 120


class ClauseVerdict(NamedTuple):
    """The judgement of a clause as a fact.

    Attributes:
        score: 1 to 5; the more, the more telling.
        own: the speaker tells something of "me" or "us".
    """

    type: MemoryType
    score: int
    own: bool


class SentenceKey(NamedTuple):
    """The content of a sentence, to find repetitions: its words, names, numbers and negation."""

    text: str
    words: frozenset[str]
    exact: tuple[str, ...]
    denied: bool

    @classmethod
    def of(cls, text: str) -> SentenceKey:
        """Return the gist of a sentence."""
        words = [re.sub(r"'s$", "", word.replace("’", "'")) for word in COMPOUNDS.findall(text)]
        exact = [
            word.lower()
            for at, word in enumerate(words)
            if any(c.isdigit() for c in word)
            or (at > 0 and word[:1].isupper() and not patterns.IDLE.fullmatch(word))
        ]
        low = [word.lower() for word in words]
        meaning = frozenset(
            patterns.ENDING.sub("", word) for word in low if not patterns.IDLE.fullmatch(word)
        )
        return cls(
            " ".join(low), meaning, tuple(exact), patterns.DENIED.search(" ".join(low)) is not None
        )

    def repeats(self, earlier: SentenceKey) -> bool:
        """Return whether ``earlier`` says all of this but one word in five, the same names too."""
        if self.text == earlier.text:
            return True
        if len(self.words) < 2 or self.denied != earlier.denied:
            return False
        if self.exact != tuple(item for item in earlier.exact if item in self.exact):
            return False
        return len(self.words & earlier.words) >= MIN_REPEATED * len(self.words)


def facts_of(
    content: str,
    *,
    speakers: Collection[str],
    voice: SpeakerRole,
    acquainted: bool,
    names_around: Collection[str] = (),
) -> Iterator[tuple[str, ClauseVerdict]]:
    """Yield the quotations of a turn that are facts, each a contiguous part of it.

    Args:
        speakers: the names of those who talk; addressing one of them names nobody.
        voice: a person's standing orders ("Always …") are preferences; an agent is heard only of
            what it has done itself.
        acquainted: people talk to each other, so that "the meeting" is one that both know of.
        names_around: words that are written as names in the turns around.
    """
    sentences = list(sentences_of(content, speakers))
    names = {word for word in names_around if not patterns.IDLE.fullmatch(word)}
    reader = _Reader(speakers, voice, acquainted, not acquainted and len(sentences) == 1, names)
    for at, sentence in enumerate(sentences):
        ordered = reader.order_in(sentence.text)
        if ordered is not None:
            yield ordered
            continue
        facts = list(reader.facts_in(sentence.text))
        if not facts:
            facts = reader.facts_with(sentence, sentences[max(0, at - MAX_BEFORE) : at])
        yield from facts


class _Reader(NamedTuple):
    """The state of reading one turn clause by clause.

    Attributes:
        alone: nothing else is said in the turn, so that "the rent" is the only one.
        named: words that are written as names in the turns around.
    """

    speakers: Collection[str]
    voice: SpeakerRole
    acquainted: bool
    alone: bool
    named: Collection[str]

    def order_in(self, text: str) -> tuple[str, ClauseVerdict] | None:
        """Return what a person wants an assistant to do from now on; None where it is no order."""
        if self.acquainted or self.voice is SpeakerRole.AGENT or len(text) > MAX_FACT_CHARS:
            return None
        return self.as_order(text) or self.as_order(patterns.GROUND.split(text)[0])

    def as_order(self, text: str) -> tuple[str, ClauseVerdict] | None:
        """Return a text as an order that stands; None where it is none, or hangs on another."""
        low = _plain(text)
        if low.startswith("let"):
            return None
        order = patterns.ORDER.match(low)
        tells = order is not None and (
            is_instruction(low[order.end() :]) or patterns.TO_ME.match(low, order.end())
        )
        if not (patterns.STANDING.match(low) or (tells and patterns.LASTING.search(low))):
            return None
        if len(COMPOUNDS.findall(text)) < MIN_WORDS:
            return None
        if patterns.PASSING.search(patterns.ADDRESS.sub(" ", low)) or not self.refers_within(text):
            return None
        return text.rstrip(" ,;:-–—"), ClauseVerdict(MemoryType.PREFERENCE, 3, own=True)

    def facts_with(
        self, sentence: TurnSentence, before: Sequence[TurnSentence]
    ) -> list[tuple[str, ClauseVerdict]]:
        """Return the facts that begin a sentence with the sentence that says of whom they are."""
        if patterns.OF_ANOTHER.match(sentence.text) is None:
            return []
        for first in reversed(before):
            if first.line is not sentence.line or sentence.end - first.begins > MAX_FACT_CHARS:
                break
            context = sentence.line[first.start : sentence.begins]
            if len(context) > MAX_CONTEXT_CHARS:
                break
            if "?" in context or patterns.LISTENER.search(context.lower()):
                break
            if not self.refers_within(context):
                continue
            facts = list(self.facts_in(sentence.text, context))
            if facts:
                quoted, judged = facts[0]
                end = sentence.line.index(quoted, sentence.start) + len(quoted)
                return [(sentence.line[first.start : end], judged)]
        return []

    def facts_in(self, sentence: str, before: str = "") -> Iterator[tuple[str, ClauseVerdict]]:
        """Yield the clauses that are facts, each with what it takes to understand it.

        Args:
            before: what is said before the first clause.
        """
        clauses = clauses_of(sentence)
        parts = [sentence[start:end] for start, end in clauses]
        reader = self._replace(alone=self.alone and _is_of_one(parts))
        conditional = False
        while clauses:
            start, end = clauses.pop(0)
            if not reader.is_clear(sentence[start:end], before):
                end = reader.clear_end(sentence, start, end, before)
            judged = None if conditional else reader.judge(sentence[start:end], before)
            conditional = patterns.CONDITION.match(sentence[start:end].lower()) is not None
            if judged is None:
                if before:
                    return
                continue
            while clauses and self.goes_on(sentence, start, end, clauses[0], before):
                end = clauses.pop(0)[1]
            if clauses and self.is_conditional(sentence, clauses[0]):
                continue
            yield patterns.LOOSE_END.sub("", sentence[start:end]), judged
            before = ""

    def clear_end(self, sentence: str, start: int, end: int, before: str) -> int:
        """Return where the clear part of a clause ends, at a comma; ``end`` where there is none."""
        at = sentence.find(", ", start, end)
        return at if at > 0 and self.is_clear(sentence[start:at], before) else end

    def is_conditional(self, sentence: str, clause: tuple[int, int]) -> bool:
        """Return whether a clause that is left off says when the clause before it holds."""
        low = _plain(sentence[clause[0] : clause[1]])
        return patterns.CONDITION.match(low) is not None and patterns.LISTENER.search(low) is None

    def goes_on(
        self, sentence: str, start: int, end: int, clause: tuple[int, int], before: str = ""
    ) -> bool:
        """Return whether the next clause belongs to the fact from ``start`` to ``end``."""
        if clause[1] - start > MAX_FACT_CHARS:
            return False
        if not self.is_clear(sentence[start : clause[1]], before):
            return False
        text = sentence[clause[0] : clause[1]]
        low = _plain(text)
        if REASON.match(sentence[end : clause[0]]) or SUBORDINATE.match(low):
            return True
        if self.judge(text, f"{before} {sentence[start:end]}") is not None:
            return True
        exact = patterns.PRECISE.search(low) or self.is_named(COMPOUNDS.findall(text))
        is_comment = re.search(rf"\b{patterns.FELT}\b", low) or (
            low[:5] == "which" and patterns.PRONOUN.search(low)
        )
        return bool(exact) and not is_comment

    def judge(self, text: str, before: str = "") -> ClauseVerdict | None:
        """Return what a clause is as a fact; None where it has no shape that is kept.

        Args:
            before: the fact that it continues; a pronoun may stand for something named there.
        """
        words, low = COMPOUNDS.findall(text), _plain(text)
        if len(words) < MIN_WORDS - bool(patterns.CLOSE.match(low)) or len(text) > MAX_FACT_CHARS:
            return None
        if text.isupper() or (SUBORDINATE.match(low) and FINITE.search(low.partition(", ")[0])):
            return None
        if not self.is_clear(text, before):
            return None
        straight = text.replace("’", "'")
        kind = next((kind for kind, shape in patterns.SHAPES if shape.search(straight)), None)
        if self.voice is SpeakerRole.AGENT and kind is not MemoryType.EVENT:
            return None
        weak = kind is None and patterns.WEAK.search(straight) is not None
        # To an assistant it is a step of what it is asked to do.
        weak = weak and (self.acquainted or not patterns.PERFECT.search(straight))
        if kind is None and not weak and not self.holds(text):
            return None
        score = self.weight(words, low, MemoryType.FACT if weak else kind, weak=weak)
        return (
            None
            if score is None
            else ClauseVerdict(kind or MemoryType.FACT, score, weak or kind is not None)
        )

    def weight(
        self, words: list[str], low: str, kind: MemoryType | None, *, weak: bool = False
    ) -> int | None:
        """Return how telling a clause of a shape is, 1 to 5; None where it says too little."""
        bare = patterns.UNTOLD.sub(" ", low)
        meaning = {
            word
            for word in COMPOUNDS.findall(bare)
            if not (
                word[0].isdigit()
                or patterns.IDLE.fullmatch(word)
                or patterns.MANNER.fullmatch(word)
            )
        }
        life = patterns.LIFE.search(low) is not None
        event = kind is MemoryType.EVENT
        liked = kind in (MemoryType.PREFERENCE, MemoryType.TODO)
        # "I signed the contract on 3 May" is exact for those who know which.
        dated = patterns.DATED.search(low) is not None
        due = patterns.DUE.search(low) if kind is None else dated and not (event and " the " in low)
        reset = event and patterns.RESET.search(low) is not None
        has_name = self.is_named(["", *words] if words[0] in self.named else words)
        often = kind is MemoryType.FACT and patterns.OFTEN_SAID.search(low) is not None
        exact = any((life, due, reset, has_name, patterns.EXACT.search(bare)))
        min_words = 1 + (event and not (life or has_name)) + weak + (not exact and not liked)
        if len(meaning) + life + often < min_words:
            return None
        if not liked:
            felt = len(re.findall(rf"\b{patterns.FELT}\b", low))
            if felt and len(meaning) < 3 + felt:
                return None
            if (
                kind in patterns.PLAIN
                and not (has_name or life or self.alone or reset)
                and patterns.BARE.search(low)
            ):
                return None
        counted = any(map(str.isdigit, low))
        return 1 + exact + dated + counted + (len(meaning) > 3)

    def is_clear(self, text: str, before: str = "") -> bool:
        """Return whether no word means the listener, the moment or something said before.

        Args:
            before: what is quoted with it; it may say whom a pronoun means.
        """
        return not patterns.PASSING.search(_plain(text)) and self.refers_within(text, before)

    def refers_within(self, text: str, before: str = "") -> bool:
        """Return whether all that the pronouns of a text may stand for is said in it or before."""
        low = _plain(text)
        for pronoun in patterns.PRONOUN.finditer(
            patterns.FILLED.sub(lambda match: " " * len(match[0]), low)
        ):
            head = patterns.DETERMINER.sub("", f"{before} {text[: pronoun.start()]}".lstrip())
            if patterns.PERSONAL.match(pronoun[0]):
                has_antecedent = (
                    self.names_somebody(head) or patterns.ANIMATE.search(head.lower()) is not None
                )
            else:
                plain = patterns.REFERRING.match(pronoun[0])
                # What a clause speaks of is no object of it.
                start = 0 if before or patterns.NEXT_SUBJECT.search(low, 0, pronoun.start()) else 1
                has_antecedent = (
                    plain is not None
                    and patterns.ANTECEDENT.search(head.lower(), start) is not None
                )
            if not has_antecedent:
                return False
        return True

    def holds(self, text: str) -> bool:
        """Return whether it says what holds for somebody named, for "my …" or "the … …"."""
        be = patterns.IS.search(text)
        if be is not None:
            pair = (
                patterns.WHOM.fullmatch(text, 0, be.start()),
                patterns.VALUE.match(text, be.end()),
            )
        else:
            ends = (space.start() for space in islice(re.finditer(" ", text), 10))
            pairs = (
                (patterns.WHOM.fullmatch(text, 0, at), patterns.HOLDS.match(text, at + 1))
                for at in ends
            )
            pair = next((pair for pair in pairs if all(pair)), (None, None))
        whom, predicate = pair
        if (
            whom is None
            or predicate is None
            or re.search(rf"\b(?:{PAST}|who|which|that)\b", whom[0])
        ):
            return False
        if whom["said"]:
            low, words = _plain(text), COMPOUNDS.findall(text)
            personal = low.startswith(("he", "she"))
            return personal or self.is_named(words) or patterns.PRECISE.search(low) is not None
        if whom["mine"]:
            return be is None or patterns.REFERRED.match(text, be.end()) is None
        words = COMPOUNDS.findall(whom[0])
        if whom["bare"]:
            rest = text[whom.end() :]
            rule = be is not None or patterns.MODAL.match(text, whom.end())
            idle = (
                not rule or is_instruction(text) or patterns.NO_SUBJECT.fullmatch(words[0].lower())
            )
            exact = patterns.PRECISE.search(rest.lower()) or self.is_named(
                ["", *COMPOUNDS.findall(rest)]
            )
            return not idle and bool(exact)
        if whom["name"] and patterns.IDLE.fullmatch(words[0]) and not whom["name"][:1].isdigit():
            return False
        if whom["every"]:
            return patterns.MODAL.match(text, whom.end()) is not None
        if whom["the"] and self.acquainted:
            return self.is_named(words)
        if whom["the"]:
            fixed = re.search(
                f"{patterns.DATE}|{patterns.OFTEN}", text[predicate.start() :].lower()
            )
            valued = len(words) > 2 and patterns.VALUED.match(text, predicate.start())
            return bool(self.alone or fixed or valued)
        if not (
            words[0] in self.speakers
            or words[0] in self.named
            or len(words) > 1
            or _is_given(words[0])
        ):
            rest = text[whom.end() :]
            counted = re.search(r"\d", rest) or patterns.PRECISE.search(rest.lower())
            exact = counted is not None or self.is_named(["", *COMPOUNDS.findall(rest)])
            alone = (self.alone and not self.acquainted) or (be is not None and exact)
            return bool(alone) and not patterns.NO_SUBJECT.fullmatch(words[0].lower())
        value = "" if be is None else text[be.end() :]
        plain = self.acquainted and re.fullmatch(r"an? \w+\W*", value) is not None
        return not (value[:1].isupper() or plain)

    def names_somebody(self, text: str) -> bool:
        """Return whether a text names somebody who is not addressed."""
        straight = text.replace("’", "'")
        words = COMPOUNDS.findall(straight)
        if self.is_named(COMPOUNDS.findall(patterns.PLACED.sub(" ", straight))):
            return True
        return bool(words) and (_is_given(words[0]) or words[0].removesuffix("'s") in self.named)

    def is_named(self, words: list[str]) -> bool:
        """Return whether a word after the first is written as a name and is no day or month."""
        return any(
            word[0].isupper()
            and word not in self.speakers
            and not patterns.IDLE.fullmatch(word)
            and not patterns.UNTOLD.fullmatch(word.lower())
            for word in words[1:]
        )


def _is_of_one(clauses: Sequence[str]) -> bool:
    """Return True for a clause alone, and for "the rent is 950 euros" and "it's due on the 3rd"."""
    first, *rest = clauses
    counted = patterns.COUNTED.search(first.lower()) is not None
    return all(
        counted and patterns.ITS.match(clause) and patterns.PRECISE.search(clause.lower())
        for clause in rest
    )


def _is_given(word: str) -> bool:
    name, lists = word.replace("’", "'").removesuffix("'s"), gazetteer()
    return name in lists.given and name not in lists.ambiguous


def _plain(text: str) -> str:
    return text.replace("’", "'").lower()


MAX_CONFIDENCE: Final = 0.7
AGENT_CONFIDENCE: Final = 0.45
# What an agent writes at length is advice, or a letter in the user's name; a short turn may say
# what it has done.
MAX_REPORT_CHARS: Final = 600
MAX_SPEAKER_CHARS: Final = 60
_PLAIN: Final = frozenset({MemoryType.FACT, MemoryType.EVENT})
# A name is called by its beginning too: "Mel" for Melanie.
_SHORTENED: Final = (3, 4)


# Capitals within a sentence.
_NAMED: Final = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")


class _Found(NamedTuple):
    score: int
    fact: FactCandidate


class RuleExtractor:
    """Reads pages of turns. It has no state; instances may be shared by threads."""

    def extract(self, turns: Sequence[PageTurn], *, limit: int) -> list[FactCandidate]:
        """Return at most ``limit`` facts, the most telling, in the order they were said."""
        return self.extract_some(turns, limit=limit)[0]

    def extract_some(
        self, turns: Sequence[PageTurn], *, limit: int
    ) -> tuple[list[FactCandidate], int]:
        """Return what ``extract`` returns, and the number of facts that were left out."""
        ordered: list[_Found] = []
        gists: dict[str, list[tuple[int, SentenceKey]]] = {}
        for quotation in _quotations(turns):
            speaker = str(quotation.fact.attributes["speaker"])
            earlier_keys, key = gists.setdefault(speaker, []), SentenceKey.of(quotation.fact.quote)
            # A decision or a goal is more than a fact in the same words.
            alike = {quotation.fact.type} | (
                {*MemoryType} if quotation.fact.type in _PLAIN else set()
            )
            at = next(
                (
                    at
                    for at, earlier in earlier_keys
                    if ordered[at].fact.type in alike and key.repeats(earlier)
                ),
                None,
            )
            if at is None:
                earlier_keys.append((len(ordered), key))
                ordered.append(quotation)
                continue
            earlier_quotation = ordered[at]
            evidence = dict.fromkeys((*earlier_quotation.fact.evidence, *quotation.fact.evidence))
            ordered[at] = _Found(
                earlier_quotation.score, replace(earlier_quotation.fact, evidence=tuple(evidence))
            )
        best = sorted(range(len(ordered)), key=lambda at: (-ordered[at].score, at))[:limit]
        return [ordered[at].fact for at in sorted(best)], len(ordered) - len(best)


def speaker_of(role: str) -> str:
    """Return how a speaker is written before a quotation: the name, or the role in lower case."""
    name = " ".join("".join(" " if char in ":“”" else char for char in role).split())
    name = name[:MAX_SPEAKER_CHARS].rstrip()
    if name.casefold() in AGENTS | PERSONS or name.casefold() == "customer":
        return name.casefold()
    return name.capitalize() if name.isalpha() and name.islower() else name


def _quotations(turns: Sequence[PageTurn]) -> Iterator[_Found]:
    """Yield the sentences of turns that are facts, in the order they were said."""
    speakers = _names(turns)
    names = frozenset(
        name for turn in turns for name in _NAMED.findall(turn.content[:MAX_TURN_CHARS])
    )
    for turn in turns:
        voice = voice_of(turn.source_role, turn.told_as)
        drafted = voice is SpeakerRole.AGENT and len(turn.content) > MAX_REPORT_CHARS
        if voice is SpeakerRole.SILENT or drafted:
            continue
        acquainted = turn.source_role.casefold() not in PERSONS
        for quoted, judged in facts_of(
            turn.content, speakers=speakers, voice=voice, acquainted=acquainted, names_around=names
        ):
            yield _Found(judged.score, _fact(turn, quoted, judged, voice))


def _names(turns: Sequence[PageTurn]) -> frozenset[str]:
    """Return the names by which those who talk call each other."""
    names = {speaker_of(turn.source_role) for turn in turns}
    firsts = {name.split()[0] for name in names if name}
    short = {first[:size] for first in firsts for size in _SHORTENED if len(first) > size + 1}
    return frozenset(call_name for call_name in names | firsts | short if call_name[:1].isupper())


def _fact(
    turn: PageTurn, sentence: str, judged: ClauseVerdict, voice: SpeakerRole
) -> FactCandidate:
    confidence = MAX_CONFIDENCE if judged.own or judged.type is MemoryType.DECISION else 0.6
    if voice is SpeakerRole.AGENT:
        confidence = AGENT_CONFIDENCE
    return FactCandidate(
        content=quote(speaker_of(turn.source_role), sentence, turn.day),
        type=judged.type,
        importance=DEFAULT_IMPORTANCE[judged.type],
        confidence=confidence,
        event_time=turn.at_ms if turn.dated else None,
        evidence=(turn.memory_id,),
        quote=sentence,
        attributes={"speaker": turn.source_role, "quote": sentence},
    )
