"""The context leg: how well a memory and what stands around it answer a question.

In a conversation the words of a question are spread over turns: one asks, the next answers, the
session tells what it is about. Every candidate is scored by what it says itself, what its
neighbours say (turns beside it, memories joined to it by an edge), what its session says and who
says it: a weighted sum of features between about
0 and 1. The weights were fitted (a softmax over the candidates of a question, so that the sum is
a logit) on conversations with marked evidence and tried on conversations left out of the fit;
``benchmarks/fit_context_leg.py`` does it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from memgraph.retrieval.query import Question, Terms
from memgraph.retrieval.stemming import fold, head, stem, words
from memgraph.storage.recall_queries import Candidate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Number = TypeVar("Number", np.float32, np.float64)

DISTANCE = 2
"""Turns before and after a candidate that are looked at."""

WEIGHTS: Mapping[str, float] = {
    "own_terms": 0.75,
    "near_terms": 2.4,
    "before_terms": 0.9,
    "session_terms": 1.5,
    "own_meaning": 1.6,
    "near_meaning": 0.9,
    "feedback_meaning": 1.2,
    "best_of_session": 1.2,
    "speaker": 0.9,
    "length": 3.5,
    "asks": -1.0,
    "answers": 0.5,
    "time_asked": 2.0,
    "number_asked": 0.8,
    "period": 5.0,
}

# Between two texts: a character that stands in no word.
_END = "\x02"
# Every ASCII byte that belongs to no word becomes a blank, capitals become small; bytes of other
# characters stay, `_Plain` has seen to those.
_BLANKED = bytes(
    ord(chr(code).lower()) if code >= 128 or chr(code) == _END or chr(code).isalnum() else ord(" ")
    for code in range(256)
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# BM25's usual constants; a turn of a conversation has about so many words.
_K1, _B, _USUAL_WORDS = 1.2, 0.75, 30.0
_NEAR = {1: 0.6, 2: 0.4}
_FEEDBACK_TOP = 5
# A turn may be an "ok, thanks"; what is no turn was written down because it says something.
_LENGTH_SCALE, _USUAL_LENGTH = 12.0, 0.75
_TIME_WORDS = """
    yesterday today tonight tomorrow last next ago week weeks weekend month months year years
    recently since morning monday tuesday wednesday thursday friday saturday sunday january february
    march april may june july august september october november december
"""
_NUMBER_WORDS = """
    once twice one two three four five six seven eight nine ten dozen several
