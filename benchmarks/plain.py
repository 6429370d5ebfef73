"""Plain retrieval beside the product: FTS5 alone, static vectors alone, and both fused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pysqlite3.dbapi2 as sqlite

from benchmarks.raw import any_word
from memgraph.providers.local import LocalEmbedding

FTS5, VECTORS, FUSED = "FTS5", "static vectors", "FTS5 + vectors"
NAMES: Final = (FTS5, VECTORS, FUSED)
DEPTH: Final = 50
"""Results of each of the two, and of their fusion."""
RRF_K: Final = 60


class PlainSearch:
    """Texts in FTS5 (porter) and as vectors of the shipped model. Close it after use."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._model = LocalEmbedding()
        self._vectors = self._model.embed(texts)
        self._connection: Any = sqlite.connect(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE texts USING fts5("
            "content, tokenize='porter unicode61 remove_diacritics 2')"
        )
        self._connection.executemany(
            "INSERT INTO texts (rowid, content) VALUES (?, ?)", list(enumerate(texts))
        )

    def __enter__(self) -> PlainSearch:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def search(self, question: str) -> dict[str, list[int]]:
        """Return the places of the best `DEPTH` texts by each name of `NAMES`, best first.

        FTS5 ranks by BM25 what holds any word of the question, stop words left out; vectors by
        cosine. Fused by reciprocal rank, 1 / (60 + rank), as in Cormack et al., SIGIR 2009.
        """
        rows = self._connection.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?",
            (any_word(question), DEPTH),
        )
        by_text = [pk for (pk,) in rows]
        cosines = self._vectors @ self._model.embed([question])[0]
        by_vector = [int(at) for at in np.argsort(-cosines, kind="stable")[:DEPTH]]
        scores: dict[int, float] = {}
        for ranked in (by_text, by_vector):
            for rank, at in enumerate(ranked, start=1):
                scores[at] = scores.get(at, 0.0) + 1 / (RRF_K + rank)
        fused = sorted(scores, key=lambda at: (-scores[at], at))[:DEPTH]
        return {FTS5: by_text, VECTORS: by_vector, FUSED: fused}
