"""The written pairs and talks on which the reader of pairs is trained and measured.

`corpus/pairs/*.tsv` and `corpus/pairs/talks/*.jsonl` are open; `corpus/pairs/locked/` is a third of
the briefs, and takes no part in training or in any choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from memgraph.providers.local import LocalEmbedding
from memgraph.text.sentences import passages

CORPUS: Final = Path(__file__).parent / "corpus" / "pairs"
LABELS: Final = ("changes", "repeats", "none")
LABEL_OF_KIND: Final = {
    "p": "changes",
    "f": "changes",
    "t": "none",
    "n": "none",
    "r": "repeats",
    "u": "none",
}
KINDS: Final = {
    "p": "plain changes",
    "f": "freely worded changes",
    "t": "traps",
    "n": "nearly the same words",
    "r": "repeats",
    "u": "unrelated",
}
NEIGHBOURS: Final = 6
NEIGHBOUR: Final = "x"
"""The kind of pairs that were found in talks, as the nearest earlier passages."""


class Pair(NamedTuple):
    """Two statements, and what the later is to the earlier one."""

    label: str
    earlier: str
    later: str
    kind: str
    brief: str


class Turn(NamedTuple):
    """One turn of a talk, with the earlier turns that it changes or repeats."""

    number: int
    speaker: str
    date: str
    text: str
    changes: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()


def read_pairs(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        kind, earlier, later = line.split("\t")
        yield Pair(LABEL_OF_KIND[kind], earlier, later, kind, path.stem)


def read_labelled(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file of labelled changes in JSON Lines."""
    names = {"change": "changes", "same": "repeats", "none": "none"}
    for line in path.read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        earlier, later = (
            f"{who}: {given[side]}" if (who := given.get(f"{side}_speaker")) else given[side]
            for side in ("a", "b")
        )
        kind, brief = given.get("kind", given["expect"]), given.get("brief", path.stem)
        yield Pair(names[given["expect"]], earlier, later, kind, brief)


def open_pairs() -> list[Pair]:
    """Return the open pairs, by brief."""
    return [pair for path in sorted(CORPUS.glob("*.tsv")) for pair in read_pairs(path)]


def locked_pairs() -> list[Pair]:
    """Return the pairs of the locked briefs: for a last measurement only."""
    return [pair for path in sorted(CORPUS.glob("locked/*.tsv")) for pair in read_pairs(path)]


def read_talk(path: Path) -> list[Turn]:
    """Return the turns of a talk."""
    return [_turn(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _turn(given: dict[str, Any]) -> Turn:
    changes, repeats = (tuple(given.get(name) or ()) for name in ("changes", "repeats"))
    return Turn(given["i"], given["speaker"], given["date"], given["text"], changes, repeats)


def open_talks() -> dict[str, list[Turn]]:
    """Return the open talks by name."""
    return {path.stem: read_talk(path) for path in sorted(CORPUS.glob("talks/*.jsonl"))}


def locked_talks() -> dict[str, list[Turn]]:
    """Return the locked talks by name."""
    return {path.stem: read_talk(path) for path in sorted(CORPUS.glob("locked/talks/*.jsonl"))}


def talk_pairs(talks: dict[str, list[Turn]] | None = None) -> list[Pair]:
    """Return the passages of turns with their nearest earlier ones, nearly all of them ``none``."""
    found: list[Pair] = []
    for name, turns in (open_talks() if talks is None else talks).items():
        found += _pairs_of(name, turns)
    return found


def _pairs_of(name: str, turns: list[Turn]) -> Iterable[Pair]:
    parts = [(turn, text) for turn in turns for text in passages(turn.text)]
    vectors = LocalEmbedding().embed([text for _, text in parts])
    close = vectors @ vectors.T
    known = related(turns)
    for later, (turn, text) in enumerate(parts):
        earlier = [n for n in range(later) if parts[n][0].number < turn.number]
        earlier.sort(key=lambda n: -close[later, n])
        for rank, n in enumerate(earlier):
            other = parts[n][0]
            label = known.get((turn.number, other.number))
            if label is None:
                if rank < NEIGHBOURS:
                    yield Pair(
                        "none", _spoken(other, parts[n][1]), _spoken(turn, text), NEIGHBOUR, name
                    )
            elif label != "unclear" and _is_best(later, n, parts, close):
                yield Pair(label, _spoken(other, parts[n][1]), _spoken(turn, text), NEIGHBOUR, name)


def _spoken(turn: Turn, text: str) -> str:
    return f"{turn.speaker}: {text}"


def _is_best(later: int, earlier: int, parts: list[tuple[Turn, str]], close: np.ndarray) -> bool:
    """Return True for the closest passages of two turns."""
    ours = [n for n, (turn, _) in enumerate(parts) if turn is parts[later][0]]
    theirs = [n for n, (turn, _) in enumerate(parts) if turn is parts[earlier][0]]
    return bool(close[later, earlier] >= close[np.ix_(ours, theirs)].max() - 1e-6)


def related(turns: Sequence[Turn]) -> dict[tuple[int, int], str]:
    """Return what is known of pairs of turns, by (later, earlier)."""
    known: dict[tuple[int, int], str] = {}
    for turn in turns:
        known |= {(turn.number, other): "changes" for other in turn.changes}
        known |= {(turn.number, other): "repeats" for other in turn.repeats}
    for (later, middle), label in list(known.items()):
        for (other, earlier), _ in list(known.items()):
            if other == middle and (later, earlier) not in known:
                known[later, earlier] = "changes" if label == "changes" else "unclear"
            if other == middle and label == "repeats":
                known.setdefault((later, earlier), "unclear")
    return known
