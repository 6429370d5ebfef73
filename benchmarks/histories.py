"""Histories of facts that change, made up by a seeded generator, for measuring staleness.

A history is a script: what is remembered, replaced, corrected, disputed, decided or taken back, on
which day, and what a question must find afterwards. The wording is varied: a fact is stated,
changed and asked for in different sentences, some changes do not even name their subject, and
around each history lie memories about the same subject and about the same matter of others.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from memgraph.model.enums import MemoryType

DATA = Path(__file__).with_name("corpus") / "histories.json"
MAX_HISTORIES = 300
# Days between the events of one history, and days over which all of them begin.
SHORTEST_GAP, LONGEST_GAP, SPAN = 2, 40, 120
# So much before a change the memory is asked as of then: events of a history lie days apart.
BEFORE_A_CHANGE = 0.25
TERSE_SHARE = 0.2
# What the key of a memory begins with that no question is about.
DISTRACTOR = "distractor"


class Kind(StrEnum):
    """What happens in a history."""

    CHANGED_ONCE = "changed_once"
    CHANGED_TWICE = "changed_twice"
    REVERSED = "reversed"
    CORRECTED = "corrected"
    PARTIAL = "partial"
    OPEN = "open"
    REOPENED = "reopened"
    RESOLVED_FOR_NEW = "resolved_for_new"
    RESOLVED_FOR_OLD = "resolved_for_old"
    WITHDRAWN = "withdrawn"


class Action(StrEnum):
    """What is done at one moment, through the public interface."""

    STATE = "state"
    REPLACE = "replace"
    CORRECT = "correct"
    AMEND = "amend"
    DISPUTE = "dispute"
    RESOLVE = "resolve"
    REOPEN = "reopen"
    WITHDRAW = "withdraw"


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a history.

    Attributes:
        key: the memory that is written, or that wins, or that is taken back.
        other: the memory that is replaced, amended, disputed, or that loses.
        question: of a distractor that states a fact, what it answers.
    """

    day: float
    action: Action
    key: str
    text: str = ""
    other: str = ""
    type: MemoryType = MemoryType.FACT
    importance: int = 50
    question: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A question, and what must come of it.

    Attributes:
        current: the memory that holds; None: none does.
        stale: memories that held once.
        disputed_by: the other side of an open contradiction with ``current``.
        as_of: the day as of which it is asked; None: at the end of all.
        later: memories that are not there yet on that day.
        decided: a contradiction was decided in favour of ``current``.
    """

    question: str
    current: str | None
    stale: tuple[str, ...] = ()
    disputed_by: str | None = None
    as_of: float | None = None
    later: tuple[str, ...] = ()
    decided: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """A script with its questions; ``terse``: a change in it does not name its subject."""

    name: str
    kind: Kind
    terse: bool
    events: tuple[Event, ...]
    distractors: tuple[Event, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class _Matter:
    """What may be said about one subject: a fact with changing values, or a decision."""

    domain: Mapping[str, Any]
    subject: str
    topic: Mapping[str, Any]

    @property
    def is_decision(self) -> bool:
        return "do" in self.topic

    @property
    def type(self) -> MemoryType:
        return MemoryType.DECISION if self.is_decision else MemoryType(self.topic["type"])


@dataclass(slots=True)
class _Script:
    """A history while it is being written; ``used``: texts of all that name no subject."""

    chance: random.Random
    matter: _Matter
    used: set[str]
    day: float
    events: list[Event] = field(default_factory=list)
    terse: bool = False
    said: set[str] = field(default_factory=set)

    def pick(self, texts: Sequence[str], **values: str) -> str:
        """One of some sentences in words that this history has not used yet, filled in."""
        fresh = [each for each in texts if each not in self.said] or list(texts)
        chosen = self.chance.choice(fresh)
        self.said.add(chosen)
        return sentence(chosen, s=self.matter.subject, **values)

    def values(self, count: int) -> list[str]:
        return self.chance.sample(self.matter.topic["values"], count)

    def changed(self, old: str, new: str, among: str = "change", terse: str = "terse") -> str:
        """A sentence that puts ``new`` in the place of ``old``, now and then without a subject."""
        if self.chance.random() < TERSE_SHARE:
            texts = (sentence(each, v=new, o=old) for each in _data()[terse])
            # Two histories with one and the same text would share one memory.
            free = [each for each in texts if each not in self.used]
            if free:
                self.terse = True
                self.used.add(chosen := self.chance.choice(free))
                return chosen
        return self.pick(self.matter.topic[among], v=new, o=old)

    def add(self, action: Action, key: str, text: str = "", other: str = "") -> float:
        """An event some days after the last one; gives its day."""
        if self.events:
            self.day += self.chance.randint(SHORTEST_GAP, LONGEST_GAP)
        importance = self.chance.choice((40, 50, 60, 70))
        self.events.append(Event(self.day, action, key, text, other, self.matter.type, importance))
        return self.day

    def ask(self) -> str:
        return self.pick(self.matter.topic["ask"])


def histories(count: int, seed: int) -> list[History]:
    """``count`` histories of all kinds in turn; the same seed gives the same ones."""
    chance = random.Random(f"histories-{seed}")
    matters = _matters()
    chance.shuffle(matters)
    kinds = list(Kind)
    wanted = [kinds[at % len(kinds)] for at in range(count)]
    chosen: list[tuple[Kind, _Matter]] = []
    for kind in wanted:
        at = next(
            at for at, matter in enumerate(matters) if matter.is_decision == (kind is Kind.REVERSED)
        )
        chosen.append((kind, matters.pop(at)))
    used: set[str] = set()
    scripts = [
        _Script(chance, matter, used, day=chance.randrange(SPAN) + chance.random())
        for _, matter in chosen
    ]
    # All scripts come first: a distractor must not say what a history is about.
    checks = [
        tuple(_WRITERS[kind](script, matters))
        for script, (kind, _) in zip(scripts, chosen, strict=True)
    ]
    return [
        History(
            f"history-{at:03d}",
            kind,
            scripts[at].terse,
            tuple(scripts[at].events),
            tuple(_distractors(matter, matters, chance)),
            checks[at],
        )
        for at, (kind, matter) in enumerate(chosen)
    ]


def sentence(template: str, **values: str) -> str:
    """A template filled in, with a capital letter at the beginning."""
    text = template.format(**values)
    return text[0].upper() + text[1:]


@cache
def _data() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return loaded


def _matters() -> list[_Matter]:
    return [
        _Matter(domain, domain["form"].format(a=a, b=b), topic)
        for domain in _data()["domains"]
        for a in domain["a"]
        for b in domain["b"]
        for topic in (*domain["frames"], *domain["decisions"])
    ]


def _distractors(matter: _Matter, unused: list[_Matter], chance: random.Random) -> Iterator[Event]:
    """Other facts about the subject, the same fact about others, and talk."""
    same_subject = [each for each in unused if each.subject == matter.subject]
    same_topic = [
        each for each in unused if each.topic is matter.topic and each.subject != matter.subject
    ]
    texts = []
    for each in [*same_subject[:2], *same_topic[:3]]:
        unused.remove(each)
        question = sentence(each.topic["ask"][0], s=each.subject)
        texts.append((each.type, _stated(each, chance), question))
    texts.extend(
        (MemoryType.OBSERVATION, sentence(each, s=matter.subject), "")
        for each in chance.sample(matter.domain["chatter"], 2)
    )
    for at, (kind, text, question) in enumerate(texts):
        day = chance.randrange(SPAN + LONGEST_GAP) + chance.random()
        importance = chance.choice((40, 50, 60, 70))
        key = f"{DISTRACTOR}-{at}"
        yield Event(
            day, Action.STATE, key, text, type=kind, importance=importance, question=question
        )


def _stated(matter: _Matter, chance: random.Random) -> str:
    if matter.is_decision:
        return sentence(chance.choice(matter.topic["do"]), s=matter.subject)
    value = chance.choice(matter.topic["values"])
    return sentence(chance.choice(matter.topic["first"]), s=matter.subject, v=value)


def _changed(script: _Script, times: int) -> Iterator[Check]:
    values = script.values(times + 1)
    texts = [script.pick(script.matter.topic["first"], v=values[0])]
    texts += [script.changed(old, new) for old, new in pairwise(values)]
    yield from _replaced(script, texts, Action.REPLACE)


def _reversed(script: _Script, _unused: list[_Matter]) -> Iterator[Check]:
    topic = script.matter.topic
    texts = [script.pick(topic["do"]), script.pick(topic["undo"])]
    if script.chance.random() < 1 / 2:
        texts.append(script.pick(topic["back"]))
    yield from _replaced(script, texts, Action.REPLACE)


def _corrected(script: _Script, _unused: list[_Matter]) -> Iterator[Check]:
    wrong, right = script.values(2)
    texts = [script.pick(script.matter.topic["first"], v=wrong), script.changed(wrong, right)]
    yield from _replaced(script, texts, Action.CORRECT)


def _replaced(script: _Script, texts: Sequence[str], action: Action) -> Iterator[Check]:
    """A chain of replacements, asked for at the end and as of before each of them."""
    keys = [f"value-{at}" for at in range(len(texts))]
    script.add(Action.STATE, keys[0], texts[0])
    question = script.ask()
    yield Check(question, keys[-1], tuple(keys[:-1]))
    for at in range(1, len(texts)):
        day = script.add(action, keys[at], texts[at], keys[at - 1])
        yield Check(
            question,
            keys[at - 1],
            tuple(keys[: at - 1]),
            as_of=day - BEFORE_A_CHANGE,
            later=tuple(keys[at:]),
        )


def _partial(script: _Script, unused: list[_Matter]) -> Iterator[Check]:
    """Two facts in one memory, of which one changes: the other still holds."""
    kept = next(
        each for each in unused if each.subject == script.matter.subject and not each.is_decision
    )
    unused.remove(kept)
    old, new = script.values(2)
    parts = [script.pick(script.matter.topic["first"], v=old), _stated(kept, script.chance)]
    script.chance.shuffle(parts)
    script.add(Action.STATE, "whole", " ".join(parts))
    day = script.add(Action.AMEND, "amendment", script.changed(old, new), "whole")
    question = script.ask()
    yield Check(question, "amendment", ("whole",))
    yield Check(sentence(script.chance.choice(kept.topic["ask"]), s=kept.subject), "whole")
    yield Check(question, "whole", as_of=day - BEFORE_A_CHANGE, later=("amendment",))


def _disputed(script: _Script, decide: Callable[[], str | None], reopen: bool) -> Iterator[Check]:
    """Two sides; ``decide`` tells the winner, None: it is left open."""
    one, other = script.values(2)
    script.add(Action.STATE, "first", script.pick(script.matter.topic["first"], v=one))
    against = script.changed(one, other, among="first", terse="counter")
    day = script.add(Action.DISPUTE, "second", against, "first")
    question = script.ask()
    yield Check(question, "first", as_of=day - BEFORE_A_CHANGE, later=("second",))
    winner = decide()
    if winner is None:
        yield Check(question, "first", disputed_by="second")
        return
    loser = "second" if winner == "first" else "first"
    day = script.add(Action.RESOLVE, winner, other=loser)
    yield Check(question, "first", disputed_by="second", as_of=day - BEFORE_A_CHANGE)
    if not reopen:
        yield Check(question, winner, (loser,), decided=True)
        return
    day = script.add(Action.REOPEN, winner, other=loser)
    yield Check(question, "first", disputed_by="second")


def _withdrawn(script: _Script, _unused: list[_Matter]) -> Iterator[Check]:
    text = script.pick(script.matter.topic["first"], v=script.values(1)[0])
    script.add(Action.STATE, "claim", text)
    question = script.ask()
    yield Check(question, None, ("claim",))
    day = script.add(Action.WITHDRAW, "claim")
    yield Check(question, "claim", as_of=day - BEFORE_A_CHANGE)


_WRITERS: Mapping[Kind, Callable[[_Script, list[_Matter]], Iterator[Check]]] = {
    Kind.CHANGED_ONCE: lambda script, _: _changed(script, 1),
    Kind.CHANGED_TWICE: lambda script, _: _changed(script, 2),
    Kind.REVERSED: _reversed,
    Kind.CORRECTED: _corrected,
    Kind.PARTIAL: _partial,
    Kind.OPEN: lambda script, _: _disputed(script, lambda: None, reopen=False),
    Kind.REOPENED: lambda script, _: _disputed(
        script, lambda: script.chance.choice(("first", "second")), reopen=True
    ),
    Kind.RESOLVED_FOR_NEW: lambda script, _: _disputed(script, lambda: "second", reopen=False),
    Kind.RESOLVED_FOR_OLD: lambda script, _: _disputed(script, lambda: "first", reopen=False),
    Kind.WITHDRAWN: _withdrawn,
}
