"""The interface of embedding models, and the factory that creates them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, Unpack, runtime_checkable

from memgraph.errors import InvalidConfig, ProviderAnswerInvalid, ProviderError, ProviderUnavailable
from memgraph.providers.options import LITELLM_PREFIX, ModelOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

DEFAULTS: Final[ModelOptions] = {"timeout_s": 20.0, "retries": 2}
BATCH_SIZE = 64
"""The number of texts of one request to litellm."""
MAX_CHARACTERS: Final = 8_192
"""The number of characters of a text that are embedded; the rest is ignored."""
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""The maximum size of the answer to one request, in bytes."""


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Turns texts into vectors of one fixed dimension. Threads may share an instance."""

    @property
    def name(self) -> str:
        """The name in the configuration: ``local``, ``litellm/<model>`` or ``fake``."""
        ...

    @property
    def model(self) -> str:
        """The identity stored with every vector; vectors of two identities are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of every vector, at least 1."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, in order.

        Returns:
            An array of shape ``(len(texts), dimensions)``. Rows have norm 1; a row is all zeros
            only if its text has nothing to embed (empty, blank, or no known token). Only the first
            `MAX_CHARACTERS` of a text are used.

        Raises:
            ProviderUnavailable: temporary; a retry may succeed (timeout, connection, 429, 5xx).
            ProviderRejected: permanent; a retry will fail (key, model, request, damaged files).
            ProviderAnswerInvalid: wrong count or dimension, NaN, infinity, or a zero vector.
        """
        ...


def checked(
    vectors: ArrayLike, count: int, dimensions: int, *, zero_rows: bool = False
) -> NDArray[np.float32]:
    """Validate a model's answer and scale every row to norm 1.

    Args:
        vectors: the model's answer: anything numpy can turn into a 2-d array of numbers.
        count: the expected number of rows.
        dimensions: the expected length of every row.
        zero_rows: True to allow all-zero rows, which stay zero.

    Returns:
        An array of shape ``(count, dimensions)``.

    Raises:
        ProviderAnswerInvalid: ``details['reason']`` is ``shape``, ``count``, ``dimensions``,
            ``not_finite`` or ``zero``.
    """
    import numpy as np

    array = None
    # numpy's own error quotes the answer, so it is dropped, not chained.
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        # Compute in float64: a finite double may overflow float32, and so may its square.
        array = np.asarray(vectors, dtype=np.float64)
    if array is not None and count == 0 and array.size == 0:
        return np.zeros((0, dimensions), dtype=np.float32)
    if array is not None and array.ndim > 0 and len(array) != count:
        raise _invalid(f"{len(array)} vectors for {count} texts", "count")
    if array is None or array.ndim != 2:
        raise _invalid("something other than a table of numbers", "shape")
    if array.shape[1] != dimensions:
        size = array.shape[1]
        raise _invalid(f"{size} dimensions instead of {dimensions}", "dimensions")
    if not np.isfinite(array).all():
        raise _invalid("a vector with NaN or infinity", "not_finite")
    largest = np.abs(array).max(axis=1, keepdims=True)
    if not zero_rows and (largest == 0.0).any():
        raise _invalid("a vector of zeros", "zero")
    # Divide by the largest entry first, to keep the squares of huge and tiny vectors in range.
    array = array / np.where(largest == 0.0, 1.0, largest)
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    return (array / np.where(norms == 0.0, 1.0, norms)).astype(np.float32)


class CheckedEmbedding:
    """Wrap a provider from outside this package: check its answers and translate its errors.

    Args:
        provider: an object with the members of ``EmbeddingProvider``.

    Raises:
        InvalidConfig: ``model`` is not a non-empty text, or ``dimensions`` is not an integer >= 1.
    """

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider
        self.name, self.model, self.dimensions = provider.name, provider.model, provider.dimensions
        if not isinstance(self.model, str) or not self.model:
            raise InvalidConfig("An embedding provider must name its model.", key="model")
        if not isinstance(self.dimensions, int) or self.dimensions < 1:
            raise InvalidConfig("Embedding dimensions must be at least 1.", key="dimensions")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See ``EmbeddingProvider.embed``.

        Raises:
            ProviderError: the error that the provider raised. Any other exception becomes
                ``ProviderUnavailable`` with the name of its class, but not its text, which may
                contain a key or an embedded text.
            ProviderAnswerInvalid: see ``checked``, or the answer is larger than
                ``MAX_ANSWER_BYTES``.
        """
        try:
            answer = self._provider.embed(texts)
        except ProviderError:
            raise
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            raise ProviderUnavailable(
                f"The embedding provider failed with {type(error).__name__}."
            ) from None
        if getattr(answer, "nbytes", 0) > MAX_ANSWER_BYTES:
            raise _invalid("more than 64 MB", "size")
        return checked(answer, len(texts), self.dimensions, zero_rows=True)


def prepared(text: str) -> str:
    """Return the part of ``text`` to embed, with lone surrogates (invalid in UTF-8) replaced."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _invalid(problem: str, reason: str) -> ProviderAnswerInvalid:
    return ProviderAnswerInvalid(f"The embedding model returned {problem}.", reason=reason)


def embedding_provider(
    name: str,
    *,
    dimensions: int | None = None,
    **options: Unpack[ModelOptions],
) -> EmbeddingProvider:
    """Return the provider with this configured name. Loads no model and opens no connection.

    Args:
        name: ``local``, ``fake`` or ``litellm/<model>``, with litellm's model name.
        dimensions: required for ``litellm/…``; ``local`` always has 256; ``fake`` takes any, 64
            by default.
        options: for ``litellm/…``; see ``ModelOptions``.

    Raises:
        InvalidConfig: the name is unknown or a value is out of range; ``details['key']`` names it.
    """
    if dimensions is not None and dimensions < 1:
        raise InvalidConfig("Embedding dimensions must be at least 1.", key="dimensions")
    if name == "local":
        from memgraph.providers.local import LocalEmbedding

        if dimensions not in (None, LocalEmbedding.dimensions):
            raise InvalidConfig(
                f"The local embedding model has {LocalEmbedding.dimensions} dimensions.",
                key="dimensions",
            )
        return LocalEmbedding()
    if name == "fake":
        from memgraph.providers.fake import FakeEmbedding

        return FakeEmbedding() if dimensions is None else FakeEmbedding(dimensions=dimensions)
    if name.startswith(LITELLM_PREFIX) and len(name) > len(LITELLM_PREFIX):
        from memgraph.providers.litellm_embedding import LitellmEmbedding

        if dimensions is None:
            raise InvalidConfig(f"Dimensions must be configured for {name!r}.", key="dimensions")
        return LitellmEmbedding(
            name.removeprefix(LITELLM_PREFIX),
            dimensions=dimensions,
            **options,
        )
    raise InvalidConfig(
        f"Unknown embedding provider {name!r}: use local, fake or litellm/<model>.",
        key="name",
    )
