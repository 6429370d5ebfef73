"""The vector index in PostgreSQL: exact, over rows in memory; see ``store.vector_index``."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from memgraph.store import tables
from memgraph.store.statements import prepared, value
from memgraph.store.vector_index import RowVectorIndex, is_searched

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.vector_cache import VectorRows


@prepared
def _between() -> sa.Select[Any]:
    e = tables.embeddings
    result = sa.select(e.c.memory_pk, e.c.visibility, e.c.vector).where(is_searched(e))
    return result.where(e.c.memory_pk.between(value("first"), value("last"))).order_by(
        e.c.memory_pk
    )


class PostgresVectorIndex(RowVectorIndex):
    """See ``RowVectorIndex``."""

    def _read(self, first: int, last: int) -> VectorRows:
        import numpy as np

        from memgraph.store.vector_cache import VectorRows

        results = _between().rows(self._snapshot, self._searched, first=first, last=last)
        codes = np.frombuffer(b"".join(row[2] for row in results), np.int8)
        return VectorRows(
            np.array([row[0] for row in results], np.int64),
            np.array([row[1] for row in results], np.int64),
            codes.reshape(len(results), self.dimensions),
        )

    def _nearest_of_rows(
        self,
        query: NDArray[np.float32],
        limit: int,
        visibilities: Collection[int],
        among: Collection[int] | None,
    ) -> list[int]:
        import numpy as np

        keys, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        wanted = np.array(sorted(visibilities), np.int64)
        these = None if among is None else np.array(sorted(among), np.int64)
        last_key, after = self._bounds[1], -1
        while after < last_key:
            rows, after = self._read_after(after)
            seen = np.isin(rows.visibilities, wanted)
            if these is not None:
                seen &= np.isin(rows.keys, these)
            pks = rows.keys[seen]
            if len(pks):
                keys = np.concatenate([keys, pks])
                scores = np.concatenate([scores, np.vecdot(_units(rows.codes[seen]), query)])
                order = np.lexsort((keys, -scores))[:limit]
                keys, scores = keys[order], scores[order]
        result: list[int] = keys.tolist()
        return result


def _units(codes: NDArray[np.int8]) -> NDArray[np.float32]:
    import numpy as np

    numbers = codes.astype(np.float32)
    norms = np.sqrt(np.vecdot(numbers, numbers))
    units: NDArray[np.float32] = numbers / np.maximum(norms, 1.0)[:, None]
    return units
