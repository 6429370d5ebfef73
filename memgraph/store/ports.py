"""The protocols of the text and vector indexes; each engine implements them in its own folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.engine import Database
    from memgraph.store.snapshot import Snapshot, Transaction


class VectorFault(StrEnum):
    """A fault of a stored vector."""

    DAMAGED = "damaged"
    VISIBILITY = "visibility"


class FaultyVector(NamedTuple):
    """A finding of ``VectorIndex.check``."""

    pk: int
    memory_id: str
    fault: VectorFault


class VectorIndex(Protocol):
    """The vectors of one database, on one snapshot or in one transaction.

    Vectors have unit norm. They are quantized when stored, so reading returns slightly different
    ones. Only vectors of the database's current model, with its number of dimensions, are searched.
    ``visibility`` is the integer in which ``memgraph.store.embeddings.visibility`` encodes a
    memory's scope, status and sensitivity.
    """

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""

    def add(self, pks: Sequence[int], vectors: NDArray[np.float32], model: str) -> None:
        """Store the vectors of memories, which are no longer pending afterwards.

        Args:
            pks: the keys of n stored memories.
            vectors: shape (n, any number of dimensions), finite, without zero vectors.
            model: the model that made them.
        """

    def remove(self, pks: Sequence[int]) -> int:
        """Remove the vectors of memories, which are pending again afterwards.

        Their bytes are overwritten if the engine overwrites deleted data.

        Returns:
            The number of memories that have a row in the index.
        """

    def refresh(self, memory_ids: Sequence[str]) -> None:
        """Update the index after a change of the scope, status or sensitivity of memories."""

    @property
    def is_loaded(self) -> bool:
        """True if nothing is left to load."""

    def load(self) -> None:
        """Load the vectors into the cache of the process, if there is one.

        The first call in a process reads all vectors (1 s for a million), later calls read changes.
        After an interruption by a deadline the next call continues.
        """

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        *,
        visibilities: Collection[int],
        among: Collection[int] | None = None,
    ) -> list[int]:
        """Return the keys of the nearest vectors by descending cosine, then by key.

        Args:
            query: shape (dimensions,), unit norm.
            limit: the maximum number of keys.
            visibilities: only memories with one of these visibilities.
            among: only these keys; None: all.
        """

    def vectors(self, pks: Sequence[int]) -> NDArray[np.float32]:
        """Return a vector for each key, shape (n, dimensions), with zeros for missing ones."""

    def rebuild(self, dimensions: int | None = None) -> int:
        """Rebuild the derived data; return the number of vectors that are searched.

        Args:
            dimensions: the number of dimensions to search from now on; None: as before.
        """

    def check(self) -> Iterator[FaultyVector]:
        """Yield every vector that is damaged or has an outdated visibility."""


class TextMatches(Protocol):
    """The matches of some terms in one snapshot."""

    @property
    def documents(self) -> int:
        """The number of memories, including erased ones."""

    @property
    def frequencies(self) -> Mapping[str, int]:
        """The number of memories that contain each term, without terms that do not occur."""

    def best(
        self, terms: Collection[str], limit: int, marks: frozenset[int] | None = None
    ) -> list[int]:
        """Return the keys of the memories with the highest BM25 score, then the oldest first.

        Args:
            terms: a subset of the searched terms.
            limit: the maximum number of keys.
            marks: only memories with one of these marks, see ``TextIndex.mark``; None: all. Marks
                may collide, so the caller must check the visibility of the results.
        """


class TextIndex(Protocol):
    """Finds memories by the stems of their words, ranked by BM25.

    In every snapshot the index agrees with the memories, regardless of merges: a memory is found as
    soon as it is stored, by its current words.
    """

    def __hash__(self) -> int: ...

    def add(self, transaction: Transaction, first: int, last: int) -> None:
        """Add the memories that the transaction stored with the keys ``first`` to ``last``.

        They must be the highest keys.
        """

    def remove(self, transaction: Transaction, pks: Iterable[int]) -> None:
        """Remove the indexed words that these memories had before the transaction."""

    def search(self, snapshot: Snapshot, terms: Collection[str]) -> TextMatches:
        """Return the matches of some stems in a snapshot."""

    def frequencies(self, snapshot: Snapshot, terms: Collection[str]) -> dict[str, int]:
        """Return the approximate number of memories with each stem, at a constant cost.

        The newest memories are not counted, and stems that only they contain are left out.
        """

    def mark(self, scope: str, scope_id: str | None, sensitivity: str) -> int:
        """Return the integer that encodes a scope and a sensitivity."""

    def merge(self, database: Database, stop: Callable[[], bool] = lambda: False) -> None:
        """Merge additions in short transactions until ``stop``; interruptions are harmless."""

    def rebuild(self, database: Database) -> None:
        """Rebuild the index from the memories, in short transactions, concurrently with readers."""

    def check(self, snapshot: Snapshot) -> bool:
        """Return True if the index agrees with the memories, word by word."""


class PhraseIndex(Protocol):
    """Finds memories by phrases and by combinations of words; see ``text_index.matching``.

    It is updated in the same transaction as a memory's text.
    """

    def expression(self, match: str) -> str:
        """Translate an expression of ``text_index.matching`` to the syntax of the engine."""

    def frequencies(self, snapshot: Snapshot, stems: Collection[str]) -> dict[str, int]:
        """Return the number of memories with each stem, without stems that do not occur.

        The cost of a stem grows with its frequency.
        """

    def merge(self, transaction: Transaction) -> bool:
        """Merge a part of the additions; return True if there was anything to merge."""

    def rebuild(self, transaction: Transaction) -> None:
        """Rebuild the index from the memories."""

    def check(self, transaction: Transaction) -> bool:
        """Return True if the index agrees with the memories, word by word."""
