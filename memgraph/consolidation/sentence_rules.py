"""Find the clauses of a turn that are facts understandable on their own, and their types.

Clauses are quoted, never rewritten. A fact must have one of a few shapes: what the speaker is, has,
does regularly, prefers, has decided, must do or aims at; a life event; or a statement about a
named person, "my …" or "the …". No word of it may refer to another sentence. Everything else is
left in the turn. English only.
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
"""The number of preceding sentences that may be quoted to identify the subject."""
# A sentence that shares this part of its words with an earlier one is a repetition.
MIN_REPEATED: Final = 0.8

MAX_CONTEXT_CHARS: Final = 120


class ClauseVerdict(NamedTuple):
    """The judgement of a clause as a fact.

    Attributes:
        score: how informative it is, 1 to 5.
        own: it is a statement about the speaker ("me" or "us").
    """

    type: MemoryType
    score: int
    own: bool


class SentenceKey(NamedTuple):
    """The content of a sentence (words, names, numbers, negation), to detect repetitions."""

    text: str
    words: frozenset[str]
    exact: tuple[str, ...]
    denied: bool

    @classmethod
    def of(cls, text: str) -> SentenceKey:
        """Return the key of a sentence."""
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
        """Return True if ``earlier`` has the same names and at least four fifths of the words."""
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
        speakers: the names of the speakers; addressing one of them does not count as a name.
        voice: standing instructions of a person ("Always …") are preferences; of an agent only
            statements about its own actions are facts.
        acquainted: people talk to each other, so "the meeting" is one that both know.
        names_around: words that are capitalised as names in the surrounding turns.
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
    """Reads one turn, clause by clause.

    Attributes:
        alone: the turn has only one sentence, so that "the rent" is unambiguous.
        named: words that are capitalised as names in the surrounding turns.
    """

    speakers: Collection[str]
    voice: SpeakerRole
    acquainted: bool
    alone: bool
    named: Collection[str]

    def order_in(self, text: str) -> tuple[str, ClauseVerdict] | None:
        """Return a person's standing instruction to an assistant, or None."""
        if self.acquainted or self.voice is SpeakerRole.AGENT or len(text) > MAX_FACT_CHARS:
            return None
        return self.as_order(text) or self.as_order(patterns.GROUND.split(text)[0])

    def as_order(self, text: str) -> tuple[str, ClauseVerdict] | None:
        """Return a text as a standing instruction; None if it is not one, or not self-contained."""
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
        """Return the first fact of a sentence, quoted together with the sentence of its subject."""
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
        """Yield the clauses that are facts, each with the clauses needed to understand it.

        Args:
            before: the text before the first clause.
        """
        clauses = clauses_of(sentence)
        parts = [sentence[start:end] for start, end in clauses]
        reader = self._replace(alone=self.alone and _is_of_one(parts))
        conditional = False
        while clauses:
            start, end = clauses.pop(0)
            if not reader.is_clear(sentence[start:end], before):
                end = reader.clear_end(sentence, start, end, before)
            verdict = None if conditional else reader.judge(sentence[start:end], before)
            conditional = patterns.CONDITION.match(sentence[start:end].lower()) is not None
            if verdict is None:
                if before:
                    return
                continue
            while clauses and self.goes_on(sentence, start, end, clauses[0], before):
                end = clauses.pop(0)[1]
            if clauses and self.is_conditional(sentence, clauses[0]):
                continue
            yield patterns.LOOSE_END.sub("", sentence[start:end]), verdict
            before = ""

    def clear_end(self, sentence: str, start: int, end: int, before: str) -> int:
        """Return the end of the self-contained part of a clause, at a comma, or ``end``."""
        at = sentence.find(", ", start, end)
        return at if at > 0 and self.is_clear(sentence[start:at], before) else end

    def is_conditional(self, sentence: str, clause: tuple[int, int]) -> bool:
        """Return True if a clause is a condition of the clause before it."""
        low = _plain(sentence[clause[0] : clause[1]])
        return patterns.CONDITION.match(low) is not None and patterns.LISTENER.search(low) is None

    def goes_on(
        self, sentence: str, start: int, end: int, clause: tuple[int, int], before: str = ""
    ) -> bool:
        """Return True if the next clause belongs to the fact from ``start`` to ``end``."""
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
        """Return the verdict on a clause; None if it has none of the shapes of a fact.

        Args:
            before: the fact that it continues; a pronoun may refer to it.
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
        # Said to an assistant, a perfect tense only describes a step of the current task.
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
        """Return how informative a clause is, 1 to 5; None if it says too little."""
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
        # "I signed the contract on 3 May" is exact only if the contract is known.
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
        """Return True if no word refers to the listener, the moment or an earlier sentence.

        Args:
            before: the text quoted with it, which may contain antecedents.
        """
        return not patterns.PASSING.search(_plain(text)) and self.refers_within(text, before)

    def refers_within(self, text: str, before: str = "") -> bool:
        """Return True if every pronoun of a text has an antecedent in it or in ``before``."""
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
                # The first word is the subject of the clause, not an antecedent.
                start = 0 if before or patterns.NEXT_SUBJECT.search(low, 0, pronoun.start()) else 1
                has_antecedent = (
                    plain is not None
                    and patterns.ANTECEDENT.search(head.lower(), start) is not None
                )
            if not has_antecedent:
                return False
        return True

    def holds(self, text: str) -> bool:
        """Return True if a text is a statement about somebody named, "my …" or "the …"."""
        copula = patterns.IS.search(text)
        if copula is not None:
            pair = (
                patterns.WHOM.fullmatch(text, 0, copula.start()),
                patterns.VALUE.match(text, copula.end()),
            )
        else:
            ends = (space.start() for space in islice(re.finditer(" ", text), 10))
            pairs = (
                (patterns.WHOM.fullmatch(text, 0, at), patterns.HOLDS.match(text, at + 1))
                for at in ends
            )
            pair = next((pair for pair in pairs if all(pair)), (None, None))
        subject, predicate = pair
        if (
            subject is None
            or predicate is None
            or re.search(rf"\b(?:{PAST}|who|which|that)\b", subject[0])
        ):
            return False
        if subject["said"]:
            low, words = _plain(text), COMPOUNDS.findall(text)
            personal = low.startswith(("he", "she"))
            return personal or self.is_named(words) or patterns.PRECISE.search(low) is not None
        if subject["mine"]:
            return copula is None or patterns.REFERRED.match(text, copula.end()) is None
        words = COMPOUNDS.findall(subject[0])
        if subject["bare"]:
            rest = text[subject.end() :]
            rule = copula is not None or patterns.MODAL.match(text, subject.end())
            idle = (
                not rule or is_instruction(text) or patterns.NO_SUBJECT.fullmatch(words[0].lower())
            )
            exact = patterns.PRECISE.search(rest.lower()) or self.is_named(
                ["", *COMPOUNDS.findall(rest)]
            )
            return not idle and bool(exact)
        if (
            subject["name"]
            and patterns.IDLE.fullmatch(words[0])
            and not subject["name"][:1].isdigit()
        ):
            return False
        if subject["every"]:
            return patterns.MODAL.match(text, subject.end()) is not None
        if subject["the"] and self.acquainted:
            return self.is_named(words)
        if subject["the"]:
            fixed = re.search(
                f"{patterns.DATE}|{patterns.OFTEN}", text[predicate.start() :].lower()
            )
            valued = len(words) > 2 and patterns.VALUED.match(text, predicate.start())
            return bool(self.alone or fixed or valued)
        if not (
            words[0] in self.speakers
            or words[0] in self.named
            or len(words) > 1
            or _is_given_name(words[0])
        ):
            rest = text[subject.end() :]
            counted = re.search(r"\d", rest) or patterns.PRECISE.search(rest.lower())
            exact = counted is not None or self.is_named(["", *COMPOUNDS.findall(rest)])
            alone = (self.alone and not self.acquainted) or (copula is not None and exact)
            return bool(alone) and not patterns.NO_SUBJECT.fullmatch(words[0].lower())
        value = "" if copula is None else text[copula.end() :]
        plain = self.acquainted and re.fullmatch(r"an? \w+\W*", value) is not None
        return not (value[:1].isupper() or plain)

    def names_somebody(self, text: str) -> bool:
        """Return True if a text names somebody other than the listener."""
        straight = text.replace("’", "'")
        words = COMPOUNDS.findall(straight)
        if self.is_named(COMPOUNDS.findall(patterns.PLACED.sub(" ", straight))):
            return True
        return bool(words) and (
            _is_given_name(words[0]) or words[0].removesuffix("'s") in self.named
        )

    def is_named(self, words: list[str]) -> bool:
        """Return True if a word after the first is capitalised as a name, not as a day or month."""
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


def _is_given_name(word: str) -> bool:
    name, lists = word.replace("’", "'").removesuffix("'s"), gazetteer()
    return name in lists.given and name not in lists.ambiguous


def _plain(text: str) -> str:
    return text.replace("’", "'").lower()


MAX_CONFIDENCE: Final = 0.7
AGENT_CONFIDENCE: Final = 0.45
# Long turns of an agent are advice, or texts in the user's name; short ones may report what it did.
MAX_REPORT_CHARS: Final = 600
MAX_SPEAKER_CHARS: Final = 60
_PLAIN: Final = frozenset({MemoryType.FACT, MemoryType.EVENT})
# Names are also shortened to their first letters: "Mel" for Melanie.
_SHORTENED: Final = (3, 4)


# A capitalised word within a sentence.
_NAMED: Final = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")


class _ScoredFact(NamedTuple):
    score: int
    fact: FactCandidate


class RuleExtractor:
    """Extracts facts from pages of turns by rules. Stateless; threads may share an instance."""

    def extract(self, turns: Sequence[PageTurn], *, limit: int) -> list[FactCandidate]:
        """Return the ``limit`` most informative facts, in the order they were said."""
        return self.extract_some(turns, limit=limit)[0]

    def extract_some(
        self, turns: Sequence[PageTurn], *, limit: int
    ) -> tuple[list[FactCandidate], int]:
        """Return the facts of ``extract``, and the number of facts that were left out."""
        ordered: list[_ScoredFact] = []
        keys_by_speaker: dict[str, list[tuple[int, SentenceKey]]] = {}
        for quotation in _quotations(turns):
            speaker = str(quotation.fact.attributes["speaker"])
            earlier_keys, key = (
                keys_by_speaker.setdefault(speaker, []),
                SentenceKey.of(quotation.fact.quote),
            )
            # A fact or event does not replace a decision or goal with the same words.
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
            ordered[at] = _ScoredFact(
                earlier_quotation.score, replace(earlier_quotation.fact, evidence=tuple(evidence))
            )
        best = sorted(range(len(ordered)), key=lambda at: (-ordered[at].score, at))[:limit]
        return [ordered[at].fact for at in sorted(best)], len(ordered) - len(best)


def speaker_of(role: str) -> str:
    """Return the speaker as written before a quotation: the name, or the role in lower case."""
    name = " ".join("".join(" " if char in ":“”" else char for char in role).split())
    name = name[:MAX_SPEAKER_CHARS].rstrip()
    if name.casefold() in AGENTS | PERSONS or name.casefold() == "customer":
        return name.casefold()
    return name.capitalize() if name.isalpha() and name.islower() else name


def _quotations(turns: Sequence[PageTurn]) -> Iterator[_ScoredFact]:
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
            yield _ScoredFact(judged.score, _fact(turn, quoted, judged, voice))


def _names(turns: Sequence[PageTurn]) -> frozenset[str]:
    """Return the names by which the speakers may address each other."""
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