"""


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of one question, in the order of their sessions and turns.

    Attributes:
        links: (one, other, weight 0..1) by key: what ``other`` says tells about ``one`` too.
        vectors: shape (n, dimensions), unit norm or zero; None: there are none to compare.
        query_vector: shape (dimensions,).
    """

    candidates: Sequence[Candidate]
    links: Sequence[tuple[int, int, float]]
    vectors: NDArray[np.float32] | None
    query_vector: NDArray[np.float32] | None


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sessions together, their turns in sequence; ties by key."""
    return sorted(candidates, key=lambda each: (each.session_id or "", each.sequence or 0, each.pk))


def rank(pool: Pool, question: Question, terms: Terms) -> list[int]:
    """Keys of all candidates, best first, ties by key."""
    scored = features(pool, question, terms)
    score = np.zeros(len(pool.candidates))
    for name, weight in WEIGHTS.items():
        if name in scored:
            score += weight * scored[name]
    keys = np.array([each.pk for each in pool.candidates], dtype=np.int64)
    # Rounded, so that the last bits of a sum, which differ between machines, decide nothing.
    order = np.lexsort((keys, -np.round(score, 6)))
    return [int(key) for key in keys[order]]


def features(pool: Pool, question: Question, terms: Terms) -> dict[str, Floats]:
    """Every feature by name, one number per candidate."""
    layout = _Layout(pool.candidates)
    texts = _Texts(pool.candidates)
    found = _term_features(pool, terms, layout, texts)
    found |= _plain_features(pool.candidates, question, layout, texts)
    if pool.vectors is not None and pool.query_vector is not None:
        found |= _meaning_features(pool.vectors, pool.query_vector, found, layout)
    found["best_of_session"] = layout.best_of_session(_first_guess(found))
    return found


class _Layout:
    """Who stands beside whom: neighbours by session and sequence, sessions as groups."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._n = len(candidates)
        names: dict[str, int] = {}
        # A memory of no session is a session of its own.
        self.session = np.array(
            [
                names.setdefault(each.session_id, len(names))
                if each.session_id is not None and each.sequence is not None
                else -1 - at
                for at, each in enumerate(candidates)
            ],
            dtype=np.int64,
        )
        self.in_session = self.session >= 0
        self._place = np.array([each.sequence or 0 for each in candidates], dtype=np.int64)
        self._known_pairs: dict[int, tuple[NDArray[np.intp], NDArray[np.intp]]] = {}
        _, self.group = np.unique(self.session, return_inverse=True)

    def shifted(self, values: NDArray[Number], turns: int) -> NDArray[Number]:
        """For each candidate the values of the one ``turns`` later, 0 where there is none.

        Between neighbours in a pool lie turns that are no candidates, so places are compared.
        """
        here, there = self._pairs(turns)
        out = np.zeros_like(values)
        out[here] = values[there]
        return out

    def _pairs(self, turns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows, and for each the row of the candidate ``turns`` later."""
        if -turns in self._known_pairs:
            there, here = self._known_pairs[-turns]
            return here, there
        if turns not in self._known_pairs:
            pairs = []
            for step in range(1, abs(turns) + 1):
                same = (self.session[:-step] == self.session[step:]) & (
                    self._place[step:] - self._place[:-step] == abs(turns)
                )
                before = np.flatnonzero(same)
                pairs.append((before, before + step))
            first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
            self._known_pairs[turns] = (first, second) if turns > 0 else (second, first)
        return self._known_pairs[turns]

    def best_of_session(self, values: Floats) -> Floats:
        """For each candidate the highest value in its session."""
        best = np.full((int(self.group.max(initial=-1)) + 1, *values.shape[1:]), -np.inf)
        np.maximum.at(best, self.group, values)
        return best[self.group]


class _Texts:
    """The words of all candidates in one string of bytes, every one between blanks.

    To take every word of a few hundred texts into the hand would take ten times as long: only
    those are looked at that may be among the wanted.
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = candidates
        joined = "".join([f" {each.content.replace(_END, ' ')} {_END}" for each in candidates])
        if not joined.isascii():
            joined = _NOT_ASCII.sub(_plain, joined)
        self._text = joined.encode("utf-8", "surrogatepass").translate(_BLANKED)
        self._codes = np.frombuffer(self._text, dtype=np.uint8)
        blank = self._codes <= ord(" ")
        self._ends = np.flatnonzero(self._codes == ord(_END))
        self._starts = np.flatnonzero(blank[:-1] & ~blank[1:])
        self._blank = blank
        self.lengths: Floats = np.diff(np.searchsorted(self._starts, self._ends), prepend=0).astype(
            np.float64
        )

    def counts(self, stems: Sequence[str]) -> Floats:
        """How often each stem stands in each candidate."""
        counts = np.zeros((len(self._candidates), len(stems)))
        found = list(self._occurrences(stems))
        if found:
            at, columns = np.array(found, dtype=np.intp).T
            np.add.at(counts, (self._owners(at), columns), 1.0)
        for column, gram in enumerate(stems):
            if len(gram) <= 2 and not gram.isascii():
                counts[:, column] = [each.content.count(gram) for each in self._candidates]
        return counts

    def any_of(self, folded: Sequence[str]) -> Floats:
        """1 for the candidates that hold one of these words."""
        flags = np.zeros(len(self._candidates))
        found = [at for each in folded for at in self._places(f" {each} ".encode())]
        flags[self._owners(np.array(found, dtype=np.intp))] = 1.0
        return flags

    def digits(self, least: int) -> Floats:
        """1 for the candidates that hold a run of so many digits."""
        is_digit = (self._codes >= ord("0")) & (self._codes <= ord("9"))
        run = is_digit
        for _ in range(least - 1):
            run = run[:-1] & is_digit[len(is_digit) - len(run) + 1 :]
        flags = np.zeros(len(self._candidates))
        flags[self._owners(np.flatnonzero(run))] = 1.0
        return flags

    def _owners(self, offsets: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.searchsorted(self._ends, offsets)

    def _places(self, wanted: bytes) -> Iterator[int]:
        at = self._text.find(wanted)
        while at >= 0:
            yield at
            at = self._text.find(wanted, at + 1)

    def _occurrences(self, stems: Sequence[str]) -> Iterator[tuple[int, int]]:
        """(offset, place in ``stems``) of every word that has one of the stems."""
        places = {each: at for at, each in enumerate(stems)}
        heads: list[str] = []
        for one in sorted({head(each) for each in stems}):
            if not heads or not one.startswith(heads[-1]):
                heads.append(one)
        for one in heads:
            for start in self._places(f" {one}".encode("utf-8", "surrogatepass")):
                end = self._text.find(b" ", start + 1)
                word = self._text[start + 1 : end].decode("utf-8", "surrogatepass")
                place = places.get(stem(word))
                if place is not None:
                    yield start, place


class _Plain(dict[int, str]):
    """The folded word characters of every character that was met; blanks for the others."""

    def __missing__(self, code: int) -> str:
        folded = "".join(each if each.isalnum() else " " for each in fold(chr(code)))
        self[code] = folded
        return folded


_PLAIN = _Plain()


def _plain(found: re.Match[str]) -> str:
    return found[0].translate(_PLAIN)


def _term_features(pool: Pool, terms: Terms, layout: _Layout, texts: _Texts) -> dict[str, Floats]:
    counts, lengths = texts.counts(terms.stems), texts.lengths
    idf = np.array(terms.idf)
    damping = _K1 * (1 - _B + _B * lengths / _USUAL_WORDS)
    weighted = counts * (_K1 + 1) / (counts + damping[:, None]) * idf
    own = weighted.sum(axis=1)
    near = weighted.copy()
    for distance, share in _NEAR.items():
        for turns in (distance, -distance):
            np.maximum(near, share * layout.shifted(weighted, turns), out=near)
    places = {each.pk: at for at, each in enumerate(pool.candidates)}
    for one, other, weight in pool.links:
        row = near[places[one]]
        np.maximum(row, weight * weighted[places[other]], out=row)
    before = layout.shifted(own, -1) + 0.5 * layout.shifted(own, -2)
    session = layout.best_of_session(weighted).sum(axis=1)
    most = max(float(own.max(initial=0.0)), 1e-9)
    return {
        "own_terms": own / most,
        "near_terms": near.sum(axis=1) / most,
        "before_terms": before / most,
        "session_terms": session / max(float(session.max(initial=0.0)), 1e-9),
        "length": np.where(
            layout.in_session, 1.0 - np.exp(-lengths / _LENGTH_SCALE), _USUAL_LENGTH
        ),
    }


def _plain_features(
    candidates: Sequence[Candidate], question: Question, layout: _Layout, texts: _Texts
) -> dict[str, Floats]:
    asks = _flags(each.content.rstrip().endswith("?") for each in candidates)
    found = {
        "speaker": _speaker(candidates, question),
        "asks": asks,
        "answers": layout.shifted(asks, -1),
    }
    if question.asks_when:
        found["time_asked"] = np.maximum(texts.any_of(_TIME_WORDS.split()), texts.digits(4))
    if question.asks_how_many:
        found["number_asked"] = np.maximum(texts.any_of(_NUMBER_WORDS.split()), texts.digits(1))
    if question.periods:
        found["period"] = np.array(
            [
                max(period.agreement(_time_of(each)) for period in question.periods)
                for each in candidates
            ]
        )
    return found


def _speaker(candidates: Sequence[Candidate], question: Question) -> Floats:
    """1 where the speaker is named in the question; all 0 where that tells nobody apart."""
    named = {
        role: not question.names.isdisjoint(words(role))
        for role in {each.source_role for each in candidates}
        if role
    }
    flags = _flags(named.get(each.source_role or "", False) for each in candidates)
    return flags if flags.min(initial=1.0) == 0.0 else np.zeros_like(flags)


def _meaning_features(
    stored: NDArray[np.float32],
    asked: NDArray[np.float32],
    found: Mapping[str, Floats],
    layout: _Layout,
) -> dict[str, Floats]:
    # What all candidates share says nothing about which of them is meant.
    centre = stored.mean(axis=0)
    own = _unit(stored - centre)
    query = _unit(asked - centre)
    near = _unit(own + 0.5 * (layout.shifted(own, 1) + layout.shifted(own, -1)))
    meaning = {
        "own_meaning": (own @ query).astype(np.float64),
        "near_meaning": (near @ query).astype(np.float64),
    }
    top = np.argsort(-_first_guess({**found, **meaning}), kind="stable")[:_FEEDBACK_TOP]
    # Pseudo relevance feedback: the best so far say better than the question what is meant.
    feedback = _unit(own[top].mean(axis=0))
    meaning["feedback_meaning"] = (own @ feedback).astype(np.float64)
    return meaning


def _first_guess(found: Mapping[str, Floats]) -> Floats:
    guess = (
        0.4 * found["own_terms"]
        + 0.35 * found["near_terms"]
        + 0.3 * found["before_terms"]
        + 0.3 * found["session_terms"]
        + 0.25 * found["speaker"]
        + 0.5 * found["length"]
    )
    if "near_meaning" in found:
        guess = guess + 0.65 * found["own_meaning"] + found["near_meaning"]
    return guess


def _time_of(candidate: Candidate) -> int:
    return candidate.created_at if candidate.event_time is None else candidate.event_time


def _flags(values: Iterable[bool]) -> Floats:
    return np.fromiter(values, dtype=np.float64)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.sqrt(np.square(vectors).sum(axis=-1, keepdims=True))
    unit: NDArray[np.float32] = np.divide(
        vectors, norms, out=np.zeros_like(vectors), where=norms > 0.0
    )
    return unit
