"""Embeddings from any model that litellm supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from memgraph.errors import InvalidConfig, ProviderAnswerInvalid
from memgraph.providers import _litellm
from memgraph.providers.embedding import BATCH_SIZE, DEFAULTS, checked, prepared
from memgraph.providers.options import LITELLM_PREFIX, ModelOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LitellmEmbedding:
    """An embedding model reached through litellm, called in batches.

    Args:
        model: the name in litellm, without the ``litellm/`` of the configuration.
        dimensions: the length of every vector; also sent to models with variable dimensions.
        options: see ``ModelOptions``.

    Raises:
        InvalidConfig: a value is out of range; ``details['key']`` names it.
    """

    def __init__(
        self,
        model: str,
        *,
        dimensions: int,
        **options: Unpack[ModelOptions],
    ) -> None:
        if dimensions < 1:
            raise InvalidConfig("Embedding dimensions must be at least 1.", key="dimensions")
        self.name = self.model = LITELLM_PREFIX + model
        self.dimensions = dimensions
        merged: ModelOptions = {**DEFAULTS, **options}
        self._connection = _litellm.ModelConnection(model, **merged)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `EmbeddingProvider.embed`. Blank texts are not sent: their rows stay zero."""
        out = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        inputs = [(i, prepared(text)) for i, text in enumerate(texts) if text.strip()]
        for start in range(0, len(inputs), BATCH_SIZE):
            batch = inputs[start : start + BATCH_SIZE]
            _litellm.load()
            response = _litellm.call(
                self._connection,
                "embedding",
                input=[text for _, text in batch],
                dimensions=self.dimensions,
            )
            vectors = checked(_rows(response.data), len(batch), self.dimensions)
            out[[i for i, _ in batch]] = vectors
        return out


def _rows(data: Any) -> list[Any]:
    """Return the vectors of an answer, sorted into the order of the request."""
    if not isinstance(data, list) or not all(isinstance(item, Mapping) for item in data):
        raise ProviderAnswerInvalid(
            "The embedding model did not return a list of vectors.", reason="shape"
        )
    places = [item.get("index") for item in data]
    if any(place is not None for place in places):
        if sorted(place for place in places if isinstance(place, int)) != list(range(len(data))):
            raise ProviderAnswerInvalid(
                "The embedding model returned invalid indices of vectors.", reason="count"
            )
        data = sorted(data, key=lambda item: item["index"])
    return [item.get("embedding") for item in data]
