"""The text leg where very many memories match: lists of keys first, texts of the few best then.

FTS5 ranks by reading the length of every row that matches, 2.5 µs for each. The keys alone of the
rows that hold a word take a tenth of that. So the sum of idf, BM25 without counts and lengths,
picks two thousand, and BM25 itself ranks these by their texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from memgraph.retrieval.query import BM25_B, BM25_K1, Terms
from memgraph.retrieval.texts import Texts
from memgraph.storage import recall_queries
from memgraph.storage.narrowing import Narrowing
from memgraph.storage.recall_queries import Candidate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

READ_CLOSELY = 2_000
# Among what a reader with a narrow view sees the best are found sooner: so many times the limit.
READ_CLOSELY_OF_FEW = 3


def best_of_many(
    connection: sa.Connection,
    terms: Terms,
    documents: int,
    narrowing: Narrowing,
    limit: int,
    few: NDArray[np.int64] | None = None,
) -> list[Candidate]:
    """The best ``limit`` by BM25 among the `READ_CLOSELY` with the highest sum of idf.

    Where too few of those may be shown, they are picked among all that may be.

    Args:
        documents: the highest key.
        few: the only keys that may be shown; `READ_CLOSELY_OF_FEW` x ``limit`` of them are read
            then. None: that is not known.
    """
    holding = _holding(connection, terms, terms.after)
    if few is None:
        most = READ_CLOSELY
    else:
        most = READ_CLOSELY_OF_FEW * limit
        holding = _among(few, holding, documents)
    keys = _by_idf(holding, terms, documents, most)
    if few is None:
        texts = recall_queries.texts_of(connection, keys, narrowing)
        known = {}
    else:
        # So few that they are read as a whole at once.
        known = {each.pk: each for each in recall_queries.candidates(connection, keys, narrowing)}
        texts = [(pk, each.content) for pk, each in known.items()]
    if len(texts) < limit and (len(keys) == most or terms.after):
        allowed = np.array(recall_queries.allowed(connection, narrowing), dtype=np.int64)
        holding = _among(allowed, _holding(connection, terms, 0), documents)
        keys = _by_idf(holding, terms, documents, READ_CLOSELY)
        texts = recall_queries.texts_of(connection, keys, narrowing)
    best = _by_bm25(connection, texts, terms, holding, documents)[:limit]
    if all(pk in known for pk in best):
        return [known[pk] for pk in best]
    return recall_queries.candidates(connection, best, narrowing)


def _by_bm25(
    connection: sa.Connection,
    texts: Sequence[tuple[int, str]],
    terms: Terms,
    holding: Sequence[NDArray[np.int64]],
    documents: int,
) -> list[int]:
    """The keys of some texts, the best first, equal ones the newest first."""
    read = np.array([pk for pk, _ in texts], dtype=np.int64)
    # A word may stand in the tags, or behind what is read of a text.
    held = np.stack([_marked(each, documents)[read] for each in holding], axis=1)
    usual = recall_queries.mean_tokens(connection)
    score = bm25([text for _, text in texts], terms, usual, held)
    best: list[int] = read[np.lexsort((-read, -np.round(score, 6)))].tolist()
    return best


def _among(
    keys: NDArray[np.int64], holding: Sequence[NDArray[np.int64]], documents: int
) -> list[NDArray[np.int64]]:
    """Of every list the keys that are among some."""
    marks = _marked(keys, documents)
    return [each[marks[each]] for each in holding]


def _marked(keys: NDArray[np.int64], documents: int) -> NDArray[np.bool_]:
    """For each key up to the highest whether it is one of ``keys``."""
    marks = np.zeros(documents + 1, dtype=np.bool_)
    marks[keys] = True
    return marks


def _holding(connection: sa.Connection, terms: Terms, after: int) -> list[NDArray[np.int64]]:
    """For each word that is searched for the keys of the memories that hold it, ascending."""
    return [recall_queries.keys_matching(connection, match, after) for match in terms.matches]


def _by_idf(
    holding: Sequence[NDArray[np.int64]], terms: Terms, documents: int, most: int
) -> list[int]:
    """The keys with the highest sum of idf of the words they hold, equal ones the newest first."""
    score = np.zeros(documents + 1, dtype=np.float32)
    for keys, idf in zip(holding, terms.idf, strict=False):
        score[keys] += idf
    best = np.flatnonzero(score)
    if len(best) > most:
        bound = float(np.partition(score[best], -most)[-most])
        best = best[score[best] >= bound]
    order = np.lexsort((-best, -score[best]))[:most]
    found: list[int] = best[order].tolist()
    return found


def bm25(
    contents: Sequence[str],
    terms: Terms,
    usual: tuple[float, float],
    held: NDArray[np.bool_],
) -> Floats:
    """The BM25 of texts for the words searched for, as FTS5 would have it.

    Source: Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.

    Args:
        usual: the mean number of words in a content, and in what else is indexed beside it.
        held: shape (n, words searched for): where a word stands, be it outside the text.

    Returns:
        Shape (n,).
    """
    texts = Texts(contents)
    counts = np.maximum(texts.counts(terms.stems[: terms.searched]), held)
    of_content, beside = usual
    lengths = texts.lengths + beside
    damping = BM25_K1 * (1 - BM25_B + BM25_B * lengths / max(of_content + beside, 1.0))
    weighted = counts * (BM25_K1 + 1) / (counts + damping[:, None])
    score: Floats = (weighted * np.array(terms.idf[: terms.searched])).sum(axis=1)
    return score
