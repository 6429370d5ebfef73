"""Relevance: score how well a memory and its neighbours answer a question, for the context leg.

In a conversation the words of a question are spread over turns: one turn asks, the next answers,
and the session gives the topic. The score of a candidate depends on its own text, its neighbours
(adjacent turns, and memories linked by an edge), its session and its speaker: it is a weighted
sum of features between about 0 and 1. The weights were fitted (a softmax over the candidates of a
question, so that the sum is a logit) on conversations with marked evidence, and tested on
conversations left out of the fit; ``benchmarks/fit_context_leg.py`` repeats the fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from memgraph.clock import MS_PER_DAY
from memgraph.model.conversation import PERSONS
from memgraph.retrieval.request import ASSISTANT, BM25_B, BM25_K1, USER, ParsedQuery, QueryTerms
from memgraph.retrieval.texts import TextWords
from memgraph.store.recall import RecallCandidate
from memgraph.text.lexicon import CALENDAR, FIRST_PERSON
from memgraph.text.stem import stem, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Number = TypeVar("Number", np.float32, np.float64)

DISTANCE = 2
"""The number of turns before and after a candidate that count as its neighbours."""

TALK_WEIGHTS: Mapping[str, float] = {
    "near_share": 2.6,
    "session_share": 0.7,
    "near_terms": 1.2,
    "before_terms": 0.9,
    "own_meaning": 2.4,
    "near_meaning": 1.5,
    "feedback_meaning": 0.6,
    "best_of_session": 0.4,
    "speaker": 0.8,
    "length": 2.9,
    "asks": -0.95,
    "answers": 0.5,
    "time_asked": 2.0,
    "number_asked": 1.0,
    "period": 8.0,
}
"""Weights for a turn in a conversation between people."""
CHAT_WEIGHTS: Mapping[str, float] = {
    "near_share": 1.3,
    "near_terms": 2.4,
    "own_meaning": 3.3,
    "feedback_meaning": 0.35,
    "best_of_session": 0.5,
    "speaker": 1.6,
    "length": 0.4,
    "asks": -1.5,
    "time_asked": 1.1,
    "number_asked": 1.4,
    "period": 8.0,
}
"""Weights for a turn in a chat with an assistant: turns are long, and the session matters less."""
OWN_WEIGHTS: Mapping[str, float] = {
    "near_terms": 4.5,
    "own_cosine": 3.4,
    "feedback_meaning": 0.9,
    "length": 2.0,
    "time_asked": 2.0,
    "number_asked": 1.0,
    "period": 8.0,
}
"""Weights for a memory that is not a turn, such as a fact or a document: it has no neighbours.

BM25 relative to the best of the pool, 0.75 x the cosine and 0.2 x the cosine to the best so far,
all times 4.5, so that the sum is a logit like that of a turn and both can be ranked together.
"""
# For a first guess at the best candidates, on which feedback and the best of a session depend.
_FIRST_WEIGHTS = {
    "near_share": 3.6,
    "session_share": 1.3,
    "near_terms": 0.65,
    "before_terms": 0.9,
    "own_meaning": 2.2,
    "near_meaning": 0.8,
    "speaker": 0.75,
    "length": 2.7,
}
_OTHER, _TALK, _CHAT = 0.0, 1.0, 2.0
_FIRST_PERSON = " ".join(sorted(FIRST_PERSON))
# Roles of human speakers who have no name.
_USERS = PERSONS
# The weights were fitted to these names: "model" and "chatbot" are not among them.
_HELPERS = frozenset({"assistant", "system", "tool", "agent", "ai", "bot"})
_ROLES = {USER: _USERS, ASSISTANT: _HELPERS}
# The usual number of words in a turn.
_USUAL_WORDS = 30.0
_NEAR = {1: 0.6, 2: 0.4}
_FEEDBACK_TOP = 5
# A turn may be only "ok, thanks"; other memories were stored because they say something.
_LENGTH_SCALE, _USUAL_LENGTH = 12.0, 0.75
_TIME_WORDS = """
    yesterday today tonight tomorrow last next ago week weeks weekend month months year years
    recently since morning
""" + " ".join(sorted(CALENDAR))
_NUMBER_WORDS = """
    once twice one two three four five six seven eight nine ten dozen several
