"""How many plain sentences said to an assistant the rules keep, and how much chatter."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from memgraph.consolidation.agent_tools import PageTurn
from memgraph.consolidation.ports import FactCandidate
from memgraph.consolidation.sentence_rules import RuleExtractor

DATA = Path(__file__).parent / "said_to_an_assistant.tsv"
AT = 1_780_000_000_000


@dataclass
class Counts:
    """Sentences by what became of them."""

    kept: list[str] = field(default_factory=list)
    mistyped: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = len(self.kept) + len(self.mistyped) + len(self.missed)
        return (
            f"{len(self.kept)} of {told} kept, {len(self.mistyped)} with another type, "
            f"{len(self.missed)} missed; {len(self.wrong)} of "
            f"{len(self.wrong) + len(self.left)} kept that tell nothing"
        )


def half_of(text: str) -> str:
    """``dev``, looked at while the rules were written, or ``held out``."""
    return "dev" if sha256(text.encode()).digest()[0] % 2 == 0 else "held out"


def labelled(half: str) -> list[tuple[frozenset[str], str]]:
    lines = DATA.read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [
        (frozenset(types.split("|")) - {"-"}, text)
        for types, text in pairs
        if half_of(text) == half
    ]


def facts(text: str) -> list[FactCandidate]:
    turns = [
        PageTurn("ep_0", text, "user", AT, 0),
        PageTurn("ep_1", "Okay.", "assistant", AT + 1, 1),
    ]
    return RuleExtractor().extract(turns, limit=5)


def measured(half: str) -> Counts:
    counts = Counts()
    for types, text in labelled(half):
        found = facts(text)
        if not types:
            (counts.wrong if found else counts.left).append(text)
        elif not found:
            counts.missed.append(text)
        else:
            (counts.kept if found[0].type.value in types else counts.mistyped).append(text)
    return counts


@pytest.mark.parametrize(("half", "least"), [("dev", 0.85), ("held out", 0.7)])
def test_plain_statements_are_kept_and_chatter_is_not(half: str, least: float) -> None:
    counts = measured(half)
    told = len(counts.kept) + len(counts.mistyped) + len(counts.missed)
    assert len(counts.kept) >= least * told, (str(counts), counts.missed, counts.mistyped)
    assert len(counts.wrong) <= 0.05 * (len(counts.wrong) + len(counts.left)), counts.wrong
