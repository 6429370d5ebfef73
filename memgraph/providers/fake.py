"""A deterministic embedding model for tests, part of the public interface.

Two texts share a direction as far as they share words, so ranking by similarity behaves sensibly;
nothing is loaded and nothing is learned.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, ClassVar

from memgraph.errors import InvalidConfig, MemgraphError
from memgraph.providers.embedding import checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class FakeEmbedding:
    """Hashes every word to a direction and adds the directions up.

    Args:
        dimensions: length of the vectors, >= 1.
        fail_with: an error to raise at every embed, for instance ``ProviderUnavailable("down")``;
            set the attribute to None to let the provider come back.

    Attributes:
        calls: how many texts each successful or failed embed was asked for, oldest first.

    Raises:
        InvalidConfig: dimensions below 1.
    """

    name: ClassVar[str] = "fake"

    def __init__(self, dimensions: int = 64, fail_with: MemgraphError | None = None) -> None:
        if dimensions < 1:
            raise InvalidConfig("Embedding dimensions must be at least 1.", key="dimensions")
        self.dimensions = dimensions
        self.model = f"fake-{dimensions}@1"
        self.fail_with = fail_with
        self.calls: list[int] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `EmbeddingProvider.embed`. A text without a word gives a row of zeros."""
        import numpy as np

        self.calls.append(len(texts))
        if self.fail_with is not None:
            raise self.fail_with
        out = np.zeros((len(texts), self.dimensions), dtype=np.float64)
        for row, text in zip(out, texts, strict=True):
            for word in _WORD.findall(text.casefold()):
                row += _direction(word, self.dimensions)
        return checked(out, len(texts), self.dimensions, zero_rows=True)


def _direction(word: str, dimensions: int) -> NDArray[np.float64]:
    """A pseudo-random vector with entries in [-1, 1), a function of the word alone."""
    import numpy as np

    digest = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(4 * dimensions)
    return np.frombuffer(digest, dtype="<u4").astype(np.float64) / 2**31 - 1.0
