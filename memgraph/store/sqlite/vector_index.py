"""The vector index in SQLite: rows read as one value; without a copy sqlite-vec compares them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from memgraph.store.embeddings import quantized
from memgraph.store.vector_index import RowVectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.vector_cache import VectorRows

_SPARE: Final = 16
_SEARCHED: Final = (
    "state = 'ready' AND model IS :model AND dimensions = :dimensions"
    " AND length(vector) = :dimensions"
)
# As one value: to take thousands of rows one by one takes twice as long.
_READ: Final = (
    "SELECT group_concat(memory_pk), group_concat(visibility),"
    " CAST(group_concat(vector, '') AS BLOB) FROM memory_embeddings"
    f" WHERE memory_pk BETWEEN :first AND :last AND {_SEARCHED}"
)
_NEAREST: Final = (
    f"SELECT memory_pk FROM memory_embeddings WHERE {_SEARCHED}"
    " AND visibility IN (SELECT value FROM json_each(:visibilities)) AND {among}"
    " ORDER BY vec_distance_cosine(vec_int8(vector), vec_int8(:query)), memory_pk LIMIT :limit"
)
_AMONG: Final = "memory_pk IN (SELECT value FROM json_each(:among))"


class SqliteVectorIndex(RowVectorIndex):
    """See ``RowVectorIndex``."""

    def _execute(self, statement: str, values: dict[str, Any]) -> Any:
        return self._snapshot.driver.execute(statement, values)

    def _read(self, first: int, last: int) -> VectorRows:
        import numpy as np

        from memgraph.store.vector_cache import VectorRows

        values = {**self._searched, "first": first, "last": last}
        [(keys, visibilities, codes)] = self._execute(_READ, values)
        if keys is None:
            none = np.empty(0, np.int64)
            return VectorRows(none, none, np.empty((0, self.dimensions), np.int8))
        return VectorRows(
            np.array(keys.split(","), np.int64),
            np.array(visibilities.split(","), np.int64),
            np.frombuffer(codes, np.int8).reshape(-1, self.dimensions),
        )

    def _nearest_of_rows(
        self,
        query: NDArray[np.float32],
        limit: int,
        visibilities: Collection[int],
        among: Collection[int] | None,
    ) -> list[int]:
        import numpy as np

        values = {
            **self._searched,
            "visibilities": json.dumps(list(visibilities)),
            "query": quantized(query[None, :]).tobytes(),
            # The query is rounded for it: the last of them may be others.
            "limit": limit + limit // 4 + _SPARE,
        }
        if among is not None:
            values["among"] = json.dumps(list(among))
        statement = _NEAREST.format(among="1" if among is None else _AMONG)
        pks = [pk for (pk,) in self._execute(statement, values)]
        scores = np.vecdot(self.vectors(pks), query)
        keys = np.array(pks, dtype=np.int64)
        nearest: list[int] = keys[np.lexsort((keys, -scores))[:limit]].tolist()
        return nearest