"""


@dataclass(frozen=True)
class CandidatePool:
    """The candidates for one question, ordered by session and turn.

    Attributes:
        links: (key, other key, weight 0..1): the text of the other memory counts for the first.
        vectors: shape (n, dimensions), unit norm or zero; None if vectors are not compared.
        query_vector: shape (dimensions,).
    """

    candidates: Sequence[RecallCandidate]
    links: Sequence[tuple[int, int, float]]
    vectors: NDArray[np.float32] | None
    query_vector: NDArray[np.float32] | None

    @cached_property
    def texts(self) -> TextWords:
        """The words of the candidates."""
        return TextWords([candidate.content for candidate in self.candidates])

    @cached_property
    def layout(self) -> _Layout:
        """Return the neighbours of each candidate."""
        return _Layout(self.candidates)

    @cached_property
    def roles(self) -> _Roles:
        """Return the speaker of each candidate."""
        return _Roles(self.candidates)


def in_order(candidates: Sequence[RecallCandidate]) -> list[RecallCandidate]:
    """Return candidates sorted by session and turn; ties by key."""
    places = [(each.session_id or "", each.sequence or 0, each.pk, each) for each in candidates]
    return [candidate for *_, candidate in sorted(places)]


def rank(pool: CandidatePool, question: ParsedQuery, terms: QueryTerms) -> list[int]:
    """Return the keys of all candidates, best first; ties by key."""
    score = _weighted(features(pool, question, terms), TALK_WEIGHTS, CHAT_WEIGHTS)
    keys = np.array([candidate.pk for candidate in pool.candidates], dtype=np.int64)
    # Rounded, because the last bits of a sum differ between machines.
    order = np.lexsort((keys, -np.round(score, 6)))
    ranked: list[int] = keys[order].tolist()
    return ranked


def relevance_of(pool: CandidatePool, terms: QueryTerms) -> Floats:
    """Return how relevant each candidate is to the question, 0..1.

    The result is a weighted mean of the candidate's own measure and the highest in the pool, so
    that a poor pool scores low. For a turn, which depends on its neighbours, both have the same
    weight; for any other memory its own measure has three times the weight.
    The measure is (4 own + 2 near + 3 cosine) / 9. ``own`` is the weighted share of the question's
    terms that the candidate contains or that name its speaker; ``near`` also counts its
    neighbouring turns; ``cosine`` compares the vectors. Without a vector it is
    (4 own + 2 near) / 6.
    """
    if not pool.candidates:
        return np.zeros(0)
    own: Floats = _said(pool, terms) * np.array(terms.weights)
    layout = pool.layout
    near = own.copy()
    for distance in range(1, DISTANCE + 1):
        for turns in (distance, -distance):
            np.maximum(near, layout.shifted(own, turns), out=near)
    total = max(terms.total, 1e-9)
    words: Floats = (4.0 * own.sum(axis=1) + 2.0 * near.sum(axis=1)) / total
    measure = words / 6.0
    if pool.vectors is not None and pool.query_vector is not None:
        cosine = np.vecdot(pool.vectors, pool.query_vector).astype(np.float64)
        has_vector = pool.vectors.any(axis=1)
        measure = np.where(has_vector, (words + 3.0 * np.maximum(cosine, 0.0)) / 9.0, measure)
    share = np.where(layout.in_session, 0.5, 0.75)
    result: Floats = np.minimum(share * measure + (1.0 - share) * measure.max(), 1.0)
    return result


def _said(pool: CandidatePool, terms: QueryTerms) -> NDArray[np.bool_]:
    """Return which terms each candidate contains; its speaker's name counts as contained."""
    speakers = ({stem(name) for name in _names(role)} for role in pool.roles.names)
    in_names = [[float(term in names) for term in terms.stems] for names in speakers]
    contained: NDArray[np.bool_] = (
        pool.texts.counts(terms.stems) + pool.roles.of_each(in_names) > 0.0
    )
    return contained


def features(pool: CandidatePool, question: ParsedQuery, terms: QueryTerms) -> dict[str, Floats]:
    """Return every feature by name, one number per candidate."""
    layout = pool.layout
    by_name = _term_features(pool, question, terms)
    by_name |= _plain_features(pool, question)
    if pool.vectors is None or pool.query_vector is None:
        guess = _first_guess(by_name)
    else:
        # What all candidates have in common does not distinguish them.
        centre = pool.vectors.mean(axis=0)
        own = _unit(pool.vectors - centre)
        by_name |= _meanings(pool.vectors, pool.query_vector, centre, own, layout)
        guess = _first_guess(by_name)
        by_name["feedback_meaning"] = _feedback(own, guess)
    by_name["best_of_session"] = layout.best_of_session(guess)
    return by_name


