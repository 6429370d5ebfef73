"""Prepare a request before a snapshot is opened: its viewer, terms, names and vector."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from memgraph.errors import ProviderError
from memgraph.model.recall import Degraded, RecallRequest
from memgraph.rules.scope import Viewer, narrow
from memgraph.store.recall import RecallFilter
from memgraph.store.text_index import cjk_bigrams
from memgraph.store.visibility import ACTIVE, STANDING, View
from memgraph.text.dates import DaySpan, periods
from memgraph.text.lexicon import FIRST_PERSON, STOP_WORDS
from memgraph.text.stem import fold, stem, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TERMS = 32
# Longer queries are cut here: the question usually comes early.
MAX_READ_CHARS = 60_000
# Names are searched only in this prefix: the rules for names are slower than those for words.
MAX_NAMING_CHARS = 4_000
MAX_CONSIDERED = 96
# The constants of BM25 that FTS5 uses.
BM25_K1, BM25_B = 1.2, 0.75
# Relevance uses the idf of a store with at least this many memories.
FEWEST_WEIGHED = 1_000

_WHEN = re.compile(r"\b(?:when|how long|what (?:date|day|year|month|time))\b")
USER, ASSISTANT = "user", "assistant"
_ADVISED = re.compile(
    r"\b(?:did|have|had|what|which|that) you\b.{0,30}\b(?:recommend|suggest|advise|propose|explain"
    r"|describe|mention|list|give|gave|tell|told|say|said)\w*|\byour (?:advice|suggestion|answer"
    r"|recommendation|explanation|list)s?\b"
)
_NAMED = re.compile(r"(?<!^)(?<![.!?]\s)\b[A-Z]\w+")
NAME_WEIGHT = 3.0
"""A missing name is stronger evidence against a candidate than another missing word."""
_HOW_MANY = re.compile(r"\b(?:how (?:many|much|often|old)|what number)\b")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query.

    Attributes:
        words: distinct folded words by stem, in order; without stop words unless there are no
            others. CJK text is split into pairs of characters.
        names: every distinct folded word, for comparison with speakers.
        asks_when, asks_how_many: True if the answer should contain a time, or a number.
        periods: the periods that the question mentions.
        named: the stems of words capitalised within a sentence, which are usually names.
        speaker: the role whose turns it asks for, USER or ASSISTANT; None: any role.
        cut: True if words were left out because there were too many.
    """

    words: Mapping[str, str]
    names: frozenset[str]
    asks_when: bool
    asks_how_many: bool
    periods: tuple[DaySpan, ...]
    named: frozenset[str]
    speaker: str | None
    cut: bool


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The search terms, rarest first: stem, word and inverse document frequency of each.

    Attributes:
        weights: the weight of each term in the question: its idf, three times that for a name.
        total: the sum of the weights of all words in the question, even those in no memory.
    """

    stems: tuple[str, ...]
    words: tuple[str, ...]
    idf: tuple[float, ...]
    weights: tuple[float, ...] = ()
    total: float = 0.0

    @property
    def match(self) -> str:
        """An FTS5 expression that matches any of the words; each word is quoted."""
        return " OR ".join(f'{{content tags search_terms}} : "{word}"' for word in self.words)


def read(query: str, asked_ms: int = 0) -> ParsedQuery:
    """Parse a query; ``asked_ms`` is the time to which "last week" and the like refer."""
    text = query[:MAX_READ_CHARS]
    folded = fold(text)
    all_words = words(text)
    grams = [] if folded.isascii() else cjk_bigrams(folded)
    distinct = frozenset(all_words)
    content = (word for word in all_words if word not in STOP_WORDS)
    by_stem: dict[str, str] = {}
    for word in chain(grams, all_words if distinct <= STOP_WORDS else content):
        if len(by_stem) == MAX_CONSIDERED:
            break
        by_stem.setdefault(stem(word), word)
    return ParsedQuery(
        words=by_stem,
        names=distinct,
        asks_when=_WHEN.search(folded) is not None,
        asks_how_many=_HOW_MANY.search(folded) is not None,
        periods=periods(text[:2_000], asked_ms),
        named=frozenset(stem(fold(name)) for name in _NAMED.findall(text[:2_000])),
        speaker=_speaker(folded, distinct),
        cut=len(text) < len(query) or len(by_stem) == MAX_CONSIDERED,
    )


def _speaker(folded: str, distinct: Collection[str]) -> str | None:
    """Return the role whose turns answer: the user for "my car", the assistant for "what did you
    recommend"."""
    if _ADVISED.search(folded):
        return ASSISTANT
    return None if FIRST_PERSON.isdisjoint(distinct) else USER


