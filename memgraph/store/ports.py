"""The ports of the text and vector indexes; each engine implements them in its own folder."""

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

    Vectors have unit norm; they are stored rounded, so that what comes back differs a little. Only
    vectors of the model that the database names, with its number of dimensions, are searched.
    ``visibility`` is the integer that `memgraph.store.embeddings.visibility` makes of a memory's
    scope, status and sensitivity.
    """

    @property
    def dimensions(self) -> int:
        """Return the length of a vector."""

    def add(self, pks: Sequence[int], vectors: NDArray[np.float32], model: str) -> None:
        """Store the vectors of memories, which are no longer pending.

        Args:
            pks: keys of stored memories.
            vectors: shape (n, any number of dimensions), finite, none of them zero.
            model: what made them.
        """

    def remove(self, pks: Sequence[int]) -> int:
        """Remove the vectors of memories, from the file too where SQLite overwrites.

        The memories wait to be embedded again. Returns how many of them are known.
        """

    def refresh(self, memory_ids: Sequence[str]) -> None:
        """Follow a change of the scope, status or sensitivity of memories."""

    @property
    def is_loaded(self) -> bool:
        """Return True when nothing is left to load."""

    def load(self) -> None:
        """Read the vectors into the process's copy, if it keeps one and this has not happened yet.

        The first of a process reads them all (1 s for a million), later ones what changed; what a
        deadline interrupts, the next call continues.
        """

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        *,
        visibilities: Collection[int],
        among: Collection[int] | None = None,
    ) -> list[int]:
        """Return keys by descending cosine, equal ones by key.

        Args:
            query: shape (dimensions,), unit norm.
            visibilities: only memories whose visibility is one of these.
            among: only these keys; None: all.
        """

    def visible(self, visibilities: Collection[int]) -> NDArray[np.int64] | None:
        """Return the keys of all vectors of some visibilities; None: it would take long."""

    def vectors(self, pks: Sequence[int]) -> NDArray[np.float32]:
        """Return a vector for each key, shape (n, dimensions); zeros where there is none."""

    def rebuild(self, dimensions: int | None = None) -> int:
        """Rebuild the derived data, and return how many vectors are searched.

        Args:
            dimensions: of the vectors to search from now on; None: as before.
        """

    def check(self) -> Iterator[FaultyVector]:
        """Yield every vector that is damaged or has an outdated visibility."""


class TextMatches(Protocol):
    """The matches of some terms in one snapshot."""

    @property
    def documents(self) -> int:
        """Return the number of memories, erased ones included."""

    @property
    def frequencies(self) -> Mapping[str, int]:
        """The number of memories that contain each term, without terms that occur nowhere."""

    def best(
        self, terms: Collection[str], limit: int, marks: frozenset[int] | None = None
    ) -> list[int]:
        """Return the keys of the memories with the highest BM25, equal ones the oldest first.

        Args:
            terms: some of those that were searched for.
            limit: at most so many.
            marks: only memories whose scope and sensitivity have one of these, see `mark`, and
                possibly some others: whoever shows them asks SQL; None: any.
        """


class TextIndex(Protocol):
    """Finds memories by the stems of their words, ranked by BM25.

    What a snapshot shows of the index agrees with the memories in it, whatever was merged: a
    memory is found from the moment it is stored, by the words that it has now.
    """

    def __hash__(self) -> int: ...

    def add(self, transaction: Transaction, first: int, last: int) -> None:
        """Take in memories that the transaction stored under the keys from ``first`` to ``last``,
        behind all others."""

    def remove(self, transaction: Transaction, pks: Iterable[int]) -> None:
        """Remove the indexed words that these memories had before the transaction."""

    def search(self, snapshot: Snapshot, terms: Collection[str]) -> TextMatches:
        """Return the matches of some stems in a snapshot."""

    def frequencies(self, snapshot: Snapshot, terms: Collection[str]) -> dict[str, int]:
        """Return about how many memories contain each stem, at a cost that does not grow with them.

        The newest memories are not counted, nor are stems that only they contain.
        """

    def mark(self, scope: str, scope_id: str | None, sensitivity: str) -> int:
        """Return the number that stands for a scope and a sensitivity."""

    def merge(self, database: Database, stop: Callable[[], bool] = lambda: False) -> None:
        """Merge additions in short transactions; an interruption leaves the index intact."""

    def rebuild(self, database: Database) -> None:
        """Rebuild the index from the memories, in short transactions, beside readers."""

    def check(self, snapshot: Snapshot) -> bool:
        """Return whether the index agrees with the memories, word for word."""


class PhraseIndex(Protocol):
    """Finds memories by phrases, and by words that must all be there; see ``text_index.matching``.

    It follows every change of a memory's text in the transaction of the change.
    """

    def expression(self, match: str) -> str:
        """Return an expression of ``text_index.matching`` as the engine is asked it."""

    def frequencies(self, snapshot: Snapshot, stems: Collection[str]) -> dict[str, int]:
        """Return the number of memories with each stem, without stems that occur nowhere.

        The cost of a stem grows with its frequency.
        """

    def merge(self, transaction: Transaction) -> bool:
        """Merge a part of the additions; return whether there was any to merge."""

    def rebuild(self, transaction: Transaction) -> None:
        """Rebuild the index from the memories."""

    def check(self, transaction: Transaction) -> bool:
        """Return whether the index agrees with the memories, word for word."""


class HeldVectors(Protocol):
    """The vectors of one store that a process keeps in memory. Thread-safe."""

    def close(self) -> None:
        """Give their room up."""


class VectorCache(Protocol):
    """Room for the vectors of many stores in memory; the longest unused give way."""

    def hold(self) -> HeldVectors:
        """Return an empty place for one store's vectors."""