class _Layout:
    """The neighbours of turns by session and sequence, and the sessions as groups."""

    def __init__(self, candidates: Sequence[RecallCandidate]) -> None:
        self._n = len(candidates)
        groups: dict[str | int, int] = {}
        # A memory without a session forms its own group.
        sessions = [
            at
            if candidate.session_id is None or candidate.sequence is None
            else candidate.session_id
            for at, candidate in enumerate(candidates)
        ]
        self.in_session = np.array([type(session) is str for session in sessions], dtype=np.bool_)
        self.group = np.array(
            [groups.setdefault(session, len(groups)) for session in sessions], dtype=np.intp
        )
        self._place = np.array(
            [candidate.sequence or 0 for candidate in candidates], dtype=np.int64
        )
        self._known_pairs: dict[int, tuple[NDArray[np.intp], NDArray[np.intp]]] = {}
        self._by_group = np.argsort(self.group, kind="stable")
        self._first_of_group = np.flatnonzero(np.diff(self.group[self._by_group], prepend=-1))

    def shifted(self, values: NDArray[Number], turns: int) -> NDArray[Number]:
        """Return for each candidate the values of the one ``turns`` later; 0 if there is none.

        The turns between two candidates may be missing in the pool, so sequences are compared.
        """
        rows, other_rows = self.pairs(turns)
        out = np.zeros_like(values)
        out[rows] = values[other_rows]
        return out

    def pairs(self, turns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return rows, and for each of them the row of the candidate ``turns`` later."""
        if -turns in self._known_pairs:
            other_rows, here = self._known_pairs[-turns]
            return here, other_rows
        if turns not in self._known_pairs:
            pairs = []
            for step in range(1, abs(turns) + 1):
                same = (self.group[:-step] == self.group[step:]) & (
                    self._place[step:] - self._place[:-step] == abs(turns)
                )
                before = np.flatnonzero(same)
                pairs.append((before, before + step))
            first, second = (np.concatenate(rows) for rows in zip(*pairs, strict=True))
            self._known_pairs[turns] = (first, second) if turns > 0 else (second, first)
        return self._known_pairs[turns]

    def best_of_session(self, values: Floats) -> Floats:
        """Return for each candidate the highest value in its session."""
        if not self._n:
            return values
        best = np.maximum.reduceat(values[self._by_group], self._first_of_group, axis=0)
        return best[self.group]


def _term_features(
    pool: CandidatePool, question: ParsedQuery, terms: QueryTerms
) -> dict[str, Floats]:
    layout, roles = pool.layout, pool.roles
    counts, lengths = pool.texts.counts(terms.stems), pool.texts.lengths
    speakers = {stem(name) for role in roles.names for name in _names(role)}
    is_name = np.array([term in speakers for term in terms.stems], dtype=np.bool_)
    # A speaker whom the question names is seldom named in the turn that answers it.
    idf = np.array(terms.idf)
    if not is_name.all():
        idf = np.where(is_name, 0.0, idf)
    others = lengths[~layout.in_session]
    usual = np.where(layout.in_session, _USUAL_WORDS, max(others.sum() / max(len(others), 1), 1.0))
    damping = BM25_K1 * (1 - BM25_B + BM25_B * lengths / usual)
    weighted = counts * (BM25_K1 + 1) / (counts + damping[:, None]) * idf
    present = (counts > 0.0) * idf
    both = np.concatenate([weighted, present], axis=1)
    near = both.copy()
    for distance, share in _NEAR.items():
        for turns in (distance, -distance):
            rows, other_rows = layout.pairs(turns)
            near[rows] = np.maximum(near[rows], share * both[other_rows])
    if pool.links:
        places = {candidate.pk: at for at, candidate in enumerate(pool.candidates)}
        links = [(places[key], places[other_key]) for key, other_key, _ in pool.links]
        at, other = np.array(links, dtype=np.intp).T
        weights = np.array([weight for *_, weight in pool.links])
        np.maximum.at(near, at, weights[:, None] * both[other])
    own = weighted.sum(axis=1)
    # The reply of an assistant echoes the question that it answers.
    before = (layout.shifted(own, -1) + 0.5 * layout.shifted(own, -2)) * roles.are_no_replies
    session = layout.best_of_session(present).sum(axis=1)
    highest = max(float(own.max(initial=0.0)), 1e-9)
    total = max(float(idf.sum()), 1e-9)
    return {
        "near_share": near[:, len(idf) :].sum(axis=1) / total,
        "session_share": session / total,
        "near_terms": near[:, : len(idf)].sum(axis=1) / highest,
        "before_terms": before / highest,
        "speaker": _speaker(question, roles, counts[:, is_name].sum(axis=1) > 0.0),
        # A turn of a talk or a chat, or another memory.
        "kind": np.where(layout.in_session, np.where(roles.are_of_chat, _CHAT, _TALK), _OTHER),
        "length": np.where(
            layout.in_session, 1.0 - np.exp(-lengths / _LENGTH_SCALE), _USUAL_LENGTH
        ),
    }


def _plain_features(pool: CandidatePool, question: ParsedQuery) -> dict[str, Floats]:
    texts = pool.texts
    by_name = {
        # A question that says something about its speaker is evidence like any other turn.
        "asks": texts.asks * (1.0 - texts.any_of(_FIRST_PERSON)),
        "answers": pool.layout.shifted(texts.asks, -1) * pool.roles.are_no_replies,
    }
    if question.asks_when:
        by_name["time_asked"] = np.maximum(texts.any_of(_TIME_WORDS), texts.digits(4))
    if question.asks_how_many:
        by_name["number_asked"] = np.maximum(texts.any_of(_NUMBER_WORDS), texts.digits(1))
    if question.periods:
        # Computed once per day, because a conversation spans few days.
        days = [candidate.said_at // MS_PER_DAY for candidate in pool.candidates]
        agreed = {
            day: max(period.agreement(day * MS_PER_DAY) for period in question.periods)
            for day in set(days)
        }
        by_name["period"] = np.array([agreed[day] for day in days], dtype=np.float64)
    return by_name


class _Roles:
    """The roles of the speakers, and the role of each candidate."""

    def __init__(self, candidates: Sequence[RecallCandidate]) -> None:
        places: dict[str, int] = {}
        self._whose = np.array(
            [
                places.setdefault(candidate.source_role or "", len(places))
                for candidate in candidates
            ],
            dtype=np.intp,
        )
        self.names = tuple(places)
        folded = [role.casefold() for role in places]
        # Turns of an assistant, a tool or the system are replies.
        self.are_no_replies = self.of_each([role not in _HELPERS for role in folded])
        self.are_of_chat = self.of_each([role in _USERS | _HELPERS for role in folded]) > 0.0

    def of_each(self, values: Sequence[float] | Sequence[Sequence[float]]) -> Floats:
        """Return each candidate's value by role; ``values`` are in the order of ``names``."""
        return np.array(values, dtype=np.float64)[self._whose]


def _speaker(question: ParsedQuery, roles: _Roles, names_one: NDArray[np.bool_]) -> Floats:
    """Return 1 for each candidate whose speaker or role the question asks about, else 0.

    All are 0 if all match. A candidate without a named speaker matches if its text contains the
    name of a speaker in the question.
    """
    roles_asked_for = _ROLES.get(question.speaker or "", frozenset())
    matches = [
        1.0
        if role.casefold() in roles_asked_for
        else float(not question.names.isdisjoint(_names(role)))
        if _names(role)
        else np.nan
        for role in roles.names
    ]
    flags = roles.of_each(matches)
    flags = np.where(np.isnan(flags), names_one, flags)
    return flags if flags.min(initial=1.0) == 0.0 else np.zeros_like(flags)


@lru_cache(maxsize=1_000)
def _names(role: str) -> frozenset[str]:
    return frozenset(words(role)) - _USERS - _HELPERS


def _meanings(
    stored: NDArray[np.float32],
    query_vector: NDArray[np.float32],
    centre: NDArray[np.float32],
    own: NDArray[np.float32],
    layout: _Layout,
) -> dict[str, Floats]:
    query = _unit(query_vector - centre)
    near = layout.shifted(own, 1)
    rows, other_rows = layout.pairs(-1)
    near[rows] += own[other_rows]
    near *= 0.5
    near += own
    near = _unit(near)
    return {
        # Not ``@``, for which BLAS may start threads: the product is small.
        "own_meaning": np.vecdot(own, query).astype(np.float64),
        "own_cosine": np.vecdot(stored, query_vector).astype(np.float64),
        "near_meaning": np.vecdot(near, query).astype(np.float64),
    }


def _feedback(own: NDArray[np.float32], guess: Floats) -> Floats:
    """Return pseudo relevance feedback: the similarity to the mean of the best so far."""
    top = np.argsort(-guess, kind="stable")[:_FEEDBACK_TOP]
    feedback: Floats = np.vecdot(own, _unit(own[top].mean(axis=0))).astype(np.float64)
    return feedback


def _first_guess(by_name: Mapping[str, Floats]) -> Floats:
    return _weighted(by_name, _FIRST_WEIGHTS, _FIRST_WEIGHTS)


def _weighted(
    by_name: Mapping[str, Floats],
    talk_weights: Mapping[str, float],
    chat_weights: Mapping[str, float],
) -> Floats:
    """Return the score of each candidate by the weights of its kind."""
    kind = by_name["kind"]
    total = np.zeros_like(kind)
    for kind_code, weights in ((_TALK, talk_weights), (_CHAT, chat_weights), (_OTHER, OWN_WEIGHTS)):
        chosen = kind == kind_code
        if chosen.any():
            sums = np.zeros_like(kind)
            for name, weight in weights.items():
                if name in by_name:
                    sums += weight * by_name[name]
            total = np.where(chosen, sums, total)
    return total


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.sqrt(np.vecdot(vectors, vectors))
    unit: NDArray[np.float32] = np.divide(
        vectors, np.where(norms > 0.0, norms, 1.0)[..., None], dtype=np.float32
    )
    return unit