def choose_terms(
    question: ParsedQuery, frequencies: Mapping[str, int], documents: int
) -> QueryTerms:
    """Return the `MAX_TERMS` rarest terms that occur, rarest first.

    idf is that of BM25, ln(1 + (N - n + 0.5) / (n + 0.5)).

    Args:
        frequencies: by stem, the number of ``documents`` that contain it.
    """
    ranked = sorted((frequencies[term], term) for term in question.words if frequencies.get(term))
    chosen = [term for _, term in ranked[:MAX_TERMS]]
    # In a small store most memories may share a word, which does not make it less significant.
    weights = {
        term: _idf(frequencies.get(term, 0), max(documents, FEWEST_WEIGHED))
        * (NAME_WEIGHT if term in question.named else 1.0)
        for term in question.words
    }
    return QueryTerms(
        stems=tuple(chosen),
        words=tuple(question.words[term] for term in chosen),
        idf=tuple(_idf(frequencies[term], documents) for term in chosen),
        weights=tuple(weights[term] for term in chosen),
        total=math.fsum(weights.values()),
    )


def _idf(frequency: int, documents: int) -> float:
    return math.log(1 + (max(documents, frequency) - frequency + 0.5) / (frequency + 0.5))


Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]
NameKeys = Callable[[str], Collection[str]]

# Only this prefix of a query is embedded; the rest would hardly change the vector.
MAX_EMBEDDED_CHARS = 8_192


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request with everything that is computed before a transaction is opened.

    Attributes:
        vector: shape (dimensions,), unit norm; None if there is none.
        name_keys: the canonical names in the query.
        degraded: problems during the preparation.
    """

    request: RecallRequest
    question: ParsedQuery
    vector: NDArray[np.float32] | None
    name_keys: Collection[str]
    degraded: tuple[Degraded, ...]


def prepared(
    request: RecallRequest,
    now_ms: int,
    *,
    embed: Embed | None,
    name_keys: NameKeys | None,
) -> PreparedRequest:
    """Parse the query of a request, embed it, and find the names in it; None: without that.

    "Last week" is relative to the request's ``as_of``, or else to ``now_ms``.
    """
    degraded: list[Degraded] = []
    vector = _query_vector(request.query, embed, degraded)
    keys = name_keys(request.query[:MAX_NAMING_CHARS]) if name_keys else ()
    asked_ms = now_ms if request.as_of is None else request.as_of
    question = read(request.query, asked_ms)
    return PreparedRequest(request, question, vector, keys, tuple(degraded))


def narrowed(request: RecallRequest, viewer: Viewer, now_ms: int) -> RecallFilter:
    """Return the filter of a request.

    Raises AccessDenied if the request asks for more than ``viewer`` may see.
    """
    replaced_too = request.include_superseded or request.valid_at is not None
    view = View(_viewer(request, viewer), request.as_of, STANDING if replaced_too else ACTIVE)
    return RecallFilter(view, request, now_ms if request.as_of is None else request.as_of)


def _viewer(request: RecallRequest, granted: Viewer) -> Viewer:
    return narrow(
        granted,
        clearance=request.clearance,
        project_ids=request.project_ids,
        session_ids=request.session_scope_ids,
        scopes=request.scopes,
        agent_id=request.agent_id,
    )


def _query_vector(
    text: str, embed: Embed | None, degraded: list[Degraded]
) -> NDArray[np.float32] | None:
    """Return the query's vector; None without a model or a text, or if the model failed."""
    if embed is None or not text.strip():
        return None
    try:
        vector = embed([text[:MAX_EMBEDDED_CHARS]])[0]
    except ProviderError as error:
        degraded.append(
            Degraded(
                code="vector.provider_failed",
                text=f"the embedding model failed ({error.code}); only the text was searched",
            )
        )
        return None
    return vector if vector.any() else None
